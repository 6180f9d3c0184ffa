//! `validate`: the cost model against measured rows.

use super::{CliCommand, CliError, json_argument};
use clap::{Arg, ArgMatches};
use std::io::Write;
use tilescope_report::units::grouped;
use tilescope_sim::validate::{ValidationSummary, validate};

/// `tilescope validate`
pub(super) const COMMAND: CliCommand = CliCommand { name: "validate", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Simulate measured operations and show how far off the cost model is")
        .arg(Arg::new("file").value_name("FILE.csv").required(true).help(
            "Columns: name, family, config, target, cycles, memory_bytes, max_tile_bytes_including_gaps",
        ))
        .arg(json_argument())
        .after_help(
            "Examples:\n  tilescope validate tests/data/poplar_ipumodel_ops.csv\n  \
             tilescope validate my_rows.csv --json",
        )
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let file = matches.get_one::<String>("file").map_or("", String::as_str);
    let text = std::fs::read_to_string(file)
        .map_err(|error| CliError::Usage(format!("cannot read {file}: {error}")))?;
    let validation =
        validate(&text).map_err(|error| CliError::Usage(format!("{file}: {error}")))?;
    if matches.get_flag("json") {
        let text = serde_json::to_string_pretty(&validation)
            .map_err(|error| CliError::Failed(error.to_string()))?;
        writeln!(output, "{text}")?;
        return Ok(());
    }
    rows(&validation, output)?;
    families(&validation, output)
}

/// A signed error in percent.
fn percent(error: f64) -> String {
    format!("{:+.1}%", 100.0 * error)
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
        let [cycles, memory, max_tile] = row.errors().map(percent);
        writeln!(
            output,
            "{:width$}  {:4}  {:>12} {:>12} {cycles:>7}  {:>12} {:>12} {memory:>7}  {:>9} {:>9} {max_tile:>7}",
            row.name,
            row.target,
            grouped(row.cycles),
            grouped(row.simulated_cycles),
            grouped(row.memory_bytes),
            grouped(row.simulated_memory_bytes),
            grouped(row.max_tile),
            grouped(row.simulated_max_tile),
        )?;
    }
    Ok(())
}

fn families(validation: &ValidationSummary, output: &mut dyn Write) -> Result<(), CliError> {
    let share = |error: f64| format!("{:.1}%", 100.0 * error);
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
            share(errors.cycles_mape),
            share(errors.cycles_worst),
            share(errors.memory_mape),
            share(errors.max_tile_mape),
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
