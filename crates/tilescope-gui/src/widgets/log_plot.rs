//! Plots on logarithmic axes: egui_plot draws straight ones, so that positions are logarithms.

use egui_plot::{GridInput, GridMark};
use tilescope_report::units::with_prefix;

/// A position on a logarithmic axis. Values above zero have one.
pub(crate) fn log_position(value: f64) -> f64 {
    value.max(f64::MIN_POSITIVE).log10()
}

/// Most decades of which each is divided.
const DIVIDED_DECADES: f64 = 4.0;

/// Lines at powers of ten and, where few of these are on the screen, at whole multiples of them.
pub(crate) fn decade_marks(input: GridInput) -> Vec<GridMark> {
    let (low, high) = input.bounds;
    if !(low.is_finite() && high.is_finite()) || high - low > 600.0 {
        return Vec::new();
    }
    let decades = (low.floor() as i32..=high.ceil() as i32).map(f64::from);
    let divided = high - low <= DIVIDED_DECADES;
    let within = |decade: f64| {
        let parts = (2..=9)
            .filter(move |_| divided)
            .map(move |part| GridMark { value: decade + f64::from(part).log10(), step_size: 0.1 });
        std::iter::once(GridMark { value: decade, step_size: 1.0 }).chain(parts)
    };
    // Words at marks beyond the edge would stand beside the plot.
    decades.flat_map(within).filter(|mark| (low..=high).contains(&mark.value)).collect()
}

/// Words at a power of ten: `100 G`. Nothing between them.
pub(crate) fn decade_label(mark: GridMark) -> String {
    let is_decade = (mark.value - mark.value.round()).abs() < 1e-6;
    match is_decade {
        true => plain(10f64.powf(mark.value.round())),
        false => String::new(),
    }
}

/// A power of ten in few letters.
fn plain(value: f64) -> String {
    if value >= 999.0 {
        // Whole powers need no decimals: `1.00 T` is `1 T`.
        let text = with_prefix(value, "");
        let (number, prefix) = text.split_once(' ').unwrap_or((&text, ""));
        let number = number.split('.').next().unwrap_or(number);
        return format!("{number} {prefix}").trim_end().to_owned();
    }
    if value >= 1.0 { format!("{value:.0}") } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_ten_have_words_and_lines_between_them_have_none() {
        let label = |value: f64| decade_label(GridMark { value, step_size: 1.0 });
        let cases = [
            (-2.0, "0.01"),
            (0.0, "1"),
            (2.0, "100"),
            (3.0, "1 k"),
            (11.0, "100 G"),
            (12.0, "1 T"),
            (0.301, ""),
        ];
        for (value, text) in cases {
            assert_eq!(label(value), text);
        }
    }

    #[test]
    fn decades_are_divided_where_there_are_few() {
        let marks = |bounds| decade_marks(GridInput { bounds, base_step_size: 0.01 }).len();
        assert_eq!(marks((0.0, 2.0)), 2 * 9 + 1);
        assert_eq!(marks((0.0, 9.0)), 10);
        assert_eq!(marks((f64::NAN, 9.0)), 0);
    }
}
