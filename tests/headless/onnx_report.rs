//! The parts of a report about the file that its model was imported from.

use crate::common::{self, stderr, stdout, tilescope};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilescope_analysis::imported_model::imported_model;
use tilescope_analysis::insights::insights;
use tilescope_report::Report;
use tilescope_report::units::NumberFormat;
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{MOST_RECORDS, Simulation};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx").join(name)
}

fn spec(path: &Path, overrides: &[&str]) -> Spec {
    common::spec(&path.to_string_lossy(), overrides)
}

#[test]
fn operations_name_their_nodes() {
    let (report, _directory) =
        common::report(&file("bert_dynamo_train.onnx").to_string_lossy(), &[]);
    let operations = report.operations().expect("reads");
    let source = |part: &str| {
        let found = operations.iter().find(|of| of.name.ends_with(part));
        found.and_then(|of| of.source.clone()).unwrap_or_default()
    };
    let found: Vec<&str> = operations.iter().filter_map(|of| of.source.as_deref()).collect();
    assert!(found.contains(&"Softmax@18") && found.contains(&"MatMul@18, Add@18"), "{found:?}");
    // Names of nodes have the modules of dynamo as a prefix, and gradients belong to their nodes.
    let layer = operations.iter().filter(|of| of.name.starts_with("layer.1/attention/qkv/"));
    assert!(layer.count() > 2);
    assert_eq!(source("node_Split_23/grad"), source("node_Split_23"));
    let update = operations.iter().find(|of| of.name.ends_with("/sgd")).expect("an update");
    assert_eq!(update.source, None);
    let blocks: std::collections::BTreeSet<&str> =
        operations.iter().filter_map(|of| of.block.as_deref()).collect();
    assert!(blocks.contains("layer.0") && blocks.contains("layer.1"), "{blocks:?}");
}

#[test]
fn the_file_is_named_with_the_treatment_of_its_nodes() {
    let (report, directory) = common::report(&file("bert.onnx").to_string_lossy(), &[]);
    let model = imported_model(&report).expect("reads").expect("imported");
    assert!(model.model.path.ends_with("tests/data/onnx/bert.onnx"));
    assert_eq!((model.model.opset, model.model.digest.len()), (13, 32));
    assert_eq!(model.model.fused["LayerNormalization"], 6);
    assert_eq!((model.model.nodes, model.model.folded["Constant"]), (187, 41));
    assert_eq!((model.unmodelled, &model.model.unknown[..]), (None, &[][..]));
    let path = directory.path().to_string_lossy().into_owned();
    let json = tilescope(&["summary", &path, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&stdout(&json)).expect("JSON");
    assert_eq!(json["model"]["opset"], 13);
    assert!(stdout(&tilescope(&["summary", &path])).contains("LayerNormalization (6)"));
    let (built_in, _directory) = common::report("matmul_chain", &[]);
    assert_eq!(imported_model(&built_in).expect("reads"), None);
}

/// A second simulation of a report's spec warns if the file has changed.
#[test]
fn a_changed_file_is_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("model.onnx");
    std::fs::copy(file("guide_mnist.onnx"), &path).expect("copied");
    let out = directory.path().join("out");
    common::report_file(&spec(&path, &[]), &out);
    let text = Report::open(&out).expect("opens").spec().expect("a spec").to_owned();
    let notes = |out: &str| {
        let source = SpecSource::from_text("again", &text);
        let spec = Spec::build(&source).expect("sane");
        let out = directory.path().join(out);
        common::report_file(&spec, &out);
        Report::open(&out).expect("opens").notes().expect("reads")
    };
    let changed = |notes: &[String]| notes.iter().any(|note| note.contains("file has changed"));
    assert!(!changed(&notes("same")));
    std::fs::copy(file("mnist_dynamo.onnx"), &path).expect("copied");
    assert!(changed(&notes("other")));
    std::fs::remove_file(&path).expect("removed");
    let gone = Spec::build(&SpecSource::from_text("again", &text)).expect_err("no file");
    assert!(gone.to_string().contains("model.onnx"), "{gone}");
}

/// The network of the tutorial with an unknown activation.
fn with_unknown(overrides: &[&str]) -> Spec {
    let mut spec = spec(&file("guide_mnist.onnx"), overrides);
    let of_spec = spec.model.file.as_mut().expect("imported");
    let mut graph = (*of_spec.graph).clone();
    for node in graph.nodes.iter_mut().filter(|node| node.op == "Relu") {
        (node.op, node.domain, node.opset) = ("Odd".to_owned(), "com.example".to_owned(), 3);
    }
    of_spec.graph = Arc::new(graph);
    spec
}

#[test]
fn figures_with_unknown_operators_are_labelled_everywhere() {
    let refused = Simulation::compile(&with_unknown(&[]), MOST_RECORDS).err();
    let refused = refused.expect("it is refused").to_string();
    assert!(
        refused.contains("com.example.Odd@3 at") && refused.contains("/layer3_act/Relu"),
        "{refused}"
    );
    for loss in ["model.loss=none", "model.loss=cross_entropy"] {
        let directory = tempfile::tempdir().expect("a directory");
        let spec = with_unknown(&["model.allow_unknown=true", loss]);
        common::report_file(&spec, directory.path());
        let report = Report::open(directory.path()).expect("opens");
        assert_eq!(report.verify().expect("reads"), []);
        let model = imported_model(&report).expect("reads").expect("imported");
        let share = model.unmodelled.expect("some are not modelled");
        assert_eq!((share.nodes, model.model.unknown.len()), (3, 1), "{loss}");
        let (cycles, bytes) = (share.cycles.expect("it ran"), share.bytes.expect("recorded"));
        // They work in place: no variable is created for them.
        assert!(cycles > 0.0 && cycles < 0.5 && bytes < 0.5, "{cycles} {bytes}");
        let operations = report.operations().expect("reads");
        let passes = operations.iter().filter(|of| of.kind == "unknown").count();
        assert_eq!(passes, if loss == "model.loss=none" { 3 } else { 6 });
        let found = insights(&report, NumberFormat::default()).expect("reads");
        let unmodelled =
            found.iter().find(|finding| finding.rule == "unmodelled").expect("an insight");
        assert!(unmodelled.sentence.contains("com.example.Odd@3 (3)"), "{}", unmodelled.sentence);
        let path = directory.path().to_string_lossy().into_owned();
        let summary = tilescope(&["summary", &path]);
        assert!(stdout(&summary).contains("they account for"), "{}", stderr(&summary));
        let json = stdout(&tilescope(&["summary", &path, "--json"]));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["model"]["unmodelled"]["nodes"], 3);
        assert_eq!(json["model"]["unknown"][0]["source"], "com.example.Odd@3");
    }
}
