//! A matrix times a vector, both streamed from the host, with custom codelets: the program of
//! Poplar's tutorial on the subject (graphcore/examples tut6_matrix_vector_opt).

use super::{ModelDef, ModelSpec, size};
use crate::graph::{GraphBuilder, GraphError, ModelGraph};
use crate::operators::MatVecOp;
use crate::shape::{DType, TensorInfo, TensorRole};
use crate::spec_keys::SpecKey;

const SIZES: &[SpecKey] = &[
    size("model.rows", "10000", "Rows of the matrix"),
    size("model.columns", "1000", "Columns of the matrix, values of the vector"),
];

/// `result = matrix . vector`, with custom codelets.
pub(crate) const MODEL: ModelDef = ModelDef {
    name: "mat_vec",
    about: "A float matrix times a vector, matrix[rows,columns] . vector, with custom vertices",
    sizes: SIZES,
    trainable: false,
    batched: false,
    float32_only: true,
    build,
};

fn build(spec: &ModelSpec) -> Result<ModelGraph, GraphError> {
    let [rows, columns] = ["rows", "columns"].map(|name| spec.size(name));
    let mut graph = GraphBuilder::new();
    graph.block("main");
    let mut input = |name: &str, shape: &[u64]| {
        graph.tensor(name, TensorInfo::new(shape, DType::Float), TensorRole::Input)
    };
    let vector = input("inputVector", &[columns]);
    let matrix = input("matrix", &[rows, columns]);
    graph.apply("product", MatVecOp, &[matrix, vector])?;
    Ok(graph.finish())
}
