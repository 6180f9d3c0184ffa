//! `tilescope sweep`: every combination of values, in files that can be resumed and merged.

use crate::common::{self, stderr, stdout, tilescope};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A sweep of a layer with quick simulations: 4 x 3 points, 6 of which meet the conditions.
const SWEEP: [&str; 9] = [
    "dense_layer",
    "--vary",
    "model.batch_size=4..32:x2",
    "--vary",
    "options.device_iterations=1..3",
    "--where",
    "batch_size < 32",
    "--where",
    "options.device_iterations != 2",
];

fn sweep(arguments: &[&str]) -> Output {
    tilescope(&[&["sweep"], arguments].concat())
}

/// The points in the JSON output of a sweep.
fn points(arguments: &[&str]) -> Vec<Value> {
    let output = sweep(&[arguments, &["--format", "json"]].concat());
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    json["points"].as_array().expect("points").clone()
}

/// Points in a fixed order, without values that depend on the other points.
fn alone(points: Vec<Value>) -> Vec<String> {
    let mut alone: Vec<String> = points
        .into_iter()
        .map(|mut point| {
            point.as_object_mut().expect("an object").remove("pareto_front");
            point.to_string()
        })
        .collect();
    alone.sort();
    alone
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

/// The number of rows of points in a file, and the number of the last one.
fn rows(path: &Path) -> (i64, i64) {
    let connection = Connection::open(path).expect("a file of results");
    let count = "SELECT count(*), coalesce(max(rowid), 0) FROM points";
    connection.query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("points")
}

/// The error of the model is shown beside each affected figure, in every format.
#[test]
fn points_have_error_bands() {
    let one = ["dense_layer", "--vary", "model.batch_size=4,8"];
    let banded = [
        "seconds_per_sample",
        "samples_per_second",
        "cycles",
        "seconds",
        "memory",
        "joules_per_million_samples",
        "cost_per_million_samples",
    ];
    let found = points(&one);
    for point in &found {
        for name in banded {
            let band = &point["expected"][name];
            let end = |end: &str| band[end].as_f64().unwrap_or_else(|| panic!("{name}: {point}"));
            assert!(end("low") < end("value") && end("value") < end("high"), "{name}: {point}");
            let value = point[name].as_f64().expect("a figure");
            assert!((end("value") / value - 1.0).abs() < 1e-9, "{name}: {point}");
        }
        assert!(point["expected"]["ipus"].is_null(), "{point}");
    }
    let csv = stdout(&sweep(&[&one[..], &["--format", "csv"]].concat()));
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    for (line, point) in lines.zip(&found) {
        for name in banded {
            let at = head.iter().position(|column| *column == name).expect("a column");
            for (place, end) in [(at + 1, "low"), (at + 2, "high")] {
                assert_eq!(head[place], format!("{name}_{end}"));
                let known = point["expected"][name][end].as_f64().expect("an end");
                let written: f64 = line[place].parse().expect("a number");
                assert!((written / known - 1.0).abs() < 1e-6, "{name}: {line:?}");
            }
        }
        assert!(!head.contains(&"ipus_low"));
    }
    let text = stdout(&sweep(&one));
    let rows = text.lines().skip(1);
    assert_eq!(rows.clone().count(), 2);
    assert!(rows.clone().all(|row| row.matches(" %)").count() == 3), "{text}");
}

#[test]
fn rows_are_the_product_less_what_conditions_discard() {
    let found = points(&SWEEP);
    let changes: Vec<Value> = found.iter().map(|point| point["changes"].clone()).collect();
    let batches = [4, 8, 16].into_iter();
    let expected = batches.flat_map(|batch| {
        [1, 3].map(|n| json!({ "model.batch_size": batch, "options.device_iterations": n }))
    });
    assert_eq!(changes, expected.collect::<Vec<_>>());
    // Each row equals a manual simulation with the same changes.
    for point in &found {
        let sets: Vec<String> = point["changes"]
            .as_object()
            .expect("changes")
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let output = tilescope(&[&["simulate", "dense_layer", "--figures"], &*sets].concat());
        let figures: Value = serde_json::from_str(&stdout(&output)).expect("figures");
        for (name, of) in [
            ("cycles", "cycles"),
            ("seconds", "seconds"),
            ("samples", "samples"),
            ("memory", "fullest_tile_bytes"),
            ("ipus", "ipus"),
        ] {
            assert_eq!(point[name], figures[of], "{name} of {point}");
        }
        assert_eq!(point["outcome"], "fits");
    }
    // Conditions on figures leave out rows that were simulated.
    let most = found.iter().filter_map(|point| point["cycles"].as_u64()).max().expect("cycles");
    let below = format!("cycles < {most}");
    assert!(points(&[&SWEEP[..], &["--where", &below]].concat()).len() < found.len());
}

#[test]
fn shards_are_disjoint_and_merge_to_the_whole() {
    let directory = tempfile::tempdir().expect("directory");
    let whole = alone(points(&SWEEP));
    let files: Vec<_> = (1..=4).map(|part| directory.path().join(format!("{part}.db"))).collect();
    let mut all: Vec<Value> = Vec::new();
    for (part, file) in (1..).zip(&files) {
        let shard = format!("{part}/4");
        all.extend(points(&[&SWEEP[..], &["--shard", &shard, "--results", text(file)]].concat()));
    }
    assert_eq!(alone(all), whole, "none is there twice");
    let merged = directory.path().join("all.db");
    let mut arguments = vec!["--results", text(&merged), "--merge"];
    arguments.extend(files.iter().map(|file| text(file)));
    assert_eq!(alone(points(&arguments)), whole);
    // A merged file is complete: the whole sweep runs nothing.
    let before = rows(&merged);
    assert_eq!(before.0, 6);
    assert_eq!(alone(points(&[&SWEEP[..], &["--results", text(&merged)]].concat())), whole);
    assert_eq!(rows(&merged), before, "a row that is written again is a new one");
}

#[test]
fn a_killed_sweep_can_be_resumed() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("points.db");
    let arguments = ["dense_layer", "--vary", "model.batch_size=1..24", "--results", text(&file)];
    let mut killed = Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .arg("sweep")
        .args(arguments)
        .args(["--jobs", "1"])
        .stdout(Stdio::null())
        .spawn()
        .expect("starts");
    // The file is locked while it is written to; the output shows nothing before the end.
    while std::fs::metadata(&file).map_or(0, |of| of.len()) == 0 {
        assert!(killed.try_wait().expect("a state").is_none(), "it ended without a file");
        std::thread::sleep(Duration::from_millis(5));
    }
    killed.kill().expect("killed");
    killed.wait().expect("ended");
    let found = points(&arguments);
    assert_eq!(found.len(), 24);
    assert!(found.iter().all(|point| point["outcome"] == "fits"));
    assert_eq!(rows(&file), (24, 24), "no point was written twice");
}

/// No feasible point beats a point of the front in everything, and some point beats each of the
/// others.
#[test]
fn no_point_of_the_front_is_dominated() {
    let found = points(&[
        "dense_layer",
        "--vary",
        "model.batch_size=1..64:x2",
        "--vary",
        "model.precision=float32,float16",
        "--vary",
        "model.width=4096,524288",
    ]);
    let costs = |point: &Value| -> Option<Vec<f64>> {
        ["seconds_per_sample", "memory", "ipus"].iter().map(|name| point[name].as_f64()).collect()
    };
    let dominates = |a: &Value, b: &Value| match (costs(a), costs(b)) {
        (Some(a), Some(b)) => a != b && a.iter().zip(&b).all(|(a, b)| a <= b),
        _ => false,
    };
    let of = |wanted: bool| {
        found.iter().filter(move |point| point["pareto_front"] == wanted).collect::<Vec<_>>()
    };
    let (front, others) = (of(true), of(false));
    assert!(!front.is_empty() && front.iter().all(|point| point["outcome"] == "fits"));
    for point in &front {
        assert!(!found.iter().any(|other| dominates(other, point)), "{point}");
    }
    for point in others.iter().filter(|point| point["outcome"] == "fits") {
        assert!(front.iter().any(|other| dominates(other, point)), "{point}");
    }
    assert!(others.iter().any(|point| point["outcome"] == "does_not_fit"), "one is too large");
}

/// A refused point is a row with the reason, and the others are present.
#[test]
fn refused_points_have_a_reason() {
    let arguments = [
        "dense_layer",
        "--vary",
        "options.num_io_tiles=0,32",
        "--vary",
        "options.overlap_io=none,loops",
    ];
    let found = points(&arguments);
    let refused: Vec<&Value> = found.iter().filter(|point| point["outcome"] == "refused").collect();
    assert!(!refused.is_empty() && refused.len() < found.len());
    for point in &refused {
        let problem = point["problem"].as_str().expect("words");
        assert!(problem.contains("options.num_io_tiles"), "{problem}");
        assert_eq!(point["cycles"], Value::Null);
    }
    let table = stdout(&sweep(&arguments));
    assert!(table.contains("refused: options.overlap_io"), "{table}");
    let csv = stdout(&sweep(&[&arguments[..], &["--format", "csv"]].concat()));
    let banded = |name: &str| format!("{name},{name}_low,{name}_high");
    let head = [
        "options.num_io_tiles,options.overlap_io".to_owned(),
        banded("seconds_per_sample"),
        banded("samples_per_second"),
        banded("cycles"),
        banded("seconds"),
        "samples".to_owned(),
        banded("memory"),
        "ipus".to_owned(),
        banded("joules_per_million_samples"),
        banded("cost_per_million_samples"),
        "outcome,pareto_front,problem\n".to_owned(),
    ];
    assert!(csv.starts_with(&head.join(",")), "{csv}");
    assert_eq!(csv.lines().count(), 1 + found.len());
}

/// Runs a sweep under limits of a shell.
fn limited(limits: &str, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_tilescope");
    let script = format!("{limits}; exec \"$0\" sweep \"$@\"");
    Command::new("sh").args(["-c", &script, program]).args(arguments).output().expect("a shell")
}

/// Kills the child of a process whose command line contains this word. Returns false if there is
/// none.
#[cfg(target_os = "linux")]
fn kill_child(parent: u32, word: &str) -> bool {
    let parent = format!("PPid:\t{parent}\n");
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let read = |name: &str| std::fs::read_to_string(entry.path().join(name));
        let (Ok(status), Ok(words)) = (read("status"), read("cmdline")) else { continue };
        if status.contains(&parent) && words.split('\0').any(|of| of == word) {
            let process = entry.file_name();
            return common::signal("KILL", &process.to_string_lossy());
        }
    }
    false
}

/// A killed child affects no other: the others are rows, and it is retried.
#[cfg(target_os = "linux")]
#[test]
fn children_that_die_are_retried() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("points.db");
    let arguments = [
        "dense_layer",
        "--vary",
        "options.device_iterations=1,2,300000",
        "--results",
        text(&file),
        "--format",
        "json",
    ];
    let mut running = Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .arg("sweep")
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    while !kill_child(running.id(), "options.device_iterations=300000") {
        assert!(running.try_wait().expect("a state").is_none(), "the point was never tried");
        std::thread::sleep(Duration::from_millis(1));
    }
    let output = running.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(
        stderr(&output).contains("1 of 3 points failed: run the same command to repeat them"),
        "{}",
        stderr(&output)
    );
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let outcomes: Vec<&str> = json["points"]
        .as_array()
        .expect("points")
        .iter()
        .filter_map(|point| point["outcome"].as_str())
        .collect();
    assert_eq!(outcomes, ["fits", "fits", "died"]);
    assert!(json["points"][2]["problem"].as_str().expect("words").contains("it was killed"));
    let again = sweep(&arguments);
    assert!(again.status.success(), "{}", stderr(&again));
    assert_eq!(rows(&file), (3, 4), "one row took the place of another");
}

/// On a full disk, written results are kept, and the message names the file.
#[test]
fn a_full_disk_ends_a_sweep_and_loses_nothing() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("points.db");
    // Each row is refused quickly, with a long reason.
    let arguments = [
        "dense_layer",
        "--vary",
        "options.output_return_period=1..400",
        "--set",
        "options.overlap_io=loops",
        "--results",
        text(&file),
    ];
    let base = sweep(&arguments);
    assert_eq!(base.status.code(), Some(2), "the spec itself is refused: {}", stderr(&base));
    let arguments = [
        "dense_layer",
        "--vary",
        "model.batch_size=1..400",
        "--vary",
        "options.num_io_tiles=1",
        "--results",
        text(&file),
    ];
    let full = limited("trap '' XFSZ; ulimit -f 96", &arguments);
    assert_eq!(full.status.code(), Some(1), "{}", stderr(&full));
    let said = stderr(&full);
    assert!(said.contains("points.db") && said.contains("earlier simulations are kept"), "{said}");
    let (kept, last) = rows(&file);
    assert!(kept > 10 && kept < 400, "{kept}");
    assert!(sweep(&arguments).status.success());
    assert!(rows(&file).0 == 400 && last <= 400);
}

#[test]
fn files_of_other_programs_are_refused() {
    let directory = tempfile::tempdir().expect("directory");
    let file = directory.path().join("points.db");
    let of = |spec: &str, file: &Path| {
        sweep(&[spec, "--vary", "model.batch_size=4,8", "--results", text(file)])
    };
    assert!(of("dense_layer", &file).status.success());
    let other = of("io_overlap", &file);
    assert_eq!(other.status.code(), Some(2));
    assert!(
        stderr(&other).contains("it belongs to another spec (dense_layer)"),
        "{}",
        stderr(&other)
    );
    let beside = directory.path().join("beside.db");
    assert!(of("io_overlap", &beside).status.success());
    let merged = sweep(&["--merge", text(&file), text(&beside)]);
    assert_eq!(merged.status.code(), Some(2));
    assert!(stderr(&merged).contains("does not match"), "{}", stderr(&merged));
    // Another version may simulate differently.
    let connection = Connection::open(&beside).expect("opens");
    connection.execute("UPDATE spec SET program_version = '0.0.1'", []).expect("updated");
    let old = of("io_overlap", &beside);
    assert!(stderr(&old).contains("tilescope 0.0.1 wrote it"), "{}", stderr(&old));
    let words = directory.path().join("notes.txt");
    std::fs::write(&words, "not a database, but long enough to look at: ".repeat(40))
        .expect("written");
    let foreign = directory.path().join("foreign.db");
    Connection::open(&foreign).expect("opens").execute("CREATE TABLE t (x)", []).expect("made");
    for file in [&words, &foreign] {
        let refused = of("dense_layer", file);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("is not a results file"), "{}", stderr(&refused));
    }
    let missing = sweep(&["--merge", text(&directory.path().join("missing.db"))]);
    assert_eq!(missing.status.code(), Some(1), "{}", stderr(&missing));
    // Two processes that write to one file would run everything twice.
    let writing = Connection::open(&file).expect("opens");
    writing.execute_batch("BEGIN EXCLUSIVE").expect("locked");
    let busy = of("dense_layer", &file);
    assert!(stderr(&busy).contains("use a separate file for each worker"), "{}", stderr(&busy));
}

/// The plots have the lines, their legend, and the points of the front.
#[cfg(feature = "gui")]
#[test]
fn plots_show_the_results() {
    let directory = tempfile::tempdir().expect("directory");
    let (svg, png) = (directory.path().join("points.svg"), directory.path().join("points.png"));
    let arguments = [&SWEEP[..], &["--plot", text(&svg)]].concat();
    assert!(sweep(&arguments).status.success());
    let drawn = std::fs::read_to_string(&svg).expect("a picture");
    for words in [
        "Sweep of dense_layer",
        "model.batch_size",
        "device_iterations 3",
        "Memory of the fullest tile",
        "211 KiB",
        "batch_size 16, device_iterations 3",
    ] {
        assert!(drawn.contains(words), "{words}");
    }
    let again = [&SWEEP[..], &["--plot", text(&png)]].concat();
    assert!(sweep(&again).status.success());
    assert!(std::fs::read(&png).expect("a picture").starts_with(b"\x89PNG"));
    // Too many lines to distinguish, and no feasible point, are described in words.
    let many = [
        "dense_layer",
        "--vary",
        "model.batch_size=4,8",
        "--vary",
        "options.device_iterations=1..10",
    ];
    assert!(sweep(&[&many[..], &["--plot", text(&svg)]].concat()).status.success());
    assert!(std::fs::read_to_string(&svg).expect("a picture").contains("10 lines are too many"));
    let none = ["dense_layer", "--vary", "model.width=524288", "--plot", text(&svg)];
    assert!(sweep(&none).status.success());
    assert!(std::fs::read_to_string(&svg).expect("a picture").contains("No point fits in memory."));
}
