//! Syncs that stop IPUs which have nothing to do with them.

use super::overlap_io::is_external;
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use serde_json::json;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "sync_pattern",
    description: "syncs for the host or streaming memory that stop all IPUs",
    keys: &["options.sync_pattern"],
    find,
};

/// Less is the price of working in step.
const MIN_SHARE: f64 = 0.02;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    // In a sequential pipeline the others have nothing to do meanwhile.
    let pipelined = facts.spec("options.execution") == Some("pipelined")
        && facts.spec("options.pipeline_schedule") != Some("sequential");
    let full = pipelined && facts.spec("options.sync_pattern") == Some("full");
    if !full || facts.target.ipus_per_replica < 2 {
        return Vec::new();
    }
    let gain = facts.chains.as_ref().and_then(|chains| chains.gain_without_waits());
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, is_external) else { return Vec::new() };
    let words = FindingWords {
        sentence: format!(
            "IPU {} waits in external syncs for {} of the run; each copy of one IPU with the \
             host or streaming memory stops all of them.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "With sync_pattern = \"single_pipeline\" such a copy stops its own IPU only."
            .to_owned(),
        formula: "run without any waiting: the IPU that works longest is left",
    };
    let proposal = facts.proposal(
        [("options.sync_pattern", json!("single_pipeline"))],
        "Nothing, where each IPU has its own copies",
    );
    vec![saved.finding(&RULE, words, proposal)]
}
