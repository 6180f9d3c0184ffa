//! `calibrate`: compares a measured report with its simulation, fits constants of the cost model to
//! it, and predicts the effect of a change of the program.

mod constants;
mod listing;

use super::command::{CliCommand, CliError, json_argument, open_path, path_of};
use super::output_file;
use super::progress::ProgressReporter;
use super::simulate::{overrides, set_argument};
use crate::cli::error::{JobError, UsageError};
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use constants::{CalibrationFile, moved};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::calibration::{
    ConstantState, FitConstant, FitResult, MeasuredBesideSimulated, fit, predict,
};
use tilescope_analysis::insights::SpecChanges;
use tilescope_experiments::trial::{TrialRunner, in_parallel};
use tilescope_report::temporary_directory::TemporaryDirectory;
use tilescope_report::{ProgramKind, Report, ReportPart};
use tilescope_sim::specification::SpecSource;

/// `tilescope calibrate`
pub(super) const COMMAND: CliCommand = CliCommand { name: "calibrate", arguments, run };

/// The file for fitted constants if the user names none.
const DEFAULT_FILE: &str = "calibration.toml";

/// The number of fits, each from a simulation with the latest constants.
const ROUNDS: usize = 3;

const AFTER_HELP: &str = "\
Operations are aligned as by compare. Their cycles are totals over all steps and IPUs; simulated
cycles are scaled to the executions of the measurement. Constants are fitted within the bounds that
docs/calibration.md lists. A constant that no measured operation depends on, or only together with
others, keeps its value. The error is that of operations held out of the fit. --set fits nothing. It
predicts the cycles of the changed program, for each operation, as measured x changed / unchanged
simulation; operations that the simulation lacks stay as measured. --changed does the same with
another spec in place of changes.

Examples:
  tilescope calibrate measured mnist_pipeline
  tilescope calibrate measured my_model.toml -o c600.toml --json
  tilescope simulate my_model.toml --calibration c600.toml -o out
  tilescope calibrate measured my_model.toml --set options.gradient_accumulation=20
  tilescope calibrate measured my_model.toml --changed my_other_model.toml";

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Compare a measured report with its simulation, and fit constants of the cost model to it")
        .arg(
            Arg::new("measured")
                .value_name("MEASURED")
                .value_parser(value_parser!(PathBuf))
                .required(true)
                .help("Report of a run: a directory that contains profile.pop, or a .pop file"),
        )
        .arg(
            Arg::new("spec")
                .value_name("SPEC")
                .help("Spec of the measured program: a TOML file or a bundled name (default: the \
                       spec in the report)"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("FILE.toml")
                .value_parser(value_parser!(PathBuf))
                .default_value(DEFAULT_FILE)
                .help("File to write the fitted constants to"),
        )
        .arg(set_argument().help(
            "Predict the measured run with this change of the spec instead of fitting constants",
        ))
        .arg(
            Arg::new("changed")
                .long("changed")
                .value_name("SPEC")
                .conflicts_with("set")
                .help("Predict the measured run with this spec in place of SPEC, instead of fitting constants"),
        )
        .arg(
            Arg::new("constant")
                .long("constant")
                .value_name("NAME")
                .action(ArgAction::Append)
                .help("Fit only this constant, for example exchange_start_cycles; can be repeated"),
        )
        .arg(
            Arg::new("limit")
                .long("limit")
                .value_name("N")
                .default_value("20")
                .value_parser(value_parser!(usize))
                .help("Maximum number of printed operations; 0 for all"),
        )
        .arg(
            Arg::new("jobs")
                .long("jobs")
                .value_name("N")
                .value_parser(value_parser!(NonZeroUsize))
                .help("Number of parallel simulations (default: one per core)"),
        )
        .arg(json_argument())
        .after_help(AFTER_HELP)
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    output_file::check(path_of(matches, "output"), std::iter::once(path_of(matches, "measured")))?;
    let measured = open_path(path_of(matches, "measured"))?;
    if !measured.has(ReportPart::Execution) {
        let problem = "this report has no run; calibration needs the report of a run";
        let report = measured.path().to_owned();
        return Err(JobError::NotRecorded { problem, report }.into());
    }
    let directory = TemporaryDirectory::new()?;
    let name = spec_name(matches, &measured, directory.path())?;
    let spec = super::simulate::build(&SpecSource::find(&name, &[])?)?;
    let change = SpecChange::asked(matches);
    if let Some(SpecChange::Spec(changed)) = &change {
        super::simulate::build(&SpecSource::find(changed, &[])?)?;
    }
    let names = matches.get_many::<String>("constant").into_iter().flatten();
    let chosen = constants::chosen(&spec, &names.map(String::as_str).collect::<Vec<_>>())?;
    let jobs = matches.get_one::<NonZeroUsize>("jobs").copied();
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok());
    let jobs = jobs.unwrap_or(NonZeroUsize::MIN);
    let simulations = Simulations { name, jobs };
    let base = simulations.run(&[], &SpecChanges::new())?;
    let base = &base.report;
    let aligned = MeasuredBesideSimulated::read(&measured, base)?;
    // Syncs and stream copies have the same names in all programs.
    if !aligned.programs.iter().any(|program| program.kind == ProgramKind::OnTileExecute) {
        let problem = "the report and the spec have no compute set in common: is this the spec of \
                       the measured program?";
        return Err(JobError::Nothing(problem).into());
    }
    let limit = matches.get_one::<usize>("limit").copied().filter(|limit| *limit > 0);
    let listing = listing::Listing {
        measured: &measured,
        aligned: &aligned,
        limit: limit.unwrap_or(usize::MAX),
        as_json: matches.get_flag("json"),
    };
    if let Some(change) = change {
        let changed = match &change {
            SpecChange::Keys(keys) => simulations.run(keys, &SpecChanges::new())?,
            SpecChange::Spec(name) => simulations.of(name).run(&[], &SpecChanges::new())?,
        };
        let prediction = predict(&aligned, base, &changed.report)?;
        return listing.prediction(&prediction, &change, output);
    }
    let fitted = fitted(&simulations, chosen, (base, &aligned))?;
    let file = CalibrationFile::new(&measured, &fitted);
    let path = path_of(matches, "output");
    let written = if file.is_worth_it() { Some(path) } else { None };
    if let Some(path) = written {
        output_file::write(path, file.text().as_bytes())?;
    }
    listing.fit(&fitted, written, output)
}

/// The spec given by the user, or the one that the report was made from.
fn spec_name(
    matches: &ArgMatches,
    measured: &Report,
    directory: &Path,
) -> Result<String, CliError> {
    if let Some(name) = matches.get_one::<String>("spec") {
        return Ok(name.clone());
    }
    let Some(text) = measured.spec() else {
        let problem = "the report does not record its spec: name the spec of the measured program \
                       (tilescope calibrate MEASURED SPEC)";
        return Err(UsageError::Request(problem).into());
    };
    let path = directory.join("spec.toml");
    output_file::write(&path, text.as_bytes())?;
    Ok(path.to_string_lossy().into_owned())
}

/// The change of a measured run to predict.
pub(super) enum SpecChange {
    /// Keys with their values, in the form of `--set`.
    Keys(Vec<String>),
    /// Another spec.
    Spec(String),
}

impl SpecChange {
    /// The change to predict, if the user gives one.
    fn asked(matches: &ArgMatches) -> Option<Self> {
        if let Some(name) = matches.get_one::<String>("changed") {
            return Some(Self::Spec(name.clone()));
        }
        let keys = overrides(matches);
        if keys.is_empty() { None } else { Some(Self::Keys(keys)) }
    }
}

/// Runs simulations of one spec, each in a child process: constants belong to the process.
struct Simulations {
    name: String,
    jobs: NonZeroUsize,
}

/// A simulated report, deleted when it is dropped.
struct SimulatedRun {
    report: Report,
    _directory: TemporaryDirectory,
}

impl Simulations {
    /// Simulations of another spec.
    fn of(&self, name: &str) -> Self {
        Self { name: name.to_owned(), jobs: self.jobs }
    }

    /// Simulates the spec with changes, and opens the report.
    fn run(&self, overrides: &[String], changes: &SpecChanges) -> Result<SimulatedRun, CliError> {
        let runner = TrialRunner::new(&self.name, overrides.to_vec(), self.jobs)?;
        let directory = TemporaryDirectory::new()?;
        let path = runner.report(changes, directory.path())?;
        let report = Report::open(&path)?;
        if !report.has(ReportPart::Execution) {
            return Err(JobError::DoesNotFit(self.name.clone()).into());
        }
        Ok(SimulatedRun { report, _directory: directory })
    }
}

/// Constants that were fitted, with the quality of the fit.
pub(super) struct FittedConstants {
    /// Values in the spec.
    pub start: Vec<FitConstant>,
    /// The last fit.
    pub result: FitResult,
    /// The first fit, from constants that were not fitted to any operation.
    pub first: FitResult,
    /// Error of a simulation with the fitted constants.
    pub simulated: f64,
}

/// Fits constants to aligned programs.
fn fitted(
    simulations: &Simulations,
    mut constants: Vec<FitConstant>,
    (base, aligned): (&Report, &MeasuredBesideSimulated),
) -> Result<FittedConstants, CliError> {
    let progress = ProgressReporter::new("simulating");
    let done = AtomicUsize::new(0);
    let all = constants.len() + ROUNDS;
    let advance = || {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress.at(done as f64 / all as f64);
    };
    let slopes = in_parallel(simulations.jobs, &constants, |_, constant| {
        let value = moved(constant);
        let changes =
            SpecChanges::from([(constant.key.clone(), constants::json_value(constant, value))]);
        let other = simulations.run(&[], &changes)?;
        let cycles = aligned.in_other_simulation(base, &other.report)?;
        advance();
        let step = value - constant.value;
        let pairs = cycles.iter().zip(&aligned.programs);
        Ok(pairs.map(|(cycles, program)| (cycles - program.simulated) / step).collect())
    });
    for (constant, slopes) in constants.iter_mut().zip(slopes) {
        constant.slopes = slopes.map_err(|error: CliError| error)?;
    }
    let start = constants.clone();
    let first = fit(&aligned.programs, &constants);
    let mut result = first.clone();
    let mut simulated = first.before;
    let mut programs = aligned.programs.clone();
    for round in 0..ROUNDS {
        let next = if round == 0 { first.clone() } else { fit(&programs, &constants) };
        let changes = changes_of(&start, &next);
        // Constants that only one of the fits could determine have values from different fits.
        if changes.is_empty() || fitted_keys(&next) != fitted_keys(&first) {
            break;
        }
        let other = simulations.run(&[], &changes)?;
        advance();
        let cycles = aligned.in_other_simulation(base, &other.report)?;
        for (program, cycles) in programs.iter_mut().zip(cycles) {
            program.simulated = cycles;
        }
        for (constant, of) in constants.iter_mut().zip(&next.constants) {
            constant.value = of.value();
        }
        let error = fit(&programs, &[]).before;
        if error >= simulated {
            break;
        }
        (result, simulated) = (next, error);
    }
    Ok(FittedConstants { start, result, first, simulated })
}

/// The keys of the constants that a fit could determine.
fn fitted_keys(result: &FitResult) -> Vec<&str> {
    result
        .constants
        .iter()
        .filter(|of| matches!(of.state, ConstantState::Fitted { .. }))
        .map(|of| of.constant.key.as_str())
        .collect()
}

/// The changes of the spec from a fit.
fn changes_of(start: &[FitConstant], result: &FitResult) -> SpecChanges {
    let changed =
        start.iter().zip(&result.constants).filter(|(start, of)| start.value != of.value());
    changed
        .map(|(start, of)| (start.key.clone(), constants::json_value(start, of.value())))
        .collect()
}
