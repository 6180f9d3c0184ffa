//! `reproduce`: compares every figure that Graphcore's guides and tutorials print with its
//! simulation.

mod conditions;
mod measurements;
mod published_figures;
mod table;

use super::command::{CliCommand, CliError};
use super::progress::ProgressReporter;
use crate::cli::error::JobError;
use clap::{Arg, ArgAction, ArgMatches};
use conditions::ComparedCondition;
use measurements::{SimulatedProgram, SpecWithOverrides};
use published_figures::{FigureVerdict, PublishedFigure, PublishedFigures};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::confidence::{Banded, RunFactors};
use tilescope_report::ProgramErrorSource;
use tilescope_sim::error_bands::published_line;
use tilescope_sim::specification::Spec;

pub(super) const COMMAND: CliCommand = CliCommand { name: "reproduce", arguments, run };

fn arguments(command: clap::Command) -> clap::Command {
    command
        .about("Simulate the programs of Graphcore's publications and compare with the published figures")
        .arg(
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .help("Print a JSON list with one object per figure"),
        )
        .after_help("Examples:\n  tilescope reproduce\n  tilescope reproduce --json")
}

/// A figure with its simulation.
#[derive(Clone, Debug, Serialize)]
struct PublishedFigureRow<'a> {
    id: &'a str,
    /// The text that it comes from.
    publication: &'a str,
    what: &'a str,
    published: f64,
    simulated: f64,
    /// Relative error; absolute if the published figure is 0.
    error: f64,
    /// Largest relative error, 0 for exact, null if nothing is claimed.
    tolerance: serde_json::Value,
    /// The source of a relative tolerance.
    tolerance_from: Option<&'a str>,
    /// True if the simulation is within it.
    pass: Option<bool>,
    /// The reason why the simulation misses it, if that is known.
    known_miss: Option<&'a str>,
    /// `predicted`, `fitted`, `input` or `illustrated`.
    kind: &'static str,
    /// True if all its programs fit in memory. A figure of one that does not never passes.
    fits: bool,
    /// Its residual, if it was predicted.
    residual: Option<FigureResidual>,
    /// The band of a predicted time or rate.
    band: Option<Banded>,
    /// By program: name, published run, and each condition of both.
    conditions: &'a [ProgramConditions<'a>],
    #[serde(skip)]
    verdict: FigureVerdict<'a>,
}

/// The residual of a published figure, as a line of
/// `crates/tilescope-sim/src/error_bands/published.csv`.
#[derive(Clone, Debug, Serialize)]
struct FigureResidual {
    /// Source of errors of whole programs.
    source: &'static str,
    /// True over predicted cycles or bytes.
    factor: f64,
    /// Standard deviation of its logarithm, as explained by errors of the program's parts.
    deviation: f64,
    /// The line.
    line: String,
}

impl FigureResidual {
    fn new(
        figure: &PublishedFigure,
        (source, factor): (ProgramErrorSource, f64),
        factors: Option<&RunFactors>,
    ) -> Self {
        let deviation = match (source, factors) {
            (ProgramErrorSource::Program, Some(factors)) => factors.deviation_of_parts(),
            _ => 0.0,
        };
        let line = published_line(source, &figure.id, factor, deviation);
        Self { source: source.name(), factor, deviation, line }
    }
}

/// The conditions of a program, compared with those of its published run.
#[derive(Clone, Debug, Serialize)]
struct ProgramConditions<'a> {
    program: &'a str,
    run: &'a str,
    conditions: Vec<ComparedCondition>,
}

impl<'a> PublishedFigureRow<'a> {
    fn new(compared: &'a ComparedFigure<'a>, simulated: f64, runs: &[&SimulatedProgram]) -> Self {
        let fits = runs.iter().all(|run| run.compiled.tiles_out_of_memory() == 0);
        let ComparedFigure { figure, publication, conditions } = compared;
        let error = match figure.published {
            0.0 => simulated,
            published => simulated / published - 1.0,
        };
        let verdict = figure.verdict(simulated, fits);
        let residual = figure.residual(simulated, runs);
        let factors = match residual {
            Some((ProgramErrorSource::Program, _)) => runs[0].time_factors(),
            _ => None,
        };
        Self {
            residual: residual.map(|found| FigureResidual::new(figure, found, factors.as_ref())),
            band: factors.map(|factors| figure.band(simulated, &factors)),
            id: &figure.id,
            publication,
            what: &figure.what,
            published: figure.published,
            simulated,
            error,
            tolerance: figure.tolerance.to_json(),
            tolerance_from: figure.tolerance_from.as_deref(),
            pass: match verdict {
                FigureVerdict::NothingClaimed => None,
                FigureVerdict::Pass | FigureVerdict::PassListedAsMiss => Some(true),
                FigureVerdict::Miss | FigureVerdict::KnownMiss(_) => Some(false),
            },
            known_miss: figure.known_miss.as_deref(),
            kind: figure.kind.name(),
            fits,
            conditions,
            verdict,
        }
    }
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let published = PublishedFigures::read().map_err(|error| JobError::Other(error.into()))?;
    let compared = compared(&published)?;
    let rows = rows(&published.programs, &compared)?;
    if matches.get_flag("json") {
        return super::command::print_json(&rows, output);
    }
    table::print(&rows, &published.fitted_constants, output)
}

/// A figure whose programs match its conditions.
struct ComparedFigure<'a> {
    figure: &'a PublishedFigure,
    publication: &'a str,
    conditions: Vec<ProgramConditions<'a>>,
}

/// Every figure with the conditions of its programs.
///
/// # Errors
///
/// Returns an error if a program does not run under the conditions of the publication: the
/// comparison would be meaningless.
fn compared(published: &PublishedFigures) -> Result<Vec<ComparedFigure<'_>>, CliError> {
    let mut specs: BTreeMap<&str, Spec> = BTreeMap::new();
    for (name, program) in &published.programs {
        let spec = program.build()?;
        if !program.does_its_task(&spec) {
            let problem = format!("its spec is not one of {}", program.task);
            return Err(JobError::Published { of: name.clone(), problem }.into());
        }
        if let Some(change) = spec.machine_changes.first() {
            let program = name.clone();
            let change = change.text_with_inherited();
            return Err(JobError::ChangedMachine { program, change }.into());
        }
        specs.insert(name, spec);
    }
    published.figures.iter().map(|figure| compared_figure(published, &specs, figure)).collect()
}

fn compared_figure<'a>(
    published: &'a PublishedFigures,
    specs: &BTreeMap<&str, Spec>,
    figure: &'a PublishedFigure,
) -> Result<ComparedFigure<'a>, CliError> {
    let to_error = |problem: String| JobError::Published { of: figure.id.clone(), problem };
    let pairs = figure.pairs().ok_or_else(|| {
        to_error("expected one published run per program, or one for all".to_string())
    })?;
    let mut publication = "";
    let mut conditions = Vec::new();
    for (program, run) in pairs {
        let to_unknown = || to_error(format!("no program {program} with a published run {run}"));
        let simulated = published.programs.get(program).ok_or_else(to_unknown)?;
        let spec = specs.get(program).ok_or_else(to_unknown)?;
        let published_run = published.published_runs.get(run).ok_or_else(to_unknown)?;
        publication = &published_run.publication;
        let items = figure.items(spec.model.packing_factor);
        let beside = published_run.beside(simulated, spec, items);
        if let Some(unlike) = beside.iter().find(|condition| !condition.alike) {
            let ComparedCondition { name, published, simulated, .. } = unlike;
            return Err(to_error(format!(
                "{run} and program {program} are not comparable: {name} is {published} in one and \
                 {simulated} in the other"
            ))
            .into());
        }
        conditions.push(ProgramConditions { program, run, conditions: beside });
    }
    Ok(ComparedFigure { figure, publication, conditions })
}

/// Simulates each program once and computes all figures from them.
fn rows<'a>(
    programs: &BTreeMap<String, SpecWithOverrides>,
    compared: &'a [ComparedFigure<'a>],
) -> Result<Vec<PublishedFigureRow<'a>>, CliError> {
    let progress = ProgressReporter::new("simulating");
    let done = AtomicUsize::new(0);
    let simulate = |(name, program): (&String, &SpecWithOverrides)| {
        let simulated = SimulatedProgram::new(program)?;
        let share = (done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / programs.len() as f64;
        progress.at(share);
        Ok((name.clone(), simulated))
    };
    let simulated: Result<BTreeMap<_, _>, CliError> = programs.par_iter().map(simulate).collect();
    let simulated = simulated?;
    compared.iter().map(|figure| row(figure, &simulated)).collect()
}

fn row<'a>(
    compared: &'a ComparedFigure<'a>,
    simulated: &BTreeMap<String, SimulatedProgram>,
) -> Result<PublishedFigureRow<'a>, CliError> {
    let figure = compared.figure;
    let runs: Vec<&SimulatedProgram> =
        figure.programs.iter().filter_map(|program| simulated.get(program)).collect();
    let value = figure.measured(&runs).ok_or_else(|| {
        let problem = "the simulation does not compute this figure".to_owned();
        JobError::Published { of: figure.id.clone(), problem }
    })?;
    Ok(PublishedFigureRow::new(compared, value, &runs))
}

#[cfg(test)]
mod tests;
