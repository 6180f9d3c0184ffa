//! Marks of a row at any zoom: consecutive marks that are too narrow to distinguish are combined in
//! one counted block, so that the number of drawn items fits the screen and no mark is left out.
//!
//! A row is a pyramid: pairs of blocks form a block of the level above. A long row has blocks of
//! several marks at its base, and reads smaller ones or marks for the parts that are zoomed in.

use std::ops::Range;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{MarkBlock, MarkRowId, ReportError, TraceMark};

/// Mean width of the marks of a block in pixels from which they are shown individually.
const LEAST_MARK: f64 = 4.0;
/// The same for stages, which have colours and gaps to distinguish them.
const LEAST_STAGE: f64 = 2.0;
/// Width of a block in pixels from which it is split: two halves of it have space for a count.
const WIDE_BLOCK: f64 = 140.0;

/// All marks of a row.
#[derive(Clone, Debug)]
pub struct MarkRow {
    pub id: MarkRowId,
    /// The blocks of the base, followed by levels of pairs of blocks of the level below.
    levels: Vec<Vec<MarkBlock>>,
}

/// Reads the parts of a block of several marks: smaller blocks or marks.
pub(crate) type ReadBlock<'a> = &'a dyn Fn(&MarkBlock) -> Result<Vec<MarkBlock>, ReportError>;

impl MarkRow {
    /// Creates a row of consecutive blocks.
    pub(crate) fn new(id: MarkRowId, base: Vec<MarkBlock>) -> Self {
        Self { id, levels: pyramid_of(base) }
    }

    /// Consecutive blocks with all marks.
    pub(crate) fn base(&self) -> &[MarkBlock] {
        self.levels.first().map_or(&[], Vec::as_slice)
    }

    /// All marks as one block; `None` in an empty row.
    pub fn whole(&self) -> Option<&MarkBlock> {
        self.levels.last()?.first()
    }

    /// The visible items of a window at a given zoom: marks and blocks, from left to right.
    pub(crate) fn shown(
        &self,
        window: CycleRange,
        cycles_per_pixel: f64,
        read: ReadBlock<'_>,
    ) -> Result<Vec<MarkBlock>, ReportError> {
        let mut placement = BlockPlacement {
            window,
            cycles_per_pixel: cycles_per_pixel.max(1e-9),
            least: if self.id.ipu().is_some() { LEAST_STAGE } else { LEAST_MARK },
            read,
            shown: Vec::new(),
        };
        placement.place(&self.levels, self.levels.len() - 1, 0)?;
        Ok(placement.shown)
    }

    /// The stages of a micro-batch, from left to right. Reads only the blocks that may contain one,
    /// which are close together in a pipeline.
    pub(crate) fn of_micro_batch(
        &self,
        number: u64,
        read: ReadBlock<'_>,
    ) -> Result<Vec<MarkBlock>, ReportError> {
        let mut found = Vec::new();
        collect_stages(&self.levels, (self.levels.len() - 1, 0), number, read, &mut found)?;
        Ok(found)
    }

    /// `count` marks from the one at `first` on, as one block; `None` after the last mark.
    pub(crate) fn block(
        &self,
        first: u64,
        count: u64,
        read: ReadBlock<'_>,
    ) -> Result<Option<MarkBlock>, ReportError> {
        let wanted = first..first.saturating_add(count.max(1));
        let from = self.base().partition_point(|block| block.first + block.count <= first);
        let mut found = None;
        add_marks(self.base().get(from..).unwrap_or_default(), &wanted, read, &mut found)?;
        Ok(found)
    }
}

/// Adds the marks at the wanted positions of a row that are among `blocks`.
fn add_marks(
    blocks: &[MarkBlock],
    wanted: &Range<u64>,
    read: ReadBlock<'_>,
    found: &mut Option<MarkBlock>,
) -> Result<(), ReportError> {
    for block in blocks.iter().take_while(|block| block.first < wanted.end) {
        let end = block.first + block.count;
        if wanted.start <= block.first && end <= wanted.end {
            match found {
                Some(all) => all.add(block),
                None => *found = Some(*block),
            }
        } else if block.count > 1 && wanted.start < end {
            add_marks(&read(block)?, wanted, read, found)?;
        }
    }
    Ok(())
}

/// Adds the stages of a micro-batch within the block at an index of a level.
fn collect_stages(
    levels: &[Vec<MarkBlock>],
    (level, index): (usize, usize),
    number: u64,
    read: ReadBlock<'_>,
    found: &mut Vec<MarkBlock>,
) -> Result<(), ReportError> {
    let block = levels.get(level).and_then(|blocks| blocks.get(index));
    let Some(block) = block.filter(|block| block.may_hold(number)) else { return Ok(()) };
    if block.count == 1 {
        found.push(*block);
    } else if let Some(below) = level.checked_sub(1) {
        collect_stages(levels, (below, index * 2), number, read, found)?;
        collect_stages(levels, (below, index * 2 + 1), number, read, found)?;
    } else {
        let smaller = pyramid_of(read(block)?);
        collect_stages(&smaller, (smaller.len() - 1, 0), number, read, found)?;
    }
    Ok(())
}

/// Builds the levels above a base, up to a single block.
fn pyramid_of(base: Vec<MarkBlock>) -> Vec<Vec<MarkBlock>> {
    let mut levels = vec![base];
    while let Some(level) = levels.last().filter(|level| level.len() > 1) {
        let above = level.chunks(2).filter_map(MarkBlock::joined).collect();
        levels.push(above);
    }
    levels
}

struct BlockPlacement<'a> {
    window: CycleRange,
    cycles_per_pixel: f64,
    /// Least width in pixels of marks that are shown individually.
    least: f64,
    read: ReadBlock<'a>,
    shown: Vec<MarkBlock>,
}

impl BlockPlacement<'_> {
    /// Shows a block of a level, or the blocks it consists of.
    fn place(
        &mut self,
        levels: &[Vec<MarkBlock>],
        level: usize,
        index: usize,
    ) -> Result<(), ReportError> {
        let Some(block) = levels.get(level).and_then(|blocks| blocks.get(index)) else {
            return Ok(());
        };
        // Marks without cycles are included.
        if block.range.start >= self.window.end || block.range.end < self.window.start {
            return Ok(());
        }
        if self.is_shown(block) {
            self.shown.push(*block);
        } else if let Some(below) = level.checked_sub(1) {
            self.place(levels, below, index * 2)?;
            self.place(levels, below, index * 2 + 1)?;
        } else {
            let levels = pyramid_of((self.read)(block)?);
            self.place(&levels, levels.len() - 1, 0)?;
        }
        Ok(())
    }

    /// True if a block is shown as a whole: a single mark, or marks that are too narrow to show
    /// individually.
    fn is_shown(&self, block: &MarkBlock) -> bool {
        let pixels = |cycles: Cycles| cycles.as_f64() / self.cycles_per_pixel;
        let mean = pixels(block.passes.total()) / block.count.max(1) as f64;
        block.count == 1 || (mean < self.least && pixels(block.range.length()) < WIDE_BLOCK)
    }
}

/// Builds a row from marks in their order.
pub(crate) struct MarkRowBuilder {
    id: MarkRowId,
    base: Vec<MarkBlock>,
    per_block: u64,
    /// The largest number of blocks of the base.
    most: usize,
    marks: u64,
}

impl MarkRowBuilder {
    /// Creates an empty row with a base of at most `most` blocks.
    pub(crate) fn new(id: MarkRowId, most: usize) -> Self {
        Self { id, base: Vec::new(), per_block: 1, most: most.max(2), marks: 0 }
    }

    /// Adds the next mark and returns its position in the row.
    pub(crate) fn push(&mut self, mark: &TraceMark, label: u32) -> u64 {
        let place = self.marks;
        let next = MarkBlock::single(mark, place, label);
        self.marks += 1;
        match self.base.last_mut().filter(|block| block.count < self.per_block) {
            Some(block) => block.add(&next),
            None => self.base.push(next),
        }
        if self.base.len() > self.most {
            self.base = self.base.chunks(2).filter_map(MarkBlock::joined).collect();
            self.per_block *= 2;
        }
        place
    }

    pub(crate) fn finish(self) -> MarkRow {
        MarkRow::new(self.id, self.base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_report::MarkKind;
    use tilescope_report::units::{IpuId, StepId};
    use tilescope_test_tiers::cases;

    fn mark(index: u64, cycles: CycleRange) -> TraceMark {
        TraceMark {
            kind: MarkKind::Slot,
            label: format!("slot {index}"),
            ipu: None,
            pass: None,
            index,
            steps: StepId(0)..StepId(0),
            cycles,
        }
    }

    /// Marks with given lengths and gaps, and their row with a base of `most` blocks.
    fn row(lengths: &[(u64, u64)], most: usize) -> (Vec<MarkBlock>, MarkRow) {
        let mut builder = MarkRowBuilder::new(MarkRowId::Common(MarkKind::Slot), most);
        let (mut at, mut marks) = (0, Vec::new());
        for (index, (gap, length)) in (0..).zip(lengths) {
            let range = CycleRange::new(Cycles(at + gap), Cycles(at + gap + length));
            at = range.end.0;
            marks.push(MarkBlock::single(&mark(index, range), index, 0));
            builder.push(&mark(index, range), 0);
        }
        (marks, builder.finish())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn the_stages_of_a_micro_batch_are_found_at_any_position(
            numbers in prop::collection::vec(0..40u64, 1..300),
            most in 2..200usize,
            wanted in 0..45u64,
        ) {
            let mut builder = MarkRowBuilder::new(MarkRowId::Ipu(IpuId(0).into()), most);
            let mut marks = Vec::new();
            for (place, number) in (0..).zip(&numbers) {
                let cycles = CycleRange::new(Cycles(place * 10), Cycles(place * 10 + 8));
                // Every fifth mark is an update, which has the number of an iteration.
                let kind = if place % 5 == 4 { MarkKind::Update } else { MarkKind::Stage };
                let mark = TraceMark { kind, ..mark(*number, cycles) };
                marks.push(MarkBlock::single(&mark, place, 0));
                builder.push(&mark, 0);
            }
            let read = |block: &MarkBlock| -> Result<Vec<MarkBlock>, ReportError> {
                Ok(marks[block.first as usize..(block.first + block.count) as usize].to_vec())
            };
            let found = builder.finish().of_micro_batch(wanted, &read).unwrap();
            let own = marks.iter().filter(|mark| mark.micro_batch() == Some(wanted)).copied();
            prop_assert_eq!(found, own.collect::<Vec<_>>());
        }

        #[test]
        fn every_mark_is_shown_once_and_no_more_than_fits(
            lengths in prop::collection::vec((0..50u64, 0..2_000u64), 1..400),
            most in 2..500usize,
            scale in 0.5..5_000.0f64,
        ) {
            let (marks, row) = row(&lengths, most);
            let read = |block: &MarkBlock| -> Result<Vec<MarkBlock>, ReportError> {
                Ok(marks[block.first as usize..(block.first + block.count) as usize].to_vec())
            };
            let all = row.whole().unwrap().range;
            let end = CycleRange::new(all.start, all.end + Cycles(1));
            let shown = row.shown(end, scale, &read).unwrap();
            let mut place = 0;
            for block in &shown {
                prop_assert_eq!(block.first, place, "none is left out and none is shown twice");
                place += block.count;
                let own = &marks[block.first as usize..place as usize];
                let sum: Cycles = own.iter().map(|mark| mark.range.length()).sum();
                prop_assert_eq!(block.passes.total(), sum);
                prop_assert_eq!(Some(block.longest), own.iter().map(|mark| mark.longest).max());
                let again = row.block(block.first, block.count, &read).unwrap();
                prop_assert_eq!(again.map(|again| again.range), Some(block.range));
            }
            prop_assert_eq!(place as usize, marks.len());
            // Blocks of a level do not overlap: blocks that are split are wide, or have wide marks.
            let pixels = all.length().as_f64() / scale;
            let levels = (marks.len() as f64).log2().ceil() + 1.0;
            let fits = 2.0 + 2.0 * levels * (pixels / LEAST_MARK + pixels / WIDE_BLOCK + 1.0);
            prop_assert!((shown.len() as f64) <= fits, "{} blocks on {pixels} pixels", shown.len());
        }
    }

    #[test]
    fn narrow_marks_are_counted_and_wide_ones_are_single() {
        let (marks, row) = row(&[(0, 10); 1_024], 4_096);
        let read = |_: &MarkBlock| Ok(marks.clone());
        let all = row.whole().unwrap().range;
        let counts = |scale| -> Vec<u64> {
            row.shown(all, scale, &read).unwrap().iter().map(|block| block.count).collect()
        };
        assert_eq!(counts(10.0), [128; 8], "a pixel each");
        assert_eq!(counts(1_000.0), [1_024], "all of them in ten pixels");
        assert_eq!(counts(1.0), [1; 1_024], "ten pixels each");
        let block = row.block(1_024, 1, &read).unwrap();
        assert_eq!(block, None, "behind the last one");
    }
}
