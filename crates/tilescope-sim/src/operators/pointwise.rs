//! Functions of every element of one operand. Each defines its vertex, its FLOPs and its gradient.
//! The remaining methods of such operators are here.

use super::{
    GradientBuilder, GradientResult, GraphError, LoweringContext, LoweringResult, NodeOperands,
    Operator, OperatorIdentity, OutputAlias, RowWindow, ShapeError, Unwinding, expect_operands,
};
use crate::poplar::work::{OperationWork, WorkPhase};
use crate::shape::{DType, TensorId, TensorInfo};
use std::fmt::Debug;
use tilescope_report::units::{Elements, TileRuns};

/// A function of every element of one operand.
pub trait Pointwise: Debug + OperatorIdentity + Send + Sync {
    /// Floating point operations of an element.
    const FLOPS_PER_ELEMENT: u64 = 1;
    /// True if the result may overwrite the operand.
    const IN_PLACE: bool = true;

    /// The name of the operator, such as `scale`.
    fn name(&self) -> &'static str;

    /// The element type of the result.
    fn result_type(&self, operand: DType) -> DType {
        operand
    }

    /// Adds the gradient of the operand from that of the result. Returns `None` if the function is
    /// piecewise constant.
    fn input_gradient(
        &self,
        backward: &mut GradientBuilder,
        dy: TensorId,
    ) -> Result<Option<TensorId>, GraphError>;

    /// The phase that computes the function in the layout of the elements.
    fn phase(&self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase;
}

impl<T: Pointwise> Operator for T {
    fn kind(&self) -> &'static str {
        self.name()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let dtype = self.result_type(inputs[0].dtype);
        Ok(vec![TensorInfo::new(inputs[0].shape.clone(), dtype)])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        T::FLOPS_PER_ELEMENT * outputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let dy = backward.gradient()?;
        Ok(vec![self.input_gradient(backward, dy)?])
    }

    fn unwinding(&self, _: &[TensorInfo], _: usize) -> Unwinding {
        Unwinding::InOrder
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        Some(RowWindow::POINTWISE)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let [x, y] = [node.inputs[0], node.outputs[0]];
        let layout = lowering.layout_or_linear(x);
        let mut work = OperationWork::default();
        work.push(self.phase(lowering.tensor_type(x).dtype, &layout.elements));
        lowering.set_layout(y, layout);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        if T::IN_PLACE { OutputAlias::InPlace(0) } else { OutputAlias::NoAlias }
    }
}
