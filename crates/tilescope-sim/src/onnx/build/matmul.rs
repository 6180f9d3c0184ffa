//! Matrix products.

use super::{OpBuilder, modelled};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::composed::matmul;
use crate::operators::{AddBiasOp, ImportProblem, MatMulOp};
use crate::popops::elementwise::BinaryOpType;
use crate::shape::TensorId;

pub(super) const OPS: &[OpBuilder] = &[
    modelled("Gemm", gemm),
    modelled("Linear", linear),
    modelled("MatMul", |node| {
        let operands = [node.input(0)?, node.input(1)?];
        let y = node.compose("", |graph, name| matmul(graph, name, operands))?;
        node.set(0, y)
    }),
];

/// `alpha . op(a) . op(b) + beta . c` of matrices.
fn gemm(node: &mut NodeImport) -> Result<(), GraphError> {
    let mut x = node.input(0)?;
    if node.int("transA", 0)? != 0 {
        x = node.transpose("transA", x, vec![1, 0])?;
    }
    let turned = node.int("transB", 0)? != 0;
    let [m, n] = node.output_dims(0)?[..] else {
        return Err(node.refuse(ImportProblem::Operands("two matrices")));
    };
    let y = product(node, x, turned)?;
    let alpha = node.float("alpha", 1.0)?;
    let y = node.scale("alpha", y, alpha)?;
    let Some(c) = node.optional(2)? else { return node.set(0, y) };
    let beta = node.float("beta", 1.0)?;
    let c = node.scale("beta", c, beta)?;
    let y = add_bias(node, y, c, [m, n])?;
    node.set(0, y)
}

/// Multiplies a matrix by the second operand, whose axes may be swapped.
fn product(node: &mut NodeImport, x: TensorId, turned: bool) -> Result<TensorId, GraphError> {
    // Weights have the layout that the product needs. The host transposes them when it writes them.
    if turned && node.is_own_weight(1) {
        let weight = node.required(1)?;
        let stored: Vec<u64> = node.of_file(1)?.dims.iter().rev().copied().collect();
        let w = node.importer.tensor_stored_as(weight, &stored)?;
        return node.apply("", MatMulOp::default(), &[x, w]);
    }
    let w = node.input(1)?;
    let operator = if turned { MatMulOp::TRANSPOSED } else { MatMulOp::default() };
    node.apply("", operator, &[x, w])
}

/// Adds one value per column, or a matrix.
fn add_bias(
    node: &mut NodeImport,
    y: TensorId,
    bias: TensorId,
    [_, columns]: [u64; 2],
) -> Result<TensorId, GraphError> {
    if node.ty(bias).elements().0 == columns {
        let bias = node.reshape("bias/shape", bias, &[columns])?;
        return node.apply("bias", AddBiasOp { axis: 1 }, &[y, bias]);
    }
    node.binary("bias", BinaryOpType::Add, [y, bias])
}

/// Builds a product with weights, and a bias per column if there is one: the operator that
/// exporters write as `MatMul` and `Add`, with `Transpose` before it if the weights are stored for
/// `transB`.
fn linear(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let turned = node.int("transB", 0)? != 0;
    let rows = rows_of(node, x)?;
    let y = product(node, rows, turned)?;
    let Some(bias) = node.optional(2)? else { return node.set(0, y) };
    let columns = node.shape(y)[1];
    let y = add_bias(node, y, bias, [0, columns])?;
    node.set(0, y)
}

/// Merges all axes but the last into one.
fn rows_of(node: &mut NodeImport, x: TensorId) -> Result<TensorId, GraphError> {
    let shape = node.shape(x);
    let columns = shape.last().copied().unwrap_or(1);
    let rows = shape.iter().rev().skip(1).product();
    node.reshape("rows", x, &[rows, columns])
}
