//! Laws of loops whose bodies exist once, compared with the same loops unrolled.

use crate::common;
use tempfile::TempDir;
use tilescope_analysis::summary::summary;
use tilescope_fixtures::onnx_file::{BOOL, FLOAT, INT64, Message, Node, graph, value_info};
use tilescope_fixtures::onnx_text;
use tilescope_report::units::Bytes;
use tilescope_report::{MemoryCategory, ProgramKind, Report};
use tilescope_test_tiers::up_to;

/// A loop in a file: its body, and the tensors that it reads from outside.
struct LoopModel {
    /// Nodes from `x`, the state, to `next`.
    nodes: Vec<Node>,
    /// Declarations of other operands of the nodes.
    operands: String,
    /// Sizes of the state.
    state: [u64; 2],
}

impl LoopModel {
    /// A sum and a non-linearity.
    fn elementwise(state: [u64; 2]) -> Self {
        let nodes = vec![
            Node::new("Add", &["x", "bias"], &["sum"]).named("add"),
            Node::new("Tanh", &["sum"], &["next"]).named("tanh"),
        ];
        Self { nodes, operands: format!("bias w:{}", state[1]), state }
    }

    /// A product with a square matrix, and a non-linearity.
    fn product(state: [u64; 2]) -> Self {
        let nodes = vec![
            Node::new("MatMul", &["x", "weights"], &["sum"]).named("product"),
            Node::new("Tanh", &["sum"], &["next"]).named("tanh"),
        ];
        Self { nodes, operands: format!("weights w:{0},{0}", state[1]), state }
    }

    /// The file of a loop with a number of iterations. If `stacks`, their results are a second
    /// output.
    fn file(&self, trips: u64, stacks: bool) -> TempDir {
        let mut nodes = self.nodes.clone();
        nodes.push(Node::new("Identity", &["go"], &["on"]));
        nodes.push(Node::new("Identity", &["next"], &["seen"]));
        let inputs = [
            value_info("number", INT64, &[]),
            value_info("go", BOOL, &[]),
            value_info("x", FLOAT, &self.state.map(|size| size as i64)),
        ];
        let outputs = if stacks { &["on", "next", "seen"][..] } else { &["on", "next"] };
        let body = graph(&nodes, &[], &inputs, outputs);
        let made = if stacks { "last all" } else { "last" };
        let [rows, columns] = self.state;
        let text = format!(
            "opset 18; first f32:{rows},{columns}; {}; most i64:={trips}; start bool:=1; out {made}",
            self.operands
        );
        let names: Vec<&str> = made.split(' ').collect();
        let turns = Node::new("Loop", &["most", "start", "first"], &names).named("loop");
        Self::write(&onnx_text::model(&text).node(turns.graph("body", &body)).bytes())
    }

    /// The file of a scan over `trips` operands of the state's size.
    fn scan(&self, trips: u64) -> TempDir {
        let mut nodes = self.nodes.clone();
        nodes.insert(0, Node::new("Add", &["state", "part"], &["x"]).named("join"));
        nodes.push(Node::new("Identity", &["next"], &["seen"]));
        let inputs: Vec<Message> =
            ["state", "part"].iter().map(|name| value_info(name, FLOAT, &[])).collect();
        let body = graph(&nodes, &[], &inputs, &["next", "seen"]);
        let [rows, columns] = self.state;
        let text = format!(
            "opset 18; first f32:{rows},{columns}; parts f32:{trips},{rows},{columns}; {}; \
             out last all",
            self.operands
        );
        let scan = Node::new("Scan", &["first", "parts"], &["last", "all"]).named("loop");
        let scan = scan.int("num_scan_inputs", 1).graph("body", &body);
        Self::write(&onnx_text::model(&text).node(scan).bytes())
    }

    fn write(bytes: &[u8]) -> TempDir {
        let directory = TempDir::new().unwrap();
        std::fs::write(directory.path().join("loop.onnx"), bytes).unwrap();
        directory
    }
}

/// Everything that steps and vertices need besides data.
const CODE: [MemoryCategory; 5] = [
    MemoryCategory::ControlCode,
    MemoryCategory::InternalExchangeCode,
    MemoryCategory::VertexCode,
    MemoryCategory::VertexInstanceState,
    MemoryCategory::VertexFieldData,
];

/// The figures of a report that the laws compare.
#[derive(Clone, Debug, PartialEq)]
struct LoopFigures {
    cycles: f64,
    /// Bytes of all tiles.
    bytes: Bytes,
    code: Bytes,
    programs: usize,
    compute_sets: usize,
    repeats: usize,
    flops: u64,
}

fn figures(directory: &TempDir, overrides: &[&str]) -> LoopFigures {
    let path = directory.path().join("loop.onnx");
    let (report, _kept) = common::report(path.to_str().unwrap(), overrides);
    assert_eq!(report.verify().unwrap(), [], "{overrides:?}");
    figures_of(&report)
}

fn figures_of(report: &Report) -> LoopFigures {
    let tiles = report.tile_memory().unwrap();
    let programs = report.programs().unwrap();
    let is_repeat = |kind: ProgramKind| kind == ProgramKind::Repeat;
    let mut code = Bytes::ZERO;
    for (range, categories) in report.tile_categories().unwrap().iter() {
        let codes = categories.iter().filter(|of| CODE.contains(&of.category));
        code += codes.map(|of| of.bytes).sum::<Bytes>() * u64::from(range.count());
    }
    LoopFigures {
        cycles: summary(report).unwrap().execution.unwrap().total_cycles.as_f64(),
        bytes: tiles.map(|tile| tile.excluding_gaps()).total(),
        code,
        programs: programs.iter().count(),
        compute_sets: report.compute_sets().unwrap().len(),
        repeats: programs.iter().filter(|(_, program)| is_repeat(program.kind)).count(),
        flops: report.operations().unwrap().iter().map(|operation| operation.flops).sum(),
    }
}

/// Sizes of states: odd ones, and one that fills all tiles.
const STATES: [[u64; 2]; 4] = [[37, 129], [3, 1001], [211, 83], [512, 512]];

const UNROLLED: &str = "model.loops=unroll";

fn models(state: [u64; 2]) -> [LoopModel; 2] {
    [LoopModel::elementwise(state), LoopModel::product(state)]
}

#[test]
fn a_loop_of_one_iteration_is_its_body() {
    for model in models([37, 129]) {
        let file = model.file(1, true);
        assert_eq!(figures(&file, &[]), figures(&file, &[UNROLLED]));
    }
}

/// An iteration costs the same at any place, so cycles are a linear function of the iterations.
#[test]
fn cycles_grow_linearly_with_iterations() {
    for state in STATES.into_iter().take(up_to(2)) {
        for model in models(state) {
            let cycles = [5, 10, 15].map(|trips| figures(&model.file(trips, false), &[]).cycles);
            assert_eq!(cycles[1] - cycles[0], cycles[2] - cycles[1], "{state:?}");
            assert!(cycles[0] < cycles[1]);
        }
    }
}

#[test]
fn repeated_and_unrolled_loops_take_as_long() {
    for state in STATES.into_iter().take(up_to(2)) {
        for (model, trips) in models(state).iter().zip([7, 24]) {
            let file = model.file(trips, false);
            let [repeated, unrolled] = [&[][..], &[UNROLLED]].map(|of| figures(&file, of));
            let ratio = repeated.cycles / unrolled.cycles;
            assert!((0.9..1.1).contains(&ratio), "{state:?} {ratio}: {repeated:?} {unrolled:?}");
            assert_eq!(repeated.flops, unrolled.flops);
        }
    }
}

/// Scanned operands and results are sliced and updated in each iteration.
#[test]
fn scans_take_and_write_a_part_in_each_iteration() {
    for model in models([37, 129]) {
        let trips = 12;
        let file = model.scan(trips);
        let [repeated, unrolled] = [&[][..], &[UNROLLED]].map(|of| figures(&file, of));
        // Counting is an addition for each iteration.
        assert_eq!((repeated.flops, repeated.repeats), (unrolled.flops + trips, 1));
        let ratio = repeated.cycles / unrolled.cycles;
        assert!((0.9..1.25).contains(&ratio), "{ratio}: {repeated:?} {unrolled:?}");
    }
}

/// Code and program do not depend on the number of iterations.
#[test]
fn a_body_exists_once() {
    for stacks in [false, true] {
        let model = LoopModel::product([37, 129]);
        let [few, many] = [2, 10_000].map(|trips| {
            let figures = figures(&model.file(trips, stacks), &[]);
            (figures.programs, figures.compute_sets, figures.repeats, figures.code)
        });
        assert_eq!(few, many, "stacks: {stacks}");
        assert_eq!(few.2, 1);
    }
}

/// A repeat needs copies of each carried tensor, the code of these copies, and nothing else that the
/// unrolled loop does not need. A copy takes code for each tile, and for each message of a state.
#[test]
fn a_repeat_takes_no_more_memory_than_its_iterations() {
    let tiles = 1472;
    for state in STATES.into_iter().take(up_to(3)) {
        let carried = Bytes(4 * state[0] * state[1]);
        for model in models(state) {
            let file = model.file(9, false);
            let [repeated, unrolled] = [&[][..], &[UNROLLED]].map(|of| figures(&file, of));
            let data = |of: &LoopFigures| of.bytes - of.code;
            let both = format!("{state:?}: {repeated:?} {unrolled:?}");
            assert!(data(&repeated) <= data(&unrolled) + 2 * carried, "{both}");
            assert!(repeated.code <= unrolled.code + tiles * Bytes(256) + carried, "{both}");
        }
    }
}

/// A loop in a loop runs in each of its iterations.
#[test]
fn loops_in_loops_do_the_work_of_unrolled_ones() {
    let product = LoopModel::product([37, 64]);
    let mut nodes = product.nodes;
    nodes.push(Node::new("Identity", &["go"], &["on"]));
    let inputs = [
        value_info("number", INT64, &[]),
        value_info("go", BOOL, &[]),
        value_info("x", FLOAT, &[37, 64]),
    ];
    let inner = graph(&nodes, &[], &inputs, &["on", "next"]);
    let turns = Node::new("Loop", &["three", "start", "x"], &["inside"]).named("inner");
    let nodes = vec![
        turns.graph("body", &inner),
        Node::new("Add", &["inside", "bias"], &["next"]).named("add"),
    ];
    let operands = format!("{}; bias w:64; three i64:=3", product.operands);
    let file = LoopModel { nodes, operands, state: [37, 64] }.file(5, true);
    let [repeated, unrolled] = [&[][..], &[UNROLLED]].map(|of| figures(&file, of));
    assert_eq!((repeated.flops, repeated.repeats), (unrolled.flops + 5, 2));
    let ratio = repeated.cycles / unrolled.cycles;
    assert!((0.9..1.25).contains(&ratio), "{ratio}: {repeated:?} {unrolled:?}");
}

/// Two states of these shapes that take each other's values, through a reshape or as they are.
fn swapped_states(shapes: [[i64; 2]; 2]) -> TempDir {
    let [first, second] = shapes;
    let mut nodes = vec![Node::new("Identity", &["go"], &["on"])];
    let mut next = ["b", "a"];
    if first != second {
        nodes.push(Node::new("Reshape", &["b", "shape_a"], &["next_a"]));
        nodes.push(Node::new("Reshape", &["a", "shape_b"], &["next_b"]));
        next = ["next_a", "next_b"];
    }
    let inputs = [
        value_info("number", INT64, &[]),
        value_info("go", BOOL, &[]),
        value_info("a", FLOAT, &first),
        value_info("b", FLOAT, &second),
    ];
    let body = graph(&nodes, &[], &inputs, &["on", next[0], next[1]]);
    let [x, y] = shapes.map(|[rows, columns]| format!("{rows},{columns}"));
    let text = format!(
        "opset 18; x f32:{x}; y f32:{y}; shape_a i64:2={x}; shape_b i64:2={y}; most i64:=9; \
         start bool:=1; out p q"
    );
    let turns = Node::new("Loop", &["most", "start", "x", "y"], &["p", "q"]).named("loop");
    LoopModel::write(&onnx_text::model(&text).node(turns.graph("body", &body)).bytes())
}

/// States that take each other's values are held until both are overwritten, also if a value passes
/// through a view.
#[test]
fn states_that_swap_are_held_whatever_their_shapes() {
    let direct = figures(&swapped_states([[37, 128]; 2]), &[]);
    let reshaped = figures(&swapped_states([[37, 128], [74, 64]]), &[]);
    let data = |of: &LoopFigures| of.bytes - of.code;
    assert_eq!((data(&reshaped), reshaped.cycles), (data(&direct), direct.cycles));
}

/// The backward pass needs the activations of each iteration.
#[test]
fn trained_loops_are_unrolled() {
    let file = LoopModel::product([8, 16]).file(5, false);
    let found = figures(&file, &["model.loss=mse", "model.loss_output=last"]);
    assert_eq!(found.repeats, 0);
}
