//! Ticks of axes: their positions and labels.

use super::{FigureAxis, FigureUnit};

/// The largest number of decades of an axis with subdivisions.
const DIVIDED_DECADES: f64 = 4.0;

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureTick {
    pub value: f64,
    /// Empty for lines between powers of ten.
    pub label: String,
}

impl FigureAxis {
    /// At most `most` labelled ticks between two values, and at least about half of that number:
    /// names, or round numbers.
    #[must_use]
    pub fn ticks(&self, (low, high): (f64, f64), most: usize) -> Vec<FigureTick> {
        let most = most.max(1);
        if !(low.is_finite() && high.is_finite() && low < high) {
            return Vec::new();
        }
        if self.logarithmic {
            return powers(self.unit, (low, high), most);
        }
        if !self.names.is_empty() {
            let each = self.names.len().div_ceil(most);
            let mut ticks = Vec::new();
            for (at, name) in self.names.iter().enumerate().step_by(each) {
                ticks.push(FigureTick { value: at as f64, label: name.clone() });
            }
            return ticks;
        }
        if self.unit == FigureUnit::None {
            return Vec::new();
        }
        let (factor, _) = self.unit.scale(0.0);
        let step = round_step((high - low) * factor / most as f64, self.unit == FigureUnit::Bytes);
        let step = step / factor;
        let first = (low / step).ceil();
        // Rounding must not drop the tick at the end.
        let count = ((high - first * step) / step + 1e-9).floor().max(0.0) as usize + 1;
        let mut ticks = Vec::new();
        for at in 0..count.min(most + 1) {
            let value = (first + at as f64) * step;
            ticks.push(FigureTick { value, label: self.unit.tick(value, step) });
        }
        ticks
    }
}

/// Powers of ten and, if there are few of these, their whole multiples without labels.
fn powers(unit: FigureUnit, (low, high): (f64, f64), most: usize) -> Vec<FigureTick> {
    let low = low.max(f64::MIN_POSITIVE);
    let first = low.log10().floor() as i32;
    let last = high.log10().floor() as i32;
    let count = (high.log10().floor() - low.log10().ceil()).max(0.0) as usize;
    let each = (count / most + 1) as i32;
    let divided = high.log10() - low.log10() <= DIVIDED_DECADES;
    let start = low.log10().ceil() as i32;
    let mut ticks = Vec::new();
    for power in first..=last {
        let parts = if divided { 9 } else { 1 };
        for part in 1..=parts {
            let value = f64::from(part) * 10f64.powi(power);
            let is_labelled = part == 1 && (power - start) % each == 0;
            let label = if is_labelled { unit.tick(value, value) } else { String::new() };
            if (low..=high).contains(&value) && (is_labelled || divided) {
                ticks.push(FigureTick { value, label });
            }
        }
    }
    ticks
}

impl FigureUnit {
    /// The factor and the name of the unit that gives a value one to three digits before the point.
    fn scale(self, value: f64) -> (f64, &'static str) {
        const K: f64 = 1024.0;
        let scales: &[(f64, &str)] = match self {
            Self::Share => return (100.0, "%"),
            Self::Bytes => &[
                (K * K * K * K * K, "PiB"),
                (K * K * K * K, "TiB"),
                (K * K * K, "GiB"),
                (K * K, "MiB"),
                (K, "KiB"),
                (1.0, "B"),
            ],
            Self::Seconds => &[(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")],
            Self::Count | Self::Cycles | Self::None => {
                &[(1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")]
            }
        };
        let fits = scales.iter().find(|(scale, _)| value.abs() >= *scale * 0.999_999);
        match fits.or(scales.last()) {
            Some((scale, name)) if value != 0.0 => (scale.recip(), name),
            _ => (1.0, scales.iter().find(|(scale, _)| *scale == 1.0).map_or("", |of| of.1)),
        }
    }

    /// A short number at an axis whose ticks are `step` apart: `1.5 M`.
    #[must_use]
    pub fn tick(self, value: f64, step: f64) -> String {
        let (factor, name) = self.scale(value);
        let finest = step * factor;
        let decimals = (0..6).find(|decimals| {
            let shifted = finest * 10f64.powi(*decimals);
            (shifted - shifted.round()).abs() < 1e-6 * shifted.max(1.0)
        });
        let most = if value.abs() < 1.0 && self == Self::Count { 9 } else { 3 };
        let decimals = decimals.unwrap_or(most).min(most) as usize;
        let mut number = format!("{:.decimals$}", value * factor);
        if number.contains('.') {
            number = number.trim_end_matches('0').trim_end_matches('.').to_owned();
        }
        format!("{number} {name}").trim_end().to_owned()
    }
}

/// The smallest round number that is not less: a power of two for bytes, otherwise 1, 2 or 5 times
/// a power of ten.
#[must_use]
pub fn round_step(least: f64, of_bytes: bool) -> f64 {
    let least = least.max(1e-12);
    if of_bytes {
        return 2f64.powf(least.log2().ceil()).max(1.0);
    }
    let power = 10f64.powf(least.log10().floor());
    let fits = [1.0, 2.0, 5.0].into_iter().find(|of| of * power >= least * 0.999_999);
    fits.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn labels(axis: &FigureAxis, ends: (f64, f64), most: usize) -> Vec<String> {
        axis.ticks(ends, most).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        let of = |unit, high: f64, most| labels(&FigureAxis::new("", unit), (0.0, high), most);
        assert_eq!(of(FigureUnit::Count, 10.0, 5), ["0", "2", "4", "6", "8", "10"]);
        let millions = ["0", "500 k", "1 M", "1.5 M", "2 M"];
        assert_eq!(of(FigureUnit::Count, 2.2e6, 5), millions);
        assert_eq!(of(FigureUnit::Bytes, 638_976.0, 3), ["0 B", "256 KiB", "512 KiB"]);
        assert_eq!(of(FigureUnit::Share, 1.0, 4), ["0 %", "50 %", "100 %"]);
        assert_eq!(
            of(FigureUnit::Seconds, 2.5e-3, 5),
            ["0 s", "500 µs", "1 ms", "1.5 ms", "2 ms", "2.5 ms"]
        );
        let powers = FigureAxis::logarithmic("", FigureUnit::Count);
        assert_eq!(labels(&powers, (0.5, 2e6), 4), ["1", "100", "10 k", "1 M"]);
        assert_eq!(labels(&powers, (0.009, 1e12), 20)[..4], ["0.01", "0.1", "1", "10"]);
    }

    #[test]
    fn decades_are_divided_where_there_are_few() {
        let axis = FigureAxis::logarithmic("", FigureUnit::Count);
        assert_eq!(axis.ticks((1.0, 100.0), 9).len(), 2 * 9 + 1);
        assert_eq!(axis.ticks((1.0, 1e9), 20).len(), 10);
        assert!(axis.ticks((f64::NAN, 9.0), 9).is_empty());
    }

    #[test]
    fn names_have_room() {
        let places = |count: usize, most| -> Vec<f64> {
            let axis = FigureAxis::of_names("", vec!["a run".to_owned(); count]);
            axis.ticks((-0.5, 100.0), most).iter().map(|tick| tick.value).collect()
        };
        assert_eq!(places(3, 5), [0.0, 1.0, 2.0]);
        assert_eq!(places(100, 5), [0.0, 20.0, 40.0, 60.0, 80.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn ticks_lie_between_the_ends_and_are_no_more_than_fit(
            low in 0.0..1e12f64,
            length in 1e-3..1e12f64,
            most in 2usize..20,
        ) {
            for unit in [FigureUnit::Count, FigureUnit::Bytes, FigureUnit::Share] {
                let found = FigureAxis::new("", unit).ticks((low, low + length), most);
                prop_assert!(found.len() <= most + 1, "{} of {most}", found.len());
                for tick in found {
                    let slack = length * 1e-9 + low * 1e-12;
                    prop_assert!((low - slack..=low + length + slack).contains(&tick.value));
                }
            }
        }
    }
}
