//! Samples that cross from the host in a wider type than they need.

use super::overlap_io::copies;
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::is_to_host;
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "input_type",
    description: "samples that cross from the host in a wide type",
    keys: &["options.input_type"],
    find,
};

/// Smaller shares are not worth a cast.
const MIN_SHARE: f64 = 0.02;

fn transfers(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::StreamCopyMid && copies(program) && !is_to_host(&program.name)
}

/// Models whose samples are pictures: 8 bits for each colour of a pixel.
const OF_PICTURES: [&str; 5] = ["classification", "mnist", "resnet18", "resnet50", "vit"];

/// The share of its bytes that a sample loses as uint8.
fn saved_bytes(facts: &InsightFacts) -> Option<f64> {
    facts.spec("model.name").filter(|name| OF_PICTURES.contains(name))?;
    let precision = facts.spec("model.precision")?;
    match facts.spec("options.input_type")? {
        "float32" => Some(0.75),
        "float16" => Some(0.5),
        "model" => Some(if precision == "float32" { 0.75 } else { 0.5 }),
        _ => None,
    }
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let Some(less) = saved_bytes(facts) else { return Vec::new() };
    let gain = facts.gain_of(less, transfers);
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, transfers) else { return Vec::new() };
    let words = FindingWords {
        sentence: format!(
            "IPU {} takes in samples over the host link for {} of the run.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: format!(
            "Pictures of 8 bits a colour can cross as bytes and be cast on the IPU: \
             {} less to move.",
            percent(less)
        ),
        formula: "transfers of samples x the share of their bytes that is saved: what is left of \
                  the critical path, and of the IPU that works longest",
    };
    let proposal = facts.proposal(
        [("options.input_type", json!("uint8"))],
        "Samples must fit in a byte per element; the IPU casts them",
    );
    vec![saved.finding(&RULE, words, proposal)]
}
