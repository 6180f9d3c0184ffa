//! Quality of a program: lower bounds of each operation and of the whole run, their actual costs,
//! and the classes of the difference.
//!
//! The ideal of an operation is the largest of its lower bounds, as if all of its resources were
//! busy at the same time:
//!
//! - compute: the floating point operations that its results need / (peak of its engine for its
//!   types x tiles of the IPU);
//! - exchange: the bytes that its exchanges move / (bytes per cycle of a tile x tiles), counting
//!   sent bytes, or received bytes reduced by the share that tiles on a bus can receive together;
//!   exchanges that only change a layout do not count;
//! - host, remote buffers, links: bytes / bytes per cycle of the interface of an IPU.
//!
//! All other cycles are wasted. Each cycle belongs to one [`CycleClass`], so the classes add up to
//! all cycles of the operation, and the steps of the waterfall of a run ([`WaterfallStep`]) to all
//! cycles of its IPUs. Figures are of one replica. Unknown figures are absent, with a reason: see
//! [`UnknownUtilisation`].

mod cycle_class;
mod exchange_bound;
mod explanation;
mod machine;
mod operation_limits;
mod program_limits;
mod roofline;
mod run_limits;

pub use cycle_class::{ClassCycles, CycleClass};
pub use exchange_bound::{BusiestTile, ExchangeBound, TileCycleSums};
pub use explanation::{ExplanationLine, explain};
pub use machine::{EnginePeak, Machine};
pub(crate) use operation_limits::KnownFlops;
pub use operation_limits::{ComputeSplit, ExchangeUse, IdealCycles, InterfaceUse, OperationLimits};
pub(crate) use program_limits::{LimitsOfPrograms, ProgramLimits};
pub use roofline::{
    Roof, RoofKind, Roofline, RooflinePoint, engine_title, interface_title, roofline,
};
pub use run_limits::{
    LimitsSummary, PeakOfType, RunLimits, UnknownUtilisation, WaterfallCycles, WaterfallShare,
    WaterfallStep,
};

use crate::operations::{
    OpRow, OperationLayer, OtherPrograms, counted_operations, known_flops, rows,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_report::units::{IpuId, OperationId, ProgramId};
use tilescope_report::{
    ComputeEngine, ModelOperation, Report, ReportError, ReportPart, TrainingPass,
};

/// Limits of an operation of the model, or of programs without an operation, or of a library call
/// if a report has no operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LimitsRow {
    /// `layer1/conv`
    pub name: String,
    /// Operator, or the kind of work of programs without an operation.
    pub kind: String,
    /// The operation of the model.
    pub operation: Option<OperationId>,
    pub pass: Option<TrainingPass>,
    /// IPU of the replica; `None` for several.
    pub ipu: Option<IpuId>,
    /// The programs of the row.
    pub programs: Vec<ProgramId>,
    pub limits: OperationLimits,
}

/// Limits of all operations, and of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportLimits {
    pub machine: Machine,
    /// Rows with steps in the run, those that waste most first; they contain all steps except
    /// syncs.
    pub rows: Vec<LimitsRow>,
    /// `None` if the program was only compiled.
    pub run: Option<RunLimits>,
}

/// The limits of all executed operations, computed once per report.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn limits(report: &Report) -> Result<Arc<ReportLimits>, ReportError> {
    report.derived(worked_out)
}

fn worked_out(report: &Report) -> Result<ReportLimits, ReportError> {
    let machine = Machine::read(report)?;
    if !report.has(ReportPart::Execution) {
        return Ok(ReportLimits { machine, rows: Vec::new(), run: None });
    }
    let programs = limits_of_programs(report)?;
    let layer = if report.has(ReportPart::Operations) {
        OperationLayer::Model
    } else {
        OperationLayer::Library
    };
    let operations = report.operations()?;
    let counted = counted_operations(report)?;
    let rows = rows(report, layer, OtherPrograms::ByName)?;
    let mut limits_rows = Vec::with_capacity(rows.len());
    for row in rows {
        let mut sums = ProgramLimits::default();
        for of in row.programs.iter().filter_map(|id| programs.by_program.get(id)) {
            sums.add(of);
        }
        let known = known_flops(layer, &row, &counted);
        let limits = OperationLimits::new(&sums, known, &machine);
        if !limits.total().is_zero() {
            let OpRow { name, kind, operation, pass, ipu, programs, .. } = row;
            limits_rows.push(LimitsRow { name, kind, operation, pass, ipu, programs, limits });
        }
    }
    let mut rows = limits_rows;
    rows.sort_by_key(|row| Reverse((row.limits.wasted(), row.limits.total())));
    let unknown = if report.has_tile_samples() {
        Some(UnknownUtilisation::NotCounted)
    } else {
        unknown_utilisation(&operations, &rows, &machine)
    };
    let ipus = report.target()?.ipus_per_replica;
    let run = Some(RunLimits::new(&programs, &rows, &machine, ipus, unknown));
    Ok(ReportLimits { machine, rows, run })
}

fn limits_of_programs(report: &Report) -> Result<Arc<LimitsOfPrograms>, ReportError> {
    report.derived(|report| {
        let sets = report.compute_sets()?.into_iter().collect();
        let exchanges = report.exchanges()?.into_iter().map(|of| (of.program, of)).collect();
        LimitsOfPrograms::read(report, &Machine::read(report)?, &sets, &exchanges)
    })
}

/// The share of the cycles of each program before its slowest tile begins: internal syncs and
/// starts, which do not depend on the amount of work. Empty if the program was not executed.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn start_shares(report: &Report) -> Result<BTreeMap<ProgramId, f64>, ReportError> {
    if !report.has(ReportPart::Execution) {
        return Ok(BTreeMap::new());
    }
    let programs = limits_of_programs(report)?;
    let mut shares = BTreeMap::new();
    for (id, of) in &programs.by_program {
        let start = of.cycles[CycleClass::SyncAndStart].as_f64();
        shares.insert(*id, start / of.cycles.total().as_f64().max(1.0));
    }
    Ok(shares)
}

/// The reason that the utilisation of the run is not known; `None` if the FLOPs of all executed
/// operations and the reference peak are known.
fn unknown_utilisation(
    operations: &[ModelOperation],
    rows: &[LimitsRow],
    machine: &Machine,
) -> Option<UnknownUtilisation> {
    let known_peak = machine.limits.rates.iter().any(|rate| rate.engine == ComputeEngine::Amp);
    if operations.is_empty() {
        return Some(UnknownUtilisation::NoOperations);
    }
    if rows.iter().any(|row| row.limits.flops.is_none()) {
        return Some(UnknownUtilisation::NoRuns);
    }
    let is_whole = known_peak && rows.iter().all(|row| row.limits.compute.is_some());
    if is_whole { None } else { Some(UnknownUtilisation::UnknownChip) }
}
