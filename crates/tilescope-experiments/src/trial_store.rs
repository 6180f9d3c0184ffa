//! Simulations of a search: each is run once, counted, and written to the file of results.

use crate::answers::TuneAnswer;
use crate::budget::SearchBudget;
use crate::point::Point;
use crate::results_file::{KnownOutcomes, ResultsFile, changes_text};
use crate::spec_copy::SpecCopy;
use crate::trial::{TrialFinding, TrialRunner, in_parallel};
use crate::{ExperimentError, ExperimentProgress};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use tilescope_analysis::insights::SpecChanges;

/// A simulation to run.
#[derive(Clone, Debug)]
pub enum TrialTask {
    /// Computes the figures.
    Figures(SpecChanges),
    /// Computes the findings.
    Findings(SpecChanges),
}

/// The answer to a task.
enum TrialAnswer {
    Figures(Point),
    /// Findings; `None` if they could not be computed.
    Findings(SpecChanges, Option<Vec<TrialFinding>>),
}

/// All trials of a search.
pub struct TrialStore<'p> {
    runner: TrialRunner,
    copy: SpecCopy,
    results: Mutex<Option<ResultsFile>>,
    budget: SearchBudget,
    progress: &'p ExperimentProgress<'p>,
    /// Outcomes from the file of results.
    known: KnownOutcomes,
    /// Points of this search, in order.
    points: Vec<Point>,
    places: BTreeMap<String, usize>,
    findings: BTreeMap<String, Vec<TrialFinding>>,
    /// Number of points without findings because their process died.
    unknown_proposals: usize,
    tasks: usize,
    /// Number of tasks that were not in the file of results.
    simulated: usize,
}

impl<'p> TrialStore<'p> {
    /// Creates a store that continues from a file of results; points that died are tried again.
    ///
    /// # Errors
    /// Errors of reading the file.
    pub fn new(
        runner: TrialRunner,
        copy: SpecCopy,
        results: Option<ResultsFile>,
        budget: SearchBudget,
        progress: &'p ExperimentProgress<'p>,
    ) -> Result<Self, ExperimentError> {
        let known = KnownOutcomes::of_file(results.as_ref())?;
        Ok(Self {
            runner,
            copy,
            results: Mutex::new(results),
            budget,
            progress,
            known,
            points: Vec::new(),
            places: BTreeMap::new(),
            findings: BTreeMap::new(),
            unknown_proposals: 0,
            tasks: 0,
            simulated: 0,
        })
    }

    /// The number of simulations at once.
    pub(crate) fn jobs(&self) -> NonZeroUsize {
        self.runner.jobs()
    }

    /// The outcome of a changed spec, if it was tried.
    pub fn point(&self, changes: &SpecChanges) -> Option<&Point> {
        Some(&self.points[*self.places.get(&changes_text(changes))?])
    }

    /// All tried points, in order.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The findings about a changed spec, if they were computed.
    pub fn findings(&self, changes: &SpecChanges) -> Option<&[TrialFinding]> {
        self.findings.get(&changes_text(changes)).map(Vec::as_slice)
    }

    /// Number of tasks, and of those among them that were run now.
    pub fn counts(&self) -> (usize, usize) {
        (self.tasks, self.simulated)
    }

    /// Number of points with unknown proposals, because the process that computes them died.
    pub fn unknown_proposals(&self) -> usize {
        self.unknown_proposals
    }

    /// The number of remaining tasks.
    pub fn left(&self) -> usize {
        self.budget.left(self.tasks)
    }

    /// Runs the tasks without a known answer in parallel.
    ///
    /// # Errors
    /// Child processes that cannot be started, and results that cannot be written.
    pub fn run(&mut self, tasks: Vec<TrialTask>) -> Result<(), ExperimentError> {
        self.tasks += tasks.len();
        let mut new = Vec::new();
        for task in tasks {
            match self.known_answer(&task)? {
                Some(answer) => self.keep(answer),
                None => new.push(task),
            }
        }
        self.simulated += new.len();
        let answers = in_parallel(self.runner.jobs(), &new, |_, task| self.answer(task));
        let mut stopped = None;
        for answer in answers {
            match answer {
                Ok(answer) => self.keep(answer),
                Err(error) => stopped = stopped.or(Some(error)),
            }
        }
        (self.progress)(self.budget.share(self.tasks));
        stopped.map_or(Ok(()), Err)
    }

    /// Stores the search so far in the file of results, if there is one.
    ///
    /// # Errors
    /// Errors of writing.
    pub fn keep_path(&self, found: &TuneAnswer) -> Result<(), ExperimentError> {
        self.write(|results| results.set_search(found))
    }

    fn known_answer(&self, task: &TrialTask) -> Result<Option<TrialAnswer>, ExperimentError> {
        match task {
            TrialTask::Figures(changes) => {
                let Some(outcome) = self.known.get(changes) else { return Ok(None) };
                let point = Point { changes: changes.clone(), outcome: outcome.clone() };
                Ok(Some(TrialAnswer::Figures(point)))
            }
            TrialTask::Findings(changes) => {
                let Ok(results) = self.results.lock() else { return Ok(None) };
                let found = results.as_ref().map_or(Ok(None), |file| file.findings(changes))?;
                Ok(found.map(|found| TrialAnswer::Findings(changes.clone(), Some(found))))
            }
        }
    }

    fn answer(&self, task: &TrialTask) -> Result<TrialAnswer, ExperimentError> {
        match task {
            TrialTask::Figures(changes) => {
                let outcome = self.copy.named_outcome(self.runner.figures(changes)?);
                let point = Point { changes: changes.clone(), outcome };
                self.write(|results| results.add(&point))?;
                Ok(TrialAnswer::Figures(point))
            }
            TrialTask::Findings(changes) => {
                let found = self.runner.findings(changes)?;
                // A continued search computes missing findings again.
                if let Some(found) = &found {
                    self.write(|results| results.add_findings(changes, found))?;
                }
                Ok(TrialAnswer::Findings(changes.clone(), found))
            }
        }
    }

    fn write(
        &self,
        write: impl FnOnce(&ResultsFile) -> Result<(), ExperimentError>,
    ) -> Result<(), ExperimentError> {
        match self.results.lock() {
            Ok(results) => results.as_ref().map_or(Ok(()), write),
            Err(_) => Ok(()),
        }
    }

    fn keep(&mut self, answer: TrialAnswer) {
        match answer {
            TrialAnswer::Figures(point) => {
                self.places.insert(changes_text(&point.changes), self.points.len());
                self.points.push(point);
            }
            TrialAnswer::Findings(changes, found) => {
                self.unknown_proposals += usize::from(found.is_none());
                self.findings.insert(changes_text(&changes), found.unwrap_or_default());
            }
        }
    }
}
