//! What figures of two runs are told per, so that twice the work is not twice as slow.

use super::comparison_table::ComparisonRow;
use crate::data_table::TableCell;
use crate::summary::{RunWork, run_work};
use serde::{Deserialize, Serialize};
use tilescope_report::{Report, ReportError};

/// What cycles and executions of a run are told per.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkUnit {
    /// A sample of any replica.
    #[default]
    Sample,
    /// A weight update, or a turn of the loop of an inference program.
    Update,
    /// A call of the host: one `Engine::run`.
    Run,
}

impl WorkUnit {
    /// All units, in the order in which they are offered.
    pub const ALL: [Self; 3] = [Self::Sample, Self::Update, Self::Run];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sample => "sample",
            Self::Update => "update",
            Self::Run => "run",
        }
    }

    /// The name as users read it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Sample => "Per sample",
            Self::Update => "Per update",
            Self::Run => "Per run",
        }
    }

    /// How many of it a report ran; `None` where it does not say.
    pub(crate) fn count(self, work: RunWork) -> Option<u64> {
        let count = match self {
            Self::Sample => work.samples,
            Self::Update => work.updates,
            Self::Run => Some(work.runs),
        };
        count.filter(|count| *count > 0)
    }
}

/// How the figures of two runs are made comparable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WorkNormalization {
    /// What was asked for.
    pub asked: WorkUnit,
    /// What figures are told per: whole runs where a report does not say how much it worked on.
    pub unit: WorkUnit,
    /// Why that is not what was asked for.
    pub note: Option<String>,
    pub source: RunWork,
    pub target: RunWork,
}

impl WorkNormalization {
    /// Reads how much two reports worked on.
    ///
    /// # Errors
    /// Parts of the files that cannot be read.
    pub fn read(source: &Report, target: &Report, asked: WorkUnit) -> Result<Self, ReportError> {
        let (source, target) = (run_work(source)?, run_work(target)?);
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

    /// A figure of two whole runs, told per unit of work.
    pub fn compared(
        &self,
        name: &str,
        source: Option<TableCell>,
        target: Option<TableCell>,
    ) -> ComparisonRow {
        ComparisonRow::new(name, source, target).per(self.divisors())
    }

    /// By what figures of the whole run are divided.
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

/// By what figures of both sides are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkDivisors {
    pub unit: WorkUnit,
    source: u64,
    target: u64,
    /// Lanes of both sides, where figures are means over them.
    lanes: Option<(u64, u64)>,
}

impl WorkDivisors {
    /// The same for sums over lanes, of which the mean is told: lanes run at the same time.
    pub(super) fn over_lanes(self, source: usize, target: usize) -> Self {
        Self { lanes: Some((source.max(1) as u64, target.max(1) as u64)), ..self }
    }

    /// What figures of both sides are divided by. At least 1.
    pub(crate) fn of_sides(&self) -> (u64, u64) {
        let (a, b) = self.lanes.unwrap_or((1, 1));
        (self.source.saturating_mul(a), self.target.saturating_mul(b))
    }

    /// Whether figures stay as they are.
    pub(super) fn is_plain(&self) -> bool {
        self.of_sides() == (1, 1)
    }

    /// What figures are, in words: `per sample, mean over lanes`.
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
