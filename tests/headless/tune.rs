//! `tilescope tune`: a search whose path gains step by step, and is the same on every machine.

use crate::common::{stderr, stdout, tilescope};
use serde_json::Value;
use std::path::Path;
use tilescope_test_tiers::{skipped_in_the_fast_tier, up_to};

fn tune(arguments: &[&str]) -> Value {
    let output = tilescope(&[&["tune"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn list<'a>(of: &'a Value, name: &str) -> &'a Vec<Value> {
    of[name].as_array().unwrap_or_else(|| panic!("{name} is a list"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// Keys that differ at the end of a path.
fn changed(found: &Value) -> Vec<String> {
    found["best"]["changes"].as_object().expect("changes").keys().cloned().collect()
}

fn figure(point: &Value, name: &str) -> f64 {
    point[name].as_f64().unwrap_or_else(|| panic!("{name} of {point}"))
}

/// The common parts of the output of two equal searches.
fn way(found: &Value) -> Value {
    let mut way = found.clone();
    way.as_object_mut().expect("an object").remove("simulated_now");
    way
}

#[test]
fn every_step_gains_and_the_spec_is_as_fast_as_claimed() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("better.toml");
    let found = tune(&["prefetch", "--budget", "20", "-o", text(&file)]);
    let mut before = figure(&found["base"], "seconds_per_sample");
    let path = list(&found, "path");
    assert!(!path.is_empty());
    for step in path {
        let now = figure(&step["point"], "seconds_per_sample");
        let gain = step["gain"].as_f64().expect("a share");
        assert!(gain >= 0.0049 && (1.0 - now / before - gain).abs() < 1e-9, "{step}");
        assert!(list(step, "reasons").iter().all(|reason| reason["sentence"].is_string()));
        before = now;
    }
    assert_eq!(found["best"], path.last().expect("a step")["point"]);
    let output = tilescope(&["simulate", text(&file), "--figures"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Value = serde_json::from_str(&stdout(&output)).expect("figures");
    assert_eq!(figures["cycles"], found["best"]["cycles"]);
    assert_eq!(figures["fullest_tile_bytes"], found["best"]["memory"]);
    // No tried point is better, and every trial is listed.
    for end in list(&found, "dead_ends") {
        let time = end["point"]["seconds_per_sample"].as_f64();
        assert!(time.is_none_or(|time| time > before * 0.995), "{end}");
    }
    assert!(found["simulations"].as_u64().expect("a number") <= 20);
    // The text has the same steps.
    let output = tilescope(&["tune", "prefetch", "--budget", "20"]);
    let said = stdout(&output);
    for step in path {
        let reason = step["reasons"][0]["sentence"].as_str().expect("words");
        assert!(said.contains(reason), "{reason}: {said}");
        assert!(said.contains(step["compare"].as_str().expect("a command")), "{said}");
    }
}

/// The picture has every step with its reason.
#[cfg(feature = "gui")]
#[test]
fn the_path_is_drawn() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("path.svg");
    let found = tune(&["prefetch", "--budget", "15", "--plot", text(&file)]);
    let drawn = std::fs::read_to_string(&file).expect("a picture");
    assert!(drawn.contains("Path from prefetch") && drawn.contains("Time per sample"));
    for step in list(&found, "path") {
        let key =
            step["change"].as_object().and_then(|change| change.keys().next()).expect("a key");
        assert!(drawn.contains(key.rsplit('.').next().expect("a name")), "{key}");
    }
    let none = directory.path().join("none.svg");
    let unfit = ["tune", "too_large", "--budget", "4", "--plot", text(&none)];
    assert_eq!(tilescope(&unfit).status.code(), Some(1));
    assert!(std::fs::read_to_string(&none).expect("a picture").contains("No tested spec fits"));
}

#[test]
fn the_path_does_not_depend_on_the_number_of_jobs() {
    let one = tune(&["prefetch", "--budget", "15", "--jobs", "1"]);
    let three = tune(&["prefetch", "--budget", "15", "--jobs", "3"]);
    assert_eq!(way(&one), way(&three));
}

#[test]
fn a_stopped_search_can_be_resumed() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("tune.db");
    let arguments =
        |budget: &'static str| ["prefetch", "--budget", budget, "--results", text(&file)];
    let whole = tune(&["prefetch", "--budget", "15"]);
    assert_eq!(tune(&arguments("9"))["simulated_now"], 9);
    let rest = tune(&arguments("15"));
    assert_eq!(way(&rest), way(&whole));
    assert_eq!(
        rest["simulated_now"].as_u64().map(|new| new + 9),
        whole["simulated_now"].as_u64(),
        "what was known is not run again"
    );
    let again = tune(&arguments("15"));
    assert_eq!((way(&again), &again["simulated_now"]), (way(&whole), &Value::from(0)));
    // All trials are listed.
    let output = tilescope(&["sweep", "--merge", text(&file), "--format", "json"]);
    let merged: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert!(list(&merged, "points").contains(&{
        let mut best = whole["best"].clone();
        let front =
            list(&merged, "points").iter().find(|point| point["changes"] == best["changes"]);
        best["pareto_front"] = front.expect("the best point")["pareto_front"].clone();
        best
    }));
    // So is the path, stored in a table beside the points.
    assert_eq!(way(&merged["search"]), way(&whole));
    assert_eq!(merged["search"]["dead_ends"], whole["dead_ends"]);
    // An older file without a path is read, and gets one when the search continues.
    let older = rusqlite::Connection::open(&file).expect("opens");
    older.execute_batch("DROP TABLE search; PRAGMA user_version = 2").expect("changed");
    drop(older);
    let merge = ["sweep", "--merge", text(&file), "--format", "json"];
    let merged = || -> Value { serde_json::from_str(&stdout(&tilescope(&merge))).expect("JSON") };
    assert_eq!(merged()["search"], Value::Null);
    tune(&arguments("15"));
    assert_eq!(way(&merged()["search"]), way(&whole));
}

#[test]
fn computed_keys_stay_unchanged_unless_they_are_freed() {
    let found = tune(&["prefetch", "--budget", "15"]);
    let fixed = ["model.", "target.", "options.gradient_accumulation", "options.partials_type"];
    for key in changed(&found) {
        assert!(!fixed.iter().any(|fixed| key.starts_with(fixed)), "{key}");
    }
    let left = list(&found, "untried");
    let proposed = |key: &str| {
        left.iter().any(|of| list(of, "fixed").iter().any(|fixed| fixed.as_str() == Some(key)))
    };
    assert!(proposed("model.batch_size"), "{left:?}");
    let free = tune(&["prefetch", "--budget", "15", "--free", "model.batch_size"]);
    assert!(changed(&free).contains(&"model.batch_size".to_owned()), "{free}");
    let faster = |of: &Value| figure(&of["best"], "seconds_per_sample");
    assert!(faster(&free) < faster(&found));
    // Fixed keys stay unchanged, for any gain.
    let key = changed(&found).into_iter().next().expect("a change");
    let without = tune(&["prefetch", "--budget", "15", "--fix", &key]);
    assert!(!changed(&without).contains(&key), "{key}");
}

#[test]
fn conditions_hold_at_the_end() {
    let base = tune(&["prefetch", "--budget", "2"]);
    let memory = figure(&base["base"], "memory");
    let limit = format!("memory <= {memory}");
    let found = tune(&["prefetch", "--budget", "15", "--where", &limit]);
    assert!(figure(&found["best"], "memory") <= memory);
    let kept = tune(&["prefetch", "--budget", "15", "--where", "device_iterations == 200"]);
    assert!(!changed(&kept).contains(&"options.device_iterations".to_owned()));
    for point in list(&found, "pareto_front") {
        assert!(figure(point, "memory") <= memory, "{point}");
    }
}

/// A search that misses the request reports that, and writes nothing.
#[test]
fn a_search_that_misses_the_request_fails() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("better.toml");
    let cases = [
        (&["too_large", "--budget", "12"][..], "no tested spec fits in memory"),
        (
            &["dense_layer", "--budget", "12", "--where", "memory < 1 KiB"][..],
            "meets all conditions",
        ),
    ];
    for (arguments, words) in cases {
        let output = tilescope(&[&["tune", "-o", text(&file)], arguments].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
        assert!(stdout(&output).contains(words) && !file.exists());
    }
}

#[test]
fn other_objectives_are_minimized() {
    let cases = [
        ("io_overlap", "memory", "memory"),
        ("prefetch", "latency", "seconds"),
        ("prefetch", "energy", "joules_per_million_samples"),
        ("mnist_pipeline", "cost", "cost_per_million_samples"),
        ("mnist_pipeline", "ipus", "ipus"),
    ];
    for (spec, objective, name) in cases.into_iter().take(up_to(2)) {
        let found = tune(&[spec, "--budget", "20", "--objective", objective]);
        let [base, best] = [&found["base"], &found["best"]].map(|point| figure(point, name));
        assert!(best <= base, "{objective}: {best} above {base}");
        assert!(!list(&found, "path").is_empty(), "{objective}");
    }
}

#[test]
fn the_spec_itself_is_never_written_over() {
    let directory = tempfile::tempdir().expect("directory");
    let spec = directory.path().join("mine.toml");
    let bundled = stdout(&tilescope(&["specs", "prefetch"]));
    std::fs::write(&spec, bundled).expect("written");
    let over = tilescope(&["tune", text(&spec), "-o", text(&spec)]);
    assert!(stderr(&over).contains("is an input of this command"), "{}", stderr(&over));
}

/// A spec that does not fit is first given the smallest change that makes it fit. Where only keys that
/// must stay would do, the result names them.
#[test]
fn the_smallest_change_that_fits_comes_first() {
    let chip = "target.name";
    let precision = "model.precision";
    let output = tilescope(&["tune", "too_large", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let found: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let fits = &found["fits_if_free"];
    let keys: Vec<&String> = fits["change"].as_object().expect("changes").keys().collect();
    assert_eq!(keys, [precision, chip]);
    assert_eq!(fits["point"]["outcome"], "fits");
    assert!(list(&found, "path").iter().all(|step| step["point"]["outcome"] == "does_not_fit"));
    let freed = ["--free", chip, "--free", precision, "--budget", "60"];
    let found = tune(&[&["too_large"], &freed[..]].concat());
    let first = &list(&found, "path")[0];
    assert_eq!(first["change"], fits["change"]);
    assert_eq!(list(first, "reasons").len(), 2, "a reason for each of them");
    assert!(found["shortfall"].is_null() && found["fits_if_free"].is_null());
    assert_eq!(found["best"]["outcome"], "fits");
}

/// Dividing a replica keeps the samples of an update and the IPUs, so that it needs no `--free`.
#[test]
fn replicas_of_fewer_ipus_are_tried() {
    let short = ["mnist_pipeline", "--set", "options.device_iterations=1", "--budget", "10"];
    let found = tune(&short);
    let ipus = "target.ipus";
    let tried = list(&found, "path").iter().chain(list(&found, "dead_ends"));
    let mut divided = tried.filter(|of| of["reasons"][0]["rule"] == "more_replicas");
    let first = divided.next().expect("a division of the four IPUs");
    assert!(first["change"][ipus].as_u64().expect("IPUs") < 4);
    assert_eq!(found["best"]["ipus"], 4, "as many IPUs as before");
    if skipped_in_the_fast_tier() {
        return;
    }
    let fixed = tune(&[&short[..], &["--fix", ipus]].concat());
    assert!(!changed(&fixed).contains(&ipus.to_owned()));
}
