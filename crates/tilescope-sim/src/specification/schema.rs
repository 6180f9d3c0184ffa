//! A JSON schema of specs, with which TOML editors complete and check them.
//!
//! The schema is draft 7 with the keywords that every editor supports: no `if`, no `const`.

use super::keys::KEYS;
use crate::model::{self, MODELS};
use crate::spec_keys::{COUNT, SpecKey, SpecKeyType, SpecValue};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// Returns the schema of a spec. The sizes of all models are listed together. Their descriptions
/// name the models, and the reader of the spec checks them.
pub fn schema() -> Json {
    let mut root = table("Specification of a simulation");
    for key in KEYS.iter() {
        put(&mut root, &key.path, property(key, &describe(key)));
    }
    for (path, of) in sizes() {
        put(&mut root, path, of);
    }
    root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    root["required"] = json!(["model"]);
    // A model is either built in or from a file.
    root["properties"]["model"]["anyOf"] =
        json!([{ "required": ["name"] }, { "required": ["onnx"] }]);
    root["properties"]["model"]["properties"]["dim"] = dimensions();
    root
}

/// The sizes of all models by path. A size of several models accepts the values of any of them.
fn sizes() -> Vec<(&'static str, Json)> {
    let mut sizes: BTreeMap<&'static str, (SpecKeyType, Vec<String>)> = BTreeMap::new();
    for (model, key) in
        MODELS.iter().flat_map(|model| model.sizes.iter().map(move |key| (model, key)))
    {
        let (form, known) = sizes.entry(&key.path).or_insert((key.value_type, Vec::new()));
        *form = form.or(key.value_type);
        known.push(format!("{} (model {:?}, default {})", describe(key), model.name, key.default));
    }
    let mut schemas = Vec::new();
    for (path, (form, known)) in sizes {
        let mut schema = form.schema();
        schema["description"] = json!(known.join("\n\n"));
        schemas.push((path, schema));
    }
    schemas
}

/// Inserts a property at its dotted path, and creates missing tables.
fn put(root: &mut Json, path: &str, property: Json) {
    let mut parts: Vec<&str> = path.split('.').collect();
    let name = parts.pop().unwrap_or_default();
    let mut at = root;
    for part in parts {
        let inner = &mut at["properties"][part];
        if inner.is_null() {
            *inner = table(&format!("[{part}]"));
        }
        at = inner;
    }
    at["properties"][name] = property;
}

fn table(about: &str) -> Json {
    json!({
        "type": "object",
        "description": about,
        "additionalProperties": false,
        "properties": Map::new(),
    })
}

/// Describes a key for a tooltip.
fn describe(key: &SpecKey) -> String {
    let names = key.notes.names.iter().map(|(who, name)| format!("{}: {name}", who.name()));
    let shown = Some(&key.notes.shows_in).filter(|views| !views.is_empty());
    let shown = shown.map(|views| format!("Shown in: {views}"));
    std::iter::once(key.about.to_string()).chain(names).chain(shown).collect::<Vec<_>>().join("\n")
}

fn property(key: &SpecKey, description: &str) -> Json {
    let mut property = key.value_type.schema();
    property["description"] = json!(description);
    if let Some(default) = SpecValue::parse(&key.default) {
        property["default"] = default.json();
    }
    property
}

impl SpecKeyType {
    /// Joins the ranges of two integer types.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Integer(a, b), Self::Integer(c, d)) => Self::Integer(a.min(c), b.max(d)),
            _ => self,
        }
    }

    /// The schema of the values.
    fn schema(&self) -> Json {
        match self {
            Self::Integer(min, max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
            Self::PowerOfTwo(max) => {
                let powers: Vec<i64> =
                    (0..63).map(|power| 1 << power).take_while(|power| power <= max).collect();
                json!({ "type": "integer", "enum": powers })
            }
            Self::RealAbove(above, up_to) => {
                json!({ "type": "number", "exclusiveMinimum": above, "maximum": up_to })
            }
            Self::RealsAboveOr(above, up_to, word) => json!({
                "anyOf": [
                    Self::RealAbove(*above, *up_to).schema(),
                    { "const": word },
                    {
                        "type": "array",
                        "items": Self::RealAbove(*above, *up_to).schema(),
                        "minItems": 1,
                    },
                ],
            }),
            Self::RealFrom(from, up_to) => {
                json!({ "type": "number", "minimum": from, "maximum": up_to })
            }
            Self::Boolean => json!({ "type": "boolean" }),
            Self::OneOf(words) => json!({ "type": "string", "enum": words }),
            Self::ModelName => json!({ "type": "string", "enum": model::names() }),
            Self::Text => json!({ "type": "string" }),
            Self::Texts => json!({ "type": "array", "items": { "type": "string" } }),
            Self::Stages => stages(),
        }
    }
}

/// The schema of the values of symbolic dimensions of a file, by name.
fn dimensions() -> Json {
    let mut dimensions = table("Symbolic dimensions of the file model.onnx, by name");
    dimensions["additionalProperties"] = COUNT.schema();
    dimensions
}

/// The schema of a stage: a block, several blocks, or blocks and the IPU that they run on.
fn stages() -> Json {
    let block = json!({ "type": "string" });
    let blocks = json!({ "type": "array", "items": block, "minItems": 1 });
    let placed = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["blocks"],
        "properties": {
            "blocks": { "anyOf": [block, blocks] },
            "ipu": { "type": "integer", "minimum": 0, "maximum": 63 },
        },
    });
    json!({ "type": "array", "items": { "anyOf": [block, blocks, placed] } })
}

impl SpecValue {
    fn json(&self) -> Json {
        match self {
            Self::Integer(number) => json!(number),
            Self::Float(number) => json!(number),
            Self::Boolean(flag) => json!(flag),
            Self::String(text) => json!(text),
            Self::Array(items) => items.iter().map(Self::json).collect(),
            Self::Table(entries) => {
                entries.iter().map(|(key, value)| (key.clone(), value.json())).collect()
            }
        }
    }
}
