//! What layer, group and batch norm share: statistics over some axes, and a scale and a shift per
//! channel.
//!
//! As poplin and popnn do it (poplibs lib/poplin/Norms.cpp, lib/popnn/GroupNorm.cpp): sums of
//! values and of squares; the inverse standard deviation; difference and product with the
//! statistics; product with the scale and sum with the shift. The gradient whitens the input
//! again, as PopART's does.

use super::parts::{Rows, keep};
use crate::sim::graph::{DType, Node, TensorId, TensorType};
use crate::sim::lower::elementwise::{self, Binary};
use crate::sim::lower::layout::Layout;
use crate::sim::lower::reduce::Operation;
use crate::sim::lower::{LowerError, Lowering, work::Work};

/// How a norm sees its input.
pub struct Norm {
    /// Shape in which statistics and channels have axes of their own.
    pub shape: Vec<u64>,
    /// Axes that statistics are taken over.
    pub statistics: Vec<usize>,
    /// Axes that all have the same scale and shift.
    pub channels: Vec<usize>,
}

/// Scale, shift and their gradients: one value per channel.
#[derive(Clone, Copy)]
pub struct Affine {
    /// Factors.
    pub scale: TensorId,
    /// Summands.
    pub shift: TensorId,
}

impl Norm {
    /// Number of statistics.
    pub fn statistics_count(&self) -> u64 {
        let kept = (0..self.shape.len()).filter(|axis| !self.statistics.contains(axis));
        kept.map(|axis| self.shape[axis]).product()
    }

    /// Number of channels.
    pub fn channel_count(&self) -> u64 {
        let kept = (0..self.shape.len()).filter(|axis| !self.channels.contains(axis));
        kept.map(|axis| self.shape[axis]).product()
    }

    /// Types of the outputs of a forward pass: result, mean, inverse standard deviation.
    pub fn outputs(&self, x: &TensorType) -> Vec<TensorType> {
        let statistics = TensorType::new([self.statistics_count()], DType::Float);
        vec![x.clone(), statistics.clone(), statistics]
    }

    /// Rows of `x` that share statistics, and rows that share a channel.
    fn rows(&self, x: &TensorType, layout: &Layout) -> (Rows, Rows) {
        let order = layout.order.reshaped(&x.shape, &self.shape);
        let seen = Layout { order, ..layout.clone() };
        let ty = TensorType::new(self.shape.clone(), x.dtype);
        (Rows::new(&ty, seen.clone(), &self.statistics), Rows::new(&ty, seen, &self.channels))
    }

    /// The forward pass; lays out result and statistics.
    pub fn forward(
        &self,
        lowering: &mut Lowering,
        node: &Node,
        affine: Affine,
    ) -> Result<Work, LowerError> {
        let x = lowering.ty(node.inputs[0]).clone();
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let (rows, channels) = self.rows(&x, &layout);
        let mut work = Work::default();
        let float = DType::Float;
        let sum = |work: &mut Work, name, operation| {
            rows.reduce(lowering, node, work, name, operation, float)
        };
        let mean = sum(&mut work, "Norm/mean", Operation::Add)?;
        let power = sum(&mut work, "Norm/power", Operation::SquareAdd)?;
        let (name, operation) = ("Norm/iStdDev", Binary::VarianceToInvStdDev);
        work.push(elementwise::binary_in_place(name, operation, float, &power.elements));
        rows.apply(lowering, &mut work, "Norm/whiten/Sub", Binary::Subtract, &mean);
        rows.apply(lowering, &mut work, "Norm/whiten/Mul", Binary::Multiply, &power);
        self.scale_and_shift(lowering, &mut work, &channels, affine);
        lowering.lay_out(node.outputs[0], layout);
        lowering.lay_out(node.outputs[1], mean);
        lowering.lay_out(node.outputs[2], power);
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
        let scale = lowering.layout_or_linear(affine.scale);
        let shift = lowering.layout_or_linear(affine.shift);
        channels.apply(lowering, work, "Norm/scale", Binary::Multiply, &scale);
        channels.apply(lowering, work, "Norm/shift", Binary::Add, &shift);
    }

    /// The gradient. Operands of `node`: input, scale, mean, inverse standard deviation, gradient
    /// of the output; results: gradients of input, scale and shift.
    pub fn backward(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let x = lowering.ty(node.inputs[0]).clone();
        let dtype = x.dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        let [scale, mean, inverse] =
            [1, 2, 3].map(|input| lowering.layout_or_linear(node.inputs[input]));
        let mut work = lowering.bring(node.inputs[4], &layout, "NormGrad");
        let (rows, channels) = self.rows(&x, &layout);
        let elements = &layout.elements;
        let start = work.phases().len();
        work.push(elementwise::cast("NormGrad/whiten/OnTileCopy", dtype, dtype, elements));
        rows.apply(lowering, &mut work, "NormGrad/whiten/Sub", Binary::Subtract, &mean);
        rows.apply(lowering, &mut work, "NormGrad/whiten/Mul", Binary::Multiply, &inverse);
        let product = |work: &mut Work, name: &str| {
            work.push(elementwise::binary(name, Binary::Multiply, dtype, elements));
        };
        let sum = |work: &mut Work, of: &Rows, name: &str, output: DType| {
            of.reduce(lowering, node, work, name, Operation::Add, output)
        };
        let first = work.phases().len();
        product(&mut work, "NormGrad/delta/Mul");
        let scale_gradient = sum(&mut work, &channels, "NormGrad/delta/scale", dtype)?;
        keep(&mut work, "NormGrad/delta/product", layout.bytes(dtype.bytes()), first);
        let shift_gradient = sum(&mut work, &channels, "NormGrad/delta/shift", dtype)?;
        channels.apply(lowering, &mut work, "NormGrad/scale", Binary::Multiply, &scale);
        let second = work.phases().len();
        product(&mut work, "NormGrad/statistics/Mul");
        let var_delta = sum(&mut work, &rows, "NormGrad/statistics/var", DType::Float)?;
        keep(&mut work, "NormGrad/statistics/product", layout.bytes(dtype.bytes()), second);
        let mean_delta = sum(&mut work, &rows, "NormGrad/statistics/mean", DType::Float)?;
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

/// Checks that scale and shift have one value per channel.
pub fn expect_channels(inputs: &[TensorType], channels: u64) -> Result<(), String> {
    match inputs[1..].iter().find(|values| values.shape != [channels]) {
        None => Ok(()),
        Some(values) => Err(format!("{values} is expected to have {channels} values")),
    }
}

/// Operations per element of the forward pass: two sums, whitening, scale and shift.
pub const FLOPS: u64 = 7;

/// Operations per element of the gradient: whitening, two products, four sums, scale and the rest.
pub const GRADIENT_FLOPS: u64 = 13;
