//! The verdict: the main question of a report and the opening sentence of its findings.

use super::InsightSubject;
use crate::memory::fullest_tiles;
use std::collections::BTreeMap;
use tilescope_report::trace::CriticalPath;
use tilescope_report::units::{Cycles, IpuId, NumberFormat, ReplicaClassId, percent};
use tilescope_report::{ProgramOutcome, Report, ReportError, StepActivity};

/// The IPUs of the first class of replicas, which stands for the others.
const CLASS: ReplicaClassId = ReplicaClassId(0);

/// The state of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsightVerdict {
    /// A sentence about the IPU that limits the run, or the reason that the program cannot run.
    pub lead: String,
    /// The subject of the first findings: time if the program runs, memory if it does not.
    pub first: InsightSubject,
    /// The free memory as text: `Memory: fits, 21.2 KiB left on the fullest tile`.
    pub memory: String,
}

impl InsightVerdict {
    /// The heading of findings on the other subject.
    pub fn aside_title(&self) -> &str {
        match self.first {
            InsightSubject::Time => &self.memory,
            InsightSubject::Memory => "Time",
        }
    }

    /// Reads the state of the program of a report, with figures in the format `numbers`.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report, numbers: NumberFormat) -> Result<Self, ReportError> {
        let outcome = report.outcome()?;
        let room = report.target()?.bytes_per_tile;
        let most = fullest_tiles(&*report.tile_memory()?, 1).first().map(|(_, bytes)| *bytes);
        let memory = match (outcome, most) {
            (_, None) => "Memory: not recorded".to_owned(),
            (ProgramOutcome::OutOfMemory { .. }, Some(most)) => {
                format!("Memory: {} over capacity", numbers.bytes(most.saturating_sub(room).0))
            }
            (_, Some(most)) => {
                let left = numbers.bytes(room.saturating_sub(most).0);
                format!("Memory: fits, {left} free on the fullest tile")
            }
        };
        let lead = match outcome {
            ProgramOutcome::OutOfMemory { tiles } => {
                let most = most.unwrap_or_default();
                format!(
                    "The program does not fit: {} exceed their memory; the fullest needs {} of {}.",
                    super::pluralised(tiles, "tile"),
                    numbers.bytes(most.0),
                    numbers.bytes(room.0)
                )
            }
            ProgramOutcome::CompiledOnly => "The program was compiled but not run.".to_owned(),
            ProgramOutcome::Executed => match report.critical_path()? {
                Some(path) => pace(&path),
                None => "The report does not record the waits of the run.".to_owned(),
            },
        };
        Ok(Self { lead, first: first_subject(outcome), memory })
    }
}

/// The subject of the first findings.
pub(super) fn first_subject(outcome: ProgramOutcome) -> InsightSubject {
    match outcome {
        ProgramOutcome::Executed => InsightSubject::Time,
        ProgramOutcome::CompiledOnly | ProgramOutcome::OutOfMemory { .. } => InsightSubject::Memory,
    }
}

/// The IPU with most of the critical path, and the one that waits most; for a single IPU, the
/// activities on the path.
fn pace(path: &CriticalPath) -> String {
    let whole = path.range().length().as_f64().max(1.0);
    let share = |cycles: Cycles| percent(cycles.as_f64() / whole);
    let mut on_path: BTreeMap<IpuId, Cycles> = BTreeMap::new();
    let mut waits: BTreeMap<IpuId, Cycles> = BTreeMap::new();
    let lanes = path.lane_infos().iter().zip(path.lanes());
    for (info, slack) in lanes.filter(|(info, _)| info.class == CLASS) {
        *on_path.entry(info.ipu).or_default() += slack.path_cycles;
        if info.sub_lane == 0 {
            waits.insert(info.ipu, slack.waits);
        }
    }
    let most = on_path.iter().max_by_key(|(ipu, cycles)| (**cycles, std::cmp::Reverse(**ipu)));
    let idle = waits.iter().max_by_key(|(ipu, cycles)| (**cycles, std::cmp::Reverse(**ipu)));
    match (most, idle) {
        (Some((ipu, cycles)), Some((waiting, idle))) if on_path.len() > 1 => {
            let rest = if waiting == ipu {
                String::new()
            } else {
                format!(" IPU {waiting} waits most, for {} of the run.", share(*idle))
            };
            format!(
                "IPU {ipu} sets the pace: {} of the critical path runs on it.{rest}",
                share(*cycles)
            )
        }
        _ => spent(path),
    }
}

/// The two activities with the largest shares of the critical path.
fn spent(path: &CriticalPath) -> String {
    let whole = path.range().length().as_f64().max(1.0);
    let mut spent: Vec<(StepActivity, Cycles)> = path.totals().cycles.iter().collect();
    spent.sort_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
    let mut largest = Vec::new();
    for (activity, cycles) in spent.iter().filter(|(_, cycles)| !cycles.is_zero()).take(2) {
        let share = percent(cycles.as_f64() / whole);
        largest.push(format!("{} {share}", activity.title().to_lowercase()));
    }
    format!("The critical path is mostly {}.", largest.join(", "))
}
