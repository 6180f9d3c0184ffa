//! Dropout: random elements become zero, the others grow.
//!
//! The gradient draws the same random numbers again from the same seed, as PopART does (popart
//! willow/src/popx/op/dropoutx.cpp), so nothing is kept for it but the seed.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, RowWindow, ShapeError, infer_elementwise,
};
use crate::popops::elementwise;
use crate::shape::{TensorId, TensorInfo};

/// Dropout of any share of the elements: the share changes nothing about the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DropoutOp;

impl Operator for DropoutOp {
    fn kind(&self) -> &'static str {
        "dropout"
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
            let vertex = format!("poprand::DropoutSupervisor<{}>", dtype.poplar_name());
            elementwise::phase("Dropout", vertex, 2, elements, |count| {
                elementwise::cycles::dropout(dtype, *count)
            })
        }))
    }
}
