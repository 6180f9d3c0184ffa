//! Units of work that figures of two runs are divided by, so that twice the work does not appear
//! twice as slow.

use super::comparison_table::ComparisonRow;
use crate::data_table::TableCell;
use crate::summary::{RunWork, run_work};
use serde::{Deserialize, Serialize};
use tilescope_report::{Report, ReportError};

/// A unit of work that cycles and executions of a run are divided by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkUnit {
    /// A sample on any replica.
    #[default]
    Sample,
    /// A weight update, or an iteration of the loop of an inference program.
    Update,
    /// A call by the host: one `Engine::run`.
    Run,
}

impl WorkUnit {
    /// All units, in the order of menus.
    pub const ALL: [Self; 3] = [Self::Sample, Self::Update, Self::Run];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Update => "update",
            Self::Run => "run",
        }
    }

    /// Its name in the user interface.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sample => "Per sample",
            Self::Update => "Per update",
            Self::Run => "Per run",
        }
    }

    /// The number of units that a report ran; `None` if the report does not state it.
    pub(crate) fn count(self, work: RunWork) -> Option<u64> {
        let count = match self {
            Self::Sample => work.samples,
            Self::Update => work.updates,
            Self::Run => Some(work.runs),
        };
        count.filter(|count| *count > 0)
    }
}

/// The normalization that makes figures of two runs comparable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkNormalization {
    /// The requested unit.
    pub asked: WorkUnit,
    /// The unit in effect: whole runs if a report does not state its amount of work.
    pub unit: WorkUnit,
    /// The reason that the unit in effect is not the requested one.
    pub note: Option<String>,
    pub source: RunWork,
    pub target: RunWork,
}

impl WorkNormalization {
    /// Reads the amount of work of two reports.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn read(source: &Report, target: &Report, asked: WorkUnit) -> Result<Self, ReportError> {
        let source = run_work(source)?;
        let target = run_work(target)?;
        let silent = match (asked.count(source), asked.count(target)) {
            (Some(_), Some(_)) => None,
            (None, Some(_)) => Some("the source does"),
            (Some(_), None) => Some("the target does"),
            (None, None) => Some("both reports do"),
        };
        let note = silent.map(|side| {
            format!("Figures are per run: {side} not record the number of {}s.", asked.name())
        });
        let unit = if note.is_none() { asked } else { WorkUnit::Run };
        Ok(Self { asked, unit, note, source, target })
    }

    /// A figure of two whole runs, per unit of work.
    pub fn compared(
        &self,
        name: &str,
        source: Option<TableCell>,
        target: Option<TableCell>,
    ) -> ComparisonRow {
        ComparisonRow::new(name, source, target).per(self.divisors())
    }

    /// The divisors of figures of the whole run.
    pub(crate) fn divisors(&self) -> WorkDivisors {
        let count = |work| self.unit.count(work).unwrap_or(1);
        WorkDivisors {
            unit: self.unit,
            source: count(self.source),
            target: count(self.target),
            lanes: None,
        }
    }
}

/// The divisors of figures of both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkDivisors {
    pub unit: WorkUnit,
    source: u64,
    target: u64,
    /// Lanes of both sides, for figures that are means over them.
    lanes: Option<(u64, u64)>,
}

impl WorkDivisors {
    /// The same for sums over lanes, given as means: lanes run at the same time.
    pub(super) fn over_lanes(self, source: usize, target: usize) -> Self {
        Self { lanes: Some((source.max(1) as u64, target.max(1) as u64)), ..self }
    }

    /// Divisors of the figures of both sides, in the order (source, target). At least 1.
    pub(crate) fn of_sides(&self) -> (u64, u64) {
        let (a, b) = self.lanes.unwrap_or((1, 1));
        (self.source.saturating_mul(a), self.target.saturating_mul(b))
    }

    /// True if figures are not divided.
    pub(super) fn is_plain(&self) -> bool {
        self.of_sides() == (1, 1)
    }

    /// The unit of figures in words: `per sample, mean over lanes`.
    pub fn words(&self) -> &'static str {
        match (self.unit, self.lanes.is_some()) {
            (WorkUnit::Sample, false) => "per sample",
            (WorkUnit::Update, false) => "per update",
            (WorkUnit::Run, false) => "per run",
            (WorkUnit::Sample, true) => "per sample, averaged over IPUs",
            (WorkUnit::Update, true) => "per update, averaged over IPUs",
            (WorkUnit::Run, true) => "per run, averaged over IPUs",
        }
    }

    /// The same with source and target exchanged.
    pub(super) fn swapped(self) -> Self {
        Self {
            source: self.target,
            target: self.source,
            lanes: self.lanes.map(|(a, b)| (b, a)),
            ..self
        }
    }
}
