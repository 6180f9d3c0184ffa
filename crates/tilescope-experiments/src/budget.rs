//! The option `--budget`: the limit of a search.

use std::str::FromStr;
use std::time::{Duration, Instant};

/// The limit of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchBudget {
    Simulations(usize),
    Time { from: Instant, length: Duration },
}

/// Units of time in seconds.
const UNITS: [(&str, u64); 3] = [("s", 1), ("m", 60), ("h", 3600)];

impl FromStr for SearchBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected a number of simulations (200) or a time (90s, 10m, 2h)".to_owned();
        let positive = |digits: &str| digits.parse::<u32>().ok().filter(|number| *number > 0);
        if let Some(number) = positive(text) {
            return Ok(Self::Simulations(number as usize));
        }
        let unit =
            UNITS.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, seconds)));
        let length =
            unit.and_then(|(digits, seconds)| Some(u64::from(positive(digits)?) * seconds));
        let length = Duration::from_secs(length.ok_or_else(wrong)?);
        Ok(Self::Time { from: Instant::now(), length })
    }
}

impl SearchBudget {
    /// The number of remaining simulations after `done` of them.
    pub fn left(self, done: usize) -> usize {
        match self {
            Self::Simulations(all) => all.saturating_sub(done),
            Self::Time { from, length } if from.elapsed() < length => usize::MAX,
            Self::Time { .. } => 0,
        }
    }

    /// The used share of the budget.
    pub fn share(self, done: usize) -> f64 {
        let share = match self {
            Self::Simulations(all) => done as f64 / all as f64,
            Self::Time { from, length } => from.elapsed().as_secs_f64() / length.as_secs_f64(),
        };
        share.min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_numbers_or_times() {
        assert_eq!("200".parse(), Ok(SearchBudget::Simulations(200)));
        for (text, seconds) in [("90s", 90), ("10m", 600), ("2h", 7200)] {
            let Ok(SearchBudget::Time { length, .. }) = text.parse() else { panic!("{text}") };
            assert_eq!(length.as_secs(), seconds);
        }
        for text in ["", "0", "-1", "m", "0m", "10 min", "1.5h", "9999999999"] {
            assert!(text.parse::<SearchBudget>().is_err(), "{text}");
        }
    }

    #[test]
    fn simulations_run_out() {
        let budget = SearchBudget::Simulations(10);
        assert_eq!((budget.left(0), budget.left(7), budget.left(12)), (10, 3, 0));
        assert_eq!((budget.share(5), budget.share(12)), (0.5, 1.0));
    }
}
