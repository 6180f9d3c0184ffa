//! Layout of the trace on the screen, as plain data: from settings, the loaded trace and a size to
//! places. Nothing here paints or asks egui for input.

mod ipu_lanes;
mod regions;

pub(super) use ipu_lanes::{
    IpuLaneLayout, LOW_FLAME_ROW, SUB_LANE_GAP, ShownIpus, ipu_lane_layouts, total_height,
};
pub(super) use regions::{GUTTER, MARK_HEIGHT, SCROLL_BAR, TraceRegions};

use crate::widgets::pan_zoom_axis::PanZoomAxis;
use egui::{Pos2, Rect, pos2, vec2};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu};

/// Where everything is in a frame: the regions, the lanes of the IPUs, and the cycles on the screen.
pub(super) struct TraceLayout<'a> {
    pub regions: TraceRegions,
    pub axis: PanZoomAxis,
    pub blocks: Vec<IpuLaneLayout<'a>>,
    /// Points that the lanes are scrolled down.
    pub scroll: f64,
}

/// Where a bar is among the bars of an IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BarPosition {
    /// Place of its group of tiles, from the top.
    pub sub_lane: usize,
    pub row: u32,
    pub range: CycleRange,
    /// Whether it reaches down to the last row.
    pub full_height: bool,
}

impl TraceLayout<'_> {
    /// Where a cycle is on the screen.
    pub(super) fn x(&self, cycle: Cycles) -> f32 {
        self.regions.lanes.left() + self.axis.x_from_position(cycle.0)
    }

    /// The cycle at a place on the screen; below 0 left of the first one.
    pub(super) fn cycle_at(&self, x: f32) -> i64 {
        self.axis.position_from_x(x - self.regions.lanes.left())
    }

    /// Upper edge of an IPU on the screen.
    pub(super) fn top(&self, block: &IpuLaneLayout<'_>) -> f32 {
        // Subtracted in 64 bits: below hundreds of tall lanes 32 would lose parts of a point.
        self.regions.lanes.top() + (block.top - self.scroll) as f32
    }

    /// The lanes of an IPU, if they are shown: those of the first replica that is alike.
    pub(super) fn block_of(&self, at: ReplicaIpu) -> Option<&IpuLaneLayout<'_>> {
        self.blocks.iter().find(|block| block.lanes.at == at)
    }

    /// The IPUs on the screen, and those at most so many points above or below it.
    pub(super) fn blocks_within(&self, margin: f32) -> impl Iterator<Item = &IpuLaneLayout<'_>> {
        let near = move |block: &&IpuLaneLayout<'_>| {
            let top = (block.top - self.scroll) as f32;
            top < self.regions.lanes.height() + margin && top + block.height() > -margin
        };
        self.blocks.iter().filter(near)
    }

    /// A row above the lanes: of marks, or of the host.
    pub(super) fn mark_row(&self, index: usize) -> Rect {
        let marks = self.regions.marks;
        let top = marks.top() + index as f32 * MARK_HEIGHT;
        Rect::from_min_size(pos2(marks.left(), top), vec2(marks.width(), MARK_HEIGHT))
    }

    /// The row of stages of an IPU, if there is one.
    pub(super) fn stage_row(&self, block: &IpuLaneLayout<'_>) -> Option<Rect> {
        let lanes = self.regions.lanes;
        let corner = pos2(lanes.left(), self.top(block));
        let size = vec2(lanes.width(), block.marks);
        (block.marks > 0.0).then(|| Rect::from_min_size(corner, size))
    }

    /// The IPU whose row of stages is at a place, and that row.
    pub(super) fn stage_row_at(&self, at: Pos2) -> Option<(ReplicaIpu, Rect)> {
        if !self.regions.lanes.contains(at) {
            return None;
        }
        let rows = self.blocks.iter().filter_map(|block| {
            let row = self.stage_row(block)?;
            row.y_range().contains(at.y).then_some((block.lanes.at, row))
        });
        rows.into_iter().next()
    }

    /// All bars of an IPU.
    pub(super) fn bars(&self, block: &IpuLaneLayout<'_>) -> Rect {
        // The width of the lanes, not that of the image, which reaches over both edges.
        let (lanes, top) = (self.regions.lanes, self.top(block));
        Rect::from_min_max(
            pos2(lanes.left(), top + block.marks),
            pos2(lanes.right(), top + block.tiles_top()),
        )
    }

    /// The raster of tiles below the bars of an IPU.
    pub(super) fn tiles(&self, block: &IpuLaneLayout<'_>) -> Rect {
        let bars = self.bars(block);
        let bottom = self.top(block) + block.links_top();
        Rect::from_min_max(bars.left_bottom(), pos2(bars.right(), bottom))
    }

    /// The strip of links below that; without a height if there is none.
    pub(super) fn links(&self, block: &IpuLaneLayout<'_>) -> Rect {
        let tiles = self.tiles(block);
        let bottom = self.top(block) + block.height();
        Rect::from_min_max(tiles.left_bottom(), pos2(tiles.right(), bottom))
    }

    /// Where a bar is, at least one point wide.
    pub(super) fn bar(&self, block: &IpuLaneLayout<'_>, bar: BarPosition) -> Rect {
        let rows = block.rows.get(bar.sub_lane).copied().unwrap_or(1);
        // As in the image: flames deeper than the lane is high share its last row.
        let row = bar.row.min(rows.saturating_sub(1));
        let count = if bar.full_height { rows - row } else { 1 };
        let height = block.row_height;
        let top = self.bars(block).top() + block.sub_lane_top(bar.sub_lane) + row as f32 * height;
        // Ends far outside would lose their digits in 32 bits.
        let lanes = self.regions.lanes;
        let left = self.x(bar.range.start).max(lanes.left() - 20.0);
        let right = self.x(bar.range.end).min(lanes.right() + 20.0);
        Rect::from_min_max(
            pos2(left, top),
            pos2(right.max(left + 1.0), top + count as f32 * height - 1.0),
        )
    }
}
