//! `tile_samples` of a report of measured tiles, which keeps them as compressed columns.

use super::steps::{columns_as_in_rows, ids_within};
use super::{Asked, FoundRows, RunReader, RunTable, WantedColumns, whole};
use rusqlite::types::ValueRef;
use std::ops::Range;
use std::sync::{Arc, LazyLock};
use tilescope_report::units::{Cycles, StepId};
use tilescope_report::{ExchangeActivity, PackedSamples, Report, TileSample};
use tilescope_vtab::{ColumnBounds, RowEstimate, VirtualColumn, VirtualRows, VirtualTableError};

/// `tile_samples`
pub(super) const TABLE: RunTable = RunTable {
    name: "tile_samples",
    about: "a step of a tile, from its own cycle counter",
    stands_in: Some(Report::has_tile_samples),
    columns,
    order: &[],
    estimate,
    rows,
};

const STEP: usize = 0;
const ACTIVITIES: usize = 9;

fn columns() -> &'static [VirtualColumn] {
    static COLUMNS: LazyLock<Vec<VirtualColumn>> =
        LazyLock::new(|| columns_as_in_rows(TABLE.name, &[STEP]));
    &COLUMNS
}

fn estimate(run: &RunReader, asked: Asked) -> RowEstimate {
    let samples = run.report.tile_sample_count().unwrap_or(0) as f64;
    RowEstimate { rows: (samples * asked.share(STEP, 0.001)).max(1.0), unique: false }
}

fn rows(run: &Arc<RunReader>, bounds: &ColumnBounds, _: WantedColumns) -> FoundRows {
    let steps = ids_within(&bounds.of(STEP));
    let chunks = run.report.packed_samples_of(steps.clone())?;
    Ok(Box::new(SampleRows {
        run: run.clone(),
        steps,
        chunks: chunks.into_iter(),
        samples: Vec::new().into_iter(),
        sample: None,
        activities: Vec::new(),
    }))
}

/// Samples, chunk by chunk.
struct SampleRows {
    run: Arc<RunReader>,
    steps: Range<StepId>,
    chunks: std::vec::IntoIter<PackedSamples>,
    samples: std::vec::IntoIter<(StepId, TileSample)>,
    sample: Option<(StepId, TileSample)>,
    /// What the sample's tile was planned to do, as the file has it.
    activities: Vec<u8>,
}

impl VirtualRows for SampleRows {
    fn advance(&mut self) -> Result<bool, VirtualTableError> {
        loop {
            self.sample = self.samples.next();
            if let Some((step, sample)) = &self.sample {
                if !self.steps.contains(step) {
                    continue;
                }
                self.activities = ExchangeActivity::pack(&sample.activities);
                return Ok(true);
            }
            let Some(chunk) = self.chunks.next() else { return Ok(false) };
            self.samples = self.run.report.unpack_samples(&chunk)?.into_iter();
            self.run.check_time(self.samples.len())?;
        }
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let Some((step, sample)) = &self.sample else { return ValueRef::Null };
        let TileSample { tile, label, phase, epoch, local_index, cycles, exchange_cycles, .. } =
            sample;
        match column {
            STEP => whole(step.0),
            1 => whole(tile.0),
            2 => whole(*label),
            3 => whole(*phase),
            4 => whole(*epoch),
            5 => whole(*local_index),
            6 => whole(cycles.start.0),
            7 => whole(cycles.length().0),
            8 if *exchange_cycles > Cycles::ZERO => whole(exchange_cycles.0),
            ACTIVITIES if !self.activities.is_empty() => ValueRef::Blob(&self.activities),
            _ => ValueRef::Null,
        }
    }
}
