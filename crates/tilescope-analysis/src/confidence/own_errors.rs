//! Errors of a run that other runs of its program do not have: the bounds of a difference.

use super::draws::BAND_DEVIATIONS;
use super::{ErrorProneRun, RunCosts};
use serde::{Deserialize, Serialize};

/// Bounds of a change in nine of ten cases, as shares. They apply to the difference of two runs,
/// not to a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeBand {
    pub low: f64,
    pub high: f64,
}

/// The number of draws by which trials of one program are compared.
const OWN_DRAWS: usize = 32;

/// The units of a factor of e. Trials pass on whole numbers, which take little space.
const UNITS: f64 = 8192.0;

/// Factors on the length of a run that other runs of its program do not have: the logarithm of one for
/// each of some draws, which are the same for all runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnErrors([i16; OWN_DRAWS]);

impl OwnErrors {
    /// The first of some factors.
    fn of_factors(factors: &[f64]) -> Self {
        let mut own = [0; OWN_DRAWS];
        for (own, factor) in own.iter_mut().zip(factors) {
            *own = (factor.ln() * UNITS).round() as i16;
        }
        Self(own)
    }

    /// Bounds of the change to a run with the errors of `target`, whose predicted time is `ratio`
    /// times as long.
    #[must_use]
    pub fn change_to(&self, target: &Self, ratio: f64) -> ChangeBand {
        let mut logarithms = Vec::with_capacity(OWN_DRAWS);
        for (source, target) in self.0.iter().zip(&target.0) {
            logarithms.push((f64::from(*target) - f64::from(*source)) / UNITS);
        }
        let count = OWN_DRAWS as f64;
        let mean = logarithms.iter().sum::<f64>() / count;
        let squares: f64 = logarithms.iter().map(|value| (value - mean).powi(2)).sum();
        let half = BAND_DEVIATIONS * (squares / (count - 1.0)).sqrt();
        let get_change = |deviation: f64| ratio * (mean + deviation).exp() - 1.0;
        ChangeBand { low: get_change(-half), high: get_change(half) }
    }
}

impl ErrorProneRun<'_> {
    /// The errors that it does not share with other runs of its program. `None` if errors are not
    /// known.
    #[must_use]
    pub fn own_errors(&self) -> Option<OwnErrors> {
        let draws = RunCosts::new(self)?.draws(&[]);
        Some(OwnErrors::of_factors(&draws))
    }
}

#[cfg(test)]
mod tests {
    use super::super::normal;
    use super::*;

    #[test]
    fn errors_that_two_runs_share_cancel() {
        let factors = (0..OWN_DRAWS as u64).map(|draw| (0.1 * normal(7, draw)).exp());
        let one = OwnErrors::of_factors(&factors.collect::<Vec<f64>>());
        let same = one.change_to(&one, 0.8);
        assert!((same.low + 0.2).abs() < 1e-6 && (same.high + 0.2).abs() < 1e-6, "{same:?}");
        let other = one.change_to(&OwnErrors([0; OWN_DRAWS]), 0.8);
        assert!(other.low < -0.28 && other.high > -0.12, "{other:?}");
    }
}
