//! Product with a constant: the scale of attention scores, loss scaling, means.

use super::{
    Backward, GraphError, LowerError, Lowered, Lowering, NodeOperands, Operator, Reuse,
    expect_operands,
};
use crate::poplar::work::Work;
use crate::popops::elementwise;
use crate::popops::elementwise::Binary;
use crate::shape::{TensorId, TensorType};
use std::hash::{Hash, Hasher};

/// `x` times a constant, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale(pub f64);

impl PartialEq for Scale {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for Scale {}

impl Hash for Scale {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Operator for Scale {
    fn kind(&self) -> &'static str {
        "scale"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
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

    fn lower(&self, lowering: &mut Lowering, node: &NodeOperands) -> Result<Lowered, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        let elements = &layout.elements;
        work.push(elementwise::scalar_in_place("Op/Mul", Binary::Multiply, dtype, elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work.into())
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}
