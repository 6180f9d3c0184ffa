//! IPUs that wait for the host to be ready.

use super::insight_facts::{activity, largest};
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject};
use crate::trace::{ProgramShare, RunShare};
use serde_json::json;
use std::collections::BTreeMap;
use tilescope_report::units::IpuId;
use tilescope_report::{ProgramKind, ProgramNode, StepActivity};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "host_wait",
    description: "time spent waiting for the host (StreamCopyBegin)",
    keys: &["options.host.stream_callbacks_multi_thread_mode", DEPTH],
    find,
};

/// Smaller shares are the price of talking at all.
const MIN_SHARE: f64 = 0.02;

/// The key of the micro-batches that the host prepares ahead.
const DEPTH: &str = "options.prefetch_depth";

/// Whether a program waits for the host.
pub(crate) fn waits(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::StreamCopyBegin && activity(program) == StepActivity::Host
}

/// Share of the run in which the IPU that waits most is held up in StreamCopyBegin by a host that is
/// not ready, and that IPU. Every copy begins with a handshake, however ready the host is: the
/// shortest of them is no wait.
pub(crate) fn waiting_share(facts: &InsightFacts) -> Option<(RunShare, IpuId)> {
    let begins = facts.programs_that(waits);
    let runs = facts.runs.as_ref()?;
    let begins: Vec<ProgramShare> =
        runs.shares().filter(|of| begins.contains(&of.program) && of.steps > 0).collect();
    let handshake = begins.iter().map(|of| of.share * (1.0 / of.steps as f64));
    let handshake = handshake.reduce(RunShare::min)?;
    let mut sums: BTreeMap<IpuId, RunShare> = BTreeMap::new();
    for of in begins {
        let sum = sums.entry(of.ipu).or_insert_with(|| runs.whole().nothing());
        *sum = *sum + (of.share - handshake * of.steps as f64).clamped();
    }
    let (ipu, share) = largest(&sums)?;
    Some((share, ipu))
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some((share, ipu)) = waiting_share(facts) else { return Vec::new() };
    let Some(chains) = &facts.chains else { return Vec::new() };
    let gain = chains.gain(&facts.programs, |part| {
        if waits(part.program) { chains.waiting(part).as_f64() } else { 0.0 }
    });
    if share.value() < MIN_SHARE || gain.value() < MIN_SHARE {
        return Vec::new();
    }
    let depth = facts.spec_number(DEPTH).unwrap_or(1);
    vec![InsightFinding {
        sentence: format!(
            "IPU {ipu} waits for the host in StreamCopyBegin for {share} of the run."
        ),
        advice: "The host is late: prepare micro-batches ahead, run stream callbacks on several \
                 threads, or send fewer bytes per sample."
            .to_owned(),
        formula: "cycles of StreamCopyBegin with the host on that IPU, less the shortest handshake \
                  for each, / cycles of the run",
        // Without known handshakes the path takes all of a copy's begin for waiting.
        gain: InsightGain::Time(gain.min(share)),
        proposal: facts.proposal(
            [
                (DEPTH, json!(depth.max(2) + 1)),
                ("options.host.stream_callbacks_multi_thread_mode", json!("dedicated")),
            ],
            "Host memory and cores",
        ),
        place: facts.longest_in_trace(ipu, waits),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
