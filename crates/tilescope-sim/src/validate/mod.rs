//! The validation of the cost model against measured rows.
//!
//! A file has one operation per line: its description, its chip, and its measured cost. Each
//! operation becomes a graph of the operators that models consist of, and is planned, laid out and
//! lowered like the graph of a model. Its cycles and bytes are compared with the measured ones.
//!
//! Columns, in any order: `name`, `family` (one of [`FAMILIES`]), `config` (words of the form
//! `key=value`, lists separated by commas), `target` (the name of a chip), `cycles`, `memory_bytes`
//! and `max_tile_bytes_including_gaps`. Bytes that were not measured are empty cells. Lines that
//! begin with `#` are comments.
//!
//! A row of the family `vertex` is a single vertex: only the formula of its cycles applies.

mod case;
mod config;
mod families;
mod matmul_conv;
mod passes;
mod pool_reduce_embedding;
mod residuals;
mod rnn;
mod rows;
mod summary;
mod vertex;

pub use families::{FAMILIES, OperationFamily};
pub use residuals::residuals;
pub(crate) use rows::{MeasuredRow, RowError, read_rows};
pub use summary::{FamilyErrors, RowCosts, RowErrors, SkippedRow, ValidationSummary};

use crate::error_bands::group_of_family;
use crate::graph_lowering::op_benchmark;
use config::RowProblem;
use families::MeasuredPart;
use rayon::prelude::*;
use summary::SimulatedRow;

/// Simulates every row of a file.
///
/// # Errors
/// Returns an error for the first invalid line. A valid row that cannot be simulated is listed in
/// [`ValidationSummary::skipped`].
pub fn validate(text: &str) -> Result<ValidationSummary, RowError> {
    let rows = read_rows(text)?;
    let costs: Vec<_> = rows.par_iter().map(simulate).collect();
    let mut validation = ValidationSummary::default();
    for (row, cost) in rows.iter().zip(costs) {
        match cost {
            Ok(cost) => validation.add(row, cost),
            Err(RowProblem::Unsupported(reason)) => validation.skip(row, reason),
            Err(RowProblem::Malformed(problem)) => {
                return Err(RowError { line: row.line, problem });
            }
        }
    }
    validation.finish();
    Ok(validation)
}

fn simulate(row: &MeasuredRow) -> Result<SimulatedRow, RowProblem> {
    row.family.check_keys(&row.config)?;
    match row.family.measured {
        MeasuredPart::Operation(build_case) => {
            let case = build_case(&row.config, row.chip)?;
            let extents = case.extents(group_of_family(row.family.name));
            let cost = op_benchmark::cost(row.chip, &case.program()?);
            Ok(SimulatedRow {
                cycles: cost.cycles,
                memory_bytes: Some(cost.memory_bytes),
                max_tile: Some(cost.fullest_tile_bytes),
                extents,
            })
        }
        MeasuredPart::Vertex(cycles) => Ok(SimulatedRow {
            cycles: cycles(&row.config, row.chip)?,
            memory_bytes: None,
            max_tile: None,
            extents: Vec::new(),
        }),
    }
}
