//! The table of crates in ARCHITECTURE.md, held against the manifests that the compiler enforces.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Crate -> crates of this workspace it may know, as ARCHITECTURE.md says.
fn crate_table() -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, rows) = text.split_once("| crate | may know |").expect("the table of crates");
    let rows = rows.lines().skip(2).map_while(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut names = row.split('`').step_by(2).map(str::to_owned);
        let name = names.next().expect("a name");
        let known = row.split('`').skip(2).step_by(2).map(str::to_owned).collect();
        (name, known)
    })
    .collect()
}

/// Crate -> crates of this workspace its manifest depends on, tests left out.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates");
    let mut directories: Vec<PathBuf> = crates.map(|entry| entry.expect("entry").path()).collect();
    directories.push(root().to_owned());
    directories
        .into_iter()
        .map(|directory| {
            let text = std::fs::read_to_string(directory.join("Cargo.toml")).expect("a manifest");
            let name = text.split("\nname = \"").nth(1).and_then(|rest| rest.split('"').next());
            let (_, rest) = text.split_once("\n[dependencies]\n").expect("dependencies");
            let known = rest.lines().take_while(|line| !line.starts_with('['));
            let known = known.filter(|line| line.starts_with("tilescope-"));
            let known = known.map(|line| line.split(['.', ' ']).next().unwrap_or("").to_owned());
            (name.expect("a name").to_owned(), known.collect())
        })
        .collect()
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

fn all_sources() -> Vec<PathBuf> {
    [sources(&root().join("src")), sources(&root().join("crates"))].concat()
}

#[test]
fn crates_know_only_what_the_table_allows() {
    let table = crate_table();
    assert!(table.len() >= 5, "the table was read: {table:?}");
    assert_eq!(table, manifests());
}

#[test]
fn every_source_file_says_what_it_is_for() {
    for file in all_sources() {
        let text = std::fs::read_to_string(&file).expect("source");
        let tests_only = file.file_name().is_some_and(|name| name == "tests.rs");
        assert!(tests_only || text.starts_with("//!"), "{} has no module doc", file.display());
    }
}
