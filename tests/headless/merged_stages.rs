//! Neighbouring stages on one IPU are one stage, as merged by PopART, whatever their origin.

use crate::common;
use proptest::prelude::*;
use tempfile::TempDir;
use tilescope_fixtures::onnx_text;
use tilescope_report::units::{IpuId, TileRuns};
use tilescope_report::{Report, TileMemory};
use tilescope_sim::specification::Spec;
use tilescope_sim::{MOST_RECORDS, ProgramFigures, Simulation, compile};
use tilescope_test_tiers::long_cases;

/// A file of `tests/data/onnx`.
fn file(name: &str, overrides: &[&str]) -> Spec {
    common::spec(&format!("{}/tests/data/onnx/{name}", env!("CARGO_MANIFEST_DIR")), overrides)
}

/// The figures that distinguish programs, and the memory of each tile.
fn program(spec: &Spec) -> (ProgramFigures, TileRuns<TileMemory>) {
    let figures = Simulation::compile(spec, MOST_RECORDS).expect("compiles").figures();
    assert!(figures.cycles.is_some(), "it fits");
    (figures, compile(spec).expect("compiles").compilation.tile_memory)
}

/// Blocks and IPU of each stage.
fn stages(spec: &Spec) -> Vec<(Vec<String>, u32)> {
    let placement = compile(spec).expect("compiles").placement;
    placement.stages.into_iter().map(|stage| (stage.blocks, stage.ipu.0)).collect()
}

fn refusal(spec: &Spec) -> String {
    compile(spec).expect_err("it is refused").to_string()
}

fn notes(spec: &Spec) -> String {
    compile(spec).expect("compiles").model_notes.join("\n")
}

/// `AutoStage.AutoIncrement` of PopTorch makes a stage for each block, `SameAsIpu` one for each
/// IPU.
#[test]
fn a_stage_for_each_block_is_one_for_each_ipu() {
    let [each_block, each_ipu] = ["auto_increment", "same_as_ipu"];
    let named =
        |name: &str, overrides: &[&str]| file(&format!("four_blocks_{name}.onnx"), overrides);
    let trained = ["model.loss=identity", "options.gradient_accumulation=8"];
    for more in [
        &["model.loss=none"][..],
        &["model.loss=none", "options.execution=sharded"],
        &trained,
        &[&trained[..], &["options.execution=sharded"]].concat(),
        &[&trained[..], &["options.recomputation=pipeline"]].concat(),
        &[&trained[..], &["options.stash_convention=memory_guide"]].concat(),
        &[&trained[..], &["options.replication_factor=2", "model.optimizer=adam"]].concat(),
        &["model.loss=identity", "options.gradient_accumulation=1", "options.device_iterations=5"],
        // Enough micro-batches to fill two stages, by default and explicitly.
        &["model.loss=identity"],
        &["model.loss=identity", "options.gradient_accumulation=3"],
    ] {
        let spec = named(each_block, more);
        assert_eq!(program(&spec), program(&named(each_ipu, more)), "{more:?}");
        let blocks = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        let expected = [(blocks(["stage0", "stage1"]), 0), (blocks(["stage2", "stage3"]), 1)];
        assert_eq!(stages(&spec), expected, "blocks keep their names");
        assert!(notes(&spec).contains("4 stages were merged into 2"), "{}", notes(&spec));
        assert!(!notes(&named(each_ipu, more)).contains("were merged"));
    }
    let spec = named(each_block, &trained);
    let directory = tempfile::tempdir().expect("a directory");
    let report = Report::open(common::report_file(&spec, directory.path())).expect("opens");
    assert_eq!(report.verify().expect("reads"), []);
    for of in report.operations().expect("reads").iter() {
        let block = of.block.as_deref().expect("a block");
        let ipu = if ["stage0", "stage1"].contains(&block) { 0 } else { 1 };
        assert_eq!(of.ipu, Some(IpuId(ipu)), "{}", of.name);
    }
    let too_few = [&trained[..1], &["options.gradient_accumulation=2"]].concat();
    let problem = refusal(&named(each_block, &too_few));
    assert!(problem.contains("2 micro-batches cannot fill a pipeline of 2 stages"), "{problem}");
}

/// `test_pipeline_stage_merging` of PopART (tests/integration/pipelining_tests): three stages on
/// two IPUs run with three micro-batches, and with recomputation only the input is stashed.
#[test]
fn the_test_of_popart_holds() {
    let overrides = [
        "model.loss=identity",
        "options.gradient_accumulation=3",
        "options.recomputation=pipeline",
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let spec = common::spec(
        &written(
            &directory,
            "x_in f32:1,16\n\
             x_0 = MatMul x_in w:16,16 __pipeline_stage=0 __ipu_number=0\n\
             x_1 = MatMul x_0 w:16,16 __pipeline_stage=1 __ipu_number=0\n\
             o = MatMul x_1 w:16,16 __pipeline_stage=2 __ipu_number=1\n",
        ),
        &overrides,
    );
    let compiled = compile(&spec).expect("compiles");
    let stashes = compiled.compilation.operations.iter().filter(|of| of.kind == "stash");
    let stashes: Vec<&str> = stashes.map(|of| of.name.as_str()).collect();
    assert_eq!(stashes, ["x_in/stash"]);
}

/// Writes the model of a text as a file.
fn written(directory: &TempDir, text: &str) -> String {
    let path = directory.path().join("layers.onnx");
    std::fs::write(&path, onnx_text::model(text).bytes()).expect("written");
    path.to_string_lossy().into_owned()
}

/// Layers `layer0`, `layer1`, …, each with a stage and an IPU, if it has any.
fn layers(directory: &TempDir, own: &[Option<(usize, u32)>]) -> String {
    let mut text = "x0 f32:8,32\n".to_owned();
    for (at, own) in own.iter().enumerate() {
        let own = own.map_or_else(String::new, |(stage, ipu)| {
            format!("__pipeline_stage={stage} __ipu_number={ipu}")
        });
        text += &format!("x{} = MatMul x{at} w:32,32 @layer{at} {own}\n", at + 1);
    }
    written(directory, &text)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(long_cases(100)))]
    /// Merging stages by hand, in a file or in a spec, gives the same program.
    #[test]
    fn stages_may_be_merged_by_hand(
        ipus in prop::collection::vec(0u32..3, 2..6), trained: bool, sharded: bool,
    ) {
        let directory = tempfile::tempdir().expect("a directory");
        let changes = ipus.windows(2).scan(0, |stage, pair| {
            *stage += usize::from(pair[0] != pair[1]);
            Some(*stage)
        });
        let merged: Vec<usize> = std::iter::once(0).chain(changes).collect();
        let loss = if trained { "identity" } else { "none" };
        let execution = if sharded { "sharded" } else { "pipelined" };
        let batches = if trained { "gradient_accumulation" } else { "device_iterations" };
        let options = [
            format!("model.loss={loss}"),
            format!("options.execution={execution}"),
            format!("options.{batches}=12"),
            "target.ipus=3".to_owned(),
        ];
        let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
        let count = ipus.len();
        let each: Vec<_> = (0..count).map(|at| Some((at, ipus[at]))).collect();
        let by_hand: Vec<_> = (0..count).map(|at| Some((merged[at], ipus[at]))).collect();
        let expected = program(&common::spec(&layers(&directory, &by_hand), &options));
        let annotated = common::spec(&layers(&directory, &each), &options);
        prop_assert_eq!(program(&annotated), expected.clone());
        let stages = stages(&annotated);
        prop_assert_eq!(stages.len(), merged[count - 1] + 1);
        prop_assert!(stages.windows(2).all(|pair| pair[0].1 != pair[1].1));
        let list: Vec<String> = (0..count)
            .map(|at| format!("{{ blocks = [\"layer{at}\"], ipu = {} }}", ipus[at]))
            .collect();
        let list = format!("options.stages=[{}]", list.join(", "));
        options.push(&list);
        let spec = common::spec(&layers(&directory, &vec![None; count]), &options);
        prop_assert_eq!(program(&spec), expected);
    }
}

/// Stages of a spec are merged like those of a file, and the cost of each block stays the same.
#[test]
fn stages_of_a_spec_are_merged() {
    let overrides = ["target.ipus=2", "options.gradient_accumulation=4"];
    let spec = |stages: &str| {
        let stages = format!("options.stages={stages}");
        common::spec("mnist_pipeline", &[&overrides[..], &[&stages]].concat())
    };
    let own =
        "[{blocks=['B1'],ipu=0},{blocks=['B2'],ipu=0},{blocks=['B3'],ipu=1},{blocks=['B4'],ipu=1}]";
    let together = "[['B1','B2'],['B3','B4']]";
    assert_eq!(program(&spec(own)), program(&spec(together)));
    // Another stage in between keeps two on one IPU apart.
    let there_and_back =
        "[{blocks=['B1'],ipu=0},{blocks=['B2'],ipu=1},{blocks=['B3'],ipu=0},{blocks=['B4'],ipu=1}]";
    let problem = refusal(&spec(there_and_back));
    assert!(problem.contains("4 micro-batches cannot fill a pipeline of 4 stages"), "{problem}");
    // The number of a stage in messages is its index in the list.
    let problem =
        refusal(&spec("[{blocks=['B1'],ipu=0},{blocks=['B2'],ipu=0},{blocks=['B3','B4'],ipu=2}]"));
    assert!(problem.contains("stage 2 is on IPU 2"), "{problem}");
}

/// TensorFlow and PopXL keep stages as written, and so do phases.
#[test]
fn other_frameworks_keep_neighbours_apart() {
    let spec = |overrides: &[&str]| file("four_blocks_auto_increment.onnx", overrides);
    for framework in ["keras", "popxl"] {
        let framework = format!("options.host.framework={framework}");
        let three = ["model.loss=identity", "options.gradient_accumulation=3", &framework];
        let problem = refusal(&spec(&three));
        assert!(
            problem.contains("3 micro-batches cannot fill a pipeline of 4 stages"),
            "{problem}"
        );
        // The default number fills four stages.
        assert_eq!(stages(&spec(&["model.loss=identity", &framework])).len(), 4);
        let sharded = ["model.loss=identity", "options.execution=sharded", &framework];
        assert_eq!(stages(&spec(&sharded)).len(), 2);
    }
    let sequential = ["model.loss=identity", "options.pipeline_schedule=sequential"];
    assert_eq!(stages(&spec(&sequential)).len(), 4);
    let problem = refusal(&spec(&["model.loss=identity", "options.pipeline_schedule=interleaved"]));
    assert!(problem.contains("two stages are on IPU 0"), "{problem}");
    assert_eq!(stages(&spec(&["options.execution=phased"])).len(), 4);
}
