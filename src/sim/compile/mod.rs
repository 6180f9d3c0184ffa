//! From a spec to a compiled program: everything that is known before it runs.

mod fragments;
mod memory;
mod tables;
mod tensors;
mod tree;

pub use fragments::{Fragment, HostCopy, LinkCopy, pass_name};
pub use tables::{Item, LeafCost};

use crate::report::{Batching, Compilation, GraphCounts, Pass, Region, Target};
use crate::sim::graph::{Graph, GraphError, Training};
use crate::sim::lower::code::CodeAccount;
use crate::sim::lower::{LowerError, Lowering, PlanningOptions};
use crate::sim::ops::Optimizer;
use crate::sim::planner::{Machine, PlanCache};
use crate::sim::schedule::{Placement, Schedule, Update};
use crate::sim::spec::{Execution, Spec, SpecError};
use crate::sim::targets::System;
use crate::units::{Bytes, Hertz, ProgramId};
use fragments::Maker;
use std::collections::BTreeMap;
use tables::Tables;
use tensors::{Lifetimes, Tensors};

/// Why a spec could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The spec asks for something impossible.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The model's sizes do not fit together.
    #[error("model: {0}")]
    Graph(#[from] GraphError),
    /// An operation cannot be planned.
    #[error("cannot compile {0}")]
    Lower(#[from] LowerError),
}

/// A compiled program: the compile-time part of the report, and what the run needs.
#[derive(Debug)]
pub struct Compiled {
    /// The compile-time part of the report.
    pub compilation: Compilation,
    /// Costs of leaves that run on one IPU.
    pub costs: BTreeMap<ProgramId, LeafCost>,
    /// What each stage does in each pass.
    pub fragments: Vec<Fragment>,
    /// Copies before the program starts: they tell the device which program to run.
    pub prologue: Prologue,
    /// Copies from the host.
    pub host_inputs: Vec<HostCopy>,
    /// Copies to the host.
    pub host_outputs: Vec<HostCopy>,
    /// Copies between IPUs.
    pub link_copies: Vec<LinkCopy>,
    /// When everything happens.
    pub schedule: Schedule,
    /// Where blocks run.
    pub placement: Placement,
    /// Links, sync and host.
    pub system: System,
}

/// What every run begins with.
#[derive(Debug)]
pub struct Prologue {
    /// Two control copies.
    pub copies: Vec<HostCopy>,
    /// The exchange that tells all tiles which program was chosen.
    pub broadcast: Vec<Item>,
}

impl Compiled {
    /// What a stage does in a pass.
    pub fn fragment(&self, stage: usize, pass: Pass) -> Option<&Fragment> {
        self.fragments.iter().find(|fragment| fragment.stage == stage && fragment.pass == pass)
    }

    /// Tiles that need more memory than they have.
    pub fn tiles_out_of_memory(&self) -> u64 {
        let tiles = self.compilation.tile_memory.iter();
        tiles
            .filter(|(_, tile)| tile.overflowed > 0)
            .map(|(range, _)| u64::from(range.count()))
            .sum()
    }
}

/// Compiles a spec.
///
/// # Errors
/// [`CompileError`]; not fitting in memory is not one of them: see
/// [`Compiled::tiles_out_of_memory`].
pub fn compile(spec: &Spec) -> Result<Compiled, CompileError> {
    let graph = build_graph(spec)?;
    let placement = Placement::new(spec, &graph)?;
    let schedule = Schedule::new(&spec.options, placement.stages.len(), spec.model.training);
    let depth = stash_depth(spec, &schedule);
    let stages = placement.stages.len();
    let tensors = Tensors::new(&graph, &placement, |stage| depth(stages, stage));
    let target = target(spec);
    let chip = spec.target.chip;
    let tiles = target.tiles_per_replica();
    let machine = Machine { chip: *chip, tiles: u64::from(target.compute_tiles_per_ipu()) };
    let plans = PlanCache::new();
    let planning = PlanningOptions {
        available_memory_proportion: spec.options.available_memory_proportion,
        partials_type: spec.options.partials_type,
    };
    let mut maker = Maker {
        graph: &graph,
        placement: &placement,
        tensors: &tensors,
        lowering: Lowering::new(&graph, machine, spec.model.training, planning, &plans),
        tables: Tables::new(
            spec.target.kind,
            chip.tiles,
            CodeAccount::new(chip, spec.target.kind, tiles as usize),
        ),
        works: Vec::new(),
        lifetimes: Lifetimes::default(),
        extras: Vec::new(),
        operations: Vec::new(),
        makers: BTreeMap::new(),
        stash_depth: depth,
    };
    let parts = tree::assemble(&mut maker, &schedule, spec)?;
    let memory = memory::place(&mut maker, chip, tiles);
    let Maker { tables, operations, .. } = maker;
    let counts = GraphCounts {
        compute_sets: tables.compute_sets.len() as u64,
        vertices: count(&tables, |_| 1),
        edges: count(&tables, |edges| edges),
        variables: memory.variables.iter().map(|variable| variable.tiles.tile_count()).sum(),
    };
    let compilation = Compilation {
        target,
        graph: counts,
        options: spec.effective.clone(),
        batching: batching(spec),
        operations,
        programs: tables.programs,
        roots: parts.roots,
        compute_sets: tables.compute_sets,
        vertex_types: tables.vertex_types,
        exchanges: tables.exchanges,
        routes: tables.routes,
        variables: memory.variables,
        tile_memory: memory.allocation.memory,
        tile_categories: memory.allocation.categories,
        liveness: tables.liveness,
        notes: Vec::new(),
    };
    let mut compiled = Compiled {
        compilation,
        costs: tables.costs,
        fragments: parts.fragments,
        prologue: parts.prologue,
        host_inputs: parts.host_inputs,
        host_outputs: parts.host_outputs,
        link_copies: parts.link_copies,
        schedule,
        placement,
        system: System::new(chip, spec.target.kind, spec.target.ipus),
    };
    compiled.compilation.notes = notes(&compiled);
    Ok(compiled)
}

/// The model's graph, with gradients and update where it is trained.
fn build_graph(spec: &Spec) -> Result<Graph, CompileError> {
    let graph = (spec.model.definition.build)(&spec.model)?;
    if !spec.model.training {
        return Ok(graph);
    }
    let optimizer = Optimizer::find(&spec.model.optimizer).unwrap_or_else(|| {
        panic!("KEYS lists optimiser {}, Optimizer does not", spec.model.optimizer)
    });
    Ok(graph.train(Training {
        optimizer,
        accumulate: spec.options.gradient_accumulation > 1,
        loss_scaling: spec.model.loss_scaling,
    })?)
}

/// Micro-batches of a stage in flight: PopART stashes `2 (S - 1 - s) + 1` in a training pipeline.
fn stash_depth(spec: &Spec, schedule: &Schedule) -> fn(usize, usize) -> u64 {
    let pipelined = spec.options.execution == Execution::Pipelined;
    if pipelined && schedule.update != Update::Never {
        |stages, stage| 2 * (stages - 1 - stage) as u64 + 1
    } else {
        |_, _| 1
    }
}

fn target(spec: &Spec) -> Target {
    let chip = spec.target.chip;
    Target {
        kind: spec.target.kind,
        name: chip.name.to_string(),
        architecture: chip.architecture.to_string(),
        num_ipus: spec.target.ipus * spec.options.replication_factor,
        tiles_per_ipu: chip.tiles,
        io_tiles_per_ipu: spec.options.num_io_tiles,
        bytes_per_tile: Bytes(chip.bytes_per_tile),
        clock: Hertz(chip.clock_hz),
        replicas: spec.options.replication_factor,
        ipus_per_replica: spec.target.ipus,
        memory_element_bytes: Bytes(chip.memory_element_bytes),
        interleaved_offset: Bytes(chip.interleaved_offset),
        tiles_per_column: chip.tiles_per_column,
    }
}

/// Batching of a model that works on batches; a model without inputs has none.
fn batching(spec: &Spec) -> Option<Batching> {
    spec.model.definition.batched.then_some(Batching {
        micro_batch: spec.model.batch_size,
        gradient_accumulation: spec.options.gradient_accumulation,
        replicas: u64::from(spec.options.replication_factor),
        device_iterations: spec.options.device_iterations,
    })
}

/// Vertices of all compute sets, each counted as `weight` of its edges.
fn count(tables: &Tables, weight: fn(u64) -> u64) -> u64 {
    let groups = tables.compute_sets.iter().flat_map(|set| &set.vertices);
    groups.map(|group| group.count.total() * weight(group.edges)).sum()
}

/// What the reader should know.
fn notes(compiled: &Compiled) -> Vec<String> {
    let mut notes = Vec::new();
    let over = compiled.tiles_out_of_memory();
    if over > 0 {
        let overflowed: u64 = compiled
            .compilation
            .tile_categories
            .iter()
            .map(|(range, parts)| {
                let bytes = parts.iter().filter(|part| part.region == Region::Overflowed);
                u64::from(range.count()) * bytes.map(|part| part.bytes).sum::<u64>()
            })
            .sum();
        notes.push(format!(
            "Out of memory: {over} tiles need more than they have, {} in all; the program was compiled but not run",
            Bytes(overflowed)
        ));
    }
    if compiled.schedule.update == Update::PerMicroBatch {
        notes.push(
            "Weights are stale: without gradient accumulation a pipeline updates its weights while \
             other micro-batches are in flight; set options.gradient_accumulation"
                .to_string(),
        );
    }
    notes
}
