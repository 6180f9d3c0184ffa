//! Tests of proposals: the spec of a report is simulated without and with each proposal, then with
//! the best ones together.

use super::moves::TuneSpace;
use super::smallest_fit::{FitFound, most_trials, smallest_fit};
use crate::budget::SearchBudget;
use crate::objective::TuneObjective;
use crate::spec_copy::SpecCopy;
use crate::trial::{TrialFigures, TrialOutcome, TrialRunner};
use crate::trial_store::{TrialStore, TrialTask};
use crate::{ExperimentError, ExperimentProgress};
use std::num::NonZeroUsize;
use std::path::Path;
use tilescope_analysis::insights::{
    InsightFinding, InsightGain, InsightSubject, Proposal, SpecChanges, TriedProposal, combination,
    sort_by_measured,
};
use tilescope_sim::specification::{Spec, SpecSource};

/// Proposals that are tried together.
const COMBINED: usize = 3;

/// A request to try the proposals of a report.
pub struct ProofRequest<'a> {
    /// The text of the spec.
    pub spec: &'a str,
    /// Directory for temporary files.
    pub directory: &'a Path,
    /// Number of parallel simulations; one per core by default.
    pub jobs: Option<NonZeroUsize>,
    pub progress: &'a ExperimentProgress<'a>,
    /// Receives the findings after each trial of their proposals.
    pub tried: &'a dyn Fn(&[InsightFinding]),
}

/// Tests the proposals of findings. For a program that fits, the best proposals are also tested
/// together. For a program that does not fit, the smallest change that makes it fit is searched
/// for. The result begins with these combinations. Findings with a gain follow, the best first,
/// then findings without a proposal, then proposals without a gain.
///
/// # Errors
/// A spec that cannot be simulated without changes, and child processes that cannot be started.
pub fn prove(
    found: Vec<InsightFinding>,
    request: &ProofRequest<'_>,
) -> Result<Vec<InsightFinding>, ExperimentError> {
    let copy = SpecCopy::write(request.spec, "the spec of the report", request.directory)?;
    let spec = spec_of(&copy)?;
    let space = TuneSpace::new(&spec, TuneObjective::Throughput);
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let runner = TrialRunner::new(copy.file_name(), Vec::new(), request.jobs.unwrap_or(cores))?;
    let mut found = found;
    let proposals = found.iter().filter(|finding| finding.proposal.is_some()).count();
    // The unchanged spec, its proposals, and combinations of three.
    let fits = found.iter().all(|finding| finding.gain != InsightGain::Everything);
    let more = if fits { 4 } else { most_trials(space.fit.levers.len()) };
    let budget = SearchBudget::Simulations(1 + proposals + more);
    let mut store = TrialStore::new(runner, copy, None, budget, request.progress)?;
    let base = base_figures(&mut store)?;
    // One trial for each core at a time: finished trials are reported while others run.
    let together = store.jobs().get();
    for _ in 0..proposals.div_ceil(together) {
        try_some(&mut found, &base, &mut store, together)?;
        (request.tried)(&found);
    }
    sort_by_measured(&mut found);
    let mut first = match base.seconds_per_sample() {
        Some(_) => best_together(&found, &base, &mut store)?,
        None => changes_that_fit(&space, &base, &found, &mut store)?,
    };
    first.extend(found);
    Ok(first)
}

fn spec_of(copy: &SpecCopy) -> Result<Spec, ExperimentError> {
    let source = SpecSource::find(copy.file_name(), &[]);
    let source = source.map_err(|error| spec_error(copy, &error.to_string()))?;
    Spec::build(&source).map_err(|error| spec_error(copy, &error.to_string()))
}

fn spec_error(copy: &SpecCopy, problem: &str) -> ExperimentError {
    ExperimentError::ReportSpec(copy.named(problem))
}

/// Simulates the unchanged spec.
fn base_figures(store: &mut TrialStore<'_>) -> Result<TrialFigures, ExperimentError> {
    let unchanged = SpecChanges::new();
    store.run(vec![TrialTask::Figures(unchanged.clone())])?;
    match store.point(&unchanged).map(|point| point.outcome.clone()) {
        Some(TrialOutcome::Figures(figures)) => Ok(figures),
        Some(TrialOutcome::Refused(problem) | TrialOutcome::Died(problem)) => {
            Err(ExperimentError::ReportSpec(problem))
        }
        None => Err(ExperimentError::NothingSimulated),
    }
}

/// Simulates the spec with the proposal of each finding.
fn try_all(
    found: &mut [InsightFinding],
    base: &TrialFigures,
    store: &mut TrialStore<'_>,
) -> Result<(), ExperimentError> {
    try_some(found, base, store, found.len())
}

/// Simulates the spec with the proposals of the first untried findings, at most `most`.
fn try_some(
    found: &mut [InsightFinding],
    base: &TrialFigures,
    store: &mut TrialStore<'_>,
    most: usize,
) -> Result<(), ExperimentError> {
    let mut tasks: Vec<TrialTask> = Vec::new();
    for finding in found.iter().filter(|finding| finding.measured.is_none()) {
        if tasks.len() < most {
            tasks.extend(changes_of(finding).map(TrialTask::Figures));
        }
    }
    store.run(tasks)?;
    for finding in found {
        let Some(changes) = changes_of(finding) else { continue };
        finding.measured = store.point(&changes).map(|point| compared(base, point.outcome.clone()));
    }
    Ok(())
}

/// The best combination of proposals that save time, if it gains more than each alone.
fn best_together(
    found: &[InsightFinding],
    base: &TrialFigures,
    store: &mut TrialStore<'_>,
) -> Result<Vec<InsightFinding>, ExperimentError> {
    let mut best_alone = 0.0;
    for finding in found.iter().filter(|finding| finding.subject == InsightSubject::Time) {
        best_alone = finding.measured_gain().unwrap_or(0.0).max(best_alone);
    }
    let mut together = combinations(found);
    try_all(&mut together, base, store)?;
    sort_by_measured(&mut together);
    together.truncate(1);
    // A combination must gain more than each of its parts to be an improvement.
    together.retain(|finding| finding.measured_gain().is_some_and(|gain| gain > best_alone));
    Ok(together)
}

/// The smallest changes that make a program fit, or otherwise the change that comes closest.
fn changes_that_fit(
    space: &TuneSpace,
    base: &TrialFigures,
    found: &[InsightFinding],
    store: &mut TrialStore<'_>,
) -> Result<Vec<InsightFinding>, ExperimentError> {
    let fit = smallest_fit(space, &space.fit, store)?;
    let mut first = Vec::new();
    for (number, change) in fit.found.iter().enumerate() {
        let count = change.moved.reasons.len();
        let plural = if count == 1 { "" } else { "s" };
        let words = match number {
            0 => "The smallest change that fits",
            _ => "Another change that fits",
        };
        let figures = change.point.figures_text();
        first.push(finding_of(
            change,
            base,
            format!("{words}: {count} setting{plural}, {figures}."),
        ));
    }
    if let Some(closest) = &fit.closest {
        let sentence = "No change of one, two or three settings makes the program fit; this one comes \
                        closest.";
        first.push(finding_of(closest, base, sentence.to_owned()));
    }
    // Changes that are proposals already have a finding.
    first.retain(|finding| found.iter().all(|other| changes_of(other) != changes_of(finding)));
    Ok(first)
}

fn finding_of(found: &FitFound, base: &TrialFigures, sentence: String) -> InsightFinding {
    let mut costs: Vec<&str> = Vec::new();
    for reason in &found.moved.reasons {
        if !reason.cost.is_empty() {
            costs.push(&reason.cost);
        }
    }
    let proposal = Proposal { changes: found.moved.changes.clone(), cost: costs.join("; ") };
    InsightFinding {
        measured: Some(compared(base, found.point.outcome.clone())),
        ..combination(InsightSubject::Memory, sentence, proposal)
    }
}

fn changes_of(finding: &InsightFinding) -> Option<SpecChanges> {
    finding.proposal.as_ref().map(|proposal| proposal.changes.clone())
}

/// The result of a trial compared with the unchanged spec.
pub fn compared(base: &TrialFigures, outcome: TrialOutcome) -> TriedProposal {
    let figures = match outcome {
        TrialOutcome::Figures(figures) => figures,
        TrialOutcome::Refused(problem) => return TriedProposal::Refused { problem },
        TrialOutcome::Died(problem) => return TriedProposal::Died { problem },
    };
    let before = base.fullest_tile_bytes.as_f64().max(1.0);
    let memory = figures.fullest_tile_bytes.as_f64().max(1.0) / before - 1.0;
    match (base.seconds_per_sample(), figures.seconds_per_sample()) {
        (Some(before), Some(now)) => {
            let ratio = now / before.max(f64::MIN_POSITIVE);
            let errors = base.own_errors.zip(figures.own_errors);
            let interval = errors.map(|(before, now)| before.change_to(&now, ratio));
            TriedProposal::Ran { time: ratio - 1.0, memory, interval }
        }
        (None, Some(_)) => TriedProposal::NowFits { memory },
        (_, None) => TriedProposal::DoesNotFit { memory },
    }
}

/// Combinations of the best proposals, as findings without a test: every pair, and all.
fn combinations(found: &[InsightFinding]) -> Vec<InsightFinding> {
    let mut best: Vec<&InsightFinding> = Vec::new();
    for finding in found.iter().filter(|finding| finding.subject == InsightSubject::Time) {
        if finding.measured_gain().is_some() && best.len() < COMBINED {
            best.push(finding);
        }
    }
    let mut combined = Vec::new();
    for set in 0_u32..1 << best.len() {
        if set.count_ones() < 2 {
            continue;
        }
        let mut parts: Vec<&InsightFinding> = Vec::new();
        for (at, finding) in best.iter().enumerate() {
            if set >> at & 1 == 1 {
                parts.push(finding);
            }
        }
        combined.extend(together(&parts));
    }
    combined
}

/// Several proposals combined. `None` if they set a key to different values.
fn together(parts: &[&InsightFinding]) -> Option<InsightFinding> {
    let mut changes = SpecChanges::new();
    let mut prices = Vec::new();
    for proposal in parts.iter().filter_map(|finding| finding.proposal.as_ref()) {
        for (key, value) in &proposal.changes {
            if changes.insert(key.clone(), value.clone()).is_some_and(|other| other != *value) {
                return None;
            }
        }
        prices.push(proposal.cost.clone());
    }
    let rules: Vec<&str> = parts.iter().map(|finding| finding.rule).collect();
    let names = match rules.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => return None,
    };
    let sentence = format!("The combination of {names} has the largest gain.");
    Some(combination(InsightSubject::Time, sentence, Proposal { changes, cost: prices.join("; ") }))
}
