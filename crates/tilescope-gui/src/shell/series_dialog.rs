//! The dialog around a series of reports.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::session::AppSession;
use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{Align, Context, Frame, Id, Label, Layout, Margin, Modal, RichText, ScrollArea};

/// Widest the dialog gets.
const WIDTH: f32 = 1160.0;
/// Height of its title and of what is around it.
const AROUND: f32 = 96.0;

/// The dialog, over everything else, while it is open.
pub(crate) fn series_dialog_ui(
    context: &Context,
    session: &mut AppSession,
    commands: &CommandQueue,
) {
    let Some(mut series) = session.dialogs_mut().take_series() else { return };
    let workers = session.workers().clone();
    let pinned = session.pinned_baseline().map(ToOwned::to_owned);
    let room = context.content_rect().size();
    let margin = if room.x < 600.0 { 10 } else { 20 };
    let frame = Frame::window(&context.global_style()).inner_margin(Margin::same(margin));
    let response = Modal::new(Id::unique("series dialog")).frame(frame).show(context, |ui| {
        ui.set_width(WIDTH.min(room.x - 2.0 * f32::from(margin) - 20.0));
        ui.horizontal(|ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button_ui(ui, Icon::Close, "Close the series").clicked() {
                    ui.close();
                }
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    ui.add(Label::new(RichText::new(series.title()).heading()).truncate());
                });
            });
        });
        let height = (room.y - AROUND).max(120.0);
        let area = ScrollArea::vertical().id_salt("series").max_height(height);
        area.min_scrolled_height(height).auto_shrink([false, true]).show(ui, |ui| {
            series.ui(ui, &workers, pinned.as_deref(), commands);
        });
    });
    if response.should_close() {
        commands.push(AppCommand::CloseSeries);
    }
    session.dialogs_mut().put_series_back(series);
}
