//! Reductions over some axes.

use super::parts::Rows;
use super::{Operator, Repeat, expect_operands};
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::reduce::Operation;
use crate::sim::lower::{LowerError, Lowering, work::Work};

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
        Ok(vec![Some(backward.apply(
            "grad",
            Repeat { ty, axes: self.axes.clone() },
            &[gradient],
        )?)])
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
