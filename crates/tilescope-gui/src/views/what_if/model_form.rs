//! The form that makes a spec from an ONNX file, or changes the spec of a file: the contents of the
//! model, and the choices needed before a simulation.

use super::key_rows::{aside_ui, key_row_ui, many_rows_ui, problem_mark_ui, row_ui, word_ui};
use super::model_file::{ModelDim, ModelFile, ModelFileAnswers, ModelTensor, nodes_in_words};
use super::model_rows::{dimensions_ui, with_sizes_of};
use super::option_sliders::options_ui;
use super::spec_draft::{SpecAnswers, SpecDraft};
use super::spec_keys::{CompiledSpec, SpecQueries};
use super::spec_text::{quoted, with_value};
use super::stage_rows::{stages_ui, with_annotated_ipus, with_filled_pipeline, with_ipus_for};
use super::variant_list::VariantList;
use crate::model::command::{AppCommand, ChooserPurpose, CommandQueue};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::elided_text::without_middle;
use crate::widgets::icons::{self, Icon};
use crate::widgets::path_input::is_spec;
use crate::widgets::{empty_state_ui, waiting_ui};
use egui::{Label, RichText, Sense, TextStyle, Ui, vec2};
use std::path::{Path, PathBuf};
use tilescope_report::units::grouped;

/// The smallest width for the choices beside the contents of the file.
const TWO_COLUMNS: f32 = 600.0;
/// The share of the width for the contents of the file.
const FILE_COLUMN: f32 = 0.38;
/// The number of inputs and outputs shown without scrolling.
const MOST_TENSORS: usize = 8;
/// The number of unmodelled operators shown without scrolling.
const MOST_UNKNOWN: usize = 6;

const IPUS: &str = "target.ipus";
const TRAINING: &str = "model.training";

/// The state of the form.
pub(crate) struct ModelForm {
    path: PathBuf,
    draft: SpecDraft,
    filled: FilledPart,
    /// The text of a spec file.
    written: BackgroundQuery<String, String>,
    /// The error of reading a spec file.
    unreadable: Option<String>,
}

/// The part of the spec that has been filled in from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilledPart {
    /// Nothing: the spec is in a file that is being read.
    Nothing,
    /// The path of the file alone.
    Path,
    /// A size for each dimension. The annotations of the file are known only with sizes.
    Sizes,
    /// The whole spec, including the machine.
    Machine,
}

/// The progress of reading the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FormState {
    Reading,
    /// The file is unreadable: there is nothing to simulate.
    Unreadable,
    /// The spec is filled in.
    Filled,
}

impl ModelForm {
    /// A form for a model or a spec. Specs to check are written to `check_directory`.
    pub(crate) fn new(path: PathBuf, check_directory: PathBuf) -> Self {
        let directory = path.parent().map(Path::to_owned).unwrap_or_default();
        let (text, filled) = if is_spec(&path) {
            (String::new(), FilledPart::Nothing)
        } else {
            let text = format!("[model]\nonnx = {}\n", quoted(&path.to_string_lossy()));
            (text, FilledPart::Path)
        };
        let draft = SpecDraft::new(text, directory, check_directory);
        Self { path, draft, filled, written: BackgroundQuery::default(), unreadable: None }
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The file name without its extension.
    pub(crate) fn name(&self) -> String {
        let name = self.path.file_stem().unwrap_or(self.path.as_os_str());
        name.to_string_lossy().into_owned()
    }

    /// The spec with a path of the model that is valid in any directory.
    pub(crate) fn spec(&self) -> String {
        self.draft.whole_text()
    }

    /// Replaces the text of the spec.
    pub(crate) fn set_spec(&mut self, text: String) {
        self.draft.text = text;
    }

    /// Stops all queries. The file is read again when the form is next shown, because it may have
    /// changed.
    pub(crate) fn stop_asking(&mut self) {
        self.draft.ask_again();
        self.written = BackgroundQuery::default();
    }

    /// Starts all queries about the file and the spec.
    pub(crate) fn ask(
        &mut self,
        ui: &Ui,
        workers: &BackgroundWorkers,
        queries: SpecQueries,
    ) -> (FormState, SpecAnswers) {
        self.read_spec(ui, workers, queries);
        let has_sizes = ![FilledPart::Nothing, FilledPart::Path].contains(&self.filled);
        let answers = self.draft.ask(ui, workers, queries, has_sizes);
        let state = match answers.model.as_ref().map(|model| &model.written) {
            _ if self.unreadable.is_some() => FormState::Unreadable,
            _ if self.filled == FilledPart::Nothing => FormState::Reading,
            Some(QueryState::Failed(_)) => FormState::Unreadable,
            Some(QueryState::Fresh(file)) if file.too_open().is_some() => FormState::Unreadable,
            Some(QueryState::Fresh(file)) => {
                if self.fill(&answers, file) {
                    ui.ctx().request_repaint();
                }
                FormState::Filled
            }
            // The user removed the path from the text: the check reports that.
            None => FormState::Filled,
            _ => FormState::Reading,
        };
        (state, answers)
    }

    /// Reads the spec file, if the form is about one and it has not been read.
    fn read_spec(&mut self, ui: &Ui, workers: &BackgroundWorkers, queries: SpecQueries) {
        if self.filled != FilledPart::Nothing {
            return;
        }
        let name = self.path.to_string_lossy().into_owned();
        let read = move |name: &String, cancelled: &_| (queries.spec)(name, cancelled);
        match self.written.ask_cancellable(ui.ctx(), workers, &name, read) {
            QueryState::Fresh(text) => {
                self.draft.text.clone_from(&text);
                (self.filled, self.unreadable) = (FilledPart::Machine, None);
            }
            QueryState::Failed(error) => self.unreadable = Some(error.to_string()),
            QueryState::Stale { .. } | QueryState::Waiting { .. } => {}
        }
    }

    /// Fills in known properties of the file that the spec lacks. Returns true if there were any.
    fn fill(&mut self, answers: &SpecAnswers, file: &ModelFile) -> bool {
        let text = &self.draft.text;
        let sized = answers.model.as_ref().map(|model| &model.sized);
        (self.draft.text, self.filled) = match (self.filled, sized) {
            (FilledPart::Path, _) => (with_sizes_of(text, file), FilledPart::Sizes),
            // A choice made meanwhile by the user takes precedence.
            (FilledPart::Sizes, _) if answers.values.contains_key(IPUS) => {
                (text.clone(), FilledPart::Machine)
            }
            // The number of micro-batches depends on defaults of keys.
            (FilledPart::Sizes, Some(QueryState::Fresh(sized))) if !answers.keys().is_empty() => {
                (with_annotated_ipus(text, answers, sized), FilledPart::Machine)
            }
            _ => return false,
        };
        true
    }

    /// Shows everything except the result of the check.
    pub(crate) fn ui(&mut self, ui: &mut Ui, answers: &SpecAnswers, commands: &CommandQueue) {
        if let Some(error) = &self.unreadable {
            return unreadable_ui(ui, error, commands);
        }
        if self.filled == FilledPart::Nothing {
            return waiting_ui(ui, "Reading the file…");
        }
        let Some(model) = &answers.model else {
            if let Some(text) = options_ui(ui, &self.draft.text, answers) {
                self.draft.text = text;
            }
            ui.add_space(spacing::M);
            return self.spec_ui(ui, answers, true);
        };
        match &model.written {
            QueryState::Waiting { .. } => waiting_ui(ui, "Reading the file…"),
            QueryState::Failed(error) => unreadable_ui(ui, &error.to_string(), commands),
            QueryState::Fresh(file) | QueryState::Stale { answer: file, .. } => {
                if let Some(words) = file.too_open() {
                    return unreadable_ui(ui, &words, commands);
                }
                self.columns_ui(ui, answers, model, file);
                ui.add_space(spacing::M);
                self.spec_ui(ui, answers, false);
            }
        }
    }

    fn columns_ui(
        &mut self,
        ui: &mut Ui,
        answers: &SpecAnswers,
        model: &ModelFileAnswers,
        file: &ModelFile,
    ) {
        let width = ui.available_width();
        if width < TWO_COLUMNS {
            self.choices_ui(ui, answers, model, file);
            ui.add_space(spacing::L);
            return file_ui(ui, model, file);
        }
        ui.horizontal_top(|ui| {
            let left = (width * FILE_COLUMN).round();
            ui.vertical(|ui| {
                ui.set_width(left);
                file_ui(ui, model, file);
            });
            ui.add_space(spacing::XL);
            ui.vertical(|ui| {
                ui.set_width(ui.available_width());
                self.choices_ui(ui, answers, model, file);
            });
        });
    }

    /// Shows the choices.
    fn choices_ui(
        &mut self,
        ui: &mut Ui,
        answers: &SpecAnswers,
        model: &ModelFileAnswers,
        file: &ModelFile,
    ) {
        let text = self.draft.text.clone();
        let last = self.draft.last_checked().cloned();
        let compiled = last.as_ref().and_then(|checked| checked.compiled());
        let key = |ui: &mut Ui, path: &str, name: &str| {
            key_row_ui(ui, answers, path, name).map(|value| with_value(&text, path, &value))
        };
        let mut changed = unknown_ui(ui, &text, answers, model);
        heading_ui(ui, "Dimensions");
        changed = changed.or(dimensions_ui(ui, &text, answers, file));
        heading_ui(ui, "Model");
        let trains = answers.value(TRAINING) == "true";
        changed = changed.or(task_ui(ui, &text, (answers, compiled), trains));
        if trains {
            changed = changed.or(key(ui, "model.loss", "Loss"));
            changed = changed.or(loss_output_ui(ui, &text, answers, model));
            changed = changed.or(key(ui, "model.optimizer", "Optimiser"));
        }
        changed = changed.or(key(ui, "model.precision", "Precision"));
        heading_ui(ui, "Machine");
        changed = changed.or(key(ui, "target.name", "System"));
        let ipus = key_row_ui(ui, answers, IPUS, "IPUs of a replica");
        changed = changed.or(ipus.and_then(|ipus| ipus.parse().ok()).map(|ipus: u64| {
            with_ipus_for(&text, answers, ipus, usize::try_from(ipus).unwrap_or(1))
        }));
        changed = changed.or(key(ui, "options.replication_factor", "Replicas"));
        if answers.number(IPUS) > 1 {
            changed = changed.or(key(ui, "options.execution", "Execution"));
            let stages = compiled.map_or(&[][..], |compiled| &compiled.stages);
            let sized = model.sized.answer().map(|sized| &**sized);
            changed = changed.or(stages_ui(ui, &text, answers, sized, stages));
        }
        changed = changed.or(key(ui, "options.device_iterations", "Device iterations"));
        if trains {
            let name = "Accumulation";
            changed = changed.or(key(ui, "options.gradient_accumulation", name));
        }
        if let Some(changed) = changed {
            self.draft.text = changed;
        }
    }

    /// Shows the text of the spec, where everything else can be set.
    fn spec_ui(&mut self, ui: &mut Ui, answers: &SpecAnswers, open: bool) {
        let title = ("Spec: all other options", open);
        self.draft.folded_editor_ui(ui, title, answers, &VariantList::default());
    }
}

fn heading_ui(ui: &mut Ui, words: &str) {
    ui.add_space(spacing::S);
    ui.label(strong(words));
}

/// The error from reading the file, and a button for another file.
fn unreadable_ui(ui: &mut Ui, words: &str, commands: &CommandQueue) {
    empty_state_ui(ui, "This file cannot be simulated", words);
    ui.add_space(spacing::L);
    ui.vertical_centered(|ui| {
        if ui.button("Other file…").clicked() {
            commands.push(AppCommand::CloseModel);
            commands.push(AppCommand::ChooseReport(ChooserPurpose::Model));
        }
    });
    ui.add_space(spacing::L);
}

/// The choice between training and inference.
fn task_ui(
    ui: &mut Ui,
    text: &str,
    (answers, compiled): (&SpecAnswers, Option<&CompiledSpec>),
    trains: bool,
) -> Option<String> {
    let about = answers.key(TRAINING).map_or("", |key| key.about.as_str());
    let choices = [("false", "Inference"), ("true", "Training")];
    let current = if trains { "true" } else { "false" };
    let picked =
        row_ui(ui, ("Task", about), |ui| word_ui(ui, (TRAINING, "Task"), &choices, current));
    picked.map(|picked| {
        let text = with_value(text, TRAINING, &picked);
        // Training needs more micro-batches to fill a pipeline.
        let stages = compiled.map_or(1, |compiled| compiled.stages.len());
        with_filled_pipeline(&text, answers, stages, picked == "true")
    })
}

/// The choice of the output that the loss reads, if there are several.
fn loss_output_ui(
    ui: &mut Ui,
    text: &str,
    answers: &SpecAnswers,
    model: &ModelFileAnswers,
) -> Option<String> {
    const PATH: &str = "model.loss_output";
    let sized = model.sized.answer()?;
    let outputs = sized.outputs.as_deref().unwrap_or_default();
    if outputs.len() < 2 || answers.word("model.loss") == "auto" {
        return None;
    }
    let current = answers.word(PATH);
    let choices: Vec<(&str, &str)> =
        outputs.iter().map(|output| (output.name.as_str(), output.name.as_str())).collect();
    let about = answers.key(PATH).map_or("", |key| key.about.as_str());
    let picked = row_ui(ui, ("Loss input", about), |ui| {
        let picked = word_ui(ui, (PATH, "Output that the loss reads"), &choices, &current);
        problem_mark_ui(ui, answers, PATH);
        picked
    });
    picked.map(|picked| with_value(text, PATH, &quoted(&picked)))
}

/// The unmodelled operators, and the choice to simulate anyway.
fn unknown_ui(
    ui: &mut Ui,
    text: &str,
    answers: &SpecAnswers,
    model: &ModelFileAnswers,
) -> Option<String> {
    const PATH: &str = "model.allow_unknown";
    let sized = model.sized.answer()?;
    let unknown: Vec<_> = sized.unknown_ops().collect();
    if unknown.is_empty() {
        return None;
    }
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal(|ui| {
        let (rect, _) = ui.allocate_exact_size(vec2(18.0, 18.0), Sense::hover());
        icons::paint(ui.painter(), rect, Icon::Warning, palette.warning);
        let words = match unknown.len() {
            1 => "1 operator is not modelled".to_owned(),
            count => format!("{count} operators are not modelled"),
        };
        ui.label(strong(words));
    });
    many_rows_ui(ui, "unknown operators", unknown.len(), MOST_UNKNOWN, |ui, at| {
        let op = unknown[at];
        let nodes = match (&op.node, op.count) {
            (Some(node), 1) => format!("at {node}"),
            (Some(node), count) => format!("{}, first {node}", nodes_in_words(count)),
            (None, count) => nodes_in_words(count),
        };
        ui.horizontal(|ui| {
            ui.label(op.op.as_str());
            aside_ui(ui, &nodes).on_hover_text(nodes.as_str());
        });
    });
    let mut allowed = answers.value(PATH) == "true";
    let tick = ui.checkbox(&mut allowed, "Estimate each as one pass over its operands");
    let hint = "The report states the share of its figures that depends on this";
    tick.on_hover_text(hint).changed().then(|| with_value(text, PATH, &allowed.to_string()))
}

/// The contents of the file.
fn file_ui(ui: &mut Ui, model: &ModelFileAnswers, file: &ModelFile) {
    let palette = ThemePalette::for_ui(ui);
    heading_ui(ui, "In the file");
    let producer = if file.producer.is_empty() { "an unnamed exporter" } else { &file.producer };
    let lines =
        [format!("Opset {}, written by {producer}", file.opset), nodes_in_words(file.nodes)];
    for line in lines {
        ui.add(Label::new(line).wrap());
    }
    match &model.sized {
        QueryState::Fresh(sized) | QueryState::Stale { answer: sized, .. } => figures_ui(ui, sized),
        QueryState::Waiting { .. } => drop(ui.spinner()),
        QueryState::Failed(error) => {
            let words = RichText::new(error.to_string()).color(palette.error);
            ui.add(Label::new(words).wrap().selectable(true));
        }
    }
    ui.scope(|ui| tensors_ui(ui, "Inputs", &file.inputs));
    let outputs = model.sized.answer().and_then(|sized| sized.outputs.as_deref());
    ui.scope(|ui| tensors_ui(ui, "Outputs", outputs.unwrap_or_default()));
}

/// The figures that need a size for each dimension.
fn figures_ui(ui: &mut Ui, file: &ModelFile) {
    let figures =
        [(file.parameters, "parameters"), (file.macs, "multiply-accumulates in a forward pass")];
    for (figure, words) in figures {
        if let Some(figure) = figure {
            ui.add(Label::new(format!("{} {words}", grouped(figure))).wrap());
        }
    }
    if file.macs.is_none() {
        return;
    }
    heading_ui(ui, "Operators");
    for (state, about) in STATES {
        let ops: Vec<_> = file.ops.iter().filter(|op| op.state == state).collect();
        if ops.is_empty() {
            continue;
        }
        let nodes: u64 = ops.iter().map(|op| op.count).sum();
        let names: Vec<String> = ops
            .iter()
            .take(MOST_NAMED)
            .map(|op| format!("{} {}", grouped(op.count), op.op))
            .collect();
        let more = if ops.len() > MOST_NAMED { "\n…" } else { "" };
        let line = format!("{} {state}", nodes_in_words(nodes));
        ui.label(line).on_hover_text(format!("{about}\n\n{}{more}", names.join("\n")));
    }
}

/// The treatments of operators.
const STATES: [(&str, &str); 4] = [
    ("modelled", "Each is one operator of the simulator"),
    ("composed", "Each is several operators of the simulator"),
    ("folded", "They depend only on shapes and constants, and are computed when the file is read"),
    ("unknown", "Their cost is unknown"),
];

/// The largest number of operators named in a tooltip.
const MOST_NAMED: usize = 40;

fn tensors_ui(ui: &mut Ui, title: &str, tensors: &[ModelTensor]) {
    if tensors.is_empty() {
        return;
    }
    heading_ui(ui, title);
    let palette = ThemePalette::for_ui(ui);
    // Nothing here is clickable: rows are as high as their text.
    ui.spacing_mut().interact_size.y = 0.0;
    many_rows_ui(ui, title, tensors.len(), MOST_TENSORS, |ui, at| {
        let tensor = &tensors[at];
        let dims: Vec<String> = tensor
            .dims
            .iter()
            .map(|dim| match dim {
                ModelDim::Size(size) => size.to_string(),
                ModelDim::Symbol(name) => name.clone(),
            })
            .collect();
        let shape = format!("{} [{}]", tensor.element, dims.join(", "));
        ui.horizontal(|ui| {
            let font = TextStyle::Body.resolve(ui.style());
            let room = ui.available_width() * 0.5;
            let short = without_middle(ui.painter(), &tensor.name, font, palette.text, room);
            let whole = format!("{}\n{shape}", tensor.name);
            ui.label(short.unwrap_or_else(|| tensor.name.clone())).on_hover_text(whole.as_str());
            let shape = RichText::new(&shape).weak().size(text_size::SMALL);
            ui.add(Label::new(shape).truncate()).on_hover_text(whole);
        });
    });
}
