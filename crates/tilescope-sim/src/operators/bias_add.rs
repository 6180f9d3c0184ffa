//! The addition of one value per channel.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    OutputAlias, RowWindow, ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::BinaryOpType;
use crate::popops::reduce::ReduceOperation;
use crate::popops::rows::TensorRows;
use crate::shape::TensorInfo;

/// `x + bias`, where the bias has one value for each index along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddBiasOp {
    /// The axis of `x` that the bias has one value for.
    pub axis: usize,
}

impl AddBiasOp {
    /// The axes along which all elements get the same bias.
    fn others(self, ty: &TensorInfo) -> Vec<usize> {
        (0..ty.shape.len()).filter(|axis| *axis != self.axis).collect()
    }
}

impl Operator for AddBiasOp {
    fn kind(&self) -> &'static str {
        "bias_add"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        if inputs[0].shape.get(self.axis).copied() != inputs[1].shape.first().copied()
            || inputs[1].shape.len() != 1
        {
            return Err(ShapeError::Bias {
                bias: inputs[1].clone(),
                axis: self.axis,
                ty: inputs[0].clone(),
            });
        }
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let bias = backward.apply("grad", AddBiasBiasGradOp { axis: self.axis }, &[gradient])?;
        Ok(vec![Some(gradient), Some(bias)])
    }

    fn row_window(&self, _: &[TensorInfo]) -> Option<RowWindow> {
        // Rows of a field come after the channels.
        if self.axis != 1 {
            return None;
        }
        Some(RowWindow::POINTWISE)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let bias = lowering.layout_or_linear(node.inputs[1]);
        let mut work = OperationWork::default();
        let rows = TensorRows::new(&ty, layout.clone(), &self.others(&ty));
        rows.apply_broadcast(&lowering.machine, &mut work, "Op/Add", BinaryOpType::Add, &bias);
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }

    fn output_alias(&self) -> OutputAlias {
        OutputAlias::InPlace(0)
    }
}

/// The sum of a gradient over all axes but one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct AddBiasBiasGradOp {
    axis: usize,
}

impl Operator for AddBiasBiasGradOp {
    fn kind(&self) -> &'static str {
        "bias_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let channels = inputs[0].shape.get(self.axis).copied();
        let channels = channels
            .ok_or_else(|| ShapeError::NoAxis { ty: inputs[0].clone(), axis: self.axis })?;
        Ok(vec![TensorInfo::new([channels], inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let mut work = OperationWork::default();
        let rows = TensorRows::new(&ty, layout, &AddBiasOp { axis: self.axis }.others(&ty));
        let sums = rows
            .reduce(&lowering.machine, &mut work, "Reduce", ReduceOperation::Add, ty.dtype)
            .map_err(|error| node.error(error))?;
        lowering.set_layout(node.outputs[0], sums);
        Ok(work.into())
    }
}
