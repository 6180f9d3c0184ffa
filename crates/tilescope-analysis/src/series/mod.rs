//! Many reports as one document: runs x figures, lasting changes of figures, and the operations of
//! all runs side by side.
//!
//! Figures are those of `summary --json`. Figures that grow with the amount of work of a run are
//! given per unit of work, as in comparisons. Missing figures are absent, never zero. Every run is
//! also compared with the baseline, which is one of the runs.
//!
//! Tests check these laws: values are those of the summary; a series of one report with itself has
//! no change; exchanging a run and the baseline negates every difference; operations of a run add
//! up to its cycles.

mod change_points;
mod document;
mod figure;
mod figure_choice;
mod run_figures;
mod sources;
mod tables;
#[cfg(test)]
mod tests;
mod words;

pub use change_points::{ChangePoint, DEFAULT_THRESHOLD, FigureDrift, FigureTrend, trend};
pub use figure_choice::{FigureChoice, UnknownFigureError};
pub use run_figures::{RunFigures, SeriesRun};
pub use sources::{
    MAX_REPORTS, SeriesError, SeriesOrder, SeriesSource, arrange, find_reports, natural_order,
};
pub use tables::PageTable;

use crate::compare::{CycleOwner, WorkUnit};
use crate::confidence::Banded;
use crate::gates::{NamedFigure, named_figure};
use rayon::prelude::*;
use serde::Serialize;
use serde_json::Number;
use std::collections::BTreeMap;
use tilescope_report::Report;

/// The number of reports that are read between two progress messages.
const READ_AT_ONCE: usize = 16;

/// A report that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreadReport {
    pub name: String,
    pub problem: String,
}

/// A figure over all runs.
#[derive(Clone, Debug)]
pub struct SeriesFigure {
    pub figure: NamedFigure,
    /// The value of each run in its summary; `None` for runs without one.
    pub values: Vec<Option<Number>>,
    /// The same with the error band of the model; `None` if it is not known, as for real machines.
    pub expected: Vec<Option<Banded>>,
}

/// Cycles of an operation over all runs, as sums over lanes.
#[derive(Clone, Debug)]
pub struct SeriesOperation {
    /// The owner of the cycles: an operation, steps of none, or idle time.
    pub name: String,
    /// Operator of the operation; empty for others.
    pub kind: String,
    /// The cycles of each run; `None` if it has no such operation or was not executed.
    pub cycles: Vec<Option<u64>>,
}

/// Runs with their figures, and reports that could not be read.
#[derive(Clone, Debug, Default)]
pub struct ReportSeries {
    pub runs: Vec<SeriesRun>,
    pub unread: Vec<UnreadReport>,
    /// Figures in the order of [`crate::gates::figure_paths`].
    pub figures: Vec<SeriesFigure>,
    /// Operations by name. With idle time, those of a run add up to its cycles times its lanes.
    pub operations: Vec<SeriesOperation>,
    /// Lanes and cycles of each run; `None` if it was not executed.
    pub lengths: Vec<Option<RunLength>>,
}

/// The length of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunLength {
    pub cycles: u64,
    pub lanes: u64,
}

/// Builds a series, run by run.
#[derive(Default)]
pub struct SeriesBuilder {
    runs: Vec<SeriesRun>,
    unread: Vec<UnreadReport>,
    figures: BTreeMap<String, Vec<Option<Number>>>,
    expected: BTreeMap<String, Vec<Option<Banded>>>,
    operations: BTreeMap<CycleOwner, Vec<Option<u64>>>,
    lengths: Vec<Option<RunLength>>,
}

impl SeriesBuilder {
    /// Adds the next run.
    pub fn add(&mut self, of: RunFigures) {
        let at = self.runs.len();
        for (path, value) in of.values {
            put(self.figures.entry(path).or_default(), at, value);
        }
        for (path, band) in of.expected {
            put(self.expected.entry(path).or_default(), at, band);
        }
        self.lengths
            .push(of.cycles.as_ref().map(|run| RunLength { cycles: run.run.0, lanes: run.lanes }));
        for (owner, cycles) in of.cycles.into_iter().flat_map(|run| run.by_owner) {
            put(self.operations.entry(owner).or_default(), at, cycles.0);
        }
        self.runs.push(of.run);
    }

    /// Adds a report that could not be read.
    pub fn add_unread(&mut self, name: &str, problem: String) {
        self.unread.push(UnreadReport { name: name.to_owned(), problem });
    }

    /// Returns the complete series.
    pub fn finish(self) -> ReportSeries {
        let count = self.runs.len();
        let mut bands = self.expected;
        let mut figures = Vec::new();
        for (path, mut values) in self.figures {
            let Some(figure) = named_figure(&path) else { continue };
            values.resize(count, None);
            // A summary leaves out categories that are zero.
            if figure.is_zero_where_absent() {
                for value in &mut values {
                    value.get_or_insert_with(|| Number::from(0));
                }
            }
            let mut expected = bands.remove(&path).unwrap_or_default();
            expected.resize(count, None);
            figures.push(SeriesFigure { figure, values, expected });
        }
        figures.sort_by(|a, b| {
            let by_rank = a.figure.rank().cmp(&b.figure.rank());
            by_rank.then_with(|| natural_order(a.figure.path(), b.figure.path()))
        });
        let mut operations = Vec::new();
        for (owner, mut cycles) in self.operations {
            cycles.resize(count, None);
            let kind = owner.kind().to_owned();
            operations.push(SeriesOperation { name: owner.name(), kind, cycles });
        }
        ReportSeries {
            runs: self.runs,
            unread: self.unread,
            figures,
            operations,
            lengths: self.lengths,
        }
    }
}

/// Stores the value of the run `at`, after filling up earlier runs without one.
fn put<T: Clone>(values: &mut Vec<Option<T>>, at: usize, value: T) {
    values.resize(at, None);
    values.push(Some(value));
}

/// Reads reports, several at once. `goes_on` is called with the number of reports read so far, and
/// returns true to continue. Reports that cannot be read are listed without stopping the others.
pub fn read_reports(
    sources: &[SeriesSource],
    choice: &FigureChoice,
    mut goes_on: impl FnMut(usize) -> bool,
) -> ReportSeries {
    let mut series = SeriesBuilder::default();
    let mut done = 0;
    for sources in sources.chunks(READ_AT_ONCE) {
        let read = |source: &SeriesSource| {
            let report = Report::open(&source.path)?;
            RunFigures::read(&source.name, &report, choice)
        };
        let found: Vec<_> = sources.par_iter().map(read).collect();
        for (source, found) in sources.iter().zip(found) {
            match found {
                Ok(run) => series.add(run),
                Err(error) => series.add_unread(&source.name, error.to_string()),
            }
        }
        done += sources.len();
        if !goes_on(done) {
            break;
        }
    }
    series.finish()
}

/// The options of a series: the unit of work, the baseline and the threshold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesOptions {
    pub unit: WorkUnit,
    /// Index of the run that others are compared with.
    pub baseline: usize,
    /// The smallest reported change, as a share.
    pub threshold: f64,
}

impl Default for SeriesOptions {
    fn default() -> Self {
        Self { unit: WorkUnit::default(), baseline: 0, threshold: DEFAULT_THRESHOLD }
    }
}

impl ReportSeries {
    /// The same runs with the chosen figures only.
    #[must_use]
    pub fn with_figures(&self, choice: &FigureChoice) -> Self {
        let chosen = self.figures.iter().filter(|of| choice.has(of.figure.path()));
        Self { figures: chosen.cloned().collect(), ..self.clone() }
    }

    /// The index of a run by its name.
    pub fn run_named(&self, name: &str) -> Option<usize> {
        self.runs.iter().position(|run| run.name == name)
    }

    /// The figure of a path.
    pub fn figure(&self, path: &str) -> Option<&SeriesFigure> {
        self.figures.iter().find(|of| of.figure.path() == path)
    }

    /// The unit of work of figures: whole runs if no run states its amount of work.
    pub fn unit(&self, asked: WorkUnit) -> WorkUnit {
        let mut is_executed = false;
        for run in self.runs.iter().filter(|run| run.not_executed.is_none()) {
            if asked.count(run.work).is_some() {
                return asked;
            }
            is_executed = true;
        }
        if is_executed { WorkUnit::Run } else { asked }
    }

    /// The number of units of work of a run; `None` if it is not stated.
    fn work(&self, run: usize, unit: WorkUnit) -> Option<u64> {
        unit.count(self.runs.get(run)?.work)
    }

    /// A figure of a run, per unit of work if it grows with it.
    pub fn value_of_run(&self, of: &SeriesFigure, run: usize, unit: WorkUnit) -> Option<f64> {
        let value = of.values.get(run)?.as_ref()?.as_f64()?;
        if of.figure.is_of_run() {
            Some(value / self.work(run, self.unit(unit))? as f64)
        } else {
            Some(value)
        }
    }

    /// The same with the error band of the model; `None` if it is not known.
    pub fn expected(&self, of: &SeriesFigure, run: usize, unit: WorkUnit) -> Option<Banded> {
        let band = (*of.expected.get(run)?)?;
        Some(band.in_step(self.value_of_run(of, run, unit)?))
    }

    /// The difference of a figure between a run and the baseline.
    pub fn change(&self, of: &SeriesFigure, run: usize, options: SeriesOptions) -> Option<f64> {
        let before = self.value_of_run(of, options.baseline, options.unit)?;
        Some(self.value_of_run(of, run, options.unit)? - before)
    }

    /// The same as a share of the baseline's value; `None` if that is zero.
    pub fn share(&self, of: &SeriesFigure, run: usize, options: SeriesOptions) -> Option<f64> {
        let before = self.value_of_run(of, options.baseline, options.unit)?;
        let share = self.change(of, run, options)? / before.abs();
        if share.is_finite() { Some(share) } else { None }
    }

    /// The behaviour of a figure over the runs.
    pub fn trend(&self, of: &SeriesFigure, options: SeriesOptions) -> FigureTrend {
        let values = (0..self.runs.len()).map(|run| self.value_of_run(of, run, options.unit));
        trend(&values.collect::<Vec<_>>(), options.threshold)
    }

    /// Cycles of an operation in a run per unit of work, as a mean over lanes.
    pub fn operation_cycles(
        &self,
        of: &SeriesOperation,
        run: usize,
        unit: WorkUnit,
    ) -> Option<f64> {
        let cycles = (*of.cycles.get(run)?)? as f64;
        let lanes = (*self.lengths.get(run)?)?.lanes;
        Some(cycles / (lanes as f64 * self.work(run, self.unit(unit))? as f64))
    }

    /// Cycles of a run per unit of work.
    pub fn run_cycles(&self, run: usize, unit: WorkUnit) -> Option<f64> {
        let length = (*self.lengths.get(run)?)?;
        Some(length.cycles as f64 / self.work(run, self.unit(unit))? as f64)
    }

    /// Caveats about the comparability of the runs.
    pub fn notes(&self, asked: WorkUnit) -> Vec<String> {
        let mut notes = Vec::new();
        let unit = self.unit(asked);
        if unit != asked {
            let unit = asked.name();
            notes.push(format!("Figures are per run: no report records its number of {unit}s."));
        }
        for run in &self.runs {
            if run.not_executed.is_none() && unit.count(run.work).is_none() {
                let name = &run.name;
                let unit = unit.name();
                notes.push(format!(
                    "{name} has no figures per {unit}: it does not record its number of {unit}s."
                ));
            }
        }
        for run in &self.runs {
            if let Some(reason) = &run.not_executed {
                notes.push(format!("{} has no figures of an execution: {reason}.", run.name));
            }
        }
        notes.extend(self.targets_note());
        notes
    }

    /// A note if the runs have different machines.
    fn targets_note(&self) -> Option<String> {
        let mut targets: BTreeMap<&str, usize> = BTreeMap::new();
        for run in &self.runs {
            *targets.entry(&run.target).or_default() += 1;
        }
        if targets.len() < 2 {
            return None;
        }
        let mut words = Vec::new();
        for (target, count) in targets {
            let plural = if count == 1 { "" } else { "s" };
            words.push(format!("{target} ({count} run{plural})"));
        }
        Some(format!("Runs have different targets: {}.", words.join(", ")))
    }
}
