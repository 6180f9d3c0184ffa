//! Errors that state the problem, its place, and the expected value.

use crate::spec_keys::{SpecKey, SpecKeyType, SpecValue, keys_called, last_part};
use std::fmt;

/// The place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecLocation {
    /// A line of a file, counted from 1.
    Line {
        /// The path or name of the spec.
        file: String,
        line: usize,
    },
    /// A `--set` argument.
    Override,
    /// No place: the key is missing.
    NotWritten,
}

impl fmt::Display for SpecLocation {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Line { file, line } => write!(f, "{file}:{line}: "),
            Self::Override => f.write_str("--set: "),
            Self::NotWritten => Ok(()),
        }
    }
}

/// The reason why a spec was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct SpecError {
    pub location: SpecLocation,
    /// Dotted path of the key. Empty for a problem of the whole file.
    pub key: String,
    /// The problem and the expected value.
    pub problem: String,
    /// The probable intention.
    pub hint: Option<String>,
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}{}", self.location, self.without_place())
    }
}

impl SpecError {
    /// Formats the error without its place.
    pub fn without_place(&self) -> String {
        let key = if self.key.is_empty() { String::new() } else { format!("{}: ", self.key) };
        match &self.hint {
            Some(hint) => format!("{key}{}; did you mean {hint}?", self.problem),
            None => format!("{key}{}", self.problem),
        }
    }

    pub(super) fn new(location: SpecLocation, key: &str, problem: impl Into<String>) -> Self {
        Self { location, key: key.to_string(), problem: problem.into(), hint: None }
    }

    /// Adds the nearest of `choices` as a hint, or lists them if none is near.
    pub(crate) fn nearest(mut self, word: &str, choices: &[&str]) -> Self {
        self.hint = nearest(word, choices).map(str::to_string);
        if self.hint.is_none() {
            self.problem = format!("{}; known: {}", self.problem, choices.join(", "));
        }
        self
    }

    /// Adds the keys with this name in other programs as a hint, or otherwise the nearest of
    /// `keys`. If none is near, lists those of the same table, or names the command that lists all
    /// keys if there is no such table.
    pub(super) fn nearest_key(mut self, path: &str, keys: &[&SpecKey]) -> Self {
        let called = keys_called(path, keys.iter().copied());
        if !called.is_empty() {
            self.hint = Some(called.join(" or "));
            return self;
        }
        let paths: Vec<&str> = keys.iter().map(|key| &*key.path).collect();
        if nearest(path, &paths).is_some() {
            return self.nearest(path, &paths);
        }
        let table = path.rsplit_once('.').map_or("", |(table, _)| table);
        let mut in_table = paths.clone();
        in_table.retain(|key| key.rsplit_once('.').is_some_and(|(of_key, _)| of_key == table));
        if in_table.is_empty() {
            self.problem += "; tilescope specs --keys lists all keys";
            return self;
        }
        self.nearest(path, &in_table)
    }

    /// Adds the nearest allowed word if `form` has a fixed list of words.
    pub(super) fn choices(mut self, form: &SpecKeyType, value: &SpecValue) -> Self {
        if let (SpecKeyType::OneOf(words), SpecValue::String(word)) = (form, value) {
            self.hint = nearest(word, words).map(|word| format!("{word:?}"));
        }
        self
    }
}

/// A word of an earlier version, which the next version will reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecWarning {
    /// The place of the word.
    pub location: SpecLocation,
    /// Dotted path of the key.
    pub key: String,
    /// The earlier word.
    pub old: &'static str,
    /// The word that replaces it.
    pub new: &'static str,
}

impl fmt::Display for SpecWarning {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Self { location, key, old, new } = self;
        write!(
            f,
            "{location}{key}: {old:?} has been renamed to {new:?}; the next version will reject it"
        )
    }
}

/// The minimum number of letters of a word that is completed to a name.
const SHORTEST_BEGINNING: usize = 3;

/// Returns the choice most similar to `word`, if any is similar enough to explain a typing error.
pub fn nearest<'a>(word: &str, choices: &[&'a str]) -> Option<&'a str> {
    let likeness = choices.iter().map(|choice| (*choice, likeness(word, choice)));
    let (best, likeness) = likeness.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    if likeness >= 0.6 { Some(best) } else { None }
}

/// The similarity of a word and a choice, from 0 to 1.
fn likeness(word: &str, choice: &str) -> f64 {
    let whole = strsim::normalized_damerau_levenshtein(word, choice);
    // The last parts of paths are compared as well: `gradient_acumulation` in the wrong table.
    let tail = strsim::normalized_damerau_levenshtein(last_part(word), last_part(choice));
    // The beginning of a name stands for the shortest name that continues it: `mnist` for
    // `mnist_pipeline`.
    let begun = word.len() >= SHORTEST_BEGINNING && choice.starts_with(word);
    let beginning = if begun { 0.8 + 0.2 * whole } else { 0.0 };
    whole.max(tail * 0.99).max(beginning)
}
