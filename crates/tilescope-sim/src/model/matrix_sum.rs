//! The sum of two matrices that are already on the device. Their layouts decide if one of them is
//! rearranged first (memory guide, section 4.8).

use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphBuilder, GraphError, ModelGraph};
use crate::operators::{BinaryOp, TransposeOp};
use crate::shape::{TensorInfo, TensorRole};
use crate::spec_keys::{SpecKey, SpecKeyType};

const SIZES: &[SpecKey] = &[
    size("model.m", "768", "Rows of both matrices"),
    size("model.n", "768", "Columns of both matrices"),
    SpecKey::of_model(
        "model.columns_first",
        SpecKeyType::Integer(0, 1),
        "1",
        "1 stores the second matrix by columns; 0 by rows, like the first",
        &[],
    ),
];

/// `sum = a + b` on resident matrices.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "matrix_sum",
    about: "A sum a[m,n] + b[m,n] of resident matrices, b column by column or row by row",
    sizes: SIZES,
    trainable: false,
    batched: false,
    float32_only: false,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [m, n, columns_first] = ["m", "n", "columns_first"].map(|name| spec.size(name));
    let mut graph = GraphBuilder::new();
    graph.block("main");
    let mut mapped = |name: &str, shape: [u64; 2]| {
        graph.tensor(name, TensorInfo::new(shape, spec.precision), TensorRole::Mapped)
    };
    let a = mapped("a", [m, n]);
    let b = if columns_first == 1 {
        let stored = mapped("b", [n, m]);
        graph.apply("b/transpose", TransposeOp { permutation: vec![1, 0] }, &[stored])?
    } else {
        mapped("b", [m, n])
    };
    graph.apply("sum", BinaryOp::ADD, &[a, b])?;
    Ok(graph.finish())
}
