//! Tables outside of reports: bundled specs, and keys of specs.

use crate::cli::specs::{all_keys, key_words};
use serde_json::{Value, json};
use tilescope_sim::specification::BUNDLED_SPECS;

/// The rows of a table outside of reports.
pub(super) fn rows(table: &str) -> Option<Vec<Value>> {
    match table {
        "specs" => Some(specs()),
        "keys" => Some(keys()),
        _ => None,
    }
}

fn specs() -> Vec<Value> {
    let specs = BUNDLED_SPECS.iter();
    let specs = specs.map(
        |spec| json!({ "name": spec.name, "group": spec.group.title(), "about": spec.about() }),
    );
    specs.collect()
}

fn keys() -> Vec<Value> {
    let keys = all_keys().map(|(model, key)| {
        json!({
            "path": key.path,
            "model": model,
            "values": key.value_type.describe(),
            "words": key_words(key),
            "default": key.default,
            "about": key.about,
            "also": key.known_as(),
        })
    });
    keys.collect()
}
