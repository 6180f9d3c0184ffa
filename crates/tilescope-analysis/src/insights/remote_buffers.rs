//! Time that goes to remote buffers.

use super::insight_facts::activity;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use tilescope_report::units::percent;
use tilescope_report::{ProgramNode, StepActivity};

pub(crate) const RULE: InsightRule =
    InsightRule { name: "remote_buffers", description: "time spent on remote buffers", find };

/// Smaller shares are well spent.
const MIN_SHARE: f64 = 0.02;

fn remote(program: &ProgramNode) -> bool {
    activity(program) == StepActivity::RemoteBuffer
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some((share, ipu)) = facts.busiest_share(remote).filter(|(share, _)| *share >= MIN_SHARE)
    else {
        return Vec::new();
    };
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "IPU {ipu} reads and writes remote buffers for {} of the run.",
            percent(share)
        ),
        advice: "Keep what fits on the IPU, offload optimiser state only, or overlap the copies \
                 with I/O tiles."
            .to_owned(),
        formula: "cycles of stream copies with remote buffers on that IPU / cycles of the run",
        gain: InsightGain::Time(share),
        place: ViewLocation {
            ipu: Some(ipu),
            program: facts.longest(ipu, remote).map(|(program, _)| program),
            cycles: Some(facts.typical_window()),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
