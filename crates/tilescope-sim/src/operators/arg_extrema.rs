//! The index of the largest or smallest element along an axis (ONNX ArgMax and ArgMin).

use super::{LoweringContext, LoweringResult, NodeOperands, Operator, ShapeError, expect_operands};
use crate::popnn::ExtremaRows;
use crate::popops::elementwise;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{DType, TensorInfo};

/// The index of the extreme element along an axis, which the result does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ArgExtremaOp {
    /// The axis that is searched.
    pub axis: usize,
    /// True to find the largest element, false to find the smallest.
    pub largest: bool,
}

impl Operator for ArgExtremaOp {
    fn kind(&self) -> &'static str {
        if self.largest { "arg_max" } else { "arg_min" }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let mut shape = inputs[0].shape.clone();
        if self.axis >= shape.len() {
            return Err(ShapeError::NoAxis { ty: inputs[0].clone(), axis: self.axis });
        }
        shape.remove(self.axis);
        Ok(vec![TensorInfo::new(shape, DType::Int)])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let columns = ty.shape[self.axis];
        let rows = ExtremaRows {
            rows: ty.elements().0 / columns,
            columns,
            dtype: ty.dtype,
            largest: self.largest,
        };
        let order = ElementOrder::grouped(&ty.shape, self.axis, columns);
        let machine = lowering.machine;
        let operand = TensorLayout { elements: rows.operand(machine.tiles), order };
        let mut work = lowering.relayout_tensor(node.inputs[0], &operand, "maxMinArgMaxMin");
        let elements = rows.lower(&machine, &mut work);
        // Indices are unsigned, and the cast to signed ones is a copy.
        work.push(elementwise::cast("ArgExtrema/cast", DType::Int, DType::Int, &elements));
        lowering
            .set_layout(node.outputs[0], TensorLayout { elements, order: ElementOrder::Linear });
        Ok(work.into())
    }
}
