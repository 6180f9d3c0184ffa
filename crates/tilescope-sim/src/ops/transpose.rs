//! The axes of a tensor in another order: a view. Whoever reads it in another order than it lies
//! pays for the copy.

use super::{Operator, Reuse, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::{LowerError, Lowering, work::Work};

/// A tensor whose axis `i` is the operand's axis `permutation[i]`.
#[derive(Clone, Debug)]
pub(crate) struct Transpose {
    /// The operand's axes in their new order.
    pub permutation: Vec<usize>,
}

impl Operator for Transpose {
    fn kind(&self) -> &'static str {
        "transpose"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 1)?;
        let shape = &inputs[0].shape;
        let mut sorted = self.permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..shape.len()) {
            return Err(ShapeError(format!(
                "{:?} is no order of the axes of {}",
                self.permutation, inputs[0]
            )));
        }
        let turned: Vec<u64> = self.permutation.iter().map(|axis| shape[*axis]).collect();
        Ok(vec![TensorType::new(turned, inputs[0].dtype)])
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let mut permutation = vec![0; self.permutation.len()];
        for (new, old) in self.permutation.iter().enumerate() {
            permutation[*old] = new;
        }
        Ok(vec![Some(backward.apply("grad", Self { permutation }, &[gradient])?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let mut layout = lowering.layout_or_linear(node.inputs[0]);
        layout.order = layout.order.permuted(&lowering.ty(node.inputs[0]).shape, &self.permutation);
        lowering.lay_out(node.outputs[0], layout);
        Ok(Work::default())
    }

    fn reuses(&self) -> Reuse {
        Reuse::View(0)
    }
}
