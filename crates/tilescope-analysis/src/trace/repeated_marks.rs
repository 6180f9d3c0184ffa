//! Repeated parts of a run: a typical iteration or slot, the fastest and the slowest.

use super::mark_blocks::ReadBlock;
use super::{MarkBlock, MarkRowId};
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{CountedMarks, MarkKind, PhaseRanges, Report, ReportError, TraceMark};

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
    /// The repeated marks among those of a row that count. If lengths differ too much, the typical
    /// mark is chosen among a few thousand marks in the middle.
    pub(crate) fn in_parts(
        kind: MarkKind,
        parts: &MarkRowParts,
        report: &Report,
        read: ReadBlock<'_>,
    ) -> Result<Option<Self>, ReportError> {
        let mut all = CountedMarks::default();
        parts.counted.iter().for_each(|(_, counted)| all.add(counted));
        let CountedMarks { count, shortest, longest } = all;
        if count < 2 {
            return Ok(None);
        }
        let reader = PartReader { report, read };
        let fastest = parts.counted.iter().find(|(_, counted)| counted.shortest == shortest);
        let fastest = reader.blocks_of(fastest)?.into_iter().find(|of| of.shortest == shortest);
        let fastest = reader.marks_of(fastest.as_slice())?.into_iter();
        let fastest = fastest.min_by_key(|mark| mark.range.length());
        let slowest = parts.counted.iter().rfind(|(_, counted)| counted.longest == longest);
        let slowest = reader.blocks_of(slowest)?.into_iter().rfind(|of| of.longest == longest);
        let slowest = reader.marks_of(slowest.as_slice())?.into_iter();
        let slowest = slowest.max_by_key(|mark| mark.range.length());
        let typical = parts.middle(&all, &reader)?;
        let (Some(fastest), Some(slowest), Some(typical)) = (fastest, slowest, typical) else {
            return Ok(None);
        };
        let TypicalMark { mut period, place: typical } = typical;
        period.count = count / (period.last - period.first + 1);
        Ok(Some(Self { kind, count, others: parts.others, typical, period, fastest, slowest }))
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

/// Blocks of a row with marks that count, and these marks.
pub(crate) struct MarkRowParts {
    counted: Vec<(MarkBlock, CountedMarks)>,
    /// True if there are others.
    others: bool,
}

impl MarkRowParts {
    /// All marks of a row.
    pub(crate) fn all(blocks: &[MarkBlock]) -> Self {
        let counted = blocks.iter().map(|block| (*block, CountedMarks::from(block)));
        Self { counted: counted.collect(), others: false }
    }

    /// The counted slots of each block.
    pub(crate) fn of_full_slots(blocks: &[MarkBlock], slots: &[CountedMarks]) -> Self {
        let mut parts = Self { counted: Vec::new(), others: false };
        for (block, counted) in blocks.iter().zip(slots) {
            parts.others |= counted.count < block.count;
            if counted.count > 0 {
                parts.counted.push((*block, *counted));
            }
        }
        parts
    }

    /// The marks that end in phases. Reads blocks that may have marks inside and outside of phases.
    pub(crate) fn within(
        blocks: &[MarkBlock],
        phases: &PhaseRanges,
        read: ReadBlock<'_>,
    ) -> Result<Self, ReportError> {
        let mut parts = Self { counted: Vec::new(), others: false };
        parts.add(blocks, phases, read)?;
        Ok(parts)
    }

    fn add(
        &mut self,
        blocks: &[MarkBlock],
        phases: &PhaseRanges,
        read: ReadBlock<'_>,
    ) -> Result<(), ReportError> {
        for block in blocks {
            let ends = block.ends();
            if phases.contain(ends) {
                self.counted.push((*block, CountedMarks::from(block)));
            } else if block.count > 1 && phases.may_contain(ends) {
                self.add(&read(block)?, phases, read)?;
            } else {
                self.others = true;
            }
        }
        Ok(())
    }

    /// A mark of approximately median length at or near the middle of those that count.
    fn middle(
        &self,
        all: &CountedMarks,
        reader: &PartReader<'_>,
    ) -> Result<Option<TypicalMark>, ReportError> {
        let place = all.count / 2;
        let mut ends = Vec::new();
        let mut end = 0;
        for (_, counted) in &self.counted {
            end += counted.count;
            ends.push(end);
        }
        let holds = ends.partition_point(|end| *end <= place);
        if all.longest - all.shortest <= all.shortest / NEAR_MEDIAN {
            let mut before = holds.checked_sub(1).map_or(0, |previous| ends[previous]);
            for block in reader.blocks_of(self.counted.get(holds))? {
                if place < before + block.count {
                    let at = usize::try_from(place - before).unwrap_or(usize::MAX);
                    let marks = reader.marks_of(&[block])?;
                    return Ok(marks.get(at).copied().map(TypicalMark::alone));
                }
                before += block.count;
            }
            return Ok(None);
        }
        let first = ends.partition_point(|end| *end <= place.saturating_sub(TYPICAL_OF / 2));
        let mut marks = Vec::new();
        for part in self.counted.get(first..).unwrap_or_default() {
            if marks.len() as u64 >= TYPICAL_OF {
                break;
            }
            marks.extend(reader.marks_of(&reader.blocks_of(Some(part))?)?);
        }
        Ok(typical_of(marks))
    }
}

/// Reads the marks that count.
struct PartReader<'a> {
    report: &'a Report,
    read: ReadBlock<'a>,
}

impl PartReader<'_> {
    /// Smaller blocks with the marks of a part that count.
    fn blocks_of(
        &self,
        part: Option<&(MarkBlock, CountedMarks)>,
    ) -> Result<Vec<MarkBlock>, ReportError> {
        let Some((block, counted)) = part else { return Ok(Vec::new()) };
        let blocks = if block.count == 1 { vec![*block] } else { (self.read)(block)? };
        if counted.count == block.count {
            return Ok(blocks);
        }
        // A slot without cycles may end with the phase before the block.
        let start = block.range.start.saturating_sub(Cycles(1));
        let window = CycleRange::new(start, block.range.end.saturating_add(Cycles(1)));
        let phases = self.report.full_phases(Some(window))?;
        let own = MarkRowParts::within(&blocks, &phases, self.read)?;
        Ok(own.counted.into_iter().map(|(block, _)| block).collect())
    }

    /// The single marks of some blocks.
    fn marks_of(&self, blocks: &[MarkBlock]) -> Result<Vec<MarkPlace>, ReportError> {
        let mut marks = Vec::new();
        for block in blocks {
            let singles = singles_of(block, self.read)?;
            marks.extend(singles.iter().map(MarkPlace::of_single));
        }
        Ok(marks)
    }
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
    /// Phases in which counted marks end; `None` to count all marks.
    within: Option<PhaseRanges>,
    others: bool,
    places: Vec<MarkPlace>,
}

impl RepeatedMarkFinder {
    pub(crate) fn new(kind: MarkKind, within: Option<PhaseRanges>) -> Self {
        Self { kind, within, others: false, places: Vec::new() }
    }

    /// Adds the next mark with its position in its row.
    pub(crate) fn push(&mut self, mark: &TraceMark, first: u64) {
        let ends = CycleRange::new(mark.cycles.end, mark.cycles.end);
        if self.within.as_ref().is_none_or(|phases| phases.contain(ends)) {
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
        let within = within.map(PhaseRanges::new);
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
