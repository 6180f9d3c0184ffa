//! The axes of a tensor in another order: a view. An operation that reads it in another order than
//! that of its layout pays for the copy.

use super::{
    GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, ShapeError, Unwinding, expect_operands,
};
use crate::shape::TensorInfo;

/// A tensor whose axis `i` is the operand's axis `permutation[i]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TransposeOp {
    /// The operand's axes in their new order.
    pub permutation: Vec<usize>,
}

impl Operator for TransposeOp {
    fn kind(&self) -> &'static str {
        "transpose"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let shape = &inputs[0].shape;
        let mut sorted = self.permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..shape.len()) {
            return Err(ShapeError::Order {
                permutation: self.permutation.clone(),
                ty: inputs[0].clone(),
            });
        }
        let turned: Vec<u64> = self.permutation.iter().map(|axis| shape[*axis]).collect();
        Ok(vec![TensorInfo::new(turned, inputs[0].dtype)])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let mut permutation = vec![0; self.permutation.len()];
        for (new, old) in self.permutation.iter().enumerate() {
            permutation[*old] = new;
        }
        Ok(vec![Some(backward.apply("grad", Self { permutation }, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let mut layout = lowering.layout_or_linear(node.inputs[0]);
        layout.order =
            layout.order.permuted(&lowering.tensor_type(node.inputs[0]).shape, &self.permutation);
        lowering.set_layout(node.outputs[0], layout);
        Ok(LoweredOperation::default())
    }

    fn unwinding(&self, _: &[TensorInfo], _: usize) -> Unwinding {
        Unwinding::Permuted(self.permutation.clone())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::View(0)
    }
}
