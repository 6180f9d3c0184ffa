//! The lanes of the IPUs, one below the other.

use super::regions::MARK_HEIGHT;
use crate::model::preferences::TracePrefs;
use crate::views::execution_trace::loaded_trace::{IpuLanes, LoadedTrace, rows_of};
use tilescope_analysis::trace::TraceLaneStyle;
use tilescope_report::MarkKind;
use tilescope_report::units::IpuId;

/// Least height of a row of the flame.
pub(crate) const FLAME_ROW: f32 = 19.0;
/// Most height of a row of the flame, where there is room.
const TALL_FLAME_ROW: f32 = 40.0;
/// Height of the only row of the flat view.
const FLAT_ROW: f32 = 34.0;
/// Space between the groups of tiles of an IPU, where the dashed line lies.
pub(crate) const SUB_LANE_GAP: f32 = 7.0;
const IPU_GAP: f32 = 8.0;

/// Where one IPU lies, in points from the top of all lanes.
pub(crate) struct IpuLaneLayout<'a> {
    pub lanes: &'a IpuLanes,
    pub rows: Vec<u32>,
    pub top: f64,
    /// Height of the row of stages above the bars.
    pub marks: f32,
    pub row_height: f32,
    /// Height of the raster of tiles below the bars.
    pub tiles: f32,
}

impl IpuLaneLayout<'_> {
    pub(crate) fn height(&self) -> f32 {
        self.tiles_top() + self.tiles
    }

    /// Where the raster of tiles begins: below the bars.
    pub(crate) fn tiles_top(&self) -> f32 {
        let rows: u32 = self.rows.iter().sum();
        let gaps = SUB_LANE_GAP * self.rows.len().saturating_sub(1) as f32;
        self.marks + rows as f32 * self.row_height + gaps
    }

    /// First point of a group of tiles below the top of the bars.
    pub(crate) fn sub_lane_top(&self, index: usize) -> f32 {
        // In range: `rows` has an entry for every group of tiles, in either style.
        let above: u32 = self.rows[..index].iter().sum();
        above as f32 * self.row_height + SUB_LANE_GAP * index as f32
    }

    /// The group of tiles and the row at a height below the top of the bars.
    pub(crate) fn row_at(&self, y: f32) -> Option<(usize, u32)> {
        self.rows.iter().enumerate().find_map(|(index, rows)| {
            let inside = y - self.sub_lane_top(index);
            let row = (inside / self.row_height).floor();
            // The gap between two groups belongs to neither: nothing is hit there.
            (row >= 0.0 && row < *rows as f32).then_some((index, row as u32))
        })
    }
}

/// The IPUs that are shown, one below the other; their rows are higher where there is `room`.
pub(crate) fn ipu_lane_layouts<'a>(
    prepared: &'a LoadedTrace,
    shown: &[IpuId],
    prefs: &TracePrefs,
    room: f32,
) -> Vec<IpuLaneLayout<'a>> {
    let staged = [MarkKind::Stage, MarkKind::Update];
    let has_stages = staged.iter().any(|kind| prepared.mark_kinds.contains(kind));
    let marks = if prefs.marks && has_stages { MARK_HEIGHT } else { 0.0 };
    let tiles = if prefs.tiles { f32::from(prefs.tiles_height) } else { 0.0 };
    let style = prefs.style;
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

/// Points from the top of the first IPU to the foot of the last one.
pub(crate) fn total_height(blocks: &[IpuLaneLayout<'_>]) -> f64 {
    blocks.last().map_or(0.0, |block| block.top + f64::from(block.height()))
}
