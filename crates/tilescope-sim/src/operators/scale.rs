//! Product with a constant: the scale of attention scores, loss scaling, means.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, OutputAlias, ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{TensorId, TensorInfo};
use std::hash::{Hash, Hasher};

/// `x` times a constant, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScaleOp(pub f64);

impl PartialEq for ScaleOp {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_bits() == other.0.to_bits()
    }
}

impl Eq for ScaleOp {}

impl Hash for ScaleOp {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

impl Operator for ScaleOp {
    fn kind(&self) -> &'static str {
        "scale"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements()
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        Ok(vec![Some(backward.apply("grad", *self, &[gradient])?)])
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let dtype = lowering.tensor_type(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = OperationWork::default();
        let elements = &layout.elements;
        work.push(elementwise::scalar_in_place("Op/Mul", BinaryOpType::Multiply, dtype, elements));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}
