//! Costs of a micro-batch that are independent of its samples.

use super::insight_facts::copies;
use super::run_chains::ChainPart;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject};
use serde_json::json;
use tilescope_report::{ProgramKind, ProgramNode};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "micro_batch",
    description: "handshakes and syncs, a fixed cost per micro-batch",
    keys: &[KEY],
    find,
};

/// Smaller shares are well amortised.
const MIN_SHARE: f64 = 0.03;

/// The key of the number of samples of a micro-batch.
const KEY: &str = "model.batch_size";

/// True if a program moves samples or results over the host link.
fn is_transfer(program: &ProgramNode) -> bool {
    copies(program) && program.kind == ProgramKind::StreamCopyMid
}

/// True if the cycles of a program do not depend on the number of samples.
fn is_fixed(program: &ProgramNode) -> bool {
    program.kind == ProgramKind::Sync || (copies(program) && !is_transfer(program))
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let (Some(samples), Some(_)) = (facts.spec_number(KEY), facts.batching) else {
        return Vec::new();
    };
    let Some(chains) = &facts.chains else { return Vec::new() };
    let cycles =
        |part: ChainPart<'_>| if is_fixed(part.program) { part.cycles.as_f64() } else { 0.0 };
    let saved = chains.gain(&facts.programs, cycles);
    let fixed = chains.share_of_path(&facts.programs, cycles);
    // Larger operations are more efficient, but transfers grow with the samples.
    let gain = facts.gain_of(0.5, |program| !is_transfer(program));
    let busiest = facts.busiest_share(is_fixed).filter(|_| saved.value() >= MIN_SHARE);
    let Some((_, ipu)) = busiest else { return Vec::new() };
    vec![InsightFinding {
        sentence: format!(
            "{fixed} of the critical path goes to handshakes and syncs, a fixed cost per \
             micro-batch of {samples}."
        ),
        advice: format!(
            "Micro-batches of {} halve this cost per sample. The upper bound is larger because some \
             operations may take no longer for twice the samples.",
            samples * 2
        ),
        formula: "everything except host transfers / 2: the longer of the remaining critical path \
                  and the IPU that works longest",
        gain: InsightGain::of_time(gain),
        proposal: facts.proposal(
            [(KEY, json!(samples * 2))],
            "Twice the activation memory; the learning rate may need tuning",
        ),
        place: facts.longest_in_trace(ipu, is_fixed),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
