//! Layout of the trace on the screen.

use super::ruler::{self, MARK_HEIGHT};
use super::scene::{IpuLanes, LoadedTrace, TraceScene, rows_of};
use crate::theme::ThemePalette;
use crate::widgets::overview_strip;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use egui::{Painter, Rect, Shape, Stroke, pos2};
use tilescope_analysis::trace::TraceLaneStyle;
use tilescope_report::MarkKind;
use tilescope_report::units::CycleRange;

/// Width of the names left of the lanes.
pub(super) const GUTTER: f32 = 84.0;
/// Lanes with strip and ruler are low below this height.
const LOW: f32 = 300.0;
/// Least height of a row of the flame.
pub(super) const FLAME_ROW: f32 = 19.0;
/// Most height of a row of the flame, where there is room.
pub(super) const TALL_FLAME_ROW: f32 = 40.0;
/// Height of the only row of the flat view.
pub(super) const FLAT_ROW: f32 = 34.0;
/// Space between the groups of tiles of an IPU, where the dashed line lies.
pub(super) const SUB_LANE_GAP: f32 = 7.0;
pub(super) const IPU_GAP: f32 = 8.0;
/// Narrowest bar with a name on it.
pub(super) const LEAST_LABEL: f32 = 26.0;
/// Distance at which the pointer hits a narrow bar.
pub(super) const HIT_TOLERANCE: f32 = 3.0;
/// Opacity of the veil over bars while another one is chosen.
pub(super) const DIMMED_SHARE: f32 = 0.55;
/// Width of the scroll bar.
pub(super) const SCROLL_BAR: f32 = 10.0;

/// Layout of the trace on the screen.
pub(super) struct TraceViewLayout {
    pub(super) overview: Rect,
    pub(super) ruler: Rect,
    pub(super) marks: Rect,
    pub(super) lanes: Rect,
}

/// Where one IPU lies, in points from the top of all lanes.
pub(super) struct IpuLaneLayout<'a> {
    pub(super) lanes: &'a IpuLanes,
    pub(super) rows: Vec<u32>,
    pub(super) top: f64,
    /// Height of the row of stages above the bars.
    pub(super) marks: f32,
    pub(super) row_height: f32,
    /// Height of the raster of tiles below the bars.
    pub(super) tiles: f32,
}

impl IpuLaneLayout<'_> {
    pub(super) fn height(&self) -> f32 {
        self.tiles_top() + self.tiles
    }

    /// Where the raster of tiles begins: below the bars.
    pub(super) fn tiles_top(&self) -> f32 {
        let rows: u32 = self.rows.iter().sum();
        let gaps = SUB_LANE_GAP * self.rows.len().saturating_sub(1) as f32;
        self.marks + rows as f32 * self.row_height + gaps
    }

    /// First point of a group of tiles below the top of the bars.
    pub(super) fn sub_lane_top(&self, index: usize) -> f32 {
        let above: u32 = self.rows[..index].iter().sum();
        above as f32 * self.row_height + SUB_LANE_GAP * index as f32
    }

    /// The group of tiles and the row at a height below the top of the bars.
    pub(super) fn row_at(&self, y: f32) -> Option<(usize, u32)> {
        self.rows.iter().enumerate().find_map(|(index, rows)| {
            let inside = y - self.sub_lane_top(index);
            let row = (inside / self.row_height).floor();
            (row >= 0.0 && row < *rows as f32).then_some((index, row as u32))
        })
    }
}

/// One IPU on the screen.
pub(super) struct IpuLanesOnScreen<'a> {
    pub(super) palette: &'static ThemePalette,
    pub(super) axis: PanZoomAxis,
    pub(super) places: &'a TraceViewLayout,
    pub(super) block: &'a IpuLaneLayout<'a>,
    pub(super) top: f32,
}

impl IpuLanesOnScreen<'_> {
    /// All bars of the IPU.
    pub(super) fn bars(&self) -> Rect {
        let lanes = self.places.lanes;
        Rect::from_min_max(
            pos2(lanes.left(), self.top + self.block.marks),
            pos2(lanes.right(), self.top + self.block.tiles_top()),
        )
    }

    /// The raster of tiles below the bars.
    pub(super) fn tiles(&self) -> Rect {
        let bars = self.bars();
        Rect::from_min_max(bars.left_bottom(), pos2(bars.right(), self.top + self.block.height()))
    }

    pub(super) fn ground(&self, painter: &Painter) {
        painter.rect_filled(self.bars().union(self.tiles()), 0.0, self.palette.lane);
    }

    pub(super) fn image_rect(&self, scene: &TraceScene, on: Rect) -> Rect {
        let left = self.places.lanes.left() + self.axis.x_from_position(scene.key.window.start.0);
        let right = self.places.lanes.left() + self.axis.x_from_position(scene.key.window.end.0);
        Rect::from_min_max(pos2(left, on.top()), pos2(right, on.bottom()))
    }

    pub(super) fn separators(&self, painter: &Painter) {
        let bars = self.bars();
        for index in 1..self.block.rows.len() {
            let y = bars.top() + self.block.sub_lane_top(index) - SUB_LANE_GAP / 2.0;
            let line = [pos2(bars.left(), y), pos2(bars.right(), y)];
            let stroke = Stroke::new(1.0, self.palette.weak_text);
            painter.extend(Shape::dashed_line(&line, stroke, 5.0, 4.0));
        }
    }

    pub(super) fn item_rect(
        &self,
        sub_lane: usize,
        row: u32,
        range: CycleRange,
        full_height: bool,
    ) -> Rect {
        let rows = self.block.rows.get(sub_lane).copied().unwrap_or(1);
        let row = row.min(rows.saturating_sub(1));
        let count = if full_height { rows - row } else { 1 };
        let lanes = self.places.lanes;
        let left = lanes.left() + self.axis.x_from_position(range.start.0);
        let right = lanes.left() + self.axis.x_from_position(range.end.0);
        let height = self.block.row_height;
        let top = self.bars().top() + self.block.sub_lane_top(sub_lane) + row as f32 * height;
        // Ends far outside would lose their digits in 32 bits.
        let (left, right) = (left.max(lanes.left() - 20.0), right.min(lanes.right() + 20.0));
        Rect::from_min_max(
            pos2(left, top),
            pos2(right.max(left + 1.0), top + count as f32 * height - 1.0),
        )
    }
}

pub(super) fn trace_view_layout(area: Rect, mark_rows: usize) -> TraceViewLayout {
    let left = area.left() + GUTTER;
    let right = area.right() - SCROLL_BAR - 4.0;
    let strip = |top: f32, height: f32| {
        Rect::from_min_max(pos2(left, top), pos2(right.max(left + 20.0), top + height))
    };
    // In a low view the lanes need the room more.
    let (space, height) = match area.height() < LOW {
        true => (4.0, overview_strip::HEIGHT / 2.0),
        false => (10.0, overview_strip::HEIGHT),
    };
    let overview = strip(area.top() + space, height);
    let ruler = strip(overview.bottom() + 2.0, ruler::HEIGHT);
    let marks = strip(ruler.bottom() + 3.0, mark_rows as f32 * MARK_HEIGHT);
    let lanes = strip(marks.bottom() + 3.0, (area.bottom() - marks.bottom() - 5.0).max(10.0));
    TraceViewLayout { overview, ruler, marks, lanes }
}

pub(super) fn ipu_lane_layouts<'a>(
    prepared: &'a LoadedTrace,
    shown: &[u32],
    style: TraceLaneStyle,
    marks: bool,
    tiles: f32,
    room: f32,
) -> Vec<IpuLaneLayout<'a>> {
    let staged = [MarkKind::Stage, MarkKind::Update];
    let has_stages = staged.iter().any(|kind| prepared.mark_kinds.contains(kind));
    let marks = if marks && has_stages { MARK_HEIGHT } else { 0.0 };
    let shown = || prepared.ipus.iter().filter(|lanes| shown.contains(&lanes.ipu));
    let rows: u32 = shown().flat_map(|lanes| rows_of(lanes, style)).sum();
    let fixed: f32 = shown()
        .map(|lanes| marks + tiles + IPU_GAP + SUB_LANE_GAP * (lanes.sub_lanes.len() - 1) as f32)
        .sum();
    // Whole points: rows of the image must not run out of step with those on the screen.
    let fitting = ((room - fixed) / rows.max(1) as f32).floor();
    let row_height = match style {
        TraceLaneStyle::Flame => fitting.clamp(FLAME_ROW, TALL_FLAME_ROW),
        TraceLaneStyle::Flat => FLAT_ROW,
    };
    let mut top = 0.0;
    let mut blocks = Vec::new();
    for lanes in shown() {
        let block =
            IpuLaneLayout { lanes, rows: rows_of(lanes, style), top, marks, row_height, tiles };
        top += f64::from(block.height() + IPU_GAP);
        blocks.push(block);
    }
    blocks
}
