//! Results that go to the host though nobody waits for each of them.

use super::overlap_io::copies;
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::is_to_host;
use serde_json::json;
use tilescope_report::ProgramNode;
use tilescope_report::units::percent;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "output_mode",
    description: "results of every micro-batch of a training run that go to the host",
    keys: &["options.output_mode"],
    find,
};

/// Smaller shares are worth their results.
const MIN_SHARE: f64 = 0.01;

fn returns(program: &ProgramNode) -> bool {
    copies(program) && is_to_host(&program.name)
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let all = facts.spec("options.output_mode") == Some("all");
    if !all || facts.spec("model.training") != Some("true") {
        return Vec::new();
    }
    // Each of them has a sync of its own, as has every copy with the host.
    let syncs = facts.count_of(returns) as f64 / facts.count_of(copies).max(1) as f64;
    // I/O tiles that return results hold up those that take in samples, at the syncs of both: without
    // such a sync, neither needs to be on the critical path.
    let has_io_tiles = facts.target.io_tiles_per_ipu > 0;
    let gain = facts.gain(|part| match part.program {
        program if returns(program) => part.cycles.as_f64(),
        program if has_io_tiles && copies(program) => part.cycles.as_f64(),
        program if super::overlap_io::is_external(program) => syncs * part.cycles.as_f64(),
        _ => 0.0,
    });
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, returns) else { return Vec::new() };
    let words = FindingWords {
        sentence: format!(
            "IPU {} returns the results of every micro-batch, for {} of the run.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "Training rarely needs more than the final results of a call.".to_owned(),
        formula: "run without copies to the host and their share of external syncs: what is left of \
                  the critical path, and of the IPU that works longest",
    };
    let proposal = facts.proposal(
        [("options.output_mode", json!("final"))],
        "Only the results of the last micro-batch of a call are returned",
    );
    vec![saved.finding(&RULE, words, proposal)]
}
