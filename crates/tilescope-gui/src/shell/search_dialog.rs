//! The dialog around a search for a better spec, and around files of results.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::session::AppSession;
use crate::shell::spec_queries::SPEC_QUERIES;
use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{Align, Context, Frame, Id, Label, Layout, Margin, Modal, RichText, ScrollArea};

/// Widest the dialog gets.
const WIDTH: f32 = 1100.0;
/// Height of its title and of what is around it.
const AROUND: f32 = 96.0;

/// The dialog, over everything else, while it is open.
pub(crate) fn search_dialog_ui(
    context: &Context,
    session: &mut AppSession,
    commands: &CommandQueue,
) {
    session.dialogs_mut().poll_searches();
    let Some(mut search) = session.dialogs_mut().take_search() else { return };
    let busy = session.simulation().is_some();
    let workers = session.workers().clone();
    let room = context.content_rect().size();
    let margin = if room.x < 600.0 { 10 } else { 20 };
    let frame = Frame::window(&context.global_style()).inner_margin(Margin::same(margin));
    let response = Modal::new(Id::unique("search dialog")).frame(frame).show(context, |ui| {
        ui.set_width(WIDTH.min(room.x - 2.0 * f32::from(margin) - 20.0));
        ui.horizontal(|ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button_ui(ui, Icon::Close, "Close the search").clicked() {
                    ui.close();
                }
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    ui.add(Label::new(RichText::new(search.title()).heading()).truncate());
                });
            });
        });
        let height = (room.y - AROUND).max(120.0);
        let area = ScrollArea::vertical().id_salt("search").max_height(height);
        area.min_scrolled_height(height).auto_shrink([false, true]).show(ui, |ui| {
            search.ui(ui, (&workers, SPEC_QUERIES), busy, commands);
        });
    });
    if response.should_close() {
        commands.push(AppCommand::CloseSpecSearch);
    }
    session.dialogs_mut().put_search_back(search);
}
