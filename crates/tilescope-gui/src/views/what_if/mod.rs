//! The what-if panel: the spec of a report beside its views, to be changed and simulated again. The
//! result is compared with the original report, and a list keeps every variant that was tried.

mod asked_question;
mod gains;
mod key_rows;
pub(crate) mod measured;
pub(crate) mod model_file;
pub(crate) mod model_form;
mod model_rows;
mod option_sliders;
pub(crate) mod search;
pub(crate) mod sensitivity;
pub(crate) mod spec_draft;
mod spec_editor;
pub(crate) mod spec_keys;
pub(crate) mod spec_text;
mod stage_blocks;
mod stage_rows;
mod variant_list;

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::mechanism_page::MechanismPage;
use crate::model::message::StatusMessage;
use crate::model::navigation::ReportNotes;
use crate::model::open_report::OpenReport;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing};
use crate::views::mechanism_links::mechanism_links_ui;
use crate::widgets::background_query::{BackgroundWorkers, QueryState};
use crate::widgets::icons::Icon;
use crate::widgets::{hint_ui, icon_button_ui};
use egui::{Align, Button, Frame, Layout, Margin, Panel, RichText, ScrollArea, Ui};
use model_rows::ModelFileRows;
use spec_draft::{SpecAnswers, SpecDraft, check_ui};
use spec_keys::SpecQueries;
use spec_text::{MODEL_DIGEST, MODEL_FILE, model_file, quoted, values, with_value, without_value};
use std::path::{Path, PathBuf};
use tilescope_analysis::calibration::is_measured;
use variant_list::{SpecVariant, VariantList};

/// The largest height of the check result; the rest is reached by scrolling.
const MOST_SAID: f32 = 90.0;

/// A spec being edited, and the variants that were tried.
pub struct WhatIfPanel {
    /// The original report.
    base: PathBuf,
    /// The spec of that report; `None` if it is unknown.
    original: Option<String>,
    /// The section for measurements; only for reports of other tools.
    measured: Option<measured::MeasuredSection>,
    draft: SpecDraft,
    /// The file of its model, if it has one.
    model: ModelFileRows,
    /// The directory for the specs and reports of variants.
    directory: PathBuf,
    sensitivity: sensitivity::SensitivitySection,
    history: VariantList,
    /// The notes that store the variants.
    notes: ReportNotes,
    /// True if the spec of the measured program is not stored yet.
    is_spec_new: bool,
    /// The variant being simulated.
    running: Option<SpecVariant>,
}

impl WhatIfPanel {
    /// Opens the spec of a report for editing, with the earlier variants. Variants are written to
    /// `directory`, specs that are only checked to `check_directory`.
    pub(crate) fn new(
        opened: &OpenReport,
        notes: ReportNotes,
        directory: PathBuf,
        check_directory: PathBuf,
    ) -> Self {
        let base = opened.path.as_path();
        let spec = opened.report.spec().or(notes.measured_spec.as_deref());
        let measured = if is_measured(&opened.report) {
            Some(measured::MeasuredSection::default())
        } else {
            None
        };
        let history =
            spec.map(|spec| VariantList::new(base, spec, &notes.tried)).unwrap_or_default();
        Self {
            base: base.to_owned(),
            original: spec.map(str::to_owned),
            measured,
            draft: SpecDraft::new(
                spec.unwrap_or_default().to_owned(),
                model_directory(opened),
                check_directory,
            ),
            model: ModelFileRows::of(&opened.report),
            directory,
            sensitivity: sensitivity::SensitivitySection::default(),
            history,
            notes,
            is_spec_new: false,
            running: None,
        }
    }

    /// The current text.
    pub fn text(&self) -> &str {
        &self.draft.text
    }

    /// Replaces the text of the spec.
    pub fn set_text(&mut self, text: String) {
        self.draft.text = text;
    }

    /// Makes the spec read another file as its model. Dimensions that only the old file has are
    /// removed; those that only the new file has get a size.
    pub(crate) fn set_model(&mut self, path: &Path) {
        // The digest belongs to the file that the report was made from.
        let text = without_value(&self.draft.text, MODEL_DIGEST);
        self.draft.text = with_value(&text, MODEL_FILE, &quoted(&path.to_string_lossy()));
        self.draft.ask_again();
        self.model.fit_sizes();
    }

    /// Sets a key of the spec.
    pub(crate) fn set_value(&mut self, key: &str, value: &str) {
        self.draft.text = with_value(&self.draft.text, key, value);
    }

    /// Moves the cursor to a key of the spec.
    pub(crate) fn go_to(&mut self, key: &'static str) {
        self.draft.go_to(key);
    }

    /// Returns true if the text was changed and equals none of the simulated specs.
    pub(crate) fn is_unsimulated(&self) -> bool {
        self.original.is_some() && !self.history.has_spec(&self.draft.text)
    }

    /// The original report.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The name of the original report.
    pub(crate) fn report_name(&self) -> String {
        self.base.file_name().unwrap_or(self.base.as_os_str()).to_string_lossy().into_owned()
    }

    /// Returns true if the panel belongs to this report, or the report is one of its variants.
    pub(crate) fn is_about(&self, path: &Path) -> bool {
        self.base == path || self.history.has(path)
    }

    /// The text with a path of the model that is valid in any directory.
    pub(crate) fn whole_text(&self) -> String {
        self.draft.whole_text()
    }

    /// Estimates the text on other machines.
    pub(crate) fn try_other_machines(&mut self) {
        self.sensitivity.ask(self.draft.whole_text());
    }

    /// Returns true if the simulator found no error in the text.
    pub fn is_spec_valid(&self) -> bool {
        self.original.is_some() && self.draft.was_valid()
    }

    /// A name for the text as a variant, and the directory for its spec and report. This makes the
    /// path of the model in the text valid there too.
    pub(crate) fn next_variant(&mut self) -> (String, &Path) {
        self.draft.text = self.draft.whole_text();
        (self.history.next_name(), &self.directory)
    }

    /// Records that the text is being simulated as the named variant; its report will be at
    /// `place`.
    pub(crate) fn started(&mut self, name: String, place: PathBuf) {
        let original = self.original.as_deref().unwrap_or_default();
        self.running = Some(SpecVariant::new(name, original, &self.draft.text, place));
    }

    /// Records a simulation that ended with a report. Returns the report to compare it with if it
    /// was a variant.
    pub(crate) fn finished(&mut self, path: &Path) -> Option<PathBuf> {
        let variant = self.running.take_if(|variant| variant.path == path)?;
        self.history.add(variant);
        Some(self.base.clone())
    }

    /// Saves the variants if they have changed. Returns a message for the user, if any.
    pub(crate) fn save_variants(&mut self) -> Option<StatusMessage> {
        let changed = self.history.take_changed();
        let is_spec_new = std::mem::take(&mut self.is_spec_new);
        if changed.is_none() && !is_spec_new {
            return None;
        }
        if let Some(tried) = changed {
            self.notes.tried = tried;
        }
        let status = match self.notes.save() {
            Ok(message) => message.map(StatusMessage::warning),
            Err(error) => Some(StatusMessage::error(error.to_string())),
        };
        // The stored list includes the variants of other windows.
        let original = self.original.as_deref().unwrap_or_default();
        self.history.add_from_notes(original, &self.notes.tried);
        status
    }

    /// Sets or clears the path of the measured program's spec.
    fn set_measured_spec(&mut self, spec: Option<String>) {
        let text = spec.clone().unwrap_or_default();
        self.history = match &spec {
            Some(spec) => VariantList::new(&self.base, spec, &self.notes.tried),
            None => VariantList::default(),
        };
        self.draft.text = text;
        self.draft.ask_again();
        self.notes.measured_spec.clone_from(&spec);
        (self.original, self.is_spec_new) = (spec, true);
    }

    /// Records a simulation that ended without a report.
    pub(crate) fn stopped(&mut self) {
        self.running = None;
    }

    /// Shows the spec and the variants. `busy` is true while a simulation is running.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        (workers, queries): (&BackgroundWorkers, SpecQueries),
        busy: bool,
        commands: &CommandQueue,
    ) {
        ui.horizontal(|ui| {
            ui.heading("What if");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button_ui(ui, Icon::Close, "Close what-if").clicked() {
                    commands.push(AppCommand::ToggleWhatIf);
                }
            });
        });
        if self.original.is_none() {
            let Some(measured) = &mut self.measured else {
                let text = "This report does not record its spec, so it cannot be changed and \
                            simulated again.";
                return hint_ui(ui, text);
            };
            if let Some(spec) = measured.spec_ui(ui, (workers, queries)) {
                self.set_measured_spec(Some(spec));
            }
            return;
        }
        let answers = self.draft.ask(ui, workers, queries, true);
        let sane = answers.checked.answer().is_some_and(|checked| checked.compiled().is_some());
        let foot = Frame::new().inner_margin(Margin { top: 6, ..Margin::ZERO });
        Panel::bottom("what if foot").resizable(false).frame(foot).show(ui, |ui| {
            self.foot_ui(ui, &answers, (sane, busy), commands);
        });
        ScrollArea::vertical().auto_shrink(false).id_salt("what if").show(ui, |ui| {
            self.parts_ui(ui, (workers, queries), (&answers, sane), commands);
        });
    }

    /// Shows the check result and the main buttons.
    fn foot_ui(
        &mut self,
        ui: &mut Ui,
        answers: &SpecAnswers,
        (sane, busy): (bool, bool),
        commands: &CommandQueue,
    ) {
        let said = ScrollArea::vertical().id_salt("said").max_height(MOST_SAID);
        said.auto_shrink([false, true]).show(ui, |ui| check_ui(ui, answers));
        ui.add_space(spacing::XS);
        ui.horizontal_wrapped(|ui| {
            let ready = sane && !busy;
            let fill = ui.visuals().selection.bg_fill;
            let simulate = Button::new(strong("Simulate and compare")).fill(fill);
            if ui.add_enabled(ready, simulate).clicked() {
                commands.push(AppCommand::SimulateVariant);
            }
            if ui.button("Reset").on_hover_text("Reset to the spec of the report").clicked() {
                self.draft.text = self.original.clone().unwrap_or_default();
            }
            let hint = "Search for a better spec: a guided search, or every combination of values \
                        (Ctrl+Shift+T)";
            let search = ui.add_enabled(sane, Button::new("Search…"));
            if search.on_hover_text(hint).clicked() {
                commands.push(AppCommand::ShowSpecSearch);
            }
        });
    }

    /// Shows the controls of the spec, its text, the variants and the other machines.
    fn parts_ui(
        &mut self,
        ui: &mut Ui,
        (workers, queries): (&BackgroundWorkers, SpecQueries),
        (answers, sane): (&SpecAnswers, bool),
        commands: &CommandQueue,
    ) {
        if let QueryState::Failed(error) = &answers.keys {
            ui.label(RichText::new(error.to_string()).color(ThemePalette::for_ui(ui).error));
        }
        if let Some(model) = &answers.model {
            self.model.ui(ui, &mut self.draft, answers, model, commands);
            ui.add_space(spacing::S);
        }
        if let Some(text) = option_sliders::options_ui(ui, &self.draft.text, answers) {
            self.draft.text = text;
        }
        let last = self.draft.last_checked().cloned();
        let compiled = last.as_ref().and_then(|checked| checked.compiled());
        let stages = compiled.map_or(&[][..], |compiled| &compiled.stages);
        if let Some(text) = stage_blocks::stage_blocks_ui(ui, &self.draft.text, answers, stages) {
            self.draft.text = text;
        }
        ui.add_space(spacing::S);
        self.draft.folded_editor_ui(ui, ("Text of the spec", false), answers, &self.history);
        let pages = MechanismPage::of_spec(&answers.values);
        mechanism_links_ui(ui, commands, &pages);
        if let (Some(measured), Some(ran)) = (&mut self.measured, &self.original) {
            ui.separator();
            let of = (self.base.as_path(), ran.as_str());
            if measured.ui(ui, (workers, queries), of, &self.draft, sane) {
                self.set_measured_spec(None);
                return;
            }
        }
        ui.separator();
        self.history.ui(ui, workers, &mut self.draft.text, commands);
        ui.separator();
        self.sensitivity.ui(ui, (workers, queries), &mut self.draft, sane);
    }
}

/// The directory that a model's path in the spec is relative to: that of the model file the report
/// was made from, or else that of the report.
fn model_directory(opened: &OpenReport) -> PathBuf {
    let path = opened.absolute_path();
    let beside = if path.extension().is_some_and(|end| end == "pop") {
        path.parent().map(Path::to_owned).unwrap_or_default()
    } else {
        path
    };
    let spec = values(opened.report.spec().unwrap_or_default());
    let model = model_file(&spec, &beside);
    model.as_deref().and_then(Path::parent).map_or(beside.clone(), Path::to_owned)
}
