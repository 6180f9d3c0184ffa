//! What layer, group and batch norm share: statistics over some axes, and a scale and a shift per
//! channel.
//!
//! As poplin and popnn do it (poplibs lib/poplin/Norms.cpp, lib/popnn/GroupNorm.cpp): sums of
//! values and of squares, in the same compute sets; the inverse standard deviation; difference and product with the
//! statistics; product with the scale and sum with the shift. The gradient whitens the input
//! again, as PopART's does.

use super::parts::{Rows, keep};
use crate::graph::{DType, Node, TensorId, TensorType};
use crate::lower::elementwise::{self, Binary};
use crate::lower::layout::Layout;
use crate::lower::reduce::Operation;
use crate::lower::{LowerError, Lowering, work::Work};

/// How a norm sees its input.
pub(crate) struct Norm {
    /// Shape in which statistics and channels have axes of their own.
    pub shape: Vec<u64>,
    /// Axes that statistics are taken over.
    pub statistics: Vec<usize>,
    /// Axes that all have the same scale and shift.
    pub channels: Vec<usize>,
}

/// Scale, shift and their gradients: one value per channel.
#[derive(Clone, Copy)]
pub(crate) struct Affine {
    pub scale: TensorId,
    pub shift: TensorId,
}

impl Affine {
    /// How scale and shift lie; where nobody placed them yet, as values of the channels do.
    fn placed(self, lowering: &mut Lowering, channels: &Rows) -> [Layout; 2] {
        [self.scale, self.shift].map(|tensor| {
            if let (None, Some(values)) = (lowering.layout(tensor), channels.values()) {
                lowering.lay_out(tensor, values);
            }
            lowering.layout_or_linear(tensor)
        })
    }
}

impl Norm {
    pub(crate) fn statistics_count(&self) -> u64 {
        let kept = (0..self.shape.len()).filter(|axis| !self.statistics.contains(axis));
        kept.map(|axis| self.shape[axis]).product()
    }

    pub(crate) fn channel_count(&self) -> u64 {
        let kept = (0..self.shape.len()).filter(|axis| !self.channels.contains(axis));
        kept.map(|axis| self.shape[axis]).product()
    }

    /// Types of the outputs of a forward pass: result, mean, inverse standard deviation.
    pub(crate) fn outputs(&self, x: &TensorType) -> Vec<TensorType> {
        let statistics = TensorType::new([self.statistics_count()], DType::Float);
        vec![x.clone(), statistics.clone(), statistics]
    }

    /// Rows of `x` that share statistics, and rows that share a channel. One value for each of
    /// them is made where `poputil::createBroadcastOperand` places it.
    fn rows(&self, x: &TensorType, layout: &Layout, tiles: u32) -> (Rows, Rows) {
        let order = layout.order.reshaped(&x.shape, &self.shape);
        let seen = Layout { order, ..layout.clone() };
        let ty = TensorType::new(self.shape.clone(), x.dtype);
        let values =
            |count, dtype: DType| Layout::broadcast_operand(&x.shape, count, dtype.bytes(), tiles);
        let rows = Rows::new(&ty, seen.clone(), &self.statistics)
            .with_values(values(self.statistics_count(), DType::Float));
        let channels =
            Rows::new(&ty, seen, &self.channels).with_values(values(self.channel_count(), x.dtype));
        (rows, channels)
    }

    /// The forward pass of layer and group norm; lays out result and statistics.
    pub(crate) fn forward(
        &self,
        lowering: &mut Lowering,
        node: &Node,
        affine: Affine,
    ) -> Result<Work, LowerError> {
        let x = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let (rows, channels) = self.rows(&x, &layout, lowering.tiles);
        let mut work = Work::default();
        let [mean, inverse] = statistics(lowering, node, &mut work, &rows)?;
        rows.apply(lowering, &mut work, "Norm/whiten/Sub", Binary::Subtract, &mean);
        rows.apply(lowering, &mut work, "Norm/whiten/Mul", Binary::Multiply, &inverse);
        self.scale_and_shift(lowering, &mut work, &channels, affine);
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    /// The forward pass of batch norm: statistics and channels run along the same rows, so that
    /// whitening, scale and shift come down to one factor and one summand per channel (popart
    /// willow/src/popx/op/batchnormx.cpp).
    pub(crate) fn forward_by_channel(
        &self,
        lowering: &mut Lowering,
        node: &Node,
        affine: Affine,
    ) -> Result<Work, LowerError> {
        let x = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let (rows, channels) = self.rows(&x, &layout, lowering.tiles);
        let mut work = Work::default();
        let [mean, _] = statistics(lowering, node, &mut work, &rows)?;
        affine.placed(lowering, &channels);
        for (name, operand, operation) in [
            ("Norm/multiplicand", affine.scale, Binary::Multiply),
            ("Norm/addend", affine.shift, Binary::Subtract),
        ] {
            work.append(lowering.bring(operand, &mean, name));
            work.push(elementwise::binary(name, operation, DType::Float, &mean.elements));
        }
        rows.apply(lowering, &mut work, "Norm/scale", Binary::Multiply, &mean);
        rows.apply(lowering, &mut work, "Norm/shift", Binary::Add, &mean);
        lowering.lay_out(node.outputs[0], layout);
        Ok(work)
    }

    /// Adds the product with the scale and the sum with the shift.
    fn scale_and_shift(
        &self,
        lowering: &mut Lowering,
        work: &mut Work,
        channels: &Rows,
        affine: Affine,
    ) {
        let [scale, shift] = affine.placed(lowering, channels);
        channels.apply(lowering, work, "Norm/scale", Binary::Multiply, &scale);
        channels.apply(lowering, work, "Norm/shift", Binary::Add, &shift);
    }

    /// The gradient. Operands of `node`: input, scale, mean, inverse standard deviation, gradient
    /// of the output; results: gradients of input, scale and shift.
    pub(crate) fn backward(
        &self,
        lowering: &mut Lowering,
        node: &Node,
    ) -> Result<Work, LowerError> {
        let x = lowering.ty(node.inputs[0]).clone();
        let dtype = x.dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let [scale, mean, inverse] =
            [1, 2, 3].map(|input| lowering.layout_or_linear(node.inputs[input]));
        let mut work = lowering.bring(node.inputs[4], &layout, "NormGrad");
        let (rows, channels) = self.rows(&x, &layout, lowering.tiles);
        let elements = &layout.elements;
        let start = work.phases().len();
        work.push(elementwise::cast("NormGrad/whiten/OnTileCopy", dtype, dtype, elements));
        rows.apply(lowering, &mut work, "NormGrad/whiten/Sub", Binary::Subtract, &mean);
        rows.apply(lowering, &mut work, "NormGrad/whiten/Mul", Binary::Multiply, &inverse);
        let product = |work: &mut Work, name: &str| {
            work.push(elementwise::binary(name, Binary::Multiply, dtype, elements));
        };
        // Sums of the product and of the gradient itself.
        let sums = |work: &mut Work, of: &Rows, names: [&str; 2], output: DType| {
            reduce_together(
                lowering,
                node,
                work,
                of,
                names.map(|name| (name, Operation::Add)),
                output,
            )
        };
        let first = work.phases().len();
        product(&mut work, "NormGrad/delta/Mul");
        let names = ["NormGrad/delta/scale", "NormGrad/delta/shift"];
        let [scale_gradient, shift_gradient] = sums(&mut work, &channels, names, dtype)?;
        keep(&mut work, "NormGrad/delta/product", layout.bytes(dtype.bytes()), first);
        channels.apply(lowering, &mut work, "NormGrad/scale", Binary::Multiply, &scale);
        let second = work.phases().len();
        product(&mut work, "NormGrad/statistics/Mul");
        let names = ["NormGrad/statistics/var", "NormGrad/statistics/mean"];
        let [var_delta, mean_delta] = sums(&mut work, &rows, names, DType::Float)?;
        keep(&mut work, "NormGrad/statistics/product", layout.bytes(dtype.bytes()), second);
        rows.apply(lowering, &mut work, "NormGrad/var/Mul", Binary::Multiply, &var_delta);
        work.push(elementwise::binary_in_place("NormGrad/var/Add", Binary::Add, dtype, elements));
        rows.apply(lowering, &mut work, "NormGrad/mean/Add", Binary::Add, &mean_delta);
        rows.apply(lowering, &mut work, "NormGrad/iStdDev/Mul", Binary::Multiply, &inverse);
        keep(&mut work, "NormGrad/whitened", layout.bytes(dtype.bytes()), start);
        lowering.lay_out(node.outputs[0], layout);
        lowering.lay_out(node.outputs[1], scale_gradient);
        lowering.lay_out(node.outputs[2], shift_gradient);
        Ok(work)
    }
}

/// Adds the sums of values and squares of each row and what they make, mean and inverse standard
/// deviation; lays them out.
fn statistics(
    lowering: &mut Lowering,
    node: &Node,
    work: &mut Work,
    rows: &Rows,
) -> Result<[Layout; 2], LowerError> {
    let sums = [("Norm/mean", Operation::Add), ("Norm/power", Operation::SquareAdd)];
    let found = reduce_together(lowering, node, work, rows, sums, DType::Float)?;
    let (name, operation) = ("Norm/iStdDev", Binary::VarianceToInvStdDev);
    let elements = &found[1].elements;
    work.push(elementwise::binary_in_place(name, operation, DType::Float, elements));
    lowering.lay_out(node.outputs[1], found[0].clone());
    lowering.lay_out(node.outputs[2], found[1].clone());
    Ok(found)
}

/// Adds two reductions of the same rows that share compute sets; returns how their results lie.
fn reduce_together(
    lowering: &Lowering,
    node: &Node,
    work: &mut Work,
    rows: &Rows,
    reductions: [(&str, Operation); 2],
    output: DType,
) -> Result<[Layout; 2], LowerError> {
    let alone = |(name, operation)| {
        let mut work = Work::default();
        let layout = rows.reduce(lowering, node, &mut work, name, operation, output)?;
        Ok((work, layout))
    };
    let [first, second] = reductions.map(alone);
    let ((one, first), (other, second)) = (first?, second?);
    work.append_together(one, other);
    Ok([first, second])
}

/// Checks that scale and shift have one value per channel.
pub(crate) fn expect_channels(inputs: &[TensorType], channels: u64) -> Result<(), String> {
    match inputs[1..].iter().find(|values| values.shape != [channels]) {
        None => Ok(()),
        Some(values) => Err(format!("{values} is expected to have {channels} values")),
    }
}

/// Operations per element of the forward pass: two sums, whitening, scale and shift.
pub(crate) const FLOPS: u64 = 7;

/// Operations per element of the gradient: whitening, two products, four sums, scale and the rest.
pub(crate) const GRADIENT_FLOPS: u64 = 13;
