//! Product with a constant: the scale of attention scores, loss scaling, means.

use super::{
    ConstantValue, GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError,
    NodeOperands, Operator, OutputAlias, RowWindow, ShapeError, infer_elementwise,
};
use crate::popops::elementwise;
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{TensorId, TensorInfo};
use std::hash::{Hash, Hasher};

/// `x` times a constant, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScaleOp(pub f64);

impl PartialEq for ScaleOp {
    fn eq(&self, other: &Self) -> bool {
        ConstantValue(self.0) == ConstantValue(other.0)
    }
}

impl Eq for ScaleOp {}

impl Hash for ScaleOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        ConstantValue(self.0).hash(state);
    }
}

impl Operator for ScaleOp {
    fn kind(&self) -> &'static str {
        "scale"
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
        let gradient = backward.gradient()?;
        Ok(vec![Some(backward.apply("grad", *self, &[gradient])?)])
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
            elementwise::scalar_in_place("Op/Mul", BinaryOpType::Multiply, dtype, elements)
        }))
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}
