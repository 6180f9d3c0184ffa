//! Operands of different shapes: dimensions of size 1, and missing outer ones, are repeated, as in
//! numpy and ONNX.

use super::{GradientBuilder, GraphError, LoweringContext, ReduceOp, ReshapeOp, ShapeError};
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::work::{OperationWork, TemporaryVariable};
use crate::popops::reduce::{self, ReduceOperation};
use crate::popops::relayout;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{TensorId, TensorInfo};
use tilescope_report::MemoryCategory;

/// Returns the shape that all operands are repeated to.
///
/// # Errors
/// Returns an error for sizes that differ and are not 1.
pub(crate) fn broadcast_shape<'a>(
    operands: impl IntoIterator<Item = &'a TensorInfo>,
) -> Result<Vec<u64>, ShapeError> {
    let mut shape: Vec<u64> = Vec::new();
    for operand in operands {
        let missing = operand.shape.len().saturating_sub(shape.len());
        shape.splice(0..0, std::iter::repeat_n(1, missing));
        for (size, of_operand) in shape.iter_mut().rev().zip(operand.shape.iter().rev()) {
            match (*size, *of_operand) {
                (one, other) if one == other => {}
                (1, other) => *size = other,
                (_, 1) => {}
                _ => {
                    return Err(ShapeError::Broadcast { operand: operand.clone(), shape });
                }
            }
        }
    }
    Ok(shape)
}

/// The axes of `shape` along which a compatible operand is repeated.
pub(crate) fn repeated_axes(shape: &[u64], operand: &TensorInfo) -> Vec<usize> {
    let missing = shape.len().saturating_sub(operand.shape.len());
    let sizes = std::iter::repeat_n(&1, missing).chain(&operand.shape);
    let axes = shape.iter().zip(sizes).enumerate();
    axes.filter(|(axis, (size, own))| *axis < missing || size != own)
        .map(|(axis, _)| axis)
        .collect()
}

/// Sums the gradient of the repeated values of operand `input` over the axes along which the
/// operand was repeated.
pub(crate) fn reduce_to_operand(
    backward: &mut GradientBuilder,
    gradient: TensorId,
    input: usize,
) -> Result<TensorId, GraphError> {
    let operand = backward.input_type(input);
    let shape = backward.tensor_type(gradient).shape.clone();
    let axes = repeated_axes(&shape, &operand);
    if axes.is_empty() {
        return Ok(gradient);
    }
    let sum =
        backward.apply("grad/reduce", ReduceOp::new(ReduceOperation::Add, axes), &[gradient])?;
    backward.apply("grad/reshape", ReshapeOp { shape: operand.shape }, &[sum])
}

impl LoweringContext<'_> {
    /// Adds the phases that repeat `tensor` to the elements of a tensor with type `ty` and layout
    /// `layout`. Each tile receives the values that it repeats, and copies them.
    pub(crate) fn repeat_tensor(
        &mut self,
        work: &mut OperationWork,
        tensor: TensorId,
        (ty, layout): (&TensorInfo, &TensorLayout),
        name: &str,
    ) {
        let axes = repeated_axes(&ty.shape, self.tensor_type(tensor));
        self.repeat_along(work, tensor, (ty, layout), &axes, name);
    }

    /// Adds the exchange that sends one value to every tile of `layout`.
    pub(crate) fn send_scalar(
        &mut self,
        work: &mut OperationWork,
        tensor: TensorId,
        layout: &TensorLayout,
        name: &str,
    ) {
        let bytes = self.tensor_type(tensor).dtype.bytes();
        let values = self.layout_or_linear(tensor).bytes(bytes);
        let needed = layout.elements.map(|_| bytes);
        let start = work.phases().len();
        let messages = TileMessages::each_way(1);
        let speed = self.exchange_speed();
        work.push_some(exchange::phase(name, &needed, &values, messages, self.tiles, speed));
        work.temporaries.push(TemporaryVariable::anywhere(
            format!("{name}/broadcast"),
            MemoryCategory::Message,
            needed,
            start..work.phases().len() + 1,
        ));
    }

    /// Repeats a tensor like [`Self::repeat_tensor`], along the given axes.
    pub(crate) fn repeat_along(
        &mut self,
        work: &mut OperationWork,
        tensor: TensorId,
        (ty, layout): (&TensorInfo, &TensorLayout),
        axes: &[usize],
        name: &str,
    ) {
        let values = self.layout_or_linear(tensor).bytes(ty.dtype.bytes());
        // Each tile receives as many values as it holds elements, and at most all.
        let all = values.total();
        let needed = layout.bytes(ty.dtype.bytes()).map(|bytes| *bytes.min(&all));
        let start = work.phases().len();
        work.push_some(exchange::phase(
            name,
            &needed,
            &values,
            TileMessages::each_way(4),
            self.tiles,
            self.exchange_speed(),
        ));
        let dims = reduce::collapse(&reduce::dims(&ty.shape, &layout.order, axes));
        let piece = dims.last().filter(|dim| !dim.reduced).map_or(1, |dim| dim.size);
        work.push(relayout::copy(name, ty.dtype, &layout.elements, piece));
        work.temporaries.push(TemporaryVariable::anywhere(
            format!("{name}/values"),
            MemoryCategory::Message,
            needed,
            start..work.phases().len(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::DType;

    #[test]
    fn smaller_operands_are_repeated() {
        let ty = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
        let both = |a: &[u64], b: &[u64]| broadcast_shape([&ty(a), &ty(b)]);
        assert_eq!(both(&[4, 5], &[5]), Ok(vec![4, 5]));
        assert_eq!(both(&[5], &[4, 5]), Ok(vec![4, 5]));
        assert_eq!(both(&[4, 1], &[3, 1, 5]), Ok(vec![3, 4, 5]));
        assert!(both(&[4, 5], &[4]).is_err());
        assert_eq!(both(&[], &[2]), Ok(vec![2]));
        let axes = |shape: &[u64], operand: &[u64]| repeated_axes(shape, &ty(operand));
        assert_eq!(axes(&[4, 5], &[4, 5]), [] as [usize; 0]);
        assert_eq!(axes(&[2, 4, 5], &[4, 1]), [0, 2]);
        assert_eq!(axes(&[1, 5], &[5]), [0]);
    }
}
