//! Every execution scheme, switched on and off on a small model: memory and time move the way
//! Graphcore's guides say they do.

use crate::common;
use crate::scheme_laws::RecordedRun;
use proptest::prelude::*;
use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::collections::BTreeMap;
use std::convert::Infallible;
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId, ProgramId, TileRuns};
use tilescope_report::{
    ExecutionStep, MarkFilter, MarkKind, ProgramKind, Report, StepOnIpu, TileMemory, TraceMark,
    TrainingPass,
};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::run::{StepSink, dry_run, run};
use tilescope_sim::spec::{BUNDLED_SPECS, Spec, SpecSource};
use tilescope_sim::{Simulation, balance};

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

/// Copies from and to streaming memory, and when stages work.
#[derive(Default)]
struct RemoteCopies {
    steps: u64,
    /// Program, IPU, number of the step, and its cycles.
    copies: Vec<(ProgramId, IpuId, u64, CycleRange)>,
    stages: Vec<TraceMark>,
}

impl StepSink for RemoteCopies {
    type Error = Infallible;

    fn step(&mut self, step: &ExecutionStep) -> Result<(), Infallible> {
        let here = |on: &StepOnIpu| (step.program, on.ipu, self.steps, on.range());
        self.copies.extend(step.ipus.iter().map(here));
        self.steps += 1;
        Ok(())
    }

    fn mark(&mut self, mark: &TraceMark) -> Result<(), Infallible> {
        if matches!(mark.kind, MarkKind::Stage | MarkKind::Update) {
            self.stages.push(mark.clone());
        }
        Ok(())
    }
}

/// A copy of a tensor between an IPU and streaming memory.
struct RemoteCopy {
    load: bool,
    step: u64,
    cycles: CycleRange,
}

impl RemoteCopies {
    /// Copies of each tensor on each IPU, in order.
    fn by_tensor(&self, compiled: &CompiledProgram) -> BTreeMap<(IpuId, String), Vec<RemoteCopy>> {
        let mut found: BTreeMap<_, Vec<RemoteCopy>> = BTreeMap::new();
        for (program, ipu, step, cycles) in &self.copies {
            let program = &compiled.compilation.programs[program.index()];
            let names = [("/remoteLoad", true), ("/remoteStore", false)];
            for (suffix, load) in names {
                if program.kind == ProgramKind::StreamCopyMid
                    && let Some(tensor) = program.name.strip_suffix(suffix)
                {
                    let copies = found.entry((*ipu, tensor.to_owned())).or_default();
                    copies.push(RemoteCopy { load, step: *step, cycles: *cycles });
                }
            }
        }
        found
    }

    /// Whether a step is of the forward pass of a stage.
    fn is_forward(&self, ipu: IpuId, step: u64) -> bool {
        self.stages.iter().any(|mark| {
            let own = mark.ipu == Some(ipu) && mark.pass == Some(TrainingPass::Forward);
            own && (mark.steps.start.0..mark.steps.end.0).contains(&step)
        })
    }

    fn is_update(&self, step: u64) -> bool {
        let updates = self.stages.iter().filter(|mark| mark.kind == MarkKind::Update);
        updates.into_iter().any(|mark| (mark.steps.start.0..mark.steps.end.0).contains(&step))
    }

    /// Whether a stage begins to work between two steps.
    fn works_between(&self, first: u64, last: u64) -> bool {
        self.stages.iter().any(|mark| (first..last).contains(&mark.steps.start.0))
    }
}

/// Cycles of a perceptron in phases.
fn cycles_in_phases(overrides: &[&str]) -> Cycles {
    let phased = ["options.execution=phased", "options.sync_pattern=replica_and_ladder"];
    let overrides: Vec<String> =
        overrides.iter().chain(&phased).map(|text| (*text).to_owned()).collect();
    let source = SpecSource::find("tests/data/specs/perceptron.toml", &overrides).expect("exists");
    let spec = Spec::build(&source).expect("is sane");
    let compiled = compile(&spec).expect("compiles");
    let mut recorded = RecordedRun::default();
    let Ok(()) = run(&compiled, &spec, &dry_run(&compiled, &spec), &mut recorded);
    let ends = recorded.steps.iter().flat_map(|step| &step.ipus).map(|on_ipu| on_ipu.to_max);
    ends.max().expect("there are steps")
}

/// The IPUs of a set share the layers of a phase where that is worth the copies between them.
#[test]
fn more_pairs_of_ipus_make_phases_faster_and_never_slower() {
    for (width, batch, accumulation, speedup) in
        [(2048, 16, 1, 1.5), (2048, 64, 3, 1.5), (512, 512, 2, 0.97), (64, 8, 4, 0.97)]
    {
        let cycles = |ipus: u32| {
            let sizes = [
                format!("model.width={width}"),
                format!("model.classes={width}"),
                format!("model.batch_size={batch}"),
                format!("options.gradient_accumulation={accumulation}"),
                format!("target.ipus={ipus}"),
            ];
            let sizes: Vec<&str> = sizes.iter().map(String::as_str).collect();
            cycles_in_phases(&sizes).as_f64()
        };
        let (one_pair, two_pairs, four_pairs) = (cycles(2), cycles(4), cycles(8));
        let place = format!("{batch} x {width}: {one_pair}, {two_pairs} and {four_pairs} cycles");
        // What is not split still crosses from pair to pair once, over half as many links.
        assert!(two_pairs <= 1.03 * one_pair && four_pairs <= 1.03 * two_pairs, "{place}");
        assert!(one_pair >= speedup * two_pairs, "{place}");
    }
}

/// What is loaded was stored before, and its place on the chip was needed in between.
#[test]
fn phases_load_what_was_stored_and_is_not_there() {
    let sets = ["options.execution=phased", "options.device_iterations=1"];
    let spec = common::spec("mnist_pipeline", &sets);
    let compiled = compile(&spec).expect("compiles");
    let mut seen = RemoteCopies::default();
    let Ok(()) = run(&compiled, &spec, &dry_run(&compiled, &spec), &mut seen);
    let mut restored = 0;
    for ((ipu, tensor), copies) in seen.by_tensor(&compiled) {
        let stored = |copy: &RemoteCopy| !copy.load && seen.is_forward(ipu, copy.step);
        assert!(!copies[0].load || !copies.iter().any(stored), "{tensor} is loaded first");
        for pair in copies.windows(2).filter(|pair| pair[1].load) {
            let [before, load] = pair else { continue };
            let place = format!("{tensor} on IPU {ipu}, steps {} and {}", before.step, load.step);
            assert!(load.cycles.start >= before.cycles.end, "{place}: loaded too early");
            assert!(seen.works_between(before.step, load.step), "{place}: stored for nothing");
            restored += u32::from(!before.load);
        }
        // The last stage goes back at once: its weights are still there.
        if tensor.starts_with("layer4/") {
            let loads = copies.iter().filter(|copy| copy.load && !seen.is_update(copy.step));
            assert_eq!(loads.count() as u64, spec.options.gradient_accumulation, "{tensor}");
        }
    }
    assert!(restored > 50, "{restored}");
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
    for scheme in SCHEMES {
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

/// Cycles of a spec with automatic stages.
fn cycles_of_auto_stages(name: &str, auto: &str, overrides: &[&str]) -> Cycles {
    let auto = format!("options.auto_stage={auto}");
    let overrides: Vec<String> =
        [&[auto.as_str()], overrides].concat().into_iter().map(str::to_owned).collect();
    let source = SpecSource::find(name, &overrides).expect("exists");
    let spec = Spec::build(&source).expect("is sane");
    let simulation = Simulation::compile(&spec, u64::MAX).expect("compiles");
    simulation.figures().cycles.expect("fits")
}

/// Specs whose blocks can be split over their IPUs: perceptrons, the bundled pipelines in small, and
/// imported files.
fn specs_to_split() -> Vec<(String, Vec<String>)> {
    let mut specs: Vec<(String, String)> = Vec::new();
    let sizes = ["6 512 2", "7 64 2", "7 256 4", "5 1024 3", "9 128 4"];
    for (size, more) in sizes.into_iter().flat_map(|size| {
        let schemes = ["", "options.recomputation=auto", "options.pipeline_schedule=interleaved"];
        schemes.map(|more| (size, more))
    }) {
        let keys = ["model.layers", "model.width", "target.ipus"];
        let sizes = keys.iter().zip(size.split(' ')).map(|(key, size)| format!("{key}={size}"));
        let sizes: Vec<String> = sizes.collect();
        specs.push((
            "tests/data/specs/perceptron.toml".to_owned(),
            format!("{} {more}", sizes.join(" ")),
        ));
    }
    for bundled in BUNDLED_SPECS.iter().filter(|spec| spec.text.contains("\nstages = ")) {
        let sizes = match bundled.name {
            "mnist_pipeline" | "gpt2_small_pod16" | "vit_base_pod16" => "",
            _ => "model.layers=5",
        };
        let one = "options.stages=[] options.replication_factor=1 target.ipus=3";
        specs.push((bundled.name.to_owned(), format!("{sizes} {one}")));
    }
    let loss = "model.loss=cross_entropy";
    for (file, more) in [
        ("guide_mnist.onnx", loss),
        ("guide_mnist_loss.onnx", "model.training=true"),
        ("mnist_dynamo.onnx", loss),
        ("transformer.onnx", "model.training=false"),
    ] {
        let file = format!("{}/tests/data/onnx/{file}", env!("CARGO_MANIFEST_DIR"));
        specs.push((file.clone(), format!("{more} target.ipus=2")));
        specs.push((file, format!("{more} target.ipus=2 options.execution=sharded")));
    }
    let short = "options.gradient_accumulation=12 options.device_iterations=1";
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect();
    specs.into_iter().map(|(name, more)| (name, words(&format!("{short} {more}")))).collect()
}

/// Splits are tried, the even one among them.
#[test]
fn a_balanced_split_is_never_longer_than_the_even_one() {
    let mut shorter = 0;
    for (name, overrides) in specs_to_split() {
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        let cycles = |auto: &str| cycles_of_auto_stages(&name, auto, &overrides);
        let (balanced, even) = (cycles("balanced"), cycles("same_as_ipu"));
        assert!(balanced <= even, "{name} {overrides:?}: {balanced} > {even}");
        shorter += usize::from(balanced < even);
    }
    assert!(shorter > 5, "it is worth the search: {shorter}");
}

/// The same for splits that specs write: bundled pipelines in small, and one that is as uneven as
/// can be.
#[test]
fn a_balanced_split_is_never_longer_than_the_written_one() {
    let perceptron = "tests/data/specs/perceptron.toml";
    let uneven = "model.layers=6 target.ipus=2 options.stages=[[\"L0\",\"L1\",\"L2\",\"L3\",\"L4\"],[\"L5\"]]";
    let mut specs = vec![(perceptron, uneven.to_owned())];
    for execution in ["sharded", "phased"] {
        specs.push((perceptron, format!("{uneven} options.execution={execution}")));
    }
    for name in ["mnist_pipeline", "vit_base_pod16"] {
        specs.push((name, "options.replication_factor=1".to_owned()));
    }
    // More micro-batches than splits are tried with.
    specs.push((perceptron, format!("{uneven} options.device_iterations=2000")));
    for (name, overrides) in specs {
        let mut overrides: Vec<String> = overrides.split(' ').map(str::to_owned).collect();
        let length = |overrides: &[String]| {
            let source = SpecSource::find(name, overrides).expect("exists");
            let spec = Spec::build(&source).expect("is sane");
            let simulation = Simulation::compile(&spec, u64::MAX).expect("compiles");
            (simulation.figures().cycles.expect("fits"), balance(&spec).expect("is split"))
        };
        let (written, found) = length(&overrides);
        let stages: Vec<String> =
            found.stages.iter().map(|stage| format!("{:?}", stage.blocks)).collect();
        overrides.push(format!("options.stages=[{}]", stages.join(",")));
        let (balanced, _) = length(&overrides);
        assert!(balanced <= written, "{name} {overrides:?}: {balanced} > {written}");
        assert!(!found.is_written || balanced == written, "{name} {overrides:?}");
    }
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

fn marks(report: &Report, kind: MarkKind) -> Vec<TraceMark> {
    let filter = MarkFilter { kind: Some(kind), ipu: None, window: None, limit: usize::MAX };
    report.marks(&filter).expect("marks")
}

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    proptest::sample::select(words)
}

/// Option sets, sane and not.
fn any_options() -> impl Strategy<Value = Vec<String>> {
    let schemes = (
        one_of(&["pipelined", "sharded", "phased"]),
        one_of(&["grouped", "interleaved", "sequential"]),
        one_of(&["popart", "memory_guide"]),
        one_of(&["none", "auto", "checkpoints", "pipeline"]),
        one_of(&["full", "single_pipeline", "replica_and_ladder"]),
        1u32..14,
        1u32..4,
    );
    let rest = (
        one_of(&["1", "2", "3", "4", "8"]),
        one_of(&["0", "32", "33", "64"]),
        one_of(&["none", "inner_loop", "loops"]),
        one_of(&["all", "final", "sum", "every_n"]),
        one_of(&["true", "false"]),
        one_of(&["true", "false"]),
        one_of(&["none", "async", "async_rebatched", "sync", "synthetic"]),
        one_of(&["true", "false"]),
    );
    (schemes, rest).prop_map(|(a, b)| {
        vec![
            format!("options.execution={}", a.0),
            format!("options.pipeline_schedule={}", a.1),
            format!("options.stash_convention={}", a.2),
            format!("options.recomputation={}", a.3),
            format!("options.sync_pattern={}", a.4),
            format!("options.gradient_accumulation={}", a.5),
            format!("options.device_iterations={}", a.6),
            format!("options.replication_factor={}", b.0),
            format!("options.num_io_tiles={}", b.1),
            format!("options.overlap_io={}", b.2),
            format!("options.output_mode={}", b.3),
            format!("options.location.optimizer_state.on_chip={}", b.4),
            format!("options.location.activations.on_chip={}", b.5),
            format!("options.host.loader={}", b.6),
            format!("model.training={}", b.7),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_options_are_simulated_by_the_laws_or_refused_with_a_word(overrides in any_options()) {
        let source = SpecSource::find("tests/data/specs/perceptron.toml", &overrides).expect("spec");
        let spec = match Spec::build(&source) {
            Ok(spec) => spec,
            Err(error) => {
                prop_assert!(error.to_string().len() > 20, "{}", error);
                return Ok(());
            }
        };
        let directory = tempfile::tempdir().expect("temporary directory");
        let path = match tilescope_sim::simulate(&spec, directory.path(), |_| ()) {
            Ok(path) => path,
            Err(error) => {
                prop_assert!(error.to_string().len() > 20, "{}", error);
                return Ok(());
            }
        };
        let report = Report::open(&path).expect("opens");
        let options = &spec.options;
        // Every micro-batch makes every pass of every stage, once.
        let micro_batches = options.gradient_accumulation * options.device_iterations;
        let passes = if spec.model.training { 2 } else { 1 };
        let turns = marks(&report, MarkKind::Stage).len() as u64;
        let compiled = compile(&spec).expect("compiles again");
        let stages = compiled.placement.stages.len() as u64;
        prop_assert_eq!(turns, micro_batches * passes * stages);
        // No step of a lane begins before the one before it ends: nobody waits for ever.
        let trace = report.trace().expect("readable").expect("executed");
        for info in trace.lanes() {
            let lane = trace.lane_of(info.ipu, info.sub_lane).expect("lane");
            let mut end = 0;
            for step in lane.steps_in(trace.range(), usize::MAX).expect("steps") {
                prop_assert!(step.range.start >= Cycles(end));
                end = step.range.end.0;
            }
        }
        // No variable of one IPU lies on two; code and the like do.
        for variable in &compiled.compilation.variables {
            if variable.shape.is_empty() {
                continue;
            }
            let target = &compiled.compilation.target;
            let mut ipus: Vec<IpuId> = variable
                .tiles
                .iter()
                .map(|(range, _)| target.ipu_of_tile(range.first))
                .collect();
            ipus.dedup();
            prop_assert_eq!(ipus.len(), 1, "{}", &variable.name);
        }
    }
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
        let weights = variable_bytes(&compiled, "/weights", true);
        (passes(TrainingPass::Forward), samples, weights)
    };
    let whole = parts(1);
    assert!(whole.0 > 0 && whole.2 > Bytes::ZERO, "{whole:?}");
    for factor in [2, 4, 32] {
        assert_eq!(parts(factor), whole, "{factor} parts");
    }
}
