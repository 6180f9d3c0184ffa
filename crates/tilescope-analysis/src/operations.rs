//! What each operation costs: code, cycles, floating point operations, memory.
//!
//! Operations are seen in three layers: those of the model, the library calls they are made of,
//! and single programs. Cycles of vertices are known tile by tile and once per compute set, so sums
//! over tiles are of one execution; elapsed cycles come from the run and add up all executions.

use crate::critical_path::{ProgramExposure, exposure};
use crate::json::{self, JsonLine};
use crate::program_names::without_counter_prefix;
use crate::trace::{ProgramExecutions, program_runs};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{
    Bytes, ComputeSetId, Cycles, IpuId, OperationId, ProgramId, Quantity, TileId, TileRange,
    TileRuns, VertexTypeId, grouped, percent,
};
use tilescope_report::{
    ComputeSet, ErrorBand, ModelOperation, ProgramKind, ProgramNode, Report, ReportError,
    ReportPart, TileTraffic, TrainingPass, VariableFilter, VariablePlacement, VertexTypeInfo,
    code_owners,
};

/// The layer that operations are counted in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OperationLayer {
    /// An operation of the model.
    #[default]
    Model,
    /// A call of a library: `layer1/conv/Conv_5x5`.
    Library,
    Program,
}

/// One operation with everything it costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpRow {
    /// `layer1/conv`
    pub name: String,
    /// Operator, or kind of program.
    pub kind: String,
    /// Operator and version of the nodes of a file that it was made for: `Conv@11`.
    pub source: String,
    /// The operation of the model it belongs to.
    pub operation: Option<OperationId>,
    /// Forward, backward or update.
    pub pass: Option<TrainingPass>,
    /// Block of the model.
    pub block: String,
    /// IPU of the replica.
    pub ipu: Option<IpuId>,
    pub shapes: String,
    /// The programs it is made of, in the order of the compiled program.
    pub programs: Vec<ProgramId>,
    /// Exchange code of its programs over all tiles.
    pub exchange_code: Bytes,
    /// Code of its codelets, once per tile and codelet, other operations may share it.
    pub vertex_code: Bytes,
    /// Cycles of one execution summed over tiles.
    pub cycles_all_tiles: Cycles,
    /// Cycles of one execution, the slowest tile of each compute set.
    pub cycles_slowest: Cycles,
    /// Executions of its most frequent program.
    pub executions: u64,
    /// Cycles of all its steps in the run, exchanges included.
    pub elapsed: Cycles,
    /// Cycles of its exchanges in the run, inside IPUs and between them.
    pub exchanging: Cycles,
    /// Floating point operations of one execution.
    pub flops: u64,
    /// Bytes of variables made for it over all tiles.
    pub memory: Bytes,
    pub vertices: u64,
    /// Code of its exchanges and codelets on the tile that has most of it.
    pub code_most: Bytes,
    /// Bytes of the variables made for it on the tile that has most of them.
    pub memory_most: Bytes,
    /// Cycles on the critical path, exposed and hidden; none where the path is not known.
    pub exposure: Option<ProgramExposure>,
    /// How far its predicted costs may be off, where the report says so.
    pub errors: Option<ErrorBand>,
}

impl OpRow {
    /// Code over all tiles.
    pub fn code(&self) -> Bytes {
        self.exchange_code + self.vertex_code
    }
}

/// Costs of programs, whichever operation they belong to.
struct ProgramCosts {
    sets: BTreeMap<ComputeSetId, ComputeSet>,
    types: std::sync::Arc<Vec<VertexTypeInfo>>,
    /// The vertex type that each one's code is counted with.
    code_owners: Vec<VertexTypeId>,
    exchanges: BTreeMap<ProgramId, TileRuns<TileTraffic>>,
    runs: BTreeMap<ProgramId, ProgramExecutions>,
    exposures: Option<BTreeMap<ProgramId, ProgramExposure>>,
}

impl ProgramCosts {
    fn read(report: &Report) -> Result<Self, ReportError> {
        let runs = report.trace()?.map(|trace| program_runs(&trace)).transpose()?;
        let types = report.vertex_types()?;
        Ok(Self {
            sets: report.compute_sets()?.into_iter().collect(),
            code_owners: code_owners(&types),
            types,
            exchanges: report.exchanges()?.into_iter().map(|of| (of.program, of.tiles)).collect(),
            runs: runs.map(|runs| runs.by_program()).unwrap_or_default(),
            exposures: exposure(report)?,
        })
    }

    /// The compute set that a program executes.
    fn set_of(&self, program: &ProgramNode) -> Option<&ComputeSet> {
        program.compute_set.and_then(|set| self.sets.get(&set))
    }

    /// Adds a program to its operation; code goes onto `code`.
    fn add(
        &self,
        row: &mut OpRow,
        codelets: &mut CodeletTiles,
        code: &mut TileByteSums,
        (id, program): (ProgramId, &ProgramNode),
    ) {
        // Outlined code is there once, with the operation that is first to run it.
        if let Some(traffic) = self.exchanges.get(&id) {
            row.exchange_code += code.add(traffic, |tile| tile.code_bytes);
        }
        if let Some(set) = self.set_of(program) {
            row.cycles_all_tiles += set.cycles.total();
            row.cycles_slowest += set.cycles.max();
            row.vertices += set.vertices.iter().map(|group| group.count.total()).sum::<u64>();
            codelets.add(set, &self.code_owners);
        }
        if let Some(exposures) = &self.exposures {
            let sum = row.exposure.get_or_insert_with(ProgramExposure::nothing);
            exposures.get(&id).into_iter().for_each(|of| sum.add(of));
        }
        if let Some(of) = self.runs.get(&id) {
            row.executions = row.executions.max(of.executions);
            row.elapsed += of.totals.cycles;
            if matches!(program.kind, ProgramKind::DoExchange | ProgramKind::GlobalExchange) {
                row.exchanging += of.totals.cycles;
            }
        }
    }
}

/// Bytes that tiles have of one thing after another.
///
/// Kept as by how much each tile has more than the one before, so that a run of tiles costs two
/// additions, and asked for one operation at a time, so that one table of all tiles is enough.
#[derive(Default)]
struct TileByteSums {
    steps: Vec<i128>,
    /// Where steps were made.
    touched: Option<TileRange>,
}

impl TileByteSums {
    /// Adds what tiles have; returns the sum over them.
    fn add<T>(&mut self, runs: &TileRuns<T>, value: impl Fn(&T) -> Bytes) -> Bytes {
        let of_runs = runs.iter().map(|(tiles, of)| {
            let bytes = value(of);
            self.add_range(tiles, bytes);
            bytes.saturating_mul(tiles.count().into())
        });
        of_runs.fold(Bytes::ZERO, Bytes::saturating_add)
    }

    fn add_range(&mut self, tiles: TileRange, value: Bytes) {
        if self.steps.len() <= tiles.end.index() {
            self.steps.resize(tiles.end.index() + 1, 0);
        }
        self.steps[tiles.first.index()] += i128::from(value.0);
        self.steps[tiles.end.index()] -= i128::from(value.0);
        let touched = self.touched.unwrap_or(tiles);
        self.touched =
            Some(TileRange::new(touched.first.min(tiles.first), touched.end.max(tiles.end)));
    }

    /// The most that any tile has; nothing is left of it.
    fn take_most(&mut self) -> Bytes {
        let Some(touched) = self.touched.take() else { return Bytes::ZERO };
        let (mut height, mut most) = (0, 0);
        for step in &mut self.steps[touched.first.index()..=touched.end.index()] {
            height += std::mem::take(step);
            most = most.max(height);
        }
        debug_assert_eq!(height, 0, "all runs end");
        Bytes(u64::try_from(most).unwrap_or(u64::MAX))
    }
}

/// Tiles on which codelets are needed.
#[derive(Default)]
struct CodeletTiles {
    tiles: BTreeMap<u32, BTreeSet<TileRange>>,
    /// Runs that were added: equal layers share theirs.
    known: BTreeSet<(u32, (usize, u32))>,
}

impl CodeletTiles {
    fn add(&mut self, set: &ComputeSet, owners: &[VertexTypeId]) {
        for group in &set.vertices {
            let Some(&VertexTypeId(kind)) = owners.get(group.vertex_type.index()) else { continue };
            if self.known.insert((kind, group.count.shared_key())) {
                let ranges = self.tiles.entry(kind).or_default();
                ranges.extend(group.count.iter().map(|(tiles, _)| tiles));
            }
        }
    }

    /// Bytes of codelets over all tiles, each once per tile; they go onto `code` as well.
    fn bytes(self, types: &[VertexTypeInfo], code: &mut TileByteSums) -> Bytes {
        let mut total = Bytes::ZERO;
        for (kind, ranges) in &self.tiles {
            let bytes = types.get(*kind as usize).map_or(Bytes::ZERO, |kind| kind.code_bytes);
            let mut covered = TileId(0);
            for range in ranges {
                let first = range.first.max(covered);
                if first < range.end {
                    total += u64::from(range.end - first) * bytes;
                    code.add_range(TileRange::new(first, range.end), bytes);
                }
                covered = covered.max(range.end);
            }
        }
        total
    }
}

/// The passes, in the order in which figures of them are listed.
pub const PASSES: [TrainingPass; 3] =
    [TrainingPass::Forward, TrainingPass::Backward, TrainingPass::Update];

/// What all operations of a layer cost together: sums that mean something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTotals {
    /// Exchange code, and each codelet once per tile, however many operations share it.
    pub code: Bytes,
    /// Cycles of all tiles in one execution of each.
    pub cycles_all_tiles: Cycles,
    /// Cycles of all their steps, as a mean over lanes: at most those of the run.
    pub mean_elapsed: Cycles,
    /// The same of forward, backward and update operations.
    pub mean_of_passes: [Cycles; 3],
    /// Cycles of the run.
    pub run: Cycles,
    /// Lanes that work at the same time.
    pub lanes: u64,
    /// Floating point operations of one execution of each.
    pub flops: u64,
}

/// Cycles as a mean over lanes, beside those of a run.
pub fn share_of_run(mean: Cycles, run: Cycles, lanes: u64) -> String {
    let share = mean.as_f64() / run.max(Cycles(1)).as_f64();
    let share = match percent(share) {
        nothing if nothing == percent(0.0) && share > 0.0 => "< 0.1 %".to_owned(),
        share => share,
    };
    format!("{mean} of {run} cycles, mean over {} lanes ({share})", grouped(lanes))
}

/// Everything that a layer's operations cost.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn operations(report: &Report, layer: OperationLayer) -> Result<Vec<OpRow>, ReportError> {
    Ok(operations_with_totals(report, layer)?.0)
}

/// Everything that a layer's operations cost, each and together.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn operations_with_totals(
    report: &Report,
    layer: OperationLayer,
) -> Result<(Vec<OpRow>, OperationTotals), ReportError> {
    let (known, programs) = (report.operations()?, report.programs()?);
    let costs = ProgramCosts::read(report)?;
    let mut rows: BTreeMap<OpRowKey, OpRow> = BTreeMap::new();
    if layer == OperationLayer::Model {
        let models = known.iter().enumerate();
        rows.extend(models.map(|(index, operation)| {
            (OpRowKey::Operation(index as u32), model_row(index, operation))
        }));
    }
    let mut all_codelets = CodeletTiles::default();
    for (id, program) in programs.iter().filter(|(_, program)| counts(program)) {
        let operation = program.operation.and_then(|of| Some((of, known.get(of.index())?)));
        let Some(key) = key(layer, id, program, operation) else { continue };
        let row = rows.entry(key).or_insert_with_key(|key| row_of(layer, key, program, operation));
        row.programs.push(id);
        let set = costs.set_of(program).into_iter();
        set.for_each(|set| all_codelets.add(set, &costs.code_owners));
    }
    let mut rows: Vec<OpRow> = rows.into_values().collect();
    let mut code = TileByteSums::default();
    for row in &mut rows {
        let mut codelets = CodeletTiles::default();
        for id in row.programs.clone() {
            let program = programs.get(id).into_iter();
            program.for_each(|of| costs.add(row, &mut codelets, &mut code, (id, of)));
        }
        row.vertex_code = codelets.bytes(&costs.types, &mut code);
        row.code_most = code.take_most();
    }
    if layer == OperationLayer::Model {
        add_memory(report, &mut rows)?;
        add_errors(report, &mut rows)?;
    }
    let totals = totals(report, &rows, all_codelets.bytes(&costs.types, &mut code))?;
    Ok((rows, totals))
}

/// Sums over operations whose codelets take `codelets` once per tile.
fn totals(
    report: &Report,
    rows: &[OpRow],
    codelets: Bytes,
) -> Result<OperationTotals, ReportError> {
    let sum = |value: fn(&OpRow) -> u64| rows.iter().map(value).fold(0, u64::saturating_add);
    let (run, lanes) = report.trace()?.map_or((Cycles::ZERO, 1), |trace| {
        (trace.range().length(), trace.lanes().len().max(1) as u64)
    });
    Ok(OperationTotals {
        code: codelets.saturating_add(Bytes(sum(|row| row.exchange_code.0))),
        cycles_all_tiles: Cycles(sum(|row| row.cycles_all_tiles.0)),
        mean_elapsed: Cycles(sum(|row| row.elapsed.0) / lanes),
        mean_of_passes: PASSES.map(|pass| {
            let own = rows.iter().filter(|row| row.pass == Some(pass));
            Cycles(own.map(|row| row.elapsed.0).fold(0, u64::saturating_add) / lanes)
        }),
        run,
        lanes,
        flops: sum(|row| row.flops),
    })
}

/// What rows are told apart by, in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OpRowKey {
    Operation(u32),
    Name(String),
    Program(ProgramId),
}

/// Whether a program does anything for an operation.
fn counts(program: &ProgramNode) -> bool {
    let waits = program.kind == ProgramKind::Sync;
    !waits && program.children.is_empty() && program.kind != ProgramKind::WriteUndef
}

fn key(
    layer: OperationLayer,
    id: ProgramId,
    program: &ProgramNode,
    operation: Option<(OperationId, &ModelOperation)>,
) -> Option<OpRowKey> {
    match layer {
        OperationLayer::Model => operation.map(|(id, _)| OpRowKey::Operation(id.0)),
        OperationLayer::Library => {
            let name = library_name(&program.name, operation.map(|(_, of)| of.name.as_str()));
            (!name.is_empty()).then_some(OpRowKey::Name(name))
        }
        OperationLayer::Program => Some(OpRowKey::Program(id)),
    }
}

/// The library call a program was made by: one name more than its operation's, or all but the last
/// name where that is not known. `cs3_` in front of exchanges is left out.
fn library_name(program: &str, operation: Option<&str>) -> String {
    let name = plain_name(program);
    let rest = operation.and_then(|of| Some((of, name.strip_prefix(of)?.strip_prefix('/')?)));
    match (rest, operation) {
        (Some((of, rest)), _) => format!("{of}/{}", rest.split('/').next().unwrap_or(rest)),
        (None, Some(of)) => of.to_owned(),
        (None, None) => name.rsplit_once('/').map_or(name, |(above, _)| above).to_owned(),
    }
}

/// A name without the number of its compute set or copy and without `/ExchangePre`.
fn plain_name(name: &str) -> &str {
    without_counter_prefix(name.strip_suffix("/ExchangePre").unwrap_or(name))
}

fn model_row(index: usize, operation: &ModelOperation) -> OpRow {
    OpRow {
        name: operation.name.clone(),
        kind: operation.kind.clone(),
        source: operation.source.clone().unwrap_or_default(),
        operation: Some(OperationId(index as u32)),
        pass: Some(operation.pass),
        block: operation.block.clone().unwrap_or_default(),
        ipu: Some(operation.ipu),
        shapes: operation.shapes.clone(),
        flops: operation.flops,
        ..OpRow::default()
    }
}

fn row_of(
    layer: OperationLayer,
    key: &OpRowKey,
    program: &ProgramNode,
    operation: Option<(OperationId, &ModelOperation)>,
) -> OpRow {
    let name = match key {
        OpRowKey::Name(name) => name.clone(),
        OpRowKey::Operation(_) | OpRowKey::Program(_) => program.name.clone(),
    };
    let kind = match (layer, operation) {
        (OperationLayer::Program, _) => program.kind.name().to_owned(),
        (_, Some((_, of))) => of.kind.clone(),
        (_, None) => String::new(),
    };
    OpRow {
        name,
        kind,
        source: operation.and_then(|(_, of)| of.source.clone()).unwrap_or_default(),
        operation: operation.map(|(id, _)| id),
        pass: operation.map(|(_, of)| of.pass),
        block: operation.and_then(|(_, of)| of.block.clone()).unwrap_or_default(),
        ipu: program.ipu,
        ..OpRow::default()
    }
}

fn add_errors(report: &Report, rows: &mut [OpRow]) -> Result<(), ReportError> {
    let bands = report.error_bands()?;
    let by_kind = bands.iter().filter_map(|band| Some((band.kind.as_deref()?, band)));
    let by_kind: BTreeMap<&str, &ErrorBand> = by_kind.collect();
    for row in rows {
        row.errors = by_kind.get(row.kind.as_str()).map(|band| (*band).clone());
    }
    Ok(())
}

fn add_memory(report: &Report, rows: &mut [OpRow]) -> Result<(), ReportError> {
    if !report.has(ReportPart::Variables) {
        return Ok(());
    }
    let all = VariableFilter { tiles: None, category: None, after: None, limit: usize::MAX };
    let mut variables: BTreeMap<OperationId, Vec<TileRuns<VariablePlacement>>> = BTreeMap::new();
    for (_, variable) in report.variables(&all)? {
        if let Some(operation) = variable.operation {
            variables.entry(operation).or_default().push(variable.tiles);
        }
    }
    let mut memory = TileByteSums::default();
    for row in rows {
        let own = row.operation.and_then(|id| variables.get(&id));
        for tiles in own.into_iter().flatten() {
            row.memory = row.memory.saturating_add(memory.add(tiles, |part| part.bytes));
        }
        row.memory_most = memory.take_most();
    }
    Ok(())
}

/// Costs of an operation on each tile of the replica.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationTileCosts {
    /// Cycles of one execution: compute sets with their names.
    pub cycles: Vec<(String, Vec<Cycles>)>,
    /// Code of its codelets.
    pub vertex_code: Vec<Bytes>,
    /// Code of its exchanges.
    pub exchange_code: Vec<Bytes>,
}

/// Most compute sets that are told apart; the rest counts as one.
const MAX_SETS: usize = 8;

/// What programs cost on each tile.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn per_tile(
    report: &Report,
    programs: &[ProgramId],
) -> Result<OperationTileCosts, ReportError> {
    let tiles = report.target()?.tiles_per_replica() as usize;
    let (known, types) = (report.programs()?, report.vertex_types()?);
    let owners = code_owners(&types);
    let mut found = OperationTileCosts {
        cycles: Vec::new(),
        vertex_code: vec![Bytes::ZERO; tiles],
        exchange_code: vec![Bytes::ZERO; tiles],
    };
    let mut holds: BTreeMap<u32, Vec<bool>> = BTreeMap::new();
    for id in programs {
        let set = known.get(*id).and_then(|program| program.compute_set);
        if let Some(set) = set.map(|set| report.compute_set(set)).transpose()?.flatten() {
            if found.cycles.len() == MAX_SETS {
                found.cycles.push(("Other compute sets".to_owned(), vec![Cycles::ZERO; tiles]));
            } else if found.cycles.len() < MAX_SETS {
                found.cycles.push((set.name.clone(), vec![Cycles::ZERO; tiles]));
            }
            if let Some((_, sums)) = found.cycles.last_mut() {
                add_runs(sums, &set.cycles, |cycles| *cycles);
            }
            for group in &set.vertices {
                let Some(owner) = owners.get(group.vertex_type.index()) else { continue };
                let on = holds.entry(owner.0).or_insert_with(|| vec![false; tiles]);
                for (range, _) in group.count.iter() {
                    let end = range.end.index().min(tiles);
                    on[range.first.index().min(end)..end].fill(true);
                }
            }
        }
        if let Some(exchange) = report.exchange(*id)? {
            add_runs(&mut found.exchange_code, &exchange.tiles, |of: &TileTraffic| of.code_bytes);
        }
    }
    for (kind, on) in holds {
        let code = types.get(kind as usize).map_or(Bytes::ZERO, |kind| kind.code_bytes);
        let tiles = found.vertex_code.iter_mut().zip(on).filter(|(_, on)| *on);
        tiles.for_each(|(sum, _)| *sum += code);
    }
    Ok(found)
}

fn add_runs<T: Clone + PartialEq, Q: Quantity>(
    sums: &mut [Q],
    runs: &TileRuns<T>,
    value: impl Fn(&T) -> Q,
) {
    for (range, of) in runs.iter() {
        let end = range.end.index().min(sums.len());
        let start = range.first.index().min(end);
        sums[start..end].iter_mut().for_each(|sum| *sum = sum.saturating_add(value(of)));
    }
}

/// A line of the planner's choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanLine {
    pub line: JsonLine,
    /// The value, where it is a number of cycles of a phase.
    pub cycles: Option<Cycles>,
}

/// The planner's choice, line by line; estimated phases without cycles are left out. What is not
/// JSON is one line.
pub fn plan_lines(plan: &str) -> Vec<PlanLine> {
    let plain = |_| vec![JsonLine { depth: 0, name: "Plan".to_owned(), value: plan.to_owned() }];
    let lines = json::lines(plan).unwrap_or_else(plain);
    let cycles = |line: &JsonLine| {
        line.name
            .ends_with("Cycles")
            .then(|| line.value.replace(',', "").parse().ok().map(Cycles))
            .flatten()
    };
    let lines = lines.into_iter().map(|line| PlanLine { cycles: cycles(&line), line });
    lines.filter(|plan| plan.cycles != Some(Cycles::ZERO)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn library_calls_are_one_name_below_their_operation() {
        let name = |program: &str, operation: Option<&str>| library_name(program, operation);
        assert_eq!(name("cs3_a/conv/Conv_1/Convolve/ExchangePre", Some("a/conv")), "a/conv/Conv_1");
        assert_eq!(name("a/conv/Conv_1/Reduce0", Some("a/conv")), "a/conv/Conv_1");
        assert_eq!(name("a/conv/Conv_1/Reduce0", None), "a/conv/Conv_1");
        assert_eq!(name("elsewhere", Some("a/conv")), "a/conv");
        assert_eq!(name("csv_file/x", None), "csv_file");
    }

    #[test]
    fn code_of_a_codelet_counts_once_per_tile() {
        let range = |(first, end)| TileRange::new(TileId(first), TileId(end));
        let ranges = [(0, 4), (2, 6), (9, 10)].map(range);
        let codelets = CodeletTiles {
            tiles: BTreeMap::from([(0, BTreeSet::from(ranges))]),
            known: BTreeSet::new(),
        };
        let mut code = TileByteSums::default();
        code.add_range(range((5, 10)), Bytes(7));
        let kind = VertexTypeInfo {
            name: String::new(),
            code_bytes: Bytes(10),
            shares_code: false,
            state_bytes: Bytes::ZERO,
        };
        assert_eq!(codelets.bytes(&[kind], &mut code), Bytes(70));
        assert_eq!((code.take_most(), code.take_most()), (Bytes(17), Bytes::ZERO));
    }

    #[test]
    fn plans_are_read_line_by_line() {
        let lines = plan_lines(r#"{"method":"AMP","estimate":{"aCycles":0,"bCycles":1200}}"#);
        let words: Vec<_> = lines
            .iter()
            .map(|PlanLine { line, .. }| (line.depth, line.name.as_str(), line.value.as_str()))
            .collect();
        assert_eq!(words, [(0, "estimate", ""), (1, "bCycles", "1,200"), (0, "method", "AMP")]);
        assert_eq!(lines[1].cycles, Some(Cycles(1200)));
        assert_eq!(plan_lines("not json")[0].line.value, "not json");
    }
}
