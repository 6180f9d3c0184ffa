//! Softmax and log-softmax over one axis (poplibs lib/popnn/NonLinearity.cpp).

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError, expect_operands, expect_same,
};
use crate::poplar::work::OperationWork;
use crate::popnn::{bring_rows, softmax};
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp, UnaryOpType};
use crate::popops::reduce::ReduceOperation;
use crate::popops::rows::TensorRows;
use crate::shape::{DType, TensorInfo};

/// Exponentials along an axis, divided by their sum, or the logarithm of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SoftmaxOp {
    pub axis: usize,
    /// True for the logarithm.
    pub log: bool,
}

impl Operator for SoftmaxOp {
    fn kind(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        if self.axis >= inputs[0].shape.len() {
            return Err(ShapeError::NoAxis { ty: inputs[0].clone(), axis: self.axis });
        }
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        5 * inputs[0].elements().0
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let operands = [backward.node.outputs[0], backward.gradient()?];
        Ok(vec![Some(backward.apply("grad", SoftmaxGradOp(*self), &operands)?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let found = lowering.layout_or_linear(node.inputs[0]);
        let mut work = OperationWork::default();
        let layout = bring_rows(&mut work, &lowering.machine, &ty, found, self.axis);
        let rows = TensorRows::new(&ty, layout.clone(), &[self.axis]);
        softmax(&mut work, &lowering.machine, &rows, self.log)
            .map_err(|error| node.error(error))?;
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}

/// The gradient from the output `y` and its gradient `dy`: `y (dy - sum(y dy))`, or
/// `dy - exp(y) sum(dy)` if `y` is a logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct SoftmaxGradOp(SoftmaxOp);

impl Operator for SoftmaxGradOp {
    fn kind(&self) -> &'static str {
        if self.0.log { "log_softmax_grad" } else { "softmax_grad" }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        expect_same(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        4 * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let dtype = ty.dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let name = |part: &str| format!("SoftMaxGrad/{part}");
        let mut work = lowering.relayout_tensor(node.inputs[1], &layout, "SoftMaxGrad");
        let rows = TensorRows::new(&ty, layout.clone(), &[self.0.axis]);
        let elements = &layout.elements;
        if self.0.log {
            work.push(elementwise::apart(
                &name("Exp"),
                ElementwiseOp::Unary(UnaryOpType::Exp),
                dtype,
                elements,
            ));
        } else {
            work.push(elementwise::apart(
                &name("Mul"),
                ElementwiseOp::Binary(BinaryOpType::Multiply),
                dtype,
                elements,
            ));
        }
        let sum_name = name("Reduce_sum");
        let machine = lowering.machine;
        let sums = rows
            .reduce(&machine, &mut work, &sum_name, ReduceOperation::Add, DType::Float)
            .map_err(|error| node.error(error))?;
        rows.apply_broadcast(&machine, &mut work, &name("MulSum"), BinaryOpType::Multiply, &sums);
        work.push(elementwise::in_place(
            &name("Sub"),
            ElementwiseOp::Binary(BinaryOpType::Subtract),
            dtype,
            elements,
        ));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}
