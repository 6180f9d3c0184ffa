//! PopART's attributes of single nodes and inputs have the same meaning as in PopART.

use crate::common;
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;
use tilescope_fixtures::onnx_file::{FLOAT, Node, OnnxFileBuilder, value_info, weight};
use tilescope_onnx::{Attribute, AttributeValue, Attributes, OnnxGraph, OnnxNode};
use tilescope_report::units::TileRuns;
use tilescope_report::{MarkFilter, ModelOperation, ProgramKind, Report, TileMemory};
use tilescope_sim::compile;
use tilescope_sim::specification::Spec;
use tilescope_sim::{MOST_RECORDS, ProgramFigures, Simulation};
use tilescope_test_tiers::up_to;

/// A file of `tests/data/onnx`, simulated with changes.
fn spec(name: &str, overrides: &[&str]) -> Spec {
    let path = format!("{}/tests/data/onnx/{name}", env!("CARGO_MANIFEST_DIR"));
    common::spec(&path, overrides)
}

fn changed(mut spec: Spec, change: impl FnOnce(&mut OnnxGraph)) -> Spec {
    let file = spec.model.file.as_mut().expect("imported");
    let mut graph = (*file.graph).clone();
    change(&mut graph);
    file.graph = Arc::new(graph);
    spec
}

/// The spec with attributes added to some nodes.
fn annotated(
    spec: Spec,
    of: impl Fn(usize, &OnnxNode) -> Vec<(&'static str, AttributeValue)>,
) -> Spec {
    changed(spec, |graph| {
        for (at, node) in graph.nodes.iter_mut().enumerate() {
            let own = node.attributes.iter().cloned();
            let added = of(at, node)
                .into_iter()
                .map(|(name, value)| Attribute { name: name.to_owned(), value });
            let list: Vec<Attribute> = own.chain(added).collect();
            node.attributes = Attributes::new(&node.name, list);
        }
    })
}

fn figures(spec: &Spec) -> ProgramFigures {
    Simulation::compile(spec, MOST_RECORDS).expect("compiles").figures()
}

/// The figures that distinguish programs, and the memory of each tile.
fn program(spec: &Spec) -> (ProgramFigures, TileRuns<TileMemory>) {
    let compiled = compile(spec).expect("compiles");
    (figures(spec), compiled.compilation.tile_memory)
}

fn refusal(spec: &Spec) -> String {
    Simulation::compile(spec, MOST_RECORDS).err().expect("it is refused").to_string()
}

fn report(spec: &Spec) -> (Report, TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = common::report_file(spec, directory.path());
    let report = Report::open(&file).expect("opens");
    assert_eq!(report.verify().expect("reads"), []);
    (report, directory)
}

fn operations(spec: &Spec) -> Vec<ModelOperation> {
    report(spec).0.operations().expect("reads").to_vec()
}

fn program_names(report: &Report) -> Vec<String> {
    report.programs().expect("reads").iter().map(|(_, of)| of.name.clone()).collect()
}

const INT: fn(i64) -> AttributeValue = AttributeValue::Int;

/// The stage of each node of the tutorial's network, by its linear layers and convolutions.
fn stage_of(at: usize, nodes: usize) -> i64 {
    (at * 4 / nodes) as i64
}

#[test]
fn stages_share_ipus_in_any_order() {
    let overrides =
        ["target.ipus=2", "model.loss=cross_entropy", "options.gradient_accumulation=8"];
    let base = || spec("guide_mnist.onnx", &overrides);
    let nodes = base().model.file.expect("imported").graph.nodes.len();
    let stages = |leaves_out: Option<usize>| {
        annotated(base(), move |at, _| {
            let stage = stage_of(at, nodes);
            if leaves_out == Some(at) {
                return Vec::new();
            }
            vec![("__pipeline_stage", INT(stage)), ("__ipu_number", INT(stage % 2))]
        })
    };
    for of in operations(&stages(None)) {
        // A stash is where the tensor is needed again, which may be another stage than its own.
        if ["stash", "restore"].contains(&of.kind.as_str()) {
            continue;
        }
        let block = of.block.expect("each is of a stage");
        let stage: u32 = block.trim_start_matches("stage").parse().expect("a number");
        assert_eq!(of.ipu.map(|ipu| ipu.0), Some(stage % 2), "{}", of.name);
    }
    // A node between two of one stage belongs to that stage; between different ones it is unknown.
    let whole = figures(&stages(None));
    assert_eq!(figures(&stages(Some(1))), whole);
    let border = (1..nodes).find(|at| stage_of(*at, nodes) != stage_of(at - 1, nodes));
    let problem = refusal(&stages(border.map(|at| at - 1).filter(|at| *at > 0)));
    assert!(problem.contains("connects stage 0") && problem.contains("and stage 1"), "{problem}");
}

/// Consecutive layers, each with attributes, as a file.
fn annotated_layers(directory: &TempDir, attributes: &[&[(&str, i64)]]) -> String {
    let mut model = OnnxFileBuilder::new(17).input(value_info("x0", FLOAT, &[32, 64]));
    for (at, own) in attributes.iter().enumerate() {
        let [weights, before, after] = [format!("w{at}"), format!("x{at}"), format!("x{}", at + 1)];
        let node =
            Node::new("MatMul", &[&before, &weights], &[&after]).named(&format!("layer{at}"));
        let node = own.iter().fold(node, |node, (name, value)| node.int(name, *value));
        model = model.tensor(weight(&weights, &[64, 64])).node(node);
    }
    let model = model.output(&format!("x{}", attributes.len()));
    let path = directory.path().join("annotated.onnx");
    std::fs::write(&path, model.bytes()).expect("written");
    path.to_string_lossy().into_owned()
}

const STAGE: &str = "__pipeline_stage";
const IPU: &str = "__ipu_number";
const PHASE: &str = "__execution_phase";

/// The block and IPU of each of the layers: gradients are on the IPU of their layer.
fn places(spec: &Spec) -> Vec<(String, u32)> {
    let mut found: BTreeMap<String, (String, u32)> = BTreeMap::new();
    for of in operations(spec).iter().filter(|of| of.name.starts_with("layer") && of.flops > 0) {
        let layer = of.name.split('/').next().unwrap_or_default().to_owned();
        let place = (of.block.clone().expect("a block"), of.ipu.expect("an IPU").0);
        let known = found.entry(layer).or_insert_with(|| place.clone());
        assert_eq!(*known, place, "{}", of.name);
    }
    found.into_values().collect()
}

fn placed(expected: &[(&str, u32)]) -> Vec<(String, u32)> {
    expected.iter().map(|(block, ipu)| ((*block).to_owned(), *ipu)).collect()
}

/// IPUs without stages are virtual graphs: one after the other, in any order along the data.
#[test]
fn ipus_without_stages_may_come_in_any_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |ipus: &[i64]| {
        let own: Vec<[(&str, i64); 1]> = ipus.iter().map(|ipu| [(IPU, *ipu)]).collect();
        let own: Vec<&[(&str, i64)]> = own.iter().map(<[_; 1]>::as_slice).collect();
        annotated_layers(&directory, &own)
    };
    for training in ["model.loss=none", "model.loss=identity"] {
        let there_and_back = common::spec(&file(&[0, 1, 0, 1]), &[training]);
        let expected = [("ipu0", 0), ("ipu1", 1), ("ipu0_2", 0), ("ipu1_2", 1)];
        assert_eq!(places(&there_and_back), placed(&expected));
        // The same as consecutive stages.
        let stages: Vec<[(&str, i64); 2]> =
            [0, 1, 2, 3].map(|stage| [(STAGE, stage), (IPU, stage % 2)]).to_vec();
        let stages: Vec<&[(&str, i64)]> = stages.iter().map(<[_; 2]>::as_slice).collect();
        let staged = annotated_layers(&directory, &stages);
        let sharded = common::spec(&staged, &[training, "options.execution=sharded"]);
        assert_eq!(figures(&there_and_back), figures(&sharded), "{training}");
        let backwards = common::spec(&file(&[2, 1, 1, 0]), &[training]);
        let expected = [("ipu2", 2), ("ipu1", 1), ("ipu1", 1), ("ipu0", 0)];
        assert_eq!(places(&backwards), placed(&expected));
    }
    // A pipeline has a stage for each IPU, in their order.
    let pipelined = ["options.execution=pipelined", "options.device_iterations=4"];
    assert!(figures(&common::spec(&file(&[0, 0, 1, 2]), &pipelined)).cycles.is_some());
    let problem = refusal(&common::spec(&file(&[0, 1, 0, 1]), &pipelined));
    assert!(problem.contains("ipu0_2") && problem.contains("__pipeline_stage"), "{problem}");
    // A node without attributes belongs to its neighbours, if they agree.
    let own: [&[(&str, i64)]; 4] = [&[(IPU, 1)], &[], &[(IPU, 1)], &[(IPU, 0)]];
    let spec = common::spec(&annotated_layers(&directory, &own), &[]);
    assert_eq!(places(&spec), placed(&[("ipu1", 1), ("ipu1", 1), ("ipu1", 1), ("ipu0", 0)]));
    let own: [&[(&str, i64)]; 3] = [&[(IPU, 1)], &[], &[(IPU, 0)]];
    let problem = refusal(&common::spec(&annotated_layers(&directory, &own), &[]));
    assert!(problem.contains("layer1") && problem.contains("connects IPU 1"), "{problem}");
}

/// Phases run one after the other from streaming memory, on the IPU that they name, or else on one
/// of the set given by the parity of their number.
#[test]
fn phases_are_phases_on_their_ipus() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = |own: &[Vec<(&str, i64)>]| {
        let own: Vec<&[(&str, i64)]> = own.iter().map(Vec::as_slice).collect();
        annotated_layers(&directory, &own)
    };
    let phases = |numbers: [i64; 4], ipus: Option<[i64; 4]>| {
        let own: Vec<Vec<(&str, i64)>> = (0..4)
            .map(|at| {
                let ipu = ipus.map(|ipus| (IPU, ipus[at]));
                std::iter::once((PHASE, numbers[at])).chain(ipu).collect()
            })
            .collect();
        file(&own)
    };
    for training in ["model.loss=none", "model.loss=identity"] {
        let expected = [("phase0", 0), ("phase1", 1), ("phase2", 0), ("phase3", 1)];
        let named = common::spec(&phases([0, 1, 2, 3], Some([0, 1, 0, 1])), &[training]);
        assert_eq!(places(&named), placed(&expected));
        assert!(program_names(&report(&named).0).iter().any(|name| name.contains("remote")));
        let by_parity = common::spec(&phases([0, 1, 2, 3], None), &[training]);
        assert_eq!(figures(&by_parity), figures(&named), "{training}");
        assert_eq!(places(&by_parity), placed(&expected));
        let even = common::spec(&phases([0, 0, 2, 2], None), &[training]);
        let expected = [("phase0", 0), ("phase0", 0), ("phase2", 0), ("phase2", 0)];
        assert_eq!(places(&even), placed(&expected));
        let crossed = common::spec(&phases([0, 1, 2, 3], Some([1, 0, 3, 2])), &[training]);
        let expected = [("phase0", 1), ("phase1", 0), ("phase2", 3), ("phase3", 2)];
        assert_eq!(places(&crossed), placed(&expected));
    }
    // The same as stages that run as phases.
    let stages: Vec<Vec<(&str, i64)>> =
        (0..4).map(|stage| vec![(STAGE, stage), (IPU, stage % 2)]).collect();
    let staged = common::spec(&file(&stages), &["options.execution=phased"]);
    let named = common::spec(&phases([0, 1, 2, 3], Some([0, 1, 0, 1])), &[]);
    assert_eq!(figures(&staged), figures(&named));
    let odd = common::refusal(&phases([0, 1, 2, 3], None), &["target.ipus=1"]);
    assert!(odd.contains("target.ipus = 2") && odd.contains("odd IPUs"), "{odd}");
    let two = common::spec(&phases([0, 0, 1, 1], Some([0, 2, 1, 3])), &[]);
    let expected = [("phase0_ipu0", 0), ("phase0_ipu2", 2), ("phase1_ipu1", 1), ("phase1_ipu3", 3)];
    assert_eq!(places(&two), placed(&expected));
    let back = common::refusal(&phases([1, 0, 2, 3], None), &[]);
    assert!(back.contains("layer1") && back.contains("phase 0 reads"), "{back}");
}

/// A product on an IPU of a phase: the result `y` of `x`, with the weights `w`.
fn product(x: &str, w: &str, y: &str, phase: i64, ipu: i64) -> Node {
    Node::new("MatMul", &[x, w], &[y]).named(y).int(PHASE, phase).int(IPU, ipu)
}

/// A file of products of 64 rows of `x`, with these weights.
fn products(directory: &TempDir, weights: &[&str], output: &str, nodes: Vec<Node>) -> String {
    let model = OnnxFileBuilder::new(17).input(value_info("x", FLOAT, &[64, 64]));
    let model = weights.iter().fold(model, |model, name| model.tensor(weight(name, &[64, 64])));
    let model = nodes.into_iter().fold(model, OnnxFileBuilder::node).output(output);
    let path = directory.path().join("products.onnx");
    std::fs::write(&path, model.bytes()).expect("written");
    path.to_string_lossy().into_owned()
}

/// PopTorch's test of two by two IPUs: phases on IPUs 0 and 2, and on 1 and 3. Each phase reads the
/// result of the other IPU of the previous phase, and phase 1 also that of the other IPU in phase
/// 1.
fn two_by_two(directory: &TempDir) -> String {
    let mut nodes = Vec::new();
    for (phase, from, to) in [(0, 'x', 'a'), (1, 'a', 'b'), (1, 'b', 'c'), (2, 'c', 'd')] {
        for side in 0..2 {
            let x = if from == 'x' { "x".to_owned() } else { format!("{from}{}", 1 - side) };
            let [w, y] = ["w", ""].map(|kind| format!("{kind}{to}{side}"));
            nodes.push(product(&x, &w, &y, phase, phase % 2 + 2 * side));
        }
    }
    nodes.push(product("d0", "d1", "e", 3, 1));
    let weights = ["wa0", "wa1", "wb0", "wb1", "wc0", "wc1", "wd0", "wd1"];
    products(directory, &weights, "e", nodes)
}

/// In a phase on several IPUs, each does its own part at the same time, and data between them cross
/// before the phase ends.
#[test]
fn phases_run_on_several_ipus_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = two_by_two(&directory);
    for sets in [
        &["model.loss=none"][..],
        &["model.loss=identity"],
        &["model.loss=identity", "options.gradient_accumulation=3"],
    ] {
        let spec = common::spec(&file, sets);
        assert_eq!((spec.target.ipus, spec.options.device_iterations), (4, 1));
        let (report, _directory) = report(&spec);
        let place = |name: &str| {
            let operations = report.operations().expect("reads");
            let mut of = operations.iter().filter(|of| of.name == name);
            let of = of.next().expect("an operation");
            (of.block.clone().expect("a block"), of.ipu.expect("an IPU").0)
        };
        for (name, block, ipu) in [
            ("a0", "phase0_ipu0", 0),
            ("a1", "phase0_ipu2", 2),
            ("b0", "phase1_ipu1", 1),
            ("b1", "phase1_ipu3", 3),
            ("c0", "phase1_ipu1_2", 1),
            ("c1", "phase1_ipu3_2", 3),
            ("d1", "phase2_ipu2", 2),
            ("e", "phase3", 1),
        ] {
            assert_eq!(place(name), (block.to_owned(), ipu), "{name}");
        }
        let filter = MarkFilter { kind: None, ipu: None, window: None, limit: usize::MAX };
        let marks = report.marks(&filter).expect("reads");
        let cycles = |label: &str| {
            let mark = marks.iter().find(|mark| mark.label == label);
            mark.unwrap_or_else(|| panic!("no {label}")).cycles
        };
        for (one, other) in [
            ("phase0_ipu0 forward", "phase0_ipu2 forward"),
            ("phase1_ipu1 forward", "phase1_ipu3 forward"),
            ("phase1_ipu1_2 forward", "phase1_ipu3_2 forward"),
        ] {
            let (one, other) = (cycles(one), cycles(other));
            assert!(one.start < other.end && other.start < one.end, "{one:?} {other:?}");
        }
        assert!(cycles("phase1_ipu1 forward").end <= cycles("phase1_ipu3_2 forward").start);
        // Weights of all steps of a phase are loaded before it begins.
        let names = program_names(&report);
        assert!(names.iter().any(|name| name.contains("wc0/remoteLoad")), "{names:?}");
    }
    // Consecutive execution takes longer.
    let cycles = |second: (i64, i64), last: (i64, i64)| {
        let nodes = vec![
            product("x", "w0", "a0", 0, 0),
            product("x", "w1", "a1", second.0, second.1),
            product("a0", "a1", "b", last.0, last.1),
        ];
        let file = products(&directory, &["w0", "w1"], "b", nodes);
        figures(&common::spec(&file, &["target.ipus=4"])).cycles.expect("fits")
    };
    assert!(cycles((0, 2), (1, 1)) < cycles((1, 1), (2, 0)));
}

/// Tests the reads of several IPUs of a phase: from the host, of weights and of each other.
#[test]
fn ipus_of_a_phase_read_available_data() {
    let directory = tempfile::tempdir().expect("a directory");
    // An input goes to both IPUs that read it at once, and through the first to later ones.
    let nodes = vec![
        product("x", "w0", "a", 0, 0),
        product("x", "w1", "b", 0, 2),
        product("x", "w2", "c", 1, 1),
        product("b", "c", "d", 1, 1),
        product("a", "d", "e", 2, 0),
    ];
    let file = products(&directory, &["w0", "w1", "w2"], "e", nodes);
    for training in ["model.loss=none", "model.loss=identity"] {
        let (report, _directory) = report(&common::spec(&file, &[training]));
        let names = program_names(&report);
        let copies = names.iter().filter(|name| *name == "copyFromHost").count();
        assert_eq!(copies, 2 * 3, "{names:?}");
        assert!(names.iter().any(|name| name.starts_with("x/inter-ipu-copy")), "{names:?}");
    }
    // The same for virtual graphs without phases, and stages of a pipeline.
    let accumulated = &["model.loss=identity", "options.gradient_accumulation=6"][..];
    for (of, overrides) in [
        (IPU, &[][..]),
        (IPU, &["model.loss=identity"][..]),
        (STAGE, &["options.device_iterations=6"][..]),
        (STAGE, accumulated),
    ] {
        let node = |x: &str, w: &str, y: &str, ipu: i64| {
            Node::new("MatMul", &[x, w], &[y]).named(y).int(of, ipu)
        };
        let nodes = vec![node("x", "w0", "a", 0), node("a", "w1", "b", 1), node("x", "b", "c", 2)];
        let file = products(&directory, &["w0", "w1"], "c", nodes);
        report(&common::spec(&file, overrides));
    }
    // A weight on two IPUs at once is one weight only while it is not trained.
    let nodes = || {
        vec![
            product("x", "w0", "a", 0, 0),
            product("x", "w0", "b", 0, 2),
            product("a", "b", "c", 1, 1),
        ]
    };
    let file = products(&directory, &["w0"], "c", nodes());
    report(&common::spec(&file, &[]));
    let problem = common::refusal(&file, &["model.loss=identity"]);
    for words in ["\"w0\"", "phase0_ipu0", "phase0_ipu2", "one IPU"] {
        assert!(problem.contains(words), "{problem}");
    }
    // A node without an IPU is with its inputs, unless these are on several.
    let mut open = nodes();
    open[2] = Node::new("MatMul", &["a", "b"], &["c"]).named("c").int(PHASE, 0);
    let problem = common::refusal(&products(&directory, &["w0"], "c", open), &[]);
    for words in ["c", "IPU 0 (\"a\")", "IPU 2 (\"b\")", "in phase 0", IPU] {
        assert!(problem.contains(words), "{problem}");
    }
}

fn is_product(node: &OnnxNode) -> bool {
    ["MatMul", "Gemm", "Conv"].contains(&node.op.as_str())
}

/// Planner's choices for the operations of a kind.
fn plans(operations: &[ModelOperation], holds: impl Fn(&ModelOperation) -> bool) -> Vec<String> {
    let of_kind = operations.iter().filter(|of| holds(of));
    of_kind.filter_map(|of| of.plan.clone()).collect()
}

#[test]
fn attributes_set_the_plan_of_one_operation() {
    let plain = operations(&spec("guide_mnist.onnx", &[]));
    let first = plain.iter().find(|of| of.kind == "conv2d").expect("convolutions").name.clone();
    for value in [
        ("__available_memory", AttributeValue::Float(0.01)),
        ("__partials_type", AttributeValue::Text("half".to_owned())),
        ("__partials_type", AttributeValue::Texts(vec!["half".to_owned(); 3])),
    ] {
        let (name, of) = (first.clone(), value.clone());
        let half = ["model.precision=float16"];
        let options: &[&str] = if value.0 == "__partials_type" { &half } else { &[] };
        let plain = operations(&spec("guide_mnist.onnx", options));
        let changed = operations(&annotated(spec("guide_mnist.onnx", options), move |_, node| {
            if node.name == name { vec![of.clone()] } else { Vec::new() }
        }));
        let is_first = |of: &ModelOperation| of.name == first;
        assert_ne!(plans(&changed, is_first), plans(&plain, is_first), "{value:?}");
        let others = |of: &ModelOperation| of.name != first;
        assert_eq!(plans(&changed, others), plans(&plain, others), "{value:?}");
    }
}

/// An attribute on all operations equals the option of the program.
#[test]
fn attributes_on_all_operations_equal_the_option_of_the_program() {
    let cases: [(&str, Vec<(&'static str, AttributeValue)>); 4] = [
        (
            "options.available_memory_proportion=0.002",
            vec![("__available_memory", AttributeValue::Float(f64::from(0.002_f32)))],
        ),
        (
            "options.partials_type=float16",
            vec![("__partials_type", AttributeValue::Text("HALF".to_owned()))],
        ),
        ("options.conv_dithering=true", vec![("__enable_conv_dithering", INT(1))]),
        (
            "options.serialize_matmul=output_channels",
            vec![
                ("__serialize_matmul_mode", AttributeValue::Text("output_channels".to_owned())),
                ("__serialize_matmul_factor", INT(2)),
            ],
        ),
    ];
    for training in ["model.loss=cross_entropy", "model.loss=none"].into_iter().take(up_to(1)) {
        let base = |options: &[&str]| {
            let options = [&[training, "model.precision=float16"], options].concat();
            spec("guide_mnist.onnx", &options)
        };
        let plain = program(&base(&[]));
        for (option, attributes) in &cases {
            let annotated = annotated(base(&[]), |_, node| {
                if is_product(node) { attributes.clone() } else { Vec::new() }
            });
            let found = program(&annotated);
            assert!(found == program(&base(&[option])), "{option}, {training}: {:?}", found.0);
            assert!(found != plain, "{option}, {training}: {:?}", found.0);
        }
    }
}

/// Names of recomputed operations of the backward pass.
fn again(spec: &Spec) -> Vec<String> {
    let (report, _directory) = report(spec);
    let operations = report.operations().expect("reads");
    let again = operations.iter().filter_map(|of| of.name.strip_suffix("/recompute"));
    again.map(str::to_owned).collect()
}

const RECOMPUTE: &str = "__recompute_output_in_backward_pass";

#[test]
fn single_results_are_kept_or_recomputed() {
    let base = |mode: &str| {
        let mode = format!("options.recomputation={mode}");
        spec("guide_mnist.onnx", &["model.loss=cross_entropy", &mode])
    };
    let mark = |spec: Spec, op: &'static str, kind: i64| {
        annotated(
            spec,
            move |_, node| {
                if node.op == op { vec![(RECOMPUTE, INT(kind))] } else { Vec::new() }
            },
        )
    };
    assert_eq!(again(&base("none")), Vec::<String>::new());
    let marked = again(&mark(base("none"), "Relu", 2));
    assert!(!marked.is_empty() && marked.iter().all(|name| name.contains("Relu")), "{marked:?}");
    let all = again(&base("auto"));
    let fewer = again(&mark(base("auto"), "Relu", 1));
    assert!(all.iter().any(|name| name.contains("Relu")), "{all:?}");
    assert!(fewer.iter().all(|name| !name.contains("Relu")), "{fewer:?}");
    assert!(fewer.len() < all.len());
    // A separate node marks the producers of its data.
    let checkpoint = changed(base("auto"), |graph| {
        let relu = graph.nodes.iter().position(|node| node.op == "Relu").expect("a ReLU");
        let mut node = graph.nodes[relu].clone();
        let made = node.outputs[0].expect("a result");
        let mut copy = graph.value(made).clone();
        copy.name = "Checkpoint:0".to_owned();
        let id = tilescope_onnx::ValueId(graph.values.len() as u32);
        graph.values.push(copy);
        for reader in &mut graph.nodes {
            let inputs = reader.inputs.iter_mut();
            inputs.filter(|input| **input == Some(made)).for_each(|input| *input = Some(id));
        }
        node.name = "Checkpoint".to_owned();
        node.op = "Identity".to_owned();
        (node.inputs, node.outputs) = (vec![Some(made)], vec![Some(id)]);
        let attribute = Attribute { name: RECOMPUTE.to_owned(), value: INT(1) };
        node.attributes = Attributes::new("Checkpoint", vec![attribute]);
        graph.nodes.insert(relu + 1, node);
        for (at, node) in graph.nodes.iter().enumerate() {
            for output in node.outputs.iter().flatten() {
                graph.values[output.index()].source = tilescope_onnx::ValueSource::Node(at);
            }
        }
    });
    let kept = again(&checkpoint);
    let relus = |names: &[String]| names.iter().filter(|name| name.contains("Relu")).count();
    assert_eq!(relus(&kept) + 1, relus(&all), "{kept:?}");
}

#[test]
fn single_results_are_stored_in_streaming_memory() {
    let base = || {
        let options =
            ["model.loss=cross_entropy", "target.ipus=2", "options.gradient_accumulation=4"];
        spec("guide_mnist.onnx", &options)
    };
    let location = |storage: i64| {
        annotated(base(), move |_, node| {
            let value = AttributeValue::Ints(vec![storage, 0, 0, 0]);
            if node.op == "Conv" { vec![("__output_tensor_location", value)] } else { Vec::new() }
        })
    };
    let remote = |spec: &Spec| {
        let names = program_names(&report(spec).0);
        names.iter().filter(|name| name.ends_with("/remoteStore")).count()
    };
    assert_eq!(remote(&base()), 0);
    assert!(remote(&location(1)) > 0);
    assert_eq!(figures(&location(0)), figures(&base()));
}

/// The spec with properties of the file for each input.
fn with_inputs(spec: Spec, properties: &[(&str, &str)]) -> Spec {
    changed(spec, |graph| {
        let names: Vec<String> =
            graph.inputs.iter().map(|input| graph.value(*input).name.clone()).collect();
        for (key, value) in properties {
            let of_inputs = names.iter().map(|name| (format!("{key}/{name}"), value.to_string()));
            graph.metadata.extend(of_inputs);
        }
    })
}

#[test]
fn inputs_are_loaded_according_to_their_attributes() {
    let base = |options: &[&str]| {
        let common =
            ["options.num_io_tiles=32", "options.device_iterations=6", "options.output_mode=final"];
        spec("guide_mnist.onnx", &[&common, options].concat())
    };
    let just_in_time = figures(&base(&[]));
    let exchange = |number: &str| with_inputs(base(&[]), &[("__exchange_strategy", number)]);
    assert_eq!(figures(&exchange("0")), just_in_time);
    let overlapped = figures(&exchange("2"));
    assert!(overlapped.cycles < just_in_time.cycles, "{overlapped:?} {just_in_time:?}");
    report(&exchange("2"));
    let on_compute_tiles = with_inputs(base(&[]), &[("__tile_set", "0")]);
    assert_ne!(figures(&on_compute_tiles), just_in_time);
    report(&on_compute_tiles);
    // An explicit opposite takes precedence over the program's option.
    let overlap = base(&["options.overlap_io=loops"]);
    let held_back = with_inputs(overlap.clone(), &[("__exchange_strategy", "0")]);
    assert!(figures(&overlap).cycles < figures(&held_back).cycles);
    let without = with_inputs(spec("guide_mnist.onnx", &[]), &[("__tile_set", "1")]);
    let notes = report(&without).0.notes().expect("reads");
    assert!(notes.iter().any(|note| note.contains("options.num_io_tiles")), "{notes:?}");
}

#[test]
fn ignored_attributes_are_reported() {
    let spec = annotated(spec("guide_mnist.onnx", &[]), |_, node| {
        if is_product(node) {
            vec![("__schedule_priority", AttributeValue::Float(2.0)), ("__tile_set", INT(1))]
        } else {
            Vec::new()
        }
    });
    let (report, _directory) = report(&spec);
    let imported = report.imported_model().expect("an imported model");
    let counts: Vec<u64> = imported.ignored.values().copied().collect();
    assert_eq!(counts, [4, 4], "{:?}", imported.ignored);
    let notes = report.notes().expect("reads");
    assert!(notes.iter().any(|note| note.contains("__tile_set (4)")), "{notes:?}");
}

#[test]
fn attributes_that_popart_refuses_are_refused() {
    let cases = [
        ("__available_memory", AttributeValue::Float(1.5), "from 0 to 1"),
        ("__available_memory", INT(1), "from 0 to 1"),
        ("__partials_type", AttributeValue::Text("quarter".to_owned()), "half or float"),
        ("__serialize_matmul_mode", AttributeValue::Text("rows".to_owned()), "reducing_dim"),
        (RECOMPUTE, INT(7), "from 0 to 3"),
        ("__output_tensor_location", AttributeValue::Ints(vec![9]), "storage 9"),
    ];
    for (name, value, expected) in cases {
        let spec = annotated(spec("guide_mnist.onnx", &[]), |_, node| {
            if is_product(node) { vec![(name, value.clone())] } else { Vec::new() }
        });
        let problem = refusal(&spec);
        assert!(problem.contains(expected) && problem.contains(name), "{problem}");
    }
    let strange = with_inputs(spec("guide_mnist.onnx", &[]), &[("__exchange_strategy", "9")]);
    assert!(refusal(&strange).contains("OverlapLoops"), "{}", refusal(&strange));
}

/// Copies keep libpva's names, for any tiles that do them.
#[test]
fn an_overlapped_input_is_a_stream_copy() {
    let options = ["options.num_io_tiles=32", "options.device_iterations=3"];
    let spec = with_inputs(spec("guide_mnist.onnx", &options), &[("__exchange_strategy", "1")]);
    let (report, _directory) = report(&spec);
    let programs = report.programs().expect("reads");
    assert!(programs.iter().any(|(_, of)| of.kind == ProgramKind::StreamCopyMid));
}
