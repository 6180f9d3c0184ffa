//! All marks of a report in rows, read once.

use super::mark_blocks::{MarkBlock, MarkRow, MarkRowBuilder, MarkRowId};
use super::repeated_marks::{RepeatedMarkFinder, RepeatedMarks};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::iter::Peekable;
use tilescope_report::units::{CycleRange, Cycles, IpuId, ReplicaClassId, ReplicaIpu, grouped};
use tilescope_report::{MarkFilter, MarkKind, Report, ReportError, TraceMark};

/// Kinds of marks that concern all IPUs, in the order of their rows.
pub const COMMON_MARKS: [MarkKind; 6] = [
    MarkKind::Run,
    MarkKind::Iteration,
    MarkKind::Phase,
    MarkKind::Slot,
    MarkKind::Loader,
    MarkKind::Callback,
];

/// Marks that are read at once.
const PAGE: usize = 1 << 16;
/// Marks of a kind that are read at once to be shown.
const SHOWN_PAGE: usize = 1 << 12;
/// Blocks at the base of all rows together: bounds what long runs keep in memory.
const MOST_BLOCKS: usize = 1 << 18;
/// Blocks at the base of a row that are never too many.
const LEAST_BLOCKS: usize = 1 << 10;
/// Labels that are kept; marks with others are named by their kind and number.
const MOST_LABELS: usize = 1 << 16;
/// The label of marks beyond those.
const NO_LABEL: u32 = u32::MAX;

/// Rows of marks.
pub struct MarkRows {
    rows: BTreeMap<MarkRowId, MarkRow>,
    labels: Vec<MarkLabel>,
    label_ids: HashMap<MarkLabel, u32>,
    /// What repeats, the widest first.
    pub repeated: Vec<RepeatedMarks>,
}

/// A label, which may end with the number of its mark.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MarkLabel {
    text: String,
    numbered: bool,
}

impl MarkRows {
    /// Reads the marks of a trace of some IPUs, of all replicas that differ; nothing if there are more
    /// than `most` of them.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report, ipus: &[IpuId], most: u64) -> Result<Option<Self>, ReportError> {
        let mut all = 0;
        for kind in MarkKind::ALL {
            all += report.mark_count(kind)?;
        }
        if all > most {
            return Ok(None);
        }
        MarkRowsReader::new(ipus, most, None).read(report, ipus)
    }

    /// The same of those marks that begin in a part of the run.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read_part(
        report: &Report,
        ipus: &[IpuId],
        part: CycleRange,
    ) -> Result<Self, ReportError> {
        let read = MarkRowsReader::new(ipus, u64::MAX, Some(part)).read(report, ipus)?;
        // No number of them is too large.
        Ok(read.unwrap_or_else(|| MarkRowsReader::new(ipus, 0, None).finish()))
    }

    /// A row; none where there are no such marks.
    pub fn row(&self, id: MarkRowId) -> Option<&MarkRow> {
        self.rows.get(&id)
    }

    /// What is shown of a row in a window where a pixel has so many cycles.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn shown(
        &self,
        report: &Report,
        id: MarkRowId,
        window: CycleRange,
        cycles_per_pixel: f64,
    ) -> Result<Vec<MarkBlock>, ReportError> {
        let read = self.page_reader(report, id);
        self.row(id).map_or(Ok(Vec::new()), |row| row.shown(window, cycles_per_pixel, &read))
    }

    /// The stages of a micro-batch in a row, from left to right.
    pub(crate) fn of_micro_batch(
        &self,
        report: &Report,
        id: MarkRowId,
        number: u64,
    ) -> Result<Vec<MarkBlock>, ReportError> {
        let read = self.page_reader(report, id);
        self.row(id).map_or(Ok(Vec::new()), |row| row.of_micro_batch(number, &read))
    }

    /// The highest number of a micro-batch that a stage works on.
    pub fn last_micro_batch(&self) -> Option<u64> {
        self.rows.values().filter_map(|row| row.whole()?.last_micro_batch()).max()
    }

    /// The rows there are.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MarkRowId> {
        self.rows.keys().copied()
    }

    /// Reads single marks of blocks of a row, as many at once as lie in one compressed piece of the
    /// file: the next block is mostly among them.
    fn page_reader(
        &self,
        report: &Report,
        id: MarkRowId,
    ) -> impl Fn(&MarkBlock) -> Result<Vec<MarkBlock>, ReportError> {
        let page = RefCell::new(MarkPage::default());
        move |block: &MarkBlock| {
            let mut page = page.borrow_mut();
            if page.marks_of(block).is_none() {
                *page = MarkPage::read(report, id, block.range.start)?;
            }
            match page.marks_of(block) {
                Some(marks) => Ok(self.singles(block, marks)),
                // More marks than a page.
                None => Ok(self.singles(block, &Self::marks(report, id, block)?)),
            }
        }
    }

    /// `count` marks of a row from the one at `first` on, as one block; none behind the last mark.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn block(
        &self,
        report: &Report,
        (id, first, count): (MarkRowId, u64, u64),
    ) -> Result<Option<MarkBlock>, ReportError> {
        let read = |block: &MarkBlock| Ok(self.singles(block, &Self::marks(report, id, block)?));
        self.row(id).map_or(Ok(None), |row| row.block(first, count, &read))
    }

    /// Words for a mark or for a block of them: `B1 forward`, `16 iterations`.
    pub fn words(&self, id: MarkRowId, block: &MarkBlock) -> String {
        if block.count > 1 {
            return counted(id, block);
        }
        match self.labels.get(block.label as usize) {
            Some(MarkLabel { text, numbered: true }) => format!("{text}{}", block.numbers.0),
            Some(MarkLabel { text, .. }) => text.clone(),
            None => format!("{} {}", singular(kind_of(id, block)), block.numbers.0),
        }
    }

    /// The marks of a block as the file has them, by start.
    pub(crate) fn marks(
        report: &Report,
        id: MarkRowId,
        block: &MarkBlock,
    ) -> Result<Vec<TraceMark>, ReportError> {
        // A mark without cycles shares none with a window that begins with it.
        let from = block.range.start.saturating_sub(Cycles(1));
        let window = CycleRange::new(from, block.range.end.saturating_add(Cycles(1)));
        let mut marks = Vec::new();
        for kind in id.kinds() {
            let filter = MarkFilter {
                kind: Some(*kind),
                ipu: id.ipu().map(|at| at.ipu),
                window: Some(window),
                limit: usize::MAX,
            };
            marks.extend(report.marks_of_class(id.class(), &filter)?);
        }
        marks.retain(|mark| mark.cycles.start >= block.range.start);
        // Stable: of marks that start together, the first kind is first, as in the row.
        marks.sort_by_key(|mark| mark.cycles.start);
        marks.truncate(usize::try_from(block.count).unwrap_or(usize::MAX));
        Ok(marks)
    }

    /// The marks of a block, one by one.
    fn singles(&self, block: &MarkBlock, marks: &[TraceMark]) -> Vec<MarkBlock> {
        let single = |(place, mark): (u64, &TraceMark)| {
            let label = self.label_ids.get(&MarkLabel::of(mark)).copied().unwrap_or(NO_LABEL);
            MarkBlock::single(mark, place, label)
        };
        (block.first..).zip(marks).map(single).collect()
    }
}

/// Marks of a row that follow each other, by start.
#[derive(Default)]
struct MarkPage {
    marks: Vec<TraceMark>,
    /// Cycles in which none that starts there is missing.
    starts: CycleRange,
}

impl MarkPage {
    /// The marks from a cycle on, of each kind of the row as many as a page holds.
    fn read(report: &Report, id: MarkRowId, from: Cycles) -> Result<Self, ReportError> {
        let starts = CycleRange::new(from, Cycles::MAX);
        let mut page = Self { marks: Vec::new(), starts };
        for kind in id.kinds() {
            let filter = MarkFilter {
                kind: Some(*kind),
                ipu: id.ipu().map(|at| at.ipu),
                // A mark without cycles shares none with a window that begins with it.
                window: Some(CycleRange::new(from.saturating_sub(Cycles(1)), Cycles::MAX)),
                limit: SHOWN_PAGE,
            };
            let marks = report.marks_of_class(id.class(), &filter)?;
            if let Some(last) = marks.last().filter(|_| marks.len() == SHOWN_PAGE) {
                page.starts.end = page.starts.end.min(last.cycles.start);
            }
            page.marks.extend(marks);
        }
        // Stable: of marks that start together, the first kind is first, as in the row.
        page.marks.sort_by_key(|mark| mark.cycles.start);
        Ok(page)
    }

    /// The marks of a block, if all of them are here.
    fn marks_of(&self, block: &MarkBlock) -> Option<&[TraceMark]> {
        let from = self.marks.partition_point(|mark| mark.cycles.start < block.range.start);
        let count = usize::try_from(block.count).ok()?;
        let marks = self.marks.get(from..from.checked_add(count)?)?;
        let last = marks.last()?.cycles.start;
        (self.starts.start <= block.range.start && last < self.starts.end).then_some(marks)
    }
}

impl MarkLabel {
    fn of(mark: &TraceMark) -> Self {
        let number = mark.index.to_string();
        match mark.label.strip_suffix(&number) {
            // `B1` of stage 1 is a name: numbers of marks stand behind a blank or a sign.
            Some(text) if !text.ends_with(|last: char| last.is_alphanumeric()) => {
                Self { text: text.to_owned(), numbered: true }
            }
            _ => Self { text: mark.label.clone(), numbered: false },
        }
    }
}

/// The kind of a single mark.
pub(crate) fn kind_of(id: MarkRowId, block: &MarkBlock) -> MarkKind {
    match id {
        MarkRowId::Common(kind) => kind,
        MarkRowId::Ipu(_) if block.updates > 0 => MarkKind::Update,
        MarkRowId::Ipu(_) => MarkKind::Stage,
    }
}

fn counted(id: MarkRowId, block: &MarkBlock) -> String {
    let stages = block.count - block.updates;
    let several = |count: u64, kind: MarkKind| {
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {}{plural}", grouped(count), singular(kind))
    };
    match id {
        MarkRowId::Common(kind) => several(block.count, kind),
        MarkRowId::Ipu(_) if block.updates == 0 => several(stages, MarkKind::Stage),
        MarkRowId::Ipu(_) if stages == 0 => several(block.updates, MarkKind::Update),
        MarkRowId::Ipu(_) => format!(
            "{}, {}",
            several(stages, MarkKind::Stage),
            several(block.updates, MarkKind::Update)
        ),
    }
}

/// A mark of a kind in words.
pub fn singular(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Loader => "loader call",
        _ => kind.name(),
    }
}

struct MarkRowsReader {
    builders: BTreeMap<MarkRowId, MarkRowBuilder>,
    /// Blocks that a row may have.
    blocks: usize,
    labels: HashMap<MarkLabel, u32>,
    repeated: Vec<RepeatedMarks>,
    /// Phases in which a pipeline is full, by start.
    full: Option<Vec<CycleRange>>,
    left: u64,
    /// The part of the run that marks begin in; all of it, if there is none.
    part: Option<CycleRange>,
}

impl MarkRowsReader {
    fn new(ipus: &[IpuId], most: u64, part: Option<CycleRange>) -> Self {
        let rows = ipus.len() + COMMON_MARKS.len();
        Self {
            builders: BTreeMap::new(),
            blocks: (MOST_BLOCKS / rows).max(LEAST_BLOCKS),
            labels: HashMap::new(),
            repeated: Vec::new(),
            full: None,
            left: most,
            part,
        }
    }

    /// Reads all of them; nothing if they are too many.
    fn read(mut self, report: &Report, ipus: &[IpuId]) -> Result<Option<MarkRows>, ReportError> {
        for kind in COMMON_MARKS {
            if !self.common(report, kind)? {
                return Ok(None);
            }
        }
        let classes = report.replica_classes()?.classes.len().max(1);
        for class in (0..classes).map(ReplicaClassId::from_index) {
            if !self.of_ipus(report, class, ipus)? {
                return Ok(None);
            }
        }
        Ok(Some(self.finish()))
    }

    /// Counts a mark; whether there may be one more.
    fn count(&mut self) -> bool {
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }

    /// Reads the marks of a kind; whether they were not too many.
    fn common(&mut self, report: &Report, kind: MarkKind) -> Result<bool, ReportError> {
        let mut repeated = match kind {
            MarkKind::Iteration => Some(RepeatedMarkFinder::new(kind, None)),
            MarkKind::Slot => Some(RepeatedMarkFinder::new(kind, self.full.take())),
            _ => None,
        };
        for mark in MarkPages::new(report, (ReplicaClassId(0), kind), self.part) {
            let mark = mark?;
            if !self.count() {
                return Ok(false);
            }
            let place = self.push(MarkRowId::Common(kind), &mark);
            if kind == MarkKind::Phase {
                let full = self.full.get_or_insert_default();
                full.extend((!crate::label_conventions::is_ramp(&mark)).then_some(mark.cycles));
            }
            if let Some(repeated) = &mut repeated {
                repeated.push(&mark, place);
            }
        }
        self.repeated.extend(repeated.and_then(RepeatedMarkFinder::finish));
        Ok(true)
    }

    /// Reads stages and updates of some replicas; whether they were not too many.
    fn of_ipus(
        &mut self,
        report: &Report,
        class: ReplicaClassId,
        ipus: &[IpuId],
    ) -> Result<bool, ReportError> {
        let read = |kind| MarkPages::new(report, (class, kind), self.part).peekable();
        let mut stages = read(MarkKind::Stage);
        let mut updates = read(MarkKind::Update);
        while let Some(mark) = earlier(&mut stages, &mut updates) {
            let mark = mark?;
            if !self.count() {
                return Ok(false);
            }
            // A stage of no IPU in particular is one of all of them.
            let own = mark.ipu.as_ref().map_or(ipus, std::slice::from_ref);
            for ipu in own {
                self.push(MarkRowId::Ipu(ReplicaIpu { class, ipu: *ipu }), &mark);
            }
        }
        Ok(true)
    }

    fn push(&mut self, id: MarkRowId, mark: &TraceMark) -> u64 {
        let label = MarkLabel::of(mark);
        let next = self.labels.len();
        let label = match self.labels.get(&label) {
            Some(known) => *known,
            None if next < MOST_LABELS => *self.labels.entry(label).or_insert(next as u32),
            None => NO_LABEL,
        };
        let most = self.blocks;
        self.builders.entry(id).or_insert_with(|| MarkRowBuilder::new(id, most)).push(mark, label)
    }

    fn finish(self) -> MarkRows {
        let mut labels: Vec<(u32, MarkLabel)> =
            self.labels.iter().map(|(label, id)| (*id, label.clone())).collect();
        labels.sort_unstable_by_key(|(id, _)| *id);
        MarkRows {
            rows: self.builders.into_iter().map(|(id, builder)| (id, builder.finish())).collect(),
            labels: labels.into_iter().map(|(_, label)| label).collect(),
            label_ids: self.labels,
            repeated: self.repeated,
        }
    }
}

/// The earlier of the next marks of two kinds; of the first kind, if both start together.
fn earlier(
    first: &mut Peekable<MarkPages<'_>>,
    second: &mut Peekable<MarkPages<'_>>,
) -> Option<Result<TraceMark, ReportError>> {
    let start = |mark: Option<&Result<TraceMark, ReportError>>| match mark {
        Some(Ok(mark)) => mark.cycles.start,
        // Errors are told at once.
        Some(Err(_)) => Cycles::ZERO,
        None => Cycles::MAX,
    };
    let second_first = start(second.peek()) < start(first.peek());
    if second_first { second.next() } else { first.next().or_else(|| second.next()) }
}

/// All marks of a kind of some replicas by start, read a page at a time.
struct MarkPages<'a> {
    report: &'a Report,
    class: ReplicaClassId,
    kind: MarkKind,
    page: std::vec::IntoIter<TraceMark>,
    /// Where the next page begins.
    from: Option<Cycles>,
    /// None that is wanted begins behind this.
    until: Cycles,
    limit: usize,
    more: bool,
}

impl<'a> MarkPages<'a> {
    fn new(
        report: &'a Report,
        (class, kind): (ReplicaClassId, MarkKind),
        part: Option<CycleRange>,
    ) -> Self {
        Self {
            report,
            class,
            kind,
            page: Vec::new().into_iter(),
            from: part.map(|part| part.start),
            until: part.map_or(Cycles::MAX, |part| part.end),
            limit: PAGE,
            more: true,
        }
    }

    fn next_page(&mut self) -> Result<(), ReportError> {
        // A mark without cycles shares none with a window that begins with it.
        let window =
            self.from.map(|from| CycleRange::new(from.saturating_sub(Cycles(1)), self.until));
        let filter = MarkFilter { kind: Some(self.kind), ipu: None, window, limit: self.limit };
        let mut marks = self.report.marks_of_class(self.class, &filter)?;
        self.more = marks.len() >= self.limit;
        // Marks that reach into the window were in the page before.
        marks.retain(|mark| self.from.is_none_or(|from| mark.cycles.start >= from));
        if let Some(last) = marks.last().filter(|_| self.more).map(|mark| mark.cycles.start) {
            // Those that start with the last one may not all be in this page.
            marks.retain(|mark| mark.cycles.start < last);
            self.from = Some(last);
        }
        if marks.is_empty() && self.more {
            // More than a page start together, or reach over where it begins.
            self.limit = self.limit.saturating_mul(2);
        }
        self.page = marks.into_iter();
        Ok(())
    }
}

impl Iterator for MarkPages<'_> {
    type Item = Result<TraceMark, ReportError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(mark) = self.page.next() {
                return Some(Ok(mark));
            }
            if !self.more {
                return None;
            }
            if let Err(error) = self.next_page() {
                self.more = false;
                return Some(Err(error));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;

    #[test]
    fn a_page_has_the_marks_of_each_block_or_says_that_it_has_not() {
        let mut builder = ReportBuilder::new(1, 4);
        let work = builder.compute("a", 10);
        let count = SHOWN_PAGE as u64 + 500;
        for at in 0..count {
            // Every other one has no cycles, and starts with the next one.
            builder.run(work, at / 2 * 10..at.div_ceil(2) * 10);
            builder.mark(MarkKind::Slot, "slot", at..at + 1);
        }
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let id = MarkRowId::Common(MarkKind::Slot);
        let filter =
            MarkFilter { kind: Some(MarkKind::Slot), ipu: None, window: None, limit: usize::MAX };
        let marks = report.marks(&filter).unwrap();
        assert_eq!(marks.len() as u64, count);
        let blocks: Vec<MarkBlock> = (0..)
            .step_by(8)
            .zip(marks.chunks(8))
            .map(|(first, marks)| {
                let single = |(at, mark)| MarkBlock::single(mark, at, 0);
                let mut singles = (first..).zip(marks).map(single);
                let mut block = singles.next().unwrap();
                singles.for_each(|single| block.add(&single));
                block
            })
            .collect();
        for first in [0, 3, blocks.len() - 20] {
            let page = MarkPage::read(&report, id, blocks[first].range.start).unwrap();
            let mut missing = 0;
            for block in &blocks[first..] {
                let Some(found) = page.marks_of(block) else {
                    missing += 1;
                    continue;
                };
                assert_eq!(found, MarkRows::marks(&report, id, block).unwrap());
            }
            assert!(missing * 8 <= count as usize - SHOWN_PAGE + 16, "{first}: {missing}");
        }
    }
}
