//! `tilescope onnx`, and the examples of docs/onnx.md.

use crate::common::{stderr, stdout, tilescope};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tilescope_fixtures::onnx_text;

/// A file of `tests/data/onnx`.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx").join(name)
}

fn json(arguments: &[&str]) -> Value {
    let output = tilescope(&[&["onnx"], arguments, &["--json"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// Figures of the guides' network, with a state for each operator.
#[test]
fn the_content_of_a_file_is_listed() {
    let path = file("guide_classification.onnx");
    let listing = json(&[&path.to_string_lossy()]);
    assert_eq!(listing["opset"], 13);
    assert_eq!(
        (&listing["macs"], &listing["parameters"]),
        (&Value::from(16 * 10_114_120), &Value::from(4_179_896))
    );
    let ops = listing["ops"].as_array().expect("operators");
    let states = ["modelled", "composed", "folded", "unknown"];
    assert!(ops.iter().all(|row| states.contains(&row["state"].as_str().unwrap_or_default())));
    let conv = ops.iter().find(|row| row["op"] == "Conv").expect("convolutions");
    assert_eq!(
        (&conv["state"], conv["count"].as_u64() > Some(0)),
        (&Value::from("modelled"), true)
    );
}

/// The answer on fitting is the same as that of a simulation.
#[test]
fn a_file_fits_or_gets_advice() {
    let fitting = json(&[&file("guide_classification.onnx").to_string_lossy()]);
    assert_eq!(fitting["memory"]["fit"], "fits", "{}", fitting["memory"]);
    assert_eq!(fitting["memory"]["enough_ipus"], Value::Null);
    let left_out = json(&[&file("guide_classification.onnx").to_string_lossy(), "--no-fit"]);
    assert_eq!(left_out["memory"], Value::Null);
    // Eight layers of 151 MB each, five of which fit on an IPU.
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("large.onnx");
    let mut text = "x0 f32:1,6144\n".to_owned();
    for at in 0..8 {
        text += &format!("x{} = MatMul x{at} w:6144,6144 @layers.{at}/product\n", at + 1);
    }
    std::fs::write(&path, onnx_text::model(&text).bytes()).expect("written");
    let name = path.to_string_lossy();
    let large = json(&[&name]);
    assert_eq!(large["memory"]["fit"], "does_not_fit", "{}", large["memory"]);
    let ipus = large["memory"]["enough_ipus"].as_u64().expect("a number");
    let changes = large["memory"]["changes"].as_array().expect("changes");
    let sets = changes.iter().flat_map(|change| ["--set", change.as_str().expect("text")]);
    let simulated = |arguments: &[&str]| {
        let out = directory.path().join("out").to_string_lossy().into_owned();
        let output = tilescope(&[&["simulate", &name, "-o", &out], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let sets: Vec<&str> = sets.collect();
    assert!(!simulated(&sets).contains("Out of memory"), "{sets:?}");
    let alone = simulated(&[]);
    let advice = format!("It fits on {ipus} IPUs: --set target.ipus={ipus}");
    assert!(alone.contains("Out of memory") && alone.contains(&advice), "{alone}");
    let checked = stdout(&tilescope(&["simulate", &name, "--check"]));
    assert!(checked.contains(&advice), "{checked}");
    // Half of them are not enough.
    if ipus > 2 {
        let half =
            [format!("target.ipus={}", ipus / 2), format!("options.device_iterations={ipus}")];
        assert!(simulated(&["--set", &half[0], "--set", &half[1]]).contains("Out of memory"));
    }
    let unknown = directory.path().join("unknown.onnx");
    let model = onnx_text::model("y = com.example.Mystery f32:2,3 @mystery");
    std::fs::write(&unknown, model.bytes()).expect("written");
    let refused = json(&[&unknown.to_string_lossy()]);
    let reason = refused["memory"]["refused"].as_str().expect("a reason");
    assert!(reason.contains("Mystery"), "{reason}");
}

/// The batch defaults to 1, as in a spec.
#[test]
fn dimensions_multiply_the_work() {
    let path = file("mnist_dynamic_batch.onnx");
    let path = path.to_string_lossy();
    let macs = |arguments: &[&str]| json(arguments)["macs"].as_u64().expect("a number");
    let one = macs(&[&path]);
    assert_eq!(macs(&[&path, "--set", "model.dim.batch=8"]), 8 * one);
    assert_eq!(macs(&[&path, "--set", "model.batch_size=8"]), 8 * one);
}

/// The questions of a dialog before a model is imported: initial sizes, outputs, loss, stages, and
/// nodes that are not modelled.
#[test]
fn the_questions_of_a_dialog_are_answered() {
    let of = |name: &str| json(&[&file(name).to_string_lossy()]);
    let dynamic = of("mnist_dynamic_batch.onnx");
    let batch = &dynamic["symbols"][0];
    assert_eq!((&batch["suggested"], &batch["is_batch"]), (&Value::from(1), &Value::from(true)));
    assert_eq!(batch["places"][0]["axis"], 0);
    assert_eq!(dynamic["outputs"][0]["dims"], serde_json::json!([1, 10]));
    assert_eq!(dynamic["has_loss"], false);
    assert_eq!(of("guide_mnist_loss.onnx")["has_loss"], true);
    let annotated = of("guide_mnist_4stages.onnx");
    assert_eq!(
        (&annotated["annotated_ipus"], &annotated["annotated_stages"]),
        (&4.into(), &4.into())
    );
    assert!(annotated["content_hash"].as_str().is_some_and(|hash| hash.len() >= 32));
    // An operator of another name, at the same place of a file with all shapes.
    let bytes = std::fs::read(file("mnist_dynamo.onnx")).expect("read");
    let at = bytes.windows(4).position(|word| word == b"Gemm").expect("a product");
    let renamed = [&bytes[..at], b"Ghem", &bytes[at + 4..]].concat();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("renamed.onnx");
    std::fs::write(&path, renamed).expect("written");
    let listing = json(&[&path.to_string_lossy()]);
    let ops = listing["ops"].as_array().expect("operators");
    let unknown: Vec<&Value> = ops.iter().filter(|row| row["state"] == "unknown").collect();
    let [unknown] = unknown.as_slice() else { panic!("{ops:?}") };
    assert_eq!((&unknown["op"], &unknown["count"]), (&"Ghem".into(), &1.into()));
    assert!(unknown["node"].as_str().is_some_and(|node| node.contains("linear")), "{unknown}");
}

/// The answers of a check of a model: its stages, and its fit.
#[test]
fn a_check_lists_stages_and_memory() {
    let path = file("guide_mnist_4stages.onnx");
    let arguments = ["simulate", &path.to_string_lossy(), "--check", "--json", "--set"];
    let checked = tilescope(&[&arguments[..], &["options.device_iterations=4"]].concat());
    assert!(checked.status.success(), "{}", stderr(&checked));
    let found: Value = serde_json::from_str(&stdout(&checked)).expect("JSON");
    let stages = found["stages"].as_array().expect("stages");
    let ipus: Vec<u64> = stages.iter().filter_map(|stage| stage["ipu"].as_u64()).collect();
    assert_eq!(ipus, [0, 1, 2, 3]);
    assert!(stages.iter().all(|stage| stage["blocks"].as_array().is_some_and(|b| b.len() == 1)));
    assert_eq!(found["tiles_out_of_memory"], 0);
    assert!(found["fullest_tile_bytes"].as_u64() < found["tile_bytes"].as_u64());
}

/// Every command of docs/onnx.md runs, with the repository's files of those names.
#[test]
fn the_examples_of_the_document_run() {
    let text = include_str!("../../docs/onnx.md");
    let blocks = |language: &str| {
        let start = format!("```{language}\n");
        text.split(&start)
            .skip(1)
            .map(|rest| rest.split("```").next().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let place = |word: &str| match word {
        "out" => directory.path().join("out").to_string_lossy().into_owned(),
        word if word.ends_with(".onnx") => file(word).to_string_lossy().into_owned(),
        word => word.to_owned(),
    };
    let mut count = 0;
    for line in blocks("sh").iter().flat_map(|block| block.lines()) {
        let words: Vec<String> = line.split_whitespace().skip(1).map(place).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = tilescope(&words);
        assert!(output.status.success(), "{line}: {}", stderr(&output));
        count += 1;
    }
    assert!(count >= 4, "the examples were found");
    let spec = directory.path().join("mine.toml");
    std::fs::copy(file("guide_mnist.onnx"), directory.path().join("guide_mnist.onnx"))
        .expect("copied");
    std::fs::write(&spec, &blocks("toml")[0]).expect("written");
    let check = tilescope(&["simulate", &spec.to_string_lossy(), "--check"]);
    assert!(check.status.success(), "{}", stderr(&check));
}
