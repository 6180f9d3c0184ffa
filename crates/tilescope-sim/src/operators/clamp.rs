//! Values kept between two bounds (ONNX Clip, popops Clamp).

use super::{
    BinaryOp, ConstantValue, GradientBuilder, GraphError, LoweredOperation, LoweringContext,
    LoweringError, NodeOperands, Operator, OutputAlias, RowWindow, ScalarOp, ShapeError,
    infer_elementwise,
};
use crate::popops::elementwise;
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{TensorId, TensorInfo};

/// The nearest value that is no less than `low` and no more than `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClampOp {
    low: ConstantValue,
    high: ConstantValue,
}

impl ClampOp {
    /// Between these bounds.
    pub fn new(low: f64, high: f64) -> Self {
        Self { low: ConstantValue(low), high: ConstantValue(high) }
    }
}

impl Operator for ClampOp {
    fn kind(&self) -> &'static str {
        "clip"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        infer_elementwise(inputs)
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        2 * outputs[0].elements().0
    }

    /// The gradient of the elements that are at neither bound (popart willow/src/popx/op/clipx.cpp).
    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let dy = backward.gradient()?;
        let y = backward.node.outputs[0];
        let apart = |value| ScalarOp::new(BinaryOpType::NotEqual, value);
        let above = backward.apply("grad/above", apart(self.low.0), &[y])?;
        let below = backward.apply("grad/below", apart(self.high.0), &[y])?;
        let between = BinaryOp(BinaryOpType::LogicalAnd);
        let mask = backward.apply("grad/mask", between, &[above, below])?;
        Ok(vec![Some(backward.apply_mask("grad", dy, mask)?)])
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
            elementwise::clamp_in_place("Op/Clamp", dtype, elements)
        }))
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}
