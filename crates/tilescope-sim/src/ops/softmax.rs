//! Softmax and log-softmax over one axis (poplibs lib/popnn/NonLinearity.cpp).

use super::parts::{self, Rows};
use super::{Operator, expect_operands, expect_same};
use crate::graph::{Backward, DType, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise::{self, Binary, Unary};
use crate::lower::reduce::Operation;
use crate::lower::{LowerError, Lowering, work::Work};

/// Exponentials along an axis, divided by their sum; or the logarithm of that.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Softmax {
    pub axis: usize,
    /// Whether the logarithm is taken.
    pub log: bool,
}

impl Operator for Softmax {
    fn kind(&self) -> &'static str {
        if self.log { "log_softmax" } else { "softmax" }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        if self.axis >= inputs[0].shape.len() {
            return Err(format!("{} has no axis {}", inputs[0], self.axis));
        }
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        5 * inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let operands = [backward.node.outputs[0], backward.gradient()?];
        Ok(vec![Some(backward.apply("grad", SoftmaxGradient(*self), &operands)?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let ty = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let rows = Rows::new(&ty, layout.clone(), &[self.axis]);
        let mut work = Work::default();
        parts::softmax(&mut work, lowering, node, &rows, self.log)?;
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}

/// Gradient from the output `y` and its gradient `dy`: `y (dy - sum(y dy))`, and
/// `dy - exp(y) sum(dy)` where `y` is a logarithm.
#[derive(Clone, Copy, Debug)]
struct SoftmaxGradient(Softmax);

impl Operator for SoftmaxGradient {
    fn kind(&self) -> &'static str {
        if self.0.log { "log_softmax_grad" } else { "softmax_grad" }
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        expect_same(&inputs[0], &inputs[1])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        4 * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let ty = lowering.ty(node.inputs[0]).clone();
        let (dtype, layout) = (ty.dtype, lowering.layout_or_linear(node.inputs[0]));
        let name = |part: &str| format!("SoftMaxGrad/{part}");
        let mut work = lowering.bring(node.inputs[1], &layout, "SoftMaxGrad");
        let rows = Rows::new(&ty, layout.clone(), &[self.0.axis]);
        let elements = &layout.elements;
        if self.0.log {
            work.push(elementwise::unary(&name("Exp"), Unary::Exp, dtype, elements));
        } else {
            work.push(elementwise::binary(&name("Mul"), Binary::Multiply, dtype, elements));
        }
        let sum_name = name("Reduce_sum");
        let sums =
            rows.reduce(lowering, node, &mut work, &sum_name, Operation::Add, DType::Float)?;
        rows.apply(lowering, &mut work, &name("MulSum"), Binary::Multiply, &sums);
        work.push(elementwise::binary_in_place(&name("Sub"), Binary::Subtract, dtype, elements));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
