//! Time that a host call takes around the program.

use super::{
    InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, Proposal, ViewLocation,
};
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{HostCallPart, ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "host_call",
    description: "time in which all IPUs wait for a part of the host call",
    find,
};

/// Smaller shares are the price of calling at all.
const MIN_SHARE: f64 = 0.02;

/// The part of a host call that a program waits for.
pub(crate) fn awaited_part(program: &ProgramNode) -> Option<HostCallPart> {
    (program.kind == ProgramKind::Sync).then(|| HostCallPart::of_sync(&program.name)).flatten()
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    HostCallPart::ALL.into_iter().filter_map(|part| finding(facts, part)).collect()
}

fn finding(facts: &InsightFacts, part: HostCallPart) -> Option<InsightFinding> {
    let waits = |program: &ProgramNode| awaited_part(program) == Some(part);
    let (share, ipu) = facts.busiest_share(waits)?;
    let gain = facts.gain_of(1.0, waits).filter(|gain| *gain >= MIN_SHARE)?;
    let per_call = "More device iterations per call share this time: it is spent once per call.";
    let (what, advice) = match part {
        HostCallPart::Loader => (
            "the loader to have the samples of the call ready",
            "Load asynchronously, with more workers as far as the host has cores, or cheaper \
             preprocessing; see the rate of the loader alone.",
        ),
        HostCallPart::Framework => ("the framework before the program is launched", per_call),
        HostCallPart::Launch => ("the launch of the program", per_call),
        HostCallPart::Results => ("the framework to hand back the results", per_call),
        HostCallPart::Handshake | HostCallPart::Program => return None,
    };
    Some(InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!("All IPUs wait for {what} for {} of the run.", percent(share)),
        advice: advice.to_owned(),
        formula: "cycles of that wait on the critical path / cycles of the run; half of it, where \
                  twice the iterations share it",
        gain: InsightGain::Time(if part == HostCallPart::Loader { gain } else { gain / 2.0 }),
        proposal: proposal(facts, part),
        measured: None,
        place: ViewLocation {
            ipu: Some(ipu),
            program: facts.longest(ipu, waits).map(|(program, _)| program),
            ..ViewLocation::view("execution-trace")
        },
    })
}

/// What makes the wait for a part of the host call shorter.
fn proposal(facts: &InsightFacts, part: HostCallPart) -> Option<Proposal> {
    if part == HostCallPart::Loader {
        let workers = facts.spec_number("options.host.num_workers")?;
        let most = facts.spec_number("options.host.cores")?;
        return facts.proposal(
            [
                ("options.host.loader", json!("async")),
                ("options.host.num_workers", json!((workers * 2).min(most.max(workers)))),
            ],
            "Cores and memory of the host",
        );
    }
    let iterations = facts.spec_number("options.device_iterations")?;
    let key = "options.device_iterations";
    facts.proposal([(key, json!(iterations * 2))], "Results come back half as often")
}
