//! The layout of the trace on the screen as plain data: it turns settings, the loaded trace and a
//! size into positions. Nothing here paints or reads input from egui.

mod ipu_lanes;
mod regions;

pub(super) use ipu_lanes::{
    IpuLaneLayout, LOW_FLAME_ROW, LaneName, SUB_LANE_GAP, ShownIpus, ipu_lane_layouts, total_height,
};
pub(super) use regions::{GUTTER, MARK_HEIGHT, SCROLL_BAR, TraceRegions};

use crate::widgets::pan_zoom_axis::PanZoomAxis;
use egui::{Pos2, Rect, pos2, vec2};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu};

/// The layout of a frame: the regions, the lanes of the IPUs, and the visible cycles.
pub(super) struct TraceLayout<'a> {
    pub regions: TraceRegions,
    pub axis: PanZoomAxis,
    pub blocks: Vec<IpuLaneLayout<'a>>,
    /// The points that the lanes are scrolled down.
    pub scroll: f64,
}

/// The position of a bar among the bars of an IPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BarPosition {
    /// The index of its tile group, from the top.
    pub sub_lane: usize,
    pub row: u32,
    pub range: CycleRange,
    /// True if it extends down to the last row.
    pub full_height: bool,
}

impl TraceLayout<'_> {
    /// True if replicas are small multiples, with thin lanes.
    pub(super) fn is_thin(&self) -> bool {
        self.blocks.first().is_some_and(|block| block.name != LaneName::Ipu)
    }

    /// The screen position of a cycle.
    pub(super) fn x(&self, cycle: Cycles) -> f32 {
        self.regions.lanes.left() + self.axis.x_from_position(cycle.0)
    }

    /// The cycle at a screen position; negative left of the first one.
    pub(super) fn cycle_at(&self, x: f32) -> i64 {
        self.axis.position_from_x(x - self.regions.lanes.left())
    }

    /// The upper edge of an IPU on the screen.
    pub(super) fn top(&self, block: &IpuLaneLayout<'_>) -> f32 {
        // Subtracted in 64 bits: below hundreds of tall lanes, 32 bits would lose fractions of a
        // point.
        self.regions.lanes.top() + (block.top - self.scroll) as f32
    }

    /// The lanes of an IPU, if they are visible; those of the first replica of its class.
    pub(super) fn block_of(&self, at: ReplicaIpu) -> Option<&IpuLaneLayout<'_>> {
        self.blocks.iter().find(|block| block.lanes.at == at)
    }

    /// The visible IPUs, and those at most `margin` points above or below the screen.
    pub(super) fn blocks_within(&self, margin: f32) -> impl Iterator<Item = &IpuLaneLayout<'_>> {
        self.blocks.iter().filter(move |block| {
            let top = (block.top - self.scroll) as f32;
            top < self.regions.lanes.height() + margin && top + block.height() > -margin
        })
    }

    /// A row above the lanes, for marks or for the host.
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
        if block.marks > 0.0 { Some(Rect::from_min_size(corner, size)) } else { None }
    }

    /// The IPU whose row of stages is at a position, and that row.
    pub(super) fn stage_row_at(&self, at: Pos2) -> Option<(ReplicaIpu, Rect)> {
        if !self.regions.lanes.contains(at) {
            return None;
        }
        let rows = self.blocks.iter().filter_map(|block| {
            let row = self.stage_row(block)?;
            if row.y_range().contains(at.y) { Some((block.lanes.at, row)) } else { None }
        });
        rows.into_iter().next()
    }

    /// The rectangle of all bars of an IPU.
    pub(super) fn bars(&self, block: &IpuLaneLayout<'_>) -> Rect {
        // The width of the lanes, not that of the image, which extends past both edges.
        let lanes = self.regions.lanes;
        let top = self.top(block);
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

    /// The strip of links below the raster; without height if there is none.
    pub(super) fn links(&self, block: &IpuLaneLayout<'_>) -> Rect {
        let tiles = self.tiles(block);
        let bottom = self.top(block) + block.height();
        Rect::from_min_max(tiles.left_bottom(), pos2(tiles.right(), bottom))
    }

    /// The rectangle of a bar, at least one point wide.
    pub(super) fn bar(&self, block: &IpuLaneLayout<'_>, bar: BarPosition) -> Rect {
        let rows = block.rows.get(bar.sub_lane).copied().unwrap_or(1);
        // As in the image: flames deeper than the lane share its last row.
        let row = bar.row.min(rows.saturating_sub(1));
        let count = if bar.full_height { rows - row } else { 1 };
        let height = block.row_height;
        let top = self.bars(block).top() + block.sub_lane_top(bar.sub_lane) + row as f32 * height;
        // Ends far outside the screen would lose precision in 32 bits.
        let lanes = self.regions.lanes;
        let left = self.x(bar.range.start).max(lanes.left() - 20.0);
        let right = self.x(bar.range.end).min(lanes.right() + 20.0);
        Rect::from_min_max(
            pos2(left, top),
            pos2(right.max(left + 1.0), top + count as f32 * height - 1.0),
        )
    }
}
