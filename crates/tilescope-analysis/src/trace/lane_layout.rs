//! Layout of a lane: bars from spans, as a pure function.
//!
//! The flame view puts each part of a name in the next row down and joins neighbours below one
//! parent; the flat view puts every step in the first row. Steps narrower than a pixel are not
//! dropped: they are combined in buckets, and a bucket is below the parents of its longest step.

use super::lane_items::{LaneItem, LaneItemKind, LaneItemList, StepGroupTotals};
use super::program_labels::{NameTreeNodeId, ProgramLabel, ProgramLabels};
use tilescope_report::trace::{LaneSpan, Trace};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu};
use tilescope_report::{ProgramKind, ReportError};

/// The number of rows of a flame; deeper names end in the last row.
pub const MAX_ROWS: u32 = 8;

/// The arrangement of steps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum TraceLaneStyle {
    /// One row per part of a name.
    #[default]
    Flame,
    Flat,
}

/// Kinds of steps that are combined in one bar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceStepGrouping {
    /// Exchange, arrangement and vertices of one operation.
    pub executions: bool,
    /// Consecutive syncs.
    pub syncs: bool,
}

/// Reads and arranges one lane.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn lane_items(
    trace: &Trace,
    labels: &ProgramLabels,
    (at, sub_lane): (ReplicaIpu, u8),
    window: CycleRange,
    pixels: u32,
    (style, grouping): (TraceLaneStyle, TraceStepGrouping),
) -> Result<LaneItemList, ReportError> {
    let spans = match trace.lane_at(at, sub_lane) {
        Some(lane) => lane.spans(window, pixels)?,
        None => Vec::new(),
    };
    let pixel_cycles = window.length().div_ceil(u64::from(pixels.max(1))).max(Cycles(1));
    let items = arrange(&spans, labels, style, grouping, pixel_cycles);
    Ok(LaneItemList { at, sub_lane, items })
}

/// Arranges the spans of a lane: at most one bar per span and row.
pub fn arrange(
    spans: &[LaneSpan],
    labels: &ProgramLabels,
    style: TraceLaneStyle,
    grouping: TraceStepGrouping,
    pixel_cycles: Cycles,
) -> Vec<LaneItem> {
    let blocks = blocks(spans, labels, grouping);
    let mut flame = FlameLayoutBuilder {
        labels,
        style,
        break_cycles: 3 * pixel_cycles,
        ..FlameLayoutBuilder::new(labels)
    };
    for block in blocks {
        flame.add(block);
    }
    let items = flame.finish();
    debug_assert!(items.iter().all(|item| item.range.start <= item.range.end), "bars run forwards");
    items
}

/// A leaf of the flame, before it has a row.
struct FlameLeaf {
    range: CycleRange,
    parent: Option<NameTreeNodeId>,
    full_height: bool,
    /// True for a sync within an IPU: it does not separate the steps around it.
    is_internal_sync: bool,
    sums: StepGroupTotals,
    kind: LaneItemKind,
}

fn label<'a>(span: &LaneSpan, labels: &'a ProgramLabels) -> Option<&'a ProgramLabel> {
    let program = match span {
        LaneSpan::Step(step) => step.program,
        LaneSpan::Bucket(bucket) => bucket.totals.longest.and_then(|longest| longest.program),
    };
    program.and_then(|program| labels.get(program))
}

fn single(span: &LaneSpan, labels: &ProgramLabels) -> FlameLeaf {
    let label = label(span, labels);
    let (kind, full_height, passes) = match span {
        LaneSpan::Step(step) => {
            let full = match step.kind {
                ProgramKind::Sync => label.is_none_or(|label| label.full_height),
                kind => kind == ProgramKind::GlobalExchange,
            };
            let passes = step.kind == ProgramKind::Sync && !full;
            (LaneItemKind::Step(*step), full, passes)
        }
        LaneSpan::Bucket(bucket) => {
            (LaneItemKind::Bucket(bucket.totals, bucket.first_position), false, false)
        }
    };
    FlameLeaf {
        range: span.range(),
        parent: label.and_then(|label| label.parent),
        full_height,
        is_internal_sync: passes,
        sums: StepGroupTotals::from_span(span),
        kind,
    }
}

/// Spans as leaves, with grouped spans combined.
fn blocks(
    spans: &[LaneSpan],
    labels: &ProgramLabels,
    grouping: TraceStepGrouping,
) -> Vec<FlameLeaf> {
    let mut blocks = Vec::with_capacity(spans.len());
    let mut at = 0;
    while at < spans.len() {
        let count = match &spans[at] {
            LaneSpan::Bucket(_) => 1,
            LaneSpan::Step(step) if step.kind == ProgramKind::Sync => {
                if grouping.syncs {
                    run_of_syncs(&spans[at..], labels)
                } else {
                    1
                }
            }
            LaneSpan::Step(_) if grouping.executions => run_of_operation(&spans[at..], labels),
            LaneSpan::Step(_) => 1,
        };
        blocks.push(joined(&spans[at..at + count], labels));
        at += count;
    }
    blocks
}

fn is_sync(span: &LaneSpan) -> bool {
    matches!(span, LaneSpan::Step(step) if step.kind == ProgramKind::Sync)
}

/// Number of consecutive syncs of the same kind: a wait for other IPUs must not be named after the
/// sync of tiles that follows it.
fn run_of_syncs(spans: &[LaneSpan], labels: &ProgramLabels) -> usize {
    let Some(first) = spans.first() else { return 0 };
    let name = leaf(first, labels);
    spans.iter().take_while(|span| is_sync(span) && leaf(span, labels) == name).count()
}

fn leaf<'a>(span: &LaneSpan, labels: &'a ProgramLabels) -> Option<&'a str> {
    label(span, labels).map(|label| label.leaf.as_str())
}

/// Number of steps from the first one on that belong to the same operation, including syncs between
/// them.
fn run_of_operation(spans: &[LaneSpan], labels: &ProgramLabels) -> usize {
    let Some(wanted) = operation_of(&spans[0], labels) else { return 1 };
    let mut count = 1;
    for (at, span) in spans.iter().enumerate().skip(1) {
        if operation_of(span, labels) == Some(wanted) {
            count = at + 1;
        } else if !is_internal_sync(span, labels) {
            break;
        }
    }
    count
}

/// The node of the operation of a compute set or of an exchange within an IPU.
fn operation_of(span: &LaneSpan, labels: &ProgramLabels) -> Option<NameTreeNodeId> {
    match span {
        LaneSpan::Step(step)
            if matches!(step.kind, ProgramKind::OnTileExecute | ProgramKind::DoExchange) =>
        {
            label(span, labels)?.operation
        }
        _ => None,
    }
}

fn is_internal_sync(span: &LaneSpan, labels: &ProgramLabels) -> bool {
    is_sync(span) && label(span, labels).is_some_and(|label| !label.full_height)
}

fn joined(spans: &[LaneSpan], labels: &ProgramLabels) -> FlameLeaf {
    let mut block = single(&spans[0], labels);
    if spans.len() == 1 {
        return block;
    }
    let syncs = is_sync(&spans[0]);
    for span in &spans[1..] {
        block.range = block.range.union(span.range());
        // Syncs add time to an operation, not work.
        if syncs || !is_sync(span) {
            block.sums.add(&StepGroupTotals::from_span(span));
        }
        block.full_height &= !syncs || single(span, labels).full_height;
    }
    let operation = label(&spans[0], labels).and_then(|label| label.operation);
    match operation.filter(|_| !syncs) {
        Some(node) => {
            block.parent = labels.parent(node);
            block.kind = LaneItemKind::Operation(node, block.sums);
        }
        None => {
            block.is_internal_sync = !block.full_height;
            block.kind = LaneItemKind::Syncs(block.sums);
        }
    }
    block
}

/// The open parents during the walk along a lane.
struct FlameLayoutBuilder<'a> {
    labels: &'a ProgramLabels,
    style: TraceLaneStyle,
    /// Length of a gap that closes parents.
    break_cycles: Cycles,
    open: Vec<(NameTreeNodeId, CycleRange, StepGroupTotals)>,
    /// Syncs within an IPU since the last leaf; their row depends on the next leaf.
    waiting: Vec<FlameLeaf>,
    items: Vec<LaneItem>,
}

impl<'a> FlameLayoutBuilder<'a> {
    fn new(labels: &'a ProgramLabels) -> Self {
        Self {
            labels,
            style: TraceLaneStyle::Flame,
            break_cycles: Cycles::ZERO,
            open: Vec::new(),
            waiting: Vec::new(),
            items: Vec::new(),
        }
    }

    fn add(&mut self, block: FlameLeaf) {
        if self.style == TraceLaneStyle::Flat {
            self.put(block, 0);
        } else if block.is_internal_sync {
            self.waiting.push(block);
        } else {
            self.add_leaf(block);
        }
    }

    fn add_leaf(&mut self, block: FlameLeaf) {
        let path: Vec<NameTreeNodeId> =
            self.labels.path(block.parent).take(MAX_ROWS as usize - 1).collect();
        let before = self.open.last().map(|(_, range, _)| range.end);
        let reached = self.waiting.last().map(|sync| sync.range.end).or(before);
        let gap = reached.is_some_and(|end| {
            block.range.start.saturating_sub(end) >= self.break_cycles.max(Cycles(1))
        });
        let shared = if gap || block.full_height {
            0
        } else {
            self.open.iter().zip(&path).take_while(|(open, node)| open.0 == **node).count()
        };
        self.close(shared);
        for sync in std::mem::take(&mut self.waiting) {
            self.put(sync, shared as u32);
        }
        if block.full_height {
            self.put(block, 0);
            return;
        }
        for (_, range, sums) in &mut self.open {
            *range = range.union(block.range);
            sums.add(&block.sums);
        }
        for node in &path[shared..] {
            self.open.push((*node, block.range, block.sums));
        }
        self.put(block, path.len() as u32);
    }

    /// Closes all parents below row `depth`.
    fn close(&mut self, depth: usize) {
        for (row, (node, range, sums)) in self.open.drain(depth..).enumerate() {
            let row = (depth + row) as u32;
            let kind = LaneItemKind::Parent(node, sums);
            self.items.push(LaneItem { range, row, full_height: false, kind });
        }
    }

    fn put(&mut self, block: FlameLeaf, row: u32) {
        let FlameLeaf { range, full_height, kind, .. } = block;
        self.items.push(LaneItem { range, row, full_height, kind });
    }

    fn finish(mut self) -> Vec<LaneItem> {
        self.close(0);
        for sync in std::mem::take(&mut self.waiting) {
            self.put(sync, 0);
        }
        self.items.sort_by_key(|item| (item.row, item.range.start));
        self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::Report;
    use tilescope_report::units::ProgramId;

    const SINGLE: TraceStepGrouping = TraceStepGrouping { executions: false, syncs: false };
    const GROUPED: TraceStepGrouping = TraceStepGrouping { executions: true, syncs: true };

    /// The bars of IPU 0 over the whole run, at `pixels` pixels.
    fn arranged(
        report: &ReportBuilder,
        pixels: u32,
        style: TraceLaneStyle,
        grouping: TraceStepGrouping,
    ) -> (Vec<LaneItem>, ProgramLabels) {
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(report.write(directory.path()).unwrap()).unwrap();
        let trace = report.trace().unwrap().unwrap();
        let labels = ProgramLabels::new(&report.programs().unwrap());
        let range = trace.range();
        let lane = lane_items(
            &trace,
            &labels,
            (ReplicaIpu::default(), 0),
            range,
            pixels,
            (style, grouping),
        )
        .unwrap();
        (lane.items, labels)
    }

    /// `row name start-end` of every bar.
    fn describe_items((items, labels): &(Vec<LaneItem>, ProgramLabels)) -> Vec<String> {
        let line = |item: &LaneItem| {
            let CycleRange { start, end } = item.range;
            format!("{} {} {start}-{end}", item.row, item.text(labels))
        };
        items.iter().map(line).collect()
    }

    /// One operation with its exchange and arrangement, with syncs between them, and a second
    /// operation.
    fn two_operations() -> ReportBuilder {
        let mut report = ReportBuilder::new(1, 4);
        let exchange = report.exchange("cs0_a/conv/Convolve/ExchangePre", 8);
        let arrange = report.compute("a/conv/Convolve/PreArrange-0", 10);
        let convolve = report.compute("a/conv/Convolve", 50);
        let reduce = report.compute("a/conv/Reduce0", 20);
        let sync = report.program(ProgramKind::Sync, "Internal");
        report.root(ProgramKind::Sequence, "main", &[exchange, arrange, convolve, reduce, sync]);
        report.run(exchange, 0..10).run(sync, 10..12).run(arrange, 12..22).run(sync, 22..24);
        report.run(convolve, 24..74).run(sync, 74..76).run(reduce, 76..96);
        report
    }

    #[test]
    fn parts_of_names_are_rows_and_neighbours_share_parents() {
        let described =
            describe_items(&arranged(&two_operations(), 1000, TraceLaneStyle::Flame, SINGLE));
        let expected = [
            "0 a 0-96",
            "1 conv 0-96",
            "2 Convolve 0-22",
            "2 Internal sync 22-24",
            "2 Convolve 24-74",
            "2 Internal sync 74-76",
            "2 Reduce0 76-96",
            "3 ExchangePre 0-10",
            "3 Internal sync 10-12",
            "3 PreArrange-0 12-22",
        ];
        assert_eq!(described, expected);
    }

    #[test]
    fn grouped_executions_show_an_operation_as_one() {
        let described =
            describe_items(&arranged(&two_operations(), 1000, TraceLaneStyle::Flame, GROUPED));
        let expected = [
            "0 a 0-96",
            "1 conv 0-96",
            "2 Convolve 0-74",
            "2 Internal sync 74-76",
            "2 Reduce0 76-96",
        ];
        assert_eq!(described, expected);
    }

    #[test]
    fn the_flat_view_has_one_row() {
        let (items, _) = arranged(&two_operations(), 1000, TraceLaneStyle::Flat, SINGLE);
        assert_eq!(items.len(), 7);
        assert!(items.iter().all(|item| item.row == 0));
    }

    #[test]
    fn syncs_that_follow_one_another_become_one() {
        let mut report = ReportBuilder::new(1, 4);
        let sync = report.program(ProgramKind::Sync, "External");
        report.root(ProgramKind::Sequence, "main", &[sync]);
        report.run(sync, 0..10).run(sync, 10..30).run(sync, 30..40);
        let (items, _) = arranged(&report, 100, TraceLaneStyle::Flame, GROUPED);
        assert_eq!(items.len(), 1);
        assert!(items[0].full_height && items[0].steps() == 3);
        let (items, _) = arranged(&report, 100, TraceLaneStyle::Flame, SINGLE);
        assert_eq!(items.len(), 3);
    }

    #[test]
    fn syncs_of_different_kinds_keep_their_names() {
        let mut report = ReportBuilder::new(1, 4);
        let external = report.program(ProgramKind::Sync, "External");
        let internal = report.program(ProgramKind::Sync, "Internal");
        report.root(ProgramKind::Sequence, "main", &[external, internal]);
        report.run(external, 0..30).run(internal, 30..32).run(internal, 32..34);
        report.run(external, 34..60).run(external, 60..90);
        let described = describe_items(&arranged(&report, 100, TraceLaneStyle::Flame, GROUPED));
        let expected =
            ["0 External sync 0-30", "0 Internal sync × 2 30-34", "0 External sync × 2 34-90"];
        assert_eq!(described, expected);
    }

    /// A wait is named after most of its cycles at every zoom level.
    #[test]
    fn waits_are_named_by_kind_at_every_zoom() {
        let mut report = ReportBuilder::new(1, 4);
        let external = report.program(ProgramKind::Sync, "External");
        let internal = report.program(ProgramKind::Sync, "Internal");
        let work = report.compute("a/work", 10);
        report.root(ProgramKind::Sequence, "main", &[external, internal, work]);
        let (mut at, mut seed) = (0, 1u64);
        let mut waits: [Vec<CycleRange>; 2] = [Vec::new(), Vec::new()];
        for _ in 0..2_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (program, cycles) = match seed >> 61 {
                0..=2 => (external, 1 + (seed >> 40) % 900),
                3..=5 => (internal, 1 + (seed >> 40) % 20),
                _ => (work, 1 + (seed >> 40) % 60),
            };
            report.run(program, at..at + cycles);
            let range = CycleRange::new(Cycles(at), Cycles(at + cycles));
            if program != work {
                waits[usize::from(program == internal)].push(range);
            }
            at += cycles;
        }
        let inside = |kind: usize, bar: CycleRange| {
            let own = waits[kind].iter().map(|wait| wait.intersection(bar).length());
            own.sum::<Cycles>()
        };
        for pixels in [30, 100, 700, 3_000, 20_000, 200_000] {
            for style in [TraceLaneStyle::Flame, TraceLaneStyle::Flat] {
                for grouping in [SINGLE, GROUPED] {
                    let (items, labels) = arranged(&report, pixels, style, grouping);
                    for item in items {
                        let text = item.text(&labels);
                        let Some((kind, _)) = text.split_once(" sync") else { continue };
                        let [external, internal] = [0, 1].map(|kind| inside(kind, item.range));
                        let most = if external > internal { "External" } else { "Internal" };
                        assert_eq!(kind, most, "{text} at {pixels}: {external} {internal}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_pause_ends_a_parent() {
        let mut report = ReportBuilder::new(1, 4);
        let (first, second) = (report.compute("a/x", 10), report.compute("a/y", 10));
        report.root(ProgramKind::Sequence, "main", &[first, second]);
        report.run(first, 0..10).run(second, 500..510);
        let described = describe_items(&arranged(&report, 500, TraceLaneStyle::Flame, SINGLE));
        assert_eq!(described, ["0 a 0-10", "0 a 500-510", "1 x 0-10", "1 y 500-510"]);
    }

    #[test]
    fn there_are_never_more_bars_than_pixels_can_show() {
        let mut report = ReportBuilder::new(1, 4);
        let names = ["a/b/c/d", "a/b/c/e", "a/f", "g/h/i"];
        let mut programs: Vec<ProgramId> =
            names.iter().map(|name| report.compute(name, 1)).collect();
        programs.push(report.program(ProgramKind::Sync, "Internal"));
        report.root(ProgramKind::Sequence, "main", &programs);
        for i in 0..20_000u64 {
            report.run(programs[(i * 7 % 5) as usize], i * 3..i * 3 + 2);
        }
        for pixels in [1, 10, 64, 300] {
            for style in [TraceLaneStyle::Flame, TraceLaneStyle::Flat] {
                let (items, _) = arranged(&report, pixels, style, SINGLE);
                for row in 0..MAX_ROWS {
                    let count = items.iter().filter(|item| item.row == row).count();
                    assert!(count as u32 <= 2 * pixels + 1, "{count} on {pixels}");
                }
                let leaves =
                    items.iter().filter(|item| !matches!(item.kind, LaneItemKind::Parent(..)));
                assert_eq!(leaves.map(LaneItem::steps).sum::<u64>(), 20_000);
            }
        }
    }

    #[test]
    fn bars_of_a_row_do_not_overlap() {
        for pixels in [5, 50, 1000] {
            let (items, _) = arranged(&two_operations(), pixels, TraceLaneStyle::Flame, GROUPED);
            for pair in items.windows(2).filter(|pair| pair[0].row == pair[1].row) {
                assert!(pair[0].range.end <= pair[1].range.start, "{pair:?}");
            }
        }
    }
}
