//! Dropout: random elements become zero, the others grow.
//!
//! The gradient draws the same random numbers again from the same seed, as PopART does (popart
//! willow/src/popx/op/dropoutx.cpp), so nothing is kept for it but the seed.

use super::{Operator, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise;
use crate::lower::{LowerError, Lowering, work::Work};

/// Dropout of any share of the elements: the share changes nothing about the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dropout;

impl Operator for Dropout {
    fn kind(&self) -> &'static str {
        "dropout"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        Ok(vec![Some(backward.apply("grad", *self, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let vertex = format!("poprand::DropoutSupervisor<{}>", dtype.poplar_name());
        let mut work = Work::default();
        work.push(elementwise::phase("Dropout", vertex, 2, &layout.elements, |count| {
            elementwise::cycles::dropout(dtype, *count)
        }));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
