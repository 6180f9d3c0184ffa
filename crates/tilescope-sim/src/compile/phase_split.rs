//! The selection of phases that are split over the IPUs of their set.

use super::system_costs;
use crate::cost_constants::SAVED_FOR_ADDED;
use crate::graph::{GraphNode, ModelGraph, StageAnnotation};
use crate::popops::collective::{self, CollectiveKind, CollectiveRanks};
use crate::shape::{BlockId, DType, TensorId, TensorRole};
use crate::specification::{ExecutionStrategy, Spec, TensorLocation};
use crate::targets::SystemCosts;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{Bytes, Cycles, Elements};

/// Halves that a convolution unit multiplies in a cycle.
const HALF_LANES: u32 = 4;

/// The number of IPUs in a set. `None` unless phases run on sets of several IPUs and the spec
/// writes no stages.
pub(super) fn set_size(spec: &Spec) -> Option<u32> {
    let options = &spec.options;
    let phased = options.execution == ExecutionStrategy::Phased && options.stages.is_empty();
    Some(spec.target.ipus / options.execution_phase_settings.stages)
        .filter(|size| phased && *size > 1)
}

/// Splits the linear layers of the blocks that gain from it over the IPUs of a set.
pub(super) fn split_phases(spec: &Spec, graph: ModelGraph) -> ModelGraph {
    let Some(size) = set_size(spec) else { return graph };
    for stage in &graph.stages {
        // A model that assigns its phases to IPUs has divided the work itself.
        if !matches!(stage.annotation, StageAnnotation::Phase { ipu: None, .. }) {
            return graph;
        }
    }
    let parts = u64::from(size);
    let wanted = blocks_that_gain(spec, &graph, parts);
    graph.split_linear_layers(parts, |block| wanted.contains(&block))
}

/// Returns the blocks that are faster when split. The result of an unsplit block is sent to every
/// IPU of the next block's set, so a block can gain only where the block before it does.
fn blocks_that_gain(spec: &Spec, graph: &ModelGraph, parts: u64) -> BTreeSet<BlockId> {
    let mut gains: BTreeMap<BlockId, f64> = (0..graph.blocks.len())
        .map(|block| (BlockId(block), cycles_gained(spec, graph, BlockId(block), parts)))
        .filter(|(_, gain)| *gain > 0.0)
        .collect();
    let mut received: BTreeMap<BlockId, BTreeSet<TensorId>> = BTreeMap::new();
    for node in &graph.nodes {
        let others = node.inputs.iter().filter(|input| graph.tensor(**input).block != node.block);
        received.entry(node.block).or_default().extend(others);
    }
    let speed = system_costs(spec).ladder_bytes_per_cycle;
    loop {
        // The loss of one block makes its result go to all IPUs of the next set, so the next block
        // can lose in turn.
        let loser = gains.iter().find(|(block, gain)| {
            let tensors = received.get(block).into_iter().flatten();
            let unsplit = tensors.filter(|id| !gains.contains_key(&graph.tensor(**id).block));
            let sent_to_all: Bytes = unsplit.map(|id| (parts - 1) * bytes(graph, *id)).sum();
            **gain <= SAVED_FOR_ADDED.ratio() * sent_to_all.as_f64() / speed
        });
        let Some((loser, _)) = loser else { break };
        let loser = *loser;
        gains.remove(&loser);
    }
    gains.into_keys().collect()
}

/// The cycles that a micro-batch saves when the linear layers of a block are split: the cycles of
/// copying weights from and to streaming memory and of their products, minus the cycles in which
/// activations and gradients cross, and in which every IPU of the set receives the block's inputs.
fn cycles_gained(spec: &Spec, graph: &ModelGraph, block: BlockId, parts: u64) -> f64 {
    let system = system_costs(spec);
    let layers =
        graph.nodes.iter().filter(|node| node.block == block && graph.can_be_split(node, parts));
    let elsewhere = (parts - 1) as f64 / parts as f64;
    let gained = layers.map(|layer| {
        let whole = cycles_of_weights(spec, &system, graph, layer.inputs[1])
            + cycles_of_products(spec, graph, layer);
        let crossing = cycles_of_crossing(spec, &system, graph, layer, parts);
        // Each IPU still loads and multiplies its own part.
        elsewhere * whole - SAVED_FOR_ADDED.ratio() * crossing
    });
    let inputs = graph.with_role(TensorRole::Input).filter(|id| graph.tensor(*id).block == block);
    let handshake = system.stream_begin_cycles + system.stream_end_cycles;
    let copies: Vec<Cycles> = inputs.map(|input| system.host_cycles(bytes(graph, input))).collect();
    // A merged exchange has one handshake for all of its copies.
    let merged = if spec.options.merge_exchange { copies.len().min(1) } else { copies.len() };
    let handshakes = merged as u64 * handshake;
    let added = (parts - 1) * (handshakes + copies.into_iter().sum::<Cycles>());
    gained.sum::<f64>() - SAVED_FOR_ADDED.ratio() * added.as_f64()
}

/// Cycles of the copies of a weight, its accumulator and its optimiser state, divided by the
/// compute batches of a phase, and those of the update, divided by its micro-batches.
fn cycles_of_weights(
    spec: &Spec,
    system: &SystemCosts,
    graph: &ModelGraph,
    weight: TensorId,
) -> f64 {
    let options = &spec.options;
    let training = spec.model.training;
    let ty = &graph.tensor(weight).ty;
    let copy = |location: &TensorLocation, bytes: Bytes, times: f64| {
        let times = if location.is_off_chip(ty.elements()) { times } else { 0.0 };
        times * bytes.as_f64() / system.remote_bytes_per_cycle
    };
    let location = &options.location;
    let own = bytes(graph, weight);
    let compute_batches = options.batch_serialization_settings.compute_batches() as f64;
    if !training {
        return copy(&location.weights, own, 1.0) / compute_batches;
    }
    let accumulates = options.gradient_accumulation > 1;
    let state: Bytes = spec
        .model
        .optimizer
        .states(accumulates)
        .iter()
        .map(|(_, dtype)| ty.elements() * dtype.unwrap_or(ty.dtype).bytes())
        .sum();
    // Load and store.
    let update = copy(&location.weights, own, 2.0) + copy(&location.optimizer_state, state, 2.0);
    let accumulator = if accumulates { copy(&location.accumulators, own, 2.0) } else { 0.0 };
    // Once for the forward pass and once for the backward pass.
    let passes = copy(&location.weights, own, 2.0) + accumulator;
    (passes + update / options.gradient_accumulation as f64) / compute_batches
}

/// Cycles of a layer's products at the peak rate of a chip.
fn cycles_of_products(spec: &Spec, graph: &ModelGraph, layer: &GraphNode) -> f64 {
    let chip = spec.target.chip;
    let lanes = match graph.tensor(layer.inputs[0]).ty.dtype {
        DType::Half => HALF_LANES * chip.conv_units.half_in_half_out,
        _ => chip.conv_units.float_in_float_out,
    };
    // The backward pass has two products for each one of the forward pass.
    let passes = if spec.model.training { 3.0 } else { 1.0 };
    let flops_per_cycle = 2.0 * f64::from(lanes) * f64::from(chip.tiles);
    passes * graph.node_flops(layer) as f64 / flops_per_cycle
}

/// Cycles in which the parts of results cross, and those of gradients, which are added up first.
/// The tiles slice the data that they send, wait for each other, copy, and add.
fn cycles_of_crossing(
    spec: &Spec,
    system: &SystemCosts,
    graph: &ModelGraph,
    layer: &GraphNode,
    parts: u64,
) -> f64 {
    let mut halves = Vec::new();
    if spec.model.training {
        halves.push((CollectiveKind::ReduceScatter, layer.inputs[0]));
        halves.push((CollectiveKind::AllGather, layer.inputs[0]));
    }
    halves.push((CollectiveKind::AllGather, layer.outputs[0]));
    let mut cycles = 0.0;
    for (kind, tensor) in halves {
        let ty = &graph.tensor(tensor).ty;
        let all = bytes(graph, tensor);
        let per_tile = ty.elements().as_f64() / f64::from(spec.target.chip.tiles);
        for round in collective::rounds(system, set_ranks(spec, parts), kind, all) {
            let sent = all.as_f64() * round.share / round.bytes_per_cycle;
            let sliced = Elements::from_f64((per_tile * round.share).ceil());
            // Slicing and adding cost about the same.
            let on_tiles = 2 * collective::slice_cycles(sliced, ty.dtype);
            let started = system.external_sync_cycles + system.collective_step_cycles;
            cycles += round.steps as f64 * (sent + (started + on_tiles).as_f64());
        }
    }
    cycles
}

/// The IPUs of a set. If there are two sets, the IPUs of the other set lie between them.
pub(super) fn set_ranks(spec: &Spec, size: u64) -> CollectiveRanks {
    let ipus = u64::from(spec.options.execution_phase_settings.stages);
    CollectiveRanks { count: size, ipus, groups: 1 }
}

fn bytes(graph: &ModelGraph, tensor: TensorId) -> Bytes {
    let ty = &graph.tensor(tensor).ty;
    ty.elements() * ty.dtype.bytes()
}
