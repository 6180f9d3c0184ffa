//! Three sums of vectors from the host: the example whose memory report is printed in the
//! documentation of TensorFlow for the IPU (graphcore/tensorflow docs/logging.rst).

use super::{ModelDef, size};
use crate::graph::{Graph, GraphBuilder, GraphError};
use crate::operators::BinaryOp;
use crate::shape::{Role, TensorType};
use crate::spec::{Key, ModelSpec};

const SIZES: &[Key] = &[size("model.elements", "2", "Values of each vector")];

/// `(a + b) + (a + c)`.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "adder",
    about: "Three sums of vectors from the host, (a + b) + (a + c)",
    sizes: SIZES,
    trainable: false,
    batched: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<Graph, GraphError> {
    let ty = TensorType::new([spec.size("elements")], spec.precision);
    let mut graph = GraphBuilder::new();
    graph.block("main");
    let [a, b, c] = ["a", "b", "c"].map(|name| graph.tensor(name, ty.clone(), Role::Input));
    let ab = graph.apply("ab", BinaryOp::ADD, &[a, b])?;
    let ac = graph.apply("ac", BinaryOp::ADD, &[a, c])?;
    graph.apply("sum", BinaryOp::ADD, &[ab, ac])?;
    Ok(graph.finish())
}
