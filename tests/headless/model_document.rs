//! `docs/model.md` has a table of every constant of the cost model, and no other constant of the
//! simulator is fitted or assumed. `tilescope model` prints the table.

use crate::common::{stderr, stdout, tilescope};
use std::path::{Path, PathBuf};
use tilescope_sim::cost_constants;

/// What the table stands between.
const HEAD: &str = "| name | value | unit | kind | meaning | source | serves |\n";
const END: &str = "\n\nSizes of vertex code";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn model_document_has_the_table_of_constants() {
    let rows = cost_constants::all().map(|constant| {
        let (value, unit, kind) =
            (constant.value_text(), constant.unit.name(), constant.kind.name());
        let texts = [constant.meaning, constant.source, constant.serves].join(" | ");
        format!("| `{}` | {value} | {unit} | {kind} | {texts} |", constant.name)
    });
    let table = rows.collect::<Vec<_>>().join("\n");
    let path = root().join("docs/model.md");
    let text = std::fs::read_to_string(&path).expect("docs/model.md");
    let (before, rest) = text.split_once(HEAD).expect("the head of the table");
    let (_, after) = rest.split_once(END).expect("what follows the table");
    let expected = format!("{before}{HEAD}|---|---|---|---|---|---|---|\n{table}{END}{after}");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &expected).expect("writing docs/model.md");
        return;
    }
    assert!(text == expected, "docs/model.md differs: UPDATE_DOCS=1 cargo test model_document");
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).expect("a folder of sources");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let nested = paths.map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    nested.flatten().collect()
}

/// Names of constants, and of keys of specs, whose documentation says that they were fitted or
/// assumed.
fn unsure(source: &str) -> Vec<&str> {
    let mut documentation = String::new();
    let mut found = Vec::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            documentation.push_str(&text.to_lowercase());
            continue;
        }
        let words = ["fitted", "assumed", "guessed", "read off"];
        let is_constant = line.contains("const ") && !line.contains("const fn");
        if is_constant && words.iter().any(|word| documentation.contains(word)) {
            found.push(line);
        }
        if !line.starts_with("#[") {
            documentation.clear();
        }
    }
    found
}

#[test]
fn every_fitted_or_assumed_constant_is_in_the_list() {
    assert_eq!(unsure("/// Fitted on\n/// rows.\npub const X: u64 = 4;\nfn f() {}").len(), 1);
    for path in sources(&root().join("crates/tilescope-sim/src")) {
        let text = std::fs::read_to_string(&path).expect("a source");
        let found = unsure(&text);
        assert!(found.is_empty(), "{}: {found:?} belongs in cost_constants", path.display());
    }
}

#[test]
fn model_lists_every_constant() {
    let printed = stdout(&tilescope(&["model"]));
    let json = stdout(&tilescope(&["model", "--json"]));
    let list: Vec<serde_json::Value> = serde_json::from_str(&json).expect("a list");
    assert_eq!(list.len(), cost_constants::all().count());
    for constant in cost_constants::all() {
        assert!(printed.contains(constant.name), "{}", constant.name);
    }
}

#[test]
fn sensitivity_says_what_a_tenth_of_a_constant_changes() {
    let output = tilescope(&[
        "model",
        "--sensitivity",
        "dense_layer",
        "--json",
        "--constant",
        "COMPUTE_START_CYCLES",
        "--constant",
        "ELEMENT_RESERVED_BYTES",
        "--constant",
        "POOL_WORKER_CYCLES",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let change = |name: &str, index: usize, figure: &str| {
        let constants = json["constants"].as_array().expect("constants");
        let of = constants.iter().find(|constant| constant["name"] == name).expect(name);
        of["moves"][index]["changes"]["dense_layer"][figure].as_f64().expect(figure)
    };
    assert!(change("COMPUTE_START_CYCLES", 0, "cycles") < 0.0);
    assert!(change("COMPUTE_START_CYCLES", 1, "cycles") > 0.0);
    assert_eq!(change("COMPUTE_START_CYCLES", 1, "fullest_tile"), 0.0);
    assert!(change("ELEMENT_RESERVED_BYTES", 1, "fullest_tile") > 0.0);
    assert_eq!(change("POOL_WORKER_CYCLES", 1, "cycles"), 0.0);
    let unknown = tilescope(&["model", "--sensitivity", "dense_layer", "--constant", "NOTHING"]);
    assert!(stderr(&unknown).contains("no constant named"), "{}", stderr(&unknown));
}
