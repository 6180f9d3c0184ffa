//! A stencil: each cell of a field from its neighbours, borders from what zeros lie outside.

use super::{
    LoweredOperation, LoweringContext, LoweringError, NodeOperands, Operator, ShapeError,
    expect_operands,
};
use crate::custom::stencil::{StencilField, StencilNeighbourhood};
use crate::shape::TensorInfo;

/// One sweep over a field `[height, width, channels]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StencilOp(pub StencilNeighbourhood);

/// The field a tensor is.
fn field(ty: &TensorInfo) -> Result<StencilField, ShapeError> {
    let [height, width, channels] = ty.shape[..] else {
        return Err(ShapeError(format!(
            "expected a field of rows, columns and channels, found {ty}"
        )));
    };
    Ok(StencilField { height, width, channels, dtype: ty.dtype })
}

impl Operator for StencilOp {
    fn kind(&self) -> &'static str {
        "stencil"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        field(&inputs[0])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorInfo], outputs: &[TensorInfo]) -> u64 {
        2 * self.0.points() * outputs[0].elements().0
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let error = |error: ShapeError| LoweringError {
            operation: node.name.to_string(),
            problem: error.to_string(),
        };
        let field = field(lowering.tensor_type(node.inputs[0])).map_err(error)?;
        let layout = field.layout(lowering.tiles);
        let mut work = lowering.place_or_relayout(node.inputs[0], layout.clone(), "Field");
        work.append(field.sweep(self.0, lowering.tiles, lowering.exchange_speed()));
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }
}
