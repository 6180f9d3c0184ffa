//! Checks the tables of ARCHITECTURE.md: crates against the manifests that the compiler enforces,
//! and floors of the window and of the simulator against the paths in their modules.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Name -> names that it may import, from the table of ARCHITECTURE.md below this heading.
fn table(head: &str) -> BTreeMap<String, BTreeSet<String>> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, rows) = text.split_once(head).expect("the table");
    let rows = rows.lines().skip(2).map_while(|line| line.strip_prefix("| `"));
    rows.map(|row| {
        let mut names = row.split('`').step_by(2).map(str::to_owned);
        let name = names.next().expect("a name");
        let known = row.split('`').skip(2).step_by(2).map(str::to_owned).collect();
        (name, known)
    })
    .collect()
}

/// Crate -> crates of this workspace in its manifest, without tests.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let crates = std::fs::read_dir(root().join("crates")).expect("crates");
    let mut directories: Vec<PathBuf> = crates.map(|entry| entry.expect("entry").path()).collect();
    directories.extend([root().to_owned(), root().join("python")]);
    directories
        .into_iter()
        .map(|directory| {
            let text = std::fs::read_to_string(directory.join("Cargo.toml")).expect("a manifest");
            let name = text.split("\nname = \"").nth(1).and_then(|rest| rest.split('"').next());
            let rest = text.split_once("\n[dependencies]\n").map_or("", |(_, rest)| rest);
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
    let table = table("| crate | may know |");
    assert!(table.len() >= 5, "the table was read: {table:?}");
    assert_eq!(table, manifests());
}

/// A source file of a crate with floors, without comments and tests, with its floor and the depth
/// of its module.
struct FloorSource {
    file: PathBuf,
    floor: String,
    depth: usize,
    code: String,
}

impl FloorSource {
    fn read(file: PathBuf, sources: &Path) -> Self {
        let inside = file.strip_prefix(sources).expect("a path of the crate").with_extension("");
        let parts = inside.iter().map(|part| part.to_string_lossy().into_owned());
        let parts: Vec<String> = parts.filter(|part| part != "mod").collect();
        let text = std::fs::read_to_string(&file).expect("source");
        let product = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let code = product.lines().filter(|line| !line.trim_start().starts_with("//"));
        let code = code.collect::<Vec<_>>().join("\n");
        Self { file, floor: parts[0].clone(), depth: parts.len(), code }
    }
}

/// All sources of a crate except its root, which only gathers public items, and tests.
fn floor_sources(name: &str) -> Vec<FloorSource> {
    let directory = root().join(format!("crates/{name}/src"));
    let no_floor = ["src/lib.rs", "tests.rs"];
    let files = sources(&directory);
    let files = files.into_iter().filter(|file| {
        !no_floor.iter().any(|name| file.ends_with(name))
            && !file.iter().any(|part| part == "tests")
    });
    files.map(|file| FloorSource::read(file, &directory)).collect()
}

fn window_sources() -> Vec<FloorSource> {
    floor_sources("tilescope-gui")
}

/// The floors of the simulator, the lowest first, from the row in ARCHITECTURE.md.
fn floors_of_the_simulator() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, row) = text.split_once("that there are no circles: ").expect("the row");
    let (row, _) = row.split_once(". ").expect("the end of the row");
    row.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// The names in the root of the crate that paths of a module at this depth refer to: modules, or
/// items of the root.
fn names_in_root(code: &str, depth: usize) -> Vec<String> {
    let mut names = Vec::new();
    for (at, start) in code.match_indices("crate::").chain(code.match_indices("super::")) {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || "_:".contains(before)) {
            continue;
        }
        let mut rest = &code[at..];
        let mut climbed = 0;
        if let Some(below) = rest.strip_prefix("crate::") {
            (rest, climbed) = (below, depth);
        }
        while let Some(above) = rest.strip_prefix("super::") {
            (rest, climbed) = (above, climbed + 1);
        }
        assert!(climbed <= depth || start == "crate::", "above the root: {rest:.40}");
        if climbed == depth {
            names.extend(first_names(rest));
        }
    }
    names
}

/// The first name of a path, or those of a group.
fn first_names(path: &str) -> Vec<String> {
    let word = |text: &str| {
        let word = text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_');
        word.collect::<String>()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let (mut names, mut nested, mut start) = (Vec::new(), 0, 0);
    for (at, sign) in group.char_indices() {
        match sign {
            '{' => nested += 1,
            '}' if nested > 0 => nested -= 1,
            ',' | '}' if nested == 0 => {
                names.push(word(&group[start..at]));
                start = at + 1;
            }
            _ => {}
        }
        if sign == '}' && start > at {
            break;
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[test]
fn floors_of_the_window_import_only_those_below() {
    let table = table("| floor | may import |");
    assert!(table.len() >= 6, "the table was read: {table:?}");
    let sources = window_sources();
    let known: BTreeSet<&String> = sources.iter().map(|source| &source.floor).collect();
    assert_eq!(known, table.keys().collect(), "every module is on a floor");
    for FloorSource { file, floor, depth, code } in &sources {
        for name in names_in_root(code, *depth) {
            // Items of the root itself use all floors, so they are above them.
            let is_item = !table.contains_key(&name);
            let allowed = if is_item { floor == "shell" } else { table[floor].contains(&name) };
            assert!(allowed || *floor == name, "{}: {floor} imports {name}", file.display());
        }
    }
}

#[test]
fn floors_of_the_simulator_import_only_those_before_them() {
    let floors = floors_of_the_simulator();
    let height = |name: &str| floors.iter().position(|floor| floor == name);
    let sources = floor_sources("tilescope-sim");
    let known: BTreeSet<&String> = sources.iter().map(|source| &source.floor).collect();
    assert_eq!(known, floors.iter().collect(), "every module is in the row");
    for FloorSource { file, floor, depth, code } in &sources {
        for name in names_in_root(code, *depth) {
            assert!(height(&name) <= height(floor), "{}: {floor} imports {name}", file.display());
            assert!(height(&name).is_some(), "{}: {name} of the root", file.display());
        }
    }
}

#[test]
fn paths_to_the_root_are_found_in_any_notation() {
    let code = "use crate::a::X;\nuse super::super::{b, c::{D, E}, f::{self}};\nsuper::near::g();\n\
                pub(crate) fn h() { super::super::i() }";
    assert_eq!(names_in_root(code, 2), ["a", "b", "c", "f", "i"]);
}

#[test]
fn the_model_of_the_window_sees_no_display() {
    for FloorSource { file, floor, code, .. } in window_sources() {
        let display = ["egui", "eframe"].into_iter().find(|name| code.contains(name));
        assert!(floor != "model" || display.is_none(), "{}: {display:?}", file.display());
    }
}

/// Patterns before a text size or a gap. A plain number after one of them is not from the theme's
/// scale.
const SIZED: [&str; 7] = [
    "add_space(",
    ".size(",
    "FontId::proportional(",
    "FontId::new(",
    "item_spacing = vec2(",
    "item_spacing.x = ",
    "item_spacing.y = ",
];

#[test]
fn sizes_of_text_and_gaps_are_those_of_the_theme() {
    for FloorSource { file, floor, code, .. } in window_sources() {
        for start in SIZED.iter().filter(|_| floor != "theme") {
            let number = |rest: &str| {
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
                rest[..end.unwrap_or(rest.len())].parse::<f32>().ok()
            };
            let mut numbers = code.split(start).skip(1).filter_map(number);
            let other = numbers.find(|size| *size != 0.0);
            assert!(other.is_none(), "{}: {start}{other:?}", file.display());
        }
    }
}

#[test]
fn every_source_file_has_a_description() {
    for file in all_sources() {
        let text = std::fs::read_to_string(&file).expect("source");
        let tests_only = file.file_name().is_some_and(|name| name == "tests.rs");
        assert!(tests_only || text.starts_with("//!"), "{} has no module doc", file.display());
    }
}
