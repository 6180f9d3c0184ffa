//! Compares the cost model with results of Poplar's own IPU Model for single operations
//! (`tests/data/poplar_ipumodel_ops.csv`, from graphcore/poplibs tests/benchmark_results.csv of
//! March 2021), and tests the command for it.

use crate::common::{lowered, stderr, stdout, tilescope};
use serde_json::Value;
use tilescope_report::units::{Bytes, Cycles};
use tilescope_sim::cost_constants::EXCHANGE_START_CYCLES;
use tilescope_sim::operators::{
    ConvOp, EmbeddingGoal, EmbeddingOp, MatMulOp, MatMulPhase, Operator, PoolOp, ReduceOp, RnnOp,
};
use tilescope_sim::popops::reduce::ReduceOperation;
use tilescope_sim::shape::{DType, TensorRole};
use tilescope_sim::targets::IpuTarget;
use tilescope_sim::targets::MK2;
use tilescope_sim::validate::{FAMILIES, ValidationSummary, residuals, validate};
use tilescope_test_tiers::skipped_in_the_fast_tier;

const ROWS: &str = include_str!("../data/poplar_ipumodel_ops.csv");

/// The head of the file, and the wanted lines.
fn file(wanted: impl Fn(&str) -> bool) -> String {
    let lines = ROWS.lines().enumerate().filter(|(at, line)| *at == 0 || wanted(line));
    lines.map(|(_, line)| format!("{line}\n")).collect()
}

fn family(name: &str) -> ValidationSummary {
    validate(&file(|line| line.contains(&format!(",{name},")))).expect("sane rows")
}

/// Checks mean errors in percent: cycles, memory, fullest tile. The bounds are today's errors,
/// rounded up.
fn check(name: &str, bounds: [f64; 3]) {
    let validation = family(name);
    assert!(validation.skipped.is_empty(), "{:?}", validation.skipped);
    let errors = &validation.families[name];
    let found = [Some(errors.cycles_mape), errors.memory_mape, errors.max_tile_mape];
    for ((error, bound), what) in found.iter().zip(bounds).zip(["cycles", "memory", "max tile"]) {
        let error = 100.0 * error.expect("measured");
        assert!(error <= bound, "{name}: {what} {error:.2} % off, {bound} % allowed");
    }
}

#[test]
fn reductions_cost_as_in_poplar() {
    check("reduction", [3.0, 1.0, 1.5]);
}

#[test]
fn poolings_cost_as_in_poplar() {
    check("pooling", [4.0, 4.0, 1.0]);
}

#[test]
fn embeddings_cost_as_in_poplar() {
    check("embedding", [2.0, 2.0, 1.0]);
}

#[test]
fn recurrent_layers_cost_as_in_poplar() {
    check("lstm", [2.5, 3.0, 0.1]);
    check("gru", [1.7, 3.5, 0.1]);
}

#[test]
fn matrix_products_cost_as_in_poplar() {
    check("gemm", [1.5, 0.5, 3.0]);
}

#[test]
#[ignore = "slow without optimisation: cargo test --release --test headless validate:: -- --ignored"]
fn fully_connected_layers_and_convolutions_cost_as_in_poplar() {
    check("fc", [3.0, 5.0, 2.0]);
    check("conv", [3.5, 6.0, 1.5]);
}

/// The lines of a file of residuals that begin with one of these groups.
fn lines_of(text: &str, groups: &[&str]) -> Vec<String> {
    let lines = text.lines().map(str::to_owned);
    lines.filter(|line| groups.iter().any(|group| line.split(',').next() == Some(group))).collect()
}

const RESIDUALS: &str = "crates/tilescope-sim/src/error_bands/residuals.csv";

fn kept_residuals() -> String {
    let path = format!("{}/{RESIDUALS}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("residuals")
}

#[test]
fn bands_of_small_families_are_their_residuals() {
    let small = ["pooling", "reduction", "embedding", "lstm", "gru"];
    let wanted = |line: &str| small.iter().any(|name| line.contains(&format!(",{name},")));
    let found = residuals(&validate(&file(wanted)).expect("sane rows"));
    let update =
        "UPDATE_DOCS=1 TILESCOPE_SLOW_TESTS=1 cargo test --test headless bands_are_the_residuals";
    assert_eq!(lines_of(&found, &small), lines_of(&kept_residuals(), &small), "{update}");
}

#[test]
fn bands_are_the_residuals_of_all_rows() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let found = residuals(&validate(ROWS).expect("sane rows"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        let path = format!("{}/{RESIDUALS}", env!("CARGO_MANIFEST_DIR"));
        return std::fs::write(path, found).expect("writing residuals");
    }
    assert_eq!(found, kept_residuals());
}

/// Compares the matrix engine with hardware. The bounds are today's errors, rounded up.
#[test]
fn vertices_take_the_cycles_of_hardware() {
    let validation = validate(include_str!("../data/hardware_vertices.csv")).expect("sane rows");
    assert!(validation.skipped.is_empty(), "{:?}", validation.skipped);
    let errors = &validation.families["vertex"];
    assert_eq!(errors.rows, 128);
    assert!(errors.cycles_mape <= 0.012 && errors.cycles_worst <= 0.066, "{errors:?}");
    // The counters are read in separate compute sets: each row includes the start of one more, and
    // the formula includes all that grows with the rows.
    for row in validation.rows.iter().filter(|row| row.name != "amp_16x16x16") {
        let launch = row.cycles - row.simulated_cycles;
        assert!((Cycles(30)..=Cycles(33)).contains(&launch), "{row:?}");
    }
}

/// Errors of whole programs do not depend on rows of vertices.
#[test]
fn bands_do_not_depend_on_rows_of_vertices() {
    let pooling = file(|line| line.contains(",pooling,"));
    let vertices = include_str!("../data/hardware_vertices.csv").lines();
    let vertices: String =
        vertices.filter(|line| line.starts_with("amp_")).map(|line| format!("{line}\n")).collect();
    let both = residuals(&validate(&format!("{pooling}{vertices}")).expect("sane rows"));
    assert_eq!(both, residuals(&validate(&pooling).expect("sane rows")));
}

/// All kinds of plans: serial and joint ones, SLIC, expanded and strided kernels, grouped products,
/// float. The bounds are today's errors, rounded up to whole percents.
#[test]
fn a_dozen_plans_cost_as_in_poplar() {
    let chosen = [
        ("gemm_600x512x20000", "mk1", 1.0),
        ("gemm_1000x512x10000", "mk2", 1.0),
        ("fc_layer_1440x200x400", "mk1", 1.0),
        ("fc_layer_4_1000_1000_float", "mk2", 6.0),
        ("bert_grouped_16x128x64x128", "mk2", 3.0),
        ("bert_ffn1_128x768x3072", "mk2", 3.0),
        ("inception_tr_bs4_i1_b5x5", "mk1", 3.0),
        ("inception_tr_bs4_i5_b1x1", "mk2", 2.0),
        ("mobilenet_depthwise_3", "mk1", 6.0),
        ("resnet50_tr_bs4_cnv", "mk2", 2.0),
        ("resnet50_tr_bs4_bm256L0A0", "mk1", 3.0),
    ];
    let is = |line: &str, name: &str, chip: &str| {
        line.starts_with(&format!("{name},")) && line.contains(&format!(",{chip},"))
    };
    let rows = file(|line| chosen.iter().any(|(name, chip, _)| is(line, name, chip)));
    let validation = validate(&rows).expect("sane rows");
    assert_eq!(validation.rows.len(), chosen.len());
    for (name, chip, bound) in chosen {
        let row = validation.rows.iter().find(|row| row.name == name && row.target == chip);
        let error = 100.0 * row.expect("a row of this name").errors().cycles;
        assert!(error.abs() <= bound, "{name} on {chip}: {error:+.2} %");
    }
}

#[test]
fn a_row_of_every_family_is_simulated() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/few_ops.csv");
    let output = tilescope(&["validate", file, "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    assert_eq!((rows.len(), json["skipped"].as_array().map(Vec::len)), (FAMILIES.len(), Some(0)));
    let keys = "cycles max_tile memory_bytes name simulated_cycles simulated_max_tile \
                simulated_memory_bytes target";
    for row in rows {
        let mut found: Vec<&String> = row.as_object().expect("a row").keys().collect();
        found.sort();
        assert!(found.into_iter().eq(keys.split(' ')), "{row}");
    }
    for family in FAMILIES {
        let errors = &json["families"][family.name];
        assert_eq!(errors["rows"], 1, "{}", family.name);
        for key in ["cycles_mape", "cycles_worst"] {
            assert!(errors[key].as_f64().is_some_and(|error| error < 0.5), "{errors}");
        }
        for key in ["memory_mape", "max_tile_mape"] {
            if family.name == "vertex" {
                assert!(errors[key].is_null(), "{errors}");
            } else {
                assert!(errors[key].as_f64().is_some_and(|error| error < 0.5), "{errors}");
            }
        }
    }
    let text = stdout(&tilescope(&["validate", file]));
    assert!(text.contains("Mean absolute errors") && text.contains("embedding_small"), "{text}");
}

const HEAD: &str = "name,family,config,target,cycles,memory_bytes,max_tile_bytes_including_gaps";

fn problem(text: &str) -> String {
    validate(text).expect_err("refused").to_string()
}

#[test]
fn broken_files_are_refused_with_the_line() {
    let row = |line: &str| format!("{HEAD}\n\nx,gemm,m=1 k=1 n=1,mk2,1,1,1\n{line}\n");
    let cases = [
        (String::new(), "line 1: the file is empty"),
        (format!("{HEAD}\n"), "line 1: the file has no rows"),
        (HEAD.replace(",target", ""), "line 1: column target is missing"),
        (row("a,matmul,m=1,mk2,1,1,1"), "line 4: unknown family \"matmul\""),
        (row("a,gemm,m=1 k=1 n=1,mk9,1,1,1"), "line 4: unknown target \"mk9\""),
        (row("a,gemm,m=1 k=1 n=1,mk2,1,1"), "line 4: max_tile_bytes_including_gaps is missing"),
        (row("a,gemm,m=1 k=1 n=1,mk2,many,1,1"), "line 4: cycles"),
        (row("a,gemm,m=1 k=1 n=1,mk2,0,1,1"), "line 4: cycles"),
        (row("a,gemm,m=1 k=1,mk2,1,1,1"), "line 4: config has no n"),
        (row("a,gemm,m=1 k=1 n=one,mk2,1,1,1"), "line 4: n: expected a whole number"),
        (row("a,gemm,\"m=1,mk2,1,1,1"), "line 4: a quote is not closed"),
        (row("a,gemm,m,mk2,1,1,1"), "line 4: expected key=value"),
        (row("a,gemm,m=1 k=1 n=1,mk2,1,0,"), "line 4: memory_bytes"),
        (row("# a comment\na,vertex,rows=1,mk2,1,,"), "line 5: config has no vertex"),
        (
            row("a,fc,input-size=8 output-size=8 phase=sideways,mk2,1,1,1"),
            "line 4: phase: expected all",
        ),
        (
            row(
                "a,conv,\"field=8,8 kernel-size=1,1,1 input-channels=8 output-channels=8\",mk2,1,1,1",
            ),
            "line 4: kernel-size",
        ),
    ];
    for (text, words) in cases {
        let found = problem(&text);
        assert!(found.starts_with(words), "{found}");
    }
}

#[test]
fn rows_that_cannot_be_simulated_are_listed() {
    let rows = [
        "a,gemm,m=8 k=8 n=8 device-type=Hw,mk2,1,1,1",
        "b,gemm,m=0 k=8 n=8,mk2,1,1,1",
        "c,pooling,\"field=2,2 kernel=3 channels=8\",mk1,1,1,1",
        "d,conv,\"field=2,2,2,2 input-channels=8 output-channels=8\",mk1,1,1,1",
        "e,gemm,m=4294967296 k=4294967296 n=4294967296,bow,1,1,1",
        "f,conv,\"field=5,5 kernel-size=7 input-channels=8 output-channels=8\",mk2,1,1,1",
        "g,embedding,\"shape=0,8 num-indices=4\",mk2,1,1,1",
        "h,lstm,sequence-size=0 input-size=8 output-size=8,mk2,1,1,1",
        "i,vertex,vertex=poplin::OuterProduct<half> rows=8 in-channels=16 out-channels=16,mk2,1,,",
        "j,vertex,\"vertex=poplin::ConvPartial1x1Out<half,half,true,true,16,4,false> rows=8 in-channels=17 out-channels=16\",mk2,1,,",
        "k,vertex,\"vertex=poplin::ConvPartial1x1Out<half,half,true,true,16,4,false> rows=8 in-channels=16 out-channels=8\",mk2,1,,",
        "l,vertex,\"vertex=poplin::ConvPartial1x1Out<half,half,true,true,16,4,false> rows=0 in-channels=16 out-channels=16\",mk2,1,,",
    ];
    let text = format!("{HEAD}\n{}\n", rows.join("\n"));
    let validation = validate(&text).expect("sane rows");
    let names: Vec<&str> = validation.skipped.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"]);
    assert!(validation.skipped[0].reason.contains("device-type"), "{:?}", validation.skipped[0]);
    assert!(validation.rows.is_empty() && validation.families.is_empty());
}

/// Shapes without measurements, of every family and with every option: every query gives a cost.
/// Rows of other families do not have these passes.
#[test]
fn unseen_shapes_have_costs() {
    let passes = ["", "phase=fwd", "phase=bwd", "single-phase=wu", "inference-only=1"];
    let mut rows: Vec<(&str, String)> = Vec::new();
    let lines = include_str!("../data/unseen_shapes.txt").lines();
    for line in lines.filter(|line| !line.starts_with('#')) {
        match line.split(" | ").collect::<Vec<_>>()[..] {
            [family, config] => rows.push((family, config.to_owned())),
            [family, config, _] => {
                rows.extend(passes.iter().map(|pass| (family, format!("{config} {pass}"))));
            }
            _ => panic!("two or three columns: {line}"),
        }
    }
    rows.extend(["fwd", "wu", "both"].map(|pass| {
        ("embedding", format!("shape=100,7 num-indices=20 pass={pass} data-type=float"))
    }));
    let lines = rows.iter().enumerate().map(|(number, (family, config))| {
        let chip = ["mk1", "mk2", "bow"][number % 3];
        format!("row{number},{family},\"{config}\",{chip},1,1,1\n")
    });
    let validation =
        validate(&format!("{HEAD}\n{}", lines.collect::<String>())).expect("sane rows");
    assert!(validation.skipped.is_empty(), "{:?}", validation.skipped);
    for row in &validation.rows {
        let sizes = [row.simulated_memory_bytes, row.simulated_max_tile].into_iter().flatten();
        assert!(!row.simulated_cycles.is_zero(), "{row:?}");
        assert_eq!(sizes.filter(|bytes| *bytes > Bytes::ZERO).count(), 2, "{row:?}");
    }
}

/// Cycles of `operator` on the tiles as lowered in a model, with operands in their preferred
/// layout.
fn in_a_model(
    operator: impl Operator + 'static,
    operands: &[(&[u64], DType)],
    train: bool,
) -> Cycles {
    let machine = IpuTarget::all_tiles_of(MK2);
    lowered(machine, TensorRole::Activation, operator, operands, train).cycles(&machine.chip)
}

/// Validation applies to operators of specs: each operator of a graph takes the time of the row of
/// its family, except for the sync that ends the upload.
#[test]
fn operators_of_models_cost_what_rows_cost() {
    use DType::{Float, Half, Int};
    let fc: &[(&[u64], DType)] = &[(&[24, 100], Half), (&[100, 60], Half)];
    let dy: &[(&[u64], DType)] = &[(&[24, 60], Half), (&[100, 60], Half)];
    let image: &[(&[u64], DType)] = &[(&[2, 16, 12, 12], Half), (&[32, 16, 3, 3], Half)];
    let lstm: &[(&[u64], DType)] = &[(&[3, 4, 32], Half), (&[80, 192], Half), (&[4, 48], Half)];
    let gru: &[(&[u64], DType)] = &[(&[3, 4, 32], Half), (&[80, 144], Half), (&[3, 48], Half)];
    let as_tools_plan = EmbeddingOp { goal: EmbeddingGoal::Memory, ..EmbeddingOp::default() };
    let back = MatMulOp { product: MatMulPhase::InputGradient, transposed: false };
    let padded = ConvOp::square(2, 1);
    let sum = ReduceOp::new(ReduceOperation::SquareAdd, vec![1]);
    let pool = PoolOp::max(3, 2, 1);
    let sizes = "batch-size=24 input-size=100 output-size=60";
    let layer = "batch-size=4 sequence-size=3 input-size=32 output-size=48";
    let field = "field=12,12 kernel-size=3 stride=2 padding=1 batch-size=2";
    let cases = [
        ("fc", format!("{sizes} phase=fwd"), in_a_model(MatMulOp::default(), fc, true)),
        ("fc", format!("{sizes} phase=bwd"), in_a_model(back, dy, true)),
        (
            "conv",
            format!("{field} input-channels=16 output-channels=32 phase=fwd"),
            in_a_model(padded, image, true),
        ),
        (
            "pooling",
            "field=12,12 kernel=3 stride=2 padding=1 channels=16 batch-size=2 phase=fwd".into(),
            in_a_model(pool, &image[..1], true),
        ),
        (
            "reduction",
            "shape=30,50,8 dims=1 type=float operation=SQUARE_ADD".into(),
            in_a_model(sum, &[(&[30, 50, 8], Float)], true),
        ),
        (
            "embedding",
            "shape=500,40 num-indices=90 pass=fwd".into(),
            in_a_model(as_tools_plan, &[(&[500, 40], Half), (&[90], Int)], false),
        ),
        ("lstm", format!("{layer} phase=fwd"), in_a_model(RnnOp::lstm(48, false), lstm, false)),
        ("gru", format!("{layer} phase=fwd"), in_a_model(RnnOp::gru(48, false), gru, false)),
    ];
    let rows =
        cases.iter().map(|(family, config, _)| format!("r,{family},\"{config}\",mk2,1,1,1\n"));
    let validation = validate(&format!("{HEAD}\n{}", rows.collect::<String>())).expect("sane rows");
    assert!(validation.skipped.is_empty(), "{:?}", validation.skipped);
    for (row, (family, config, cycles)) in validation.rows.iter().zip(&cases) {
        let alone = row.simulated_cycles - EXCHANGE_START_CYCLES.cycles();
        assert_eq!(alone, *cycles, "{family} {config}");
    }
}
