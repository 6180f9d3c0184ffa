//! Rows written or added at indices (ONNX ScatterND and ScatterElements, popops `multiUpdate` and
//! `multiUpdateAdd`; popart willow/src/popx/op/{scatterx,scatterutilx}.cpp).

use super::embedding::without_padding;
use super::{
    EmbeddingOp, GradientBuilder, GradientResult, LoweringContext, LoweringResult, NodeOperands,
    Operator, ShapeError, expect_operands, expect_same,
};
use crate::popops::multi_slice::{self, MultiSliceLowering};
use crate::popops::{elementwise, relayout};
use crate::shape::TensorInfo;

/// The effect of a scatter on an indexed row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScatterUpdate {
    /// The new row replaces the old one.
    Replace,
    /// The new row is added to the old one.
    Add,
}

/// A table `[rows, width]` with other rows at the indices `[..]`. Operands: table, indices and rows
/// `[.., width]`. Without rows, the indexed rows become zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScatterOp(pub ScatterUpdate);

impl Operator for ScatterOp {
    fn kind(&self) -> &'static str {
        match self.0 {
            ScatterUpdate::Replace => "scatter",
            ScatterUpdate::Add => "scatter_add",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        let rows = EmbeddingOp::default().infer(&inputs[..inputs.len().min(2)])?;
        if inputs.len() != 2 || self.0 == ScatterUpdate::Add {
            expect_operands(inputs, 3)?;
            expect_same(&inputs[2], &rows[0])?;
        }
        Ok(vec![inputs[0].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        match self.0 {
            ScatterUpdate::Replace => 0,
            ScatterUpdate::Add => inputs[2].elements().0,
        }
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        let dy = backward.gradient()?;
        let indices = backward.node.inputs[1];
        let mut gradients = vec![None; backward.node.inputs.len()];
        gradients[0] = Some(match self.0 {
            ScatterUpdate::Add => dy,
            ScatterUpdate::Replace => backward.apply("grad", *self, &[dy, indices])?,
        });
        if gradients.len() > 2 && backward.needs_input_gradient(2) {
            let gather = EmbeddingOp::default();
            gradients[2] = Some(backward.apply("grad_rows", gather, &[dy, indices])?);
        }
        Ok(gradients)
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let [table, indices] = [node.inputs[0], node.inputs[1]];
        let ty = lowering.tensor_type(table).clone();
        let params = EmbeddingOp::default().lookup_params(&ty, lowering.tensor_type(indices));
        let machine = lowering.machine;
        let plan = match self.0 {
            ScatterUpdate::Replace => multi_slice::overwriting_plan(&params, machine.tiles.into()),
            ScatterUpdate::Add => multi_slice::plan(&params, machine.tiles.into(), true),
        };
        let lowered = MultiSliceLowering::new(&machine, params, plan);
        let held = without_padding(lowered.table(), &ty);
        let mut work = lowering.place_or_relayout(table, held.clone(), "scatter/table");
        // The table itself stays unchanged. The result is a modified copy.
        work.push(relayout::copy("scatter", ty.dtype, &held.elements, ty.shape[1]));
        let numbers = without_padding(lowered.indices(), lowering.tensor_type(indices));
        work.append(lowering.place_or_relayout(indices, numbers, "scatter/indices"));
        match node.inputs.get(2) {
            Some(rows) => {
                let layout = without_padding(lowered.slices(), lowering.tensor_type(*rows));
                work.append(lowering.place_or_relayout(*rows, layout, "scatter/rows"));
            }
            None => {
                let elements = lowered.slices().elements;
                let start = work.phases().len();
                work.push(elementwise::fill("scatter/zerosUpdate", ty.dtype, &elements));
                let bytes = elements.map(|count| *count * ty.dtype.bytes());
                work.push_temporary("scatter/zerosUpdate", bytes, start);
            }
        }
        work.append(match self.0 {
            ScatterUpdate::Replace => lowered.overwrite(),
            ScatterUpdate::Add => lowered.update().map_err(|error| node.error(error))?,
        });
        lowering.set_layout(node.outputs[0], held);
        Ok(work.into())
    }
}
