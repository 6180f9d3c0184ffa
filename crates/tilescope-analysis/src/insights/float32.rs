//! Large float32 variables on the fullest tile at its peak.

use super::saved_memory::{MemoryWords, SavedMemory};
use super::tile_contents::TileVariable;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::{is_float32, is_optimizer_state};
use crate::liveness::LiveVariable;
use serde_json::json;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, percent};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "float32",
    description: "float32 variables that fill the fullest tile",
    keys: &["model.precision"],
    find,
};

/// Smaller shares of the tile do not justify a loss of precision.
const MIN_SHARE: f64 = 0.05;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    halved(facts).or_else(|| wide_at_peak(facts)).into_iter().collect()
}

/// Rule for a program in single precision that fills its tiles.
fn halved(facts: &InsightFacts) -> Option<InsightFinding> {
    const KEY: &str = "model.precision";
    use MemoryCategory::{Constant, Message, Rearrangement, Variable};
    if !facts.is_single_precision() {
        return None;
    }
    // Trained variables keep their precision.
    let is_trained = facts.spec("model.training") == Some("true");
    let stays = |of: &TileVariable| {
        is_trained && (facts.is_weight(of) || is_optimizer_state(&of.name))
            || !matches!(of.category, Constant | Message | Rearrangement | Variable)
    };
    let saved = SavedMemory::of(facts, |of| if stays(of) { 0.0 } else { 0.5 })?;
    let (precision, what) = if is_trained {
        ("mixed", "Activations, gradients and temporaries")
    } else {
        ("float16", "Tensors and temporaries")
    };
    let cost = "Precision: float16 has an 11-bit significand; gradients may need loss scaling";
    let words = MemoryWords {
        what,
        advice: "float16 halves them.".to_owned(),
        formula: "peak live bytes of a tile with half of them / bytes that the fullest tile \
                  needs; the gain is the rest",
    };
    Some(saved.finding(facts, &RULE, words, facts.proposal([(KEY, json!(precision))], cost)?))
}

/// Rule for float32 variables on the fullest tile, for reports of any origin.
fn wide_at_peak(facts: &InsightFacts) -> Option<InsightFinding> {
    let peak = facts.peak.as_ref().filter(|peak| peak.bytes > Bytes::ZERO)?;
    // The largest variables come first.
    let wide = peak.variables.iter().filter(|live| is_float32(&live.about));
    let candidates: Vec<&LiveVariable> = wide.collect();
    let all: Bytes = candidates.iter().map(|live| live.total_bytes()).sum();
    let share = all.as_f64() / peak.bytes.as_f64();
    let first = candidates.first().filter(|_| share >= MIN_SHARE)?;
    let names: Vec<String> = candidates
        .iter()
        .take(3)
        .map(|live| format!("{} ({})", live.name, facts.numbers.bytes(live.total_bytes().0)))
        .collect();
    Some(InsightFinding {
        sentence: format!(
            "float32 variables take {} of tile {} at its peak: {}.",
            percent(share),
            peak.tile,
            names.join(", ")
        ),
        advice: "float16 halves them; weights and activations are the usual candidates.".to_owned(),
        formula: "half of the bytes of float32 variables live on the fullest tile at its peak / \
                  bytes live there",
        gain: InsightGain::Memory(share / 2.0),
        place: ViewLocation {
            program: Some(peak.program),
            variable: Some(first.id),
            ..ViewLocation::view("liveness")
        },
        ..InsightFinding::about(InsightSubject::Memory, &RULE)
    })
}
