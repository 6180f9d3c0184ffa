//! Time that goes to remote buffers.

use super::insight_facts::activity;
use super::overlap_io::is_external;
use super::run_chains::ChainPart;
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{ProgramNode, StepActivity};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "remote_buffers",
    description: "time spent on remote buffers",
    keys: &KINDS,
    find,
};

/// Smaller shares are well spent.
const MIN_SHARE: f64 = 0.02;

/// The keys of what may be in streaming memory.
const KINDS: [&str; 4] = [
    "options.location.optimizer_state.on_chip",
    "options.location.accumulators.on_chip",
    "options.location.activations.on_chip",
    "options.location.weights.on_chip",
];

fn remote(program: &ProgramNode) -> bool {
    activity(program) == StepActivity::RemoteBuffer
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    // Each of these copies has a sync, which may stop all IPUs.
    let removed = |part: ChainPart<'_>| match remote(part.program) || is_external(part.program) {
        true => part.cycles.as_f64(),
        false => 0.0,
    };
    let chains = facts.chains.as_ref();
    let gain = match facts.target.ipus_per_replica {
        0 | 1 => facts.gain(removed),
        _ => chains.and_then(|chains| chains.gain_without_syncs(&facts.programs, removed)),
    };
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, remote) else { return Vec::new() };
    // Weight updates are in no typical iteration.
    let saved = saved.anywhere();
    let on_chip = KINDS.map(|kind| (kind, json!(true)));
    let words = FindingWords {
        sentence: format!(
            "IPU {} reads and writes remote buffers for {} of the run.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "Keep what fits on the IPU, offload optimiser state only, or overlap the copies \
                 with I/O tiles."
            .to_owned(),
        formula: "run without copies with remote buffers and external syncs: what is left of the IPU that \
                  works longest",
    };
    let proposal = facts.proposal(on_chip, "Tile memory for what streaming memory holds now");
    vec![saved.finding(&RULE, words, proposal)]
}
