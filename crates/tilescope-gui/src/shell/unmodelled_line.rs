//! The line above every view of a report with figures that depend on unmodelled operators.

use crate::model::open_report::OpenReport;
use crate::theme::ThemePalette;
use crate::widgets::icons::{self, Icon};
use egui::{Frame, Label, Margin, Panel, RichText, Sense, Ui, Vec2};

/// The side of the icon at the start of the line, in points.
const ICON: f32 = 18.0;

/// A line for each report with unmodelled operators, with the share of its figures that depends on
/// them.
pub(crate) fn unmodelled_lines_ui<'a>(ui: &mut Ui, reports: impl Iterator<Item = &'a OpenReport>) {
    for (at, opened) in reports.enumerate() {
        let Some(words) = &opened.unmodelled else { continue };
        let palette = ThemePalette::for_ui(ui);
        let text = format!("{}: {words}", opened.name());
        let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(12, 5));
        Panel::top(format!("unmodelled {at}")).resizable(false).frame(frame).show(ui, |ui| {
            ui.horizontal(|ui| {
                let (rect, _) = ui.allocate_exact_size(Vec2::splat(ICON), Sense::hover());
                icons::paint(ui.painter(), rect, Icon::Warning, palette.warning);
                let label = Label::new(RichText::new(&text).color(palette.text)).truncate();
                ui.add(label.selectable(true)).on_hover_text(&text);
            });
        });
    }
}
