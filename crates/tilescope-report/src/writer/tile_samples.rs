//! Packs samples of tiles as they arrive.

use crate::error::ReportError;
use crate::limits::MAX_CYCLES;
use crate::model::{ExchangeActivity, SampleLabel, TileSample};
use crate::packed_columns::{ColumnPacker, PackedRows};
use crate::row_writer::{RowWriter, checked_i64, resolve, stored};
use crate::schema;
use crate::units::StepId;
use rusqlite::types::ToSqlOutput;
use rusqlite::{ToSql, params};

/// The state of the samples of a report.
pub(super) struct TileSampleWriter {
    labels: usize,
    tiles: u32,
    packer: ColumnPacker,
    /// Steps whose samples are not written yet.
    first_step: StepId,
    last_step: StepId,
    chunks: i64,
    has_rows: bool,
}

impl TileSampleWriter {
    /// Writes the labels of samples on this number of tiles.
    pub(super) fn new(
        labels: &[SampleLabel],
        tiles: u32,
        rows: &RowWriter,
    ) -> Result<Self, ReportError> {
        for (id, label) in (0i64..).zip(labels) {
            let SampleLabel { kind, operation, kernel, metadata } = label;
            let pairs = metadata.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
            let json = serde_json::Value::Object(pairs.collect()).to_string();
            rows.insert("sample_labels", params![id, kind.name(), operation, kernel, json])?;
        }
        let table = schema::find(schema::TILE_SAMPLES);
        let packer = ColumnPacker::new(table.ok_or_else(|| {
            ReportError::invalid_input(format!("the report has no table {}", schema::TILE_SAMPLES))
        })?);
        let first_step = StepId(0);
        let last_step = StepId(0);
        let labels = labels.len();
        Ok(Self { labels, tiles, packer, first_step, last_step, chunks: 0, has_rows: false })
    }

    /// Adds a sample of a step; steps come in order.
    pub(super) fn sample(
        &mut self,
        step: StepId,
        sample: &TileSample,
        rows: &RowWriter,
    ) -> Result<(), ReportError> {
        let describe = |part: &str| format!("{part} of a sample of step {step}");
        let label = resolve(sample.label, self.labels, || describe("label"))?;
        let tile = resolve(sample.tile.0, self.tiles as usize, || describe("tile"))?;
        let end = checked_i64(sample.cycles.end, MAX_CYCLES, || describe("end"))?;
        let start = checked_i64(sample.cycles.start, sample.cycles.end, || describe("start"))?;
        let planned = i64::try_from(sample.exchange_cycles.0).ok().filter(|cycles| *cycles > 0);
        let activities = ExchangeActivity::pack(&sample.activities);
        let columns: [&dyn ToSql; 10] = [
            &(step.0 as i64),
            &tile,
            &label,
            &sample.phase,
            &sample.epoch,
            &sample.local_index,
            &start,
            &(end - start),
            &planned,
            &activities,
        ];
        let values: Vec<ToSqlOutput> =
            columns.iter().filter_map(|value| value.to_sql().ok()).collect();
        self.packer.push(values.iter().map(stored));
        if !self.has_rows {
            self.first_step = step;
        }
        (self.has_rows, self.last_step) = (true, step);
        if self.packer.is_full() { self.complete(rows) } else { Ok(()) }
    }

    /// Writes the rest.
    pub(super) fn complete(&mut self, rows: &RowWriter) -> Result<(), ReportError> {
        if !std::mem::take(&mut self.has_rows) {
            return Ok(());
        }
        let PackedRows { rows: count, data } = self.packer.take();
        let first = self.first_step.0 as i64;
        let last = self.last_step.0 as i64;
        let row = params![self.chunks, first, last, count as i64, data];
        rows.insert(schema::TILE_SAMPLE_CHUNKS, row)?;
        self.chunks += 1;
        Ok(())
    }
}
