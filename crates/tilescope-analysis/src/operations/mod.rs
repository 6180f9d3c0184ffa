//! Costs of each operation: code, cycles, floating point operations, memory.
//!
//! Operations can be grouped in three layers: those of the model, the library calls within them,
//! and single programs. Cycles of vertices are known tile by tile and once per compute set, so sums
//! over tiles are of one execution; elapsed cycles are those of the run, summed over all
//! executions.

mod grouping;
mod plan_lines;
mod program_costs;
mod tile_costs;

pub(crate) use grouping::{OtherPrograms, rows};
pub use plan_lines::{PlanLine, plan_lines};
pub use tile_costs::{OperationTileCosts, per_tile};

use crate::critical_path::ProgramExposure;
use crate::limits::{KnownFlops, OperationLimits};
use program_costs::{CodeletTiles, ProgramCosts, TileByteSums};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::units::{
    Bytes, Cycles, IpuId, OperationId, ProgramId, TileRuns, grouped, percent,
};
use tilescope_report::{
    CostBasis, ErrorBand, ModelOperation, Report, ReportError, ReportPart, TrainingPass,
    VariableFilter, VariablePlacement,
};

/// The layer of operations.
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

/// One operation with its costs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpRow {
    /// `layer1/conv`
    pub name: String,
    /// Operator, or kind of program.
    pub kind: String,
    /// Operator and version of the imported nodes that it implements: `Conv@11`.
    pub source: String,
    /// The operation of the model that it belongs to.
    pub operation: Option<OperationId>,
    /// Forward, backward or update.
    pub pass: Option<TrainingPass>,
    /// The name of its block of the model.
    pub block: String,
    /// IPU of the replica.
    pub ipu: Option<IpuId>,
    pub shapes: String,
    /// Its programs, in the order of the compiled program.
    pub programs: Vec<ProgramId>,
    /// Exchange code of its programs over all tiles.
    pub exchange_code: Bytes,
    /// Code of its vertex types, once per tile and type, possibly shared with other operations.
    pub vertex_code: Bytes,
    /// Cycles of one execution summed over tiles.
    pub cycles_all_tiles: Cycles,
    /// Cycles of one execution on the slowest tile of each compute set.
    pub cycles_slowest: Cycles,
    /// Executions of its most frequent program.
    pub executions: u64,
    /// Cycles of all its steps in the run, including exchanges.
    pub elapsed: Cycles,
    /// Cycles of its exchanges in the run, within and between IPUs.
    pub exchanging: Cycles,
    /// Floating point operations of one execution.
    pub flops: u64,
    /// Bytes of its variables over all tiles.
    pub memory: Bytes,
    pub vertices: u64,
    /// Code of its exchanges and vertex types on the tile with most of it.
    pub code_most: Bytes,
    /// Bytes of its variables on the tile with most of them.
    pub memory_most: Bytes,
    /// Cycles on the critical path, exposed and hidden; `None` if the path is not known.
    pub exposure: Option<ProgramExposure>,
    /// The error band of its predicted costs, if the report states it.
    pub errors: Option<ErrorBand>,
    /// Its lower bound, and the classes of all other cycles.
    pub limits: OperationLimits,
}

impl OpRow {
    /// Code over all tiles.
    pub fn code(&self) -> Bytes {
        self.exchange_code + self.vertex_code
    }
}

/// The passes, in the order of lists.
pub const PASSES: [TrainingPass; 3] =
    [TrainingPass::Forward, TrainingPass::Backward, TrainingPass::Update];

/// Totals of all operations of a layer, limited to meaningful sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationTotals {
    /// Exchange code, and each vertex type once per tile, regardless of the number of operations
    /// that share it.
    pub code: Bytes,
    /// Cycles of all tiles in one execution of each.
    pub cycles_all_tiles: Cycles,
    /// Cycles of all their steps, as a mean over lanes: at most the cycles of the run.
    pub mean_elapsed: Cycles,
    /// The same of forward, backward and update operations.
    pub mean_of_passes: [Cycles; 3],
    /// Cycles of the run.
    pub run: Cycles,
    /// Number of lanes that work at the same time.
    pub lanes: u64,
    /// Floating point operations of one execution of each.
    pub flops: u64,
}

/// Cycles as a mean over lanes, compared with those of a run, as text.
pub fn share_of_run(mean: Cycles, run: Cycles, lanes: u64) -> String {
    let share = mean.as_f64() / run.max(Cycles(1)).as_f64();
    let share = match percent(share) {
        nothing if nothing == percent(0.0) && share > 0.0 => "< 0.1 %".to_owned(),
        share => share,
    };
    format!("{mean} of {run} cycles, mean over {} lanes ({share})", grouped(lanes))
}

/// The costs of a layer's operations.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn operations(report: &Report, layer: OperationLayer) -> Result<Vec<OpRow>, ReportError> {
    Ok(operations_with_totals(report, layer)?.0)
}

/// The costs of a layer's operations, with totals.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn operations_with_totals(
    report: &Report,
    layer: OperationLayer,
) -> Result<(Vec<OpRow>, OperationTotals), ReportError> {
    let known = counted_operations(report)?;
    let programs = report.executed_program_nodes()?;
    let costs = ProgramCosts::read(report)?;
    let mut rows = rows(report, layer, OtherPrograms::LeftOut)?;
    let mut all_codelets = CodeletTiles::default();
    let mut code = TileByteSums::default();
    for row in &mut rows {
        let sets = row.programs.iter().filter_map(|id| costs.set_of(programs.get(*id)?));
        sets.for_each(|set| all_codelets.add(set, &costs.code_owners));
        costs.add_to(row, &programs, known_flops(layer, row, &known), &mut code);
    }
    if layer == OperationLayer::Model {
        add_memory(report, &mut rows)?;
        add_errors(report, &mut rows)?;
    }
    let totals = totals(report, &rows, all_codelets.bytes(&costs.types, &mut code))?;
    Ok((rows, totals))
}

/// The operations with counted FLOPs; reports of measured tiles have none.
pub(crate) fn counted_operations(report: &Report) -> Result<Arc<Vec<ModelOperation>>, ReportError> {
    if report.has_tile_samples() { Ok(Arc::default()) } else { report.operations() }
}

/// The known FLOPs of a row; layers below operations have none.
pub(crate) fn known_flops<'a>(
    layer: OperationLayer,
    row: &OpRow,
    operations: &'a [ModelOperation],
) -> KnownFlops<'a> {
    let of_model = layer == OperationLayer::Model && !operations.is_empty();
    match row.operation.and_then(|id| operations.get(id.index())) {
        Some(operation) if of_model => KnownFlops::Of(operation),
        None if of_model => KnownFlops::None,
        _ => KnownFlops::Unknown,
    }
}

/// Totals of operations whose codelets take `codelets` bytes, counted once per tile.
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

/// The error band of operations of a kind with a given cost basis, or of the kind in general.
fn band_of<'a>(
    bands: &'a [ErrorBand],
    kind: &str,
    basis: Option<CostBasis>,
) -> Option<&'a ErrorBand> {
    let mut of_kind = bands.iter().filter(|band| band.kind.as_deref() == Some(kind));
    match basis {
        Some(basis) => of_kind.find(|band| band.basis == basis),
        // Kinds with unmeasured shapes have a second band, which comes first.
        None => of_kind.next_back(),
    }
}

fn add_errors(report: &Report, rows: &mut [OpRow]) -> Result<(), ReportError> {
    let bands = report.error_bands()?;
    let operations = report.operations()?;
    for row in rows {
        let basis = row.operation.and_then(|id| operations.get(id.index())?.cost_basis);
        row.errors = band_of(&bands, &row.kind, basis).cloned();
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
