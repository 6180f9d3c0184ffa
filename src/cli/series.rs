//! `series`: combines many reports into one document.

mod revisions;
mod text;

use super::command::{CliCommand, CliError, json_argument};
use super::compare;
use super::output_file;
use super::plain_output::stderr;
use super::progress::ProgressReporter;
use super::report_or_spec::is_report;
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_analysis::series::{
    FigureChoice, ReportSeries, SeriesOptions, SeriesOrder, SeriesSource, UnreadReport, arrange,
    find_reports, read_reports,
};
use tilescope_experiments::trial::end_with_parent;
use tilescope_html::{SeriesPage, series_page};
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_sim::specification::{Spec, SpecSource};

/// `tilescope series`
pub(super) const COMMAND: CliCommand = CliCommand { name: "series", arguments, run };

/// The default number of rows of a printed table.
const DEFAULT_LIMIT: &str = "20";

/// The maximum number of specs that are simulated for a series.
const MAX_SPECS: usize = 200;

const AFTER_HELP: &str = "\
A directory stands for every report in it and up to two directories below. A spec is simulated
first. --git simulates each revision of a spec in a range, without a checkout. Reports that cannot
be read are left out and listed with the reason.

Figures are dotted paths of `tilescope summary --json` (* stands for any one part), or cycles,
throughput, memory and max_tile. Text, Markdown and HTML show the main figures, JSON all of them.
Figures that grow with the work of a run are per sample. A change point is a permanent jump of a
figure by at least --threshold; it is confirmed once two runs on each side show it. Outliers and
slow drifts are listed separately. docs/series.md describes the method.

--html writes one self-contained page with a plot for each figure and sortable tables. It can be
combined with --json or --markdown.

Exit codes: 0 the series has at least one report; 1 no report could be read; 2 usage error.

Examples:
  tilescope series nightly
  tilescope series nightly --order time --baseline v1.2 --figure cycles --figure 'memory.by_category.*'
  tilescope series before.pop after.pop model.toml --markdown
  tilescope series nightly --html series.html
  tilescope series --git v1..HEAD --spec ci/model.toml --json";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about(
            "Show many reports as a series: figures of all runs, change points, and operations \
                side by side",
        )
        .arg(
            Arg::new("reports")
                .value_name("DIR|REPORT|SPEC")
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .required_unless_present("git")
                .conflicts_with("git")
                .help("Directories of reports, reports, or specs, which are simulated"),
        )
        .arg(
            Arg::new("git")
                .long("git")
                .value_name("REV..REV")
                .requires("spec")
                .help("Simulate --spec in each revision of this range that changes it"),
        )
        .arg(
            Arg::new("spec")
                .long("spec")
                .value_name("PATH")
                .requires("git")
                .help("Path of the spec in the repository of the current directory"),
        )
        .arg(
            Arg::new("order")
                .long("order")
                .value_name("ORDER")
                .value_parser(SeriesOrder::ALL.map(SeriesOrder::name))
                .conflicts_with("git")
                .help(
                    "Order of runs: by name (v2 before v10), by the modification time of their \
                       files, or as given (default: by name for one directory, else as given)",
                ),
        )
        .arg(
            Arg::new("baseline")
                .long("baseline")
                .value_name("NAME")
                .help("The run to compare the others with (default: the first)"),
        )
        .arg(
            Arg::new("figure")
                .long("figure")
                .value_name("FIGURE")
                .action(ArgAction::Append)
                .help("A figure to show; can be repeated"),
        )
        .arg(
            Arg::new("threshold")
                .long("threshold")
                .value_name("PERCENT")
                .value_parser(value_parser!(f64))
                .allow_negative_numbers(true)
                .default_value("1")
                .help("Smallest reported change"),
        )
        .arg(compare::unit_argument())
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .default_value(DEFAULT_LIMIT)
                .value_parser(value_parser!(usize))
                .help("Maximum number of operations; 0 for all"),
        )
        .arg(
            Arg::new("markdown")
                .long("markdown")
                .action(ArgAction::SetTrue)
                .conflicts_with("json")
                .help("Print Markdown for a pull request"),
        )
        .arg(
            Arg::new("html")
                .long("html")
                .value_name("FILE.html")
                .value_parser(value_parser!(PathBuf))
                .help("Write a self-contained page, and print its name instead of text"),
        )
        .arg(json_argument())
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    end_with_parent();
    let json = matches.get_flag("json");
    let choice = choice(matches, json)?;
    let percent = matches.get_one::<f64>("threshold").copied().unwrap_or(1.0);
    if !percent.is_finite() || percent < 0.0 {
        return Err(UsageError::no_percentage("--threshold", percent).into());
    }
    let page = matches.get_one::<PathBuf>("html");
    let inputs = SeriesInputs::of(matches)?;
    if let Some(file) = page {
        output_file::check(file, inputs.sources.iter().map(|source| source.path.as_path()))?;
    }
    let directory = TemporaryDirectory::new()?;
    let series = inputs.read(&choice, directory.path())?;
    let baseline = match matches.get_one::<String>("baseline") {
        None => 0,
        Some(name) => series.run_named(name).ok_or_else(|| unknown_run(&series, name))?,
    };
    let unit = compare::unit_of(matches);
    let options = SeriesOptions { unit, baseline, threshold: percent / 100.0 };
    for UnreadReport { name, problem } in &series.unread {
        let _ = writeln!(stderr(), "warning: {name} is left out: {problem}");
    }
    if let Some(file) = page {
        // `all` figures are for programs; text shows the usual ones.
        let shown = if choice == FigureChoice::All { &FigureChoice::first() } else { &choice };
        let of = SeriesPage { series: &series.with_figures(shown), options, name: &name(matches) };
        output_file::write(file, series_page(of)?.as_bytes())?;
    }
    if json {
        return super::command::print_json(&series.document(options), output);
    }
    let limit = matches.get_one::<usize>("limit").copied().filter(|limit| *limit > 0);
    let limit = limit.unwrap_or(usize::MAX);
    match (matches.get_flag("markdown"), page) {
        (true, _) => write!(output, "{}", series.markdown(options, limit))?,
        (false, Some(file)) => writeln!(output, "{}", file.display())?,
        (false, None) => text::print(&series, options, limit, output)?,
    }
    Ok(())
}

/// The title of a page of the series: its directory, or its revisions; empty for several reports.
fn name(matches: &ArgMatches) -> String {
    let get_text = |name| matches.get_one::<String>(name).map_or("", String::as_str);
    if matches.contains_id("git") {
        return format!("{}: {}", get_text("git"), get_text("spec"));
    }
    let mut paths = matches.get_many::<PathBuf>("reports").into_iter().flatten();
    match (paths.next(), paths.next()) {
        // The current directory has a name, too.
        (Some(path), None) if path.file_name().is_none() => {
            path.canonicalize().unwrap_or_else(|_| path.clone()).display().to_string()
        }
        (Some(path), None) => path.display().to_string(),
        _ => String::new(),
    }
}

/// The selected figures.
fn choice(matches: &ArgMatches, json: bool) -> Result<FigureChoice, CliError> {
    match matches.get_many::<String>("figure") {
        Some(names) => Ok(FigureChoice::parse(names.map(String::as_str)).map_err(|error| {
            UsageError::Option { option: "--figure", problem: error.to_string() }
        })?),
        None if json => Ok(FigureChoice::All),
        None => Ok(FigureChoice::first()),
    }
}

fn unknown_run(series: &ReportSeries, name: &str) -> CliError {
    let names: Vec<&str> = series.runs.iter().map(|run| run.name.as_str()).collect();
    if let Some(unread) = series.unread.iter().find(|unread| unread.name == name) {
        let problem = unread.problem.clone();
        return JobError::UnreadBaseline { name: name.to_owned(), problem }.into();
    }
    let problem = format!("unknown run {name:?}");
    let problem = match tilescope_sim::specification::nearest(name, &names) {
        Some(near) => format!("{problem}; did you mean {near:?}?"),
        None => format!("{problem}; the first is {:?}", names.first().copied().unwrap_or("")),
    };
    UsageError::Option { option: "--baseline", problem }.into()
}

/// The inputs of a series: reports, and specs to simulate.
struct SeriesInputs {
    sources: Vec<SeriesSource>,
    /// Specs, by the paths of their sources.
    specs: BTreeMap<PathBuf, SpecSource>,
    /// Inputs that are refused without trying.
    refused: Vec<UnreadReport>,
}

impl SeriesInputs {
    fn of(matches: &ArgMatches) -> Result<Self, CliError> {
        if let Some(range) = matches.get_one::<String>("git") {
            let path = matches.get_one::<String>("spec").map_or("", String::as_str);
            return revisions::specs(range, path, MAX_SPECS);
        }
        let paths: Vec<&PathBuf> =
            matches.get_many::<PathBuf>("reports").into_iter().flatten().collect();
        let mut sources = Vec::new();
        let mut specs = BTreeMap::new();
        for path in &paths {
            if is_report(path) {
                sources.extend(find_reports(path, paths.len() == 1)?);
                continue;
            }
            let name = path.display().to_string();
            let spec = SpecSource::find(&name, &[]);
            specs.insert((*path).clone(), spec?);
            let name = name.strip_suffix(".toml").unwrap_or(&name).to_owned();
            sources.push(SeriesSource::of(path, name));
        }
        let asked = matches.get_one::<String>("order").map(String::as_str);
        let asked = SeriesOrder::ALL.into_iter().find(|known| Some(known.name()) == asked);
        let order = asked.unwrap_or(match paths.as_slice() {
            [_] => SeriesOrder::Name,
            _ => SeriesOrder::Given,
        });
        arrange(&mut sources, order)?;
        if specs.len() > MAX_SPECS {
            return Err(UsageError::TooManySpecs(MAX_SPECS).into());
        }
        Ok(Self { sources, specs, refused: Vec::new() })
    }

    /// Simulates specs into a directory, then reads all reports.
    ///
    /// # Errors
    /// No report could be read.
    fn read(mut self, choice: &FigureChoice, directory: &Path) -> Result<ReportSeries, CliError> {
        let mut refused = std::mem::take(&mut self.refused);
        let mut places = BTreeMap::new();
        let simulated = self.specs.len() as f64;
        let progress = ProgressReporter::new("simulating");
        self.sources.retain_mut(|source| {
            let Some(spec) = self.specs.get(&source.path) else { return true };
            let place = directory.join(places.len().to_string());
            let spec_path = std::mem::replace(&mut source.path, place.clone());
            places.insert(source.name.clone(), spec_path);
            let result = simulate_into(spec, &place);
            progress.at(places.len() as f64 / simulated);
            result
                .map_err(|problem| {
                    refused.push(UnreadReport { name: source.name.clone(), problem });
                })
                .is_ok()
        });
        let progress = ProgressReporter::new("reading");
        let all = self.sources.len().max(1) as f64;
        let mut series = read_reports(&self.sources, choice, |done| {
            progress.at(done as f64 / all);
            true
        });
        for run in &mut series.runs {
            // The directory of the simulation is deleted when the command ends.
            if let Some(spec) = places.remove(&run.name) {
                run.path = spec;
            }
        }
        series.unread.extend(refused);
        if series.runs.is_empty() {
            let problems: Vec<String> =
                series.unread.iter().map(|of| format!("{}: {}", of.name, of.problem)).collect();
            return Err(JobError::NoReport(problems).into());
        }
        Ok(series)
    }
}

/// Simulates a spec. An error is returned as text, because the other specs continue.
fn simulate_into(spec: &SpecSource, place: &Path) -> Result<(), String> {
    let spec = Spec::build(spec).map_err(|error| error.to_string())?;
    tilescope_sim::simulate(&spec, place, |_| ()).map_err(|error| error.to_string())?;
    Ok(())
}
