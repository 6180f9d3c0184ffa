//! The dialog around a series of reports.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::dialog::large_dialog_ui;
use crate::shell::session::AppSession;
use egui::Context;

/// The largest width of the dialog.
const WIDTH: f32 = 1160.0;

/// Shows the dialog over everything else, while it is open.
pub(crate) fn series_dialog_ui(
    context: &Context,
    session: &mut AppSession,
    commands: &CommandQueue,
) {
    let Some(mut series) = session.dialogs_mut().take_series() else { return };
    let workers = session.workers().clone();
    let pinned = session.pinned_baseline().map(ToOwned::to_owned);
    let words = (series.title(), "Close the series");
    let closes = large_dialog_ui(context, "series", WIDTH, words, |ui| {
        series.ui(ui, &workers, pinned.as_deref(), commands);
    });
    if closes {
        commands.push(AppCommand::CloseSeries);
    }
    session.dialogs_mut().put_series_back(series);
}
