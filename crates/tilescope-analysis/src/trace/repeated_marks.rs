//! What a run does again and again: a typical iteration or slot, the fastest and the slowest.

use super::mark_blocks::MarkRowId;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{MarkKind, TraceMark};

/// Lengths are as good as the median where they differ by less than this part of it.
const NEAR_MEDIAN: u64 = 100;

/// One mark of those that repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPlace {
    /// Its place in its row.
    pub first: u64,
    /// Its index in the run.
    pub number: u64,
    pub range: CycleRange,
}

impl MarkPlace {
    /// How much longer it takes than `typical`, as a share of that.
    pub fn deviation(&self, typical: &Self) -> f64 {
        let (own, usual) = (self.range.length().as_f64(), typical.range.length().as_f64());
        own / usual.max(1.0) - 1.0
    }
}

/// Marks of a kind of which there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedMarks {
    pub kind: MarkKind,
    /// How many they are; of slots those of a full pipeline.
    pub count: u64,
    /// Whether there are others: slots in which a pipeline fills or drains.
    pub others: bool,
    /// One of about median length, in the middle of the run.
    pub typical: MarkPlace,
    pub fastest: MarkPlace,
    pub slowest: MarkPlace,
}

impl RepeatedMarks {
    /// Whether all of them take the same cycles.
    pub fn all_equal(&self) -> bool {
        self.fastest.range.length() == self.slowest.range.length()
    }

    /// The row of the marks.
    pub fn row(&self) -> MarkRowId {
        MarkRowId::Common(self.kind)
    }
}

/// Finds them among the marks of a kind.
pub(crate) struct RepeatedMarkFinder {
    kind: MarkKind,
    /// Where marks count, by start; everywhere, if there are no such phases.
    within: Option<Vec<CycleRange>>,
    others: bool,
    places: Vec<MarkPlace>,
}

impl RepeatedMarkFinder {
    pub(crate) fn new(kind: MarkKind, within: Option<Vec<CycleRange>>) -> Self {
        Self { kind, within, others: false, places: Vec::new() }
    }

    /// Takes the next mark, which has a place in its row.
    pub(crate) fn push(&mut self, mark: &TraceMark, first: u64) {
        if self.counts(mark.cycles) {
            self.places.push(MarkPlace { first, number: mark.index, range: mark.cycles });
        } else {
            self.others = true;
        }
    }

    fn counts(&self, cycles: CycleRange) -> bool {
        let Some(within) = &self.within else { return true };
        let before = within.partition_point(|range| range.start <= cycles.start);
        let last = before.checked_sub(1).and_then(|at| within.get(at));
        last.is_some_and(|range| cycles.end <= range.end)
    }

    /// What repeats, if anything does.
    pub(crate) fn finish(mut self) -> Option<RepeatedMarks> {
        let length = |place: &MarkPlace| place.range.length();
        self.places.sort_unstable_by_key(|place| (length(place), place.first));
        let [fastest, .., slowest] = self.places[..] else { return None };
        let median: Cycles = length(&self.places[(self.places.len() - 1) / 2]);
        let near = median / NEAR_MEDIAN;
        let like = |place: &&MarkPlace| length(place).abs_diff(median) <= near;
        let mut usual: Vec<MarkPlace> = self.places.iter().filter(like).copied().collect();
        usual.sort_unstable_by_key(|place| place.first);
        Some(RepeatedMarks {
            kind: self.kind,
            count: self.places.len() as u64,
            others: self.others,
            typical: usual[usual.len() / 2],
            fastest,
            slowest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::units::StepId;

    fn found(lengths: &[u64], within: Option<Vec<CycleRange>>) -> Option<RepeatedMarks> {
        let mut finder = RepeatedMarkFinder::new(MarkKind::Iteration, within);
        let mut at = 0;
        for (place, length) in (0..).zip(lengths) {
            let cycles = CycleRange::new(Cycles(at), Cycles(at + length));
            at += length;
            let mark = TraceMark {
                kind: MarkKind::Iteration,
                label: String::new(),
                ipu: None,
                pass: None,
                index: place,
                steps: StepId(0)..StepId(0),
                cycles,
            };
            finder.push(&mark, place);
        }
        finder.finish()
    }

    #[test]
    fn the_median_is_typical() {
        let repeated = found(&[90, 100, 130, 100, 100, 80], None).unwrap();
        assert_eq!(repeated.typical.number, 3, "the one in the middle of those of 100 cycles");
        assert_eq!((repeated.fastest.number, repeated.slowest.number), (5, 2));
        assert!((repeated.slowest.deviation(&repeated.typical) - 0.3).abs() < 1e-9);
        assert!(!repeated.all_equal() && !repeated.others);
        assert!(found(&[7, 7, 7], None).unwrap().all_equal());
        assert_eq!(found(&[7], None), None, "one iteration repeats nothing");
    }

    #[test]
    fn slots_that_fill_a_pipeline_do_not_count() {
        let main = CycleRange::new(Cycles(10), Cycles(310));
        let repeated = found(&[10, 100, 100, 100, 10], Some(vec![main])).unwrap();
        assert_eq!((repeated.count, repeated.others), (3, true));
        assert_eq!(repeated.fastest.range.length(), Cycles(100));
    }
}
