//! Values limited to a range (ONNX Clip, popops Clamp).

use super::{BinaryOp, ConstantValue, GradientBuilder, GraphError, Pointwise, ScalarOp};
use crate::poplar::work::WorkPhase;
use crate::popops::elementwise::{self, BinaryOpType};
use crate::shape::{DType, TensorId};
use tilescope_report::units::{Elements, TileRuns};

/// The nearest value that is at least `low` and at most `high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClampOp {
    low: ConstantValue,
    high: ConstantValue,
}

impl ClampOp {
    /// Makes a clamp to these bounds.
    pub fn new(low: f64, high: f64) -> Self {
        Self { low: ConstantValue(low), high: ConstantValue(high) }
    }
}

impl Pointwise for ClampOp {
    const FLOPS_PER_ELEMENT: u64 = 2;

    fn name(&self) -> &'static str {
        "clip"
    }

    /// The gradient of the elements that are at neither bound (popart
    /// willow/src/popx/op/clipx.cpp).
    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError> {
        let y = backward.node.outputs[0];
        let above = ScalarOp::new(BinaryOpType::NotEqual, self.low.0);
        let above = backward.apply("grad/above", above, &[y])?;
        let below = ScalarOp::new(BinaryOpType::NotEqual, self.high.0);
        let below = backward.apply("grad/below", below, &[y])?;
        let between = BinaryOp(BinaryOpType::LogicalAnd);
        let mask = backward.apply("grad/mask", between, &[above, below])?;
        backward.apply_mask("grad", dy, mask).map(Some)
    }

    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        elementwise::clamp_in_place("Op/Clamp", dtype, elements)
    }
}
