//! Running sums by a product with a triangular matrix, as in PopART (popart
//! willow/src/popx/op/cumsumx.cpp).

use super::Composition;
use crate::operators::linear_index::unrolled;
use crate::operators::{CastOp, GraphError, MatMulOp, OperationSink, ShapeError};
use crate::shape::{DType, TensorId, TensorInfo};

/// Adds the sums of all elements up to each along an axis (ONNX CumSum). The direction, and the
/// inclusion of the element itself, have no effect on the work.
///
/// # Errors
/// Returns an error if the axis does not exist.
pub fn cumulative_sum(
    graph: &mut dyn OperationSink,
    name: &str,
    x: TensorId,
    axis: usize,
) -> Result<TensorId, GraphError> {
    let mut of = Composition { graph, name };
    let ty = of.ty(x);
    let rank = ty.shape.len();
    if axis >= rank {
        return Err(of.refuse(ShapeError::NoAxis { ty, axis }));
    }
    // The matrix engine has no integers. Sums below 2^24 are exact in floats.
    let dtype = match ty.dtype {
        DType::Half | DType::Float => ty.dtype,
        _ => DType::Float,
    };
    let numbers = if dtype == ty.dtype { x } else { of.apply("cast", CastOp { to: dtype }, &[x])? };
    let mut permutation: Vec<usize> = (0..rank).collect();
    permutation.swap(axis, rank - 1);
    let turned = of.transpose("turn", numbers, permutation.clone())?;
    let length = ty.shape[axis];
    let shape = of.ty(turned).shape;
    let rows = of.reshape("rows", turned, vec![ty.elements().0 / length, length])?;
    let triangle = TensorInfo::new([length, length], dtype);
    let triangle = of.graph.constant(&format!("{name}/triangle"), triangle);
    let sums = of.apply("cumsum_mul", MatMulOp::default(), &[rows, triangle])?;
    // The last operator has the name of the operation.
    let casts = dtype != ty.dtype;
    let turns = axis + 1 != rank;
    let unflatten = if turns || casts { "unflatten" } else { "" };
    let mut made = of.reshape(unflatten, sums, shape)?;
    if turns {
        let turn_back = if casts { "turnBack" } else { "" };
        made = of.apply(turn_back, unrolled(&permutation), &[made])?;
    }
    if casts {
        made = of.apply("", CastOp { to: ty.dtype }, &[made])?;
    }
    Ok(made)
}
