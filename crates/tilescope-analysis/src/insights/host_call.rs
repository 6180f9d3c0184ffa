//! Time of a host call outside the program.

use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule, Proposal};
use serde_json::json;
use std::iter;
use tilescope_report::units::percent;
use tilescope_report::{HostCallPart, ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "host_call",
    description: "time that all IPUs wait for the host call",
    keys: &["options.device_iterations", "options.host.loader", "options.host.num_workers"],
    find,
};

/// Smaller shares are an unavoidable cost of calls.
const MIN_SHARE: f64 = 0.02;

/// The largest factor of the iterations of a call.
const MOST_TIMES: u64 = 8;

/// The part of a host call that a program waits for.
pub(crate) fn awaited_part(program: &ProgramNode) -> Option<HostCallPart> {
    (program.kind == ProgramKind::Sync).then(|| HostCallPart::of_sync(&program.name)).flatten()
}

/// The parts that occur once per call, regardless of its iterations, with the text of the wait.
const ONCE_PER_CALL: [(HostCallPart, &str); 4] = [
    (HostCallPart::Framework, "for the framework to prepare the call"),
    (HostCallPart::Launch, "for the launch of the program"),
    (HostCallPart::Handshake, "for the handshake"),
    (HostCallPart::Results, "for the framework to return the results"),
];

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    [loader(facts), once_per_call(facts)].into_iter().flatten().collect()
}

/// Rule for a late loader.
fn loader(facts: &InsightFacts) -> Option<InsightFinding> {
    let waits = |program: &ProgramNode| awaited_part(program) == Some(HostCallPart::Loader);
    // A typical iteration does not contain the start of a call.
    let saved = SavedTime::of(facts, facts.gain_of(1.0, waits), MIN_SHARE, waits)?.anywhere();
    let words = FindingWords {
        sentence: format!("All IPUs wait for the data loader for {} of the run.", saved.share),
        advice: "Load asynchronously, use more workers if the host has cores left, or make \
                 preprocessing cheaper. Summary shows the throughput of the loader alone."
            .to_owned(),
        formula: "cycles of this wait on the critical path / cycles of the run",
    };
    Some(saved.finding(&RULE, words, more_workers(facts)))
}

/// Rule for the costs that iterations of a call share.
fn once_per_call(facts: &InsightFacts) -> Option<InsightFinding> {
    let is_of = |part: HostCallPart| move |program: &_| awaited_part(program) == Some(part);
    let waits = |program: &ProgramNode| ONCE_PER_CALL.iter().any(|(part, _)| is_of(*part)(program));
    let gain = facts.gain_of(1.0, waits)?;
    let saved = SavedTime::of(facts, Some(gain), MIN_SHARE, waits)?.anywhere();
    let share = |part| facts.busiest_share(is_of(part)).map_or(0.0, |(share, _)| share.value());
    let parts = ONCE_PER_CALL.into_iter().map(|(part, what)| (share(part), what));
    let (most, what) = parts.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let times = times_the_iterations(gain.value());
    let all = saved.share.to_string();
    let most = percent(most);
    let sentence = if all == most {
        format!("All IPUs wait {what} for {all} of the run.")
    } else {
        format!("All IPUs wait for the host call for {all} of the run: {most} {what}.")
    };
    let words = FindingWords {
        sentence,
        advice: format!(
            "This time is spent once per call: {times} times the device iterations spread it over \
             {times} times the micro-batches."
        ),
        formula: "cycles of these waits on the critical path / cycles of the run, less the share \
        that remains with more iterations per call",
    };
    let saved = saved.in_part(1.0 - 1.0 / times as f64);
    Some(saved.finding(&RULE, words, more_iterations(facts, times)))
}

/// The factor of the iterations per call that makes the remainder of `gain` negligible: a power of
/// two.
fn times_the_iterations(gain: f64) -> u64 {
    let enough = |times: &u64| gain / (*times as f64) < MIN_SHARE;
    let powers = iter::successors(Some(2), |times| Some(times * 2));
    powers.take_while(|times| *times < MOST_TIMES).find(enough).unwrap_or(MOST_TIMES)
}

/// Proposal to prepare samples sooner.
fn more_workers(facts: &InsightFacts) -> Option<Proposal> {
    let workers = facts.spec_number("options.host.num_workers")?;
    let most = facts.spec_number("options.host.cores")?;
    facts.proposal(
        [
            ("options.host.loader", json!("async")),
            ("options.host.num_workers", json!((workers * 2).min(most.max(workers)))),
        ],
        "Host cores and memory",
    )
}

/// Proposal to share the costs of a call among more iterations.
fn more_iterations(facts: &InsightFacts, times: u64) -> Option<Proposal> {
    let key = "options.device_iterations";
    let iterations = facts.spec_number(key)?.checked_mul(times)?;
    let cost = format!("Results are returned {times} times less often");
    facts.proposal([(key, json!(iterations))], &cost)
}
