//! Operations with a constant: a sum, a comparison, a power. Products are [`super::ScaleOp`].

use super::{BinaryOp, ConstantValue, GradientBuilder, GraphError, Pointwise, ScaleOp, UnaryOp};
use crate::poplar::work::WorkPhase;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp, UnaryOpType};
use crate::shape::{DType, TensorId};
use tilescope_report::units::{Elements, TileRuns};

/// An operation of `x` and a constant: `x + c`, `x < c`, `x^c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScalarOp {
    operation: BinaryOpType,
    value: ConstantValue,
}

impl ScalarOp {
    pub(crate) fn new(operation: BinaryOpType, value: f64) -> Self {
        Self { operation, value: ConstantValue(value) }
    }

    /// Makes the sum `x + c`.
    pub fn add(value: f64) -> Self {
        Self::new(BinaryOpType::Add, value)
    }

    /// Makes the power `x^c`.
    pub fn power(exponent: f64) -> Self {
        Self::new(BinaryOpType::Power, exponent)
    }
}

impl Pointwise for ScalarOp {
    fn name(&self) -> &'static str {
        self.operation.kind()
    }

    fn result_type(&self, operand: DType) -> DType {
        if self.operation.is_predicate() { DType::Bool } else { operand }
    }

    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError> {
        let x = backward.node.inputs[0];
        let ConstantValue(value) = self.value;
        let dx = match self.operation {
            BinaryOpType::Add | BinaryOpType::Subtract | BinaryOpType::Remainder => dy,
            BinaryOpType::Multiply => backward.apply("grad", ScaleOp::by(value), &[dy])?,
            BinaryOpType::Divide => backward.apply("grad", *self, &[dy])?,
            BinaryOpType::Power => {
                let power = backward.apply("grad/power", Self::power(value - 1.0), &[x])?;
                let slope = backward.apply("grad/slope", ScaleOp::by(value), &[power])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            BinaryOpType::Atan2 => {
                // `c / (x^2 + c^2)`
                let square = UnaryOp(UnaryOpType::Square);
                let square = backward.apply("grad/square", square, &[x])?;
                let sum = backward.apply("grad/sum", Self::add(value * value), &[square])?;
                let ratio = backward.apply("grad/ratio", BinaryOp::DIVIDE, &[dy, sum])?;
                backward.apply("grad", ScaleOp::by(value), &[ratio])?
            }
            BinaryOpType::Maximum | BinaryOpType::Minimum => {
                let chosen = if self.operation == BinaryOpType::Maximum {
                    BinaryOpType::GreaterThanEqual
                } else {
                    BinaryOpType::LessThanEqual
                };
                let mask =
                    backward.apply("grad/mask", Self { operation: chosen, ..*self }, &[x])?;
                backward.apply_mask("grad", dy, mask)?
            }
            _ => return Err(backward.no_gradient_error(self.name())),
        };
        Ok(Some(dx))
    }

    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        let ScalarOp { operation, .. } = *self;
        let phase =
            if operation.is_predicate() { elementwise::apart } else { elementwise::in_place };
        let name = format!("Op/{}", operation.title());
        phase(&name, ElementwiseOp::Scalar(operation), dtype, elements)
    }
}
