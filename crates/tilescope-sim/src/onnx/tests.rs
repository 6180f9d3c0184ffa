//! Tests that build, lower and, where there is a gradient, differentiate every operator of the
//! list. Every pattern is found, and has as many multiplications as the nodes that it replaces.

use super::*;
use crate::graph::{GraphNode, GraphProblem, ImportProblem, TrainingConfig};
use crate::operators::Optimizer;
use crate::shape::TensorRole;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::io::Cursor;
use tilescope_fixtures::onnx_file::OnnxFileBuilder;
use tilescope_fixtures::onnx_text;
use tilescope_onnx::DimValues;
use tilescope_report::TrainingPass;
use tilescope_test_tiers::cases;

/// Import options with the given treatment of patterns.
fn options(fuse: FuseChoice) -> ImportOptions {
    ImportOptions {
        path: String::new(),
        digest: String::new(),
        loss: LossChoice::Identity,
        loss_output: String::new(),
        frozen: Vec::new(),
        fuse,
        allow_unknown: false,
        max_results: 0,
        loops: LoopChoice::Repeat,
        blocks: options::BlockChoice::Auto,
    }
}

fn imported(
    model: &OnnxFileBuilder,
    fuse: FuseChoice,
    training: bool,
) -> Result<ModelGraph, GraphError> {
    let file = OnnxFile::read(Cursor::new(model.bytes())).expect("an ONNX file");
    let graph = file.resolve(&DimValues::default()).expect("fixed sizes");
    let file = ImportedFile::new("test.onnx", &file, &DimValues::default(), graph);
    let settings = ImportSettings { options: &options(fuse), types: None, training };
    import(&file, &settings)
}

/// An operator, a model with it, and a flag: true if all its weights have gradients.
struct OnnxOperatorCase {
    op: &'static str,
    model: OnnxFileBuilder,
    trains: bool,
}

fn operator_cases() -> Vec<OnnxOperatorCase> {
    let mut cases = Vec::new();
    for line in include_str!("operators.txt").lines().filter(|line| !line.starts_with('#')) {
        let [trains, ops, text] = line.splitn(3, " | ").collect::<Vec<_>>()[..] else {
            panic!("three columns: {line}")
        };
        assert!(["yes", "no"].contains(&trains), "{line}");
        for op in ops.split(' ') {
            let model = onnx_text::model(&text.replace('*', op));
            cases.push(OnnxOperatorCase { op, model, trains: trains == "yes" });
        }
    }
    cases
}

/// Nodes that only patterns make.
const OF_PATTERNS: [&str; 4] = ["FastGelu", "InvertedMask", "Linear", "Swish"];

/// True if training updates a weight.
fn is_updated(graph: &ModelGraph, name: &str) -> bool {
    let update = graph.nodes.iter().find(|node| node.name == format!("{name}/sgd"));
    update.is_some_and(|update| {
        let tensor = |at: usize| &graph.tensor(update.inputs[at]).ty.shape;
        tensor(0) == tensor(1)
    })
}

const TRAINING: TrainingConfig = TrainingConfig {
    optimizer: Optimizer::Sgd,
    shares_rate: false,
    accumulate: false,
    loss_scaling: 1.0,
};

/// Checks a case and describes the first problem.
fn problem(case: &OnnxOperatorCase) -> Option<String> {
    let forward = match imported(&case.model, FuseChoice::None, false) {
        Ok(forward) => forward,
        Err(error) => return Some(format!("forward: {error}")),
    };
    crate::operators::check_lowering(&forward, case.op);
    if !case.trains {
        return None;
    }
    let trained = match imported(&case.model, FuseChoice::None, true) {
        Ok(graph) => {
            let has_source = |node: &GraphNode| node.source.is_some();
            let mut nodes = graph.nodes.iter().filter(|node| !node.name.starts_with("loss"));
            assert!(nodes.all(has_source), "{}", case.op);
            match graph.train(TRAINING) {
                Ok(trained) => trained,
                Err(error) => return Some(format!("gradient: {error}")),
            }
        }
        Err(error) => return Some(format!("training: {error}")),
    };
    crate::operators::check_lowering(&trained, case.op);
    let weights: Vec<&str> = trained
        .with_role(TensorRole::Parameter)
        .map(|tensor| trained.tensor(tensor).name.as_str())
        .filter(|name| name.starts_with("weight"))
        .collect();
    let kept = weights.iter().find(|name| !is_updated(&trained, name));
    let kept = kept.map(|name| format!("{name} is not updated"));
    kept.or_else(|| weights.is_empty().then(|| "no weight is trained".to_owned()))
}

/// Every operator of the list has a case, and its gradients have the shapes of its operands.
#[test]
fn every_operator_is_built_and_differentiated() {
    let mut seen: BTreeSet<&str> = OF_PATTERNS.into_iter().collect();
    let mut problems = Vec::new();
    for case in operator_cases() {
        seen.insert(case.op);
        problems.extend(problem(&case).map(|problem| format!("{}: {problem}", case.op)));
    }
    assert!(problems.is_empty(), "{problems:#?}");
    let listed: BTreeSet<&str> = build::names().collect();
    let missing: Vec<&&str> = listed.difference(&seen).collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
    let unknown: Vec<&&str> = seen.difference(&listed).collect();
    assert!(unknown.is_empty(), "no operators: {unknown:?}");
}

/// Every composed operator has a case. Its parts are modelled, have the shapes of the runtime, and
/// have the same number of multiplications.
#[test]
fn every_composed_operator_is_built() {
    let mut seen: BTreeSet<String> = ["Loop", "Scan"].map(str::to_owned).into();
    let given = DimValues { max_results: Some(10), ..DimValues::default() };
    let lines = include_str!("composed.txt").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        let (macs, text) = line.split_once(" | ").expect("multiplications and a model");
        let (text, shapes) = text.rsplit_once(" -> ").expect("shapes");
        let file = OnnxFile::read(Cursor::new(onnx_text::model(text).bytes())).expect("a file");
        let graph = file.resolve(&given).unwrap_or_else(|error| panic!("{text}: {error}"));
        let of_outputs = graph.outputs.iter().map(|output| {
            let dims: Vec<String> =
                graph.value(*output).dims.iter().map(ToString::to_string).collect();
            if dims.is_empty() { "scalar".to_owned() } else { dims.join(",") }
        });
        assert_eq!(of_outputs.collect::<Vec<_>>().join(" "), shapes, "{text}");
        assert_eq!(graph.macs().to_string(), macs, "{text}");
        assert!(refused_nodes(&graph).is_empty(), "{text}: {:?}", refused_nodes(&graph));
        seen.extend(graph.composed.keys().cloned());
        let file = ImportedFile::new("test.onnx", &file, &given, graph);
        let options = options(FuseChoice::None);
        let settings = ImportSettings { options: &options, types: None, training: false };
        let forward = import(&file, &settings).unwrap_or_else(|error| panic!("{text}: {error}"));
        crate::operators::check_lowering(&forward, text);
    }
    let listed: BTreeSet<String> = tilescope_onnx::composed_operators().collect();
    assert_eq!(seen, listed);
}

/// Weights that an exporter wrote as float32 into a bfloat16 model get its type.
#[test]
fn weights_have_the_type_of_their_partners() {
    for text in [
        "opset 22; x bf16:1,3,8,8; c = Conv x w:4,3,3,3 w:4; Relu c",
        "opset 22; x f16:4,8; m = MatMul x w:8,6; Add m w:6",
    ] {
        for training in [false, true] {
            let graph = imported(&onnx_text::model(text), FuseChoice::Auto, training);
            let graph = graph.unwrap_or_else(|error| panic!("{text}: {error}"));
            for tensor in graph.with_role(TensorRole::Parameter) {
                assert_eq!(graph.tensor(tensor).ty.dtype, crate::shape::DType::Half, "{text}");
            }
        }
    }
}

/// Operators that are modelled, but not with these attributes, are reported before the simulation.
#[test]
fn operators_that_the_simulation_rejects_are_not_called_modelled() {
    for (text, name) in [
        ("a = MaxPool f32:1,2,8,8 kernel_shape=2,2 dilations=2,2 @pool; Relu a", "pool"),
        ("a = Resize f32:1,2,4096,6 _ f32:4=1,1,0.001,1 mode=linear antialias=1 @wide", "wide"),
    ] {
        let model = onnx_text::model(&format!("opset 18; {text}"));
        let file = OnnxFile::read(Cursor::new(model.bytes())).expect("a file");
        let graph = file.resolve(&DimValues::default()).expect("fixed sizes");
        let refused = refused_nodes(&graph);
        assert_eq!(refused.len(), 1, "{text}");
        assert!(refused[0].1.contains(name), "{refused:?}");
        let error = imported(&model, FuseChoice::None, false).expect_err("refused");
        assert_eq!(error.to_string(), refused[0].1);
    }
}

/// Patterns as exporters write them, applied to the result of a product, with the operators that
/// replace them.
fn pattern_models() -> Vec<(&'static str, OnnxFileBuilder)> {
    let mut parts = Vec::new();
    let mut models = Vec::new();
    for block in include_str!("patterns.txt").split("\n\n") {
        let (name, body) = block.split_once('\n').expect("a name and a model");
        let text = parts
            .iter()
            .fold(body.to_owned(), |text, (part, body): &(&str, String)| text.replace(part, body));
        if name.starts_with('$') {
            parts.push((name, text))
        } else {
            models.push((name, onnx_text::model(&text)))
        }
    }
    models
}

/// Floating point operations of products.
fn product_flops(graph: &ModelGraph) -> u64 {
    let products = graph.nodes.iter().filter(|node| node.operator.kind().starts_with("matmul"));
    products.map(|node| graph.node_flops(node)).sum()
}

#[test]
fn every_pattern_is_found_and_multiplies_as_much() {
    let mut found: BTreeSet<String> = BTreeSet::new();
    for (becomes, model) in pattern_models() {
        for training in [false, true] {
            let [joined, plain] = [FuseChoice::Auto, FuseChoice::None].map(|fuse| {
                imported(&model, fuse, training)
                    .unwrap_or_else(|error| panic!("{becomes}: {error}"))
            });
            let fused = joined.imported.as_ref().expect("a file").fused.clone();
            assert!(fused.contains_key(becomes), "{becomes}: {fused:?}");
            assert_eq!(product_flops(&joined), product_flops(&plain), "{becomes}");
            crate::operators::check_lowering(&joined, becomes);
            found.extend(fused.into_keys());
        }
    }
    let made: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    for op in OF_PATTERNS {
        assert!(made.contains(op), "{op}");
    }
}

/// A mask that a node reads directly stays as wide as in the file.
#[test]
fn a_mask_that_is_read_directly_stays_wide() {
    let text = "opset 13; mask f32:2,1,1,5; scores f32:2,4,5,5; queries i64:4=2,1,5,5
        square = Expand mask queries; y = Add scores square
        z = Transpose square perm=0,1,3,2; out y z";
    let model = onnx_text::model(text);
    let graph = imported(&model, FuseChoice::Auto, false).expect("imports");
    assert!(!graph.imported.expect("a file").fused.contains_key("Mask"));
    // Two masks that are only wide together stay wide.
    let text = "opset 13; rows f32:2,1,5,1; columns f32:2,1,1,5; queries i64:4=2,1,5,5
        a = Expand rows queries; both = Mul a columns; Softmax both";
    let model = onnx_text::model(text);
    let graph = imported(&model, FuseChoice::Auto, false).expect("imports");
    assert_eq!(graph.imported.expect("a file").fused["Mask"], 1);
}

/// Numbers of few bits pass the gradient of the result of DequantizeLinear straight to the values
/// that they were rounded from, masked by their range. Weights before other readers are rejected,
/// not silently left untrained.
#[test]
fn the_gradient_passes_straight_through_quantised_numbers() {
    let model = |name: &str, more: &str| {
        onnx_text::model(&format!(
            "x f32:8,8; w w:8,8; s f32:=0.5; made = MatMul x w
             few = QuantizeLinear {name} s @/round; y = DequantizeLinear few s @/back
             z = Add made y; {more}"
        ))
    };
    for (of, gradients) in [("made", 1), ("w", 1), ("x", 0)] {
        let trained =
            imported(&model(of, "out z"), FuseChoice::Auto, true).unwrap().train(TRAINING);
        let trained = trained.unwrap();
        assert!(is_updated(&trained, "w"), "{of}");
        // As in torch's fake_quantize, the forward pass makes the mask, and no other part of the
        // two nodes has a gradient.
        let of_nodes = |name: &str, pass: TrainingPass| -> Vec<&str> {
            let nodes = trained.nodes.iter().filter(|node| node.name.starts_with(name));
            let nodes = nodes.filter(|node| node.pass == pass);
            nodes.map(|node| node.operator.kind()).collect()
        };
        assert_eq!(of_nodes("/round", TrainingPass::Backward), [""; 0], "{of}");
        let backward = of_nodes("/back", TrainingPass::Backward);
        assert_eq!(backward, ["cast", "multiply"].repeat(gradients), "{of}");
        let masks = of_nodes("/round/within", TrainingPass::Forward).len();
        assert_eq!(masks, gradients, "{of}");
        crate::operators::check_lowering(&trained, of);
    }
    for of_weights in ["made", "w"] {
        let model = model(of_weights, "other = Abs few; out z other");
        let error = imported(&model, FuseChoice::Auto, true).unwrap_err();
        assert!(error.node.contains("/round"), "{error}");
        let quantized =
            matches!(error.problem, GraphProblem::Import(ImportProblem::QuantizedWeights));
        assert!(quantized, "{error}");
        imported(&model, FuseChoice::Auto, false).unwrap();
    }
}

/// Exporters write literals as single numbers into the file itself. A single number outside the
/// file is a weight.
#[test]
fn a_single_number_outside_the_file_is_a_weight() {
    let model = |shift: &str| {
        onnx_text::model(&format!("x f32:8,8; w w:8,8; shift {shift}; a = MatMul x w; Add a shift"))
    };
    for (shift, trained) in [("w:", true), ("f32:=0.5", false)] {
        let graph = imported(&model(shift), FuseChoice::Auto, true).unwrap();
        assert_eq!(is_updated(&graph.train(TRAINING).unwrap(), "shift"), trained);
    }
}

/// A file is trained only if its loss depends on weights.
#[test]
fn losses_without_weights_are_not_trained() {
    for (text, expected) in [
        ("x f32:4,9; t i64:4; SoftmaxCrossEntropyLoss x t", false),
        ("x f32:4,9; t i64:4; p = LogSoftmax x; NegativeLogLikelihoodLoss p t", false),
        ("x f32:4,5; w w:5,9; t i64:4; a = MatMul x w; SoftmaxCrossEntropyLoss a t", true),
    ] {
        let file = OnnxFile::read(Cursor::new(onnx_text::model(text).bytes())).expect(text);
        let graph = file.resolve(&DimValues::default()).expect(text);
        assert_eq!(has_loss(&graph), expected, "{text}");
    }
}

/// Nodes of a random graph: for each the numbers of its two operands among earlier values, and the
/// module of a list that it belongs to, if any.
fn module_graphs() -> impl Strategy<Value = Vec<(usize, usize, Option<usize>)>> {
    let node = (0usize..100, 0usize..100, proptest::option::weighted(0.7, 0usize..6));
    proptest::collection::vec(node, 4..30)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(40)))]
    /// For any order of modules in the file, and any readers of nodes outside of modules, data only
    /// flows from earlier blocks to later ones.
    #[test]
    fn no_node_reads_from_a_later_block(nodes in module_graphs()) {
        let mut text = "opset 17; v0 f32:16,16".to_owned();
        for (index, (left, right, module)) in nodes.iter().enumerate() {
            let [left, right] = [left, right].map(|operand| operand % (index + 1));
            let scope = module.map_or_else(String::new, |module| format!("/layers/layers.{module}"));
            let made = index + 1;
            text += &format!("; v{made} = MatMul v{left} v{right} @{scope}/n{made}");
        }
        text += "; out";
        for made in 1..=nodes.len() {
            text += &format!(" v{made}");
        }
        let graph = imported(&onnx_text::model(&text), FuseChoice::None, false).expect("imports");
        let mut made_in = vec![None; graph.tensors.len()];
        for node in &graph.nodes {
            for input in &node.inputs {
                prop_assert!(made_in[input.0] <= Some(node.block), "{}: {text}", node.name);
            }
            for output in &node.outputs {
                made_in[output.0] = Some(node.block);
            }
        }
    }
}
