//! `query`: queries a report with SQL.

mod elsewhere;
#[cfg_attr(not(feature = "parquet"), path = "query/no_parquet_file.rs")]
mod parquet_file;

use super::command::{CliCommand, CliError, report_argument};
use super::exported_file::ExportedFile;
use super::interrupt;
use super::output_file;
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::fs;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tilescope_analysis::sql::{
    self, CsvRows, JsonRows, ListedTable, READY_QUERIES, ReadyQuery, RowSink, SqlError,
    SqlQuestion, SqlSummary, TextRows,
};
use tilescope_report::Report;
use tilescope_report::remote::RemoteAddress;

/// `tilescope query`
pub(super) const COMMAND: CliCommand = CliCommand { name: "query", arguments, run };

/// The maximum number of bytes of a query in a file.
const MAX_SQL_BYTES: u64 = 1 << 20;

/// The formats of answers; the first one is the default.
const FORMATS: [&str; 4] = ["table", "csv", "json", PARQUET];
/// The format that is not for screens, and may need a restart.
const PARQUET: &str = "parquet";

const AFTER_HELP: &str = "\
--tables lists the tables of the file; docs/format.md describes them. In reports of any size, steps,
steps_by_ipu, marks and tile_samples are tables. Three table functions return sums that would take
long to compute:
  program_cycles(first_cycle, end_cycle)    steps, cycles and bytes by program and IPU
  activity_cycles(first_cycle, end_cycle)   cycles by activity and IPU
  steps_between(first_cycle, end_cycle)     executed steps in a window
Without arguments they cover the whole run. Conditions on step_id, ipu and cycles limit the part
that is read.

--format parquet requires a file. A column has the type that the report declares, or that of its
values; docs/exports.md has the rule. A file appears when it is complete; Ctrl-C removes an
incomplete one. A file whose name ends in .gz is compressed.

Queries are read-only. Sorting and grouping use temporary files if the memory is too small (on
Linux, in TMPDIR). A query that takes longer than --timeout, more than 288 MiB of memory or more
than 4 GiB of temporary files fails.

Examples:
  tilescope query out slowest-programs
  tilescope query out 'SELECT name, sum(cycles) FROM program_cycles GROUP BY name ORDER BY 2 DESC LIMIT 10'
  tilescope query out 'SELECT * FROM steps_between(0, 10000) WHERE ipu = 2' --format csv -o steps.csv
  tilescope query out 'SELECT * FROM steps_by_ipu' --format parquet -o steps.parquet
  tilescope query out --file question.sql --format json
  tilescope query ssh://pod16/data/out slowest-programs      answered on pod16
  tilescope query --list";

fn arguments(command: clap::Command) -> clap::Command {
    let lists = ["list", "tables"];
    command
        .about("Query a report of any size in SQL, read-only")
        .arg(report_argument().required(false).required_unless_present("list"))
        .arg(
            Arg::new("sql")
                .value_name("SQL")
                .required_unless_present_any(["file", lists[0], lists[1]])
                .help("A SELECT, the name of a ready query (--list), or - for standard input"),
        )
        .arg(
            Arg::new("file")
                .short('f')
                .long("file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .conflicts_with("sql")
                .help("File with the query"),
        )
        .arg(
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["sql", "file"])
                .help("List ready queries, with their SQL"),
        )
        .arg(
            Arg::new("tables")
                .long("tables")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["sql", "file", "list"])
                .help("List tables and columns of the report, with units"),
        )
        .arg(
            Arg::new("format")
                .long("format")
                .value_name("FORMAT")
                .value_parser(FORMATS)
                .default_value(FORMATS[0])
                .help("Output format"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("File to write [default: standard output]"),
        )
        .arg(
            Arg::new("timeout")
                .long("timeout")
                .value_name("SECONDS")
                .value_parser(seconds)
                .default_value("60")
                .help("Time limit of the query"),
        )
        .after_help(AFTER_HELP)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    let is_sane = seconds > 0.0 && seconds <= 86_400.0;
    is_sane
        .then(|| Duration::from_secs_f64(seconds))
        .ok_or_else(|| "not between 0 and 86400 seconds".to_owned())
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    if matches.get_flag("list") {
        return list(output);
    }
    // Before the report is opened: the query itself may be wrong.
    let format = matches.get_one::<String>("format").map_or(FORMATS[0], String::as_str);
    let file = matches.get_one::<PathBuf>("output");
    if format == PARQUET {
        parquet_file::check(file.map(PathBuf::as_path))?;
    }
    let question = if matches.get_flag("tables") { None } else { Some(question(matches)?) };
    let path = super::command::path_of(matches, "report");
    if let Some(address) = RemoteAddress::of_path(path)?
        && format != PARQUET
        && elsewhere::ask(&address, question.as_ref(), format, matches, output)?
    {
        return Ok(());
    }
    let report = Arc::new(super::command::open_report(matches)?);
    let Some(question) = question else { return tables(&report, output) };
    let question = question.sql_for(&report)?;
    let limit = matches.get_one::<Duration>("timeout").copied();
    let question = SqlQuestion {
        time_limit: limit.unwrap_or(SqlQuestion::TIME_LIMIT),
        ..SqlQuestion::new(question)
    };
    let Some(file) = file else {
        return Ok(answer(&report, &question, format, output)?);
    };
    output_file::check(file, std::iter::once(report.path()))?;
    interrupt::watch();
    let question = SqlQuestion { cancel: interrupt::flag(), ..question };
    if format == PARQUET {
        parquet_file::write(&report, &question, file)?;
    } else {
        write_file(file, |written| Ok(answer(&report, &question, format, written)?))?;
    }
    Ok(writeln!(output, "{}", file.display())?)
}

/// Writes an answer to a file: completely or not at all.
fn write_file(
    file: &Path,
    answer: impl FnOnce(&mut dyn Write) -> Result<(), CliError>,
) -> Result<(), CliError> {
    let mut written = ExportedFile::create(file)?;
    answer(&mut written).map_err(|error| match error {
        CliError::Output(problem) => written.error(problem),
        error => error,
    })?;
    written.finish()
}

/// The user's request.
pub(super) enum Asked {
    Ready(&'static ReadyQuery),
    Sql(String),
}

impl Asked {
    /// Parses a string as the name of a prepared query, or as SQL.
    pub(super) fn of(text: &str) -> Result<Self, CliError> {
        if let Some(ready) = ReadyQuery::named(text) {
            return Ok(Self::Ready(ready));
        }
        if text.trim().is_empty() {
            return Err(UsageError::Request("the query is empty").into());
        }
        // No SELECT is a single word.
        if text.trim().contains(char::is_whitespace) {
            return Ok(Self::Sql(text.to_owned()));
        }
        let likeness =
            |other: &ReadyQuery| strsim::normalized_damerau_levenshtein(text, other.name);
        let best = READY_QUERIES.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        let near = best.filter(|best| likeness(best) >= 0.5);
        let near = near.map_or(String::new(), |near| format!("; did you mean {}?", near.name));
        let hint = format!("{near} (--list lists them)");
        Err(UsageError::unknown("ready query", text, hint).into())
    }

    /// The SQL for a report, if that has all the data of a prepared query.
    pub(super) fn sql_for(self, report: &Arc<Report>) -> Result<String, CliError> {
        let ready = match self {
            Self::Sql(sql) => return Ok(sql),
            Self::Ready(ready) => ready,
        };
        let missing = ready.missing_tables(report)?;
        if missing.is_empty() {
            return Ok(ready.sql.to_owned());
        }
        let name = ready.name;
        let missing = missing.join(", ");
        Err(JobError::QuestionNotRecorded { name, missing }.into())
    }
}

fn question(matches: &ArgMatches) -> Result<Asked, CliError> {
    if let Some(file) = matches.get_one::<PathBuf>("file") {
        return read_sql(
            fs::File::open(file)
                .map_err(|error| JobError::ReadFile { file: file.clone(), error })?,
        )
        .map(Asked::Sql);
    }
    let text = matches.get_one::<String>("sql").map_or("", String::as_str);
    if text == "-" {
        return read_sql(io::stdin().lock()).map(Asked::Sql);
    }
    Asked::of(text)
}

fn read_sql(from: impl Read) -> Result<String, CliError> {
    let mut sql = String::new();
    let read = from.take(MAX_SQL_BYTES + 1).read_to_string(&mut sql);
    read.map_err(|error| JobError::Read { what: "the query cannot be read", error })?;
    if sql.len() as u64 > MAX_SQL_BYTES {
        return Err(UsageError::Request("the query is larger than 1 MiB").into());
    }
    Ok(sql)
}

fn answer(
    report: &Arc<Report>,
    question: &SqlQuestion,
    format: &str,
    output: &mut dyn Write,
) -> Result<(), SqlError> {
    // Rows arrive one by one; the inner stream writes on every call.
    let mut buffered = BufWriter::with_capacity(1 << 16, output);
    let mut sink: Box<dyn RowSink + '_> = match format {
        "csv" => Box::new(CsvRows::new(&mut buffered)),
        "json" => Box::new(JsonRows::new(&mut buffered)),
        _ => Box::new(TextRows::new(&mut buffered)),
    };
    let answered = sql::run(report, question, sink.as_mut());
    drop(sink);
    let summary = answered?;
    buffered.flush()?;
    hint(&summary);
    Ok(())
}

/// Prints a suggestion for a better query, if there is one.
fn hint(summary: &SqlSummary) {
    if let Some(hint) = summary.hint() {
        let _ = writeln!(super::stderr(), "hint: {hint}");
    }
}

fn list(output: &mut dyn Write) -> Result<(), CliError> {
    for (at, ReadyQuery { name, about, sql, .. }) in READY_QUERIES.iter().enumerate() {
        let gap = if at > 0 { "\n" } else { "" };
        writeln!(output, "{gap}{name}: {about}")?;
        for line in sql.lines() {
            writeln!(output, "    {line}")?;
        }
    }
    Ok(())
}

fn tables(report: &Arc<Report>, output: &mut dyn Write) -> Result<(), CliError> {
    let listed = sql::list_tables(report)?;
    for (at, ListedTable { name, about, columns }) in listed.iter().enumerate() {
        let gap = if at > 0 { "\n" } else { "" };
        let about = if about.is_empty() { String::new() } else { format!(": {about}") };
        writeln!(output, "{gap}{name}{about}")?;
        let widest = columns.iter().map(|column| column.name.chars().count()).max().unwrap_or(0);
        for column in columns {
            let line = format!(
                "    {:widest$}  {:8}  {:11}  {}",
                column.name, column.declaration, column.unit, column.about
            );
            writeln!(output, "{}", line.trim_end())?;
        }
    }
    Ok(())
}
