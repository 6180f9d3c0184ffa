//! A matrix times a vector with custom codelets. [`super::MatMulOp`] is the library's product.

use super::{
    LoweringContext, LoweringProblem, LoweringResult, NodeOperands, Operator, ShapeError,
    expect_operands,
};
use crate::custom::custom_mat_vec::MatVecDotProducts;
use crate::shape::{DType, TensorInfo};

/// `y[m] = a[m,k] . x[k]` of floats, with custom codelets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatVecOp;

impl Operator for MatVecOp {
    fn kind(&self) -> &'static str {
        "mat_vec"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        match (&inputs[0].shape[..], &inputs[1].shape[..]) {
            ([rows, columns], [values])
                if columns == values && inputs.iter().all(|ty| ty.dtype == DType::Float) =>
            {
                Ok(vec![TensorInfo::new([*rows], DType::Float)])
            }
            _ => Err(ShapeError::Operands {
                expected: "a float matrix and a vector",
                found: inputs.to_vec(),
            }),
        }
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        2 * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let [rows, columns] = lowering.tensor_type(node.inputs[0]).shape[..] else {
            return Err(node.error(LoweringProblem::NoMatrix));
        };
        let sizes = MatVecDotProducts { rows, columns, tiles: lowering.tiles };
        let [matrix, vector] = [node.inputs[0], node.inputs[1]]
            .map(|tensor| lowering.layout_or_linear(tensor).bytes(DType::Float.bytes()));
        lowering.set_layout(node.outputs[0], sizes.result());
        Ok(sizes.product(&matrix, &vector, lowering.exchange_speed()).into())
    }
}
