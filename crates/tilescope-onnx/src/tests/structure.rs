//! Functions, branches, order, and what nobody needs.

use super::{refusal, resolved};
use crate::{AttributeValue, ValueSource};
use tilescope_fixtures::onnx_file::{
    BOOL, FLOAT, INT64, Message, Node, OnnxFileBuilder, function, graph, ints, value_info, weight,
};

fn relu(input: &str, output: &str) -> Node {
    Node::new("Relu", &[input], &[output])
}

/// A function's nodes stand in the place of its call, with the attributes of the call.
#[test]
fn functions_are_inlined() {
    let body = [
        Node::new("LeakyRelu", &["a"], &["b"]).reference("alpha", "slope", 1),
        Node::new("Clip", &["b", "low"], &["c"]).named("clip"),
    ];
    let model = OnnxFileBuilder::new(18)
        .input(value_info("x", FLOAT, &[2, 3]))
        .node(Node::new("Act", &["x"], &["y"]).domain("local").float("slope", 0.25).named("/act"))
        .function(function("Act", &["a", "low"], &["c"], &["slope"], &body))
        .output("y");
    let graph = resolved(&model).unwrap();
    let ops: Vec<&str> = graph.nodes.iter().map(|node| node.op.as_str()).collect();
    assert_eq!(ops, ["LeakyRelu", "Clip"]);
    assert_eq!(graph.nodes[0].attributes.get("alpha"), Some(&AttributeValue::Float(0.25)));
    // The optional input that the caller left out is absent inside, too.
    assert_eq!(graph.nodes[1].inputs.len(), 1);
    assert_eq!(graph.nodes[1].name, "/act/clip");
    assert_eq!(graph.value(graph.outputs[0]).name, "y");
    assert_eq!(graph.value(graph.outputs[0]).dims, [2, 3]);
}

/// Which branch of an `If` runs is known where the condition is one on shapes.
#[test]
fn branches_whose_condition_is_known_are_inlined() {
    let branch = |op: &str| graph(&[Node::new(op, &["x"], &["b"])], &[], &[], &["b"]);
    let with_rows = |rows: i64| {
        OnnxFileBuilder::new(18)
            .input(value_info("x", FLOAT, &[rows, 3]))
            .tensor(ints("one", &[], &[1]))
            .tensor(ints("zero", &[], &[0]))
            .node(Node::new("Shape", &["x"], &["s"]))
            .node(Node::new("Gather", &["s", "zero"], &["rows"]))
            .node(Node::new("Equal", &["rows", "one"], &["c"]))
            .node(
                Node::new("If", &["c"], &["y"])
                    .graph("then_branch", &branch("Relu"))
                    .graph("else_branch", &branch("Tanh")),
            )
            .output("y")
    };
    for (rows, op) in [(1, "Relu"), (5, "Tanh")] {
        let graph = resolved(&with_rows(rows)).unwrap();
        assert_eq!(graph.nodes.len(), 1);
        assert_eq!((graph.nodes[0].op.as_str(), graph.folded.get("If")), (op, Some(&1)));
    }
}

/// A file whose nodes are in another order is the same graph; one that is in order stays so.
#[test]
fn any_order_is_put_in_order() {
    let nodes = [relu("x", "a"), relu("a", "b"), relu("b", "c"), relu("c", "y")];
    let in_order = |order: [usize; 4]| {
        let model = OnnxFileBuilder::new(18).input(value_info("x", FLOAT, &[2])).output("y");
        let model = order.iter().fold(model, |model, at| model.node(nodes[*at].clone()));
        format!("{:?}", resolved(&model).unwrap())
    };
    assert_eq!(in_order([0, 1, 2, 3]), in_order([3, 1, 0, 2]));
}

#[test]
fn what_no_output_needs_is_dropped() {
    let model = OnnxFileBuilder::new(18)
        .input(value_info("x", FLOAT, &[2, 4]))
        .input(value_info("unused", FLOAT, &[7]))
        .tensor(weight("w", &[4, 3]))
        .tensor(weight("spare", &[1000]))
        .node(relu("x", "dead").named("dead"))
        .node(Node::new("MatMul", &["x", "w"], &["y"]))
        .output("y");
    let graph = resolved(&model).unwrap();
    assert_eq!(graph.nodes.len(), 1);
    assert_eq!(graph.inputs.len(), 2, "inputs stay");
    assert_eq!(graph.parameter_count(), 12);
    assert_eq!(graph.macs(), 2 * 3 * 4);
    let sources: Vec<ValueSource> = graph.values.iter().map(|value| value.source).collect();
    let expected =
        [ValueSource::Input, ValueSource::Input, ValueSource::Initializer, ValueSource::Node(0)];
    assert_eq!(sources, expected);
}

/// Statistics of a normalisation are no parameters.
#[test]
fn statistics_are_no_parameters() {
    let mut model = OnnxFileBuilder::new(18).input(value_info("x", FLOAT, &[2, 8, 4, 4]));
    for name in ["scale", "bias", "mean", "variance"] {
        model = model.tensor(weight(name, &[8]));
    }
    let names = ["x", "scale", "bias", "mean", "variance"];
    let model = model.node(Node::new("BatchNormalization", &names, &["y"])).output("y");
    assert_eq!(resolved(&model).unwrap().parameter_count(), 16);
}

/// An operator that nobody knows has the shape that the file says, else that of its operands.
#[test]
fn operators_that_are_not_known_are_kept() {
    let custom = |outputs: &[&str]| {
        OnnxFileBuilder::new(18)
            .input(value_info("x", FLOAT, &[2, 1]))
            .input(value_info("z", FLOAT, &[3]))
            .node(Node::new("Custom", &["x", "z"], outputs).domain("com.example").named("mine"))
    };
    let graph = resolved(&custom(&["y"]).output("y")).unwrap();
    assert_eq!(graph.value(graph.outputs[0]).dims, [2, 3]);
    assert_eq!(
        (graph.nodes[0].domain.as_str(), graph.nodes[0].op.as_str()),
        ("com.example", "Custom")
    );
    let model = OnnxFileBuilder::new(18)
        .input(value_info("x", FLOAT, &[2]))
        .input(value_info("z", FLOAT, &[3]))
        .node(Node::new("Custom", &["x", "z"], &["y"]).domain("com.example").named("mine"))
        .output("y");
    assert!(refusal(&model).contains("node \"mine\" (Custom): this operator is not known"));
}

/// Files of IR version 3 list initialisers as inputs: nobody feeds them.
#[test]
fn initialisers_are_no_inputs() {
    let model = OnnxFileBuilder::new(9)
        .input(value_info("x", FLOAT, &[2, 4]))
        .input(value_info("w", FLOAT, &[4, 3]))
        .input(value_info("flag", BOOL, &[]))
        .tensor(weight("w", &[4, 3]))
        .node(Node::new("MatMul", &["x", "w"], &["y"]))
        .output("y");
    let graph = resolved(&model).unwrap();
    assert_eq!((graph.inputs.len(), graph.parameter_count()), (2, 12));
}

/// No IPU holds a text: what works on them is refused by name, and what nobody needs is left out.
#[test]
fn nothing_works_on_texts() {
    let texts = |op: &str, domain: &str| {
        let node = Node::new(op, &["words"], &["y"]).named("/prepare").domain(domain);
        OnnxFileBuilder::new(18).input(value_info("words", 8, &[4, 8])).node(node)
    };
    for (op, domain) in [("Relu", ""), ("Identity", ""), ("Tokenizer", "com.example")] {
        let problem = refusal(&texts(op, domain).output("y"));
        assert!(problem.contains("/prepare") && problem.contains("\"words\""), "{problem}");
        assert!(problem.contains("strings"), "{problem}");
    }
    let unused = texts("Relu", "").input(value_info("x", FLOAT, &[4])).node(relu("x", "z"));
    assert_eq!(resolved(&unused.output("z")).unwrap().nodes.len(), 1);
}

/// Whoever keeps a shape in another file is told where it is.
#[test]
fn shapes_in_another_file() {
    let place = Message::default().bytes(1, "location").bytes(2, "weights.bin");
    let shape = Message::default().int(1, 2).int(2, INT64).bytes(8, "s");
    let model = |shape: Message| {
        OnnxFileBuilder::new(18)
            .input(value_info("x", FLOAT, &[4, 8]))
            .tensor(shape)
            .node(Node::new("Reshape", &["x", "s"], &["y"]).named("flat"))
            .output("y")
    };
    let problem = refusal(&model(shape.clone().bytes(13, place).int(14, 1)));
    assert!(problem.contains("\"flat\"") && problem.contains("external data file"), "{problem}");
    let problem = refusal(&model(shape));
    assert!(problem.contains("not in the file"), "{problem}");
}
