//! Compilation of a spec to a program: everything that is known before it runs.

mod collectives;
mod data_flow;
mod fragment_items;
mod fragment_plan;
mod fragments;
mod host_copies;
mod host_exchange;
mod memory_proportion;
mod operation_table;
mod outline;
mod outline_functions;
mod padded_tokens;
mod phase_split;
mod plan_selection;
mod program_builder;
mod program_plan;
mod program_tables;
mod program_tree;
mod remote_buffers;
mod repeats;
mod replica_rings;
mod replicated_sharding;
mod report_notes;
mod serialized_layers;
mod size_limit;
mod stash;
mod streamed_tensors;
mod tensor_analysis;
mod transfers;
mod variables;
mod wanted_variables;
mod weight_update;

pub(crate) use fragment_items::{FragmentItem, for_each_leaf};
pub(crate) use fragments::{StageFragment, pass_name};
pub(crate) use host_copies::HostStreamCopy;
pub(crate) use host_exchange::{HostExchange, host_exchanges};
pub(crate) use program_tables::{LeafProgramCost, whole_ipu_cost};
pub(crate) use transfers::StageCopyGroup;

use crate::error_bands;
use crate::graph::{GraphError, GraphProblem, ModelGraph, TrainingConfig};
use crate::graph_lowering::GraphLowering;
use crate::model::{ModelSpec, OperationKind};
use crate::operators::{LoweredOperation, LoweringContext, LoweringError};
use crate::poplin::PlanCache;
use crate::schedule::{
    ExecutionSchedule, StagePlacement, SyncGroups, divide_blocks, merge_note, merged_stages,
};
use crate::shape::TensorId;
use crate::specification::{
    DomainSharding, ExecutionStrategy, Proportion, Spec, SpecError, StageSpec, TargetSpec,
};
use crate::targets::{Chip, IpuTarget, SystemCosts, published_power, published_price};
use plan_selection::{PlanSelectionTrial, with_selection};
use program_builder::ProgramBuilder;
use program_plan::ProgramPlan;
use program_tables::ProgramTables;
use program_tree::ProgramParts;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::units::{Bytes, Cycles, ProgramId, TileRuns};
use tilescope_report::{
    ActionCost, Bandwidth, BatchingConfig, CompilationReport, ControlCode, GraphCounts,
    ImportedModel, MachineAction, MachineInterface, ReplicaClasses, RunningCost, RunningCostBasis,
    RunningCostKind, Target, TargetKind, TrainingPass,
};
use variables::PlacedVariables;

/// The reason why a spec cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The spec requests something impossible.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The sizes of the model do not fit together.
    #[error("model: {0}")]
    Graph(#[from] GraphError),
    /// An operation cannot be planned.
    #[error("cannot compile {0}")]
    Lower(#[from] LoweringError),
}

/// A compiled program: the compile-time part of the report, and the data that a run needs.
#[derive(Debug)]
pub struct CompiledProgram {
    /// The compile-time part of the report.
    pub compilation: CompilationReport,
    /// Costs of leaves that run on one IPU.
    pub leaf_costs: BTreeMap<ProgramId, LeafProgramCost>,
    /// Fragments, copies and syncs that a run executes.
    pub parts: ProgramParts,
    /// The groups of IPUs that wait for each other.
    pub sync_groups: SyncGroups,
    pub schedule: ExecutionSchedule,
    pub placement: StagePlacement,
    /// Costs of links, syncs and the host.
    pub system: SystemCosts,
    /// The file that the model was imported from, if any.
    pub imported: Option<Arc<ImportedModel>>,
    /// Notes for the user about the construction of the model.
    pub model_notes: Vec<String>,
}

impl CompiledProgram {
    /// The number of tiles that need more memory than they have.
    pub fn tiles_out_of_memory(&self) -> u64 {
        let tiles = self.compilation.tile_memory.iter();
        tiles
            .filter(|(_, tile)| !tile.overflowed.is_zero())
            .map(|(range, _)| u64::from(range.count()))
            .sum()
    }

    /// Bytes that the fullest tile needs, including gaps.
    pub fn fullest_tile(&self) -> Bytes {
        self.compilation.tile_memory.map(|tile| tile.including_gaps).max()
    }
}

/// A spec with the graph that is compiled, before it is split over IPUs.
pub(crate) struct ProgramSource<'a> {
    /// The spec, with the selection of plans that was found to be faster.
    pub spec: Cow<'a, Spec>,
    pub graph: ModelGraph,
    /// The stages that the spec or the model assigns blocks to, after neighbours are merged. Empty
    /// if they are left open.
    pub stages: Vec<StageSpec>,
    plans: &'static PlanCache,
    trial: Option<PlanSelectionTrial>,
}

impl<'a> ProgramSource<'a> {
    /// Builds the graph of a spec.
    ///
    /// # Errors
    /// Returns an error if the sizes of the model do not fit together, or if the spec requests
    /// something impossible.
    pub(crate) fn new(spec: &'a Spec) -> Result<Self, CompileError> {
        spec.calibrate_process()?;
        let (graph, stages) = build_graph(spec)?;
        // Absurd sizes are refused before the trial below, which plans every operation.
        size_limit::refuse_far_too_large(spec, &graph)?;
        let plans = PlanCache::of_process();
        let trial = PlanSelectionTrial::new(spec, &graph, plans);
        let spec = match trial {
            Some(trial) => Cow::Owned(with_selection(spec, trial.faster())),
            None => Cow::Borrowed(spec),
        };
        Ok(Self { spec, graph, stages, plans, trial })
    }

    /// Returns the placement of blocks in these stages, or in the stages that the spec implies if
    /// there are none.
    ///
    /// # Errors
    /// Returns an error if there are too few IPUs for the stages, or if the accumulation is too
    /// small to fill the pipeline.
    pub(crate) fn placement(&self, stages: &[StageSpec]) -> Result<StagePlacement, SpecError> {
        StagePlacement::new(&self.spec, &self.graph, stages)
    }

    /// Compiles the program with the stages of the source.
    ///
    /// # Errors
    /// Returns the errors of [`Self::placement`] and [`Self::lower`].
    pub(crate) fn compile(&self, extent: ProgramExtent) -> Result<CompiledProgram, CompileError> {
        let placement = self.placement(&self.stages)?;
        Ok(self.lower_for(&placement)?.assemble(placement, extent))
    }

    /// Lowers all operations, independently of their placement.
    ///
    /// # Errors
    /// Returns an error if an operation has no plan.
    pub(crate) fn lower(&self) -> Result<LoweredProgram<'_>, LoweringError> {
        self.lower_with(Vec::new())
    }

    /// Lowers all operations, each for the IPU that it is placed on.
    fn lower_for(&self, placement: &StagePlacement) -> Result<LoweredProgram<'_>, LoweringError> {
        self.lower_with(memory_proportion::of_blocks(&self.spec, &self.graph, placement))
    }

    /// Lowers all operations with the memory proportions of their blocks. The order is that of the
    /// graph, because layouts pass from one operation to the next.
    fn lower_with(
        &self,
        block_proportions: Vec<Proportion>,
    ) -> Result<LoweredProgram<'_>, LoweringError> {
        let mut context = lowering(&self.spec, &self.graph, self.plans);
        context.block_proportions = block_proportions;
        let mut lowering = GraphLowering::new(&self.graph, &mut context);
        lowering.plan_ahead();
        let nodes = self.graph.nodes.iter().map(|node| lowering.lower(node));
        let nodes = nodes.collect::<Result<_, _>>()?;
        // `ProgramPlan::layout` expects a layout of every tensor, also of those that no operation
        // creates.
        for tensor in 0..self.graph.tensors.len() {
            context.lay_out(TensorId(tensor));
        }
        Ok(LoweredProgram { nodes, source: self, context })
    }
}

/// A source with lowered operations, which programs share however they are split.
pub(crate) struct LoweredProgram<'a> {
    pub source: &'a ProgramSource<'a>,
    context: LoweringContext<'a>,
    /// The lowered operation of each node of the graph.
    nodes: Vec<Arc<LoweredOperation>>,
}

/// The parts of a program that are needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramExtent {
    /// The whole program.
    Whole,
    /// Everything except notes.
    Memory,
    /// The parts that a run needs: no memory and no notes.
    Run,
}

impl LoweredProgram<'_> {
    /// Cycles of the forward and backward operations of each block, for one micro-batch.
    pub(crate) fn block_costs(&self) -> Vec<Cycles> {
        let graph = &self.source.graph;
        let chip = &self.source.spec.target.chip;
        let mut costs = vec![Cycles::ZERO; graph.blocks.len()];
        for (node, lowered) in graph.nodes.iter().zip(&self.nodes) {
            // An update runs once for all accumulated micro-batches.
            if node.pass != TrainingPass::Update {
                costs[node.block.0] += graph.runs(node) * lowered.work.cycles(chip);
            }
        }
        costs
    }

    /// Assembles the program with the stages of `placement`.
    ///
    /// # Errors
    /// Returns an error if an operation has no plan.
    pub(crate) fn program(
        &self,
        placement: StagePlacement,
        extent: ProgramExtent,
    ) -> Result<CompiledProgram, LoweringError> {
        // If each IPU has its own memory proportion, other stages have other plans.
        if self.source.spec.memory_proportions.is_empty() {
            return Ok(self.assemble(placement, extent));
        }
        Ok(self.source.lower_for(&placement)?.assemble(placement, extent))
    }

    /// Assembles the program of operations that were lowered for this placement.
    fn assemble(&self, placement: StagePlacement, extent: ProgramExtent) -> CompiledProgram {
        let ProgramSource { spec, graph, plans, trial, .. } = self.source;
        let spec = spec.as_ref();
        let plan = ProgramPlan::new(spec, graph, &self.context, &self.nodes, placement);
        let mut builder = ProgramBuilder::new(&plan);
        let (parts, root) = program_tree::assemble(&mut builder);
        let ProgramBuilder { mut tables, operations, variables, flows, rings, .. } = builder;
        let memory = match extent {
            ProgramExtent::Run => PlacedVariables::default(),
            ProgramExtent::Memory | ProgramExtent::Whole => {
                variables::place_variables(&plan, &mut tables, variables)
            }
        };
        let mut operations = operations.into_operations();
        parts.note_inner_runs(&tables.programs, &mut operations);
        let (replica_rings, of_links) = rings.into_rings();
        let data_flows = flows.into_flows();
        let ProgramPlan { schedule, placement, system, .. } = plan;
        let target = target(spec);
        let chip = &spec.target.chip;
        let counts = GraphCounts {
            compute_sets: tables.compute_sets.len() as u64,
            vertices: count(&tables, |_| 1),
            edges: count(&tables, |edges| edges),
            variables: memory
                .variables
                .iter()
                .map(|variable| u64::from(variable.tiles.tile_count()))
                .sum(),
        };
        let sync_groups = SyncGroups::new(spec.options.sync_pattern, spec.target.ipus);
        let predicts = errors_are_known(spec);
        let compilation = CompilationReport {
            target,
            bandwidths: [bandwidths(&system, chip), of_links].concat(),
            compute_rates: chip.compute_rates(),
            action_costs: action_costs(&system),
            // A single IPU never waits for another.
            sync_groups: (spec.target.ipus > 1).then(|| sync_groups.members()),
            error_bands: if predicts { error_bands::bands(&operations) } else { Vec::new() },
            program_errors: if predicts {
                let replicas = spec.options.replication_factor;
                error_bands::program_errors(spec.host_call_error(), replicas)
            } else {
                Vec::new()
            },
            running_costs: running_costs(spec),
            graph: counts,
            options: spec.effective_values.clone(),
            batching: batching(spec),
            operations,
            programs: tables.programs,
            roots: vec![root],
            compute_sets: tables.compute_sets,
            vertex_types: tables.vertex_types,
            exchanges: tables.exchanges,
            routes: tables.routes,
            control_code: control_code(tables.control_code),
            data_flows,
            variables: memory.variables,
            variable_uses: memory.uses,
            tile_memory: memory.allocation.memory,
            tile_categories: memory.allocation.categories,
            liveness: tables.liveness,
            host: None,
            replica_rings,
            replica_classes: ReplicaClasses::default(),
            notes: Vec::new(),
        };
        let mut compiled = CompiledProgram {
            compilation,
            leaf_costs: tables.costs,
            parts,
            sync_groups,
            schedule,
            placement,
            system,
            imported: graph.imported.clone(),
            model_notes: model_notes(spec, graph),
        };
        // Notes plan padded sizes and tokens, which a run or a check of memory does not need.
        if extent != ProgramExtent::Whole {
            return compiled;
        }
        // Several programs share `self.context`, so notes plan in a context of their own. The cache
        // already has the plans of the program.
        let mut context = lowering(spec, graph, plans);
        context.block_proportions.clone_from(&self.context.block_proportions);
        let lowering = GraphLowering::new(graph, &mut context);
        let worth = report_notes::WorthNoting {
            padded_sizes: lowering.worth_padding(),
            serializes_a_layer: lowering.serializes_a_layer(),
            padded_tokens: padded_tokens::worth_padding_tokens(spec, graph, plans),
        };
        compiled.compilation.notes = report_notes::notes(&compiled, spec, &worth, *trial);
        compiled
    }
}

/// Builds the model's graph, with gradients and updates if the model is trained, and the stages of
/// blocks that the spec writes.
fn build_graph(spec: &Spec) -> Result<(ModelGraph, Vec<StageSpec>), CompileError> {
    let factor = spec.options.batch_serialization_settings.compute_batches();
    // Each part of a serialised batch has its own operations, with the samples of a part.
    let batch_size = spec.model.batch_size / factor;
    let mut graph = (spec.model.definition.build)(&ModelSpec { batch_size, ..spec.model.clone() })?;
    graph.notes.extend(precisions_without_operations(spec, &graph));
    serialized_layers::serialize_named_layers(spec, &mut graph, PlanCache::of_process())?;
    let written = divide_blocks(spec, &mut graph)?;
    if spec.options.tensor_parallel > 1 {
        graph = graph.split_linear_layers(u64::from(spec.options.tensor_parallel), |_| true);
    }
    graph = phase_split::split_phases(spec, graph);
    if factor > 1 {
        graph = graph.serialize_batch(factor)?;
    }
    let stages = if shares_rows(spec, &graph)? {
        // Rows are split over all IPUs, so stages of the spec do not apply.
        graph = graph.split_rows(spec.target.ipus)?;
        Vec::new()
    } else {
        let count = written.len();
        let stages = merged_stages(spec, written)?;
        graph.notes.extend(merge_note(count, stages.len()));
        stages
    };
    if !spec.model.training {
        return Ok((graph.with_joined_views(), stages));
    }
    // Gradients are added after all splits, so that the backward pass has the same parts and
    // halos as the forward pass.
    let graph = graph.train(TrainingConfig {
        optimizer: spec.model.optimizer,
        shares_rate: spec.options.host.framework.is_tensorflow(),
        accumulate: spec.options.gradient_accumulation > 1,
        loss_scaling: spec.model.loss_scaling,
    });
    let graph = graph.map_err(|mut error| {
        if let GraphProblem::NoGradient { of_file, .. } = &mut error.problem {
            *of_file = spec.model.file.is_some();
        }
        error
    });
    Ok((graph?.with_joined_views(), stages))
}

/// Returns notes on precisions of operation kinds that the model does not contain.
fn precisions_without_operations(spec: &Spec, graph: &ModelGraph) -> Vec<String> {
    let own = spec.model.precision;
    let mut notes = Vec::new();
    for kind in OperationKind::ALL {
        let mut kinds = graph.nodes.iter().map(|node| OperationKind::of(node.operator.as_ref()));
        if spec.model.precision_of.of(kind, own) != own && !kinds.any(|of| of == Some(kind)) {
            notes.push(format!(
                "Warning: {} has no effect: the model has no such operation",
                kind.key()
            ));
        }
    }
    notes
}

/// Returns true if the IPUs of a replica share the rows of the model's fields.
///
/// # Errors
/// Returns an error if the spec requires the IPUs to share rows and the model has too few.
fn shares_rows(spec: &Spec, graph: &ModelGraph) -> Result<bool, SpecError> {
    let options = &spec.options;
    let ipus = spec.target.ipus;
    let has_rows = graph.has_rows_for(ipus);
    match options.domain_sharding {
        DomainSharding::None => Ok(false),
        DomainSharding::Rows if has_rows => Ok(true),
        DomainSharding::Rows => {
            let problem =
                format!("the model has no input field or image with at least {ipus} rows");
            Err(spec.refuse("options.domain_sharding", problem))
        }
        // Each of the other settings already determines what the IPUs do, or splits the batch.
        DomainSharding::Auto => Ok(has_rows
            && ipus > 1
            && graph.blocks.len() == 1
            && options.stages.is_empty()
            && graph.stages.is_empty()
            && options.tensor_parallel == 1
            && options.batch_serialization_settings.compute_batches() == 1
            && options.execution != ExecutionStrategy::Phased),
    }
}

/// Returns the notes for the user about how the model was built.
fn model_notes(spec: &Spec, graph: &ModelGraph) -> Vec<String> {
    let io_tiles = report_notes::inputs_without_io_tiles(spec, graph);
    graph.notes.iter().cloned().chain(io_tiles).collect()
}

fn lowering<'a>(
    spec: &'a Spec,
    graph: &'a ModelGraph,
    plans: &'a PlanCache,
) -> LoweringContext<'a> {
    let chip = spec.target.chip;
    // I/O tiles only copy, so plans may not use them.
    let tiles = chip.tiles - spec.options.num_io_tiles;
    let machine = IpuTarget { chip, tiles };
    LoweringContext::new(&graph.tensors, machine, spec.model.training, &spec.options.library, plans)
}

/// Cycles of the forward and backward nodes of each block, for one micro-batch. Blocks that cannot
/// be lowered cost nothing here; the compilation reports them.
fn block_costs(spec: &Spec, graph: &ModelGraph, plans: &PlanCache) -> Vec<Cycles> {
    let mut context = lowering(spec, graph, plans);
    let mut lowering = GraphLowering::new(graph, &mut context);
    lowering.plan_ahead();
    let mut costs = vec![Cycles::ZERO; graph.blocks.len()];
    for node in graph.nodes.iter().filter(|node| node.pass != TrainingPass::Update) {
        if let Ok(lowered) = lowering.lower(node) {
            costs[node.block.0] += graph.runs(node) * lowered.work.cycles(&spec.target.chip);
        }
    }
    costs
}

fn target(spec: &Spec) -> Target {
    let chip = &spec.target.chip;
    Target {
        kind: spec.target.kind,
        name: chip.name.to_string(),
        architecture: chip.architecture.to_string(),
        num_ipus: spec.total_ipus(),
        tiles_per_ipu: chip.tiles,
        io_tiles_per_ipu: spec.options.num_io_tiles,
        bytes_per_tile: chip.bytes_per_tile,
        clock: chip.clock,
        replicas: spec.options.replication_factor,
        ipus_per_replica: spec.target.ipus,
        memory_element_bytes: chip.memory_element_bytes,
        interleaved_offset: chip.interleaved_offset,
        tiles_per_column: chip.tiles_per_column,
        physical_numbers: false,
        changes: [&spec.machine_changes[..], &spec.calibration].concat(),
    }
}

/// Costs of the system around a replica.
fn system_costs(spec: &Spec) -> SystemCosts {
    let target = &spec.target;
    let rates = target.machine.rates();
    let costs = SystemCosts::new(target.system, &rates, target.kind, target.chip.clock);
    // The links close to a torus only if the program fills a rack, so the IPUs in use decide.
    SystemCosts { topology: target.system.topology_of(spec.used_ipus()), ..costs }
}

/// Returns true if the error of predictions is known. The errors measured on real machines do not
/// apply to a machine that was never measured. The errors of the simulator's own constants do not
/// apply to changed constants.
fn errors_are_known(spec: &Spec) -> bool {
    spec.machine_changes.is_empty() && spec.calibration.is_empty()
}

/// Returns the power and price of the machine: the values of the spec, or the published values of
/// the machines that contain the IPUs. No value is published for a machine that does not exist, and
/// an IPU Model is not a machine.
fn running_costs(spec: &Spec) -> Vec<RunningCost> {
    let TargetSpec { chip, kind, power_watts, price_per_hour, currency, .. } = &spec.target;
    let exists = *kind == TargetKind::Ipu && spec.machine_changes.is_empty();
    let ipus = spec.total_ipus();
    let power = match power_watts {
        Some(watts) => {
            vec![given(RunningCostKind::Power, *watts, String::new(), "target.power_watts")]
        }
        None if exists => published_power(chip, ipus, spec.options.num_hosts),
        None => Vec::new(),
    };
    let price = match price_per_hour {
        Some(price) => {
            vec![given(RunningCostKind::Price, *price, currency.code(), "target.price_per_hour")]
        }
        None if exists => published_price(chip, ipus),
        None => Vec::new(),
    };
    [power, price].concat()
}

/// Power or price of the whole machine, from a key of the spec.
fn given(kind: RunningCostKind, each: f64, currency: String, key: &str) -> RunningCost {
    RunningCost {
        kind,
        part: "whole machine".to_owned(),
        count: 1,
        each,
        currency,
        basis: RunningCostBasis::Given,
        source: key.to_owned(),
    }
}

/// The peak bandwidths of the machine.
fn bandwidths(system: &SystemCosts, chip: &Chip) -> Vec<Bandwidth> {
    // Tiles that share a bus receive at the speed of all its lanes together.
    let tile_send = Bytes(chip.exchange_speed.0).as_f64();
    let tile = f64::from(chip.tiles_per_exchange_bus) * tile_send;
    let most = [
        (MachineInterface::Tile, tile),
        (MachineInterface::TileSend, tile_send),
        (MachineInterface::IpuLinks, system.ipu_bytes_per_cycle()),
        (MachineInterface::Host, system.host_bytes_per_cycle),
        (MachineInterface::RemoteBuffer, system.remote_bytes_per_cycle),
    ];
    most.map(|(interface, bytes_per_cycle)| Bandwidth { interface, bytes_per_cycle }).to_vec()
}

/// Costs of the machine's actions that take a constant time.
fn action_costs(system: &SystemCosts) -> Vec<ActionCost> {
    let costs = [
        (MachineAction::ExternalSync, system.external_sync_cycles),
        (MachineAction::StreamBegin, system.stream_begin_cycles),
        (MachineAction::StreamEnd, system.stream_end_cycles),
    ];
    costs.map(|(action, cycles)| ActionCost { action, cycles }).to_vec()
}

/// Batching of a model that works on batches. `None` for a model without inputs.
fn batching(spec: &Spec) -> Option<BatchingConfig> {
    if !spec.model.definition.batched {
        return None;
    }
    Some(BatchingConfig {
        micro_batch: spec.model.batch_size,
        gradient_accumulation: spec.options.gradient_accumulation,
        replicas: u64::from(spec.options.replication_factor),
        device_iterations: spec.options.device_iterations,
    })
}

fn control_code(code: BTreeMap<ProgramId, TileRuns<Bytes>>) -> Vec<ControlCode> {
    code.into_iter().map(|(program, tiles)| ControlCode { program, tiles }).collect()
}

/// Counts the vertices of all compute sets, each with a `weight` that depends on its edges.
fn count(tables: &ProgramTables, weight: fn(u64) -> u64) -> u64 {
    let groups = tables.compute_sets.iter().flat_map(|set| &set.vertices);
    groups.map(|group| group.count.total() * weight(group.edges)).sum()
}
