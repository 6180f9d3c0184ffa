//! `tilescope series` and `tilescope bisect`: many reports in one document, and the cause of the
//! difference between two specs.

use crate::common::{self, stderr, stdout, tilescope};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Reports of the repository: one of one IPU, one of several IPUs, one that does not fit in memory.
const SAMPLES: [&str; 3] =
    ["sample_reports/matmul_chain", "sample_reports/mnist_pipeline", "sample_reports/too_large"];

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The JSON output of a command.
fn json(arguments: &[&str]) -> Value {
    let output = tilescope(&[arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn series(arguments: &[&str]) -> Value {
    json(&[&["series"], arguments].concat())
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of[name].as_array().map_or_else(|| panic!("{name}: {of}"), Vec::as_slice)
}

/// The paths of the numbers of a summary, with their values.
fn numbers(value: &Value, path: &str, found: &mut Vec<(String, Value)>) {
    let join = |part: &str| match path {
        "" => part.to_owned(),
        path => format!("{path}.{part}"),
    };
    match value {
        Value::Object(of) => of.iter().for_each(|(name, of)| numbers(of, &join(name), found)),
        Value::Array(of) => {
            of.iter().enumerate().for_each(|(at, of)| numbers(of, &join(&at.to_string()), found));
        }
        Value::Number(_) => found.push((path.to_owned(), value.clone())),
        _ => {}
    }
}

/// A directory with nightly reports of a small product that grows with `sizes`; the last name is
/// higher than nine.
fn nightly(sizes: &[u32]) -> TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    for (number, size) in (8..).zip(sizes) {
        let m = format!("model.m={size}");
        let spec = common::spec("matmul_chain", &[&m, "model.k=64", "model.n=64"]);
        common::report_file(&spec, &directory.path().join(format!("v{number}")));
    }
    directory
}

/// The error of the model is shown beside each affected figure; a report without predictions has
/// none.
#[test]
fn figures_have_error_bands() {
    let directory = nightly(&[100, 132]);
    let place = text(directory.path());
    let found = series(&[place]);
    let summaries = ["v8", "v9"].map(|name| {
        let report = directory.path().join(name);
        json(&["summary", text(&report)])
    });
    for (path, band) in [
        ("execution.total_cycles", ["confidence", "cycles"]),
        ("execution.seconds", ["confidence", "seconds"]),
        ("memory.max_tile_including_gaps", ["memory", "fullest_tile"]),
    ] {
        let figure = list(&found, "figures").iter().find(|figure| figure["path"] == path);
        let expected = list(figure.expect(path), "expected");
        for (expected, summary) in expected.iter().zip(&summaries) {
            let [group, name] = band;
            for end in ["low", "value", "high"] {
                let known = summary[group][name][end].as_f64().expect("an end");
                let written = expected[end].as_f64().expect("an end");
                assert!((written / known - 1.0).abs() < 1e-9, "{path}: {expected}");
            }
        }
    }
    let shown = stdout(&tilescope(&["series", place]));
    let page = directory.path().join("page.html");
    let markdown = stdout(&tilescope(&["series", place, "--markdown", "--html", text(&page)]));
    let html = fs::read_to_string(&page).expect("a page");
    for shown in [&shown, &markdown, &html] {
        assert!(shown.contains("Between"), "{shown}");
    }
    // A report of a real machine, which predicts nothing.
    let real = tempfile::tempdir().expect("temporary directory");
    let mut report = tilescope_fixtures::ReportBuilder::new(1, 4);
    let work = report.compute("work", 10);
    report.run(work, 0..10).write(real.path()).expect("a report");
    let place = text(real.path());
    let found = series(&[place]);
    assert!(list(&found, "figures").iter().all(|figure| figure.get("expected").is_none()));
    let shown = stdout(&tilescope(&["series", place]));
    assert!(!shown.contains("Between"), "{shown}");
}

#[test]
fn figures_are_those_of_the_summaries() {
    let found = series(&SAMPLES);
    let figures = list(&found, "figures");
    for (run, sample) in SAMPLES.iter().enumerate() {
        let mut expected = Vec::new();
        numbers(&json(&["summary", sample]), "", &mut expected);
        let value = |path: &str| {
            let figure = figures.iter().find(|figure| figure["path"] == path);
            figure.unwrap_or_else(|| panic!("{path}"))["values"][run].clone()
        };
        for (path, expected) in &expected {
            assert_eq!(value(path), *expected, "{sample}: {path}");
        }
        // Other figures have no value, unless the program has none of them.
        let known = |figure: &&Value| !figure["values"][run].is_null();
        for figure in figures.iter().filter(known) {
            let path = figure["path"].as_str().expect("a path");
            let is_there = expected.iter().any(|(known, _)| known == path);
            let is_none = path.starts_with("memory.by_") && figure["values"][run] == 0;
            assert!(is_there || is_none, "{sample}: {path}");
        }
    }
    // A program that was not executed has no execution figures.
    assert!(found["runs"][2]["not_executed"].as_str().is_some_and(|why| why.contains("memory")));
    let cycles = figures.iter().find(|figure| figure["path"] == "execution.total_cycles");
    let cycles = cycles.expect("is a figure");
    assert!(cycles["values"][2].is_null() && cycles["values_per_unit"][2].is_null(), "{cycles}");
    assert!(cycles["share"][2].is_null() && cycles["change"][2].is_null());
    assert!(found["notes"].to_string().contains("different targets"), "{}", found["notes"]);
}

#[test]
fn a_report_with_itself_has_no_change() {
    for sample in SAMPLES {
        let found = series(&[sample, sample, sample, sample]);
        assert_eq!(list(&found, "runs").len(), 4);
        for figure in list(&found, "figures") {
            for name in ["changes", "drifts", "outliers"] {
                assert!(list(figure, name).is_empty(), "{sample}: {figure}");
            }
            for change in list(figure, "change").iter().chain(list(figure, "share")) {
                assert!(change.is_null() || change.as_f64() == Some(0.0), "{sample}: {figure}");
            }
        }
        for operation in list(&found, "operations") {
            let cycles = list(operation, "cycles");
            assert!(cycles.iter().all(|of| *of == cycles[0] && of.is_f64()), "{operation}");
        }
    }
}

#[test]
fn swapping_the_baseline_negates_differences() {
    let [one, other] = [SAMPLES[0], SAMPLES[1]];
    let there = series(&[one, other]);
    let back = series(&[one, other, "--baseline", other]);
    assert_eq!((&there["baseline"], &back["baseline"]), (&one.into(), &other.into()));
    let mut compared = 0;
    for (there, back) in list(&there, "figures").iter().zip(list(&back, "figures")) {
        let (there, back) = (&there["change"], &back["change"]);
        if let (Some(there), Some(back)) = (there[1].as_f64(), back[0].as_f64()) {
            assert_eq!(there, -back);
            compared += 1;
        }
        assert!(there[0].is_null() || there[0].as_f64() == Some(0.0));
    }
    assert!(compared > 50, "{compared}");
}

#[test]
fn operations_of_a_run_are_its_cycles() {
    let found = series(&SAMPLES);
    let operations = list(&found, "operations");
    for (run, total) in list(&found, "operations_total").iter().enumerate() {
        let each = operations.iter().map(|of| &of["cycles"][run]);
        let sum: f64 = each.clone().filter_map(Value::as_f64).sum();
        match total.as_f64() {
            Some(total) => assert!((sum - total).abs() <= 1e-9 * total, "{run}: {sum} of {total}"),
            None => assert!(each.clone().all(Value::is_null), "{run}"),
        }
    }
    // They are the figures of the summary, per sample.
    let cycles = list(&found, "figures").iter().find(|of| of["path"] == "execution.total_cycles");
    assert_eq!(cycles.expect("is a figure")["values_per_unit"], found["operations_total"]);
}

#[test]
fn a_directory_is_read_in_the_order_of_names_with_its_changes() {
    let directory = nightly(&[64, 64, 640, 640]);
    let place = text(directory.path());
    let found = series(&[place, "--per", "run", "--figure", "cycles"]);
    let names: Vec<&str> =
        list(&found, "runs").iter().filter_map(|run| run["name"].as_str()).collect();
    assert_eq!(names, ["v8", "v9", "v10", "v11"]);
    let [figure] = list(&found, "figures") else { panic!("{found}") };
    let [change] = list(figure, "changes") else { panic!("{figure}") };
    assert_eq!((&change["run"], &change["confirmed"]), (&2.into(), &true.into()));
    // The text formats have the same content.
    for format in [&[][..], &["--markdown"]] {
        let output = tilescope(&[&["series", place, "--per", "run"], format].concat());
        let words = stdout(&output);
        assert!(output.status.success(), "{}", stderr(&output));
        for expected in ["v8 (baseline)", "Change points", "v10", "Operations", "Total"] {
            assert!(words.contains(expected), "{expected}: {words}");
        }
    }
    let by_time = series(&[place, "--order", "time", "--baseline", "v9"]);
    assert_eq!(by_time["baseline"], "v9");
}

#[test]
fn a_series_is_a_page() {
    let directory = nightly(&[64, 64, 640]);
    let (place, file) = (text(directory.path()), directory.path().join("series.html"));
    let page = |more: &[&str]| {
        let output = tilescope(&[&["series", place, "--html", text(&file)], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        (stdout(&output), fs::read_to_string(&file).expect("a page"))
    };
    let (said, first) = page(&[]);
    assert_eq!(said.trim_end(), text(&file), "its name instead of text");
    assert!(first.starts_with("<!DOCTYPE html>") && first.trim_end().ends_with("</html>"));
    assert!(first.contains("v8 (baseline)") && first.contains("execution.total_cycles"));
    // JSON output stays complete and has all figures; the page does not.
    let (said, second) = page(&["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&said).expect("JSON")["baseline"], "v8");
    assert_eq!(first, second);
    assert!(page(&["--markdown"]).0.contains("#### Runs\n"));
    let (_, other) = page(&["--baseline", "v10", "--figure", "memory.by_region.*"]);
    assert!(other.contains("v10 (baseline)") && !other.contains("execution.total_cycles"));
    // Never over a report, and never in another form than requested.
    let report = directory.path().join("v9/profile.pop");
    let before = fs::read(&report).expect("a report");
    let new = directory.path().join("new.pop");
    let cases: [(&[&str], i32, &str); 3] = [
        (&["--html", text(&report)], 2, "under the name of a report"),
        (&["--html", text(&new)], 2, "under the name of a report"),
        (&["--html", "/nowhere/at/all.html"], 1, "no such directory"),
    ];
    for (arguments, code, words) in cases {
        let output = tilescope(&[&["series", place], arguments].concat());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{arguments:?}: {}", stderr(&output));
    }
    assert_eq!(fs::read(&report).expect("a report"), before);
    let many = ["--figure", "execution.ipus.*.proportions.*", "--figure", "memory.*.*"];
    let many = [&["--html", text(&file)], &many[..]].concat();
    let output = tilescope(&[&["series", SAMPLES[1]], &many[..]].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("choose fewer with --figure"), "{}", stderr(&output));
    assert_eq!(
        fs::read_dir(directory.path()).expect("a directory").count(),
        4,
        "three runs and a page"
    );
}

#[test]
fn unreadable_reports_are_listed_and_the_rest_continues() {
    let directory = nightly(&[64, 64]);
    let path = |name: &str| directory.path().join(name);
    fs::write(path("notes.txt"), "no report").expect("writes");
    fs::write(path("broken.pop"), "SQLite format 3\0and no more").expect("writes");
    let whole = fs::read(path("v8/profile.pop")).expect("reads");
    fs::write(path("half.pop"), &whole[..whole.len() / 2]).expect("writes");
    let output = tilescope(&["series", text(directory.path()), "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(list(&found, "runs").len(), 2);
    let unread: Vec<&str> =
        list(&found, "unread").iter().filter_map(|of| of["name"].as_str()).collect();
    assert_eq!(unread, ["broken", "half"]);
    assert!(stderr(&output).contains("half is left out: cut off"), "{}", stderr(&output));
    // If nothing can be read, the command fails with every reason.
    let both = [path("broken.pop"), path("half.pop")];
    let output = tilescope(&["series", text(&both[0]), text(&both[1])]);
    assert_eq!(output.status.code(), Some(1));
    let words = stderr(&output);
    assert!(words.contains("no report could be read") && words.contains("half"), "{words}");
}

#[test]
fn hostile_names_are_printed_literally() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let name = "a|b <script>`*_\u{1b}[31m";
    let run = directory.path().join(name);
    common::report_file(&common::spec("dense_layer", &[]), &run);
    let output = tilescope(&["series", text(directory.path()), "--markdown"]);
    let words = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(!words.contains('\u{1b}') && !words.contains("<script>"), "{words}");
    assert!(words.contains("a\\|b \\<script\\>"), "{words}");
}

/// Runs Git in a directory; `None` if it is not installed.
fn git(directory: &Path, arguments: &[&str]) -> Option<()> {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"])
        .args(arguments)
        .output()
        .ok()?;
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    Some(())
}

fn dense_layer(batch: u32) -> String {
    format!(
        "[model]\nname = \"mlp\"\ntraining = false\nlayers = 1\nbatch_size = {batch}\nwidth = 512\n\
         classes = 256\n[target]\nname = \"mk2\"\n"
    )
}

#[test]
fn a_spec_is_simulated_in_each_revision() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let place = directory.path();
    if git(place, &["init", "-q"]).is_none() {
        return;
    }
    fs::create_dir(place.join("ci")).expect("makes a directory");
    let spec = place.join("ci/model.toml");
    let commit = |text: &str, subject: &str| {
        fs::write(&spec, text).expect("writes");
        git(place, &["add", "."]);
        git(place, &["commit", "-q", "-m", subject]);
    };
    commit(&dense_layer(4), "Four at once");
    git(place, &["tag", "v1"]);
    commit(&dense_layer(8), "Eight at once");
    commit("[model]\nname = \"no_such_model\"\n", "Break it");
    commit(&dense_layer(16), "Mend it");
    // Uncommitted changes are ignored.
    fs::write(&spec, "nonsense").expect("writes");
    let run = |path: &str| {
        Command::new(env!("CARGO_BIN_EXE_tilescope"))
            .current_dir(place.join("ci"))
            .args(["series", "--git", "v1..", "--spec", path, "--json"])
            .output()
            .expect("starts")
    };
    let output = run("ci/model.toml");
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let samples: Vec<&Value> = list(&found, "runs").iter().map(|run| &run["samples"]).collect();
    assert_eq!(samples, [4, 8, 16]);
    assert!(found["runs"][0]["name"].as_str().is_some_and(|name| name.ends_with("Four at once")));
    assert!(found["unread"][0]["problem"].to_string().contains("no_such_model"), "{found}");
    assert_eq!(run("ci/other.toml").status.code(), Some(2));
}

fn specs(texts: [&str; 2]) -> (TempDir, [PathBuf; 2]) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let paths = ["good.toml", "bad.toml"].map(|name| directory.path().join(name));
    for (path, text) in paths.iter().zip(texts) {
        fs::write(path, text).expect("writes");
    }
    (directory, paths)
}

fn bisect(paths: &[PathBuf; 2], more: &[&str]) -> Value {
    json(&[&["bisect", text(&paths[0]), text(&paths[1])], more].concat())
}

/// Checks that parts and interaction add up to the whole, to the last bit. Returns the parts.
fn adds_up(found: &Value) -> Vec<(String, Option<f64>)> {
    let number = |of: &Value| of.as_f64().expect("a number");
    let whole = number(&found["difference"]);
    assert_eq!(number(&found["bad"]["value"]) - number(&found["good"]["value"]), whole);
    let parts: Vec<(String, Option<f64>)> = list(found, "parts")
        .iter()
        .map(|part| {
            let keys = list(part, "keys").iter().filter_map(|key| key["key"].as_str());
            (keys.collect::<Vec<_>>().join(" "), part["change"].as_f64())
        })
        .collect();
    let sum: f64 = parts.iter().filter_map(|part| part.1).sum();
    let interaction = &found["interaction"];
    assert_eq!(sum + number(&interaction["change"]), whole, "{found}");
    let pairs: f64 = list(interaction, "pairs").iter().map(|pair| number(&pair["change"])).sum();
    assert_eq!(sum + pairs + number(&interaction["rest"]), whole, "{found}");
    parts
}

#[test]
fn parts_and_interaction_are_the_difference() {
    let good = dense_layer(16);
    let bad =
        good.replace("width = 512", "width = 1024").replace("batch_size = 16", "batch_size = 8")
            + "[options]\navailable_memory_proportion = 0.5\n";
    let (_directory, paths) = specs([&good, &bad]);
    for figure in ["cycles", "memory"] {
        let found = bisect(&paths, &["--figure", figure]);
        let parts = adds_up(&found);
        let mut keys: Vec<&str> = parts.iter().map(|part| part.0.as_str()).collect();
        keys.sort_unstable();
        let expected = ["model.batch_size", "model.width", "options.available_memory_proportion"];
        assert_eq!(keys, expected, "{found}");
        assert_eq!(found["cut_short"], false);
        assert!(found["simulations"].as_u64().is_some_and(|count| (5..=8).contains(&count)));
        assert!(!list(&found["operations"], "rows").is_empty(), "{found}");
        // Swapping the specs negates the difference.
        let back = bisect(&[paths[1].clone(), paths[0].clone()], &["--figure", figure]);
        adds_up(&back);
        let whole = |of: &Value| of["difference"].as_f64().expect("a number");
        assert_eq!(whole(&found), -whole(&back));
    }
    // With fewer simulations than keys, sets of keys are listed.
    let found = bisect(&paths, &["--budget", "4"]);
    adds_up(&found);
    assert!(found["simulations"].as_u64().is_some_and(|count| count <= 4));
}

#[test]
fn keys_that_are_invalid_alone_are_reported_together() {
    let other =
        "[model]\nname = \"matmul_chain\"\nm = 64\nk = 64\nn = 64\n[target]\nname = \"mk2\"\n";
    let (_directory, paths) = specs([&dense_layer(16), other]);
    let found = bisect(&paths, &[]);
    let parts = adds_up(&found);
    assert!(parts[0].0.contains("model.name") && parts[0].0.contains("model.width"), "{found}");
}

#[test]
fn reports_are_bisected_by_their_specs() {
    let directory = nightly(&[64, 640]);
    let ends = ["v8", "v9"].map(|name| directory.path().join(name));
    let found = bisect(&ends, &[]);
    let parts = adds_up(&found);
    assert_eq!(parts.len(), 1);
    assert_eq!(parts[0].0, "model.m");
    let output = tilescope(&["bisect", text(&ends[0]), text(&ends[1])]);
    let words = stdout(&output);
    assert!(words.contains("model.m: 64 -> 640") && words.contains("100.0 %"), "{words}");
    let same = bisect(&[ends[0].clone(), ends[0].clone()], &[]);
    assert_eq!((list(&same, "parts").len(), &same["difference"]), (0, &0.0.into()));
}
