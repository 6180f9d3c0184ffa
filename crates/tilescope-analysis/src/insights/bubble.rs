//! Slots of a pipeline in which not all stages work.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::is_ramp;
use tilescope_report::units::{Cycles, percent};
use tilescope_report::{MarkKind, TraceMark};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "bubble",
    description: "time that a pipeline spends filling and draining",
    find,
};

/// A smaller share is not worth more latency and stash.
const MIN_SHARE: f64 = 0.03;

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let steps = facts.batching.map_or(0, |batching| batching.gradient_accumulation);
    let Some(share) = bubble(facts, steps).filter(|share| *share >= MIN_SHARE) else {
        return Vec::new();
    };
    let ramp = facts.marks_of(MarkKind::Phase).find(|mark| is_ramp(mark));
    vec![InsightFinding {
        rule: RULE.name,
        subject: InsightSubject::Time,
        sentence: format!(
            "Filling and draining the pipeline costs {} of the run, with {steps} micro-batches per \
             update.",
            percent(share),
        ),
        advice: format!(
            "With gradient_accumulation = {} instead of {steps} it fills and drains half as often \
             per sample.",
            steps * 2
        ),
        formula: "1 - micro-batches x mean slot of the main phase / cycles of all phases, as a \
                  share of the run; gain: half of it",
        gain: InsightGain::Time(share / 2.0),
        place: ViewLocation {
            cycles: ramp.map(|mark| mark.cycles),
            ..ViewLocation::view("execution-trace")
        },
    }]
}

/// What the phases take beyond one main slot per micro-batch, as a share of the run: in a pipeline
/// that is full, a micro-batch costs one slot.
fn bubble(facts: &InsightFacts, steps: u64) -> Option<f64> {
    let phases: Vec<&TraceMark> = facts.marks_of(MarkKind::Phase).collect();
    let main: Vec<&TraceMark> = phases.iter().copied().filter(|mark| !is_ramp(mark)).collect();
    let inside = |slot: &&TraceMark| main.iter().any(|phase| phase.cycles.overlaps(slot.cycles));
    let slots: Vec<Cycles> =
        facts.marks_of(MarkKind::Slot).filter(inside).map(|slot| slot.cycles.length()).collect();
    if slots.is_empty() || steps == 0 || main.len() == phases.len() {
        return None;
    }
    let mean = slots.iter().sum::<Cycles>().as_f64() / slots.len() as f64;
    let all: Cycles = phases.iter().map(|mark| mark.cycles.length()).sum();
    // Every iteration has one main phase.
    let full = mean * steps as f64 * main.len() as f64;
    Some(((all.as_f64() - full) / facts.cycles().max(Cycles(1)).as_f64()).clamp(0.0, 1.0))
}
