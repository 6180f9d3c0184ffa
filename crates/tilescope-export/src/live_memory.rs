//! Bytes live on an IPU while a program runs there.

use std::collections::BTreeMap;
use tilescope_analysis::liveness::{LivenessScope, curve};
use tilescope_report::units::{IpuId, ProgramId};
use tilescope_report::{Report, ReportError};

/// Live bytes on one IPU, by the program that runs.
#[derive(Default)]
pub(crate) struct LiveMemory(BTreeMap<ProgramId, u64>);

impl LiveMemory {
    /// Reads the liveness walk over the compiled program. Programs that it visits several times are
    /// left out: the visit that belongs to a step is not recorded.
    pub(crate) fn read(report: &Report, ipu: IpuId) -> Result<Self, ReportError> {
        let Some(curve) = curve(report, LivenessScope::Ipu(ipu))? else {
            return Ok(Self::default());
        };
        let mut found: BTreeMap<ProgramId, Option<u64>> = BTreeMap::new();
        for (step, program) in curve.programs.iter().enumerate() {
            let bytes = curve.total(step).0;
            found
                .entry(*program)
                .and_modify(|known| *known = known.filter(|known| *known == bytes))
                .or_insert(Some(bytes));
        }
        Ok(Self(found.into_iter().filter_map(|(id, bytes)| Some((id, bytes?))).collect()))
    }

    /// Live bytes while a program runs, if known.
    pub(crate) fn during(&self, program: Option<ProgramId>) -> Option<u64> {
        self.0.get(&program?).copied()
    }

    /// True if anything is known.
    pub(crate) fn is_known(&self) -> bool {
        !self.0.is_empty()
    }
}
