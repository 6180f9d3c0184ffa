//! The program tree: control programs, the functions they call, and the loops around them.

use super::ProgramPrologue;
use super::fragments::{ProgramBuilder, StageFragment, UnplacedVariable, program_nodes};
use super::program_tables::FragmentItem;
use super::transfers::{HostStreamCopy, StageCopyGroup, external_sync, stream_copy};
use crate::operators::LoweringError;
use crate::poplar::exchange;
use crate::poplar::work::{MemoryConstraint, OperationWork, OperationWorkItem, WorkPhase};
use crate::popops::elementwise;
use crate::schedule::{ExecutionSchedule, ScheduleSlot, WeightUpdateTiming};
use crate::targets::WORKERS;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId, TileId, TileRange, TileRuns};
use tilescope_report::{MemoryCategory, ProgramKind, ProgramNode, TrainingPass};

/// The pieces that a program is made of.
#[derive(Debug)]
pub struct ProgramParts {
    /// What each stage does in each pass.
    pub fragments: Vec<StageFragment>,
    /// Copies before the program starts: they tell the device which program to run.
    pub prologue: ProgramPrologue,
    /// Copies from the host.
    pub host_inputs: Vec<HostStreamCopy>,
    /// Copies to the host.
    pub host_outputs: Vec<HostStreamCopy>,
    pub link_copies: Vec<StageCopyGroup>,
    /// For each IPU, the wait of its compute tiles for its I/O tiles.
    pub io_syncs: Vec<ProgramId>,
    /// The sync in which the framework on the host holds an iteration up.
    pub iteration_sync: ProgramId,
}

impl ProgramParts {
    /// What a stage does in a pass.
    pub(crate) fn fragment(&self, stage: usize, pass: TrainingPass) -> Option<&StageFragment> {
        self.fragments.iter().find(|fragment| fragment.stage == stage && fragment.pass == pass)
    }
}

/// Makes all fragments and copies, and the tree over them: its root comes with them.
///
/// Liveness steps count in the order in which things are made here, which is the order of the
/// compiled program with loop bodies once.
pub(crate) fn assemble(
    builder: &mut ProgramBuilder,
    schedule: &ExecutionSchedule,
) -> Result<(ProgramParts, ProgramId), LoweringError> {
    let stages = builder.placement.stages.len();
    let training = builder.spec.model.training;
    builder.lower()?;
    let prologue = prologue(builder);
    let mut host_inputs: Vec<HostStreamCopy> =
        (0..stages).flat_map(|stage| builder.host_inputs(stage)).collect();
    if schedule.parallel_stages().is_some() {
        share_sync(&mut host_inputs);
    }
    let mut fragments: Vec<StageFragment> =
        (0..stages).map(|stage| builder.fragment(stage, TrainingPass::Forward)).collect();
    if training {
        fragments
            .extend((0..stages).rev().map(|stage| builder.fragment(stage, TrainingPass::Backward)));
    }
    let host_outputs: Vec<HostStreamCopy> =
        (0..stages).flat_map(|stage| builder.host_outputs(stage)).collect();
    let link_copies = builder.link_copies();
    if schedule.update != WeightUpdateTiming::Never {
        fragments.extend((0..stages).map(|stage| builder.fragment(stage, TrainingPass::Update)));
    }
    let ipus = builder.spec.target.ipus;
    let io_sync = |ipu| {
        builder.tables.program(ProgramNode {
            ipu: Some(ipu),
            ..ProgramNode::new(ProgramKind::Sync, "Internal")
        })
    };
    let io_syncs = (0..ipus).map(IpuId).map(io_sync).collect();
    let iteration_sync = external_sync(&mut builder.tables);
    let parts = ProgramParts {
        fragments,
        prologue,
        host_inputs,
        host_outputs,
        link_copies,
        io_syncs,
        iteration_sync,
    };
    let root = control_program(builder, schedule, &parts);
    Ok((parts, root))
}

/// Rows of a field for several IPUs are one copy, with one sync before it.
fn share_sync(copies: &mut [HostStreamCopy]) {
    if let Some((first, others)) = copies.split_first_mut() {
        others.iter_mut().for_each(|copy| copy.programs[0] = first.programs[0]);
    }
}

/// Every run begins with two small copies from the host that say which program to run, and an
/// exchange that tells all tiles.
fn prologue(builder: &mut ProgramBuilder) -> ProgramPrologue {
    let word = TileRuns::uniform(TileRange::first_tiles(1), Bytes(4));
    let mut copies = vec![
        stream_copy(&mut builder.tables, "programId0", 0, IpuId(0), &word, true),
        stream_copy(&mut builder.tables, "programId0/ack", 0, IpuId(0), &word, false),
    ];
    let tiles = builder.lowering.tiles;
    let speed = builder.lowering.exchange_speed();
    let name = "switchControlBroadcast";
    let phase = exchange::broadcast(name, &word, TileRange::first_tiles(tiles), tiles, speed);
    let mut broadcast = phase.map_or(Vec::new(), |phase| builder.control_exchange(phase));
    if builder.spec.options.library.stochastic_rounding {
        for ipu in (0..builder.spec.target.ipus).map(IpuId) {
            copies.push(stream_copy(&mut builder.tables, "randomSeed", 0, ipu, &seed(1), true));
            broadcast.extend(set_seed(builder, ipu));
        }
    }
    for tile in TileRange::first_tiles(tiles).iter() {
        builder.tables.code.add(
            MemoryCategory::ControlId,
            tile,
            if tile == TileId(0) { Bytes(8) } else { Bytes::ZERO },
        );
    }
    ProgramPrologue { copies, broadcast }
}

/// Bytes of a seed of the random number generators, on so many tiles.
fn seed(tiles: u32) -> TileRuns<Bytes> {
    TileRuns::uniform(TileRange::first_tiles(tiles), Bytes(8))
}

/// Spreads the seed over the tiles of an IPU and sets their generators.
fn set_seed(builder: &mut ProgramBuilder, ipu: IpuId) -> Vec<FragmentItem> {
    let tiles = builder.lowering.tiles;
    let speed = builder.lowering.exchange_speed();
    let all = TileRange::first_tiles(tiles);
    let mut phases: Vec<WorkPhase> =
        exchange::broadcast("randomSeed", &seed(1), all, tiles, speed).into_iter().collect();
    // poplibs lib/poprand/poprandCycleEstimators.cpp, SetSeedSupervisor.
    let cycles = seed(tiles).map(|_| Cycles(14 + WORKERS * 27));
    phases.push(elementwise::compute(
        "randomSeed/setSeed",
        "poprand::SetSeedSupervisor".to_string(),
        1,
        cycles,
    ));
    let items = phases.into_iter().map(OperationWorkItem::Phase).collect();
    builder.unplaced_variables.push(UnplacedVariable {
        name: "randomSeed".to_string(),
        category: MemoryCategory::Variable,
        operation: None,
        shape: "uint32[2]".to_string(),
        lifetime: None,
        place: MemoryConstraint::Any,
        bytes: seed(tiles).shifted(builder.tables.tiles_before(ipu)),
    });
    builder
        .tables
        .work(None, "random", ipu, &OperationWork { items, temporaries: Vec::new() })
        .items
}

/// The main program: prologue, switch, and the loops of the schedule.
fn control_program(
    builder: &mut ProgramBuilder,
    schedule: &ExecutionSchedule,
    parts: &ProgramParts,
) -> ProgramId {
    let mut children: Vec<ProgramId> =
        parts.prologue.copies.iter().flat_map(|copy| copy.programs).collect();
    children.extend(program_nodes(&parts.prologue.broadcast, &mut builder.tables));
    let mut iteration = slots(builder, schedule, parts);
    if schedule.update == WeightUpdateTiming::PerIteration {
        let updates =
            parts.fragments.iter().filter(|fragment| fragment.pass == TrainingPass::Update);
        let updates: Vec<ProgramId> = updates.map(|fragment| fragment.function).collect();
        iteration.extend(updates.into_iter().map(|function| call(builder, function)));
    }
    let body = builder.tables.group(ProgramKind::Sequence, "", iteration);
    let main = repeat(builder, schedule.iterations, body);
    let chosen = builder.tables.group(ProgramKind::Sequence, "", vec![main]);
    children.push(builder.tables.group(ProgramKind::Switch, "programId0", vec![chosen]));
    builder.tables.group(ProgramKind::Sequence, "Engine::run", children)
}

/// The slots of one iteration: equal neighbours become a repeat.
fn slots(
    builder: &mut ProgramBuilder,
    schedule: &ExecutionSchedule,
    parts: &ProgramParts,
) -> Vec<ProgramId> {
    let mut nodes: Vec<ProgramId> = Vec::new();
    let mut known: BTreeMap<String, ProgramId> = BTreeMap::new();
    let mut at = 0;
    while at < schedule.slots.len() {
        let slot = &schedule.slots[at];
        let same = |other: &&ScheduleSlot| {
            slot_signature(other) == slot_signature(slot)
                && slot.phase == crate::schedule::PipelinePhase::Main
        };
        let times = schedule.slots[at..].iter().take_while(same).count().max(1);
        let node = match known.get(&slot_signature(slot)) {
            Some(node) => *node,
            None => {
                let node = slot_program(builder, slot, schedule, parts);
                known.insert(slot_signature(slot), node);
                node
            }
        };
        nodes.push(repeat(builder, times as u64, node));
        at += times;
    }
    nodes
}

/// What tells slots apart in the program: who works, not on which micro-batch.
fn slot_signature(slot: &ScheduleSlot) -> String {
    let turns: Vec<String> =
        slot.turns.iter().map(|turn| format!("{} {:?}", turn.stage, turn.pass)).collect();
    format!("{} {}", turns.join(","), slot.stage_copies_follow)
}

/// One slot: copies from the host, turns, copies to the host, copies between IPUs.
fn slot_program(
    builder: &mut ProgramBuilder,
    slot: &ScheduleSlot,
    schedule: &ExecutionSchedule,
    parts: &ProgramParts,
) -> ProgramId {
    let works = |stage: usize, pass: TrainingPass| {
        slot.turns.iter().any(|turn| turn.stage == stage && turn.pass == pass)
    };
    let working = |copies: &[HostStreamCopy]| -> Vec<HostStreamCopy> {
        copies.iter().filter(|copy| works(copy.stage, TrainingPass::Forward)).cloned().collect()
    };
    let mut children = Vec::new();
    for copy in working(&parts.host_inputs) {
        let fresh = copy.programs.into_iter().filter(|program| !children.contains(program));
        children.extend(fresh.collect::<Vec<_>>());
        children.extend(program_nodes(&copy.tile_items, &mut builder.tables));
    }
    for turn in &slot.turns {
        let mut passes = vec![turn.pass];
        if turn.pass == TrainingPass::Backward
            && schedule.update == WeightUpdateTiming::PerMicroBatch
        {
            passes.push(TrainingPass::Update);
        }
        for pass in passes {
            let fragment = parts.fragment(turn.stage, pass);
            let function = fragment.map(|fragment| fragment.function);
            children.extend(function.map(|function| call(builder, function)));
        }
    }
    for copy in working(&parts.host_outputs) {
        children.extend(program_nodes(&copy.sum_items, &mut builder.tables));
        children.extend(program_nodes(&copy.tile_items, &mut builder.tables));
        children.extend(copy.programs);
    }
    if slot.stage_copies_follow {
        for copy in &parts.link_copies {
            if copy.after.is_empty() || copy.after.iter().any(|(stage, pass)| works(*stage, *pass))
            {
                children.extend(copy.exchange.into_iter().flatten());
                children.extend(program_nodes(&copy.local, &mut builder.tables));
            }
        }
    }
    builder.tables.group(ProgramKind::Sequence, "", children)
}

fn call(builder: &mut ProgramBuilder, function: ProgramId) -> ProgramId {
    let name = builder.tables.programs[function.index()].name.clone();
    builder.tables.group(ProgramKind::Call, &name, vec![function])
}

/// A loop, or the body itself where it runs once.
fn repeat(builder: &mut ProgramBuilder, times: u64, body: ProgramId) -> ProgramId {
    if times == 1 {
        return body;
    }
    let node = builder.tables.group(ProgramKind::Repeat, "", vec![body]);
    builder.tables.programs[node.index()].repeats = times;
    node
}
