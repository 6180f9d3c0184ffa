//! Every run is one that a machine could do: data are written before they are read, exchanges
//! follow syncs, and no bandwidth is exceeded. Changed runs are detected.

use crate::common::{RecordedRun, sets};
use crate::critical_path::check_simulated;
use tempfile::tempdir;
use tilescope_fixtures::onnx_text;
use tilescope_report::units::{Cycles, ProgramId, ReplicaClassId};
use tilescope_report::{
    ExecutionStep, InvariantViolation, ProgramKind, Report, ReportMeta, ReportWriter, StepLayout,
};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::run::{dry_run, run};
use tilescope_sim::simulate;
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_test_tiers::{product, sample, slow_tests};

const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";

/// A spec or an ONNX file with overrides, or the reason why it is refused.
fn spec_of(file: &str, overrides: &[&str]) -> Result<Spec, String> {
    let source = SpecSource::find(file, &sets(&overrides.join(" ")));
    Spec::build(&source.expect("exists")).map_err(|error| error.to_string())
}

/// A small perceptron, or the reason why it is refused.
fn perceptron(overrides: &[&str]) -> Result<Spec, String> {
    spec_of(PERCEPTRON, overrides)
}

fn broken_laws(spec: &Spec) -> Vec<InvariantViolation> {
    let directory = tempdir().expect("a directory");
    simulate(spec, directory.path(), |_| {}).expect("simulates");
    let report = Report::open(directory.path()).expect("opens");
    if slow_tests() {
        check_simulated(&report);
    }
    report.verify().expect("can be checked")
}

/// Alternatives; each gives overrides of [`sets`].
type Choices = &'static [&'static str];

const EXECUTIONS: Choices = &[
    "execution=pipelined",
    "pipeline_schedule=interleaved",
    "pipeline_schedule=sequential",
    "execution=sharded",
    "execution=phased",
    "execution=phased model.width=512",
    "target.ipus=1 execution=sharded",
    "model.training=false gradient_accumulation=1 device_iterations=10",
];

const PHASES: Choices = &[
    "execution=phased",
    "execution=phased execution_phase_settings.stages=1",
    "execution=phased execution_phase_settings.stages=1 num_io_tiles=32 \
     location.weights.use_io_tiles=true location.activations.use_io_tiles=true",
    "execution=phased execution_phase_settings.phases=2",
];

const PHASE_LOADS: Choices = &[
    "execution_phase_settings.weight_io_schedule=on_demand",
    "execution_phase_settings.activation_io_schedule=on_demand",
    "execution_phase_settings.accumulator_io_schedule=on_demand",
    "execution_phase_settings.optimizer_state_io_schedule=preload gradient_accumulation=1 \
     device_iterations=3",
];

const PHASE_UPDATES: Choices =
    &["execution_phase_settings.schedule=interleaving", "execution_phase_settings.schedule=batch"];

const BATCHES: Choices = &[
    "batch_serialization_settings.factor=2",
    "batch_serialization_settings.factor=8 recomputation=auto",
];

const SYNC_PATTERNS: Choices =
    &["sync_pattern=full", "sync_pattern=single_pipeline", "sync_pattern=replica_and_ladder"];

const LOCATIONS: Choices = &[
    "",
    "location.weights.on_chip=false",
    "location.accumulators.on_chip=false",
    "location.optimizer_state.on_chip=false",
    "location.activations.on_chip=false",
    "location.weights.on_chip=false location.accumulators.on_chip=false \
     location.optimizer_state.on_chip=false location.activations.on_chip=false \
     recomputation=auto",
];

const IO: Choices = &[
    "",
    "num_io_tiles=32",
    "num_io_tiles=32 overlap_io=inner_loop",
    "num_io_tiles=32 overlap_io=loops device_iterations=10",
    "num_io_tiles=32 location.weights.use_io_tiles=true location.activations.use_io_tiles=true",
];

const SCHEDULES: Choices = &[
    "accumulate_outer_schedule=overlap_memory_optimized",
    "accumulate_outer_schedule=overlap_cycle_optimized merge_exchange=false",
];

const OUTPUTS: Choices = &[
    "output_mode=all",
    "output_mode=final",
    "output_mode=sum",
    "output_mode=every_n output_return_period=2",
];

const REPLICAS: Choices = &[
    "replication_factor=4",
    "replication_factor=4 merge_collectives=true",
    "merge_exchange=false",
];

const RTS_WEIGHTS: Choices = &[
    "",
    "location.weights.replicated_tensor_sharding=true location.weights.min_elements_for_rts=1000",
];

const RTS_ACCUMULATORS: Choices = &[
    "",
    "location.accumulators.replicated_tensor_sharding=true \
     location.accumulators.min_elements_for_rts=1000",
];

const RTS_STATE: Choices = &[
    "",
    "location.optimizer_state.replicated_tensor_sharding=true \
     location.optimizer_state.min_elements_for_rts=1000",
];

const ON_AND_OFF_CHIP: Choices = &[
    "",
    "location.weights.on_chip=false location.accumulators.on_chip=false \
     location.optimizer_state.on_chip=false",
];

const DOMAINS: Choices = &[
    "replication_factor=1",
    "replication_factor=2",
    "replication_factor=4",
    "replication_factor=4 num_instances=2",
    "replication_factor=4 num_instances=2 location.weights.sharding_domain=all \
     location.accumulators.sharding_domain=all location.optimizer_state.sharding_domain=all",
];

/// Checks the invariants of a small perceptron over combinations of some choices, and the refusals
/// over all of them. Returns the number of allowed combinations.
fn hold_over(choices: &[Choices]) -> usize {
    hold_for(PERCEPTRON, choices)
}

/// Checks the invariants of a spec or an ONNX file as [`hold_over`] does.
fn hold_for(file: &str, choices: &[Choices]) -> usize {
    let axes: Vec<usize> = choices.iter().map(|alternatives| alternatives.len()).collect();
    let (mut rows, mut specs) = (Vec::new(), Vec::new());
    for row in product(&axes) {
        let chosen = choices.iter().zip(&row).map(|(of, choice)| of[*choice]);
        let overrides: Vec<&str> = chosen.collect();
        match spec_of(file, &overrides) {
            Ok(spec) => {
                rows.push(row);
                specs.push((overrides, spec));
            }
            Err(refusal) => assert!(refusal.contains("options."), "{overrides:?}: {refusal}"),
        }
    }
    for place in sample(&rows) {
        let (overrides, spec) = &specs[place];
        assert_eq!(broken_laws(spec), [], "{file} {overrides:?}");
    }
    specs.len()
}

#[test]
fn every_execution_sync_pattern_and_location_is_causal() {
    let allowed = hold_over(&[EXECUTIONS, SYNC_PATTERNS, LOCATIONS]);
    assert!(allowed > 80, "{allowed}");
}

#[test]
fn every_setting_of_phases_is_causal() {
    const ADAM: Choices = &["model.optimizer=adam"];
    let allowed = hold_over(&[ADAM, PHASES, PHASE_LOADS, PHASE_UPDATES]);
    assert!(allowed > 25, "{allowed}");
    let allowed = hold_over(&[PHASES, PHASE_LOADS, LOCATIONS]);
    assert!(allowed > 60, "{allowed}");
}

#[test]
fn micro_batches_in_parts_are_causal() {
    let allowed = hold_over(&[EXECUTIONS, LOCATIONS, BATCHES]);
    assert!(allowed > 50, "{allowed}");
}

#[test]
fn every_use_of_io_tiles_is_causal() {
    let allowed = hold_over(&[EXECUTIONS, LOCATIONS, IO]);
    assert!(allowed > 80, "{allowed}");
    let allowed = hold_over(&[EXECUTIONS, IO, OUTPUTS]);
    assert!(allowed > 50, "{allowed}");
}

#[test]
fn every_sum_over_replicas_is_causal() {
    let allowed = hold_over(&[EXECUTIONS, LOCATIONS, REPLICAS, RTS_STATE]);
    assert!(allowed > 80, "{allowed}");
}

#[test]
fn every_sharding_over_replicas_is_causal() {
    const ADAM: Choices = &["model.optimizer=adam"];
    const TWO_REPLICAS: Choices = &["replication_factor=2"];
    const SHARED_WEIGHTS: Choices = &[RTS_WEIGHTS[1]];
    let shared = [ADAM, ON_AND_OFF_CHIP, DOMAINS, RTS_WEIGHTS, RTS_ACCUMULATORS, RTS_STATE];
    let allowed = hold_over(&shared);
    assert!(allowed > 60, "{allowed}");
    let passes = [EXECUTIONS, LOCATIONS, TWO_REPLICAS, SHARED_WEIGHTS, RTS_ACCUMULATORS];
    let allowed = hold_over(&passes);
    assert!(allowed > 60, "{allowed}");
}

#[test]
fn every_order_of_weight_updates_is_causal() {
    let allowed = hold_over(&[&["model.optimizer=adam"], SCHEDULES, SYNC_PATTERNS, LOCATIONS]);
    assert!(allowed > 30, "{allowed}");
}

/// Modules that all read the result of a node before them, join each other's results, and shuffle
/// and split what they joined.
const BRANCHES: &str = "opset 13; x f32:2,8,6,6
    stem = Conv x w:8,8,1,1 @/stem/Conv
    a = Conv stem w:8,8,1,1 @/layers/layers.0/Conv
    b = Conv stem w:8,8,3,3 pads=1,1,1,1 @/layers/layers.1/Conv
    joined = Concat a b axis=1 @/layers/layers.1/Concat
    left right = Split joined axis=1 @/layers/layers.2/Split
    c = Conv left w:8,8,1,1 @/layers/layers.2/Conv
    d = Relu c @/layers/layers.2/Relu
    mixed = Concat right d axis=1 @/layers/layers.2/Concat
    cut = Reshape mixed i64:5=2,2,8,6,6 @/layers/layers.2/Reshape
    turned = Transpose cut perm=0,2,1,3,4 @/layers/layers.2/Transpose
    shuffled = Reshape turned i64:4=2,16,6,6 @/layers/layers.3/Reshape
    e = Conv shuffled w:8,16,1,1 @/layers/layers.3/Conv
    f = Add e a @/layers/layers.3/Add
    g = Concat f right axis=1 @/layers/layers.3/Concat
    h = Conv g w:8,16,1,1 @/layers/layers.4/Conv; out h";

/// Executions of graphs whose tensors are read by several stages, as views and whole.
const GRAPH_EXECUTIONS: Choices = &[
    "",
    "execution=sharded target.ipus=2",
    "execution=phased target.ipus=2",
    "execution=phased execution_phase_settings.stages=1 target.ipus=2",
    "execution=pipelined target.ipus=2 gradient_accumulation=8",
    "execution=pipelined target.ipus=3 gradient_accumulation=9",
    "execution=pipelined target.ipus=2 gradient_accumulation=8 pipeline_schedule=interleaved",
];

const RECOMPUTATION: Choices = &["", "recomputation=auto", "recomputation=pipeline"];

#[test]
fn branches_that_join_are_causal() {
    let directory = tempdir().expect("a directory");
    let file = directory.path().join("branches.onnx");
    std::fs::write(&file, onnx_text::model(BRANCHES).bytes()).expect("written");
    const TRAINED: Choices = &["model.training=true model.loss=identity"];
    let choices = [TRAINED, GRAPH_EXECUTIONS, LOCATIONS, RECOMPUTATION];
    let allowed = hold_for(file.to_str().expect("UTF-8"), &choices);
    assert!(allowed > 60, "{allowed}");
}

#[test]
fn recurrent_layers_are_causal() {
    const PRECISIONS: Choices = &["", "model.precision=float16"];
    let choices = [LOCATIONS, REPLICAS, PRECISIONS];
    let allowed = hold_for("tests/data/onnx/lstm.onnx", &choices);
    assert!(allowed > 20, "{allowed}");
}

/// Stages of single operations, of half a graph, that return to an IPU, and three IPUs.
const ANNOTATIONS: Choices = &[
    "stages=[\"L0\",\"L1\",[\"L1/relu\",\"L2\"],\"L3\"]",
    "stages=[\"L0\",\"L1/*\",\"L3\"] target.ipus=3",
    "stages=[{blocks=\"L0\",ipu=0},{blocks=\"L1\",ipu=1},{blocks=\"L2\",ipu=0},{blocks=\"L3\",ipu=1}] \
     target.ipus=2",
];

#[test]
fn stages_of_single_operations_are_causal() {
    const ORDERS: Choices = &[
        "execution=pipelined",
        "pipeline_schedule=sequential",
        "execution=sharded",
        "execution=phased",
    ];
    let allowed = hold_over(&[ORDERS, ANNOTATIONS]);
    assert!(allowed > 10, "{allowed}");
}

#[test]
fn annotated_operations_and_their_gradients_run_where_they_are_put() {
    let spec = perceptron(&["options.stages=[\"L0\",\"L1\",[\"L1/relu\",\"L2\"],\"L3\"]"]);
    let compiled = compile(&spec.expect("is allowed")).expect("compiles");
    let ipus = |begins: &str| -> Vec<u32> {
        let operations = compiled.compilation.operations.iter();
        let named = operations.filter(|operation| operation.name.starts_with(begins));
        let mut ipus: Vec<u32> = named.map(|operation| operation.ipu.expect("an IPU").0).collect();
        ipus.dedup();
        ipus
    };
    assert_eq!([ipus("L1/relu"), ipus("L0/relu"), ipus("L2/relu")], [[2], [0], [2]]);
}

#[test]
fn impossible_stages_are_refused_with_the_nearest_operation() {
    for (stages, words) in [
        ("[\"L0\",\"L1/relo\"]", "did you mean L1/relu"),
        ("[\"L1\",\"L0\"]", "must follow the data flow"),
        ("[\"L0\",\"L1/relu\",\"L1/relu\"]", "in two stages"),
        ("[\"L0\",\"*\",\"L0\"]", "in two stages"),
    ] {
        let spec = perceptron(&[&format!("options.stages={stages}")]).expect("can be read");
        let refusal = compile(&spec).expect_err("is refused").to_string();
        assert!(refusal.contains(words), "{stages}: {refusal}");
    }
}

/// The invariants that a run breaks after `change`.
fn laws_broken_by(
    overrides: &[&str],
    change: impl FnOnce(&CompiledProgram, &mut Vec<ExecutionStep>),
) -> Vec<InvariantViolation> {
    let spec = perceptron(overrides).expect("is allowed");
    let mut compiled = compile(&spec).expect("compiles");
    let mut recorded = RecordedRun::default();
    let ahead = dry_run(&compiled, &spec);
    let Ok(()) = run(&compiled, &spec, &ahead, &mut recorded);
    compiled.compilation.replica_classes = ahead.replica_classes;
    change(&compiled, &mut recorded.steps);
    let directory = tempdir().expect("a directory");
    let meta = ReportMeta { generator: "a test".to_owned(), spec: None, imported: None };
    let mut writer = ReportWriter::create(directory.path(), &meta).expect("can be written");
    let written = writer.record(&compiled.compilation, StepLayout::Rows, |recorder| {
        recorded.steps.iter().try_for_each(|step| recorder.step(step))
    });
    written.expect("can be written");
    writer.finish().expect("can be written");
    Report::open(directory.path()).expect("opens").verify().expect("can be checked")
}

#[track_caller]
fn assert_tells(found: &[InvariantViolation], law: &str, words: &str) {
    let is_reported = found.iter().any(|found| found.law == law && found.text.contains(words));
    assert!(is_reported, "{law} ({words}) is not among {found:?}");
}

fn position(
    compiled: &CompiledProgram,
    steps: &[ExecutionStep],
    is_wanted: impl Fn(ProgramKind, &str) -> bool,
) -> usize {
    let programs = &compiled.compilation.programs;
    let wanted = |id: ProgramId| is_wanted(programs[id.index()].kind, &programs[id.index()].name);
    steps.iter().position(|step| wanted(step.program)).expect("there is one")
}

#[test]
fn an_unchanged_run_breaks_no_law() {
    assert_eq!(laws_broken_by(&["options.execution=phased"], |_, _| {}), []);
}

#[test]
fn a_load_before_its_store_is_detected() {
    let found = laws_broken_by(&["options.execution=phased"], |compiled, steps| {
        let mid = ProgramKind::StreamCopyMid;
        let store =
            position(compiled, steps, |kind, name| kind == mid && name.ends_with("/remoteStore"));
        let name = &compiled.compilation.programs[steps[store].program.index()].name;
        let load_name = name.replace("/remoteStore", "/remoteLoad");
        let load = position(compiled, steps, |kind, name| kind == mid && name == load_name);
        // The sync before both belongs to no particular one.
        for part in [-1, 0, 1] {
            let at = |place: usize| place.checked_add_signed(part).expect("is inside");
            let (first, later) = (steps[at(store)].program, steps[at(load)].program);
            (steps[at(store)].program, steps[at(load)].program) = (later, first);
        }
    });
    assert_tells(&found, "reads_follow_writes", "before it is written");
}

#[test]
fn a_sync_without_one_of_its_ipus_is_detected() {
    let found = laws_broken_by(&[], |compiled, steps| {
        let exchange = position(compiled, steps, |kind, _| kind == ProgramKind::GlobalExchange);
        steps[exchange - 1].ipus.remove(0);
    });
    assert_tells(&found, "copies_are_synced", "have not waited for each other");
    assert_tells(&found, "syncs_are_of_groups", "do not form a sync group");
}

#[test]
fn a_stream_copy_without_a_sync_is_detected() {
    let found = laws_broken_by(&[], |compiled, steps| {
        let begin = position(compiled, steps, |kind, _| kind == ProgramKind::StreamCopyBegin);
        steps.remove(begin - 1);
    });
    assert_tells(&found, "copies_are_synced", "does not follow an external sync");
}

#[test]
fn a_missing_copy_between_stages_is_detected() {
    let found = laws_broken_by(&[], |compiled, steps| {
        let exchanges = |step: &ExecutionStep| {
            let program = &compiled.compilation.programs[step.program.index()];
            program.kind == ProgramKind::GlobalExchange
        };
        let all: Vec<usize> = (0..steps.len()).filter(|at| exchanges(&steps[*at])).collect();
        steps.remove(all[all.len() / 2]);
    });
    assert_tells(&found, "reads_follow_writes", "of micro-batch");
}

#[test]
fn a_copy_that_is_too_fast_is_detected() {
    for (overrides, kind, name) in [
        (&[][..], ProgramKind::StreamCopyMid, "host"),
        (&["options.execution=phased"][..], ProgramKind::StreamCopyMid, "remote_buffer"),
        (&[][..], ProgramKind::GlobalExchange, "ipu_links"),
    ] {
        let found = laws_broken_by(overrides, |compiled, steps| {
            for step in steps {
                let program = &compiled.compilation.programs[step.program.index()];
                if program.kind == kind {
                    for on_ipu in &mut step.ipus {
                        let cycles = on_ipu.to_max - on_ipu.from_min;
                        on_ipu.to_max = on_ipu.from_min + Cycles(cycles.0.div_ceil(4));
                        on_ipu.to_min = on_ipu.to_min.min(on_ipu.to_max);
                    }
                }
            }
        });
        assert_tells(&found, "bandwidths_hold", name);
    }
}

#[test]
fn exchanges_between_tiles_that_are_too_fast_are_detected() {
    let found = laws_broken_by(&[], |compiled, steps| {
        for step in steps {
            let program = &compiled.compilation.programs[step.program.index()];
            if program.kind == ProgramKind::DoExchange {
                for on_ipu in &mut step.ipus {
                    on_ipu.to_max = on_ipu.from_min + Cycles(1);
                    on_ipu.to_min = on_ipu.to_max;
                }
            }
        }
    });
    assert_tells(&found, "bandwidths_hold", "the tile interface");
}

/// Four replicas, with a slower host for those of one instance.
const DIFFERING: [&str; 5] = [
    "options.replication_factor=4",
    "options.num_instances=2",
    "options.host.seconds_per_micro_batch=2e-4",
    "options.host.slower_instances=1",
    "options.sync_replicas_independently=true",
];

/// The index of the first copy between replicas.
fn first_collective(compiled: &CompiledProgram, steps: &[ExecutionStep]) -> usize {
    position(compiled, steps, |kind, name| {
        kind == ProgramKind::GlobalExchange && name.ends_with("/crossReplicaCopy")
    })
}

#[test]
fn an_unchanged_run_of_differing_replicas_breaks_no_law() {
    assert_eq!(laws_broken_by(&DIFFERING, |_, _| {}), []);
}

#[test]
fn a_replica_that_leaves_a_sync_before_the_others_is_detected() {
    let found = laws_broken_by(&DIFFERING, |compiled, steps| {
        let sync = first_collective(compiled, steps) - 1;
        let (_, early) = &mut steps[sync].other_replicas[0];
        early.to_max -= Cycles(1);
        early.to_min = early.to_min.min(early.to_max);
    });
    assert_tells(&found, "replicas_wait_for_each_other", "which leave it at cycles");
}

#[test]
fn a_missing_replica_is_detected() {
    let found = laws_broken_by(&DIFFERING, |compiled, steps| {
        let sync = first_collective(compiled, steps) - 1;
        steps[sync].other_replicas.retain(|(class, _)| *class != ReplicaClassId(3));
    });
    assert_tells(&found, "replicas_wait_for_each_other", "only 3 of 4 classes reach it");
    assert_tells(&found, "copies_are_synced", "of replica class 3");
}

#[test]
fn replicas_that_begin_a_copy_at_different_times_are_detected() {
    let found = laws_broken_by(&DIFFERING, |compiled, steps| {
        let copy = first_collective(compiled, steps);
        let (_, late) = &mut steps[copy].other_replicas[0];
        (late.from_min, late.from_max) = (late.from_min + Cycles(1), late.from_max + Cycles(1));
    });
    assert_tells(&found, "replicas_wait_for_each_other", "which begin it at cycles");
}

#[test]
fn an_early_step_of_another_replica_is_detected() {
    let found = laws_broken_by(&DIFFERING, |compiled, steps| {
        let begin = position(compiled, steps, |kind, _| kind == ProgramKind::StreamCopyBegin);
        steps[begin - 1].other_replicas.retain(|(class, _)| *class != ReplicaClassId(2));
    });
    assert_tells(&found, "copies_are_synced", "of replica class 2");
}

#[test]
fn copies_between_replicas_that_are_too_fast_for_their_links_are_detected() {
    // Both IPUs on a side of the ladder share its links.
    for (overrides, words) in [
        (&["options.replication_factor=4"][..], "the links between replicas need"),
        (
            &[
                "target.name=pod16",
                "options.replication_factor=4",
                "options.accumulate_outer_schedule=overlap_memory_optimized",
            ],
            "together move",
        ),
    ] {
        let found = laws_broken_by(overrides, |compiled, steps| {
            for step in steps {
                let program = &compiled.compilation.programs[step.program.index()];
                if program.name.ends_with("/crossReplicaCopy") {
                    for on_ipu in &mut step.ipus {
                        // As long as if the links had nothing else to move, or even shorter.
                        let parts = if words == "together move" { 2 } else { 4 };
                        let start = compiled.system.collective_step_cycles;
                        let moving = on_ipu.to_max - on_ipu.from_min - start;
                        on_ipu.to_max = on_ipu.from_min + Cycles(moving.0.div_ceil(parts));
                        on_ipu.to_min = on_ipu.to_max;
                    }
                }
            }
        });
        assert_tells(&found, "links_between_replicas_hold", words);
    }
}
