//! What layer, group and batch norm share: statistics over some axes, and a scale and a shift per
//! channel.
//!
//! As poplin and popnn do it (poplibs lib/poplin/Norms.cpp, lib/popnn/GroupNorm.cpp): sums of
//! values and of squares, in the same compute sets; the inverse standard deviation; difference and product with the
//! statistics; product with the scale and sum with the shift. The gradient whitens the input
//! again, as PopART's does.

use super::parts::{TensorRows, push_temporary};
use super::{
    GradientBuilder, GraphError, LoweredOperation, LoweringContext, LoweringError, NodeOperands,
    Operator, ShapeError, expect_operands,
};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise;
use crate::popops::elementwise::BinaryOpType;
use crate::popops::reduce::ReduceOperation;
use crate::poputil::layout::TensorLayout;
use crate::shape::{DType, TensorId, TensorInfo};
use tilescope_report::units::Elements;

/// How a norm sees its input.
pub(crate) struct NormAxes {
    /// Shape in which statistics and channels have axes of their own.
    pub shape: Vec<u64>,
    /// Axes that statistics are taken over.
    pub statistics_axes: Vec<usize>,
    /// Axes that all have the same scale and shift.
    pub channel_axes: Vec<usize>,
}

/// Which values share statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NormKind {
    /// Those of a channel, over the batch.
    Batch,
    /// Those along the last axis.
    Layer,
    /// Those of a group of channels of one sample.
    Group {
        /// Groups of channels.
        groups: u64,
    },
}

impl NormKind {
    pub(crate) fn axes(self, x: &TensorInfo) -> NormAxes {
        match self {
            Self::Batch => {
                let others: Vec<usize> = (0..x.shape.len()).filter(|axis| *axis != 1).collect();
                NormAxes {
                    shape: x.shape.clone(),
                    statistics_axes: others.clone(),
                    channel_axes: others,
                }
            }
            Self::Layer => {
                let channels = x.shape.last().copied().unwrap_or(1);
                NormAxes {
                    shape: vec![x.elements().0 / channels.max(1), channels],
                    statistics_axes: vec![1],
                    channel_axes: vec![0],
                }
            }
            Self::Group { groups } => NormAxes {
                shape: vec![x.shape[0], groups, x.shape[1] / groups, x.shape[2..].iter().product()],
                statistics_axes: vec![2, 3],
                channel_axes: vec![0, 3],
            },
        }
    }

    /// Gradients of input, scale and shift of a forward node with these three operands first.
    pub(crate) fn gradients(
        self,
        backward: &mut GradientBuilder,
    ) -> Result<Vec<TensorId>, GraphError> {
        let (inputs, outputs) = (&backward.node.inputs, &backward.node.outputs);
        let operands = [inputs[0], inputs[1], outputs[1], outputs[2], backward.gradient()?];
        backward.apply_all("grad", NormGradOp(self), &operands)
    }
}

/// Gradients of input, scale and shift. Operands: input, scale, mean, inverse standard deviation,
/// gradient of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct NormGradOp(NormKind);

impl Operator for NormGradOp {
    fn kind(&self) -> &'static str {
        match self.0 {
            NormKind::Batch => "batch_norm_grad",
            NormKind::Layer => "layer_norm_grad",
            NormKind::Group { .. } => "group_norm_grad",
        }
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        expect_operands(inputs, 5)?;
        Ok(vec![inputs[0].clone(), inputs[1].clone(), inputs[1].clone()])
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        GRADIENT_FLOPS_PER_ELEMENT * inputs[0].elements().0
    }

    fn lower(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        self.0.axes(lowering.tensor_type(node.inputs[0])).backward(lowering, node)
    }
}

/// Scale, shift and their gradients: one value per channel.
#[derive(Clone, Copy)]
pub(crate) struct NormAffineTensors {
    pub scale: TensorId,
    pub shift: TensorId,
}

impl NormAffineTensors {
    /// How scale and shift lie; where nobody placed them yet, as values of the channels do.
    fn placed(self, lowering: &mut LoweringContext, channels: &TensorRows) -> [TensorLayout; 2] {
        [self.scale, self.shift].map(|tensor| {
            if let (None, Some(values)) = (lowering.layout(tensor), channels.result_layout()) {
                lowering.set_layout(tensor, values);
            }
            lowering.layout_or_linear(tensor)
        })
    }
}

impl NormAxes {
    pub(crate) fn statistics_count(&self) -> u64 {
        let kept = (0..self.shape.len()).filter(|axis| !self.statistics_axes.contains(axis));
        kept.map(|axis| self.shape[axis]).product()
    }

    pub(crate) fn channel_count(&self) -> u64 {
        let kept = (0..self.shape.len()).filter(|axis| !self.channel_axes.contains(axis));
        kept.map(|axis| self.shape[axis]).product()
    }

    /// Types of the outputs of a forward pass: result, mean, inverse standard deviation.
    pub(crate) fn outputs(&self, x: &TensorInfo) -> Vec<TensorInfo> {
        let statistics = TensorInfo::new([self.statistics_count()], DType::Float);
        vec![x.clone(), statistics.clone(), statistics]
    }

    /// Rows of `x` that share statistics, and rows that share a channel. One value for each of
    /// them is made where `poputil::createBroadcastOperand` places it.
    fn rows(&self, x: &TensorInfo, layout: &TensorLayout, tiles: u32) -> (TensorRows, TensorRows) {
        let order = layout.order.reshaped(&x.shape, &self.shape);
        let seen = TensorLayout { order, ..layout.clone() };
        let ty = TensorInfo::new(self.shape.clone(), x.dtype);
        let values = |count: u64, dtype: DType| {
            TensorLayout::broadcast_operand(&x.shape, Elements(count), dtype.bytes(), tiles)
        };
        let rows = TensorRows::new(&ty, seen.clone(), &self.statistics_axes)
            .with_result_mapping(values(self.statistics_count(), DType::Float));
        let channels = TensorRows::new(&ty, seen, &self.channel_axes)
            .with_result_mapping(values(self.channel_count(), x.dtype));
        (rows, channels)
    }

    /// The forward pass of layer and group norm; lays out result and statistics.
    pub(crate) fn forward(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
        affine: NormAffineTensors,
    ) -> Result<LoweredOperation, LoweringError> {
        let x = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let (rows, channels) = self.rows(&x, &layout, lowering.tiles);
        let mut work = OperationWork::default();
        let [mean, inverse] = statistics(lowering, node, &mut work, &rows)?;
        rows.apply_broadcast(lowering, &mut work, "Norm/whiten/Sub", BinaryOpType::Subtract, &mean);
        rows.apply_broadcast(
            lowering,
            &mut work,
            "Norm/whiten/Mul",
            BinaryOpType::Multiply,
            &inverse,
        );
        self.scale_and_shift(lowering, &mut work, &channels, affine);
        lowering.set_layout(node.outputs[0], layout);
        Ok(work.into())
    }

    /// The forward pass of batch norm: statistics and channels run along the same rows, so that
    /// whitening, scale and shift come down to one factor and one summand per channel (popart
    /// willow/src/popx/op/batchnormx.cpp).
    pub(crate) fn forward_by_channel(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
        affine: NormAffineTensors,
    ) -> Result<OperationWork, LoweringError> {
        let x = lowering.tensor_type(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let (rows, channels) = self.rows(&x, &layout, lowering.tiles);
        let mut work = OperationWork::default();
        let [mean, _] = statistics(lowering, node, &mut work, &rows)?;
        affine.placed(lowering, &channels);
        for (name, operand, operation) in [
            ("Norm/multiplicand", affine.scale, BinaryOpType::Multiply),
            ("Norm/addend", affine.shift, BinaryOpType::Subtract),
        ] {
            work.append(lowering.relayout_tensor(operand, &mean, name));
            work.push(elementwise::binary(name, operation, DType::Float, &mean.elements));
        }
        rows.apply_broadcast(lowering, &mut work, "Norm/scale", BinaryOpType::Multiply, &mean);
        rows.apply_broadcast(lowering, &mut work, "Norm/shift", BinaryOpType::Add, &mean);
        lowering.set_layout(node.outputs[0], layout);
        Ok(work)
    }

    /// Adds the product with the scale and the sum with the shift.
    fn scale_and_shift(
        &self,
        lowering: &mut LoweringContext,
        work: &mut OperationWork,
        channels: &TensorRows,
        affine: NormAffineTensors,
    ) {
        let [scale, shift] = affine.placed(lowering, channels);
        channels.apply_broadcast(lowering, work, "Norm/scale", BinaryOpType::Multiply, &scale);
        channels.apply_broadcast(lowering, work, "Norm/shift", BinaryOpType::Add, &shift);
    }

    /// The work of a [`NormGradOp`].
    fn backward(
        &self,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> Result<LoweredOperation, LoweringError> {
        let x = lowering.tensor_type(node.inputs[0]).clone();
        let dtype = x.dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let [scale, mean, inverse] =
            [1, 2, 3].map(|input| lowering.layout_or_linear(node.inputs[input]));
        let mut work = lowering.relayout_tensor(node.inputs[4], &layout, "NormGrad");
        let (rows, channels) = self.rows(&x, &layout, lowering.tiles);
        let elements = &layout.elements;
        let start = work.phases().len();
        work.push(elementwise::cast("NormGrad/whiten/OnTileCopy", dtype, dtype, elements));
        rows.apply_broadcast(
            lowering,
            &mut work,
            "NormGrad/whiten/Sub",
            BinaryOpType::Subtract,
            &mean,
        );
        rows.apply_broadcast(
            lowering,
            &mut work,
            "NormGrad/whiten/Mul",
            BinaryOpType::Multiply,
            &inverse,
        );
        let product = |work: &mut OperationWork, name: &str| {
            work.push(elementwise::binary(name, BinaryOpType::Multiply, dtype, elements));
        };
        // Sums of the product and of the gradient itself.
        let sums = |work: &mut OperationWork, of: &TensorRows, names: [&str; 2], output: DType| {
            reduce_together(
                lowering,
                node,
                work,
                of,
                names.map(|name| (name, ReduceOperation::Add)),
                output,
            )
        };
        let first = work.phases().len();
        product(&mut work, "NormGrad/delta/Mul");
        let names = ["NormGrad/delta/scale", "NormGrad/delta/shift"];
        let [scale_gradient, shift_gradient] = sums(&mut work, &channels, names, dtype)?;
        push_temporary(&mut work, "NormGrad/delta/product", layout.bytes(dtype.bytes()), first);
        channels.apply_broadcast(
            lowering,
            &mut work,
            "NormGrad/scale",
            BinaryOpType::Multiply,
            &scale,
        );
        let second = work.phases().len();
        product(&mut work, "NormGrad/statistics/Mul");
        let names = ["NormGrad/statistics/var", "NormGrad/statistics/mean"];
        let [var_delta, mean_delta] = sums(&mut work, &rows, names, DType::Float)?;
        push_temporary(
            &mut work,
            "NormGrad/statistics/product",
            layout.bytes(dtype.bytes()),
            second,
        );
        rows.apply_broadcast(
            lowering,
            &mut work,
            "NormGrad/var/Mul",
            BinaryOpType::Multiply,
            &var_delta,
        );
        work.push(elementwise::binary_in_place(
            "NormGrad/var/Add",
            BinaryOpType::Add,
            dtype,
            elements,
        ));
        rows.apply_broadcast(
            lowering,
            &mut work,
            "NormGrad/mean/Add",
            BinaryOpType::Add,
            &mean_delta,
        );
        rows.apply_broadcast(
            lowering,
            &mut work,
            "NormGrad/iStdDev/Mul",
            BinaryOpType::Multiply,
            &inverse,
        );
        push_temporary(&mut work, "NormGrad/whitened", layout.bytes(dtype.bytes()), start);
        lowering.set_layout(node.outputs[0], layout);
        lowering.set_layout(node.outputs[1], scale_gradient);
        lowering.set_layout(node.outputs[2], shift_gradient);
        Ok(work.into())
    }
}

/// Adds the sums of values and squares of each row and what they make, mean and inverse standard
/// deviation; lays them out.
fn statistics(
    lowering: &mut LoweringContext,
    node: &NodeOperands,
    work: &mut OperationWork,
    rows: &TensorRows,
) -> Result<[TensorLayout; 2], LoweringError> {
    let sums = [("Norm/mean", ReduceOperation::Add), ("Norm/power", ReduceOperation::SquareAdd)];
    let found = reduce_together(lowering, node, work, rows, sums, DType::Float)?;
    let (name, operation) = ("Norm/iStdDev", BinaryOpType::VarianceToInvStdDev);
    let elements = &found[1].elements;
    work.push(elementwise::binary_in_place(name, operation, DType::Float, elements));
    lowering.set_layout(node.outputs[1], found[0].clone());
    lowering.set_layout(node.outputs[2], found[1].clone());
    Ok(found)
}

/// Adds two reductions of the same rows that share compute sets; returns how their results lie.
fn reduce_together(
    lowering: &LoweringContext,
    node: &NodeOperands,
    work: &mut OperationWork,
    rows: &TensorRows,
    reductions: [(&str, ReduceOperation); 2],
    output: DType,
) -> Result<[TensorLayout; 2], LoweringError> {
    let alone = |(name, operation)| {
        let mut work = OperationWork::default();
        let layout = rows.reduce(lowering, node, &mut work, name, operation, output)?;
        Ok((work, layout))
    };
    let [first, second] = reductions.map(alone);
    let ((one, first), (other, second)) = (first?, second?);
    work.append_merged(one, other);
    Ok([first, second])
}

/// Checks that scale and shift have one value per channel.
pub(crate) fn expect_channels(inputs: &[TensorInfo], channels: u64) -> Result<(), ShapeError> {
    match inputs[1..].iter().find(|values| values.shape != [channels]) {
        None => Ok(()),
        Some(values) => Err(ShapeError(format!("{values} is expected to have {channels} values"))),
    }
}

/// Operations per element of the forward pass: two sums, whitening, scale and shift.
pub(crate) const FORWARD_FLOPS_PER_ELEMENT: u64 = 7;

/// Operations per element of the gradient: whitening, two products, four sums, scale and the rest.
const GRADIENT_FLOPS_PER_ELEMENT: u64 = 13;
