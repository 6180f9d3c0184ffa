//! Laws of imported models: against the built-in ones, and against changes that mean nothing.

use crate::common;
use tilescope_sim::spec::{Spec, SpecSource};
use tilescope_sim::{MOST_RECORDS, ProgramFigures, Simulation};

/// A file of `tests/data/onnx`.
fn file(name: &str) -> String {
    format!("{}/tests/data/onnx/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn spec(name: &str, overrides: &[&str]) -> Spec {
    common::spec(&file(name), overrides)
}

fn refusal(name: &str, overrides: &[&str]) -> String {
    let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
    let source = SpecSource::find(&file(name), &overrides).expect("a file");
    match Spec::build(&source) {
        Err(error) => error.to_string(),
        Ok(spec) => match Simulation::compile(&spec, MOST_RECORDS) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{name} with {overrides:?} is accepted"),
        },
    }
}

fn figures(spec: &Spec) -> ProgramFigures {
    Simulation::compile(spec, MOST_RECORDS).expect("compiles").figures()
}

const PIPELINE: [&str; 3] =
    ["target.ipus=4", "options.gradient_accumulation=8", "model.loss=cross_entropy"];

#[test]
fn the_network_of_the_tutorial_is_the_built_in_one() {
    let stages = "options.stages=[\"/layer1\", \"/layer2\", [\"/Reshape\", \"/layer3\", \
                  \"/layer3_act\"], [\"/layer4\", \"loss\"]]";
    let built_in = common::spec(
        "mnist_pipeline",
        &[
            "model.batch_size=40",
            "options.gradient_accumulation=8",
            "options.device_iterations=1",
            "options.stages=[\"B1\", \"B2\", \"B3\", \"B4\"]",
        ],
    );
    let same = |name: &str, stages: &[&str]| {
        let mut overrides: Vec<String> = PIPELINE.iter().map(ToString::to_string).collect();
        overrides.extend(stages.iter().map(ToString::to_string));
        // All else as the built-in program has it.
        let set = built_in.text.lines().filter(|line| line.contains(" = "));
        let mut section = "";
        for line in built_in.text.lines() {
            section =
                line.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(section);
            let Some((key, value)) = line.split_once(" = ") else { continue };
            let path = format!("{section}.{key}");
            let decided = ["model.name", "options.stages", "model.batch_size"];
            if !decided.contains(&path.as_str()) {
                overrides.push(format!("{path}={value}"));
            }
        }
        assert!(set.count() > 3, "the bundled program says more than its name");
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        assert_eq!(figures(&spec(name, &overrides)), figures(&built_in), "{name}");
    };
    same("guide_mnist.onnx", &[stages]);
    same("guide_mnist_4stages.onnx", &[]);
}

#[test]
fn every_small_file_compiles_with_all_defaults() {
    for name in [
        "guide_mnist.onnx",
        "guide_mnist_loss.onnx",
        "guide_classification.onnx",
        "mnist_dynamic_batch.onnx",
        "mnist_dynamo.onnx",
        "lstm.onnx",
        "transformer.onnx",
    ] {
        let figures = figures(&spec(name, &[]));
        assert!(figures.fullest_tile.0 > 0 && figures.samples > 0, "{name}");
    }
}

/// Names mean nothing to the machine.
#[test]
fn other_names_of_values_change_no_figure() {
    for name in ["mnist_dynamo.onnx", "transformer.onnx"] {
        let original = spec(name, &[]);
        let mut renamed = original.clone();
        let file = renamed.model.file.as_mut().expect("imported");
        let mut graph = (*file.graph).clone();
        for (number, value) in graph.values.iter_mut().enumerate() {
            value.name = format!("v{number}");
        }
        file.graph = std::sync::Arc::new(graph);
        assert_eq!(figures(&renamed), figures(&original), "{name}");
    }
}

#[test]
fn a_file_that_decides_less_is_told_what_to_set() {
    let unknown = refusal("mnist_dynamic_batch.onnx", &["model.dim.bacth=4"]);
    assert!(unknown.contains("did you mean batch"), "{unknown}");
    let fixed = refusal("guide_mnist.onnx", &["model.batch_size=3"]);
    assert!(fixed.contains("the file fixes 40 samples"), "{fixed}");
    let lossless = refusal("guide_mnist.onnx", &["model.training=true"]);
    assert!(lossless.contains("model.loss"), "{lossless}");
    let both = refusal("guide_mnist.onnx", &["model.name=mnist"]);
    assert!(both.contains("leave the built-in model out"), "{both}");
    let builtin = SpecSource::find("mnist_pipeline", &["model.loss=nll".to_string()]);
    let builtin = Spec::build(&builtin.expect("bundled")).expect_err("only imported models");
    assert!(builtin.to_string().contains("unknown key"), "{builtin}");
}
