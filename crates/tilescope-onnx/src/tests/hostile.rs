//! Hostile files give a clear error, soon, and no panic.

use super::{branch, refusal, resolved};
use crate::{DimValues, OnnxFile};
use proptest::test_runner::{Config, RngSeed, TestRunner};
use std::io::Cursor;
use tilescope_fixtures::onnx_file::{
    FLOAT, INT64, Message, Node, OnnxFileBuilder, function, ints, value_info,
};
use tilescope_fixtures::onnx_text;
use tilescope_test_tiers::{cases, slow_tests};

/// Reads bytes and gives all symbols a value. Must not panic. Returns true if the file is accepted.
fn survive(bytes: &[u8]) -> bool {
    let Ok(file) = OnnxFile::read(Cursor::new(bytes)) else { return false };
    let by_name = file.symbols().into_iter().map(|symbol| (symbol.name, 3)).collect();
    let graph = file.resolve(&DimValues { by_name, ..DimValues::default() });
    graph.is_ok_and(|graph| graph.macs() < u64::MAX && graph.parameter_count() < u64::MAX)
}

/// A small model with a bit of everything.
fn sample() -> OnnxFileBuilder {
    let both = Node::new("If", &["none"], &["i"])
        .graph("then_branch", &branch("Relu", "h"))
        .graph("else_branch", &branch("Tanh", "h"));
    let zero = Node::new("Constant", &[], &["zero"]).tensor("value", &ints("", &[1], &[0]));
    let text = "opset 18; x f32:-1,3,8,8
        c = Conv x w:4,3,3,3 pads=1,1,1,1 @/conv
        r = Resize c _ f32:4=1,1,2,2 mode=nearest
        h = Reshape r i64:2=0,-1; s = Shape h; rows = Gather s zero; none = Equal rows zero
        y = local.Twice i alpha=0.5
        out y";
    onnx_text::model(text).node(both).node(zero).function(function(
        "Twice",
        &["a"],
        &["c"],
        &["alpha"],
        &[
            Node::new("LeakyRelu", &["a"], &["b"]).reference("alpha", "alpha", 1),
            Node::new("Add", &["a", "b"], &["c"]),
        ],
    ))
}

#[test]
fn the_sample_is_a_model() {
    assert!(survive(&sample().bytes()));
}

/// A truncated file gives an error about its end, or a model without the missing part.
#[test]
fn truncated_files() {
    let bytes = sample().bytes();
    let whole = (0..bytes.len()).filter(|end| survive(&bytes[..*end])).count();
    assert!(whole < 100, "{whole} of {} beginnings are models", bytes.len());
}

#[test]
fn changed_bytes() {
    let bytes = sample().bytes();
    let config = Config { cases: cases(10_000), rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let change = proptest::collection::vec((0..bytes.len(), proptest::num::u8::ANY), 1..4);
    TestRunner::new(config)
        .run(&change, |changes| {
            let mut changed = bytes.clone();
            for (at, byte) in changes {
                changed[at] = byte;
            }
            survive(&changed);
            Ok(())
        })
        .unwrap();
}

#[test]
fn moved_pieces() {
    let bytes = sample().bytes();
    let length = bytes.len();
    let config = Config { cases: cases(2_000), rng_seed: RngSeed::Fixed(2), ..Config::default() };
    TestRunner::new(config)
        .run(&(0..length, 0..length, 0..64_usize), |(from, to, count)| {
            let piece = &bytes[from..(from + count).min(length)];
            survive(&[&bytes[..to], piece, &bytes[to..]].concat());
            survive(&[&bytes[..from], &bytes[(from + count).min(length)..]].concat());
            Ok(())
        })
        .unwrap();
}

#[test]
fn files_that_are_not_onnx() {
    for bytes in
        [&b""[..], b"\x89PNG\r\n\x1a\n", b"model:\n  name: resnet\n", &[0xff; 64], &[0; 64]]
    {
        assert!(OnnxFile::read(Cursor::new(bytes)).is_err(), "{bytes:?}");
    }
    let error = OnnxFile::read(Cursor::new(b"")).unwrap_err();
    assert!(error.to_string().contains("not an ONNX file"), "{error}");
    assert!(OnnxFile::open(std::path::Path::new("/")).is_err());
}

/// Nested graphs, 100,000 deep, are refused before the stack overflows.
#[test]
fn nested_graphs() {
    let mut inner = Message::default();
    for _ in 0..100_000 {
        let node = Message::default().bytes(4, "If");
        // Only the outermost is complete; inside, every length is that of the rest.
        inner = Message(if inner.0.len() < 200_000 {
            let attribute = Message::default().bytes(6, &inner);
            Message::default().bytes(1, node.bytes(5, attribute)).0
        } else {
            inner.0
        });
    }
    let model = Message::default().bytes(7, inner);
    let error = OnnxFile::read(Cursor::new(model.0)).unwrap_err().to_string();
    assert!(error.contains("nested more than 100 deep"), "{error}");
}

#[test]
fn cyclic_graphs() {
    let own = function("F", &["a"], &["b"], &[], &[Node::new("F", &["a"], &["b"]).domain("local")]);
    let model = onnx_text::model("x f32:1; local.F x").function(own);
    assert!(refusal(&model).contains("more than 64 deep"), "{}", refusal(&model));
}

/// Functions that call each other twice, 40 deep, would expand to a million million nodes.
#[test]
fn functions_that_double() {
    let mut model = OnnxFileBuilder::new(18).input(value_info("x", FLOAT, &[1]));
    for level in 0..40 {
        let next = format!("F{}", level + 1);
        let nodes = [
            Node::new(&next, &["a"], &["b"]).domain("local"),
            Node::new(&next, &["b"], &["c"]).domain("local"),
        ];
        model = model.function(function(&format!("F{level}"), &["a"], &["c"], &[], &nodes));
    }
    let model = model.node(Node::new("F0", &["x"], &["y"]).domain("local")).output("y");
    assert!(refusal(&model).contains("more than 262144 nodes"));
}

/// Nested functions whose calls have long names would expand to names of a million million letters.
#[test]
fn functions_with_long_names() {
    let mut model = OnnxFileBuilder::new(18).input(value_info("x", FLOAT, &[1]));
    let name = "n".repeat(60_000);
    for level in 0..50 {
        let next = format!("F{}", level + 1);
        let call = |input: &str, output: &str| {
            Node::new(&next, &[input], &[output]).domain("local").named(&name)
        };
        let nodes = [call("a", "b"), call("b", "c")];
        model = model.function(function(&format!("F{level}"), &["a"], &["c"], &[], &nodes));
    }
    let model = model.node(Node::new("F0", &["x"], &["y"]).domain("local")).output("y");
    assert!(refusal(&model).contains("more than 1 GiB"));
}

/// Shapes of operands without elements may have any other sizes.
#[test]
fn tensors_without_elements() {
    let empty = ints("e", &[0, 1 << 40, 1 << 40], &[]);
    for op in ["Transpose", "Identity", "Neg"] {
        let model = OnnxFileBuilder::new(18).tensor(empty.clone()).output("y");
        let _ = resolved(&model.node(Node::new(op, &["e"], &["y"])));
    }
}

/// Models in a line of text, each with a part of its error message.
#[test]
fn impossible_models_are_refused_by_name() {
    for line in include_str!("refused.txt").lines().filter(|line| !line.starts_with('#')) {
        let (text, words) = line.split_once(" -> ").expect("a model and a refusal");
        let said = refusal(&onnx_text::model(&format!("opset 18; {text}")));
        assert!(said.contains(words), "{text}: {said}");
    }
    // A million dimensions of one byte each, packed and in separate fields.
    let packed = Message::default().bytes(1, vec![1; 1_000_000]);
    let apart = (0..100).fold(Message::default(), |tensor, _| tensor.int(1, 1));
    for tensor in [packed, apart] {
        let graph = Message::default().bytes(5, tensor);
        let error = OnnxFile::read(Cursor::new(Message::default().bytes(7, graph).0)).unwrap_err();
        assert!(error.to_string().contains("more than 32 dimensions"), "{error}");
    }
    let short = Message::default().int(1, 4).int(2, INT64).bytes(8, "n").bytes(9, [0; 9]);
    let unknown = Message::default().int(1, 1).int(2, 77).bytes(8, "n");
    let short_words = "has 2 values, but its shape requires 4";
    for (tensor, words) in [(short, short_words), (unknown, "element type 77")] {
        let said = refusal(&OnnxFileBuilder::new(18).tensor(tensor).output("n"));
        assert!(said.contains(words), "{said}");
    }
    let bytes = Node::new("Relu", &["x"], &["y"]).0.bytes(3, [0xff, 0xfe]);
    let model = OnnxFileBuilder::new(18).node(Node(bytes)).output("y");
    assert!(refusal(&model).contains("not UTF-8"));
    let unread = onnx_text::model("opset 18; Softmax f32:2 axis=zero");
    assert!(resolved(&unread).is_ok(), "an attribute that no shape depends on");
}

#[test]
fn unknown_versions_are_refused() {
    for opset in [0, 6, 29, 99, -1] {
        let model = onnx_text::model(&format!("opset {opset}; Relu f32:1"));
        assert!(refusal(&model).contains("an opset from 7 to 28"), "{}", refusal(&model));
    }
    for opset in 7..=28 {
        let model = onnx_text::model(&format!("opset {opset}; Relu f32:1"));
        assert!(resolved(&model).is_ok());
    }
}

/// A chain of a million nodes can be read in the memory of a laptop; the fast tier reads a shorter
/// one.
#[test]
fn a_million_nodes() {
    let nodes = if slow_tests() { 1_000_000 } else { 10_000 };
    let mut model = OnnxFileBuilder::new(18).input(value_info("x0", FLOAT, &[4, 16]));
    for at in 0..nodes {
        let names = (format!("x{at}"), format!("x{}", at + 1));
        let node = Node::new("Relu", &[names.0.as_str()], &[names.1.as_str()]);
        model = model.node(node.named(&format!("/layer.{}/act/Relu_{at}", at / 100)));
    }
    let bytes = model.output(&format!("x{nodes}")).bytes();
    let start = std::time::Instant::now();
    let file = OnnxFile::read(Cursor::new(&bytes)).unwrap();
    let read = start.elapsed();
    let graph = file.resolve(&DimValues::default()).unwrap();
    assert_eq!(graph.nodes.len(), nodes);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    println!("{} bytes: read {read:?}, all {:?}, {peak}", bytes.len(), start.elapsed());
}
