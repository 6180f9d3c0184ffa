//! `samples`: samples of measured tiles, grouped and filtered.

use super::command::{CliCommand, CliError, open_report, report_argument};
use super::text_table::table_lines;
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgAction, ArgMatches};
use std::io::Write;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::tile_samples::samples;
use tilescope_analysis::tile_samples::{SampleFilter, SampleGrouping, metadata_names};
use tilescope_report::Report;

/// `tilescope samples`
pub(super) const COMMAND: CliCommand = CliCommand { name: "samples", arguments, run };

const EXAMPLES: &str = "\
Names are kind, kernel, operation, phase, epoch, tile, and those of the metadata. Cycles are those
of all samples of a group; the phases of each epoch count separately.

Examples:
  tilescope samples profile.capnp --by kernel
  tilescope samples profile.capnp --by tile --where kind=compute --where region=encoder
  tilescope samples profile.capnp --by rows --format csv";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about(
            "Group measurements of single tiles: samples, tiles, work, mean, median, 95th \
                percentile and maximum cycles",
        )
        .arg(report_argument())
        .arg(
            Arg::new("by")
                .long("by")
                .value_name("NAME")
                .default_value("operation")
                .help("Names to group samples by, see below"),
        )
        .arg(
            Arg::new("where")
                .long("where")
                .value_name("NAME=VALUE")
                .action(ArgAction::Append)
                .help("Only samples with this value; can be repeated, all conditions apply"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(["table", "csv", "json"])
                .default_value("table")
                .help("Output format"),
        )
        .after_help(EXAMPLES)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let get_text = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let conditions = matches.get_many::<String>("where").unwrap_or_default();
    let conditions: Vec<(&str, &str)> =
        conditions.map(|of| condition(of)).collect::<Result<_, _>>()?;
    let report = open_report(matches)?;
    if !report.has_tile_samples() {
        let problem = "this report has no samples of single tiles; profiles of other tools have \
                       them (tilescope convert --help)";
        let report = report.path().to_owned();
        return Err(JobError::NotRecorded { problem, report }.into());
    }
    let by = grouping(&report, get_text("by"))?;
    let mut filter = SampleFilter::new();
    for (name, value) in conditions {
        filter.push((grouping(&report, name)?, value.to_owned()));
    }
    let table = samples(&report, &by, &filter)?;
    match get_text("format") {
        "csv" => Ok(write!(output, "{}", table.csv())?),
        "json" => print_json(&table, output),
        _ => print(&table, output),
    }
}

/// Reads `region=encoder`.
fn condition(text: &str) -> Result<(&str, &str), CliError> {
    let expects = "NAME=VALUE, such as kind=compute";
    Ok(text
        .split_once('=')
        .ok_or_else(|| UsageError::Expects { expects, found: text.to_owned() })?)
}

/// The grouping by a name in the metadata of a report's samples.
fn grouping(report: &Report, name: &str) -> Result<SampleGrouping, CliError> {
    let grouping = SampleGrouping::from_name(name);
    let SampleGrouping::Metadata(_) = grouping else { return Ok(grouping) };
    let own = metadata_names(report)?;
    if own.iter().any(|known| known == name) {
        return Ok(grouping);
    }
    let known = SampleGrouping::NAMED.map(|(known, _)| known.to_owned()).into_iter().chain(own);
    let known = known.collect::<Vec<_>>().join(", ");
    Err(UsageError::UnknownGrouping { name: name.to_owned(), known }.into())
}

fn print_json(table: &DataTable, output: &mut dyn Write) -> Result<(), CliError> {
    let heads: Vec<String> = table.columns.iter().map(|column| column.head()).collect();
    let rows: Vec<_> = table
        .rows
        .iter()
        .map(|row| -> serde_json::Map<String, serde_json::Value> {
            let values = row.iter().map(|cell| serde_json::to_value(cell).unwrap_or_default());
            heads.iter().cloned().zip(values).collect()
        })
        .collect();
    super::command::print_json(&rows, output)
}

fn print(table: &DataTable, output: &mut dyn Write) -> Result<(), CliError> {
    if table.rows.is_empty() {
        return Ok(writeln!(output, "No samples.")?);
    }
    for line in table_lines(table, usize::MAX) {
        writeln!(output, "{line}")?;
    }
    Ok(())
}
