//! Data shared by handles: the open report, and cached parts of it.

use super::not_recorded;
use crate::errors::report_error;
use pyo3::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tilescope_report::units::{
    Bytes, ComputeSetId, IpuId, ProgramId, StepId, TileId, TileRange, TileRuns, VariableId,
    VertexTypeId,
};
use tilescope_report::{
    CategoryBytes, ComputeSet, ExchangeTraffic, LivenessStep, ModelOperation, ProgramKind,
    ProgramNode, ProgramNodeTable, Report, ReportError, StepDetails, Target, TileMemory, TraceMark,
    Variable, VariableFilter, VertexTypeInfo, code_owners,
};

/// Control code of programs, tile by tile; in parts that add up.
type ControlCode = BTreeMap<ProgramId, Vec<TileRuns<Bytes>>>;

/// Programs that run the code of another one, by that.
type FurtherCalls = BTreeMap<ProgramId, Vec<ProgramId>>;

/// Number of steps read at a time.
const STEPS_READ: u64 = 4096;
/// Number of cached blocks of steps; iterating over the steps needs one.
const BLOCKS_KEPT: usize = 4;

/// A value that is read once.
pub(super) struct Once<T>(OnceLock<Arc<T>>);

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T> Once<T> {
    fn get(&self, read: impl FnOnce() -> PyResult<T>) -> PyResult<Arc<T>> {
        if let Some(known) = self.0.get() {
            return Ok(known.clone());
        }
        // Not read under a lock: reading may need the interpreter, which a waiting thread may hold.
        let read = Arc::new(read()?);
        Ok(self.0.get_or_init(|| read).clone())
    }
}

/// A tile, an IPU, or all of the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TileScope {
    Replica,
    Ipu(IpuId),
    Tile(TileId),
}

/// Steps by block.
pub(super) type StepBlock = Arc<Vec<StepDetails>>;

/// Variables of a report, and the numbers of their parts on tiles.
pub(super) struct VariableTable {
    pub(super) variables: Vec<Variable>,
    /// The number of the first part of each variable, with one more entry for the end.
    pub(super) first_parts: Vec<u32>,
    /// The class of each variable: variables of one lifetime have the same.
    pub(super) classes: Vec<u32>,
    /// The lifetime of each class.
    pub(super) lifetimes: Vec<Range<u32>>,
    last: Mutex<Option<(VariableId, PartsOfVariable)>>,
}

/// Tiles and bytes of the parts of a variable.
pub(super) type PartsOfVariable = Arc<Vec<(TileId, u64)>>;

/// Liveness steps whose programs use each variable, by variable.
pub(super) struct UsesByVariable(pub(super) Vec<Vec<Range<u32>>>);

/// Liveness steps by program.
pub(super) type StepsOfPrograms = BTreeMap<ProgramId, Vec<u32>>;

/// An open report with its cached parts.
pub(crate) struct ReportData {
    pub(super) report: Report,
    pub(super) target: Arc<Target>,
    compute_sets: Once<BTreeMap<ComputeSetId, ComputeSet>>,
    exchanges: Once<BTreeMap<ProgramId, ExchangeTraffic>>,
    control_code: Once<Option<ControlCode>>,
    further_calls: Once<FurtherCalls>,
    vertex_tiles: Once<VertexTiles>,
    liveness: Once<Vec<LivenessStep>>,
    steps_of_programs: Once<StepsOfPrograms>,
    variables: Once<VariableTable>,
    uses: Once<Option<UsesByVariable>>,
    live_bytes: Mutex<BTreeMap<TileScope, Arc<Vec<u64>>>>,
    runs: Once<Vec<TraceMark>>,
    blocks: Mutex<Vec<(u64, StepBlock)>>,
}

/// For each vertex type, the tiles with its code. Shared code belongs to its first type.
pub(super) struct VertexTiles(pub(super) BTreeMap<VertexTypeId, Vec<bool>>);

impl ReportData {
    pub(super) fn new(report: Report) -> Result<Self, ReportError> {
        Ok(Self {
            target: report.target()?,
            report,
            compute_sets: Once::default(),
            exchanges: Once::default(),
            control_code: Once::default(),
            further_calls: Once::default(),
            vertex_tiles: Once::default(),
            liveness: Once::default(),
            steps_of_programs: Once::default(),
            variables: Once::default(),
            uses: Once::default(),
            live_bytes: Mutex::default(),
            runs: Once::default(),
            blocks: Mutex::default(),
        })
    }

    /// Number of tiles of the replica.
    pub(super) fn tiles(&self) -> usize {
        self.target.tiles_per_replica() as usize
    }

    pub(super) fn programs(&self) -> PyResult<Arc<ProgramNodeTable>> {
        self.report.programs().map_err(report_error)
    }

    pub(super) fn operations(&self) -> PyResult<Arc<Vec<ModelOperation>>> {
        self.report.operations().map_err(report_error)
    }

    pub(super) fn vertex_types(&self) -> PyResult<Arc<Vec<VertexTypeInfo>>> {
        self.report.vertex_types().map_err(report_error)
    }

    pub(super) fn tile_memory(&self) -> PyResult<Arc<TileRuns<TileMemory>>> {
        self.report.tile_memory().map_err(report_error)
    }

    pub(super) fn tile_categories(&self) -> PyResult<Arc<TileRuns<Vec<CategoryBytes>>>> {
        self.report.tile_categories().map_err(report_error)
    }

    pub(super) fn compute_sets(&self) -> PyResult<Arc<BTreeMap<ComputeSetId, ComputeSet>>> {
        self.compute_sets.get(|| {
            let sets = self.report.compute_sets().map_err(report_error)?;
            Ok(sets.into_iter().collect())
        })
    }

    /// Traffic by program; that of outlined code once.
    pub(super) fn exchanges(&self) -> PyResult<Arc<BTreeMap<ProgramId, ExchangeTraffic>>> {
        self.exchanges.get(|| {
            let exchanges = self.report.exchanges().map_err(report_error)?;
            Ok(exchanges.into_iter().map(|exchange| (exchange.program, exchange)).collect())
        })
    }

    /// Control code that programs have of their own. What calls outlined code once more is code of
    /// the first step that is called: clients of Poplar's reports look for control code in programs
    /// that have none below them, where nearly all of it is.
    pub(super) fn control_code(&self) -> PyResult<Arc<Option<ControlCode>>> {
        self.control_code.get(|| {
            let Some(recorded) = self.report.control_code().map_err(report_error)? else {
                return Ok(None);
            };
            let programs = self.programs()?;
            let mut code = ControlCode::new();
            let (calls, others): (Vec<_>, Vec<_>) = recorded.into_iter().partition(|of| {
                programs.get(of.program).is_some_and(|node| node.kind == ProgramKind::Call)
            });
            code.extend(others.into_iter().map(|of| (of.program, vec![of.tiles])));
            for call in calls {
                let called = first_leaf(&programs, call.program, &|id| code.contains_key(&id));
                let holder = called.unwrap_or(call.program);
                code.entry(holder).or_default().push(call.tiles);
            }
            Ok(Some(code))
        })
    }

    /// Programs that run code of others.
    pub(super) fn further_calls(&self) -> PyResult<Arc<FurtherCalls>> {
        self.further_calls.get(|| {
            let mut found = FurtherCalls::new();
            for (call, body) in self.programs()?.further_uses() {
                found.entry(body).or_default().push(call);
            }
            Ok(found)
        })
    }

    pub(super) fn vertex_tiles(&self) -> PyResult<Arc<VertexTiles>> {
        self.vertex_tiles.get(|| {
            let types = self.vertex_types()?;
            let sets = self.compute_sets()?;
            let owners = code_owners(&types);
            let mut found: BTreeMap<VertexTypeId, Vec<bool>> = BTreeMap::new();
            for group in sets.values().flat_map(|set| &set.vertices) {
                let Some(owner) = owners.get(group.vertex_type.index()) else { continue };
                let on = found.entry(*owner).or_insert_with(|| vec![false; self.tiles()]);
                for (tiles, _) in group.count.iter().filter(|(_, count)| **count > 0) {
                    on.get_mut(tiles.indices()).into_iter().for_each(|on| on.fill(true));
                }
            }
            Ok(VertexTiles(found))
        })
    }

    pub(super) fn liveness(&self) -> PyResult<Arc<Vec<LivenessStep>>> {
        self.liveness.get(|| self.report.liveness().map_err(report_error))
    }

    pub(super) fn steps_of_programs(&self) -> PyResult<Arc<StepsOfPrograms>> {
        self.steps_of_programs.get(|| {
            let mut found = StepsOfPrograms::new();
            for (at, step) in (0u32..).zip(self.liveness()?.iter()) {
                found.entry(step.program).or_default().push(at);
            }
            Ok(found)
        })
    }

    pub(super) fn variables(&self) -> PyResult<Arc<VariableTable>> {
        self.variables.get(|| {
            let all =
                VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
            let found = self.report.variables(&all).map_err(report_error)?;
            let steps = u32::try_from(self.liveness()?.len()).unwrap_or(u32::MAX);
            let variables: Vec<Variable> =
                found.into_iter().map(|(_, variable)| variable).collect();
            Ok(VariableTable::new(variables, steps))
        })
    }

    /// Steps whose programs use each variable; `None` if uses were not recorded.
    pub(super) fn uses(&self) -> PyResult<Arc<Option<UsesByVariable>>> {
        self.uses.get(|| {
            let Some(recorded) = self.report.variable_uses().map_err(report_error)? else {
                return Ok(None);
            };
            let table = self.variables()?;
            let mut uses: Vec<Vec<Range<u32>>> = vec![Vec::new(); table.variables.len()];
            for used in recorded {
                let of = uses.get_mut(used.variable.index());
                of.into_iter().for_each(|of| of.push(used.steps.clone()));
            }
            for (uses, variable) in uses.iter_mut().zip(&table.variables) {
                if let (true, Some(life)) = (uses.is_empty(), &variable.lifetime) {
                    uses.push(life.clone());
                }
            }
            Ok(Some(UsesByVariable(uses)))
        })
    }

    /// Bytes of variables with a lifetime at each liveness step.
    pub(super) fn live_bytes(&self, scope: TileScope) -> PyResult<Arc<Vec<u64>>> {
        if let Some(known) = lock(&self.live_bytes).get(&scope) {
            return Ok(known.clone());
        }
        let bytes = Arc::new(self.sum_live_bytes(scope)?);
        lock(&self.live_bytes).insert(scope, bytes.clone());
        Ok(bytes)
    }

    fn sum_live_bytes(&self, scope: TileScope) -> PyResult<Vec<u64>> {
        let steps = self.liveness()?;
        if scope == TileScope::Replica {
            return Ok(steps.iter().map(|step| step.bytes.0).collect());
        }
        let mut changes = vec![0i128; steps.len() + 1];
        for variable in &self.variables()?.variables {
            let Some(life) = &variable.lifetime else { continue };
            let bytes = i128::from(self.bytes_in(variable, scope));
            let edges = [(life.start, bytes), (life.end, -bytes)];
            for (step, change) in edges {
                changes.get_mut(step as usize).into_iter().for_each(|sum| *sum += change);
            }
        }
        let mut live = 0;
        let sums = changes.iter().take(steps.len()).map(|change| {
            live += change;
            u64::try_from(live).unwrap_or(0)
        });
        Ok(sums.collect())
    }

    /// Bytes of a variable on the tiles of a scope.
    pub(super) fn bytes_in(&self, variable: &Variable, scope: TileScope) -> u64 {
        let range = match scope {
            TileScope::Replica => TileRange::first_tiles(self.target.tiles_per_replica()),
            TileScope::Ipu(ipu) => self.target.tiles_of_ipu(ipu),
            TileScope::Tile(tile) => {
                return variable.tiles.get(tile).map_or(0, |part| part.bytes.0);
            }
        };
        let parts = variable.tiles.iter();
        parts
            .map(|(tiles, part)| {
                u64::from(tiles.intersection(range).count()).saturating_mul(part.bytes.0)
            })
            .fold(0, u64::saturating_add)
    }

    pub(super) fn runs(&self) -> PyResult<Arc<Vec<TraceMark>>> {
        self.runs.get(|| self.report.runs().map_err(report_error))
    }

    pub(super) fn step_count(&self) -> PyResult<u64> {
        self.report.step_count().map_err(report_error)
    }

    /// The block that contains a step, and the index of the step in it.
    pub(super) fn step_block(&self, py: Python<'_>, step: u64) -> PyResult<(StepBlock, usize)> {
        let block = step / STEPS_READ;
        let place = (step % STEPS_READ) as usize;
        if let Some((_, known)) = lock(&self.blocks).iter().find(|(number, _)| *number == block) {
            return Ok((known.clone(), place));
        }
        let first = StepId(block * STEPS_READ);
        let read = || self.report.steps(first..first + STEPS_READ, STEPS_READ as usize);
        let steps = Arc::new(py.detach(read).map_err(report_error)?);
        let mut blocks = lock(&self.blocks);
        if blocks.len() >= BLOCKS_KEPT {
            blocks.remove(0);
        }
        blocks.push((block, steps.clone()));
        Ok((steps, place))
    }

    /// The node of a program.
    pub(super) fn node<T>(
        &self,
        id: ProgramId,
        take: impl FnOnce(&ProgramNode) -> T,
    ) -> PyResult<T> {
        let programs = self.programs()?;
        programs.get(id).map(take).ok_or_else(|| not_recorded("program"))
    }
}

/// The first program below one, in the order in which they run, that has none below it and is wanted.
fn first_leaf(
    programs: &ProgramNodeTable,
    root: ProgramId,
    is_wanted: &dyn Fn(ProgramId) -> bool,
) -> Option<ProgramId> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![root]);
    while let Some(id) = open.pop() {
        let children = programs.get(id).map_or(&[][..], |node| &node.children);
        if children.is_empty() && is_wanted(id) {
            return Some(id);
        }
        if seen.insert(id) {
            open.extend(children.iter().rev());
        }
    }
    None
}

impl VariableTable {
    fn new(variables: Vec<Variable>, steps: u32) -> Self {
        let mut known: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        let mut table = Self {
            first_parts: Vec::with_capacity(variables.len() + 1),
            classes: Vec::with_capacity(variables.len()),
            lifetimes: Vec::new(),
            variables: Vec::new(),
            last: Mutex::default(),
        };
        let mut parts = 0u32;
        for variable in &variables {
            table.first_parts.push(parts);
            parts = parts.saturating_add(variable.tiles.tile_count());
            let life = variable.lifetime.clone().unwrap_or(0..steps);
            let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
            let class = *known.entry((life.start, life.end)).or_insert(next);
            if class == next && table.lifetimes.len() == next as usize {
                table.lifetimes.push(life);
            }
            table.classes.push(class);
        }
        table.first_parts.push(parts);
        table.variables = variables;
        table
    }

    /// Number of parts of variables on tiles.
    pub(super) fn parts(&self) -> u32 {
        self.first_parts.last().copied().unwrap_or(0)
    }

    /// Numbers of the parts of a variable.
    pub(super) fn part_range(&self, variable: VariableId) -> Range<u32> {
        let get_number = |at: usize| self.first_parts.get(at).copied().unwrap_or_default();
        get_number(variable.index())..get_number(variable.index() + 1)
    }

    /// The variable of a part.
    pub(super) fn variable_of(&self, part: u32) -> Option<VariableId> {
        let after = self.first_parts.partition_point(|first| *first <= part);
        after.checked_sub(1).map(VariableId::from_index)
    }

    /// The tiles of a variable's parts in order, with their bytes. The last answer is cached:
    /// clients iterate over the parts of one variable after another.
    pub(super) fn parts_of(&self, variable: VariableId) -> PartsOfVariable {
        let mut last = lock(&self.last);
        if let Some((_, known)) = last.as_ref().filter(|(known, _)| *known == variable) {
            return known.clone();
        }
        let runs = self.variables.get(variable.index()).map(|variable| variable.tiles.iter());
        let parts = runs.into_iter().flatten().flat_map(|(tiles, part)| {
            let bytes = part.bytes.0;
            tiles.iter().map(move |tile| (tile, bytes))
        });
        let parts: PartsOfVariable = Arc::new(parts.collect());
        *last = Some((variable, parts.clone()));
        parts
    }

    /// The part of a variable on a tile, if it has one there.
    pub(super) fn part_on(&self, variable: VariableId, tile: TileId) -> Option<u32> {
        let mut part = *self.first_parts.get(variable.index())?;
        for (tiles, _) in self.variables.get(variable.index())?.tiles.iter() {
            if tiles.contains(tile) {
                return Some(part + (tile - tiles.first));
            }
            part += tiles.count();
        }
        None
    }
}
