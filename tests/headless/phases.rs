//! Phases: the times of their loads from streaming memory, and batches that they process in parts.

use crate::common::{self, RecordedRun, refusal};
use std::collections::BTreeMap;
use tempfile::tempdir;
use tilescope_report::units::{Bytes, CycleRange, Cycles, IpuId};
use tilescope_report::{
    CategoryBytes, MarkKind, MemoryCategory, ProgramKind, Report, StreamEndpoint, TraceMark,
    TrainingPass,
};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::simulate;
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_test_tiers::up_to;

const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";
const SETTINGS: &str = "options.execution_phase_settings";
const FACTOR: &str = "options.batch_serialization_settings.factor";

/// A perceptron in phases, whose sets of IPUs load separately.
fn phased(more: &[&str]) -> Spec {
    let phased = ["options.execution=phased", "options.sync_pattern=replica_and_ladder"];
    common::spec(PERCEPTRON, &[&phased[..], more].concat())
}

/// Time and traffic of a run.
struct Figures {
    cycles: Cycles,
    /// Bytes from and to streaming memory, by the kind of data.
    moved: BTreeMap<String, Bytes>,
    /// Exchanges with streaming memory.
    exchanges: usize,
    /// Bytes on the fullest tile.
    fullest: Bytes,
}

fn figures(spec: &Spec) -> Figures {
    let compiled = compile(spec).expect("compiles");
    let recorded = RecordedRun::of(&compiled, spec);
    let mut moved: BTreeMap<String, Bytes> = BTreeMap::new();
    let mut exchanges = 0;
    for step in &recorded.steps {
        let program = &compiled.compilation.programs[step.program.index()];
        if program.stream == StreamEndpoint::RemoteBuffer {
            let bytes: Bytes =
                step.ipus.iter().map(|on_ipu| on_ipu.bytes_in + on_ipu.bytes_out).sum();
            exchanges += usize::from(program.kind == ProgramKind::StreamCopyBegin);
            *moved.entry(kind_of(&program.name)).or_default() += bytes;
        }
    }
    let tiles = compiled.compilation.tile_memory.iter();
    Figures {
        cycles: recorded.end(),
        moved,
        exchanges,
        fullest: tiles.map(|(_, of)| of.including_gaps).max().expect("there are tiles"),
    }
}

/// Weight, bias, accumulator or state: activations are separate.
fn kind_of(name: &str) -> String {
    let kinds = ["Accum___", "Accl", "weight", "bias"];
    kinds.into_iter().find(|kind| name.contains(kind)).unwrap_or("activations").to_owned()
}

/// Simulates a spec, and checks the invariants of the report.
fn keeps_laws(spec: &Spec) {
    let directory = tempdir().expect("a directory");
    simulate(spec, directory.path(), |_| {}).expect("simulates");
    let report = Report::open(directory.path()).expect("opens");
    assert_eq!(report.verify().expect("can be checked"), [], "{:?}", spec.text);
}

/// Copies from and to streaming memory, and the work of stages.
struct RemoteCopies(RecordedRun);

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
        for (step, number) in self.0.steps.iter().zip(0..) {
            let program = &compiled.compilation.programs[step.program.index()];
            let names = [("/remoteLoad", true), ("/remoteStore", false)];
            for (suffix, load) in names {
                if program.kind == ProgramKind::StreamCopyMid
                    && let Some(tensor) = program.name.strip_suffix(suffix)
                {
                    for on in &step.ipus {
                        let copies = found.entry((on.ipu, tensor.to_owned())).or_default();
                        copies.push(RemoteCopy { load, step: number, cycles: on.range() });
                    }
                }
            }
        }
        found
    }

    fn stages(&self) -> impl Iterator<Item = &TraceMark> {
        self.0.of_kind(MarkKind::Stage).chain(self.0.of_kind(MarkKind::Update))
    }

    /// True if a step belongs to the forward pass of a stage.
    fn is_forward(&self, ipu: IpuId, step: u64) -> bool {
        self.stages().any(|mark| {
            let own = mark.ipu == Some(ipu) && mark.pass == Some(TrainingPass::Forward);
            own && (mark.steps.start.0..mark.steps.end.0).contains(&step)
        })
    }

    fn is_update(&self, step: u64) -> bool {
        let mut updates = self.0.of_kind(MarkKind::Update);
        updates.any(|mark| (mark.steps.start.0..mark.steps.end.0).contains(&step))
    }

    /// True if the compute tiles work on a stage while a copy runs.
    fn works_during(&self, copy: &RemoteCopy) -> bool {
        let mut passes = self.0.of_kind(MarkKind::Stage);
        passes.any(|mark| mark.cycles.overlaps(copy.cycles))
    }

    /// True if a stage begins to work between two steps.
    fn works_between(&self, first: u64, last: u64) -> bool {
        self.stages().any(|mark| (first..last).contains(&mark.steps.start.0))
    }
}

/// The IPUs of a set share the layers of a phase if that is worth the copies between them.
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
            figures(&phased(&sizes)).cycles.as_f64()
        };
        let (one_pair, two_pairs, four_pairs) = (cycles(2), cycles(4), cycles(8));
        let place = format!("{batch} x {width}: {one_pair}, {two_pairs} and {four_pairs} cycles");
        // Data that are not split still cross from pair to pair once, over half as many links.
        assert!(two_pairs <= 1.03 * one_pair && four_pairs <= 1.03 * two_pairs, "{place}");
        assert!(one_pair >= speedup * two_pairs, "{place}");
    }
}

/// Loaded data were stored before, and their place on the chip was needed in between.
#[test]
fn phases_load_only_data_that_were_stored_and_removed() {
    let sets = ["options.execution=phased", "options.device_iterations=1"];
    let spec = common::spec("mnist_pipeline", &sets);
    let compiled = compile(&spec).expect("compiles");
    let seen = RemoteCopies(RecordedRun::of(&compiled, &spec));
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
        // The last stage starts its backward pass at once: its weights are still there.
        if tensor.starts_with("layer4/") {
            let loads = copies.iter().filter(|copy| copy.load && !seen.is_update(copy.step));
            assert_eq!(loads.count() as u64, spec.options.gradient_accumulation, "{tensor}");
        }
    }
    assert!(restored > 50, "{restored}");
}

const KINDS: [&str; 3] = ["weight", "activation", "accumulator"];

fn io_schedule(kind: &str, schedule: &str) -> String {
    format!("{SETTINGS}.{kind}_io_schedule={schedule}")
}

/// All schedules of weights, activations and accumulators.
fn io_schedules() -> impl Iterator<Item = Vec<String>> {
    (0..8u32).map(|choice| {
        let word = |at: u32| if choice >> at & 1 == 0 { "preload" } else { "on_demand" };
        KINDS.iter().zip(0..).map(|(kind, at)| io_schedule(kind, word(at))).collect()
    })
}

#[test]
fn every_way_to_load_is_causal() {
    let others: [&[&str]; 8] = [
        &["target.ipus=2"],
        &["options.sync_pattern=full", "options.execution_phase_settings.schedule=batch"],
        &["options.recomputation=auto", "options.num_io_tiles=32"],
        &["options.gradient_accumulation=1", "options.sync_pattern=single_pipeline"],
        &["options.replication_factor=2", "options.merge_collectives=true"],
        &["options.merge_exchange=false", "model.optimizer=adam"],
        &["model.width=1024", "model.batch_size=64", "options.gradient_accumulation=2"],
        &["options.accumulate_outer_schedule=overlap_cycle_optimized", "model.training=true"],
    ];
    for (schedules, more) in io_schedules().zip(others).take(up_to(4)) {
        let keys: Vec<&str> =
            schedules.iter().map(String::as_str).chain(more.iter().copied()).collect();
        keeps_laws(&phased(&keys));
    }
    let io_tiles = ["weights", "accumulators", "optimizer_state", "activations"]
        .map(|kind| format!("options.location.{kind}.use_io_tiles=true"));
    let keys = io_tiles.iter().map(String::as_str).chain(["options.num_io_tiles=32"]);
    keeps_laws(&phased(&keys.collect::<Vec<_>>()));
    for order in ["interleaving", "batch", "batch_clustered_io"] {
        for outer in ["serial", "overlap_cycle_optimized"] {
            keeps_laws(&phased(&[
                "options.gradient_accumulation=1",
                "model.optimizer=adam",
                "options.execution_phase_settings.optimizer_state_io_schedule=preload",
                &format!("{SETTINGS}.schedule={order}"),
                &format!("options.accumulate_outer_schedule={outer}"),
            ]));
        }
    }
}

/// The same bytes are moved at any time. Preloaded data are loaded beside the previous phase, and
/// take memory from then on.
///
/// This saves time only if the products of a phase take as long as the loads of the next one.
/// Otherwise preloading can even lose: the previous phase cannot pass on its gradients and start
/// its own loads until the next one has loaded everything. On demand, the next phase takes them
/// over sooner, and both load at once.
#[test]
fn preloading_takes_memory_for_time() {
    let bound_by_loads = ["model.width=1024", "model.batch_size=256"];
    let bound_by_products =
        ["model.width=4096", "model.batch_size=2048", "model.precision=float16"];
    for (sizes, hides_loads) in [(&bound_by_loads[..], false), (&bound_by_products[..], true)] {
        let sizes = [sizes, &["options.gradient_accumulation=3"]].concat();
        let early = figures(&phased(&sizes));
        for kind in KINDS.into_iter().take(up_to(1)) {
            let key = io_schedule(kind, "on_demand");
            let late = figures(&phased(&[&sizes[..], &[key.as_str()]].concat()));
            let place = format!("{kind}, {sizes:?}");
            assert_eq!(early.moved, late.moved, "{place}");
            assert!(early.fullest >= late.fullest, "{place}: {:?}", (early.fullest, late.fullest));
            let cycles = (early.cycles, late.cycles);
            assert!(!hides_loads || cycles.0 < cycles.1, "{place}: {cycles:?}");
        }
    }
}

/// Without gradient accumulation a phase updates its weights after its backward pass. Its state is
/// loaded with the weights, or when the gradient is available.
#[test]
fn state_is_loaded_with_the_weights_or_for_the_update() {
    let sizes = ["model.width=1024", "options.gradient_accumulation=1", "model.optimizer=adam"];
    let mut loads = Vec::new();
    for schedule in ["preload", "on_demand"] {
        let key = io_schedule("optimizer_state", schedule);
        let spec = phased(&[&sizes[..], &[key.as_str()]].concat());
        let compiled = compile(&spec).expect("compiles");
        let copies = RemoteCopies(RecordedRun::of(&compiled, &spec));
        let mut of_state = 0;
        for ((_, tensor), copies_of) in copies.by_tensor(&compiled) {
            for copy in copies_of.iter().filter(|copy| copy.load && tensor.contains("Accl")) {
                assert_eq!(copies.is_update(copy.step), schedule == "on_demand", "{tensor}");
                of_state += 1;
            }
        }
        loads.push(of_state);
        keeps_laws(&spec);
    }
    assert!(loads[0] > 0 && loads[0] == loads[1], "{loads:?}");
    let late = figures(&phased(&sizes));
    let key = io_schedule("optimizer_state", "preload");
    let early = figures(&phased(&[&sizes[..], &[key.as_str()]].concat()));
    assert_eq!(early.moved, late.moved);
    assert!(early.fullest >= late.fullest);
}

/// Copies of all weights of a phase, step by step, follow each other and are one exchange.
#[test]
fn updates_in_batches_merge_their_copies() {
    let [one_by_one, together] = ["interleaving", "batch"].map(|order| {
        let key = format!("{SETTINGS}.schedule={order}");
        figures(&phased(&["model.optimizer=adam", "model.width=512", key.as_str()]))
    });
    assert_eq!(one_by_one.moved, together.moved);
    assert!(one_by_one.exchanges > together.exchanges);
    assert!(one_by_one.cycles > together.cycles && one_by_one.fullest <= together.fullest);
}

/// On one IPU, loads of the I/O tiles for the next phase run beside the work of a phase if they are
/// clustered before it. Otherwise they begin when that work is over.
#[test]
fn only_clustered_loads_run_beside_the_work_of_one_set() {
    let by_io_tiles = ["weights", "accumulators", "optimizer_state", "activations"]
        .map(|kind| format!("options.location.{kind}.use_io_tiles=true"));
    let sizes =
        [["model.width=515", "model.batch_size=33"], ["model.width=770", "model.batch_size=7"]];
    for size in sizes {
        let mut cycles = Vec::new();
        let mut moved = Vec::new();
        for order in ["interleaving", "batch", "batch_clustered_io"] {
            let order = format!("{SETTINGS}.schedule={order}");
            let one_set = format!("{SETTINGS}.stages=1");
            let more =
                ["target.ipus=1", "options.num_io_tiles=64", "options.gradient_accumulation=1"];
            let keys = by_io_tiles.iter().chain([&order, &one_set]).map(String::as_str);
            let spec = phased(&keys.chain(more).chain(size).collect::<Vec<_>>());
            keeps_laws(&spec);
            let compiled = compile(&spec).expect("compiles");
            let copies = RemoteCopies(RecordedRun::of(&compiled, &spec));
            let mut beside = 0;
            for ((_, tensor), copies_of) in copies.by_tensor(&compiled) {
                // Optimiser's state is loaded for the update.
                for copy in copies_of.iter().filter(|of| of.load && !tensor.contains("Accl")) {
                    beside += usize::from(copies.works_during(copy));
                }
            }
            assert_eq!(beside > 0, order.ends_with("clustered_io"), "{order}, {size:?}");
            let figures = figures(&spec);
            cycles.push(figures.cycles);
            moved.push(figures.moved);
        }
        assert!(moved.windows(2).all(|two| two[0] == two[1]), "{moved:?}");
        assert!(cycles[2] < cycles[1] && cycles[1] <= cycles[0], "{size:?}: {cycles:?}");
    }
}

/// Clustered loads bring the optimiser's state at the beginning of the phase with the update: the
/// same bytes, before all work of the phase, and not later than step by step. If updates come after
/// the phases, they equal those of a batch.
#[test]
fn clustered_loads_come_first() {
    let state_by_io_tiles =
        ["options.location.optimizer_state.use_io_tiles=true", "options.num_io_tiles=32"];
    let order = |order: &str| format!("{SETTINGS}.schedule={order}");
    let small = ["model.width=515", "model.batch_size=33", "model.optimizer=adam"];
    for io_tiles in [&[][..], &state_by_io_tiles] {
        let sizes = [&small[..], &["options.gradient_accumulation=1"], io_tiles].concat();
        let [interleaved, batch, clustered] =
            ["interleaving", "batch", "batch_clustered_io"].map(|word| {
                let key = order(word);
                phased(&[&sizes[..], &[key.as_str()]].concat())
            });
        keeps_laws(&clustered);
        let compiled = compile(&clustered).expect("compiles");
        let copies = RemoteCopies(RecordedRun::of(&compiled, &clustered));
        let mut of_state = 0;
        for ((ipu, tensor), copies_of) in copies.by_tensor(&compiled) {
            for copy in copies_of.iter().filter(|copy| copy.load && tensor.contains("Accl")) {
                assert!(
                    !copies.is_update(copy.step) && !copies.is_forward(ipu, copy.step),
                    "{tensor}"
                );
                of_state += 1;
            }
        }
        assert!(of_state > 0, "state is loaded");
        let [interleaved, batch, clustered] =
            [interleaved, batch, clustered].map(|of| figures(&of));
        assert_eq!(clustered.moved, batch.moved);
        assert_eq!(clustered.moved, interleaved.moved);
        assert!(clustered.exchanges <= batch.exchanges);
        let cycles = [interleaved.cycles, batch.cycles, clustered.cycles];
        assert!(cycles[2] <= cycles[1], "{io_tiles:?}: {cycles:?}");
        assert!(cycles[2] <= cycles[0], "{io_tiles:?}: {cycles:?}");
        assert!(clustered.fullest >= batch.fullest, "state is there longer");
    }
    let [batch, clustered] = ["batch", "batch_clustered_io"].map(|word| {
        let key = order(word);
        let spec = phased(&[&small[..], &[key.as_str()]].concat());
        compile(&spec).expect("compiles").compilation
    });
    assert_eq!(batch.programs, clustered.programs);
}

#[test]
fn blocks_are_distributed_over_the_given_phases() {
    for phases in [1, 2, 3, 8] {
        let key = format!("{SETTINGS}.phases={phases}");
        let spec = phased(&["model.layers=8", "target.ipus=2", key.as_str()]);
        let compiled = compile(&spec).expect("compiles");
        assert_eq!(compiled.placement.stages.len(), phases);
        keeps_laws(&spec);
    }
}

fn forward_and_backward_flops(compiled: &CompiledProgram) -> u64 {
    let operations = compiled.compilation.operations.iter();
    let passes = operations.filter(|operation| operation.pass != TrainingPass::Update);
    passes.map(|operation| operation.flops).sum()
}

/// Compute batches do the work of the micro-batch, and sums of gradients in addition; weights and
/// accumulators are moved the same number of times.
#[test]
fn weights_are_loaded_once_for_all_compute_batches() {
    for accumulation in ["options.gradient_accumulation=1", "options.gradient_accumulation=4"] {
        // Two IPUs, one per set: several per set share the layers of a phase if that is worth it,
        // which would give another split for other batches.
        let sizes = ["model.width=256", "model.batch_size=64", "target.ipus=2", accumulation];
        let whole = phased(&sizes);
        let (flops, before) =
            (forward_and_backward_flops(&compile(&whole).expect("compiles")), figures(&whole));
        for factor in [4, 2, 8].into_iter().take(up_to(1)) {
            let key = format!("{FACTOR}={factor}");
            let parts = phased(&[&sizes[..], &[key.as_str()]].concat());
            let split = forward_and_backward_flops(&compile(&parts).expect("compiles"));
            assert!(split >= flops && split - flops < flops / 10, "{split} for {flops}");
            assert_eq!(before.moved, figures(&parts).moved, "{accumulation}, {factor}");
        }
    }
}

/// Tensors between operations have the size of a compute batch.
#[test]
fn compute_batches_take_less_memory() {
    let sizes = ["model.width=512", "model.batch_size=4096", "options.recomputation=auto"];
    let fullest = |factor: u32| {
        let key = format!("{FACTOR}={factor}");
        let more = [&sizes[..], &[key.as_str(), "options.gradient_accumulation=2"]].concat();
        figures(&phased(&more)).fullest
    };
    let fullest = [0, 1, 4, 16].map(fullest);
    assert_eq!(fullest[0], fullest[1]);
    assert!(fullest[1..].is_sorted_by(|fewer, more| fewer > more), "{fullest:?}");
}

/// All models that have samples, in all execution strategies.
#[test]
fn every_model_with_samples_is_split_by_samples() {
    let models = [
        "name = \"mlp\"\nlayers = 2",
        "name = \"classification\"\nimage_size = 24",
        "name = \"lstm\"",
        "name = \"mnist\"",
        "name = \"resnet18\"\nimage_size = 32",
        "name = \"bert\"\nlayers = 1\nhidden = 64\nheads = 2\nintermediate = 128\nmasked_tokens = 2\nsequence_length = 16\nvocab_size = 256",
        "name = \"vit\"\nlayers = 1\nhidden = 64\nheads = 2\nintermediate = 128\nimage_size = 32",
        "name = \"gpt2\"\nlayers = 1\nhidden = 64\nheads = 2\nsequence_length = 16\nvocab_size = 256",
    ];
    let executions = ["pipelined", "sharded", "phased"];
    for (index, model) in models.into_iter().enumerate().take(up_to(4)) {
        let execution = executions[index % 3];
        let text = format!(
            "[model]\n{model}\nbatch_size = 4\n[target]\nname = \"mk2\"\nipus = 2\n\
             [options]\nexecution = \"{execution}\"\nauto_stage = \"same_as_ipu\"\n\
             gradient_accumulation = 3\nbatch_serialization_settings.factor = 2"
        );
        keeps_laws(&Spec::build(&SpecSource::from_text("test", &text)).expect("is allowed"));
    }
}

/// All phases on the same IPUs: I/O tiles load beside the previous phase.
#[test]
fn one_set_of_ipus_loads_by_io_tiles() {
    let kinds = ["weights", "accumulators", "optimizer_state", "activations"];
    let io_tiles = kinds.map(|kind| format!("options.location.{kind}.use_io_tiles=true"));
    let one = format!("{SETTINGS}.stages=1");
    let sizes = ["model.width=512", "model.batch_size=256", "options.num_io_tiles=64"];
    for ipus in ["target.ipus=3", "target.ipus=1", "target.ipus=2"].into_iter().take(up_to(1)) {
        let base = [&sizes[..], &[ipus, one.as_str()]].concat();
        let beside: Vec<&str> = io_tiles.iter().map(String::as_str).chain(base.clone()).collect();
        for keys in [&base, &beside] {
            keeps_laws(&phased(keys));
        }
        let on_demand: Vec<String> = KINDS.map(|kind| io_schedule(kind, "on_demand")).to_vec();
        let late: Vec<&str> =
            beside.iter().copied().chain(on_demand.iter().map(String::as_str)).collect();
        keeps_laws(&phased(&late));
        let (early, late) = (figures(&phased(&beside)), figures(&phased(&late)));
        assert_eq!(early.moved, late.moved);
        assert!(early.cycles < late.cycles, "{ipus}: {} >= {}", early.cycles, late.cycles);
    }
}

/// Phases exist for models that do not fit: a tile holds the weights of some layers, for any number
/// of layers.
#[test]
fn the_fullest_tile_does_not_grow_with_the_layers() {
    for accumulation in [1, 3] {
        for schedule in ["preload", "on_demand"] {
            let fullest = |layers: u32| {
                let keys = [
                    format!("model.layers={layers}"),
                    format!("options.gradient_accumulation={accumulation}"),
                    io_schedule("weight", schedule),
                    "options.location.activations.on_chip=false".to_owned(),
                    "model.width=520".to_owned(),
                    "target.ipus=2".to_owned(),
                ];
                let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
                let compiled = compile(&phased(&keys)).expect("compiles");
                data_of_fullest_tile(&compiled)
            };
            let few = fullest(5);
            for layers in [8, 13, 24].into_iter().take(up_to(2)) {
                assert_eq!(fullest(layers), few, "{layers}, {accumulation}, {schedule}");
            }
        }
    }
}

/// The most bytes of data that are live at once on a tile, without code and always-live data.
fn data_of_fullest_tile(compiled: &CompiledProgram) -> Bytes {
    let tiles = compiled.compilation.tile_memory.iter();
    tiles.map(|(_, of)| of.peak_not_always_live).max().expect("there are tiles")
}

/// Offloading unused tensors makes no tile fuller, except by the code of the copies.
#[test]
fn off_loading_makes_no_tile_fuller_than_its_code() {
    const LOCATIONS: [&str; 3] = ["weights", "accumulators", "optimizer_state"];
    for (spec, keys) in [
        (PERCEPTRON, &["model.width=777", "target.ipus=1", "model.optimizer=adam"][..]),
        (PERCEPTRON, &["model.width=520", "target.ipus=4", "model.batch_size=65"]),
        ("mnist_pipeline", &["options.device_iterations=1"]),
    ] {
        let compiled = |off: &[&str]| {
            let off = off.iter().map(|of| format!("options.location.{of}.on_chip=false"));
            let off: Vec<String> = off.collect();
            let off = off.iter().map(String::as_str);
            let keys: Vec<&str> = keys.iter().copied().chain(off).collect();
            compile(&common::spec(spec, &keys)).expect("compiles")
        };
        let on_chip = compiled(&[]);
        for off in LOCATIONS {
            let off_chip = compiled(&[off]);
            let fullest = [&on_chip, &off_chip].map(|of| {
                let tiles = of.compilation.tile_memory.iter();
                tiles.map(|(_, tile)| tile.including_gaps).max().expect("there are tiles")
            });
            let code = [&on_chip, &off_chip].map(|of| {
                let tiles = of.compilation.tile_categories.iter();
                let code = |shares: &Vec<CategoryBytes>| -> Bytes {
                    let data = |share: &&CategoryBytes| share.category == MemoryCategory::Variable;
                    shares.iter().filter(|share| !data(share)).map(|share| share.bytes).sum()
                };
                tiles.map(|(_, shares)| code(shares)).max().expect("there are tiles")
            });
            let more_code = code[1].saturating_sub(code[0]);
            assert!(
                fullest[1] <= fullest[0] + more_code,
                "{spec} {keys:?}, {off}: {fullest:?}, code {code:?}"
            );
        }
    }
}

#[test]
fn settings_without_effect_are_refused() {
    let phased = "options.execution=phased";
    let weights = io_schedule("weight", "on_demand");
    assert!(refusal(PERCEPTRON, &[&weights]).contains("phase settings require"));
    let state = io_schedule("optimizer_state", "preload");
    assert!(refusal(PERCEPTRON, &[phased, &state]).contains("follows the phases"));
    let phases = format!("{SETTINGS}.phases=9");
    assert!(refusal(PERCEPTRON, &[phased, &phases]).contains("the model has 4"));
    let stages = "options.stages=[[\"L0\",\"L1\"],[\"L2\",\"L3\"]]";
    let two = format!("{SETTINGS}.phases=2");
    assert!(
        refusal(PERCEPTRON, &[phased, &two, stages, "target.ipus=2"]).contains("options.stages")
    );
    let thirds = format!("{FACTOR}=3");
    assert!(refusal(PERCEPTRON, &[&thirds]).contains("3 equal parts"));
    let halves = format!("{FACTOR}=2");
    assert!(refusal("heat_stencil", &[&halves]).contains("1 samples"));
}
