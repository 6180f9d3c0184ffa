//! Tables as Parquet and Arrow files.

use super::super::exported_file::{ExportProgress, ExportedFile};
use super::super::plain_output::stderr;
use super::trace_file::prepare;
use crate::cli::command::{CliError, open_report};
use crate::cli::error::{JobError, UsageError};
use crate::cli::selection;
use clap::ArgMatches;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use tilescope_analysis::tables as views;
use tilescope_arrow::{
    ArrowFileError, ArrowFileFormat, RowSelection, TableError, read_groups, read_table, tables,
    write_batches,
};
use tilescope_report::Report;

/// The default table.
const DEFAULT_TABLE: &str = "steps";

/// Lists the tables that belong to no view.
pub(super) fn list_records(output: &mut dyn Write) -> Result<(), CliError> {
    for table in tables().iter().filter(|table| !table.name.contains('/')) {
        writeln!(output, "{:16} {:14} {}", "", table.name, table.about)?;
    }
    Ok(())
}

/// Writes a table.
pub(super) fn write(matches: &ArgMatches, file: &Path) -> Result<(), CliError> {
    let name = table_name(matches)?;
    let format = match matches.get_one::<String>("format").map(String::as_str) {
        Some("arrow") => ArrowFileFormat::Arrow,
        _ => ArrowFileFormat::Parquet,
    };
    if file.extension().is_some_and(|ending| ending == "gz") {
        let problem = "Parquet and Arrow files are already compressed; choose a name that ends in \
                       .parquet or .arrow";
        return Err(UsageError::FileProblem { file: file.to_owned(), problem }.into());
    }
    let report = Arc::new(open_report(matches)?);
    let mut progress = ExportProgress::new();
    prepare(&report)?;
    let table = match super::group_key(matches) {
        Some(key) => read_groups(&report, &name, key),
        None => read_table(&report, &name, &rows(matches, &report)?),
    };
    let table = table.map_err(|error| match error {
        TableError::Report(_) | TableError::Arrow(_) => JobError::Other(error.into()).into(),
        error => CliError::from(UsageError::Table(error.into())),
    })?;
    let all = table.rows();
    let mut output = ExportedFile::create(file)?.within(&report, all);
    if all == 0 {
        let _ = writeln!(stderr(), "note: the table {name:?} has no matching rows in this report");
    }
    let schema = table.schema();
    let batches = table.batches();
    let written =
        write_batches(&schema, batches, format, &mut output, &mut |done| progress.at(done, all));
    drop(progress);
    match written {
        Ok(()) => output.finish(),
        Err(ArrowFileError::Write(problem)) => Err(output.error(problem)),
        Err(error) => Err(JobError::Other(error.into()).into()),
    }
}

/// The table selected by the user: of a view, if one is given.
fn table_name(matches: &ArgMatches) -> Result<String, CliError> {
    let get_text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let Some(view) = get_text("view") else {
        return Ok(get_text("table").unwrap_or(DEFAULT_TABLE).to_owned());
    };
    Ok(views::named(view, get_text("table"))?.path())
}

fn rows(matches: &ArgMatches, report: &Report) -> Result<RowSelection, CliError> {
    let target = report.target()?;
    Ok(RowSelection {
        ipus: selection::ipus(matches, &target)?,
        cycles: selection::window(matches, report)?.map(|window| (window.start.0, window.end.0)),
        tiles: selection::tiles(matches, &target)?,
    })
}
