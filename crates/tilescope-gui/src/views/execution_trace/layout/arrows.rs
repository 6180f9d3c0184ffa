//! Render items of the arrows from exchanges between IPUs to the steps that use the data.

use super::TraceLayout;
use crate::views::execution_trace::scene::TraceScene;
use egui::{Pos2, Rect, pos2};
use tilescope_analysis::trace::FlowArrow;
use tilescope_report::units::{Cycles, IpuId, ReplicaClassId, ReplicaIpu, StepId};

/// Length of an arrow's head.
pub(crate) const HEAD: f32 = 7.0;

/// An arrow on the screen.
pub(crate) struct FlowArrowItem<'a> {
    pub start: Pos2,
    pub end: Pos2,
    /// When the data that is used has been sent.
    pub sent: Cycles,
    /// The part of it that is on the screen.
    pub visible: Rect,
    /// Whether it belongs to the chosen step.
    pub own: bool,
    pub arrow: &'a FlowArrow,
}

/// The arrows of a scene between IPUs that are shown, as far as they cross the screen.
pub(crate) fn flow_arrows<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
    chosen: Option<StepId>,
) -> Vec<FlowArrowItem<'a>> {
    let arrows = scene.arrows.iter();
    arrows.filter_map(|(class, arrow)| flow_arrow(layout, *class, arrow, chosen)).collect()
}

fn flow_arrow<'a>(
    layout: &TraceLayout<'_>,
    class: ReplicaClassId,
    arrow: &'a FlowArrow,
    chosen: Option<StepId>,
) -> Option<FlowArrowItem<'a>> {
    let bars = |ipu: IpuId| {
        let block = layout.block_of(ReplicaIpu { class, ipu })?;
        let top = layout.top(block) + block.marks;
        Some((top, top + block.tiles_top() - block.marks))
    };
    let (from, to) = (bars(arrow.link.from)?, bars(arrow.link.to)?);
    let down = to.0 > from.0;
    // A step that sends to several IPUs can go on when the first of them already uses what it has.
    let sent = arrow.sent.end.min(arrow.used.start);
    let start = pos2(layout.x(sent), (from.0 + from.1) / 2.0);
    // Into the lane, as far as a row is high.
    let depth = ((to.1 - to.0) * 0.25).min(10.0);
    let end = pos2(layout.x(arrow.used.start), if down { to.0 + depth } else { to.1 - depth });
    // The head reaches beyond the box of the two ends.
    let (both, lanes) = (Rect::from_two_pos(start, end).expand(HEAD), layout.regions.lanes);
    let visible = both.intersect(lanes);
    let own = chosen == Some(arrow.step);
    both.intersects(lanes).then_some(FlowArrowItem { start, end, sent, visible, own, arrow })
}
