//! Proposals of insights that are tried: the spec of a report is simulated with each of them and
//! without, then the best together.

use crate::spec_copy::SpecCopy;
use crate::trial::{TrialFigures, TrialOutcome, TrialRunner};
use crate::{ExperimentError, ExperimentProgress};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use tilescope_analysis::insights::{
    InsightFinding, InsightSubject, Proposal, SpecChanges, TriedProposal, combination,
    sort_by_measured,
};

/// Proposals that are tried together.
const COMBINED: usize = 3;

/// What is tried, and how.
pub struct ProofRequest<'a> {
    /// The text of the spec.
    pub spec: &'a str,
    /// Where files may be written.
    pub directory: &'a Path,
    /// Simulations at once; one for each core where nothing is said.
    pub jobs: Option<NonZeroUsize>,
    pub progress: &'a ExperimentProgress<'a>,
}

/// Tries the proposals of findings and combinations of the best: the combination that gains most
/// comes first, then findings that gain, the best of them before the others, then those that propose
/// nothing, then what was tried in vain.
///
/// # Errors
/// A spec that cannot be simulated as it is, and children that cannot be started.
pub fn prove(
    found: Vec<InsightFinding>,
    request: &ProofRequest<'_>,
) -> Result<Vec<InsightFinding>, ExperimentError> {
    let copy = SpecCopy::write(request.spec, "the spec of the report", request.directory)?;
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let jobs = request.jobs.unwrap_or(cores);
    let runner = TrialRunner::new(copy.file_name(), Vec::new(), jobs)?;
    let mut found = found;
    let changes: Vec<SpecChanges> = found.iter().filter_map(changes_of).collect();
    let (base, tried) = tried((&runner, &copy), None, &changes, request.progress)?;
    let proposing = found.iter_mut().filter(|finding| finding.proposal.is_some());
    for (finding, tried) in proposing.zip(tried) {
        finding.measured = Some(tried);
    }
    sort_by_measured(&mut found);
    let subject = match base.seconds_per_sample() {
        Some(_) => InsightSubject::Time,
        // It does not fit: nothing else counts.
        None => InsightSubject::Memory,
    };
    let gain =
        |finding: &InsightFinding| finding.measured_gain().filter(|_| finding.subject == subject);
    let best_alone = found.iter().filter_map(gain).fold(0.0, f64::max);
    let mut together = combinations(&found, subject);
    let changes: Vec<SpecChanges> = together.iter().filter_map(changes_of).collect();
    let (_, outcomes) = self::tried((&runner, &copy), Some(base), &changes, request.progress)?;
    for (finding, tried) in together.iter_mut().zip(outcomes) {
        finding.measured = Some(tried);
    }
    // What gains no more together than one of its parts alone says nothing new.
    sort_by_measured(&mut together);
    let best = together.into_iter().next();
    let best = best.filter(|finding| finding.measured_gain().is_some_and(|gain| gain > best_alone));
    Ok(best.into_iter().chain(found).collect())
}

fn changes_of(finding: &InsightFinding) -> Option<SpecChanges> {
    finding.proposal.as_ref().map(|proposal| proposal.changes.clone())
}

/// Runs changed specs beside the unchanged one, whose figures may be known.
fn tried(
    (runner, copy): (&TrialRunner, &SpecCopy),
    base: Option<TrialFigures>,
    changes: &[SpecChanges],
    progress: &ExperimentProgress<'_>,
) -> Result<(TrialFigures, Vec<TriedProposal>), ExperimentError> {
    let unchanged = base.is_none().then(SpecChanges::new);
    let trials: Vec<SpecChanges> = unchanged.into_iter().chain(changes.iter().cloned()).collect();
    let done = AtomicUsize::new(0);
    let outcomes = runner.run(&trials, |_, _| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        progress(done as f64 / trials.len() as f64);
    });
    let mut outcomes = outcomes?.into_iter().map(|outcome| copy.named_outcome(outcome));
    let base = match base {
        Some(base) => base,
        None => match outcomes.next() {
            Some(TrialOutcome::Figures(figures)) => figures,
            Some(TrialOutcome::Refused(problem) | TrialOutcome::Died(problem)) => {
                return Err(ExperimentError::ReportSpec(problem));
            }
            None => return Err(ExperimentError::NothingSimulated),
        },
    };
    Ok((base, outcomes.map(|outcome| compared(&base, outcome)).collect()))
}

/// What a trial says beside the unchanged spec.
pub fn compared(base: &TrialFigures, outcome: TrialOutcome) -> TriedProposal {
    let figures = match outcome {
        TrialOutcome::Figures(figures) => figures,
        TrialOutcome::Refused(problem) => return TriedProposal::Refused { problem },
        TrialOutcome::Died(problem) => return TriedProposal::Died { problem },
    };
    let bytes = |of: &TrialFigures| of.fullest_tile_bytes.as_f64().max(1.0);
    let memory = bytes(&figures) / bytes(base) - 1.0;
    match (base.seconds_per_sample(), figures.seconds_per_sample()) {
        (Some(before), Some(now)) => {
            TriedProposal::Ran { time: now / before.max(f64::MIN_POSITIVE) - 1.0, memory }
        }
        (None, Some(_)) => TriedProposal::NowFits { memory },
        (_, None) => TriedProposal::DoesNotFit { memory },
    }
}

/// The best proposals together, as findings that were not tried yet: every two of them, and all; for
/// a program that does not fit also whatever saves memory.
fn combinations(found: &[InsightFinding], subject: InsightSubject) -> Vec<InsightFinding> {
    let gains =
        |finding: &&InsightFinding| finding.subject == subject && finding.measured_gain().is_some();
    let all: Vec<&InsightFinding> = found.iter().filter(gains).collect();
    let best: Vec<&InsightFinding> = all.iter().copied().take(COMBINED).collect();
    let sets = (0_u32..1 << best.len()).filter(|set| set.count_ones() >= 2);
    let chosen = |set: u32| {
        let parts = best.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1);
        parts.map(|(_, finding)| *finding).collect::<Vec<_>>()
    };
    let everything = (subject == InsightSubject::Memory && all.len() > COMBINED).then_some(all);
    let chosen = sets.map(chosen).chain(everything);
    chosen.filter_map(|parts| together(&parts, subject)).collect()
}

/// Several proposals at once; none where they set a key to different values.
fn together(parts: &[&InsightFinding], subject: InsightSubject) -> Option<InsightFinding> {
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
    let sentence = format!("Combining {names} gains most.");
    Some(combination(subject, sentence, Proposal { changes, cost: prices.join("; ") }))
}
