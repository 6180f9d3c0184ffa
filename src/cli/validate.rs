//! `validate`: compares the cost model with measured rows.

use super::command::{CliCommand, CliError, json_argument};
use crate::cli::error::UsageError;
use clap::{Arg, ArgMatches};
use std::io::Write;
use tilescope_report::units::{Bytes, grouped};
use tilescope_sim::validate::{RowErrors, ValidationSummary, validate};

/// `tilescope validate`
pub(super) const COMMAND: CliCommand = CliCommand { name: "validate", arguments, run };

const FILE_FORMAT: &str = "\
Columns, in any order:
  name                           any name
  family                         gemm, fc, conv, pooling, reduction, embedding, lstm, gru, or
                                 vertex: a vertex alone, without plan or exchange
  config                         words of key=value, spelled as in poplibs' tools; lists are
                                 separated by commas
  target                         mk1, mk2 or bow
  cycles                         cycles without host transfers
  memory_bytes                   always-live bytes of all tiles, plus each tile's peak of the others
  max_tile_bytes_including_gaps  highest address in use on any tile

Bytes that were not measured are empty cells. Lines that begin with # are comments.

Defaults of config: half data, float partials, batch 1, stride 1, padding 0, one group, no bias.
Rows that cannot be simulated are listed as skipped.

Examples:
  tilescope validate tests/data/poplar_ipumodel_ops.csv
  tilescope validate tests/data/hardware_vertices.csv
  tilescope validate my_rows.csv --json";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Simulate measured operations and print the errors of the cost model")
        .arg(
            Arg::new("file")
                .value_name("FILE.csv")
                .required(true)
                .help("CSV file with one measured operation per line"),
        )
        .arg(json_argument())
        .after_help(FILE_FORMAT)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let file = matches.get_one::<String>("file").map_or("", String::as_str);
    let text = std::fs::read_to_string(file)
        .map_err(|error| UsageError::Measurements { file: file.to_owned(), error })?;
    let validation = validate(&text)
        .map_err(|error| UsageError::Input { place: file.to_owned(), error: error.into() })?;
    if matches.get_flag("json") {
        return super::command::print_json(&validation, output);
    }
    rows(&validation, output)?;
    families(&validation, output)
}

/// A signed error in percent.
fn percent(error: f64) -> String {
    format!("{:+.1}%", 100.0 * error)
}

/// The cell of a figure that was not measured.
const NOT_MEASURED: &str = "-";

fn bytes_or_dash(bytes: Option<Bytes>) -> String {
    bytes.map_or_else(|| NOT_MEASURED.to_owned(), |bytes| grouped(bytes.0))
}

fn rows(validation: &ValidationSummary, output: &mut dyn Write) -> Result<(), CliError> {
    let width = validation.rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(4);
    writeln!(
        output,
        "{:width$}  {:4}  {:>12} {:>12} {:>7}  {:>12} {:>12} {:>7}  {:>9} {:>9} {:>7}",
        "row",
        "chip",
        "cycles",
        "simulated",
        "error",
        "memory B",
        "simulated",
        "error",
        "max tile",
        "simulated",
        "error",
    )?;
    for row in &validation.rows {
        let RowErrors { cycles, memory, max_tile } = row.errors();
        let cycles = percent(cycles);
        let memory = memory.map_or_else(|| NOT_MEASURED.to_owned(), percent);
        let max_tile = max_tile.map_or_else(|| NOT_MEASURED.to_owned(), percent);
        writeln!(
            output,
            "{:width$}  {:4}  {:>12} {:>12} {cycles:>7}  {:>12} {:>12} {memory:>7}  {:>9} {:>9} {max_tile:>7}",
            row.name,
            row.target,
            grouped(row.cycles.0),
            grouped(row.simulated_cycles.0),
            bytes_or_dash(row.memory_bytes),
            bytes_or_dash(row.simulated_memory_bytes),
            bytes_or_dash(row.max_tile),
            bytes_or_dash(row.simulated_max_tile),
        )?;
    }
    Ok(())
}

fn families(validation: &ValidationSummary, output: &mut dyn Write) -> Result<(), CliError> {
    let format_share = |error: f64| format!("{:.1}%", 100.0 * error);
    writeln!(output, "\nMean absolute errors")?;
    writeln!(
        output,
        "{:10} {:>5} {:>8} {:>8} {:>8} {:>9}",
        "family", "rows", "cycles", "(worst)", "memory", "max tile"
    )?;
    for (name, errors) in &validation.families {
        writeln!(
            output,
            "{name:10} {:>5} {:>8} {:>8} {:>8} {:>9}",
            errors.rows,
            format_share(errors.cycles_mape),
            format_share(errors.cycles_worst),
            errors.memory_mape.map_or_else(|| NOT_MEASURED.to_owned(), format_share),
            errors.max_tile_mape.map_or_else(|| NOT_MEASURED.to_owned(), format_share),
        )?;
    }
    if !validation.skipped.is_empty() {
        writeln!(output, "\nSkipped: {} rows", validation.skipped.len())?;
    }
    for row in &validation.skipped {
        writeln!(output, "{} on {}: {}", row.name, row.target, row.reason)?;
    }
    Ok(())
}
