//! One stage of a pipeline that all others wait for.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{Cycles, IpuId, percent};
use tilescope_report::{MarkKind, TraceMark, TrainingPass};

pub(crate) const RULE: InsightRule = InsightRule {
    name: "stage_balance",
    description: "a stage that takes longer than the others",
    keys: &["options.auto_stage", "options.stages"],
    find,
};

/// Stages that differ less are as balanced as layers allow.
const MIN_RATIO: f64 = 1.15;

/// Passes of a stage.
#[derive(Default)]
struct PipelineStageTimes<'a> {
    name: &'a str,
    ipu: Option<IpuId>,
    /// Cycles and number of its passes, by pass.
    passes: BTreeMap<Option<TrainingPass>, (Cycles, u64)>,
    longest: Option<&'a TraceMark>,
    /// The longest in a typical slot: what fills a pipeline also waits for it to be filled.
    longest_of_typical: Option<&'a TraceMark>,
}

impl PipelineStageTimes<'_> {
    /// Cycles of one micro-batch: the mean of each pass, added up.
    fn cycles(&self) -> Cycles {
        self.passes.values().map(|(cycles, count)| *cycles / (*count).max(1)).sum()
    }
}

/// `B1 forward` and `B1 backward` are passes of one stage.
fn stage_name(mark: &TraceMark) -> &str {
    mark.label.split(' ').next().unwrap_or(&mark.label)
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let mut stages: BTreeMap<&str, PipelineStageTimes<'_>> = BTreeMap::new();
    for mark in facts.marks_of(MarkKind::Stage) {
        let name = stage_name(mark);
        let stage = stages.entry(name).or_default();
        stage.name = name;
        stage.ipu = mark.ipu;
        let pass = stage.passes.entry(mark.pass).or_default();
        *pass = (pass.0 + mark.cycles.length(), pass.1 + 1);
        let length = |mark: &TraceMark| mark.cycles.length();
        let typical = mark.cycles.overlaps(facts.typical_window());
        for (longest, counts) in
            [(&mut stage.longest, true), (&mut stage.longest_of_typical, typical)]
        {
            if counts && longest.is_none_or(|known| length(mark) > length(known)) {
                *longest = Some(mark);
            }
        }
    }
    let Some(slowest) = stages.values().max_by_key(|stage| stage.cycles()) else {
        return Vec::new();
    };
    let shown = slowest.longest_of_typical.or(slowest.longest);
    // Stages that work at other times wait for nobody: those of one IPU after the other, or steps
    // of IPUs that share the rows of a field.
    let beside: BTreeSet<&str> = facts
        .marks_of(MarkKind::Stage)
        .filter(|mark| shown.is_some_and(|shown| mark.cycles.overlaps(shown.cycles)))
        .map(stage_name)
        .collect();
    stages.retain(|name, _| beside.contains(name));
    let Some(slowest) = stages.values().max_by_key(|stage| stage.cycles()) else {
        return Vec::new();
    };
    let mean = stages.values().map(PipelineStageTimes::cycles).sum::<Cycles>().as_f64()
        / stages.len() as f64;
    let times = slowest.cycles().as_f64() / mean.max(1.0);
    if stages.len() < 2 || times < MIN_RATIO {
        return Vec::new();
    }
    // Each micro-batch would be shorter by what the slowest stage takes beyond the mean.
    let batches = slowest.passes.values().map(|(_, count)| *count).max().unwrap_or(0);
    let spared = (slowest.cycles().as_f64() - mean) * batches as f64;
    let spared = (spared / facts.cycles().max(Cycles(1)).as_f64()).clamp(0.0, 1.0);
    let even = facts.chains.as_ref().and_then(|chains| chains.gain_of_even_work());
    let gain = even.map_or(spared, |even| even.min(spared));
    let on = slowest.ipu.map_or(String::new(), |ipu| format!(" on IPU {ipu}"));
    vec![InsightFinding {
        sentence: format!(
            "Stage {}{on} takes {} cycles per micro-batch, {times:.1} times the mean of {} stages ({}).",
            slowest.name,
            slowest.cycles(),
            stages.len(),
            Cycles(mean as u64),
        ),
        advice: format!(
            "Every slot waits for the slowest stage; move layers from {} to others. \
             Evenly split, stages would save {} of their time.",
            slowest.name,
            percent(1.0 - 1.0 / times),
        ),
        formula: "mean cycles of each pass of a stage, added up; gain: (slowest - mean) x \
                  micro-batches / cycles of the run",
        gain: InsightGain::Time(gain),
        proposal: facts.proposal(
            [("options.auto_stage", json!("balanced")), ("options.stages", json!([]))],
            "Other tensors cross between IPUs",
        ),
        place: ViewLocation {
            ipu: slowest.ipu,
            cycles: shown.map(|mark| mark.cycles),
            ..ViewLocation::view("execution-trace")
        },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
