//! The passes of layer, group and batch norm: the forward pass and the gradient.

use super::{
    GradientBuilder, GraphError, LoweringContext, LoweringError, LoweringResult, NodeOperands,
    Operator, ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popnn::norm::{NormKind, NormRows, NormStatistics};
use crate::popops::elementwise;
use crate::poputil::tensor_layout::TensorLayout;
use crate::shape::{TensorId, TensorInfo};

/// The name of the operator of a norm.
pub(super) fn forward_kind(kind: NormKind) -> &'static str {
    match kind {
        NormKind::Batch => "batch_norm",
        NormKind::Layer => "layer_norm",
        NormKind::Group { .. } => "group_norm",
    }
}

/// The name of the operator of its gradient.
pub(super) fn gradient_kind(kind: NormKind) -> &'static str {
    match kind {
        NormKind::Batch => "batch_norm_grad",
        NormKind::Layer => "layer_norm_grad",
        NormKind::Group { .. } => "group_norm_grad",
    }
}

/// Adds the gradients of input, scale and shift, which are the first three operands of the forward
/// node.
pub(crate) fn gradients(
    kind: NormKind,
    backward: &mut GradientBuilder,
) -> Result<Vec<TensorId>, GraphError> {
    let inputs = &backward.node.inputs;
    let outputs = &backward.node.outputs;
    let operands = [inputs[0], inputs[1], outputs[1], outputs[2], backward.gradient()?];
    backward.apply_all("grad", NormGradOp(kind), &operands)
}

/// The gradients of input, scale and shift. Operands: input, scale, mean, inverse standard
/// deviation, gradient of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NormGradOp(NormKind);

impl Operator for NormGradOp {
    fn kind(&self) -> &'static str {
        gradient_kind(self.0)
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 5)?;
        Ok(vec![inputs[0].clone(), inputs[1].clone(), inputs[1].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        GRADIENT_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let x = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let [scale, mean, inverse_deviation] =
            [1, 2, 3].map(|input| lowering.layout_or_linear(node.inputs[input]));
        let statistics = NormStatistics { mean, inverse_deviation };
        let mut work = lowering.regroup_tensor(node.inputs[4], &layout, "NormGrad");
        let rows = self.0.axes(&x).rows(&lowering.machine, &x, &layout);
        let gradients = rows.gradient(&mut work, &scale, &statistics);
        let [of_scale, of_shift] = gradients.map_err(|error| node.error(error))?;
        lowering.set_layout(node.outputs[0], layout);
        lowering.set_layout(node.outputs[1], of_scale);
        lowering.set_layout(node.outputs[2], of_shift);
        Ok(work.into())
    }
}

/// Lowers the forward pass of a norm. Operands of `node`: input, scale and shift. Results: output,
/// mean and inverse standard deviation.
pub(crate) fn lower_forward(
    kind: NormKind,
    lowering: &mut LoweringContext,
    node: &NodeOperands,
) -> Result<OperationWork, LoweringError> {
    let x = lowering.tensor_type(node.inputs[0]).clone();
    let layout = lowering.layout_or_linear(node.inputs[0]);
    let axes = kind.axes(&x);
    let rows = axes.rows(&lowering.machine, &x, &layout);
    let mut work = OperationWork::default();
    // Batch norm comes from poplin, which sums channels in place.
    let regrouped = match kind {
        NormKind::Batch => None,
        _ => axes.regroup_channels(&mut work, &lowering.machine, &x, &layout),
    };
    let statistics =
        rows.statistics(&mut work, regrouped.as_ref()).map_err(|error| node.error(error))?;
    normalise(kind, lowering, node, &mut work, (&rows, &statistics));
    lowering.set_layout(node.outputs[0], layout);
    Ok(work)
}

/// Adds the phases that apply statistics, scale and shift to the input, and lays out the results.
pub(super) fn normalise(
    kind: NormKind,
    lowering: &mut LoweringContext,
    node: &NodeOperands,
    work: &mut OperationWork,
    (rows, statistics): (&NormRows, &NormStatistics),
) {
    lowering.set_layout(node.outputs[1], statistics.mean.clone());
    lowering.set_layout(node.outputs[2], statistics.inverse_deviation.clone());
    let [scale, shift] = [1, 2].map(|input| placed(lowering, node.inputs[input], rows));
    if kind == NormKind::Batch {
        let [of_scale, of_shift] = [1, 2].map(|input| lowering.tensor_type(node.inputs[input]));
        let affine = [(of_scale, &scale), (of_shift, &shift)];
        rows.normalise_by_channel(work, statistics, affine);
    } else {
        rows.normalise(work, statistics, [&scale, &shift]);
    }
}

/// Adds the update of the running statistics of a batch norm by those of the batch.
pub(super) fn update_running(
    lowering: &mut LoweringContext,
    node: &NodeOperands,
    work: &mut OperationWork,
) {
    for (running, statistics) in [(3, 1), (4, 2)] {
        let dtype = lowering.tensor_type(node.inputs[running]).dtype;
        let layout = lowering.layout_or_linear(node.outputs[statistics]);
        work.append(lowering.relayout_tensor(node.inputs[running], &layout, "running"));
        work.push(elementwise::axpby("running/axpby", dtype, &layout.elements));
    }
}

/// The layout of scale or shift. Without one, it gets the layout of the values of the channels.
fn placed(lowering: &mut LoweringContext, tensor: TensorId, rows: &NormRows) -> TensorLayout {
    if let (None, Some(values)) = (lowering.layout(tensor), rows.channel_layout()) {
        lowering.set_layout(tensor, values);
    }
    lowering.layout_or_linear(tensor)
}

/// Checks that scale and shift have one value per channel.
pub(crate) fn expect_channels(inputs: &[TensorInfo], channels: u64) -> Result<(), ShapeError> {
    match inputs[1..].iter().find(|values| values.shape != [channels]) {
        None => Ok(()),
        Some(values) => Err(ShapeError::ChannelValues { ty: values.clone(), channels }),
    }
}

/// Operations per element of the forward pass: two sums, whitening, scale and shift.
pub(crate) const FORWARD_FLOPS_PER_ELEMENT: u64 = 7;

/// Operations per element of the gradient: whitening, two products, four sums, scale and the rest.
pub(super) const GRADIENT_FLOPS_PER_ELEMENT: u64 = 13;
