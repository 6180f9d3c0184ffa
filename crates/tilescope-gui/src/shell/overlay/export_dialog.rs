//! The dialog that saves the visible view as a picture or a table.

use super::{OverlayState, heading_ui};
use crate::model::command::{AppCommand, CommandQueue};
use crate::model::export_request::{ExportContent, ExportRequest};
use crate::model::preferences::AppearancePrefs;
use crate::shell::session::AppSession;
use crate::widgets::choice_ui;
use egui::text::CCursorRange;
use egui::{Key, TextEdit, Ui};
use std::path::PathBuf;
use tilescope_analysis::tables;

pub(crate) fn save_ui(
    ui: &mut Ui,
    overlay: &mut OverlayState,
    session: &AppSession,
    commands: &CommandQueue,
) {
    heading_ui(ui, "Save");
    let Some(page) = session.page() else { return };
    let compared = page.compared().map(|with| with.tables()).unwrap_or_default();
    let choices: Vec<ExportContent> = [ExportContent::Png, ExportContent::Svg, ExportContent::Page]
        .into_iter()
        .chain(compared.into_iter().map(ExportContent::Differences))
        .chain(tables::of_view(page.view().name()).map(|table| ExportContent::Table(table.name)))
        .collect();
    let titles: Vec<(usize, String)> =
        choices.iter().map(ExportContent::title).enumerate().collect();
    let titles: Vec<(usize, &str)> =
        titles.iter().map(|(at, title)| (*at, title.as_str())).collect();
    let mut fresh = !overlay.was_painted;
    ui.horizontal(|ui| {
        if let Some(at) = choice_ui(ui, "Content", &titles, overlay.selected_entry) {
            overlay.selected_entry = at;
            fresh = true;
        }
    });
    let Some(what) = choices.get(overlay.selected_entry).copied() else { return };
    if fresh {
        overlay.typed = what.file_name(&page.opened().name(), page.view().name());
    }
    let edit = TextEdit::singleline(&mut overlay.typed).desired_width(ui.available_width() - 18.0);
    let output = edit.show(ui);
    let typed = output.response.response.accessible_name("File to write");
    if !overlay.was_painted {
        typed.request_focus();
        // Typing replaces the proposed name.
        let all = CCursorRange::select_all(&output.galley);
        let mut state = output.state;
        state.cursor.set_char_range(Some(all));
        state.store(ui.ctx(), typed.id);
    }
    let entered = typed.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
    let zoom = ui.ctx().zoom_factor();
    let text_percent = (zoom * 100.0).round() as u16;
    let size = ui.ctx().content_rect().size() * zoom;
    let size = (size.x.round() as u32, size.y.round() as u32);
    let text = match what {
        ExportContent::Table(_) | ExportContent::Differences(_) => {
            "The whole table, with unformatted numbers.".to_owned()
        }
        ExportContent::Page => {
            "One file to send: summary, insights, trace, limits, memory and operations.".to_owned()
        }
        ExportContent::Png | ExportContent::Svg => {
            format!("{} x {} pixels, in the theme of the window.", size.0, size.1)
        }
    };
    ui.weak(text);
    let path = overlay.typed.trim();
    let clicked = ui.add_enabled(!path.is_empty(), egui::Button::new("Save")).clicked();
    if (clicked || entered) && !path.is_empty() {
        let path = PathBuf::from(path);
        let dark = ui.ctx().theme() == egui::Theme::Dark;
        // The window may be zoomed too.
        let look = AppearancePrefs { text_percent, ..session.prefs().look };
        let saving = ExportRequest { what, path, size, look, dark };
        commands.push(AppCommand::Overlay(None));
        commands.push(AppCommand::Export(saving));
    }
}
