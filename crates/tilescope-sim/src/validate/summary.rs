//! Measured and simulated costs side by side, and the errors of each family.

use super::rows::MeasuredRow;
use crate::error_bands::OperationExtent;
use serde::Serialize;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles};

/// The results of all rows of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ValidationSummary {
    /// Simulated rows, in file order.
    pub rows: Vec<RowCosts>,
    /// Errors of each family with simulated rows.
    pub families: BTreeMap<&'static str, FamilyErrors>,
    /// Rows without a simulated cost.
    pub skipped: Vec<SkippedRow>,
}

/// The simulated and measured costs of one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowCosts {
    pub name: String,
    pub target: &'static str,
    pub cycles: Cycles,
    pub simulated_cycles: Cycles,
    /// Measured bytes: always-live ones of all tiles, and the peak of the others on each tile.
    pub memory_bytes: Option<Bytes>,
    /// Simulated bytes. `None` for single vertices.
    pub simulated_memory_bytes: Option<Bytes>,
    /// Measured highest address in use on any tile.
    pub max_tile: Option<Bytes>,
    pub simulated_max_tile: Option<Bytes>,
    /// The kind of the operation.
    #[serde(skip)]
    pub family: &'static str,
    /// The sizes of its parts.
    #[serde(skip)]
    pub(super) extents: Vec<OperationExtent>,
}

/// The simulated figures of a row.
pub(super) struct SimulatedRow {
    pub cycles: Cycles,
    pub memory_bytes: Option<Bytes>,
    pub max_tile: Option<Bytes>,
    pub extents: Vec<OperationExtent>,
}

/// Signed errors of a row, as shares of the measured figures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowErrors {
    pub cycles: f64,
    /// The error of memory, if it was measured and simulated.
    pub memory: Option<f64>,
    /// The error of the fullest tile, if it was measured and simulated.
    pub max_tile: Option<f64>,
}

impl RowCosts {
    /// The errors of the model for this row.
    pub fn errors(&self) -> RowErrors {
        RowErrors {
            cycles: self.simulated_cycles.as_f64() / self.cycles.as_f64() - 1.0,
            memory: bytes_error(self.simulated_memory_bytes, self.memory_bytes),
            max_tile: bytes_error(self.simulated_max_tile, self.max_tile),
        }
    }
}

fn bytes_error(simulated: Option<Bytes>, measured: Option<Bytes>) -> Option<f64> {
    Some(simulated?.as_f64() / measured?.as_f64() - 1.0)
}

/// A row without a simulated cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SkippedRow {
    pub name: String,
    pub target: &'static str,
    pub reason: String,
}

/// Absolute errors over the rows of a family, as shares: 0.05 is 5 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FamilyErrors {
    pub rows: u64,
    /// Mean error of cycles.
    pub cycles_mape: f64,
    /// Largest error of cycles.
    pub cycles_worst: f64,
    /// Mean error of memory, over the rows that have one.
    pub memory_mape: Option<f64>,
    /// Mean error of the fullest tile, over the rows that have one.
    pub max_tile_mape: Option<f64>,
}

impl ValidationSummary {
    /// Adds a simulated row.
    pub(super) fn add(&mut self, row: &MeasuredRow, simulated: SimulatedRow) {
        self.rows.push(RowCosts {
            name: row.name.clone(),
            target: row.chip.name,
            cycles: row.cycles,
            simulated_cycles: simulated.cycles,
            memory_bytes: row.memory_bytes,
            simulated_memory_bytes: simulated.memory_bytes,
            max_tile: row.max_tile,
            simulated_max_tile: simulated.max_tile,
            family: row.family.name,
            extents: simulated.extents,
        });
    }

    /// Adds a row that was not simulated.
    pub(super) fn skip(&mut self, row: &MeasuredRow, reason: String) {
        self.skipped.push(SkippedRow { name: row.name.clone(), target: row.chip.name, reason });
    }

    /// Computes the errors of the families.
    pub(super) fn finish(&mut self) {
        let mut families: BTreeMap<&'static str, Vec<RowErrors>> = BTreeMap::new();
        for row in &self.rows {
            families.entry(row.family).or_default().push(row.errors());
        }
        self.families =
            families.iter().map(|(name, rows)| (*name, FamilyErrors::of(rows))).collect();
    }
}

impl FamilyErrors {
    fn of(rows: &[RowErrors]) -> Self {
        let cycles = rows.iter().map(|row| row.cycles.abs());
        Self {
            rows: rows.len() as u64,
            cycles_mape: mean(cycles.clone()).unwrap_or_default(),
            cycles_worst: cycles.fold(0.0, f64::max),
            memory_mape: mean(rows.iter().filter_map(|row| row.memory).map(f64::abs)),
            max_tile_mape: mean(rows.iter().filter_map(|row| row.max_tile).map(f64::abs)),
        }
    }
}

/// The mean of the values. `None` if there are none.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut sum = 0.0;
    let mut count = 0_u32;
    for value in values {
        sum += value;
        count += 1;
    }
    if count == 0 {
        return None;
    }
    Some(sum / f64::from(count))
}
