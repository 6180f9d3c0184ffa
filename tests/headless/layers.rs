//! The layer table in the docs of `src/lib.rs`, enforced.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Layer -> layers it may import, as the table says.
fn layer_table() -> BTreeMap<String, BTreeSet<String>> {
    let lib = std::fs::read_to_string(root().join("src/lib.rs")).expect("src/lib.rs");
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | `"));
    rows.map(|row| {
        let (layer, imports) = row.split_once("` | ").expect("a table row");
        let imports = imports.split('`').skip(1).step_by(2).map(str::to_string).collect();
        (layer.to_string(), imports)
    })
    .collect()
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("source directory") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The layer a file belongs to: the first part of its path below `src`.
fn layer(file: &Path) -> String {
    let below = file.strip_prefix(root().join("src")).expect("below src");
    let first = below.components().next().expect("a component").as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_string()
}

/// Layers that a source text names after `crate::`, comments left out.
fn imports(text: &str, layers: &BTreeSet<&String>) -> BTreeSet<String> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or("")).collect();
    let code = code.join("\n");
    let mut found = BTreeSet::new();
    for part in code.split("crate::").skip(1) {
        let group = match part.strip_prefix('{') {
            Some(group) => group.split("};").next().unwrap_or(group),
            None => part.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(""),
        };
        for word in group.split(|c: char| !c.is_alphanumeric() && c != '_') {
            if layers.contains(&word.to_string()) {
                found.insert(word.to_string());
            }
        }
    }
    found
}

#[test]
fn layers_import_only_what_the_table_allows() {
    let table = layer_table();
    let layers: BTreeSet<&String> = table.keys().collect();
    assert!(layers.len() >= 5, "the table was read: {layers:?}");
    let mut wrong = Vec::new();
    for file in sources(&root().join("src")) {
        let layer = layer(&file);
        let Some(allowed) = table.get(&layer) else { continue };
        let text = std::fs::read_to_string(&file).expect("source");
        for import in imports(&text, &layers) {
            if import != layer && !allowed.contains(&import) {
                wrong.push(format!("{}: {layer} may not import {import}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_layer_of_the_table_exists_and_no_other() {
    let table = layer_table();
    let below_src: BTreeSet<String> = sources(&root().join("src"))
        .iter()
        .map(|file| layer(file))
        .filter(|layer| layer != "lib" && layer != "main")
        .collect();
    assert_eq!(below_src, table.keys().cloned().collect());
}

#[test]
fn the_scanner_sees_plain_and_grouped_imports() {
    let names = ["sim".to_string(), "gui".to_string()];
    let layers: BTreeSet<&String> = names.iter().collect();
    assert!(imports("use crate::{report::X, sim::Y};", &layers).contains("sim"));
    assert!(imports("let a = crate::gui::run();", &layers).contains("gui"));
    assert!(imports("// crate::gui\nuse crate::report::sim;", &layers).is_empty());
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for file in sources(&root().join("src")) {
        let text = std::fs::read_to_string(&file).expect("source");
        let tests_only = file.file_name().is_some_and(|name| name == "tests.rs");
        assert!(tests_only || text.starts_with("//!"), "{} has no module doc", file.display());
    }
}

#[test]
fn egui_stays_inside_gui() {
    for file in sources(&root().join("src")) {
        if layer(&file) == "gui" {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("source");
        for word in ["egui", "eframe", "rfd::"] {
            let used = text
                .lines()
                .any(|line| !line.trim_start().starts_with("//") && line.contains(word));
            assert!(!used, "{} uses {word}", file.display());
        }
    }
}
