//! Axes: where ticks stand, and how they are labelled.

use super::{Anchor, Svg};
use tilescope_analysis::figures::round_step;
use tilescope_report::units::exact_bytes;

/// From values to places, on a line or by powers of ten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    /// Values at both ends.
    pub low: f64,
    pub high: f64,
    /// Places of both ends.
    pub from: f64,
    pub to: f64,
    pub logarithmic: bool,
}

impl Scale {
    /// A scale on which equal steps are equally long.
    pub(crate) fn linear((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, logarithmic: false }
    }

    /// A scale on which powers of ten are equally far from each other.
    pub(crate) fn logarithmic((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let low = low.max(f64::MIN_POSITIVE);
        let high = if high > low { high } else { low * 10.0 };
        Self { low, high, from, to, logarithmic: true }
    }

    /// The place of a value.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let part = match self.logarithmic {
            false => (value - self.low) / (self.high - self.low),
            true => {
                let value = value.max(f64::MIN_POSITIVE);
                (value / self.low).log10() / (self.high / self.low).log10()
            }
        };
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

/// What an axis counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AxisUnit {
    /// Cycles, steps, tiles, FLOPs: in thousands.
    Count,
    Bytes,
}

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub value: f64,
    pub label: String,
}

/// At most `most` ticks of round numbers, and about half as many at least.
pub(crate) fn ticks(scale: &Scale, most: usize, unit: AxisUnit) -> Vec<Tick> {
    if scale.logarithmic {
        return powers(scale, most);
    }
    let least = (scale.high - scale.low) / most.max(1) as f64;
    let step = round_step(least, unit == AxisUnit::Bytes);
    let first = (scale.low / step).ceil();
    // Rounding must not lose the tick at the end.
    let count = ((scale.high - first * step) / step + 1e-9).floor().max(0.0) as usize + 1;
    let values = (0..count.min(most.max(1) + 1)).map(|at| (first + at as f64) * step);
    values.map(|value| Tick { value, label: label(value, step, unit) }).collect()
}

fn powers(scale: &Scale, most: usize) -> Vec<Tick> {
    let (low, high) = (scale.low.log10().ceil() as i32, scale.high.log10().floor() as i32);
    let each = ((high - low).max(0) as usize / most.max(1) + 1) as i32;
    let powers = (low..=high).filter(|power| (power - low) % each == 0);
    powers
        .map(|power| {
            let value = 10f64.powi(power);
            Tick { value, label: label(value, value, AxisUnit::Count) }
        })
        .collect()
}

fn label(value: f64, step: f64, unit: AxisUnit) -> String {
    let (base, names): (f64, [&str; 6]) = match unit {
        AxisUnit::Bytes => (1024.0, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
        AxisUnit::Count => (1000.0, ["", "k", "M", "G", "T", "P"]),
    };
    let mut scaled = value;
    let mut finest = step;
    let mut name = 0;
    while scaled.abs() >= base && name + 1 < names.len() {
        (scaled, finest, name) = (scaled / base, finest / base, name + 1);
    }
    if value == 0.0 {
        return if unit == AxisUnit::Bytes { exact_bytes(0) } else { "0".to_owned() };
    }
    let decimals = (0..6).find(|decimals| {
        let shifted = finest * 10f64.powi(*decimals);
        (shifted - shifted.round()).abs() < 1e-6 * shifted.max(1.0)
    });
    let mut number = format!("{scaled:.*}", decimals.unwrap_or(3).min(3) as usize);
    if number.contains('.') {
        number = number.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{number} {}", names[name]).trim_end().to_owned()
}

/// An axis along the bottom: lines up to `top`, labels below `bottom`, a title at its end.
pub(crate) fn bottom(
    svg: &mut Svg,
    scale: &Scale,
    (top, bottom): (f64, f64),
    (unit, title): (AxisUnit, &str),
) {
    let room = (scale.to - scale.from) - super::width_of(title) - 24.0;
    let most = ((scale.to - scale.from) / 110.0) as usize;
    for Tick { value, label } in ticks(scale, most.max(2), unit) {
        let x = scale.at(value);
        svg.line((x, top), (x, bottom), "grid");
        // The title stands at the end of the row.
        if x - scale.from <= room {
            svg.text((x, bottom + 15.0), Anchor::Middle, "tick", &label);
        }
    }
    svg.text((scale.to, bottom + 15.0), Anchor::End, "tick", title);
}

/// An axis along the left: lines up to `right`, labels left of the plot, a title above them.
pub(crate) fn left(
    svg: &mut Svg,
    scale: &Scale,
    (left, right): (f64, f64),
    (unit, title): (AxisUnit, &str),
) {
    let most = ((scale.from - scale.to).abs() / 40.0) as usize;
    for Tick { value, label } in ticks(scale, most.max(2), unit) {
        let y = scale.at(value);
        svg.line((left, y), (right, y), "grid");
        svg.text((left - 6.0, y + 4.0), Anchor::End, "tick", &label);
    }
    svg.text((0.0, scale.to - 10.0), Anchor::Start, "tick", title);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn labels(low: f64, high: f64, most: usize, unit: AxisUnit) -> Vec<String> {
        let scale = Scale::linear((low, high), (0.0, 100.0));
        ticks(&scale, most, unit).into_iter().map(|tick| tick.label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(0.0, 10.0, 5, AxisUnit::Count), ["0", "2", "4", "6", "8", "10"]);
        let millions = ["0", "500 k", "1 M", "1.5 M", "2 M"];
        assert_eq!(labels(0.0, 2.2e6, 5, AxisUnit::Count), millions);
        let bytes = ["0 B", "256 KiB", "512 KiB"];
        assert_eq!(labels(0.0, 638_976.0, 3, AxisUnit::Bytes), bytes);
        let powers = Scale::logarithmic((0.5, 2e6), (0.0, 100.0));
        let powers = ticks(&powers, 4, AxisUnit::Count);
        assert_eq!(
            powers.iter().map(|tick| tick.label.as_str()).collect::<Vec<_>>(),
            ["1", "100", "10 k", "1 M"]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn ticks_lie_on_the_scale_and_are_no_more_than_fit(
            low in 0.0..1e12f64,
            length in 1e-3..1e12f64,
            most in 2usize..20,
        ) {
            for unit in [AxisUnit::Count, AxisUnit::Bytes] {
                let scale = Scale::linear((low, low + length), (10.0, 900.0));
                let found = ticks(&scale, most, unit);
                prop_assert!(found.len() <= most + 1, "{} of {most}", found.len());
                for tick in found {
                    let place = scale.at(tick.value);
                    prop_assert!((10.0..=900.0).contains(&place));
                }
            }
        }
    }
}
