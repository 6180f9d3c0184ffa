//! Product with a constant: the scale of attention scores, loss scaling, means.

use super::{Operator, Reuse, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise::{self, Binary};
use crate::lower::{LowerError, Lowering, work::Work};

/// `x` times a constant, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale(
    #[expect(dead_code, reason = "tells scales apart that share no code")] pub f64,
);

impl Operator for Scale {
    fn kind(&self) -> &'static str {
        "scale"
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
        let mut work = Work::default();
        let elements = &layout.elements;
        work.push(elementwise::scalar_in_place("Op/Mul", Binary::Multiply, dtype, elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}
