//! Compares built-in models with their literature, and compiles all of them at a small size.

use tilescope_report::TrainingPass;
use tilescope_sim::compile;
use tilescope_sim::graph::{GraphNode, ModelGraph, TrainingConfig};
use tilescope_sim::graph_lowering::GraphLowering;
use tilescope_sim::model;
use tilescope_sim::operators::LoweringContext;
use tilescope_sim::operators::Optimizer;
use tilescope_sim::poplin::PlanCache;
use tilescope_sim::poplin::planner::PoplibsOptions;
use tilescope_sim::specification::{Spec, SpecSource};
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

/// Built-in models with their published figures.
const PUBLISHED: &str = include_str!("../data/published_models.txt");

/// The graph of each published model, its trainable values, the multiply-accumulates of its forward
/// pass on one sample, and the allowed deviation of these: definitions differ in what they count
/// besides products.
fn published() -> impl Iterator<Item = (&'static str, ModelGraph, u64, f64, f64)> {
    PUBLISHED.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [model, parameters, macs, tolerance] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("four columns: {line}")
        };
        let number = |text: &str| text.parse::<f64>().expect("a number");
        let graph = graph(&model.replace(", ", "\n"));
        (model, graph, number(parameters) as u64, number(macs), number(tolerance))
    })
}

#[test]
fn models_have_the_parameters_and_work_of_the_literature() {
    for (model, graph, parameters, macs, tolerance) in published() {
        assert_eq!(graph.parameter_count(), parameters, "{model}");
        let found = product_macs(&graph) as f64;
        assert!((found / macs - 1.0).abs() < tolerance, "{model}: {found:.4e}");
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

/// Multiply-accumulates as counted in the literature: convolutions including the zeros beside their
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

/// Sizes that compile quickly.
fn small(model: &str) -> String {
    let transformer = "layers = 2, hidden = 64, heads = 2";
    let sizes = match model {
        "bert" => format!(
            "{transformer}, intermediate = 128, vocab_size = 512, sequence_length = 16, \
             masked_tokens = 4, batch_size = 2"
        ),
        "bert_squad" => format!(
            "{transformer}, intermediate = 128, vocab_size = 512, sequence_length = 16, \
             batch_size = 2"
        ),
        "gpt2" => format!("{transformer}, vocab_size = 512, sequence_length = 16, batch_size = 2"),
        "vit" => format!("{transformer}, intermediate = 128, image_size = 32, classes = 8"),
        "resnet18" | "resnet50" => "image_size = 32, classes = 8, batch_size = 2".to_owned(),
        "lstm" => {
            "vocab_size = 256, embedding = 32, hidden = 32, sequence_length = 8, batch_size = 2"
                .to_owned()
        }
        "classification" => "image_size = 32, batch_size = 2".to_owned(),
        _ => String::new(),
    };
    sizes.replace(", ", "\n")
}

/// A layout has as many elements as its tensor: none is lost where parts are uneven or a stride
/// leaves zeros, and none is counted twice.
#[test]
fn every_tensor_of_every_model_has_a_complete_layout() {
    let training = TrainingConfig {
        optimizer: Optimizer::Adam,
        shares_rate: false,
        accumulate: true,
        loss_scaling: 1.0,
    };
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

/// Not fitting in memory is a result, and so no failure here.
#[test]
fn every_model_compiles_in_training_and_inference() {
    let ways = [(true, "float16"), (true, "mixed"), (false, "float32")];
    for (place, name) in model::names().into_iter().enumerate() {
        // ResNet-18 has the same blocks.
        if !slow_tests() && name == "resnet50" {
            continue;
        }
        for (training, precision) in ways.into_iter().cycle().skip(place).take(up_to(1).min(3)) {
            // Its vertices exist for float32 only.
            let precision = if name == "mat_vec" { "float32" } else { precision };
            let mut text = format!(
                "[model]\nname = \"{name}\"\n{}\ntraining = {training}\n\
                 precision = \"{precision}\"\noptimizer = \"lamb\"\nloss_scaling = 1024\n",
                small(name)
            );
            if spec(&text).model.training {
                text += "[options]\ngradient_accumulation = 4\n";
            }
            let compiled = compile(&spec(&text));
            let compiled = compiled.unwrap_or_else(|error| panic!("{text}\n{error}"));
            assert!(!compiled.compilation.programs.is_empty(), "{text}");
        }
    }
}
