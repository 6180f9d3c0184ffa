//! Values repeated along new axes: a class token for every sample, the gradient of a sum.

use super::{Operator, Reduce, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::reduce::Operation;
use crate::lower::work::{Place, Temporary, Work};
use crate::lower::{LowerError, Lowering, elementwise, exchange};
use tilescope_report::Category;

/// Each value of the operand for all elements along the axes it does not have.
#[derive(Clone, Debug)]
pub(crate) struct Repeat {
    pub ty: TensorType,
    /// Its axes that the operand does not have.
    pub axes: Vec<usize>,
}

impl Operator for Repeat {
    fn kind(&self) -> &'static str {
        "repeat"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let axes = self.ty.shape.iter().enumerate();
        let kept = axes.filter(|(axis, _)| !self.axes.contains(axis)).map(|(_, size)| *size);
        let kept = TensorType::new(kept.collect::<Vec<_>>(), self.ty.dtype);
        if kept != inputs[0] {
            return Err(format!("{} cannot be repeated to {}", inputs[0], self.ty));
        }
        Ok(vec![self.ty.clone()])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let sum = Reduce::new(Operation::Add, self.axes.clone());
        Ok(vec![Some(backward.apply("grad", sum, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = self.ty.dtype;
        let values = lowering.layout_or_linear(node.inputs[0]).bytes(dtype.bytes());
        let layout = lowering.layout_or_linear(node.outputs[0]);
        // Each tile is sent the values it repeats: as many as it holds elements, at most all.
        let all = values.total();
        let needed = layout.bytes(dtype.bytes()).map(|bytes| *bytes.min(&all));
        let mut work = Work::default();
        let speed = lowering.exchange_speed();
        work.push_some(exchange::phase("Repeat", &needed, &values, (4, 4), lowering.tiles, speed));
        work.push(elementwise::cast("Repeat/OnTileCopy", dtype, dtype, &layout.elements));
        work.temporaries.push(Temporary {
            name: "Repeat/values".to_string(),
            category: Category::Message,
            bytes: needed,
            place: Place::Any,
            live: 0..work.phases().len(),
        });
        Ok(work)
    }
}
