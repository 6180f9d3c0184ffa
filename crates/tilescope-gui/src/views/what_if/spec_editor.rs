//! The editor of a spec's text: completion, help for the key under the cursor, and a mark on the
//! line with the error.

use super::spec_keys::{SpecKeyInfo, SpecProblem};
use super::spec_text::{key_on_line, table_on_line, values, with_value};
use super::variant_list::VariantList;
use crate::theme::{ThemePalette, spacing, text_size};
use egui::text::{CCursor, CCursorRange};
use egui::text_edit::TextEditState;
use egui::{Color32, Id, Key, Modifiers, Rect, RichText, TextEdit, Ui, pos2};

/// The largest number of completions.
const MAX_COMPLETIONS: usize = 10;

/// The state of the editor.
#[derive(Default)]
pub(crate) struct SpecEditor {
    /// The last position of the cursor, in characters.
    cursor: usize,
    /// The key requested by another widget, until the cursor moves.
    asked: Option<&'static str>,
}

/// The completions at the cursor.
struct SpecCompletions {
    /// The number of characters before the cursor that a completion replaces.
    typed: usize,
    words: Vec<String>,
}

impl SpecEditor {
    /// Moves the cursor to a key. Shows its help if the text does not set it.
    pub(crate) fn go_to(&mut self, key: &'static str) {
        self.asked = Some(key);
    }

    /// Moves the cursor to the requested key, if the text sets it.
    fn follow(&mut self, ui: &Ui, id: Id, text: &str) {
        let Some(key) = self.asked else { return };
        let mut lines = 0..text.lines().count();
        let line = lines.find(|line| key_on_line(text, *line).as_deref() == Some(key));
        let Some(line) = line else { return };
        let before: usize = text.lines().take(line).map(|line| line.chars().count() + 1).sum();
        self.asked = None;
        self.put_cursor(ui, id, before);
    }

    fn put_cursor(&mut self, ui: &Ui, id: Id, at: usize) {
        self.cursor = at;
        let mut state = TextEditState::load(ui.ctx(), id).unwrap_or_default();
        state.cursor.set_char_range(Some(CCursorRange::one(CCursor::new(at))));
        state.store(ui.ctx(), id);
        ui.ctx().memory_mut(|memory| memory.request_focus(id));
    }

    /// Shows the text for editing.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        text: &mut String,
        keys: &[SpecKeyInfo],
        problem: Option<&SpecProblem>,
        history: &VariantList,
    ) {
        let offers = self.offers(text, keys);
        let id = ui.scope_id().with("spec text");
        let focused = ui.ctx().memory(|memory| memory.has_focus(id));
        let take = !offers.words.is_empty()
            && offers.typed > 0
            && focused
            && ui.input_mut(|i| i.consume_key(Modifiers::CTRL, Key::Space));
        if let (true, Some(word)) = (take, offers.words.first()) {
            self.complete(ui, id, text, &offers, word);
        }
        self.follow(ui, id, text);
        let output = TextEdit::multiline(text)
            .id(id)
            .code_editor()
            .desired_width(f32::INFINITY)
            .desired_rows(14)
            .show(ui);
        output.response.response.clone().accessible_name("Text of the spec");
        if let Some(range) = output.cursor_range {
            let cursor = range.primary.index.into();
            if std::mem::replace(&mut self.cursor, cursor) != cursor {
                self.asked = None;
            }
        }
        let line = problem.and_then(|problem| problem.line);
        if let Some(row) = line.and_then(|line| row_of_line(&output.galley, line)) {
            let rect = row.translate(output.galley_pos.to_vec2());
            let across = output.response.response.rect;
            let rect = Rect::from_min_max(
                pos2(across.left(), rect.top()),
                pos2(across.right(), rect.bottom()),
            );
            let colour = ThemePalette::for_ui(ui).error;
            let painter = ui.painter().with_clip_rect(across);
            painter.rect_filled(rect, 0.0, faint(colour));
        }
        self.offers_ui(ui, id, text, &offers);
        self.key_ui(ui, text, keys, history);
    }

    fn line(&self, text: &str) -> usize {
        text.chars().take(self.cursor).filter(|letter| *letter == '\n').count()
    }

    fn offers(&self, text: &str, keys: &[SpecKeyInfo]) -> SpecCompletions {
        let line = self.line(text);
        let before: String = text.chars().take(self.cursor).collect();
        let start = before.rsplit('\n').next().unwrap_or("");
        let set = values(text);
        let named = set.get("model.name").map(|name| name.trim_matches('"').to_owned());
        let model = named.or_else(|| set.get("model.onnx").map(|_| "onnx".to_owned()));
        let fits = |key: &&SpecKeyInfo| key.model.is_none() || key.model == model;
        let (typed, all): (&str, Vec<String>) = match start.split_once('=') {
            Some((_, value)) => {
                let path = key_on_line(text, line).unwrap_or_default();
                let key = keys.iter().find(|key| key.path == path);
                let words = key.map(words).unwrap_or_default();
                (value.trim_start(), words)
            }
            None => {
                let table = table_on_line(text, line);
                let inside = keys.iter().filter(fits).filter(|key| !set.contains_key(&key.path));
                let typed = start.trim_start();
                let mut names: Vec<String> = Vec::new();
                for key in inside {
                    let Some(name) = key.path.strip_prefix(&format!("{table}.")) else { continue };
                    // Keys of subtables are offered once their name begins.
                    if !typed.is_empty() || !name.contains('.') {
                        names.push(name.to_owned());
                    }
                }
                (typed, names)
            }
        };
        let begins = |word: &String| word.starts_with(typed) && word != typed;
        let words = all.into_iter().filter(begins).take(MAX_COMPLETIONS).collect();
        SpecCompletions { typed: typed.chars().count(), words }
    }

    fn offers_ui(&mut self, ui: &mut Ui, id: Id, text: &mut String, offers: &SpecCompletions) {
        if offers.words.is_empty() {
            return;
        }
        ui.horizontal_wrapped(|ui| {
            ui.spacing_mut().item_spacing.x = spacing::XS;
            for (at, word) in offers.words.iter().enumerate() {
                let button = ui.small_button(word);
                let first = at == 0 && offers.typed > 0;
                let hint = if first { "Insert this (Ctrl + Space)" } else { "Insert this" };
                if button.on_hover_text(hint).clicked() {
                    self.complete(ui, id, text, offers, word);
                }
            }
        });
    }

    /// Replaces the typed part of a word by the word.
    fn complete(
        &mut self,
        ui: &Ui,
        id: Id,
        text: &mut String,
        offers: &SpecCompletions,
        word: &str,
    ) {
        let start = self.cursor.saturating_sub(offers.typed);
        let front: String = text.chars().take(start).collect();
        let back: String = text.chars().skip(self.cursor).collect();
        *text = format!("{front}{word}{back}");
        self.put_cursor(ui, id, start + word.chars().count());
    }

    /// The help for the requested key or the key under the cursor, and the costs of its values so
    /// far.
    fn key_ui(&self, ui: &mut Ui, text: &mut String, keys: &[SpecKeyInfo], history: &VariantList) {
        let asked = self.asked.map(str::to_owned);
        let path = asked.or_else(|| key_on_line(text, self.line(text)));
        let key = path.and_then(|path| keys.iter().find(|key| key.path == path));
        let Some(key) = key else {
            let hint = "Place the cursor on a key to read its meaning.";
            ui.label(RichText::new(hint).weak().size(text_size::CAPTION));
            return;
        };
        ui.horizontal(|ui| {
            ui.label(RichText::new(&key.path).strong());
            let hint = "Insert it into the spec with its default value";
            if self.asked.is_some()
                && !key.default.is_empty()
                && ui.small_button("Add").on_hover_text(hint).clicked()
            {
                *text = with_value(text, &key.path, &key.default);
            }
        });
        ui.label(&key.about);
        let default = if key.default.is_empty() { "none" } else { &key.default };
        let values = format!("{}; default {default}", key.values);
        ui.label(RichText::new(values).weak().size(text_size::CAPTION));
        if !key.also.is_empty() {
            ui.label(RichText::new(&key.also).weak().size(text_size::CAPTION));
        }
        for line in history.value_costs(key) {
            ui.label(RichText::new(line).size(text_size::CAPTION));
        }
    }
}

/// The enumerable values of a key, as TOML.
fn words(key: &SpecKeyInfo) -> Vec<String> {
    match key.kind.as_str() {
        "flag" => vec!["true".to_owned(), "false".to_owned()],
        "word" => key.words.iter().map(|word| format!("{word:?}")).collect(),
        _ => Vec::new(),
    }
}

fn faint(colour: Color32) -> Color32 {
    colour.gamma_multiply(0.18)
}

/// The first screen row of a line, counted from 1.
fn row_of_line(galley: &egui::Galley, line: usize) -> Option<Rect> {
    let mut at = 1;
    for row in &galley.rows {
        if at == line {
            return Some(row.rect());
        }
        at += usize::from(row.ends_with_newline);
    }
    None
}
