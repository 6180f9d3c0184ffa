//! Invariants of every execution scheme, over random options: valid options obey them, others are
//! refused with a message. Programs run in memory; no report is written.

use crate::common::{RecordedRun, sets};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId};
use tilescope_report::{MarkKind, ProgramKind, TrainingPass};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::specification::{
    ExecutionStrategy, PipelineSchedule, Spec, SpecSource, SyncPattern,
};
use tilescope_test_tiers::cases;

/// A small perceptron, compiled and run; `None` if the options were refused.
fn simulated(overrides: &[String]) -> Option<(Spec, CompiledProgram, RecordedRun)> {
    let source = SpecSource::find("tests/data/specs/perceptron.toml", overrides).expect("exists");
    let spec = match Spec::build(&source) {
        Ok(spec) => spec,
        Err(error) => {
            let said = error.to_string();
            assert!(said.contains("options.") || said.contains("model."), "{said}");
            return None;
        }
    };
    let compiled = match compile(&spec) {
        Ok(compiled) => compiled,
        Err(error) => {
            assert!(error.to_string().len() > 20, "{error}");
            return None;
        }
    };
    let watched = RecordedRun::of(&compiled, &spec);
    Some((spec, compiled, watched))
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

/// Four blocks on stages of all kinds, including several on one IPU.
const STAGES: &[&str] = &[
    "[]",
    "[[\"L0\"],[\"L1\"],[\"L2\"],[\"L3\"]]",
    "[[\"L0\",\"L1\"],[\"L2\",\"L3\"]]",
    "[{blocks=\"L0\",ipu=0},{blocks=\"L1\",ipu=1},{blocks=\"L2\",ipu=2},{blocks=\"L3\",ipu=0}]",
    "[{blocks=\"L0\",ipu=0},{blocks=\"L1\",ipu=1},{blocks=\"L2\",ipu=1},{blocks=\"L3\",ipu=0}]",
];

/// Option sets, valid and invalid.
fn any_options() -> impl Strategy<Value = Vec<String>> {
    let order = (
        one_of(&["pipelined", "sharded", "phased"]),
        one_of(&["grouped", "interleaved", "sequential"]),
        one_of(&["popart", "memory_guide", "tensorflow"]),
        one_of(STAGES),
        one_of(&["full", "single_pipeline", "replica_and_ladder"]),
        prop_oneof![1u32..12, 8u32..12],
        1u32..4,
    );
    let copies = (
        one_of(&["1", "2", "3", "4", "8"]),
        one_of(&["1", "1", "1", "2"]),
        one_of(&["1", "1", "2"]),
        one_of(&["0", "32", "33"]),
        one_of(&["none", "none", "none", "inner_loop", "loops"]),
        one_of(&["true", "false"]),
        one_of(&["true", "false", "false"]),
    );
    let rest = (
        one_of(&["none", "auto", "pipeline", "checkpoints"]),
        one_of(&["none", "reducing_dim", "output_channels"]),
        one_of(&["true", "true", "true", "false"]),
        one_of(&["none", "async", "async_rebatched", "sync", "synthetic"]),
        one_of(&["true", "false"]),
        one_of(&["true", "true", "false"]),
        one_of(&["all", "final", "sum", "every_n"]),
    );
    (order, copies, rest).prop_map(|(a, b, c)| {
        // Gradients are accumulated in training only.
        let (accumulation, iterations) = match c.2 {
            "true" => (a.5, a.6),
            _ => (1, a.5 * a.6),
        };
        let order = format!(
            "execution={} pipeline_schedule={} stash_convention={} stages={} sync_pattern={} \
             gradient_accumulation={accumulation} device_iterations={iterations}",
            a.0, a.1, a.2, a.3, a.4
        );
        let copies = format!(
            "replication_factor={} num_instances={} tensor_parallel={} num_io_tiles={} \
             overlap_io={} location.optimizer_state.on_chip={} \
             location.optimizer_state.replicated_tensor_sharding={} \
             location.optimizer_state.min_elements_for_rts=64",
            b.0, b.1, b.2, b.3, b.4, b.5, b.6
        );
        let rest = format!(
            "recomputation={} serialize_matmul={} model.training={} host.loader={} \
             host.seconds_per_sample=1e-6 location.weights.on_chip={} \
             location.activations.on_chip={} output_mode={}",
            c.0, c.1, c.2, c.3, c.4, c.5, c.6
        );
        sets(&format!("{order} {copies} {rest}"))
    })
}

/// Checks that the samples of a call are those of all iterations.
fn samples_add_up(spec: &Spec, compiled: &CompiledProgram, watched: &RecordedRun) {
    let turns = watched.of_kind(MarkKind::Stage);
    let first = &compiled.placement.stages[0].name;
    let forward = turns.filter(|turn| {
        turn.pass == Some(TrainingPass::Forward)
            && turn.label.split(' ').next() == first.split(' ').next()
    });
    let stages = compiled.placement.stages.iter().filter(|stage| stage.name == *first).count();
    let micro_batches = forward.count() / stages;
    let samples =
        micro_batches as u64 * spec.model.batch_size * u64::from(spec.options.replication_factor);
    let batching = compiled.compilation.batching.expect("a model of samples");
    assert_eq!(batching.samples_per_call(), samples);
}

/// Checks that both halves of an all-reduce exist on the same IPUs, and none if there is no other
/// replica.
fn collectives_have_partners(spec: &Spec, compiled: &CompiledProgram) {
    let alone = spec.options.replication_factor == 1 && spec.options.tensor_parallel == 1;
    let half = |name: &str| -> BTreeMap<Option<IpuId>, usize> {
        let mut counts = BTreeMap::new();
        let whole: BTreeSet<(&str, Option<IpuId>)> = compiled
            .compilation
            .programs
            .iter()
            .filter(|program| program.kind == ProgramKind::GlobalExchange)
            .filter(|program| program.name.contains(name))
            .map(|program| (program.name.as_str(), program.ipu))
            .collect();
        for (_, ipu) in whole {
            *counts.entry(ipu).or_insert(0) += 1;
        }
        counts
    };
    let (scatter, gather) = (half("reduceScatter"), half("allGather"));
    assert!(!alone || (scatter.is_empty() && gather.is_empty()));
    // Layers that are split also gather their results.
    if spec.options.tensor_parallel == 1 {
        assert_eq!(scatter, gather);
    }
}

/// Checks that every sync joins a whole group, and all of the group leave it together: no IPU waits
/// forever.
fn syncs_join_whole_groups(compiled: &CompiledProgram, watched: &RecordedRun) {
    let all: Vec<IpuId> = (0..compiled.compilation.target.ipus_per_replica).map(IpuId).collect();
    for step in &watched.steps {
        let program = &compiled.compilation.programs[step.program.index()];
        if program.kind != ProgramKind::Sync || program.ipu.is_some() {
            continue;
        }
        let ipus: Vec<IpuId> = step.ipus.iter().map(|on_ipu| on_ipu.ipu).collect();
        let group = compiled.sync_groups.host_sync_group(ipus[0]);
        assert!(ipus == all || ipus == group, "{ipus:?} is no sync group");
        let ends: BTreeSet<Cycles> = step.ipus.iter().map(|on_ipu| on_ipu.to_max).collect();
        assert_eq!(ends.len(), 1, "{ipus:?} leave a sync at different times");
    }
}

/// Checks that a data exchange with other replicas directly follows a sync of the whole waiting
/// group: of all IPUs, or of one side of the ladder.
fn collectives_wait_for_their_group(
    spec: &Spec,
    compiled: &CompiledProgram,
    watched: &RecordedRun,
) {
    let mut synced: BTreeMap<IpuId, Vec<IpuId>> = BTreeMap::new();
    for step in &watched.steps {
        let program = &compiled.compilation.programs[step.program.index()];
        let ipus: Vec<IpuId> = step.ipus.iter().map(|on_ipu| on_ipu.ipu).collect();
        if program.kind == ProgramKind::GlobalExchange && program.ipu.is_some() {
            let waited = synced.get(&ipus[0]).map_or(&[][..], Vec::as_slice);
            let all = compiled.compilation.target.ipus_per_replica as usize;
            let one_side = spec.options.sync_pattern == SyncPattern::ReplicaAndLadder;
            let side = waited.iter().all(|ipu| ipu.0 % 2 == ipus[0].0 % 2);
            let sides = all / 2..=all.div_ceil(2);
            let is_group =
                waited.len() == all || (one_side && side && sides.contains(&waited.len()));
            assert!(is_group, "{} follows a sync of {waited:?}", program.name);
        }
        for on_ipu in step.ipus.iter().filter(|on_ipu| on_ipu.sub_lane == 0) {
            let is_sync = program.is_external_sync();
            synced.insert(on_ipu.ipu, if is_sync { ipus.clone() } else { Vec::new() });
        }
    }
}

/// Checks that no step of a lane begins before the previous one ends.
fn lanes_do_not_overlap(watched: &RecordedRun) {
    let mut ends: BTreeMap<(IpuId, u8), Cycles> = BTreeMap::new();
    for on_ipu in watched.steps.iter().flat_map(|step| &step.ipus) {
        let end = ends.entry((on_ipu.ipu, on_ipu.sub_lane)).or_default();
        assert!(on_ipu.from_min >= *end);
        *end = on_ipu.to_max;
    }
}

/// Checks that a micro-batch goes forward through the stages and comes back, and that stages
/// process micro-batches in order.
fn micro_batches_keep_their_order(spec: &Spec, compiled: &CompiledProgram, watched: &RecordedRun) {
    let stage_of: BTreeMap<String, usize> = compiled
        .placement
        .stages
        .iter()
        .enumerate()
        .map(|(index, stage)| (stage.name.clone(), index))
        .collect();
    let mut turns: BTreeMap<(u64, TrainingPass, usize), CycleRange> = BTreeMap::new();
    for mark in watched.of_kind(MarkKind::Stage) {
        let pass = mark.pass.expect("a pass");
        let name = mark.label.rsplit_once(' ').map_or("", |(name, _)| name);
        let known = turns.insert((mark.index, pass, stage_of[name]), mark.cycles);
        assert_eq!(known, None, "{} makes a turn twice", mark.label);
    }
    let stages = compiled.placement.stages.len();
    let at = |batch, pass, stage| turns.get(&(batch, pass, stage)).copied();
    let batches = spec.options.gradient_accumulation * spec.options.device_iterations;
    let passes = if spec.model.training { 2 } else { 1 };
    assert_eq!(turns.len(), batches as usize * passes * stages);
    for batch in 0..batches {
        let forward: Vec<_> = (0..stages).map(|s| at(batch, TrainingPass::Forward, s)).collect();
        let back: Vec<_> =
            (0..stages).rev().map(|s| at(batch, TrainingPass::Backward, s)).collect();
        let journey = forward.iter().chain(if spec.model.training { &back[..] } else { &[] });
        let journey: Vec<CycleRange> = journey.map(|turn| turn.expect("every turn")).collect();
        for pair in journey.windows(2) {
            assert!(pair[0].end <= pair[1].start, "micro-batch {batch} overtakes itself");
        }
        for (stage, turn) in forward.iter().enumerate() {
            let next = at(batch + 1, TrainingPass::Forward, stage);
            let ordered = next.is_none_or(|next| turn.is_some_and(|turn| turn.end <= next.start));
            assert!(ordered, "stage {stage} takes {} before {batch}", batch + 1);
        }
    }
    // With separate sync groups the first IPU may continue while the last one still works.
    let lonely = spec.options.execution != ExecutionStrategy::Pipelined
        || spec.options.pipeline_schedule == PipelineSchedule::Sequential;
    if lonely && spec.options.sync_pattern == SyncPattern::Full {
        let mut busy: Vec<CycleRange> = turns.into_values().collect();
        busy.sort_by_key(|turn| turn.start);
        assert!(busy.windows(2).all(|pair| pair[0].end <= pair[1].start), "two IPUs are busy");
    }
}

/// Checks that the memory of a tile is counted once, on its own IPU.
fn memory_belongs_to_one_ipu(compiled: &CompiledProgram) {
    let target = &compiled.compilation.target;
    for variable in compiled.compilation.variables.iter().filter(|it| !it.shape.is_empty()) {
        let ipus: BTreeSet<IpuId> = variable
            .tiles
            .iter()
            .flat_map(|(range, _)| [range.first, range.end - 1])
            .map(|tile| target.ipu_of_tile(tile))
            .collect();
        assert_eq!(ipus.len(), 1, "{} lies on {ipus:?}", variable.name);
    }
    let categories: Bytes = compiled
        .compilation
        .tile_categories
        .iter()
        .map(|(range, parts)| {
            u64::from(range.count()) * parts.iter().map(|part| part.bytes).sum::<Bytes>()
        })
        .sum();
    let tiles: Bytes = compiled
        .compilation
        .tile_memory
        .iter()
        .map(|(range, tile)| u64::from(range.count()) * tile.excluding_gaps())
        .sum();
    assert_eq!(categories, tiles);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(48)))]

    #[test]
    fn whatever_is_accepted_obeys_the_laws(overrides in any_options()) {
        let Some((spec, compiled, watched)) = simulated(&overrides) else { return Ok(()) };
        samples_add_up(&spec, &compiled, &watched);
        collectives_have_partners(&spec, &compiled);
        syncs_join_whole_groups(&compiled, &watched);
        collectives_wait_for_their_group(&spec, &compiled, &watched);
        lanes_do_not_overlap(&watched);
        micro_batches_keep_their_order(&spec, &compiled, &watched);
        memory_belongs_to_one_ipu(&compiled);
    }
}

/// The random sets are of little use if nearly all of them are refused.
#[test]
fn plain_options_are_accepted() {
    for execution in ["pipelined", "sharded", "phased"] {
        for schedule in ["grouped", "interleaved", "sequential"] {
            let overrides = [
                format!("options.execution={execution}"),
                format!("options.pipeline_schedule={schedule}"),
            ];
            assert!(simulated(&overrides).is_some(), "{execution}, {schedule}");
        }
    }
}
