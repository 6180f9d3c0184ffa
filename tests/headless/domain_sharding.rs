//! Domain sharding: IPUs share the rows of a field and exchange halos.

use crate::common::{self, RecordedRun};
use std::collections::BTreeSet;
use tempfile::tempdir;
use tilescope_analysis::insights::insights;
use tilescope_report::units::{Bytes, Cycles, NumberFormat};
use tilescope_report::{ExecutionStep, Report, TrainingPass};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::simulate;
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_test_tiers::{skipped_in_the_fast_tier, slow_tests, up_to};

const FIELD: [&str; 4] =
    ["model.height=400", "model.width=96", "model.channels=4", "model.sweeps=3"];

fn spec(name: &str, ipus: u32, more: &[&str]) -> Spec {
    let ipus = format!("target.ipus={ipus}");
    common::spec(name, &[&[ipus.as_str()], more].concat())
}

fn stencil(ipus: u32, more: &[&str]) -> Spec {
    spec("heat_stencil", ipus, &[&FIELD, more].concat())
}

/// A small image network, split by rows if there are several IPUs.
fn network(ipus: u32, options: &str) -> Spec {
    model("name = \"resnet18\"\ntraining = false\nimage_size = 64", ipus, options)
}

fn model(model: &str, ipus: u32, options: &str) -> Spec {
    let sharding = if ipus > 1 { "rows" } else { "none" };
    let text = format!(
        "[model]\n{model}\n[target]\nname = \"mk2\"\nipus = {ipus}\n\
         [options]\ndomain_sharding = \"{sharding}\"\n{options}"
    );
    Spec::build(&SpecSource::from_text("test", &text)).expect("is allowed")
}

/// The network of the tutorial on data loading, in training: convolutions without padding, pooling
/// with a stride, group norm.
fn tutorial(ipus: u32, side: u32, options: &str) -> Spec {
    let text = format!("name = \"classification\"\nimage_size = {side}\nbatch_size = 4");
    model(&text, ipus, options)
}

/// A residual network in training.
fn residual(ipus: u32, sizes: &str, options: &str) -> Spec {
    model(&format!("name = \"resnet18\"\n{sizes}"), ipus, options)
}

fn flops(compiled: &CompiledProgram, kind: &str) -> u64 {
    let all = compiled.compilation.operations.iter();
    all.filter(|operation| operation.kind == kind).map(|operation| operation.flops).sum()
}

/// Bytes that cross between IPUs for one field.
fn link_bytes(compiled: &CompiledProgram) -> Bytes {
    compiled.parts.link_copies.iter().flat_map(|copy| &copy.flows).map(|flow| flow.bytes).sum()
}

/// Cycles of a run, after a check of its invariants.
fn cycles(spec: &Spec) -> Cycles {
    let directory = tempdir().expect("a directory");
    simulate(spec, directory.path(), |_| {}).expect("simulates");
    let report = Report::open(directory.path()).expect("opens");
    assert_eq!(report.verify().expect("can be checked"), []);
    tilescope_analysis::summary::summary(&report)
        .expect("can be summed up")
        .execution
        .expect("fits")
        .total_cycles
}

#[test]
fn every_cell_is_computed_once() {
    let whole = compile(&stencil(1, &[])).expect("compiles");
    let network_whole = compile(&network(1, "")).expect("compiles");
    for ipus in [2, 3, 4, 7] {
        let split = compile(&stencil(ipus, &[])).expect("compiles");
        assert_eq!(flops(&split, "stencil"), flops(&whole, "stencil"));
    }
    for ipus in [3, 2, 4].into_iter().take(up_to(1)) {
        let split = compile(&network(ipus, "")).expect("compiles");
        assert_eq!(flops(&split, "conv2d"), flops(&network_whole, "conv2d"));
    }
}

#[test]
fn halos_are_rows_for_each_neighbour() {
    let row = 96 * 4 * Bytes(4);
    for ipus in [2, 3, 4, 7] {
        let compiled = compile(&stencil(ipus, &[])).expect("compiles");
        // Each of three sweeps sends a row both ways over every border.
        assert_eq!(link_bytes(&compiled), 3 * 2 * u64::from(ipus - 1) * row);
    }
}

#[test]
fn more_ipus_take_no_longer() {
    for corners in ["model.corners=0", "model.corners=1"] {
        let more = [corners, "model.width=2000", "model.height=2000"];
        let times: Vec<Cycles> = (1..=4).map(|ipus| cycles(&stencil(ipus, &more))).collect();
        assert!(times.is_sorted_by(|fewer, more| fewer > more), "{times:?}");
    }
}

#[test]
fn every_way_to_share_rows_is_causal() {
    let choices: [&[&str]; 6] = [
        &[],
        &["options.sync_pattern=single_pipeline", "options.device_iterations=2"],
        &["options.sync_pattern=replica_and_ladder", "options.merge_exchange=false"],
        &["options.num_io_tiles=32"],
        &["options.execution=sharded", "options.device_iterations=2"],
        &["options.location.weights.on_chip=false"],
    ];
    for more in choices {
        for ipus in [3, 2, 4].into_iter().take(up_to(1)) {
            cycles(&stencil(ipus, more));
        }
    }
    let options = [
        "",
        "sync_pattern = \"single_pipeline\"\nnum_io_tiles = 32",
        "location.weights.on_chip = false",
        // Weights may also be sharded over replicas.
        "replication_factor = 2\nlocation.weights.replicated_tensor_sharding = true",
    ];
    for options in options.into_iter().take(up_to(1)) {
        cycles(&network(4, options));
    }
}

/// Operations of some kinds, whose cost grows with the rows.
const BY_ROWS: [&str; 6] =
    ["conv2d", "conv2d_grad_input", "conv2d_grad_weight", "max_pool", "relu", "relu_grad"];

#[test]
fn training_computes_every_row_once() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let sizes = ["image_size = 57", "image_size = 64", "image_size = 80"];
    for size in sizes {
        let compiled = |ipus| compile(&residual(ipus, size, "")).expect("compiles");
        let whole = compiled(1);
        for ipus in [2, 3, 4] {
            let split = compiled(ipus);
            for kind in BY_ROWS {
                assert_eq!(flops(&split, kind), flops(&whole, kind), "{size}: {kind} on {ipus}");
            }
            // Sums and results of norms are counted separately, and adding gradients of halos is
            // extra; every IPU updates its own weights.
            let all = |of: &CompiledProgram| -> u64 {
                let operations = of.compilation.operations.iter();
                let passes = operations.filter(|operation| operation.pass != TrainingPass::Update);
                passes.map(|operation| operation.flops).sum()
            };
            let (split, whole) = (all(&split), all(&whole));
            assert!(split >= whole && split - whole < whole / 100, "{split} for {whole}");
        }
    }
}

/// Bytes that cross between IPUs after a pass of a micro-batch.
fn link_bytes_behind(compiled: &CompiledProgram, pass: TrainingPass) -> Bytes {
    let copies = compiled.parts.link_copies.iter();
    let behind = copies.filter(|copy| copy.after.iter().all(|(_, of)| *of == pass));
    behind.flat_map(|copy| &copy.flows).map(|flow| flow.bytes).sum()
}

/// Data sent forward return as gradients, except for the rows of the image, which is not trained.
#[test]
fn gradients_of_halos_are_sent_back() {
    for ipus in [3, 2, 4].into_iter().take(up_to(1)) {
        let compiled = compile(&residual(ipus, "image_size = 64", "")).expect("compiles");
        let forward = link_bytes_behind(&compiled, TrainingPass::Forward);
        let back = link_bytes_behind(&compiled, TrainingPass::Backward);
        let of_image = 2 * u64::from(ipus - 1) * 3 * 64 * Bytes(4);
        assert_eq!(forward - of_image, back, "{ipus} IPUs");
    }
}

/// Each IPU sends and receives all gradients of copied weights except its own share, twice: once to
/// be summed, once as a sum.
#[test]
fn gradients_are_summed_over_the_ipus() {
    for (ipus, options) in [(2u64, ""), (4, ""), (4, "merge_collectives = true"), (3, "")] {
        let spec = tutorial(ipus as u32, 32, options);
        let compiled = compile(&spec).expect("compiles");
        let recorded = RecordedRun::of(&compiled, &spec);
        let is_sum = |step: &&ExecutionStep| {
            let program = &compiled.compilation.programs[step.program.index()];
            let is_collective = |kind| program.name.contains(&format!("/rows/{kind}/crossReplica"));
            is_collective("reduceScatter") || is_collective("allGather")
        };
        let mut bytes = vec![(0u64, 0u64); ipus as usize];
        for on_ipu in recorded.steps.iter().filter(is_sum).flat_map(|step| &step.ipus) {
            let (received, sent) = &mut bytes[on_ipu.ipu.index()];
            (*received, *sent) = (*received + on_ipu.bytes_in.0, *sent + on_ipu.bytes_out.0);
        }
        // Weights of both convolutions, their biases, scale and shift.
        let copied: u64 = 4 * (5 * 9 + 5 + 12 * 5 * 25 + 12 + 2 * 12);
        for (received, sent) in bytes {
            assert_eq!(received, sent);
            let least = 2 * copied * (ipus - 1) / ipus;
            assert!((least..least + least / 4 + 400).contains(&sent), "{sent} for {least}");
        }
    }
}

#[test]
fn training_takes_less_memory_and_time_on_more_ipus() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let figures = |ipus: u32| {
        let options = "merge_collectives = true\ngradient_accumulation = 16";
        let spec = residual(ipus, "image_size = 64\nbatch_size = 8", options);
        let compiled = compile(&spec).expect("compiles");
        let tiles = compiled.compilation.tile_memory.iter();
        let used: Bytes = tiles.map(|(range, of)| range.count() as u64 * of.including_gaps).sum();
        (used / u64::from(ipus), cycles(&spec))
    };
    let figures = [1, 2, 4].map(figures);
    assert!(
        figures.is_sorted_by(|fewer, more| fewer.0 > more.0 && fewer.1 > more.1),
        "{figures:?}"
    );
}

/// Covers everything that affects copies, syncs and the location of tensors.
#[test]
fn every_way_to_train_by_rows_is_causal() {
    let syncs = ["full", "single_pipeline", "replica_and_ladder"];
    let kept = ["weights", "accumulators", "optimizer_state", "activations"];
    let off_chip = |kind: &str| format!("location.{kind}.on_chip = false\n");
    let all: String = kept.iter().map(|kind| off_chip(kind)).collect();
    let mut locations: Vec<String> = kept.iter().map(|kind| off_chip(kind)).collect();
    locations.extend([String::new(), all + "recomputation = \"auto\"\n"]);
    let ways = [
        "",
        "gradient_accumulation = 3\n",
        "gradient_accumulation = 2\nmerge_collectives = true\nmerge_exchange = false\n",
        "accumulate_outer_schedule = \"overlap_cycle_optimized\"\nnum_io_tiles = 32\n",
    ];
    for (index, sync) in syncs.into_iter().enumerate() {
        for (place, location) in locations.iter().enumerate() {
            // In the fast tier, each sync and each location once or twice.
            if !slow_tests() && (index + 2 * place) % 6 != 0 {
                continue;
            }
            // Each of the variants comes with each sync and with each location.
            let (more, ipus) = (ways[(index + place) % 4], 2 + ((index + 2 * place) % 3) as u32);
            let options = format!("sync_pattern = \"{sync}\"\n{more}{location}");
            cycles(&tutorial(ipus, 24, &options));
        }
    }
}

#[test]
fn replicas_that_are_trained_by_rows_are_causal() {
    let options = [
        "location.weights.replicated_tensor_sharding = true",
        "merge_collectives = true",
        "",
        "location.optimizer_state.replicated_tensor_sharding = true\ngradient_accumulation = 2",
        "location.accumulators.replicated_tensor_sharding = true\ngradient_accumulation = 2",
        "execution = \"sharded\"\nrecomputation = \"pipeline\"",
    ];
    for options in options.into_iter().take(up_to(2)) {
        let mut options = format!("replication_factor = 2\n{options}\n");
        for kind in ["weights", "optimizer_state", "accumulators"] {
            if options.contains(&format!("{kind}.replicated")) {
                options.push_str(&format!("location.{kind}.min_elements_for_rts = 10\n"));
            }
        }
        cycles(&tutorial(2, 24, &options));
    }
    for precision in ["mixed", "float16"].into_iter().take(up_to(0)) {
        let sizes = format!("image_size = 40\nprecision = \"{precision}\"");
        cycles(&residual(4, &sizes, "replication_factor = 2"));
    }
}

/// Rows that do not divide evenly, strides that leave fewer rows than IPUs, and images with one row
/// per IPU.
#[test]
fn odd_and_few_rows_are_trained() {
    let sides = [(3, 32), (4, 21), (2, 33), (5, 37), (8, 40)];
    for (ipus, side) in sides.into_iter().take(up_to(1)) {
        cycles(&tutorial(ipus, side, ""));
    }
    if !slow_tests() {
        return;
    }
    // The last layers have four rows for eight IPUs: IPU 0 continues alone, with its own weights.
    let compiled = compile(&residual(8, "image_size = 32", "")).expect("compiles");
    let ipus_of = |begins: &str| -> Vec<u32> {
        let operations = compiled.compilation.operations.iter();
        let named = operations.filter(|operation| operation.name.contains(begins));
        let ipus: BTreeSet<u32> = named.map(|operation| operation.ipu.expect("an IPU").0).collect();
        ipus.into_iter().collect()
    };
    assert_eq!(ipus_of("layer1_0/conv1/weight/"), (0..8).collect::<Vec<u32>>());
    assert_eq!(ipus_of("layer4_1/conv1/weight/"), [0]);
}

#[test]
fn impossible_splits_are_refused() {
    let rows = "options.domain_sharding=rows";
    let inference = ["model.training=false", "options.gradient_accumulation=1"];
    let refusal =
        |more: &str| common::refusal("mnist_pipeline", &[&inference[..], &[rows, more]].concat());
    assert!(refusal("target.ipus=1").contains("target.ipus"));
    assert!(refusal("options.stages=[]").contains("either rows or stages"));
    let height = stencil(4, &["model.height=3", rows]);
    let refused = compile(&height).expect_err("has too few rows").to_string();
    assert!(refused.contains("at least 4 rows"), "{refused}");
}

#[test]
fn idle_ipus_are_reported() {
    let notes = |more: &[&str]| compile(&stencil(4, more)).expect("compiles").compilation.notes;
    let idle = notes(&["options.domain_sharding=none"]);
    assert!(idle.iter().any(|note| note.contains("IPUs 1, 2, 3 are idle")), "{idle:?}");
    assert!(notes(&[]).iter().all(|note| !note.contains("idle")));
}

#[test]
fn steps_are_not_reported_as_unbalanced_stages() {
    let directory = tempdir().expect("a directory");
    simulate(&stencil(4, &[]), directory.path(), |_| {}).expect("simulates");
    let report = Report::open(directory.path()).expect("opens");
    let found = insights(&report, NumberFormat::default()).expect("can be found");
    assert!(found.iter().all(|finding| finding.rule != "stage_balance"), "{found:?}");
}
