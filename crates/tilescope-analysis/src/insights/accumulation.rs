//! Costs per weight update: filling and draining a pipeline, and the update itself.

use super::host_call::awaited_part;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::trace::{RunMarks, RunShare, WindowMark};
use serde_json::json;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "accumulation",
    description: "weight updates that are too frequent, pipelines that fill and drain too often",
    keys: &[KEY, ITERATIONS],
    find,
};

/// Smaller shares are well amortised.
const MIN_SHARE: f64 = 0.02;

/// The key of the number of micro-batches per weight update.
const KEY: &str = "options.gradient_accumulation";
/// The key of the number of micro-batches of a call: in inference, a pipeline stays full between
/// them.
const ITERATIONS: &str = "options.device_iterations";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let is_inference = facts.spec("model.training") == Some("false");
    let steps = match facts.batching {
        None => 1,
        Some(batching) if is_inference => batching.device_iterations,
        Some(batching) => batching.gradient_accumulation,
    };
    let RunMarks { updates, stages, phases, .. } = &facts.marks;
    let update = updates.union().of_run();
    let ramps = ramps(facts);
    let once = match ramps {
        Some(ramps) => {
            let calls = facts.gain_of(1.0, |program| awaited_part(program).is_some());
            calls.map_or(update + ramps, |calls| update + ramps + calls)
        }
        None => stages.union().of_run().rest(),
    };
    let ramps = ramps.unwrap_or_else(|| updates.nothing().of_run());
    if (update + ramps).value() < MIN_SHARE {
        return Vec::new();
    }
    let filling = if ramps.value() > 0.0 {
        format!(" and filling and draining the pipeline {ramps}")
    } else {
        String::new()
    };
    let times = super::pluralised(steps, "micro-batch").replace("batchs", "batches");
    let (key, cost, sentence);
    if is_inference {
        key = ITERATIONS;
        cost = "Each call takes twice the samples and returns its first results later";
        sentence =
            format!("The pipeline takes {ramps} of the run to fill and drain, once per {times}.");
    } else {
        key = KEY;
        cost = "Each weight update uses twice the samples: the learning rate may need tuning";
        sentence = format!("Weight updates take {update} of the run{filling}, once per {times}.");
    }
    let name = key.trim_start_matches("options.");
    let first = phases.iter().find(|phase| phase.is_ramp()).or_else(|| updates.iter().next());
    vec![InsightFinding {
        sentence,
        advice: format!("{name} = {} halves how often this happens.", steps * 2),
        formula: "union of the updates, cycles of phases beyond one mean slot of the main phase \
        per micro-batch, and waits for the host call (without a pipeline: all cycles outside \
        stages) / cycles of the run; gain: half of it",
        gain: InsightGain::Time(once.clamped() * 0.5),
        proposal: facts.proposal([(key, json!(steps * 2))], cost),
        place: first.map_or_else(|| ViewLocation::view("execution-trace"), |mark| mark.place()),
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}

/// The share of the phases beyond one main slot per micro-batch: in a full pipeline, a micro-batch
/// costs one slot.
fn ramps(facts: &InsightFacts) -> Option<RunShare> {
    let RunMarks { phases, slots, .. } = &facts.marks;
    let is_main = |phase: WindowMark<'_>| !phase.is_ramp();
    let mains = phases.count_of_run(is_main);
    if phases.iter().all(is_main) || mains == 0.0 {
        return None;
    }
    // There is one main phase per weight update, or per call if a pipeline stays full across
    // updates.
    let micro_batches = facts.batching.map_or(1.0, |batching| {
        batching.gradient_accumulation as f64 * batching.device_iterations as f64 / mains
    });
    let pace = slots.pace_within(&phases.ranges(is_main))?;
    let all = phases.iter().fold(phases.nothing(), |sum, phase| sum + phase.length());
    let full = phases.at_pace(pace, micro_batches, is_main);
    Some((all - full).clamped().of_run())
}
