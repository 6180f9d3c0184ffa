//! Element-wise functions of one operand: one operator for all of popops' unary vertices.

use super::{ActivationOp, BinaryOp, GradientBuilder, GraphError, Pointwise, ScalarOp, ScaleOp};
use crate::poplar::work::WorkPhase;
use crate::popops::elementwise::{self, ElementwiseOp, UnaryOpType};
use crate::shape::{DType, TensorId};
use tilescope_report::units::{Elements, TileRuns};

/// A function of every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnaryOp(pub UnaryOpType);

impl Pointwise for UnaryOp {
    fn name(&self) -> &'static str {
        self.0.kind()
    }

    fn result_type(&self, operand: DType) -> DType {
        if self.0.is_predicate() { DType::Bool } else { operand }
    }

    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError> {
        let x = backward.node.inputs[0];
        let y = backward.node.outputs[0];
        let mut apply = |part: &str, operation: BinaryOp, operands: [TensorId; 2]| {
            backward.apply(part, operation, &operands)
        };
        Ok(Some(match self.0 {
            UnaryOpType::Exp => apply("grad", BinaryOp::MULTIPLY, [dy, y])?,
            UnaryOpType::Log => apply("grad", BinaryOp::DIVIDE, [dy, x])?,
            UnaryOpType::Negate => backward.apply("grad", *self, &[dy])?,
            UnaryOpType::Square => {
                let product = apply("grad/product", BinaryOp::MULTIPLY, [dy, x])?;
                backward.apply("grad", ScaleOp::by(2.0), &[product])?
            }
            UnaryOpType::Sqrt => {
                let ratio = apply("grad/ratio", BinaryOp::DIVIDE, [dy, y])?;
                backward.apply("grad", ScaleOp::by(0.5), &[ratio])?
            }
            UnaryOpType::Rsqrt => {
                // `-y^3 / 2 = -y / (2 x)`
                let ratio = apply("grad/ratio", BinaryOp::DIVIDE, [y, x])?;
                let slope = backward.apply("grad/slope", ScaleOp::by(-0.5), &[ratio])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
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
            UnaryOpType::Tan => {
                // `1 + tan^2 x`
                let square = backward.apply("grad/square", Self(UnaryOpType::Square), &[y])?;
                let slope = backward.apply("grad/slope", ScalarOp::add(1.0), &[square])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            UnaryOpType::Asin => {
                // `1 / sqrt(1 - x^2)`
                let square = backward.apply("grad/square", Self(UnaryOpType::Square), &[x])?;
                let negated =
                    backward.apply("grad/negate", Self(UnaryOpType::Negate), &[square])?;
                let rest = backward.apply("grad/rest", ScalarOp::add(1.0), &[negated])?;
                let slope = backward.apply("grad/slope", Self(UnaryOpType::Rsqrt), &[rest])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            UnaryOpType::Erf => {
                // `2 / sqrt(pi) e^(-x^2)`
                let square = backward.apply("grad/square", Self(UnaryOpType::Square), &[x])?;
                let negated =
                    backward.apply("grad/negate", Self(UnaryOpType::Negate), &[square])?;
                let bell = backward.apply("grad/exp", Self(UnaryOpType::Exp), &[negated])?;
                let height = ScaleOp::by(std::f64::consts::FRAC_2_SQRT_PI);
                let slope = backward.apply("grad/slope", height, &[bell])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            UnaryOpType::ExpMinusOne => {
                let slope = backward.apply("grad/slope", ScalarOp::add(1.0), &[y])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            UnaryOpType::LogOnePlus => {
                let sum = backward.apply("grad/sum", ScalarOp::add(1.0), &[x])?;
                backward.apply("grad", BinaryOp::DIVIDE, &[dy, sum])?
            }
            UnaryOpType::Absolute => {
                let sign = backward.apply("grad/sign", Self(UnaryOpType::Signum), &[x])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[sign, dy])?
            }
            UnaryOpType::Relu => ActivationOp::RELU.gradient_of(backward, [x, y], dy)?,
            UnaryOpType::Sigmoid => ActivationOp::SIGMOID.gradient_of(backward, [x, y], dy)?,
            UnaryOpType::Tanh => ActivationOp::TANH.gradient_of(backward, [x, y], dy)?,
            UnaryOpType::GeluErf => ActivationOp::GELU_ERF.gradient_of(backward, [x, y], dy)?,
            UnaryOpType::Ceil | UnaryOpType::Floor | UnaryOpType::Round | UnaryOpType::Signum => {
                return Ok(None);
            }
            UnaryOpType::IsFinite
            | UnaryOpType::IsInf
            | UnaryOpType::IsNan
            | UnaryOpType::LogicalNot => return Err(backward.no_gradient_error(self.name())),
        }))
    }

    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        let phase = if self.0.is_predicate() { elementwise::apart } else { elementwise::in_place };
        phase("Op", ElementwiseOp::Unary(self.0), dtype, elements)
    }
}
