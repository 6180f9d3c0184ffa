//! Element-wise operations of two operands: one operator for all of popops' binary vertices. The
//! second operand may be smaller: dimensions of size 1 (and missing outer ones) are repeated.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, OutputAlias, ReduceOp, ReshapeOp, RowWindow, ShapeError, UnaryOp, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::popops::reduce::ReduceOperation;
use crate::popops::rows::TensorRows;
use crate::shape::{TensorId, TensorInfo, TensorRole};

/// An operation of an element with its partner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BinaryOp(pub(crate) BinaryOpType);

impl BinaryOp {
    /// a + b
    pub const ADD: Self = Self(BinaryOpType::Add);
    pub(crate) const MULTIPLY: Self = Self(BinaryOpType::Multiply);
    /// a / b
    pub(crate) const DIVIDE: Self = Self(BinaryOpType::Divide);
}

/// Axes of `a` along which `b` is repeated.
fn repeated_axes(a: &TensorInfo, b: &TensorInfo) -> Result<Vec<usize>, ShapeError> {
    let missing = a.shape.len().checked_sub(b.shape.len());
    let refuse = || ShapeError(format!("{b} cannot be repeated to fit {a}"));
    let missing = missing.ok_or_else(refuse)?;
    let mut repeated: Vec<usize> = (0..missing).collect();
    for (axis, (of_a, of_b)) in (missing..).zip(a.shape[missing..].iter().zip(&b.shape)) {
        match (of_a, of_b) {
            (many, 1) if *many > 1 => repeated.push(axis),
            (same, other) if same == other => {}
            _ => return Err(refuse()),
        }
    }
    Ok(repeated)
}

/// A gradient summed over the axes along which its operand was repeated.
fn reduce_broadcast_gradient(
    backward: &mut GradientBuilder,
    gradient: TensorId,
    axes: &[usize],
    ty: &TensorInfo,
) -> Result<TensorId, GraphError> {
    if axes.is_empty() {
        return Ok(gradient);
    }
    let sum = ReduceOp::new(ReduceOperation::Add, axes.to_vec());
    let sum = backward.apply("grad/reduce", sum, &[gradient])?;
    backward.apply("grad/reshape", ReshapeOp { shape: ty.shape.clone() }, &[sum])
}

impl Operator for BinaryOp {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        if inputs[0].dtype != inputs[1].dtype {
            return Err(ShapeError(format!("operands differ: {} and {}", inputs[0], inputs[1])));
        }
        repeated_axes(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let dy = backward.gradient()?;
        let [a, b] = [backward.node.inputs[0], backward.node.inputs[1]];
        let (a_type, b_type) = (backward.input_type(0), backward.input_type(1));
        let axes =
            repeated_axes(&a_type, &b_type).map_err(|_| backward.no_gradient_error(self.kind()))?;
        let wants = [backward.needs_input_gradient(0), backward.needs_input_gradient(1)];
        let of_a = match self.0 {
            BinaryOpType::Add | BinaryOpType::Subtract => Some(dy),
            BinaryOpType::Multiply | BinaryOpType::Divide if wants[0] => {
                Some(backward.apply("grad_a", *self, &[dy, b])?)
            }
            BinaryOpType::Multiply | BinaryOpType::Divide => None,
            _ => return Err(backward.no_gradient_error(self.kind())),
        };
        if !wants[1] {
            return Ok(vec![of_a, None]);
        }
        let of_b = match self.0 {
            BinaryOpType::Add => dy,
            BinaryOpType::Subtract => {
                backward.apply("grad_b", UnaryOp(UnaryOpType::Negate), &[dy])?
            }
            BinaryOpType::Multiply => backward.apply("grad_b", Self::MULTIPLY, &[dy, a])?,
            _ => {
                // d(a / b)/db = -(a / b) / b
                let ratio =
                    backward.apply("grad_b/ratio", Self::DIVIDE, &[backward.node.outputs[0], b])?;
                let product = backward.apply("grad_b/product", Self::MULTIPLY, &[ratio, dy])?;
                backward.apply("grad_b", UnaryOp(UnaryOpType::Negate), &[product])?
            }
        };
        Ok(vec![of_a, Some(reduce_broadcast_gradient(backward, of_b, &axes, &b_type)?)])
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        Some(RowWindow::POINTWISE)
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let (a, b) = (
            lowering.tensor_type(node.inputs[0]).clone(),
            lowering.tensor_type(node.inputs[1]).clone(),
        );
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let name = format!("Op/{}", self.0.title());
        let axes = repeated_axes(&a, &b).unwrap_or_default();
        let work = if axes.is_empty() {
            let mut work = lowering.relayout_tensor(node.inputs[1], &layout, &name);
            // What outlives the program cannot be overwritten.
            let phase = if lowering.role(node.inputs[0]) == TensorRole::Activation {
                elementwise::binary_in_place
            } else {
                elementwise::binary
            };
            work.push(phase(&name, self.0, a.dtype, &layout.elements));
            work
        } else {
            let values = lowering.layout_or_linear(node.inputs[1]);
            let mut work = OperationWork::default();
            let rows = TensorRows::new(&a, layout.clone(), &axes);
            rows.apply_broadcast(&lowering.machine, &mut work, &name, self.0, &values);
            work
        };
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::DType;

    #[test]
    fn smaller_operands_are_repeated() {
        let ty = |shape: &[u64]| TensorInfo::new(shape, DType::Half);
        let axes = |a: &[u64], b: &[u64]| repeated_axes(&ty(a), &ty(b));
        assert_eq!(axes(&[4, 5], &[4, 5]), Ok(vec![]));
        assert_eq!(axes(&[4, 5], &[5]), Ok(vec![0]));
        assert_eq!(axes(&[2, 4, 5], &[4, 1]), Ok(vec![0, 2]));
        assert!(axes(&[4, 5], &[4]).is_err());
        assert!(axes(&[5], &[4, 5]).is_err());
    }
}
