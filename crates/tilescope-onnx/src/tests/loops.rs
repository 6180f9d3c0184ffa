//! Tests of loops: repeats of one body, and iterations with nodes of their own.

use super::{branch, decided, refusal, resolved};
use crate::{DimValues, OnnxGraph, RepeatPart};
use std::collections::BTreeMap;
use tilescope_fixtures::onnx_file::{Message, Node, OnnxFileBuilder, graph, weight};
use tilescope_fixtures::onnx_text;

/// The graph of a model with nodes for each iteration of its loops.
fn unrolled(model: &OnnxFileBuilder) -> OnnxGraph {
    decided(model, DimValues { unrolls: true, ..DimValues::default() }).unwrap()
}

fn names(list: &[&str]) -> Vec<Message> {
    list.iter().map(|name| Message::default().bytes(1, name)).collect()
}

fn node_names(graph: &OnnxGraph) -> Vec<&str> {
    graph.nodes.iter().map(|node| node.name.as_str()).collect()
}

fn output_dims(graph: &OnnxGraph, at: usize) -> Vec<u64> {
    graph.value(graph.outputs[at]).dims.clone()
}

/// A layer of a loop: `next = tanh(state . w)`, with weights of the body.
fn layer() -> Message {
    let nodes = [
        Node::new("MatMul", &["state", "w"], &["product"]).named("product"),
        Node::new("Tanh", &["product"], &["next"]),
        Node::new("Identity", &["next"], &["seen"]),
        Node::new("Identity", &["go"], &["goes"]),
    ];
    let weights = [weight("w", &[8, 8])];
    graph(&nodes, &weights, &names(&["turn", "go", "state"]), &["goes", "next", "seen"])
}

/// Iterations share the weights of the body, and its nodes unless they are unrolled; their results
/// are stacked.
#[test]
fn loops_have_their_known_iterations() {
    let turns = Node::new("Loop", &["most", "go", "x"], &["y", "all"]).graph("body", &layer());
    let text = |most: &str| {
        onnx_text::model(&format!("opset 18; x f32:3,8; most {most}; go bool:=1; out y all"))
            .node(turns.clone().named("loop"))
    };
    let graph = resolved(&text("i64:=4")).unwrap();
    assert_eq!(graph.macs(), 4 * 3 * 8 * 8);
    assert_eq!(graph.parameter_count(), 64, "one matrix of weights");
    assert_eq!((output_dims(&graph, 0), output_dims(&graph, 1)), (vec![3, 8], vec![4, 3, 8]));
    assert_eq!((graph.composed["Loop"], graph.repeats[0].trips), (1, 4));
    let names = node_names(&graph);
    assert!(names.contains(&"loop/product"), "{names:?}");
    let apart = unrolled(&text("i64:=4"));
    let names = node_names(&apart);
    assert!(names.contains(&"loop/0/product") && names.contains(&"loop/3/product"), "{names:?}");
    assert_eq!((apart.macs(), apart.parameter_count()), (graph.macs(), 64));
    assert_eq!(apart.op_counts()["MatMul"], graph.op_counts()["MatMul"]);
    // The user gives the number of iterations that data determine.
    let open = text("i64:");
    assert!(refusal(&open).contains("set model.trips.loop to a number"), "{}", refusal(&open));
    let trips = BTreeMap::from([("loop".to_owned(), 2)]);
    let graph = decided(&open, DimValues { trips, ..DimValues::default() }).unwrap();
    assert_eq!((graph.macs(), output_dims(&graph, 1)), (2 * 3 * 8 * 8, vec![2, 3, 8]));
}

/// `Scan` has an iteration for each part of its operand, forwards or backwards.
#[test]
fn scans_have_an_iteration_for_each_part() {
    let body = graph(
        &[
            Node::new("Add", &["state", "part"], &["next"]).named("add"),
            Node::new("Identity", &["next"], &["seen"]),
        ],
        &[],
        &names(&["state", "part"]),
        &["next", "seen"],
    );
    let scan = Node::new("Scan", &["first", "x"], &["last", "all"])
        .named("scan")
        .int("num_scan_inputs", 1)
        .ints("scan_input_directions", &[1])
        .graph("body", &body);
    let model = onnx_text::model("opset 18; first f32:8; x f32:6,8; out last all").node(scan);
    for graph in [resolved(&model).unwrap(), unrolled(&model)] {
        assert_eq!((output_dims(&graph, 0), output_dims(&graph, 1)), (vec![8], vec![6, 8]));
        assert_eq!((graph.op_counts()["Add"], graph.composed["Scan"]), (6, 1));
    }
    let graph = unrolled(&model);
    let adds = graph.nodes.iter().filter(|node| node.op == "Add").count();
    let first = graph.nodes.iter().find(|node| node.op == "Gather").expect("a part");
    let place = graph.value(first.inputs[1].unwrap()).content.as_ref().unwrap().scalar();
    assert_eq!((adds, place), (6, Some(5.0)));
}

/// A loop over `states` with the nodes of its body, which makes their next values `next`.
fn turning(states: &[&str], nodes: &[Node], next: &[&str], text: &str) -> OnnxFileBuilder {
    let mut nodes = nodes.to_vec();
    nodes.push(Node::new("Identity", &["go"], &["goes"]));
    let inputs: Vec<&str> = ["turn", "go"].iter().chain(states).copied().collect();
    let outputs: Vec<&str> = ["goes"].iter().chain(next).copied().collect();
    let body = graph(&nodes, &[], &names(&inputs), &outputs);
    let first: Vec<String> = states.iter().map(|state| format!("{state}_0")).collect();
    let last: Vec<String> = states.iter().map(|state| format!("{state}_n")).collect();
    let operands: Vec<&str> =
        ["most", "start"].into_iter().chain(first.iter().map(String::as_str)).collect();
    let results: Vec<&str> = last.iter().map(String::as_str).collect();
    let turns = Node::new("Loop", &operands, &results).named("loop").graph("body", &body);
    let outputs = last.join(" ");
    onnx_text::model(&format!("opset 18; most i64:=5; start bool:=1; {text}; out {outputs}"))
        .node(turns)
}

/// States that exchange their values keep a copy of one until both are written.
#[test]
fn states_can_take_values_of_each_other() {
    let nodes = [Node::new("Relu", &["a"], &["c"]), Node::new("Tanh", &["b"], &["d"])];
    let text = "a_0 f32:4; b_0 f32:4";
    let copies = |next: [&str; 2]| {
        let graph = resolved(&turning(&["a", "b"], &nodes, &next, text)).unwrap();
        assert_eq!(graph.repeats.len(), 1);
        let inside = graph.nodes.iter().filter(|node| node.repeat.is_some());
        inside.filter(|node| node.repeat_part == Some(RepeatPart::State)).count()
    };
    assert_eq!((copies(["c", "d"]), copies(["b", "c"]), copies(["b", "a"])), (0, 1, 2));
}

/// A constant that all iterations pass on stays one, and others become states.
#[test]
fn constants_that_do_not_change_stay_constants() {
    let nodes = [
        Node::new("Reshape", &["x", "size"], &["y"]),
        Node::new("Identity", &["size"], &["same"]),
        Node::new("Add", &["count", "count"], &["twice"]),
    ];
    let model = turning(
        &["x", "size", "count"],
        &nodes,
        &["y", "same", "twice"],
        "x_0 f32:4; size_0 i64:1=4; count_0 i64:=1",
    );
    let graph = resolved(&model).unwrap();
    let states = graph.nodes.iter().filter(|node| node.repeat_part == Some(RepeatPart::State));
    assert_eq!((graph.repeats.len(), states.count()), (1, 2));
}

/// Iterations that differ in shapes, constants or places have nodes of their own.
#[test]
fn loops_whose_iterations_differ_are_unrolled() {
    let grows = [Node::new("Concat", &["x", "x"], &["y"]).int("axis", 0)];
    let graph = resolved(&turning(&["x"], &grows, &["y"], "x_0 f32:1,4")).unwrap();
    assert_eq!((graph.repeats.len(), output_dims(&graph, 0)), (0, vec![32, 4]));
    let counts = [
        Node::new("Unsqueeze", &["turn", "axis"], &["size"]),
        Node::new("Expand", &["one", "size"], &["ones"]),
        Node::new("ReduceSum", &["ones", "axis"], &["sum"]).int("keepdims", 1),
        Node::new("Add", &["x", "sum"], &["y"]),
    ];
    let text = "x_0 f32:1; one f32:1; axis i64:1=0";
    let graph = resolved(&turning(&["x"], &counts, &["y"], text)).unwrap();
    assert_eq!((graph.repeats.len(), graph.op_counts()["Add"]), (0, 5));
    let placed = [Node::new("Relu", &["x"], &["y"]).int("__ipu_number", 1)];
    let graph = resolved(&turning(&["x"], &placed, &["y"], "x_0 f32:4")).unwrap();
    assert_eq!((graph.repeats.len(), graph.nodes.len()), (0, 5));
}

/// Nodes of a loop in a loop run in each iteration of both.
#[test]
fn loops_in_loops_multiply() {
    let inner = graph(
        &[
            Node::new("MatMul", &["u", "w"], &["v"]).named("product"),
            Node::new("Identity", &["goes_in"], &["goes_on"]),
        ],
        &[weight("w", &[8, 8])],
        &names(&["at", "goes_in", "u"]),
        &["goes_on", "v"],
    );
    let nodes =
        [Node::new("Loop", &["three", "start", "x"], &["y"]).named("inner").graph("body", &inner)];
    let model = turning(&["x"], &nodes, &["y"], "x_0 f32:2,8; three i64:=3");
    let graph = resolved(&model).unwrap();
    assert_eq!((graph.repeats.len(), graph.macs()), (2, 5 * 3 * 2 * 8 * 8));
    assert_eq!(graph.repeats[1].outer.map(|of| of.index()), Some(0));
    assert_eq!(graph.parameter_count(), 64);
    assert_eq!(unrolled(&model).macs(), graph.macs());
}

/// The number of nodes does not depend on the number of iterations.
#[test]
fn long_loops_are_as_small_as_short_ones() {
    let of = |trips: u64| {
        let nodes = [Node::new("Relu", &["x"], &["y"])];
        let model = turning(&["x"], &nodes, &["y"], "x_0 f32:4");
        let trips = BTreeMap::from([("loop".to_owned(), trips)]);
        decided(&model, DimValues { trips, ..DimValues::default() }).unwrap()
    };
    let [short, long] = [2, 1 << 20].map(of);
    assert_eq!(short.nodes.len(), long.nodes.len());
    assert_eq!(long.op_counts()["Relu"], 1 << 20);
}

/// PyTorch's loop over the bags of an `EmbeddingBag` becomes one lookup of all rows, and reductions.
#[test]
fn loops_over_bags_are_embedding_bags() {
    let body = |reduction: &str, weighs: bool| {
        let mut nodes = vec![
            Node::new("Gather", &["starts", "turn"], &["start"]).int("axis", 0),
            Node::new("Gather", &["ends", "turn"], &["end"]).int("axis", 0),
            Node::new("Unsqueeze", &["start", "first"], &["from"]),
            Node::new("Unsqueeze", &["end", "first"], &["to"]),
            Node::new("Slice", &["indices", "from", "to", "first"], &["bag"]).named("slice"),
            Node::new("Gather", &["table", "bag"], &["rows"]).int("axis", 0),
        ];
        let mut rows = "rows";
        if weighs {
            nodes.push(Node::new("Mul", &["rows", "rows"], &["weighed"]));
            rows = "weighed";
        }
        nodes.push(Node::new(reduction, &[rows, "first"], &["one"]).int("keepdims", 0));
        nodes.push(Node::new("Cast", &["go"], &["goes"]).int("to", 9));
        graph(&nodes, &[], &names(&["turn", "go"]), &["goes", "one"])
    };
    // Exporters take the first rows from the list with or without the end of the last bag.
    let model_of = |starts: &str, reduction: &str, weighs: bool| {
        onnx_text::model(&format!(
            "opset 18; indices i64:24; offsets i64:5; end i64:1=24; table w:100,16;
             first i64:1=0; second i64:1=1; most i64:=5; start bool:=1; last i64:1=6
             all = Concat offsets end axis=0
             starts = {starts}; ends = Slice all second last; out y",
        ))
        .node(
            Node::new("Loop", &["most", "start"], &["y"])
                .named("/bag/Loop")
                .graph("body", &body(reduction, weighs)),
        )
    };
    for (starts, reduction) in [
        ("Slice all first i64:1=5", "ReduceSum"),
        ("Slice all first i64:1=5", "ReduceMean"),
        ("Slice all first i64:1=5", "ReduceMax"),
        ("Identity all", "ReduceSum"),
        ("Identity all", "ReduceMean"),
        ("Identity all", "ReduceMax"),
    ] {
        let graph = resolved(&model_of(starts, reduction, false)).unwrap();
        assert_eq!((output_dims(&graph, 0), graph.parameter_count()), (vec![5, 16], 1600));
        assert_eq!((graph.repeats.len(), graph.composed["Loop"]), (0, 1), "{starts} {reduction}");
        let lookups = graph.nodes.iter().filter(|node| node.op == "Gather");
        assert_eq!(lookups.count(), 1, "{starts} {reduction}");
    }
    // Another loop over parts of a length that depends on data is refused by name.
    let problem = refusal(&model_of("Identity all", "ReduceSum", true));
    assert!(
        problem.contains("/bag/Loop/0/slice") && problem.contains("have fixed shapes"),
        "{problem}"
    );
}

/// The loop of PyTorch's newer exporter, which inserts the reduced rows of each bag into a sequence.
#[test]
fn loops_that_insert_bags_into_a_sequence_are_embedding_bags() {
    let body = |reduction: &str, weighs: bool| {
        let mut nodes = vec![
            Node::new("Add", &["at", "one"], &["next"]),
            Node::new("Gather", &["offsets", "at"], &["start"]).int("axis", 0),
            Node::new("Gather", &["offsets", "next"], &["end"]).int("axis", 0),
            Node::new("Unsqueeze", &["start", "axis"], &["from"]),
            Node::new("Unsqueeze", &["end", "axis"], &["to"]),
            Node::new("Slice", &["rows", "from", "to"], &["bag"]).named("slice"),
        ];
        let mut bag = "bag";
        if weighs {
            nodes.push(Node::new("Exp", &["bag"], &["weighed"]));
            bag = "weighed";
        }
        nodes.push(Node::new(reduction, &[bag, "axis"], &["sum"]).int("keepdims", 0));
        nodes.push(Node::new("Unsqueeze", &["sum", "axis"], &["row"]));
        nodes.push(Node::new("SequenceInsert", &["bags", "row"], &["more"]));
        nodes.push(Node::new("Less", &["next", "count"], &["goes"]));
        let inputs = ["turn", "go", "at", "bags"];
        graph(&nodes, &[], &names(&inputs), &["goes", "next", "more"])
    };
    let model_of = |reduction: &str, weighs: bool| {
        onnx_text::model(
            "opset 18; indices i64:24; offsets i64:6; table w:100,16; axis i64:1=0; one i64:=1
             zero i64:=0; count i64:=5; start bool:=1; rows = Gather table indices
             empty = SequenceEmpty; out y",
        )
        .node(
            Node::new("Loop", &["", "start", "zero", "empty"], &["last", "bags"])
                .named("bag")
                .graph("body", &body(reduction, weighs)),
        )
        .node(Node::new("ConcatFromSequence", &["bags"], &["y"]).int("axis", 0))
    };
    for reduction in ["ReduceSum", "ReduceMean", "ReduceMax"] {
        let graph = resolved(&model_of(reduction, false)).unwrap();
        assert_eq!((output_dims(&graph, 0), graph.parameter_count()), (vec![5, 16], 1600));
        assert_eq!((graph.repeats.len(), graph.composed["Loop"]), (0, 1), "{reduction}");
        let lookups = graph.nodes.iter().filter(|node| node.op == "Gather");
        assert_eq!(lookups.count(), 1, "{reduction}");
    }
    // A loop that does something else with the rows is unrolled, and its slices have no known length.
    let problem = refusal(&model_of("ReduceSum", true));
    assert!(problem.contains("bag/0/slice") && problem.contains("fixed shapes"), "{problem}");
}

/// A decision on a node of a loop body holds for all iterations, or for the one that it names.
#[test]
fn decisions_in_loops_are_made_once() {
    let nodes = [
        Node::new("If", &["flag"], &["next"])
            .named("choice")
            .graph("then_branch", &branch("Relu", "state"))
            .graph("else_branch", &branch("Tanh", "state")),
        Node::new("Identity", &["go"], &["goes"]),
    ];
    let body = graph(&nodes, &[], &names(&["turn", "go", "state"]), &["goes", "next"]);
    let model = onnx_text::model("opset 18; flag bool:; x f32:4; most i64:=3; go bool:=1; out y")
        .node(Node::new("Loop", &["most", "go", "x"], &["y"]).named("loop").graph("body", &body));
    let problem = decided(&model, DimValues { unrolls: true, ..DimValues::default() });
    let problem = problem.unwrap_err().to_string();
    assert!(problem.contains("set model.branch.loop/choice to then or else"), "{problem}");
    assert!(!problem.contains("loop/1"), "{problem}");
    let ops = |given: &[(&str, bool)]| {
        let branches = given.iter().map(|(name, first)| ((*name).to_owned(), *first)).collect();
        let given = DimValues { branches, unrolls: true, ..DimValues::default() };
        let graph = decided(&model, given).unwrap();
        graph.nodes.iter().map(|node| node.op.clone()).collect::<Vec<_>>()
    };
    assert_eq!(ops(&[("loop/choice", false)]), ["Tanh"; 3]);
    assert_eq!(ops(&[("loop/choice", true), ("loop/1/choice", false)]), ["Relu", "Tanh", "Relu"]);
}
