//! Indices into a tensor that is treated as one row of elements (popart
//! willow/src/popx/op/scatterutilx.cpp, linearizeIndices).

use super::{BinaryOp, GraphError, OperationSink, ReduceOp, ReshapeOp, ScalarOp, TransposeOp};
use crate::popops::elementwise::BinaryOpType;
use crate::popops::reduce::ReduceOperation;
use crate::shape::{DType, TensorId, TensorInfo};
use std::sync::Arc;

/// The axes of a tensor with `axis` first.
pub(crate) fn rolled(rank: usize, axis: usize) -> Vec<usize> {
    std::iter::once(axis).chain((0..rank).filter(|other| *other != axis)).collect()
}

/// The operator that reverts a transposition.
pub(crate) fn unrolled(permutation: &[usize]) -> TransposeOp {
    let mut inverse = vec![0; permutation.len()];
    for (new, old) in permutation.iter().enumerate() {
        inverse[*old] = new;
    }
    TransposeOp { permutation: inverse }
}

/// Adds the linear positions in `data`, with axis `axis` first, of the elements that `indices`
/// address along that axis. Along all other axes an element has the position of its index.
pub(crate) fn along_axis(
    graph: &mut dyn OperationSink,
    name: &str,
    (mut indices, axis): (TensorId, usize),
    data: &TensorInfo,
) -> Result<TensorId, GraphError> {
    let part = |part: &str| format!("{name}/{part}");
    let shape = graph.tensor_type(indices).shape.clone();
    let count: u64 = shape.iter().product();
    if axis > 0 {
        let roll = TransposeOp { permutation: rolled(shape.len(), axis) };
        indices = graph.add(&part("rollIndices"), Arc::new(roll), &[indices])?[0];
    }
    let columns = count / shape[axis];
    let rows = ReshapeOp { shape: vec![shape[axis], columns] };
    indices = graph.add(&part("indexRows"), Arc::new(rows), &[indices])?[0];
    let step = data.elements().0 / data.shape[axis];
    let scale = ScalarOp::new(BinaryOpType::Multiply, step as f64);
    indices = graph.add(&part("numColsMulIndices"), Arc::new(scale), &[indices])?[0];
    let ids = graph.constant(&part("colIds"), TensorInfo::new([columns], DType::Int));
    indices = graph.add(&part("indicesAddColIds"), Arc::new(BinaryOp::ADD), &[indices, ids])?[0];
    Ok(graph.add(&part("linearIndices"), Arc::new(ReshapeOp { shape: vec![count] }), &[indices])?
        [0])
}

/// Adds the linear positions of the coordinates in the last axis of `indices`, after `batch`
/// leading dimensions that it shares with the tensor.
pub(crate) fn of_coordinates(
    graph: &mut dyn OperationSink,
    name: &str,
    indices: TensorId,
    batch: usize,
) -> Result<TensorId, GraphError> {
    let part = |part: &str| format!("{name}/{part}");
    let shape = graph.tensor_type(indices).shape.clone();
    let last = shape.len() - 1;
    let strides = graph.constant(&part("strides"), TensorInfo::new([shape[last]], DType::Int));
    let scaled =
        graph.add(&part("stridesMulIndices"), Arc::new(BinaryOp::MULTIPLY), &[indices, strides])?
            [0];
    let sum = ReduceOp::new(ReduceOperation::Add, vec![last]);
    let mut place = graph.add(&part("sum"), Arc::new(sum), &[scaled])?[0];
    if batch > 0 {
        let mut starts = shape[..last].to_vec();
        starts[batch..].fill(1);
        let starts = graph.constant(&part("batchStarts"), TensorInfo::new(starts, DType::Int));
        place = graph.add(&part("addBatchStarts"), Arc::new(BinaryOp::ADD), &[place, starts])?[0];
    }
    let count: u64 = shape[..last].iter().product();
    Ok(graph.add(&part("linearIndices"), Arc::new(ReshapeOp { shape: vec![count] }), &[place])?[0])
}
