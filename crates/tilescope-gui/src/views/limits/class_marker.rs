//! The legend of the roofline: colours and shapes of the classes that most cycles of a point go into.

use crate::theme::{ThemePalette, spacing};
use crate::widgets::plot_marker::marker_label_ui;
use egui::{Ui, vec2};
use tilescope_analysis::figures::Marker;
use tilescope_analysis::limits::CycleClass;
use tilescope_report::units::grouped;

/// What shapes and colours stand for, with the number of points of each.
pub(super) fn legend_ui(ui: &mut Ui, classes: &[(CycleClass, usize)]) {
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal_wrapped(|ui| {
        ui.spacing_mut().item_spacing = vec2(spacing::M, 0.0);
        for (class, count) in classes {
            let text = format!("{} {}", class.title(), grouped(*count as u64));
            let marker = Marker::of_class(*class);
            let response = marker_label_ui(ui, marker, palette.cycle_class(*class), &text);
            response.on_hover_text(format!(
                "Operations whose cycles mostly go into this. {}",
                class.about()
            ));
        }
    });
}
