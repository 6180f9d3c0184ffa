//! Formats of quantities: the only place that chooses digits, separators and units.
//!
//! Most texts have three or four significant digits with a unit. [`grouped`] and [`exact_bytes`]
//! write whole numbers in full, for counts in sentences and for the tooltips of short numbers.

use serde::{Deserialize, Serialize};

/// An integer with thousands separators: `12,345,678`.
pub fn grouped(value: u64) -> String {
    grouped_wide(value.into())
}

/// The same for sums that may be larger than any single figure.
pub fn grouped_wide(value: u128) -> String {
    with_separators(&value.to_string())
}

fn with_separators(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Whole numbers below this are written in full; larger ones have four figures and a prefix.
const WRITTEN_IN_FULL: u64 = 1_000_000;

/// A number of things in few figures: all of them with separators below a million, else four with a
/// prefix: `430,805`, `23.29 G`.
pub fn short_count(value: u64) -> String {
    if value < WRITTEN_IN_FULL {
        return grouped(value);
    }
    let (scale, prefix) = prefix_of(value as f64, 0.999_95);
    format!("{} {prefix}", four_figures(value as f64 / scale))
}

/// Cycles in few figures: `23.29 G cycles`.
pub fn short_cycles(value: u64) -> String {
    format!("{} cycles", short_count(value))
}

/// Four significant figures for values below 10,000.
fn four_figures(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 999.95 => 0,
        size if size >= 99.995 => 1,
        size if size >= 9.999_5 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

/// Smaller numbers are written as a power of ten.
const LEAST_WITHOUT_POWER: f64 = 1e-4;

/// A number with thousands separators and three or four digits, and all digits before the point:
/// `25,830`, `25.83`, `25`, `0.01234`, `1.234e-6`.
pub fn grouped_real(value: f64) -> String {
    let size = value.abs();
    if !size.is_finite() {
        return value.to_string();
    }
    if size > 0.0 && size < LEAST_WITHOUT_POWER {
        return format!("{value:.3e}");
    }
    // Zeros before the first significant digit, including the one before the point.
    let zeros = (0..=4).take_while(|zeros| size * 10f64.powi(*zeros) < 1.0).count();
    let decimals = match size {
        size if size.fract() == 0.0 => 0,
        _ if zeros > 0 => zeros + 3,
        _ if size < 99.995 => 2,
        _ if size < 999.95 => 1,
        _ => 0,
    };
    let text = format!("{size:.decimals$}");
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if value < 0.0 { "-" } else { "" };
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{rest}", with_separators(whole))
}

/// A number with all stored digits and separated thousands: `1,180.4511278195488`.
pub fn exact_real(value: f64) -> String {
    let text = value.to_string();
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let (sign, digits) = whole.split_at(usize::from(whole.starts_with('-')));
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return text;
    }
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{rest}", with_separators(digits))
}

/// Exact bytes with separators and unit, as tables show them: `638,976 B`.
pub fn exact_bytes(value: u64) -> String {
    format!("{} B", grouped(value))
}

/// Units for byte counts where three figures are enough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByteUnits {
    /// Powers of 1024: `57.1 MiB`.
    #[default]
    Binary,
    /// Powers of 1000: `59.9 MB`.
    Si,
    /// All digits: `59,873,280 B`.
    Bytes,
}

impl ByteUnits {
    /// All choices, in the order of the menu.
    pub const ALL: [Self; 3] = [Self::Binary, Self::Si, Self::Bytes];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Si => "si",
            Self::Bytes => "bytes",
        }
    }

    /// The name for users.
    pub fn title(self) -> &'static str {
        match self {
            Self::Binary => "KiB, MiB, GiB",
            Self::Si => "kB, MB, GB",
            Self::Bytes => "All digits",
        }
    }
}

/// The format of numbers where users can choose it. The default is that of files and of the command
/// line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberFormat {
    /// Units of bytes.
    pub byte_units: ByteUnits,
}

impl NumberFormat {
    /// Bytes to three figures in the chosen units; all figures if the unit is the byte.
    pub fn bytes(self, value: u64) -> String {
        bytes_in(self.byte_units, value)
    }
}

/// Bytes to three figures in binary multiples, as in files and on the command line: `57.1 MiB`.
pub fn binary_bytes(value: u64) -> String {
    bytes_in(ByteUnits::Binary, value)
}

fn bytes_in(units: ByteUnits, value: u64) -> String {
    let (base, names) = match units {
        ByteUnits::Binary => (1024, ["KiB", "MiB", "GiB", "TiB", "PiB"]),
        ByteUnits::Si => (1000, ["kB", "MB", "GB", "TB", "PB"]),
        ByteUnits::Bytes => return exact_bytes(value),
    };
    if value < base {
        return format!("{value} B");
    }
    let mut scaled = value as f64 / base as f64;
    let mut name = 0;
    while scaled >= 999.5 && name + 1 < names.len() {
        scaled /= base as f64;
        name += 1;
    }
    format!("{} {}", three_figures(scaled), names[name])
}

/// Three significant figures for values below 1,000: `9.81`, `98.1`, `981`.
fn three_figures(value: f64) -> String {
    if value >= 99.95 {
        format!("{value:.0}")
    } else if value >= 9.995 {
        format!("{value:.1}")
    } else {
        format!("{value:.2}")
    }
}

/// A share of one as a percentage with one decimal: `0.893` is `89.3 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A share of one as a percentage with at least two figures, up to four decimals: `0.55 %`.
pub fn fine_percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.00005 {
        return "< 0.0001 %".to_owned();
    }
    let decimals = match percent.abs() {
        small if small > 0.0 && small < 0.095 => 4,
        small if small > 0.0 && small < 9.95 => 2,
        _ => 1,
    };
    format!("{percent:.decimals$} %")
}

/// A difference of two shares of one, in percentage points: `+0.1 pp`.
pub fn percentage_points(change: f64) -> String {
    let points = change * 100.0;
    let decimals = match points.abs() {
        small if small > 0.0 && small < 0.095 => 3,
        small if small > 0.0 && small < 0.95 => 2,
        _ => 1,
    };
    let sign = if points > 0.0 { "+" } else { "" };
    format!("{sign}{points:.decimals$} pp")
}

/// A change as a share of the original value: `+12.50 %`, `-3.00 %`, `+67,185 %`.
pub fn change_percent(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    let percent = share * 100.0;
    if percent.abs() < 1000.0 {
        format!("{sign}{percent:.2} %")
    } else {
        format!("{sign}{} %", grouped_real(percent.round()))
    }
}

/// A number with the prefix that leaves one to three digits before the point: `349 TFLOP/s`.
pub fn with_prefix(value: f64, unit: &str) -> String {
    let (scale, prefix) = prefix_of(value, 0.9995);
    format!("{} {prefix}{unit}", three_figures(value / scale))
}

/// The largest prefix that a number reaches. A number that rounds up to a thousand has the next
/// prefix.
fn prefix_of(value: f64, rounded_up: f64) -> (f64, &'static str) {
    let prefixes = [(1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    let fitting = prefixes.into_iter().find(|(scale, _)| value.abs() >= scale * rounded_up);
    fitting.unwrap_or((1.0, ""))
}

/// Seconds in the unit that leaves one to three digits before the point: `26.1 µs`.
pub fn seconds(value: f64) -> String {
    let (scale, unit) = match value.abs() {
        v if v >= 1.0 || v == 0.0 => (1.0, "s"),
        v if v >= 1e-3 => (1e3, "ms"),
        v if v >= 1e-6 => (1e6, "µs"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", three_figures(value * scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_print_in_three_figures() {
        let cases = [(8, "8 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (638_976, "624 KiB")];
        for (value, text) in cases {
            assert_eq!(binary_bytes(value), text);
        }
        assert_eq!(binary_bytes(940_572_672), "897 MiB");
        assert_eq!(binary_bytes(1023 * 1024 + 1023), "1.00 MiB");
    }

    #[test]
    fn units_are_powers_of_1024_or_of_1000_or_none() {
        let cases = [
            (ByteUnits::Binary, 638_976, "624 KiB"),
            (ByteUnits::Si, 638_976, "639 kB"),
            (ByteUnits::Si, 999_999, "1.00 MB"),
            (ByteUnits::Si, 999, "999 B"),
            (ByteUnits::Bytes, 638_976, "638,976 B"),
        ];
        for (units, value, text) in cases {
            assert_eq!(NumberFormat { byte_units: units }.bytes(value), text);
        }
    }

    #[test]
    fn integers_print_in_groups_of_three() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (1_211_970, "1,211,970")];
        for (value, text) in cases {
            assert_eq!(grouped(value), text);
        }
    }

    #[test]
    fn numbers_print_in_full() {
        let cases = [
            (25_830.256, "25,830"),
            (-1_234_567.0, "-1,234,567"),
            (452.94, "452.9"),
            (5.0, "5"),
            (99.996, "100.0"),
            (0.0, "0"),
            (5.5, "5.50"),
            (0.0123456, "0.01235"),
            (-0.25, "-0.2500"),
            (0.000_796_2, "0.0007962"),
            (0.000_001_234, "1.234e-6"),
            (1e-12, "1.000e-12"),
            (f64::INFINITY, "inf"),
        ];
        for (value, text) in cases {
            assert_eq!(grouped_real(value), text);
        }
    }

    #[test]
    fn large_counts_have_four_figures() {
        let cases = [
            (430_805, "430,805"),
            (1_234_895, "1.235 M"),
            (999_999_999, "1.000 G"),
            (23_287_475_151, "23.29 G"),
        ];
        for (value, text) in cases {
            assert_eq!(short_count(value), text);
        }
        assert_eq!(short_cycles(23_287_475_151), "23.29 G cycles");
    }

    #[test]
    fn exact_numbers_have_all_digits() {
        let cases = [(1_850_000_000.0, "1,850,000,000"), (-1234.5, "-1,234.5"), (0.25, "0.25")];
        for (value, text) in cases {
            assert_eq!(exact_real(value), text);
        }
    }

    #[test]
    fn large_changes_have_no_decimals() {
        let cases =
            [(0.125, "+12.50 %"), (-0.03, "-3.00 %"), (0.0, "0.00 %"), (671.8526, "+67,185 %")];
        for (value, text) in cases {
            assert_eq!(change_percent(value), text);
        }
    }

    #[test]
    fn small_shares_have_two_figures() {
        let cases = [
            (0.0, "0.0 %"),
            (0.0055, "0.55 %"),
            (0.000_012, "0.0012 %"),
            (0.25, "25.0 %"),
            (1.0, "100.0 %"),
        ];
        for (value, text) in cases {
            assert_eq!(fine_percent(value), text);
        }
    }

    #[test]
    fn prefixes_leave_up_to_three_digits() {
        let cases = [
            (348.6e12, "349 TFLOP/s"),
            (0.5, "0.50 FLOP/s"),
            (999_600.0, "1.00 MFLOP/s"),
            (12_300.0, "12.3 kFLOP/s"),
        ];
        for (value, text) in cases {
            assert_eq!(with_prefix(value, "FLOP/s"), text);
        }
    }

    #[test]
    fn seconds_pick_their_unit() {
        let cases = [(0.0, "0.00 s"), (2.6e-5, "26.0 µs"), (0.0091, "9.10 ms"), (90.0, "90.0 s")];
        for (value, text) in cases {
            assert_eq!(seconds(value), text);
        }
    }
}
