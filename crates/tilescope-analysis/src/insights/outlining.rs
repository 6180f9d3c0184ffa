//! Code that is duplicated for each use, on tiles that are short of memory.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::{InsightFacts, InsightFinding, InsightRule};
use serde_json::json;
use tilescope_report::MemoryCategory;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "outlining",
    description: "code on full tiles that identical operations could share",
    keys: &[KEY],
    find,
};

const KEY: &str = "options.enable_outlining";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    shared(facts).into_iter().collect()
}

fn shared(facts: &InsightFacts) -> Option<InsightFinding> {
    use MemoryCategory::{
        Constant, InstrumentationResults, Message, Rearrangement, Stack, Variable, VertexCode,
    };
    // Code of vertices exists only once in any case.
    let is_shared = |category| {
        !matches!(
            category,
            Constant
                | InstrumentationResults
                | Message
                | Rearrangement
                | Stack
                | Variable
                | VertexCode
        )
    };
    let saved = SavedMemory::of(facts, |of| f64::from(is_shared(of.category)))?;
    let proposal = facts.proposal(
        [(KEY, json!(true))],
        "Operands are copied to the addresses that the shared code uses",
    )?;
    let words = MemoryWords {
        what: "Exchange code, control code and vertex state",
        advice: "Outlining stores equal sequences of operations once.".to_owned(),
        formula: "peak live bytes of a tile without any of them / bytes that the fullest tile \
                  needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, proposal))
}
