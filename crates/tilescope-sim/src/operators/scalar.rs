//! Operations with a constant: a sum, a comparison, a power. Products are [`super::ScaleOp`].

use super::{
    BinaryOp, ConstantValue, GradientBuilder, GraphError, LoweredOperation, LoweringContext,
    LoweringError, NodeOperands, Operator, OutputAlias, RowWindow, ScaleOp, ShapeError, UnaryOp,
    infer_elementwise,
};
use crate::popops::elementwise;
use crate::popops::elementwise::{BinaryOpType, UnaryOpType};
use crate::shape::{DType, TensorId, TensorInfo};

/// `x` and a constant as its partner: `x + c`, `x < c`, `x^c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScalarOp {
    operation: BinaryOpType,
    value: ConstantValue,
}

impl ScalarOp {
    pub(crate) fn new(operation: BinaryOpType, value: f64) -> Self {
        Self { operation, value: ConstantValue(value) }
    }

    /// x + c
    pub fn add(value: f64) -> Self {
        Self::new(BinaryOpType::Add, value)
    }

    /// x^c
    pub fn power(exponent: f64) -> Self {
        Self::new(BinaryOpType::Power, exponent)
    }
}

impl Operator for ScalarOp {
    fn kind(&self) -> &'static str {
        self.operation.kind()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let types = infer_elementwise(inputs)?;
        if !self.operation.is_predicate() {
            return Ok(types);
        }
        Ok(types.into_iter().map(|ty| TensorInfo::new(ty.shape, DType::Bool)).collect())
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let dy = backward.gradient()?;
        let x = backward.node.inputs[0];
        let ConstantValue(value) = self.value;
        let dx = match self.operation {
            BinaryOpType::Add | BinaryOpType::Subtract | BinaryOpType::Remainder => dy,
            BinaryOpType::Multiply => backward.apply("grad", ScaleOp(value), &[dy])?,
            BinaryOpType::Divide => backward.apply("grad", *self, &[dy])?,
            BinaryOpType::Power => {
                let power = backward.apply("grad/power", Self::power(value - 1.0), &[x])?;
                let slope = backward.apply("grad/slope", ScaleOp(value), &[power])?;
                backward.apply("grad", BinaryOp::MULTIPLY, &[slope, dy])?
            }
            BinaryOpType::Atan2 => {
                // c / (x^2 + c^2)
                let square = UnaryOp(UnaryOpType::Square);
                let square = backward.apply("grad/square", square, &[x])?;
                let sum = backward.apply("grad/sum", Self::add(value * value), &[square])?;
                let ratio = backward.apply("grad/ratio", BinaryOp::DIVIDE, &[dy, sum])?;
                backward.apply("grad", ScaleOp(value), &[ratio])?
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
        let phase = if self.operation.is_predicate() {
            elementwise::scalar
        } else {
            elementwise::scalar_in_place
        };
        let name = format!("Op/{}", self.operation.title());
        Ok(lowering.lower_elementwise(node, |dtype, elements| {
            phase(&name, self.operation, dtype, elements)
        }))
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}
