//! `tilescope sensitivity`: gains of other machines and faster operations.

use crate::common::{stderr, stdout, tilescope};
use serde_json::Value;

fn sensitivity(arguments: &[&str]) -> Value {
    let output = tilescope(&[&["sensitivity"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn list<'a>(of: &'a Value, name: &str) -> &'a Vec<Value> {
    of[name].as_array().unwrap_or_else(|| panic!("{name} is a list"))
}

fn names(rows: &[Value]) -> Vec<&str> {
    rows.iter().filter_map(|row| row["name"].as_str()).collect()
}

/// A small pipeline.
const SHORT: [&str; 1] = ["tests/data/specs/perceptron.toml"];

#[test]
fn bars_are_sorted_by_their_gains() {
    let found = sensitivity(&[&SHORT[..], &["--operations", "4"]].concat());
    for of in ["resources", "operations"] {
        let changes: Vec<f64> =
            list(&found, of).iter().map(|row| row["change"].as_f64().expect("a share")).collect();
        assert!(changes.is_sorted(), "{of}: {changes:?}");
    }
    assert_eq!(list(&found, "operations").len(), 4);
    // The text has the same rows in the same order.
    let output = tilescope(&[&["sensitivity"], &SHORT[..], &["--operations", "4"]].concat());
    let text = stdout(&output);
    let mut place = 0;
    let titles = list(&found, "resources").iter().map(|row| row["title"].as_str());
    let operations = list(&found, "operations").iter().map(|row| row["name"].as_str());
    for title in titles.chain(operations).flatten() {
        let at = text[place..].find(title);
        place += at.unwrap_or_else(|| panic!("{title} behind the others: {text}"));
    }
}

/// Each run on a machine that can be bought has the band of whole programs, also in text.
#[test]
fn runs_have_error_bands() {
    let found = sensitivity(&[&SHORT[..], &["--operations", "2"]].concat());
    // No measurement supports a changed machine.
    let is_bought = |row: &&Value| {
        let mut changes = row["changes"].as_object().expect("changes").keys();
        row["run"].is_object()
            && changes.clone().count() > 0
            && changes.all(|key| !key.starts_with("target."))
    };
    let (bought, changed): (Vec<&Value>, Vec<&Value>) =
        list(&found, "resources").iter().partition(is_bought);
    assert!(!bought.is_empty() && changed.len() > 2, "{found}");
    for row in &changed {
        assert!(row["run"].is_null() || row["run"]["expected"].is_null(), "{row}");
    }
    let operations = list(&found, "operations").iter();
    let runs = bought.iter().copied().chain(operations).map(|row| &row["run"]);
    for run in [&found["run"]].into_iter().chain(runs) {
        for name in ["cycles", "seconds", "samples_per_second"] {
            let band = &run["expected"][name];
            let end = |end: &str| band[end].as_f64().unwrap_or_else(|| panic!("{name}: {run}"));
            assert!(end("low") < 0.95 * end("value"), "{name}: {run}");
            assert!(end("high") > 1.05 * end("value"), "{name}: {run}");
            assert_eq!(run[name].as_f64(), Some(end("value")), "{name}: {run}");
        }
    }
    let output = tilescope(&[&["sensitivity"], &SHORT[..], &["--operations", "2"]].concat());
    let text = stdout(&output);
    // Time and rate of the unchanged run, and of each other one; operations are listed with their
    // cycles.
    assert_eq!(text.matches(" %)").count(), 2 * (1 + bought.len()), "{text}");
    // The band of a run is that of its report.
    let directory = tempfile::tempdir().expect("directory");
    let out = directory.path().to_str().expect("UTF-8");
    let simulated = tilescope(&["simulate", SHORT[0], "-o", out]);
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    let summary = stdout(&tilescope(&["summary", out, "--json"]));
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(summary["confidence"]["cycles"], found["run"]["expected"]["cycles"]);
}

#[test]
fn a_factor_of_one_gains_nothing() {
    let found = sensitivity(&[&SHORT[..], &["--factor", "1", "--operations", "2"]].concat());
    for row in list(&found, "resources").iter().filter(|row| row["name"] != "no_sync") {
        assert_eq!(row["change"].as_f64(), Some(0.0), "{row}");
        assert_eq!(row["run"], found["run"], "{row}");
    }
    for row in list(&found, "operations") {
        assert_eq!(row["run"], found["run"], "{row}");
    }
}

/// The answer about a machine equals its simulation.
#[test]
fn gains_equal_those_of_the_changed_spec() {
    let found = sensitivity(&[&SHORT[..], &["--operations", "0"]].concat());
    assert_eq!(list(&found, "operations").len(), 0);
    let exchange = list(&found, "resources").iter().find(|row| row["name"] == "exchange");
    let exchange = exchange.expect("exchange is a resource");
    assert_eq!(
        exchange["changes"],
        serde_json::json!({
            "target.machine.exchange_bytes_per_cycle": 8
        })
    );
    let directory = tempfile::tempdir().expect("directory");
    let out = directory.path().to_string_lossy().into_owned();
    let set = "target.machine.exchange_bytes_per_cycle=8";
    let arguments = [&["simulate", "-o", &out, "--set", set], &SHORT[..]].concat();
    assert!(tilescope(&arguments).status.success());
    let summary: Value =
        serde_json::from_str(&stdout(&tilescope(&["summary", &out, "--json"]))).expect("JSON");
    assert_eq!(summary["execution"]["total_cycles"], exchange["run"]["cycles"]);
}

/// A faster operation on the path of a run on one IPU gains half of its cycles, one that waits
/// gains nothing.
#[test]
fn operations_are_on_the_path_or_not() {
    let found = sensitivity(&["matmul_chain"]);
    let total = found["run"]["cycles"].as_u64().expect("cycles");
    for row in list(&found, "operations") {
        assert_eq!(row["off_path_beyond"], Value::Null, "one IPU waits for each: {row}");
        let (cycles, left) = (row["cycles"].as_u64(), row["run"]["cycles"].as_u64());
        let gained = total - left.expect("cycles");
        let half = cycles.expect("cycles") / 2;
        // Every step takes whole cycles.
        assert!(gained <= half && half - gained <= 16, "{row}");
    }
    let pipeline = sensitivity(&[&SHORT[..], &["--operations", "30"]].concat());
    let factors: Vec<f64> = list(&pipeline, "operations")
        .iter()
        .filter_map(|row| row["off_path_beyond"].as_f64())
        .collect();
    assert!(factors.contains(&1.0), "some stage waits: {factors:?}");
    assert!(factors.iter().all(|factor| (1.0..=100.0).contains(factor)), "{factors:?}");
    for row in list(&pipeline, "operations") {
        let waits = row["off_path_beyond"].as_f64() == Some(1.0);
        assert_eq!(waits, row["change"].as_f64() == Some(0.0), "{row}");
    }
}

/// A program that is too large for its machine can be analysed too: more memory makes it run.
#[test]
fn a_program_that_does_not_fit_may_fit_elsewhere() {
    let found = sensitivity(&["too_large", "--factor", "4"]);
    assert_eq!((&found["fits"], &found["run"]), (&Value::Bool(false), &Value::Null));
    let rows = list(&found, "resources");
    let memory = rows.iter().find(|row| row["name"] == "memory").expect("memory");
    assert_eq!(memory["fits"], true);
    assert_eq!(memory["change"], Value::Null, "there is nothing to compare it with");
    assert!(names(rows).contains(&"exchange"));
    let output = tilescope(&["sensitivity", "too_large", "--factor", "4"]);
    assert!(stdout(&output).contains("does not fit in memory"), "{}", stdout(&output));
}

#[test]
fn nonsense_is_refused_with_a_remedy() {
    let cases: &[(&[&str], &str)] = &[
        (&["mnist_pipelin"], "did you mean mnist_pipeline?"),
        (&["mnist_pipeline", "--factor", "0"], "a number from 0.1 to 100"),
        (&["mnist_pipeline", "--factor", "nan"], "a number from 0.1 to 100"),
        (&["mnist_pipeline", "--factor", "-2"], "a number from 0.1 to 100"),
        (&["mnist_pipeline", "--operations", "-1"], "--operations"),
        (&["mnist_pipeline", "--set", "target.machine.tile=64"], "target.machine.tiles"),
        (&["mnist_pipeline", "--json", "-o", "gains.svg"], "cannot be used with"),
        (&["mnist_pipeline", "-o", "gains.pdf"], "the name of a picture must end in .png or .svg"),
    ];
    for (arguments, words) in cases {
        let output = tilescope(&[&["sensitivity"], *arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

/// A machine outside of a range is refused, and the others are still tried.
#[test]
fn machines_beyond_a_range_are_refused_individually() {
    let found = sensitivity(&["matmul_chain", "--factor", "100", "--operations", "0"]);
    let refused = |row: &&Value| row["refused"].is_string();
    let rows = list(&found, "resources");
    let tiles = rows.iter().filter(refused).map(|row| row["name"].as_str()).collect::<Vec<_>>();
    assert!(tiles.contains(&Some("tiles")), "{tiles:?}");
    assert!(rows.iter().any(|row| row["change"].is_number()));
    assert!(rows.iter().rev().take(tiles.len()).all(|row| refused(&row)), "refused ones last");
}

#[test]
fn long_runs_are_shortened_with_a_note() {
    let set = "options.device_iterations=100000";
    let found = sensitivity(&["matmul_chain", "--operations", "0", "--set", set]);
    let said = found["shortened"].as_str().expect("it is too long");
    assert!(said.contains("65,536 instead of 100,000"), "{said}");
}

#[cfg(feature = "gui")]
#[test]
fn gains_are_drawn_into_pictures() {
    let directory = tempfile::tempdir().expect("directory");
    for name in ["gains.svg", "gains.png"] {
        let file = directory.path().join(name).to_string_lossy().into_owned();
        let output = tilescope(&["sensitivity", "matmul_chain", "-o", &file]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_eq!(stdout(&output).trim(), file);
        let bytes = std::fs::read(&file).expect("a picture");
        if name.ends_with(".svg") {
            let text = String::from_utf8(bytes).expect("text");
            assert!(
                text.contains("exchange x2") && text.contains("matmul_chain"),
                "words are words"
            );
        }
    }
}
