//! Embeddings and recurrent layers as operators of a graph: shapes, gradients, conservation.

use tilescope_report::units::Bytes;
use tilescope_sim::graph::{GraphBuilder, GraphError, ModelGraph, TrainingConfig};
use tilescope_sim::operators::LoweringContext;
use tilescope_sim::operators::{
    CrossEntropyOp, EmbeddingOp, Operator, Optimizer, ReshapeOp, RnnOp,
};
use tilescope_sim::poplar::work::{OperationWork, WorkPhaseKind};
use tilescope_sim::poplin::PlanCache;
use tilescope_sim::poplin::planner::PoplibsOptions;
use tilescope_sim::shape::{DType, TensorInfo, TensorRole};
use tilescope_sim::targets::IpuTarget;
use tilescope_sim::targets::find_chip;

const STEPS: u64 = 5;
const BATCH: u64 = 4;
const WIDTH: u64 = 24;
const OUTPUT: u64 = 32;

/// Words of a sentence, looked up, through one layer, to classes.
fn model(layer: impl Operator + 'static, units: u64, parts: u64) -> Result<ModelGraph, GraphError> {
    let mut graph = GraphBuilder::new();
    graph.block("layer");
    let half = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
    let words =
        graph.tensor("words", TensorInfo::new([STEPS, BATCH], DType::Int), TensorRole::Input);
    let labels =
        graph.tensor("labels", TensorInfo::new([STEPS * BATCH], DType::Int), TensorRole::Input);
    let table = graph.tensor("table", half(&[1000, WIDTH]), TensorRole::Parameter);
    let weights =
        graph.tensor("weights", half(&[WIDTH + OUTPUT, units * OUTPUT]), TensorRole::Parameter);
    let bias = graph.tensor("bias", half(&[units, OUTPUT]), TensorRole::Parameter);
    let x = graph.apply("embedding", EmbeddingOp { serialisation: parts }, &[table, words])?;
    let y = graph.apply_all("layer", layer, &[x, weights, bias])?[0];
    let logits = graph.apply("flat", ReshapeOp { shape: vec![STEPS * BATCH, OUTPUT] }, &[y])?;
    let loss = graph.apply("loss", CrossEntropyOp, &[logits, labels])?;
    graph.loss(loss);
    let optimizer = Optimizer::Sgd;
    graph.finish().train(TrainingConfig { optimizer, accumulate: false, loss_scaling: 1.0 })
}

fn lowered(graph: &ModelGraph, name: &str) -> Vec<(String, OperationWork)> {
    let machine = IpuTarget::all_tiles_of(*find_chip(name).expect("a chip"));
    let planning = PoplibsOptions::default();
    let plans = PlanCache::new();
    let mut lowering = LoweringContext::new(&graph.tensors, machine, true, &planning, &plans);
    let lower = |node: &tilescope_sim::graph::GraphNode| {
        let work = node.operator.lower(&mut lowering, &node.operands()).expect("a plan").work;
        for output in &node.outputs {
            let held = lowering.layout(*output).expect("laid out").elements.total();
            assert_eq!(held, lowering.tensor_type(*output).elements(), "{}", node.name);
        }
        (node.operator.kind().to_string(), work)
    };
    graph.nodes.iter().map(lower).collect()
}

fn check(graph: &ModelGraph) {
    for chip in ["mk1", "mk2"] {
        for (kind, work) in lowered(graph, chip) {
            for (phase, _) in work.phases() {
                let WorkPhaseKind::Exchange { traffic, .. } = &phase.kind else { continue };
                let received = traffic.map(|tile| tile.bytes_in).total();
                let delivered = traffic.map(|tile| tile.bytes_delivered).total();
                assert_eq!(received, delivered, "{kind}: {}", phase.name);
            }
            let phases = work.phases().len();
            assert!(work.temporaries.iter().all(|each| each.live.end <= phases + 1), "{kind}");
        }
    }
}

#[test]
fn layers_are_trained_from_words_to_loss() {
    check(&model(RnnOp::lstm(OUTPUT, true), 4, 1).expect("sane"));
    check(&model(RnnOp::gru(OUTPUT, true), 3, 1).expect("sane"));
}

#[test]
fn lookups_may_be_serialised() {
    let graph = model(RnnOp::gru(OUTPUT, true), 3, 4).expect("sane");
    check(&graph);
    let peak = |parts| {
        let graph = model(RnnOp::gru(OUTPUT, true), 3, parts).expect("sane");
        let works = lowered(&graph, "mk2");
        let (_, work) = works.iter().find(|(kind, _)| kind == "embedding").expect("an embedding");
        work.temporaries.iter().map(|each| each.bytes.total()).sum::<Bytes>()
    };
    assert!(peak(4) <= peak(1));
    let problem = model(RnnOp::gru(OUTPUT, true), 3, 3).expect_err("20 lookups in 3 parts");
    assert!(problem.to_string().contains("3 parts"), "{problem}");
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let problem = model(RnnOp::lstm(OUTPUT, true), 3, 1).expect_err("weights of a GRU");
    assert!(problem.to_string().contains("layer"), "{problem}");
    let problem = model(RnnOp::lstm(OUTPUT, false), 4, 1).expect_err("nothing was kept");
    assert!(problem.to_string().contains("keep"), "{problem}");
}
