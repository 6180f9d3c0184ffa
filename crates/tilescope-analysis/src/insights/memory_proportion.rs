//! Plans of matmuls and convolutions that have too little memory to be fast, or take too much
//! memory.

use super::insight_facts::OperationPlan;
use super::saved_memory::{MemoryWords, SavedMemory};
use super::saved_time::{FindingWords, SavedTime};
use super::tile_contents::TileVariable;
use super::{InsightFacts, InsightFinding, InsightRule};
use crate::label_conventions::is_partials;
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{MemoryCategory, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "memory_proportion",
    description: "matmuls and convolutions whose plans have too little memory, or use too much",
    keys: &[KEY],
    find,
};

/// Smaller shares do not justify another plan.
const MIN_SHARE: f64 = 0.03;

/// Increases of the proportion by smaller factors change few plans.
const LEAST_TIMES: f64 = 1.25;

/// Share of the planned bytes of the largest temporaries at the peak that the proposal leaves them:
/// small enough to force another plan, and large enough that it need not be slow.
const LESS: f64 = 2.0 / 3.0;

/// The smallest proportion of a tile that plans are given, in hundredths.
const LEAST_HUNDREDTHS: f64 = 1.0;

const KEY: &str = "options.available_memory_proportion";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    [larger(facts), smaller(facts)].into_iter().flatten().collect()
}

/// Rounds down to whole hundredths, the resolution at which users set it.
fn hundredths(proportion: f64) -> f64 {
    (proportion * 100.0).floor().max(LEAST_HUNDREDTHS) / 100.0
}

/// Rule for plans that compute in parts one after the other, for lack of memory.
fn larger(facts: &InsightFacts) -> Option<InsightFinding> {
    let now: f64 = facts.spec(KEY)?.parse().ok()?;
    let (_, fullest) = facts.fullest(1).first().copied()?;
    let capacity = facts.target.bytes_per_tile.as_f64().max(1.0);
    // The proportion grows by the free share of the fullest tile.
    let more = hundredths((now + 1.0 - fullest.as_f64() / capacity).min(1.0));
    if more < LEAST_TIMES * now {
        return None;
    }
    let is_limited = |program: &ProgramNode| {
        facts.plan_of(program.operation).is_some_and(OperationPlan::is_limited)
    };
    let gain = facts.gain(|part| {
        let share = facts.wasted_by_plans.get(&part.id).copied();
        // Parts that are computed at the same time need fewer syncs.
        let share = share.unwrap_or(if part.program.is_internal_sync() { 1.0 } else { 0.0 });
        share * part.cycles.as_f64()
    });
    let saved = SavedTime::of(facts, gain, MIN_SHARE, is_limited)?;
    let words = FindingWords {
        sentence: format!(
            "IPU {} spends {} of the run on matmuls and convolutions that are serialised for lack \
             of memory.",
            saved.ipu, saved.share
        ),
        advice: format!("The fullest tile has memory for plans that use {} of it.", percent(more)),
        formula: "cycles of these operations above their minimum, and internal syncs: the longer \
                  of the remaining critical path and the IPU that works longest",
    };
    let proposal = facts.proposal([(KEY, json!(more))], "Larger temporaries in tile memory")?;
    Some(saved.finding(&RULE, words, Some(proposal)))
}

/// Rule for plans whose temporaries fill the tiles.
fn smaller(facts: &InsightFacts) -> Option<InsightFinding> {
    let full = facts.full_tiles.as_ref()?;
    // Rearranged operands have the same size in every plan.
    let is_planned =
        |of: &TileVariable| of.category == MemoryCategory::Message || is_partials(&of.name);
    let plan = |of: &TileVariable| facts.plan_of(of.operation).filter(|_| is_planned(of));
    let peak = full.part_of_peak(|of| plan(of).is_some())?;
    let most = plan(peak.largest)?.temporary_bytes;
    let less = hundredths(LESS * most.as_f64() / full.capacity.as_f64().max(1.0));
    let now = facts.spec(KEY)?.parse::<f64>().unwrap_or(1.0);
    let bound = less * full.capacity.as_f64();
    let is_larger = |plan: &OperationPlan| plan.temporary_bytes.as_f64() > bound;
    let removed = |of: &TileVariable| if plan(of).is_some_and(is_larger) { 1.0 } else { 0.0 };
    let saved = SavedMemory::of(facts, removed).filter(|_| less < now)?;
    let cost = "Matmuls and convolutions are serialised into parts";
    let proposal = facts.proposal([(KEY, json!(less))], cost)?;
    let words = MemoryWords {
        what: "Temporaries of matmuls and convolutions",
        advice: format!(
            "Plans limited to {} of tile memory use smaller temporaries.",
            percent(less)
        ),
        formula: "peak live bytes of a tile without temporaries of the operations that would get \
                  new plans / bytes that the fullest tile needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}
