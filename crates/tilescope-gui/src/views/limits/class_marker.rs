//! What points of the roofline look like by what most of their cycles go into: colour and shape, so
//! that neither is needed to tell them apart.

use crate::theme::{ThemePalette, spacing, text_size};
use egui::{Align2, Color32, FontId, Pos2, Sense, Shape, Stroke, Ui, pos2, vec2};
use egui_plot::MarkerShape;
use tilescope_analysis::limits::CycleClass;
use tilescope_report::units::grouped;

/// Shape of the points of a class.
pub(super) fn marker(class: CycleClass) -> MarkerShape {
    match class {
        CycleClass::Compute => MarkerShape::Circle,
        CycleClass::Balance => MarkerShape::Diamond,
        CycleClass::Exchange => MarkerShape::Square,
        CycleClass::Rearrangement => MarkerShape::Up,
        CycleClass::SyncAndStart => MarkerShape::Down,
        CycleClass::Host => MarkerShape::Left,
        CycleClass::RemoteBuffers => MarkerShape::Right,
        CycleClass::Links => MarkerShape::Plus,
        CycleClass::Other => MarkerShape::Cross,
    }
}

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

/// Radius of a point, and width of the line around it: some colours are hardly seen on the page.
pub(super) const RADIUS: f32 = 4.5;
pub(super) const OUTLINE: f32 = 0.7;

/// What shapes and colours stand for, with the number of points of each.
pub(super) fn legend_ui(ui: &mut Ui, classes: &[(CycleClass, usize)]) {
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(spacing::M, 0.0);
        for (class, count) in classes {
            let text = format!("{} {}", class.title(), grouped(*count as u64));
            let font = FontId::proportional(text_size::SMALL);
            let galley = ui.painter().layout_no_wrap(text.clone(), font, palette.weak_text);
            let size = vec2(galley.size().x + 16.0, 18.0);
            let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
            let centre = pos2(rect.left() + 6.0, rect.center().y);
            let colour = palette.cycle_class(*class);
            for (radius, colour) in [(RADIUS + OUTLINE, palette.weak_text), (RADIUS, colour)] {
                ui.painter().add(marker_shape(marker(*class), centre, radius, colour));
            }
            let at = Align2::LEFT_CENTER
                .anchor_size(pos2(rect.left() + 16.0, rect.center().y), galley.size());
            ui.painter().galley(at.min, galley, palette.weak_text);
            response.widget_info(|| {
                egui::WidgetInfo::labeled(egui::accesskit::Role::Label, true, &text)
            });
            response.on_hover_text(format!(
                "Operations whose cycles mostly go into this. {}",
                class.about()
            ));
        }
    });
}
