//! Owners of the cycles of a run: operations by name and operator, independent of program names.

use std::collections::BTreeMap;
use tilescope_report::units::{Cycles, OperationId, ProgramId};
use tilescope_report::{ModelOperation, ProgramKind, ProgramNodeTable, Report, ReportError};

/// The owner of cycles of a run, in the order of rows with equal cycles.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CycleOwner {
    /// Name and operator of an operation.
    Operation(String, String),
    /// Steps of no operation, by the kind of their program.
    None(ProgramKind),
    Idle,
}

impl CycleOwner {
    /// The name in tables.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Operation(name, _) => name.clone(),
            Self::None(kind) => format!("{} of no operation", kind.name()),
            Self::Idle => "Idle".to_owned(),
        }
    }

    /// The operator of an operation; empty for others.
    pub(crate) fn kind(&self) -> &str {
        match self {
            Self::Operation(_, kind) => kind,
            Self::None(_) | Self::Idle => "",
        }
    }
}

/// The programs and operations of one report, to look up owners.
pub(super) struct ProgramOwners<'a> {
    pub(super) programs: &'a ProgramNodeTable,
    pub(super) operations: &'a [ModelOperation],
}

impl ProgramOwners<'_> {
    /// The owner of the steps of a program.
    pub(super) fn owner(&self, program: Option<ProgramId>) -> (CycleOwner, Option<OperationId>) {
        let program = program.and_then(|id| self.programs.get(id));
        let id = program.and_then(|program| program.operation);
        match id.and_then(|id| self.operations.get(id.index())) {
            Some(of) => (CycleOwner::Operation(of.name.clone(), of.kind.clone()), id),
            None => {
                let kind = program.map_or(ProgramKind::Unknown, |program| program.kind);
                (CycleOwner::None(kind), None)
            }
        }
    }
}

/// Cycles of a run by owner, as sums over its lanes.
pub(crate) struct RunCycles {
    /// Together with idle time they are the cycles of the run times its lanes.
    pub(crate) by_owner: BTreeMap<CycleOwner, Cycles>,
    pub(crate) lanes: u64,
    pub(crate) run: Cycles,
}

/// Cycles of a run by owner; `None` if the program was not executed.
///
/// # Errors
/// Parts of the file that cannot be read.
pub(crate) fn run_cycles(report: &Report) -> Result<Option<RunCycles>, ReportError> {
    // The kinds of programs of foreign files are known only after their trace is prepared.
    let Some(trace) = report.trace()? else { return Ok(None) };
    let programs = report.executed_program_nodes()?;
    let operations = report.operations()?;
    let owners = ProgramOwners { programs: &programs, operations: &operations };
    let mut by_owner: BTreeMap<CycleOwner, Cycles> = BTreeMap::new();
    for lane in (0..trace.lanes().len()).filter_map(|at| trace.lane(at)) {
        for of in lane.program_sums()?.iter() {
            let known = of.program.filter(|id| programs.get(*id).is_some());
            let owner = match known {
                Some(_) => owners.owner(known).0,
                None => CycleOwner::None(of.kind()),
            };
            *by_owner.entry(owner).or_default() += of.cycles;
        }
    }
    let lanes = trace.lanes().len() as u64;
    let run = trace.range().length();
    let busy: Cycles = by_owner.values().copied().sum();
    let idle = (run * lanes).saturating_sub(busy);
    *by_owner.entry(CycleOwner::Idle).or_default() += idle;
    Ok(Some(RunCycles { by_owner, lanes, run }))
}
