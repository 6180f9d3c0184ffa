//! An unknown operator of a file. Only its operands are known; its cost is one pass over them.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, ElementwiseOp, UnaryOpType};
use crate::shape::{DType, TensorId, TensorInfo};

/// An operator with results of these types, and any operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnknownOp {
    pub outputs: Vec<TensorInfo>,
}

impl Operator for UnknownOp {
    fn kind(&self) -> &'static str {
        "unknown"
    }

    fn infer(&self, _: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        Ok(self.outputs.clone())
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs.iter().map(|input| input.elements().0).sum()
    }

    /// The gradient is unknown as well. It is one pass over the operands and over the gradients of
    /// the results, for the gradients of all operands that need one.
    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let mut needed = Vec::new();
        for at in 0..backward.node.inputs.len() {
            let is_number = matches!(backward.input_type(at).dtype, DType::Half | DType::Float);
            if is_number && backward.needs_input_gradient(at) {
                needed.push(at);
            }
        }
        let mut gradients = vec![None; backward.node.inputs.len()];
        if needed.is_empty() {
            return Ok(gradients);
        }
        let outputs = needed.iter().map(|at| backward.input_type(*at)).collect();
        let known = backward.output_gradients.iter().flatten();
        let operands: Vec<TensorId> = backward.node.inputs.iter().chain(known).copied().collect();
        let made = backward.apply_all("grad", Self { outputs }, &operands)?;
        for (at, gradient) in needed.into_iter().zip(made) {
            gradients[at] = Some(gradient);
        }
        Ok(gradients)
    }

    /// Reads every operand in its layout and writes every result once, like a copy with a function
    /// of each element.
    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let mut work = OperationWork::default();
        for tensor in node.all() {
            let dtype = lowering.tensor_type(tensor).dtype;
            let layout = lowering.layout_or_linear(tensor);
            let phase = elementwise::apart(
                "Unknown",
                ElementwiseOp::Unary(UnaryOpType::Absolute),
                dtype,
                &layout.elements,
            );
            work.push(phase);
        }
        Ok(work.into())
    }
}
