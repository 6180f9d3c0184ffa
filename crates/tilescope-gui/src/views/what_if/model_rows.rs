//! The rows for the file of an imported model and the sizes of its dimensions, which change a
//! spec's text.

use super::key_rows::{MAX_NUMBER, aside_ui, many_rows_ui, number_ui, problem_mark_ui, row_ui};
use super::model_file::{BATCH, ModelFile, ModelFileAnswers, ModelSymbol};
use super::spec_draft::{SpecAnswers, SpecDraft};
use super::spec_text::{dim_key, dim_name, values, with_value, without_value};
use crate::model::command::{AppCommand, ChooserPurpose, CommandQueue};
use crate::theme::ThemePalette;
use crate::widgets::background_query::QueryState;
use egui::{Align, Label, Layout, RichText, Ui};
use std::collections::BTreeMap;
use tilescope_report::Report;

/// The number of dimensions shown without scrolling.
const MOST_ROWS: usize = 24;

/// The model file of a spec being edited.
#[derive(Default)]
pub(super) struct ModelFileRows {
    /// The digest of the file when the report was made.
    recorded: Option<String>,
    /// True if the sizes are to be fitted to the file once it is known.
    fit: bool,
}

impl ModelFileRows {
    /// The rows for the spec of a report.
    pub(super) fn of(report: &Report) -> Self {
        let recorded = report.imported_model().map(|model| model.digest);
        let recorded = recorded.filter(|digest| !digest.is_empty());
        Self { recorded, ..Self::default() }
    }

    /// Requests sizes for the dimensions of the file, and the removal of others, once the file is
    /// known.
    pub(super) fn fit_sizes(&mut self) {
        self.fit = true;
    }

    /// Shows the file, its problems, and its dimensions.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        draft: &mut SpecDraft,
        answers: &SpecAnswers,
        model: &ModelFileAnswers,
        commands: &CommandQueue,
    ) {
        let path = model.path.display().to_string();
        let name = model.path.file_name().unwrap_or(model.path.as_os_str()).to_string_lossy();
        row_ui(ui, ("Model", "ONNX file that is simulated"), |ui| {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let other = ui.button("Other file…");
                let hint = "Simulate another ONNX file with this spec";
                if other.on_hover_text(hint).clicked() {
                    commands.push(AppCommand::ChooseReport(ChooserPurpose::SpecModel));
                }
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                    ui.add(Label::new(name).truncate()).on_hover_text(path.as_str());
                });
            });
        });
        match &model.written {
            QueryState::Failed(error) => {
                let words = format!("{path}: {error}");
                let colour = ThemePalette::for_ui(ui).error;
                ui.add(Label::new(RichText::new(words).color(colour)).wrap().selectable(true));
                if ui.button("Reload").clicked() {
                    draft.ask_again();
                }
            }
            QueryState::Fresh(file) | QueryState::Stale { answer: file, .. } => {
                if let Some(words) = file.too_open() {
                    let colour = ThemePalette::for_ui(ui).error;
                    ui.add(Label::new(RichText::new(words).color(colour)).wrap());
                    return;
                }
                if self.recorded.as_ref().is_some_and(|was| *was != file.content_hash) {
                    let palette = ThemePalette::for_ui(ui);
                    let words = "The file has changed since the report was made.";
                    ui.add(Label::new(RichText::new(words).color(palette.warning)).wrap());
                }
                if std::mem::take(&mut self.fit) {
                    draft.text = with_sizes_of(&draft.text, file);
                }
                if let Some(text) = dimensions_ui(ui, &draft.text, answers, file) {
                    draft.text = text;
                }
            }
            QueryState::Waiting { .. } => drop(ui.spinner()),
        }
    }
}

/// The key that sets the size of a dimension; the batch has two such keys.
fn size_key(symbol: &ModelSymbol, values: &BTreeMap<String, String>) -> String {
    let own = dim_key(&symbol.name);
    if symbol.is_batch && !values.contains_key(&own) { BATCH.to_owned() } else { own }
}

/// Shows rows for the open dimensions of a file. Returns the changed text.
pub(super) fn dimensions_ui(
    ui: &mut Ui,
    text: &str,
    answers: &SpecAnswers,
    file: &ModelFile,
) -> Option<String> {
    let mut changed = None;
    if let Some(batch) = file.fixed_batch() {
        row_ui(ui, ("Batch", "Samples of one forward pass"), |ui| {
            ui.label(batch.to_string());
            aside_ui(ui, "fixed by the file");
        });
    }
    many_rows_ui(ui, "dimensions", file.symbols.len(), MOST_ROWS, |ui, at| {
        let symbol = &file.symbols[at];
        let key = size_key(symbol, &answers.values);
        let places = places(symbol);
        row_ui(ui, (&symbol.name, &places), |ui| {
            let written = answers.values.get(&key).and_then(|value| value.parse().ok());
            let size = written.unwrap_or(symbol.suggested);
            let name = format!("Size of {}", symbol.name);
            if let Some(size) = number_ui(ui, &name, size, 1..=MAX_NUMBER) {
                changed = Some(with_value(text, &key, &size.to_string()));
            }
            problem_mark_ui(ui, answers, &key);
            let aside = if symbol.is_batch {
                "the batch: first dimension of all inputs".to_owned()
            } else if size == symbol.suggested {
                format!("a guess; {places}")
            } else {
                places.clone()
            };
            aside_ui(ui, &aside).on_hover_text(places.as_str());
        });
    });
    changed
}

/// The places of a dimension: `dimension 1 of input_ids, attention_mask`.
fn places(symbol: &ModelSymbol) -> String {
    const MOST_NAMED: usize = 4;
    let mut words: Vec<String> = Vec::new();
    let mut named = 0;
    for axes in symbol.places.chunk_by(|a, b| a.axis == b.axis) {
        let Some(first) = axes.first() else { continue };
        let room = MOST_NAMED.saturating_sub(named).min(axes.len());
        named += room;
        if room > 0 {
            let names: Vec<&str> = axes[..room].iter().map(|place| place.input.as_str()).collect();
            words.push(format!("dimension {} of {}", first.axis, names.join(", ")));
        }
    }
    let more = symbol.places.len() - named;
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", words.join("; "))
}

/// The text with a size for each dimension of a file and for no other: existing sizes, and guesses
/// for missing ones.
pub(super) fn with_sizes_of(text: &str, file: &ModelFile) -> String {
    let known = values(text);
    let is_of_file = |name: &str| file.symbols.iter().any(|symbol| symbol.name == name);
    let others = known.keys().filter(|key| dim_name(key).is_some_and(|name| !is_of_file(name)));
    let mut text = others.fold(text.to_owned(), |text, key| without_value(&text, key));
    if file.batch_symbol().is_none() && known.contains_key(BATCH) {
        text = without_value(&text, BATCH);
    }
    for symbol in file.symbols.iter().filter(|symbol| !symbol.is_batch) {
        let key = dim_key(&symbol.name);
        if !known.contains_key(&key) {
            text = with_value(&text, &key, &symbol.suggested.to_string());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::what_if::model_file::SymbolPlace;

    fn symbol(name: &str, is_batch: bool, places: &[(&str, usize)]) -> ModelSymbol {
        let place =
            |(input, axis): &(&str, usize)| SymbolPlace { input: (*input).to_owned(), axis: *axis };
        ModelSymbol {
            name: name.to_owned(),
            is_batch,
            places: places.iter().map(place).collect(),
            suggested: 128,
        }
    }

    #[test]
    fn dimension_places_have_short_texts() {
        let of = |places: &[(&str, usize)]| super::places(&symbol("s", false, places));
        assert_eq!(of(&[("ids", 1), ("mask", 1)]), "dimension 1 of ids, mask");
        assert_eq!(of(&[("a", 0), ("b", 2)]), "dimension 0 of a; dimension 2 of b");
        let many: Vec<(&str, usize)> = vec![("x", 1); 9];
        assert_eq!(of(&many), "dimension 1 of x, x, x, x and 5 more");
        assert_eq!(of(&[]), "");
    }

    #[test]
    fn sizes_follow_the_file() {
        let file = serde_json::json!({
            "opset": 17, "producer": "", "content_hash": "", "nodes": 1, "inputs": [],
            "outputs": null, "symbols": [], "has_loss": null, "annotated_ipus": null,
            "annotated_stages": null,
            "parameters": null, "macs": null, "ops": [],
        });
        let mut file: ModelFile = serde_json::from_value(file).unwrap();
        file.symbols = vec![symbol("n", true, &[]), symbol("a b", false, &[])];
        let text = "[model]\nonnx = \"x\"\nbatch_size = 4\ndim.gone = 7 # was there\n";
        let text = with_sizes_of(text, &file);
        assert_eq!(text, "[model]\nonnx = \"x\"\nbatch_size = 4\ndim.\"a b\" = 128\n");
        assert_eq!(with_sizes_of(&text, &file), text);
        file.symbols.clear();
        assert_eq!(with_sizes_of(&text, &file), "[model]\nonnx = \"x\"\n");
    }
}
