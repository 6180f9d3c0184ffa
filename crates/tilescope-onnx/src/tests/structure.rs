//! Tests functions, branches, order, and unused nodes.

use super::{branch, decided, refusal, resolved};
use crate::{AttributeValue, DimValues, ValueSource};
use tilescope_fixtures::onnx_file::{INT64, Message, Node, function, graph};
use tilescope_fixtures::onnx_text;

/// A function's nodes replace its call, with the attributes of the call.
#[test]
fn functions_are_inlined() {
    let body = [
        Node::new("LeakyRelu", &["a"], &["b"]).reference("alpha", "slope", 1),
        Node::new("Clip", &["b", "low"], &["c"]).named("clip"),
    ];
    let model = onnx_text::model("opset 18; x f32:2,3; local.Act x slope=0.25 @/act")
        .function(function("Act", &["a", "low"], &["c"], &["slope"], &body));
    let graph = resolved(&model).unwrap();
    let ops: Vec<&str> = graph.nodes.iter().map(|node| node.op.as_str()).collect();
    assert_eq!(ops, ["LeakyRelu", "Clip"]);
    assert_eq!(graph.nodes[0].attributes.get("alpha"), Some(&AttributeValue::Float(0.25)));
    // The optional input that the caller left out is absent in the function, too.
    assert_eq!(graph.nodes[1].inputs.len(), 1);
    assert_eq!(graph.nodes[1].name, "/act/clip");
    assert_eq!(graph.value(graph.outputs[0]).name, "y");
    assert_eq!(graph.value(graph.outputs[0]).dims, [2, 3]);
}

/// The branch of an `If` is known if the condition is on shapes.
#[test]
fn branches_whose_condition_is_known_are_inlined() {
    let with_rows = |rows: i64| {
        let choice = Node::new("If", &["c"], &["y"])
            .graph("then_branch", &branch("Relu", "x"))
            .graph("else_branch", &branch("Tanh", "x"));
        onnx_text::model(&format!(
            "opset 18; x f32:{rows},3; s = Shape x; rows = Gather s i64:=0
             c = Equal rows i64:=1; out y"
        ))
        .node(choice)
    };
    for (rows, op) in [(1, "Relu"), (5, "Tanh")] {
        let graph = resolved(&with_rows(rows)).unwrap();
        assert_eq!(graph.nodes.len(), 1);
        assert_eq!((graph.nodes[0].op.as_str(), graph.folded.get("If")), (op, Some(&1)));
    }
}

/// An `If` that depends on data takes the branch that the user selects, and every unused decision
/// is refused.
#[test]
fn branches_that_depend_on_data_are_chosen_by_the_user() {
    let choice = Node::new("If", &["flag"], &["y"])
        .named("/cache")
        .graph("then_branch", &branch("Relu", "x"))
        .graph("else_branch", &branch("Tanh", "x"));
    let model = onnx_text::model("opset 18; x f32:2,3; flag bool:; out y").node(choice);
    let given = |names: &[&str], is_first: bool| DimValues {
        branches: names.iter().map(|name| ((*name).to_owned(), is_first)).collect(),
        ..DimValues::default()
    };
    for (is_first, op) in [(true, "Relu"), (false, "Tanh")] {
        let graph = decided(&model, given(&["/cache"], is_first)).unwrap();
        assert_eq!(graph.nodes[0].op, op);
    }
    assert!(refusal(&model).contains("set model.branch./cache to then or else"));
    let unknown = decided(&model, given(&["/cache", "cache"], true)).unwrap_err().to_string();
    assert!(unknown.contains("\"cache\"") && unknown.contains("known: /cache"), "{unknown}");
}

/// One error names all decisions that a file needs, and with all of them it can be resolved.
#[test]
fn one_error_names_all_open_decisions() {
    let body = graph(
        &[Node::new("Tanh", &["state"], &["next"]), Node::new("Identity", &["go"], &["goes"])],
        &[],
        &["turn", "go", "state"].map(|name| Message::default().bytes(1, name)),
        &["goes", "next"],
    );
    let text = "opset 18; flag bool:; x f32:4,8; most i64:; go bool:=1; out y r";
    let model = onnx_text::model(text)
        .node(
            Node::new("If", &["flag"], &["taken"])
                .named("choice")
                .graph("then_branch", &branch("Relu", "x"))
                .graph("else_branch", &branch("Tanh", "x")),
        )
        .node(
            Node::new("Loop", &["most", "go", "taken"], &["y"]).named("turns").graph("body", &body),
        )
        .node(Node::new("NonZero", &["y"], &["r"]).named("found"));
    let problem = refusal(&model);
    assert!(problem.contains("set model.branch.choice to then or else"), "{problem}");
    assert!(problem.ends_with(". Also set model.trips.turns, model.max_results"), "{problem}");
    let given = DimValues {
        branches: [("choice".to_owned(), true)].into(),
        trips: [("turns".to_owned(), 3)].into(),
        max_results: Some(12),
        ..DimValues::default()
    };
    let graph = decided(&model, given).unwrap();
    assert_eq!(graph.value(graph.outputs[1]).dims, [2, 12]);
}

/// Empty keys and values of earlier calls leave no trace.
#[test]
fn tensors_without_elements_are_no_work() {
    let text = "opset 18; past f32:1,8,0,128; k f32:1,8,16,128; q f32:1,8,16,128
        t = Transpose past perm=0,1,3,2; all = Concat past k axis=2
        keys = Transpose all perm=0,1,3,2; y = MatMul q keys; out y t";
    let graph = resolved(&onnx_text::model(text)).unwrap();
    let ops: Vec<&str> = graph.nodes.iter().map(|node| node.op.as_str()).collect();
    assert_eq!((ops, graph.macs()), (vec!["Concat", "Transpose", "MatMul"], 262_144));
    assert_eq!(graph.value(graph.outputs[1]).dims, [1, 8, 128, 0]);
}

/// An index into a sequence that depends on data is refused, and so is a sequence as a result.
#[test]
fn sequences_have_constant_indices() {
    let of = |rest: &str| {
        refusal(&onnx_text::model(&format!("opset 18; x f32:4,6; s = SplitToSequence x; {rest}")))
    };
    assert!(of("SequenceAt s i64: @at").contains("constant positions"));
    assert!(of("out s").contains("a sequence of tensors"));
    assert!(of("Relu s @relu").contains("a sequence of tensors"));
    assert!(of("SequenceAt s i64:=9").contains("axis 9"));
}

/// A file with nodes in another order gives the same graph; a file in order stays unchanged.
#[test]
fn nodes_in_any_order_are_sorted() {
    let nodes = ["a = Relu x", "b = Relu a", "c = Relu b", "y = Relu c"];
    let in_order = |order: [usize; 4]| {
        let nodes = order.map(|at| nodes[at]).join(";");
        let model = onnx_text::model(&format!("opset 18; x f32:2; {nodes}; out y"));
        format!("{:?}", resolved(&model).unwrap())
    };
    assert_eq!(in_order([0, 1, 2, 3]), in_order([3, 1, 0, 2]));
}

#[test]
fn unused_nodes_are_dropped() {
    let text = "opset 18; x f32:2,4; unused f32:7; w w:4,3; spare w:1000; \
                dead = Relu x @dead; MatMul x w";
    let model = onnx_text::model(text);
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

/// Statistics of a normalisation are not parameters.
#[test]
fn statistics_are_no_parameters() {
    let model = onnx_text::model("BatchNormalization f32:2,8,4,4 w:8 w:8 w:8 w:8");
    assert_eq!(resolved(&model).unwrap().parameter_count(), 16);
}

/// An unknown operator has the shape in the file, or else that of its operands.
#[test]
fn unknown_operators_are_kept() {
    let custom = "com.example.Custom f32:2,1 f32:3 @mine";
    let graph = resolved(&onnx_text::model(custom)).unwrap();
    assert_eq!(graph.value(graph.outputs[0]).dims, [2, 3]);
    let node = &graph.nodes[0];
    assert_eq!((node.domain.as_str(), node.op.as_str()), ("com.example", "Custom"));
    let said = refusal(&onnx_text::model("com.example.Custom f32:2 f32:3 @mine"));
    assert!(said.contains("node \"mine\" (Custom): the operator is unknown"), "{said}");
}

/// Files of IR version 3 list initialisers as inputs, which users do not feed.
#[test]
fn initialisers_are_no_inputs() {
    let text = "opset 9; x f32:2,4; w f32:4,3; flag bool:; w w:4,3; MatMul x w";
    let model = onnx_text::model(text);
    let graph = resolved(&model).unwrap();
    assert_eq!((graph.inputs.len(), graph.parameter_count()), (2, 12));
}

/// No IPU memory contains texts: operators on them are refused by name, and unused ones are left
/// out.
#[test]
fn operators_on_texts_are_refused() {
    for op in ["Relu", "Identity", "com.example.Tokenizer"] {
        let problem = refusal(&onnx_text::model(&format!("words str:4,8; {op} words @/prepare")));
        assert!(problem.contains("/prepare") && problem.contains("\"words\""), "{problem}");
        assert!(problem.contains("strings"), "{problem}");
    }
    let unused = onnx_text::model("words str:4,8; y = Relu words; x f32:4; z = Relu x");
    assert_eq!(resolved(&unused).unwrap().nodes.len(), 1);
}

/// A shape in another file gives an error that names its place.
#[test]
fn shapes_in_another_file() {
    let place = Message::default().bytes(1, "location").bytes(2, "weights.bin");
    let shape = Message::default().int(1, 2).int(2, INT64).bytes(8, "s");
    let model =
        |shape: Message| onnx_text::model("opset 18; x f32:4,8; Reshape x s @flat").tensor(shape);
    let problem = refusal(&model(shape.clone().bytes(13, place).int(14, 1)));
    assert!(problem.contains("\"flat\"") && problem.contains("external data file"), "{problem}");
    let problem = refusal(&model(shape));
    assert!(problem.contains("not in the file"), "{problem}");
}
