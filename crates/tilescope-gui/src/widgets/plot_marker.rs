//! Markers of plots, which differ by shape as well as by colour, and their legends.

use crate::theme::{ThemePalette, text_size};
use egui::{Align2, Color32, FontId, Pos2, Response, Sense, Shape, Stroke, Ui, pos2, vec2};
use egui_plot::MarkerShape;
use tilescope_analysis::figures::Marker;

/// The radius of a point.
pub(crate) const RADIUS: f32 = 4.5;
/// The width of the line around a point, because some colours are hardly visible on the page.
pub(crate) const OUTLINE: f32 = 0.7;

/// The shape of a marker in plots.
pub(crate) fn marker_shape(marker: Marker) -> MarkerShape {
    match marker {
        Marker::Circle => MarkerShape::Circle,
        Marker::Diamond => MarkerShape::Diamond,
        Marker::Square => MarkerShape::Square,
        Marker::Up => MarkerShape::Up,
        Marker::Down => MarkerShape::Down,
        Marker::Left => MarkerShape::Left,
        Marker::Right => MarkerShape::Right,
        Marker::Plus => MarkerShape::Plus,
        Marker::Cross => MarkerShape::Cross,
    }
}

/// A marker outside a plot, drawn as `egui_plot` draws it inside one.
fn drawn_marker(marker: Marker, centre: Pos2, radius: f32, colour: Color32) -> Shape {
    let strokes: [[(f32, f32); 2]; 2] = match marker {
        Marker::Circle => return Shape::circle_filled(centre, radius, colour),
        Marker::Plus => [[(-1.0, 0.0), (1.0, 0.0)], [(0.0, -1.0), (0.0, 1.0)]],
        Marker::Cross => [[(-0.7, -0.7), (0.7, 0.7)], [(-0.7, 0.7), (0.7, -0.7)]],
        _ => {
            let mut points = Vec::new();
            for (x, y) in marker.corners() {
                points.push(centre + vec2(*x as f32, *y as f32) * radius);
            }
            return Shape::convex_polygon(points, colour, Stroke::NONE);
        }
    };
    let mut lines = Vec::new();
    for ends in strokes {
        let ends = ends.map(|(x, y)| centre + vec2(x, y) * radius);
        lines.push(Shape::line_segment(ends, Stroke::new(1.5, colour)));
    }
    Shape::Vec(lines)
}

/// A marker and its meaning.
pub(crate) fn marker_label_ui(
    ui: &mut Ui,
    marker: Marker,
    colour: Color32,
    text: &str,
) -> Response {
    let palette = ThemePalette::for_ui(ui);
    let font = FontId::proportional(text_size::SMALL);
    let galley = ui.painter().layout_no_wrap(text.to_owned(), font, palette.weak_text);
    let size = vec2(galley.size().x + 16.0, 18.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let centre = pos2(rect.left() + 6.0, rect.center().y);
    for (radius, colour) in [(RADIUS + OUTLINE, palette.weak_text), (RADIUS, colour)] {
        ui.painter().add(drawn_marker(marker, centre, radius, colour));
    }
    let at =
        Align2::LEFT_CENTER.anchor_size(pos2(rect.left() + 16.0, rect.center().y), galley.size());
    ui.painter().galley(at.min, galley, palette.weak_text);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::accesskit::Role::Label, true, text));
    response
}
