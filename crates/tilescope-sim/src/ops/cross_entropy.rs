//! Softmax cross-entropy of logits against class labels.
//!
//! Lowered as popnn and PopART do (poplibs lib/popnn/NonLinearity.cpp): maximum, difference,
//! exponential, sum, inverse, product; then the picked probabilities, their logarithm and its sum.

use super::parts::{self, Rows};
use super::{Operator, ShapeError};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise::{self, Binary};
use crate::lower::{LowerError, Lowering, work::Work};

/// Mean negative log-likelihood of the labels under the softmax of the logits.
#[derive(Clone, Copy, Debug)]
pub struct CrossEntropy;

impl Operator for CrossEntropy {
    fn kind(&self) -> &'static str {
        "cross_entropy"
    }

    /// Outputs: the loss, and the probabilities that the gradient needs.
    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        parts::check_labels(inputs)?;
        Ok(vec![TensorType::new([1], inputs[0].dtype), inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        6 * inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let (probabilities, labels) = (backward.node.outputs[1], backward.node.inputs[1]);
        let gradient = backward.apply("grad", CrossEntropyGradient, &[probabilities, labels])?;
        Ok(vec![Some(gradient), None])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let logits = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let rows = Rows::new(&logits, layout.clone(), &[1]);
        let mut work = Work::default();
        parts::softmax(&mut work, lowering, node, &rows, false)?;
        lowering.lay_out(node.outputs[1], layout);
        let loss = parts::pick(&mut work, lowering, node, &logits, false)?;
        lowering.lay_out(node.outputs[0], loss);
        Ok(work)
    }
}

/// `probabilities - one_hot(labels)`
#[derive(Clone, Copy, Debug)]
struct CrossEntropyGradient;

impl Operator for CrossEntropyGradient {
    fn kind(&self) -> &'static str {
        "cross_entropy_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        parts::check_labels(inputs)?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        2 * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let ty = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        let name = "NllLossGrad/OneHot";
        work.push(parts::one_hot(name, ty.dtype, ty.shape[1], &layout.elements));
        work.push(elementwise::binary_in_place(
            "NllLossGrad/Sub",
            Binary::Subtract,
            ty.dtype,
            &layout.elements,
        ));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
