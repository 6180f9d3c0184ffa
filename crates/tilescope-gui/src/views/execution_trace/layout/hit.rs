//! Which bar is at a place on the screen.

use super::{BarPosition, IpuLaneLayout, TraceLayout};
use crate::views::execution_trace::scene::TraceScene;
use egui::{Pos2, Rect};
use tilescope_analysis::trace::{LaneItem, LaneItemList};
use tilescope_report::units::{Cycles, IpuId};

/// Distance at which the pointer hits a narrow bar.
const HIT_TOLERANCE: f32 = 3.0;

/// The bar under the pointer.
pub(crate) struct LaneHit<'a> {
    pub ipu: IpuId,
    pub lane: &'a LaneItemList,
    pub item: &'a LaneItem,
    pub rect: Rect,
}

/// The bar of a scene at a place on the screen, or very near to it.
pub(crate) fn hit<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
    at: Pos2,
) -> Option<LaneHit<'a>> {
    let y = f64::from(at.y - layout.regions.lanes.top()) + layout.scroll;
    let inside =
        |block: &&IpuLaneLayout<'_>| block.top <= y && y < block.top + f64::from(block.height());
    let block = layout.blocks.iter().find(inside)?;
    let (sub_lane, row) = block.row_at((y - block.top) as f32 - block.marks)?;
    let ipu = scene.ipus.iter().find(|ipu| ipu.ipu == block.lanes.ipu)?;
    let lane = ipu.lanes.get(sub_lane)?;
    // Below 0 is left of the run, where no bars are.
    let cycle = Cycles(u64::try_from(layout.cycle_at(at.x)).ok()?);
    // Points turned into cycles: a hair of a bar is as easy to hit at any zoom.
    let slack = Cycles((layout.axis.scale() * f64::from(HIT_TOLERANCE)) as u64);
    let item = lane.hit(row, cycle, slack)?;
    let LaneItem { row, range, full_height, .. } = *item;
    // Placed by this frame's axis, even if the scene is older: its image is drawn there too.
    let rect = layout.bar(block, BarPosition { sub_lane, row, range, full_height });
    Some(LaneHit { ipu: ipu.ipu, lane, item, rect })
}
