//! Negative log-likelihood of class labels under given log-probabilities.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popnn::push_nll_loss;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::shape::TensorInfo;

/// The mean negative log-probability of the labels. Operands: log-probabilities `[batch, classes]`
/// and labels `[batch]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NllOp;

impl Operator for NllOp {
    fn kind(&self) -> &'static str {
        "nll"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        check_labels(inputs)?;
        Ok(vec![TensorInfo::new([1], inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[0].elements().0
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let labels = backward.node.inputs[1];
        let operator = NllGradOp { ty: backward.input_type(0) };
        Ok(vec![Some(backward.apply("grad", operator, &[labels])?), None])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let mut work = OperationWork::default();
        let [values, labels] = [0, 1].map(|input| lowering.layout_or_linear(node.inputs[input]));
        let machine = lowering.machine;
        let loss = push_nll_loss(&mut work, &machine, &ty, &values, &labels, true)
            .map_err(|error| node.error(error))?;
        lowering.set_layout(node.outputs[0], loss);
        Ok(work.into())
    }
}

/// The gradient `- one_hot(labels) / batch`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct NllGradOp {
    ty: TensorInfo,
}

impl Operator for NllGradOp {
    fn kind(&self) -> &'static str {
        "nll_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![self.ty.clone()])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        outputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let dtype = self.ty.dtype;
        let layout = lowering.layout_or_linear(node.outputs[0]);
        let mut work = OperationWork::default();
        lowering.encode_labels(&mut work, &self.ty, &layout, "NllLossGrad/OneHot");
        work.push(elementwise::in_place(
            "NllLossGrad/Scale",
            ElementwiseOp::Scalar(BinaryOpType::Multiply),
            dtype,
            &layout.elements,
        ));
        Ok(work.into())
    }
}

/// Checks values `[batch, classes]` and labels `[batch]`.
pub(crate) fn check_labels(inputs: &[TensorInfo]) -> Result<(), ShapeError> {
    expect_operands(inputs, 2)?;
    let values = &inputs[0];
    let labels = &inputs[1];
    if values.shape.len() != 2 || labels.shape != values.shape[..1] {
        return Err(ShapeError::Operands {
            expected: "values [batch, classes] and labels [batch]",
            found: vec![values.clone(), labels.clone()],
        });
    }
    Ok(())
}
