//! Points of plots that are told apart by shape as well as by colour, and what they stand for.

use crate::theme::{ThemePalette, text_size};
use egui::{Align2, Color32, FontId, Pos2, Response, Sense, Shape, Stroke, Ui, pos2, vec2};
use egui_plot::MarkerShape;

/// Radius of a point, and width of the line around it: some colours are hardly seen on the page.
pub(crate) const RADIUS: f32 = 4.5;
pub(crate) const OUTLINE: f32 = 0.7;

/// Corners of a shape on a circle of radius 1; none for a circle.
fn corners(shape: MarkerShape) -> &'static [(f32, f32)] {
    match shape {
        MarkerShape::Diamond => &[(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)],
        MarkerShape::Square => &[(-0.75, -0.75), (0.75, -0.75), (0.75, 0.75), (-0.75, 0.75)],
        MarkerShape::Up => &[(0.0, -1.0), (0.87, 0.5), (-0.87, 0.5)],
        MarkerShape::Down => &[(0.0, 1.0), (-0.87, -0.5), (0.87, -0.5)],
        MarkerShape::Left => &[(-1.0, 0.0), (0.5, -0.87), (0.5, 0.87)],
        MarkerShape::Right => &[(1.0, 0.0), (-0.5, 0.87), (-0.5, -0.87)],
        _ => &[],
    }
}

fn marker_shape(shape: MarkerShape, centre: Pos2, radius: f32, colour: Color32) -> Shape {
    let line = |from: (f32, f32), to: (f32, f32)| {
        let at = |(x, y): (f32, f32)| centre + vec2(x, y) * radius;
        Shape::line_segment([at(from), at(to)], Stroke::new(1.5, colour))
    };
    match shape {
        MarkerShape::Circle => Shape::circle_filled(centre, radius, colour),
        MarkerShape::Plus => {
            Shape::Vec(vec![line((-1.0, 0.0), (1.0, 0.0)), line((0.0, -1.0), (0.0, 1.0))])
        }
        MarkerShape::Cross => {
            Shape::Vec(vec![line((-0.7, -0.7), (0.7, 0.7)), line((-0.7, 0.7), (0.7, -0.7))])
        }
        shape => {
            let corners = corners(shape).iter();
            let points = corners.map(|(x, y)| centre + vec2(*x, *y) * radius).collect();
            Shape::convex_polygon(points, colour, Stroke::NONE)
        }
    }
}

/// A marker and what it stands for.
pub(crate) fn marker_label_ui(
    ui: &mut Ui,
    shape: MarkerShape,
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
        ui.painter().add(marker_shape(shape, centre, radius, colour));
    }
    let at =
        Align2::LEFT_CENTER.anchor_size(pos2(rect.left() + 16.0, rect.center().y), galley.size());
    ui.painter().galley(at.min, galley, palette.weak_text);
    response.widget_info(|| egui::WidgetInfo::labeled(egui::accesskit::Role::Label, true, text));
    response
}
