//! An operator of a file that nothing is known of but its operands: priced as one pass over them.

use super::{LoweredOperation, LoweringContext, LoweringError, NodeOperands, Operator, ShapeError};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::popops::elementwise::UnaryOpType;
use crate::shape::TensorInfo;

/// Results of these types, of any operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnknownOp {
    pub outputs: Vec<TensorInfo>,
}

impl UnknownOp {
    /// Its kind in reports.
    pub(crate) const KIND: &'static str = "unknown";
}

impl Operator for UnknownOp {
    fn kind(&self) -> &'static str {
        Self::KIND
    }

    fn infer(&self, _: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        Ok(self.outputs.clone())
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs.iter().map(|input| input.elements().0).sum()
    }

    /// Reads every operand where it lies and writes every result once, as a copy with a function of
    /// each element does.
    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let mut work = OperationWork::default();
        for tensor in node.all() {
            let dtype = lowering.tensor_type(tensor).dtype;
            let layout = lowering.layout_or_linear(tensor);
            let phase =
                elementwise::unary("Unknown", UnaryOpType::Absolute, dtype, &layout.elements);
            work.push(phase);
        }
        Ok(work.into())
    }
}
