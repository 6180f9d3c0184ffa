//! Bundled specs against what is published of the programs they stand for. Each figure names its
//! source, how far the simulation may be off, and, where it is known, why it is.

use crate::common;
use rusqlite::{Connection, OpenFlags};
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::Report;
use tilescope_sim::compile::compile;

/// A simulated spec.
struct Run {
    summary: ReportSummary,
    database: Connection,
    _directory: tempfile::TempDir,
}

impl Run {
    fn new(spec: &str, overrides: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let file = common::report_file(&common::spec(spec, overrides), directory.path());
        let report = Report::open(&file).expect("opens");
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let database = Connection::open_with_flags(&file, flags).expect("SQLite");
        Self { summary: summary(&report).expect("a summary"), database, _directory: directory }
    }

    fn number(&self, sql: &str) -> f64 {
        self.database.query_row(sql, [], |row| row.get(0)).expect(sql)
    }

    /// Cycles of the steps of one type whose program's name is like this.
    fn cycles(&self, kind: &str, like: &str) -> f64 {
        self.number(&format!(
            "SELECT CAST(TOTAL(u.cycles) AS REAL) FROM steps s
             JOIN steps_by_ipu u ON u.step_id = s.id JOIN programs p ON p.id = s.program
             WHERE s.type LIKE '{kind}' AND p.name LIKE '{like}'"
        ))
    }

    fn category(&self, name: &str) -> f64 {
        self.summary.memory.by_category[name].as_f64()
    }

    fn total_cycles(&self) -> f64 {
        (self.summary.execution.as_ref().expect("it ran").total_cycles).as_f64()
    }
}

/// Refuses what is further from the published figure than so many percent.
fn within(what: &str, simulated: f64, published: f64, percent: f64) {
    let error = 100.0 * (simulated / published - 1.0);
    println!("{what}: {simulated}, published {published} ({error:+.1} %)");
    assert!(error.abs() <= percent, "{what}: {simulated} is {error:+.1} % off {published}");
}

/// Bytes of a mebibyte.
const MEBIBYTE: f64 = 1_048_576.0;

/// A dense layer 4096 to 1024 with 16 samples on a Mk2 (graphcore/tutorials, pva_utils_test.py).
/// Code and cycles are those of the layer's own programs.
#[test]
fn a_dense_layer() {
    let run = Run::new("dense_layer", &[]);
    let code = run.number(
        "SELECT CAST(SUM(t.code_bytes * (t.end_tile - t.first_tile) * t.times) AS REAL)
         FROM exchanges e JOIN programs p ON p.id = e.program
         JOIN exchange_tiles t ON t.exchange = e.id
         WHERE p.name LIKE '%L0/%' AND p.name NOT LIKE '%ToHost'",
    );
    within("exchange code", code, 360.0 * 1024.0, 15.0);
    let peak = run.summary.memory.peak_not_always_live.as_f64() / MEBIBYTE;
    within("peak not always live", peak, 9.8, 15.0);
    let cycles = run.cycles("DoExchange", "%L0/%") + run.cycles("OnTileExecute", "%L0/%");
    within("cycles", cycles, 8_700.0, 15.0);
    within("total", run.summary.memory.total_excluding_gaps.as_f64() / MEBIBYTE, 32.8, 15.0);
    within("vertex code", run.category("vertexCode") / MEBIBYTE, 3.4, 15.0);
}

/// The memory report of three sums on a GC2 (graphcore/tensorflow docs/logging.rst).
#[test]
fn an_adder() {
    let run = Run::new("adder", &[]);
    let memory = &run.summary.memory;
    within("excluding gaps", memory.total_excluding_gaps.as_f64(), 5_355_604.0, 5.0);
    within("including gaps", memory.total_including_gaps.as_f64(), 23_878_396.0, 5.0);
    for (category, published, percent) in [
        ("stack", 3_852_288.0, 0.0),
        ("controlCode", 851_272.0, 5.0),
        ("vertexCode", 170_788.0, 5.0),
        ("hostExchangeCode", 351_328.0, 5.0),
        ("vertexInstanceState", 14_640.0, 5.0),
        ("variable", 39_108.0, 5.0),
        ("hostExchangePacketHeader", 10_512.0, 10.0),
        // Copies of two floats between single tiles: their messages are counted as a whole
        // tensor's.
        ("internalExchangeCode", 60_792.0, 15.0),
    ] {
        within(category, run.category(category), published, percent);
    }
}

/// A matrix of 10000 x 1000 floats times a vector on a Mk2 IPU Model (graphcore/examples
/// tutorials/poplar/tut6_matrix_vector_opt/README.md); averages over tiles.
#[test]
fn a_matrix_times_a_vector() {
    let run = Run::new("mat_vec", &[]);
    within("total", run.total_cycles(), 6_681_766.0, 5.0);
    within("compute", run.cycles("OnTileExecute", "%"), 3_801.8, 20.0);
    within("exchange", run.cycles("DoExchange", "%"), 8_697.4, 20.0);
    within("host exchange", run.cycles("StreamCopyMid", "%"), 6_663_550.8, 5.0);
}

/// 1000 steps of the heat equation on 8000 x 8000 floats in 0.30 s on a GC200
/// (simehaa/IPU README.md).
#[test]
fn a_heat_stencil() {
    let run = Run::new("heat_stencil", &[]);
    let work = run.cycles("DoExchange", "%sweep%") + run.cycles("OnTileExecute", "%sweep%");
    let seconds = work / run.summary.target.clock_hz as f64;
    within("seconds of 1000 sweeps", 1000.0 * seconds, 0.30, 20.0);
}

/// A blur of an image of four channels on a GC2 (thorbenlouw/lbm-graphcore
/// experiments/gaussian-blur-scaling/exchange-vs-compute.csv). Which of its three images was
/// profiled is not said; one sweep over the largest has the published exchange.
#[test]
fn an_image_blur() {
    for (precision, exchange, compute, copies) in [
        ("float16", 637.0, 63_531.0, 5_741.0 + 4_826.0),
        ("float32", 1_173.0, 100_257.0, 8_279.0 + 6_954.0),
    ] {
        let run = Run::new("image_blur", &[&format!("model.precision={precision}")]);
        let sweep = run.cycles("OnTileExecute", "%/Sweep");
        let halo = run.cycles("DoExchange", "%Halo%");
        let copied = run.cycles("OnTileExecute", "%/Halo/%");
        let published = exchange + compute + copies;
        within(&format!("{precision}: a sweep with all"), sweep + halo + copied, published, 20.0);
        within(&format!("{precision}: compute"), sweep, compute, 20.0);
        within(&format!("{precision}: exchange"), halo, exchange, 20.0);
        within(&format!("{precision}: copies"), copied, copies, 20.0);
    }
}

/// One weight update of the MNIST pipeline of Graphcore's PopTorch tutorial.
#[test]
fn a_weight_update_of_the_mnist_pipeline() {
    let twice = Run::new("mnist_pipeline", &["options.device_iterations=2"]).total_cycles();
    let once = Run::new("mnist_pipeline", &["options.device_iterations=1"]).total_cycles();
    within("cycles of an update", twice - once, 1_211_970.0, 25.0);
}

/// Inference of one bundled spec of a training, on one Mk2.
const INFERENCE: [&str; 11] = [
    "model.training=false",
    "model.packing_factor=1",
    "target.name=mk2",
    "target.ipus=1",
    "options.stages=[]",
    "options.replication_factor=1",
    "options.gradient_accumulation=1",
    "options.recomputation=none",
    "options.available_memory_proportion=0.6",
    "options.location.optimizer_state.on_chip=true",
    "options.location.optimizer_state.replicated_tensor_sharding=false",
];

/// Programs that ran in public fit: the largest batches of the benchmarks of graphcore/examples on
/// one IPU (nlp/bert/popart and vision/cnns/tensorflow1, benchmarks.yml), and many replicas.
#[test]
fn programs_that_ran_fit() {
    let base = ["model.batch_size=80", "options.available_memory_proportion=0.55"];
    let images = [
        "target.name=mk2",
        "model.batch_size=80",
        "options.num_io_tiles=64",
        "options.overlap_io=loops",
        "options.host.loader=sync",
        "options.input_type=uint8",
        "options.normalise_on_ipu=true",
    ];
    let replicas = ["options.replication_factor=256", "options.num_instances=128"];
    // Of four sequences, which ran with poplibs' default proportion, the compiler has to find one.
    let large = ["model.batch_size=4", "options.available_memory_proportion=auto"];
    for (spec, overrides) in [
        ("bert_large_pod16", [&INFERENCE[..], &["model.batch_size=2"]].concat()),
        ("bert_large_pod16", [&INFERENCE[..], &large].concat()),
        ("bert_base_pod16", [&INFERENCE[..], &base].concat()),
        ("resnet50_inference_c600", images.to_vec()),
        ("resnet50_pod64", replicas.to_vec()),
    ] {
        let compiled = compile(&common::spec(spec, &overrides)).expect("compiles");
        assert_eq!(compiled.tiles_out_of_memory(), 0, "{spec}: {overrides:?}");
    }
}
