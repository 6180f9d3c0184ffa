//! The keys of a spec, with their types and their values in effect.

use serde_json::Value;
use std::collections::BTreeMap;
use tilescope_sim::model::MODELS;
use tilescope_sim::specification::keys::{KEYS, SpecKey, SpecKeyType, keys_called};
use tilescope_sim::specification::{Spec, nearest};

/// The table of dimensions of an ONNX file, which are in no list of keys.
const DIMENSIONS: &str = "model.dim.";

/// The keys that apply to a spec, with the values in effect.
pub struct EffectiveKeys {
    values: BTreeMap<String, Value>,
}

impl EffectiveKeys {
    /// The keys of a checked spec.
    pub fn of(spec: &Spec) -> Self {
        let value = |(path, text): &(String, String)| {
            let read = find(path).and_then(|key| key.read(text).ok());
            (path.clone(), read.map_or_else(|| json_of(text), |read| json_of(&read)))
        };
        Self { values: spec.effective_values.iter().map(value).collect() }
    }

    /// Paths of all keys.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// True if the key exists.
    pub fn has(&self, path: &str) -> bool {
        self.values.contains_key(path)
    }

    /// The value in effect.
    pub fn value(&self, path: &str) -> Option<&Value> {
        self.values.get(path)
    }

    /// The error message for an unknown path, with suggestions.
    pub fn unknown(&self, path: &str) -> String {
        let called = keys_called(path, self.paths().filter_map(find));
        if !called.is_empty() {
            return format!("unknown key {path:?}; did you mean {}?", called.join(" or "));
        }
        let paths: Vec<&str> = self.paths().collect();
        match nearest(path, &paths) {
            Some(near) => format!("unknown key {path:?}; did you mean {near}?"),
            None => {
                format!("unknown key {path:?}; tilescope specs --keys lists all keys")
            }
        }
    }
}

/// The description of a key; `None` for the dimensions of an ONNX file.
pub fn find(path: &str) -> Option<&'static SpecKey> {
    let own = MODELS.iter().flat_map(|model| model.sizes);
    KEYS.iter().chain(own).find(|key| key.path == path)
}

/// The type of a key's values: whole numbers for the dimensions of an ONNX file.
pub fn value_type(path: &str) -> SpecKeyType {
    match find(path) {
        Some(key) => key.value_type,
        None if path.starts_with(DIMENSIONS) => SpecKeyType::Integer(1, i64::MAX),
        None => SpecKeyType::Text,
    }
}

/// Parses a value of a key.
///
/// # Errors
/// An invalid value; the error states what was expected.
pub fn read(path: &str, written: &str) -> Result<Value, String> {
    match find(path) {
        Some(key) => key.read(written).map(|text| json_of(&text)).map_err(|error| {
            let near = match key.value_type {
                SpecKeyType::OneOf(words) => nearest(written, words),
                _ => None,
            };
            near.map_or_else(|| error.to_string(), |near| format!("{error}; did you mean {near}?"))
        }),
        None => Ok(json_of(written)),
    }
}

/// A TOML value as JSON; a word that is not TOML becomes a string.
fn json_of(text: &str) -> Value {
    let table = toml::from_str::<toml::Table>(&format!("value = {text}"));
    let value = table.ok().and_then(|mut table| table.remove("value"));
    let value = value.and_then(|value| serde_json::to_value(value).ok());
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}
