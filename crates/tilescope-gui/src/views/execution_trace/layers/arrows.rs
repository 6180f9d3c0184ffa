//! The layer of arrows from exchanges between IPUs to the steps that use the data.

use super::TracePainter;
use crate::theme::numbers;
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::TraceLayout;
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::views::execution_trace::scene::{IpuLaneScene, TraceScene, TraceSceneKey};
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::epaint::CubicBezierShape;
use egui::{Color32, Painter, Pos2, Rect, Shape, Stroke, Vec2, pos2, vec2};
use std::collections::BTreeSet;
use tilescope_analysis::trace::{FlowArrow, LaneItemKind, arrows};
use tilescope_report::units::{Cycles, NumberFormat, ReplicaClassId, ReplicaIpu, StepId};
use tilescope_report::{ProgramKind, ReportError};

/// The width in pixels from which an exchange has arrows without being selected.
const LEAST_SENDER: f64 = 10.0;
/// The largest number of exchanges in a window that have arrows.
const MAX_SENDERS: usize = 64;
/// The length of an arrowhead.
const HEAD: f32 = 7.0;

/// Reads the arrows between the IPUs of each visible replica class.
pub(crate) fn read(
    prepared: &LoadedTrace,
    ipus: &[IpuLaneScene],
    key: &TraceSceneKey,
) -> Result<Vec<(ReplicaClassId, FlowArrow)>, ReportError> {
    let classes: BTreeSet<ReplicaClassId> = ipus.iter().map(|ipu| ipu.at.class).collect();
    let mut found = Vec::new();
    for class in classes {
        let Some(trace) = prepared.trace.of_class(class) else { continue };
        let steps = exchanges(ipus, class, key);
        let arrows = arrows(&trace, &prepared.links, &steps)?;
        found.extend(arrows.into_iter().map(|arrow| (class, arrow)));
    }
    Ok(found)
}

/// The widest exchanges between the IPUs of a replica class that are wide enough for arrows.
fn exchanges(ipus: &[IpuLaneScene], class: ReplicaClassId, key: &TraceSceneKey) -> Vec<StepId> {
    // Convert pixels to cycles, so that the filter below compares integers.
    let least = (key.window.length().as_f64() / key.width.max(1) as f64 * LEAST_SENDER) as u64;
    let own = ipus.iter().filter(|ipu| ipu.at.class == class);
    let items = own.flat_map(|ipu| &ipu.lanes).flat_map(|lane| &lane.items);
    let mut found: Vec<(Cycles, StepId)> = items
        .filter(|item| item.range.length() >= Cycles(least.max(1)))
        .filter_map(|item| match item.kind {
            LaneItemKind::Step(step) if step.kind == ProgramKind::GlobalExchange => {
                Some((item.range.length(), step.step))
            }
            _ => None,
        })
        .collect();
    found.sort_unstable_by_key(|(length, step)| (std::cmp::Reverse(*length), *step));
    // An exchange has a bar on every IPU that takes part, usually of the same length.
    found.dedup_by_key(|(_, step)| *step);
    found.truncate(MAX_SENDERS);
    let mut steps: Vec<StepId> = found.into_iter().map(|(_, step)| step).collect();
    // The selected step has arrows even if it is not among the widest.
    steps.extend(key.chosen);
    steps.sort_unstable();
    steps.dedup();
    steps
}

impl TracePainter<'_> {
    /// Paints the visible arrows between IPUs. Those of the selected step are highlighted.
    pub(super) fn arrows_ui(&self, scene: &TraceScene) {
        for (class, arrow) in &scene.arrows {
            self.arrow_ui(*class, arrow);
        }
    }

    fn arrow_ui(&self, class: ReplicaClassId, arrow: &FlowArrow) {
        let layout = self.layout;
        let palette = self.palette;
        let ends = [arrow.link.from, arrow.link.to];
        let [Some(from), Some(to)] = ends.map(|ipu| bars(layout, ReplicaIpu { class, ipu })) else {
            return;
        };
        let down = to.0 > from.0;
        // A step that sends to several IPUs may still run when the first of them uses its data.
        let sent = arrow.sent.end.min(arrow.used.start);
        let start = pos2(layout.x(sent), (from.0 + from.1) / 2.0);
        // The arrow ends a quarter of the height inside the lane, at most 10 points.
        let depth = ((to.1 - to.0) * 0.25).min(10.0);
        let end = pos2(layout.x(arrow.used.start), if down { to.0 + depth } else { to.1 - depth });
        // The head extends past the bounding box of the two ends.
        let both = Rect::from_two_pos(start, end).expand(HEAD);
        let lanes = layout.regions.lanes;
        let visible = both.intersect(lanes);
        if !both.intersects(lanes) {
            return;
        }
        let own = self.selected.is_some_and(|selected| selected.step == arrow.step);
        let colour = if own { palette.selection } else { palette.text.gamma_multiply(0.6) };
        let stroke = Stroke::new(if own { 2.5 } else { 1.0 }, colour);
        curve(&self.painter, start, end, stroke);
        let node = id(self.ui, "arrow").with((arrow.step, arrow.link.from, arrow.link.to));
        let cycles = || format!("sent by {sent}, first used by {}", arrow.used.start);
        let words = || (words(arrow, numbers(self.ui)), cycles());
        node_ui(self.ui, node, visible, Role::GraphicsObject, words);
    }
}

/// The upper and lower edge of the bars of an IPU.
fn bars(layout: &TraceLayout<'_>, at: ReplicaIpu) -> Option<(f32, f32)> {
    let block = layout.block_of(at)?;
    let top = layout.top(block) + block.marks;
    Some((top, top + block.tiles_top() - block.marks))
}

/// `64 KiB from IPU 0 to IPU 1`
fn words(arrow: &FlowArrow, numbers: NumberFormat) -> String {
    let bytes = arrow.link.bytes.map_or_else(|| "Data".to_owned(), |moved| numbers.bytes(moved.0));
    format!("{bytes} from IPU {} to IPU {}", arrow.link.from, arrow.link.to)
}

/// A curve with vertical ends and an arrowhead at its end.
fn curve(painter: &Painter, start: Pos2, end: Pos2, stroke: Stroke) {
    let bend = vec2(0.0, (end.y - start.y) * 0.5);
    let down = if end.y >= start.y { 1.0 } else { -1.0 };
    // The curve ends where the head begins; otherwise its stroke would blunt the tip.
    let neck = end - vec2(0.0, HEAD * down);
    let points = [start, start + bend, neck - bend, neck];
    painter.add(CubicBezierShape::from_points_stroke(points, false, Color32::TRANSPARENT, stroke));
    painter.circle_filled(start, stroke.width + 1.2, stroke.color);
    let side = Vec2::new(HEAD * 0.55, 0.0);
    let head = vec![end, neck - side, neck + side];
    painter.add(Shape::convex_polygon(head, stroke.color, Stroke::NONE));
}
