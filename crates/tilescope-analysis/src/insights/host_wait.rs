//! Waits of IPUs for the host.

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
    keys: &["options.host.stream_callbacks_multi_thread_mode", DEPTH, INSTANCES],
    find,
};

/// Smaller shares are an unavoidable cost of communication.
const MIN_SHARE: f64 = 0.02;

/// The key of the number of micro-batches that the host prepares ahead.
const DEPTH: &str = "options.prefetch_depth";

/// The key of the number of host processes, each with a separate loader.
const INSTANCES: &str = "options.num_instances";

/// True if a program waits for the host.
pub(crate) fn waits(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::StreamCopyBegin && activity(program) == StepActivity::Host
}

/// The largest share of the run that any IPU waits in StreamCopyBegin for a host that is not ready,
/// and that IPU. Every copy begins with a handshake, even if the host is ready, so the shortest one
/// does not count as a wait.
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
    let instances = more_instances(facts, gain, ipu);
    let late = InsightFinding {
        sentence: format!(
            "IPU {ipu} waits for the host in StreamCopyBegin for {share} of the run."
        ),
        advice: "The host is too slow: prefetch micro-batches, run stream callbacks on several \
        threads, or send fewer bytes per sample."
            .to_owned(),
        formula: "(cycles of StreamCopyBegin with the host on that IPU - shortest handshake for \
        each) / cycles of the run",
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
    };
    std::iter::once(late).chain(instances).collect()
}

/// More host processes, where several replicas share one.
fn more_instances(facts: &InsightFacts, gain: RunShare, ipu: IpuId) -> Option<InsightFinding> {
    let instances = facts.spec_number(INSTANCES)?.max(1);
    let replicas = facts.spec_number("options.replication_factor")?;
    let more = (instances + 1..=replicas).find(|count| replicas.is_multiple_of(*count))?;
    let (plural, verb) = if instances == 1 { ("", "loads") } else { ("es", "load") };
    Some(InsightFinding {
        sentence: format!(
            "{instances} host process{plural} {verb} the samples of {replicas} replicas, and IPU {ipu} \
             waits for them."
        ),
        advice: format!("{more} processes (poprun --num-instances) each have a separate loader."),
        formula: "the waits of host_wait on the critical path / cycles of the run",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal([(INSTANCES, json!(more))], "Host cores and memory"),
        place: facts.longest_in_trace(ipu, waits),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    })
}
