//! All marks of a report in rows: short rows are read once, long rows only in the visible parts.

use super::mark_blocks::{MarkRow, MarkRowBuilder};
use super::mark_pages::{MarkPages, earlier};
use super::repeated_marks::{MarkRowParts, RepeatedMarkFinder, RepeatedMarks};
use super::{MarkBlock, MarkRowId};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tilescope_report::units::{CycleRange, Cycles, IpuId, ReplicaClassId, ReplicaIpu, grouped};
use tilescope_report::{
    LongMarkRow, MarkFilter, MarkKind, PhaseRanges, Report, ReportError, TraceMark, is_ramp,
};

/// Kinds of marks that apply to all IPUs, in the order of their rows.
pub const COMMON_MARKS: [MarkKind; 6] = [
    MarkKind::Run,
    MarkKind::Iteration,
    MarkKind::Phase,
    MarkKind::Slot,
    MarkKind::Loader,
    MarkKind::Callback,
];

/// The number of marks of a kind per read for display.
const SHOWN_PAGE: usize = 1 << 12;
/// The largest number of blocks at the base of all rows together, to limit the memory for long
/// runs.
const MOST_BLOCKS: usize = 1 << 18;
/// The number of blocks at the base that every row may have.
const LEAST_BLOCKS: usize = 1 << 10;
/// The largest number of stored labels; other marks are named by their kind and number.
const MOST_LABELS: usize = 1 << 16;
/// The label of marks beyond that limit.
const NO_LABEL: u32 = u32::MAX;

/// All rows of marks.
pub struct MarkRows {
    rows: BTreeMap<MarkRowId, MarkRow>,
    /// Rows that are stored as blocks in the report.
    long: Arc<Vec<LongMarkRow>>,
    labels: Mutex<MarkLabels>,
    /// Repeated marks, the widest first.
    pub repeated: Vec<RepeatedMarks>,
}

/// A label, which may end with the number of its mark.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct MarkLabel {
    text: String,
    numbered: bool,
}

/// Labels with the ids that blocks refer to.
#[derive(Default)]
struct MarkLabels {
    labels: Vec<MarkLabel>,
    ids: HashMap<MarkLabel, u32>,
}

impl MarkLabels {
    /// The id of the label of a mark.
    fn id(&mut self, mark: &TraceMark) -> u32 {
        let label = MarkLabel::of(mark);
        if let Some(known) = self.ids.get(&label) {
            return *known;
        }
        if self.labels.len() >= MOST_LABELS {
            return NO_LABEL;
        }
        let id = self.labels.len() as u32;
        self.labels.push(label.clone());
        self.ids.insert(label, id);
        id
    }
}

impl MarkRows {
    /// Reads the marks of a trace for some IPUs, for all classes of replicas; `None` if there are
    /// more than `most` of them.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report, ipus: &[IpuId], most: u64) -> Result<Option<Self>, ReportError> {
        let long = report.long_mark_rows()?;
        let mut all = 0u64;
        for kind in MarkKind::ALL {
            all += report.mark_count(kind)?;
        }
        let first_class = long.iter().filter(|row| row.id.class() == ReplicaClassId(0));
        let in_blocks: u64 = first_class.map(LongMarkRow::marks).sum();
        if all.saturating_sub(in_blocks) > most {
            return Ok(None);
        }
        MarkRowsReader::new(ipus, most, None, long).read(report, ipus)
    }

    /// The same for the marks that begin in a part of the run.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read_part(
        report: &Report,
        ipus: &[IpuId],
        part: CycleRange,
    ) -> Result<Self, ReportError> {
        let reader = || MarkRowsReader::new(ipus, u64::MAX, Some(part), Arc::default());
        // The limit on the number of marks does not apply.
        Ok(reader().read(report, ipus)?.unwrap_or_else(|| reader().finish()))
    }

    /// A row; `None` if there are no such marks.
    pub fn row(&self, id: MarkRowId) -> Option<&MarkRow> {
        self.rows.get(&id)
    }

    /// The visible items of a row in a window at a given zoom.
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
        let read = self.page_reader(report, id, window.end);
        self.row(id).map_or(Ok(Vec::new()), |row| row.shown(window, cycles_per_pixel, &read))
    }

    /// Finds repeated marks of a long row; of slots, only those that end in `full` phases count.
    fn find_repeated(
        &mut self,
        report: &Report,
        kind: MarkKind,
        full: Option<&PhaseRanges>,
    ) -> Result<(), ReportError> {
        let id = MarkRowId::Common(kind);
        if let Some(row) = self.long.iter().find(|row| row.id == id) {
            let read = self.page_reader(report, id, Cycles::MAX);
            let parts = match (&row.full_slots, full.filter(|_| kind == MarkKind::Slot)) {
                (Some(slots), _) => MarkRowParts::of_full_slots(&row.blocks, slots),
                (None, Some(full)) => MarkRowParts::within(&row.blocks, full, &read)?,
                (None, None) => MarkRowParts::all(&row.blocks),
            };
            let found = RepeatedMarks::in_parts(kind, &parts, report, &read)?;
            drop(read);
            self.repeated.extend(found);
        }
        Ok(())
    }

    /// The stages of a micro-batch in a row, from left to right.
    pub(crate) fn of_micro_batch(
        &self,
        report: &Report,
        id: MarkRowId,
        number: u64,
    ) -> Result<Vec<MarkBlock>, ReportError> {
        let read = self.page_reader(report, id, Cycles::MAX);
        self.row(id).map_or(Ok(Vec::new()), |row| row.of_micro_batch(number, &read))
    }

    /// The highest number of a micro-batch of any stage.
    pub fn last_micro_batch(&self) -> Option<u64> {
        self.rows.values().filter_map(|row| row.whole()?.last_micro_batch()).max()
    }

    /// The ids of existing rows.
    pub(crate) fn ids(&self) -> impl Iterator<Item = MarkRowId> {
        self.rows.keys().copied()
    }

    /// Reads the parts of blocks of a row: smaller blocks, or single marks, for a page up to `until`
    /// at a time, since the next block is usually in the same compressed chunk of the file.
    fn page_reader(
        &self,
        report: &Report,
        id: MarkRowId,
        until: Cycles,
    ) -> impl Fn(&MarkBlock) -> Result<Vec<MarkBlock>, ReportError> {
        let page = RefCell::new(MarkPage::default());
        let long = self.long.iter().find(|row| row.id == id);
        move |block: &MarkBlock| {
            if let Some(row) = long
                && let Ok(place) = row.blocks.binary_search_by_key(&block.first, |of| of.first)
                && row.blocks.get(place) == Some(block)
            {
                let finer = report.finer_mark_blocks(row, place)?;
                // A block of one mark is a mark with a label; rows may end with such blocks.
                if finer.len() > 1 && finer.iter().all(|block| block.count > 1) {
                    return Ok(finer);
                }
            }
            let mut page = page.borrow_mut();
            if page.marks_of(block).is_none() {
                let end = until.max(block.range.end).saturating_add(Cycles(1));
                *page = MarkPage::read(report, id, CycleRange::new(block.range.start, end))?;
            }
            match page.marks_of(block) {
                Some(marks) => Ok(self.singles(block, marks)),
                // The block has more marks than a page.
                None => Ok(self.singles(block, &Self::marks(report, id, block)?)),
            }
        }
    }

    /// `count` marks of a row from the one at `first` on, as one block; `None` after the last mark.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn block(
        &self,
        report: &Report,
        (id, first, count): (MarkRowId, u64, u64),
    ) -> Result<Option<MarkBlock>, ReportError> {
        let read = self.page_reader(report, id, Cycles::MAX);
        self.row(id).map_or(Ok(None), |row| row.block(first, count, &read))
    }

    /// The title of a mark or of a block: `B1 forward`, `16 iterations`.
    pub fn words(&self, id: MarkRowId, block: &MarkBlock) -> String {
        if block.count > 1 {
            return counted(id, block);
        }
        match self.labels().labels.get(block.label as usize) {
            Some(MarkLabel { text, numbered: true }) => format!("{text}{}", block.numbers.0),
            Some(MarkLabel { text, .. }) => text.clone(),
            None => format!("{} {}", singular(kind_of(id, block)), block.numbers.0),
        }
    }

    /// The marks of a block as stored in the file, by start.
    pub(crate) fn marks(
        report: &Report,
        id: MarkRowId,
        block: &MarkBlock,
    ) -> Result<Vec<TraceMark>, ReportError> {
        // A window excludes a mark without cycles at its start.
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
        // Stable: if marks start together, those of the first kind come first, as in the row.
        marks.sort_by_key(|mark| mark.cycles.start);
        marks.truncate(usize::try_from(block.count).unwrap_or(usize::MAX));
        Ok(marks)
    }

    /// The marks of a block, one by one.
    fn singles(&self, block: &MarkBlock, marks: &[TraceMark]) -> Vec<MarkBlock> {
        let mut labels = self.labels();
        let single = |(place, mark)| MarkBlock::single(mark, place, labels.id(mark));
        (block.first..).zip(marks).map(single).collect()
    }

    fn labels(&self) -> MutexGuard<'_, MarkLabels> {
        // Labels are only added, so they are complete even after a panic.
        self.labels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Consecutive marks of a row, by start.
#[derive(Default)]
struct MarkPage {
    marks: Vec<TraceMark>,
    /// Range of starts within which the page is complete.
    starts: CycleRange,
}

impl MarkPage {
    /// Reads the marks that start in a range, up to a page of each kind of the row.
    fn read(report: &Report, id: MarkRowId, starts: CycleRange) -> Result<Self, ReportError> {
        let mut page = Self { marks: Vec::new(), starts };
        for kind in id.kinds() {
            let filter = MarkFilter {
                kind: Some(*kind),
                ipu: id.ipu().map(|at| at.ipu),
                // A window excludes a mark without cycles at its start.
                window: Some(CycleRange::new(starts.start.saturating_sub(Cycles(1)), starts.end)),
                limit: SHOWN_PAGE,
            };
            let marks = report.marks_of_class(id.class(), &filter)?;
            if let Some(last) = marks.last().filter(|_| marks.len() == SHOWN_PAGE) {
                page.starts.end = page.starts.end.min(last.cycles.start);
            }
            page.marks.extend(marks);
        }
        // Stable: if marks start together, those of the first kind come first, as in the row.
        page.marks.sort_by_key(|mark| mark.cycles.start);
        Ok(page)
    }

    /// The marks of a block, if the page has all of them.
    fn marks_of(&self, block: &MarkBlock) -> Option<&[TraceMark]> {
        let from = self.marks.partition_point(|mark| mark.cycles.start < block.range.start);
        let count = usize::try_from(block.count).ok()?;
        let marks = self.marks.get(from..from.checked_add(count)?)?;
        let last = marks.last()?.cycles.start;
        if self.starts.start <= block.range.start && last < self.starts.end {
            Some(marks)
        } else {
            None
        }
    }
}

impl MarkLabel {
    fn of(mark: &TraceMark) -> Self {
        let number = mark.index.to_string();
        match mark.label.strip_suffix(&number) {
            // `B1` for stage 1 is a name: numbers of marks follow a space or a sign.
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
    // A mark of a stage is one of its passes.
    let passes =
        if stages == 1 { "1 pass".to_owned() } else { format!("{} passes", grouped(stages)) };
    match id {
        MarkRowId::Common(kind) => several(block.count, kind),
        MarkRowId::Ipu(_) if block.updates == 0 => passes,
        MarkRowId::Ipu(_) if stages == 0 => several(block.updates, MarkKind::Update),
        MarkRowId::Ipu(_) => format!("{passes}, {}", several(block.updates, MarkKind::Update)),
    }
}

/// The name of a kind in the singular.
pub fn singular(kind: MarkKind) -> &'static str {
    match kind {
        MarkKind::Run => "host call",
        MarkKind::Loader => "loader call",
        _ => kind.name(),
    }
}

struct MarkRowsReader {
    builders: BTreeMap<MarkRowId, MarkRowBuilder>,
    /// The number of blocks that a row may have.
    blocks: usize,
    labels: MarkLabels,
    /// Rows that are stored as blocks in the report, and are not read here.
    long: Arc<Vec<LongMarkRow>>,
    repeated: Vec<RepeatedMarks>,
    /// Phases in which a pipeline is full; `None` if there are none, or if they are not needed.
    full: Option<PhaseRanges>,
    left: u64,
    /// The part of the run in which marks begin; `None` for the whole run.
    part: Option<CycleRange>,
}

impl MarkRowsReader {
    fn new(
        ipus: &[IpuId],
        most: u64,
        part: Option<CycleRange>,
        long: Arc<Vec<LongMarkRow>>,
    ) -> Self {
        let rows = ipus.len() + COMMON_MARKS.len();
        Self {
            builders: BTreeMap::new(),
            blocks: (MOST_BLOCKS / rows).max(LEAST_BLOCKS),
            labels: MarkLabels::default(),
            long,
            repeated: Vec::new(),
            full: None,
            left: most,
            part,
        }
    }

    /// Reads all rows; `None` if there are too many marks.
    fn read(mut self, report: &Report, ipus: &[IpuId]) -> Result<Option<MarkRows>, ReportError> {
        for kind in COMMON_MARKS {
            if self.is_long(MarkRowId::Common(kind)) {
                if kind == MarkKind::Phase && !self.knows_full_slots() {
                    self.full = Some(report.full_phases(None)?);
                }
            } else if !self.common(report, kind)? {
                return Ok(None);
            }
        }
        let classes = report.replica_classes()?.classes.len().max(1);
        for class in (0..classes).map(ReplicaClassId::from_index) {
            if !self.of_class(report, class, ipus)? {
                return Ok(None);
            }
        }
        let full = self.full.take();
        let order = [MarkKind::Iteration, MarkKind::Slot];
        let mut rows = self.finish();
        for kind in order {
            rows.find_repeated(report, kind, full.as_ref())?;
        }
        rows.repeated.sort_by_key(|found| order.iter().position(|kind| *kind == found.kind));
        Ok(Some(rows))
    }

    fn is_long(&self, id: MarkRowId) -> bool {
        self.long.iter().any(|row| row.id == id)
    }

    /// True if the row of slots says in which of them the pipeline is full.
    fn knows_full_slots(&self) -> bool {
        self.long.iter().any(|row| row.full_slots.is_some())
    }

    /// Reads stages and updates of a class of replicas; returns false if there are too many.
    fn of_class(
        &mut self,
        report: &Report,
        class: ReplicaClassId,
        ipus: &[IpuId],
    ) -> Result<bool, ReportError> {
        let row_of = |ipu: &IpuId| MarkRowId::Ipu(ReplicaIpu { class, ipu: *ipu });
        if !ipus.iter().any(|ipu| self.is_long(row_of(ipu))) {
            return self.of_ipus(report, (class, None), ipus);
        }
        for ipu in ipus.iter().filter(|ipu| !self.is_long(row_of(ipu))).collect::<Vec<_>>() {
            if !self.of_ipus(report, (class, Some(*ipu)), &[*ipu])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Counts a mark; returns false if there are too many.
    fn count(&mut self) -> bool {
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }

    /// Reads the marks of a kind; returns false if there are too many.
    fn common(&mut self, report: &Report, kind: MarkKind) -> Result<bool, ReportError> {
        let mut repeated = match kind {
            MarkKind::Iteration => Some(RepeatedMarkFinder::new(kind, None)),
            MarkKind::Slot => Some(RepeatedMarkFinder::new(kind, self.full.clone())),
            _ => None,
        };
        for mark in MarkPages::new(report, (ReplicaClassId(0), kind, None), self.part) {
            let mark = mark?;
            if !self.count() {
                return Ok(false);
            }
            let place = self.push(MarkRowId::Common(kind), &mark);
            if kind == MarkKind::Phase {
                let full = self.full.get_or_insert_default();
                if !is_ramp(&mark.label) {
                    full.push(mark.cycles);
                }
            }
            if let Some(repeated) = &mut repeated {
                repeated.push(&mark, place);
            }
        }
        self.repeated.extend(repeated.and_then(RepeatedMarkFinder::finish));
        Ok(true)
    }

    /// Reads stages and updates of a class of replicas, of one IPU or of all; returns false if
    /// there are too many.
    fn of_ipus(
        &mut self,
        report: &Report,
        (class, alone): (ReplicaClassId, Option<IpuId>),
        ipus: &[IpuId],
    ) -> Result<bool, ReportError> {
        let read = |kind| MarkPages::new(report, (class, kind, alone), self.part).peekable();
        let mut stages = read(MarkKind::Stage);
        let mut updates = read(MarkKind::Update);
        while let Some(mark) = earlier(&mut stages, &mut updates) {
            let mark = mark?;
            if !self.count() {
                return Ok(false);
            }
            // A stage without an IPU belongs to all of them.
            let own = mark.ipu.as_ref().map_or(ipus, std::slice::from_ref);
            for ipu in own {
                self.push(MarkRowId::Ipu(ReplicaIpu { class, ipu: *ipu }), &mark);
            }
        }
        Ok(true)
    }

    fn push(&mut self, id: MarkRowId, mark: &TraceMark) -> u64 {
        let label = self.labels.id(mark);
        let most = self.blocks;
        self.builders.entry(id).or_insert_with(|| MarkRowBuilder::new(id, most)).push(mark, label)
    }

    fn finish(self) -> MarkRows {
        let read = self.builders.into_iter().map(|(id, builder)| (id, builder.finish()));
        let long = self.long.iter().map(|row| (row.id, MarkRow::new(row.id, row.blocks.clone())));
        MarkRows {
            rows: read.chain(long).collect(),
            long: self.long,
            labels: Mutex::new(self.labels),
            repeated: self.repeated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::{StepLayout, TrainingPass};

    /// A run of `slots` slots, with stages and updates on two IPUs, with repeated lengths and a
    /// single longer one.
    fn long_run(slots: u64, period: u64) -> ReportBuilder {
        let mut builder = ReportBuilder::new(2, 4);
        builder.layout = StepLayout::Columns;
        let work = builder.compute("a", 10);
        let mut at = 0;
        for slot in 0..slots {
            let length = if slot == slots / 3 { 977 } else { 10 + slot % 7 * 3 };
            builder.run(work, at..at + length);
            at += length + slot % 3;
            builder.mark(MarkKind::Slot, &format!("slot {slot}"), slot..slot + 1);
            // A pipeline fills, is full and drains in every `period` slots.
            for (label, first, end) in
                [("ramp-up", 0, 2), ("main", 2, period - 2), ("ramp-down", period - 2, period)]
            {
                if slot % period == end - 1 {
                    let base = slot / period * period;
                    builder.mark(MarkKind::Phase, label, base + first..base + end);
                }
            }
            let of_slot = builder.marks.iter().rfind(|mark| mark.kind == MarkKind::Slot).cloned();
            for ipu in [IpuId(0), IpuId(1)] {
                let mut mark = of_slot.clone().unwrap();
                let is_update = slot % 50 == 49;
                mark.kind = if is_update { MarkKind::Update } else { MarkKind::Stage };
                mark.pass = TrainingPass::ALL.get(slot as usize % 4).copied();
                mark.ipu = Some(ipu);
                mark.label = format!("B{}", ipu.0);
                mark.index = (slot / 2).saturating_sub(u64::from(ipu.0));
                builder.marks.push(mark);
            }
        }
        builder.mark(MarkKind::Iteration, "iteration 0", 0..slots);
        builder
    }

    #[test]
    fn long_rows_agree_with_their_marks() {
        // The slots and two IPUs are long rows, and so are phases, unless these are few.
        long_rows_are_those_of_marks(long_run(9_001, 3_000), 3);
        long_rows_are_those_of_marks(long_run(9_001, 6), 4);
    }

    fn long_rows_are_those_of_marks(run: ReportBuilder, rows: usize) {
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(run.write(directory.path()).unwrap()).unwrap();
        let ipus = [IpuId(0), IpuId(1)];
        let long = MarkRows::read(&report, &ipus, 100).unwrap().expect("few beside long rows");
        assert_eq!(long.long.len(), rows);
        let of_slots = long.long.iter().find(|row| row.id == MarkRowId::Common(MarkKind::Slot));
        assert!(of_slots.unwrap().full_slots.is_some());
        let reader = MarkRowsReader::new(&ipus, u64::MAX, None, Arc::default());
        let read = reader.read(&report, &ipus).unwrap().unwrap();
        assert_eq!(long.repeated.len(), read.repeated.len());
        for (long, read) in long.repeated.iter().zip(&read.repeated) {
            assert_eq!((long.count, long.others), (read.count, read.others));
            assert_eq!((long.fastest, long.slowest), (read.fastest, read.slowest));
            let near = long.typical.deviation(&read.typical).abs();
            assert!(near < 0.02, "{near}: {:?} and {:?}", long.typical, read.typical);
        }
        assert_eq!(long.last_micro_batch(), read.last_micro_batch());
        assert_eq!(long.ids().collect::<Vec<_>>(), read.ids().collect::<Vec<_>>());
        let described = |rows: &MarkRows, id, block: &MarkBlock| {
            let mut plain = *block;
            plain.label = 0;
            (rows.words(id, block), plain)
        };
        for id in read.ids().collect::<Vec<_>>() {
            let whole = |rows: &MarkRows| rows.row(id).and_then(MarkRow::whole).copied();
            let [of_long, of_read] = [whole(&long), whole(&read)].map(Option::unwrap);
            assert_eq!(described(&long, id, &of_long), described(&read, id, &of_read));
            for (first, count) in [(0, 1), (63, 2), (4_095, 4_098), (8_990, 20), (9_000, 1)] {
                let part = |rows: &MarkRows| {
                    let block = rows.block(&report, (id, first, count)).unwrap();
                    block.map(|block| described(rows, id, &block))
                };
                assert_eq!(part(&long), part(&read), "{id:?} from {first}");
            }
            for number in [0, 1, 2_000, 4_499] {
                let turns = |rows: &MarkRows| -> Vec<_> {
                    let turns = rows.of_micro_batch(&report, id, number).unwrap();
                    turns.iter().map(|block| described(rows, id, block)).collect()
                };
                assert_eq!(turns(&long), turns(&read), "{id:?}: {number}");
            }
            let all = CycleRange::new(of_read.range.start, of_read.range.end + Cycles(1));
            for pixel in [0.5, 20.0, 1_000.0] {
                let counted = |rows: &MarkRows| -> (u64, Cycles) {
                    let blocks = rows.shown(&report, id, all, pixel).unwrap();
                    let marks = blocks.iter().map(|block| block.count).sum();
                    (marks, blocks.iter().map(|block| block.passes.total()).sum())
                };
                assert_eq!(counted(&long), counted(&read), "{id:?} at {pixel}");
            }
        }
    }

    #[test]
    fn pages_return_the_marks_of_complete_blocks_only() {
        let mut builder = ReportBuilder::new(1, 4);
        let work = builder.compute("a", 10);
        let count = SHOWN_PAGE as u64 + 500;
        for at in 0..count {
            // Every second mark has no cycles, and starts with the next one.
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
            let from_start = CycleRange::new(blocks[first].range.start, Cycles::MAX);
            let page = MarkPage::read(&report, id, from_start).unwrap();
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
