//! The command line as seen by users and scripts, without a display.

use crate::common::{stderr, stdout, tilescope};
use serde_json::Value;
use std::path::Path;
use tilescope_test_tiers::skipped_in_the_fast_tier;

/// Runs a command that must fail. Returns its exit code and message.
fn failure(arguments: &[&str]) -> (i32, String) {
    let output = tilescope(arguments);
    assert!(stdout(&output).is_empty(), "a failure prints no result: {}", stdout(&output));
    (output.status.code().expect("an exit code"), stderr(&output))
}

fn path(directory: &tempfile::TempDir, name: &str) -> String {
    directory.path().join(name).to_string_lossy().into_owned()
}

#[test]
fn headless_writes_a_report_and_suggests_a_next_step() {
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    let output = tilescope(&["--headless", "-o", &out, "--set", "options.device_iterations=1"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("profile.pop") && text.contains(&format!("tilescope {out}")), "{text}");
    assert!(text.contains("4 x Mk2") && text.contains("cycles"), "{text}");
    let names: Vec<_> =
        std::fs::read_dir(&out).expect("made").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["profile.pop"]);
    let output = tilescope(&["verify", &out]);
    assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn verify_shows_progress_and_prints_its_findings_as_json() {
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    assert!(tilescope(&["simulate", "matmul_chain", "-o", &out]).status.success());
    let verify = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tilescope"));
        command.args(["verify", &out, "--json"]).env("TILESCOPE_PROGRESS", "1");
        let output = command.output().expect("run");
        let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        assert!(stderr(&output).contains("progress 100"), "{}", stderr(&output));
        (output.status.code(), json)
    };
    let (code, json) = verify();
    let report = format!("{out}/profile.pop");
    let expected = serde_json::json!({ "report": report, "consistent": true, "findings": [] });
    assert_eq!((code, json), (Some(0), expected));
    let db = rusqlite::Connection::open(&report).expect("database");
    db.execute_batch("UPDATE execution_cycle_totals SET total = total + 1").expect("changed");
    drop(db);
    let (code, json) = verify();
    assert_eq!((code, &json["consistent"]), (Some(1), &Value::Bool(false)));
    let findings = json["findings"].as_array().expect("a list");
    let law = |name: &str| findings.iter().find(|finding| finding["law"] == name);
    assert!(law("content_is_as_written").is_some(), "{json}");
    let text = law("trace_adds_up").and_then(|finding| finding["text"].as_str());
    assert!(text.is_some_and(|text| text.contains("cycles")), "{json}");
}

#[test]
fn summary_json_has_the_promised_keys() {
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    assert!(tilescope(&["simulate", "matmul_chain", "-o", &out]).status.success());
    let json: Value =
        serde_json::from_str(&stdout(&tilescope(&["summary", &out, "--json"]))).expect("JSON");
    let keys = "/target/type /target/architecture /target/num_ipus /target/tiles_per_ipu \
                /target/replicas /target/ipus_per_replica /target/bytes_per_tile \
                /target/clock_hz /graph/compute_sets /graph/vertices /graph/edges \
                /graph/variables /memory/total_excluding_gaps /memory/total_including_gaps \
                /memory/max_tile_including_gaps /memory/by_region/interleaved \
                /memory/by_category/variable /memory/always_live /memory/peak_not_always_live \
                /memory/out_of_memory_tiles /execution/total_cycles /execution/seconds \
                /execution/ipus/0/steps /execution/ipus/0/proportions/compute \
                /execution/ipus/0/tile_balance";
    for key in keys.split(' ') {
        assert!(json.pointer(key).is_some(), "{key} is missing");
    }
    assert_eq!(json.pointer("/execution/samples"), Some(&Value::Null));
    for ipu in json["execution"]["ipus"].as_array().expect("IPUs") {
        let shares = ipu["proportions"].as_object().expect("shares");
        let sum: f64 = shares.values().filter_map(Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-9, "proportions add up to {sum}");
    }
}

#[test]
fn a_program_that_does_not_fit_is_a_result() {
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    let output = tilescope(&["simulate", "too_large", "-o", &out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("Out of memory"), "{}", stdout(&output));
    let json: Value =
        serde_json::from_str(&stdout(&tilescope(&["summary", &out, "--json"]))).expect("JSON");
    assert_eq!(json["execution"], Value::Null);
    assert!(json["memory"]["out_of_memory_tiles"].as_u64() > Some(0));
}

#[test]
fn specs_are_listed_and_printed() {
    let list = stdout(&tilescope(&["specs"]));
    for name in ["matmul_chain", "mnist_pipeline", "too_large"] {
        assert!(list.lines().any(|line| line.starts_with(&format!("  {name} "))), "{list}");
    }
    for heading in ["Examples", "Small programs", "Published benchmarks"] {
        assert!(list.lines().any(|line| line == heading), "{list}");
    }
    let text = stdout(&tilescope(&["specs", "mnist_pipeline"]));
    assert!(text.contains("gradient_accumulation = 10"), "{text}");
}

#[test]
fn the_old_name_of_a_command_is_accepted_with_a_note() {
    let [old, new] = ["seeds", "reproduce"].map(|name| tilescope(&[name, "--help"]));
    assert!(old.status.success());
    assert_eq!(stdout(&old), stdout(&new));
    assert!(stderr(&old).contains("`seeds` is now `reproduce`"), "{}", stderr(&old));
    assert!(!stdout(&tilescope(&["--help"])).contains("seeds"));
    assert_eq!(stderr(&new), "");
}

#[test]
fn broken_reports_exit_with_one_and_a_reason() {
    let directory = tempfile::tempdir().expect("directory");
    let make = |name: &str, bytes: &[u8]| {
        let file = path(&directory, name);
        std::fs::write(&file, bytes).expect("written");
        file
    };
    let out = path(&directory, "whole");
    assert!(tilescope(&["simulate", "matmul_chain", "-o", &out]).status.success());
    let whole = std::fs::read(format!("{out}/profile.pop")).expect("report");
    let truncated = make("truncated.pop", &whole[..whole.len() / 2]);
    let jpeg = make("holiday.pop", &[0xff, 0xd8, 0xff, 0xe0, 0, 16, b'J', b'F', b'I', b'F', 0, 1]);
    let empty_directory = path(&directory, "empty");
    std::fs::create_dir(&empty_directory).expect("made");
    let other = path(&directory, "other.pop");
    let connection = rusqlite::Connection::open(&other).expect("database");
    connection.execute_batch("CREATE TABLE shopping (item TEXT)").expect("table");
    drop(connection);
    let missing = path(&directory, "missing");
    for report in [&missing, &empty_directory, &truncated, &jpeg, &other] {
        for command in ["summary", "verify"] {
            let (code, message) = failure(&[command, report]);
            assert_eq!(code, 1, "{command} {report}: {message}");
            assert!(
                message.starts_with("error: ") && message.trim_end().ends_with(report.as_str()),
                "{message}"
            );
        }
    }
}

#[test]
fn an_unwritable_place_is_named() {
    let directory = tempfile::tempdir().expect("directory");
    let file = path(&directory, "file");
    std::fs::write(&file, "in the way").expect("written");
    let (code, message) = failure(&["simulate", "matmul_chain", "-o", &format!("{file}/out")]);
    assert_eq!(code, 1, "{message}");
    assert!(message.contains(&file), "{message}");
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "in the way");
}

#[test]
fn the_same_spec_gives_the_same_bytes() {
    let directory = tempfile::tempdir().expect("directory");
    let [a, b] = ["a", "b"].map(|name| {
        let out = path(&directory, name);
        let output = tilescope(&[
            "simulate",
            "mnist_pipeline",
            "-o",
            &out,
            "--set",
            "options.device_iterations=1",
        ]);
        assert!(output.status.success(), "{}", stderr(&output));
        std::fs::read(format!("{out}/profile.pop")).expect("report")
    });
    assert!(a == b, "two runs of one spec differ");
}

/// A report of products with this change.
fn simulated_product(directory: &tempfile::TempDir, name: &str, change: &str) -> String {
    let out = path(directory, name);
    let made = tilescope(&["simulate", "matmul_chain", "--set", change, "-o", &out]);
    assert!(made.status.success(), "{}", stderr(&made));
    out
}

#[test]
fn compare_prints_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let small = simulated_product(&directory, "small", "model.m=200");
    let large = simulated_product(&directory, "large", "model.m=800");
    let text = stdout(&tilescope(&["compare", &small, &large]));
    for words in ["Source", "Target", "Diff", "Cycles", "Fullest tile", "model.m", "differs"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let json = stdout(&tilescope(&["compare", &small, &large, "--view", "all", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for view in ["summary", "memory", "liveness", "execution-trace", "insights"] {
        assert!(json[view][0]["rows"].is_array(), "{view}");
    }
    let row = &json["execution-trace"][1]["rows"][0];
    let side = |name: &str| row[name].as_i64().unwrap_or(0);
    assert_eq!(side("diff"), side("target") - side("source"));
    // The same tables as files.
    let csv = path(&directory, "memory.csv");
    let arguments = ["export", &small, "--compare", &large, "--view", "memory"];
    let table = ["--format", "csv", "--table", "variables", "-o", &csv];
    let export = tilescope(&[&arguments[..], &table[..]].concat());
    assert!(export.status.success(), "{}", stderr(&export));
    let text = std::fs::read_to_string(&csv).unwrap();
    assert!(text.starts_with("variable,source,target,diff,relative\n"), "{text}");
    // Without a view, one page summarizes the changes.
    let page = stdout(&tilescope(&["compare", &small, &large, "--json"]));
    let page: serde_json::Value = serde_json::from_str(&page).unwrap();
    assert!(page["verdict"].as_str().unwrap().contains("more cycles"), "{page}");
    assert_eq!(page["normalization"]["asked"], "sample");
    assert!(
        page["overview"].as_array().unwrap().iter().any(|table| table["title"] == "Operations")
    );
    let wrong = ["--format", "csv", "--table", "nonsense"];
    assert_eq!(failure(&[&arguments[..], &wrong[..]].concat()).0, 2);
    let wrong = [
        ["--fail-over", "-1"],
        ["--fail-over", "much"],
        ["--view", "nothing"],
        ["--junit", "gates.xml"],
    ];
    for wrong in wrong {
        let arguments = ["compare", &small, &large, wrong[0], wrong[1]];
        assert_eq!(failure(&arguments).0, 2, "{wrong:?}");
    }
}

/// Gates for jobs that watch cycles and memory: worse results fail with a separate exit code, equal
/// and better ones pass.
#[test]
fn violated_gates_have_a_separate_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let small = simulated_product(&directory, "small", "model.m=200");
    let large = simulated_product(&directory, "large", "model.m=800");
    let gate = tilescope(&["compare", &small, &large, "--fail-over", "2"]);
    let words = stderr(&gate);
    assert_eq!(gate.status.code(), Some(3));
    assert!(words.contains("cycles > +2%: it grew") && words.contains("memory > +2%"), "{words}");
    for target in [&small, &large] {
        assert!(tilescope(&["compare", &large, target, "--fail-over", "0"]).status.success());
    }
    // The explanation of a difference is for jobs that fail, and for explicit requests.
    let passed = ["compare", &large, &small, "--fail-if", "cycles > +2%"];
    let brief = stdout(&tilescope(&passed));
    assert!(brief.contains("Result") && brief.contains("passed  cycles > +2%"), "{brief}");
    assert!(!brief.contains("Critical path"), "{brief}");
    let all = stdout(&tilescope(&[&passed[..], &["--view", "overview"]].concat()));
    assert!(all.contains("Critical path") && all.contains("passed  cycles > +2%"), "{all}");
    assert!(stdout(&gate).contains("Critical path"), "{}", stdout(&gate));

    let junit = path(&directory, "gates.xml");
    let asked = ["--fail-if", "execution.total_cycles > +2%", "--fail-if", "max_tile > 1 GiB"];
    let outputs = ["--markdown", "--junit", &junit];
    let failed = tilescope(&[&["compare", &small, &large][..], &asked, &outputs].concat());
    assert_eq!(failed.status.code(), Some(3), "{}", stderr(&failed));
    let page = stdout(&failed);
    assert!(
        page.contains("| execution.total\\_cycles \\> +2% | **violated**: it grew by"),
        "{page}"
    );
    assert!(page.contains("| max\\_tile \\> 1 GiB | passed |"), "{page}");
    let junit = std::fs::read_to_string(junit).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    let json = tilescope(&[&["compare", &small, &large, "--json"][..], &asked].concat());
    let json: serde_json::Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!(json["violations"][0]["figure"], "execution.total_cycles");
    assert!(!stderr(&failed).contains("::error"), "only jobs of GitHub read annotations");
    let on_github = std::process::Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args([&["compare", &small, &large][..], &asked].concat())
        .env("GITHUB_ACTIONS", "true")
        .output()
        .unwrap();
    let lines = stderr(&on_github);
    assert!(
        lines.contains("::error title=tilescope gate::execution.total_cycles > +2%25:"),
        "{lines}"
    );

    // An invalid gate is no violation.
    let (code, words) = failure(&["compare", &small, &large, "--fail-if", "execution.cyles > 1"]);
    assert_eq!(code, 2);
    assert!(words.contains("did you mean") && words.contains("^"), "{words}");
    let missing = path(&directory, "missing.pop");
    let (code, _) = failure(&["compare", &small, &missing, "--fail-if", "cycles > +2%"]);
    assert_eq!(code, 1, "a file that is not there is a failure");
}

/// Specs are compared through their simulated reports; a report equals a new simulation of its
/// spec.
#[test]
fn specs_are_compared_like_reports() {
    let directory = tempfile::tempdir().unwrap();
    let kept = simulated_product(&directory, "kept", "model.m=200");
    let spec = path(&directory, "small.toml");
    let text = stdout(&tilescope(&["specs", "matmul_chain"]));
    let lines = text.lines().map(|line| if line.starts_with("m =") { "m = 200" } else { line });
    std::fs::write(&spec, lines.collect::<Vec<_>>().join("\n")).unwrap();
    let same = tilescope(&["compare", &kept, &spec, "--fail-if", "cycles != +0"]);
    assert_eq!(same.status.code(), Some(2), "there is no such comparison");
    for gate in ["cycles > +0", "cycles < +0", "memory > +0", "memory < +0"] {
        let same = tilescope(&["compare", &kept, &spec, "--fail-if", gate]);
        assert!(same.status.success(), "{gate}: {}", stderr(&same));
    }
    let (code, words) = failure(&["compare", &kept, "no_such_spec"]);
    assert_eq!(code, 2);
    assert!(words.contains("no_such_spec"), "{words}");
}

#[test]
fn keys_of_specs_are_listed_for_users_and_editors() {
    let text = stdout(&tilescope(&["specs", "--keys"]));
    assert!(text.contains("options.gradient_accumulation: a whole number from 1 to"), "{text}");
    let json = stdout(&tilescope(&["specs", "--keys", "--json"]));
    let keys: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let known = |path: &str| keys.iter().find(|key| key["path"] == path).expect("listed");
    assert_eq!(known("options.gradient_accumulation")["kind"], "integer");
    assert_eq!(known("target.name")["kind"], "word");
    assert!(known("model.name")["words"].as_array().is_some_and(|words| words.len() > 5));
    assert!(keys.iter().any(|key| key["model"] == "matmul_chain"), "models have own keys");
}

#[test]
fn a_spec_is_checked_without_simulating_it() {
    let directory = tempfile::tempdir().unwrap();
    let (good, bad) = (path(&directory, "good.toml"), path(&directory, "bad.toml"));
    let text = stdout(&tilescope(&["specs", "matmul_chain"]));
    std::fs::write(&good, &text).unwrap();
    std::fs::write(&bad, format!("{text}\n[nonsense]\nx = 1\n")).unwrap();
    assert!(tilescope(&["simulate", &good, "--check"]).status.success());
    let (code, words) = failure(&["simulate", &bad, "--check"]);
    assert_eq!(code, 2);
    assert!(words.contains("bad.toml:") && words.contains("nonsense"), "{words}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn a_check_refuses_the_same_specs_as_a_simulation() {
    let refused = [
        ("mnist_pipeline", "options.stages=[{blocks=\"B1\", ipu=9}]"),
        ("mnist_pipeline", "options.stages=[{blocks=\"B1,B2,B3,B9\"}]"),
        ("mnist_pipeline", "options.device_iterations=16777216"),
        ("gpt2_small_pod16", "model.heads=7"),
        ("vit_base_pod16", "model.patch_size=15"),
    ];
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    for (spec, set) in refused {
        let simulated = failure(&["simulate", spec, "--set", set, "-o", &out]);
        let checked = failure(&["simulate", spec, "--set", set, "--check"]);
        assert_eq!(checked, simulated, "{spec} {set}");
    }
    let output = stdout(&tilescope(&["simulate", "too_large", "--check"]));
    assert!(output.contains("does not fit in memory"), "{output}");
}

/// Faster splits of BERT-Large need more memory than there is, so they are not used.
#[test]
fn a_balanced_split_fits_in_memory_if_one_does() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    let short = ["options.device_iterations=1", "options.gradient_accumulation=9"];
    let [iterations, accumulation] = short;
    let output = tilescope(&[
        "simulate",
        "bert_large_pod16",
        "--balance",
        "--set",
        iterations,
        "--set",
        accumulation,
        "-o",
        &out,
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("tested"), "{}", stdout(&output));
    let json: Value =
        serde_json::from_str(&stdout(&tilescope(&["summary", &out, "--json"]))).expect("JSON");
    assert!(json.pointer("/execution/total_cycles").is_some_and(Value::is_u64), "{json}");
}

/// Names in reports are untrusted, and terminals obey some characters.
#[test]
fn names_cannot_control_a_terminal() {
    let directory = tempfile::tempdir().expect("directory");
    let mut report = tilescope_fixtures::ReportBuilder::new(1, 1);
    let work = report.compute("layer\u{1b}]52;c;cm0gLXJm\u{7}/conv\u{9b}2J", 10);
    report.run(work, 0..10);
    report.write(directory.path()).expect("writes");
    let report = directory.path().to_string_lossy().into_owned();
    for arguments in [
        &["find", &report, "conv"][..],
        &["find", &report, "conv", "--json"],
        &["insights", &report],
        &["summary", &report],
    ] {
        let text = stdout(&tilescope(arguments));
        let obeyed = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
        assert!(!text.contains(obeyed), "{arguments:?}: {text:?}");
    }
    let found = stdout(&tilescope(&["find", &report, "conv", "--json"]));
    let json: Value = serde_json::from_str(&found).expect("JSON");
    let name = json["hits"][0]["name"].as_str().expect("a name");
    assert!(name.contains("\u{1b}]52") && name.contains('\u{9b}'), "the name is whole: {name:?}");
}

#[cfg(unix)]
#[test]
fn paths_that_are_not_unicode_open() {
    use std::os::unix::ffi::OsStrExt;
    let directory = tempfile::tempdir().expect("directory");
    let path = directory.path().join(std::ffi::OsStr::from_bytes(b"r\xe9port"));
    let mut report = tilescope_fixtures::ReportBuilder::new(1, 1);
    let work = report.compute("work", 10);
    report.run(work, 0..10);
    // Some file systems allow no such name.
    if report.write(&path).is_err() {
        return;
    }
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tilescope"));
    let output = command.arg("verify").arg(&path).output().expect("runs");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn a_picture_is_never_written_over_a_report() {
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    assert!(tilescope(&["simulate", "adder", "-o", &out]).status.success());
    let report = path(&directory, "out/profile.pop");
    let before = std::fs::read(&report).expect("a report");
    for format in ["png", "csv"] {
        let asked = ["export", &out, "--view", "memory", "--format", format, "-o", &report];
        let (code, message) = failure(&asked);
        assert!(code == 2 && message.contains("choose another name"), "{message}");
    }
    assert_eq!(std::fs::read(&report).expect("a report"), before);
}

#[test]
fn absurdly_long_runs_are_refused_before_they_begin() {
    let directory = tempfile::tempdir().expect("directory");
    let out = path(&directory, "out");
    let keys = ["options.gradient_accumulation", "options.device_iterations"];
    for (key, other) in [(keys[0], keys[1]), (keys[1], keys[0])] {
        let (set, more) = (format!("{key}=16777216"), format!("{other}=1000"));
        let spec = "tests/data/specs/perceptron.toml";
        let (code, message) =
            failure(&["simulate", spec, "-o", &out, "--set", &set, "--set", &more]);
        assert_eq!(code, 2, "{message}");
        assert!(message.contains(&format!("{key} (16,777,216)")), "{message}");
        assert!(
            message.contains("limit of 1,073,741,824") && message.contains("--yes"),
            "{message}"
        );
        assert!(!std::path::Path::new(&out).exists(), "nothing is left behind");
    }
}

/// The completions of the last of these words for a shell.
fn completed(shell: &str, words: &[&str]) -> Vec<String> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args([&["--", "tilescope"], words].concat())
        .env("TILESCOPE_COMPLETE", shell)
        .env("_CLAP_IFS", "\n")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    stdout(&output).lines().map(str::to_owned).collect()
}

#[test]
fn shells_complete_commands_specs_and_keys() {
    for command in ["simulate", "compare", "completions"] {
        let start = &command[..command.len() - 2];
        assert_eq!(completed("bash", &[start]), [command]);
    }
    let has = |words: &[&str], wanted: &str| {
        let found = completed("bash", words);
        assert!(found.iter().any(|one| one == wanted), "{words:?}: {found:?}");
    };
    has(&["simulate", "mnist"], "mnist_pipeline");
    has(&["compare", "mnist"], "mnist_pipeline");
    has(&["insights", "io_"], "io_overlap");
    has(&["specs", "mnist"], "mnist_pipeline");
    has(&["--headless", "mnist"], "mnist_pipeline");
    has(&["--headless", "x", "--set", "options.num_io"], "options.num_io_tiles=");
    has(&["simulate", "mnist_pipeline", "--set", "options.num_io"], "options.num_io_tiles=");
    has(
        &["simulate", "x", "--set", "options.pipeline_schedule=g"],
        "options.pipeline_schedule=grouped",
    );
    has(&["simulate", "--"], "--output");
    // Other shells also get a description.
    let fish = completed("fish", &["simulate", "mnist"]);
    assert!(fish.iter().any(|line| line.starts_with("mnist_pipeline\t")), "{fish:?}");
}

#[test]
fn powershell_gets_quoted_words() {
    let directory = tempfile::tempdir().expect("directory");
    for name in ["my report.pop", "it's $HOME.pop", "plain.pop"] {
        std::fs::write(directory.path().join(name), "").expect("a file");
    }
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_tilescope"))
        .args(["--", "tilescope", "summary", ""])
        .env("TILESCOPE_COMPLETE", "powershell")
        .current_dir(directory.path())
        .output()
        .expect("an answer");
    let answer = stdout(&output);
    let words: Vec<&str> = answer.lines().filter_map(|line| line.split('\t').next()).collect();
    for wanted in ["'my report.pop'", "'it''s $HOME.pop'", "plain.pop"] {
        assert!(words.contains(&wanted), "{wanted}: {words:?}");
    }
    let keys = completed("powershell", &["simulate", "x", "--set", "options.num_io"]);
    assert!(keys.iter().any(|line| line.starts_with("options.num_io_tiles=\t")), "{keys:?}");
}

/// Runs a script in a shell that finds the program; `None` if there is no such shell.
fn in_shell(shell: &str, arguments: &[&str]) -> Option<String> {
    let program = Path::new(env!("CARGO_BIN_EXE_tilescope"));
    let places =
        [program.parent().expect("a directory").to_owned(), "/usr/bin".into(), "/bin".into()];
    let output = std::process::Command::new(shell)
        .args(arguments)
        .env("PATH", std::env::join_paths(places).unwrap())
        .output()
        .ok()?;
    assert!(output.status.success(), "{shell}: {}{}", stdout(&output), stderr(&output));
    assert_eq!(stderr(&output), "", "{shell}");
    Some(stdout(&output))
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&tilescope(&["completions", shell]));
        assert!(script.contains("TILESCOPE_COMPLETE"), "{shell}: {script}");
    }
}

/// Tests the input of bash's completion function and its result.
#[test]
fn bash_completes_a_key_with_its_value_as_one_word() {
    for (line, words, typed, wanted) in [
        ("tilescope summ", "tilescope summ", "summ", "summary"),
        ("tilescope simulate mnist_", "tilescope simulate mnist_", "mnist_", "mnist_pipeline"),
        (
            "tilescope simulate x --set options.overlap_io=in",
            "tilescope simulate x --set options.overlap_io = in",
            "in",
            "inner_loop",
        ),
        (
            "tilescope simulate x --set  options.overlap_io=",
            "tilescope simulate x --set options.overlap_io =",
            "",
            "none inner_loop loops",
        ),
        (
            "tilescope simulate x --set options.num_io",
            "tilescope simulate x --set options.num_io",
            "options.num_io",
            "options.num_io_tiles=",
        ),
    ] {
        let asks = format!(
            "source <(tilescope completions bash); COMP_LINE='{line}'; COMP_WORDS=({words}); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _tilescope tilescope '{typed}'; \
             echo \"${{COMPREPLY[*]}}\""
        );
        // Not every machine has bash.
        let Some(said) = in_shell("bash", &["-c", &asks]) else { return };
        assert_eq!(said.trim_end(), wanted, "{line}");
    }
}

#[test]
fn other_shells_take_their_scripts() {
    let fish = "tilescope completions fish | source; \
                complete -C 'tilescope simulate x --set options.overlap_io=in'";
    let said = in_shell("fish", &["-N", "-c", fish]);
    assert!(said.is_none_or(|said| said.trim() == "options.overlap_io=inner_loop"));
    let zsh = "autoload -Uz compinit && compinit -D -u; source <(tilescope completions zsh); \
               print $_comps[tilescope]";
    let said = in_shell("zsh", &["-f", "-c", zsh]);
    assert!(said.is_none_or(|said| said.trim() == "_clap_dynamic_completer_tilescope"));
}

/// A linter of scripts has no complaints about the script for bash.
#[test]
fn the_script_of_bash_is_clean() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/completions/tilescope.bash");
    let checked = std::process::Command::new("shellcheck").arg(script).output();
    // Not every machine has the linter.
    let Ok(checked) = checked else { return };
    assert!(checked.status.success(), "{}", stdout(&checked));
}

#[test]
fn every_command_has_a_page_of_the_manual() {
    let directory = tempfile::tempdir().expect("directory");
    let pages = path(&directory, "man");
    let output = tilescope(&["man", "-o", &pages]);
    assert!(output.status.success(), "{}", stderr(&output));
    let help = stdout(&tilescope(&["--help"]));
    let (_, list) = help.split_once("\nCommands:\n").expect("a list of commands");
    let commands = list.lines().map_while(|line| line.split_whitespace().next());
    let mut count = 1;
    for command in commands.filter(|command| *command != "help") {
        let page = Path::new(&pages).join(format!("tilescope-{command}.1"));
        let page = std::fs::read_to_string(&page).expect("a page");
        assert!(page.contains(".SH SYNOPSIS") && page.contains("SEE ALSO"), "{command}: {page}");
        count += 1;
    }
    let main = std::fs::read_to_string(Path::new(&pages).join("tilescope.1")).expect("a page");
    assert!(main.contains("tilescope\\-simulate(1)") && main.contains("EXIT STATUS"), "{main}");
    assert_eq!(std::fs::read_dir(&pages).expect("pages").count(), count);
    // groff warns of unknown requests; not every machine has it.
    let all: Vec<_> = std::fs::read_dir(&pages).expect("pages").flatten().collect();
    let groff = std::process::Command::new("groff")
        .args(["-Kutf8", "-man", "-ww", "-z", "-Tutf8"])
        .args(all.iter().map(std::fs::DirEntry::path))
        .output();
    assert!(
        groff.is_ok_and(|said| stderr(&said).is_empty()) || in_shell("groff", &["-v"]).is_none()
    );
    assert_eq!(failure(&["man"]).0, 2);
}

#[test]
fn unknown_commands_are_reported_and_versions_printed() {
    let (code, words) = failure(&["frobnicate", "x", "y"]);
    assert_eq!(code, 2);
    assert!(words.contains("no command or report named \"frobnicate\""), "{words}");
    let version = stdout(&tilescope(&["--version"]));
    let (major, minor) = tilescope_report::schema::FORMAT;
    assert!(version.ends_with(&format!("(report format {major}.{minor})\n")), "{version}");
}
