//! What a size costs beside the next one: rows of a layer, tokens and samples of a transformer
//! layer, in steps of one. Prints the largest differences of each sweep, and how many are above 1.3
//! times.
//!
//! `cargo bench --bench neighbours` takes some minutes. These are predicted cycles, not times.

use tilescope_report::units::Cycles;
use tilescope_sim::graph::{GraphBuilder, ModelGraph};
use tilescope_sim::graph_lowering::{GraphLowering, op_benchmark};
use tilescope_sim::model::MODELS;
use tilescope_sim::operators::{AddBiasOp, LoweringContext, MatMulOp};
use tilescope_sim::poplin::planner::{PlanCache, PoplibsOptions};
use tilescope_sim::shape::{DType, TensorInfo, TensorRole};
use tilescope_sim::spec::{Spec, SpecSource};
use tilescope_sim::targets::{IpuTarget, MK2};

/// What is counted.
const CLIFF: f64 = 1.3;

/// Lines of a sweep.
const SHOWN: usize = 5;

/// Cycles of each node of a graph.
fn node_cycles(graph: &ModelGraph) -> Vec<Cycles> {
    let machine = IpuTarget::all_tiles_of(MK2);
    let (plans, planning) = (PlanCache::new(), PoplibsOptions::default());
    let mut context = LoweringContext::new(&graph.tensors, machine, false, &planning, &plans);
    let mut lowering = GraphLowering::new(graph, &mut context);
    lowering.plan_ahead();
    let cycles = |node| op_benchmark::cycles(&lowering.lower(node).expect("a plan").work);
    graph.nodes.iter().map(cycles).collect()
}

/// A layer of `rows` x 768 inputs and 3072 outputs: its product and its bias.
fn layer(dtype: DType, rows: u64) -> ModelGraph {
    let mut graph = GraphBuilder::new();
    graph.block("layer");
    let ty = |shape: &[u64]| TensorInfo::new(shape, dtype);
    let x = graph.tensor("x", ty(&[rows, 768]), TensorRole::Input);
    let weights = graph.tensor("weights", ty(&[768, 3072]), TensorRole::Parameter);
    let bias = graph.tensor("bias", ty(&[3072]), TensorRole::Parameter);
    let y = graph.apply("product", MatMulOp::default(), &[x, weights]).expect("operands fit");
    graph.apply("bias", AddBiasOp { axis: 1 }, &[y, bias]).expect("operands fit");
    graph.finish()
}

/// The forward pass of one layer of BERT-Base.
fn encoder(batch: u64, tokens: u64) -> ModelGraph {
    let text = format!(
        "[model]\nname = \"bert\"\ntraining = false\nprecision = \"float16\"\nlayers = 1\n\
         hidden = 768\nheads = 12\nintermediate = 3072\nvocab_size = 1000\n\
         batch_size = {batch}\nsequence_length = {tokens}\n[target]\nname = \"mk2\"\n"
    );
    let spec = Spec::build(&SpecSource::from_text("encoder", &text)).expect("sane spec");
    let model = MODELS.iter().find(|model| model.name == "bert").expect("built-in model");
    (model.build)(&spec.model).expect("sane sizes")
}

/// Prints where the cost of a size and of the next one differ.
fn compare(title: &str, costs: &[(u64, f64)]) {
    let mut pairs: Vec<(f64, u64)> = costs
        .windows(2)
        .map(|pair| (pair[0].1.max(pair[1].1) / pair[0].1.min(pair[1].1), pair[0].0))
        .collect();
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0));
    let cliffs = pairs.iter().filter(|(factor, _)| *factor > CLIFF).count();
    println!("{title}: {} neighbours, {cliffs} above {CLIFF} times", pairs.len());
    for (factor, size) in pairs.iter().take(SHOWN) {
        println!("  {size} and {}: {factor:.2} times", size + 1);
    }
}

fn main() {
    for (name, dtype) in [("half", DType::Half), ("float", DType::Float)] {
        let rows: Vec<(u64, Vec<Cycles>)> =
            (1..=4096).map(|rows| (rows, node_cycles(&layer(dtype, rows)))).collect();
        let of = |cost: fn(&[Cycles]) -> Cycles| -> Vec<(u64, f64)> {
            rows.iter().map(|(rows, cycles)| (*rows, cost(cycles).as_f64())).collect()
        };
        compare(
            &format!("rows of a {name} product, 768 to 3072, and its bias"),
            &of(|cycles| cycles[0] + cycles[1]),
        );
        // Plans of neighbours may leave their results in other orders, which suit a bias more or
        // less: this is a part of the sweep above.
        compare(&format!("rows of the bias alone, {name}"), &of(|cycles| cycles[1]));
        let share = |(_, cycles): &(u64, Vec<Cycles>)| cycles[1].as_f64() / cycles[0].as_f64();
        let largest = rows.iter().map(share).fold(0.0, f64::max);
        println!("  the bias takes {:.0} % of its product at most", 100.0 * largest);
    }
    let per_token = |batch: u64, tokens: u64| {
        let cycles: Cycles = node_cycles(&encoder(batch, tokens)).into_iter().sum();
        cycles.as_f64() / (batch * tokens) as f64
    };
    for batch in [1, 8, 32] {
        let tokens: Vec<_> = (64..=512).map(|tokens| (tokens, per_token(batch, tokens))).collect();
        compare(&format!("tokens of a BERT-Base layer, batch {batch}"), &tokens);
    }
    for tokens in [64, 127, 128, 384, 512] {
        let samples: Vec<_> = (1..=32).map(|batch| (batch, per_token(batch, tokens))).collect();
        compare(&format!("samples of a BERT-Base layer, {tokens} tokens"), &samples);
    }
}
