//! Element-wise functions of one operand: one operator for all of popops' unary vertices.

use super::{
    BinaryOp, GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError,
    NodeOperands, Operator, OutputAlias, RowWindow, ScaleOp, ShapeError, infer_elementwise,
};
use crate::popops::elementwise;
use crate::popops::elementwise::UnaryOpType;
use crate::shape::{TensorId, TensorInfo};

/// A function of every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnaryOp(pub UnaryOpType);

impl Operator for UnaryOp {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        infer_elementwise(inputs)
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let dy = backward.gradient()?;
        let (x, y) = (backward.node.inputs[0], backward.node.outputs[0]);
        let mut apply = |part: &str, operation: BinaryOp, operands: [TensorId; 2]| {
            backward.apply(part, operation, &operands)
        };
        let dx = match self.0 {
            UnaryOpType::Exp => apply("grad", BinaryOp::MULTIPLY, [dy, y])?,
            UnaryOpType::Log => apply("grad", BinaryOp::DIVIDE, [dy, x])?,
            UnaryOpType::Negate => backward.apply("grad", *self, &[dy])?,
            UnaryOpType::Square => {
                let product = apply("grad/product", BinaryOp::MULTIPLY, [dy, x])?;
                backward.apply("grad", ScaleOp(2.0), &[product])?
            }
            UnaryOpType::Sqrt => {
                let ratio = apply("grad/ratio", BinaryOp::DIVIDE, [dy, y])?;
                backward.apply("grad", ScaleOp(0.5), &[ratio])?
            }
            UnaryOpType::Inverse => {
                let square = backward.apply("grad/square", Self(UnaryOpType::Square), &[y])?;
                let product = backward.apply("grad/product", BinaryOp::MULTIPLY, &[square, dy])?;
                backward.apply("grad", Self(UnaryOpType::Negate), &[product])?
            }
            UnaryOpType::Sin => {
                let slope = backward.apply("grad/slope", Self(UnaryOpType::Cos), &[x])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            UnaryOpType::Cos => {
                let slope = backward.apply("grad/slope", Self(UnaryOpType::Sin), &[x])?;
                let product = backward.apply("grad/product", BinaryOp::MULTIPLY, &[slope, dy])?;
                backward.apply("grad", Self(UnaryOpType::Negate), &[product])?
            }
            _ => return Err(backward.no_gradient_error(self.kind())),
        };
        Ok(vec![Some(dx)])
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        Some(RowWindow::POINTWISE)
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        Ok(lowering.lower_elementwise(node, |dtype, elements| {
            elementwise::unary_in_place("Op", self.0, dtype, elements)
        }))
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}
