//! The table `tile_samples` of a report of measured tiles, which stores them as compressed columns.

use super::packed_rows::{PackedRow, PackedRows};
use super::steps::ids_within;
use super::{
    BoundColumns, FoundRows, RecordReader, RecordSource, RecordTable, RowBounds, StreamedRows,
    WantedColumns, whole,
};
use rusqlite::types::ValueRef;
use std::sync::Arc;
use tilescope_report::units::{Cycles, StepId};
use tilescope_report::{ExchangeActivity, PackedSamples, Report, ReportError, TileSample};
use tilescope_vtab::RowEstimate;

/// The table `tile_samples`.
pub(super) const TABLE: RecordTable = RecordTable {
    name: "tile_samples",
    about: "a step of a tile, from its own cycle counter",
    stands_in: Some(Report::has_tile_samples),
    filters: None,
    source: RecordSource::Streamed(StreamedRows {
        bounded: &[STEP],
        columns: &[],
        order: &[],
        groups: super::no_groups,
        estimate,
        rows,
    }),
};

const STEP: usize = 0;
const ACTIVITIES: usize = 9;

fn estimate(run: &RecordReader, asked: BoundColumns) -> RowEstimate {
    let samples = run.report.tile_sample_count().unwrap_or(0) as f64;
    RowEstimate { rows: (samples * asked.share(STEP, 0.001)).max(1.0), unique: false }
}

fn rows(run: &Arc<RecordReader>, bounds: &RowBounds, _: WantedColumns) -> FoundRows {
    let chunks = run.report.packed_samples_of(ids_within(&bounds.columns.of(STEP)))?;
    Ok(Box::new(PackedRows::<SampleRow>::of(run, chunks)))
}

/// A sample of a step, with the plan of its tile in the file.
struct SampleRow {
    step: StepId,
    sample: TileSample,
    activities: Option<Vec<u8>>,
}

impl PackedRow for SampleRow {
    type Chunk = PackedSamples;

    fn unpack(report: &Report, chunk: &PackedSamples) -> Result<Vec<Self>, ReportError> {
        let row = |(step, sample): (StepId, TileSample)| {
            let activities = ExchangeActivity::pack(&sample.activities);
            Self { step, sample, activities }
        };
        Ok(report.unpack_samples(chunk)?.into_iter().map(row).collect())
    }

    fn value(&self, column: usize) -> ValueRef<'_> {
        let TileSample { tile, label, phase, epoch, local_index, cycles, exchange_cycles, .. } =
            &self.sample;
        match column {
            STEP => whole(self.step.0),
            1 => whole(tile.0),
            2 => whole(*label),
            3 => whole(*phase),
            4 => whole(*epoch),
            5 => whole(*local_index),
            6 => whole(cycles.start.0),
            7 => whole(cycles.length().0),
            8 if *exchange_cycles > Cycles::ZERO => whole(exchange_cycles.0),
            ACTIVITIES => self.activities.as_deref().map_or(ValueRef::Null, ValueRef::Blob),
            _ => ValueRef::Null,
        }
    }
}
