//! The input of all rules, read from a report once.

use super::InsightGain;
use super::proposal::{Proposal, SpecChanges};
use super::run_chains::{ChainPart, RunChains};
use super::tile_contents::{FullTileContents, TileVariable};
use crate::imported_model::imported_model;
use crate::label_conventions::{is_named_weight, is_stash, owner_of_state};
use crate::limits::{limits, start_shares};
use crate::liveness::{self, LiveVariable, LivenessScope};
use crate::memory::fullest_tiles;
use crate::trace::{MOST_MARKS, ProgramRuns, RunMarks, RunShare, program_runs_of};
use crate::view_location::ViewLocation;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tilescope_report::trace::LaneInfo;
use tilescope_report::units::{
    Bytes, ComputeSetId, CycleRange, Cycles, IpuId, NumberFormat, OperationId, ProgramId, TileId,
    TileRange, TileRuns, VariableId,
};
use tilescope_report::{
    ArithmeticType, BatchingConfig, CategoryBytes, ComputeSet, HostTensor, MemoryCategory,
    ModelOperation, ProgramKind, ProgramNode, ProgramNodeTable, ProgramOutcome, Report,
    ReportError, ReportPart, StepActivity, Target, TileMemory, Variable, VertexTypeInfo,
};

/// The peak: the live memory of the fullest tile at its fullest step.
#[derive(Clone, Debug, PartialEq)]
pub struct PeakMemoryTile {
    /// The fullest tile.
    pub tile: TileId,
    /// The liveness step with the most live bytes.
    pub step: u32,
    pub program: ProgramId,
    /// Bytes live at that step.
    pub bytes: Bytes,
    /// The variables with bytes on the tile, the largest first.
    pub variables: Vec<LiveVariable>,
}

/// The planner's figures for the memory of a matmul or convolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OperationPlan {
    /// Upper bound of its temporaries on a tile; `None` without a limit.
    bound: Option<Bytes>,
    /// Expected bytes of its temporaries.
    pub(crate) temporary_bytes: Bytes,
    /// Number of parts that are computed one after the other.
    serial_splits: u64,
}

impl OperationPlan {
    /// Reads a plan from the text in a report; `None` for other kinds of plans.
    fn read(text: &str) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Plan {
            memory_bound_bytes: Option<u64>,
            estimate: PlanEstimate,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct PlanEstimate {
            serial_splits: u64,
            total_temp_bytes: u64,
        }
        let plan: Plan = serde_json::from_str(text).ok()?;
        Some(Self {
            bound: plan.memory_bound_bytes.map(Bytes),
            temporary_bytes: Bytes(plan.estimate.total_temp_bytes),
            serial_splits: plan.estimate.serial_splits,
        })
    }

    /// True if more memory could permit a faster plan: a lack of memory is the only reason to
    /// compute in parts.
    pub(crate) fn is_limited(&self) -> bool {
        self.bound.is_some() && self.serial_splits > 1
    }
}

/// The input of all rules.
#[derive(Clone, Debug)]
pub struct InsightFacts {
    /// Number format of sentences.
    pub numbers: NumberFormat,
    pub target: Arc<Target>,
    /// Outcome of the program.
    pub outcome: ProgramOutcome,
    pub options: BTreeMap<String, String>,
    /// True if the report has the spec of its simulation, whose keys can be changed and tried.
    pub has_spec: bool,
    /// Lower bounds of the length of the run; `None` if nothing was executed.
    pub chains: Option<RunChains>,
    pub batching: Option<BatchingConfig>,
    /// Input tensors of a host call.
    pub(crate) host_inputs: Vec<HostTensor>,
    /// Memory of each tile.
    pub memory: Arc<TileRuns<TileMemory>>,
    /// Memory of each tile by category.
    pub categories: Arc<TileRuns<Vec<CategoryBytes>>>,
    pub programs: Arc<ProgramNodeTable>,
    /// Operations of the model.
    pub operations: Arc<Vec<ModelOperation>>,
    /// Plans of matmuls and convolutions among them.
    plans: BTreeMap<OperationId, OperationPlan>,
    /// Share of the cycles of a program above the minimum of its operation, for operations whose
    /// plans are limited by memory.
    pub(crate) wasted_by_plans: BTreeMap<ProgramId, f64>,
    /// Share of the cycles of a program before its slowest tile begins.
    start_shares: BTreeMap<ProgramId, f64>,
    /// Compute sets with cycles and vertices.
    pub compute_sets: BTreeMap<ComputeSetId, ComputeSet>,
    pub vertex_types: Arc<Vec<VertexTypeInfo>>,
    /// Bytes of stashes over all tiles, by variable.
    pub stashes: Vec<LiveVariable>,
    /// Executions of each program. Syncs of I/O tiles are left out: these tiles wait most of the
    /// time, which delays no one.
    pub runs: Option<ProgramRuns>,
    /// Phases, slots, stages and updates of the run.
    pub(crate) marks: RunMarks,
    /// A slot of median length.
    pub typical: Option<CycleRange>,
    /// Contents of the fullest tiles, if all or nearly all of their memory is needed.
    pub full_tiles: Option<FullTileContents>,
    /// Names of trained weights: those with optimiser state or accumulated gradients.
    pub trained: BTreeSet<String>,
    /// The fullest tile at its fullest step.
    pub peak: Option<PeakMemoryTile>,
    /// The share of operators of an imported model that are not modelled, as text.
    pub unmodelled: Option<String>,
    /// Measured tiles per IPU, where a tool measured some of them: nothing is known of the others.
    pub(crate) measured_tiles: Option<u32>,
}

/// The mean number of measured tiles over the IPUs that have any; `None` for reports about all tiles.
fn measured_tiles(report: &Report) -> Result<Option<u32>, ReportError> {
    if !report.has_tile_samples() {
        return Ok(None);
    }
    let tiles_per_ipu = report.target()?.tiles_per_ipu.max(1);
    let mut tiles = BTreeSet::new();
    for (_, set) in report.compute_sets()? {
        for (range, _) in set.cycles.iter() {
            tiles.extend(range.iter().map(|tile| tile.0));
        }
    }
    let ipus: BTreeSet<u32> = tiles.iter().map(|tile| tile / tiles_per_ipu).collect();
    Ok(Some((tiles.len() / ipus.len().max(1)) as u32))
}

impl InsightFacts {
    /// Reads the facts of a report; rules format figures with `numbers`.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn gather(report: &Report, numbers: NumberFormat) -> Result<Self, ReportError> {
        Self::gather_of(report, numbers, MOST_MARKS)
    }

    /// The same from about `most_marks` marks of each kind, or from the marks of whole iterations
    /// if that many marks contain one.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn gather_of(
        report: &Report,
        numbers: NumberFormat,
        most_marks: u64,
    ) -> Result<Self, ReportError> {
        let counts = |lane: &LaneInfo, kind| lane.sub_lane == 0 || kind != ProgramKind::Sync;
        let runs = report.trace()?.map(|trace| program_runs_of(&trace, counts)).transpose()?;
        let memory = report.tile_memory()?;
        // Without lifetimes every variable of every tile would count as always live.
        let variables = if report.has(ReportPart::Liveness) {
            liveness::variables(report, LivenessScope::Whole)?
        } else {
            Vec::new()
        };
        let run = runs.as_ref().map(|runs| runs.range).unwrap_or_default();
        let marks = RunMarks::read(report, run, most_marks)?;
        let peak = peak(report, &memory, &variables)?;
        let full_tiles = FullTileContents::read(report.target()?.as_ref(), &memory, &variables);
        let operations = report.operations()?;
        let plans = (0..).map(OperationId).zip(operations.iter());
        let plan = |of: &ModelOperation| of.plan.as_deref().and_then(OperationPlan::read);
        let plans: BTreeMap<_, _> = plans.filter_map(|(id, of)| Some((id, plan(of)?))).collect();
        let wasted_by_plans = wasted_by_plans(report, &plans)?;
        let owners = variables.iter().filter_map(|(_, of)| owner_of_state(&of.name));
        let trained = owners.map(str::to_owned).collect();
        let tiles = LivenessScope::Whole.tiles(report.target()?.as_ref());
        let programs = report.executed_program_nodes()?;
        let chains = RunChains::read(report, runs.as_ref(), &programs)?;
        let stashes = variables.into_iter().filter(|(_, variable)| is_stash(&variable.name));
        let stashes = liveness::always_live_of(stashes, tiles).collect();
        Ok(Self {
            numbers,
            target: report.target()?,
            outcome: report.outcome()?,
            options: report.options()?.into_iter().collect(),
            batching: report.batching()?,
            host_inputs: report.host_tensors()?.into_iter().filter(|of| of.is_input).collect(),
            full_tiles,
            trained,
            peak,
            memory,
            categories: report.tile_categories()?,
            programs,
            has_spec: report.spec().is_some(),
            chains,
            operations,
            plans,
            wasted_by_plans,
            start_shares: start_shares(report)?,
            compute_sets: report.compute_sets()?.into_iter().collect(),
            vertex_types: report.vertex_types()?,
            stashes,
            runs,
            typical: marks.typical_slot(),
            unmodelled: imported_model(report)?.and_then(|model| model.unmodelled_words()),
            marks,
            measured_tiles: measured_tiles(report)?,
        })
    }

    /// Tiles per IPU that cycles were recorded of.
    pub(crate) fn known_tiles_per_ipu(&self) -> u32 {
        self.measured_tiles.unwrap_or(self.target.tiles_per_ipu).max(1)
    }

    /// The same for a change that takes away a share of the steps of one program.
    pub(crate) fn gain_of_program(&self, share: f64, id: ProgramId) -> InsightGain {
        let cycles =
            |part: ChainPart<'_>| if part.id == id { share * part.cycles.as_f64() } else { 0.0 };
        InsightGain::of_time(self.gain(cycles))
    }

    /// The plan of an operation, if it is a matmul or convolution.
    pub(crate) fn plan_of(&self, operation: Option<OperationId>) -> Option<&OperationPlan> {
        self.plans.get(&operation?)
    }

    /// True if a variable holds weights; without training, the names decide.
    pub(crate) fn is_weight(&self, of: &TileVariable) -> bool {
        if self.trained.is_empty() {
            of.is_always_live() && is_named_weight(&of.name)
        } else {
            self.trained.contains(&of.name)
        }
    }

    /// The value of a key of the spec; `None` in reports without a spec.
    pub(crate) fn spec(&self, key: &str) -> Option<&str> {
        self.options.get(key).map(String::as_str).filter(|_| self.has_spec)
    }

    /// The numeric value of a key of the spec.
    pub(crate) fn spec_number(&self, key: &str) -> Option<u64> {
        self.spec(key)?.parse().ok()
    }

    /// A change of keys of the spec to new values; `None` if they already have these values, or if
    /// the report has no spec to try them with.
    pub(crate) fn proposal<'a>(
        &self,
        changes: impl IntoIterator<Item = (&'a str, serde_json::Value)>,
        cost: &str,
    ) -> Option<Proposal> {
        let plain = |value: &serde_json::Value| match value {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let is_new =
            |(key, value): &(&str, _)| self.spec(key).is_some_and(|now| now != plain(value));
        let changes: SpecChanges =
            changes.into_iter().filter(is_new).map(|(key, to)| (key.to_owned(), to)).collect();
        (!changes.is_empty()).then(|| Proposal { changes, cost: cost.to_owned() })
    }

    /// True if a program that can compute in half precision does not. The types of its operations
    /// decide, since a file may have its own types.
    pub(crate) fn is_single_precision(&self) -> bool {
        let is_open = matches!(self.spec("model.precision"), Some("float32" | "as_is"));
        // The vertices of this operation exist for float only.
        let is_fixed = self.operations.iter().any(|of| of.kind == "mat_vec");
        let flops = |is_of: fn(ArithmeticType) -> bool| -> u64 {
            let counted = self.operations.iter().filter(|of| of.element_type.is_some_and(is_of));
            // Operations that only move data count too.
            counted.map(|of| of.flops.max(1)).sum()
        };
        is_open
            && !is_fixed
            && flops(|of| of == ArithmeticType::Float) >= flops(|of| of < ArithmeticType::Float)
    }

    /// The largest possible gain, as a share of the run, of a change that removes the cycles given
    /// by `removed` from some steps; `None` if nothing was executed.
    pub(crate) fn gain(&self, removed: impl Fn(ChainPart<'_>) -> f64) -> Option<RunShare> {
        Some(self.chains.as_ref()?.gain(&self.programs, removed))
    }

    /// The same for a change that removes a share of all steps of the programs that satisfy
    /// `holds`.
    pub(crate) fn gain_of(
        &self,
        share: f64,
        holds: impl Fn(&ProgramNode) -> bool,
    ) -> Option<RunShare> {
        let wanted = |part: ChainPart<'_>| holds(part.program);
        self.gain(|part| if wanted(part) { share * part.cycles.as_f64() } else { 0.0 })
    }

    /// The same for a change that reduces the work of tiles. The start of steps remains, except for
    /// operations that are computed in parts for lack of memory: with less work they need fewer
    /// parts.
    pub(crate) fn gain_of_work(
        &self,
        share: f64,
        holds: impl Fn(&ProgramNode) -> bool,
    ) -> Option<RunShare> {
        let start = |part: ChainPart<'_>| match self.plan_of(part.program.operation) {
            Some(plan) if plan.is_limited() => 0.0,
            _ => self.start_shares.get(&part.id).copied().unwrap_or(0.0),
        };
        self.gain(|part| {
            if holds(part.program) {
                share * (1.0 - start(part)) * part.cycles.as_f64()
            } else {
                0.0
            }
        })
    }

    /// The programs that satisfy `holds`, which is evaluated once per program.
    pub(crate) fn programs_that(
        &self,
        holds: impl Fn(&ProgramNode) -> bool,
    ) -> BTreeSet<ProgramId> {
        self.programs.iter().filter(|(_, program)| holds(program)).map(|(id, _)| id).collect()
    }

    /// Cycles of the programs that satisfy `holds`, on the IPU with most of them, as a share of the
    /// run, and that IPU. `None` if there are none.
    pub(crate) fn busiest_share(
        &self,
        holds: impl Fn(&ProgramNode) -> bool,
    ) -> Option<(RunShare, IpuId)> {
        let wanted = self.programs_that(holds);
        let sums = self.runs.as_ref()?.shares_by_ipu(|program| wanted.contains(&program));
        let (ipu, share) = largest(&sums)?;
        (share.value() > 0.0).then_some((share, ipu))
    }

    /// The program that satisfies `holds` with the most cycles on an IPU.
    pub(crate) fn longest(
        &self,
        ipu: IpuId,
        holds: impl Fn(&ProgramNode) -> bool,
    ) -> Option<(ProgramId, Cycles)> {
        let runs = self.runs.as_ref()?;
        let own = runs
            .steps
            .iter()
            .filter(|((on, id, _), _)| *on == ipu && self.programs.get(*id).is_some_and(&holds));
        own.map(|((_, id, _), of)| (*id, of.cycles)).max_by_key(|(_, cycles)| *cycles)
    }

    /// The location in the trace, within a typical window, of the program that satisfies `holds`
    /// with the most cycles on an IPU.
    pub(crate) fn longest_in_trace(
        &self,
        ipu: IpuId,
        holds: impl Fn(&ProgramNode) -> bool,
    ) -> ViewLocation {
        ViewLocation {
            ipu: Some(ipu),
            program: self.longest(ipu, holds).map(|(program, _)| program),
            cycles: Some(self.typical_window()),
            ..ViewLocation::view("execution-trace")
        }
    }

    /// Number of steps of the programs that satisfy `holds`.
    pub(crate) fn count_of(&self, holds: impl Fn(&ProgramNode) -> bool) -> u64 {
        let wanted = self.programs_that(holds);
        let steps = self.runs.iter().flat_map(|runs| &runs.steps);
        steps.filter(|((_, id, _), _)| wanted.contains(id)).map(|(_, of)| of.steps).sum()
    }

    /// Bytes that are ever used, over all tiles.
    pub(crate) fn used_bytes(&self) -> Bytes {
        self.memory.map(TileMemory::excluding_gaps).total()
    }

    /// Bytes of some categories over all tiles.
    pub(crate) fn bytes_of(&self, wanted: &[MemoryCategory]) -> Bytes {
        let sum = |parts: &Vec<CategoryBytes>| -> Bytes {
            let own = parts.iter().filter(|part| wanted.contains(&part.category));
            own.map(|part| part.bytes).sum()
        };
        self.categories.map(sum).total()
    }

    /// The tiles with the most used bytes, the fullest first.
    pub(crate) fn fullest(&self, count: usize) -> Vec<(TileId, Bytes)> {
        fullest_tiles(&self.memory, count)
    }

    /// The name of a program, or its kind if it has none.
    pub fn name(&self, program: ProgramId) -> String {
        match self.programs.get(program) {
            Some(program) if !program.name.is_empty() => program.name.clone(),
            Some(program) => program.kind.name().to_owned(),
            None => "an unknown program".to_owned(),
        }
    }

    /// Cycles of a typical part of the run: a slot of median length while the pipeline is full, or
    /// else the whole run.
    pub(crate) fn typical_window(&self) -> CycleRange {
        let run = || self.runs.as_ref().map_or_else(CycleRange::default, |runs| runs.range);
        self.typical.unwrap_or_else(run)
    }
}

/// For operations whose plans are limited by memory, the share of the cycles of each of their
/// programs that a better plan would save.
fn wasted_by_plans(
    report: &Report,
    plans: &BTreeMap<OperationId, OperationPlan>,
) -> Result<BTreeMap<ProgramId, f64>, ReportError> {
    if !plans.values().any(OperationPlan::is_limited) || !report.has(ReportPart::Execution) {
        return Ok(BTreeMap::new());
    }
    let is_limited = |id: &OperationId| plans.get(id).is_some_and(OperationPlan::is_limited);
    let mut found = BTreeMap::new();
    for row in &limits(report)?.rows {
        let Some(wasted) = row.limits.wasted().filter(|_| row.operation.iter().any(is_limited))
        else {
            continue;
        };
        let share = wasted.as_f64() / row.limits.total().as_f64().max(1.0);
        found.extend(row.programs.iter().map(|program| (*program, share)));
    }
    Ok(found)
}

/// The activity of a program.
pub(crate) fn activity(program: &ProgramNode) -> StepActivity {
    StepActivity::from_program_kind(program.kind, program.stream)
}

/// True for a part of a copy with the host.
pub(super) fn copies(program: &ProgramNode) -> bool {
    use ProgramKind::{StreamCopyBegin, StreamCopyEnd, StreamCopyMid};
    matches!(program.kind, StreamCopyBegin | StreamCopyMid | StreamCopyEnd)
        && activity(program) == StepActivity::Host
}

/// The largest share and its key, the first if several are equal.
pub(super) fn largest<K: Ord + Copy>(sums: &BTreeMap<K, RunShare>) -> Option<(K, RunShare)> {
    let mut largest: Option<(K, RunShare)> = None;
    for (key, share) in sums {
        if largest.is_none_or(|(_, known)| share.value() > known.value()) {
            largest = Some((*key, *share));
        }
    }
    largest
}

fn peak(
    report: &Report,
    memory: &TileRuns<TileMemory>,
    variables: &[(VariableId, Variable)],
) -> Result<Option<PeakMemoryTile>, ReportError> {
    let needs = |tile: &TileMemory| tile.always_live.saturating_add(tile.peak_not_always_live);
    let mut fullest: Option<(TileId, Bytes)> = None;
    for (range, tile) in memory.iter() {
        if fullest.is_none_or(|(_, most)| needs(tile) > most) {
            fullest = Some((range.first, needs(tile)));
        }
    }
    let Some((tile, bytes)) = fullest.filter(|_| report.has(ReportPart::Liveness)) else {
        return Ok(None);
    };
    let tiles = TileRange::single(tile);
    let own = variables.iter().filter(|(_, variable)| variable.tiles.overlaps(tiles));
    let own: Vec<(VariableId, Variable)> = own.cloned().collect();
    let curve = liveness::curve_of(report, LivenessScope::Tile(tile), &own)?;
    let Some(step) = curve.peak() else { return Ok(None) };
    let mut variables: Vec<LiveVariable> =
        liveness::always_live_of(own.iter().cloned(), tiles).collect();
    variables.extend(liveness::live_at_of(own, tiles, &[step as u32]));
    variables.retain(|live| live.bytes.iter().any(|bytes| *bytes > Bytes::ZERO));
    variables.sort_by_key(|live| Bytes::MAX - live.total_bytes());
    let program = curve.programs[step];
    Ok(Some(PeakMemoryTile { tile, step: step as u32, program, bytes, variables }))
}
