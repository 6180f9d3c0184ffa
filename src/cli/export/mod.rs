//! `export`: exports a view of a report as a picture, or one of its tables, without a display.

mod formats;
#[cfg(feature = "gui")]
mod picture;
#[cfg(feature = "parquet")]
mod table_file;
mod trace_file;

use super::{compare, output_file, selection};
use crate::cli::command::{CliCommand, CliError, open_report, path_of};
use crate::cli::error::UsageError;
use crate::cli::exported_file::ExportedFile;
use clap::{Arg, ArgAction, ArgMatches};
use formats::{ExportFormat, FORMATS};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::grouping::{GroupKey, GroupingError};
use tilescope_analysis::{tables, topics};
use tilescope_report::Report;
use tilescope_report::units::ByteUnits;

/// `tilescope export`
pub(super) const COMMAND: CliCommand = CliCommand { name: "export", arguments, run };

/// Names of the palettes. A build without pictures knows them too, for its error message.
const PALETTES: [&str; 2] = ["classic", "colour-blind-safe"];

const EXAMPLES: &str = "\
Steps are exported whole, wherever they share a cycle with --range. Ranges are half-open: 0..2 is 0 \
and 1.

Examples:
  tilescope export out --view execution-trace --format png --size 1600x900 -o trace.png
  tilescope export out --view memory --format svg -o memory.svg
  tilescope export out --view memory --format svg --at 'tilescope:?view=memory&select.tiles=[3]'
  tilescope export out --view operations --format csv --table operations -o costs.csv
  tilescope export out --view operations --format csv --group-by layer -o layers.csv
  tilescope export out --view memory --theme dark --palette colour-blind-safe --units si --text-size 150
  tilescope export before --compare after --view execution-trace -o both.png
  tilescope export before --compare after --view memory --format csv --table variables
  tilescope export out --format parquet -o steps.parquet
  tilescope export out --format parquet --table variables --ipus 0 -o variables.parquet
  tilescope export out --format arrow --table memory/tiles -o tiles.arrow
  tilescope export out --format perfetto --range 1000000..2000000 -o trace.perfetto-trace
  tilescope export out --format chrome-trace --ipus 0,2..4 -o trace.json.gz
  tilescope export --list-views
  tilescope export --list-tables";

fn arguments(command: clap::Command) -> clap::Command {
    let lists = ["list-views", "list-tables"];
    let list = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    command
        .about("Export a view as a picture, a table as CSV, Parquet or Arrow, or the trace for \
                Perfetto or Chrome")
        .arg(
            Arg::new("report")
                .value_name("REPORT")
                .required_unless_present_any(lists)
                .value_parser(clap::value_parser!(PathBuf))
                .help("Report: a directory that contains profile.pop, or a .pop file"),
        )
        .arg(list("list-views", "List the views"))
        .arg(list("list-tables", "List the tables of views, and the tables that only Parquet and \
                                  Arrow files have"))
        .arg(
            Arg::new("view")
                .long("view")
                .value_name("NAME")
                .help("View to export; required for pictures and CSV files"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(FORMATS.map(|format| format.name))
                .default_value("png")
                .help("File format"),
        )
        .arg(Arg::new("table").long("table").value_name("NAME").help("Table to export [default: the \
                                                                      first of the view; without a \
                                                                      view, steps]"))
        .arg(
            Arg::new("group-by")
                .long("group-by")
                .value_name("KEY")
                .value_parser(GroupKey::ALL.map(GroupKey::name))
                .conflicts_with_all(["compare", "range", "ipus", "tiles"])
                .help("Write one row for each block, layer kind, operator, … of a table of operations, with sums and shares"),
        )
        .arg(Arg::new("compare").long("compare").value_name("REPORT").value_parser(clap::value_parser!(PathBuf)).help("Second report, shown beside the first"))
        .arg(compare::unit_argument())
        .arg(Arg::new("at").long("at").value_name("LINK").help("Draw the place a copied link points to"))
        .arg(Arg::new("size").long("size").value_name("WxH").help("Size of the picture in pixels [default: 1600x900]"))
        .arg(
            Arg::new("theme")
                .long("theme")
                .value_name("THEME")
                .value_parser(["light", "dark"])
                .default_value("light")
                .help("Theme of the picture"),
        )
        .arg(
            Arg::new("palette")
                .long("palette")
                .value_name("PALETTE")
                .value_parser(PALETTES)
                .default_value(PALETTES[0])
                .help("Colours of the picture"),
        )
        .arg(
            Arg::new("units")
                .long("units")
                .value_name("UNITS")
                .value_parser(ByteUnits::ALL.map(ByteUnits::name))
                .default_value(ByteUnits::default().name())
                .help("Units of byte counts: powers of 1024, powers of 1000, or all digits"),
        )
        .arg(
            Arg::new("text-size")
                .long("text-size")
                .value_name("PERCENT")
                .value_parser(clap::value_parser!(u16).range(50..=300))
                .default_value("100")
                .help("Scale of text and all other elements of the picture"),
        )
        .arg(selection::range_argument())
        .arg(selection::ipus_argument())
        .arg(selection::tiles_argument())
        .arg(Arg::new("output").short('o').long("output").value_name("FILE").value_parser(clap::value_parser!(PathBuf)).help("File to write; traces, CSV and JSON are compressed if it ends in .gz [default: the view, table or trace, with the ending of the format]"))
        .after_help(EXAMPLES)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    if matches.get_flag("list-tables") {
        for table in tables::all() {
            writeln!(output, "{:16} {:14} {}", table.view, table.name, table.about)?;
        }
        #[cfg(feature = "parquet")]
        table_file::list_records(output)?;
        return Ok(());
    }
    if matches.get_flag("list-views") {
        return picture(matches, output);
    }
    let format = formats::chosen(matches)?;
    let file = file_of(matches, format);
    output_file::check(&file, std::iter::once(path_of(matches, "report")))?;
    (format.write)(matches, &file)?;
    Ok(writeln!(output, "{}", file.display())?)
}

/// The output file given by the user or suggested by the format.
fn file_of(matches: &ArgMatches, format: &ExportFormat) -> PathBuf {
    if let Some(named) = matches.get_one::<PathBuf>("output") {
        return named.clone();
    }
    let text = |name: &str| matches.get_one::<String>(name);
    let stem = match text("view").or(text("table")) {
        _ if format.is_trace => "trace".to_owned(),
        Some(name) => name.replace('/', "-"),
        None => "steps".to_owned(),
    };
    PathBuf::from(format!("{stem}.{}", format.ending))
}

/// The key to group rows by.
fn group_key(matches: &ArgMatches) -> Option<GroupKey> {
    GroupKey::of_name(matches.get_one::<String>("group-by")?)
}

fn csv(matches: &ArgMatches, file: &Path) -> Result<(), CliError> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let view = text("view").unwrap_or_default();
    if let Some(target) = matches.get_one::<PathBuf>("compare") {
        let target = (target.as_path(), compare::unit_of(matches));
        let report = open_report(matches)?;
        let rows = compare::rows(&report, target, view, text("table"))?;
        return write_csv(&report, &rows, file);
    }
    let table = tables::named(view, text("table"))?;
    let report = open_report(matches)?;
    let rows = match group_key(matches) {
        Some(key) => table.grouped(&report, key).map_err(|error| match error {
            GroupingError::Report(error) => CliError::from(error),
            error => UsageError::Table(error.into()).into(),
        })?,
        None => (table.read)(&report)?,
    };
    write_csv(&report, &rows, file)
}

fn write_csv(report: &Report, rows: &DataTable, file: &Path) -> Result<(), CliError> {
    let mut output = ExportedFile::create(file)?.within(report, rows.rows.len() as u64);
    for line in rows.csv_lines() {
        if let Err(error) = output.write_all(line.as_bytes()) {
            return Err(output.error(error));
        }
    }
    output.finish()
}

/// Writes facts, figures and tables of a topic.
fn topic_json(matches: &ArgMatches, file: &Path) -> Result<(), CliError> {
    let view = matches.get_one::<String>("view").map_or("", String::as_str);
    let topic = topics::topic(view)?;
    let report = open_report(matches)?;
    let answer = topic.read(&report)?;
    let rows: usize = answer.tables.iter().map(|of| of.table.rows.len()).sum();
    let mut output = ExportedFile::create(file)?.within(&report, rows as u64);
    match serde_json::to_writer_pretty(&mut output, &answer) {
        Ok(()) => output.finish(),
        Err(error) => Err(output.error(error)),
    }
}

#[cfg(not(feature = "gui"))]
fn no_pictures() -> CliError {
    let lacks = "cannot draw pictures";
    UsageError::NotBuilt { lacks, feature: "gui", instead: "--format csv works" }.into()
}

#[cfg(not(feature = "gui"))]
fn picture(_: &ArgMatches, _: &mut dyn Write) -> Result<(), CliError> {
    Err(no_pictures())
}

#[cfg(not(feature = "gui"))]
fn draw(_: &ArgMatches, _: &Path) -> Result<(), CliError> {
    Err(no_pictures())
}

#[cfg(feature = "gui")]
use picture::{draw, list_views as picture};

#[cfg(feature = "parquet")]
use table_file::write as table_file;

#[cfg(not(feature = "parquet"))]
fn table_file(_: &ArgMatches, _: &Path) -> Result<(), CliError> {
    Err(no_parquet())
}

/// The error of a build without Parquet.
#[cfg(not(feature = "parquet"))]
pub(super) fn no_parquet() -> CliError {
    let lacks = "writes no Parquet and Arrow files";
    UsageError::NotBuilt { lacks, feature: "parquet", instead: "--format csv works" }.into()
}
