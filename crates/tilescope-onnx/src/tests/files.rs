//! Tests files of exporters, and weights that are not read.

use crate::{DimValues, Dimension, OnnxFile, OnnxGraph, ValueSource};
use std::collections::BTreeMap;
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;
use tilescope_fixtures::onnx_file::{
    FLOAT, INT64, Node, OnnxFileBuilder, symbolic_info, value_info,
};

/// One of the repository's small files.
fn file(name: &str) -> OnnxFile {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("../../tests/data/onnx").join(format!("{name}.onnx"));
    OnnxFile::open(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn graph(name: &str) -> OnnxGraph {
    file(name).resolve(&DimValues::default()).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Multiplications per sample and parameters of the guides' networks, computed by hand: for the
/// first, 10 x 24 x 24 x 25 + 20 x 8 x 8 x 250 + 320 x 256 + 256 x 10.
#[test]
fn the_networks_of_the_guides() {
    let mnist = graph("guide_mnist");
    assert_eq!((mnist.macs(), mnist.parameter_count()), (40 * 548_480, 90_026));
    let conv = &mnist.nodes[0];
    assert_eq!((conv.name.as_str(), conv.op.as_str()), ("/layer1/conv/Conv", "Conv"));
    assert_eq!(conv.scope.as_deref(), Some(&["layer1".to_owned(), "conv".to_owned()][..]));
    assert_eq!(mnist.value(conv.outputs[0].unwrap()).dims, [40, 10, 24, 24]);
    assert_eq!(mnist.value(mnist.outputs[0]).dims, [40, 10]);

    let with_loss = graph("guide_mnist_loss");
    assert_eq!((with_loss.macs(), with_loss.parameter_count()), (40 * 548_480, 90_026));

    let classification = graph("guide_classification");
    assert_eq!(classification.macs(), 16 * 10_114_120);
    assert_eq!(classification.parameter_count(), 4_179_896);
}

/// Both exporters write the same network.
#[test]
fn both_exporters_agree() {
    let dynamo = graph("mnist_dynamo");
    let values = DimValues { batch: Some(64), ..DimValues::default() };
    let classic = file("mnist_dynamic_batch").resolve(&values).unwrap();
    assert_eq!(dynamo.macs(), classic.macs());
    assert_eq!(dynamo.parameter_count(), classic.parameter_count());
    // One flattens with `Flatten`, the other with `Reshape`.
    let ops = |graph: &OnnxGraph| {
        let mut counts = graph.op_counts();
        (counts.remove("Flatten"), counts.remove("Reshape")) != (None, None)
            && counts.len() == 5
            && counts.values().sum::<u64>() == 9
    };
    assert!(ops(&dynamo) && ops(&classic), "{:?} {:?}", dynamo.op_counts(), classic.op_counts());
    let dims = |graph: &OnnxGraph| graph.value(graph.outputs[0]).dims.clone();
    assert_eq!(dims(&dynamo), dims(&classic));
}

#[test]
fn symbols_need_a_value() {
    let file = file("mnist_dynamic_batch");
    assert_eq!(file.inputs()[0].dims[0], Dimension::Symbol("batch".to_owned()));
    let symbols = file.symbols();
    assert_eq!(symbols.len(), 1);
    assert!(symbols[0].is_batch);
    let refusal = |values: &DimValues| file.resolve(values).unwrap_err().to_string();
    assert!(refusal(&DimValues::default()).contains("batch"));
    let named = |name: &str, value| DimValues {
        by_name: BTreeMap::from([(name.to_owned(), value)]),
        batch: Some(1),
        ..DimValues::default()
    };
    assert!(refusal(&named("bacth", 4)).contains("did you mean \"batch\""));
    assert!(refusal(&named("batch", 0)).contains("between 1 and"));
    let four = file.resolve(&named("batch", 4)).unwrap();
    assert_eq!(four.value(four.outputs[0]).dims, [4, 10]);
}

/// Names decide, then positions; a dimension without a name is judged by its position
/// alone.
#[test]
fn open_dimensions_have_an_initial_size() {
    let inputs = [
        ("image", FLOAT, &["N", "C", "height", "w"][..]),
        ("pixels", FLOAT, &["", "", "", ""]),
        ("input_ids", INT64, &["batch_size", "past_sequence + 1"]),
        ("image_tokens", INT64, &["", ""]),
    ];
    let mut model = OnnxFileBuilder::new(17).output("y");
    for (name, element, dims) in inputs {
        model = model.input(symbolic_info(name, element, dims));
    }
    let model = model.node(Node::new("Relu", &["image"], &["y"]));
    let file = OnnxFile::read(std::io::Cursor::new(model.bytes())).unwrap();
    let symbols = file.symbols();
    let names = symbols.iter().map(|symbol| symbol.name.clone());
    let sizes: Vec<(String, u64)> = names.zip(file.suggested_sizes(&symbols)).collect();
    let expected = [
        ("N", 1),
        ("C", 3),
        ("height", 224),
        ("w", 224),
        ("pixels.0", 1),
        ("pixels.1", 3),
        ("pixels.2", 224),
        ("pixels.3", 224),
        ("batch_size", 1),
        ("past_sequence + 1", 128),
        ("image_tokens.0", 1),
        ("image_tokens.1", 128),
    ];
    assert_eq!(sizes, expected.map(|(name, size)| (name.to_owned(), size)));
}

/// Nodes that compute lengths and masks disappear, and the rest does not depend on the sizes.
#[test]
fn arithmetic_on_shapes_is_folded() {
    let graph = graph("transformer");
    assert!(graph.folded.get("Shape").is_some_and(|count| *count > 5), "{:?}", graph.folded);
    assert!(!graph.op_counts().contains_key("Shape"));
    assert_eq!(graph.macs(), 5_014_520_000);
    let lstm = super::files::graph("lstm");
    assert_eq!(lstm.op_counts().get("LSTM"), Some(&2));
    assert_eq!((lstm.macs(), lstm.parameter_count()), (5_106_920_000, 13_987_678));
}

/// Computed by hand, for each step and sample: 4 gates of 64 of 16 inputs and 64 states, and the
/// product after the layer; 3 gates of 128 of 64 inputs and 128 states, in two directions.
#[test]
fn recurrent_layers_are_counted() {
    assert_eq!(graph("lstm_time_major").macs(), 20 * 16 * 4 * 64 * (16 + 64) + 8_192);
    assert_eq!(graph("gru_bidirectional").macs(), 50 * 8 * 2 * 3 * 128 * (64 + 128));
}

/// Every value has the shape that the exporter wrote for it.
#[test]
fn shapes_are_those_that_the_exporter_wrote() {
    for name in ["guide_mnist", "guide_classification", "mnist_dynamo", "transformer", "lstm"] {
        let (file, graph) = (file(name), graph(name));
        super::collection::compare_with_written_shapes(&file, &graph);
    }
}

/// The same bytes give the same graph, and other names change only names.
#[test]
fn reading_is_deterministic() {
    let (first, second) = (file("transformer"), file("transformer"));
    assert_eq!(first.content_hash, second.content_hash);
    assert_ne!(first.content_hash, file("lstm").content_hash);
    let text = |file: &OnnxFile| format!("{:?}", file.resolve(&DimValues::default()).unwrap());
    assert_eq!(text(&first), text(&second));
}

/// A file of 1.6 GB, nearly all of it one weight, is opened without reading the weight.
#[test]
fn weights_are_skipped() {
    const WEIGHT_BYTES: u64 = 1_600_000_000;
    let rows = i64::try_from(WEIGHT_BYTES / 4 / 1000).unwrap();
    let head = OnnxFileBuilder::new(13)
        .node(Node::new("Gemm", &["x", "w"], &["y"]))
        .input(value_info("x", FLOAT, &[8, rows]))
        .output("y")
        .bytes();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&head).unwrap();
    // A second `graph` field would replace the first, so the weight is in a hand-written graph of
    // its own, with the hole of the file inside it.
    let nodes = tilescope_fixtures::onnx_file::graph(
        &[Node::new("Gemm", &["x", "w"], &["y"])],
        &[],
        &[value_info("x", FLOAT, &[8, rows])],
        &["y"],
    );
    let tensor_head =
        tilescope_fixtures::onnx_file::Message::default().int(1, rows).int(1, 1000).int(2, FLOAT);
    let tensor_head = tensor_head.bytes(8, "w").0;
    let length_of = |bytes: u64| {
        tilescope_fixtures::onnx_file::Message::default().int(1, bytes.cast_signed()).0[1..]
            .to_vec()
    };
    let raw_head = [&[9 << 3 | 2][..], &length_of(WEIGHT_BYTES)].concat();
    let tensor_bytes = (tensor_head.len() + raw_head.len()) as u64 + WEIGHT_BYTES;
    let in_graph = [&[5 << 3 | 2][..], &length_of(tensor_bytes)].concat();
    let graph_bytes = (nodes.0.len() + in_graph.len()) as u64 + tensor_bytes;
    let in_model = [&[7 << 3 | 2][..], &length_of(graph_bytes)].concat();
    for part in [&in_model, &nodes.0, &in_graph, &tensor_head, &raw_head] {
        file.write_all(part).unwrap();
    }
    let end = file.seek(SeekFrom::Current(WEIGHT_BYTES.cast_signed())).unwrap();
    file.set_len(end).unwrap();

    let start = std::time::Instant::now();
    let read = OnnxFile::read(file).unwrap();
    let graph = read.resolve(&DimValues::default()).unwrap();
    assert!(start.elapsed().as_secs_f64() < 1.0, "the weight was read");
    assert_eq!(graph.parameter_count(), WEIGHT_BYTES / 4);
    let weight = graph.values.iter().find(|value| value.name == "w").unwrap();
    assert_eq!((weight.source, weight.content.is_none()), (ValueSource::Initializer, true));
}
