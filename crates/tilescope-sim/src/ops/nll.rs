//! Negative log-likelihood of class labels under given log-probabilities.

use super::parts;
use super::{Operator, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise::{self, Binary};
use crate::lower::{LowerError, Lowering, work::Work};

/// Mean negative log-probability of the labels. Operands: log-probabilities `[batch, classes]`
/// and labels `[batch]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NegativeLogLikelihood;

impl Operator for NegativeLogLikelihood {
    fn kind(&self) -> &'static str {
        "nll"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        parts::check_labels(inputs)?;
        Ok(vec![TensorType::new([1], inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let labels = backward.node.inputs[1];
        let operator = NllGradient { ty: backward.input_type(0) };
        Ok(vec![Some(backward.apply("grad", operator, &[labels])?), None])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let ty = lowering.ty(node.inputs[0]).clone();
        let mut work = Work::default();
        let loss = parts::pick(&mut work, lowering, node, &ty, true)?;
        lowering.lay_out(node.outputs[0], loss);
        Ok(work)
    }
}

/// `- one_hot(labels) / batch`
#[derive(Clone, Debug)]
struct NllGradient {
    ty: TensorType,
}

impl Operator for NllGradient {
    fn kind(&self) -> &'static str {
        "nll_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 1)?;
        Ok(vec![self.ty.clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let (dtype, classes) = (self.ty.dtype, self.ty.shape[1]);
        let layout = lowering.layout_or_linear(node.outputs[0]);
        let mut work = Work::default();
        work.push(parts::one_hot("NllLossGrad/OneHot", dtype, classes, &layout.elements));
        work.push(elementwise::scalar_in_place(
            "NllLossGrad/Scale",
            Binary::Multiply,
            dtype,
            &layout.elements,
        ));
        Ok(work)
    }
}
