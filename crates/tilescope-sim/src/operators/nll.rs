//! Negative log-likelihood of class labels under given log-probabilities.

use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, expect_operands, parts,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::popops::elementwise::BinaryOpType;
use crate::shape::{TensorId, TensorInfo};

/// Mean negative log-probability of the labels. Operands: log-probabilities `[batch, classes]`
/// and labels `[batch]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NllOp;

impl Operator for NllOp {
    fn kind(&self) -> &'static str {
        "nll"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        parts::check_labels(inputs)?;
        Ok(vec![TensorInfo::new([1], inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[0].elements().0
    }

    fn differentiate(
        &self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<Option<TensorId>>, GraphError> {
        let labels = backward.node.inputs[1];
        let operator = NllGradOp { ty: backward.input_type(0) };
        Ok(vec![Some(backward.apply("grad", operator, &[labels])?), None])
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let mut work = OperationWork::default();
        let loss = parts::push_nll_loss(&mut work, lowering, node, &ty, true)?;
        lowering.set_layout(node.outputs[0], loss);
        Ok(work.into())
    }
}

/// `- one_hot(labels) / batch`
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

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let (dtype, classes) = (self.ty.dtype, self.ty.shape[1]);
        let layout = lowering.layout_or_linear(node.outputs[0]);
        let mut work = OperationWork::default();
        work.push(parts::one_hot("NllLossGrad/OneHot", dtype, classes, &layout.elements));
        work.push(elementwise::scalar_in_place(
            "NllLossGrad/Scale",
            BinaryOpType::Multiply,
            dtype,
            &layout.elements,
        ));
        Ok(work.into())
    }
}
