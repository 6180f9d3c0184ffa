//! The dialog that simulates an ONNX file or a spec: its form, the result of the check, and the
//! simulation with its progress.

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::message::StatusMessage;
use crate::shell::dialog::{dialog_ui, large_margin, long_heading_ui};
use crate::shell::session::AppSession;
use crate::shell::simulation_process::{SimulationOutcome, SimulationProcess};
use crate::shell::spec_queries::SPEC_QUERIES;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::views::what_if::model_form::{FormState, ModelForm};
use crate::views::what_if::spec_draft::{SpecAnswers, check_ui};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use egui::{
    Button, Context, Key, Label, Modifiers, ProgressBar, RichText, ScrollArea, TextEdit, Ui,
};
use std::path::{Path, PathBuf};

/// The largest width of the dialog.
const WIDTH: f32 = 900.0;
/// The largest height of the check result if the form scrolls by itself; the rest is reached by
/// scrolling.
const MOST_SAID: f32 = 90.0;
/// The height of gaps and lines between the parts of the dialog.
const BETWEEN_PARTS: f32 = 30.0;
/// The smallest height of a form that scrolls by itself.
const LEAST_FORM: f32 = 120.0;
/// The smallest height of a dialog whose form scrolls by itself, with its surroundings.
const LEAST_ROOM: f32 = 380.0;
/// The height around the contents: margins and a gap.
const AROUND_ALL: f32 = 60.0;

/// The dialog, and the state that it keeps while it is closed.
pub(crate) struct ModelDialog {
    pub form: ModelForm,
    /// The report of the running simulation.
    running: Option<PathBuf>,
    /// The error of the last simulation, if it left no report.
    failed: Option<String>,
    saving: Option<SpecSaving>,
    /// The result of saving the spec.
    saved: Option<StatusMessage>,
    /// True if the file has been read, and true if that was reported.
    is_read: (bool, bool),
    /// True if a widget has had the focus.
    had_focus: bool,
    heights: PartHeights,
}

/// The heights of the parts around the form in the last layout.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PartHeights {
    header: f32,
    /// The height of the whole check result.
    said: f32,
    /// The height of the row of buttons.
    foot: f32,
}

/// The target file of the spec.
struct SpecSaving {
    typed: String,
    /// Checks if that file exists.
    exists: BackgroundQuery<PathBuf, bool>,
    had_focus: bool,
}

impl ModelDialog {
    /// The dialog of a file. Specs are written to the directory `checks` for checking.
    pub(crate) fn new(path: PathBuf, checks: PathBuf) -> Self {
        Self {
            form: ModelForm::new(path, checks),
            running: None,
            failed: None,
            saving: None,
            saved: None,
            is_read: (false, false),
            had_focus: false,
            heights: PartHeights { header: 60.0, said: 20.0, foot: 30.0 },
        }
    }

    /// Hides the dialog and keeps its choices.
    pub(crate) fn close(&mut self) {
        self.form.stop_asking();
        (self.saving, self.saved, self.had_focus) = (None, None, false);
    }

    /// Records that the simulation has started; its report will be at `place`.
    pub(crate) fn started(&mut self, place: PathBuf) {
        (self.failed, self.saved, self.saving) = (None, None, None);
        self.running = Some(place);
    }

    /// Returns true while its spec is being simulated.
    pub(crate) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Records why the spec could not be simulated.
    pub(crate) fn failed(&mut self, words: String) {
        self.failed = Some(words);
    }

    /// Records the result of saving the spec.
    pub(crate) fn saved(&mut self, message: StatusMessage) {
        self.saved = Some(message);
        self.saving = None;
    }

    /// Records the end of a simulation. Returns true if it was the simulation of this dialog.
    pub(crate) fn ended(&mut self, ended: &SimulationOutcome) -> bool {
        let was_running = self.running.take().is_some();
        if let (true, SimulationOutcome::Failed(words)) = (was_running, ended) {
            self.failed = Some(words.clone());
        }
        was_running
    }

    /// Returns the file once, after it has been read.
    pub(crate) fn take_newly_read(&mut self) -> Option<PathBuf> {
        let (is_read, was_reported) = self.is_read;
        self.is_read.1 = is_read;
        if is_read && !was_reported { Some(self.form.path().to_owned()) } else { None }
    }
}

/// The parts of the session that the dialog shows.
struct DialogContext<'a> {
    workers: &'a BackgroundWorkers,
    /// The running simulation, of this model or another.
    simulation: Option<&'a SimulationProcess>,
    /// The number of models that wait for this dialog.
    waiting: usize,
    commands: &'a CommandQueue,
}

/// Shows the dialog over everything else, while it is open.
pub(crate) fn model_dialog_ui(
    context: &Context,
    session: &mut AppSession,
    commands: &CommandQueue,
) {
    let Some(mut dialog) = session.dialogs_mut().take_model() else { return };
    let around = DialogContext {
        workers: session.workers(),
        simulation: session.simulation(),
        waiting: session.dialogs().waiting_models(),
        commands,
    };
    let size = (WIDTH, large_margin(context));
    let response = dialog_ui(context, "model dialog", size, |ui| dialog.ui(ui, &around));
    if response.should_close() {
        commands.push(AppCommand::CloseModel);
    }
    session.dialogs_mut().put_model_back(dialog);
}

impl ModelDialog {
    fn ui(&mut self, ui: &mut Ui, around: &DialogContext<'_>) {
        let (state, answers) = self.form.ask(ui, around.workers, SPEC_QUERIES);
        self.is_read.0 |= state == FormState::Filled;
        let before = self.heights;
        let room = ui.ctx().content_rect().height() - AROUND_ALL;
        if state != FormState::Filled {
            scroll_area("dialog", room)
                .show(ui, |ui| self.parts_ui(ui, &answers, (None, false), around));
            return;
        }
        if room >= LEAST_ROOM {
            let around_form =
                before.header + before.said.min(MOST_SAID) + before.foot + BETWEEN_PARTS;
            let form_height = (room - around_form).max(LEAST_FORM);
            self.parts_ui(ui, &answers, (Some(form_height), true), around);
        } else {
            // In a low window everything scrolls except the buttons.
            scroll_area("dialog", room - before.foot - spacing::M)
                .show(ui, |ui| self.parts_ui(ui, &answers, (None, true), around));
        }
        ui.add_space(spacing::XS);
        let foot = ui.scope(|ui| match (self.running.is_some(), around.simulation) {
            (true, Some(simulation)) => running_ui(ui, simulation, around.commands),
            _ => self.foot_ui(ui, &answers, around),
        });
        self.heights.foot = foot.response.rect.height();
        if self.heights != before {
            ui.ctx().request_discard("parts of the dialog have found their heights");
        }
    }

    /// The header, the form and, if there is one, the check result. A form of a given height
    /// scrolls by itself.
    fn parts_ui(
        &mut self,
        ui: &mut Ui,
        answers: &SpecAnswers,
        (form_height, is_filled): (Option<f32>, bool),
        around: &DialogContext<'_>,
    ) {
        let header = ui.scope(|ui| self.header_ui(ui, around));
        self.heights.header = header.response.rect.height();
        ui.separator();
        let is_running = self.running.is_some();
        let mut form_ui = |ui: &mut Ui| {
            ui.add_enabled_ui(!is_running, |ui| self.form.ui(ui, answers, around.commands));
        };
        match form_height {
            Some(height) => {
                scroll_area("form", height).show(ui, form_ui);
            }
            None => form_ui(ui),
        }
        if !is_filled {
            return;
        }
        ui.separator();
        if is_running {
            return;
        }
        self.heights.said = match form_height {
            Some(_) => {
                let said = ScrollArea::vertical().id_salt("said").max_height(MOST_SAID);
                let said = said.auto_shrink([false, true]);
                said.show(ui, |ui| self.said_ui(ui, answers)).content_size.y
            }
            None => ui.scope(|ui| self.said_ui(ui, answers)).response.rect.height(),
        };
    }

    fn header_ui(&self, ui: &mut Ui, around: &DialogContext<'_>) {
        long_heading_ui(ui, format!("Simulate {}", self.form.name()), "Close the model");
        let mut place = self.form.path().display().to_string();
        if around.waiting > 0 {
            let more = match around.waiting {
                1 => "1 more model waits".to_owned(),
                count => format!("{count} more models wait"),
            };
            place = format!("{place}  ({more}, shown next)");
        }
        let words = RichText::new(&place).weak().size(text_size::CAPTION);
        ui.add(Label::new(words).truncate()).on_hover_text(place);
    }

    /// The check result, the error of the last simulation, and the result of saving.
    fn said_ui(&self, ui: &mut Ui, answers: &SpecAnswers) {
        let palette = ThemePalette::for_ui(ui);
        match &self.failed {
            Some(words) => {
                let words = format!("The simulation failed.\n{words}");
                let words = RichText::new(words).color(palette.error);
                ui.add(Label::new(words).wrap().selectable(true));
            }
            None => check_ui(ui, answers),
        }
        if let Some(message) = &self.saved {
            let colour = message.kind.colour(palette);
            ui.add(Label::new(RichText::new(&message.text).color(colour)).wrap());
        }
    }

    /// The row of buttons.
    fn foot_ui(&mut self, ui: &mut Ui, answers: &SpecAnswers, around: &DialogContext<'_>) {
        let is_busy = around.simulation.is_some();
        // A spec without errors may be simulated while it is still being checked.
        let ready = !is_busy && answers.problem().is_none();
        let entered =
            ui.input_mut(|input| input.consume_key(Modifiers::COMMAND, Key::Enter)) && ready;
        ui.horizontal_wrapped(|ui| {
            let simulate = ui.add_enabled(ready, Button::new("Simulate"));
            // In a low window the check result may need scrolling.
            let hint = match answers.problem() {
                _ if is_busy => "Another simulation is running",
                Some(problem) => problem.message.as_str(),
                None => "Simulate and open the report (Ctrl+Enter)",
            };
            let simulate = simulate.on_hover_text(hint).on_disabled_hover_text(hint);
            if !std::mem::replace(&mut self.had_focus, true) {
                simulate.request_focus();
            }
            if simulate.clicked() || entered {
                self.failed = None;
                around.commands.push(AppCommand::SimulateModel);
            }
            let hint = "Write this spec to a file: tilescope simulate FILE does the same";
            if ui.button("Save spec…").on_hover_text(hint).clicked() {
                self.saving = match self.saving.take() {
                    Some(_) => None,
                    None => Some(SpecSaving::new(self.form.path())),
                };
            }
            if ui.button("Close").clicked() {
                around.commands.push(AppCommand::CloseModel);
            }
        });
        if let Some(saving) = &mut self.saving {
            saving.ui(ui, around);
        }
    }
}

/// A scroll area as high as its contents, up to `height`. The window of the dialog only knows its
/// previous height, which was one line while the file was read.
fn scroll_area(name: &str, height: f32) -> ScrollArea {
    let area = ScrollArea::vertical().id_salt(name).max_height(height);
    area.min_scrolled_height(height).auto_shrink([false, true])
}

/// The progress of the simulation, and its stop button.
fn running_ui(ui: &mut Ui, simulation: &SimulationProcess, commands: &CommandQueue) {
    ui.horizontal_wrapped(|ui| {
        let bar = ProgressBar::new(simulation.progress()).desired_width(240.0).show_percentage();
        ui.add(bar);
        if ui.button("Cancel").clicked() {
            commands.push(AppCommand::CancelSimulation);
        }
        let words = "You can close this dialog: the report opens when it is ready.";
        ui.weak(words);
    });
}

impl SpecSaving {
    /// The default path beside the model, with the model's name.
    fn new(model: &Path) -> Self {
        let typed = model.with_extension("toml").display().to_string();
        Self { typed, exists: BackgroundQuery::default(), had_focus: false }
    }

    fn ui(&mut self, ui: &mut Ui, around: &DialogContext<'_>) {
        ui.horizontal(|ui| {
            let width = (ui.available_width() - 100.0).max(60.0);
            let edit = TextEdit::singleline(&mut self.typed).desired_width(width);
            let edit = ui.add(edit).accessible_name("File to write the spec to");
            if !std::mem::replace(&mut self.had_focus, true) {
                edit.request_focus();
            }
            let entered = edit.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            let path = PathBuf::from(self.typed.trim());
            let exists = self.exists.compute(ui.ctx(), around.workers, &path, |path| path.exists());
            let exists = exists.fresh_only().answer().is_some_and(|exists| **exists);
            let (word, hint) =
                if exists { ("Replace", "The file exists") } else { ("Save", "Write the spec") };
            let is_named = !self.typed.trim().is_empty();
            let save = ui.add_enabled(is_named, Button::new(word)).on_hover_text(hint);
            // Enter does not replace an existing file.
            if is_named && (save.clicked() || entered && !exists) {
                around.commands.push(AppCommand::SaveModelSpec(path));
            }
        });
    }
}
