//! The list of variants: their changes and results. Any two can be compared, and each can be saved.

use super::spec_keys::SpecKeyInfo;
use super::spec_text::{changes, values};
use crate::model::command::{AppCommand, CommandQueue};
use crate::model::message::StatusMessage;
use crate::model::navigation::SimulatedVariant;
use crate::theme::{ThemePalette, text_size};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{Grid, Label, RichText, ScrollArea, TextEdit, Ui};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::atomic_file::{AtomicFile, AtomicFileError, write_whole};
use tilescope_report::units::{binary_bytes, grouped};
use tilescope_report::{REPORT_FILE, Report};

/// The largest width of a variant's changes, in points. A tooltip shows all of them.
const CHANGES: f32 = 150.0;

/// A spec that was simulated, and its report.
pub(crate) struct SpecVariant {
    /// `variant 3`
    name: String,
    /// The changes of the variant, as text.
    changes: Vec<String>,
    spec: String,
    pub(super) path: PathBuf,
    figures: BackgroundQuery<(), VariantFigures>,
}

#[derive(Clone, Debug, PartialEq)]
struct VariantFigures {
    cycles: Option<u64>,
    samples_per_second: Option<f64>,
    /// The bytes of the fullest tile, if memory was recorded.
    fullest: Option<u64>,
    fits: bool,
}

impl VariantFigures {
    fn of(summary: &ReportSummary) -> Self {
        let run = summary.execution.as_ref();
        Self {
            cycles: run.map(|run| run.total_cycles.0),
            samples_per_second: run.and_then(|run| run.samples_per_second),
            fullest: summary.memory.as_ref().map(|memory| memory.max_tile_including_gaps.0),
            fits: summary.out_of_memory_tiles() == 0,
        }
    }
}

impl SpecVariant {
    /// The original report.
    fn base(path: &Path, spec: &str) -> Self {
        Self::new("original".to_owned(), spec, spec, path.to_owned())
    }

    /// The part of it that is stored.
    fn to_saved(&self) -> SimulatedVariant {
        let Self { name, spec, path, .. } = self;
        SimulatedVariant { name: name.clone(), spec: spec.clone(), report: path.clone() }
    }

    /// A variant of the original spec.
    pub(crate) fn new(name: String, original: &str, spec: &str, path: PathBuf) -> Self {
        let changes = changes(original, spec);
        Self { name, changes, spec: spec.to_owned(), path, figures: BackgroundQuery::default() }
    }
}

fn bytes_in_words(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "not recorded".to_owned(), binary_bytes)
}

/// The variants, oldest first.
#[derive(Default)]
pub(crate) struct VariantList {
    variants: Vec<SpecVariant>,
    /// The indices of selected variants, at most two.
    ticked: Vec<usize>,
    /// The path to save a variant to.
    save_to: String,
    /// True if there are unsaved changes.
    changed: bool,
}

impl VariantList {
    /// A list that starts with the original report.
    pub(crate) fn new(base: &Path, spec: &str, tried: &[SimulatedVariant]) -> Self {
        let mut history = Self { variants: vec![SpecVariant::base(base, spec)], ..Self::default() };
        history.add_from_notes(spec, tried);
        history
    }

    pub(crate) fn add(&mut self, variant: SpecVariant) {
        self.variants.push(variant);
        self.changed = true;
    }

    /// Adds variants that were tried elsewhere, as changes of the original spec.
    pub(crate) fn add_from_notes(&mut self, original: &str, tried: &[SimulatedVariant]) {
        for SimulatedVariant { name, spec, report } in tried {
            if !self.has(report) {
                self.variants.push(SpecVariant::new(name.clone(), original, spec, report.clone()));
            }
        }
    }

    /// Returns the list to store, if it has changed since the last call.
    pub(crate) fn take_changed(&mut self) -> Option<Vec<SimulatedVariant>> {
        let changed = std::mem::take(&mut self.changed);
        if changed {
            Some(self.variants.iter().skip(1).map(SpecVariant::to_saved).collect())
        } else {
            None
        }
    }

    /// Removes a variant from the list; its spec and report stay on disk.
    fn forget(&mut self, at: usize) {
        self.variants.remove(at);
        self.ticked.clear();
        self.changed = true;
    }

    /// Returns true if a report is one of the variants.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.variants.iter().any(|variant| variant.path == path)
    }

    /// Returns true if one of the variants has exactly this spec.
    pub(crate) fn has_spec(&self, spec: &str) -> bool {
        self.variants.iter().any(|variant| variant.spec == spec)
    }

    /// A name that no variant has.
    pub(crate) fn next_name(&self) -> String {
        let is_taken = |wanted: &str| self.variants.iter().any(|variant| variant.name == wanted);
        let last = (1..=self.variants.len()).rev().find(|number| is_taken(&variant_name(*number)));
        let first = last.map_or(1, |last| last + 1);
        (first..).map(variant_name).find(|name| !is_taken(name)).unwrap_or_default()
    }

    /// The cost of each tried value of a key: cycles and the fullest tile, and the change of cycles
    /// against the original.
    pub(crate) fn value_costs(&self, key: &SpecKeyInfo) -> Vec<String> {
        let value = |variant: &SpecVariant| values(&variant.spec).remove(&key.path);
        let figures =
            |variant: &SpecVariant| Some(VariantFigures::clone(variant.figures.latest()?));
        let before = self.variants.first().and_then(figures).and_then(|figures| figures.cycles);
        let mut lines = Vec::new();
        for variant in &self.variants {
            let Some(VariantFigures { cycles, fullest, .. }) = figures(variant) else { continue };
            let value = value(variant).unwrap_or_else(|| format!("{} (default)", key.default));
            let run = cycles.map_or_else(
                || "not run".to_owned(),
                |cycles| format!("{} cycles{}", grouped(cycles), share_text(before, cycles)),
            );
            let fullest = bytes_in_words(fullest);
            lines.push(format!("{value}: {run}, fullest tile {fullest} ({})", variant.name));
        }
        lines
    }

    /// Shows the list with its buttons. `text` receives the spec that the user continues with.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        text: &mut String,
        commands: &CommandQueue,
    ) {
        ui.label(RichText::new("Variants").strong());
        ScrollArea::horizontal().id_salt("variants").show(ui, |ui| {
            Grid::new("variants").striped(true).num_columns(7).show(ui, |ui| {
                for head in ["", "", "", "Cycles", "Samples/s", "Fullest tile", "Fits"] {
                    ui.label(RichText::new(head).weak().size(text_size::SMALL));
                }
                ui.end_row();
                let mut forgotten = None;
                for at in 0..self.variants.len() {
                    if self.row_ui(ui, (workers, commands), at, text) {
                        forgotten = Some(at);
                    }
                    ui.end_row();
                }
                forgotten.into_iter().for_each(|at| self.forget(at));
            });
        });
        self.buttons_ui(ui, commands);
    }

    /// Shows a row. Returns true if its variant should be removed from the list.
    fn row_ui(
        &mut self,
        ui: &mut Ui,
        (workers, commands): (&BackgroundWorkers, &CommandQueue),
        at: usize,
        text: &mut String,
    ) -> bool {
        let palette = ThemePalette::for_ui(ui);
        let variant = &mut self.variants[at];
        let mut ticked = self.ticked.contains(&at);
        let tick = ui.checkbox(&mut ticked, "");
        let tick = tick.accessible_name(format!("Tick {}", variant.name));
        if tick.clicked() {
            self.ticked.retain(|known| *known != at);
            if ticked {
                self.ticked.push(at);
                let surplus = self.ticked.len().saturating_sub(2);
                self.ticked.drain(..surplus);
            }
        }
        let words = variant.changes.join(", ");
        ui.vertical(|ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            ui.set_max_width(CHANGES);
            let hint = format!("Edit this spec\n{words}");
            if ui.link(&variant.name).on_hover_text(hint.trim_end()).clicked() {
                *text = variant.spec.clone();
            }
            if !words.is_empty() {
                let small = RichText::new(&words).weak().size(text_size::CAPTION);
                ui.add(Label::new(small).truncate());
            }
        });
        let forget = ui.horizontal(|ui| {
            let open = icon_button_ui(ui, Icon::Folder, &format!("Open {}", variant.name));
            if open.clicked() {
                commands.push(AppCommand::Open(variant.path.clone()));
            }
            // The original report is not a variant and cannot be removed.
            let delete = format!("Delete {}", variant.name);
            at > 0 && icon_button_ui(ui, Icon::Close, &delete).clicked()
        });
        let forget = forget.inner;
        let path = variant.path.clone();
        let question =
            move |(): &()| summary(&Report::open(&path)?).map(|of| VariantFigures::of(&of));
        match variant.figures.ask(ui.ctx(), workers, &(), question) {
            QueryState::Fresh(figures) => figures_ui(ui, &figures),
            QueryState::Failed(error) => {
                let gone = RichText::new("gone").color(palette.error);
                ui.label(gone).on_hover_text(error.to_string());
                (0..3).for_each(|_| drop(ui.label("")));
            }
            _ => (0..4).for_each(|_| drop(ui.label("…"))),
        }
        forget
    }

    fn buttons_ui(&mut self, ui: &mut Ui, commands: &CommandQueue) {
        let ticked: Vec<&SpecVariant> =
            self.ticked.iter().filter_map(|at| self.variants.get(*at)).collect();
        ui.horizontal_wrapped(|ui| {
            let two = ui.add_enabled(ticked.len() == 2, egui::Button::new("Compare ticked"));
            if let (true, [source, target]) = (two.clicked(), ticked.as_slice()) {
                commands.push(AppCommand::Compare(source.path.clone(), target.path.clone()));
            }
            let hint = RichText::new("Directory or .toml file to save to");
            let edit = TextEdit::singleline(&mut self.save_to).hint_text(hint).desired_width(170.0);
            ui.add(edit).accessible_name("Path to save the ticked variant to");
            let path = PathBuf::from(self.save_to.trim());
            let ready = ticked.len() == 1 && !self.save_to.trim().is_empty();
            if ui.add_enabled(ready, egui::Button::new("Save")).clicked()
                && let [variant] = ticked.as_slice()
            {
                commands.push(AppCommand::ShowMessage(match save(variant, &path) {
                    Ok(()) => {
                        StatusMessage::done(format!("Saved {} to {}", variant.name, path.display()))
                    }
                    Err(error) => StatusMessage::error(format!("Not saved: {error}")),
                }));
            }
        });
    }
}

fn variant_name(number: usize) -> String {
    format!("variant {number}")
}

/// The relative change of cycles: ` (+12.50 %)`.
fn share_text(before: Option<u64>, cycles: u64) -> String {
    match before.filter(|before| *before > 0 && *before != cycles) {
        Some(before) => {
            let share = (cycles as f64 / before as f64 - 1.0) * 100.0;
            format!(" ({share:+.2} %)")
        }
        None => String::new(),
    }
}

fn figures_ui(ui: &mut Ui, figures: &VariantFigures) {
    let palette = ThemePalette::for_ui(ui);
    let dash = || "—".to_owned();
    ui.label(figures.cycles.map_or_else(dash, grouped));
    ui.label(figures.samples_per_second.map_or_else(dash, |rate| grouped(rate.round() as u64)));
    ui.label(bytes_in_words(figures.fullest));
    if figures.fits {
        ui.label("yes");
    } else {
        ui.label(RichText::new("no").color(palette.error));
    }
}

/// An error from saving a variant.
#[derive(Debug, thiserror::Error)]
enum VariantSaveError {
    #[error(transparent)]
    Write(#[from] AtomicFileError),
    #[error("cannot create the directory {}: {source}", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("cannot copy {} to {}: {source}", from.display(), to.display())]
    Copy { from: PathBuf, to: PathBuf, source: io::Error },
}

/// Writes the spec to a `.toml` file, or the report with its spec into a directory. Existing files
/// are only replaced as a whole.
fn save(variant: &SpecVariant, path: &Path) -> Result<(), VariantSaveError> {
    if path.extension().is_some_and(|extension| extension == "toml") {
        return Ok(write_whole(path, variant.spec.as_bytes())?);
    }
    std::fs::create_dir_all(path)
        .map_err(|source| VariantSaveError::Directory { path: path.to_owned(), source })?;
    let report = variant.path.join(REPORT_FILE);
    let report = if report.is_file() { report } else { variant.path.clone() };
    copy_whole(&report, &path.join(REPORT_FILE))?;
    Ok(write_whole(&path.join("spec.toml"), variant.spec.as_bytes())?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a button requests the copy, and its end is reported"
)]
fn copy_whole(from: &Path, to: &Path) -> Result<(), VariantSaveError> {
    let mut copy = AtomicFile::create(to)?;
    File::open(from)
        .and_then(|mut report| io::copy(&mut report, copy.file_mut()))
        .map_err(|source| VariantSaveError::Copy { from: from.into(), to: to.into(), source })?;
    copy.commit()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_are_saved_as_specs_and_as_reports() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("report")).unwrap();
        std::fs::write(at("report").join(REPORT_FILE), "pop").unwrap();
        let variant = SpecVariant::new("v".into(), "", "[model]\n", at("report"));
        save(&variant, &at("mine.toml")).unwrap();
        save(&variant, &at("kept")).unwrap();
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(at("mine.toml")), "[model]\n");
        assert_eq!(read(at("kept").join("spec.toml")), "[model]\n");
        assert_eq!(read(at("kept").join(REPORT_FILE)), "pop");
    }

    #[test]
    fn failed_saves_keep_existing_files() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("kept");
        std::fs::create_dir(&kept).unwrap();
        std::fs::write(kept.join(REPORT_FILE), "old").unwrap();
        let variant = SpecVariant::new("v".into(), "", "", directory.path().join("nowhere"));
        assert!(save(&variant, &kept).is_err());
        assert_eq!(std::fs::read_to_string(kept.join(REPORT_FILE)).unwrap(), "old");
        assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 1);
    }
}
