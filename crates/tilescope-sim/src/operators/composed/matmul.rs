//! Products of matrices of any rank, with leading dimensions that repeat (ONNX MatMul; popart
//! willow/src/popx/op/matmulx.cpp). If one matrix serves all, the leading dimensions are folded
//! into rows, otherwise into groups.

use super::Composition;
use crate::operators::broadcast::{broadcast_shape, repeated_axes};
use crate::operators::{GraphError, GraphProblem, MatMulOp, OperationSink, RepeatOp, ShapeError};
use crate::shape::{TensorId, TensorInfo};

/// Adds the product of the last two dimensions of `a` and `b`. Leading dimensions are repeated to
/// fit, and a vector is a row or a column.
///
/// # Errors
/// Returns an error for operands that do not fit together.
pub fn matmul(
    graph: &mut dyn OperationSink,
    name: &str,
    [a, b]: [TensorId; 2],
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let mut left = of.ty(a).shape;
    let mut right = of.ty(b).shape;
    if left.is_empty() || right.is_empty() {
        return Err(of.refuse(GraphProblem::ScalarProduct));
    }
    let row = left.len() == 1;
    let column = right.len() == 1;
    if row {
        left.insert(0, 1);
    }
    if column {
        right.push(1);
    }
    let (leading_left, [m, k]) = split_matrix(&left);
    let (leading_right, [of_right, n]) = split_matrix(&right);
    if k != of_right {
        return Err(of.refuse(ShapeError::Product(of.ty(a), of.ty(b))));
    }
    let dtype = of.ty(a).dtype;
    let leads = [leading_left, leading_right].map(|sizes| TensorInfo::new(sizes, dtype));
    let leading = broadcast_shape(&leads).map_err(|error| of.refuse(error))?;
    let mut shape = leading.clone();
    if !row {
        shape.push(m);
    }
    if !column {
        shape.push(n);
    }
    let groups: u64 = leading.iter().product();
    let product = if leading_right.iter().product::<u64>() == 1 {
        let rows = of.reshape("rows", a, vec![groups * m, k])?;
        let matrix = of.reshape("matrix", b, vec![k, n])?;
        of.apply("product", MatMulOp::default(), &[rows, matrix])?
    } else {
        let x = repeated(&mut of, "repeatA", a, (&leading, [m, k]))?;
        let w = repeated(&mut of, "repeatB", b, (&leading, [k, n]))?;
        of.apply("product", MatMulOp::default(), &[x, w])?
    };
    of.reshape("", product, shape)
}

/// Splits a shape into the leading dimensions and those of the matrices.
fn split_matrix(shape: &[u64]) -> (&[u64], [u64; 2]) {
    match shape {
        [leading @ .., rows, columns] => (leading, [*rows, *columns]),
        _ => (&[], [1, 1]),
    }
}

/// Returns the matrices of all leading dimensions as groups. Matrices that serve several groups are
/// copied.
fn repeated(
    of: &mut Composition,
    part: &str,
    tensor: TensorId,
    (leading, [rows, columns]): (&[u64], [u64; 2]),
) -> Result<TensorId, GraphError> {
    let dtype = of.ty(tensor).dtype;
    let groups: u64 = leading.iter().product();
    let whole = [leading, &[rows, columns]].concat();
    let mut found = tensor;
    if of.ty(tensor).elements().0 < groups * rows * columns {
        let axes = repeated_axes(&whole, &of.ty(tensor));
        let kept = whole.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
        let kept = kept.map(|(_, size)| *size).collect();
        let values = of.reshape(&format!("{part}/values"), tensor, kept)?;
        let ty = TensorInfo::new(&whole[..], dtype);
        found = of.apply(part, RepeatOp { ty, axes }, &[values])?;
    }
    of.reshape(&format!("{part}/groups"), found, vec![groups, rows, columns])
}
