//! Product with a constant: the scale of attention scores, loss scaling, means.

use super::{Operator, OutputAlias, expect_operands};
use crate::graph::{GradientBuilder, GraphError, GraphNode, TensorId, TensorInfo};
use crate::lower::elementwise::{self, BinaryOpType};
use crate::lower::{LoweringContext, LoweringError, work::OperationWork};

/// `x` times a constant, in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScaleOp(
    #[expect(dead_code, reason = "tells scales apart that share no code")] pub f64,
);

impl Operator for ScaleOp {
    fn kind(&self) -> &'static str {
        "scale"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, String> {
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
        node: &GraphNode,
    ) -> Result<OperationWork, LoweringError> {
        let dtype = lowering.tensor_type(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = OperationWork::default();
        let elements = &layout.elements;
        work.push(elementwise::scalar_in_place("Op/Mul", BinaryOpType::Multiply, dtype, elements));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work)
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}
