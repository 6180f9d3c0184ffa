//! `bisect`: finds the options that explain the difference between two specs, and the operations
//! that differ.

use super::command::{CliCommand, CliError, json_argument, open_path, path_of};
use super::progress::ProgressReporter;
use super::report_or_spec::is_report;
use super::{compare, search, simulate};
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgMatches, value_parser};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use tilescope_analysis::compare::{
    ComparedReports, ComparisonTable, ReportAlignment, WorkUnit, comparison, overview, table_named,
};
use tilescope_experiments::budget::SearchBudget;
use tilescope_experiments::spec_difference::{KeyDifference, SpecDifference};
use tilescope_experiments::strategies::difference::{DifferenceFigure, DifferenceTrials};
use tilescope_experiments::strategies::explain::{
    EndWithoutFigure, ExplainError, Explanation, Part, PartOrigin, UnitSet, explain,
};
use tilescope_experiments::trial::end_with_parent;
use tilescope_report::Report;
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_report::units::NumberFormat;
use tilescope_sim::specification::{Spec, SpecSource};

/// `tilescope bisect`
pub(super) const COMMAND: CliCommand = CliCommand { name: "bisect", arguments, run };

const AFTER_HELP: &str = "\
The part of a key is the effect of changing only this key in GOOD or, if the changed spec is refused
or does not fit in memory, of resetting only this key in BAD. Keys that cannot be separated are
listed together. The rest is their interaction: parts and interaction add up to the difference
exactly. If the budget is smaller than the number of keys, sets of keys are halved, the largest
first.

At the end, operations are compared without and with the largest part.

Exit codes: 0 the difference is explained, or the figures are equal; 1 GOOD or BAD cannot be
simulated or does not fit in memory (except with --figure memory); 2 a spec is refused, or a report
has no spec.

Examples:
  tilescope bisect before.toml after.toml
  tilescope bisect nightly/v7 nightly/v8 --figure memory --json
  tilescope bisect mnist_pipeline mine.toml --budget 5m";

fn arguments(command: clap::Command) -> clap::Command {
    let make_argument = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .value_name(value)
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    command
        .about(
            "Find the options that explain the difference between two specs, by simulating specs \
                in between",
        )
        .arg(make_argument("good", "GOOD", "The first spec, or a report that has one"))
        .arg(make_argument("bad", "BAD", "The other spec, or a report that has one"))
        .arg(
            Arg::new("figure")
                .long("figure")
                .value_name("FIGURE")
                .value_parser(DifferenceFigure::ALL.map(DifferenceFigure::name))
                .default_value(DifferenceFigure::Cycles.name())
                .help("Cycles per sample, or memory of the fullest tile"),
        )
        .arg(
            Arg::new("budget")
                .long("budget")
                .value_name("BUDGET")
                .value_parser(value_parser!(SearchBudget))
                .default_value("100")
                .help("Simulations (200) or time (90s, 10m, 2h) to search for; at least two"),
        )
        .arg(search::jobs_argument())
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .default_value("20")
                .value_parser(value_parser!(usize))
                .help("Maximum number of operations; 0 for all"),
        )
        .arg(json_argument())
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    end_with_parent();
    let name = matches.get_one::<String>("figure").map_or("", String::as_str);
    let figure = DifferenceFigure::ALL.into_iter().find(|figure| figure.name() == name);
    let figure = figure.unwrap_or(DifferenceFigure::Cycles);
    let budget = matches.get_one::<SearchBudget>("budget").copied();
    let budget = budget.unwrap_or(SearchBudget::Simulations(2));
    if budget.left(0) < 2 {
        let problem = "--budget: expected at least two simulations, one each for GOOD and BAD";
        return Err(UsageError::Request(problem).into());
    }
    let [good, bad] = [spec_text(path_of(matches, "good"))?, spec_text(path_of(matches, "bad"))?];
    let difference =
        SpecDifference::of(&good, &bad).map_err(|error| JobError::Specs(error.into()))?;
    let directory = TemporaryDirectory::new()?;
    let jobs = search::jobs(matches);
    let progress = ProgressReporter::new("simulating");
    let mut trials = DifferenceTrials {
        difference: &difference,
        figure,
        directory: directory.path(),
        jobs,
        budget,
        done: 0,
        progress: &|share| progress.at(share),
    };
    let found = explain(difference.units.len(), &mut trials).map_err(|error| match error {
        ExplainError::Measure(error) => CliError::from(error),
        ExplainError::End(EndWithoutFigure { is_good, reason }) => {
            let end = path_of(matches, if is_good { "good" } else { "bad" }).to_owned();
            JobError::NoFigure { end, figure: figure.words(), reason }.into()
        }
    })?;
    let simulations = trials.done;
    drop(progress);
    let operations = match found.parts.first() {
        Some(part) if part.explains.as_ref().is_ok_and(|units| *units != 0) => {
            Some(operations(&difference, part, figure, directory.path())?)
        }
        _ => None,
    };
    let names = ["good", "bad"].map(|end| path_of(matches, end).display().to_string());
    let answer = BisectAnswer { names, difference, figure, found, operations, simulations };
    if matches.get_flag("json") {
        super::command::print_json(&answer.json()?, output)
    } else {
        let limit = matches.get_one::<usize>("limit").copied().filter(|limit| *limit > 0);
        answer.print(limit.unwrap_or(usize::MAX), output)
    }
}

/// The text of a spec, or of the spec that a report was simulated from.
fn spec_text(path: &Path) -> Result<String, CliError> {
    if is_report(path) {
        let report = open_path(path)?;
        let spec = report.spec().map(str::to_owned);
        return Ok(spec.ok_or_else(|| UsageError::Input {
            place: path.display().to_string(),
            error: UsageError::NoSpec.into(),
        })?);
    }
    let source = SpecSource::find(&path.display().to_string(), &[])?;
    Ok(simulate::build(&source)?.text)
}

/// The operations of the specs without and with a part, or with and without it restored.
fn operations(
    difference: &SpecDifference,
    part: &Part,
    figure: DifferenceFigure,
    directory: &Path,
) -> Result<ComparisonTable, CliError> {
    let all: UnitSet = (0..difference.units.len()).collect();
    let (without, with) = match part.origin {
        PartOrigin::Changed => (UnitSet::new(), part.units.clone()),
        PartOrigin::PutBack => (all.difference(&part.units).copied().collect(), all),
    };
    let simulate_set = |set: &UnitSet, name: &str| -> Result<Report, CliError> {
        let text = difference.between(set.iter().copied());
        let spec = Spec::build(&SpecSource::from_text(name, &text))?;
        let report = tilescope_sim::simulate(&spec, &directory.join(name), |_| ());
        open_path(&report?)
    };
    let source = simulate_set(&without, "without")?;
    let target = simulate_set(&with, "with")?;
    let alignment = ReportAlignment::without_links(&source, &target)?;
    let numbers = NumberFormat::default();
    let unit = WorkUnit::Sample;
    let sides =
        ComparedReports { source: &source, target: &target, alignment: &alignment, numbers, unit };
    let (tables, name) = match figure {
        DifferenceFigure::Cycles => (overview(&sides)?.tables, "operations"),
        DifferenceFigure::Memory => {
            let view = comparison("operations").map(|view| (view.tables)(&sides));
            (view.unwrap_or_else(|| Ok(Vec::new()))?, "memory")
        }
    };
    Ok(table_named(&tables, Some(name))?.clone())
}

/// The answer about both specs.
struct BisectAnswer {
    /// The names of the ends on the command line.
    names: [String; 2],
    difference: SpecDifference,
    figure: DifferenceFigure,
    found: Explanation,
    operations: Option<ComparisonTable>,
    simulations: usize,
}

impl BisectAnswer {
    /// `options.num_io_tiles: 32 -> 64`
    fn keys_text(&self, units: &UnitSet) -> String {
        self.keys(units)
            .map(|key| {
                format!(
                    "{}: {} -> {}",
                    key.name(),
                    shown(key.good.as_ref()),
                    shown(key.bad.as_ref())
                )
            })
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// A change as a share of the whole; `None` if the whole is zero.
    fn share(&self, units: i64) -> Option<f64> {
        let whole = self.found.whole();
        if whole != 0 { Some(units as f64 / whole as f64) } else { None }
    }

    fn json(&self) -> Result<Value, CliError> {
        let found = &self.found;
        let figure = self.figure;
        let make_number = |units: i64| match figure {
            DifferenceFigure::Cycles => json!(figure.value(units)),
            DifferenceFigure::Memory => json!(units),
        };
        let key =
            |key: &KeyDifference| json!({ "key": key.name(), "good": key.good, "bad": key.bad });
        let describe_part = |part: &Part| {
            let units = part.explains.as_ref().ok().copied();
            json!({
                "keys": self.keys(&part.units).map(key).collect::<Vec<_>>(),
                "change": units.map(make_number),
                "share": units.and_then(|units| self.share(units)),
                "measured": part.origin.name(),
                "problem": part.explains.as_ref().err(),
            })
        };
        let interaction = found.interaction();
        Ok(json!({
            "figure": figure.name(),
            "unit": figure.words(),
            "good": { "name": self.names[0], "value": make_number(found.good) },
            "bad": { "name": self.names[1], "value": make_number(found.bad) },
            "difference": make_number(found.whole()),
            "parts": found.parts.iter().map(describe_part).collect::<Vec<_>>(),
            "interaction": {
                "change": make_number(interaction),
                "share": self.share(interaction),
                "pairs": found.pairs.iter().map(|pair| {
            json!({
                "parts": pair.parts,
                "change": make_number(pair.units),
                "share": self.share(pair.units),
            })
        }).collect::<Vec<_>>(),
                "rest": make_number(found.rest()),
            },
            "cut_short": found.is_cut_short,
            "simulations": self.simulations,
            "operations": self.operations,
        }))
    }

    fn print(&self, limit: usize, output: &mut dyn Write) -> Result<(), CliError> {
        let found = &self.found;
        let figure = self.figure;
        for (end, name, units) in
            [("good", &self.names[0], found.good), ("bad", &self.names[1], found.bad)]
        {
            writeln!(output, "{end:5} {:>20} {}: {name}", figure.text(units), figure.words())?;
        }
        if self.difference.units.is_empty() {
            return Ok(writeln!(output, "\nThe specs have the same keys.")?);
        }
        writeln!(output, "\nExplained by")?;
        let mut lines: Vec<[String; 3]> = Vec::new();
        let format_share = |units| match self.share(units) {
            Some(share) => format!("{:.1} %", share * 100.0),
            None => String::new(),
        };
        let make_line =
            |units, name: String| [figure.change_text(units), format_share(units), name];
        for part in &found.parts {
            let keys = self.keys_text(&part.units);
            lines.push(match &part.explains {
                Ok(units) => make_line(*units, keys),
                Err(problem) => ["?".to_owned(), String::new(), format!("{keys} ({problem})")],
            });
        }
        for pair in &found.pairs {
            let [a, b] = pair.parts.map(|at| self.short_text(&found.parts[at].units));
            lines.push(make_line(pair.units, format!("{a} together with {b}")));
        }
        let are_known = found.parts.iter().all(|part| part.explains.is_ok());
        let rest = match (are_known, found.pairs.is_empty()) {
            (false, _) => "unknown parts and interaction",
            (true, true) => "interaction of all",
            (true, false) => "other interaction",
        };
        lines.push(make_line(found.rest(), rest.to_owned()));
        lines.push(make_line(found.whole(), "all".to_owned()));
        let width =
            |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1)];
        for [change, share, name] in &lines {
            writeln!(output, "  {change:>0$}  {share:>1$}  {name}", widths[0], widths[1])?;
        }
        if found.is_cut_short {
            writeln!(output, "\nThe budget is used up. Keys on one line were not separated.")?;
        }
        writeln!(output, "\n{} simulations", self.simulations)?;
        if let (Some(table), Some(part)) = (&self.operations, found.parts.first()) {
            writeln!(output, "\nWithout and with {}", self.short_text(&part.units))?;
            compare::print(table, ["Without", "With"], limit, output)?;
        }
        Ok(())
    }

    /// Names of keys without their values.
    fn short_text(&self, units: &UnitSet) -> String {
        let names: Vec<String> = self.keys(units).map(KeyDifference::name).collect();
        names.join(", ")
    }

    /// The keys of units.
    fn keys(&self, units: &UnitSet) -> impl Iterator<Item = &KeyDifference> {
        units.iter().flat_map(|at| &self.difference.units[*at])
    }
}

/// A value as written in a spec, but words without quotes.
fn shown(value: Option<&toml::Value>) -> String {
    match value {
        None => "not set".to_owned(),
        Some(toml::Value::String(word)) => word.clone(),
        Some(value) => value.to_string(),
    }
}
