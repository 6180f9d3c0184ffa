//! Adds one value per channel.

use super::{Operator, Reuse, expect_operands};
use crate::report::Category;
use crate::sim::graph::{Backward, GraphError, Node, TensorId, TensorType};
use crate::sim::lower::reduce::{self, Reduction};
use crate::sim::lower::{
    LowerError, Lowering, elementwise, exchange,
    layout::{Layout, Order},
    work::{Temporary, Work},
};
use crate::units::TileRange;

/// `x + bias`, the bias running along one axis.
#[derive(Clone, Copy, Debug)]
pub struct BiasAdd {
    /// Axis of `x` that the bias has one value for.
    pub axis: usize,
}

impl Operator for BiasAdd {
    fn kind(&self) -> &'static str {
        "bias_add"
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 2)?;
        if inputs[0].shape.get(self.axis).copied() != inputs[1].shape.first().copied()
            || inputs[1].shape.len() != 1
        {
            return Err(format!(
                "a bias of {} does not fit axis {} of {}",
                inputs[1], self.axis, inputs[0]
            ));
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
        let bias = lowering.layout_or_linear(node.inputs[1]).bytes(ty.dtype.bytes());
        let channels = lowering.ty(node.inputs[1]).elements();
        let used = TileRange::new(
            0,
            layout.elements.iter().map(|(tiles, _)| tiles.end).max().unwrap_or(0),
        );
        let mut work = Work::default();
        let name = "Op/Add";
        work.push_some(exchange::broadcast(
            name,
            &bias,
            used,
            lowering.tiles,
            lowering.exchange_speed(),
        ));
        let copied = layout.elements.map(|count| channels.min(*count) * ty.dtype.bytes());
        work.temporaries.push(Temporary {
            name: "Op/biasesBroadcast".to_string(),
            category: Category::Message,
            bytes: copied,
            interleaved: false,
            live: 0..2,
        });
        let vertex = format!(
            "popops::BroadcastVectorOuterByColumnInPlaceSupervisor<popops::expr::BinaryOpType::ADD,{},false>",
            ty.dtype.poplar_name()
        );
        work.push(elementwise::phase(name, vertex, 2, &layout.elements, |count| {
            elementwise::broadcast_vector_cycles(ty.dtype, *count, channels.min(*count))
        }));
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

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        expect_operands(inputs, 1)?;
        let channels = inputs[0].shape.get(self.axis).copied();
        let channels =
            channels.ok_or_else(|| format!("{} has no axis {}", inputs[0], self.axis))?;
        Ok(vec![TensorType::new([channels], inputs[0].dtype)])
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let input = lowering.layout_or_linear(node.inputs[0]);
        let ty = lowering.ty(node.outputs[0]).clone();
        let mut work = Work::default();
        let elements = reduce::add(
            &mut work,
            &Reduction {
                name: "Reduce",
                operation: "ReduceAdd",
                input: &input.elements,
                dtype: ty.dtype,
                outputs: ty.elements(),
                tiles: lowering.tiles,
                bytes_per_cycle: lowering.exchange_speed(),
            },
        );
        lowering.lay_out(node.outputs[0], Layout { elements, order: Order::Linear });
        Ok(work)
    }
}
