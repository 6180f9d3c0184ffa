//! `cargo xtask structure`: the size of the workspace, and circles of files that import each other.

use std::error::Error;
use std::path::{Path, PathBuf};

use crate::imports::ImportGraph;
use crate::source::SourceTree;

pub(crate) const HELP: &str = "\
cargo xtask structure

Prints lines of product code and of tests, and the largest import circle of files of each part.";

/// Parts whose circles are counted: a title and the modules above them.
const PARTS: [(&str, &[&str]); 5] = [
    ("report", &["report"]),
    ("sim compile", &["sim", "compile"]),
    ("analysis", &["analysis"]),
    ("gui shell", &["gui", "shell"]),
    ("cli", &["tilescope", "cli"]),
];

/// Measures and prints.
pub(crate) fn run(root: &Path) -> Result<(), Box<dyn Error>> {
    let mut folders = vec![root.join("src"), root.join("python/src"), root.join("xtask/src")];
    for entry in std::fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path().join("src"));
    }
    folders.sort();
    folders.retain(|folder| folder.is_dir());
    let tree = SourceTree::read(&folders, root)?;
    let mut product = 0;
    let mut tests = 0;
    for file in &tree.files {
        product += file.product_lines();
        tests += file.test_lines();
    }
    for folder in ["tests", "crates/tilescope-html/tests"] {
        tests += lines_below(&root.join(folder))?;
    }
    println!("{product:>8} lines of product code");
    println!("{tests:>8} lines of tests");
    let graph = ImportGraph::of_files(&tree.files);
    for (title, modules) in PARTS {
        let circle = graph.largest_file_circle(modules);
        println!("{:>8} files in the largest import circle of {title}", circle.len());
        for module in circle {
            println!("           {module}");
        }
    }
    Ok(())
}

/// Lines of all Rust files of a folder.
fn lines_below(folder: &Path) -> Result<usize, Box<dyn Error>> {
    let mut lines = 0;
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                lines += std::fs::read_to_string(&path)?.lines().count();
            }
        }
    }
    Ok(lines)
}
