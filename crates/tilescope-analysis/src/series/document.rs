//! A series as JSON.

use super::{
    FigureTrend, ReportSeries, SeriesFigure, SeriesOperation, SeriesOptions, SeriesRun,
    UnreadReport,
};
use crate::compare::WorkUnit;
use crate::confidence::Banded;
use serde::Serialize;
use serde_json::Number;

/// The complete content of a series, for given options.
#[derive(Clone, Debug, Serialize)]
pub struct SeriesDocument<'a> {
    /// The requested unit of work.
    pub asked: WorkUnit,
    /// The unit of work of figures: whole runs if no report states its amount of work.
    pub unit: WorkUnit,
    /// Name of the run that the others are compared with.
    pub baseline: &'a str,
    /// The smallest reported change, as a share.
    pub threshold: f64,
    /// Caveats about the comparability of the runs.
    pub notes: Vec<String>,
    /// The runs in their order; every list below has a value for each.
    pub runs: Vec<RunEntry<'a>>,
    pub unread: &'a [UnreadReport],
    pub figures: Vec<FigureEntry<'a>>,
    pub operations: Vec<OperationEntry<'a>>,
    /// Cycles of each run, the sum of those of its operations.
    pub operations_total: Vec<Option<f64>>,
}

/// A run of the series.
#[derive(Clone, Debug, Serialize)]
pub struct RunEntry<'a> {
    pub name: &'a str,
    pub path: String,
    pub target: &'a str,
    pub samples: Option<u64>,
    /// The reason that it has no figures of an execution; `None` if it has them.
    pub not_executed: Option<&'a str>,
}

/// A figure over all runs of the series.
#[derive(Clone, Debug, Serialize)]
pub struct FigureEntry<'a> {
    pub path: &'a str,
    /// Values as in `summary --json`; `None` for runs without one.
    pub values: &'a [Option<Number>],
    /// The unit of `values_per_unit`; `None` for figures that do not grow with the work of a run.
    pub per: Option<&'static str>,
    /// The values per unit of work, if they grow with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values_per_unit: Option<Vec<Option<f64>>>,
    /// Values with the error bands of the model, per unit of work if the figure grows with it;
    /// absent if no run has bands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<Vec<Option<Banded>>>,
    /// Difference of each run from the baseline, per unit of work if figures are.
    pub change: Vec<Option<f64>>,
    /// The same as a share of the baseline.
    pub share: Vec<Option<f64>>,
    #[serde(flatten)]
    pub trend: FigureTrend,
}

/// An operation over all runs of the series.
#[derive(Clone, Debug, Serialize)]
pub struct OperationEntry<'a> {
    pub name: &'a str,
    /// Its operator; empty for steps without an operation and for idle time.
    pub kind: &'a str,
    /// Cycles per unit of work, as a mean over lanes; `None` for runs without any.
    pub cycles: Vec<Option<f64>>,
}

impl ReportSeries {
    /// The complete content of the series, for given options.
    pub fn document(&self, options: SeriesOptions) -> SeriesDocument<'_> {
        let unit = self.unit(options.unit);
        let operation = |of| self.operation_entry(of, unit);
        SeriesDocument {
            asked: options.unit,
            unit,
            baseline: self.runs.get(options.baseline).map_or("", |run| &run.name),
            threshold: options.threshold,
            notes: self.notes(options.unit),
            runs: self.runs.iter().map(RunEntry::of).collect(),
            unread: &self.unread,
            figures: self.figures.iter().map(|of| self.figure_entry(of, options)).collect(),
            operations: self.operations.iter().map(operation).collect(),
            operations_total: self.of_runs(|run| self.run_cycles(run, unit)),
        }
    }

    /// A value for each run.
    fn of_runs<T>(&self, value: impl Fn(usize) -> T) -> Vec<T> {
        (0..self.runs.len()).map(value).collect()
    }

    fn figure_entry<'a>(&'a self, of: &'a SeriesFigure, options: SeriesOptions) -> FigureEntry<'a> {
        let unit = self.unit(options.unit);
        let grows_with_work = of.figure.is_of_run();
        FigureEntry {
            path: of.figure.path(),
            values: &of.values,
            per: if grows_with_work { Some(unit.name()) } else { None },
            expected: if of.is_banded() {
                Some(self.of_runs(|run| self.expected(of, run, unit)))
            } else {
                None
            },
            values_per_unit: if grows_with_work {
                Some(self.of_runs(|run| self.value_of_run(of, run, unit)))
            } else {
                None
            },
            change: self.of_runs(|run| self.change(of, run, options)),
            share: self.of_runs(|run| self.share(of, run, options)),
            trend: self.trend(of, options),
        }
    }

    fn operation_entry<'a>(&self, of: &'a SeriesOperation, unit: WorkUnit) -> OperationEntry<'a> {
        let cycles = self.of_runs(|run| self.operation_cycles(of, run, unit));
        OperationEntry { name: &of.name, kind: &of.kind, cycles }
    }
}

impl<'a> RunEntry<'a> {
    fn of(run: &'a SeriesRun) -> Self {
        Self {
            name: &run.name,
            path: run.path.display().to_string(),
            target: &run.target,
            samples: run.work.samples,
            not_executed: run.not_executed.as_deref(),
        }
    }
}
