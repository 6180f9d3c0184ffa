//! Single precision where half would do.

use super::overlap_io::copies;
use super::saved_time::{FindingWords, SavedTime};
use super::{InsightFacts, InsightFinding, InsightRule};
use serde_json::json;
use tilescope_report::units::percent;
use tilescope_report::{ModelOperation, ProgramKind, ProgramNode, TrainingPass};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "precision",
    description: "compute, exchange and copies in single precision",
    keys: &[KEY],
    find,
};

/// Less is not worth losing digits.
const MIN_SHARE: f64 = 0.05;

/// The key of the element type.
const KEY: &str = "model.precision";

/// Whether the cycles of a program depend on the width of elements. Weights are as wide as before,
/// and so are their updates.
fn depends(program: &ProgramNode, operations: &[ModelOperation]) -> bool {
    let operation = program.operation.and_then(|id| operations.get(id.index()));
    if operation.is_some_and(|operation| operation.pass == TrainingPass::Update) {
        return false;
    }
    use ProgramKind::{DoExchange, GlobalExchange, OnTileExecute, StreamCopyMid};
    match program.kind {
        OnTileExecute | DoExchange | GlobalExchange => true,
        StreamCopyMid => copies(program),
        _ => false,
    }
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    if facts.spec(KEY) != Some("float32") {
        return Vec::new();
    }
    let depends = |program: &ProgramNode| depends(program, &facts.operations);
    let gain = facts.gain_of_work(0.5, depends);
    let Some(saved) = SavedTime::of(facts, gain, MIN_SHARE, depends) else { return Vec::new() };
    let words = FindingWords {
        sentence: format!(
            "IPU {} computes with and moves 32-bit elements for {} of the run.",
            saved.ipu,
            percent(saved.share)
        ),
        advice: "In mixed precision everything but the weights is half as wide.".to_owned(),
        formula: "compute sets, exchanges and transfers without their starts / 2: what is left of the \
                  critical path, and of the IPU that works longest",
    };
    let proposal = facts.proposal(
        [(KEY, json!("mixed"))],
        "Digits: half precision has 11 bits, and gradients may need loss scaling",
    );
    vec![saved.finding(&RULE, words, proposal)]
}
