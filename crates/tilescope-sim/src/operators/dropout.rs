//! Dropout: random elements become zero, and the others are scaled up.
//!
//! The gradient draws the same random numbers again from the same seed, as in PopART (popart
//! willow/src/popx/op/dropoutx.cpp), so only the seed is kept for it.

use super::{GradientBuilder, GraphError, Pointwise};
use crate::poplar::work::WorkPhase;
use crate::popops::elementwise;
use crate::shape::{DType, TensorId};
use tilescope_report::units::{Elements, TileRuns};

/// Dropout of any share of the elements, which has no effect on the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DropoutOp;

impl Pointwise for DropoutOp {
    const IN_PLACE: bool = false;

    fn name(&self) -> &'static str {
        "dropout"
    }

    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError> {
        backward.apply("grad", *self, &[dy]).map(Some)
    }

    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        let vertex = format!("poprand::DropoutSupervisor<{}>", dtype.poplar_name());
        elementwise::phase("Dropout", vertex, 2, elements, |count| {
            elementwise::cycles::dropout(dtype, *count)
        })
    }
}
