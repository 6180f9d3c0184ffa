//! Arrows from exchanges between IPUs to the steps that work on what arrives, and the row of the
//! host above the lanes.

use super::lane_layout::{IpuLaneLayout, TraceViewLayout};
use super::scene::TraceScene;
use super::{ExecutionTraceView, id};
use crate::theme::{ThemePalette, mix, numbers};
use crate::widgets::node_ui;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use egui::accesskit::Role;
use egui::epaint::CubicBezierShape;
use egui::{Color32, Painter, Pos2, Rect, Shape, Stroke, Ui, Vec2, pos2, vec2};
use tilescope_analysis::trace::{FlowArrow, HostActivity};
use tilescope_report::units::{NumberFormat, StepId};

/// Length of an arrow's head.
const HEAD: f32 = 7.0;
/// Narrowest part of the host's row that gets a node.
const LEAST_NODE: f32 = 12.0;

impl ExecutionTraceView {
    /// Paints the arrows of a scene; those of the chosen step stand out.
    pub(super) fn arrows_ui(
        &self,
        ui: &Ui,
        scene: &TraceScene,
        blocks: &[IpuLaneLayout<'_>],
        (places, axis): (&TraceViewLayout, PanZoomAxis),
        chosen: Option<StepId>,
    ) {
        let palette = ThemePalette::for_ui(ui);
        let painter = ui.painter_at(places.lanes);
        let place = |ipu: u32| {
            let block = blocks.iter().find(|block| block.lanes.ipu == ipu)?;
            let top = places.lanes.top() + (block.top - self.scroll) as f32 + block.marks;
            Some((top, top + block.tiles_top() - block.marks))
        };
        for arrow in &scene.arrows {
            let (Some(from), Some(to)) = (place(arrow.link.from), place(arrow.link.to)) else {
                continue;
            };
            let x = |cycle: u64| places.lanes.left() + axis.x_from_position(cycle);
            let down = to.0 > from.0;
            let start = pos2(x(arrow.sent.end.0), (from.0 + from.1) / 2.0);
            // Into the lane, as far as a row is high.
            let depth = ((to.1 - to.0) * 0.25).min(10.0);
            let end = pos2(x(arrow.used.start.0), if down { to.0 + depth } else { to.1 - depth });
            let both = Rect::from_two_pos(start, end).expand(HEAD);
            if !both.intersects(places.lanes) {
                continue;
            }
            let own = chosen == Some(arrow.step);
            let colour = if own { palette.selection } else { palette.text.gamma_multiply(0.6) };
            let stroke = Stroke::new(if own { 2.5 } else { 1.0 }, colour);
            curve(&painter, start, end, stroke);
            let visible = both.intersect(places.lanes);
            let node = id(ui, "arrow").with((arrow.step.0, arrow.link.from, arrow.link.to));
            node_ui(ui, node, visible, Role::GraphicsObject, || {
                (words(arrow, numbers(ui)), cycles(arrow))
            });
        }
    }

    /// The row of the host: when IPUs wait for it, and when it moves data.
    pub(super) fn host_ui(&self, ui: &Ui, rect: Rect, axis: PanZoomAxis, scene: &TraceScene) {
        let palette = ThemePalette::for_ui(ui);
        let painter = ui.painter_at(rect);
        for (range, work) in &scene.host {
            let left = rect.left() + axis.x_from_position(range.start.0);
            let right = (rect.left() + axis.x_from_position(range.end.0)).max(left + 1.0);
            if right < rect.left() || left > rect.right() {
                continue;
            }
            // Waiting is low, moving is high: no colour is needed to tell them apart.
            let height = rect.height() - 2.0;
            let top = match work {
                HostActivity::WaitingForHost => rect.top() + height * 0.6,
                HostActivity::Mixed => rect.top() + height * 0.3,
                HostActivity::Transferring => rect.top(),
            };
            let bar = Rect::from_min_max(pos2(left, top), pos2(right, rect.top() + height));
            painter.rect_filled(bar, 0.0, host_colour(palette, *work));
            if right - left >= LEAST_NODE {
                let node = id(ui, "host").with(range.start);
                let value = || format!("{} cycles", range.length());
                let words = || (host_words(*work).to_owned(), value());
                node_ui(ui, node, bar.intersect(rect), Role::Cell, words);
            }
        }
    }
}

/// Colours of the host's row.
pub(super) fn host_colour(palette: &ThemePalette, work: HostActivity) -> Color32 {
    match work {
        HostActivity::WaitingForHost => mix(palette.stream_begin, palette.text, 0.2),
        HostActivity::Mixed => mix(palette.stream_begin, palette.stream_mid, 0.5),
        HostActivity::Transferring => palette.stream_mid,
    }
}

/// What a part of the host's row means.
pub(super) fn host_words(work: HostActivity) -> &'static str {
    match work {
        HostActivity::WaitingForHost => "Host row, low: an IPU waits for the host",
        HostActivity::Mixed => "Host row, half: copies narrower than a pixel",
        HostActivity::Transferring => "Host row, high: data from or to the host moves",
    }
}

/// `64 KiB from IPU 0 to IPU 1`
fn words(arrow: &FlowArrow, numbers: NumberFormat) -> String {
    let bytes = arrow.link.bytes.map_or_else(|| "Data".to_owned(), |moved| numbers.bytes(moved.0));
    format!("{bytes} from IPU {} to IPU {}", arrow.link.from, arrow.link.to)
}

fn cycles(arrow: &FlowArrow) -> String {
    format!("sent by {}, used from {} on", arrow.sent.end, arrow.used.start)
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
