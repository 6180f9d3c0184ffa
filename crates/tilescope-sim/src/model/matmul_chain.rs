//! Two consecutive matmuls on tensors that are already on the device: the program of the Poplar
//! profiling tutorial (graphcore/examples tut4_profiling).

use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphBuilder, GraphError, ModelGraph};
use crate::operators::MatMulOp;
use crate::shape::{DType, TensorInfo, TensorRole};
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[
    size("model.m", "800", "Rows of the first matrix"),
    size("model.k", "500", "Columns of the first matrix, rows of the second"),
    size("model.n", "400", "Columns of the second matrix, rows of the third"),
    size("model.p", "200", "Columns of the third matrix"),
];

/// `m5 = (m1 . m2) . m3` on resident tensors.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "matmul_chain",
    about: "Two matrix products in a row, m1[m,k] . m2[k,n] . m3[n,p], on resident tensors",
    sizes: SIZES,
    trainable: false,
    batched: false,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [m, k, n, p] = ["m", "k", "n", "p"].map(|name| spec.size(name));
    let dtype: DType = spec.precision;
    let mut graph = GraphBuilder::new();
    graph.block("main");
    let mut mapped = |name: &str, rows: u64, columns: u64| {
        graph.tensor(name, TensorInfo::new([rows, columns], dtype), TensorRole::Mapped)
    };
    let m1 = mapped("m1", m, k);
    let m2 = mapped("m2", k, n);
    let m3 = mapped("m3", n, p);
    let m4 = graph.apply("m4", MatMulOp::default(), &[m1, m2])?;
    graph.apply("m5", MatMulOp::default(), &[m4, m3])?;
    Ok(graph.finish())
}
