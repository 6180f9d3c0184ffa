//! The rows of a form: a name, and the control of one key beside it.

use super::spec_draft::SpecAnswers;
use super::spec_text::quoted;
use crate::theme::{ThemePalette, text_size};
use crate::widgets::icons::{self, Icon};
use egui::{
    Align, ComboBox, DragValue, Label, Layout, Response, RichText, ScrollArea, Sense, TextStyle,
    Ui, vec2,
};
use std::ops::RangeInclusive;

/// The largest width of a name.
const NAME: f32 = 124.0;

/// The largest size of a dimension, and of other numbers without a limit.
pub(super) const MAX_NUMBER: u64 = 1 << 24;

/// The height of the list of a choice.
const CHOICES: f32 = 320.0;

/// A row: its name, then its control.
pub(super) fn row_ui<R>(
    ui: &mut Ui,
    (name, about): (&str, &str),
    control: impl FnOnce(&mut Ui) -> R,
) -> R {
    let width = NAME.min(ui.available_width() * 0.4);
    ui.horizontal(|ui| {
        let size = vec2(width, ui.spacing().interact_size.y);
        ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
            ui.set_min_width(width);
            let name = ui.add(Label::new(RichText::new(name).weak()).truncate());
            if !about.is_empty() {
                name.on_hover_text(about);
            }
        });
        control(ui)
    })
    .inner
}

/// A note after a control.
pub(super) fn aside_ui(ui: &mut Ui, words: &str) -> Response {
    let words = RichText::new(words).weak().size(text_size::CAPTION);
    ui.add(Label::new(words).truncate())
}

/// Shows the row of a key. Returns its new value as TOML, if it was changed.
pub(super) fn key_row_ui(
    ui: &mut Ui,
    answers: &SpecAnswers,
    path: &str,
    name: &str,
) -> Option<String> {
    let key = answers.key(path)?;
    row_ui(ui, (name, &key.about), |ui| {
        let changed = match key.kind.as_str() {
            "integer" | "power_of_two" => {
                let range = whole_or(key.min, 0)..=whole_or(key.max, MAX_NUMBER);
                number_ui(ui, name, answers.number(path), range).map(|number| number.to_string())
            }
            "flag" => {
                let mut ticked = answers.value(path) == "true";
                let tick = ui.checkbox(&mut ticked, "").on_hover_text(&key.about);
                if tick.accessible_name(name).changed() { Some(ticked.to_string()) } else { None }
            }
            _ => {
                let words: Vec<(&str, &str)> =
                    key.words.iter().map(|word| (word.as_str(), in_words(path, word))).collect();
                let current = answers.word(path);
                word_ui(ui, (path, name), &words, &current).map(|word| quoted(&word))
            }
        };
        problem_mark_ui(ui, answers, path);
        changed
    })
}

fn whole_or(bound: Option<f64>, without: u64) -> u64 {
    bound.map_or(without, |bound| bound as u64)
}

/// The text for a value of a key in the form of a model.
fn in_words<'a>(path: &str, word: &'a str) -> &'a str {
    match (path, word) {
        // A file has its own types.
        ("model.precision", "as_is") => "types of the file",
        ("model.loss", "auto") => "loss of the file",
        _ => word,
    }
}

/// A symbol after the control of the key that the check complains about.
pub(super) fn problem_mark_ui(ui: &mut Ui, answers: &SpecAnswers, path: &str) {
    let Some(problem) = answers.problem().filter(|problem| problem.is_about(path)) else { return };
    let colour = ThemePalette::for_ui(ui).error;
    let (rect, mark) = ui.allocate_exact_size(vec2(16.0, 16.0), Sense::hover());
    icons::paint(ui.painter(), rect, Icon::Error, colour);
    mark.on_hover_text(problem.message.as_str());
}

/// Shows a number. Returns the new one, once it is entered.
pub(super) fn number_ui(
    ui: &mut Ui,
    name: &str,
    current: u64,
    range: RangeInclusive<u64>,
) -> Option<u64> {
    let mut number = current;
    // Intermediate values while typing are not applied.
    let drag = DragValue::new(&mut number).speed(0.2).update_while_editing(false);
    // The check judges the value in the spec's text.
    let drag = drag.range(range).clamp_existing_to_range(false);
    let drag = ui.add_sized(vec2(76.0, ui.spacing().interact_size.y), drag);
    drag.accessible_name(name);
    if number != current { Some(number) } else { None }
}

/// Shows a choice between words. Returns the new value.
pub(super) fn word_ui(
    ui: &mut Ui,
    (salt, name): (&str, &str),
    choices: &[(&str, &str)],
    current: &str,
) -> Option<String> {
    let title = choices.iter().find(|(value, _)| *value == current).map_or(current, |(_, t)| *t);
    let mut picked = None;
    let width = ui.available_width().min(230.0);
    let shown = ComboBox::from_id_salt(salt).selected_text(title).width(width).height(CHOICES);
    let shown = shown.truncate().show_ui(ui, |ui| {
        for (value, text) in choices {
            if ui.selectable_label(*value == current, *text).clicked() {
                picked = Some((*value).to_owned());
            }
        }
    });
    shown.response.accessible_name(name);
    picked.filter(|value| value != current)
}

/// Rows of one height. Only the visible ones are laid out.
pub(super) fn many_rows_ui(
    ui: &mut Ui,
    salt: &str,
    count: usize,
    most_shown: usize,
    mut row: impl FnMut(&mut Ui, usize),
) {
    let height = ui.spacing().interact_size.y.max(ui.text_style_height(&TextStyle::Body));
    if count <= most_shown {
        return (0..count).for_each(|at| row(ui, at));
    }
    let step = height + ui.spacing().item_spacing.y;
    ScrollArea::vertical().id_salt(salt).max_height(step * most_shown as f32).show_rows(
        ui,
        height,
        count,
        |ui, rows| rows.for_each(|at| row(ui, at)),
    );
}
