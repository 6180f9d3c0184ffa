//! Phases: when they load what lives in streaming memory, and batches that they work on in parts.

use crate::common;
use crate::scheme_laws::RecordedRun;
use std::collections::BTreeMap;
use tempfile::tempdir;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_report::{ProgramKind, Report, StreamEndpoint, TrainingPass};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::run::{dry_run, run};
use tilescope_sim::simulate;
use tilescope_sim::spec::{Spec, SpecSource};

const PERCEPTRON: &str = "tests/data/specs/perceptron.toml";
const SETTINGS: &str = "options.execution_phase_settings";
const FACTOR: &str = "options.batch_serialization_settings.factor";

/// A perceptron in phases, whose sets of IPUs load apart.
fn phased(more: &[&str]) -> Spec {
    let phased = ["options.execution=phased", "options.sync_pattern=replica_and_ladder"];
    common::spec(PERCEPTRON, &[&phased[..], more].concat())
}

/// What a run takes and moves.
struct Figures {
    cycles: Cycles,
    /// Bytes from and to streaming memory, by the kind of what is moved.
    moved: BTreeMap<String, Bytes>,
    /// Exchanges with streaming memory.
    exchanges: usize,
    /// Bytes on the fullest tile.
    fullest: Bytes,
}

fn figures(spec: &Spec) -> Figures {
    let compiled = compile(spec).expect("compiles");
    let mut recorded = RecordedRun::default();
    let Ok(()) = run(&compiled, spec, &dry_run(&compiled, spec), &mut recorded);
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
    let ends = recorded.steps.iter().flat_map(|step| &step.ipus).map(|on_ipu| on_ipu.to_max);
    let tiles = compiled.compilation.tile_memory.iter();
    Figures {
        cycles: ends.max().expect("there are steps"),
        moved,
        exchanges,
        fullest: tiles.map(|(_, of)| of.including_gaps).max().expect("there are tiles"),
    }
}

/// Weight, bias, accumulator or state: activations are by themselves.
fn kind_of(name: &str) -> String {
    let kinds = ["Accum___", "Accl", "weight", "bias"];
    kinds.into_iter().find(|kind| name.contains(kind)).unwrap_or("activations").to_owned()
}

/// Simulates; the report keeps all laws.
fn keeps_laws(spec: &Spec) {
    let directory = tempdir().expect("a directory");
    simulate(spec, directory.path(), |_| {}).expect("simulates");
    let report = Report::open(directory.path()).expect("opens");
    assert_eq!(report.verify().expect("can be checked"), [], "{:?}", spec.text);
}

const KINDS: [&str; 3] = ["weight", "activation", "accumulator"];

fn io_schedule(kind: &str, schedule: &str) -> String {
    format!("{SETTINGS}.{kind}_io_schedule={schedule}")
}

/// Schedules of weights, activations and accumulators, all of them.
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
    for (schedules, more) in io_schedules().zip(others) {
        let keys: Vec<&str> =
            schedules.iter().map(String::as_str).chain(more.iter().copied()).collect();
        keeps_laws(&phased(&keys));
    }
    let io_tiles = ["weights", "accumulators", "optimizer_state", "activations"]
        .map(|kind| format!("options.location.{kind}.use_io_tiles=true"));
    let keys = io_tiles.iter().map(String::as_str).chain(["options.num_io_tiles=32"]);
    keeps_laws(&phased(&keys.collect::<Vec<_>>()));
    for order in ["interleaving", "batch"] {
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

/// The same bytes are moved whenever that is. What is preloaded comes beside the phase before, and
/// takes memory from then on.
#[test]
fn preloading_takes_memory_for_time() {
    let sizes = ["model.width=1024", "model.batch_size=256", "options.gradient_accumulation=3"];
    let early = figures(&phased(&sizes));
    for kind in KINDS {
        let key = io_schedule(kind, "on_demand");
        let late = figures(&phased(&[&sizes[..], &[key.as_str()]].concat()));
        assert_eq!(early.moved, late.moved, "{kind}");
        assert!(early.cycles <= late.cycles, "{kind}: {} > {}", early.cycles, late.cycles);
        assert!(early.fullest >= late.fullest, "{kind}: {:?} < {:?}", early.fullest, late.fullest);
    }
    let key = io_schedule("weight", "on_demand");
    let late = figures(&phased(&[&sizes[..], &[key.as_str()]].concat()));
    assert!(early.cycles < late.cycles, "weights come beside the phase before");
}

#[test]
fn state_is_preloaded_beside_the_update_before() {
    let sizes = ["model.width=1024", "options.gradient_accumulation=1", "model.optimizer=adam"];
    let key = format!("{SETTINGS}.optimizer_state_io_schedule=preload");
    let late = figures(&phased(&sizes));
    let early = figures(&phased(&[&sizes[..], &[key.as_str()]].concat()));
    assert_eq!(early.moved, late.moved);
    assert!(early.cycles < late.cycles, "{} >= {}", early.cycles, late.cycles);
    assert!(early.fullest >= late.fullest);
}

/// Copies of all weights of a phase, step by step, follow each other, and are one exchange.
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

#[test]
fn blocks_are_dealt_over_as_many_phases() {
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

/// Compute batches do what the micro-batch did, and sums of gradients besides; weights and
/// accumulators are moved as often as before.
#[test]
fn weights_are_loaded_once_for_all_compute_batches() {
    for accumulation in ["options.gradient_accumulation=1", "options.gradient_accumulation=4"] {
        let sizes = ["model.width=256", "model.batch_size=64", accumulation];
        let whole = phased(&sizes);
        let (flops, before) =
            (forward_and_backward_flops(&compile(&whole).expect("compiles")), figures(&whole));
        for factor in [2, 4, 8] {
            let key = format!("{FACTOR}={factor}");
            let parts = phased(&[&sizes[..], &[key.as_str()]].concat());
            let split = forward_and_backward_flops(&compile(&parts).expect("compiles"));
            assert!(split >= flops && split - flops < flops / 10, "{split} for {flops}");
            assert_eq!(before.moved, figures(&parts).moved, "{accumulation}, {factor}");
        }
    }
}

/// Tensors between operations are as small as those of a compute batch.
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

/// All models that have samples, in all executions.
#[test]
fn every_model_with_samples_is_split_by_samples() {
    let models = [
        "name = \"mlp\"\nlayers = 2",
        "name = \"mnist\"",
        "name = \"classification\"\nimage_size = 24",
        "name = \"resnet18\"\nimage_size = 32",
        "name = \"bert\"\nlayers = 1\nhidden = 64\nheads = 2\nintermediate = 128\nmasked_tokens = 2\nsequence_length = 16\nvocab_size = 256",
        "name = \"vit\"\nlayers = 1\nhidden = 64\nheads = 2\nintermediate = 128\nimage_size = 32",
        "name = \"gpt2\"\nlayers = 1\nhidden = 64\nheads = 2\nsequence_length = 16\nvocab_size = 256",
        "name = \"lstm\"",
    ];
    let executions = ["pipelined", "sharded", "phased"];
    for (index, model) in models.into_iter().enumerate() {
        let execution = executions[index % 3];
        let text = format!(
            "[model]\n{model}\nbatch_size = 4\n[target]\nname = \"mk2\"\nipus = 2\n\
             [options]\nexecution = \"{execution}\"\nauto_stage = \"same_as_ipu\"\n\
             gradient_accumulation = 3\nbatch_serialization_settings.factor = 2"
        );
        keeps_laws(&Spec::build(&SpecSource::from_text("test", &text)).expect("is allowed"));
    }
}

/// All phases on the same IPUs: what I/O tiles load comes beside the phase before.
#[test]
fn one_set_of_ipus_loads_by_io_tiles() {
    let kinds = ["weights", "accumulators", "optimizer_state", "activations"];
    let io_tiles = kinds.map(|kind| format!("options.location.{kind}.use_io_tiles=true"));
    let one = format!("{SETTINGS}.stages=1");
    let sizes = ["model.width=512", "model.batch_size=256", "options.num_io_tiles=64"];
    for ipus in ["target.ipus=1", "target.ipus=2", "target.ipus=3"] {
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

#[test]
fn what_has_no_effect_is_refused() {
    let refusal = |name: &str, overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        match Spec::build(&SpecSource::find(name, &overrides).expect("exists")) {
            Err(error) => error.to_string(),
            Ok(spec) => compile(&spec).expect_err("is refused").to_string(),
        }
    };
    let phased = "options.execution=phased";
    let weights = io_schedule("weight", "on_demand");
    assert!(refusal(PERCEPTRON, &[&weights]).contains("there are no phases"));
    let state = io_schedule("optimizer_state", "preload");
    assert!(refusal(PERCEPTRON, &[phased, &state]).contains("behind the phases"));
    let phases = format!("{SETTINGS}.phases=9");
    assert!(refusal(PERCEPTRON, &[phased, &phases]).contains("4 blocks"));
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
