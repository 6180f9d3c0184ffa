//! Another shape for the same elements: a view without work.

use super::{
    GradientBuilder, GradientResult, LoweredOperation, LoweringContext, LoweringResult,
    NodeOperands, Operator, OutputAlias, ShapeError, Unwinding, expect_operands,
};
use crate::shape::TensorInfo;

/// A tensor of the given shape with the elements of the operand, in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReshapeOp {
    pub shape: Vec<u64>,
}

impl Operator for ReshapeOp {
    fn kind(&self) -> &'static str {
        "reshape"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let output = TensorInfo::new(self.shape.clone(), inputs[0].dtype);
        if output.elements() != inputs[0].elements() {
            return Err(ShapeError::Reshape { from: inputs[0].clone(), to: output });
        }
        Ok(vec![output])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let shape = backward.input_type(0).shape;
        Ok(vec![Some(backward.apply("grad", ReshapeOp { shape }, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        lowering.lay_out(node.inputs[0]);
        lowering.lay_out_as(node.outputs[0], lowering.layout_number(node.inputs[0]));
        Ok(LoweredOperation::default())
    }

    fn unwinding(&self, _: &[TensorInfo], _: usize) -> Unwinding {
        Unwinding::InOrder
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::View(0)
    }
}
