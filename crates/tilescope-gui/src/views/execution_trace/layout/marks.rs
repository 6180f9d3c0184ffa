//! Render items above the lanes: ruler, rows of marks, the row of the host, and what the user marks.

use super::TraceLayout;
use super::regions::MARK_HEIGHT;
use crate::views::execution_trace::scene::{ShownMark, TraceScene};
use crate::views::execution_trace::selected_mark::SelectedMark;
use crate::widgets::pan_zoom_axis::tick_step;
use egui::{Pos2, Rangef, Rect, pos2, vec2};
use tilescope_analysis::trace::{HostActivity, MarkRowId};
use tilescope_report::MarkKind;
use tilescope_report::units::{CycleRange, Cycles};

/// Least distance of numbers on the ruler.
const TICK_DISTANCE: f32 = 120.0;

/// Distance at which the pointer hits a narrow mark.
const HIT_TOLERANCE: f32 = 2.0;

/// A line of the ruler.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RulerTick {
    pub x: f32,
    pub cycle: Cycles,
    /// Whether its cycle is written beside it.
    pub numbered: bool,
}

/// The lines of the ruler.
pub(crate) fn ruler_ticks(layout: &TraceLayout<'_>) -> Vec<RulerTick> {
    let (axis, ruler) = (layout.axis, layout.regions.ruler);
    let step = tick_step(axis.scale(), TICK_DISTANCE);
    // Steps are 1, 2 or 5 times a power of ten: below 5 a fifth is no whole number of cycles.
    let minor = if step >= 5 { step / 5 } else { step };
    // Rounded down to a multiple, so that ticks move with their cycles while panning.
    let first = axis.position_from_x(0.0).max(0) as u64 / minor * minor;
    let last = axis.position_from_x(ruler.width()).max(0) as u64;
    let cycles = std::iter::successors(Some(first), |cycle| cycle.checked_add(minor));
    let tick = |cycle: u64| RulerTick {
        x: layout.x(Cycles(cycle)),
        cycle: Cycles(cycle),
        numbered: cycle.is_multiple_of(step),
    };
    cycles.take_while(|cycle| *cycle <= last).map(tick).collect()
}

/// A mark or a block of marks on the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkBarItem<'a> {
    pub rect: Rect,
    pub shown: &'a ShownMark,
}

/// A row of marks that concern all IPUs.
pub(crate) struct MarkRowItem<'a> {
    pub kind: MarkKind,
    pub row: Rect,
    pub bars: Vec<MarkBarItem<'a>>,
}

/// The rows of marks above the lanes.
pub(crate) fn common_mark_rows<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
) -> Vec<MarkRowItem<'a>> {
    let item = |(index, (kind, marks)): (usize, &'a (MarkKind, Vec<ShownMark>))| {
        let row = row_rect(layout, index);
        MarkRowItem { kind: *kind, row, bars: mark_bars(layout, row, marks) }
    };
    scene.marks.iter().enumerate().map(item).collect()
}

fn row_rect(layout: &TraceLayout<'_>, index: usize) -> Rect {
    let marks = layout.regions.marks;
    let top = marks.top() + index as f32 * MARK_HEIGHT;
    Rect::from_min_size(pos2(marks.left(), top), vec2(marks.width(), MARK_HEIGHT))
}

/// The marks of a row on the screen; those narrower than a point run together.
pub(crate) fn mark_bars<'a>(
    layout: &TraceLayout<'_>,
    row: Rect,
    marks: &'a [ShownMark],
) -> Vec<MarkBarItem<'a>> {
    let mut behind = f32::MIN;
    let mut bars = Vec::new();
    for shown in marks {
        let CycleRange { start, end } = shown.block.range;
        let (left, right) = (layout.x(start), layout.x(end));
        // While a wider window is read, those on the screen are narrower than they are to be.
        if right < row.left() || left > row.right() || right <= behind {
            continue;
        }
        // Cut a little outside of the row, whose clip hides the rounded corners of the cut.
        let from = left.max(row.left() - 4.0).max(behind);
        let gap = if right - left > 4.0 { 1.0 } else { 0.0 };
        let to = (right - gap).max(from + 1.0).min(row.right() + 4.0);
        // A narrow mark has a point of its own in any case: the next one begins behind that.
        behind = if right - left > 2.0 { right } else { from + 1.0 };
        let rect = Rect::from_min_max(pos2(from, row.top()), pos2(to, row.bottom() - 2.0));
        bars.push(MarkBarItem { rect, shown });
    }
    bars
}

/// A mark under the pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkHit<'a> {
    pub row: MarkRowId,
    pub bar: MarkBarItem<'a>,
}

impl MarkHit<'_> {
    /// The mark or block as it is chosen.
    pub(crate) fn selected(&self) -> SelectedMark {
        SelectedMark::from_block(self.row, &self.bar.shown.block)
    }
}

/// The mark at a place on the screen, or very near to it.
pub(crate) fn mark_hit<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
    at: Pos2,
) -> Option<MarkHit<'a>> {
    let (row, bars) = if layout.regions.marks.contains(at) {
        let index = ((at.y - layout.regions.marks.top()) / MARK_HEIGHT) as usize;
        let (kind, marks) = scene.marks.get(index)?;
        (MarkRowId::Common(*kind), mark_bars(layout, row_rect(layout, index), marks))
    } else {
        let (at, row) = layout.stage_row_at(at)?;
        let shown = scene.ipus.iter().find(|shown| shown.at == at)?;
        (MarkRowId::Ipu(at), mark_bars(layout, row, &shown.marks))
    };
    let distance =
        |bar: &MarkBarItem<'_>| bar.rect.distance_to_pos(pos2(at.x, bar.rect.center().y));
    let near = bars.into_iter().filter(|bar| distance(bar) <= HIT_TOLERANCE);
    let bar = near.min_by(|a, b| distance(a).total_cmp(&distance(b)))?;
    Some(MarkHit { row, bar })
}

/// Where the chosen mark is: its row, as far as that is on the screen.
pub(crate) fn chosen_mark(
    layout: &TraceLayout<'_>,
    scene: &TraceScene,
    chosen: Option<&SelectedMark>,
) -> Option<Rect> {
    let chosen = chosen?;
    let row = match chosen.row {
        MarkRowId::Common(kind) => {
            let index = scene.marks.iter().position(|(known, _)| *known == kind)?;
            row_rect(layout, index)
        }
        MarkRowId::Ipu(at) => layout.stage_row(layout.block_of(at)?)?,
    };
    // Ends far outside would lose their digits in 32 bits.
    let left = layout.x(chosen.range.start).max(row.left() - 20.0);
    let right = layout.x(chosen.range.end).min(row.right() + 20.0);
    let on_screen = right >= row.left() && left <= row.right();
    on_screen.then(|| {
        Rect::from_min_max(pos2(left, row.top()), pos2(right.max(left + 1.0), row.bottom() - 2.0))
    })
}

/// A part of the row of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HostBarItem {
    pub rect: Rect,
    pub range: CycleRange,
    pub activity: HostActivity,
}

/// The row of the host and its bars: when IPUs wait for it, and when it moves data. None where
/// nothing is known about it.
pub(crate) fn host_bars(
    layout: &TraceLayout<'_>,
    scene: &TraceScene,
) -> Option<(Rect, Vec<HostBarItem>)> {
    let row = row_rect(layout, scene.marks.len());
    let bars = scene.host.iter().filter_map(|(range, activity)| {
        let left = layout.x(range.start);
        let right = layout.x(range.end).max(left + 1.0);
        // Waiting is low, moving is high: no colour is needed to tell them apart.
        let height = row.height() - 2.0;
        let top = match activity {
            HostActivity::WaitingForHost => row.top() + height * 0.6,
            HostActivity::Mixed => row.top() + height * 0.3,
            HostActivity::Transferring => row.top(),
        };
        let rect = Rect::from_min_max(pos2(left, top), pos2(right, row.top() + height));
        let on_screen = right >= row.left() && left <= row.right();
        on_screen.then_some(HostBarItem { rect, range: *range, activity: *activity })
    });
    (!scene.host.is_empty()).then(|| (row, bars.collect()))
}

/// The range between the marks of the user.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeasureItem {
    /// From the first to the last mark, as far as that is on the screen.
    pub x: Rangef,
    pub range: CycleRange,
}

/// The measure between marks, if a part of it is on the screen.
pub(crate) fn measure(layout: &TraceLayout<'_>, marked: Option<CycleRange>) -> Option<MeasureItem> {
    let range = marked?;
    let area = layout.regions.timeline();
    let (left, right) =
        (layout.x(range.start).max(area.left()), layout.x(range.end).min(area.right()));
    (left < right).then(|| MeasureItem { x: Rangef::new(left, right), range })
}

/// The range that is being drawn with the pointer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DrawnRangeItem {
    pub rect: Rect,
    pub range: CycleRange,
}

/// The range from a cycle to the pointer, at least one point wide.
pub(crate) fn drawn_range(layout: &TraceLayout<'_>, from: i64, pointer_x: f32) -> DrawnRangeItem {
    let range = cycles_between(from, layout.cycle_at(pointer_x).max(0));
    let (left, right) = (layout.x(range.start), layout.x(range.end));
    let lanes = layout.regions.lanes;
    let rect = Rect::from_min_max(
        pos2(left, lanes.top()),
        // A range that was just begun has no width yet.
        pos2(right.max(left + 1.0), lanes.bottom()),
    );
    DrawnRangeItem { rect, range }
}

/// The cycles between two places of an axis, without those before the first.
pub(crate) fn cycles_between(a: i64, b: i64) -> CycleRange {
    let cycle = |place: i64| Cycles(place.max(0) as u64);
    CycleRange::new(cycle(a.min(b)), cycle(a.max(b)))
}
