//! Running sums along an axis.

use super::{OpBuilder, composed};
use crate::graph::GraphError;
use crate::onnx::node_import::NodeImport;
use crate::operators::MatMulOp;
use crate::shape::{DType, TensorInfo};

pub(super) const OPS: &[OpBuilder] = &[composed("CumSum", cumulative_sum)];

/// The product with a triangle of ones, as popart composes it
/// (willow/src/popx/op/cumsumx.cpp); whole numbers go through floats.
fn cumulative_sum(node: &mut NodeImport) -> Result<(), GraphError> {
    let x = node.input(0)?;
    let (shape, ty) = (node.shape(x), node.ty(x));
    let axis = node.known_scalar(1).unwrap_or(0.0);
    #[allow(clippy::cast_possible_truncation, reason = "an axis is a small whole number")]
    let axis = node.axis(axis as i64, shape.len())?;
    let is_float = matches!(ty.dtype, DType::Float | DType::Half);
    let computed = if is_float { ty.dtype } else { DType::Float };
    let values = node.cast("values", x, computed)?;
    let last = shape.len() - 1;
    let order: Vec<usize> = (0..=last).filter(|other| *other != axis).chain([axis]).collect();
    let turned = node.transpose("rows/transpose", values, order.clone())?;
    let size = shape[axis];
    let rows = ty.elements().0 / size.max(1);
    let matrix = node.reshape("rows", turned, &[rows, size])?;
    let triangle = node.resident("triangle", TensorInfo::new([size, size], computed));
    let sums = node.apply("", MatMulOp::default(), &[matrix, triangle])?;
    let turned: Vec<u64> = order.iter().map(|axis| shape[*axis]).collect();
    let sums = node.reshape("sums", sums, &turned)?;
    let back = (0..axis).chain([last]).chain(axis..last).collect();
    let y = node.transpose("sums/transpose", sums, back)?;
    node.set(0, y)
}
