//! Predicted figures with their bounds.

use serde::{Deserialize, Serialize};
use tilescope_report::FactorBand;
use tilescope_report::units::{grouped, seconds};

/// A predicted figure, and the bounds that hold it in nine of ten cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Banded {
    value: f64,
    low: f64,
    high: f64,
}

impl Banded {
    pub(super) fn new(value: f64, factors: FactorBand) -> Self {
        Self { value, low: value * factors.low, high: value * factors.high }
    }

    /// Creates the band of a figure that falls as the figure of its band rises.
    pub(super) fn falling(value: f64, FactorBand { low, high }: FactorBand) -> Self {
        Self::new(value, FactorBand { low: 1.0 / high, high: 1.0 / low })
    }

    /// The band of a figure that is off by the same share: the time of a sample from that of its
    /// run.
    #[must_use]
    pub fn in_step(&self, value: f64) -> Self {
        let share = value / self.value.max(f64::MIN_POSITIVE);
        Self { value, low: self.low * share, high: self.high * share }
    }

    /// The band of a figure that falls as this one rises: a rate from a time.
    #[must_use]
    pub fn in_reverse(&self, value: f64) -> Self {
        let least = f64::MIN_POSITIVE;
        let product = value * self.value;
        Self { value, low: product / self.high.max(least), high: product / self.low.max(least) }
    }

    /// The figure itself.
    pub fn value(&self) -> f64 {
        self.value
    }

    /// The bound that the figure falls below in one of twenty cases.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The bound that the figure exceeds in one of twenty cases.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// True if a figure lies within the band.
    pub fn holds(&self, figure: f64) -> bool {
        (self.low..=self.high).contains(&figure)
    }

    /// `32,646 to 45,848 in nine of ten cases`
    pub fn words(&self) -> String {
        self.words_with(|figure| grouped(figure.round() as u64), "")
    }

    /// `10.1 ms to 12.3 ms in nine of ten cases`
    pub fn in_seconds(&self) -> String {
        self.words_with(seconds, "")
    }

    /// The same, with each end formatted by `text`, followed by the unit in `what`.
    pub fn words_with(&self, text: impl Fn(f64) -> String, what: &str) -> String {
        format!("{}{what} (90 % interval)", self.ends(text))
    }

    /// `32,646 to 45,848`, each end formatted by `text`.
    pub fn ends(&self, text: impl Fn(f64) -> String) -> String {
        format!("{} to {}", text(self.low), text(self.high))
    }

    /// `-12 to +14 %`
    pub fn width_words(&self) -> String {
        let low = (self.low / self.value - 1.0) * 100.0;
        let high = (self.high / self.value - 1.0) * 100.0;
        format!("{low:+.0} to {high:+.0} %")
    }

    /// ` (-12 to +14 %)`, to append to the figure; empty if its errors are not known.
    pub fn in_brackets(band: Option<Self>) -> String {
        band.map_or_else(String::new, |band| format!(" ({})", band.width_words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_figures_have_equal_relative_bands() {
        let factors = FactorBand { low: 0.8, high: 1.25 };
        let time = Banded::new(3.0, factors);
        assert_eq!(time.in_step(3.0), time);
        let close = |a: Banded, b: Banded| {
            let ends = [a.value - b.value, a.low - b.low, a.high - b.high];
            assert!(ends.iter().all(|off| off.abs() < 1e-12), "{a:?} {b:?}");
        };
        close(time.in_step(7.0), Banded::new(7.0, factors));
        close(time.in_reverse(7.0), Banded::falling(7.0, factors));
        close(time.in_reverse(7.0).in_reverse(3.0), time);
    }
}
