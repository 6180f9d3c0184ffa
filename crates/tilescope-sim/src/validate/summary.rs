//! Measured and simulated costs side by side, and the errors of each family.

use super::rows::MeasuredRow;
use crate::error_bands::OperationExtent;
use crate::graph_lowering::op_benchmark::OpBenchmarkCost;
use serde::Serialize;
use std::collections::BTreeMap;
use tilescope_report::units::{Bytes, Cycles};

/// What all rows of a file say.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ValidationSummary {
    /// Simulated rows, in the order of the file.
    pub rows: Vec<RowCosts>,
    /// Errors of each family with simulated rows.
    pub families: BTreeMap<&'static str, FamilyErrors>,
    /// Rows without a simulated cost.
    pub skipped: Vec<SkippedRow>,
}

/// Simulated and measured costs of one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RowCosts {
    pub name: String,
    pub target: &'static str,
    pub cycles: Cycles,
    pub simulated_cycles: Cycles,
    /// Measured bytes: always-live ones of all tiles, and the peak of the others on each tile.
    pub memory_bytes: Bytes,
    pub simulated_memory_bytes: Bytes,
    /// Measured highest address in use on any tile.
    pub max_tile: Bytes,
    pub simulated_max_tile: Bytes,
    /// Kind of the operation.
    #[serde(skip)]
    pub family: &'static str,
    /// How large it is, part by part.
    #[serde(skip)]
    pub(super) extents: Vec<OperationExtent>,
}

/// What is simulated of a row.
pub(super) struct SimulatedRow {
    pub cost: OpBenchmarkCost,
    pub extents: Vec<OperationExtent>,
}

impl RowCosts {
    /// Signed errors of cycles, memory and fullest tile, as shares of what was measured.
    pub fn errors(&self) -> [f64; 3] {
        let error = |simulated: f64, measured: f64| simulated / measured - 1.0;
        let bytes =
            |simulated: Bytes, measured: Bytes| error(simulated.as_f64(), measured.as_f64());
        [
            error(self.simulated_cycles.as_f64(), self.cycles.as_f64()),
            bytes(self.simulated_memory_bytes, self.memory_bytes),
            bytes(self.simulated_max_tile, self.max_tile),
        ]
    }
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
    /// Mean error of memory.
    pub memory_mape: f64,
    /// Mean error of the fullest tile.
    pub max_tile_mape: f64,
}

impl ValidationSummary {
    /// Adds a simulated row.
    pub(super) fn add(&mut self, row: &MeasuredRow, simulated: SimulatedRow) {
        let SimulatedRow { cost: simulated, extents } = simulated;
        self.rows.push(RowCosts {
            name: row.name.clone(),
            target: row.chip.name,
            cycles: row.measured.cycles,
            simulated_cycles: simulated.cycles,
            memory_bytes: row.measured.memory_bytes,
            simulated_memory_bytes: simulated.memory_bytes,
            max_tile: row.measured.fullest_tile_bytes,
            simulated_max_tile: simulated.fullest_tile_bytes,
            family: row.family.name,
            extents,
        });
    }

    /// Adds a row that was not simulated.
    pub(super) fn skip(&mut self, row: &MeasuredRow, reason: String) {
        self.skipped.push(SkippedRow { name: row.name.clone(), target: row.chip.name, reason });
    }

    /// Sums the families up.
    pub(super) fn finish(&mut self) {
        for row in &self.rows {
            let family = self.families.entry(row.family).or_default();
            let [cycles, memory, max_tile] = row.errors().map(f64::abs);
            family.rows += 1;
            family.cycles_mape += cycles;
            family.cycles_worst = family.cycles_worst.max(cycles);
            family.memory_mape += memory;
            family.max_tile_mape += max_tile;
        }
        for family in self.families.values_mut() {
            let rows = family.rows as f64;
            family.cycles_mape /= rows;
            family.memory_mape /= rows;
            family.max_tile_mape /= rows;
        }
    }
}
