//! Embeddings and recurrent layers as operators of a graph: shapes, gradients, conservation.

use tilescope_sim::graph::{DType, Graph, GraphBuilder, GraphError, Role, TensorType, Training};
use tilescope_sim::lower::Lowering;
use tilescope_sim::lower::work::{PhaseKind, Work};
use tilescope_sim::ops::{CrossEntropy, Embedding, Operator, Optimizer, Recurrent, Reshape};
use tilescope_sim::planner::{Machine, PlanCache, PoplibsOptions};
use tilescope_sim::targets::chip;

const STEPS: u64 = 5;
const BATCH: u64 = 4;
const WIDTH: u64 = 24;
const OUTPUT: u64 = 32;

/// Words of a sentence, looked up, through one layer, to classes.
fn model(layer: impl Operator + 'static, units: u64, parts: u64) -> Result<Graph, GraphError> {
    let mut graph = GraphBuilder::new();
    graph.block("layer");
    let half = |shape: &[u64]| TensorType::new(shape, DType::Half);
    let words = graph.tensor("words", TensorType::new([STEPS, BATCH], DType::Int), Role::Input);
    let labels = graph.tensor("labels", TensorType::new([STEPS * BATCH], DType::Int), Role::Input);
    let table = graph.tensor("table", half(&[1000, WIDTH]), Role::Parameter);
    let weights = graph.tensor("weights", half(&[WIDTH + OUTPUT, units * OUTPUT]), Role::Parameter);
    let bias = graph.tensor("bias", half(&[units, OUTPUT]), Role::Parameter);
    let x = graph.apply("embedding", Embedding { serialisation: parts }, &[table, words])?;
    let y = graph.apply_all("layer", layer, &[x, weights, bias])?[0];
    let logits = graph.apply("flat", Reshape { shape: vec![STEPS * BATCH, OUTPUT] }, &[y])?;
    let loss = graph.apply("loss", CrossEntropy, &[logits, labels])?;
    graph.loss(loss);
    let optimizer = Optimizer::Sgd;
    graph.finish().train(Training { optimizer, accumulate: false, loss_scaling: 1.0 })
}

fn lowered(graph: &Graph, name: &str) -> Vec<(String, Work)> {
    let machine = Machine::whole(*chip(name).expect("a chip"));
    let planning = PoplibsOptions::default();
    let plans = PlanCache::new();
    let mut lowering = Lowering::new(graph, machine, true, &planning, &plans);
    let lower = |node: &tilescope_sim::graph::Node| {
        let work = node.operator.lower(&mut lowering, node).expect("a plan");
        for output in &node.outputs {
            let held = lowering.layout(*output).expect("laid out").elements.total();
            assert_eq!(held, lowering.ty(*output).elements(), "{}", node.name);
        }
        (node.operator.kind().to_string(), work)
    };
    graph.nodes.iter().map(lower).collect()
}

fn check(graph: &Graph) {
    for chip in ["mk1", "mk2"] {
        for (kind, work) in lowered(graph, chip) {
            for (phase, _) in work.phases() {
                let PhaseKind::Exchange { traffic, .. } = &phase.kind else { continue };
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
    check(&model(Recurrent::lstm(OUTPUT, true), 4, 1).expect("sane"));
    check(&model(Recurrent::gru(OUTPUT, true), 3, 1).expect("sane"));
}

#[test]
fn lookups_may_be_serialised() {
    let graph = model(Recurrent::gru(OUTPUT, true), 3, 4).expect("sane");
    check(&graph);
    let peak = |parts| {
        let graph = model(Recurrent::gru(OUTPUT, true), 3, parts).expect("sane");
        let works = lowered(&graph, "mk2");
        let (_, work) = works.iter().find(|(kind, _)| kind == "embedding").expect("an embedding");
        work.temporaries.iter().map(|each| each.bytes.total()).sum::<u64>()
    };
    assert!(peak(4) <= peak(1));
    let problem = model(Recurrent::gru(OUTPUT, true), 3, 3).expect_err("20 lookups in 3 parts");
    assert!(problem.to_string().contains("3 parts"), "{problem}");
}

#[test]
fn operands_that_do_not_fit_are_refused() {
    let problem = model(Recurrent::lstm(OUTPUT, true), 3, 1).expect_err("weights of a GRU");
    assert!(problem.to_string().contains("layer"), "{problem}");
    let problem = model(Recurrent::lstm(OUTPUT, false), 4, 1).expect_err("nothing was kept");
    assert!(problem.to_string().contains("keep"), "{problem}");
}
