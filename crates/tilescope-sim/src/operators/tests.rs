//! Tests of all operators on small, odd and large operands: the lowering conserves bytes and
//! elements, and gradients have the shape of their operands.

use super::concat::ConcatViewOp;
use super::*;
use crate::graph::{GraphBuilder, ModelGraph, TrainingConfig};
use crate::graph_lowering::GraphLowering;
use crate::poplar::work::WorkPhaseKind;
use crate::poplin::PlanCache;
use crate::poplin::planner::PoplibsOptions;
use crate::popnn::NonLinearityType;
use crate::popnn::norm::NormKind;
use crate::popnn::pool::PoolingType;
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::popops::reduce::{ReduceOperation, ReduceResultUse};
use crate::shape::{DType, TensorRole};
use crate::targets::{Chip, IpuTarget, MK1, MK2};
use std::borrow::Borrow;
use std::collections::BTreeSet;
use tilescope_report::units::Bytes;

mod joined;
mod shuffle;
mod sweep;

/// An operator, its operands, and a flag: true if it can be differentiated.
struct OperatorCase {
    operator: Arc<dyn Operator>,
    operands: Vec<TensorInfo>,
    has_gradient: bool,
}

/// Sizes of operands: batch, rows and columns.
const SIZES: [[u64; 3]; 3] = [[1, 2, 2], [3, 7, 13], [4, 96, 520]];

struct OperatorCases(Vec<OperatorCase>);

impl OperatorCases {
    fn add(
        &mut self,
        operator: impl Operator + 'static,
        operands: impl IntoIterator<Item = impl Borrow<TensorInfo>>,
        gradient: bool,
    ) {
        let operands = operands.into_iter().map(|ty| ty.borrow().clone()).collect();
        let operator: Arc<dyn Operator> = Arc::new(operator);
        self.0.push(OperatorCase { operator, operands, has_gradient: gradient });
    }

    fn of([batch, rows, columns]: [u64; 3], dtype: DType) -> Vec<OperatorCase> {
        let mut cases = Self(Vec::new());
        let ty = |shape: &[u64]| TensorInfo::new(shape, dtype);
        let int = |shape: &[u64]| TensorInfo::new(shape, DType::Int);
        let truth = |shape: &[u64]| TensorInfo::new(shape, DType::Bool);
        let cube = ty(&[batch, rows, columns]);
        let matrix = ty(&[rows, columns]);
        cases.elementwise(&cube, &truth(&[batch, rows, columns]));
        cases.repeated(&cube);
        cases.add(ReshapeOp { shape: vec![batch * columns, rows] }, [&cube], true);
        cases.add(TransposeOp { permutation: vec![2, 0, 1] }, [&cube], true);
        cases.add(ConcatOp { axis: 1 }, &[cube.clone(), cube.clone()], true);
        let view = ConcatViewOp(ConcatOp { axis: 1 });
        cases.add(view, &[cube.clone(), cube.clone()], false);
        let sizes = vec![1, columns - 1];
        cases.add(SplitOp { axis: 2, sizes }, [&cube], true);
        cases.add(SliceOp { axis: 1, range: 1..rows }, [&cube], true);
        cases.add(TakeOp::stepped(1, 0, 2, rows.div_ceil(2)), [&cube], true);
        cases.add(TakeOp::stepped(2, columns - 1, -1, columns), [&cube], true);
        let indices = (0..2 * rows).map(|row| row / 2).collect();
        cases.add(TakeOp { axis: 1, indices }, [&cube], true);
        let pad = PadOp { before: vec![0, 1, 3], behind: vec![0, 2, 0] };
        cases.add(pad, [&cube], true);
        let repeat = RepeatOp { ty: cube.clone(), axes: vec![0] };
        cases.add(repeat, [&matrix], true);
        for operation in [
            ReduceOperation::Add,
            ReduceOperation::SquareAdd,
            ReduceOperation::Multiply,
            ReduceOperation::Max,
            ReduceOperation::Min,
            ReduceOperation::LogAdd,
        ] {
            cases.add(ReduceOp::new(operation, vec![1]), [&cube], true);
        }
        let logic = ReduceOp::new(ReduceOperation::Or, vec![0, 2]);
        cases.add(logic, [truth(&[batch, rows, columns])], false);
        let update = ReduceResultUse { update: true, scaled: false };
        let sum = ReduceOp { operation: ReduceOperation::Add, axes: vec![0], result: update };
        cases.add(sum, &[cube.clone(), matrix.clone()], false);
        for largest in [true, false] {
            cases.add(ArgExtremaOp { axis: 2, largest }, [&cube], false);
            cases.add(ArgExtremaOp { axis: 1, largest }, [&cube], false);
            cases.add(TopKOp { axis: 2, k: columns.min(5), largest }, [&cube], true);
        }
        cases.add(TopKOp { axis: 1, k: 1, largest: true }, [&cube], true);
        cases.add(OneHotOp { depth: columns, dtype }, [int(&[batch, rows])], false);
        for distribution in
            [RandomDistribution::Uniform, RandomDistribution::Normal, RandomDistribution::Bernoulli]
        {
            cases.add(RandomOp { distribution, ty: cube.clone() }, Vec::<TensorInfo>::new(), false);
        }
        let within = truth(&[batch, rows, columns]);
        cases.add(StraightThroughOp, &[cube.clone(), cube.clone(), within], true);
        cases.add(UnknownOp { outputs: vec![cube.clone()] }, [&matrix], true);
        // Loops are unrolled in training.
        cases.add(RepeatPartOp::State, [&cube], false);
        cases.add(RepeatPartOp::Operand, [&cube], false);
        cases.add(RepeatPartOp::Update, [&cube, &cube], false);
        cases.add(RepeatPartOp::Slice, [&cube, &int(&[])], false);
        cases.add(RepeatPartOp::Write, [&cube, &matrix, &int(&[])], false);
        let lookups = int(&[batch, 5]);
        let found = ty(&[batch, 5, columns]);
        cases.add(EmbeddingOp::default(), &[matrix.clone(), lookups.clone()], true);
        for update in [ScatterUpdate::Replace, ScatterUpdate::Add] {
            let operands = [matrix.clone(), lookups.clone(), found.clone()];
            cases.add(ScatterOp(update), &operands, true);
        }
        cases.add(MultiUpdateAddOp, &[matrix.clone(), lookups, found], false);
        cases.layers([batch, rows, columns], dtype);
        cases.0
    }

    /// Adds functions of every element.
    fn elementwise(&mut self, x: &TensorInfo, condition: &TensorInfo) {
        use UnaryOpType as U;
        let pair = [x.clone(), x.clone()];
        for operation in [
            U::Absolute,
            U::Asin,
            U::Cos,
            U::Erf,
            U::Exp,
            U::ExpMinusOne,
            U::GeluErf,
            U::Inverse,
            U::Log,
            U::LogOnePlus,
            U::Negate,
            U::Relu,
            U::Rsqrt,
            U::Sigmoid,
            U::Sin,
            U::Sqrt,
            U::Square,
            U::Tan,
            U::Tanh,
        ] {
            self.add(UnaryOp(operation), &pair[..1], true);
        }
        for operation in [U::Ceil, U::Floor, U::Round, U::Signum, U::IsFinite, U::IsInf, U::IsNan] {
            self.add(UnaryOp(operation), &pair[..1], false);
        }
        self.add(UnaryOp(U::LogicalNot), std::slice::from_ref(condition), false);
        for function in [
            NonLinearityType::Relu,
            NonLinearityType::Sigmoid,
            NonLinearityType::Tanh,
            NonLinearityType::Gelu,
            NonLinearityType::Swish,
        ] {
            self.add(ActivationOp(function), &pair[..1], true);
        }
        self.add(ScaleOp::by(0.5), &pair[..1], true);
        self.add(DropoutOp, &pair[..1], true);
        self.add(ClampOp::new(0.0, 6.0), &pair[..1], true);
        for operation in DIFFERENTIABLE {
            self.add(ScalarOp::new(operation, 3.0), &pair[..1], true);
        }
        self.add(ScalarOp::new(BinaryOpType::LessThan, 3.0), &pair[..1], false);
        let other = if x.dtype == DType::Half { DType::Float } else { DType::Half };
        self.add(CastOp { to: other }, &pair[..1], true);
        self.add(SoftmaxOp { axis: 2, log: false }, &pair[..1], true);
        self.add(SoftmaxOp { axis: 1, log: true }, &pair[..1], true);
    }

    /// Adds operations on operands of different shapes.
    fn repeated(&mut self, x: &TensorInfo) {
        let [batch, rows, columns] = x.shape[..] else { panic!("three dimensions") };
        let of = |dtype: DType| {
            let ty = |shape: &[u64]| TensorInfo::new(shape, dtype);
            [
                [x.shape.clone(), x.shape.clone()],
                [x.shape.clone(), vec![columns]],
                [x.shape.clone(), vec![]],
                [vec![rows, 1], x.shape.clone()],
                [vec![batch, 1, columns], vec![rows, 1]],
            ]
            .map(|shapes| shapes.map(|shape| ty(&shape)))
        };
        for operation in DIFFERENTIABLE {
            for operands in of(x.dtype) {
                self.add(BinaryOp(operation), &operands, operation != BinaryOpType::Remainder);
            }
        }
        for operands in of(DType::Int) {
            self.add(BinaryOp(BinaryOpType::BitwiseAnd), &operands, false);
        }
        for operation in [BinaryOpType::Equal, BinaryOpType::NotEqual, BinaryOpType::GreaterThan] {
            for operands in of(x.dtype) {
                self.add(BinaryOp(operation), &operands, false);
            }
        }
        for [a, b] in of(x.dtype) {
            let condition = TensorInfo::new(&b.shape[..], DType::Bool);
            self.add(SelectOp, &[condition, a, b], true);
        }
        let scalar = TensorInfo::new([1], x.dtype);
        let condition = TensorInfo::new(&x.shape[..], DType::Bool);
        self.add(SelectOp, &[condition, scalar.clone(), scalar], true);
        let one = TensorInfo::new([], DType::Bool);
        self.add(SelectOp, &[one, x.clone(), x.clone()], true);
    }

    /// Adds layers with weights, poolings and norms.
    fn layers(&mut self, [batch, rows, columns]: [u64; 3], dtype: DType) {
        // The search for plans of large layers takes long, and other tests cover it.
        let rows = rows.min(14);
        let columns = columns.min(40);
        let ty = |shape: &[u64]| TensorInfo::new(shape, dtype);
        let image = ty(&[batch, 4, rows + 2, columns + 2]);
        let channels = ty(&[4]);
        self.add(ConvOp::square(1, 1), &[image.clone(), ty(&[8, 4, 3, 3])], true);
        self.add(PoolOp::max(2, 2, 0), [&image], true);
        let window = PoolWindow { kernel: 3, stride: 2, before: 1, behind: 2 };
        for kind in [PoolingType::Average, PoolingType::Sum] {
            self.add(PoolOp { kind, windows: vec![window; 2] }, [&image], true);
        }
        let affine = [image.clone(), channels.clone(), channels.clone()];
        self.add(NormOp::of_groups(2), &affine, true);
        self.add(NormOp::BATCH, [&affine[..], &affine[1..]].concat(), true);
        self.norms_of_parts(&affine);
        self.add(AddBiasOp { axis: 1 }, &affine[..2], true);
        let x = ty(&[batch * rows, columns]);
        self.add(NormOp::LAYER, &[x.clone(), ty(&[columns]), ty(&[columns])], true);
        self.add(MatMulOp::default(), &[x, ty(&[columns, 8])], true);
        let labels = TensorInfo::new([batch * rows], DType::Int);
        self.add(NllOp, &[ty(&[batch * rows, columns]), labels.clone()], true);
        self.add(CrossEntropyOp, &[ty(&[batch * rows, columns]), labels], true);
        let sequence = ty(&[rows, batch, columns]);
        let weights = |units: u64| [ty(&[columns + 8, units * 8]), ty(&[units, 8])];
        let operands = |units| [&[sequence.clone()][..], &weights(units)].concat();
        self.add(RnnOp::lstm(8, true), operands(4), true);
        self.add(RnnOp::gru(8, true), operands(3), true);
    }

    /// Adds norms of a field that IPUs share by rows: the sums of a part, and the norm from those
    /// of two parts.
    fn norms_of_parts(&mut self, affine: &[TensorInfo; 3]) {
        let running = &affine[1..];
        for (kind, more) in [(NormKind::Batch, running), (NormKind::Group { groups: 2 }, &[])] {
            let over_rows = distributed_norm::over_rows(kind, affine).expect("there are rows");
            let sums = over_rows.sums.infer(&affine[..1]).expect("a field has sums");
            let operands = [affine.as_slice(), more, &sums, &sums].concat();
            for (operator, operands) in
                [(over_rows.sums, affine[..1].to_vec()), (over_rows.results, operands)]
            {
                self.0.push(OperatorCase { operator, operands, has_gradient: true });
            }
        }
    }
}

/// Binary operations with a gradient.
const DIFFERENTIABLE: [BinaryOpType; 9] = [
    BinaryOpType::Add,
    BinaryOpType::Subtract,
    BinaryOpType::Multiply,
    BinaryOpType::Divide,
    BinaryOpType::Maximum,
    BinaryOpType::Minimum,
    BinaryOpType::Power,
    BinaryOpType::Remainder,
    BinaryOpType::Atan2,
];

impl OperatorCase {
    fn label(&self) -> String {
        let operands: Vec<String> = self.operands.iter().map(TensorInfo::to_string).collect();
        format!("{:?} of {}", self.operator, operands.join(", "))
    }

    /// The operator on operands of a role, and a loss that depends on its first result.
    fn graph(&self, role: TensorRole) -> ModelGraph {
        let mut graph = GraphBuilder::new();
        graph.block("block");
        let mut operands = Vec::new();
        for (number, ty) in self.operands.iter().enumerate() {
            let is_number = matches!(ty.dtype, DType::Half | DType::Float);
            let role = if is_number { role } else { TensorRole::Input };
            operands.push(graph.tensor(&format!("operand{number}"), ty.clone(), role));
        }
        let made = graph.add("node", Arc::clone(&self.operator), &operands);
        let made = made.unwrap_or_else(|error| panic!("{}: {error}", self.label()));
        let is_loss = matches!(self.operator.kind(), "nll" | "cross_entropy");
        let number = |ty: &TensorInfo| matches!(ty.dtype, DType::Half | DType::Float);
        if let Some(result) = made.first().filter(|result| number(graph.tensor_type(**result))) {
            let loss = if is_loss {
                *result
            } else {
                let count = graph.tensor_type(*result).elements().0;
                let rows = ReshapeOp { shape: vec![count, 1] };
                let rows = graph.apply("rows", rows, &[*result]).expect("as many elements");
                let labels = TensorInfo::new([count], DType::Int);
                let labels = graph.tensor("labels", labels, TensorRole::Input);
                graph.apply("loss", CrossEntropyOp, &[rows, labels]).expect("labels fit")
            };
            graph.loss(loss);
        }
        graph.finish()
    }

    /// The trained graph of the case.
    fn trained(&self) -> Result<ModelGraph, GraphError> {
        let optimizer = Optimizer::Sgd;
        let training =
            TrainingConfig { optimizer, shares_rate: false, accumulate: true, loss_scaling: 1.0 };
        self.graph(TensorRole::Parameter).train(training)
    }
}

/// Lowers a graph, and checks that exchanges deliver what they send, that results are complete on
/// the tiles, and that temporaries end with their operation. Returns the types of its operators.
pub(crate) fn check_lowering(graph: &ModelGraph, label: &str) -> BTreeSet<String> {
    check_lowering_on(MK2, graph, label)
}

fn check_lowering_on(chip: Chip, graph: &ModelGraph, label: &str) -> BTreeSet<String> {
    let planning = PoplibsOptions::default();
    let plans = PlanCache::new();
    let machine = IpuTarget::all_tiles_of(chip);
    let mut context = LoweringContext::new(&graph.tensors, machine, true, &planning, &plans);
    let mut lowering = GraphLowering::new(graph, &mut context);
    let mut kinds = BTreeSet::new();
    for node in &graph.nodes {
        let place = || format!("{label}, {}: {:?}", node.name, node.operator);
        let lowered = lowering.lower(node).unwrap_or_else(|error| panic!("{}: {error}", place()));
        for (phase, _) in lowered.work.phases() {
            let WorkPhaseKind::Exchange { traffic, .. } = &phase.kind else { continue };
            let received = traffic.map(|tile| tile.bytes_in).total();
            let delivered = traffic.map(|tile| tile.bytes_delivered).total();
            assert_eq!(received, delivered, "{}, {}", place(), phase.name);
            // A multicast delivers more than it sends. No exchange delivers less.
            let sent = traffic.map(|tile| tile.bytes_out).total();
            assert!(sent <= delivered, "{}, {}: {sent:?} sent", place(), phase.name);
        }
        let phases = lowered.work.phases().len();
        let ends = |of: &crate::poplar::work::TemporaryVariable| of.live.end <= phases + 1;
        assert!(lowered.work.temporaries.iter().all(ends), "{}", place());
        for output in &node.outputs {
            let held = lowering.context.layout(*output).map(|layout| layout.elements.total());
            let elements = lowering.context.tensor_type(*output).elements();
            assert_eq!(held, Some(elements), "{}", place());
        }
        let name = format!("{:?}", node.operator);
        kinds.insert(name.split(|of: char| !of.is_alphanumeric()).next().unwrap_or("").to_string());
    }
    kinds
}

/// True if training updates every operand that is a weight, and there is at least one.
fn updates_all(trained: &ModelGraph) -> bool {
    let is_updated = |parameter: TensorId| {
        let name = &trained.tensor(parameter).name;
        let mut nodes = trained.nodes.iter().filter(|node| node.name.starts_with(name));
        nodes.any(|node| node.inputs.contains(&parameter))
    };
    let weights: Vec<TensorId> = trained.with_role(TensorRole::Parameter).collect();
    !weights.is_empty() && weights.into_iter().all(is_updated)
}

#[test]
fn operators_lower_and_differentiate_on_all_shapes() {
    let mut kinds = BTreeSet::new();
    for (sizes, dtype, chip) in [
        (SIZES[0], DType::Half, MK1),
        (SIZES[0], DType::Half, MK2),
        (SIZES[0], DType::Float, MK2),
        (SIZES[1], DType::Half, MK2),
        (SIZES[1], DType::Float, MK2),
        (SIZES[2], DType::Half, MK2),
    ] {
        for case in OperatorCases::of(sizes, dtype) {
            let label = case.label();
            let forward = case.graph(TensorRole::Activation);
            kinds.extend(check_lowering_on(chip, &forward, &label));
            match case.trained() {
                Ok(trained) => {
                    kinds.extend(check_lowering_on(chip, &trained, &label));
                    // Statistics of a batch norm are not weights, and a rounded value only has the
                    // gradient of its source.
                    let kept = ["batch_norm", "straight_through"];
                    let updated = updates_all(&trained) || kept.contains(&case.operator.kind());
                    assert_eq!(updated, case.has_gradient, "{label}");
                }
                Err(error) => {
                    assert!(!case.has_gradient, "{label}: {error}");
                    let is_known = matches!(
                        error.problem,
                        GraphProblem::NoGradient { .. }
                            | GraphProblem::NoLoss
                            | GraphProblem::NothingTrained
                    );
                    assert!(is_known, "{label}: {error}");
                }
            }
        }
    }
    let missing: Vec<String> = operators_of_the_source().difference(&kinds).cloned().collect();
    assert!(missing.is_empty(), "no case for {missing:?}");
}

#[test]
fn lookups_in_parts_take_no_more_memory() {
    let operands =
        vec![TensorInfo::new([1000, 24], DType::Half), TensorInfo::new([5, 4], DType::Int)];
    let case = |serialisation| OperatorCase {
        operator: Arc::new(EmbeddingOp { serialisation, ..EmbeddingOp::default() }),
        operands: operands.clone(),
        has_gradient: true,
    };
    let room = |parts| {
        let graph = case(parts).graph(TensorRole::Activation);
        let planning = PoplibsOptions::default();
        let plans = PlanCache::new();
        let machine = IpuTarget::all_tiles_of(MK2);
        let mut context = LoweringContext::new(&graph.tensors, machine, true, &planning, &plans);
        let node = &graph.nodes[0];
        let work = node.operator.lower(&mut context, &node.operands()).expect("lowers").work;
        work.temporaries.iter().map(|each| each.bytes.total()).sum::<Bytes>()
    };
    assert!(room(4) <= room(1));
    check_lowering(&case(4).trained().expect("has gradients"), "four parts");
    let problem = case(3).operator.infer(&operands).expect_err("20 lookups in 3 parts");
    assert_eq!(problem, ShapeError::Parts { ty: operands[1].clone(), parts: 3 });
}

#[test]
fn operands_of_other_layers_are_rejected() {
    let ty = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
    let of = |units: u64, keeps| OperatorCase {
        operator: Arc::new(RnnOp::lstm(32, keeps)),
        operands: vec![ty(&[5, 4, 24]), ty(&[56, units * 32]), ty(&[units, 32])],
        has_gradient: true,
    };
    let of_gru = of(3, true);
    assert!(of_gru.operator.infer(&of_gru.operands).is_err(), "weights of a GRU");
    let error = of(4, false).trained().expect_err("nothing was kept");
    assert!(matches!(error.problem, GraphProblem::NothingKept), "{error}");
}

/// Operators that other tests lower: those of layers split over IPUs, those of fields, and those
/// that programs define themselves.
const ELSEWHERE: &[&str] =
    &["HaloRowsOp", "MatVecOp", "StencilOp", "StencilRowOp", "TensorParallelOp"];

/// The names of all types that are operators.
fn operators_of_the_source() -> BTreeSet<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/operators");
    let mut names = BTreeSet::new();
    let entries = std::fs::read_dir(folder).expect("the source is there");
    let paths = entries.map(|entry| entry.expect("a file").path());
    for path in paths.filter(|path| path.is_file()) {
        let text = std::fs::read_to_string(path).expect("text");
        let found = text.split("\nimpl Operator for ").skip(1);
        names.extend(found.filter_map(|of| Some(of.split_once(' ')?.0.to_string())));
    }
    names.retain(|name| !ELSEWHERE.contains(&name.as_str()));
    names
}
