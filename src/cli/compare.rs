//! `compare`: compares two reports, with gates for jobs that watch cycles and memory.

use super::command::{CliCommand, CliError, json_argument, open_path, path_of};
use super::gates::{self, CheckedGates};
use super::output_file;
use super::report_or_spec::open_or_simulate;
use super::text_table::aligned;
use crate::cli::error::UsageError;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches};
use serde_json::{Map, Value};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::{
    COMPARISONS, ComparedReports, ComparisonTable, ReportAlignment, WorkUnit, comparison,
    differences, markdown, outcome, overview, side_titles, table_named,
};
use tilescope_analysis::data_table::{ColumnAlignment, DataTable, TableCell};
use tilescope_report::Report;
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_report::units::NumberFormat;

/// `tilescope compare`
pub(super) const COMMAND: CliCommand = CliCommand { name: "compare", arguments, run };

/// The view that is printed by default.
const OVERVIEW: &str = "overview";

/// The default number of rows of a printed table.
const DEFAULT_LIMIT: &str = "20";

const AFTER_HELP: &str = "\
Percentages are relative to the source. The largest difference comes first. Cycles and executions
are per sample, so that twice the work is not slower, or per run if a report does not record its
samples. JSON also has the figures of the whole run (source_run, target_run). If all gates pass, the
text has only the result and the changed settings; --view, or a violated gate, adds the causes.";

const EXAMPLES: &str = "\
Examples:
  tilescope compare before after
  tilescope compare before after --view execution-trace --limit 50
  tilescope compare before after --view all --json
  tilescope compare baseline.pop mnist_pipeline --fail-if 'execution.total_cycles > +2%'
  tilescope compare baseline out --fail-if 'max_tile > 600 KiB' --markdown --junit gates.xml
  tilescope compare baseline out --fail-over 2 --per update";

fn arguments(command: clap::Command) -> clap::Command {
    let make_argument = |name: &'static str, value: &'static str, help: &'static str| {
        let path = clap::value_parser!(PathBuf);
        Arg::new(name).value_name(value).required(true).value_parser(path).help(help)
    };
    command
        .about("Compare two reports: source, target and difference")
        .arg(make_argument("source", "SOURCE", "Baseline: a report, or a spec, which is simulated"))
        .arg(make_argument(
            "target",
            "TARGET",
            "The report to compare with it, or a spec, which is simulated",
        ))
        .arg(Arg::new("view").long("view").value_name("NAME").default_value(OVERVIEW).help(
            "View whose figures are compared; overview for a page of the main changes; or all",
        ))
        .arg(unit_argument())
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .default_value(DEFAULT_LIMIT)
                .value_parser(clap::value_parser!(usize))
                .help("Maximum number of rows per table; 0 for all"),
        )
        .args(gates::arguments())
        .arg(
            Arg::new("markdown")
                .long("markdown")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["json", "view"])
                .help("Print Markdown for a pull request: the changes, and the gates"),
        )
        .arg(json_argument())
        .after_help(format!("{AFTER_HELP}\n\n{}\n\n{EXAMPLES}", gates::HELP))
}

/// `--per`: the unit of figures of the run.
pub(super) fn unit_argument() -> Arg {
    Arg::new("per")
        .long("per")
        .value_name("UNIT")
        .value_parser(WorkUnit::ALL.map(WorkUnit::name))
        .default_value(WorkUnit::default().name())
        .help("Unit of work for cycles and executions")
}

/// The unit selected by the user.
pub(super) fn unit_of(matches: &ArgMatches) -> WorkUnit {
    let name = matches.get_one::<String>("per").map_or("", String::as_str);
    WorkUnit::ALL.into_iter().find(|unit| unit.name() == name).unwrap_or_default()
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let view = matches.get_one::<String>("view").map_or("", String::as_str);
    if ![OVERVIEW, "all"].contains(&view) && comparison(view).is_none() {
        let known: Vec<&str> = COMPARISONS.iter().map(|one| one.view).collect();
        let hint = format!("; views to compare: {OVERVIEW}, {}, all", known.join(", "));
        return Err(UsageError::unknown("view", view, hint).into());
    }
    let gates = gates::asked(matches)?;
    let junit = matches.get_one::<PathBuf>("junit");
    if junit.is_some() && gates.is_empty() {
        let problem = "--junit requires gates: name them with --fail-if";
        return Err(UsageError::Request(problem).into());
    }
    if let Some(path) = junit {
        output_file::check(
            path,
            ["source", "target"].map(|side| path_of(matches, side)).into_iter(),
        )?;
    }
    let directory = TemporaryDirectory::new()?;
    let open_side =
        |side| open_or_simulate(path_of(matches, side), &[], &directory.path().join(side));
    let source = open_side("source")?;
    let target = open_side("target")?;
    let alignment = ReportAlignment::without_links(&source, &target)?;
    let numbers = NumberFormat::default();
    let unit = unit_of(matches);
    let sides =
        ComparedReports { source: &source, target: &target, alignment: &alignment, numbers, unit };
    let limit = matches.get_one::<usize>("limit").copied().filter(|limit| *limit > 0);
    let limit = limit.unwrap_or(usize::MAX);
    let normalization = sides.normalization()?;
    let titles = side_titles(&source, &target);
    let gates = CheckedGates::of(gates, (&source, &target), &normalization)?;
    if let Some(path) = junit {
        gates.write_junit(path)?;
    }
    if matches.get_flag("markdown") {
        let page = overview(&sides)?;
        write!(output, "{}", markdown(&page, gates.each(), limit))?;
        return gates.conclude();
    }
    let json = matches.get_flag("json");
    let mut views: Map<String, Value> = Map::new();
    views.insert("normalization".to_owned(), json_value(&normalization)?);
    views.insert("sides".to_owned(), json_value(&titles.map(str::to_lowercase))?);
    if let (false, Some(note)) = (json, &normalization.note) {
        writeln!(output, "{note}\n")?;
    }
    if [OVERVIEW, "all"].contains(&view) {
        // A job that passes its gates prints just that. The explanation of a difference is for one
        // that does not, and for explicit requests.
        let is_asked = json || matches.value_source("view") == Some(ValueSource::CommandLine);
        let page =
            if gates.are_passed() && !is_asked { outcome(&sides)? } else { overview(&sides)? };
        views.insert("verdict".to_owned(), page.verdict.clone().into());
        views.insert("distinction".to_owned(), json_value(&page.distinction)?);
        if !json {
            writeln!(output, "{}\n", page.verdict)?;
        }
        show((OVERVIEW, titles), page.tables, (json, limit), &mut views, output)?;
    }
    for one in COMPARISONS.iter().filter(|one| view == "all" || one.view == view) {
        let tables = (one.tables)(&sides)?;
        show((one.view, titles), tables, (json, limit), &mut views, output)?;
    }
    if !json {
        gates.print_passed(output)?;
    }
    if json {
        if !gates.gates.is_empty() {
            views.insert("violations".to_owned(), json_value(&gates.violations)?);
        }
        super::command::print_json(&views, output)?;
    }
    gates.conclude()
}

fn json_value(of: &impl serde::Serialize) -> Result<Value, CliError> {
    Ok(serde_json::to_value(of)?)
}

/// Prints the tables of a view, or adds them to the JSON.
fn show(
    (view, titles): (&str, [&str; 2]),
    mut tables: Vec<ComparisonTable>,
    (json, limit): (bool, usize),
    views: &mut Map<String, Value>,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    if !json {
        return tables.iter().try_for_each(|table| print(table, titles, limit, output));
    }
    tables.iter_mut().for_each(|table| cut(table, limit));
    views.insert(view.to_owned(), json_value(&tables)?);
    Ok(())
}

/// One table of differences, as columns and rows.
pub(super) fn rows(
    source: &Report,
    (target, unit): (&Path, WorkUnit),
    view: &str,
    table: Option<&str>,
) -> Result<DataTable, CliError> {
    let target = open_path(target)?;
    let Some(one) = comparison(view) else {
        return Err(UsageError::unknown("view", view, " to compare").into());
    };
    let tables = differences(source, &target, one, unit)?;
    Ok(table_named(&tables, table)?.data())
}

fn cut(table: &mut ComparisonTable, limit: usize) {
    table.complete = table.rows.len() <= limit;
    table.rows.truncate(limit);
}

/// Width of the widest first column; longer names push the rest of their row to the right.
const NAME_WIDTH: usize = 56;

/// A table with up to `limit` rows, its sides under these titles.
pub(super) fn print(
    table: &ComparisonTable,
    [source, target]: [&str; 2],
    limit: usize,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    if table.rows.is_empty() {
        return Ok(());
    }
    writeln!(output, "{}", table.title)?;
    let shown = &table.rows[..table.rows.len().min(limit)];
    let cell =
        |side: &Option<TableCell>| side.as_ref().map_or_else(|| "-".to_owned(), TableCell::text);
    let heading = table.heading();
    let mut lines = vec![[&heading, source, target, "Diff"].map(str::to_owned).to_vec()];
    for row in shown.iter().chain(&table.total) {
        let name = format!("{:1$}{2}", "", row.depth as usize * 2, row.name);
        let (source, target) = row.values();
        lines.push(vec![name, cell(&source), cell(&target), row.change_text()]);
    }
    use ColumnAlignment::{Left, Right};
    for line in aligned(&lines, &[Left, Right, Right, Left], NAME_WIDTH) {
        writeln!(output, "  {line}")?;
    }
    let hidden = table.rows.len() - shown.len();
    if hidden > 0 {
        writeln!(output, "  … {hidden} more rows (--limit 0 for all)")?;
    }
    writeln!(output)?;
    Ok(())
}
