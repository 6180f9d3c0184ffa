//! Checks the documents: the example is valid, the README names every view, links and paths lead to
//! files, and names in ARCHITECTURE.md are names in the code.

#[cfg(feature = "gui")]
use crate::common::stdout;
use crate::common::{stderr, tilescope};
use std::collections::BTreeSet;
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

/// Pictures are as old as the look of their view at most: `docs/gallery/versions.txt` has the version
/// of each view and the version that was drawn.
#[cfg(feature = "gui")]
#[test]
fn the_gallery_shows_every_view_as_it_looks_now() {
    let text = document("docs/gallery/versions.txt");
    let lines: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split(' ').collect())
        .collect();
    let views = stdout(&tilescope(&["export", "--list-views"]));
    let listed: Vec<&str> = lines.iter().map(|line| line[0]).collect();
    assert_eq!(listed, views.lines().collect::<Vec<_>>());
    for line in lines {
        let [view, now, drawn] = line[..] else { panic!("three columns: {line:?}") };
        assert_eq!(drawn, now, "{view} has changed its look: run docs/gallery/make.sh");
        for theme in ["light", "dark"] {
            let picture = root().join(format!("docs/gallery/{view}-{theme}.png"));
            assert!(picture.is_file(), "{}", picture.display());
        }
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
        assert!(!text.trim().is_empty(), "{} is empty", path.display());
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http")) {
            let file = link.split('#').next().unwrap_or_default();
            let target = path.parent().expect("a folder").join(file);
            assert!(target.exists(), "{}: {link}", path.display());
        }
    }
}

/// The texts between backticks.
fn code_spans(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// Directories in which a path of the repository may begin.
const FOLDERS: [&str; 7] = ["crates/", "src/", "docs/", "assets/", "tests/", "xtask/", ".ci/"];

/// The paths that a span refers to: none if it is no path or has a `<placeholder>`, several if it
/// has `{a,b}`.
fn paths_of(span: &str) -> Vec<String> {
    let is_path = FOLDERS.iter().any(|folder| span.starts_with(folder));
    if !is_path || span.contains(['<', '*', ' ', '\n']) {
        return Vec::new();
    }
    let braces = span.split_once('{').and_then(|(before, rest)| {
        let (choices, after) = rest.split_once('}')?;
        Some(choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect())
    });
    braces.unwrap_or_else(|| vec![span.to_owned()])
}

#[test]
fn paths_in_documents_exist() {
    for name in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"] {
        let text = document(name);
        for path in code_spans(&text).flat_map(paths_of) {
            assert!(root().join(&path).exists(), "{name}: there is no {path}");
        }
    }
    // Paths of the model's document are relative to the sources of the simulator.
    let text = document("docs/model.md");
    for path in code_spans(&text).filter(|span| span.contains('/') && !span.contains(' ')) {
        let places = [root().to_owned(), root().join("crates/tilescope-sim/src")];
        let exists = places.iter().any(|place| place.join(path).exists());
        assert!(exists, "docs/model.md: there is no {path}");
    }
}

/// The part of ARCHITECTURE.md below a heading.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let (_, below) = text.split_once(&format!("\n## {heading}\n")).expect(heading);
    below.split("\n## ").next().unwrap_or_default()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The last name of `Type::function` or `value.field`; `None` if the span is no name.
fn last_name(span: &str) -> Option<&str> {
    let is_name = span.starts_with(|c: char| c.is_alphabetic())
        && span.chars().all(|c| c.is_alphanumeric() || "_:.".contains(c));
    let is_file = [".md", ".toml", ".pop", ".rs"].iter().any(|end| span.ends_with(end));
    if is_name && !is_file { words(span).last() } else { None }
}

/// Every word of the code and of its manifest, without comments.
fn words_of_the_code() -> BTreeSet<String> {
    let mut folders: Vec<PathBuf> = ["src", "crates", "tests"].map(|f| root().join(f)).into();
    let mut words_found = BTreeSet::new();
    let mut add = |text: &str| {
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        words_found.extend(code.flat_map(words).map(str::to_owned));
    };
    add(&document("Cargo.toml"));
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                add(&std::fs::read_to_string(path).expect("source"));
            }
        }
    }
    words_found
}

#[test]
fn names_in_the_glossary_and_the_invariants_are_in_the_code() {
    let text = document("ARCHITECTURE.md");
    let rows = section(&text, "Glossary").lines().filter(|line| line.starts_with("| "));
    let types: Vec<&str> = rows.filter_map(|row| row.rsplit('|').nth(1)).collect();
    assert!(types.len() >= 40, "the glossary was read");
    let known = words_of_the_code();
    let spans = types.into_iter().flat_map(code_spans);
    for name in spans.chain(code_spans(section(&text, "Invariants"))).filter_map(last_name) {
        assert!(known.contains(name), "ARCHITECTURE.md: nothing is called {name}");
    }
}

#[test]
fn names_in_the_walks_are_in_the_files_beside_them() {
    let text = document("ARCHITECTURE.md");
    let steps = section(&text, "Walks").lines().filter(|line| line.starts_with(char::is_numeric));
    let steps: Vec<&str> = steps.collect();
    assert!(steps.len() > 30, "the walks were read");
    for step in steps {
        let files = code_spans(step).flat_map(paths_of).filter(|path| path.ends_with(".rs"));
        let code: Vec<String> = files.map(|path| document(&path)).collect();
        for name in code_spans(step).filter_map(last_name) {
            let stands = code.iter().any(|code| words(code).any(|word| word == name));
            assert!(stands, "ARCHITECTURE.md: no {name} in the files of: {step}");
        }
    }
}

/// Names between single stars in a help page: controls, tabs, columns. Names that end with a full
/// stop are headings of paragraphs.
fn named_controls(page: &str) -> impl Iterator<Item = &str> {
    let names = page.split('*').skip(1).step_by(2);
    names.filter(|name| !name.ends_with('.') && !name.is_empty())
}

/// Every source file below a folder, as one text.
fn sources_below(folder: &str) -> String {
    let mut text = String::new();
    let mut open = vec![root().join(folder)];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(&path).expect("a folder");
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            // It names the controls of all views.
            && !path.ends_with("view_controls.rs")
        {
            text += &std::fs::read_to_string(&path).expect("a source file");
        }
    }
    text
}

#[test]
fn help_pages_use_the_names_of_the_windows_controls() {
    let gui = "crates/tilescope-gui/src";
    let shared = ["model", "shell", "widgets"];
    let shell: String = shared.iter().map(|of| sources_below(&format!("{gui}/{of}"))).collect();
    let mut pages = 0;
    for entry in std::fs::read_dir(root().join("assets/help")).expect("help pages") {
        let path = entry.expect("a page").path();
        if path.is_dir() {
            continue;
        }
        let name = path.file_stem().expect("a name").to_string_lossy().replace('-', "_");
        // A page about a view names controls of that view, any other page controls of any view.
        let view = root().join(gui).join("views").join(&name);
        let folder =
            if view.is_dir() { format!("{gui}/views/{name}") } else { format!("{gui}/views") };
        let tables = format!("crates/tilescope-analysis/src/tables/{name}.rs");
        let tables = std::fs::read_to_string(root().join(tables)).unwrap_or_default();
        // Tables of all views have the controls of one widget.
        let widget = sources_below(&format!("{gui}/widgets/table"));
        let known = [shell.as_str(), &sources_below(&folder), &widget, &tables].join("\n");
        let text = std::fs::read_to_string(&path).expect("a page");
        for control in named_controls(&text) {
            let literal = format!("\"{control}\"");
            assert!(known.contains(&literal), "{}: nothing is called {control:?}", path.display());
            pages += 1;
        }
    }
    assert!(pages > 20);
    let words = document("assets/help/words.md");
    for word in ["BSP", "slot", "phase", "iteration", "stage", "micro-batch"] {
        assert!(words.contains(&format!("| {word} |")), "{word} is not explained");
    }
}

/// Pages on mechanisms name keys and bundled specs that exist.
#[test]
fn pages_on_mechanisms_name_keys_and_specs_that_exist() {
    let options = document("docs/options.md");
    let mut pages = 0;
    for entry in std::fs::read_dir(root().join("assets/help/mechanisms")).expect("help pages") {
        let path = entry.expect("a page").path();
        let text = std::fs::read_to_string(&path).expect("a page");
        for span in code_spans(&text) {
            let key = span.split([' ', '=']).next().unwrap_or_default();
            if ["options.", "model.", "target."].iter().any(|table| key.starts_with(table)) {
                assert!(options.contains(&format!("`{key}`")), "{}: no key {key}", path.display());
            }
        }
        for line in text.lines().filter(|line| line.contains("bundled spec")) {
            let (_, named) = line.split_once("bundled spec").expect("a name");
            let spec = code_spans(named).next().expect("a name in backquotes");
            let file = root().join(format!("assets/specs/{spec}.toml"));
            assert!(file.exists(), "{}: no bundled spec {spec}", path.display());
        }
        pages += 1;
    }
    assert!(pages >= 15, "{pages} pages");
}
