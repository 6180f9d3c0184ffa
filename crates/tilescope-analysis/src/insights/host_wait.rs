//! IPUs that wait for the host to be ready.

use super::insight_facts::activity;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::units::percent;
use tilescope_report::{ProgramKind, ProgramNode, StepActivity};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "host_wait",
    description: "time spent waiting for the host (StreamCopyBegin)",
    find,
};

/// Smaller shares are the price of talking at all.
const MIN_SHARE: f64 = 0.02;

/// Whether a program waits for the host.
pub(crate) fn waits(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::StreamCopyBegin && activity(program) == StepActivity::Host
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some((share, ipu)) = facts.busiest_share(waits).filter(|(share, _)| *share >= MIN_SHARE)
    else {
        return Vec::new();
    };
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "IPU {ipu} waits for the host in StreamCopyBegin for {} of the run.",
            percent(share)
        ),
        advice: "The host is not ready in time: prepare batches ahead, use more loader workers, \
                 or run more device iterations per call."
            .to_owned(),
        formula: "cycles of StreamCopyBegin with the host on that IPU / cycles of the run",
        gain: InsightGain::Time(share),
        place: ViewLocation {
            ipu: Some(ipu),
            program: facts.longest(ipu, waits).map(|(program, _)| program),
            cycles: Some(facts.typical_window()),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
