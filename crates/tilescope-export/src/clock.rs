//! Conversion of cycles to nanoseconds.

use tilescope_report::units::{CycleRange, Cycles, Hertz};

/// Nanoseconds in a second.
const NANOSECONDS: u128 = 1_000_000_000;

/// Converts cycles since the start of the trace to nanoseconds.
///
/// Each edge is rounded on its own, from the cycles since the start: ranges that nest in cycles
/// also nest in nanoseconds, and errors do not accumulate along a run.
#[derive(Clone, Copy, Debug)]
pub struct NanosecondClock {
    hertz: u64,
}

impl NanosecondClock {
    /// A clock with this frequency; if that is unknown, a cycle counts as a nanosecond.
    pub fn new(clock: Hertz) -> Self {
        Self { hertz: clock.0 }
    }

    /// True if the frequency is known.
    pub fn is_known(self) -> bool {
        self.hertz > 0
    }

    /// The nearest nanosecond to a cycle.
    pub fn at(self, cycle: Cycles) -> u64 {
        if !self.is_known() {
            return cycle.0;
        }
        let hertz = u128::from(self.hertz);
        let nanoseconds = (u128::from(cycle.0) * NANOSECONDS + hertz / 2) / hertz;
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }

    /// Both edges of a range.
    pub(crate) fn range(self, cycles: CycleRange) -> (u64, u64) {
        (self.at(cycles.start), self.at(cycles.end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn edges_are_exact_to_half_a_nanosecond_and_in_order(
            cycle in 0u64..1 << 47,
            more in 0u64..1 << 20,
            hertz in 1_000u64..4_000_000_000,
        ) {
            let clock = NanosecondClock::new(Hertz(hertz));
            let found = clock.at(Cycles(cycle));
            let exact = u128::from(cycle) * NANOSECONDS;
            let twice_off = (u128::from(found) * u128::from(hertz)).abs_diff(exact) * 2;
            prop_assert!(twice_off <= u128::from(hertz));
            prop_assert!(found <= clock.at(Cycles(cycle + more)));
        }
    }

    #[test]
    fn an_unknown_clock_counts_cycles() {
        assert_eq!(NanosecondClock::new(Hertz(0)).at(Cycles(7)), 7);
        assert_eq!(NanosecondClock::new(Hertz(1_850_000_000)).at(Cycles(1)), 1);
        assert_eq!(NanosecondClock::new(Hertz(1_850_000_000)).at(Cycles(1_850)), 1_000);
    }
}
