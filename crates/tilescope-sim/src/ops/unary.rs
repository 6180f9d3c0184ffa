//! Element-wise functions of one operand: one operator for all of popops' unary vertices.

use super::{BinaryOp, Operator, Reuse, Scale, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise::{self, Unary};
use crate::lower::{LowerError, Lowering, work::Work};

/// A function of every element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnaryOp(pub Unary);

impl Operator for UnaryOp {
    fn kind(&self) -> &'static str {
        self.0.kind()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let dy = backward.gradient()?;
        let (x, y) = (backward.node.inputs[0], backward.node.outputs[0]);
        let mut apply = |part: &str, operation: BinaryOp, operands: [TensorId; 2]| {
            backward.apply(part, operation, &operands)
        };
        let dx = match self.0 {
            Unary::Exp => apply("grad", BinaryOp::MULTIPLY, [dy, y])?,
            Unary::Log => apply("grad", BinaryOp::DIVIDE, [dy, x])?,
            Unary::Negate => backward.apply("grad", *self, &[dy])?,
            Unary::Square => {
                let product = apply("grad/product", BinaryOp::MULTIPLY, [dy, x])?;
                backward.apply("grad", Scale(2.0), &[product])?
            }
            Unary::Sqrt => {
                let ratio = apply("grad/ratio", BinaryOp::DIVIDE, [dy, y])?;
                backward.apply("grad", Scale(0.5), &[ratio])?
            }
            Unary::Inverse => {
                let square = backward.apply("grad/square", Self(Unary::Square), &[y])?;
                let product = backward.apply("grad/product", BinaryOp::MULTIPLY, &[square, dy])?;
                backward.apply("grad", Self(Unary::Negate), &[product])?
            }
            Unary::Sin => {
                let slope = backward.apply("grad/slope", Self(Unary::Cos), &[x])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            Unary::Cos => {
                let slope = backward.apply("grad/slope", Self(Unary::Sin), &[x])?;
                let product = backward.apply("grad/product", BinaryOp::MULTIPLY, &[slope, dy])?;
                backward.apply("grad", Self(Unary::Negate), &[product])?
            }
            _ => return Err(backward.no_gradient()),
        };
        Ok(vec![Some(dx)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        work.push(elementwise::unary_in_place("Op", self.0, dtype, &layout.elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}
