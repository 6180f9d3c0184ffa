//! The documents tell the truth about keys and models.

use tilescope_sim::model::MODELS;
use tilescope_sim::spec::keys::KEYS;

fn specs() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/specs.md");
    std::fs::read_to_string(path).expect("docs/specs.md")
}

fn options() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/options.md");
    std::fs::read_to_string(path).expect("docs/options.md")
}

/// Names of the views, as the document spells them.
const VIEWS: [&str; 6] =
    ["Summary", "Memory", "Execution trace", "Operations", "Program tree", "notes"];

#[test]
fn every_key_is_documented_with_its_default_its_other_names_and_its_view() {
    let options = options();
    for key in KEYS {
        let default =
            if key.default.is_empty() { "-".to_string() } else { format!("`{}`", key.default) };
        let also = if key.other_names.is_empty() { "-" } else { key.other_names };
        let row = format!(
            "| `{}` | {} | {default} | {} | {also} | ",
            key.path,
            key.value_type.describe(),
            key.about
        );
        let rest = options.lines().find_map(|line| line.strip_prefix(row.as_str()));
        let rest = rest.unwrap_or_else(|| panic!("docs/options.md lacks this row:\n{row}"));
        assert!(VIEWS.iter().any(|view| rest.contains(view)), "{}: no view in {rest:?}", key.path);
    }
}

#[test]
fn nothing_is_documented_that_is_no_key() {
    let options = options();
    let keys = options.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    for documented in keys {
        assert!(KEYS.iter().any(|key| key.path == documented), "{documented}");
    }
}

#[test]
fn every_model_is_named() {
    let specs = specs();
    for model in MODELS {
        assert!(specs.contains(&format!("`{}`", model.name)), "{}", model.name);
    }
}
