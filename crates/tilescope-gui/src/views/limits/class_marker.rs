//! What points of the roofline look like by what most of their cycles go into: colour and shape, so
//! that neither is needed to tell them apart.

use crate::theme::{ThemePalette, spacing};
use crate::widgets::figure::marker_shape;
use crate::widgets::plot_marker::marker_label_ui;
use egui::{Ui, vec2};
use egui_plot::MarkerShape;
use tilescope_analysis::figures::Marker;
use tilescope_analysis::limits::CycleClass;
use tilescope_report::units::grouped;

/// The shape of the points of a class.
pub(super) fn marker(class: CycleClass) -> MarkerShape {
    marker_shape(Marker::of_class(class))
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
