//! The overlays on the view: the command palette, lists, dialogs.

mod bookmarks;
mod command_palette;
mod export_dialog;
mod help;
mod lane_picture;
mod preferences;
mod shortcut_list;

use crate::model::command::{AppCommand, CommandQueue, OverlayKind};
use crate::model::mechanism_page::MechanismPage;
use crate::shell::dialog::{self, MARGIN, dialog_ui};
use crate::shell::session::AppSession;
use egui::{Context, Ui};

/// The overlay on the view, with its state.
pub(crate) struct OverlayState {
    pub kind: OverlayKind,
    /// The text typed into the overlay.
    typed: String,
    /// The entry that Enter selects.
    selected_entry: usize,
    /// True if it has been painted before.
    was_painted: bool,
    /// The action that waits for a new key.
    pub capturing_shortcut_for: Option<&'static str>,
    /// The page that help begins with, if it is not that of the view.
    mechanism: Option<MechanismPage>,
}

impl OverlayState {
    pub(crate) fn new(kind: OverlayKind) -> Self {
        Self {
            kind,
            typed: String::new(),
            selected_entry: 0,
            was_painted: false,
            capturing_shortcut_for: None,
            mechanism: None,
        }
    }

    /// Help that begins with the page of a mechanism.
    pub(crate) fn of_mechanism(page: MechanismPage) -> Self {
        Self { mechanism: Some(page), ..Self::new(OverlayKind::Help) }
    }
}

/// Paints the overlay, if one is open.
pub(crate) fn overlay_ui(context: &Context, session: &mut AppSession, commands: &CommandQueue) {
    let Some(mut overlay) = session.dialogs_mut().take_overlay() else { return };
    let width = match overlay.kind {
        OverlayKind::Shortcuts => 520.0,
        OverlayKind::Help => 920.0,
        _ => 560.0,
    };
    let response = dialog_ui(context, "overlay", (width, MARGIN), |ui| match overlay.kind {
        OverlayKind::CommandPalette => {
            command_palette::commands_ui(ui, &mut overlay, session, commands)
        }
        OverlayKind::Shortcuts => shortcut_list::keys_ui(ui, session.prefs()),
        OverlayKind::Bookmarks => bookmarks::bookmarks_ui(ui, &overlay, session, commands),
        OverlayKind::Preferences => {
            preferences::preferences_ui(ui, &mut overlay, session, commands);
        }
        OverlayKind::Help => help::help_ui(ui, &mut overlay, session),
        OverlayKind::ExportDialog => export_dialog::save_ui(ui, &mut overlay, session, commands),
    });
    overlay.was_painted = true;
    if response.should_close() {
        commands.push(AppCommand::Overlay(None));
    }
    session.dialogs_mut().put_overlay_back(overlay);
}

/// A heading with a close button at the right.
fn heading_ui(ui: &mut Ui, title: &str) {
    dialog::heading_ui(ui, title, &format!("Close {}", title.to_lowercase()));
}

/// The height left for scrolling contents.
fn scroll_height(ui: &Ui) -> f32 {
    (ui.ctx().content_rect().height() - 160.0).max(80.0)
}
