//! Three sums of vectors from the host: the example with a printed memory report in the
//! documentation of TensorFlow for the IPU (graphcore/tensorflow docs/logging.rst).

use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphBuilder, GraphError, ModelGraph};
use crate::operators::BinaryOp;
use crate::shape::{TensorInfo, TensorRole};
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[size("model.elements", "2", "Values of each vector")];

/// `(a + b) + (a + c)`, with the vectors from the host.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "adder",
    about: "Three sums of vectors from the host, (a + b) + (a + c)",
    sizes: SIZES,
    trainable: false,
    batched: false,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let ty = TensorInfo::new([spec.size("elements")], spec.precision);
    let mut graph = GraphBuilder::new();
    graph.block("main");
    let [a, b, c] = ["a", "b", "c"].map(|name| graph.tensor(name, ty.clone(), TensorRole::Input));
    let ab = graph.apply("ab", BinaryOp::ADD, &[a, b])?;
    let ac = graph.apply("ac", BinaryOp::ADD, &[a, c])?;
    graph.apply("sum", BinaryOp::ADD, &[ab, ac])?;
    Ok(graph.finish())
}
