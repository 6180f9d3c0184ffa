//! A matrix times a vector with codelets of one's own; [`super::MatMul`] is what a library does.

use super::{Operator, ShapeError, expect_operands};
use crate::graph::{DType, Node, TensorType};
use crate::lower::dot_products::DotProducts;
use crate::lower::{LowerError, Lowering, work::Work};

/// `y[m] = a[m,k] . x[k]` of floats.
#[derive(Clone, Copy, Debug)]
pub struct MatVec;

impl Operator for MatVec {
    fn kind(&self) -> &'static str {
        "mat_vec"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 2)?;
        match (&inputs[0].shape[..], &inputs[1].shape[..]) {
            ([rows, columns], [values])
                if columns == values && inputs.iter().all(|ty| ty.dtype == DType::Float) =>
            {
                Ok(vec![TensorType::new([*rows], DType::Float)])
            }
            _ => Err(ShapeError(format!(
                "a float matrix and a vector are expected, not {} and {}",
                inputs[0], inputs[1]
            ))),
        }
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        2 * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let [rows, columns] = lowering.ty(node.inputs[0]).shape[..] else {
            let problem = "a matrix is expected".to_string();
            return Err(LowerError { operation: node.name.clone(), problem });
        };
        let sizes = DotProducts { rows, columns, tiles: lowering.tiles };
        let [matrix, vector] = [node.inputs[0], node.inputs[1]]
            .map(|tensor| lowering.layout_or_linear(tensor).bytes(DType::Float.bytes()));
        lowering.lay_out(node.outputs[0], sizes.result());
        Ok(sizes.product(&matrix, &vector, lowering.exchange_speed()))
    }
}
