//! Rows of a table, looked up by index.

use super::{
    GradientBuilder, GradientResult, LoweringContext, LoweringError, NodeOperands, Operator,
    ShapeError, expect_operands, expect_same,
};
use crate::poplar::work::{OperationWork, OperationWorkItem};
use crate::poplar::{OperandLiveness, tile_runs};
use crate::popops::multi_slice::{MultiSliceLowering, MultiSliceParams};
use crate::popops::{elementwise, multi_slice};
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{DType, TensorInfo};
use crate::targets::IpuTarget;

/// The rows of `table[rows, width]` at `indices[..]`. The result has the shape of the indices, and
/// the width.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EmbeddingOp {
    /// The number of parts of the lookups that run one after the other, which need less memory at a
    /// time.
    pub serialisation: u64,
    /// The goal of the plan.
    pub goal: EmbeddingGoal,
}

/// The goal that a gather is planned for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EmbeddingGoal {
    /// Few cycles. PopART has requested this since 2021 (`planMinimisationTarget` in its
    /// sliceplanx.cpp), and poplibs of 2023 always does this.
    #[default]
    Cycles,
    /// Little memory for the gather and the update of its rows together, as poplibs' tools plan.
    Memory,
}

impl Default for EmbeddingOp {
    fn default() -> Self {
        Self { serialisation: 1, goal: EmbeddingGoal::default() }
    }
}

impl EmbeddingOp {
    /// The operator of the gradient: zeros with the type of `table`, and the rows added at the
    /// indices. Its operands are indices and rows.
    pub(crate) fn gradient(self, table: TensorInfo) -> impl Operator + use<> {
        EmbeddingGradOp { embedding: self, table }
    }

    fn check(&self, table: &TensorInfo, indices: &TensorInfo) -> Result<[u64; 2], ShapeError> {
        let [rows, width] = table.shape[..] else {
            return Err(ShapeError::Operand {
                expected: "a table of rows and columns",
                found: table.clone(),
            });
        };
        if indices.dtype != DType::Int {
            return Err(ShapeError::Indices(indices.clone()));
        }
        if self.serialisation == 0 || !indices.elements().0.is_multiple_of(self.serialisation) {
            return Err(ShapeError::Parts { ty: indices.clone(), parts: self.serialisation });
        }
        Ok([rows, width])
    }

    /// The parameters of one part of the lookups.
    pub(super) fn lookup_params(
        &self,
        table: &TensorInfo,
        indices: &TensorInfo,
    ) -> MultiSliceParams {
        let lookups = (indices.elements().0 / self.serialisation.max(1)).max(1);
        MultiSliceParams {
            rows: table.shape[0],
            width: table.shape[1],
            lookups,
            dtype: table.dtype,
        }
    }

    /// Repeats `body` for every part, one after the other.
    fn repeat_serially(&self, body: OperationWork) -> OperationWork {
        if self.serialisation <= 1 {
            return body;
        }
        let items = vec![OperationWorkItem::Loop { times: self.serialisation, body: body.items }];
        OperationWork { items, temporaries: body.temporaries }
    }

    /// Plans one part of the lookups of a node.
    fn part<'a>(
        &self,
        lowering: &LoweringContext,
        machine: &'a IpuTarget,
        node: &NodeOperands,
    ) -> (MultiSliceParams, MultiSliceLowering<'a>) {
        let [table, indices] = [0, 1].map(|input| lowering.tensor_type(node.inputs[input]));
        let part = self.lookup_params(table, indices);
        let plan = match self.goal {
            EmbeddingGoal::Cycles => multi_slice::fastest_gather(&part, machine),
            EmbeddingGoal::Memory => {
                multi_slice::plan(&part, machine.tiles.into(), lowering.training)
            }
        };
        (part, MultiSliceLowering::new(machine, part, plan))
    }

    /// The layouts of the table and the indices.
    fn operand_layouts(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
        lowered: &MultiSliceLowering,
        part: &MultiSliceParams,
    ) -> [TensorLayout; 2] {
        let [table, indices] = [0, 1].map(|input| lowering.tensor_type(node.inputs[input]));
        let all_indices = self.layout_of_all_lookups(lowered.indices(), part);
        [without_padding(lowered.table(), table), without_padding(all_indices, indices)]
    }

    /// The layout of all rows, from that of one part.
    fn layout_of_all_lookups(&self, part: TensorLayout, of: &MultiSliceParams) -> TensorLayout {
        let all = of.lookups * self.serialisation;
        TensorLayout {
            elements: part.elements.map(|count| *count * self.serialisation),
            order: part.order.resized(&[of.lookups, of.width], &[all, of.width]),
        }
    }
}

/// Removes the padding of the last columns from a planned layout.
pub(super) fn without_padding(layout: TensorLayout, ty: &TensorInfo) -> TensorLayout {
    TensorLayout {
        elements: tile_runs::trimmed(&layout.elements, ty.elements()),
        order: layout.order.clone(),
    }
}

impl Operator for EmbeddingOp {
    fn kind(&self) -> &'static str {
        "embedding"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        let [_, width] = self.check(&inputs[0], &inputs[1])?;
        let mut shape = inputs[1].shape.clone();
        shape.push(width);
        Ok(vec![TensorInfo::new(shape, inputs[0].dtype)])
    }

    fn differentiate(&self, backward: &mut GradientBuilder) -> GradientResult {
        if !backward.needs_input_gradient(0) {
            return Ok(vec![None, None]);
        }
        let gradient = backward.gradient()?;
        let indices = backward.node.inputs[1];
        let operator = self.gradient(backward.input_type(0));
        Ok(vec![Some(backward.apply("grad", operator, &[indices, gradient])?), None])
    }

    fn create_operands(
        &self,
        lowering: &LoweringContext,
        node: &NodeOperands,
    ) -> Vec<Option<TensorLayout>> {
        let machine = lowering.machine;
        let (part, lowered) = self.part(lowering, &machine, node);
        self.operand_layouts(lowering, node, &lowered, &part).map(Some).to_vec()
    }

    /// A table that a product also reads has the layout of the product, as in public applications
    /// (popart willow/src/popx/op/tiedgatherx.cpp; graphcore/examples nlp/bert/pytorch enables the
    /// pattern).
    fn creates_last(&self) -> bool {
        true
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<super::LoweredOperation, LoweringError> {
        let [table, indices] = [node.inputs[0], node.inputs[1]];
        let machine = lowering.machine;
        let (part, lowered) = self.part(lowering, &machine, node);
        let [wanted, indices_layout] = self.operand_layouts(lowering, node, &lowered, &part);
        let output = lowering.tensor_type(node.outputs[0]);
        let slices = without_padding(self.layout_of_all_lookups(lowered.slices(), &part), output);
        let mut work = lowering.place_or_relayout(indices, indices_layout, "multiSlice/indices");
        work.append(self.repeat_serially(lowered.gather()));
        let made = work.phases().len() - 1;
        match lowering.layout(table) {
            None => lowering.set_layout(table, wanted),
            // If the table has the layout of another operation, only the chosen rows are moved.
            Some(held) if *held != wanted => {
                let spread =
                    TensorLayout::linear(output.elements(), output.dtype.bytes(), lowering.tiles);
                lowering.set_layout(node.outputs[0], spread);
                work.append(lowering.relayout_tensor(node.outputs[0], &slices, "gathered"));
            }
            Some(_) => {}
        }
        lowering.set_layout(node.outputs[0], slices);
        // Parts are written to the result one after the other. Without parts, the last phase makes
        // the result.
        let from = if self.serialisation > 1 { 0 } else { made };
        let lives = OperandLiveness { outputs_from: vec![from], ..OperandLiveness::default() };
        Ok(super::LoweredOperation { liveness: lives, ..work.into() })
    }
}

/// Adds a row to each indexed row of a table, in place. Operands: table, indices, rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MultiUpdateAddOp;

impl Operator for MultiUpdateAddOp {
    fn kind(&self) -> &'static str {
        "multi_update_add"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 3)?;
        let rows = EmbeddingOp::default().infer(&inputs[..2])?;
        expect_same(&inputs[2], &rows[0])?;
        Ok(Vec::new())
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[2].elements().0
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<super::LoweredOperation, LoweringError> {
        let [table, indices, rows] = [node.inputs[0], node.inputs[1], node.inputs[2]];
        let part = EmbeddingOp::default()
            .lookup_params(lowering.tensor_type(table), lowering.tensor_type(indices));
        let machine = lowering.machine;
        let plan = multi_slice::plan(&part, machine.tiles.into(), lowering.training);
        let lowered = MultiSliceLowering::new(&machine, part, plan);
        let wanted =
            [(table, lowered.table()), (indices, lowered.indices()), (rows, lowered.slices())];
        let mut work = OperationWork::default();
        for (tensor, layout) in wanted {
            let layout = without_padding(layout, lowering.tensor_type(tensor));
            work.append(lowering.place_or_relayout(tensor, layout, "multiUpdateAdd/operands"));
        }
        work.append(lowered.update().map_err(|error| node.error(error))?);
        Ok(work.into())
    }
}

/// The gradient of the table: zeros, and the gradient of each lookup added to its row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EmbeddingGradOp {
    embedding: EmbeddingOp,
    table: TensorInfo,
}

impl Operator for EmbeddingGradOp {
    fn kind(&self) -> &'static str {
        "embedding_grad"
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 2)?;
        self.embedding.check(&self.table, &inputs[0])?;
        Ok(vec![self.table.clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        inputs[1].elements().0
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<super::LoweredOperation, LoweringError> {
        let [indices, gradient] = [node.inputs[0], node.inputs[1]];
        let part = self.embedding.lookup_params(&self.table, lowering.tensor_type(indices));
        let machine = lowering.machine;
        let plan = multi_slice::plan(&part, machine.tiles.into(), lowering.training);
        let lowered = MultiSliceLowering::new(&machine, part, plan);
        let slices = without_padding(
            self.embedding.layout_of_all_lookups(lowered.slices(), &part),
            lowering.tensor_type(gradient),
        );
        let mut work = lowering.place_or_relayout(gradient, slices, "multiUpdateAdd/slices");
        let table = without_padding(lowered.table(), &self.table);
        work.push(elementwise::fill("multiUpdateAdd/zeroTable", part.dtype, &table.elements));
        let update = lowered.update().map_err(|error| node.error(error))?;
        work.append(self.embedding.repeat_serially(update));
        lowering.set_layout(node.outputs[0], table);
        Ok(work.into())
    }
}
