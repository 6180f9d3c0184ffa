//! Samples of tiles: measured starts and ends of each step on each tile.

use super::Report;
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_CYCLES, MAX_STEPS};
use crate::model::{ExchangeActivity, SampleKind, SampleLabel, TileSample};
use crate::packed_columns::MAX_PART_ROWS;
use crate::row_cells::RowCells;
use crate::schema::{TILE_SAMPLE_CHUNKS, TILE_SAMPLES};
use crate::units::{CycleRange, Cycles, StepId, TileId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const COLUMNS: [&str; 10] = [
    "step",
    "tile",
    "label",
    "phase",
    "epoch",
    "local_index",
    "first_cycle",
    "cycles",
    "exchange_cycles",
    "activities",
];

/// Samples that are packed together: a row of `tile_sample_chunks` without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedSamples {
    id: i64,
    first_step: StepId,
    last_step: StepId,
    rows: usize,
}

impl Report {
    /// True if the report has measured samples of tiles. Steps of such a report have no recorded
    /// traffic.
    pub fn has_tile_samples(&self) -> bool {
        self.db.has_rows(TILE_SAMPLE_CHUNKS)
    }

    /// Labels of samples, by number.
    pub fn sample_labels(&self) -> Result<Arc<Vec<SampleLabel>>, ReportError> {
        self.sample_labels.get(|| {
            let columns = ["kind", "operation", "kernel", "metadata"];
            let select = SelectQuery::all("sample_labels", &columns).clauses("ORDER BY id");
            self.db.list(select, |cells| self.sample_label(cells))
        })
    }

    fn sample_label(&self, cells: &RowCells) -> SampleLabel {
        let text = cells.long_text(3).unwrap_or_default();
        let pairs: BTreeMap<String, String> = serde_json::from_str(&text).unwrap_or_else(|error| {
            self.warnings.add(format!("sample_labels.metadata is invalid: {error}"));
            BTreeMap::new()
        });
        SampleLabel {
            kind: cells.named(0, SampleKind::from_name).unwrap_or(SampleKind::Idle),
            operation: cells.text(1).unwrap_or_default(),
            kernel: cells.text(2).unwrap_or_default(),
            metadata: pairs.into_iter().collect(),
        }
    }

    /// Number of samples.
    pub fn tile_sample_count(&self) -> Result<u64, ReportError> {
        Ok(self.sample_chunks()?.iter().map(|chunk| chunk.rows as u64).sum())
    }

    /// Passes on the samples of steps, step by step and within a step by tile. Each call gets the
    /// samples of one chunk.
    pub fn visit_tile_samples(
        &self,
        steps: Range<StepId>,
        mut each: impl FnMut(StepId, TileSample),
    ) -> Result<(), ReportError> {
        for packed in self.packed_samples_of(steps.clone())? {
            for (step, sample) in self.unpack_samples(&packed)? {
                if steps.contains(&step) {
                    each(step, sample);
                }
            }
        }
        Ok(())
    }

    /// The chunks with the samples of steps, in order. They may contain samples of other steps.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn packed_samples_of(
        &self,
        steps: Range<StepId>,
    ) -> Result<Vec<PackedSamples>, ReportError> {
        let chunks = self.sample_chunks()?;
        // Chunks are in the order of steps, so those of some steps are adjacent.
        let first = chunks.partition_point(|chunk| chunk.last_step < steps.start);
        let wanted = chunks.iter().skip(first).take_while(|chunk| chunk.first_step < steps.end);
        Ok(wanted.copied().collect())
    }

    /// The samples of a chunk, step by step and within a step by tile.
    ///
    /// # Errors
    /// A part of the file cannot be read.
    pub fn unpack_samples(
        &self,
        packed: &PackedSamples,
    ) -> Result<Vec<(StepId, TileSample)>, ReportError> {
        let labels = self.sample_labels()?;
        let target = self.target()?;
        let mut samples = Vec::with_capacity(packed.rows.min(MAX_PART_ROWS));
        let select = SelectQuery::all(TILE_SAMPLES, &COLUMNS);
        self.db.read_piece(TILE_SAMPLE_CHUNKS, (packed.id, packed.rows), select, |cells| {
            let read = sample(cells).filter(|(_, sample)| {
                (sample.label as usize) < labels.len() && target.has_tile(sample.tile)
            });
            match read {
                Some(sample) => samples.push(sample),
                None => self.warnings.add("tile_samples has invalid rows; they are left out"),
            }
        })?;
        Ok(samples)
    }

    fn sample_chunks(&self) -> Result<Arc<Vec<PackedSamples>>, ReportError> {
        self.sample_chunks.get(|| {
            let columns = ["id", "first_step", "last_step", "rows"];
            let select = SelectQuery::all(TILE_SAMPLE_CHUNKS, &columns).clauses("ORDER BY id");
            let chunks = self.db.list(select, |cells| {
                Some(PackedSamples {
                    id: cells.int(0)?,
                    first_step: StepId(cells.count(1, MAX_STEPS)?),
                    last_step: StepId(cells.count(2, MAX_STEPS)?),
                    rows: cells.small_up_to(3, u32::try_from(MAX_PART_ROWS).unwrap_or(0))? as usize,
                })
            })?;
            let known: Option<Vec<PackedSamples>> = chunks.into_iter().collect();
            let known =
                known.ok_or_else(|| self.db.damage(TILE_SAMPLE_CHUNKS, "a row is broken"))?;
            let follow = known.windows(2).all(|pair| match pair {
                [one, next] => one.last_step <= next.first_step,
                _ => true,
            });
            if !follow || known.iter().any(|chunk| chunk.last_step < chunk.first_step) {
                return Err(self.db.damage(TILE_SAMPLE_CHUNKS, "steps are out of order"));
            }
            Ok(known)
        })
    }
}

fn sample(cells: &RowCells) -> Option<(StepId, TileSample)> {
    let start: Cycles = cells.count(6, MAX_CYCLES)?;
    let length: Cycles = cells.count(7, MAX_CYCLES)?;
    let sample = TileSample {
        tile: TileId(cells.small(1)?),
        label: cells.small(2)?,
        phase: number(cells, 3)?,
        epoch: number(cells, 4)?,
        local_index: number(cells, 5)?,
        cycles: CycleRange::new(start, start + length),
        exchange_cycles: Cycles(
            cells.int(8).and_then(|cycles| u64::try_from(cycles).ok()).unwrap_or(0),
        ),
        activities: ExchangeActivity::unpack(cells.blob(9).unwrap_or_default())?,
    };
    Some((StepId(cells.count(0, MAX_STEPS)?), sample))
}

/// A 32-bit number, which may use all bits.
fn number(cells: &RowCells, column: usize) -> Option<u32> {
    u32::try_from(cells.int(column)?).ok()
}
