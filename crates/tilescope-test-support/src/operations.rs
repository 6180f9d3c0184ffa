//! Single operations and layers, lowered and costed.

use tilescope_report::units::Cycles;
use tilescope_sim::graph::{GraphBuilder, ModelGraph};
use tilescope_sim::graph_lowering::GraphLowering;
use tilescope_sim::operators::{AddBiasOp, LoweringContext, MatMulOp, Operator};
use tilescope_sim::poplar::work::OperationWork;
use tilescope_sim::poplin::PlanCache;
use tilescope_sim::poplin::planner::PoplibsOptions;
use tilescope_sim::shape::{DType, TensorInfo, TensorRole};
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::targets::{IpuTarget, find_chip};

/// Lowers one operator on operands of these shapes and types, all with one role.
///
/// # Panics
/// If the operands do not fit, or the operator cannot be lowered.
pub fn lowered(
    machine: IpuTarget,
    role: TensorRole,
    operator: impl Operator + 'static,
    operands: &[(impl AsRef<[u64]>, DType)],
    training: bool,
) -> OperationWork {
    let mut builder = GraphBuilder::new();
    builder.block("block");
    let tensors: Vec<_> = operands
        .iter()
        .enumerate()
        .map(|(number, (shape, dtype))| {
            let ty = TensorInfo::new(shape.as_ref().to_vec(), *dtype);
            builder.tensor(&format!("operand{number}"), ty, role)
        })
        .collect();
    builder.apply_all("node", operator, &tensors).expect("operands fit");
    let graph = builder.finish();
    let plans = PlanCache::new();
    let planning = PoplibsOptions::default();
    let mut lowering = LoweringContext::new(&graph.tensors, machine, training, &planning, &plans);
    graph.nodes[0].operator.lower(&mut lowering, &graph.nodes[0].operands()).expect("lowers").work
}

/// Cycles of each node of a small graph on all tiles of a chip, with plans made in advance as for a
/// program.
///
/// # Panics
/// As [`node_works`].
pub fn node_cycles(chip: &str, graph: &ModelGraph) -> Vec<Cycles> {
    let on = find_chip(chip).expect("a chip");
    node_works(chip, graph).iter().map(|work| work.cycles(on)).collect()
}

/// The work of each node of a small graph on all tiles of a chip.
///
/// # Panics
/// If there is no such chip, or a node cannot be lowered.
pub fn node_works(chip: &str, graph: &ModelGraph) -> Vec<OperationWork> {
    let machine = IpuTarget::all_tiles_of(*find_chip(chip).expect("a chip"));
    let (plans, planning) = (PlanCache::new(), PoplibsOptions::default());
    let mut context = LoweringContext::new(&graph.tensors, machine, false, &planning, &plans);
    let mut lowering = GraphLowering::new(graph, &mut context);
    lowering.plan_ahead();
    graph.nodes.iter().map(|node| lowering.lower(node).expect("a plan").work.clone()).collect()
}

/// Cycles of a layer's product and of its bias.
///
/// # Panics
/// As [`node_works`].
pub fn layer_cycles(chip: &str, dtype: DType, [rows, inputs, outputs]: [u64; 3]) -> [Cycles; 2] {
    let mut graph = GraphBuilder::new();
    graph.block("layer");
    let ty = |shape: &[u64]| TensorInfo::new(shape, dtype);
    let x = graph.tensor("x", ty(&[rows, inputs]), TensorRole::Input);
    let weights = graph.tensor("weights", ty(&[inputs, outputs]), TensorRole::Parameter);
    let bias = graph.tensor("bias", ty(&[outputs]), TensorRole::Parameter);
    let y = graph.apply("product", MatMulOp::default(), &[x, weights]).expect("operands fit");
    graph.apply("bias", AddBiasOp { axis: 1 }, &[y, bias]).expect("operands fit");
    let cycles = node_cycles(chip, &graph.finish());
    [cycles[0], cycles[1]]
}

/// The forward pass of one layer of BERT-Base on a Mk2.
///
/// # Panics
/// If the sizes are refused.
pub fn encoder_spec([batch, tokens]: [u64; 2]) -> Spec {
    let text = format!(
        "[model]\nname = \"bert\"\ntraining = false\nprecision = \"float16\"\nlayers = 1\n\
         hidden = 768\nheads = 12\nintermediate = 3072\nvocab_size = 1000\n\
         batch_size = {batch}\nsequence_length = {tokens}\n[target]\nname = \"mk2\"\n"
    );
    Spec::build(&SpecSource::from_text("encoder", &text)).expect("sane spec")
}

/// The graph of [`encoder_spec`].
///
/// # Panics
/// As there.
pub fn encoder(sizes: [u64; 2]) -> ModelGraph {
    let spec = encoder_spec(sizes);
    (spec.model.definition.build)(&spec.model).expect("sane sizes")
}

/// Operations of the forward pass of one layer of BERT-Base on a Mk2, and cycles for each token.
pub fn encoder_operations([batch, tokens]: [u64; 2]) -> Vec<(String, f64)> {
    let graph = encoder([batch, tokens]);
    let per_token = |cycles: Cycles| cycles.as_f64() / (batch * tokens) as f64;
    let costs = node_cycles("mk2", &graph).into_iter().map(per_token);
    graph.nodes.iter().map(|node| node.name.clone()).zip(costs).collect()
}

/// Cycles of all operations.
pub fn layer_cost(operations: &[(String, f64)]) -> f64 {
    operations.iter().map(|(_, cost)| cost).sum()
}

/// An operation with a much higher or lower cost in a layer of the next size.
pub struct OperationCliff {
    pub name: String,
    pub factor: f64,
    /// The index of the size with the higher cost.
    pub dearer: usize,
}

/// Operations of neighbours that differ by 1.5 times, and by a twentieth of the layer.
pub fn operation_cliffs(sizes: [&[(String, f64)]; 2]) -> Vec<OperationCliff> {
    let layer = sizes.map(layer_cost).into_iter().fold(0.0, f64::max);
    let pairs = sizes[0].iter().zip(sizes[1]);
    let cliff = |((name, one), (_, other)): (&(String, f64), &(String, f64))| {
        let (less, more) = (one.min(*other), one.max(*other));
        let is_cliff = more - less >= 0.05 * layer && more >= 1.5 * less;
        is_cliff.then(|| OperationCliff {
            name: name.clone(),
            factor: more / less,
            dearer: usize::from(other > one),
        })
    };
    pairs.filter_map(cliff).collect()
}
