//! A stage of a pipeline that delays all others.

use super::{InsightFacts, InsightFinding, InsightGain, InsightRule, InsightSubject, ViewLocation};
use crate::label_conventions::blocks_of_stage;
use crate::trace::{MarkedPart, Share, WindowMark};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::TrainingPass;
use tilescope_report::units::IpuId;

pub(crate) const RULE: InsightRule = InsightRule {
    name: "stage_balance",
    description: "a stage that takes longer than the others",
    keys: &["options.auto_stage", "options.stages"],
    find,
};

/// Smaller ratios are as balanced as the granularity of layers permits.
const MIN_RATIO: f64 = 1.15;

/// Passes of one stage.
struct PipelineStageTimes<'a> {
    name: &'a str,
    ipu: Option<IpuId>,
    /// The share of the window that its passes take, and their number, by pass.
    passes: BTreeMap<Option<TrainingPass>, (Share<MarkedPart>, f64)>,
    longest: Option<WindowMark<'a>>,
    /// The longest pass in a typical slot: passes while a pipeline fills also wait for that.
    longest_of_typical: Option<WindowMark<'a>>,
}

impl PipelineStageTimes<'_> {
    /// The share that one micro-batch takes: the sum of the mean of each pass.
    fn each(&self, none: Share<MarkedPart>) -> Share<MarkedPart> {
        self.passes.values().fold(none, |sum, (taken, count)| sum + *taken * (1.0 / count))
    }
}

/// `B1 forward` and `B1 backward` are passes of one stage.
fn stage_name(mark: WindowMark<'_>) -> &str {
    mark.label().split(' ').next().unwrap_or_default()
}

/// The stages of a pipeline by name.
fn stages(facts: &InsightFacts) -> BTreeMap<&str, PipelineStageTimes<'_>> {
    let marks = &facts.marks.stages;
    let mut stages: BTreeMap<&str, PipelineStageTimes<'_>> = BTreeMap::new();
    for mark in marks.iter() {
        let name = stage_name(mark);
        let stage = stages.entry(name).or_insert_with(|| PipelineStageTimes {
            name,
            ipu: None,
            passes: BTreeMap::new(),
            longest: None,
            longest_of_typical: None,
        });
        stage.ipu = mark.ipu();
        let pass = stage.passes.entry(mark.pass()).or_insert_with(|| (marks.nothing(), 0.0));
        *pass = (pass.0 + mark.length(), pass.1 + 1.0);
        let typical = mark.overlaps(facts.typical_window());
        for (longest, counts) in
            [(&mut stage.longest, true), (&mut stage.longest_of_typical, typical)]
        {
            if counts && longest.is_none_or(|known| mark.is_longer_than(known)) {
                *longest = Some(mark);
            }
        }
    }
    stages
}

/// `layer4+…+layer9` for a stage of more than three blocks.
fn short_name(stage: &str) -> String {
    let blocks = blocks_of_stage(stage);
    match blocks.as_slice() {
        [first, .., last] if blocks.len() > 3 => format!("{first}+…+{last}"),
        _ => stage.to_owned(),
    }
}

fn find(facts: &InsightFacts) -> Vec<InsightFinding> {
    let marks = &facts.marks.stages;
    let none = marks.nothing();
    let mut stages = stages(facts);
    let each = stages.values().map(|stage| (stage.each(none).value(), stage.name));
    let Some((_, slowest)) = each.max_by(|a, b| a.0.total_cmp(&b.0)) else { return Vec::new() };
    // Stages that run at other times do not wait: those of one IPU after the other, or steps of
    // IPUs that share the rows of a field.
    let beside = marks.beside(|mark| stage_name(mark) == slowest);
    let beside: BTreeSet<&str> = beside.map(stage_name).collect();
    stages.retain(|name, _| beside.contains(name));
    let Some(slowest) = stages.get(slowest) else { return Vec::new() };
    let shown = slowest.longest_of_typical.or(slowest.longest);
    let sum = stages.values().fold(none, |sum, stage| sum + stage.each(none));
    let mean = sum * (1.0 / stages.len() as f64);
    let each = slowest.each(none);
    let times = each.times(mean);
    if stages.len() < 2 || times < MIN_RATIO {
        return Vec::new();
    }
    // Each micro-batch would be shorter by the slowest stage's time beyond the mean.
    let batches = slowest.passes.values().map(|(_, count)| *count).fold(0.0, f64::max);
    let spared = ((each - mean) * batches).clamped().of_run();
    let even = facts.chains.as_ref().and_then(|chains| chains.gain_of_even_work());
    let gain = even.map_or(spared, |even| even.min(spared));
    let on = slowest.ipu.map_or(String::new(), |ipu| format!(" on IPU {ipu}"));
    let name = short_name(slowest.name);
    let is_one_block = blocks_of_stage(slowest.name).len() == 1;
    let proposal = facts.proposal(
        [("options.auto_stage", json!("balanced")), ("options.stages", json!([]))],
        "Other tensors are exchanged between IPUs",
    );
    let remedy = if is_one_block {
        // No other split makes this stage shorter.
        format!("{name} is one block, which stages do not divide: make it smaller")
    } else {
        format!("move layers from {name} to other stages")
    };
    vec![InsightFinding {
        sentence: format!(
            "Stage {name}{on} takes {} cycles per micro-batch, {times:.1} times the mean of {} stages ({}).",
            each.cycles(),
            stages.len(),
            mean.cycles(),
        ),
        advice: format!(
            "Every slot waits for the slowest stage: {remedy}. With equal stages, it would take {} \
             fewer cycles per micro-batch.",
            (each - mean).cycles(),
        ),
        formula: "mean cycles of each pass of a stage, added up; gain: (slowest - mean) x \
                  micro-batches / cycles of the run",
        gain: InsightGain::Time(gain),
        proposal: proposal.filter(|_| !is_one_block),
        place: ViewLocation {
            ipu: slowest.ipu,
            cycles: shown.and_then(|mark| mark.place().cycles),
            ..ViewLocation::view("execution-trace")
        },
        ..InsightFinding::about(InsightSubject::Time, &RULE)
    }]
}
