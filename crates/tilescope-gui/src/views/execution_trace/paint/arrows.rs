//! Arrows from exchanges between IPUs to the steps that work on what arrives.

use super::TracePainter;
use crate::theme::numbers;
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{FlowArrowItem, HEAD};
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::epaint::CubicBezierShape;
use egui::{Color32, Painter, Pos2, Shape, Stroke, Vec2, vec2};
use tilescope_analysis::trace::FlowArrow;
use tilescope_report::units::{Cycles, NumberFormat};

impl TracePainter<'_> {
    /// Paints arrows; those of the chosen step stand out.
    pub(super) fn arrows_ui(&self, arrows: &[FlowArrowItem<'_>]) {
        let palette = self.palette;
        for FlowArrowItem { start, end, sent, visible, own, arrow } in arrows {
            let colour = if *own { palette.selection } else { palette.text.gamma_multiply(0.6) };
            let stroke = Stroke::new(if *own { 2.5 } else { 1.0 }, colour);
            curve(&self.painter, *start, *end, stroke);
            let part = (arrow.step, arrow.link.from, arrow.link.to);
            let node = id(self.ui, "arrow").with(part);
            let words = || (words(arrow, numbers(self.ui)), cycles(*sent, arrow));
            node_ui(self.ui, node, *visible, Role::GraphicsObject, words);
        }
    }
}

/// `64 KiB from IPU 0 to IPU 1`
fn words(arrow: &FlowArrow, numbers: NumberFormat) -> String {
    let bytes = arrow.link.bytes.map_or_else(|| "Data".to_owned(), |moved| numbers.bytes(moved.0));
    format!("{bytes} from IPU {} to IPU {}", arrow.link.from, arrow.link.to)
}

fn cycles(sent: Cycles, arrow: &FlowArrow) -> String {
    format!("sent by {sent}, used from {} on", arrow.used.start)
}

/// A curve that leaves and arrives upright, with a head at its end.
fn curve(painter: &Painter, start: Pos2, end: Pos2, stroke: Stroke) {
    let bend = vec2(0.0, (end.y - start.y) * 0.5);
    let down = if end.y >= start.y { 1.0 } else { -1.0 };
    // The curve ends where the head begins, or its stroke would blunt the tip.
    let neck = end - vec2(0.0, HEAD * down);
    let points = [start, start + bend, neck - bend, neck];
    painter.add(CubicBezierShape::from_points_stroke(points, false, Color32::TRANSPARENT, stroke));
    painter.circle_filled(start, stroke.width + 1.2, stroke.color);
    let side = Vec2::new(HEAD * 0.55, 0.0);
    let head = vec![end, neck - side, neck + side];
    painter.add(Shape::convex_polygon(head, stroke.color, Stroke::NONE));
}
