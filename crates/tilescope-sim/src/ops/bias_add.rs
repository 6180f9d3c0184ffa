//! Adds one value per channel.

use super::parts::Rows;
use super::{Operator, Reuse, ShapeError, expect_operands};
use crate::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::lower::elementwise::Binary;
use crate::lower::reduce::Operation;
use crate::lower::{LowerError, Lowering, work::Work};

/// `x + bias`, the bias running along one axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BiasAdd {
    /// Axis of `x` that the bias has one value for.
    pub axis: usize,
}

impl BiasAdd {
    /// Axes along which all elements get the same bias.
    fn others(self, ty: &TensorType) -> Vec<usize> {
        (0..ty.shape.len()).filter(|axis| *axis != self.axis).collect()
    }
}

impl Operator for BiasAdd {
    fn kind(&self) -> &'static str {
        "bias_add"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 2)?;
        if inputs[0].shape.get(self.axis).copied() != inputs[1].shape.first().copied()
            || inputs[1].shape.len() != 1
        {
            return Err(ShapeError(format!(
                "a bias of {} does not fit axis {} of {}",
                inputs[1], self.axis, inputs[0]
            )));
        }
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, _: &[TensorType], outputs: &[TensorType]) -> u64 {
        outputs[0].elements()
    }

    fn differentiate(&self, backward: &mut Backward) -> Result<Vec<Option<TensorId>>, GraphError> {
        let gradient = backward.gradient()?;
        let bias = backward.apply("grad", BiasGradient { axis: self.axis }, &[gradient])?;
        Ok(vec![Some(gradient), Some(bias)])
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let ty = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let bias = lowering.layout_or_linear(node.inputs[1]);
        let mut work = Work::default();
        let rows = Rows::new(&ty, layout.clone(), &self.others(&ty));
        rows.apply(lowering, &mut work, "Op/Add", Binary::Add, &bias);
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    fn reuses(&self) -> Reuse {
        Reuse::InPlace(0)
    }
}

/// Sum of a gradient over all axes but one.
#[derive(Clone, Copy, Debug)]
struct BiasGradient {
    axis: usize,
}

impl Operator for BiasGradient {
    fn kind(&self) -> &'static str {
        "bias_grad"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, ShapeError> {
        expect_operands(inputs, 1)?;
        let channels = inputs[0].shape.get(self.axis).copied();
        let channels = channels
            .ok_or_else(|| ShapeError(format!("{} has no axis {}", inputs[0], self.axis)))?;
        Ok(vec![TensorType::new([channels], inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let ty = lowering.ty(node.inputs[0]).clone();
        let mut work = Work::default();
        let rows = Rows::new(&ty, layout, &BiasAdd { axis: self.axis }.others(&ty));
        let sums = rows.reduce(lowering, node, &mut work, "Reduce", Operation::Add, ty.dtype)?;
        lowering.lay_out(node.outputs[0], sums);
        Ok(work)
    }
}
