//! Liveness: live variables at each step of the compiled program.
//!
//! Steps are those of the liveness walk: the leaves of the compiled program in program order, with
//! loop bodies once. Always-live bytes are the base of every step; other live bytes are on top. A
//! report describes one replica: figures of the whole system are that times the number of replicas.

mod by_address;

pub use by_address::{AddressTimeline, FreeBlock, FreeMemory, HighestVariable, PARTS, by_address};

use serde::{Deserialize, Serialize};
use std::ops::Range;
use tilescope_report::units::{
    Bytes, Cycles, IpuId, ProgramId, Quantity, TileId, TileRange, TileRuns, VariableId,
};
use tilescope_report::{
    OutlinedCall, ProgramNodeTable, Report, ReportError, ReportPart, Target, TileMemory, Variable,
    VariableFilter, VariablePlacement,
};

/// The tiles that a curve covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LivenessScope {
    /// All tiles of the replica.
    #[default]
    Whole,
    /// The tiles of one IPU.
    Ipu(IpuId),
    Tile(TileId),
}

impl LivenessScope {
    pub(crate) fn tiles(self, target: &Target) -> TileRange {
        match self {
            Self::Whole => TileRange::first_tiles(target.tiles_per_replica()),
            Self::Ipu(ipu) => target.tiles_of_ipu(ipu),
            Self::Tile(tile) => TileRange::single(tile),
        }
    }
}

/// Bytes live at each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LivenessCurve {
    /// Bytes that are always live.
    pub always: Bytes,
    /// Other bytes, one value per step.
    pub others: Vec<Bytes>,
    /// The program of each step.
    pub programs: Vec<ProgramId>,
    /// Memory of the tiles in bytes.
    pub capacity: Bytes,
}

impl LivenessCurve {
    /// The step with the most live bytes, the first if several are equal.
    pub fn peak(&self) -> Option<usize> {
        let most = self.others.iter().max()?;
        self.others.iter().position(|bytes| bytes == most)
    }

    /// Bytes live at a step.
    pub fn total(&self, step: usize) -> Bytes {
        self.always + self.others.get(step).copied().unwrap_or(Bytes::ZERO)
    }
}

/// The curve of a scope; `None` if the report has no liveness walk.
///
/// O(variables + steps).
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn curve(report: &Report, source: LivenessScope) -> Result<Option<LivenessCurve>, ReportError> {
    if !report.has(ReportPart::Liveness) {
        return Ok(None);
    }
    let variables = match source {
        // The sums over all tiles are recorded.
        LivenessScope::Whole => Vec::new(),
        LivenessScope::Ipu(_) | LivenessScope::Tile(_) => variables(report, source)?,
    };
    curve_of(report, source, &variables).map(Some)
}

/// The curve of a scope, given the variables with a part on it.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn curve_of(
    report: &Report,
    source: LivenessScope,
    variables: &[(VariableId, Variable)],
) -> Result<LivenessCurve, ReportError> {
    let target = report.target()?;
    let steps = report.liveness()?;
    let tiles = source.tiles(&target);
    let others = match source {
        LivenessScope::Whole => steps.iter().map(|step| step.bytes).collect(),
        LivenessScope::Ipu(_) | LivenessScope::Tile(_) => {
            let lives = variables.iter().filter_map(|(_, variable)| {
                Some((variable.lifetime.clone()?, bytes_on(&variable.tiles, tiles)))
            });
            sums(lives, steps.len())
        }
    };
    let always = report.tile_memory()?.map(|tile: &TileMemory| tile.always_live);
    let capacity = target.bytes_per_tile.0.saturating_mul(tiles.count().into());
    let always = sum_over(&always, tiles, |bytes| bytes.0);
    Ok(LivenessCurve {
        always: Bytes(always),
        others,
        programs: steps.iter().map(|s| s.program).collect(),
        capacity: Bytes(capacity),
    })
}

/// Bytes live at each of `steps` steps, from pairs of a lifetime and its bytes.
fn sums(lives: impl Iterator<Item = (Range<u32>, Bytes)>, steps: usize) -> Vec<Bytes> {
    let mut born = vec![Bytes::ZERO; steps + 1];
    let mut gone = vec![Bytes::ZERO; steps + 1];
    for (life, bytes) in lives {
        let start = (life.start as usize).min(steps);
        let end = (life.end as usize).min(steps);
        if start < end {
            born[start] = born[start].saturating_add(bytes);
            gone[end] = gone[end].saturating_add(bytes);
        }
    }
    let mut live = Bytes::ZERO;
    let mut sums = Vec::with_capacity(steps);
    for step in 0..steps {
        live = live.saturating_add(born[step]).saturating_sub(gone[step]);
        sums.push(live);
    }
    sums
}

fn sum_over<T: Clone + PartialEq, Q: Quantity>(
    runs: &TileRuns<T>,
    tiles: TileRange,
    value: impl Fn(&T) -> Q,
) -> Q {
    let mut sum = Q::ZERO;
    for (run, of) in runs.iter() {
        let count = run.intersection(tiles).count();
        sum = sum.saturating_add(value(of).saturating_mul(count.into()));
    }
    sum
}

/// Bytes of a variable on some tiles.
pub(crate) fn bytes_on(placed: &TileRuns<VariablePlacement>, tiles: TileRange) -> Bytes {
    sum_over(placed, tiles, |part| part.bytes)
}

/// The variables with a part on the tiles of a scope.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn variables(
    report: &Report,
    source: LivenessScope,
) -> Result<Vec<(VariableId, Variable)>, ReportError> {
    let target = report.target()?;
    let tiles = source.tiles(&target);
    let all = target.tiles_per_replica();
    let tiles = if tiles.count() < all { Some(tiles) } else { None };
    report.variables(&VariableFilter { tiles, category: None, after: None, limit: usize::MAX })
}

/// A variable with one value per column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveVariable {
    pub id: VariableId,
    pub name: String,
    /// Category and shape as text.
    pub about: String,
    /// Liveness steps it is live in; `None` means always.
    pub lifetime: Option<Range<u32>>,
    /// Bytes, one per column.
    pub bytes: Vec<Bytes>,
}

impl LiveVariable {
    /// Bytes of all columns.
    pub fn total_bytes(&self) -> Bytes {
        self.bytes.iter().sum()
    }
}

/// Always-live variables of a scope, with a single column.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn always_live(
    report: &Report,
    source: LivenessScope,
) -> Result<Vec<LiveVariable>, ReportError> {
    let tiles = source.tiles(report.target()?.as_ref());
    Ok(always_live_of(variables(report, source)?, tiles).collect())
}

/// The always-live ones among some variables, with their bytes on `tiles`.
pub(crate) fn always_live_of(
    variables: impl IntoIterator<Item = (VariableId, Variable)>,
    tiles: TileRange,
) -> impl Iterator<Item = LiveVariable> {
    let always = variables.into_iter().filter(|(_, variable)| variable.lifetime.is_none());
    always.map(move |(id, variable)| live(id, variable, |of| vec![bytes_on(of, tiles)]))
}

/// Variables of a scope that are live at any of `steps`, with one column per step, 0 at steps
/// without them.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn live_at(
    report: &Report,
    source: LivenessScope,
    steps: &[u32],
) -> Result<Vec<LiveVariable>, ReportError> {
    let tiles = source.tiles(report.target()?.as_ref());
    Ok(live_at_of(variables(report, source)?, tiles, steps))
}

/// The ones among some variables that are live at any of `steps`, with their bytes on `tiles`.
pub(crate) fn live_at_of(
    variables: Vec<(VariableId, Variable)>,
    tiles: TileRange,
    steps: &[u32],
) -> Vec<LiveVariable> {
    let mut found = Vec::new();
    for (id, variable) in variables {
        let Some(life) = variable.lifetime.clone() else { continue };
        if steps.iter().any(|step| life.contains(step)) {
            let list_bytes = |placed: &TileRuns<VariablePlacement>| {
                let bytes = bytes_on(placed, tiles);
                steps
                    .iter()
                    .map(|step| if life.contains(step) { bytes } else { Bytes::ZERO })
                    .collect()
            };
            found.push(live(id, variable, list_bytes));
        }
    }
    found
}

fn live(
    id: VariableId,
    variable: Variable,
    columns: impl FnOnce(&TileRuns<VariablePlacement>) -> Vec<Bytes>,
) -> LiveVariable {
    let about = match variable.shape.as_str() {
        "" => variable.category.title().to_owned(),
        shape => format!("{}, {shape}", variable.category.title()),
    };
    let bytes = columns(&variable.tiles);
    LiveVariable { id, name: variable.name, about, lifetime: variable.lifetime, bytes }
}

/// Vertices of one type, with one value per step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepVertices {
    pub name: String,
    /// Instances on the tiles of the scope, one value per step.
    pub counts: Vec<u64>,
    /// Bytes of state of one instance.
    pub state_bytes: Bytes,
}

/// The vertices of the compute sets of `steps`.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn vertices(
    report: &Report,
    source: LivenessScope,
    steps: &[ProgramId],
) -> Result<Vec<StepVertices>, ReportError> {
    let tiles = source.tiles(report.target()?.as_ref());
    let types = report.vertex_types()?;
    let programs = report.programs()?;
    let mut found: Vec<StepVertices> = Vec::new();
    for (column, step) in steps.iter().enumerate() {
        let set = programs.get(*step).and_then(|program| program.compute_set);
        let Some(set) = set.map(|id| report.compute_set(id)).transpose()?.flatten() else {
            continue;
        };
        for group in &set.vertices {
            let Some(kind) = types.get(group.vertex_type.index()) else { continue };
            let count = sum_over(&group.count, tiles, |count| *count);
            let known = found.iter().position(|vertices| vertices.name == kind.name);
            let place = known.unwrap_or_else(|| {
                let name = kind.name.clone();
                let counts = vec![0; steps.len()];
                found.push(StepVertices { name, counts, state_bytes: kind.state_bytes });
                found.len() - 1
            });
            found[place].counts[column] += count;
        }
    }
    found.retain(|vertices| vertices.counts.iter().any(|count| *count > 0));
    Ok(found)
}

/// Cycles of one tile, one value per step; `None` for steps without the tile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileCycles {
    pub tile: TileId,
    /// Cycles, one per step.
    pub cycles: Vec<Option<Cycles>>,
}

/// Cycles of the compute sets of `steps` on each tile of a scope that takes part in any of them.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn cycles(
    report: &Report,
    source: LivenessScope,
    steps: &[ProgramId],
) -> Result<Vec<TileCycles>, ReportError> {
    let tiles = source.tiles(report.target()?.as_ref());
    let programs = report.programs()?;
    let mut columns: Vec<TileRuns<Cycles>> = Vec::new();
    for step in steps {
        let set = programs.get(*step).and_then(|program| program.compute_set);
        let set = set.map(|id| report.compute_set(id)).transpose()?.flatten();
        columns.push(set.map_or_else(TileRuns::empty, |set| set.cycles));
    }
    let mut rows = Vec::new();
    for tile in tiles.iter() {
        let cycles: Vec<Option<Cycles>> =
            columns.iter().map(|cycles| cycles.get(tile).copied()).collect();
        if cycles.iter().any(Option::is_some) {
            rows.push(TileCycles { tile, cycles });
        }
    }
    Ok(rows)
}

/// The path of programs from a root down to `program`, starting with the root; the first path
/// found, or empty if there is none. A program of outlined code is below its call.
pub fn enclosing(programs: &ProgramNodeTable, program: ProgramId) -> Vec<ProgramId> {
    match programs.get(program).and_then(|program| program.outlined) {
        Some(OutlinedCall { call, .. }) => {
            let above = path_to(programs, call);
            if above.is_empty() { above } else { [above, vec![program]].concat() }
        }
        None => path_to(programs, program),
    }
}

/// The path down to a program of the tree.
fn path_to(programs: &ProgramNodeTable, program: ProgramId) -> Vec<ProgramId> {
    let mut seen = std::collections::BTreeSet::new();
    for root in programs.roots() {
        let mut path = vec![(*root, 0)];
        seen.insert(*root);
        while let Some((id, next)) = path.pop() {
            if id == program {
                let above = path.into_iter().map(|(id, _)| id);
                return above.chain([id]).collect();
            }
            let children = programs.get(id).map_or(&[][..], |program| &program.children);
            if let Some(child) = children.get(next) {
                path.push((id, next + 1));
                if seen.insert(*child) {
                    path.push((*child, 0));
                }
            }
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lifetimes_are_half_open() {
        let lives = [(0..2, 10), (1..3, 5), (2..9, 1), (7..9, 100)]
            .map(|(life, bytes)| (life, Bytes(bytes)));
        assert_eq!(sums(lives.into_iter(), 4), [10, 15, 6, 1].map(Bytes));
        assert_eq!(sums([(Range { start: 3, end: 1 }, Bytes(9))].into_iter(), 2), [Bytes::ZERO; 2]);
        assert_eq!(sums(std::iter::empty(), 0), []);
    }

    #[test]
    fn the_peak_is_the_first_of_the_highest_steps() {
        let curve = LivenessCurve {
            always: Bytes(3),
            others: vec![Bytes(1), Bytes(8), Bytes(8), Bytes(2)],
            ..LivenessCurve::default()
        };
        assert_eq!(curve.peak(), Some(1));
        assert_eq!(curve.total(1), Bytes(11));
        assert_eq!(LivenessCurve::default().peak(), None);
    }
}
