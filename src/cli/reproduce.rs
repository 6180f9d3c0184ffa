//! `reproduce`: every figure that Graphcore's guides and tutorials print, beside its simulation.

mod measurements;
mod published_figures;

use super::progress::ProgressReporter;
use super::{CliCommand, CliError};
use clap::{Arg, ArgAction, ArgMatches};
use measurements::{SimulatedProgram, SpecWithOverrides};
use published_figures::{
    FigureTolerance, PublishedFigure, PublishedFigureKind, PublishedFigures, number,
};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_report::units::percent;

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
    /// Text it comes from.
    publication: &'a str,
    what: &'a str,
    published: f64,
    simulated: f64,
    /// Relative error; absolute where the published figure is 0.
    error: f64,
    /// Largest relative error, 0 for exact; the bound or range where that is meant.
    tolerance: serde_json::Value,
    /// Whether the simulation is as close as claimed; nothing where nothing is claimed.
    pass: Option<bool>,
    /// `predicted`, `fitted` or `input`.
    kind: &'static str,
    /// Whether all its programs fit in memory. A figure of one that does not never passes.
    fits: bool,
}

impl<'a> PublishedFigureRow<'a> {
    fn new(figure: &'a PublishedFigure, simulated: f64, fits: bool) -> Self {
        let error = match figure.published {
            0.0 => simulated,
            published => simulated / published - 1.0,
        };
        Self {
            id: &figure.id,
            publication: &figure.publication,
            what: &figure.what,
            published: figure.published,
            simulated,
            error,
            tolerance: figure.tolerance.to_json(),
            pass: figure.tolerance.holds(figure.published, simulated).map(|close| close && fits),
            kind: figure.kind.name(),
            fits,
        }
    }
}

fn run(matches: &ArgMatches, output: &mut dyn Write) -> Result<(), CliError> {
    let published =
        PublishedFigures::read().map_err(|error| CliError::Failed(error.to_string()))?;
    let rows = rows(&published)?;
    if matches.get_flag("json") {
        let text =
            serde_json::to_string_pretty(&rows).map_err(|e| CliError::Failed(e.to_string()))?;
        writeln!(output, "{text}")?;
        return Ok(());
    }
    print(&rows, &published.fitted_constants, output)
}

/// Simulates each program once and takes all figures from them.
fn rows(published: &PublishedFigures) -> Result<Vec<PublishedFigureRow<'_>>, CliError> {
    let programs = &published.programs;
    let progress = Mutex::new(ProgressReporter::new("simulating"));
    let done = AtomicUsize::new(0);
    let simulate = |(name, program): (&String, &SpecWithOverrides)| {
        let simulated = SimulatedProgram::new(program)?;
        let share = (done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / programs.len() as f64;
        if let Ok(mut progress) = progress.lock() {
            progress.at(share);
        }
        Ok((name.clone(), simulated))
    };
    let simulated: Result<BTreeMap<_, _>, CliError> = programs.par_iter().map(simulate).collect();
    if let Ok(progress) = progress.lock() {
        progress.finish();
    }
    let simulated = simulated?;
    published.figures.iter().map(|figure| row(figure, &simulated)).collect()
}

fn row<'a>(
    figure: &'a PublishedFigure,
    simulated: &BTreeMap<String, SimulatedProgram>,
) -> Result<PublishedFigureRow<'a>, CliError> {
    let runs: Option<Vec<&SimulatedProgram>> =
        figure.programs.iter().map(|program| simulated.get(program)).collect();
    let value = runs.as_ref().and_then(|runs| figure.measured(runs)).ok_or_else(|| {
        CliError::Failed(format!("{}: the simulation does not show this figure", figure.id))
    })?;
    let fits = runs.iter().flatten().all(|run| run.compiled.tiles_out_of_memory() == 0);
    Ok(PublishedFigureRow::new(figure, value, fits))
}

fn print(
    rows: &[PublishedFigureRow<'_>],
    fitted_constants: &[String],
    output: &mut dyn Write,
) -> Result<(), CliError> {
    let widest = rows.iter().map(|row| row.what.chars().count()).max().unwrap_or(0);
    writeln!(
        output,
        "{:widest$}  {:15}  {:>13}  {:>13}  {:>8}  {:9}  pass",
        "figure", "publication", "published", "simulated", "error", "kind"
    )?;
    for row in rows {
        let pass = match row.pass {
            Some(true) => "yes",
            Some(false) if !row.fits => "MISS: does not fit in memory",
            Some(false) => "MISS",
            None => "-",
        };
        writeln!(
            output,
            "{:widest$}  {:15}  {:>13}  {:>13}  {:>8}  {:9}  {pass}",
            row.what,
            row.publication,
            number(row.published),
            number(row.simulated),
            percent(row.error),
            row.kind
        )?;
    }
    let count = |wanted: Option<bool>, kind: &str| {
        rows.iter().filter(|row| row.pass == wanted && row.kind == kind).count()
    };
    let predicted = PublishedFigureKind::Predicted.name();
    writeln!(
        output,
        "\n{} predicted figures are within tolerance, {} are not; {} were used for fitting and prove nothing, {} are inputs",
        count(Some(true), predicted),
        count(Some(false), predicted),
        rows.iter().filter(|row| row.kind == PublishedFigureKind::Fitted.name()).count(),
        rows.iter().filter(|row| row.kind == PublishedFigureKind::Input.name()).count(),
    )?;
    let fitted = fitted_constants.join("; ");
    writeln!(output, "{} constants were fitted: {fitted}", fitted_constants.len())?;
    Ok(())
}

impl FigureTolerance {
    fn to_json(self) -> serde_json::Value {
        match self {
            Self::Relative(share) => share.into(),
            Self::Exact => 0.0.into(),
            Self::Above(bound) => format!("> {bound}").into(),
            Self::Between(low, high) => format!("{low} to {high}").into(),
            Self::None => serde_json::Value::Null,
        }
    }

    fn holds(self, published: f64, simulated: f64) -> Option<bool> {
        match self {
            Self::Relative(share) => Some((simulated / published - 1.0).abs() <= share),
            Self::Exact => Some(simulated == published),
            Self::Above(bound) => Some(simulated > bound),
            Self::Between(low, high) => Some((low..=high).contains(&simulated)),
            Self::None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_sim::spec::find_bundled_spec;

    #[test]
    fn every_figure_has_its_own_name_and_programs_of_bundled_specs() {
        let published = PublishedFigures::read().expect("the file is as the code expects it");
        let (figures, programs) = (&published.figures, &published.programs);
        for (position, figure) in figures.iter().enumerate() {
            assert!(figures[..position].iter().all(|o| o.id != figure.id), "{}", figure.id);
            assert!(!figure.programs.is_empty(), "{}", figure.id);
            for program in &figure.programs {
                assert!(programs.contains_key(program), "{}: {program}", figure.id);
            }
        }
        for (name, program) in programs {
            assert!(find_bundled_spec(&program.spec).is_some(), "{name}: {}", program.spec);
            assert!(figures.iter().any(|figure| figure.programs.contains(name)), "{name}: unused");
        }
    }

    #[test]
    fn a_miss_is_a_miss() {
        assert_eq!(FigureTolerance::Relative(0.1).holds(100.0, 109.0), Some(true));
        assert_eq!(FigureTolerance::Relative(0.1).holds(100.0, 111.0), Some(false));
        assert_eq!(FigureTolerance::Exact.holds(9.0, 8.0), Some(false));
        assert_eq!(FigureTolerance::Above(0.58).holds(0.58, 0.57), Some(false));
        assert_eq!(FigureTolerance::Between(2.0, 4.0).holds(3.0, 4.0), Some(true));
        assert_eq!(FigureTolerance::None.holds(1.0, 5.0), None);
    }
}
