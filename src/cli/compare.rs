//! `compare`: two reports side by side, and a gate for jobs that watch cycles and memory.

use super::{CliCommand, CliError, json_argument, open_path, path_of};
use clap::{Arg, ArgMatches};
use serde_json::{Map, Value};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::{
    COMPARISONS, ComparedReports, ComparisonRow, ComparisonTable, ReportAlignment,
    WorkNormalization, WorkUnit, comparison, differences, overview, table_named,
};
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError};

/// `tilescope compare`
pub(super) const COMMAND: CliCommand = CliCommand { name: "compare", arguments, run };

/// What is printed where the user names no view.
const OVERVIEW: &str = "overview";

/// Rows of a table that are printed where the user names no number.
const DEFAULT_LIMIT: &str = "20";

fn arguments(command: clap::Command) -> clap::Command {
    let report = |name: &'static str, value: &'static str, help: &'static str| {
        let path = clap::value_parser!(PathBuf);
        Arg::new(name).value_name(value).required(true).value_parser(path).help(help)
    };
    command
        .about("Compare two reports: source, target and difference")
        .arg(report("source", "SOURCE", "Baseline report"))
        .arg(report("target", "TARGET", "Report to compare with the baseline"))
        .arg(
            Arg::new("view")
                .long("view")
                .value_name("NAME")
                .default_value(OVERVIEW)
                .help("View whose figures are compared; overview: what changed, on one page; or all"),
        )
        .arg(unit_argument())
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .default_value(DEFAULT_LIMIT)
                .value_parser(clap::value_parser!(usize))
                .help("Maximum number of rows per table; 0 for all"),
        )
        .arg(
            Arg::new("fail-over")
                .long("fail-over")
                .value_name("PERCENT")
                .value_parser(clap::value_parser!(f64))
                .help("Fail if cycles, memory or the fullest tile grew by more than this, or the target no longer runs"),
        )
        .arg(json_argument())
        .after_help(
            "Percentages are relative to the source. The largest difference comes first. Cycles and \
             executions are told per sample, so that twice the work is not slower; where a report does \
             not say how much it worked on, they are told per run. JSON also has the figures of the \
             whole run (source_run, target_run).\n\n\
             Examples:\n  tilescope compare before after\n  \
             tilescope compare before after --view execution-trace --limit 50\n  \
             tilescope compare before after --view all --json\n  \
             tilescope compare baseline out --fail-over 2 --per update",
        )
}

/// `--per`: what figures of the run are told per.
pub(super) fn unit_argument() -> Arg {
    Arg::new("per")
        .long("per")
        .value_name("UNIT")
        .value_parser(WorkUnit::ALL.map(WorkUnit::name))
        .default_value(WorkUnit::default().name())
        .help("What cycles and executions of two reports are compared per")
}

/// The unit that the user asks for.
pub(super) fn unit_of(matches: &ArgMatches) -> WorkUnit {
    let name = matches.get_one::<String>("per").map_or("", String::as_str);
    WorkUnit::ALL.into_iter().find(|unit| unit.name() == name).unwrap_or_default()
}

fn failed(error: ReportError) -> CliError {
    CliError::Failed(error.to_string())
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let view = matches.get_one::<String>("view").map_or("", String::as_str);
    if ![OVERVIEW, "all"].contains(&view) && comparison(view).is_none() {
        let known: Vec<&str> = COMPARISONS.iter().map(|one| one.view).collect();
        let known = known.join(", ");
        let problem =
            format!("there is no view {view:?} to compare; known: {OVERVIEW}, {known}, all");
        return Err(CliError::Usage(problem));
    }
    let over = matches.get_one::<f64>("fail-over").copied();
    if let Some(percent) = over.filter(|percent| !percent.is_finite() || *percent < 0.0) {
        let problem = format!("--fail-over expects a percentage of at least 0, not {percent}");
        return Err(CliError::Usage(problem));
    }
    let source = open_path(path_of(matches, "source"))?;
    let target = open_path(path_of(matches, "target"))?;
    let alignment = ReportAlignment::without_links(&source, &target).map_err(failed)?;
    let numbers = NumberFormat::default();
    let unit = unit_of(matches);
    let sides =
        ComparedReports { source: &source, target: &target, alignment: &alignment, numbers, unit };
    let limit = matches.get_one::<usize>("limit").copied().filter(|limit| *limit > 0);
    let limit = limit.unwrap_or(usize::MAX);
    let normalization = sides.normalization().map_err(failed)?;
    let json = matches.get_flag("json");
    let mut views: Map<String, Value> = Map::new();
    views.insert("normalization".to_owned(), json_value(&normalization)?);
    if let (false, Some(note)) = (json, &normalization.note) {
        writeln!(output, "{note}\n")?;
    }
    if [OVERVIEW, "all"].contains(&view) {
        let page = overview(&sides).map_err(failed)?;
        views.insert("verdict".to_owned(), page.verdict.clone().into());
        views.insert("distinction".to_owned(), json_value(&page.distinction)?);
        if !json {
            writeln!(output, "{}\n", page.verdict)?;
        }
        show(OVERVIEW, page.tables, (json, limit), &mut views, output)?;
    }
    for one in COMPARISONS.iter().filter(|one| view == "all" || one.view == view) {
        let tables = (one.tables)(&sides).map_err(failed)?;
        show(one.view, tables, (json, limit), &mut views, output)?;
    }
    if json {
        let text = serde_json::to_string_pretty(&Value::Object(views));
        writeln!(output, "{}", text.map_err(|error| CliError::Failed(error.to_string()))?)?;
    }
    match over {
        Some(percent) => gate((&source, &target), &normalization, percent),
        None => Ok(()),
    }
}

fn json_value(of: &impl serde::Serialize) -> Result<Value, CliError> {
    serde_json::to_value(of).map_err(|error| CliError::Failed(error.to_string()))
}

/// Prints the tables of a view, or adds them to the JSON.
fn show(
    view: &str,
    mut tables: Vec<ComparisonTable>,
    (json, limit): (bool, usize),
    views: &mut Map<String, Value>,
    output: &mut dyn Write,
) -> Result<(), CliError> {
    if !json {
        return tables.iter().try_for_each(|table| print(table, limit, output));
    }
    tables.iter_mut().for_each(|table| cut(table, limit));
    views.insert(view.to_owned(), json_value(&tables)?);
    Ok(())
}

/// One table of differences as columns and rows.
pub(super) fn rows(
    source: &Report,
    (target, unit): (&Path, WorkUnit),
    view: &str,
    table: Option<&str>,
) -> Result<DataTable, CliError> {
    let target = open_path(target)?;
    let Some(one) = comparison(view) else {
        return Err(CliError::Usage(format!("there is no view {view:?} to compare")));
    };
    let tables = differences(source, &target, one, unit).map_err(failed)?;
    table_named(&tables, table)
        .map(ComparisonTable::data)
        .map_err(|error| CliError::Usage(error.to_string()))
}

fn cut(table: &mut ComparisonTable, limit: usize) {
    table.complete = table.rows.len() <= limit;
    table.rows.truncate(limit);
}

/// Widest first column; longer names push the rest of their row to the right.
const NAME_WIDTH: usize = 56;

fn print(table: &ComparisonTable, limit: usize, output: &mut dyn Write) -> Result<(), CliError> {
    if table.rows.is_empty() {
        return Ok(());
    }
    writeln!(output, "{}", table.title)?;
    let shown = &table.rows[..table.rows.len().min(limit)];
    let cell =
        |side: &Option<TableCell>| side.as_ref().map_or_else(|| "-".to_owned(), TableCell::text);
    let heading = table.heading();
    let mut lines = vec![[&heading, "Source", "Target", "Diff"].map(str::to_owned)];
    for row in shown.iter().chain(&table.total) {
        let name = format!("{:1$}{2}", "", row.depth as usize * 2, row.name);
        let (source, target) = row.values();
        lines.push([name, cell(&source), cell(&target), row.change_text()]);
    }
    let width = |column: usize| {
        let widths = lines.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0).min(NAME_WIDTH)
    };
    let widths = [0, 1, 2].map(width);
    for line in &lines {
        let [name, source, target, change] = line;
        let text = format!(
            "  {name:0$}  {source:>1$}  {target:>2$}  {change}",
            widths[0], widths[1], widths[2]
        );
        writeln!(output, "{}", text.trim_end())?;
    }
    let hidden = table.rows.len() - shown.len();
    if hidden > 0 {
        writeln!(output, "  … {hidden} more rows (--limit 0 for all)")?;
    }
    writeln!(output)?;
    Ok(())
}

/// Fails where the target is worse than the source by more than `percent`.
fn gate(
    (source, target): (&Report, &Report),
    normalization: &WorkNormalization,
    percent: f64,
) -> Result<(), CliError> {
    let (before, after) = (summary(source).map_err(failed)?, summary(target).map_err(failed)?);
    let mut problems = Vec::new();
    let cycles =
        |of: &ReportSummary| of.execution.as_ref().map(|run| TableCell::Count(run.total_cycles.0));
    match (cycles(&before), cycles(&after)) {
        (Some(before), Some(after)) => {
            let row = normalization.compared("cycles", Some(before), Some(after));
            problems.extend(worse(&row, percent));
        }
        (Some(_), None) => problems.push("the target was not executed".to_owned()),
        (None, _) => {}
    }
    let (before, after) = (&before.memory, &after.memory);
    let memory = [
        ("memory", before.total_excluding_gaps, after.total_excluding_gaps),
        ("fullest tile", before.max_tile_including_gaps, after.max_tile_including_gaps),
    ];
    problems.extend(memory.iter().filter_map(|(name, a, b)| {
        let bytes = |bytes| Some(TableCell::Bytes(bytes));
        worse(&ComparisonRow::new(*name, bytes(*a), bytes(*b)), percent)
    }));
    if after.out_of_memory_tiles > before.out_of_memory_tiles {
        problems.push(format!("{} tiles are out of memory", after.out_of_memory_tiles));
    }
    if problems.is_empty() { Ok(()) } else { Err(CliError::Failed(problems.join("; "))) }
}

/// What grew by more than `percent` of what it was.
fn worse(row: &ComparisonRow, percent: f64) -> Option<String> {
    row.change().filter(|change| *change > 0.0)?;
    // Whatever comes where there was nothing is more than any percentage of that.
    let grown = row.share().unwrap_or(f64::INFINITY) * 100.0;
    let per = row.per.map_or_else(String::new, |per| format!(" {}", per.words()));
    let more = row.change_cell().text();
    (grown > percent).then(|| {
        let name = &row.name;
        format!("{name} grew by {grown:.2} %{per} ({more}); {percent} % is allowed")
    })
}
