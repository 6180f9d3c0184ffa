//! What if: the spec of a report beside its views, to be changed and simulated again. The result is
//! compared with the report it began with, and every variant that was tried is kept in a list.

mod editor;
mod here;
mod history;
mod keys;
mod passing;
mod sliders;
mod spec_text;

use super::child::{ChildProgramError, SimulationProcess};
use super::command::AppCommand;
use super::icons::Icon;
use super::keep::ReportNotes;
use super::message::StatusMessage;
use super::opening::OpenReport;
use super::session::AppSession;
use super::theme::ThemePalette;
use super::widgets::{hint_ui, icon_button_ui};
use super::worker::{BackgroundQuery, BackgroundWorkers, QueryState};
use egui::{Align, Button, Context, Frame, Layout, Margin, Panel, RichText, ScrollArea, Ui};
use history::{SpecVariant, VariantList};
use keys::{SpecKeyInfo, SpecProblem};
pub(crate) use passing::{SessionTempDir, remove_stale_directories};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the directory of simulated reports: what was tried.
const DIRECTORY: &str = "what-if";

/// A spec that is being changed, and what was tried.
pub struct WhatIfPanel {
    /// The report it began with.
    base: PathBuf,
    /// The spec of that report; `None` where it has none.
    original: Option<String>,
    text: String,
    /// Where specs and reports of variants are written.
    directory: PathBuf,
    /// Where specs are written that are only checked: no other window writes there.
    check_directory: PathBuf,
    keys: BackgroundQuery<(), Vec<SpecKeyInfo>>,
    /// What is wrong with the text, if anything.
    checked: BackgroundQuery<String, Option<SpecProblem>>,
    editor: editor::SpecEditor,
    history: VariantList,
    /// Where what was tried is kept.
    notes: ReportNotes,
    /// The variant that is being simulated.
    running: Option<SpecVariant>,
}

impl WhatIfPanel {
    /// The spec of a report, to be changed, with what was tried before; variants are written to
    /// `directory`, specs that are only checked to `passing`.
    pub(crate) fn new(opened: &OpenReport, directory: PathBuf, check_directory: PathBuf) -> Self {
        let (base, spec) = (opened.path.as_path(), opened.report.spec());
        // What cannot be read there was told when the report was opened.
        let (notes, _) = ReportNotes::read(opened.report.path());
        let history =
            spec.map(|spec| VariantList::new(base, spec, &notes.tried)).unwrap_or_default();
        Self {
            base: base.to_owned(),
            original: spec.map(str::to_owned),
            text: spec.unwrap_or_default().to_owned(),
            directory,
            check_directory,
            keys: BackgroundQuery::default(),
            checked: BackgroundQuery::default(),
            editor: editor::SpecEditor::default(),
            history,
            notes,
            running: None,
        }
    }

    /// The text as it is now.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Changes the text.
    pub fn set_text(&mut self, text: String) {
        self.text = text;
    }

    /// Whether it is about this report or one of its variants.
    pub(crate) fn is_about(&self, path: &Path) -> bool {
        self.base == path || self.history.has(path)
    }

    /// Whether the simulator has found nothing wrong with the text.
    pub fn is_spec_valid(&self) -> bool {
        self.original.is_some() && self.checked.latest().is_some_and(|found| found.is_none())
    }

    /// Starts to simulate the text as it is.
    ///
    /// # Errors
    /// The spec cannot be written, or the simulator not be started.
    pub(crate) fn start(
        &mut self,
        context: &Context,
    ) -> Result<SimulationProcess, ChildProgramError> {
        let original = self.original.as_deref().unwrap_or_default();
        let name = self.history.next_name();
        let place = free_place(&self.directory, &name);
        let spec = place.with_extension("toml");
        std::fs::create_dir_all(&self.directory)
            .map_err(|error| ChildProgramError::spec(error, &spec))?;
        write(&spec, &self.text)?;
        let mut simulation =
            SimulationProcess::start(&spec.display().to_string(), place.clone(), context)?;
        simulation.spec = name.clone();
        self.running = Some(SpecVariant::new(name, original, &self.text, place));
        Ok(simulation)
    }

    /// A simulation has ended with a report: the report to compare it with, if it was a variant.
    pub(crate) fn finished(&mut self, path: &Path) -> Option<PathBuf> {
        let variant = self.running.take_if(|variant| variant.path == path)?;
        self.history.add(variant);
        Some(self.base.clone())
    }

    /// Keeps what was tried, if that has changed; a message if something is to be told.
    pub(crate) fn save_variants(&mut self) -> Option<StatusMessage> {
        self.notes.tried = self.history.take_changed()?;
        let told = match self.notes.save() {
            Ok(message) => message.map(StatusMessage::warning),
            Err(error) => Some(StatusMessage::error(error.to_string())),
        };
        // What another window has tried since is among it.
        let original = self.original.as_deref().unwrap_or_default();
        self.history.add_from_notes(original, &self.notes.tried);
        told
    }

    /// A simulation has ended without a report.
    pub(crate) fn stopped(&mut self) {
        self.running = None;
    }

    /// What is wrong with the text, as far as that is known.
    fn ask_check(
        &mut self,
        ui: &Ui,
        workers: &BackgroundWorkers,
    ) -> QueryState<Option<SpecProblem>> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let directory = self.check_directory.clone();
        let question = move |text: &String| {
            // What is checked meanwhile for another text or report has a file of its own.
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let file = directory.join(format!("check-{number}.toml"));
            write(&file, text)?;
            let checked = keys::check_spec(&file);
            // The directory goes with the session; so would the file.
            let _ = std::fs::remove_file(&file);
            checked
        };
        self.checked.ask(ui.ctx(), workers, &self.text, question).fresh_only()
    }

    fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        busy: bool,
        commands: &mut Vec<AppCommand>,
    ) {
        let palette = ThemePalette::for_visuals(ui.visuals());
        ui.horizontal(|ui| {
            ui.heading("What if");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button_ui(ui, Icon::Close, "Close what-if").clicked() {
                    commands.push(AppCommand::ToggleWhatIf);
                }
            });
        });
        if self.original.is_none() {
            let text = "This report does not say which spec it was made from, so there is nothing \
                        to change and simulate again.";
            return hint_ui(ui, text);
        }
        let keys = self.keys.ask(ui.ctx(), workers, &(), |()| keys::load_spec_keys());
        if let QueryState::Failed(error) = &keys {
            ui.label(RichText::new(error.to_string()).color(palette.error));
        }
        // None until they are known.
        let keys = keys.answer().map_or(&[][..], |keys| keys);
        let checked = self.ask_check(ui, workers);
        if let Some(text) = sliders::sliders_ui(ui, &self.text, keys) {
            self.text = text;
        }
        ui.add_space(6.0);
        let problem = checked.answer().and_then(|found| found.as_ref());
        self.editor.ui(ui, &mut self.text, keys, problem, &self.history);
        if let QueryState::Failed(error) = &checked {
            ui.label(RichText::new(error.to_string()).color(palette.error));
        }
        ui.add_space(6.0);
        let sane = checked.answer().is_some_and(|found| found.is_none());
        ui.horizontal(|ui| {
            let ready = sane && !busy;
            if ui.add_enabled(ready, Button::new("Simulate and compare")).clicked() {
                commands.push(AppCommand::SimulateVariant);
            }
            if ui.button("Reset").on_hover_text("The spec of the report again").clicked() {
                self.text = self.original.clone().unwrap_or_default();
            }
            if matches!(checked, QueryState::Waiting { .. }) {
                ui.spinner();
            }
        });
        ui.separator();
        self.history.ui(ui, workers, &mut self.text, commands);
    }
}

/// The first place for a variant that is not taken.
fn free_place(directory: &Path, name: &str) -> PathBuf {
    let numbered = (1..).map(|number: u32| directory.join(format!("{name}-{number}")));
    let free = |place: &PathBuf| !place.exists();
    let plain = directory.join(name);
    std::iter::once(plain.clone()).chain(numbered).take(100_000).find(free).unwrap_or(plain)
}

fn write(path: &Path, text: &str) -> Result<(), ChildProgramError> {
    std::fs::write(path, text).map_err(|error| ChildProgramError::spec(error, path))
}

/// Where variants of the user's session are kept.
pub(crate) fn user_directory() -> PathBuf {
    super::opening::simulated_report_directory(DIRECTORY)
}

/// The panel beside the view, if it is open.
pub(crate) fn panel_ui(ui: &mut Ui, session: &mut AppSession, commands: &mut Vec<AppCommand>) {
    if !session.what_if_open {
        return;
    }
    let busy = session.simulation.is_some();
    let workers = session.workers.clone();
    let (Some(what_if), Some(_)) = (&mut session.what_if, &session.page) else { return };
    let palette = ThemePalette::for_visuals(ui.visuals());
    let frame = Frame::new().fill(palette.page).inner_margin(Margin::symmetric(14, 10));
    let most = (ui.available_width() - 320.0).max(261.0);
    Panel::right("what if")
        .resizable(true)
        .default_size(400.0_f32.min(most))
        .size_range(260.0..=most)
        .frame(frame)
        .show(ui, |ui| {
            ScrollArea::vertical().auto_shrink(false).id_salt("what if").show(ui, |ui| {
                what_if.ui(ui, &workers, busy, commands);
            });
        });
}
