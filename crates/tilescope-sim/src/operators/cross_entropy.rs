//! Softmax cross-entropy of logits against class labels.
//!
//! The lowering follows popnn and PopART (poplibs lib/popnn/NonLinearity.cpp): maximum, difference,
//! exponential, sum, inverse, product; then the picked probabilities, their logarithm and its sum.

use super::nll::check_labels;
use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError,
};
use crate::poplar::work::OperationWork;
use crate::popnn::{push_nll_loss, softmax};
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::popops::rows::TensorRows;
use crate::shape::TensorInfo;

/// The mean negative log-likelihood of the labels under the softmax of the logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CrossEntropyOp;

impl Operator for CrossEntropyOp {
    fn kind(&self) -> &'static str {
        "cross_entropy"
    }

    /// Returns the types of the loss and of the probabilities that the gradient needs.
    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        check_labels(inputs)?;
        Ok(vec![TensorInfo::new([1], inputs[0].dtype), inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        6 * inputs[0].elements().0
    }

    fn is_loss(&self) -> bool {
        true
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let probabilities = backward.node.outputs[1];
        let labels = backward.node.inputs[1];
        let gradient = backward.apply("grad", CrossEntropyGradOp, &[probabilities, labels])?;
        Ok(vec![Some(gradient), None])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let logits = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let rows = TensorRows::new(&logits, layout.clone(), &[1]);
        let mut work = OperationWork::default();
        let machine = lowering.machine;
        softmax(&mut work, &machine, &rows, false).map_err(|error| node.error(error))?;
        lowering.set_layout(node.outputs[1], layout.clone());
        let labels = lowering.layout_or_linear(node.inputs[1]);
        let loss = push_nll_loss(&mut work, &machine, &logits, &layout, &labels, false)
            .map_err(|error| node.error(error))?;
        lowering.set_layout(node.outputs[0], loss);
        Ok(work.into())
    }
}

/// The gradient `probabilities - one_hot(labels)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CrossEntropyGradOp;

impl Operator for CrossEntropyGradOp {
    fn kind(&self) -> &'static str {
        "cross_entropy_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        check_labels(inputs)?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        2 * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = OperationWork::default();
        let name = "NllLossGrad/OneHot";
        lowering.encode_labels(&mut work, &ty, &layout, name);
        work.push(elementwise::in_place(
            "NllLossGrad/Sub",
            ElementwiseOp::Binary(BinaryOpType::Subtract),
            ty.dtype,
            &layout.elements,
        ));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}
