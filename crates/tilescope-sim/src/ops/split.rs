//! Parts of a tensor along one axis: views.

use super::{Concat, Operator, Reuse, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::{LowerError, Lowering, work::Work};

/// The tensor cut along `axis` into parts of the given sizes, one output each.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub axis: usize,
    /// Sizes along it, adding up to the whole.
    pub sizes: Vec<u64>,
}

impl Split {
    pub(crate) fn even(axis: usize, parts: usize, size: u64) -> Self {
        Self { axis, sizes: vec![size; parts] }
    }
}

impl Operator for Split {
    fn kind(&self) -> &'static str {
        "split"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let ty = &inputs[0];
        let total = self.sizes.iter().try_fold(0u64, |sum, size| sum.checked_add(*size));
        if ty.shape.get(self.axis).copied() != total {
            return Err(format!("parts of {:?} are not axis {} of {ty}", self.sizes, self.axis));
        }
        let part = |size: &u64| {
            let mut part = ty.clone();
            part.shape[self.axis] = *size;
            part
        };
        Ok(self.sizes.iter().map(part).collect())
    }

    fn flops(&self, _: &[TensorType], _: &[TensorType]) -> u64 {
        0
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let parts: Option<Vec<TensorId>> = backward.output_gradients.iter().copied().collect();
        let parts = parts.ok_or_else(|| backward.no_gradient())?;
        Ok(vec![Some(backward.apply("grad", Concat { axis: self.axis }, &parts)?)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let shape = lowering.ty(node.inputs[0]).shape.clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let mut start = 0;
        for (output, size) in node.outputs.iter().zip(&self.sizes) {
            lowering.lay_out(*output, layout.slice(&shape, self.axis, start..start + size));
            start += size;
        }
        Ok(Work::default())
    }

    fn reuses(&self) -> Reuse {
        Reuse::View(0)
    }
}
