//! Collects licences of linked crates, which packages must include.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const HELP: &str = "\
cargo xtask notices

Prints the licences of all crates that the program is linked with on this platform, each text once.";

/// Prefixes of the names of licence files, in lower case.
const NAMES: [&str; 5] = ["licen", "copying", "notice", "unlicense", "copyright"];

/// A crate that the program is linked with.
struct LinkedCrate {
    /// Name and version.
    title: String,
    /// SPDX expression of its manifest.
    expression: String,
    directory: PathBuf,
}

/// Prints the notices; always succeeds if there are any.
pub(crate) fn notices(root: &Path) -> Result<bool, Box<dyn Error>> {
    let crates = linked_crates(root)?;
    let mut texts: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    println!("Third-party software in tilescope\n=================================\n");
    for of in &crates {
        println!("{}: {}", of.title, of.expression);
        for file in licence_files(&of.directory)? {
            let text = fs::read_to_string(&file)?.replace('\r', "");
            texts.entry(text.trim().to_owned()).or_default().insert(&of.title);
        }
    }
    for (text, titles) in &texts {
        let titles: Vec<&str> = titles.iter().copied().collect();
        println!("\n{}\n{}\n\n{text}", "-".repeat(80), titles.join(", "));
    }
    Ok(!crates.is_empty())
}

/// Licence files beside the manifest of a crate, and in its folders for licences.
fn licence_files(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if !NAMES.iter().any(|begin| name.starts_with(begin)) || name.ends_with(".rs") {
            continue;
        }
        if path.is_dir() {
            for inside in fs::read_dir(path)? {
                files.push(inside?.path());
            }
        } else {
            files.push(path);
        }
    }
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// The external crates that `tilescope` depends on, directly or not, without those that only its
/// tests or build scripts need; in the order of their names.
fn linked_crates(root: &Path) -> Result<Vec<LinkedCrate>, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let host = Command::new("rustc").args(["--print", "host-tuple"]).output()?.stdout;
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
        .arg(String::from_utf8(host)?.trim())
        .current_dir(root)
        .output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let nodes = list(&metadata["resolve"]["nodes"]);
    let program = packages.iter().find(|package| package["name"] == "tilescope");
    let mut open = vec![program.ok_or("there is no package tilescope")?["id"].clone()];
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut found = Vec::new();
    while let Some(id) = open.pop() {
        if !seen.insert(id.to_string()) {
            continue;
        }
        let package = packages.iter().find(|package| package["id"] == id);
        let package = package.ok_or("a dependency is not a package")?;
        if !package["source"].is_null() {
            let get_text = |key: &str| package[key].as_str().unwrap_or_default().to_owned();
            let manifest = PathBuf::from(get_text("manifest_path"));
            found.push(LinkedCrate {
                title: format!("{} {}", get_text("name"), get_text("version")),
                expression: get_text("license"),
                directory: manifest.parent().unwrap_or(Path::new("/")).to_owned(),
            });
        }
        let node = nodes.iter().find(|node| node["id"] == id);
        for dependency in list(&node.ok_or("a package is not resolved")?["deps"]) {
            let is_linked = |of: &Value| of["kind"].is_null();
            if list(&dependency["dep_kinds"]).iter().any(is_linked) {
                open.push(dependency["pkg"].clone());
            }
        }
    }
    found.sort_by(|a, b| a.title.cmp(&b.title));
    Ok(found)
}
