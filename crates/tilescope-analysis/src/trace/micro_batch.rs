//! The path of one micro-batch through the stages and passes of a run.

use super::MarkRowId;
use super::mark_rows::MarkRows;
use tilescope_report::units::{CycleRange, Cycles, ReplicaClassId, ReplicaIpu};
use tilescope_report::{MarkFilter, MarkKind, Report, ReportError, TraceMark, TrainingPass};

/// One pass of a stage for a micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MicroBatchTurn {
    /// The IPU that executes it.
    pub at: ReplicaIpu,
    /// Name of the stage, without the pass.
    pub stage: String,
    pub pass: Option<TrainingPass>,
    /// The cycles it takes.
    pub range: CycleRange,
}

/// The turns of all stages for one micro-batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MicroBatchPath {
    /// Number of the micro-batch within the run.
    pub number: u64,
    /// The turns by first cycle, for all classes of replicas.
    pub turns: Vec<MicroBatchTurn>,
}

impl MicroBatchPath {
    /// The turns of a class of replicas, by first cycle.
    pub fn of_class(&self, class: ReplicaClassId) -> impl Iterator<Item = &MicroBatchTurn> {
        self.turns.iter().filter(move |turn| turn.at.class == class)
    }

    /// The turns on an IPU, by first cycle.
    pub fn on(&self, at: ReplicaIpu) -> impl Iterator<Item = &MicroBatchTurn> {
        self.turns.iter().filter(move |turn| turn.at == at)
    }
}

/// Finds the turns of the stages for a micro-batch. The cost is that of reading the marks near
/// those of the micro-batch, independent of the length of the run.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn micro_batch_path(
    report: &Report,
    rows: &MarkRows,
    number: u64,
) -> Result<MicroBatchPath, ReportError> {
    let mut turns = Vec::new();
    for id in rows.ids() {
        let MarkRowId::Ipu(at) = id else { continue };
        for block in rows.of_micro_batch(report, id, number)? {
            let pass = block.pass();
            let range = block.range;
            let stage = stage_name(&rows.words(id, &block), pass).to_owned();
            turns.push(MicroBatchTurn { at, stage, pass, range });
        }
    }
    turns.sort_by_key(|turn| (turn.range.start, turn.range.end, turn.at));
    Ok(MicroBatchPath { number, turns })
}

/// The stage of an IPU that covers all of the given cycles.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn stage_at(
    report: &Report,
    at: ReplicaIpu,
    cycles: CycleRange,
) -> Result<Option<TraceMark>, ReportError> {
    // The stage covers the first of these cycles.
    let first = CycleRange::new(cycles.start, cycles.start.saturating_add(Cycles(1)));
    let filter = MarkFilter {
        kind: Some(MarkKind::Stage),
        ipu: Some(at.ipu),
        window: Some(first),
        limit: usize::MAX,
    };
    let holds =
        |mark: &TraceMark| mark.cycles.start <= cycles.start && cycles.end <= mark.cycles.end;
    Ok(report.marks_of_class(at.class, &filter)?.into_iter().find(holds))
}

/// The stage in a label that ends with the pass: `B1` for `B1 forward`.
pub fn stage_name(label: &str, pass: Option<TrainingPass>) -> &str {
    let name = pass.and_then(|pass| label.strip_suffix(pass.name()));
    name.map_or(label, str::trim_end)
}

/// A pass of a micro-batch in the notation of pipeline diagrams: `F3`, `B3`.
pub fn short_turn(pass: TrainingPass, number: u64) -> String {
    let letter = match pass {
        TrainingPass::Forward => 'F',
        TrainingPass::Backward => 'B',
        TrainingPass::Update => 'U',
    };
    format!("{letter}{number}")
}
