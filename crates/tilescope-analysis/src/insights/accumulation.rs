//! Weight updates that come too often.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use std::collections::BTreeMap;
use tilescope_report::MarkKind;
use tilescope_report::units::{Cycles, IpuId, percent};

pub(crate) const RULE: InsightRule =
    InsightRule { name: "accumulation", description: "weight updates that are too frequent", find };

/// Updates that take less are well spread.
const MIN_SHARE: f64 = 0.03;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let mut ipus: BTreeMap<Option<IpuId>, Cycles> = BTreeMap::new();
    for mark in facts.marks_of(MarkKind::Update) {
        *ipus.entry(mark.ipu).or_default() += mark.cycles.length();
    }
    let most = ipus.into_iter().max_by_key(|(ipu, cycles)| (*cycles, std::cmp::Reverse(*ipu)));
    let (ipu, cycles) = most.unwrap_or_default();
    let share = facts.share(cycles).min(1.0);
    let steps = facts.batching.map_or(1, |batching| batching.gradient_accumulation);
    if share < MIN_SHARE {
        return Vec::new();
    }
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "Weight updates take {} of the run: one after every {}.",
            percent(share),
            super::pluralised(steps, "micro-batch").replace("batchs", "batches"),
        ),
        advice: format!(
            "gradient_accumulation = {} halves them; the learning rate may need to be adjusted to \
             the larger batch.",
            steps * 2
        ),
        formula: "cycles of weight updates on the IPU with most of them / cycles of the run; \
                  gain: half of it",
        gain: InsightGain::Time(share / 2.0),
        place: ViewLocation {
            ipu,
            cycles: facts
                .marks_of(MarkKind::Update)
                .find(|mark| mark.ipu == ipu)
                .map(|mark| mark.cycles),
            ..ViewLocation::view("execution-trace")
        },
    }]
}
