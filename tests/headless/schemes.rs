//! Every execution scheme, switched on and off on a small model: memory and time change as
//! Graphcore's guides describe.

use crate::common::{self, RecordedRun, sets};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::units::{Bytes, Cycles, IpuId, TileRuns};
use tilescope_report::{ExecutionStep, MarkKind, ProgramKind, Report, TileMemory, TrainingPass};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_test_tiers::slow_tests;

/// Every mechanism on the MNIST pipeline, with one device iteration by default.
const SCHEMES: &str = include_str!("../data/schemes.txt");

/// True if two figures compare as a word of the table states.
fn is_as_said<T: Ord>(word: &str, with: T, without: T) -> bool {
    match word {
        "more" => with > without,
        "less" => with < without,
        "same" => with == without,
        "either" => true,
        word => panic!("no comparison: {word}"),
    }
}

/// The MNIST pipeline with one device iteration, `base` and `more`.
fn simulated(base: &[&str], more: &[&str]) -> (Report, ReportSummary, tempfile::TempDir) {
    let one = ["options.device_iterations=1"];
    let overrides: Vec<&str> = one.iter().chain(base).chain(more).copied().collect();
    let (report, directory) = common::report("mnist_pipeline", &overrides);
    let figures = summary(&report).expect("figures");
    (report, figures, directory)
}

/// Bytes in use and cycles of a run, without a report.
fn cost(options: &str) -> (Bytes, Cycles) {
    let overrides = sets(&format!("device_iterations=1 {options}"));
    let source = SpecSource::find("mnist_pipeline", &overrides).expect("bundled");
    let spec = Spec::build(&source).expect("is allowed");
    let compiled = compile(&spec).expect("compiles");
    let memory = compiled.compilation.tile_memory.map(TileMemory::excluding_gaps).total();
    (memory, RecordedRun::of(&compiled, &spec).end())
}

#[test]
fn every_scheme_changes_memory_and_time_as_in_the_guides() {
    let mut wrong = Vec::new();
    let mut bases = BTreeMap::new();
    let every = if slow_tests() { 1 } else { 5 };
    for line in SCHEMES.lines().skip(1).step_by(every) {
        let [name, base, on, memory, time] = line.split('|').map(str::trim).collect::<Vec<_>>()[..]
        else {
            panic!("five columns: {line}")
        };
        let (bytes, cycles) = *bases.entry(base).or_insert_with(|| cost(base));
        let (bytes_with, cycles_with) = cost(&format!("{base} {on}"));
        if !is_as_said(memory, bytes_with, bytes) {
            wrong.push(format!("{name}: {} B to {} B", bytes.0, bytes_with.0));
        }
        if !is_as_said(time, cycles_with, cycles) {
            wrong.push(format!("{name}: {cycles} cycles to {cycles_with} cycles"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Bytes of the report's variables with this suffix in their names.
fn variable_bytes(compiled: &CompiledProgram, part: &str, always: bool) -> Bytes {
    let variables = compiled.compilation.variables.iter();
    variables
        .filter(|variable| variable.name.contains(part) && variable.lifetime.is_none() == always)
        .map(|variable| variable.tiles.map(|place| place.bytes).total())
        .sum()
}

fn compiled(overrides: &[&str]) -> CompiledProgram {
    compile(&common::spec("mnist_pipeline", overrides)).expect("compiles")
}

#[test]
fn off_chip_state_is_loaded_only_while_it_is_updated() {
    let here = compiled(&[]);
    let away = compiled(&["options.location.optimizer_state.on_chip=false"]);
    assert!(variable_bytes(&here, "Accl1___", true) > Bytes(80_000 * 4));
    // Biases of fewer than two elements would stay; there are none.
    assert_eq!(variable_bytes(&away, "Accl1___", true), Bytes::ZERO);
    assert_eq!(variable_bytes(&away, "Accl1___", false), variable_bytes(&here, "Accl1___", true));
}

#[test]
fn sharded_state_takes_a_share_of_the_memory() {
    let whole = compiled(&["options.replication_factor=4"]);
    let sharded = compiled(&[
        "options.replication_factor=4",
        "options.location.optimizer_state.replicated_tensor_sharding=true",
    ]);
    let large = "Accl1___layer3/weight";
    let (all, part) = (variable_bytes(&whole, large, true), variable_bytes(&sharded, large, true));
    assert!(part >= all / 4 && part < all / 3, "{part:?} of {all:?}");
    let names = |compiled: &CompiledProgram, part: &str| {
        compiled.compilation.programs.iter().filter(|program| program.name.contains(part)).count()
    };
    for half in ["reduceScatter", "allGather"] {
        assert!(names(&sharded, half) > 0, "{half}");
    }
    assert_eq!(names(&compiled(&[]), "crossReplicaCopy"), 0);
}

#[test]
fn stashes_have_the_depth_of_each_convention() {
    let depths = |overrides: &[&str]| compiled(overrides).schedule.stash_depths.clone();
    let guide = "options.stash_convention=memory_guide";
    let interleaved = "options.pipeline_schedule=interleaved";
    assert_eq!(depths(&[]), [7, 5, 3, 1]);
    assert_eq!(depths(&[guide]), [9, 7, 5, 3]);
    let keras = "options.host.framework=keras";
    assert_eq!(depths(&[keras]), [8, 6, 4, 2]);
    assert_eq!(depths(&[keras, "options.stash_convention=popart"]), [7, 5, 3, 1]);
    assert_eq!(depths(&[interleaved]), [4, 3, 2, 1]);
    assert_eq!(depths(&[interleaved, keras]), [4, 3, 2, 1]);
    assert_eq!(depths(&[interleaved, guide]), [5, 5, 5, 5]);
}

/// The last stage of a pipeline does not recompute what follows its last checkpoint, in any
/// schedule. All other stages recompute everything.
#[test]
fn the_last_stage_keeps_what_follows_its_last_checkpoint() {
    const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";
    const SCHEDULES: [&[&str]; 5] = [
        &[],
        &["options.stash_convention=memory_guide"],
        &["options.stash_convention=tensorflow"],
        &["options.pipeline_schedule=interleaved"],
        &["options.pipeline_schedule=sequential"],
    ];
    for (schedule, width) in SCHEDULES.into_iter().zip([77, 130, 64, 33, 515]) {
        for (recomputation, kept) in [("auto", &["L7"][..]), ("pipeline", &["L6", "L7"])] {
            let recomputation = format!("options.recomputation={recomputation}");
            let width = format!("model.width={width}");
            let sizes = [
                "model.layers=8",
                "options.stages=[[\"L0\",\"L1\"],[\"L2\",\"L3\"],[\"L4\",\"L5\"],[\"L6\",\"L7\"]]",
                recomputation.as_str(),
                width.as_str(),
            ];
            let spec = common::spec(PERCEPTRON, &[&sizes[..], schedule].concat());
            let compiled = compile(&spec).expect("compiles");
            let mut recomputed = BTreeSet::new();
            for program in &compiled.compilation.programs {
                let mut parts = program.name.split('/');
                if let Some(block) = parts.next()
                    && parts.any(|part| part == "recompute")
                {
                    recomputed.extend(block.split('_').next_back().map(str::to_owned));
                }
            }
            let layers = (0..8).map(|layer| format!("L{layer}"));
            let expected = layers.filter(|layer| !kept.contains(&layer.as_str()));
            assert_eq!(recomputed, expected.collect(), "{schedule:?}, {recomputation}");
        }
    }
}

/// Adam of TensorFlow computes one rate for all parameters, PopART's one for each. Without moments
/// the frameworks make the same updates.
#[test]
fn parameters_of_tensorflow_share_the_rate_of_adam() {
    const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";
    for (layers, width) in [(2, 515), (3, 77), (5, 130)] {
        let sizes = [format!("model.layers={layers}"), format!("model.width={width}")];
        let updates = |framework: &str, optimizer: &str| {
            let framework = format!("options.host.framework={framework}");
            let optimizer = format!("model.optimizer={optimizer}");
            let stash = "options.stash_convention=popart".to_owned();
            let keys = [&sizes[..], &[framework, optimizer, stash]].concat();
            let one_ipu = ["target.ipus=1", "options.execution=sharded"];
            let keys: Vec<&str> = keys.iter().map(String::as_str).chain(one_ipu).collect();
            let compiled = compile(&common::spec(PERCEPTRON, &keys)).expect("compiles");
            let programs = compiled.compilation.programs.iter();
            let of_compute = programs.filter(|of| of.kind == ProgramKind::OnTileExecute);
            let names: Vec<String> = of_compute.map(|of| of.name.to_string()).collect();
            let rates = names.iter().filter(|name| name.ends_with("/learningRate")).count();
            (rates, names)
        };
        let [shared, own] = ["keras", "popart"].map(|framework| updates(framework, "adam"));
        assert_eq!(shared.0, 1);
        assert!(own.0 > 1, "{layers} layers have several parameters");
        assert_eq!(own.1.len() + 2, shared.1.len(), "the powers of the decays, and the rate");
        assert_eq!(updates("keras", "sgd").1, updates("popart", "sgd").1);
    }
}

#[test]
fn a_call_takes_micro_batch_times_accumulation_times_replicas_times_iterations() {
    let overrides = ["options.replication_factor=4", "options.device_iterations=2"];
    let (report, _directory) = common::report("mnist_pipeline", &overrides);
    let figures = summary(&report).expect("figures");
    let samples = figures.execution.expect("executed").samples;
    assert_eq!(samples, Some(40 * 10 * 4 * 2));
    assert_eq!(figures.target.num_ipus, 16);
}

#[test]
fn too_many_ipus_are_refused_with_the_system_that_fits() {
    let overrides = ["target.name=m2000", "options.replication_factor=3"];
    let message = common::refusal("mnist_pipeline", &overrides);
    assert!(message.contains("require 16") && message.contains("\"pod16\""), "{message}");
}

#[test]
fn host_copies_on_io_tiles_run_beside_compute() {
    let (report, _, _directory) =
        simulated(&["options.num_io_tiles=64", "options.overlap_io=inner_loop"], &[]);
    let trace = report.trace().expect("readable").expect("executed");
    let io = trace.lane_of(IpuId(0), 1).expect("a lane of I/O tiles");
    let compute = trace.lane_of(IpuId(0), 0).expect("a lane of compute tiles");
    let copies = io.steps_in(trace.range(), usize::MAX).expect("steps");
    let work = compute.steps_in(trace.range(), usize::MAX).expect("steps");
    let beside =
        copies.iter().filter(|copy| work.iter().any(|step| step.range.overlaps(copy.range)));
    assert!(beside.count() * 2 > copies.len(), "most copies overlap with a step of compute tiles");
}

#[test]
fn more_instances_lift_the_limit_of_one_host() {
    let rate = |instances: u32| {
        let text = format!("options.num_instances={instances}");
        let (_, figures, _directory) = simulated(
            &[
                "options.replication_factor=4",
                "options.host.loader=async",
                "options.host.seconds_per_sample=2e-5",
                "options.host.num_workers=4",
            ],
            &[&text],
        );
        figures.execution.expect("executed").samples_per_second.expect("a model of samples")
    };
    let (one, four) = (rate(1), rate(4));
    assert!(four > 2.0 * one, "{one} and {four} samples per second");
}

#[test]
fn split_layers_take_less_memory_and_exchange_data() {
    let overrides = |parts: u32| {
        let parts = format!("options.tensor_parallel={parts}");
        common::spec("tests/data/specs/perceptron.toml", &["model.width=512", &parts])
    };
    let bytes = |parts| {
        let compiled = compile(&overrides(parts)).expect("compiles");
        let names = |part: &str| {
            let programs = compiled.compilation.programs.iter();
            programs.filter(|program| program.name.contains(part)).count()
        };
        (variable_bytes(&compiled, "L1/weight", true), names("allGather"), names("reduceScatter"))
    };
    let (whole, gathers, sums) = bytes(1);
    assert_eq!((gathers, sums), (0, 0));
    let (half, gathers, sums) = bytes(2);
    assert!(half <= whole / 2 + Bytes(1024) && gathers > 0 && sums > 0, "{half:?} of {whole:?}");
}

#[test]
fn dithered_convolutions_start_on_different_tiles() {
    let weights = |dithering: &str| -> Vec<(String, TileRuns<Bytes>)> {
        let variables = compiled(&[dithering]).compilation.variables;
        let convolutions = variables.iter().filter(|each| each.name.ends_with("/conv/weight"));
        convolutions.map(|each| (each.name.clone(), each.tiles.map(|place| place.bytes))).collect()
    };
    let stacked = weights("options.conv_dithering=false");
    let spread = weights("options.conv_dithering=true");
    assert!(stacked.len() > 1);
    for ((name, before), (_, after)) in stacked.iter().zip(&spread) {
        assert_eq!(before.total(), after.total(), "bytes of {name}");
        assert_ne!(before, after, "tiles of {name}");
    }
}

/// With merged collectives, an update of many replicas takes little more than its bytes over the
/// links.
#[test]
fn merged_collectives_are_bound_by_the_links() {
    let overrides = sets(
        "target.ipus=1 target.name=pod64 model.layers=8 model.width=1024 replication_factor=64 \
         gradient_accumulation=2 merge_collectives=true",
    );
    let source = SpecSource::find("tests/data/specs/perceptron.toml", &overrides).expect("exists");
    let spec = Spec::build(&source).expect("is allowed");
    let compiled = compile(&spec).expect("compiles");
    let recorded = RecordedRun::of(&compiled, &spec);
    let programs = &compiled.compilation.programs;
    let copies = recorded
        .steps
        .iter()
        .filter(|step| programs[step.program.index()].kind == ProgramKind::GlobalExchange);
    let longest = |step: &ExecutionStep| step.ipus.iter().map(|on| on.range().length()).max();
    let links: Cycles = copies.filter_map(longest).sum();
    let update: Cycles = recorded.of_kind(MarkKind::Update).map(|mark| mark.cycles.length()).sum();
    assert!(links > Cycles(100_000), "{links} cycles on the links");
    assert!(
        update.as_f64() < 1.3 * links.as_f64(),
        "{update} cycles, {links} of them on the links"
    );
}

/// Parts of a micro-batch together do the work of the whole, with the same weights.
#[test]
fn parts_of_a_micro_batch_do_the_work_of_the_whole() {
    let parts = |factor: u64| {
        let factor = format!("options.batch_serialization_settings.factor={factor}");
        let spec = common::spec("mnist_pipeline", &["model.batch_size=32", &factor]);
        let compiled = compile(&spec).expect("compiles");
        let passes = |pass: TrainingPass| -> u64 {
            let operations = compiled.compilation.operations.iter();
            operations.filter(|of| of.pass == pass).map(|of| of.flops).sum()
        };
        let samples = compiled.compilation.batching.expect("there are samples").samples_per_call();
        let weights = variable_bytes(&compiled, "/weight", true);
        (passes(TrainingPass::Forward), samples, weights)
    };
    let whole = parts(1);
    assert!(whole.0 > 0 && whole.2 > Bytes::ZERO, "{whole:?}");
    for factor in [2, 4, 32] {
        assert_eq!(parts(factor), whole, "{factor} parts");
    }
}
