//! Render items above the lanes: ruler, rows of marks, the row of the host, and what the user marks.

use super::TraceLayout;
use super::regions::MARK_HEIGHT;
use crate::views::execution_trace::scene::{TraceMarkRow, TraceScene};
use crate::widgets::pan_zoom_axis::tick_step;
use egui::{Rangef, Rect, pos2, vec2};
use tilescope_analysis::trace::HostActivity;
use tilescope_report::units::{CycleRange, Cycles};
use tilescope_report::{MarkKind, TraceMark};

/// Least distance of numbers on the ruler.
const TICK_DISTANCE: f32 = 120.0;

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

/// A mark on the screen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkBarItem<'a> {
    pub rect: Rect,
    pub mark: &'a TraceMark,
}

/// A row of marks that concern all IPUs.
pub(crate) struct MarkRowItem<'a> {
    pub kind: MarkKind,
    pub row: Rect,
    pub bars: Vec<MarkBarItem<'a>>,
    /// Whether there are more marks than were read.
    pub more: bool,
}

/// The rows of marks above the lanes.
pub(crate) fn common_mark_rows<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
) -> Vec<MarkRowItem<'a>> {
    let item = |(index, (kind, marks)): (usize, &'a (MarkKind, TraceMarkRow))| {
        let row = row_rect(layout, index);
        MarkRowItem { kind: *kind, row, bars: mark_bars(layout, row, marks), more: marks.more }
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
    marks: &'a TraceMarkRow,
) -> Vec<MarkBarItem<'a>> {
    let mut behind = f32::MIN;
    let mut bars = Vec::new();
    for mark in &marks.marks {
        let (left, right) = (layout.x(mark.cycles.start), layout.x(mark.cycles.end));
        // Zoomed out, thousands of marks share a point: those that cover no new one are left out.
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
        bars.push(MarkBarItem { rect, mark });
    }
    bars
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
