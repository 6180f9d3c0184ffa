//! The documents tell the truth about keys, models and views, and their links lead somewhere.

#[cfg(feature = "gui")]
use crate::common::stdout;
use crate::common::tilescope;
use std::path::{Path, PathBuf};
use tilescope_sim::model::MODELS;
use tilescope_sim::spec::keys::KEYS;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
}

fn options() -> String {
    document("docs/options.md")
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
        let also = if key.also.is_empty() { "-" } else { key.also };
        let row = format!(
            "| `{}` | {} | {default} | {} | {also} | ",
            key.path,
            key.form.describe(),
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
    let specs = document("docs/specs.md");
    for model in MODELS {
        assert!(specs.contains(&format!("`{}`", model.name)), "{}", model.name);
    }
}

#[test]
fn the_documented_spec_is_valid() {
    let text = document("docs/specs.md");
    let (_, spec) = text.split_once("```toml\n").expect("a spec");
    let (spec, _) = spec.split_once("```").expect("its end");
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("mine.toml");
    std::fs::write(&file, spec).expect("written");
    let check = tilescope(&["simulate", &file.to_string_lossy(), "--check"]);
    assert!(check.status.success(), "{}", crate::common::stderr(&check));
}

#[cfg(feature = "gui")]
#[test]
fn every_view_is_in_the_readme() {
    let readme = document("README.md").to_lowercase();
    let views = stdout(&tilescope(&["export", "--list-views"]));
    assert!(!views.is_empty());
    for view in views.lines() {
        let row = format!("| **{}** |", view.replace('-', " "));
        assert!(readme.contains(&row), "README.md lacks {row}");
    }
}

/// Every document in the repository.
fn documents() -> Vec<PathBuf> {
    let folders = ["", "docs", "docs/gallery"];
    let files = folders.iter().flat_map(|folder| {
        std::fs::read_dir(root().join(folder)).expect("a folder").map(|file| file.expect("a file"))
    });
    files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|e| e == "md"))
        .collect()
}

#[test]
fn links_between_documents_lead_to_files() {
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let file = link.split('#').next().unwrap_or_default();
            let target = path.parent().expect("a folder").join(file);
            assert!(target.exists(), "{}: {link}", path.display());
        }
    }
}
