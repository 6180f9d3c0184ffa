//! Reductions over some axes.

use super::parts::Rows;
use super::{Operator, Repeat, Reuse, expect_operands, expect_same};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::reduce::{Operation, ResultUse};
use crate::lower::{LowerError, Lowering, work::Work};

/// One value of all elements along some axes, which the result does not have.
#[derive(Clone, Debug)]
pub struct Reduce {
    /// How elements are put together.
    pub operation: Operation,
    pub axes: Vec<usize>,
    /// What becomes of the values. Where they are added to a tensor, that is the second operand.
    pub result: ResultUse,
}

impl Reduce {
    /// A reduction of the values themselves.
    pub fn new(operation: Operation, axes: Vec<usize>) -> Self {
        Self { operation, axes, result: ResultUse::PLAIN }
    }
}

impl Operator for Reduce {
    fn kind(&self) -> &'static str {
        "reduce"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, if self.result.update { 2 } else { 1 })?;
        let shape = &inputs[0].shape;
        if let Some(axis) = self.axes.iter().find(|axis| **axis >= shape.len()) {
            return Err(format!("{} has no axis {axis}", inputs[0]));
        }
        let kept = (0..shape.len()).filter(|axis| !self.axes.contains(axis));
        let kept: Vec<u64> = kept.map(|axis| shape[axis]).collect();
        let values = TensorType::new(kept, inputs[0].dtype);
        inputs.get(1).map_or(Ok(()), |base| expect_same(base, &values))?;
        Ok(vec![values])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        if self.operation != Operation::Add || self.result != ResultUse::PLAIN {
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
        let rows = Rows::new(&ty, layout, &self.axes).with_result(self.result);
        let values = rows.reduce(lowering, node, &mut work, "Reduce", self.operation, ty.dtype)?;
        if let Some(base) = node.inputs.get(1) {
            lowering.lay_out(*base, values.clone());
        }
        lowering.lay_out(node.outputs[0], values);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        if self.result.update { Reuse::InPlace(1) } else { Reuse::Nothing }
    }
}
