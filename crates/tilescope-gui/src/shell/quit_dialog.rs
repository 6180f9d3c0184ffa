//! The question before something is lost.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::dialog::{MARGIN, dialog_ui};
use crate::shell::session::AppSession;
use crate::theme::spacing;
use egui::{Context, Label};

/// Asks before quitting while the question is open: the losses and both answers.
pub(crate) fn quit_dialog_ui(context: &Context, session: &AppSession, commands: &CommandQueue) {
    if !session.dialogs().asks_to_quit() {
        return;
    }
    let response = dialog_ui(context, "quit", (420.0, MARGIN), |ui| {
        ui.heading("Quit?");
        for sentence in session.what_would_be_lost() {
            ui.add(Label::new(sentence).wrap());
        }
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            let stay = ui.button("Keep working");
            // Neither Enter nor Escape loses anything.
            if ui.memory(|memory| memory.focused().is_none()) {
                stay.request_focus();
            }
            if stay.clicked() {
                commands.push(AppCommand::AnswerQuit(false));
            }
            if ui.button("Quit without saving").clicked() {
                commands.push(AppCommand::AnswerQuit(true));
            }
        });
    });
    if response.should_close() {
        commands.push(AppCommand::AnswerQuit(false));
    }
}
