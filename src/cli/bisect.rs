//! `bisect`: which option makes the difference between two specs, and in which operations.

mod explanation;
mod spec_difference;

use super::interrupt::TemporaryDirectory;
use super::progress::ProgressReporter;
use super::report_or_spec::is_report;
use super::search::{self, SearchBudget};
use super::trials::{
    SpecChanges, TrialFigures, TrialOutcome, TrialRunner, end_with_parent, in_parallel,
};
use super::{CliCommand, CliError, compare, json_argument, open_path, path_of, simulate};
use clap::{Arg, ArgMatches, value_parser};
use explanation::{EndWithoutFigure, Explanation, Measure, Measured, Part, UnitSet, explain};
use serde_json::{Value, json};
use spec_difference::{KeyDifference, SpecDifference};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tilescope_analysis::compare::{
    ComparedReports, ComparisonTable, ReportAlignment, WorkUnit, comparison, overview, table_named,
};
use tilescope_report::units::{NumberFormat, exact_bytes, grouped_real};
use tilescope_report::{Report, ReportError};
use tilescope_sim::spec::{Spec, SpecSource};

/// `tilescope bisect`
pub(super) const COMMAND: CliCommand = CliCommand { name: "bisect", arguments, run };

const AFTER_HELP: &str = "\
What a key explains is what changing it alone makes of GOOD; where such a spec is refused or does not
fit in memory, what putting it back alone makes of BAD. Keys that cannot be told apart are told
together. What is left is their interaction: parts and interaction add up to the difference exactly.
With more keys than the budget has simulations, sets of them are halved, the largest first.

Then the operations are compared, without and with the part that explains most.

Exit codes: 0 the difference is explained, or there is none; 1 GOOD or BAD cannot be simulated or does
not fit in memory (--figure memory compares those too); 2 a spec is refused, a report has none.

Examples:
  tilescope bisect before.toml after.toml
  tilescope bisect nightly/v7 nightly/v8 --figure memory --json
  tilescope bisect mnist_pipeline mine.toml --budget 5m";

fn arguments(command: clap::Command) -> clap::Command {
    let end = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .value_name(value)
            .required(true)
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    command
        .about("Find which option makes the difference between two specs, by simulating in between")
        .arg(end("good", "GOOD", "A spec, or a report that has one"))
        .arg(end("bad", "BAD", "What differs from it: a spec, or a report that has one"))
        .arg(
            Arg::new("figure")
                .long("figure")
                .value_name("FIGURE")
                .value_parser(BisectFigure::ALL.map(BisectFigure::name))
                .default_value(BisectFigure::Cycles.name())
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

/// What the difference is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BisectFigure {
    Cycles,
    Memory,
}

impl BisectFigure {
    const ALL: [Self; 2] = [Self::Cycles, Self::Memory];

    /// Units of a cycle, so small that rounding to them says nothing; a power of two, so that sums of
    /// them as fractions of a cycle stay exact.
    const PER_CYCLE: u128 = 1024;

    fn name(self) -> &'static str {
        match self {
            Self::Cycles => "cycles",
            Self::Memory => "memory",
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Cycles => "cycles per sample",
            Self::Memory => "bytes of the fullest tile",
        }
    }

    fn measured(self, outcome: &TrialOutcome) -> Measured {
        let figures = match outcome {
            TrialOutcome::Figures(figures) => figures,
            TrialOutcome::Refused(problem) | TrialOutcome::Died(problem) => {
                return Measured::None(problem.clone());
            }
        };
        let units = match self {
            Self::Memory => i64::try_from(figures.fullest_tile_bytes.0).ok(),
            Self::Cycles => figures.cycles.and_then(|_| Self::cycle_units(figures)),
        };
        units
            .map_or_else(|| Measured::None("it does not fit in memory".to_owned()), Measured::Units)
    }

    fn cycle_units(figures: &TrialFigures) -> Option<i64> {
        let samples = u128::from(figures.samples.max(1));
        let all = u128::from(figures.cycles?.0) * Self::PER_CYCLE;
        i64::try_from((all + samples / 2) / samples).ok()
    }

    /// Cycles or bytes.
    fn value(self, units: i64) -> f64 {
        match self {
            Self::Cycles => units as f64 / Self::PER_CYCLE as f64,
            Self::Memory => units as f64,
        }
    }

    fn text(self, units: i64) -> String {
        match self {
            Self::Cycles => grouped_real(self.value(units)),
            Self::Memory => exact_bytes(units.unsigned_abs()),
        }
    }

    fn change_text(self, units: i64) -> String {
        let sign = if units < 0 { "-" } else { "+" };
        match self {
            Self::Cycles => format!("{sign}{}", grouped_real(self.value(units).abs())),
            Self::Memory => format!("{sign}{}", exact_bytes(units.unsigned_abs())),
        }
    }
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    end_with_parent();
    let name = matches.get_one::<String>("figure").map_or("", String::as_str);
    let figure = BisectFigure::ALL.into_iter().find(|figure| figure.name() == name);
    let figure = figure.unwrap_or(BisectFigure::Cycles);
    let budget = matches.get_one::<SearchBudget>("budget").copied();
    let budget = budget.unwrap_or(SearchBudget::Simulations(2));
    if budget.left(0) < 2 {
        let problem = "--budget: GOOD and BAD alone take two simulations";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let [good, bad] = [spec_text(path_of(matches, "good"))?, spec_text(path_of(matches, "bad"))?];
    let difference = SpecDifference::of(&good, &bad)
        .map_err(|error| CliError::Failed(format!("the specs cannot be read: {error}")))?;
    let directory = TemporaryDirectory::new()?;
    let jobs = search::jobs(matches);
    let mut trials = Trials {
        difference: &difference,
        figure,
        directory: directory.path(),
        jobs,
        budget,
        done: 0,
    };
    let found = explain(difference.units.len(), &mut trials)?;
    let simulations = trials.done;
    let found = found.map_err(|EndWithoutFigure { is_good, reason }| {
        let end = path_of(matches, if is_good { "good" } else { "bad" }).display();
        CliError::Failed(format!("{end} has no {}: {reason}", figure.words()))
    })?;
    let operations = match found.parts.first() {
        Some(part) if part.explains.as_ref().is_ok_and(|units| *units != 0) => {
            Some(operations(&difference, part, figure, directory.path())?)
        }
        _ => None,
    };
    let names = ["good", "bad"].map(|end| path_of(matches, end).display().to_string());
    let answer = BisectAnswer { names, difference, figure, found, operations, simulations };
    match matches.get_flag("json") {
        true => Ok(writeln!(output, "{:#}", answer.json()?)?),
        false => {
            let limit = matches.get_one::<usize>("limit").copied().filter(|limit| *limit > 0);
            answer.print(limit.unwrap_or(usize::MAX), output)
        }
    }
}

/// The text of a spec, or of the one that a report was simulated from.
fn spec_text(path: &Path) -> Result<String, CliError> {
    if is_report(path) {
        let report = open_path(path)?;
        let spec = report.spec().map(str::to_owned);
        return spec.ok_or_else(|| {
            CliError::Usage(format!(
                "{}: this report has no spec to change: only reports that tilescope simulated have one",
                path.display()
            ))
        });
    }
    let source = SpecSource::find(&path.display().to_string(), &[]);
    let source = source.map_err(|error| CliError::Usage(error.to_string()))?;
    Ok(simulate::build(&source)?.text)
}

/// Simulates specs between both ends, each in a process of its own.
struct Trials<'a> {
    difference: &'a SpecDifference,
    figure: BisectFigure,
    directory: &'a Path,
    jobs: NonZeroUsize,
    budget: SearchBudget,
    done: usize,
}

impl Measure for Trials<'_> {
    type Error = CliError;

    fn measure(&mut self, sets: &[UnitSet]) -> Result<Vec<Measured>, CliError> {
        let mut trials = Vec::new();
        for (set, number) in sets.iter().zip(self.done..) {
            let path = self.directory.join(format!("{number}.toml"));
            let text = self.difference.between(set.iter().copied());
            let failed =
                |error: std::io::Error| CliError::Failed(format!("{}: {error}", path.display()));
            std::fs::write(&path, text).map_err(failed)?;
            trials.push(path);
        }
        let progress = Mutex::new((ProgressReporter::new("simulating"), self.done));
        let outcomes = in_parallel(self.jobs, &trials, |_, path| {
            let name = path.display().to_string();
            let runner = TrialRunner::new(&name, Vec::new(), self.jobs)?;
            let outcome = runner.figures(&SpecChanges::new());
            if let Ok(mut progress) = progress.lock() {
                progress.1 += 1;
                let share = self.budget.share(progress.1);
                progress.0.at(share);
            }
            // What is wrong is so of the spec between, which is gone when this ends.
            Ok(without_place(outcome?, &name))
        });
        if let Ok(progress) = progress.lock() {
            progress.0.finish();
        }
        self.done += sets.len();
        let outcomes: Vec<TrialOutcome> = outcomes.into_iter().collect::<Result<_, CliError>>()?;
        Ok(outcomes.iter().map(|outcome| self.figure.measured(outcome)).collect())
    }

    fn left(&self) -> usize {
        self.budget.left(self.done)
    }
}

/// An outcome whose problem does not name the file that was written for it.
fn without_place(outcome: TrialOutcome, file: &str) -> TrialOutcome {
    let short = |problem: String| problem.replace(&format!("{file}:"), "line ").replace(file, "it");
    match outcome {
        TrialOutcome::Figures(_) => outcome,
        TrialOutcome::Refused(problem) => TrialOutcome::Refused(short(problem)),
        TrialOutcome::Died(problem) => TrialOutcome::Died(short(problem)),
    }
}

/// The operations of the specs without and with a part, or with and without it put back.
fn operations(
    difference: &SpecDifference,
    part: &Part,
    figure: BisectFigure,
    directory: &Path,
) -> Result<ComparisonTable, CliError> {
    let all: UnitSet = (0..difference.units.len()).collect();
    let (without, with) = match part.origin {
        explanation::PartOrigin::Changed => (UnitSet::new(), part.units.clone()),
        explanation::PartOrigin::PutBack => (all.difference(&part.units).copied().collect(), all),
    };
    let simulated = |set: &UnitSet, name: &str| -> Result<Report, CliError> {
        let text = difference.between(set.iter().copied());
        let spec = Spec::build(&SpecSource::from_text(name, &text))
            .map_err(|error| CliError::Failed(error.to_string()))?;
        let report = tilescope_sim::simulate(&spec, &directory.join(name), |_| ());
        open_path(&report.map_err(simulate::failure)?)
    };
    let (source, target) = (simulated(&without, "without")?, simulated(&with, "with")?);
    let failed = |error: ReportError| CliError::Failed(error.to_string());
    let alignment = ReportAlignment::without_links(&source, &target).map_err(failed)?;
    let (numbers, unit) = (NumberFormat::default(), WorkUnit::Sample);
    let sides =
        ComparedReports { source: &source, target: &target, alignment: &alignment, numbers, unit };
    let (tables, name) = match figure {
        BisectFigure::Cycles => (overview(&sides).map_err(failed)?.tables, "operations"),
        BisectFigure::Memory => {
            let view = comparison("operations").map(|view| (view.tables)(&sides));
            (view.unwrap_or_else(|| Ok(Vec::new())).map_err(failed)?, "memory")
        }
    };
    table_named(&tables, Some(name)).cloned().map_err(|error| CliError::Failed(error.to_string()))
}

/// What is told of both specs.
struct BisectAnswer {
    /// The ends as they were named.
    names: [String; 2],
    difference: SpecDifference,
    figure: BisectFigure,
    found: Explanation,
    operations: Option<ComparisonTable>,
    simulations: usize,
}

impl BisectAnswer {
    /// `options.num_io_tiles: 32 -> 64`
    fn keys_text(&self, units: &UnitSet) -> String {
        let text = |key: &KeyDifference| {
            format!("{}: {} -> {}", key.name(), shown(key.good.as_ref()), shown(key.bad.as_ref()))
        };
        self.keys(units).map(text).collect::<Vec<_>>().join(", ")
    }

    /// A change as a share of the whole; nothing where that is nothing.
    fn share(&self, units: i64) -> Option<f64> {
        let whole = self.found.whole();
        (whole != 0).then(|| units as f64 / whole as f64)
    }

    fn json(&self) -> Result<Value, CliError> {
        let (found, figure) = (&self.found, self.figure);
        let number = |units: i64| match figure {
            BisectFigure::Cycles => json!(figure.value(units)),
            BisectFigure::Memory => json!(units),
        };
        let key =
            |key: &KeyDifference| json!({ "key": key.name(), "good": key.good, "bad": key.bad });
        let part = |part: &Part| {
            let units = part.explains.as_ref().ok().copied();
            json!({
                "keys": self.keys(&part.units).map(key).collect::<Vec<_>>(),
                "change": units.map(number),
                "share": units.and_then(|units| self.share(units)),
                "measured": part.origin.name(),
                "problem": part.explains.as_ref().err(),
            })
        };
        let pair = |pair: &explanation::PairInteraction| {
            json!({
                "parts": pair.parts,
                "change": number(pair.units),
                "share": self.share(pair.units),
            })
        };
        let interaction = found.interaction();
        Ok(json!({
            "figure": figure.name(),
            "unit": figure.words(),
            "good": { "name": self.names[0], "value": number(found.good) },
            "bad": { "name": self.names[1], "value": number(found.bad) },
            "difference": number(found.whole()),
            "parts": found.parts.iter().map(part).collect::<Vec<_>>(),
            "interaction": {
                "change": number(interaction),
                "share": self.share(interaction),
                "pairs": found.pairs.iter().map(pair).collect::<Vec<_>>(),
                "rest": number(found.rest()),
            },
            "cut_short": found.is_cut_short,
            "simulations": self.simulations,
            "operations": self.operations,
        }))
    }

    fn print(&self, limit: usize, output: &mut dyn Write) -> Result<(), CliError> {
        let (found, figure) = (&self.found, self.figure);
        for (end, name, units) in
            [("good", &self.names[0], found.good), ("bad", &self.names[1], found.bad)]
        {
            writeln!(output, "{end:5} {:>20} {}: {name}", figure.text(units), figure.words())?;
        }
        if self.difference.units.is_empty() {
            return Ok(writeln!(output, "\nThe specs differ in no key.")?);
        }
        writeln!(output, "\nExplained by")?;
        let mut lines: Vec<[String; 3]> = Vec::new();
        let percent = |units| match self.share(units) {
            Some(share) => format!("{:.1} %", share * 100.0),
            None => String::new(),
        };
        let line = |units, name: String| [figure.change_text(units), percent(units), name];
        for part in &found.parts {
            let keys = self.keys_text(&part.units);
            lines.push(match &part.explains {
                Ok(units) => line(*units, keys),
                Err(problem) => ["?".to_owned(), String::new(), format!("{keys} ({problem})")],
            });
        }
        for pair in &found.pairs {
            let [a, b] = pair.parts.map(|at| self.short_text(&found.parts[at].units));
            lines.push(line(pair.units, format!("{a} together with {b}")));
        }
        let are_known = found.parts.iter().all(|part| part.explains.is_ok());
        let rest = match (are_known, found.pairs.is_empty()) {
            (false, _) => "parts that are not known, and interaction",
            (true, true) => "interaction of all",
            (true, false) => "other interaction",
        };
        lines.push(line(found.rest(), rest.to_owned()));
        lines.push(line(found.whole(), "all".to_owned()));
        let width =
            |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1)];
        for [change, share, name] in &lines {
            writeln!(output, "  {change:>0$}  {share:>1$}  {name}", widths[0], widths[1])?;
        }
        if found.is_cut_short {
            writeln!(output, "\nThe budget is used up: keys in one line were not told apart.")?;
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

/// A value as it is written in a spec, words without quotes.
fn shown(value: Option<&toml::Value>) -> String {
    match value {
        None => "not set".to_owned(),
        Some(toml::Value::String(word)) => word.clone(),
        Some(value) => value.to_string(),
    }
}
