//! Options as in published programs.

use crate::common::{self, RecordedRun};
use std::collections::BTreeMap;
use tilescope_analysis::insights::insights;
use tilescope_fixtures::onnx_text;
use tilescope_report::units::{Bytes, IpuId, NumberFormat};
use tilescope_report::{CompilationReport, TrainingPass};
use tilescope_sim::compile;
use tilescope_sim::compile::CompiledProgram;
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_test_tiers::up_to;

/// Half of the IPUs or more without a stage are a warning; a pipeline of three stages needs a device of
/// four IPUs.
#[test]
fn idle_ipus_are_a_warning() {
    let warning = |sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        let arguments = [&["simulate", "mnist_pipeline", "--check"], sets.as_slice()].concat();
        let output = common::tilescope(&arguments);
        assert!(output.status.success(), "{}", common::stderr(&output));
        common::stderr(&output)
    };
    let said = warning(&["target.ipus=8"]);
    assert!(said.contains("warning: 4 of 8 IPUs have no stage"), "{said}");
    assert!(said.contains("set target.ipus = 4"), "{said}");
    assert!(said.contains("options.replication_factor = 2"), "{said}");
    assert_eq!(warning(&["options.stages=[[\"B1\"], [\"B2\"], [\"B3\", \"B4\"]]"]), "");
}

/// Without training, the proposal for a pipeline that fills and drains too often is more
/// micro-batches per call, and never an accumulation, which would be refused.
#[test]
fn no_accumulation_is_proposed_for_inference() {
    let mut proposed = 0;
    for iterations in [4, 7] {
        let overrides = [
            "model.training=false",
            "options.gradient_accumulation=1",
            &format!("options.device_iterations={iterations}"),
        ];
        let (report, _directory) = common::report("mnist_pipeline", &overrides);
        for finding in insights(&report, NumberFormat::default()).expect("reads") {
            let Some(proposal) = finding.proposal else { continue };
            assert!(
                !proposal.changes.contains_key("options.gradient_accumulation"),
                "{proposal:?}"
            );
            let more = serde_json::json!(2 * iterations);
            if finding.rule == "accumulation" {
                assert_eq!(proposal.changes.get("options.device_iterations"), Some(&more));
                proposed += 1;
            }
        }
    }
    assert_eq!(proposed, 2, "the pipeline fills and drains for each call");
}

/// A deeper buffer never takes longer, for any depth, and its memory on the host is reported.
#[test]
fn buffers_may_be_as_deep_as_in_published_programs() {
    let spread = [
        "options.device_iterations=300",
        "options.host.seconds_per_micro_batch=100e-6",
        "options.host.sample_time_spread=1.0",
    ];
    let cycles = [1, 64, 256, 65_536].map(|depth| {
        let depth = format!("options.prefetch_depth={depth}");
        let overrides = [&spread[..], &[&depth]].concat();
        let spec = common::spec("tests/data/specs/replicas_io_tiles.toml", &overrides);
        RecordedRun::of(&compile(&spec).expect("compiles"), &spec).end()
    });
    assert!(cycles.is_sorted_by(|less, more| less >= more), "{cycles:?}");
    assert!(cycles[0] > cycles[1], "buffers are worth something: {cycles:?}");
    let spec = common::spec("tests/data/specs/replicas_io_tiles.toml", &[]);
    let notes = compile(&spec).expect("compiles").compilation.notes;
    assert!(notes.iter().any(|note| note.ends_with("at prefetch depth 256")), "{notes:?}");
}

/// The smallest transformer of that configuration with different plans on its IPUs.
const SMALL: [&str; 3] =
    ["model.layers=4", "options.gradient_accumulation=9", "model.vocab_size=1024"];

/// Its stages, with a layer on each IPU but the first.
const SMALL_STAGES: &str = "options.stages=[{blocks=\"embeddings\",ipu=0},\
    {blocks=[\"layer0\",\"layer1\"],ipu=1},{blocks=\"layer2\",ipu=2},\
    {blocks=\"layer3\",ipu=3},{blocks=\"head\",ipu=0}]";

fn small_transformer(proportion: &str, more: &[&str]) -> CompiledProgram {
    let proportion = format!("options.available_memory_proportion={proportion}");
    let overrides = [&SMALL[..], &[&proportion], more].concat();
    let spec = common::spec("tests/data/specs/proportion_per_ipu.toml", &overrides);
    compile(&spec).expect("compiles")
}

/// A list of equal values equals the single value: the same plans, cycles and bytes, for any origin
/// of stages.
#[test]
fn equal_proportions_equal_a_single_one() {
    let balanced = ["options.stages=[]", "options.auto_stage=balanced"];
    for stages in [&[SMALL_STAGES][..], &balanced].into_iter().take(up_to(1)) {
        let each = small_transformer("[0.13, 0.13, 0.13, 0.13]", stages).compilation;
        let all = small_transformer("0.13", stages).compilation;
        assert_eq!(each.tile_memory, all.tile_memory);
        assert_eq!(each.operations, all.operations);
        assert_eq!(each.programs, all.programs);
    }
}

/// Every product is planned with the share of its own IPU.
#[test]
fn each_ipu_has_its_own_proportion() {
    let shares = [0.6, 0.07, 0.35, 0.6];
    let list = format!("{shares:?}");
    let compiled = small_transformer(&list, &[SMALL_STAGES]).compilation;
    // The first and the last share are equal.
    let mut alone: Vec<CompilationReport> = Vec::new();
    for share in &shares[..3] {
        alone.push(small_transformer(&share.to_string(), &[SMALL_STAGES]).compilation);
    }
    let mut different = 0;
    for ipu in 0..4 {
        let plans = |of: &CompilationReport| -> Vec<(String, Option<String>)> {
            let on_ipu = of.operations.iter().filter(|operation| operation.ipu == Some(IpuId(ipu)));
            on_ipu.map(|operation| (operation.name.clone(), operation.plan.clone())).collect()
        };
        let on_ipu = plans(&compiled);
        assert_eq!(on_ipu, plans(&alone[ipu as usize % 3]), "IPU {ipu}");
        different += usize::from(on_ipu != plans(&alone[0]));
    }
    assert!(different > 0, "the shares make a difference");
}

#[test]
fn a_list_has_a_proportion_for_each_ipu() {
    let file = "tests/data/specs/proportion_per_ipu.toml";
    common::spec(file, &[]);
    for (list, said) in [
        ("[0.2, 0.3]", "one value per IPU of a replica: target.ipus = 4, but the list has 2"),
        ("[]", "a list of one for each IPU of a replica"),
        ("[0.2, 0.3, 0.0, 0.4]", "expected a number above 0"),
        ("[\"auto\", 0.3, 0.1, 0.4]", "expected a number above 0"),
    ] {
        let list = format!("options.available_memory_proportion={list}");
        let refusal = common::refusal(file, &[&list]);
        assert!(refusal.contains(said), "{refusal}");
    }
}

/// Every stream above 128 MiB has a warning, and no smaller one.
#[test]
fn streams_that_are_too_long_are_reported() {
    let file = "tests/data/onnx/long_stream.onnx";
    let warnings = |spec: &str, overrides: &[&str]| {
        let notes = compile(&common::spec(spec, overrides)).expect("compiles").compilation.notes;
        notes.into_iter().filter(|note| note.contains("host stream")).collect::<Vec<String>>()
    };
    let long_streams = warnings(file, &[]);
    for (warning, name) in long_streams.iter().zip(["relu_o", "x"]) {
        let said =
            format!("Warning: The host stream of {name} has 149,766,584 bytes per micro-batch");
        assert!(warning.starts_with(&said), "{warning}");
    }
    assert!(
        long_streams[0].contains("options.output_type")
            && long_streams[1].contains("options.input_type")
    );
    assert_eq!(
        warnings(file, &["options.input_type=float16", "options.output_type=float16"]),
        [""; 0]
    );
    assert_eq!(warnings("mnist_pipeline", &[]), [""; 0]);
}

/// An option without effect has a note.
#[test]
fn options_without_effect_are_reported() {
    let notes = |spec: &str, overrides: &[&str]| {
        compile(&common::spec(spec, overrides)).expect("compiles").compilation.notes.join("\n")
    };
    let factor = |factor: u64| {
        let factor = format!("options.serialize_matmul_factor={factor}");
        notes("mnist_pipeline", &["options.serialize_matmul=output_channels", &factor])
    };
    let said =
        "options.serialize_matmul_factor = 7 does not divide that dimension of any linear layer";
    assert!(factor(7).contains(said), "{}", factor(7));
    assert!(!factor(2).contains("serialize_matmul"), "{}", factor(2));

    let off_chip = "options.location.activations.on_chip=false";
    let one = ["target.ipus=1", "options.stages=[]", off_chip];
    assert!(notes("mnist_pipeline", &one).contains("stay on the chip: its backward pass"));
    let inference = ["model.training=false", "options.gradient_accumulation=1", off_chip];
    assert!(notes("mnist_pipeline", &inference).contains("on_chip has no effect in inference"));
    assert!(!notes("mnist_pipeline", &[off_chip]).contains("stay on the chip"));
}

/// Named layers are computed in parts, with their gradients, and no others. Naming all layers and
/// naming none give the same results.
#[test]
fn named_layers_alone_are_computed_in_parts() {
    let sizes = [
        "model.name=mlp",
        "model.layers=3",
        "model.width=195",
        "model.classes=12",
        "model.batch_size=15",
        "options.serialize_matmul=output_channels",
        "options.serialize_matmul_factor=3",
        "options.device_iterations=1",
    ];
    let program = |layers: &[&str]| {
        let list = format!("options.serialize_matmul_layers={layers:?}");
        let named = if layers.is_empty() { vec![] } else { vec![list.as_str()] };
        let spec = common::spec("offload", &[&sizes[..], &named].concat());
        compile(&spec).expect("compiles").compilation
    };
    let in_parts = |of: &CompilationReport| -> Vec<String> {
        let operations = of.operations.iter().filter(|of| of.inner_runs == Some(3));
        let mut names: Vec<String> = operations.map(|of| of.name.clone()).collect();
        names.sort();
        names
    };
    let all = program(&[]);
    assert!(in_parts(&all).len() > 3, "{:?}", in_parts(&all));
    for every in [&["*"][..], &["L0", "L1", "L2"]] {
        let named = program(every);
        assert_eq!(named.operations, all.operations, "{every:?}");
        assert_eq!(named.programs, all.programs, "{every:?}");
        assert_eq!(named.tile_memory, all.tile_memory, "{every:?}");
    }
    for (names, layer) in [(["L1"], "L1"), (["*2"], "L2")] {
        let of_layer: Vec<String> =
            in_parts(&all).into_iter().filter(|name| name.starts_with(layer)).collect();
        assert!(of_layer.len() > 1, "the gradients are cut too: {:?}", in_parts(&all));
        assert_eq!(in_parts(&program(&names)), of_layer, "{names:?}");
    }
}

/// A layer that does not exist, or cannot be divided, is refused.
#[test]
fn layers_that_cannot_be_computed_in_parts_are_refused() {
    let cut = |factor: &str| format!("options.serialize_matmul_factor={factor}");
    let columns = "options.serialize_matmul=output_channels";
    for (layers, factor, said) in [
        (
            "[\"head/decoderr\"]",
            "2",
            "no linear layer \"head/decoderr\"; did you mean head/decoder?",
        ),
        ("[\"layer0/ff1\", \"embeddings/norm\"]", "2", "no linear layer \"embeddings/norm\""),
        ("[\"head/decoder\"]", "5", "factor = 5 does not divide the "),
        ("[\"*/ff1\"]", "7", "of layer \"layer0/ff1\" or of other layers with this name"),
    ] {
        let list = format!("options.serialize_matmul_layers={layers}");
        let refusal = common::refusal("bert_base_pod16", &[&list, columns, &cut(factor)]);
        assert!(refusal.contains(said), "{refusal}");
    }
    let nothing =
        common::refusal("bert_base_pod16", &["options.serialize_matmul_layers=[\"head\"]"]);
    assert!(nothing.contains("set options.serialize_matmul"), "{nothing}");
}

/// Models with norms, softmax, activation functions and a loss.
const SMALL_BERT: &str = "name = \"bert\"\nlayers = 1\nhidden = 66\nheads = 3\nintermediate = 130\n\
    sequence_length = 21\nvocab_size = 501\nmax_positions = 32\nmasked_tokens = 3\nbatch_size = 3";
const WIDE_BERT: &str = "name = \"bert\"\nlayers = 1\nhidden = 770\nheads = 11\nintermediate = 3090\n\
    sequence_length = 131\nvocab_size = 501\nmax_positions = 140\nbatch_size = 3";
const CLASSIFICATION: &str = "name = \"classification\"\nbatch_size = 5";
const RESNET: &str = "name = \"resnet18\"\nimage_size = 33\nbatch_size = 3";

const KINDS_OF_OPERATIONS: [&str; 4] = ["norm", "softmax", "activation_function", "loss"];

/// A training program of a model in one precision, with kinds of operations in another one.
fn precise(sizes: &str, precision: &str, of: &[(&str, &str)]) -> CompilationReport {
    let mut text = format!("[model]\n{sizes}\nprecision = \"{precision}\"\noptimizer = \"adam\"\n");
    for (kind, type_of_kind) in of {
        text.push_str(&format!("precision_of.{kind} = \"{type_of_kind}\"\n"));
    }
    text.push_str("[options]\ngradient_accumulation = 3\n");
    let spec = Spec::build(&SpecSource::from_text("precise", &text)).expect("valid");
    compile(&spec).expect("compiles").compilation
}

/// Bytes that are used at any time, on all tiles.
fn used_bytes(of: &CompilationReport) -> Bytes {
    let tiles = of.tile_memory.iter();
    tiles
        .map(|(range, tile)| u64::from(range.count()) * (tile.non_interleaved + tile.interleaved))
        .sum()
}

/// Kinds of operations in the type of the model leave it unchanged.
#[test]
fn kinds_in_the_precision_of_the_model_change_nothing() {
    for sizes in [SMALL_BERT, CLASSIFICATION, RESNET].into_iter().take(up_to(1)) {
        for (precision, computed) in
            [("float16", "float16"), ("mixed", "float16"), ("float32", "float32")]
        {
            let without = precise(sizes, precision, &[]);
            let own = KINDS_OF_OPERATIONS.map(|kind| (kind, computed));
            let with = precise(sizes, precision, &own);
            assert_eq!(with.operations, without.operations, "{sizes}");
            assert_eq!(with.programs, without.programs, "{sizes}");
            assert_eq!(with.variables, without.variables, "{sizes}");
            assert_eq!(with.tile_memory, without.tile_memory, "{sizes}");
        }
    }
}

/// Each kind of operation in float32 inside a model in half precision takes more memory, and casts in
/// both passes.
#[test]
fn kinds_in_float32_take_more_memory_and_casts() {
    for sizes in [WIDE_BERT, CLASSIFICATION, RESNET].into_iter().take(up_to(1)) {
        let half = precise(sizes, "float16", &[]);
        for kind in KINDS_OF_OPERATIONS {
            let single = precise(sizes, "float16", &[(kind, "float32")]);
            if single.notes.iter().any(|note| note.contains("the model has no such operation")) {
                assert_eq!(single.operations, half.operations, "{sizes}: {kind}");
                continue;
            }
            let casts = |of: &CompilationReport, pass: TrainingPass| {
                let casts = of.operations.iter().filter(|of| of.kind == "cast" && of.pass == pass);
                casts.count()
            };
            for pass in [TrainingPass::Forward, TrainingPass::Backward] {
                assert!(casts(&single, pass) > casts(&half, pass), "{sizes}: {kind} {pass:?}");
            }
            let bytes = [&single, &half].map(used_bytes);
            assert!(bytes[0] > bytes[1], "{sizes}: {kind}: {bytes:?}");
        }
    }
}

/// Scale and shift of float32 norms are float32, with their gradients and the optimiser's state, and no
/// other weights are.
#[test]
fn float32_norms_are_trained_in_float32() {
    let half = precise(SMALL_BERT, "float16", &[]);
    let single = precise(SMALL_BERT, "float16", &[("norm", "float32")]);
    let of_weights = |of: &CompilationReport| -> BTreeMap<String, String> {
        let kept = of
            .variables
            .iter()
            .filter(|of| of.name.ends_with("weight") || of.name.ends_with("bias"));
        kept.map(|of| (of.name.clone(), of.shape.clone())).collect()
    };
    let (half, single) = (of_weights(&half), of_weights(&single));
    let mut of_norms = 0;
    for (name, shape) in &single {
        if name.contains("norm") {
            assert!(shape.starts_with("float32"), "{name}: {shape}");
            of_norms += usize::from(half.get(name) != Some(shape));
        } else {
            assert_eq!(half.get(name), Some(shape), "{name}");
        }
    }
    // Scale and shift of each norm, their accumulators and their first moments.
    assert_eq!(of_norms, 4 * 2 * 3, "{single:?}");
}

/// A precision key without effect has a note.
#[test]
fn precisions_without_effect_are_reported() {
    let norm = "model.precision_of.norm=float16";
    let single = common::spec("offload", &["model.precision=float32", norm]);
    let notes = compile(&single).expect("compiles").compilation.notes;
    assert!(notes.iter().any(|note| note.contains("model.precision_of.norm has no effect")));
    let refusal = common::refusal("tests/data/onnx/mnist_dynamic_batch.onnx", &[norm]);
    assert!(refusal.contains("as_is"), "{refusal}");
}

/// The message for a model with more blocks than IPUs proposes ways to split it, and each of them
/// works.
#[test]
fn more_blocks_than_ipus_are_split_as_the_message_proposes() {
    for (name, blocks) in [("vit", 5), ("gpt2", 5), ("bert", 5)].into_iter().take(up_to(2)) {
        for ipus in [3, 2].into_iter().take(up_to(1)) {
            let text = format!(
                "[model]\nname = \"{name}\"\nlayers = 3\nhidden = 64\nheads = 2\n\
                 [target]\nipus = {ipus}\n[options]\ngradient_accumulation = 9\n"
            );
            let with = |auto: &str| {
                let source = SpecSource::from_text("blocks", &format!("{text}{auto}"));
                compile(&Spec::build(&source).expect("valid"))
            };
            let refused = with("").expect_err("too many blocks").to_string();
            let said =
                format!("one IPU for each of the {blocks} blocks of the model, but target.ipus");
            assert!(
                refused.starts_with("options.auto_stage") && refused.contains(&said),
                "{refused}"
            );
            for auto in ["balanced", "same_as_ipu"] {
                assert!(refused.contains(auto), "{refused}");
                let compiled = with(&format!("auto_stage = \"{auto}\"\n")).expect("is split");
                assert_eq!(compiled.placement.stages.len(), ipus, "{name}");
            }
        }
    }
}

/// With wide loads of weights, products and convolutions take fewer cycles, on the vertices that
/// support them; they are off by default.
#[test]
fn wide_weight_loads_save_cycles() {
    for (sizes, precision) in [
        ("name = \"mlp\"\nlayers = 2\nwidth = 1000\nbatch_size = 256", "float16"),
        ("name = \"resnet18\"\nimage_size = 57\nbatch_size = 2", "float16"),
        ("name = \"bert\"\nlayers = 1\nsequence_length = 77\nvocab_size = 1000", "float32"),
    ] {
        let with = |wide: bool| {
            let text = format!(
                "[model]\n{sizes}\nprecision = \"{precision}\"\ntraining = false\n\
                 [target]\nname = \"mk2\"\n\
                 [options]\nuse_128bit_conv_unit_load = {wide}\n"
            );
            let spec = Spec::build(&SpecSource::from_text("wide", &text)).expect("valid");
            let compiled = compile(&spec).expect("compiles");
            let mut amp = 0;
            for vertex in &compiled.compilation.vertex_types {
                let is_amp = ["ConvPartial1x1Out<", "ConvPartialnx1<"]
                    .iter()
                    .any(|kind| vertex.name.contains(kind));
                assert!(!is_amp || vertex.name.contains(",true,true,") == wide, "{}", vertex.name);
                amp += usize::from(is_amp);
            }
            assert!(amp > 0, "{sizes}");
            RecordedRun::of(&compiled, &spec).end()
        };
        let (wide, narrow) = (with(true), with(false));
        assert!(wide < narrow, "{sizes}: {wide} {narrow}");
    }
}

/// Advice on precision depends on the types of operations: a file in half precision gets none, one
/// in single precision does.
#[test]
fn advice_for_files_depends_on_their_types() {
    let directory = tempfile::tempdir().expect("a directory");
    for (kind, to, is_single) in [("f16", 10, false), ("f32", 1, true)] {
        let path = directory.path().join(format!("{kind}.onnx"));
        let text = format!(
            "x {kind}:48,640\na w:640,640\nb w:640,640\nv = Cast a to={to}\ny = MatMul x v\nz = Relu y\n\
             u = Cast b to={to}\nq = MatMul z u"
        );
        std::fs::write(&path, onnx_text::model(&text).bytes()).expect("written");
        for precision in [&[][..], &["model.precision=float32"], &["model.precision=as_is"]] {
            let (report, _directory) = common::report(&path.to_string_lossy(), precision);
            let found = insights(&report, NumberFormat::default()).expect("reads");
            let mut single = found.iter().filter(|finding| finding.rule == "precision");
            assert_eq!(single.next().is_some(), is_single, "{kind} {precision:?}");
        }
    }
    let refusal = common::refusal("mnist_pipeline", &["model.precision=as_is"]);
    assert!(refusal.contains("requires an ONNX file"), "{refusal}");
}

/// The micro-batch of a file is processed in parts, whether the file has a symbol for samples or
/// fixes their number: all samples count, whole operations exist for each part, and activations are
/// smaller.
#[test]
fn files_are_processed_in_parts() {
    let factor = |factor: u64| format!("options.batch_serialization_settings.factor={factor}");
    let fixed = "tests/data/onnx/phased_batch_parts.onnx";
    let symbolic = "tests/data/onnx/mnist_dynamic_batch.onnx";
    for (file, samples, parts) in [(fixed, 32, [4, 2]), (symbolic, 33, [3, 11])] {
        let batch = if file == symbolic { vec!["model.batch_size=33"] } else { Vec::new() };
        let compiled = |parts: u64| {
            let factor = factor(parts);
            let spec = common::spec(file, &[&batch[..], &[&factor]].concat());
            assert_eq!(spec.model.batch_size, samples);
            compile(&spec).expect("compiles").compilation
        };
        let products = |of: &CompilationReport| {
            let forward = of.operations.iter().filter(|of| of.pass == TrainingPass::Forward);
            let products: Vec<u64> =
                forward.filter(|of| of.kind == "matmul").map(|of| of.flops).collect();
            (products.len() as u64, products.iter().sum::<u64>())
        };
        let whole = products(&compiled(1));
        for parts in parts.into_iter().take(up_to(1)) {
            assert_eq!(products(&compiled(parts)), (parts * whole.0, whole.1), "{file}: {parts}");
        }
        let uneven = factor(5);
        let refusal = common::refusal(file, &[&batch[..], &[&uneven]].concat());
        assert!(refusal.contains("5 equal parts"), "{refusal}");
    }
    // In phases, as in the tutorial.
    let phased = ["options.execution=phased", "target.ipus=2", &factor(4)];
    compile(&common::spec(fixed, &phased)).expect("compiles");
    // A fixed number of samples in a shape cannot be reduced.
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("reshape.onnx");
    let text = "x f32:8,6\nn i64:3=8,2,3\ny = Reshape x n\nz = Relu y";
    std::fs::write(&path, onnx_text::model(text).bytes()).expect("written");
    let refusal = common::refusal(&path.to_string_lossy(), &[&factor(2)]);
    assert!(refusal.contains("export it with a dynamic first dimension"), "{refusal}");
}
