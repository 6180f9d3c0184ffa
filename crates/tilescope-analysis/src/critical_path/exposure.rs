//! Exposure of programs: their cycles beside compute, and the others.

use super::totals::PathKind;
use crate::trace::program_runs;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::trace::{BesideProgram, CriticalPath};
use tilescope_report::units::{Cycles, ProgramId, ReplicaClassId};
use tilescope_report::{Report, ReportError, StepActivity};

/// Cycles of a program, divided by overlap with the compute of its IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramExposure {
    /// Cycles of all its steps on all IPUs of replica 0.
    pub cycles: Cycles,
    /// Cycles beside compute; `None` if not known.
    pub hidden: Option<Cycles>,
    /// Cycles of its steps on the critical path, on any replica.
    pub on_path: Cycles,
}

impl ProgramExposure {
    /// Cycles that are not beside compute; `None` if not known.
    pub fn exposed(&self) -> Option<Cycles> {
        self.hidden.map(|hidden| self.cycles.saturating_sub(hidden))
    }

    /// Adds another program.
    pub fn add(&mut self, other: &Self) {
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.on_path = self.on_path.saturating_add(other.on_path);
        self.hidden = self.hidden.zip(other.hidden).map(|(own, more)| own.saturating_add(more));
    }

    /// The exposure of a program without steps.
    pub fn nothing() -> Self {
        Self { hidden: Some(Cycles::ZERO), ..Self::default() }
    }
}

/// Cycles that IPUs spend on one activity, divided by overlap with compute.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ActivityExposure {
    pub kind: PathKind,
    /// Cycles of all its steps on all IPUs.
    pub cycles: Cycles,
    /// Cycles on the critical path, and their share of it.
    pub on_path: Cycles,
    pub path_share: f64,
    /// Cycles that are not beside compute, and those that are; `None` if not known.
    pub exposed: Option<Cycles>,
    pub hidden: Option<Cycles>,
}

/// True if a program runs on the replicas whose figures are shown: those of replica 0.
fn is_shown(path: &CriticalPath, beside: &BesideProgram) -> bool {
    let info = path.lane_infos().get(beside.lane);
    info.is_some_and(|info| info.class == ReplicaClassId(0))
}

/// The exposure of every activity that occurs; empty if nothing was executed, or if the critical
/// path is not known.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn activity_exposures(report: &Report) -> Result<Vec<ActivityExposure>, ReportError> {
    let (Some(trace), Some(path)) = (report.trace()?, report.known_critical_path()?) else {
        return Ok(Vec::new());
    };
    let mut all = BTreeMap::new();
    let mut hidden = BTreeMap::new();
    for lane in (0..trace.lanes().len()).filter_map(|lane| trace.lane(lane)) {
        let totals = lane.totals(trace.range())?;
        for activity in StepActivity::ALL {
            let sum: &mut Cycles = all.entry(activity).or_default();
            *sum = sum.saturating_add(totals.cycles[activity]);
        }
    }
    for beside in path.beside_compute()?.into_iter().filter(|beside| is_shown(&path, beside)) {
        let sum = hidden.entry(beside.activity).or_insert(Some(Cycles::ZERO));
        *sum = sum.zip(beside.hidden).map(|(own, more)| own.saturating_add(more));
    }
    let run = path.range().length().as_f64().max(1.0);
    let exposure = |activity: StepActivity| {
        let cycles = all.get(&activity).copied().unwrap_or_default();
        let on_path = path.totals().cycles[activity];
        let hidden = hidden.get(&activity).copied().unwrap_or(Some(Cycles::ZERO));
        ActivityExposure {
            kind: PathKind::of_activity(activity),
            cycles,
            on_path,
            path_share: on_path.as_f64() / run,
            exposed: hidden.map(|hidden| cycles.saturating_sub(hidden)),
            hidden,
        }
    };
    let exposures = StepActivity::ALL.into_iter().map(exposure);
    Ok(exposures.filter(|of| !of.cycles.is_zero()).collect())
}

/// The exposure of every executed program; `None` if the critical path is not known, as in reports
/// of older versions until it is computed.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn exposure(
    report: &Report,
) -> Result<Option<BTreeMap<ProgramId, ProgramExposure>>, ReportError> {
    let mut found: BTreeMap<ProgramId, ProgramExposure> = BTreeMap::new();
    let (Some(trace), Some(path)) = (report.trace()?, report.known_critical_path()?) else {
        return Ok(None);
    };
    for (program, of) in program_runs(&trace)?.by_program() {
        let cycles = of.totals.cycles;
        found.insert(program, ProgramExposure { cycles, ..ProgramExposure::nothing() });
    }
    for sums in path.programs()?.iter() {
        if let Some(of) = sums.program.and_then(|program| found.get_mut(&program)) {
            of.on_path = of.on_path.saturating_add(sums.cycles);
        }
    }
    let mut unknown: BTreeSet<ProgramId> = BTreeSet::new();
    for beside in path.beside_compute()?.into_iter().filter(|beside| is_shown(&path, beside)) {
        let Some(program) = beside.program else { continue };
        match (beside.hidden, found.get_mut(&program)) {
            (Some(hidden), Some(of)) => of.hidden = of.hidden.map(|own| own + hidden),
            (None, _) => drop(unknown.insert(program)),
            (Some(_), None) => {}
        }
    }
    for program in unknown {
        found.entry(program).and_modify(|of| of.hidden = None);
    }
    Ok(Some(found))
}
