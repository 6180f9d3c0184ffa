//! Built-in models against their literature, and all of them compiled at a small size.

use tilescope_report::TrainingPass;
use tilescope_sim::compile;
use tilescope_sim::graph::{GraphNode, ModelGraph, TrainingConfig};
use tilescope_sim::graph_lowering::GraphLowering;
use tilescope_sim::model;
use tilescope_sim::operators::LoweringContext;
use tilescope_sim::operators::Optimizer;
use tilescope_sim::poplin::PlanCache;
use tilescope_sim::poplin::planner::PoplibsOptions;
use tilescope_sim::spec::{Spec, SpecSource};
use tilescope_sim::targets::IpuTarget;
use tilescope_sim::targets::MK2;
use tilescope_test_tiers::{slow_tests, up_to};

fn spec(text: &str) -> Spec {
    Spec::build(&SpecSource::from_text("test", text)).expect("valid spec")
}

fn graph(model: &str) -> ModelGraph {
    let spec = spec(&format!("[model]\n{model}\n"));
    (spec.model.definition.build)(&spec.model).expect("sizes fit")
}

/// What is published of a model.
struct Published {
    model: &'static str,
    /// Trainable values, exactly.
    parameters: u64,
    /// Multiply-accumulates of the forward pass on one sample, and how far they may be off: what
    /// is counted besides products differs.
    macs: f64,
    tolerance: f64,
}

const PUBLISHED: &[Published] = &[
    // torchvision.models.resnet18, docs: 11,689,512 parameters, 1.81 GMAC at 224.
    Published {
        model: "name = \"resnet18\"",
        parameters: 11_689_512,
        macs: 1.81e9,
        tolerance: 0.03,
    },
    // torchvision.models.resnet50, docs: 25,557,032 parameters, 4.09 GMAC at 224.
    Published {
        model: "name = \"resnet50\"",
        parameters: 25_557_032,
        macs: 4.09e9,
        tolerance: 0.03,
    },
    // kuangliu/pytorch-cifar ResNet18: 11,173,962 parameters, 0.56 GMAC at 32.
    Published {
        model: "name = \"resnet18\"\nimage_size = 32\nclasses = 10",
        parameters: 11_173_962,
        macs: 0.56e9,
        tolerance: 0.03,
    },
    // kuangliu/pytorch-cifar ResNet50: 23,520,842 parameters, 1.30 GMAC at 32.
    Published {
        model: "name = \"resnet50\"\nimage_size = 32\nclasses = 10",
        parameters: 23_520_842,
        macs: 1.30e9,
        tolerance: 0.03,
    },
    // torchvision.models.vit_b_16, docs: 86,567,656 parameters, 17.56 GMAC at 224.
    Published { model: "name = \"vit\"", parameters: 86_567_656, macs: 17.56e9, tolerance: 0.03 },
    // transformers BertForPreTraining of bert-large-uncased: 336,226,108 parameters. Products at
    // 128 tokens: 24 layers x (12 x 1024^2 x 128 + 2 x 128^2 x 1024), and the heads on 20 tokens.
    Published {
        model: "name = \"bert\"",
        parameters: 336_226_108,
        macs: 24.0 * (12.0 * 1024.0 * 1024.0 * 128.0 + 2.0 * 128.0 * 128.0 * 1024.0)
            + 20.0 * 1024.0 * (1024.0 + 30522.0),
        tolerance: 0.01,
    },
    // transformers BertForPreTraining of bert-base-uncased: 110,106,428 parameters.
    Published {
        model: "name = \"bert\"\nlayers = 12\nhidden = 768\nheads = 12\nintermediate = 3072",
        parameters: 110_106_428,
        macs: 12.0 * (12.0 * 768.0 * 768.0 * 128.0 + 2.0 * 128.0 * 128.0 * 768.0)
            + 20.0 * 768.0 * (768.0 + 30522.0),
        tolerance: 0.01,
    },
    // transformers GPT2LMHeadModel of gpt2: 124,439,808 parameters.
    Published {
        model: "name = \"gpt2\"",
        parameters: 124_439_808,
        macs: 12.0 * (12.0 * 768.0 * 768.0 * 1024.0 + 2.0 * 1024.0 * 1024.0 * 768.0)
            + 1024.0 * 768.0 * 50257.0,
        tolerance: 0.01,
    },
    // transformers GPT2LMHeadModel of gpt2-medium: 354,823,168 parameters.
    Published {
        model: "name = \"gpt2\"\nlayers = 24\nhidden = 1024\nheads = 16",
        parameters: 354_823_168,
        macs: 24.0 * (12.0 * 1024.0 * 1024.0 * 1024.0 + 2.0 * 1024.0 * 1024.0 * 1024.0)
            + 1024.0 * 1024.0 * 50257.0,
        tolerance: 0.01,
    },
    // keras examples/imdb_lstm.py, with two classes: 2,560,000 + 131,584 + 258.
    Published {
        model: "name = \"lstm\"",
        parameters: 2_691_842,
        macs: 80.0 * 256.0 * 512.0,
        tolerance: 0.05,
    },
    // The PopTorch pipelining tutorial: 260 + 5,020 + 82,176 + 2,570.
    Published {
        model: "name = \"mnist\"",
        parameters: 90_026,
        macs: 24.0 * 24.0 * 250.0 + 8.0 * 8.0 * 5000.0 + 81_920.0 + 2_560.0,
        tolerance: 0.01,
    },
    // The PopTorch data loading tutorial: 50 + 1,512 + 24 + 4,177,300 + 1,010; 10.1 MMAC.
    Published {
        model: "name = \"classification\"",
        parameters: 4_179_896,
        macs: 10.1e6,
        tolerance: 0.05,
    },
];

#[test]
fn models_have_the_parameters_of_the_literature() {
    for published in PUBLISHED {
        assert_eq!(
            graph(published.model).parameter_count(),
            published.parameters,
            "{}",
            published.model
        );
    }
}

/// Multiply-accumulates of matrix products, convolutions and recurrent layers.
fn product_macs(graph: &ModelGraph) -> u64 {
    let products = graph
        .nodes
        .iter()
        .filter(|node| node.operator.is_planned() || node.operator.kind() == "lstm");
    let forward = products.filter(|node| node.pass == TrainingPass::Forward);
    forward.map(|node| literature_macs(graph, node)).sum()
}

/// Multiply-accumulates as the literature counts them: convolutions with all zeros beside their
/// input.
fn literature_macs(graph: &ModelGraph, node: &GraphNode) -> u64 {
    let (weights, output) = (graph.tensor(node.inputs[1]), graph.tensor(node.outputs[0]));
    match node.operator.kind() {
        "conv1d" | "conv2d" | "conv3d" => {
            output.ty.elements().0 * weights.ty.elements().0 / weights.ty.shape[0]
        }
        _ => graph.node_flops(node) / 2,
    }
}

#[test]
fn models_do_the_work_of_the_literature() {
    for published in PUBLISHED {
        let macs = product_macs(&graph(published.model)) as f64;
        let error = (macs / published.macs - 1.0).abs();
        assert!(error < published.tolerance, "{}: {macs:.4e}", published.model);
    }
}

/// Sizes that compile in moments.
fn small(model: &str) -> &'static str {
    match model {
        "bert" => {
            "layers = 2\nhidden = 64\nheads = 2\nintermediate = 128\nvocab_size = 512\n\
             sequence_length = 16\nmasked_tokens = 4\nbatch_size = 2"
        }
        "bert_squad" => {
            "layers = 2\nhidden = 64\nheads = 2\nintermediate = 128\nvocab_size = 512\n\
             sequence_length = 16\nbatch_size = 2"
        }
        "gpt2" => {
            "layers = 2\nhidden = 64\nheads = 2\nvocab_size = 512\nsequence_length = 16\nbatch_size = 2"
        }
        "vit" => {
            "layers = 2\nhidden = 64\nheads = 2\nintermediate = 128\nimage_size = 32\nclasses = 8"
        }
        "resnet18" | "resnet50" => "image_size = 32\nclasses = 8\nbatch_size = 2",
        "lstm" => {
            "vocab_size = 256\nembedding = 32\nhidden = 32\nsequence_length = 8\nbatch_size = 2"
        }
        "classification" => "image_size = 32\nbatch_size = 2",
        _ => "",
    }
}

/// A layout has as many elements as its tensor: none is lost where parts are uneven or a stride
/// leaves zeros, none is counted twice.
#[test]
fn every_tensor_of_every_model_lies_somewhere_as_a_whole() {
    let training =
        TrainingConfig { optimizer: Optimizer::Adam, accumulate: true, loss_scaling: 1.0 };
    for name in model::names() {
        let graph = graph(&format!("name = \"{name}\"\n{}", small(name)));
        let trained = !graph.losses.is_empty();
        let graph = if trained { graph.train(training).expect("trains") } else { graph };
        let (machine, plans) = (IpuTarget::all_tiles_of(MK2), PlanCache::new());
        let planning = PoplibsOptions::default();
        let mut context = LoweringContext::new(&graph.tensors, machine, trained, &planning, &plans);
        let mut lowering = GraphLowering::new(&graph, &mut context);
        lowering.plan_ahead();
        for node in &graph.nodes {
            lowering.lower(node).expect("lowers");
            for tensor in node.inputs.iter().chain(&node.outputs) {
                let (tensor, ty) = (*tensor, lowering.context.tensor_type(*tensor));
                let held = lowering.context.layout(tensor).map(|layout| layout.elements.total());
                let what = &graph.tensor(tensor).name;
                assert_eq!(held, Some(ty.elements()), "{name}: {what} after {}", node.name);
            }
        }
    }
}

/// Not fitting in memory is a result, so it is no failure here.
#[test]
fn every_model_compiles_in_training_and_inference() {
    let ways = [(true, "float16"), (true, "mixed"), (false, "float32")];
    for (place, name) in model::names().into_iter().enumerate() {
        // The same blocks as ResNet-18.
        if !slow_tests() && name == "resnet50" {
            continue;
        }
        for (training, precision) in ways.into_iter().cycle().skip(place).take(up_to(1).min(3)) {
            let text = format!(
                "[model]\nname = \"{name}\"\n{}\ntraining = {training}\n\
                 precision = \"{precision}\"\noptimizer = \"lamb\"\nloss_scaling = 1024\n\
                 [options]\ngradient_accumulation = 4\n",
                small(name)
            );
            let compiled = compile(&spec(&text));
            let compiled = compiled.unwrap_or_else(|error| panic!("{text}\n{error}"));
            assert!(!compiled.compilation.programs.is_empty(), "{text}");
        }
    }
}
