//! Every operator of the list is built, lowered and, where it has one, differentiated; every pattern
//! is found, and multiplies as much as the nodes it takes the place of.

use super::*;
use crate::graph::{GraphNode, TrainingConfig};
use crate::operators::Optimizer;
use crate::shape::TensorRole;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use tilescope_fixtures::onnx_file::{
    BOOL, FLOAT, INT64, Message, Node, OnnxFileBuilder, floats, ints, value_info, weight,
};
use tilescope_onnx::DimValues;
use tilescope_report::TrainingPass;

/// What a spec says of how a file is imported.
fn options(fuse: FuseChoice) -> ImportOptions {
    ImportOptions {
        path: String::new(),
        digest: String::new(),
        loss: LossChoice::Identity,
        loss_output: String::new(),
        frozen: Vec::new(),
        fuse,
        allow_unknown: false,
        blocks: options::BlockChoice::Auto,
    }
}

fn imported(
    model: &OnnxFileBuilder,
    fuse: FuseChoice,
    training: bool,
) -> Result<ModelGraph, String> {
    let file = OnnxFile::read(Cursor::new(model.bytes())).map_err(|error| error.to_string())?;
    let graph = file.resolve(&DimValues::default()).map_err(|error| error.to_string())?;
    let file = ImportedFile::new("test.onnx", &file, graph);
    let settings = ImportSettings { options: &options(fuse), types: None, training };
    import(&file, &settings).map_err(|error| error.to_string())
}

/// Whether an operator has gradients of its float operands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trains {
    Yes,
    No,
}
use Trains::{No, Yes};

/// A node on weights of these shapes, so that each is trained, and what else it reads.
struct NodeCase {
    op: &'static str,
    opset: i64,
    weights: Vec<Vec<i64>>,
    /// Other operands, behind the weights or, with a number, at that place.
    others: Vec<(usize, Message)>,
    outputs: usize,
    /// An operator that reads the result, and the other operands.
    behind: Option<&'static str>,
    node: Box<dyn Fn(Node) -> Node>,
    trains: Trains,
}

impl NodeCase {
    fn new(op: &'static str, weights: &[&[i64]], trains: Trains) -> Self {
        Self {
            op,
            opset: 20,
            weights: weights.iter().map(|shape| shape.to_vec()).collect(),
            others: Vec::new(),
            outputs: 1,
            behind: None,
            node: Box::new(|node| node),
            trains,
        }
    }

    fn with(self, node: impl Fn(Node) -> Node + 'static) -> Self {
        Self { node: Box::new(node), ..self }
    }

    fn at(mut self, place: usize, tensor: Message) -> Self {
        self.others.push((place, tensor));
        self
    }

    fn opset(self, opset: i64) -> Self {
        Self { opset, ..self }
    }

    fn outputs(self, outputs: usize) -> Self {
        Self { outputs, ..self }
    }

    /// Followed by an operator that reads the result and the other operands.
    fn behind(self, op: &'static str) -> Self {
        Self { behind: Some(op), ..self }
    }

    fn model(&self) -> OnnxFileBuilder {
        let mut model = OnnxFileBuilder::new(self.opset);
        let mut names: BTreeMap<usize, String> = BTreeMap::new();
        for (place, tensor) in &self.others {
            let name = format!("other{place}");
            names.insert(*place, name.clone());
            // A tensor that is an input has its shape in the place of data.
            model = match tensor.0.first() {
                Some(0x0a) => model.input(tensor.clone()),
                _ => model.tensor(tensor.clone()),
            };
        }
        for (number, shape) in self.weights.iter().enumerate() {
            let place = (0..).find(|place| !names.contains_key(place)).expect("a place");
            names.insert(place, format!("weight{number}"));
            model = model.tensor(weight(&format!("weight{number}"), shape));
        }
        let last = names.keys().max().copied().unwrap_or(0);
        let inputs: Vec<&str> =
            (0..=last).map(|place| names.get(&place).map_or("", String::as_str)).collect();
        let inputs = if names.is_empty() { Vec::new() } else { inputs };
        let outputs: Vec<String> = (0..self.outputs).map(|number| format!("y{number}")).collect();
        let outputs: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let node = (self.node)(Node::new(self.op, &inputs, &outputs));
        if let Some(behind) = self.behind {
            let operands: Vec<&str> =
                outputs.iter().chain(&inputs[outputs.len()..]).copied().collect();
            let behind = (self.node)(Node::new(behind, &operands, &["behind"]));
            return model.node(node).node(behind).output("behind");
        }
        outputs.iter().fold(model.node(node), |model, name| model.output(name))
    }
}

/// Whole numbers that the user feeds, or truth values.
fn fed(place: usize, element: i64, dims: &[i64]) -> Message {
    value_info(&format!("other{place}"), element, dims)
}

fn known(place: usize, values: &[i64]) -> Message {
    ints(&format!("other{place}"), &[values.len() as i64], values)
}

fn scalar(place: usize, value: f32) -> Message {
    floats(&format!("other{place}"), &[], &[value])
}

/// Functions of every element.
fn elementwise_cases() -> Vec<NodeCase> {
    let smooth = [
        "Abs",
        "Acos",
        "Acosh",
        "Asin",
        "Asinh",
        "Atan",
        "Atanh",
        "Celu",
        "Clip",
        "Cos",
        "Cosh",
        "Elu",
        "Erf",
        "Exp",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "Identity",
        "LeakyRelu",
        "Log",
        "LogSoftmax",
        "Mish",
        "Neg",
        "Reciprocal",
        "Relu",
        "Selu",
        "Shrink",
        "Sigmoid",
        "Sin",
        "Sinh",
        "Softmax",
        "Softplus",
        "Softsign",
        "Sqrt",
        "Tan",
        "Tanh",
        "ThresholdedRelu",
    ];
    let steps = ["Ceil", "Floor", "Round", "Sign"];
    let shape: &[i64] = &[3, 7, 13];
    let of = |ops: &[&'static str], trains| {
        let case = move |op: &&'static str| NodeCase::new(op, &[shape], trains);
        ops.iter().map(case).collect::<Vec<_>>()
    };
    let two = ["Add", "Div", "Max", "Mean", "Min", "Mul", "Pow", "Sub", "Sum", "PRelu"];
    let compared = ["Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"];
    let logic = ["And", "Or", "Xor"];
    let bits = ["BitwiseAnd", "BitwiseOr", "BitwiseXor"];
    let mut cases = [of(&smooth, Yes), of(&steps, No), of(&["IsInf", "IsNaN"], No)].concat_cases();
    for op in two {
        cases.push(NodeCase::new(op, &[shape, &[7, 1]], Yes));
    }
    cases.push(NodeCase::new("Mod", &[shape], Yes).at(1, scalar(1, 3.0)));
    for op in compared {
        cases.push(NodeCase::new(op, &[shape, &[7, 1]], No));
    }
    for op in logic {
        let case = NodeCase::new(op, &[], No);
        cases.push(case.at(0, fed(0, BOOL, shape)).at(1, fed(1, BOOL, &[13])));
    }
    for op in bits {
        let case = NodeCase::new(op, &[], No);
        cases.push(case.at(0, fed(0, INT64, shape)).at(1, fed(1, INT64, shape)));
    }
    cases.push(NodeCase::new("Not", &[], No).at(0, fed(0, BOOL, shape)));
    cases.push(NodeCase::new("Where", &[shape, &[13]], Yes).at(0, fed(0, BOOL, &[7, 1])));
    cases.push(NodeCase::new("Cast", &[shape], Yes).with(|node| node.int("to", 10)));
    cases.push(NodeCase::new("CastLike", &[shape, &[1]], Yes));
    cases
}

trait ConcatCases {
    fn concat_cases(self) -> Vec<NodeCase>;
}

impl<const N: usize> ConcatCases for [Vec<NodeCase>; N] {
    fn concat_cases(self) -> Vec<NodeCase> {
        self.into_iter().flatten().collect()
    }
}

/// Products, convolutions, pools, norms and layers.
fn layer_cases() -> Vec<NodeCase> {
    let image: &[i64] = &[2, 8, 12, 12];
    let kernel = |node: Node| node.ints("kernel_shape", &[3, 3]).ints("strides", &[2, 2]);
    let norm = |op| NodeCase::new(op, &[image, &[8], &[8]], Yes);
    let recurrent = |op, units: i64, outputs| {
        let case = NodeCase::new(op, &[&[5, 2, 6], &[2, units * 4, 6], &[2, units * 4, 4]], Yes);
        let case = case.outputs(outputs);
        case.with(|node| node.int("hidden_size", 4).text("direction", "bidirectional"))
    };
    let heads: &[i64] = &[2, 4, 6, 8];
    vec![
        NodeCase::new("MatMul", &[&[3, 5, 8], &[8, 6]], Yes),
        NodeCase::new("Gemm", &[&[5, 8], &[6, 8], &[6]], Yes).with(|node| node.int("transB", 1)),
        NodeCase::new("Einsum", &[&[3, 5, 8], &[8, 6]], Yes)
            .with(|node| node.text("equation", "abc,cd->abd")),
        NodeCase::new("Conv", &[image, &[16, 8, 3, 3], &[16]], Yes),
        NodeCase::new("ConvTranspose", &[image, &[8, 4, 2, 2], &[4]], Yes)
            .with(|node| node.ints("strides", &[2, 2])),
        NodeCase::new("MaxPool", &[image], Yes).with(kernel),
        NodeCase::new("AveragePool", &[image], Yes).with(kernel),
        NodeCase::new("GlobalAveragePool", &[image], Yes),
        NodeCase::new("GlobalMaxPool", &[image], Yes),
        norm("BatchNormalization").at(3, weight("other3", &[8])).at(4, weight("other4", &[8])),
        norm("InstanceNormalization"),
        norm("GroupNormalization").opset(21).with(|node| node.int("num_groups", 4)),
        NodeCase::new("LayerNormalization", &[&[3, 7, 16], &[16], &[16]], Yes),
        NodeCase::new("RMSNormalization", &[&[3, 7, 16], &[16]], Yes).opset(23),
        NodeCase::new("SimplifiedLayerNormalization", &[&[3, 7, 16], &[16]], Yes),
        NodeCase::new("MeanVarianceNormalization", &[image], Yes),
        NodeCase::new("LpNormalization", &[&[3, 7, 16]], Yes),
        NodeCase::new("LRN", &[image], Yes).with(|node| node.int("size", 3)),
        NodeCase::new("Dropout", &[image], Yes),
        recurrent("LSTM", 4, 3),
        recurrent("GRU", 3, 2),
        recurrent("RNN", 1, 2),
        NodeCase::new("Attention", &[heads, &[2, 2, 9, 8], &[2, 2, 9, 8]], Yes)
            .opset(23)
            .with(|node| node.int("is_causal", 1).float("softcap", 30.0)),
        NodeCase::new("RotaryEmbedding", &[heads, &[50, 4], &[50, 4]], Yes)
            .opset(23)
            .at(3, fed(3, INT64, &[2, 6])),
    ]
}

/// Parts, copies, indices, reductions and all else.
fn other_cases() -> Vec<NodeCase> {
    let x: &[i64] = &[3, 8, 12];
    let reduced = [
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "ReduceSumSquare",
    ];
    let mut cases: Vec<NodeCase> = Vec::new();
    for op in reduced {
        let case = NodeCase::new(op, &[x], Yes).at(1, known(1, &[1]));
        cases.push(case.with(|node| node.int("keepdims", 0)));
    }
    let axis = |axis: i64| move |node: Node| node.int("axis", axis);
    let image: &[i64] = &[2, 8, 6, 6];
    let indices = fed(1, INT64, &[2, 3]);
    let scale = || scalar(1, 0.1);
    cases.extend([
        NodeCase::new("Concat", &[x, x], Yes).with(axis(1)),
        NodeCase::new("DepthToSpace", &[image], Yes).with(|node| node.int("blocksize", 2)),
        NodeCase::new("SpaceToDepth", &[image], Yes).with(|node| node.int("blocksize", 2)),
        NodeCase::new("Expand", &[&[8, 1]], Yes).at(1, known(1, &[3, 8, 12])),
        NodeCase::new("Flatten", &[x], Yes),
        NodeCase::new("Reshape", &[x], Yes).at(1, known(1, &[24, 12])),
        NodeCase::new("Squeeze", &[&[3, 1, 12]], Yes).at(1, known(1, &[1])),
        NodeCase::new("Unsqueeze", &[x], Yes).at(1, known(1, &[1])),
        NodeCase::new("Transpose", &[x], Yes).with(|node| node.ints("perm", &[2, 0, 1])),
        NodeCase::new("Slice", &[x], Yes)
            .at(1, known(1, &[6]))
            .at(2, known(2, &[0]))
            .at(3, known(3, &[1]))
            .at(4, known(4, &[-2])),
        NodeCase::new("Split", &[x], Yes).outputs(2).with(axis(1)).at(1, known(1, &[2, 6])),
        NodeCase::new("Pad", &[x], Yes).at(1, known(1, &[0, 1, 0, 0, 0, 2])),
        NodeCase::new("Tile", &[x], Yes).at(1, known(1, &[1, 2, 1])),
        NodeCase::new("Trilu", &[x], Yes),
        NodeCase::new("Resize", &[image], Yes)
            .at(2, floats("other2", &[4], &[1.0, 1.0, 2.0, 2.0]))
            .with(|node| node.text("mode", "nearest")),
        NodeCase::new("Upsample", &[image], Yes)
            .opset(9)
            .at(1, floats("other1", &[4], &[1.0, 1.0, 2.0, 2.0]))
            .with(|node| node.text("mode", "nearest")),
        NodeCase::new("CumSum", &[x], Yes).at(1, ints("other1", &[], &[1])),
        NodeCase::new("Gather", &[&[30, 16]], Yes).at(1, indices.clone()),
        NodeCase::new("GatherElements", &[&[4, 3]], Yes).at(1, indices.clone()),
        NodeCase::new("GatherND", &[&[4, 5, 6, 7]], Yes).at(1, indices),
        NodeCase::new("Scatter", &[&[4, 3], &[2, 3]], Yes).opset(10).at(1, fed(1, INT64, &[2, 3])),
        NodeCase::new("ScatterElements", &[&[4, 3], &[2, 3]], Yes).at(1, fed(1, INT64, &[2, 3])),
        NodeCase::new("ScatterND", &[&[4, 5], &[2, 5]], Yes).at(1, fed(1, INT64, &[2, 1])),
        NodeCase::new("ArgMax", &[x], No),
        NodeCase::new("ArgMin", &[x], No),
        NodeCase::new("TopK", &[x], Yes).outputs(2).at(1, known(1, &[2])),
        NodeCase::new("OneHot", &[], No)
            .at(0, fed(0, INT64, &[5]))
            .at(1, ints("other1", &[], &[9]))
            .at(2, floats("other2", &[2], &[0.0, 1.0])),
        NodeCase::new("Bernoulli", &[x], No),
        NodeCase::new("RandomNormalLike", &[x], No),
        NodeCase::new("RandomUniformLike", &[x], No),
        NodeCase::new("RandomNormal", &[], No).with(|node| node.ints("shape", &[3, 8])),
        NodeCase::new("RandomUniform", &[], No).with(|node| node.ints("shape", &[3, 8])),
        NodeCase::new("SoftmaxCrossEntropyLoss", &[&[6, 10]], Yes).at(1, fed(1, INT64, &[6])),
        NodeCase::new("NegativeLogLikelihoodLoss", &[&[6, 10]], Yes).at(1, fed(1, INT64, &[6])),
        NodeCase::new("QuantizeLinear", &[x], No).at(1, scale()),
        NodeCase::new("QuantizeLinear", &[x], Yes).at(1, scale()).behind("DequantizeLinear"),
        NodeCase::new("QuantizeLinear", &[&[6, 10]], Yes)
            .at(1, floats("other1", &[6], &[0.5; 6]))
            .at(2, Message::default().int(1, 6).int(2, 3).bytes(8, "other2").bytes(9, [0_u8; 6]))
            .with(|node| node.int("axis", 0))
            .behind("DequantizeLinear"),
        NodeCase::new("DequantizeLinear", &[], No).at(0, fed(0, 3, x)).at(1, scale()),
    ]);
    cases
}

/// Nodes that only patterns make.
const OF_PATTERNS: [&str; 4] = ["FastGelu", "InvertedMask", "Linear", "Swish"];

/// Whether training updates a weight.
fn is_updated(graph: &ModelGraph, name: &str) -> bool {
    let update = graph.nodes.iter().find(|node| node.name == format!("{name}/sgd"));
    update.is_some_and(|update| {
        let tensor = |at: usize| &graph.tensor(update.inputs[at]).ty.shape;
        tensor(0) == tensor(1)
    })
}

/// What is wrong with a case, if anything.
fn problem(case: &NodeCase) -> Option<String> {
    let model = case.model();
    let forward = match imported(&model, FuseChoice::None, false) {
        Ok(forward) => forward,
        Err(error) => return Some(format!("forward: {error}")),
    };
    crate::operators::check_lowering(&forward, case.op);
    if case.trains == No {
        return None;
    }
    let training =
        TrainingConfig { optimizer: Optimizer::Sgd, accumulate: false, loss_scaling: 1.0 };
    let trained = match imported(&model, FuseChoice::None, true) {
        Ok(graph) => {
            let has_source = |node: &GraphNode| node.source.is_some();
            let mut nodes = graph.nodes.iter().filter(|node| !node.name.starts_with("loss"));
            assert!(nodes.all(has_source), "{}", case.op);
            match graph.train(training) {
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

/// Every operator of the list has a case here, and its gradients have the shapes of its operands.
#[test]
fn every_operator_is_built_and_differentiated() {
    let mut seen: BTreeSet<&str> = OF_PATTERNS.into_iter().collect();
    let mut problems = Vec::new();
    for case in [elementwise_cases(), layer_cases(), other_cases()].concat_cases() {
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

/// A pattern as exporters write it, on the result of a product, and what it becomes.
fn pattern_models() -> Vec<(&'static str, OnnxFileBuilder)> {
    let start = || {
        OnnxFileBuilder::new(13)
            .input(value_info("in", FLOAT, &[2, 5, 16]))
            .tensor(weight("w", &[16, 16]))
            .tensor(weight("scale", &[16]))
            .tensor(weight("shift", &[16]))
            .node(Node::new("MatMul", &["in", "w"], &["x"]))
    };
    let number =
        |model: OnnxFileBuilder, name: &str, value: f32| model.tensor(floats(name, &[], &[value]));
    let two = |model: OnnxFileBuilder, op: &str, a: &str, b: &str, y: &str| {
        model.node(Node::new(op, &[a, b], &[y]))
    };
    let one =
        |model: OnnxFileBuilder, op: &str, x: &str, y: &str| model.node(Node::new(op, &[x], &[y]));
    let mean = |model: OnnxFileBuilder, x: &str, y: &str| {
        model.node(Node::new("ReduceMean", &[x], &[y]).ints("axes", &[-1]))
    };
    let normal = || {
        let model = number(number(start(), "two", 2.0), "epsilon", 1e-5);
        let model = two(mean(model, "x", "mean"), "Sub", "x", "mean", "centred");
        let model = mean(two(model, "Pow", "centred", "two", "square"), "square", "variance");
        let model = one(two(model, "Add", "variance", "epsilon", "more"), "Sqrt", "more", "root");
        two(model, "Div", "centred", "root", "normal")
    };
    let scaled = || two(normal(), "Mul", "normal", "scale", "scaled");
    let root = || {
        let model = number(number(start(), "two", 2.0), "epsilon", 1e-5);
        let model = mean(two(model, "Pow", "x", "two", "square"), "square", "variance");
        one(two(model, "Add", "variance", "epsilon", "more"), "Sqrt", "more", "root")
    };
    let inverted = |op: &str| {
        let model = match op {
            "Div" => two(number(root(), "one", 1.0), "Div", "one", "root", "inverse"),
            op => one(root(), op, "root", "inverse"),
        };
        two(two(model, "Mul", "x", "inverse", "normal"), "Mul", "scale", "normal", "y")
    };
    let by_erf = {
        let model = number(
            number(number(start(), "root2", std::f32::consts::SQRT_2), "one", 1.0),
            "half",
            0.5,
        );
        let model = one(two(model, "Div", "x", "root2", "small"), "Erf", "small", "erf");
        let model = two(two(model, "Add", "erf", "one", "gate"), "Mul", "x", "gate", "gated");
        two(model, "Mul", "gated", "half", "y")
    };
    let by_tanh = {
        let model = number(number(number(start(), "three", 3.0), "cube", 0.044_715), "one", 1.0);
        let model = number(number(model, "root", 0.797_884_6), "half", 0.5);
        let model = two(two(model, "Pow", "x", "three", "x3"), "Mul", "cube", "x3", "small");
        let model = two(two(model, "Add", "x", "small", "sum"), "Mul", "root", "sum", "angle");
        let model = two(one(model, "Tanh", "angle", "tanh"), "Add", "tanh", "one", "gate");
        two(two(model, "Mul", "x", "half", "halved"), "Mul", "halved", "gate", "y")
    };
    let swish = two(one(start(), "Sigmoid", "x", "gate"), "Mul", "x", "gate", "y");
    let hard = two(one(start(), "HardSigmoid", "x", "gate"), "Mul", "gate", "x", "y");
    let clipped = {
        let model = number(number(number(start(), "three", 3.0), "six", 6.0), "zero", 0.0);
        let model = two(model, "Add", "x", "three", "more");
        let model = model.node(Node::new("Clip", &["more", "zero", "six"], &["gate"]));
        two(two(model, "Mul", "x", "gate", "gated"), "Div", "gated", "six", "y")
    };
    let scores = |model: OnnxFileBuilder, mask: &str| {
        let model = model
            .input(value_info("scores", FLOAT, &[2, 4, 5, 5]))
            .tensor(weight("values", &[2, 4, 5, 8]));
        let model = two(model, "Add", "scores", mask, "masked");
        two(one(model, "Softmax", "masked", "shares"), "MatMul", "shares", "values", "y")
    };
    let inverted_mask = {
        let model = number(number(OnnxFileBuilder::new(13), "one", 1.0), "large", -10_000.0);
        let model = model.input(value_info("mask", FLOAT, &[2, 1, 1, 5]));
        scores(two(two(model, "Sub", "one", "mask", "not"), "Mul", "not", "large", "bias"), "bias")
    };
    let expanded_mask = {
        let all = Message::default().int(1, 5).int(1, 1).int(2, BOOL).bytes(8, "all");
        let model = number(number(OnnxFileBuilder::new(13), "none", 0.0), "large", -10_000.0);
        let model = model
            .input(value_info("mask", BOOL, &[2, 1, 1, 5]))
            .tensor(ints("queries", &[4], &[2, 1, 5, 5]))
            .tensor(all.bytes(9, [1_u8; 5]));
        let model = model.node(Node::new("Expand", &["mask", "queries"], &["square"]));
        let model = two(model, "And", "all", "square", "seen");
        scores(model.node(Node::new("Where", &["seen", "none", "large"], &["bias"])), "bias")
    };
    let linear = two(start(), "Add", "shift", "x", "y");
    let turned = || {
        let model = OnnxFileBuilder::new(13).input(value_info("in", FLOAT, &[2, 5, 8]));
        let model = model.tensor(weight("w", &[16, 8])).tensor(weight("shift", &[16]));
        two(one(model, "Transpose", "w", "turned"), "MatMul", "in", "turned", "x")
    };
    let tied = one(turned(), "Relu", "w", "table").output("table");
    vec![
        ("LayerNormalization", two(scaled(), "Add", "scaled", "shift", "y").output("y")),
        ("LayerNormalization", scaled().output("scaled")),
        ("LayerNormalization", normal().output("normal")),
        ("RMSNormalization", inverted("Reciprocal").output("y")),
        ("RMSNormalization", inverted("Div").output("y")),
        ("Gelu", by_erf.output("y")),
        ("FastGelu", by_tanh.output("y")),
        ("Swish", swish.output("y")),
        ("HardSwish", hard.output("y")),
        ("HardSwish", clipped.output("y")),
        ("InvertedMask", inverted_mask.output("y")),
        ("Mask", expanded_mask.output("y")),
        ("Linear", linear.output("y")),
        ("Linear", two(turned(), "Add", "x", "shift", "y").output("y")),
        ("Linear", turned().output("x")),
        ("Linear", tied.output("x")),
    ]
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

/// A mask that somebody reads as it is stays as wide as the file has it.
#[test]
fn a_mask_that_is_read_as_it_is_stays_wide() {
    let model = OnnxFileBuilder::new(13)
        .input(value_info("mask", FLOAT, &[2, 1, 1, 5]))
        .input(value_info("scores", FLOAT, &[2, 4, 5, 5]))
        .tensor(ints("queries", &[4], &[2, 1, 5, 5]))
        .node(Node::new("Expand", &["mask", "queries"], &["square"]))
        .node(Node::new("Add", &["scores", "square"], &["y"]))
        .node(Node::new("Transpose", &["square"], &["z"]).ints("perm", &[0, 1, 3, 2]))
        .output("y")
        .output("z");
    let graph = imported(&model, FuseChoice::Auto, false).expect("imports");
    assert!(!graph.imported.expect("a file").fused.contains_key("Mask"));
    // Two masks that are only wide together stay so.
    let model = OnnxFileBuilder::new(13)
        .input(value_info("rows", FLOAT, &[2, 1, 5, 1]))
        .input(value_info("columns", FLOAT, &[2, 1, 1, 5]))
        .tensor(ints("queries", &[4], &[2, 1, 5, 5]))
        .node(Node::new("Expand", &["rows", "queries"], &["a"]))
        .node(Node::new("Mul", &["a", "columns"], &["both"]))
        .node(Node::new("Softmax", &["both"], &["y"]))
        .output("y");
    let graph = imported(&model, FuseChoice::Auto, false).expect("imports");
    assert_eq!(graph.imported.expect("a file").fused["Mask"], 1);
}

/// Numbers of few bits pass the gradient of what DequantizeLinear makes of them straight to what
/// they were rounded from, masked by their range; weights before others are refused, not silently
/// left as they are.
#[test]
fn the_gradient_passes_straight_through_quantised_numbers() {
    let model = |name: &str| {
        OnnxFileBuilder::new(20)
            .input(value_info("x", FLOAT, &[8, 8]))
            .tensor(weight("w", &[8, 8]))
            .tensor(floats("s", &[], &[0.5]))
            .node(Node::new("MatMul", &["x", "w"], &["made"]))
            .node(Node::new("QuantizeLinear", &[name, "s"], &["few"]).named("/round"))
            .node(Node::new("DequantizeLinear", &["few", "s"], &["y"]).named("/back"))
            .node(Node::new("Add", &["made", "y"], &["z"]))
            .output("z")
    };
    let training =
        TrainingConfig { optimizer: Optimizer::Sgd, accumulate: false, loss_scaling: 1.0 };
    for (of, gradients) in [("made", 1), ("w", 1), ("x", 0)] {
        let trained = imported(&model(of), FuseChoice::Auto, true).unwrap().train(training);
        let trained = trained.unwrap();
        assert!(is_updated(&trained, "w"), "{of}");
        // As torch's fake_quantize: the mask is made forwards, and nothing else of the two nodes
        // has a gradient.
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
        let model = model(of_weights).node(Node::new("Abs", &["few"], &["other"])).output("other");
        let problem = imported(&model, FuseChoice::Auto, true).unwrap_err();
        assert!(problem.contains("/round") && problem.contains("no gradient"), "{problem}");
        imported(&model, FuseChoice::Auto, false).unwrap();
    }
}

/// Exporters write literals as single numbers into the file itself: one that lies outside is a
/// weight.
#[test]
fn a_single_number_outside_the_file_is_a_weight() {
    let model = |shift: Message| {
        OnnxFileBuilder::new(20)
            .input(value_info("x", FLOAT, &[8, 8]))
            .tensor(weight("w", &[8, 8]))
            .tensor(shift)
            .node(Node::new("MatMul", &["x", "w"], &["made"]))
            .node(Node::new("Add", &["made", "shift"], &["y"]))
            .output("y")
    };
    let training =
        TrainingConfig { optimizer: Optimizer::Sgd, accumulate: false, loss_scaling: 1.0 };
    for (shift, trained) in [(weight("shift", &[]), true), (floats("shift", &[], &[0.5]), false)] {
        let graph = imported(&model(shift), FuseChoice::Auto, true).unwrap();
        assert_eq!(is_updated(&graph.train(training).unwrap(), "shift"), trained);
    }
}
