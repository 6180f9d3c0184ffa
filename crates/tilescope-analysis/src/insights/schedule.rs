//! Schedules in which IPUs wait for each other's stages, or that store more activations than fit on
//! the tiles.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::is_stash;
use serde_json::json;
use tilescope_report::ProgramNode;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "schedule",
    description: "schedules in which stages wait for one another, or stash too many activations",
    keys: &[EXECUTION, SCHEDULE, "options.overlap_io"],
    find,
};

/// Smaller shares are the cost of synchronous execution.
const MIN_SHARE: f64 = 0.02;

const EXECUTION: &str = "options.execution";
const SCHEDULE: &str = "options.pipeline_schedule";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    if facts.target.ipus_per_replica < 2 {
        return Vec::new();
    }
    [grouped(facts), interleaved(facts)].into_iter().flatten().collect()
}

/// Rule for stages that could work at the same time.
fn grouped(facts: &InsightFacts) -> Option<InsightFinding> {
    let execution = facts.spec(EXECUTION)?;
    let schedule = facts.spec(SCHEDULE)?;
    let one_after_the_other = match (execution, schedule) {
        ("sharded", _) | ("pipelined", "sequential") => true,
        ("pipelined", "interleaved") => false,
        _ => return None,
    };
    let batching = facts.batching?;
    // A pipeline is filled and drained for each weight update, or for each call in inference.
    let micro_batches = match facts.spec("model.training") {
        Some("true") => batching.gradient_accumulation,
        _ => batching.gradient_accumulation.saturating_mul(batching.device_iterations),
    };
    if micro_batches < 2 {
        return None;
    }
    let gain = facts.chains.as_ref()?.gain_without_waits();
    // A typical slot is a short one without the longest waits.
    let saved = SavedTime::of(facts, gain, MIN_SHARE, ProgramNode::is_external_sync)?.anywhere();
    let how = if one_after_the_other {
        "stages run one after another"
    } else {
        "stages in the forward pass wait for stages in the backward pass"
    };
    let words = FindingWords {
        sentence: format!(
            "IPU {} spends {} of the run in external syncs: {how}.",
            saved.ipu, saved.share
        ),
        advice:
            "In a grouped pipeline all stages run at the same time, each on its own micro-batch: \
             first the forward passes of a slot, then the backward passes."
                .to_owned(),
        formula: "cycles of the run without any waiting: those of the IPU that works longest",
    };
    let proposal = facts.proposal(
        [(EXECUTION, json!("pipelined")), (SCHEDULE, json!("grouped"))],
        "Stashes hold the activations of all micro-batches in flight",
    )?;
    Some(saved.finding(&RULE, words, Some(proposal)))
}

/// Rule for stashes that could hold about half as many micro-batches.
fn interleaved(facts: &InsightFacts) -> Option<InsightFinding> {
    let is_grouped = facts.spec(EXECUTION) == Some("pipelined")
        && facts.spec(SCHEDULE) == Some("grouped")
        && facts.spec("model.training") == Some("true");
    // The number of entries goes from 2 n - 1 to n.
    let removed =
        |of: &super::tile_contents::TileVariable| if is_stash(&of.name) { 0.5 } else { 0.0 };
    let saved = SavedMemory::of(facts, removed).filter(|_| is_grouped)?;
    // Copies overlap only in a grouped pipeline.
    let changes = [(SCHEDULE, json!("interleaved")), ("options.overlap_io", json!("none"))];
    let proposal = facts.proposal(changes, "Stages wait for one another in every slot")?;
    let words = MemoryWords {
        what: "Stashed activations",
        advice: "An interleaved pipeline stashes about half as many micro-batches.".to_owned(),
        formula: "peak live bytes of a tile with half of all stashes / bytes that the fullest \
                  tile needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}
