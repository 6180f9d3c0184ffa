//! `cargo xtask map [CRATE]`: the first line of every source file, as a tree.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const HELP: &str = "\
cargo xtask map [CRATE]

Prints the first line of every source file as a tree.";

/// Prints the files of a crate, or of all of them.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let mut places = vec![root.join("src")];
    for entry in fs::read_dir(root.join("crates"))? {
        places.push(entry?.path().join("src"));
    }
    places.sort();
    for place in places {
        let shown = place.strip_prefix(root).unwrap_or(&place).display().to_string();
        let is_wanted = arguments.iter().all(|wanted| shown.contains(wanted.as_str()));
        if is_wanted && place.is_dir() {
            println!("{shown}/");
            print_folder(&place, 1)?;
        }
    }
    Ok(())
}

fn print_folder(folder: &Path, depth: usize) -> Result<(), Box<dyn Error>> {
    let mut entries: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        entries.push(entry?.path());
    }
    entries.sort();
    let indent = "  ".repeat(depth);
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            println!("{indent}{name}/");
            print_folder(&path, depth + 1)?;
        } else if name.ends_with(".rs") {
            println!("{indent}{name:24} {}", first_sentence(&fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// The first sentence of the `//!` lines of a file.
fn first_sentence(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix("//!"));
    let words: Vec<&str> =
        lines.take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    let words = words.join(" ");
    match words.split_once(". ") {
        Some((first, _)) => first.to_owned(),
        None => words.trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_of_a_file_is_found() {
        assert_eq!(first_sentence("//! One\n//! line. Another.\n\nuse a;"), "One line");
        assert_eq!(first_sentence("//! Alone.\n//!\n//! More.\n"), "Alone");
        assert_eq!(first_sentence("use a;"), "");
    }
}
