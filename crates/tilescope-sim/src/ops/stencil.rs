//! A stencil: each cell of a field from its neighbours, borders from what zeros lie outside.

use super::{Operator, expect_operands};
use crate::graph::{Node, TensorType};
use crate::lower::stencil::{Field, Neighbours};
use crate::lower::{LowerError, Lowering, work::Work};

/// One sweep over a field `[height, width, channels]`.
#[derive(Clone, Copy, Debug)]
pub struct Stencil(pub Neighbours);

/// The field a tensor is.
fn field(ty: &TensorType) -> Result<Field, String> {
    let [height, width, channels] = ty.shape[..] else {
        return Err(format!("expected a field of rows, columns and channels, found {ty}"));
    };
    Ok(Field { height, width, channels, dtype: ty.dtype })
}

impl Operator for Stencil {
    fn kind(&self) -> &'static str {
        "stencil"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        field(&inputs[0])?;
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        2 * self.0.points() * outputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let error = |problem| LowerError { operation: node.name.clone(), problem };
        let field = field(lowering.ty(node.inputs[0])).map_err(error)?;
        let layout = field.layout(lowering.tiles);
        let mut work = lowering.place_or_bring(node.inputs[0], layout.clone(), "Field");
        work.append(field.sweep(self.0, lowering.tiles, lowering.exchange_speed()));
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }
}
