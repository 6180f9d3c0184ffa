//! The dialog around a search for a better spec, and around files of results.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::dialog::large_dialog_ui;
use crate::shell::session::AppSession;
use crate::shell::spec_queries::SPEC_QUERIES;
use egui::Context;

/// The largest width of the dialog.
const WIDTH: f32 = 1100.0;

/// Shows the dialog over everything else, while it is open.
pub(crate) fn search_dialog_ui(
    context: &Context,
    session: &mut AppSession,
    commands: &CommandQueue,
) {
    session.dialogs_mut().poll_searches();
    let Some(mut search) = session.dialogs_mut().take_search() else { return };
    let busy = session.simulation().is_some();
    let workers = session.workers().clone();
    let words = (search.title(), "Close the search");
    let closes = large_dialog_ui(context, "search", WIDTH, words, |ui| {
        search.ui(ui, (&workers, SPEC_QUERIES), busy, commands);
    });
    if closes {
        commands.push(AppCommand::CloseSpecSearch);
    }
    session.dialogs_mut().put_search_back(search);
}
