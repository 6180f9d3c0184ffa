//! Following one micro-batch through all stages and passes: which one, and its path, looked up in
//! the background.

use super::loaded_trace::LoadedTrace;
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundQueryError, Versioned};
use egui::Ui;
use tilescope_analysis::trace::{MicroBatchPath, micro_batch_path, stage_at};
use tilescope_report::units::{CycleRange, ReplicaIpu};
use tilescope_report::{Report, ReportError};

/// An IPU, the cycles of what is chosen there, and what tells one key press from the next.
type StageKey = (ReplicaIpu, CycleRange, u64);

/// What is asked for to follow a micro-batch.
#[derive(Default)]
pub(super) struct FollowedMicroBatch {
    wanted: Option<StageKey>,
    presses: u64,
    stage: BackgroundQuery<StageKey, Option<u64>>,
    path: BackgroundQuery<u64, MicroBatchPath>,
}

impl FollowedMicroBatch {
    /// Looks for the micro-batch that an IPU works on in some cycles.
    pub(super) fn start(&mut self, at: ReplicaIpu, cycles: CycleRange) {
        self.presses += 1;
        self.wanted = Some((at, cycles, self.presses));
    }

    /// The micro-batch that was looked for, once it is known; nothing between the stages.
    pub(super) fn arrived(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
    ) -> Option<Result<Option<u64>, BackgroundQueryError>> {
        let wanted = self.wanted?;
        let report = context.opened.report.clone();
        let question = move |(at, cycles, _): &StageKey| micro_batch_at(&report, *at, *cycles);
        let found = self.stage.ask(ui.ctx(), context.workers, &wanted, question).finished()?;
        self.wanted = None;
        Some(found.map(|found| *found))
    }

    /// Asks for the path of a micro-batch; none before the marks are read.
    pub(super) fn ask_path(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        number: u64,
    ) -> Option<Versioned<MicroBatchPath>> {
        prepared.known_marks()?;
        let (report, shared) = (context.opened.report.clone(), prepared.clone());
        let question = move |number: &u64| path(&report, &shared, *number);
        self.path.ask(ui.ctx(), context.workers, &number, question).answer().cloned()
    }
}

fn micro_batch_at(
    report: &Report,
    at: ReplicaIpu,
    cycles: CycleRange,
) -> Result<Option<u64>, ReportError> {
    Ok(stage_at(report, at, cycles)?.map(|mark| mark.index))
}

fn path(
    report: &Report,
    prepared: &LoadedTrace,
    number: u64,
) -> Result<MicroBatchPath, ReportError> {
    match prepared.known_marks() {
        Some(rows) => micro_batch_path(report, rows, number),
        None => Ok(MicroBatchPath::default()),
    }
}
