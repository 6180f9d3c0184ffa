//! A change of element type.

use super::{GradientBuilder, GraphError, Pointwise};
use crate::poplar::work::WorkPhase;
use crate::popops::elementwise;
use crate::shape::{DType, TensorId};
use tilescope_report::units::{Elements, TileRuns};

/// The operand in another element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CastOp {
    pub to: DType,
}

impl Pointwise for CastOp {
    const FLOPS_PER_ELEMENT: u64 = 0;
    const IN_PLACE: bool = false;

    fn name(&self) -> &'static str {
        "cast"
    }

    fn result_type(&self, _: DType) -> DType {
        self.to
    }

    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError> {
        let to = backward.input_type(0).dtype;
        // Truth values and integers are step functions of their operands, so their gradient is
        // zero.
        if !to.is_float() {
            return Ok(None);
        }
        backward.apply("grad", Self { to }, &[dy]).map(Some)
    }

    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        elementwise::cast("Cast", dtype, self.to, elements)
    }
}
