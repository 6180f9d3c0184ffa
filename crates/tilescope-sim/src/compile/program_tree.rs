//! The program tree: control programs, the functions that they call, and the loops around them.

use super::fragment_items::{FragmentItem, for_each_leaf};
use super::fragments::{PassFragments, StageFragment, pass_name};
use super::host_copies::{HostStreamCopy, stream_copy};
use super::host_exchange::{HostExchange, host_exchanges};
use super::outline_functions::OutlineFunctions;
use super::program_builder::ProgramBuilder;
use super::program_plan::ProgramPlan;
use super::program_tables::ProgramTables;
use super::transfers::StageCopyGroup;
use crate::graph::name_on_all_shards;
use crate::poplar::exchange;
use crate::poplar::work::{OperationWork, WorkPhase};
use crate::popops::elementwise;
use crate::schedule::{ScheduleSlot, SyncGroups, WeightUpdateTiming};
use crate::specification::{DataLoaderMode, OutputMode, Spec};
use crate::targets::WORKERS;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles, IpuId, ProgramId, TileId, TileRange, TileRuns};
use tilescope_report::{
    HostCallPart, INTERNAL_SYNC, MemoryCategory, ModelOperation, ProgramKind, ProgramNode,
    TrainingPass,
};

/// The parts that a program consists of.
#[derive(Debug)]
pub struct ProgramParts {
    /// The work of each stage in each pass.
    pub fragments: Vec<StageFragment>,
    /// Copies before the program starts, which select the program that the device runs.
    pub prologue: ProgramPrologue,
    /// Copies from the host.
    pub host_inputs: Vec<HostStreamCopy>,
    /// Copies to the host.
    pub host_outputs: Vec<HostStreamCopy>,
    pub link_copies: Vec<StageCopyGroup>,
    /// For each IPU, the wait of its compute tiles for its I/O tiles.
    pub io_syncs: Vec<ProgramId>,
    /// Syncs in which all IPUs wait for a part of the host call, for the parts that take time.
    pub host_call: BTreeMap<HostCallPart, ProgramId>,
}

/// The first steps of every run.
#[derive(Debug)]
pub struct ProgramPrologue {
    /// The two control copies with the host.
    pub copies: Vec<HostStreamCopy>,
    /// The exchange that broadcasts the selected program to all tiles.
    pub broadcast: Vec<FragmentItem>,
}

impl ProgramParts {
    /// All item sequences that run works.
    fn sequences(&self) -> Vec<&[FragmentItem]> {
        let fragments =
            self.fragments.iter().flat_map(|of| [&of.io_loads[..], &of.remote_loads, &of.items]);
        let copies = self.host_inputs.iter().chain(&self.host_outputs);
        let copies = copies.flat_map(|copy| [&copy.tile_items[..], &copy.sum_items]);
        let local = self.link_copies.iter().map(|copy| &copy.local[..]);
        let broadcast = std::iter::once(&self.prologue.broadcast[..]);
        broadcast.chain(fragments).chain(copies).chain(local).collect()
    }

    /// Sets the number of runs of the most frequent program of each operation in one execution.
    pub(super) fn note_inner_runs(
        &self,
        programs: &[ProgramNode],
        operations: &mut [ModelOperation],
    ) {
        let mut note = |program: ProgramId, times: u64| {
            let operation = programs[program.index()].operation;
            if let Some(of) = operation.and_then(|id| operations.get_mut(id.index())) {
                of.inner_runs = of.inner_runs.max(Some(times));
            }
        };
        self.sequences().into_iter().for_each(|items| for_each_leaf(items, 1, &mut note));
    }

    /// The work of a stage in a pass.
    pub(crate) fn fragment(&self, stage: usize, pass: TrainingPass) -> Option<&StageFragment> {
        self.fragments.iter().find(|fragment| fragment.stage == stage && fragment.pass == pass)
    }
}

/// Makes all fragments and copies, and the tree over them. Returns the parts and the root of the
/// tree.
///
/// Liveness steps are numbered in the order in which items are made here, which is the order of the
/// compiled program with each loop body once.
pub(super) fn assemble(builder: &mut ProgramBuilder) -> (ProgramParts, ProgramId) {
    let plan = builder.plan;
    let stages = plan.placement.stages.len();
    let prologue = prologue(builder);
    let mut host_inputs: Vec<HostStreamCopy> =
        (0..stages).flat_map(|stage| builder.host_inputs(stage)).collect();
    if plan.schedule.parallel_stages().is_some() {
        share_sync(&mut host_inputs);
    }
    let mut passes = builder.fragments(TrainingPass::Forward);
    if plan.spec.model.training {
        passes.extend(builder.fragments(TrainingPass::Backward));
    }
    // A slot sends its results after all of its turns, also after the backward pass.
    let host_outputs: Vec<HostStreamCopy> =
        (0..stages).flat_map(|stage| builder.host_outputs(stage)).collect();
    passes.link_copies.extend(builder.link_copies_of_pipeline());
    // Updates of `PerPhase` are part of the backward pass, while weights are on the chip.
    if matches!(
        plan.schedule.update,
        WeightUpdateTiming::PerIteration | WeightUpdateTiming::PerMicroBatch
    ) {
        passes.extend(builder.fragments(TrainingPass::Update));
    }
    let PassFragments { fragments, link_copies } = passes;
    let tables = &mut builder.tables;
    let mut io_syncs = Vec::new();
    for ipu in (0..plan.spec.target.ipus).map(IpuId) {
        let sync = ProgramNode::new(ProgramKind::Sync, INTERNAL_SYNC);
        io_syncs.push(tables.program(ProgramNode { ipu: Some(ipu), ..sync }));
    }
    let host_call = host_call_syncs(plan.spec, &mut builder.tables);
    let parts = ProgramParts {
        fragments,
        prologue,
        host_inputs,
        host_outputs,
        link_copies,
        io_syncs,
        host_call,
    };
    let root = ProgramTree::new(plan, &mut builder.tables, &parts).control_program();
    (parts, root)
}

/// Adds a sync for each part of a host call that the IPUs wait for.
fn host_call_syncs(spec: &Spec, tables: &mut ProgramTables) -> BTreeMap<HostCallPart, ProgramId> {
    let host = &spec.options.host;
    let has_loader = !matches!(host.loader, DataLoaderMode::None | DataLoaderMode::Synthetic);
    let parts = [
        (HostCallPart::Loader, has_loader),
        (HostCallPart::Framework, host.seconds_per_framework_call > 0.0),
        (HostCallPart::Launch, host.seconds_per_launch > 0.0),
        // Replicas join at the return of a call, where the first ones wait for the last.
        (HostCallPart::Results, host.seconds_per_return > 0.0 || replicas_may_differ(spec)),
    ];
    let waited_for = parts.into_iter().filter(|(_, takes_time)| *takes_time);
    let mut syncs = BTreeMap::new();
    for (part, _) in waited_for {
        let sync = ProgramNode::new(ProgramKind::Sync, part.sync_name());
        syncs.insert(part, tables.program(sync));
    }
    syncs
}

/// Returns true if one replica can finish before another: their hosts differ in speed, or each
/// replica waits for its host alone.
fn replicas_may_differ(spec: &Spec) -> bool {
    let options = &spec.options;
    options.replication_factor > 1
        && (options.slow_instances() > 0 || options.sync_replicas_independently)
}

/// Makes the copies of the rows of a field for several IPUs share one sync.
fn share_sync(copies: &mut [HostStreamCopy]) {
    let mut syncs: BTreeMap<String, ProgramId> = BTreeMap::new();
    for copy in copies {
        if let Some(tensor) = &copy.tensor {
            let field = name_on_all_shards(&tensor.name).to_owned();
            let sync = syncs.entry(field).or_insert(copy.sync);
            copy.sync = *sync;
        }
    }
}

/// Adds the start of every run: two small copies from the host that select the program to run, and
/// an exchange that broadcasts the selection to all tiles.
fn prologue(builder: &mut ProgramBuilder) -> ProgramPrologue {
    let word = TileRuns::uniform(TileRange::first_tiles(1), Bytes(4));
    let mut copies = vec![
        stream_copy(&mut builder.tables, "programId0", 0, IpuId(0), &word, true),
        stream_copy(&mut builder.tables, "programId0/ack", 0, IpuId(0), &word, false),
    ];
    let plan = builder.plan;
    let tiles = plan.lowering.tiles;
    let speed = plan.lowering.exchange_speed();
    let name = "switchControlBroadcast";
    let phase = exchange::broadcast(name, &word, TileRange::first_tiles(tiles), tiles, speed);
    let work = OperationWork::of_phases(phase);
    let mut broadcast = builder.tables.work(None, "copy", IpuId(0), &work).items;
    if plan.spec.options.library.stochastic_rounding {
        for ipu in (0..plan.spec.target.ipus).map(IpuId) {
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

/// Bytes of a seed of the random number generators, on each of `tiles` tiles.
fn seed(tiles: u32) -> TileRuns<Bytes> {
    TileRuns::uniform(TileRange::first_tiles(tiles), Bytes(8))
}

/// Spreads the seed over the tiles of an IPU and sets their generators.
fn set_seed(builder: &mut ProgramBuilder, ipu: IpuId) -> Vec<FragmentItem> {
    let lowering = builder.plan.lowering;
    let tiles = lowering.tiles;
    let speed = lowering.exchange_speed();
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
    let name = ("randomSeed".to_owned(), "uint32[2]".to_owned());
    builder.variables.add(name, None, None, ipu, &seed(tiles));
    builder.tables.work(None, "random", ipu, &OperationWork::of_phases(phases)).items
}

/// The program tree while it is built from the parts of a program.
struct ProgramTree<'a> {
    plan: &'a ProgramPlan<'a>,
    tables: &'a mut ProgramTables,
    sync_groups: SyncGroups,
    parts: &'a ProgramParts,
    outline: OutlineFunctions,
    /// The function of each fragment.
    functions: Vec<ProgramId>,
}

impl<'a> ProgramTree<'a> {
    fn new(
        plan: &'a ProgramPlan<'a>,
        tables: &'a mut ProgramTables,
        parts: &'a ProgramParts,
    ) -> Self {
        let outline = OutlineFunctions::new(tables, &parts.sequences());
        let sync_groups = SyncGroups::new(plan.spec.options.sync_pattern, plan.spec.target.ipus);
        let functions = Vec::new();
        let mut tree = Self { plan, tables, sync_groups, parts, outline, functions };
        for fragment in &parts.fragments {
            let function = tree.fragment(fragment);
            tree.functions.push(function);
        }
        tree
    }

    fn fragment(&mut self, fragment: &StageFragment) -> ProgramId {
        let stage = &self.plan.placement.stages[fragment.stage].name;
        let name = format!("{stage}/{}", pass_name(fragment.pass));
        let io_loads = self.nodes(&fragment.io_loads);
        let loads = self.nodes(&fragment.remote_loads);
        let children = [io_loads, loads, self.nodes(&fragment.items)].concat();
        self.tables.group(ProgramKind::Sequence, &name, children)
    }

    fn nodes(&mut self, items: &[FragmentItem]) -> Vec<ProgramId> {
        self.outline.nodes(self.tables, items)
    }

    /// Builds the main program: prologue, switch, and the loops of the schedule.
    fn control_program(mut self) -> ProgramId {
        let parts = self.parts;
        let mut children: Vec<ProgramId> =
            parts.prologue.copies.iter().flat_map(HostStreamCopy::programs).collect();
        children.extend(self.nodes(&parts.prologue.broadcast));
        let mut iteration = self.slots();
        if self.plan.schedule.update == WeightUpdateTiming::PerIteration {
            for at in 0..parts.fragments.len() {
                if parts.fragments[at].pass == TrainingPass::Update {
                    iteration.push(self.call(at));
                }
            }
        }
        let body = self.tables.group(ProgramKind::Sequence, "", iteration);
        let main = self.repeat(self.plan.schedule.iterations, body);
        let tables = &mut *self.tables;
        let chosen = tables.group(ProgramKind::Sequence, "", vec![main]);
        children.push(tables.group(ProgramKind::Switch, "programId0", vec![chosen]));
        tables.group(ProgramKind::Sequence, "Engine::run", children)
    }

    /// Builds the slots of one iteration. Equal neighbours become a repeat.
    fn slots(&mut self) -> Vec<ProgramId> {
        let mut nodes: Vec<ProgramId> = Vec::new();
        let mut known: BTreeMap<String, ProgramId> = BTreeMap::new();
        let slots = &self.plan.schedule.slots;
        let mut at = 0;
        while at < slots.len() {
            let slot = &slots[at];
            let alike = slots[at..].iter().take_while(|other| {
                slot_signature(other) == slot_signature(slot)
                    && slot.phase == crate::schedule::PipelinePhase::Main
            });
            // A slot outside of the main phase is not even like itself, and runs once.
            let times = alike.count().max(1);
            let node = match known.get(&slot_signature(slot)) {
                Some(node) => *node,
                None => {
                    let node = self.slot(slot, &self.plan.schedule.updates_behind(at));
                    known.insert(slot_signature(slot), node);
                    node
                }
            };
            nodes.push(self.repeat(times as u64, node));
            at += times;
        }
        nodes
    }

    /// Builds one slot: copies from the host, turns, copies to the host, copies between IPUs, and
    /// the updates of the stages whose phase ends with the slot.
    fn slot(&mut self, slot: &ScheduleSlot, updates_behind: &[usize]) -> ProgramId {
        let parts = self.parts;
        let works = |stage: usize, pass: TrainingPass| {
            slot.turns.iter().any(|turn| turn.stage == stage && turn.pass == pass)
        };
        let working = |copies: &'a [HostStreamCopy]| {
            copies.iter().filter(move |copy| works(copy.stage, TrainingPass::Forward))
        };
        let mut children = Vec::new();
        let merge = self.plan.spec.options.merge_exchange;
        for group in host_exchanges(working(&parts.host_inputs), merge) {
            children.extend(self.host_steps(&group));
            for copy in group.iter().flat_map(HostExchange::copies) {
                children.extend(self.nodes(&copy.tile_items));
            }
        }
        for turn in &slot.turns {
            let mut passes = vec![turn.pass];
            if turn.pass == TrainingPass::Backward
                && self.plan.schedule.update == WeightUpdateTiming::PerMicroBatch
            {
                passes.push(TrainingPass::Update);
            }
            for pass in passes {
                children.extend(self.call_of(turn.stage, pass));
            }
        }
        for copy in working(&parts.host_outputs) {
            children.extend(self.nodes(&copy.sum_items));
        }
        let mut returned = Vec::new();
        for group in host_exchanges(working(&parts.host_outputs), merge) {
            for copy in group.iter().flat_map(HostExchange::copies) {
                returned.extend(self.nodes(&copy.tile_items));
            }
            returned.extend(self.host_steps(&group));
        }
        children.extend(self.of_returned_micro_batches(returned));
        if slot.stage_copies_follow {
            for copy in &parts.link_copies {
                if copy.after.is_empty()
                    || copy.after.iter().any(|(stage, pass)| works(*stage, *pass))
                {
                    children.extend(copy.exchange.into_iter().flatten());
                    children.extend(self.nodes(&copy.local));
                }
            }
        }
        for stage in updates_behind {
            children.extend(self.call_of(*stage, TrainingPass::Update));
        }
        self.tables.group(ProgramKind::Sequence, "", children)
    }

    /// Adds the choice between the copies of results to the host and nothing, unless all
    /// micro-batches return their results. PopART counts micro-batches on the IPU and compares the
    /// count (willow/src/popx/irlowering.cpp, toHostEveryNBatchesTask).
    fn of_returned_micro_batches(&mut self, copies: Vec<ProgramId>) -> Vec<ProgramId> {
        let all = matches!(self.plan.spec.output_mode(), OutputMode::All | OutputMode::Default);
        if all || copies.is_empty() {
            return copies;
        }
        let copy = self.tables.group(ProgramKind::Sequence, "copy", copies);
        let empty = self.tables.group(ProgramKind::Sequence, "empty", Vec::new());
        vec![self.tables.group(ProgramKind::Switch, "nthBatchCheck", vec![copy, empty])]
    }

    /// Adds a call of the work of a stage in a pass.
    fn call_of(&mut self, stage: usize, pass: TrainingPass) -> Option<ProgramId> {
        let fragment =
            self.parts.fragments.iter().position(|of| of.stage == stage && of.pass == pass)?;
        Some(self.call(fragment))
    }

    /// The syncs and steps of simultaneous exchanges with the host, with one sync for each part of
    /// GS2 that they belong to.
    fn host_steps(&self, group: &[HostExchange]) -> Vec<ProgramId> {
        let mut steps = Vec::new();
        let mut synced: Vec<IpuId> = Vec::new();
        for exchange in group {
            if !synced.contains(&exchange.ipu()) {
                synced.extend(self.sync_groups.host_sync_group(exchange.ipu()));
                steps.push(exchange.sync());
            }
            steps.extend(exchange.steps());
        }
        steps
    }

    /// Adds a call of the function of a fragment.
    fn call(&mut self, fragment: usize) -> ProgramId {
        let function = self.functions[fragment];
        let name = self.tables.programs[function.index()].name.clone();
        self.tables.group(ProgramKind::Call, &name, vec![function])
    }

    /// Adds a loop, or returns the body itself if it runs once.
    fn repeat(&mut self, times: u64, body: ProgramId) -> ProgramId {
        if times == 1 { body } else { self.tables.repeat(times, body) }
    }
}

/// The identity of a slot in the program: the stages that work, without their micro-batches.
fn slot_signature(slot: &ScheduleSlot) -> String {
    let turns: Vec<String> =
        slot.turns.iter().map(|turn| format!("{} {:?}", turn.stage, turn.pass)).collect();
    format!("{} {}", turns.join(","), slot.stage_copies_follow)
}
