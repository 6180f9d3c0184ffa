//! `specs`: lists the bundled specs, prints one, lists the keys of specs, or prints their schema.

use super::command::{CliCommand, CliError};
use super::completions::BUNDLED_SPEC;
use crate::cli::error::UsageError;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Value, json};
use std::io::Write;
use tilescope_sim::model::MODELS;
use tilescope_sim::onnx::is_import_key;
use tilescope_sim::specification::keys::{KEYS, KeyControl, SpecKey, SpecKeyType};
use tilescope_sim::specification::{BUNDLED_SPECS, BundledSpecGroup, SpecSource, schema};

/// `tilescope specs`
pub(super) const COMMAND: CliCommand = CliCommand { name: "specs", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("List the bundled specs, print one as a starting point, or list every key of a spec")
        .arg(Arg::new("name").value_name(BUNDLED_SPEC).help("Bundled spec to print"))
        .arg(
            Arg::new("keys")
                .long("keys")
                .action(ArgAction::SetTrue)
                .conflicts_with("name")
                .help("List every key with its values, default and meaning"),
        )
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .requires("keys")
                .help("Print the keys as JSON"),
        )
        .arg(
            Arg::new("schema")
                .long("schema")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["name", "keys"])
                .help("Print a JSON schema of specs, for completion of TOML in editors"),
        )
        .after_help(
            "Examples:\n  tilescope specs\n  tilescope specs mnist_pipeline > my_model.toml\n  \
             tilescope specs --keys\n  tilescope specs --schema > options.schema.json",
        )
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    if matches.get_flag("keys") {
        return keys(matches.get_flag("json"), output);
    }
    if matches.get_flag("schema") {
        return super::command::print_json(&schema(), output);
    }
    match matches.get_one::<String>("name") {
        Some(name) => {
            let bundled = BUNDLED_SPECS.iter().find(|spec| spec.name == name);
            match bundled {
                Some(spec) => write!(output, "{}", spec.text)?,
                None => {
                    SpecSource::find(name, &[])?;
                    return Err(UsageError::NotBundled(name.clone()).into());
                }
            }
        }
        None => {
            let width = BUNDLED_SPECS.iter().map(|spec| spec.name.len()).max().unwrap_or(0);
            for group in BundledSpecGroup::ALL {
                writeln!(output, "{}", group.title())?;
                for spec in BUNDLED_SPECS.iter().filter(|spec| spec.group == group) {
                    writeln!(output, "  {:width$}  {}", spec.name, spec.about())?;
                }
            }
        }
    }
    Ok(())
}

/// Every key: first those of specs, then those of each model. Keys of single models come with the
/// model's name; imported models are "onnx".
pub(super) fn all_keys() -> impl Iterator<Item = (Option<&'static str>, &'static SpecKey)> {
    let own = MODELS.iter().flat_map(|model| model.sizes.iter().map(|key| (Some(model.name), key)));
    KEYS.iter().map(|key| (is_import_key(&key.path).then_some("onnx"), key)).chain(own)
}

fn keys(as_json: bool, output: &mut dyn Write) -> Result<(), CliError> {
    if as_json {
        let list: Vec<Value> = all_keys().map(|(model, key)| key_json(model, key)).collect();
        return super::command::print_json(&Value::Array(list), output);
    }
    for (model, key) in all_keys() {
        let default = if key.default.is_empty() { "none" } else { &*key.default };
        let of = model.map_or_else(String::new, |model| format!(" (model {model:?})"));
        writeln!(output, "{}{of}: {}; default {default}", key.path, key.value_type.describe())?;
        writeln!(output, "    {}", key.about)?;
    }
    Ok(())
}

/// Words that a key accepts as its value.
pub(super) fn key_words(key: &SpecKey) -> Vec<&'static str> {
    match key.value_type {
        SpecKeyType::OneOf(words) => words.to_vec(),
        SpecKeyType::RealsAboveOr(_, _, word) => vec![word],
        SpecKeyType::ModelName => MODELS.iter().map(|model| model.name).collect(),
        SpecKeyType::Boolean => vec!["true", "false"],
        _ => Vec::new(),
    }
}

/// A key in the form for editors.
fn key_json(model: Option<&str>, key: &SpecKey) -> Value {
    let (kind, min, max) = match key.value_type {
        SpecKeyType::Integer(min, max) => ("integer", json!(min), json!(max)),
        SpecKeyType::PowerOfTwo(max) => ("power_of_two", json!(1), json!(max)),
        SpecKeyType::RealAbove(min, max)
        | SpecKeyType::RealsAboveOr(min, max, _)
        | SpecKeyType::RealFrom(min, max) => ("real", json!(min), json!(max)),
        SpecKeyType::Boolean => ("flag", Value::Null, Value::Null),
        SpecKeyType::OneOf(_) | SpecKeyType::ModelName => ("word", Value::Null, Value::Null),
        SpecKeyType::Text => ("text", Value::Null, Value::Null),
        SpecKeyType::Texts => ("texts", Value::Null, Value::Null),
        SpecKeyType::Stages => ("stages", Value::Null, Value::Null),
    };
    let words = match key.value_type {
        // Editors show a checkbox for these.
        SpecKeyType::Boolean => Vec::new(),
        _ => key_words(key),
    };
    let (slider, check_box) = match &key.notes.control {
        Some(KeyControl::Slider { label, reach }) => {
            (json!({ "label": label, "reach": reach }), Value::Null)
        }
        Some(KeyControl::CheckBox { label }) => (Value::Null, json!(label)),
        None => (Value::Null, Value::Null),
    };
    json!({
        "path": key.path,
        "model": model,
        "values": key.value_type.describe(),
        "kind": kind,
        "min": min,
        "max": max,
        "words": words,
        "default": key.default,
        "about": key.about,
        "also": key.known_as(),
        "slider": slider,
        "check_box": check_box,
    })
}
