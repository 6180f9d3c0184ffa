//! Weight updates that come too often.

use super::{Facts, Finding, Gain, Place, Rule, Subject};
use std::collections::BTreeMap;
use tilescope_report::MarkKind;
use tilescope_report::units::percent;

pub(crate) const RULE: Rule =
    Rule { name: "accumulation", looks_for: "weight updates that are too frequent", find };

/// Updates that take less are well spread.
const WORTH: f64 = 0.03;

fn find(facts: &Facts) -> Vec<Finding> {
    let mut ipus: BTreeMap<Option<u32>, u64> = BTreeMap::new();
    for mark in facts.marks_of(MarkKind::Update) {
        *ipus.entry(mark.ipu).or_default() += mark.cycles.length();
    }
    let cycles = ipus.into_values().max().unwrap_or(0);
    let share = facts.share(cycles).min(1.0);
    let steps = facts.batching.map_or(1, |batching| batching.gradient_accumulation);
    if share < WORTH {
        return Vec::new();
    }
    vec![Finding {
        rule: RULE.name,
        subject: Subject::Time,
        sentence: format!(
            "Weight updates take {} of the run: one after every {}.",
            percent(share),
            super::counted(steps, "micro-batch").replace("batchs", "batches"),
        ),
        advice: format!(
            "gradient_accumulation = {} halves them; the learning rate may need to be adjusted to \
             the larger batch.",
            steps * 2
        ),
        formula: "cycles of weight updates on the IPU with most of them / cycles of the run; \
                  gain: half of it",
        gain: Gain::Time(share / 2.0),
        place: Place {
            cycles: facts.marks_of(MarkKind::Update).next().map(|mark| mark.cycles),
            ..Place::view("execution-trace")
        },
    }]
}
