//! The steps of a run that are in a slice, with their new ids.

use crate::units::StepId;
use std::ops::Range;

/// Runs of consecutive ids, in order: memory grows with the gaps between them.
#[derive(Debug, Default)]
pub(super) struct KeptSteps {
    /// Ranges of old ids, each with the new id of its first.
    runs: Vec<(Range<u64>, u64)>,
}

impl KeptSteps {
    /// Adds the next step; ids must ascend.
    pub(super) fn push(&mut self, id: StepId) {
        let new = self.count();
        match self.runs.last_mut() {
            Some((run, _)) if run.end == id.0 => run.end += 1,
            _ => self.runs.push((id.0..id.0 + 1, new)),
        }
    }

    /// Number of steps.
    pub(super) fn count(&self) -> u64 {
        self.runs.last().map_or(0, |(run, first)| first + (run.end - run.start))
    }

    /// Number of steps with smaller ids: the new id of this step, or of the next one in the slice.
    pub(super) fn before(&self, id: StepId) -> StepId {
        let at = self.runs.partition_point(|(run, _)| run.end <= id.0);
        let within = self.runs.get(at);
        StepId(within.map_or(self.count(), |(run, first)| first + id.0.saturating_sub(run.start)))
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
        fn new_ids_count_the_kept_ones_before(
            ids in prop::collection::btree_set(0u64..100, 0..40),
            asked in 0u64..110,
        ) {
            let mut kept = KeptSteps::default();
            ids.iter().for_each(|id| kept.push(StepId(*id)));
            prop_assert_eq!(kept.count(), ids.len() as u64);
            prop_assert_eq!(kept.before(StepId(asked)).0, ids.range(..asked).count() as u64);
        }
    }
}
