//! The keys of specs.

use super::super::answer::first;
use super::super::arguments::{ArgumentKind, CheckedArguments, ToolArgument};
use super::super::session::McpSession;
use super::{LIMIT, McpTool};
use crate::cli::CliError;
use crate::cli::specs::{all_keys, key_words};
use serde_json::{Value, json};

const CONTAINS: ToolArgument = ToolArgument::optional(
    "contains",
    ArgumentKind::Text,
    "Only keys whose path, meaning or name in PopTorch, PopART or TensorFlow contains this",
);

pub(super) const TOOL: McpTool = McpTool {
    name: "keys",
    about: "Keys of specs with their values, default and meaning: what `changes` may set.",
    arguments: &[CONTAINS, LIMIT],
    run,
};

fn run(arguments: &CheckedArguments<'_>, _: &mut McpSession) -> Result<Value, CliError> {
    let word = arguments.text(CONTAINS.name).unwrap_or_default().to_lowercase();
    let keys: Vec<Value> = all_keys()
        .map(|(model, key)| {
            json!({
                "path": key.path,
                "model": model,
                "values": key.value_type.describe(),
                "words": key_words(key),
                "default": key.default,
                "about": key.about,
                "also": key.known_as(),
            })
        })
        .filter(|key| {
            let fields = ["path", "about", "also"].map(|field| key[field].to_string());
            fields.iter().any(|text| text.to_lowercase().contains(&word))
        })
        .collect();
    Ok(json!({ "keys": first(keys.into_iter(), arguments.limit(), |key| key) }))
}
