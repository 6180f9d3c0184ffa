//! Invariants of imported models: compared with the built-in ones, and under changes without
//! meaning.

use crate::common;
use std::sync::Arc;
use tilescope_analysis::insights::insights;
use tilescope_fixtures::onnx_file::{FLOAT, Node, OnnxFileBuilder, value_info, weight};
use tilescope_onnx::OnnxFile;
use tilescope_report::units::NumberFormat;
use tilescope_sim::specification::{Spec, SpecSource};
use tilescope_sim::{MOST_RECORDS, ProgramFigures, Simulation};
use tilescope_test_tiers::{skipped_in_the_fast_tier, up_to};

/// A file of `tests/data/onnx`.
fn file(name: &str) -> String {
    format!("{}/tests/data/onnx/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn spec(name: &str, overrides: &[&str]) -> Spec {
    common::spec(&file(name), overrides)
}

fn refusal(name: &str, overrides: &[&str]) -> String {
    common::refusal(&file(name), overrides)
}

fn figures(spec: &Spec) -> ProgramFigures {
    Simulation::compile(spec, MOST_RECORDS).expect("compiles").figures()
}

const PIPELINE: [&str; 3] =
    ["target.ipus=4", "options.gradient_accumulation=8", "model.loss=cross_entropy"];

#[test]
fn the_network_of_the_tutorial_is_the_built_in_one() {
    let stages = "options.stages=[\"/layer1\", \"/layer2\", [\"/Reshape\", \"/layer3\", \
                  \"/layer3_act\"], [\"/layer4\", \"loss\"]]";
    let built_in = common::spec(
        "mnist_pipeline",
        &[
            "model.batch_size=40",
            "options.gradient_accumulation=8",
            "options.device_iterations=1",
            "options.stages=[\"B1\", \"B2\", \"B3\", \"B4\"]",
        ],
    );
    let same = |name: &str, stages: &[&str]| {
        let mut overrides: Vec<String> = PIPELINE.iter().map(ToString::to_string).collect();
        overrides.extend(stages.iter().map(ToString::to_string));
        // Everything else as in the built-in program.
        let set = built_in.text.lines().filter(|line| line.contains(" = "));
        let mut section = "";
        for line in built_in.text.lines() {
            section =
                line.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(section);
            let Some((key, value)) = line.split_once(" = ") else { continue };
            let path = format!("{section}.{key}");
            let decided = ["model.name", "options.stages", "model.batch_size"];
            if !decided.contains(&path.as_str()) {
                overrides.push(format!("{path}={value}"));
            }
        }
        assert!(set.count() > 3, "the bundled program says more than its name");
        let overrides: Vec<&str> = overrides.iter().map(String::as_str).collect();
        assert_eq!(figures(&spec(name, &overrides)), figures(&built_in), "{name}");
    };
    same("guide_mnist.onnx", &[stages]);
    same("guide_mnist_4stages.onnx", &[]);
}

#[test]
fn every_small_file_compiles_with_all_defaults() {
    let names = "guide_mnist guide_mnist_loss guide_classification mnist_dynamic_batch \
                 mnist_dynamo lstm transformer bert bert_dynamo resnet18_dynamo resnet18 \
                 resnet18_train bert_train bert_dynamo_train";
    for name in names.split(' ').take(up_to(10)) {
        let figures = figures(&spec(&format!("{name}.onnx"), &[]));
        assert!(figures.fullest_tile.0 > 0 && figures.samples > 0, "{name}");
    }
}

/// Files after bug reports of other programs: each is simulated, with the multiplications that its
/// shapes give.
#[test]
fn files_refused_by_other_programs_are_simulated() {
    let cases: [(&str, &[&str], u64); 9] = [
        ("empty_past", &[], 262_144),
        (
            "past_symbolic",
            &["model.dim.past_sequence_length=0", "model.dim.sequence_length=16"],
            262_144,
        ),
        ("matmul_integer", &[], 2_097_152),
        ("dynamic_quantise", &[], 262_144),
        ("sequence_at", &[], 0),
        ("if_on_input", &["model.branch.if=then"], 0),
        ("if_on_input", &["model.branch.if=else"], 0),
        ("opset24", &[], 0),
        ("nan_to_num", &[], 8_470_528),
    ];
    for (name, overrides, macs) in cases {
        let spec = spec(&format!("{name}.onnx"), overrides);
        let graph = &spec.model.file.as_ref().expect("imported").graph;
        assert_eq!(graph.macs(), macs, "{name}");
        assert!(figures(&spec).fullest_tile.0 > 0, "{name}");
    }
}

/// A file that was read before is not opened again, unless a key names another one.
#[test]
fn a_file_that_was_read_is_not_opened_again() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("model.onnx");
    std::fs::copy(file("guide_mnist.onnx"), &path).unwrap();
    let read = Arc::new(OnnxFile::open(&path).expect("an ONNX file"));
    std::fs::remove_file(&path).unwrap();
    let build = |overrides: Vec<String>| {
        let source = SpecSource::of_model(path.to_str().unwrap(), read.clone(), overrides);
        let imported = Spec::build(&source).expect("valid spec").model.file.expect("imported");
        imported.identity.digest
    };
    assert_eq!(build(Vec::new()), read.content_hash);
    let other = format!("model.onnx={}", file("resnet18.onnx"));
    assert_ne!(build(vec![other]), read.content_hash);
}

/// The user's decisions on branches and iterations are in the spec of the report, and are checked.
#[test]
fn decisions_are_checked_and_kept() {
    let kept = spec("if_on_input.onnx", &["model.branch.if=else"]);
    assert!(kept.text.contains("else"), "{}", kept.text);
    let wrong = refusal("if_on_input.onnx", &["model.branch.if=maybe"]);
    assert!(wrong.contains("then") && wrong.contains("else"), "{wrong}");
    let open = refusal("if_on_input.onnx", &[]);
    assert!(open.contains("set model.branch.if to then or else"), "{open}");
    let unused = refusal("opset24.onnx", &["model.trips.loop=3"]);
    assert!(unused.contains("\"loop\""), "{unused}");
}

/// Names have no meaning to the machine.
#[test]
fn other_names_of_values_change_no_figure() {
    for name in ["mnist_dynamo.onnx", "transformer.onnx"] {
        let original = spec(name, &[]);
        let mut renamed = original.clone();
        let file = renamed.model.file.as_mut().expect("imported");
        let mut graph = (*file.graph).clone();
        for (number, value) in graph.values.iter_mut().enumerate() {
            value.name = format!("v{number}");
        }
        file.graph = std::sync::Arc::new(graph);
        assert_eq!(figures(&renamed), figures(&original), "{name}");
    }
}

#[test]
fn open_decisions_of_a_file_name_their_keys() {
    let unknown = refusal("mnist_dynamic_batch.onnx", &["model.dim.bacth=4"]);
    assert!(unknown.contains("did you mean batch"), "{unknown}");
    let fixed = refusal("guide_mnist.onnx", &["model.batch_size=3"]);
    assert!(fixed.contains("the file fixes 40 samples"), "{fixed}");
    let lossless = refusal("guide_mnist.onnx", &["model.training=true"]);
    assert!(lossless.contains("model.loss"), "{lossless}");
    let both = refusal("guide_mnist.onnx", &["model.name=mnist"]);
    assert!(both.contains("remove the built-in model"), "{both}");
    let builtin = SpecSource::find("mnist_pipeline", &["model.loss=nll".to_string()]);
    let builtin = Spec::build(&builtin.expect("bundled")).expect_err("only imported models");
    assert!(builtin.to_string().contains("unknown key"), "{builtin}");
}

/// The number of micro-batches that fill a pipeline is found automatically.
#[test]
fn pipelines_are_filled_by_default() {
    for (overrides, iterations, accumulation) in [
        (&["target.ipus=4"][..], 4, 1),
        (&["target.ipus=4", "model.loss=cross_entropy"], 1, 7),
        (&["target.ipus=2", "model.loss=cross_entropy"], 1, 3),
        (
            &["target.ipus=2", "model.loss=cross_entropy", "options.stash_convention=memory_guide"],
            1,
            5,
        ),
        (&["target.ipus=4", "options.execution=sharded"], 1, 1),
        (&["target.ipus=4", "options.device_iterations=9"], 9, 1),
        (&["target.ipus=4", "options.device_iterations=9", "model.loss=cross_entropy"], 9, 1),
        (&["target.ipus=2", "options.stages=['/layer1', '/layer2']"], 2, 1),
        (&[], 1, 1),
    ] {
        let spec = spec("guide_mnist.onnx", overrides);
        let options = &spec.options;
        let found = (options.device_iterations, options.gradient_accumulation);
        assert_eq!(found, (iterations, accumulation), "{overrides:?}");
        assert!(figures(&spec).cycles.is_some());
    }
    // A file of one block stays on one IPU, for any number of IPUs.
    let one = spec("mean_112.onnx", &["target.ipus=4"]);
    assert_eq!(one.options.device_iterations, 1);
}

/// The relative difference of two figures.
fn change(of: u64, from: u64) -> f64 {
    of as f64 / from as f64 - 1.0
}

/// A network from a file of either exporter equals the built-in one, under the same spec.
#[test]
fn exported_networks_are_the_built_in_ones() {
    let resnet = ["model.batch_size=4"];
    let bert = [
        "model.batch_size=2",
        "model.layers=2",
        "model.hidden=128",
        "model.heads=2",
        "model.intermediate=512",
        "model.vocab_size=1000",
        "model.max_positions=64",
        "model.sequence_length=32",
        "model.masked_tokens=5",
    ];
    let cases: [(&str, &[&str], bool, &[&str]); 4] = [
        ("bert", &bert, false, &["bert.onnx", "bert_dynamo.onnx"]),
        ("resnet18", &resnet, false, &["resnet18.onnx", "resnet18_dynamo.onnx"]),
        ("resnet18", &resnet, true, &["resnet18_train.onnx"]),
        ("bert", &bert, true, &["bert_train.onnx", "bert_dynamo_train.onnx"]),
    ];
    for (model, sizes, training, files) in cases.into_iter().take(up_to(2)) {
        let training = format!("model.training={training}");
        let common = ["model.precision=float16", &training];
        let text = format!("[model]\nname = \"{model}\"\n");
        let overrides: Vec<String> = sizes.iter().chain(&common).map(ToString::to_string).collect();
        let source = SpecSource { overrides, ..SpecSource::from_text("built-in", &text) };
        let built_in = figures(&Spec::build(&source).expect("sane"));
        let mut of_files = Vec::new();
        for name in files {
            let with_loss = [&common[..], &["model.loss=cross_entropy"]].concat();
            let overrides = if *name == "resnet18_train.onnx" { &with_loss } else { &common[..] };
            let found = figures(&spec(name, overrides));
            let cycles = |figures: &ProgramFigures| figures.cycles.expect("it fits").0;
            let changes = [
                change(cycles(&found), cycles(&built_in)),
                change(found.fullest_tile.0, built_in.fullest_tile.0),
            ];
            assert!(changes.iter().all(|change| change.abs() < 0.05), "{name}: {changes:?}");
            assert_eq!(found.samples, built_in.samples, "{name}");
            of_files.push(cycles(&found));
        }
        if let [classic, dynamo] = of_files[..] {
            assert!(change(dynamo, classic).abs() < 0.03, "{files:?}: {of_files:?}");
        }
    }
}

/// The share of the run in slower forms of an imported graph, according to insights.
fn share_of_slower_forms(spec: &Spec) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let file = common::report_file(spec, directory.path());
    let report = tilescope_report::Report::open(&file).expect("opens");
    let mut share = 0.0;
    for finding in insights(&report, NumberFormat::default()).expect("reads") {
        if finding.rule == "exported_form"
            && let Some(gain) = finding.gain.share()
        {
            share += gain;
        }
    }
    share
}

/// Networks of full size from files take the bytes of the built-in ones within a twentieth, and
/// also their cycles, except for forms of the file that an insight names with their costs.
#[test]
fn exported_networks_of_full_size_are_the_built_in_ones() {
    if skipped_in_the_fast_tier() {
        return;
    }
    let bert_base = "name = \"bert_squad\"\nlayers = 12\nhidden = 768\nheads = 12\n\
                     intermediate = 3072\nsequence_length = 128\n";
    let cases: [(&str, &str, &[&str], &[u64]); 4] = [
        ("name = \"resnet18\"\n", "resnet18_dynamic_batch.onnx", &[], &[1, 32]),
        ("name = \"resnet50\"\n", "resnet50.onnx", &[], &[1]),
        (bert_base, "bert_base.onnx", &["model.dim.sequence=128"], &[1, 32]),
        ("name = \"vit\"\n", "vit_b_16.onnx", &[], &[1]),
    ];
    for (model, file, sizes, batches) in cases {
        for batch in batches {
            let label = format!("{file} with a batch of {batch}");
            let common = [
                "model.precision=float16".to_owned(),
                "model.training=false".to_owned(),
                format!("model.batch_size={batch}"),
            ];
            let text = format!("[model]\n{model}");
            let source = SpecSource {
                overrides: common.to_vec(),
                ..SpecSource::from_text("built-in", &text)
            };
            let built_in = figures(&Spec::build(&source).expect("sane"));
            let mut overrides: Vec<&str> = sizes.to_vec();
            overrides.extend(common.iter().map(String::as_str));
            let imported = spec(file, &overrides);
            let found = figures(&imported);
            let bytes = change(found.fullest_tile.0, built_in.fullest_tile.0);
            assert!(bytes.abs() < 0.05, "{label}: {bytes} of the fullest tile");
            let [given, expected] =
                [found, built_in].map(|of| of.cycles.expect("it fits").as_f64());
            let with_faster_forms = given * (1.0 - share_of_slower_forms(&imported));
            assert!(given > 0.95 * expected, "{label}: {given} instead of {expected}");
            assert!(
                with_faster_forms < 1.05 * expected,
                "{label}: {with_faster_forms} of {given} instead of {expected}"
            );
        }
    }
}

/// Floating point operations of products and convolutions, in forward and backward passes.
fn product_flops(spec: &Spec) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let file = common::report_file(spec, directory.path());
    let report = tilescope_report::Report::open(&file).expect("opens");
    let operations = report.operations().expect("reads");
    let products =
        operations.iter().filter(|of| of.kind.starts_with("matmul") || of.kind.starts_with("conv"));
    products.map(|of| of.flops).sum()
}

/// Fusing nodes changes how a graph runs, not its multiplications.
#[test]
fn fused_nodes_have_the_same_multiplications() {
    let files = [
        ("transformer.onnx", false),
        ("bert_dynamo.onnx", false),
        ("guide_mnist_loss.onnx", true),
        ("bert.onnx", false),
        ("bert_train.onnx", true),
        ("resnet18_dynamo.onnx", false),
    ];
    for (name, training) in files.into_iter().take(up_to(3)) {
        let training = format!("model.training={training}");
        let flops =
            |fuse: &str| product_flops(&spec(name, &[&format!("model.fuse={fuse}"), &training]));
        assert_eq!(flops("auto"), flops("none"), "{name}");
    }
}

/// Nodes may come in any order in which each reads only earlier results.
#[test]
fn another_order_of_nodes_changes_no_flops() {
    for name in ["bert.onnx", "bert_dynamo.onnx", "transformer.onnx"] {
        let original = spec(name, &[]);
        let mut turned = original.clone();
        let file = turned.model.file.as_mut().expect("imported");
        file.graph = std::sync::Arc::new(depth_first(&file.graph));
        assert_eq!(product_flops(&turned), product_flops(&original), "{name}");
    }
}

/// The graph with its nodes in depth-first order from the last output, the last operand first.
fn depth_first(graph: &tilescope_onnx::OnnxGraph) -> tilescope_onnx::OnnxGraph {
    use tilescope_onnx::{ValueId, ValueSource};
    let maker = |value: ValueId| match graph.value(value).source {
        ValueSource::Node(at) => Some(at),
        _ => None,
    };
    let mut order: Vec<usize> = Vec::new();
    let mut open: Vec<(usize, bool)> =
        graph.outputs.iter().filter_map(|output| maker(*output)).map(|at| (at, false)).collect();
    while let Some((at, ready)) = open.pop() {
        if order.contains(&at) {
            continue;
        }
        if ready {
            order.push(at);
            continue;
        }
        open.push((at, true));
        let operands = graph.nodes[at].inputs.iter().flatten();
        open.extend(operands.filter_map(|operand| maker(*operand)).map(|at| (at, false)));
    }
    let mut turned = graph.clone();
    turned.nodes = order.iter().map(|at| graph.nodes[*at].clone()).collect();
    for (at, node) in turned.nodes.iter().enumerate() {
        for output in node.outputs.iter().flatten() {
            turned.values[output.index()].source = ValueSource::Node(at);
        }
    }
    turned
}

/// Any number that a file computes can be minimized; other outputs are refused with a message.
#[test]
fn any_number_can_be_the_loss() {
    let trained = |name: &str, overrides: &[&str]| {
        let overrides = [&["model.training=true"], overrides].concat();
        assert!(figures(&spec(name, &overrides)).cycles.is_some(), "{name}");
    };
    for name in ["guide_mnist.onnx", "mnist_dynamo.onnx", "transformer.onnx", "lstm.onnx"] {
        trained(name, &["model.loss=identity"]);
    }
    trained("guide_mnist.onnx", &["model.loss=mse"]);
    trained("guide_mnist.onnx", &["model.loss=l1", "options.gradient_accumulation=2"]);
    trained("guide_mnist.onnx", &["model.loss=identity", "model.loss_scaling=128"]);
    let wide = refusal("guide_mnist.onnx", &["model.training=true", "model.loss_output=19"]);
    assert!(wide.contains("[40, 10]") && wide.contains("identity"), "{wide}");
    let wrong = refusal("guide_mnist.onnx", &["model.loss=identity", "model.loss_output=\"91\""]);
    assert!(wrong.contains("must be one of 19"), "{wrong}");
    let frozen = refusal("guide_mnist.onnx", &["model.loss=identity", "model.frozen=[\".*\"]"]);
    assert!(frozen.contains("this loss does not depend on any trained weight"), "{frozen}");
}

/// Two linear layers, with weights as they are or transposed by a separate node.
fn linear_layers(turned: bool, bias: bool) -> OnnxFileBuilder {
    let sizes = [64, 96, 32];
    let model = OnnxFileBuilder::new(17).input(value_info("x0", FLOAT, &[2, 16, sizes[0]]));
    let layer = |model: OnnxFileBuilder, at: usize| {
        let [weights, used, product, made, before] =
            ["w", "t", "p", "b", "x"].map(|name| format!("{name}{at}"));
        let result = format!("x{}", at + 1);
        let (rows, columns) = (sizes[at], sizes[at + 1]);
        let model = if turned {
            model
                .tensor(weight(&weights, &[columns, rows]))
                .node(Node::new("Transpose", &[&weights], &[&used]).ints("perm", &[1, 0]))
        } else {
            model.tensor(weight(&used, &[rows, columns]))
        };
        if !bias {
            return model.node(Node::new("MatMul", &[&before, &used], &[&result]));
        }
        model
            .tensor(weight(&made, &[columns]))
            .node(Node::new("MatMul", &[&before, &used], &[&product]))
            .node(Node::new("Add", &[&product, &made], &[&result]))
    };
    layer(layer(model, 0), 1).output("x2")
}

/// Files that store the weights of a linear layer with a row for each output transpose them before
/// the product: forward and backward pass are those of a layer whose weights have the product's
/// layout.
#[test]
fn transposed_weights_cost_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let of = |turned: bool, bias: bool, training: &str| {
        let path = directory.path().join("linear.onnx");
        std::fs::write(&path, linear_layers(turned, bias).bytes()).expect("written");
        figures(&common::spec(
            &path.to_string_lossy(),
            &["model.loss=identity", "model.precision=float16", training],
        ))
    };
    for (bias, training) in [
        (true, "model.training=true"),
        (false, "model.training=true"),
        (true, "model.training=false"),
        (false, "model.training=false"),
    ] {
        assert_eq!(of(true, bias, training), of(false, bias, training), "{bias}, {training}");
    }
}

/// Samples are counted along the batch axis, whatever its position.
#[test]
fn samples_are_counted_along_the_batch() {
    let samples = |name: &str, overrides: &[&str]| figures(&spec(name, overrides)).samples;
    assert_eq!(samples("guide_mnist.onnx", &[]), 40);
    assert_eq!(samples("mnist_dynamic_batch.onnx", &["model.batch_size=6"]), 6);
    // [35 steps, 20 samples] and states [2, 20, 200]: the second axis is common to all.
    assert_eq!(samples("lstm.onnx", &[]), 20);
    assert_eq!(samples("lstm.onnx", &["model.batch_size=35"]), 35);
    let wrong = refusal("lstm.onnx", &["model.batch_size=7"]);
    assert!(wrong.contains("no input has a dimension 7"), "{wrong}");
    // Axis 1 of the input of an LSTM counts its sequences.
    assert_eq!(samples("lstm_time_major.onnx", &[]), 16);
    // Positions of masked tokens depend on samples too, but not one by one.
    assert_eq!(samples("bert.onnx", &["model.batch_size=2"]), 2);
}

/// A pooling over the whole field takes the time of a mean over it.
#[test]
fn a_pooling_of_the_whole_field_is_a_mean() {
    let cycles = |name: &str| {
        let overrides = ["options.host.loader=synthetic", "target.type=ipu_model"];
        figures(&spec(name, &overrides)).cycles.expect("it fits").as_f64()
    };
    let ratio = cycles("global_average_112.onnx") / cycles("mean_112.onnx");
    assert!((0.8..1.2).contains(&ratio), "{ratio}");
}

/// A file is recognized by its first bytes.
#[test]
fn a_file_of_another_name_is_simulated() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("model.bin");
    std::fs::copy(file("guide_mnist.onnx"), &path).expect("copied");
    let named = path.to_string_lossy().into_owned();
    assert_eq!(figures(&common::spec(&named, &[])), figures(&spec("guide_mnist.onnx", &[])));
    // 120 nested graphs.
    let wrap = |tag: u8, inner: &[u8]| {
        let mut message = vec![tag];
        let mut length = inner.len();
        while length >= 0x80 {
            message.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.push(length as u8);
        message.extend(inner);
        message
    };
    let mut graph = Vec::new();
    for _ in 0..120 {
        let attribute = wrap(0x32, &graph);
        graph = wrap(0x0a, &wrap(0x2a, &attribute));
    }
    let nested = [&[0x08, 0x08][..], &wrap(0x3a, &graph)].concat();
    let path = directory.path().join("nested");
    std::fs::write(&path, nested).expect("written");
    let path = path.to_string_lossy().into_owned();
    let said = |command: &str| common::stderr(&common::tilescope(&[command, &path]));
    let (of_onnx, of_simulate) = (said("onnx"), said("simulate"));
    assert!(of_onnx.contains("nested more than 100 deep"), "{of_onnx}");
    assert!(of_simulate.contains(of_onnx.trim_start_matches("error: ").trim()), "{of_simulate}");
}

/// Each damaged file is read, or refused with a sentence, without a panic.
#[test]
fn damaged_files_are_reported() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("damaged.onnx");
    let named = path.to_string_lossy().into_owned();
    let (mut built, mut refused) = (0, 0);
    for (seed, name) in
        [(1_u64, "guide_mnist_4stages.onnx"), (2, "lstm.onnx"), (3, "mnist_dynamo.onnx")]
    {
        let original = std::fs::read(file(name)).expect("read");
        let mut state = seed;
        let mut dice = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % below
        };
        for _ in 0..200 {
            let mut bytes = original.clone();
            for _ in 0..=dice(3) {
                let at = dice(bytes.len());
                bytes[at] = dice(256) as u8;
            }
            std::fs::write(&path, bytes).expect("written");
            let overrides = ["model.allow_unknown=true".to_owned(), "model.loss=none".to_owned()];
            let source = SpecSource::find(&named, &overrides).expect("a file");
            let outcome =
                Spec::build(&source).map_err(|error| error.to_string()).and_then(|spec| {
                    (spec.model.definition.build)(&spec.model).map_err(|error| error.to_string())
                });
            match outcome {
                Ok(_) => built += 1,
                Err(problem) => {
                    assert!(!problem.is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(built > 100 && refused > 100, "{built} built, {refused} refused");
}
