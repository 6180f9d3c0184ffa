//! `tilescope calibrate` finds the constants behind a measured run, reports those it cannot
//! determine, and every result from fitted constants is labelled.
//!
//! The measured run is a simulation with other constants, without the data that Poplar's files
//! lack, and with noise.

use crate::common::{stderr, stdout, tilescope};
use crate::report_support::stripped::write_stripped;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;
use tilescope_report::{Report, ReportOrigin};
use tilescope_sim::specification::keys::{KEYS, SpecKeyType};
use tilescope_test_tiers::skipped_in_the_fast_tier;

/// The program: MNIST on one IPU, two micro-batches.
const CHANGES: [&str; 4] = [
    "target.ipus=1",
    "options.stages=[]",
    "options.device_iterations=1",
    "options.gradient_accumulation=2",
];

/// Constants of the measured machine.
const MACHINE: [(&str, f64); 4] = [
    ("exchange_start_cycles", 450.0),
    ("compute_start_cycles", 120.0),
    ("on_tile_copy_cycles", 320.0),
    ("host_handshake_seconds", 2.0e-5),
];

/// Constants to fit: those, one that is hidden by others, and one of halves, which the program does
/// not use.
const FITTED: [&str; 5] = [
    "exchange_start_cycles",
    "compute_start_cycles",
    "on_tile_copy_cycles",
    "host_handshake_seconds",
    "subword_rearrange_cycles_per_byte",
];

struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// The spec of the program, with the machine's constants for the measured run.
    fn spec(&self) -> String {
        let path = self.at("spec.toml");
        let base = self.simulated("base", &[]);
        fs::write(&path, Report::open(base).unwrap().spec().unwrap()).unwrap();
        path
    }

    fn simulated(&self, name: &str, more: &[String]) -> PathBuf {
        let out = self.at(name);
        let mut arguments = vec!["simulate", "mnist_pipeline", "-o", &out];
        let changes = CHANGES.iter().copied().chain(more.iter().map(String::as_str));
        arguments.extend(changes.flat_map(|change| ["--set", change]));
        let output = tilescope(&arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        Path::new(&out).join("profile.pop")
    }

    /// A run with the constants of the machine as a file of another tool, with steps longer or
    /// shorter by `noise`.
    fn measured(&self, noise: f64) -> String {
        let constants: Vec<String> = MACHINE
            .iter()
            .map(|(key, value)| match *key {
                "host_handshake_seconds" => format!("target.calibration.{key}={value:e}"),
                _ => format!("target.calibration.{key}={value}"),
            })
            .collect();
        let simulated = self.simulated("machine", &constants);
        let path = self.at("measured.pop");
        write_stripped(&simulated, Path::new(&path), noise);
        path
    }
}

fn json_of(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_str(&stdout(output)).expect("JSON")
}

fn calibrate(measured: &str, spec: &str, more: &[&str]) -> Output {
    tilescope(&[&["calibrate", measured, spec], more].concat())
}

/// `--constant` options for the constants to fit.
fn constants() -> Vec<&'static str> {
    FITTED.iter().flat_map(|name| ["--constant", *name]).collect()
}

fn constant<'a>(found: &'a Value, name: &str) -> &'a Value {
    let all = found["constants"].as_array().unwrap();
    all.iter().find(|of| of["key"].as_str().unwrap().ends_with(name)).unwrap()
}

#[test]
fn constants_of_a_machine_are_recovered() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let place = Place::new();
    let (spec, measured, file) = (place.spec(), place.measured(0.01), place.at("fitted.toml"));
    assert_eq!(Report::open(&measured).unwrap().origin(), ReportOrigin::Foreign);
    let arguments = [&["-o", &file, "--json", "--limit", "0"], &constants()[..]].concat();
    let found = json_of(&calibrate(&measured, &spec, &arguments));
    for (name, value) in MACHINE {
        let of = constant(&found, name);
        let fitted = of["value"].as_f64().unwrap();
        assert_eq!(of["state"], "fitted", "{of}");
        assert!((fitted / value - 1.0).abs() < 0.12, "{name}: {fitted} for {value}");
    }
    let idle = constant(&found, "subword_rearrange_cycles_per_byte");
    assert_eq!((&idle["state"], &idle["value"]), (&"without_effect".into(), &0.262.into()));
    let error = |path: &str| found.pointer(path).and_then(Value::as_f64).unwrap();
    let (before, after) = (error("/error/held_out/before"), error("/error/held_out/after"));
    assert!(before > 0.05 && after < 0.25 * before, "{before} {after}");
    assert!(error("/error/after") < 0.25 * error("/error/before"));
    let residuals: Vec<f64> = found["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["residual"].as_f64().unwrap().abs())
        .collect();
    assert!(residuals.len() > 40 && residuals.is_sorted_by(|a, b| a >= b), "{residuals:?}");
    let names =
        found["operations"].as_array().unwrap().iter().map(|of| of["name"].as_str().unwrap());
    assert!(names.into_iter().any(|name| name.contains("conv")), "operations of the model");
    assert_eq!((&found["measured"], &found["written"]), (&true.into(), &file.clone().into()));

    every_place_says_that_it_is_calibrated(&place, &spec, &file);
}

/// Results of a simulation with fitted constants are labelled, keep the constants, and are compared
/// as such.
fn every_place_says_that_it_is_calibrated(place: &Place, spec: &str, file: &str) {
    let out = place.at("calibrated");
    let simulated = tilescope(&["simulate", spec, "--calibration", file, "-o", &out]);
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    let measured = place.at("measured.pop");
    let compared = stdout(&tilescope(&["compare", &measured, &out]));
    assert!(compared.contains("Measured") && compared.contains("Simulated"), "{compared}");
    let words = "mk2, calibrated: exchange start 4";
    for text in [stdout(&simulated), stdout(&tilescope(&["summary", &out])), compared] {
        assert!(text.contains(words), "{text}");
    }
    assert!(stdout(&simulated).contains("constants of the simulator were fitted to"));
    let summary = json_of(&tilescope(&["summary", &out, "--json"]));
    assert_eq!(summary["target"]["machine_changes"], serde_json::json!([]));
    assert_eq!(summary["target"]["calibration"].as_array().unwrap().len(), MACHINE.len());
    assert_eq!(summary["confidence"], Value::Null, "errors are those of other constants");

    // The spec in the report has the constants, so a simulation of it uses them.
    let again = place.at("again.toml");
    fs::write(&again, Report::open(&out).unwrap().spec().unwrap()).unwrap();
    let figures = |arguments: &[&str]| {
        let output = tilescope(&[&["simulate"], arguments, &["--figures"]].concat());
        json_of(&output)["cycles"].as_u64().unwrap()
    };
    assert_eq!(figures(&[&again]), figures(&[spec, "--calibration", file]));
    assert_ne!(figures(&[&again]), figures(&[spec]));
    // A process that compares both simulates each with its own constants.
    let both = stdout(&tilescope(&["compare", spec, &again, "--json"]));
    let both: Value = serde_json::from_str(&both).expect("JSON");
    assert!(both["verdict"].as_str().unwrap().contains("more cycles"), "{}", both["verdict"]);
}

/// Without a difference no change is predicted. A predicted change equals the simulated one if the
/// measurement is the simulation.
#[test]
fn a_change_scales_what_was_measured() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let place = Place::new();
    let spec = place.spec();
    let measured = place.at("measured.pop");
    write_stripped(Path::new(&place.at("base/profile.pop")), Path::new(&measured), 0.0);
    let predicted = |set: &str| {
        json_of(&calibrate(&measured, &spec, &["--set", set, "--json", "--limit", "0"]))
    };
    let same = predicted("options.gradient_accumulation=2");
    assert_eq!(same["measured"], same["predicted"], "{same}");
    for of in same["operations"].as_array().unwrap() {
        assert_eq!(of["measured"], of["predicted"], "{of}");
    }
    let more = predicted("options.gradient_accumulation=4");
    let of = |name: &str, figure: &str| -> f64 {
        let all = more["operations"].as_array().unwrap();
        let own = all.iter().filter(|of| of["name"].as_str().unwrap().contains(name));
        own.map(|of| of[figure].as_f64().unwrap()).sum()
    };
    let factor = of("conv", "predicted") / of("conv", "measured");
    // Updates of weights run as often as before.
    assert!((1.5..2.05).contains(&factor), "twice the micro-batches: {factor}");
    // The same change in another spec.
    let changed = place.at("changed.toml");
    let text = std::fs::read_to_string(&spec).unwrap();
    let (before, after) = ("gradient_accumulation = 2", "gradient_accumulation = 4");
    assert!(text.contains(before), "{text}");
    std::fs::write(&changed, text.replace(before, after)).unwrap();
    let whole = ["--changed", &changed, "--json", "--limit", "0"];
    let of_spec = json_of(&calibrate(&measured, &spec, &whole));
    assert_eq!(of_spec["operations"], more["operations"]);
    let text = stdout(&calibrate(&measured, &spec, &["--set", "options.gradient_accumulation=4"]));
    assert!(text.contains("scaled by the simulation") && text.contains("all operations"), "{text}");
    assert!(!Path::new("calibration.toml").exists(), "nothing is fitted");
}

#[test]
fn invalid_requests_are_refused() {
    let place = Place::new();
    let spec = place.spec();
    let measured = place.at("measured.pop");
    write_stripped(Path::new(&place.at("base/profile.pop")), Path::new(&measured), 0.0);
    let file = place.at("fitted.toml");
    let refused = |arguments: &[&str], code: i32, words: &str| {
        let output = tilescope(arguments);
        let text = stderr(&output);
        assert!(
            output.status.code() == Some(code) && text.contains(words),
            "{arguments:?}: {text}"
        );
    };
    refused(&["calibrate", &measured], 2, "name the spec of the measured program");
    refused(&["calibrate", &measured, "mnist_pipelin"], 2, "did you mean mnist_pipeline?");
    refused(&["calibrate", &place.at("none"), &spec], 1, "no such file");
    refused(
        &["calibrate", &measured, &spec, "--changed", "mnist_pipelin"],
        2,
        "did you mean mnist_pipeline?",
    );
    refused(&["calibrate", &measured, "matmul_chain", "-o", &file], 1, "is this the spec");
    refused(
        &["calibrate", &measured, &spec, "--constant", "exchange_start"],
        2,
        "did you mean exchange_start_cycles?",
    );
    // Against its own simulation, there is nothing to fit.
    let nothing = calibrate(&measured, &spec, &["-o", &file, "--constant", "compute_start_cycles"]);
    assert!(stdout(&nothing).contains("No file was written"), "{}", stdout(&nothing));
    assert!(!Path::new(&file).exists());

    let calibration = place.at("calibration.toml");
    for (text, words) in [
        (
            "[target.calibration]\nexchange_start = 3\n",
            "calibration.toml:2: target.calibration.exchange_start: unknown key",
        ),
        ("[target.calibration]\nexchange_start_cycles = 3\n", "from 100 to 3000"),
        ("[target.calibration]\nexchange_start_cycles = \"x\"\n", "expected"),
        ("[target]\nipus = 4\n", "a calibration file may only have the table [target.calibration]"),
        ("", "write the file with tilescope calibrate"),
        ("[target.calibration\n", "not valid TOML"),
    ] {
        fs::write(&calibration, text).unwrap();
        refused(&["simulate", &spec, "--calibration", &calibration, "--figures"], 2, words);
    }
    refused(&["simulate", &spec, "--calibration", &place.at("none")], 2, "cannot read calibration");
}

/// The text in a document between a mark and the next end.
fn marked<'a>(text: &'a str, mark: &str) -> &'a str {
    let (_, rest) = text.split_once(&format!("<!-- {mark} -->\n")).expect("a mark");
    rest.split_once("<!-- end -->").expect("an end").0
}

/// The keys of the table with their bounds, as in the document.
fn bounds() -> String {
    let mut lines =
        vec!["| key | meaning | default | from | to |\n|---|---|---:|---:|---:|".to_owned()];
    for key in KEYS.iter() {
        let Some(name) = key.path.strip_prefix("target.calibration.") else { continue };
        let (least, most) = match key.value_type {
            SpecKeyType::Integer(least, most) => (least.to_string(), most.to_string()),
            SpecKeyType::RealFrom(least, most) => (format!("{least:?}"), format!("{most:?}")),
            _ => continue,
        };
        let default = match &*key.default {
            "" => "of the machine",
            default => default,
        };
        let about = key.about.replace('\n', " ");
        lines.push(format!("| `{name}` | {about} | {default} | {least} | {most} |"));
    }
    lines.join("\n") + "\n"
}

/// The output of the last of the commands in the document's example.
fn example(text: &str) -> String {
    let place = Place::new();
    let (_, rest) = text.split_once("```toml\n").expect("a spec");
    let (spec, rest) = rest.split_once("```\n").expect("its end");
    fs::write(place.at("mnist.toml"), spec).unwrap();
    let commands = rest.lines().filter_map(|line| line.strip_prefix("tilescope "));
    let mut printed = String::new();
    for command in commands {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_tilescope"))
            .args(command.split(' '))
            .current_dir(place.0.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", stderr(&output));
        printed = stdout(&output);
    }
    format!("```text\n{}\n```\n", printed.trim_end())
}

#[test]
fn calibration_document_has_the_bounds_and_its_example_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/calibration.md");
    let mut text = fs::read_to_string(&path).unwrap();
    let made = [("bounds", bounds()), ("example", example(&text))];
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    for (mark, made) in made {
        let known = marked(&text, mark).to_owned();
        if update {
            let (before, rest) = text.split_once(&format!("<!-- {mark} -->\n")).unwrap();
            let (_, after) = rest.split_once("<!-- end -->").unwrap();
            text = format!("{before}<!-- {mark} -->\n{made}<!-- end -->{after}");
        } else {
            assert_eq!(known, made, "UPDATE_DOCS=1 cargo test --test headless calibration");
        }
    }
    if update {
        fs::write(&path, text).unwrap();
    }
}
