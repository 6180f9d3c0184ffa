//! The data of one report in a series.

use super::FigureChoice;
use crate::compare::{RunCycles, run_cycles};
use crate::confidence::Banded;
use crate::gates::summary_values;
use crate::summary::{ReportSummary, RunWork, run_work, summary};
use serde_json::Number;
use std::path::PathBuf;
use tilescope_report::units::grouped;
use tilescope_report::{Report, ReportError};

/// A run of a series, without its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesRun {
    /// Its name, unique within the series.
    pub name: String,
    pub path: PathBuf,
    /// Machine and IPUs: `mk2 x 4`.
    pub target: String,
    pub work: RunWork,
    /// The reason that it has no figures of an execution; `None` if it has them.
    pub not_executed: Option<String>,
}

/// A run with its figures.
pub struct RunFigures {
    pub(super) run: SeriesRun,
    /// Paths of `summary --json` with their values.
    pub(super) values: Vec<(String, Number)>,
    /// Paths with error bands of the model, if known.
    pub(super) expected: Vec<(String, Banded)>,
    pub(super) cycles: Option<RunCycles>,
}

impl RunFigures {
    /// Reads the chosen figures of a report.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(name: &str, report: &Report, choice: &FigureChoice) -> Result<Self, ReportError> {
        let figures = summary(report)?;
        let run = SeriesRun {
            name: name.to_owned(),
            path: report.path().to_owned(),
            target: target(&figures),
            work: run_work(report)?,
            not_executed: not_executed(&figures),
        };
        let mut values = summary_values(&figures);
        values.retain(|(path, _)| choice.has(path));
        let mut expected = Vec::new();
        for (path, _) in &values {
            expected.extend(figures.expected(path).map(|band| (path.clone(), band)));
        }
        Ok(Self { run, values, expected, cycles: run_cycles(report)? })
    }

    /// The run, without its figures.
    pub fn run(&self) -> &SeriesRun {
        &self.run
    }
}

fn target(figures: &ReportSummary) -> String {
    let target = &figures.target;
    let machine = target.machine.as_ref().unwrap_or(&target.architecture);
    format!("{machine} x {}", target.num_ipus)
}

fn not_executed(figures: &ReportSummary) -> Option<String> {
    if figures.execution.is_some() {
        return None;
    }
    Some(match figures.out_of_memory_tiles() {
        0 => "it was compiled but not run".to_owned(),
        1 => "it does not fit in memory: 1 tile exceeds its memory".to_owned(),
        tiles => format!("it does not fit in memory: {} tiles exceed their memory", grouped(tiles)),
    })
}
