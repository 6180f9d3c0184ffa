//! What points of the roofline look like by what most of their cycles go into: colour and shape, so
//! that neither is needed to tell them apart.

use crate::theme::{ThemePalette, spacing};
use crate::widgets::plot_marker::marker_label_ui;
use egui::{Ui, vec2};
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

/// What shapes and colours stand for, with the number of points of each.
pub(super) fn legend_ui(ui: &mut Ui, classes: &[(CycleClass, usize)]) {
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(spacing::M, 0.0);
        for (class, count) in classes {
            let text = format!("{} {}", class.title(), grouped(*count as u64));
            let response = marker_label_ui(ui, marker(*class), palette.cycle_class(*class), &text);
            response.on_hover_text(format!(
                "Operations whose cycles mostly go into this. {}",
                class.about()
            ));
        }
    });
}
