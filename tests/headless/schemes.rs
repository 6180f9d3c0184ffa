//! Every execution scheme, switched on and off on a small model: memory and time move the way
//! Graphcore's guides say they do.

use crate::common;
use crate::scheme_laws::RecordedRun;
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::collections::BTreeMap;
use std::convert::Infallible;
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::units::{Bytes, Cycles, IpuId, TileRuns};
use tilescope_report::{
    ExecutionStep, MarkKind, ProgramKind, Report, TileMemory, TraceMark, TrainingPass,
};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::run::{StepSink, dry_run, run};
use tilescope_sim::spec::{Spec, SpecSource};
use tilescope_test_tiers::slow_tests;

/// A mechanism, switched on by some overrides.
struct Scheme {
    name: &'static str,
    /// Overrides of both runs.
    base: &'static [&'static str],
    /// Overrides that switch it on.
    on: &'static [&'static str],
    /// Bytes in use with it, against without it; `None` where either may be.
    memory: Option<Ordering>,
    /// Cycles with it, against without it.
    cycles: Option<Ordering>,
}

const fn scheme(
    name: &'static str,
    base: &'static [&'static str],
    on: &'static [&'static str],
    memory: Option<Ordering>,
    cycles: Option<Ordering>,
) -> Scheme {
    Scheme { name, base, on, memory, cycles }
}

/// Every mechanism on the MNIST pipeline, one device iteration unless it says otherwise.
const SCHEMES: &[Scheme] = &[
    scheme(
        "pipelining",
        &["options.execution=sharded"],
        &["options.execution=pipelined"],
        Some(Greater),
        Some(Less),
    ),
    scheme(
        "interleaved schedule",
        &[],
        &["options.pipeline_schedule=interleaved"],
        Some(Less),
        Some(Greater),
    ),
    scheme(
        "sequential schedule",
        &[],
        &["options.pipeline_schedule=sequential"],
        Some(Less),
        Some(Greater),
    ),
    scheme(
        "stashes as the memory guide counts them",
        &[],
        &["options.stash_convention=memory_guide"],
        Some(Greater),
        Some(Greater),
    ),
    scheme(
        "several stages on one IPU",
        &[],
        &[
            "options.stages=[{blocks=\"B1\",ipu=0},{blocks=\"B2\",ipu=1},{blocks=\"B3\",ipu=1},{blocks=\"B4\",ipu=0}]",
        ],
        None,
        Some(Greater),
    ),
    scheme(
        "pipeline recomputation",
        &["model.batch_size=160"],
        &["options.recomputation=pipeline"],
        Some(Less),
        Some(Greater),
    ),
    scheme(
        "phases",
        &["options.execution=sharded"],
        &["options.execution=phased"],
        None,
        Some(Greater),
    ),
    scheme(
        "weights of phases on demand",
        &["options.execution=phased"],
        &["options.execution_phase_settings.weight_io_schedule=on_demand"],
        None,
        Some(Greater),
    ),
    scheme(
        "activations of phases on demand",
        &["options.execution=phased"],
        &["options.execution_phase_settings.activation_io_schedule=on_demand"],
        None,
        Some(Greater),
    ),
    scheme(
        "each step of the updates of a phase for all weights",
        &["options.execution=phased"],
        &["options.execution_phase_settings.schedule=batch"],
        None,
        Some(Less),
    ),
    scheme(
        "all IPUs on every phase",
        &["options.execution=phased"],
        &["options.execution_phase_settings.stages=1"],
        None,
        None,
    ),
    scheme(
        "batch serialisation",
        &["model.batch_size=160"],
        &["options.batch_serialization_settings.factor=4"],
        Some(Less),
        Some(Greater),
    ),
    scheme("replication", &[], &["options.replication_factor=4"], Some(Greater), Some(Greater)),
    scheme(
        "sync of single IPUs with the host",
        &["options.location.optimizer_state.on_chip=false"],
        &["options.sync_pattern=single_pipeline"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "results of the last micro-batch only",
        &[],
        &["options.output_mode=final"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "sums of results",
        &["options.output_mode=final"],
        &["options.output_mode=sum"],
        Some(Greater),
        Some(Greater),
    ),
    scheme(
        "results of every fifth micro-batch",
        &[],
        &["options.output_mode=every_n", "options.output_return_period=5"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "prefetch",
        &["options.host.seconds_per_micro_batch=60e-6", "options.host.sample_time_spread=1.0"],
        &["options.prefetch_depth=3"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "overlap of host copies",
        &["options.num_io_tiles=32"],
        &["options.overlap_io=inner_loop"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "inputs in bytes",
        &["model.batch_size=160"],
        &["options.input_type=uint8"],
        None,
        Some(Less),
    ),
    scheme(
        "normalisation on the IPU",
        &[],
        &["options.normalise_on_ipu=true"],
        None,
        Some(Greater),
    ),
    scheme("synthetic data", &[], &["options.host.loader=synthetic"], None, Some(Less)),
    scheme(
        "an asynchronous loader",
        &["options.host.loader=sync", "options.host.seconds_per_sample=1e-6"],
        &["options.host.loader=async"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "more workers",
        &["options.host.loader=sync", "options.host.seconds_per_sample=1e-5"],
        &["options.host.num_workers=8"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "optimiser state off the chip",
        &[],
        &["options.location.optimizer_state.on_chip=false"],
        None,
        Some(Greater),
    ),
    scheme(
        "weights off the chip",
        &[],
        &["options.location.weights.on_chip=false"],
        None,
        Some(Greater),
    ),
    scheme(
        "accumulators off the chip",
        &[],
        &["options.location.accumulators.on_chip=false"],
        None,
        Some(Greater),
    ),
    scheme(
        "activations off the chip",
        &["model.batch_size=160"],
        &["options.location.activations.on_chip=false"],
        Some(Less),
        Some(Greater),
    ),
    scheme(
        "replicated tensor sharding",
        &["options.replication_factor=4"],
        &["options.location.optimizer_state.replicated_tensor_sharding=true"],
        None,
        None,
    ),
    scheme(
        "host processes that share the replicas",
        &["options.replication_factor=16", "options.host.seconds_per_micro_batch=20e-6"],
        &["options.num_instances=4"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "hosts that share the replicas",
        &[
            "options.replication_factor=16",
            "options.num_instances=4",
            "options.host.shared_bytes_per_second=2e9",
        ],
        &["options.num_hosts=4"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "updates of IPUs side by side",
        &["options.location.optimizer_state.on_chip=false"],
        &["options.accumulate_outer_schedule=overlap_memory_optimized"],
        Some(Equal),
        Some(Less),
    ),
    scheme(
        "copies of streaming memory one by one",
        &["options.location.weights.on_chip=false"],
        &["options.merge_exchange=false"],
        None,
        Some(Greater),
    ),
    scheme(
        "collectives over all gradients",
        &["options.replication_factor=4"],
        &["options.merge_collectives=true"],
        Some(Less),
        Some(Less),
    ),
    scheme("half precision", &[], &["model.precision=float16"], Some(Less), Some(Less)),
    scheme(
        "linear layers split over IPUs",
        &[],
        &["options.tensor_parallel=2"],
        None,
        Some(Greater),
    ),
    scheme(
        "stochastic rounding",
        &[],
        &["options.stochastic_rounding=true"],
        Some(Greater),
        Some(Greater),
    ),
];

/// The MNIST pipeline with one device iteration, `base` and `more`.
fn simulated(base: &[&str], more: &[&str]) -> (Report, ReportSummary, tempfile::TempDir) {
    let one = ["options.device_iterations=1"];
    let overrides: Vec<&str> = one.iter().chain(base).chain(more).copied().collect();
    let (report, directory) = common::report("mnist_pipeline", &overrides);
    let figures = summary(&report).expect("figures");
    (report, figures, directory)
}

/// The end of the last step.
#[derive(Default)]
struct LastCycle(Cycles);

impl StepSink for LastCycle {
    type Error = Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Infallible> {
        let ends = step.ipus.iter().map(|on_ipu| on_ipu.to_max);
        self.0 = ends.max().map_or(self.0, |end| end.max(self.0));
        Ok(())
    }

    fn mark(&mut self, _: &TraceMark) -> Result<(), Infallible> {
        Ok(())
    }
}

/// Bytes in use and cycles of a run, without a report.
fn cost(base: &[&str], more: &[&str]) -> (Bytes, Cycles) {
    let one = ["options.device_iterations=1"];
    let overrides: Vec<&str> = one.iter().chain(base).chain(more).copied().collect();
    let spec = common::spec("mnist_pipeline", &overrides);
    let compiled = compile(&spec).expect("compiles");
    let mut last = LastCycle::default();
    match run(&compiled, &spec, &dry_run(&compiled, &spec), &mut last) {
        Ok(()) => {}
        Err(never) => match never {},
    }
    (compiled.compilation.tile_memory.map(TileMemory::excluding_gaps).total(), last.0)
}

#[test]
fn every_scheme_moves_memory_and_time_as_the_guides_say() {
    let mut wrong = Vec::new();
    let mut bases = BTreeMap::new();
    let every = if slow_tests() { 1 } else { 5 };
    for scheme in SCHEMES.iter().step_by(every) {
        let (bytes, cycles) = *bases.entry(scheme.base).or_insert_with(|| cost(scheme.base, &[]));
        let (bytes_with, cycles_with) = cost(scheme.base, scheme.on);
        if scheme.memory.is_some_and(|expected| expected != bytes_with.cmp(&bytes)) {
            wrong.push(format!("{}: {} B to {} B", scheme.name, bytes.0, bytes_with.0));
        }
        if scheme.cycles.is_some_and(|expected| expected != cycles_with.cmp(&cycles)) {
            wrong.push(format!("{}: {cycles} cycles to {cycles_with} cycles", scheme.name));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Bytes of the report's variables whose names end so.
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
fn state_off_the_chip_is_there_only_while_it_is_updated() {
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
fn stashes_are_as_deep_as_each_convention_says() {
    let depths = |overrides: &[&str]| compiled(overrides).schedule.stash_depths.clone();
    let guide = "options.stash_convention=memory_guide";
    let interleaved = "options.pipeline_schedule=interleaved";
    assert_eq!(depths(&[]), [7, 5, 3, 1]);
    assert_eq!(depths(&[guide]), [9, 7, 5, 3]);
    assert_eq!(depths(&[interleaved]), [4, 3, 2, 1]);
    assert_eq!(depths(&[interleaved, guide]), [5, 5, 5, 5]);
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
    let overrides = ["target.name=m2000".to_string(), "options.replication_factor=3".to_string()];
    let source = SpecSource::find("mnist_pipeline", &overrides).expect("bundled");
    let message = Spec::build(&source).expect_err("12 IPUs on a machine of 4").to_string();
    assert!(message.contains("take 16") && message.contains("\"pod16\""), "{message}");
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
fn split_layers_take_less_memory_and_talk_to_each_other() {
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
fn dithered_convolutions_lie_on_tiles_of_their_own() {
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

/// With merged collectives, an update of many replicas is little more than its bytes over the links.
#[test]
fn merged_collectives_are_bound_by_the_links() {
    let sets = [
        "target.ipus=1",
        "target.name=pod64",
        "model.layers=8",
        "model.width=1024",
        "options.replication_factor=64",
        "options.gradient_accumulation=2",
        "options.merge_collectives=true",
    ];
    let overrides: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let source = SpecSource::find("tests/data/specs/perceptron.toml", &overrides).expect("exists");
    let spec = Spec::build(&source).expect("is allowed");
    let compiled = compile(&spec).expect("compiles");
    let mut recorded = RecordedRun::default();
    let Ok(()) = run(&compiled, &spec, &dry_run(&compiled, &spec), &mut recorded);
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

/// Parts of a micro-batch do together what the whole does, with the same weights.
#[test]
fn parts_of_a_micro_batch_do_what_the_whole_does() {
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
