//! The order of a training pipeline, checked on the report.

use crate::common;
use std::collections::BTreeMap;
use tilescope_report::units::IpuId;
use tilescope_report::{MarkFilter, MarkKind, Report, TraceMark, TrainingPass};

fn marks(report: &Report, kind: MarkKind) -> Vec<TraceMark> {
    let filter = MarkFilter { kind: Some(kind), ipu: None, window: None, limit: usize::MAX };
    report.marks(&filter).expect("marks")
}

/// A perceptron with one layer per stage, and one stage on each IPU.
fn perceptron(stages: usize, accumulation: usize) -> (Report, tempfile::TempDir) {
    let text = |key: &str, value: usize| format!("{key}={value}");
    let overrides = [
        text("model.layers", stages),
        text("target.ipus", stages),
        text("options.gradient_accumulation", accumulation),
    ];
    let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
    common::report("tests/data/specs/perceptron.toml", &overrides)
}

/// Passes of each micro-batch in order of time.
fn journeys(report: &Report) -> BTreeMap<u64, Vec<(IpuId, TrainingPass)>> {
    let mut turns = marks(report, MarkKind::Stage);
    turns.sort_by_key(|turn| turn.cycles.start);
    let mut journeys: BTreeMap<u64, Vec<(IpuId, TrainingPass)>> = BTreeMap::new();
    for turn in turns {
        let ipu = turn.ipu.expect("a turn belongs to one IPU");
        journeys.entry(turn.index).or_default().push((ipu, turn.pass.expect("a pass")));
    }
    journeys
}

#[test]
fn every_micro_batch_goes_forward_through_all_stages_and_back() {
    for stages in [2u32, 4, 8] {
        let accumulation = 2 * stages + 2;
        let (report, _directory) = perceptron(stages as usize, accumulation as usize);
        let up = (0..stages).map(|ipu| (IpuId(ipu), TrainingPass::Forward));
        let down = (0..stages).rev().map(|ipu| (IpuId(ipu), TrainingPass::Backward));
        let expected: Vec<_> = up.chain(down).collect();
        let journeys = journeys(&report);
        assert_eq!(journeys.len() as u32, accumulation);
        for (micro_batch, journey) in journeys {
            assert_eq!(journey, expected, "{stages} stages, micro-batch {micro_batch}");
        }
    }
}

/// With `N = S - 1` hops to the last stage the first IPU keeps `2N + 1` micro-batches in flight:
/// that number of slots fills the pipeline, and in the last of them all IPUs run both passes.
#[test]
fn all_ipus_are_busy_from_slot_two_n_plus_one() {
    for stages in [2usize, 4, 8] {
        let accumulation = 3 * stages;
        let (report, _directory) = perceptron(stages, accumulation);
        let turns = marks(&report, MarkKind::Stage);
        let slots = marks(&report, MarkKind::Slot);
        assert_eq!(slots.len(), accumulation + 2 * (stages - 1));
        let full: Vec<usize> = slots
            .iter()
            .enumerate()
            .filter(|(_, slot)| {
                let inside = |turn: &&TraceMark| {
                    turn.steps.start >= slot.steps.start && turn.steps.end <= slot.steps.end
                };
                turns.iter().filter(inside).count() == 2 * stages
            })
            .map(|(index, _)| index + 1)
            .collect();
        let first = 2 * (stages - 1) + 1;
        assert_eq!(full, (first..=accumulation).collect::<Vec<_>>(), "{stages} stages");
    }
}

#[test]
fn phases_are_marked_ramp_up_main_ramp_down() {
    let (report, _directory) = perceptron(4, 10);
    let phases: Vec<String> =
        marks(&report, MarkKind::Phase).into_iter().map(|mark| mark.label).collect();
    assert_eq!(phases, ["ramp-up", "main", "ramp-down"]);
}

#[test]
fn weights_are_updated_once_per_accumulation() {
    let (report, _directory) = common::report(
        "mnist_pipeline",
        &["options.device_iterations=2", "options.gradient_accumulation=8"],
    );
    let updates = marks(&report, MarkKind::Update);
    for ipu in (0..4).map(IpuId) {
        assert_eq!(updates.iter().filter(|update| update.ipu == Some(ipu)).count(), 2);
    }
    // Every update comes after all passes of its iteration.
    for iteration in marks(&report, MarkKind::Iteration) {
        let inside = |mark: &&TraceMark| {
            mark.steps.start >= iteration.steps.start && mark.steps.end <= iteration.steps.end
        };
        let turns = marks(&report, MarkKind::Stage);
        let last_turn = turns.iter().filter(inside).map(|turn| turn.steps.end).max();
        let first_update = updates.iter().filter(inside).map(|update| update.steps.start).min();
        assert!(last_turn <= first_update, "{:?} {:?}", last_turn, first_update);
    }
}
