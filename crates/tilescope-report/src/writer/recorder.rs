//! Taking in steps on one thread while another writes to the file.

use super::StepLayout;
use super::execution::Execution;
use super::piece::Piece;
use crate::error::ReportError;
use crate::model::{Compilation, Mark, Step};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Pieces that are handed over together.
const BATCH: usize = 256;
/// Batches that may wait while the compiled program is written: some 200 MB of index.
const WAITING: usize = 256;

/// Takes the steps of an execution in.
pub struct Recorder {
    execution: Execution,
    pieces: SyncSender<Vec<Piece>>,
}

impl Recorder {
    pub(super) fn new(
        compilation: &Compilation,
        layout: StepLayout,
    ) -> Result<(Self, Receiver<Vec<Piece>>), ReportError> {
        let mut execution = Execution::new(compilation);
        execution.set_layout(layout)?;
        let (pieces, receiver) = sync_channel(WAITING);
        Ok((Self { execution, pieces }, receiver))
    }

    /// Writes a step, as [`ReportWriter::step`](super::ReportWriter::step) does.
    pub fn step(&mut self, step: &Step) -> Result<(), ReportError> {
        self.execution.step(step)?;
        self.hand_over(BATCH)
    }

    /// Writes a mark, as [`ReportWriter::mark`](super::ReportWriter::mark) does.
    pub fn mark(&mut self, mark: &Mark) -> Result<(), ReportError> {
        self.execution.mark(mark)?;
        self.hand_over(BATCH)
    }

    /// Hands over what is left; what is known only at the end is in what it returns.
    pub(super) fn end(mut self) -> Result<Execution, ReportError> {
        self.hand_over(1)?;
        Ok(self.execution)
    }

    /// Hands pieces over if there are so many.
    fn hand_over(&mut self, least: usize) -> Result<(), ReportError> {
        if self.execution.pending() < least {
            return Ok(());
        }
        let batch = self.execution.pieces().collect();
        let gone = |_| ReportError::refused("an earlier part could not be written");
        self.pieces.send(batch).map_err(gone)
    }
}
