//! The bookmarks of a report: open, rename, annotate, delete.

use super::{OverlayState, heading_ui, scroll_height};
use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::session::AppSession;
use crate::theme::spacing;
use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{Align, Layout, RichText, ScrollArea, TextEdit, Ui};

pub(crate) fn bookmarks_ui(
    ui: &mut Ui,
    overlay: &OverlayState,
    session: &AppSession,
    commands: &CommandQueue,
) {
    heading_ui(ui, "Bookmarks");
    let Some(page) = session.page() else { return };
    if ui.button("Bookmark this view").clicked() {
        commands.push(AppCommand::AddBookmark);
    }
    let mut bookmarks = page.tab.notes.bookmarks.clone();
    if bookmarks.is_empty() {
        let text = "No bookmarks yet.";
        ui.weak(text);
    }
    let mut gone = None;
    let mut changed = false;
    ScrollArea::vertical().max_height(scroll_height(ui)).auto_shrink([false, true]).show(
        ui,
        |ui| {
            for (at, bookmark) in bookmarks.iter_mut().enumerate() {
                ui.add_space(spacing::S);
                ui.horizontal(|ui| {
                    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                        let forget = format!("Delete bookmark {}", at + 1);
                        if icon_button_ui(ui, Icon::Close, &forget).clicked() {
                            gone = Some(at);
                        }
                        let go = ui.button("Go there");
                        if go.on_hover_text(&bookmark.link).clicked() {
                            commands.push(AppCommand::Overlay(None));
                            commands.push(AppCommand::OpenLink(bookmark.link.clone()));
                        }
                        let name = TextEdit::singleline(&mut bookmark.name)
                            .desired_width(ui.available_width() - 18.0);
                        let label = format!("Name of bookmark {}", at + 1);
                        let name = ui.add(name).accessible_name(&label);
                        changed |= name.changed();
                        if at == 0 && !overlay.was_painted {
                            name.request_focus();
                        }
                    });
                });
                let hint = RichText::new("Note").weak();
                let note = TextEdit::multiline(&mut bookmark.note)
                    .desired_rows(1)
                    .hint_text(hint)
                    .desired_width(ui.available_width() - 18.0);
                let label = format!("Note of bookmark {}", at + 1);
                changed |= ui.add(note).accessible_name(&label).changed();
            }
        },
    );
    if let Some(at) = gone {
        bookmarks.remove(at);
    }
    if changed || gone.is_some() {
        commands.push(AppCommand::SetBookmarks(bookmarks));
    }
}
