//! The choice between the reports of a directory that holds several.

use crate::model::command::{AppCommand, CommandQueue};
use crate::shell::dialog::{MARGIN, dialog_ui};
use crate::shell::session::AppSession;
use crate::theme::spacing;
use egui::{Align, Button, Context, Label, Layout, ScrollArea};
use std::path::PathBuf;

/// A directory and its reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReportChoice {
    pub directory: PathBuf,
    /// The names in the directory; each can be opened.
    pub names: Vec<String>,
}

/// The largest height of the list before it scrolls.
const LIST_HEIGHT: f32 = 320.0;

/// Asks which report to open, while the question is open.
pub(crate) fn report_choice_ui(context: &Context, session: &AppSession, commands: &CommandQueue) {
    let Some(choice) = session.dialogs().report_choice() else { return };
    let answer = |path| commands.push(AppCommand::AnswerReportChoice(path));
    let response = dialog_ui(context, "report choice", (480.0, MARGIN), |ui| {
        ui.heading("Which report?");
        let count = choice.names.len();
        let sentence = format!("{count} reports are in {}", choice.directory.display());
        ui.add(Label::new(sentence).wrap());
        ui.add_space(spacing::S);
        // Enter opens the first one.
        let mut unfocused = ui.memory(|memory| memory.focused().is_none());
        ScrollArea::vertical().max_height(LIST_HEIGHT).show(ui, |ui| {
            ui.with_layout(Layout::top_down_justified(Align::Min), |ui| {
                for name in &choice.names {
                    let button = ui.add(Button::new(name).truncate());
                    if std::mem::take(&mut unfocused) {
                        button.request_focus();
                    }
                    if button.clicked() {
                        answer(Some(choice.directory.join(name)));
                    }
                }
            });
        });
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            if ui.button("All as a series").clicked() {
                answer(None);
                commands.push(AppCommand::ShowSeries(vec![choice.directory.clone()]));
            }
            if ui.button("Cancel").clicked() {
                answer(None);
            }
        });
    });
    if response.should_close() {
        answer(None);
    }
}
