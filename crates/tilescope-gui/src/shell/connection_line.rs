//! The line above every view of a report on another machine whose connection is lost.

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::open_report::OpenReport;
use crate::theme::ThemePalette;
use crate::widgets::icons::{self, Icon};
use egui::accesskit::{Live, Role};
use egui::{Align, Frame, Label, Layout, Margin, Panel, RichText, Sense, Ui, Vec2, WidgetInfo};

/// Side of the sign at the start of the line.
const ICON: f32 = 18.0;
/// Seconds between two looks at a connection that nothing is asked of.
const PERIOD: f32 = 2.0;

/// A line for each report whose connection is lost: why, and a button to connect again.
pub(crate) fn connection_lines_ui<'a>(
    ui: &mut Ui,
    reports: impl Iterator<Item = &'a OpenReport>,
    commands: &CommandQueue,
) {
    for (at, opened) in reports.filter(|opened| opened.report.is_remote()).enumerate() {
        ui.ctx().request_repaint_after_secs(PERIOD);
        let Some(why) = opened.report.connection_lost() else { continue };
        let palette = ThemePalette::for_ui(ui);
        let text = format!("{}: {why}", opened.name());
        let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(12, 5));
        Panel::top(format!("connection {at}")).resizable(false).frame(frame).show(ui, |ui| {
            let row = ui.horizontal(|ui| {
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    if ui.button("Reconnect").clicked() {
                        commands.push(AppCommand::Reload);
                    }
                    ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                        let (rect, _) = ui.allocate_exact_size(Vec2::splat(ICON), Sense::hover());
                        icons::paint(ui.painter(), rect, Icon::Error, palette.error);
                        let label = Label::new(RichText::new(&text).color(palette.text)).wrap();
                        ui.add(label.selectable(true));
                    });
                });
            });
            // Readers of the screen are told at once.
            let id = ui.scope_id().with("announced");
            let response = ui.interact(row.response.rect, id, Sense::hover());
            response.widget_info(|| WidgetInfo::labeled(Role::Alert, true, &text));
            ui.ctx().accesskit_node_builder(id, |node| node.set_live(Live::Assertive));
        });
    }
}
