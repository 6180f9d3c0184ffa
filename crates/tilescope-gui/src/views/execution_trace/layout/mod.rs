//! Layout of the trace on the screen, as plain data: from settings, the loaded trace and a size to
//! places and render items. Nothing here paints or asks egui for input.

mod arrows;
mod bands;
mod chosen_bars;
mod followed;
mod hit;
mod ipu_lanes;
mod marks;
mod path;
mod regions;
#[cfg(test)]
mod tests;

pub(super) use arrows::{FlowArrowItem, HEAD};
pub(super) use bands::{BarLabelItem, IpuBand, SceneBand, ShareLineItem};
pub(super) use chosen_bars::ChosenBarItem;
pub(super) use followed::{FollowedItem, veiled_parts};
pub(super) use hit::{LaneHit, LaneHitTarget, LinkHit, hit, link_hit};
pub(super) use ipu_lanes::{
    IpuLaneLayout, SUB_LANE_GAP, ShownIpus, ipu_lane_layouts, total_height,
};
pub(super) use marks::{
    DrawnRangeItem, HostBarItem, MarkBarItem, MarkHit, MarkRowItem, MeasureItem, RulerTick,
    cycles_between, drawn_range, mark_hit,
};
pub(super) use path::{HopItem, PathBand, PathHit, PathHitTarget, PathItem, path_hit};
pub(super) use regions::{GUTTER, MARK_HEIGHT, SCROLL_BAR, TraceRegions};

use arrows::flow_arrows;
use bands::ipu_bands;
use chosen_bars::chosen_bars;
use followed::{followed, lit};
use marks::{chosen_mark, common_mark_rows, host_bars, measure, ruler_ticks};
use path::{hop_items, lit_by_path, path_item};

use super::loaded_trace::LoadedTrace;
use super::scene::TraceScene;
use super::settings::TraceSettings;
use crate::model::command::SelectedStep;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use egui::{Pos2, Rect, pos2, vec2};
use tilescope_analysis::trace::MicroBatchPath;
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu};

/// Where everything is in a frame: the regions, the lanes of the IPUs, and the cycles on the screen.
pub(super) struct TraceLayout<'a> {
    pub regions: TraceRegions,
    pub axis: PanZoomAxis,
    pub blocks: Vec<IpuLaneLayout<'a>>,
    /// Points that the lanes are scrolled down.
    pub scroll: f64,
}

/// Everything that is painted in a frame, with its place.
pub(super) struct TraceRenderItems<'a> {
    pub ticks: Vec<RulerTick>,
    pub mark_rows: Vec<MarkRowItem<'a>>,
    /// The row of the host.
    pub host: Option<(Rect, Vec<HostBarItem>)>,
    /// The lane of the critical path.
    pub path: Option<PathItem<'a>>,
    pub bands: Vec<IpuBand<'a>>,
    /// The hops of the critical path, where that is lit.
    pub hops: Vec<HopItem>,
    pub arrows: Vec<FlowArrowItem<'a>>,
    pub chosen: Vec<ChosenBarItem<'a>>,
    /// The chosen mark.
    pub chosen_mark: Option<Rect>,
    /// Whether all bars but the chosen ones are veiled.
    pub veiled: bool,
    /// The micro-batch that is followed.
    pub followed: Option<FollowedItem>,
    /// Whether bars that do not match a filter are pale.
    pub filtered: bool,
    /// Where the marks of the user are.
    pub marks: Vec<f32>,
    pub measure: Option<MeasureItem>,
}

/// Lays out what is painted: the scene as far as it was read, and what is chosen and marked.
pub(super) fn render_items<'a>(
    layout: &TraceLayout<'_>,
    prepared: &LoadedTrace,
    scene: Option<&'a TraceScene>,
    settings: &TraceSettings,
    (selected, path): (Option<SelectedStep>, Option<&MicroBatchPath>),
) -> TraceRenderItems<'a> {
    let (chosen, veiled) = chosen_bars(layout, scene, settings, selected);
    let step = selected.map(|selected| selected.step);
    let mut bands = ipu_bands(layout, prepared, scene);
    let critical = scene.filter(|scene| settings.path_lit && scene.path.is_some());
    for band in &mut bands {
        band.lit = path.map(|path| lit(layout, path, band.at));
        let block = layout.block_of(band.at);
        let critical = critical.and_then(|scene| scene.path.as_ref()).zip(block);
        band.on_path = critical.map(|(path, block)| lit_by_path(layout, path, block));
    }
    let arrowed = scene.filter(|_| critical.is_none());
    let ends = settings.marks.iter().flat_map(|mark| [mark.start, mark.end]);
    TraceRenderItems {
        ticks: ruler_ticks(layout),
        mark_rows: scene.map(|scene| common_mark_rows(layout, scene)).unwrap_or_default(),
        host: scene.and_then(|scene| host_bars(layout, scene)),
        path: path_item(layout, prepared, scene),
        bands,
        hops: critical.map(|scene| hop_items(layout, scene)).unwrap_or_default(),
        // Two kinds of arrows would be one net.
        arrows: arrowed.map(|scene| flow_arrows(layout, scene, step)).unwrap_or_default(),
        chosen,
        chosen_mark: scene.and_then(|scene| chosen_mark(layout, scene, settings.mark.as_ref())),
        // One veil is enough: two of them hide what they are to let through.
        veiled: veiled && path.is_none() && critical.is_none(),
        followed: path.map(|path| followed(layout, path)),
        filtered: scene.is_some_and(|scene| !scene.key.filter.is_empty()),
        marks: ends.map(|cycle| layout.x(cycle)).collect(),
        measure: measure(layout, settings.marked_range()),
    }
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
