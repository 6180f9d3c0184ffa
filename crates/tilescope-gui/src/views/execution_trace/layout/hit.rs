//! What is at a place on the screen: a bar, or a column of shares.

use super::{BarPosition, IpuLaneLayout, TraceLayout};
use crate::views::execution_trace::scene::TraceScene;
use egui::{Pos2, Rect};
use tilescope_analysis::trace::{LaneItem, LaneShares, LinkColumn, ShareColumn};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu};

/// Distance at which the pointer hits a narrow bar.
const HIT_TOLERANCE: f32 = 3.0;

/// What is under the pointer.
pub(crate) struct LaneHit<'a> {
    /// The IPU, and the replicas it is of.
    pub at: ReplicaIpu,
    /// Group of tiles.
    pub sub_lane: u8,
    pub target: LaneHitTarget<'a>,
    pub range: CycleRange,
    pub rect: Rect,
}

/// What a lane shows at a place.
pub(crate) enum LaneHitTarget<'a> {
    Bar(&'a LaneItem),
    Column(&'a ShareColumn),
}

/// What a scene shows at a place on the screen, or very near to it.
pub(crate) fn hit<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
    at: Pos2,
) -> Option<LaneHit<'a>> {
    if !layout.regions.lanes.contains(at) {
        return None;
    }
    let y = f64::from(at.y - layout.regions.lanes.top()) + layout.scroll;
    let inside =
        |block: &&IpuLaneLayout<'_>| block.top <= y && y < block.top + f64::from(block.height());
    let block = layout.blocks.iter().find(inside)?;
    let (index, row) = block.row_at((y - block.top) as f32 - block.marks)?;
    let ipu = scene.ipus.iter().find(|ipu| ipu.at == block.lanes.at)?;
    let lane = ipu.lanes.get(index)?;
    // Below 0 is left of the run, where no bars are.
    let cycle = Cycles(u64::try_from(layout.cycle_at(at.x)).ok()?);
    let (target, position) = match ipu.shares.get(index) {
        Some(shares) => column(shares, index, cycle)?,
        None => {
            // Points turned into cycles: a hair of a bar is as easy to hit at any zoom.
            let slack = Cycles((layout.axis.scale() * f64::from(HIT_TOLERANCE)) as u64);
            let item = lane.hit(row, cycle, slack)?;
            let LaneItem { row, range, full_height, .. } = *item;
            let position = BarPosition { sub_lane: index, row, range, full_height };
            (LaneHitTarget::Bar(item), position)
        }
    };
    // Placed by this frame's axis, even if the scene is older: its image is drawn there too.
    let (range, rect) = (position.range, layout.bar(block, position));
    Some(LaneHit { at: ipu.at, sub_lane: lane.sub_lane, target, range, rect })
}

/// A column of the strip of links of an IPU.
pub(crate) struct LinkHit {
    pub column: LinkColumn,
    pub range: CycleRange,
}

/// The column of a strip of links at a place on the screen.
pub(crate) fn link_hit(layout: &TraceLayout<'_>, scene: &TraceScene, at: Pos2) -> Option<LinkHit> {
    let inside = |block: &&IpuLaneLayout<'_>| layout.links(block).contains(at);
    let block = layout.blocks.iter().find(inside).filter(|_| layout.regions.lanes.contains(at))?;
    let traffic = &scene.ipus.iter().find(|ipu| ipu.at == block.lanes.at)?.links.as_ref()?.traffic;
    let column = traffic.column_at(Cycles(u64::try_from(layout.cycle_at(at.x)).ok()?))?;
    Some(LinkHit { column: *traffic.columns.get(column)?, range: traffic.range(column) })
}

/// The column that holds a cycle, if anything runs in it.
fn column(
    shares: &LaneShares,
    sub_lane: usize,
    cycle: Cycles,
) -> Option<(LaneHitTarget<'_>, BarPosition)> {
    let at = shares.column_at(cycle)?;
    let column = shares.columns().get(at).filter(|column| !column.cycles.total().is_zero())?;
    let range = shares.range(at);
    let position = BarPosition { sub_lane, row: 0, range, full_height: true };
    Some((LaneHitTarget::Column(column), position))
}
