//! A spec being edited: its text, and the program's answers about it.

use super::model_file::{ModelFileAnswers, ModelFileQueries};
use super::spec_editor::SpecEditor;
use super::spec_keys::{CheckedSpec, CompiledSpec, SpecKeyInfo, SpecProblem, SpecQueries};
use super::spec_text::{values, with_whole_path};
use super::variant_list::VariantList;
use crate::theme::ThemePalette;
use crate::theme::fonts::strong;
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState, Versioned};
use crate::widgets::icons::{self, Icon};
use egui::accesskit::Live;
use egui::{CollapsingHeader, Color32, Label, RichText, Sense, Ui, vec2};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilescope_report::units::{binary_bytes, grouped};

/// Values derived from a text, which is parsed once, not in every frame.
struct ParsedText {
    text: String,
    values: Arc<BTreeMap<String, String>>,
    /// The text with a path of the model that is valid in any directory.
    whole: String,
}

/// A spec as text, which may be invalid.
pub(crate) struct SpecDraft {
    pub text: String,
    /// The text as it was last parsed.
    parsed: Option<ParsedText>,
    /// The directory that the path of a model is relative to.
    base: PathBuf,
    /// The directory for specs that are only checked. No other window writes there.
    check_directory: PathBuf,
    keys: BackgroundQuery<(), Vec<SpecKeyInfo>>,
    checked: BackgroundQuery<String, CheckedSpec>,
    model: ModelFileQueries,
    editor: SpecEditor,
    /// The number of blocks of the model in the last valid text.
    blocks: Option<usize>,
    /// True if the folded text is to be unfolded.
    unfolds: bool,
    /// The line that was last marked as wrong.
    marked_line: Option<usize>,
}

/// The answers about a visible spec.
pub(crate) struct SpecAnswers {
    /// The keys of the spec with their values as TOML.
    pub values: Arc<BTreeMap<String, String>>,
    /// The keys that specs may have; empty until they are known.
    pub keys: QueryState<Vec<SpecKeyInfo>>,
    pub checked: QueryState<CheckedSpec>,
    /// The file of the model, if it has one.
    pub model: Option<ModelFileAnswers>,
    /// The number of blocks of the model, if a valid text had this model before.
    pub blocks: Option<usize>,
}

impl SpecAnswers {
    /// The keys that specs may have.
    pub(crate) fn keys(&self) -> &[SpecKeyInfo] {
        self.keys.answer().map_or(&[][..], |keys| keys)
    }

    /// A key by its path.
    pub(crate) fn key(&self, path: &str) -> Option<&SpecKeyInfo> {
        self.keys().iter().find(|key| key.path == path)
    }

    /// The value of a key as TOML, or its default.
    pub(crate) fn value(&self, path: &str) -> String {
        if let Some(value) = self.values.get(path) {
            return value.clone();
        }
        let model = self.model.as_ref();
        let file = model.and_then(|model| model.sized.answer());
        if let Some(value) = file.and_then(|file| file.default_of(path)) {
            return value;
        }
        self.key(path).map(|key| key.default.clone()).unwrap_or_default()
    }

    /// The value of a key that is a word.
    pub(crate) fn word(&self, path: &str) -> String {
        self.value(path).trim_matches('"').to_owned()
    }

    /// The value of a key that is an integer; 1 if it is not one.
    pub(crate) fn number(&self, path: &str) -> u64 {
        self.value(path).parse().unwrap_or(1)
    }

    /// The problem of the current text, if known.
    pub(crate) fn problem(&self) -> Option<&SpecProblem> {
        self.checked.answer().and_then(|checked| checked.problem())
    }
}

impl SpecDraft {
    /// A text whose model path is relative to `base`. Specs to check are written to
    /// `check_directory`.
    pub(crate) fn new(text: String, base: PathBuf, check_directory: PathBuf) -> Self {
        Self {
            text,
            parsed: None,
            base,
            check_directory,
            keys: BackgroundQuery::default(),
            checked: BackgroundQuery::default(),
            model: ModelFileQueries::default(),
            editor: SpecEditor::default(),
            blocks: None,
            unfolds: false,
            marked_line: None,
        }
    }

    /// The directory for texts that are queried.
    pub(crate) fn check_directory(&self) -> &Path {
        &self.check_directory
    }

    /// The text with a path of the model that is valid in any directory.
    pub(crate) fn whole_text(&self) -> String {
        with_whole_path(&self.text, &self.base)
    }

    /// The values of the text, and the text with a whole path of the model.
    fn parsed(&mut self) -> (Arc<BTreeMap<String, String>>, String) {
        let known = self.parsed.take().filter(|parsed| parsed.text == self.text);
        let parsed = known.unwrap_or_else(|| ParsedText {
            text: self.text.clone(),
            values: Arc::new(values(&self.text)),
            whole: self.whole_text(),
        });
        let answer = (Arc::clone(&parsed.values), parsed.whole.clone());
        self.parsed = Some(parsed);
        answer
    }

    /// Starts all queries about the text. The check runs only if the text is complete.
    pub(crate) fn ask(
        &mut self,
        ui: &Ui,
        workers: &BackgroundWorkers,
        queries: SpecQueries,
        is_complete: bool,
    ) -> SpecAnswers {
        let (values, whole) = self.parsed();
        let context = ui.ctx();
        let keys = self.keys.ask(context, workers, &(), move |()| (queries.keys)());
        let model = self.model.ask(context, workers, (&*values, &self.base), queries);
        let directory = self.check_directory.clone();
        let question =
            move |text: &String, cancelled: &_| (queries.check)(&directory, text, cancelled);
        let checked = if is_complete {
            self.checked.ask_newest(context, workers, &whole, question).fresh_only()
        } else {
            QueryState::Waiting { overdue: false }
        };
        if let Some(compiled) = checked.answer().and_then(|checked| checked.compiled()) {
            self.blocks = Some(compiled.block_count());
        }
        SpecAnswers { values, keys, checked, model, blocks: self.blocks }
    }

    /// The last check result, even if the text has changed since.
    pub(crate) fn last_checked(&self) -> Option<&Versioned<CheckedSpec>> {
        self.checked.latest()
    }

    /// Returns true if the last check found no error.
    pub(crate) fn was_valid(&self) -> bool {
        self.last_checked().is_some_and(|checked| checked.compiled().is_some())
    }

    /// Repeats all queries that depend on files, which may have changed.
    pub(crate) fn ask_again(&mut self) {
        self.model.forget();
        self.checked = BackgroundQuery::default();
    }

    /// Moves the cursor to a key of the text.
    pub(crate) fn go_to(&mut self, key: &'static str) {
        self.editor.go_to(key);
        self.unfolds = true;
    }

    /// The text editor below a heading that folds it. A request for a key and an error with a line
    /// unfold it.
    pub(crate) fn folded_editor_ui(
        &mut self,
        ui: &mut Ui,
        (title, is_open): (&str, bool),
        answers: &SpecAnswers,
        history: &VariantList,
    ) {
        if let Some(checked) = answers.checked.answer() {
            let line = checked.problem().and_then(|problem| problem.line);
            self.unfolds |= line.is_some() && line != self.marked_line;
            self.marked_line = line;
        }
        let unfolds = if std::mem::take(&mut self.unfolds) { Some(true) } else { None };
        let header = CollapsingHeader::new(title).default_open(is_open).open(unfolds);
        header.show(ui, |ui| self.editor_ui(ui, answers, history));
    }

    /// The text editor with completion and help. `history` provides the costs of values.
    fn editor_ui(&mut self, ui: &mut Ui, answers: &SpecAnswers, history: &VariantList) {
        self.editor.ui(ui, &mut self.text, answers.keys(), answers.problem(), history);
    }
}

/// The check result: an error, or whether the program fits in memory and the predicted length of
/// its run.
pub(crate) fn check_ui(ui: &mut Ui, answers: &SpecAnswers) {
    let palette = ThemePalette::for_ui(ui);
    let (icon, colour, words) = match &answers.checked {
        QueryState::Failed(error) => (Icon::Error, palette.error, error.to_string()),
        QueryState::Fresh(checked) | QueryState::Stale { answer: checked, .. } => {
            match &**checked {
                CheckedSpec::Refused(problem) => (Icon::Error, palette.error, problem.to_string()),
                CheckedSpec::Compiled(compiled) => fit_in_words(compiled, palette),
            }
        }
        QueryState::Waiting { .. } => {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.weak("Checking…");
            });
            return;
        }
    };
    ui.horizontal_top(|ui| {
        let (rect, _) = ui.allocate_exact_size(vec2(18.0, 18.0), Sense::hover());
        icons::paint(ui.painter(), rect, icon, colour);
        let words = Label::new(RichText::new(words).color(colour)).wrap().selectable(true);
        let id = ui.add(words).id;
        // Screen readers announce changes, regardless of the focus.
        ui.ctx().accesskit_node_builder(id, |node| node.set_live(Live::Polite));
    });
    let compiled = answers.checked.answer().and_then(|checked| checked.compiled());
    if let Some(warning) = compiled.and_then(|compiled| compiled.warning.as_deref()) {
        ui.add(Label::new(RichText::new(warning).color(palette.warning)).wrap().selectable(true));
    }
    if let Some(prediction) = compiled.and_then(CompiledSpec::prediction) {
        let id = ui.add(Label::new(strong(prediction)).wrap().selectable(true)).id;
        ui.ctx().accesskit_node_builder(id, |node| node.set_live(Live::Polite));
    }
}

/// The symbol, colour and sentence for the memory of a compiled spec.
fn fit_in_words(compiled: &CompiledSpec, palette: &ThemePalette) -> (Icon, Color32, String) {
    let need = binary_bytes(compiled.fullest_tile_bytes);
    let has = binary_bytes(compiled.tile_bytes);
    match compiled.tiles_out_of_memory {
        0 if compiled.fit.is_uncertain() => {
            let words = format!(
                "Fits, uncertain: the fullest tile needs {need} of {has}; the margin is within \
                 the model error."
            );
            (Icon::Warning, palette.warning, words)
        }
        0 => {
            let words = format!("Fits: the fullest tile needs {need} of {has}.");
            (Icon::Done, palette.good, words)
        }
        tiles => {
            let words = format!(
                "Does not fit in memory: {} tiles exceed their memory; the fullest needs {need} \
                 of {has}. The report shows what fills them.",
                grouped(tiles)
            );
            (Icon::Warning, palette.warning, words)
        }
    }
}
