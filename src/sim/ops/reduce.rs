//! Reductions over some axes.

use super::parts::Rows;
use super::{Operator, expect_operands};
use crate::report::Category;
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::reduce::Operation;
use crate::sim::lower::work::{Place, Temporary, Work};
use crate::sim::lower::{LowerError, Lowering, elementwise, exchange};

/// One value of all elements along some axes, which the result does not have.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// How elements are put together.
    pub operation: Operation,
    /// Axes that go.
    pub axes: Vec<usize>,
}

impl Operator for Reduce {
    fn kind(&self) -> &'static str {
        "reduce"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let shape = &inputs[0].shape;
        if let Some(axis) = self.axes.iter().find(|axis| **axis >= shape.len()) {
            return Err(format!("{} has no axis {axis}", inputs[0]));
        }
        let kept = (0..shape.len()).filter(|axis| !self.axes.contains(axis));
        let kept: Vec<u64> = kept.map(|axis| shape[axis]).collect();
        Ok(vec![TensorType::new(kept, inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        if self.operation != Operation::Add {
            return Err(backward.no_gradient());
        }
        let gradient = backward.gradient()?;
        let ty = backward.input_type(0);
        Ok(vec![Some(backward.apply("grad", Repeat { ty }, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let ty = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut work = Work::default();
        let rows = Rows::new(&ty, layout, &self.axes);
        let values = rows.reduce(lowering, node, &mut work, "Reduce", self.operation, ty.dtype)?;
        lowering.lay_out(node.outputs[0], values);
        Ok(work)
    }
}

/// Gradient of a sum: each value for all elements that went into it.
#[derive(Clone, Debug)]
struct Repeat {
    ty: TensorType,
}

impl Operator for Repeat {
    fn kind(&self) -> &'static str {
        "repeat"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        Ok(vec![self.ty.clone()])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
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
