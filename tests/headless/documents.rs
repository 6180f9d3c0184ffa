//! The example in the documents is valid, the README names every view, and links lead to files.

#[cfg(feature = "gui")]
use crate::common::stdout;
use crate::common::{stderr, tilescope};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn document(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect(path)
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
    assert!(check.status.success(), "{}", stderr(&check));
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
