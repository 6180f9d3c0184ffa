//! A change of element type.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, RowWindow, ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::shape::{DType, TensorId, TensorInfo};

/// The operand in another element type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CastOp {
    pub to: DType,
}

impl Operator for CastOp {
    fn kind(&self) -> &'static str {
        "cast"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![TensorInfo::new(inputs[0].shape.clone(), self.to)])
    }

    fn flops(&self, _: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let to = backward.input_type(0).dtype;
        // Truth values and whole numbers are steps: no small change of what they were made of
        // changes them.
        if !to.is_float() {
            return Ok(vec![None]);
        }
        Ok(vec![Some(backward.apply("grad", Self { to }, &[gradient])?)])
    }

    fn is_cast(&self) -> bool {
        true
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        Some(RowWindow::POINTWISE)
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let from = lowering.tensor_type(node.inputs[0]).dtype;
        // What is cast for a planned operation lies as that wants it.
        if let (None, Some(planned)) =
            (lowering.layout(node.inputs[0]), lowering.layout(node.outputs[0]))
        {
            let planned = planned.clone();
            lowering.set_layout(node.inputs[0], planned);
        }
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = OperationWork::default();
        work.push(elementwise::cast("Cast", from, self.to, &layout.elements));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}
