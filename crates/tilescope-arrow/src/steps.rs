//! Executed steps: one row for each step on each lane, in batches that are decoded as they are asked
//! for, so that a run of 10^8 steps takes no more memory than a short one.

use crate::row_selection::RowSelection;
use crate::step_columns::{self, StepColumns, StepFacts};
use crate::table::BatchIterator;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use tilescope_report::trace::{LaneStep, Trace};
use tilescope_report::units::IpuId;
use tilescope_report::{Report, ReportError};

/// Rows of a batch: 16 chunks of the trace.
const BATCH_ROWS: u64 = 1 << 16;

/// Steps that were asked for, not read yet.
pub struct StepTable {
    report: Arc<Report>,
    trace: Option<Trace>,
    /// Lane and positions of each batch.
    pieces: Vec<(usize, Range<u64>)>,
    facts: StepFacts,
}

impl StepTable {
    /// Finds the steps: O(log steps) for each lane.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn select(report: Arc<Report>, selection: &RowSelection) -> Result<Self, ReportError> {
        let trace = report.trace()?;
        let mut pieces = Vec::new();
        for (index, info) in trace.iter().flat_map(|trace| trace.lanes().iter().enumerate()) {
            let wanted = selection.has_ipu(info.ipu);
            let lane = trace.as_ref().and_then(|trace| trace.lane(index)).filter(|_| wanted);
            let Some(lane) = lane else { continue };
            let mut positions = match selection.window() {
                Some(window) => lane.touching(window)?,
                None => 0..info.steps,
            };
            while positions.start < positions.end {
                // Batches end where chunks do, so that none is decoded twice.
                let end = (positions.start + 1).next_multiple_of(BATCH_ROWS).min(positions.end);
                pieces.push((index, positions.start..end));
                positions.start = end;
            }
        }
        Ok(Self { facts: StepFacts::read(&report)?, report, trace, pieces })
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        self.pieces.iter().map(|(_, positions)| positions.end - positions.start).sum()
    }

    /// Columns and their types.
    pub fn schema() -> SchemaRef {
        step_columns::schema()
    }

    /// The rows, batch by batch.
    pub fn batches(self: &Arc<Self>) -> BatchIterator {
        Box::new(StepBatches { table: self.clone(), next: 0, ready: VecDeque::new() })
    }

    fn batch(&self, (lane, positions): &(usize, Range<u64>)) -> Result<RecordBatch, ArrowError> {
        let lane = self.trace.as_ref().and_then(|trace| trace.lane(*lane));
        let Some(lane) = lane else { return Ok(RecordBatch::new_empty(Self::schema())) };
        let key = (lane.info().ipu, lane.info().sub_lane);
        let rows = usize::try_from(positions.end - positions.start).unwrap_or_default();
        let mut columns = StepColumns::new(&self.facts, key, rows);
        // Steps whose tiles the trace does not know; where rows of the file do, they come later.
        let mut bare = Vec::new();
        let failed = |error: ReportError| ArrowError::ExternalError(Box::new(error));
        let has_rows = self.facts.has_balance;
        lane.visit_each_step(positions.clone(), |step, on_ipu| {
            if on_ipu.is_none() && has_rows {
                bare.push(step);
            } else {
                columns.push(&step, on_ipu.as_ref());
            }
        })
        .map_err(failed)?;
        self.push_rows_of_file(&bare, key, &mut columns).map_err(failed)?;
        columns.finish()
    }

    /// Adds steps with what a report with rows of steps says of them there.
    fn push_rows_of_file(
        &self,
        steps: &[LaneStep],
        (ipu, sub_lane): (IpuId, u8),
        columns: &mut StepColumns<'_>,
    ) -> Result<(), ReportError> {
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { return Ok(()) };
        let ids = first.step..last.step + 1;
        let mut recorded = self.report.steps(ids, usize::MAX)?.into_iter().peekable();
        for step in steps {
            // Both are in the order of ids.
            while recorded.next_if(|of| of.id < step.step).is_some() {}
            let of = recorded.peek().filter(|of| of.id == step.step);
            let mut parts = of.into_iter().flat_map(|of| &of.ipus);
            let on_ipu = parts.find(|part| (part.ipu, part.sub_lane) == (ipu, sub_lane));
            columns.push(step, on_ipu);
        }
        Ok(())
    }
}

/// Batches, several decoded side by side.
struct StepBatches {
    table: Arc<StepTable>,
    next: usize,
    ready: VecDeque<Result<RecordBatch, ArrowError>>,
}

impl StepBatches {
    /// Threads of its own: those of a pool would be missing in a process that Python has forked.
    fn decode(&mut self) {
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let end = (self.next + threads).min(self.table.pieces.len());
        let table = &self.table;
        let pieces = table.pieces.get(self.next..end).unwrap_or_default();
        self.next = end;
        self.ready = std::thread::scope(|scope| {
            let started: Vec<_> =
                pieces.iter().map(|piece| scope.spawn(|| table.batch(piece))).collect();
            let joined = started.into_iter().map(|thread| {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            joined.collect()
        });
    }
}

impl Iterator for StepBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.decode();
        }
        self.ready.pop_front()
    }
}
