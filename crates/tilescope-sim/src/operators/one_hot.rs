//! Indices as rows with a one at the index (ONNX OneHot, popops `encodeOneHot`).

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands, Operator,
    ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::one_hot;
use crate::shape::{DType, TensorInfo};

/// Indices of any shape, with an appended axis of `depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OneHotOp {
    /// The length of a row.
    pub depth: u64,
    /// Element type of the rows.
    pub dtype: DType,
}

impl Operator for OneHotOp {
    fn kind(&self) -> &'static str {
        "one_hot"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        if inputs[0].dtype != DType::Int {
            return Err(ShapeError::Indices(inputs[0].clone()));
        }
        let shape = [&inputs[0].shape[..], &[self.depth]].concat();
        Ok(vec![TensorInfo::new(shape, self.dtype)])
    }

    /// Indices have no gradient.
    fn differentiate(&self, _: &mut GradientBuilder) -> GradientResult {
        Ok(vec![None])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let labels = lowering.layout_or_linear(node.inputs[0]);
        let count = lowering.tensor_type(node.inputs[0]).elements();
        let rows = TensorInfo::new([count.0, self.depth], self.dtype);
        let layout = lowering.layout_or_linear(node.outputs[0]);
        let mut work = OperationWork::default();
        one_hot::encode(&mut work, &lowering.machine, &rows, &labels, &layout, "OneHot");
        Ok(work.into())
    }
}
