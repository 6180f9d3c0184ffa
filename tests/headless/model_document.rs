//! `docs/model.md` has a table of every constant of the cost model, and one of host paths; no other
//! constant of the simulator is fitted or assumed. `tilescope model` prints the constants.

use crate::common::{stderr, stdout, tilescope};
use std::path::{Path, PathBuf};
use tilescope_report::FactorBand;
use tilescope_sim::cost_constants::{self, CostConstant, HOST_PATHS, HostPath};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A text with these rows in the table between a heading and its end.
fn with_rows(text: &str, head: &str, end: &str, rows: impl Iterator<Item = String>) -> String {
    let head = format!("{head}\n");
    let (before, rest) = text.split_once(&head).expect("the head of the table");
    let (_, after) = rest.split_once(end).expect("what follows the table");
    let line = format!("|{}", "---|".repeat(head.matches('|').count() - 1));
    let rows = rows.collect::<Vec<_>>().join("\n");
    format!("{before}{head}{line}\n{rows}\n\n{end}{after}")
}

fn constant_row(constant: &CostConstant) -> String {
    let (value, unit, kind) = (constant.value_text(), constant.unit.name(), constant.kind.name());
    let texts = [constant.meaning, constant.source, constant.serves].join(" | ");
    format!("| `{}` | {value} | {unit} | {kind} | {texts} |", constant.name)
}

/// Seconds in milliseconds, in hundredths.
fn milliseconds(seconds: f64) -> String {
    let text = format!("{:.2}", seconds * 1e3);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn host_path_row(path: &HostPath) -> String {
    let figures = path
        .figures
        .iter()
        .map(|figure| format!("{} ms ({})", milliseconds(figure.seconds), figure.source));
    let figures = figures.collect::<Vec<_>>().join("; ");
    let FactorBand { low, high } = path.call_factors();
    let band = match path.call_seconds {
        0.0 => String::new(),
        call => format!("{} to {} ms", milliseconds(call * low), milliseconds(call * high)),
    };
    let (name, call) = (path.name, milliseconds(path.call_seconds));
    let (kind, why) = (path.kind.name(), path.source);
    format!("| `{name}` | {call} ms | {kind} | {figures} | {band} | {why} |")
}

#[test]
fn model_document_has_its_tables() {
    let path = root().join("docs/model.md");
    let text = std::fs::read_to_string(&path).expect("docs/model.md");
    let constants = "| name | value | unit | kind | meaning | source | serves |";
    let rows = cost_constants::all().map(constant_row);
    let expected = with_rows(&text, constants, "Sizes of vertex code", rows);
    let paths = "| framework | call | kind | figures | band | why |";
    let rows = HOST_PATHS.into_iter().map(host_path_row);
    let expected = with_rows(&expected, paths, "Figures of PopTorch", rows);
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

/// Names of constants, and of keys of specs, that are fitted or assumed according to their
/// documentation.
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
fn sensitivity_prints_the_effect_of_a_tenth_of_a_constant() {
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
    let program = &json["programs"]["dense_layer"];
    for (figure, expected) in [
        ("cycles_per_sample", "expected_cycles_per_sample"),
        ("fullest_tile_bytes", "expected_fullest_tile"),
    ] {
        let [low, high] = ["low", "high"].map(|end| program[expected][end].as_f64().expect(end));
        let value = program[figure].as_f64().expect(figure);
        assert!(low < value && value < high, "{figure}: {low} to {high} of {value}");
    }
    let unknown = tilescope(&["model", "--sensitivity", "dense_layer", "--constant", "NOTHING"]);
    assert!(stderr(&unknown).contains("unknown constant"), "{}", stderr(&unknown));
}
