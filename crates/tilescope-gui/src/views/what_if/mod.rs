//! What if: the spec of a report beside its views, to be changed and simulated again. The result is
//! compared with the report it began with, and every variant that was tried is kept in a list.

mod option_sliders;
mod spec_editor;
pub(crate) mod spec_keys;
mod spec_text;
mod variant_list;

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::message::StatusMessage;
use crate::model::navigation::ReportNotes;
use crate::model::open_report::OpenReport;
use crate::theme::{ThemePalette, spacing};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::icons::Icon;
use crate::widgets::{hint_ui, icon_button_ui};
use egui::{Align, Button, Layout, RichText, Ui};
use spec_keys::{SpecKeyInfo, SpecProblem, SpecQueries};
use std::path::{Path, PathBuf};
use variant_list::{SpecVariant, VariantList};

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
    editor: spec_editor::SpecEditor,
    history: VariantList,
    /// Where what was tried is kept.
    notes: ReportNotes,
    /// The variant that is being simulated.
    running: Option<SpecVariant>,
}

impl WhatIfPanel {
    /// The spec of a report, to be changed, with what was tried before; variants are written to
    /// `directory`, specs that are only checked to `check_directory`.
    pub(crate) fn new(
        opened: &OpenReport,
        notes: ReportNotes,
        directory: PathBuf,
        check_directory: PathBuf,
    ) -> Self {
        let (base, spec) = (opened.path.as_path(), opened.report.spec());
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
            editor: spec_editor::SpecEditor::default(),
            history,
            notes,
            running: None,
        }
    }

    /// The text as it is now.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Replaces the text of the spec.
    pub fn set_text(&mut self, text: String) {
        self.text = text;
    }

    /// Sets a key of the spec.
    pub(crate) fn set_value(&mut self, key: &str, value: &str) {
        self.text = spec_text::with_value(&self.text, key, value);
    }

    /// Goes to a key of the spec.
    pub(crate) fn go_to(&mut self, key: &'static str) {
        self.editor.go_to(key);
    }

    /// Whether the text was changed, and is none of the specs that were simulated.
    pub(crate) fn is_unsimulated(&self) -> bool {
        self.original.is_some() && !self.history.has_spec(&self.text)
    }

    /// Name of the report it began with.
    pub(crate) fn report_name(&self) -> String {
        self.base.file_name().unwrap_or(self.base.as_os_str()).to_string_lossy().into_owned()
    }

    /// Whether it is about this report or one of its variants.
    pub(crate) fn is_about(&self, path: &Path) -> bool {
        self.base == path || self.history.has(path)
    }

    /// Whether the simulator has found nothing wrong with the text.
    pub fn is_spec_valid(&self) -> bool {
        self.original.is_some() && self.checked.latest().is_some_and(|found| found.is_none())
    }

    /// A name for the text as a variant, and the directory to write it and its report to.
    pub(crate) fn next_variant(&self) -> (String, &Path) {
        (self.history.next_name(), &self.directory)
    }

    /// The text is being simulated as a variant of that name; its report will be at `place`.
    pub(crate) fn started(&mut self, name: String, place: PathBuf) {
        let original = self.original.as_deref().unwrap_or_default();
        self.running = Some(SpecVariant::new(name, original, &self.text, place));
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
        queries: SpecQueries,
    ) -> QueryState<Option<SpecProblem>> {
        let directory = self.check_directory.clone();
        let question = move |text: &String| (queries.check)(&directory, text);
        self.checked.ask(ui.ctx(), workers, &self.text, question).fresh_only()
    }

    /// The spec and what was tried; `busy` while a simulation is running.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        (workers, queries): (&BackgroundWorkers, SpecQueries),
        busy: bool,
        commands: &CommandQueue,
    ) {
        let palette = ThemePalette::for_ui(ui);
        ui.horizontal(|ui| {
            ui.heading("What if");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button_ui(ui, Icon::Close, "Close what-if").clicked() {
                    commands.push(AppCommand::ToggleWhatIf);
                }
            });
        });
        if self.original.is_none() {
            let text = "This report does not record the spec it was made from, so there is \
                 nothing to change and simulate again.";
            return hint_ui(ui, text);
        }
        let keys = self.keys.ask(ui.ctx(), workers, &(), move |()| (queries.keys)());
        if let QueryState::Failed(error) = &keys {
            ui.label(RichText::new(error.to_string()).color(palette.error));
        }
        // None until they are known.
        let keys = keys.answer().map_or(&[][..], |keys| keys);
        let checked = self.ask_check(ui, workers, queries);
        if let Some(text) = option_sliders::sliders_ui(ui, &self.text, keys) {
            self.text = text;
        }
        ui.add_space(spacing::S);
        let problem = checked.answer().and_then(|found| found.as_ref());
        self.editor.ui(ui, &mut self.text, keys, problem, &self.history);
        if let QueryState::Failed(error) = &checked {
            ui.label(RichText::new(error.to_string()).color(palette.error));
        }
        ui.add_space(spacing::S);
        let sane = checked.answer().is_some_and(|found| found.is_none());
        ui.horizontal(|ui| {
            let ready = sane && !busy;
            if ui.add_enabled(ready, Button::new("Simulate and compare")).clicked() {
                commands.push(AppCommand::SimulateVariant);
            }
            if ui.button("Reset").on_hover_text("Back to the spec of the report").clicked() {
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
