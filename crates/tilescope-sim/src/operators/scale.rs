//! The product with a constant: the scale of attention scores, loss scaling, means.

use super::{ConstantValue, GradientBuilder, GraphError, Pointwise};
use crate::poplar::work::WorkPhase;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::shape::{DType, TensorId};
use tilescope_report::units::{Elements, TileRuns};

/// `x` times a constant, in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ScaleOp(ConstantValue);

impl ScaleOp {
    /// Makes a product with `factor`.
    pub(crate) fn by(factor: f64) -> Self {
        Self(ConstantValue(factor))
    }
}

impl Pointwise for ScaleOp {
    fn name(&self) -> &'static str {
        "scale"
    }

    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError> {
        backward.apply("grad", *self, &[dy]).map(Some)
    }

    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        elementwise::in_place(
            "Op/Mul",
            ElementwiseOp::Scalar(BinaryOpType::Multiply),
            dtype,
            elements,
        )
    }
}
