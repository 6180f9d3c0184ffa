//! The largest or smallest elements along an axis, in order (ONNX TopK, popops `topKWithPermutation`).

use super::{
    EmbeddingOp, GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands,
    Operator, ReshapeOp, ShapeError, expect_operands, linear_index,
};
use crate::popops::top_k::TopKRows;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{DType, TensorInfo};

/// The first `k` elements along an axis in sorted order, and their original positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopKOp {
    /// The axis that is sorted.
    pub axis: usize,
    /// The number of elements that are kept.
    pub k: u64,
    /// True to keep the largest elements, false to keep the smallest.
    pub largest: bool,
}

impl Operator for TopKOp {
    fn kind(&self) -> &'static str {
        "top_k"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 1)?;
        let mut ty = inputs[0].clone();
        match ty.shape.get_mut(self.axis) {
            Some(size) if self.k > 0 && self.k <= *size => *size = self.k,
            _ => {
                return Err(ShapeError::TooFewElements {
                    axis: self.axis,
                    ty: inputs[0].clone(),
                    count: self.k,
                });
            }
        }
        let indices = TensorInfo::new(&ty.shape[..], DType::Int);
        Ok(vec![ty, indices])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[0].elements().0
    }

    /// Adds the gradient: each element at its original position, with zeros elsewhere (popart
    /// willow/src/popx/op/topkx.cpp).
    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let gradient = backward.gradient()?;
        let ty = backward.input_type(0);
        let indices = backward.node.outputs[1];
        let name = backward.node.name.to_string();
        let numbers = linear_index::along_axis(
            &mut *backward.graph,
            &format!("{name}/grad"),
            (indices, self.axis),
            &ty,
        )?;
        let rows = backward.tensor_type(gradient).elements().0;
        let flat = backward.apply("grad/rows", ReshapeOp { shape: vec![rows, 1] }, &[gradient])?;
        let table = TensorInfo::new([ty.elements().0, 1], ty.dtype);
        let scatter = EmbeddingOp::default().gradient(table);
        let made = backward.apply("grad/scatter", scatter, &[numbers, flat])?;
        Ok(vec![Some(backward.apply("grad", ReshapeOp { shape: ty.shape }, &[made])?)])
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let ty = lowering.tensor_type(node.inputs[0]).clone();
        let length = ty.shape[self.axis];
        let rows = TopKRows { rows: ty.elements().0 / length, length, k: self.k, dtype: ty.dtype };
        let held = lowering.layout_or_linear(node.inputs[0]);
        let machine = lowering.machine;
        let (work, elements) = rows.lower(&machine, &held.elements);
        for output in node.outputs {
            let order = ElementOrder::Unknown;
            let layout = TensorLayout { elements: elements.clone(), order };
            lowering.set_layout(*output, layout);
        }
        Ok(work.into())
    }
}
