//! What comes once for each weight update: filling and draining a pipeline, and the update itself.

use super::host_call::awaited_part;
use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::is_ramp;
use serde_json::json;
use tilescope_report::units::{CycleRange, Cycles, percent};
use tilescope_report::{MarkKind, TraceMark};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "accumulation",
    description: "weight updates that are too frequent, pipelines that fill and drain too often",
    keys: &[KEY, ITERATIONS],
    find,
};

/// Less is well spread.
const MIN_SHARE: f64 = 0.02;

/// The key of the micro-batches per weight update.
const KEY: &str = "options.gradient_accumulation";
/// The same for the micro-batches of a call, between which a pipeline stays full where nothing is
/// trained.
const ITERATIONS: &str = "options.device_iterations";

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let is_inference = facts.spec("model.training") == Some("false");
    let steps = match facts.batching {
        None => 1,
        Some(batching) if is_inference => batching.device_iterations,
        Some(batching) => batching.gradient_accumulation,
    };
    let update = facts.share(union(facts.marks_of(MarkKind::Update)));
    let ramps = ramps(facts, steps);
    let once = match ramps {
        Some(ramps) => {
            let calls = facts.gain_of(1.0, |program| awaited_part(program).is_some());
            update + ramps + calls.unwrap_or(0.0)
        }
        None => 1.0 - facts.share(union(facts.marks_of(MarkKind::Stage))),
    };
    let ramps = ramps.unwrap_or(0.0);
    let gain = once.clamp(0.0, 1.0) / 2.0;
    if update + ramps < MIN_SHARE {
        return Vec::new();
    }
    let filling = match ramps {
        ramps if ramps > 0.0 => {
            format!(" and filling and draining the pipeline {}", percent(ramps))
        }
        _ => String::new(),
    };
    let times = super::pluralised(steps, "micro-batch").replace("batchs", "batches");
    let (key, cost, sentence);
    if is_inference {
        key = ITERATIONS;
        cost = "Twice the samples per call: the first ones wait for the last";
        sentence = format!(
            "Filling and draining the pipeline takes {} of the run, once for every {times}.",
            percent(ramps)
        );
    } else {
        key = KEY;
        cost = "Twice the samples per weight update: the learning rate may need to be adjusted";
        sentence = format!(
            "Weight updates take {} of the run{filling}, once for every {times}.",
            percent(update)
        );
    }
    let name = key.trim_start_matches("options.");
    let first = facts.marks_of(MarkKind::Phase).find(|mark| is_ramp(mark));
    let first = first.or_else(|| facts.marks_of(MarkKind::Update).next());
    vec![InsightFinding {
        sentence,
        advice: format!("With {name} = {} they come half as often.", steps * 2),
        formula: "union of the updates, what phases take beyond one mean slot of the main phase per \
                  micro-batch, and waits for the host call, or without a pipeline all that is in no \
                  stage, / cycles of the run; gain: half of it",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal([(key, json!(steps * 2))], cost),
        place: ViewLocation {
            ipu: first.and_then(|mark| mark.ipu),
            cycles: first.map(|mark| mark.cycles),
            ..ViewLocation::view("execution-trace")
        },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}

/// Cycles that are in at least one mark.
pub(super) fn union<'a>(marks: impl Iterator<Item = &'a TraceMark>) -> Cycles {
    let mut ranges: Vec<CycleRange> = marks.map(|mark| mark.cycles).collect();
    ranges.sort_by_key(|range| range.start);
    let mut covered = Cycles::ZERO;
    let mut end = Cycles::ZERO;
    for range in ranges {
        let start = range.start.max(end);
        if range.end > start {
            covered += range.end - start;
            end = range.end;
        }
    }
    covered
}

/// The time from slot to slot within each of these phases, added up, and how often one follows another.
fn between_starts(facts: &InsightFacts, phases: &[&TraceMark]) -> (Cycles, usize) {
    let mut starts: Vec<Cycles> =
        facts.marks_of(MarkKind::Slot).map(|slot| slot.cycles.start).collect();
    starts.sort();
    let before = |cycle: Cycles| starts.partition_point(|start| *start < cycle);
    let (mut between, mut count) = (Cycles::ZERO, 0);
    for phase in phases {
        let inside = &starts[before(phase.cycles.start)..before(phase.cycles.end)];
        if let [first, .., last] = inside {
            between += *last - *first;
            count += inside.len() - 1;
        }
    }
    (between, count)
}

/// What the phases take beyond one main slot per micro-batch, as a share of the run: in a pipeline
/// that is full, a micro-batch costs one slot.
fn ramps(facts: &InsightFacts, steps: u64) -> Option<f64> {
    let phases: Vec<&TraceMark> = facts.marks_of(MarkKind::Phase).collect();
    let main: Vec<&TraceMark> = phases.iter().copied().filter(|mark| !is_ramp(mark)).collect();
    let inside = |slot: &&TraceMark| main.iter().any(|phase| phase.cycles.overlaps(slot.cycles));
    let slots: Vec<Cycles> =
        facts.marks_of(MarkKind::Slot).filter(inside).map(|slot| slot.cycles.length()).collect();
    if slots.is_empty() || steps == 0 || main.len() == phases.len() {
        return None;
    }
    // Where copies of one slot go on beside compute of the next, slots overlap: what a micro-batch
    // costs is the time from one start to the next.
    let (between, count) = between_starts(facts, &main);
    let mean = slots.iter().sum::<Cycles>().as_f64() / slots.len() as f64;
    let mean = match count {
        0 => mean,
        count => mean.min(between.as_f64() / count as f64),
    };
    let all: Cycles = phases.iter().map(|mark| mark.cycles.length()).sum();
    // Every iteration has one main phase.
    let full = mean * steps as f64 * main.len() as f64;
    Some(((all.as_f64() - full) / facts.cycles().max(Cycles(1)).as_f64()).clamp(0.0, 1.0))
}
