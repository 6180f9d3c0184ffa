//! Accepts steps on one thread, while a second builds their trace index and a third writes to the
//! file.

use super::StepLayout;
use super::execution::{ExecutionWriter, PIECES, sync_programs};
use super::execution_rows::ExecutionRow;
use crate::error::ReportError;
use crate::model::{CompilationReport, ExecutionStep, TraceMark};
use crate::trace::{SyncPrograms, TraceIndexWriter};
use crate::units::{IpuId, ReplicaClassId};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The maximum number of batches of steps in the queue for the index.
const MAX_QUEUED_STEPS: usize = 32;
/// The maximum number of batches of pieces queued while the compiled program is written: some 200
/// MB of index.
const MAX_QUEUED_PIECES: usize = 256;

/// Records the steps of an execution.
pub struct Recorder {
    execution: ExecutionWriter,
    rows: SyncSender<Vec<ExecutionRow>>,
}

/// Builds the trace index of the steps of a [`Recorder`].
pub(super) struct RecorderIndex {
    programs: SyncPrograms,
    rows: Receiver<Vec<ExecutionRow>>,
    pieces: SyncSender<Vec<ExecutionRow>>,
}

impl Recorder {
    /// The recorder, its index builder, and the receiver of pieces for the file.
    pub(super) fn new(
        compilation: &CompilationReport,
        layout: StepLayout,
    ) -> (Self, RecorderIndex, Receiver<Vec<ExecutionRow>>) {
        let execution = ExecutionWriter::new(compilation, layout);
        let (rows, indexed) = sync_channel(MAX_QUEUED_STEPS);
        let (pieces, receiver) = sync_channel(MAX_QUEUED_PIECES);
        let programs = sync_programs(compilation);
        (Self { execution, rows }, RecorderIndex { programs, rows: indexed, pieces }, receiver)
    }

    /// Writes a step, like [`ReportWriter::step`](super::ReportWriter::step).
    pub fn step(&mut self, step: &ExecutionStep) -> Result<(), ReportError> {
        self.execution.step(step)?;
        self.hand_over_if_full()
    }

    /// Writes a mark, like [`ReportWriter::mark`](super::ReportWriter::mark).
    pub fn mark(&mut self, mark: &TraceMark) -> Result<(), ReportError> {
        self.mark_of_class(ReplicaClassId(0), mark)
    }

    /// Writes a mark, like [`ReportWriter::mark_of_class`](super::ReportWriter::mark_of_class).
    pub fn mark_of_class(
        &mut self,
        class: ReplicaClassId,
        mark: &TraceMark,
    ) -> Result<(), ReportError> {
        self.execution.mark(class, mark)?;
        self.hand_over_if_full()
    }

    /// Records that tiles of an IPU wait for others of it, like
    /// [`ReportWriter::wait_for_tiles`](super::ReportWriter::wait_for_tiles).
    pub fn wait_for_tiles(&mut self, ipu: IpuId, waiting: u8, awaited: u8) {
        self.execution.hand_over(ipu, awaited, waiting);
    }

    /// Passes on the remaining pieces. Returns the state for data known only at the end.
    pub(super) fn end(mut self) -> Result<ExecutionWriter, ReportError> {
        self.hand_over()?;
        Ok(self.execution)
    }

    fn hand_over_if_full(&mut self) -> Result<(), ReportError> {
        if self.execution.is_full() { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), ReportError> {
        let batch = self.execution.pieces().collect();
        // Blocks while the queue is full: a run faster than the disk must not fill the memory.
        self.rows
            .send(batch)
            .map_err(|_| ReportError::invalid_input("an earlier part could not be written"))
    }
}

impl RecorderIndex {
    /// Runs until no more steps come or the receiver of pieces is gone.
    pub(super) fn run(self) -> TraceIndexWriter {
        let Self { programs, rows, pieces } = self;
        let mut lanes = TraceIndexWriter::new(programs);
        let mut found = Vec::new();
        for batch in rows {
            batch.into_iter().for_each(|row| row.index(&mut lanes, &mut found));
            if found.len() >= PIECES && pieces.send(std::mem::take(&mut found)).is_err() {
                return lanes;
            }
        }
        // A receiver that is gone reports its own error.
        let _ = pieces.send(found);
        lanes
    }
}
