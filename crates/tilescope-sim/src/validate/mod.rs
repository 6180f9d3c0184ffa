//! The cost model against measured rows.
//!
//! A file has one operation per line: what it was, on which chip, and what it cost there. Each
//! becomes a graph of the operators that models are made of, is planned, laid out and lowered as
//! the graph of a model is, and its cycles and bytes are set against the measured ones.
//!
//! Columns, in any order: `name`, `family` (one of [`FAMILIES`]), `config` (words of `key=value`,
//! lists separated by commas), `target` (the name of a chip), `cycles`, `memory_bytes` and
//! `max_tile_bytes_including_gaps`.

mod case;
mod config;
mod families;
mod passes;
mod products;
mod recurrent;
mod rows;
mod summary;
mod tensors;

pub use families::{FAMILIES, Family};
pub(crate) use rows::{Row, RowError, read};
pub use summary::{FamilyErrors, RowCosts, Skipped, Validation};

use crate::graph_lowering::alone;
use config::Problem;
use rayon::prelude::*;

/// Simulates every row of a file.
///
/// # Errors
/// The first line that cannot be understood. A row that is understood but cannot be simulated is
/// listed in [`Validation::skipped`].
pub fn validate(text: &str) -> Result<Validation, RowError> {
    let rows = read(text)?;
    let costs: Vec<_> = rows.par_iter().map(simulate).collect();
    let mut validation = Validation::default();
    for (row, cost) in rows.iter().zip(costs) {
        match cost {
            Ok(cost) => validation.add(row, cost),
            Err(Problem::Refused(reason)) => validation.skip(row, reason),
            Err(Problem::Broken(problem)) => return Err(RowError { line: row.line, problem }),
        }
    }
    validation.finish();
    Ok(validation)
}

fn simulate(row: &Row) -> Result<alone::Cost, Problem> {
    let program = row.family.build(&row.config, row.chip)?;
    Ok(alone::cost(row.chip, &program))
}
