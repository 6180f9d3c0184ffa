//! Repeated parts of a run: a typical iteration or slot, the fastest and the slowest.

use super::mark_blocks::ReadBlock;
use super::{MarkBlock, MarkRowId};
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{MarkKind, ReportError, TraceMark};

/// Inverse of the share by which a length may differ from the median and still count as typical.
const NEAR_MEDIAN: u64 = 100;

/// Most marks that repeat together, such as the passes of a micro-batch.
const MOST_TOGETHER: usize = 8;
/// Marks among which the typical one of a long row is looked for.
const TYPICAL_OF: u64 = 1 << 12;

/// One of the repeated marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPlace {
    /// Its position in its row.
    pub first: u64,
    /// Its index in the run.
    pub number: u64,
    pub range: CycleRange,
}

impl MarkPlace {
    /// Its additional length relative to `typical`, as a share.
    pub fn deviation(&self, typical: &Self) -> f64 {
        let own = self.range.length().as_f64();
        let usual = typical.range.length().as_f64();
        own / usual.max(1.0) - 1.0
    }
}

/// Marks in a row that repeat together: a forward and a backward pass where each is a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkPeriod {
    /// Number of the first of them.
    pub first: u64,
    /// Number of the last of them.
    pub last: u64,
    pub range: CycleRange,
    /// Number of periods among the examined marks.
    pub count: u64,
}

/// Several marks of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedMarks {
    pub kind: MarkKind,
    /// Their number; for slots, only those of a full pipeline.
    pub count: u64,
    /// True if there are others: slots in which a pipeline fills or drains.
    pub others: bool,
    /// One of about median length, in the middle of the run; of marks that repeat together, the
    /// longest of a typical period.
    pub typical: MarkPlace,
    /// A period of about median length: the typical mark, or the marks that repeat with it.
    pub period: MarkPeriod,
    pub fastest: MarkPlace,
    pub slowest: MarkPlace,
}

impl RepeatedMarks {
    /// The repeated marks in a row of blocks; only those in `within` count. If lengths differ too
    /// much, the typical mark is chosen among a few thousand marks in the middle.
    pub(crate) fn in_blocks(
        kind: MarkKind,
        blocks: &[MarkBlock],
        within: Option<&[CycleRange]>,
        read: ReadBlock<'_>,
    ) -> Result<Option<Self>, ReportError> {
        let mut counted = CountedBlocks { within, others: false, blocks: Vec::new() };
        counted.add(blocks, read)?;
        let count: u64 = counted.blocks.iter().map(|block| block.count).sum();
        let lengths = counted.blocks.iter().map(|block| (block.shortest, block.longest));
        let Some((shortest, longest)) =
            lengths.reduce(|all, own| (all.0.min(own.0), all.1.max(own.1)))
        else {
            return Ok(None);
        };
        if count < 2 {
            return Ok(None);
        }
        let fastest = counted.blocks.iter().find(|block| block.shortest == shortest);
        let fastest = fastest.map(|block| marks_of(block, read)).transpose()?.unwrap_or_default();
        let fastest = fastest.into_iter().find(|mark| mark.range.length() == shortest);
        let slowest = counted.blocks.iter().rfind(|block| block.longest == longest);
        let slowest = slowest.map(|block| marks_of(block, read)).transpose()?.unwrap_or_default();
        let slowest = slowest.into_iter().rfind(|mark| mark.range.length() == longest);
        let typical = counted.middle(count / 2, (shortest, longest), read)?;
        let (Some(fastest), Some(slowest), Some(typical)) = (fastest, slowest, typical) else {
            return Ok(None);
        };
        let TypicalMark { mut period, place: typical } = typical;
        period.count = count / (period.last - period.first + 1);
        Ok(Some(Self { kind, count, others: counted.others, typical, period, fastest, slowest }))
    }

    /// True if all of them take the same number of cycles.
    pub fn all_equal(&self) -> bool {
        self.fastest.range.length() == self.slowest.range.length()
    }

    /// The row of the marks.
    pub fn row(&self) -> MarkRowId {
        MarkRowId::Common(self.kind)
    }
}

impl MarkPlace {
    fn of_single(mark: &MarkBlock) -> Self {
        Self { first: mark.first, number: mark.numbers.0, range: mark.range }
    }
}

/// Blocks of marks that all count.
struct CountedBlocks<'a> {
    within: Option<&'a [CycleRange]>,
    others: bool,
    blocks: Vec<MarkBlock>,
}

impl CountedBlocks<'_> {
    fn add(&mut self, blocks: &[MarkBlock], read: ReadBlock<'_>) -> Result<(), ReportError> {
        for block in blocks {
            let ends = ends_of(block);
            if counts(self.within, ends) {
                self.blocks.push(*block);
            } else if block.count > 1 && may_count(self.within, ends) {
                self.add(&read(block)?, read)?;
            } else {
                self.others = true;
            }
        }
        Ok(())
    }

    /// A mark of approximately median length at or near a position among those that count.
    fn middle(
        &self,
        place: u64,
        (shortest, longest): (Cycles, Cycles),
        read: ReadBlock<'_>,
    ) -> Result<Option<TypicalMark>, ReportError> {
        let ends: Vec<u64> = self
            .blocks
            .iter()
            .scan(0, |end, block| {
                *end += block.count;
                Some(*end)
            })
            .collect();
        let holds = ends.partition_point(|end| *end <= place);
        let Some(block) = self.blocks.get(holds) else { return Ok(None) };
        if longest - shortest <= shortest / NEAR_MEDIAN {
            let before = ends.get(holds).map_or(0, |end| end - block.count);
            let at = usize::try_from(place - before).unwrap_or(usize::MAX);
            return Ok(marks_of(block, read)?.get(at).copied().map(TypicalMark::alone));
        }
        let first = ends.partition_point(|end| *end <= place.saturating_sub(TYPICAL_OF / 2));
        let mut marks = Vec::new();
        for block in self.blocks.get(first..).unwrap_or_default() {
            if marks.len() as u64 >= TYPICAL_OF {
                break;
            }
            marks.extend(marks_of(block, read)?);
        }
        Ok(typical_of(marks))
    }
}

/// True if marks that end in a range of cycles, excluding its start, count. Slots count in the
/// phase in which they end, since they begin before the end of the previous phase.
fn counts(within: Option<&[CycleRange]>, ends: CycleRange) -> bool {
    let Some(within) = within else { return true };
    let before = within.partition_point(|range| range.start < ends.start);
    let last = before.checked_sub(1).and_then(|at| within.get(at));
    last.is_some_and(|range| ends.end <= range.end)
}

/// True if some of the marks that end in a range of cycles may count.
fn may_count(within: Option<&[CycleRange]>, ends: CycleRange) -> bool {
    let Some(within) = within else { return true };
    let first = within.partition_point(|range| range.end < ends.start);
    within.get(first).is_some_and(|range| range.start < ends.end)
}

/// The range from the earliest possible end of a block's first mark to the end of its last mark.
fn ends_of(block: &MarkBlock) -> CycleRange {
    CycleRange::new(block.range.start.saturating_add(block.shortest), block.range.end)
}

/// The single marks of a block.
fn singles_of(block: &MarkBlock, read: ReadBlock<'_>) -> Result<Vec<MarkBlock>, ReportError> {
    if block.count == 1 {
        return Ok(vec![*block]);
    }
    let mut marks = Vec::new();
    for part in read(block)? {
        marks.extend(singles_of(&part, read)?);
    }
    Ok(marks)
}

fn marks_of(block: &MarkBlock, read: ReadBlock<'_>) -> Result<Vec<MarkPlace>, ReportError> {
    Ok(singles_of(block, read)?.iter().map(MarkPlace::of_single).collect())
}

/// A typical mark and its period.
#[derive(Clone, Copy, Debug)]
struct TypicalMark {
    place: MarkPlace,
    period: MarkPeriod,
}

impl TypicalMark {
    /// A mark that repeats alone.
    fn alone(place: MarkPlace) -> Self {
        let MarkPlace { number, range, .. } = place;
        Self { place, period: MarkPeriod { first: number, last: number, range, count: 1 } }
    }
}

/// The period of about median length in the middle of those. The first period of a run, which also
/// starts the program, counts only if there are few.
fn typical_of(mut places: Vec<MarkPlace>) -> Option<TypicalMark> {
    places.sort_unstable_by_key(|place| place.first);
    let together = marks_together(&places);
    let mut periods: Vec<TypicalMark> = Vec::new();
    for marks in places.windows(together) {
        let (Some(first), Some(last)) = (marks.first(), marks.last()) else { continue };
        let in_step = first.number.is_multiple_of(together as u64);
        // Numbers begin again with each iteration.
        let follow = last.number.checked_sub(first.number) == Some(together as u64 - 1);
        if (together == 1 || in_step) && follow {
            let place = *marks.iter().max_by_key(|mark| mark.range.length())?;
            let range = first.range.union(last.range);
            let period = MarkPeriod { first: first.number, last: last.number, range, count: 0 };
            periods.push(TypicalMark { place, period });
        }
    }
    let count = periods.len() as u64;
    if count > 2 {
        periods.retain(|of| of.period.first > 0);
    }
    let length = |of: &TypicalMark| of.period.range.length();
    periods.sort_unstable_by_key(|of| (length(of), of.period.first));
    let median: Cycles = length(periods.get(periods.len().checked_sub(1)? / 2)?);
    let near = median / NEAR_MEDIAN;
    periods.retain(|of| length(of).abs_diff(median) <= near);
    periods.sort_unstable_by_key(|of| of.period.first);
    let mut typical = *periods.get(periods.len() / 2)?;
    typical.period.count = count;
    Some(typical)
}

/// The number of marks that repeat together: the shortest period that four of five lengths keep.
fn marks_together(places: &[MarkPlace]) -> usize {
    let length = |place: &MarkPlace| place.range.length();
    for period in 1..=MOST_TOGETHER {
        let later = places.iter().skip(period);
        let pairs = places.len().saturating_sub(period);
        if pairs < 2 * period {
            break;
        }
        let mut equal = 0;
        for (one, other) in places.iter().zip(later) {
            let near = length(one).max(length(other)) / NEAR_MEDIAN;
            equal += usize::from(length(one).abs_diff(length(other)) <= near);
        }
        if equal * 5 >= pairs * 4 {
            return period;
        }
    }
    1
}

/// Finds repeated marks of a kind.
pub(crate) struct RepeatedMarkFinder {
    kind: MarkKind,
    /// Ranges in which the ends of counted marks are, by start; `None` to count all marks.
    within: Option<Vec<CycleRange>>,
    others: bool,
    places: Vec<MarkPlace>,
}

impl RepeatedMarkFinder {
    pub(crate) fn new(kind: MarkKind, within: Option<Vec<CycleRange>>) -> Self {
        Self { kind, within, others: false, places: Vec::new() }
    }

    /// Adds the next mark with its position in its row.
    pub(crate) fn push(&mut self, mark: &TraceMark, first: u64) {
        let ends = CycleRange::new(mark.cycles.end, mark.cycles.end);
        if counts(self.within.as_deref(), ends) {
            self.places.push(MarkPlace { first, number: mark.index, range: mark.cycles });
        } else {
            self.others = true;
        }
    }

    /// The repeated marks; `None` if there are fewer than two.
    pub(crate) fn finish(mut self) -> Option<RepeatedMarks> {
        self.places.sort_unstable_by_key(|place| (place.range.length(), place.first));
        let [fastest, .., slowest] = self.places[..] else { return None };
        let count = self.places.len() as u64;
        let typical = typical_of(self.places)?;
        Some(RepeatedMarks {
            kind: self.kind,
            count,
            others: self.others,
            typical: typical.place,
            period: typical.period,
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
        numbered(lengths, within, u64::MAX)
    }

    /// The same with numbers that begin again after a number of marks.
    fn numbered(
        lengths: &[u64],
        within: Option<Vec<CycleRange>>,
        again: u64,
    ) -> Option<RepeatedMarks> {
        let mut finder = RepeatedMarkFinder::new(MarkKind::Iteration, within);
        let mut at = 0;
        for (place, length) in (0..).zip(lengths) {
            let index = place % again;
            let cycles = CycleRange::new(Cycles(at), Cycles(at + length));
            at += length;
            let mark = TraceMark {
                kind: MarkKind::Iteration,
                label: String::new(),
                ipu: None,
                pass: None,
                index,
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
    fn numbers_that_begin_again_end_a_period() {
        for again in [4, 5, 7] {
            let repeated = numbered(&[60, 97].repeat(20), None, again).unwrap();
            assert!(repeated.period.first <= repeated.period.last, "{again}");
        }
    }

    #[test]
    fn marks_that_alternate_repeat_together() {
        // The first slot waits for the host: its length is the median of all slots.
        let mut lengths = vec![60, 97];
        for _ in 0..20 {
            lengths.extend([38, 97]);
        }
        let repeated = found(&lengths, None).unwrap();
        let MarkPeriod { first, last, range, count } = repeated.period;
        assert_eq!((last - first, range.length(), count), (1, Cycles(135), 21));
        assert!(first > 0 && first.is_multiple_of(2), "{first}");
        assert_eq!(repeated.typical.range.length(), Cycles(97));
        assert!(first <= repeated.typical.number && repeated.typical.number <= last);
        let alone = found(&[90, 100, 130, 100, 100, 80], None).unwrap();
        assert_eq!((alone.period.first, alone.period.range), (3, alone.typical.range));
    }

    #[test]
    fn slots_count_in_the_phase_in_which_they_end() {
        let main = CycleRange::new(Cycles(15), Cycles(210));
        let repeated = found(&[10, 100, 100, 100], Some(vec![main])).unwrap();
        assert_eq!((repeated.count, repeated.others), (2, true));
        assert_eq!(repeated.fastest.number, 1, "it begins before the phase");
    }

    #[test]
    fn slots_that_fill_a_pipeline_do_not_count() {
        let main = CycleRange::new(Cycles(10), Cycles(310));
        let repeated = found(&[10, 100, 100, 100, 10], Some(vec![main])).unwrap();
        assert_eq!((repeated.count, repeated.others), (3, true));
        assert_eq!(repeated.fastest.range.length(), Cycles(100));
    }
}
