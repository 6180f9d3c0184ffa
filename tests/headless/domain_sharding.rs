//! Domain sharding: IPUs share the rows of a field, and swap halos.

use crate::common;
use tempfile::tempdir;
use tilescope_report::Report;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_sim::compile::{CompiledProgram, compile};
use tilescope_sim::simulate;
use tilescope_sim::spec::{Spec, SpecSource};

const FIELD: [&str; 4] =
    ["model.height=400", "model.width=96", "model.channels=4", "model.sweeps=3"];

fn spec(name: &str, ipus: u32, more: &[&str]) -> Spec {
    let ipus = format!("target.ipus={ipus}");
    common::spec(name, &[&[ipus.as_str()], more].concat())
}

fn stencil(ipus: u32, more: &[&str]) -> Spec {
    spec("heat_stencil", ipus, &[&FIELD, more].concat())
}

/// A small image network, by rows if there are several IPUs.
fn network(ipus: u32, options: &str) -> Spec {
    let sharding = if ipus > 1 { "rows" } else { "none" };
    let text = format!(
        "[model]\nname = \"resnet18\"\ntraining = false\nimage_size = 64\n\
         [target]\nname = \"mk2\"\nipus = {ipus}\n\
         [options]\ndomain_sharding = \"{sharding}\"\n{options}"
    );
    Spec::build(&SpecSource::from_text("test", &text)).expect("is allowed")
}

fn flops(compiled: &CompiledProgram, kind: &str) -> u64 {
    let all = compiled.compilation.operations.iter();
    all.filter(|operation| operation.kind == kind).map(|operation| operation.flops).sum()
}

/// Bytes that cross between IPUs for one field.
fn link_bytes(compiled: &CompiledProgram) -> Bytes {
    compiled.parts.link_copies.iter().flat_map(|copy| &copy.flows).map(|flow| flow.bytes).sum()
}

/// Cycles of a run, whose laws are checked.
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
    for ipus in [2, 3, 4] {
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
        &["options.execution=sharded", "options.gradient_accumulation=2"],
        &["options.location.weights.on_chip=false"],
    ];
    for more in choices {
        for ipus in [2, 3, 4] {
            cycles(&stencil(ipus, more));
        }
    }
    let options = [
        "",
        "sync_pattern = \"single_pipeline\"\nnum_io_tiles = 32",
        "location.weights.on_chip = false",
        // Weights may be shared out over replicas besides.
        "replication_factor = 2\nlocation.weights.replicated_tensor_sharding = true",
    ];
    for options in options {
        cycles(&network(4, options));
    }
}

#[test]
fn what_cannot_be_split_is_refused() {
    let refusal = |overrides: &[&str]| {
        let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
        let source = SpecSource::find("mnist_pipeline", &overrides).expect("exists");
        match Spec::build(&source) {
            Err(error) => error.to_string(),
            Ok(spec) => compile(&spec).expect_err("is refused").to_string(),
        }
    };
    let rows = "options.domain_sharding=rows";
    assert!(refusal(&[rows]).contains("training by rows is not simulated"));
    let inference = "model.training=false";
    assert!(refusal(&[rows, inference, "target.ipus=1"]).contains("target.ipus"));
    let stages = "options.stages=[]";
    assert!(refusal(&[rows, inference, stages]).contains("either rows or stages"));
    let height = stencil(4, &["model.height=3", rows]);
    let refused = compile(&height).expect_err("has too few rows").to_string();
    assert!(refused.contains("at least 4 rows"), "{refused}");
}

#[test]
fn idle_ipus_are_told() {
    let notes = |more: &[&str]| compile(&stencil(4, more)).expect("compiles").compilation.notes;
    let idle = notes(&["options.domain_sharding=none"]);
    assert!(idle.iter().any(|note| note.contains("IPUs 1, 2, 3 are idle")), "{idle:?}");
    assert!(notes(&[]).iter().all(|note| !note.contains("idle")));
}
