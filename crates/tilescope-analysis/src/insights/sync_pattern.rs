//! Syncs that stop IPUs which have nothing to do with them.

use super::overlap_io::is_external;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use serde_json::json;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "sync_pattern",
    description: "syncs for the host or streaming memory that stop all IPUs",
    find,
};

/// Less is the price of working in step.
const MIN_SHARE: f64 = 0.02;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let pipelined = facts.spec("options.execution") == Some("pipelined");
    let full = pipelined && facts.spec("options.sync_pattern") == Some("full");
    let waiting = facts.busiest_share(is_external);
    let gain = facts.chains.as_ref().and_then(|chains| chains.gain_without_waits());
    let (true, Some((share, ipu)), Some(gain)) = (full, waiting, gain) else { return Vec::new() };
    if facts.target.ipus_per_replica < 2 || gain < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "IPU {ipu} waits in external syncs for {} of the run; each copy of one IPU with the \
             host or streaming memory stops all of them.",
            percent(share)
        ),
        advice: "With sync_pattern = \"single_pipeline\" such a copy stops its own IPU only."
            .to_owned(),
        formula: "run without any waiting: the IPU that works longest is left",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal(
            [("options.sync_pattern", json!("single_pipeline"))],
            "Nothing, where each IPU has its own copies",
        ),
        measured: None,
        place: ViewLocation {
            ipu: Some(ipu),
            program: facts.longest(ipu, is_external).map(|(program, _)| program),
            cycles: Some(facts.typical_window()),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
