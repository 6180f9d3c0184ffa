//! Taking in steps on one thread while another writes to the file.

use super::StepLayout;
use super::execution::ExecutionWriter;
use super::execution_rows::ExecutionRow;
use crate::error::ReportError;
use crate::model::{CompilationReport, ExecutionStep, TraceMark};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Pieces that are handed over together.
const BATCH: usize = 256;
/// Batches that may wait while the compiled program is written: some 200 MB of index.
const MAX_QUEUED_BATCHES: usize = 256;

/// Takes the steps of an execution in.
pub struct Recorder {
    execution: ExecutionWriter,
    pieces: SyncSender<Vec<ExecutionRow>>,
}

impl Recorder {
    pub(super) fn new(
        compilation: &CompilationReport,
        layout: StepLayout,
    ) -> (Self, Receiver<Vec<ExecutionRow>>) {
        let execution = ExecutionWriter::new(compilation, layout);
        let (pieces, receiver) = sync_channel(MAX_QUEUED_BATCHES);
        (Self { execution, pieces }, receiver)
    }

    /// Writes a step, as [`ReportWriter::step`](super::ReportWriter::step) does.
    pub fn step(&mut self, step: &ExecutionStep) -> Result<(), ReportError> {
        self.execution.step(step)?;
        self.hand_over(BATCH)
    }

    /// Writes a mark, as [`ReportWriter::mark`](super::ReportWriter::mark) does.
    pub fn mark(&mut self, mark: &TraceMark) -> Result<(), ReportError> {
        self.execution.mark(mark)?;
        self.hand_over(BATCH)
    }

    /// Hands over what is left; what is known only at the end is in what it returns.
    pub(super) fn end(mut self) -> Result<ExecutionWriter, ReportError> {
        self.hand_over(1)?;
        Ok(self.execution)
    }

    /// Hands pieces over if there are so many.
    fn hand_over(&mut self, least: usize) -> Result<(), ReportError> {
        if self.execution.pending() < least {
            return Ok(());
        }
        let batch = self.execution.pieces().collect();
        let gone = |_| ReportError::invalid_input("an earlier part could not be written");
        // Waits where the queue is full: a run faster than the disk must not fill the memory.
        self.pieces.send(batch).map_err(gone)
    }
}
