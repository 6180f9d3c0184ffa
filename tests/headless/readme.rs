//! Checks the documents about keys and models.

use tilescope_sim::model::MODELS;
use tilescope_sim::specification::keys::{KEYS, SpecKey};

fn specs() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/specs.md");
    std::fs::read_to_string(path).expect("docs/specs.md")
}

/// The tables of options and the prose around them.
const OPTIONS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/options.md");

/// The variable that rewrites generated parts instead of comparing them.
const UPDATE: &str = "UPDATE_DOCS";

/// Names of the views, as the document spells them.
const VIEWS: [&str; 6] =
    ["Summary", "Memory", "Execution trace", "Operations", "Program tree", "notes"];

/// Tables of options, in the order of the document; a key is in the innermost one that contains it.
const TABLES: [&str; 8] = [
    "model",
    "model.precision_of",
    "target",
    "options",
    "options.location",
    "options.execution_phase_settings",
    "options.batch_serialization_settings",
    "options.host",
];

fn row(key: &SpecKey) -> String {
    let default =
        if key.default.is_empty() { "-".to_string() } else { format!("`{}`", key.default) };
    let known_as = Some(key.known_as()).filter(|names| !names.is_empty());
    format!(
        "| `{}` | {} | {default} | {} | {} | {} |\n",
        key.path,
        key.value_type.describe(),
        key.about,
        known_as.as_deref().unwrap_or("-"),
        key.notes.shows_in
    )
}

fn table_of(key: &SpecKey) -> &'static str {
    let inside = |table: &&&str| key.path.starts_with(&format!("{table}."));
    TABLES.iter().filter(inside).max_by_key(|table| table.len()).expect("a documented table")
}

/// The document with its tables from the declarations of the keys.
fn with_tables(document: &str) -> String {
    let mut document = document.to_string();
    for table in TABLES {
        let mut rows = "| key | values | default | meaning | known elsewhere as | shows in |\n\
                        |---|---|---|---|---|---|\n"
            .to_string();
        rows.extend(KEYS.iter().filter(|key| table_of(key) == table).map(row));
        let mark = format!("<!-- keys of {table} -->\n");
        let (before, rest) = document.split_once(&mark).unwrap_or_else(|| panic!("no {mark}"));
        let (_, after) = rest.split_once("<!-- end -->").expect("an end of each table");
        document = format!("{before}{mark}{rows}<!-- end -->{after}");
    }
    document
}

#[test]
fn the_tables_of_options_are_those_of_the_declarations() {
    let document = std::fs::read_to_string(OPTIONS).expect("docs/options.md");
    let wanted = with_tables(&document);
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(OPTIONS, &wanted).expect("docs/options.md is written");
    } else {
        let stale = wanted.lines().find(|line| !document.lines().any(|old| old == *line));
        assert!(document == wanted, "{UPDATE}=1 cargo test writes docs/options.md: {stale:?}");
    }
}

#[test]
fn every_key_names_the_view_that_shows_it() {
    for key in KEYS.iter() {
        let views = &key.notes.shows_in;
        assert!(
            VIEWS.iter().any(|view| views.contains(view)),
            "{}: no view in {views:?}",
            key.path
        );
    }
}

#[test]
fn every_model_is_named() {
    let specs = specs();
    for model in MODELS {
        assert!(specs.contains(&format!("`{}`", model.name)), "{}", model.name);
    }
}
