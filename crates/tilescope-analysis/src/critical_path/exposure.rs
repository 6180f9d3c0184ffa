//! Which cycles of programs run beside compute, and which do not.

use crate::trace::program_runs;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{Cycles, ProgramId};
use tilescope_report::{Report, ReportError};

/// Cycles of a program, as far as it runs beside the compute of its IPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramExposure {
    /// Cycles of all its steps on all IPUs.
    pub cycles: Cycles,
    /// Those beside compute; none where that is not known.
    pub hidden: Option<Cycles>,
    /// Those on the critical path.
    pub on_path: Cycles,
}

impl ProgramExposure {
    /// Cycles that are not beside compute; none where that is not known.
    pub fn exposed(&self) -> Option<Cycles> {
        self.hidden.map(|hidden| self.cycles.saturating_sub(hidden))
    }

    /// Takes in another program.
    pub fn add(&mut self, other: &Self) {
        self.cycles = self.cycles.saturating_add(other.cycles);
        self.on_path = self.on_path.saturating_add(other.on_path);
        self.hidden = self.hidden.zip(other.hidden).map(|(own, more)| own.saturating_add(more));
    }

    /// Of something without steps.
    pub fn nothing() -> Self {
        Self { hidden: Some(Cycles::ZERO), ..Self::default() }
    }
}

/// The exposure of every program that ran; none where the critical path is not known, as in reports
/// of older versions of which it was not asked for yet.
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
    for beside in path.beside_compute()? {
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
