//! Common parts of layer, group and batch norm: statistics over some axes, and a scale and a shift
//! per channel.
//!
//! The phases are those of poplin and popnn (poplibs lib/poplin/Norms.cpp,
//! lib/popnn/GroupNorm.cpp): sums of values and of squares, in the same compute sets; the inverse
//! standard deviation; difference and product with the statistics; product with the scale and sum
//! with the shift. The gradient whitens the input again, as PopART's does.

mod distributed;

use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::popops::rearrange::{self, TransposeBlockShape};
use crate::popops::reduce::{ReduceError, ReduceOperation};
use crate::popops::relayout;
use crate::popops::rows::TensorRows;
use crate::poputil::tensor_layout::{ElementOrder, Innermost, LOAD_BYTES, TensorLayout};
use crate::shape::{DType, TensorInfo, gcd};
use crate::targets::IpuTarget;
use tilescope_report::units::Elements;

/// Axes of the input of a norm.
pub(crate) struct NormAxes {
    /// Shape in which statistics and channels have separate axes.
    pub shape: Vec<u64>,
    /// Axes over which statistics are computed.
    pub statistics_axes: Vec<usize>,
    /// Axes with a common scale and shift.
    pub channel_axes: Vec<usize>,
}

/// Grouping of values for statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NormKind {
    /// Statistics of each channel, over the batch.
    Batch,
    /// Statistics along the last axis.
    Layer,
    /// Statistics of each group of channels of one sample.
    Group {
        /// Number of groups of channels.
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

    /// Rows of `x` on the tiles. Values for rows are placed as `poputil::createBroadcastOperand`
    /// places them.
    pub(crate) fn rows(
        &self,
        machine: &IpuTarget,
        x: &TensorInfo,
        layout: &TensorLayout,
    ) -> NormRows {
        let (ty, seen) = self.seen(x, layout);
        let row_values = TensorLayout::broadcast_operand(
            &x.shape,
            Elements(self.statistics_count()),
            DType::Float.bytes(),
            machine.tiles,
        );
        let channel_values = TensorLayout::broadcast_operand(
            &x.shape,
            Elements(self.channel_count()),
            x.dtype.bytes(),
            machine.tiles,
        );
        let statistics = TensorRows::new(&ty, seen.clone(), &self.statistics_axes)
            .with_result_mapping(row_values.clone());
        let channels =
            TensorRows::new(&ty, seen, &self.channel_axes).with_result_mapping(channel_values);
        NormRows { machine: *machine, layout: layout.clone(), statistics, row_values, channels }
    }

    /// Type and layout of `x` in the shape of the statistics.
    fn seen(&self, x: &TensorInfo, layout: &TensorLayout) -> (TensorInfo, TensorLayout) {
        (TensorInfo::new(self.shape.clone(), x.dtype), layout.clone())
    }

    /// Adds the phases that make channels contiguous for the sums over rows, at least a vector of
    /// them, if other elements are contiguous so far. Returns the rows of these sums (poplibs
    /// lib/popnn/GroupNorm.cpp, groupNormStatistics). Later phases use the original layout.
    pub(crate) fn regroup_channels(
        &self,
        work: &mut OperationWork,
        machine: &IpuTarget,
        x: &TensorInfo,
        layout: &TensorLayout,
    ) -> Option<TensorRows> {
        let (ty, seen) = self.seen(x, layout);
        let &[rows, channels] = ty.shape.as_slice() else { return None };
        let width = elementwise::vector_width(x.dtype);
        let vectors = Innermost { step: Some(1), group: gcd(width, channels) };
        let blocks = rearrange::blocks_between(&ty, &seen, vectors)?;
        let regrouped = rearrange::regroup(work, machine, &ty, &seen, (blocks, vectors), "Norm");
        // Blocks of some rows and channels each, along the channels first.
        let TransposeBlockShape { from, to } = regrouped.blocks;
        let blocks = TensorInfo::new([rows / from, channels / to, from, to], x.dtype);
        let order = ElementOrder::Linear;
        let values = TensorLayout::broadcast_operand(
            &x.shape,
            Elements(self.statistics_count()),
            DType::Float.bytes(),
            machine.tiles,
        );
        let of_blocks = TensorLayout { order, ..regrouped.layout };
        Some(TensorRows::new(&blocks, of_blocks, &[1, 3]).with_result_mapping(values))
    }
}

/// Input of a norm on the tiles.
pub(crate) struct NormRows {
    machine: IpuTarget,
    layout: TensorLayout,
    /// Rows with common statistics.
    statistics: TensorRows,
    /// Layout of one value for each of these rows.
    row_values: TensorLayout,
    /// Rows with a common channel.
    channels: TensorRows,
}

/// Layout of the statistics of a norm, one value for each row.
pub(crate) struct NormStatistics {
    pub mean: TensorLayout,
    pub inverse_deviation: TensorLayout,
}

/// Layouts of the sums of a gradient.
struct NormGradientSums {
    /// Gradients of scale and shift.
    affine: [TensorLayout; 2],
    /// Sums of the product with the whitened input, and of the gradient alone.
    deltas: [TensorLayout; 2],
    /// First phase in which the whitened input exists.
    start: usize,
}

impl NormRows {
    /// Default layout of scale and shift.
    pub(crate) fn channel_layout(&self) -> Option<TensorLayout> {
        self.channels.result_layout()
    }

    /// Adds the sums of values and squares of each row, of the input or of `regrouped` rows of it,
    /// and the statistics computed from them.
    pub(crate) fn statistics(
        &self,
        work: &mut OperationWork,
        regrouped: Option<&TensorRows>,
    ) -> Result<NormStatistics, ReduceError> {
        let [mean, power] = self.sums(work, regrouped)?;
        Ok(Self::statistics_of_sums(work, mean, power))
    }

    /// Adds the sums of values and of squares of each row. Returns their layouts.
    fn sums(
        &self,
        work: &mut OperationWork,
        regrouped: Option<&TensorRows>,
    ) -> Result<[TensorLayout; 2], ReduceError> {
        let rows = regrouped.unwrap_or(&self.statistics);
        let sums =
            [("Norm/mean", ReduceOperation::Add), ("Norm/power", ReduceOperation::SquareAdd)];
        self.reduce_together(work, rows, sums, DType::Float)
    }

    /// Adds the computation of inverse deviations from the sums of squares.
    fn statistics_of_sums(
        work: &mut OperationWork,
        mean: TensorLayout,
        power: TensorLayout,
    ) -> NormStatistics {
        let name = "Norm/iStdDev";
        let operation = BinaryOpType::VarianceToInvStdDev;
        work.push(elementwise::in_place(
            name,
            ElementwiseOp::Binary(operation),
            DType::Float,
            &power.elements,
        ));
        NormStatistics { mean, inverse_deviation: power }
    }

    /// Adds the difference and product with the statistics, the product with the scale and the sum
    /// with the shift.
    pub(crate) fn normalise(
        &self,
        work: &mut OperationWork,
        statistics: &NormStatistics,
        [scale, shift]: [&TensorLayout; 2],
    ) {
        self.whiten(work, "Norm/whiten", statistics);
        let machine = &self.machine;
        let channels = &self.channels;
        channels.apply_broadcast(machine, work, "Norm/scale", BinaryOpType::Multiply, scale);
        channels.apply_broadcast(machine, work, "Norm/shift", BinaryOpType::Add, shift);
    }

    /// As [`Self::normalise`], if statistics and channels use the same rows, so that whitening,
    /// scale and shift reduce to one factor and one summand per channel (popart
    /// willow/src/popx/op/batchnormx.cpp).
    pub(crate) fn normalise_by_channel(
        &self,
        work: &mut OperationWork,
        statistics: &NormStatistics,
        [scale, shift]: [(&TensorInfo, &TensorLayout); 2],
    ) {
        let machine = &self.machine;
        let rows = &self.statistics;
        let mean = &statistics.mean;
        for (name, (ty, layout), operation) in [
            ("Norm/multiplicand", scale, BinaryOpType::Multiply),
            ("Norm/addend", shift, BinaryOpType::Subtract),
        ] {
            work.append(relayout::bring(machine, ty, layout, mean, name));
            work.push(elementwise::apart(
                name,
                ElementwiseOp::Binary(operation),
                DType::Float,
                &mean.elements,
            ));
        }
        rows.apply_broadcast(machine, work, "Norm/scale", BinaryOpType::Multiply, mean);
        rows.apply_broadcast(machine, work, "Norm/shift", BinaryOpType::Add, mean);
    }

    /// Adds the gradient of the input. Returns the layouts of the gradients of scale and shift. The
    /// gradient of the output has the layout of the input.
    pub(crate) fn gradient(
        &self,
        work: &mut OperationWork,
        scale: &TensorLayout,
        statistics: &NormStatistics,
    ) -> Result<[TensorLayout; 2], ReduceError> {
        let dtype = self.statistics.dtype;
        let elements = &self.layout.elements;
        let machine = &self.machine;
        let rows = &self.statistics;
        let NormGradientSums { affine, deltas: [var_delta, mean_delta], start } =
            self.gradient_sums(work, scale, statistics)?;
        let name = "NormGrad/var/Mul";
        rows.apply_broadcast(machine, work, name, BinaryOpType::Multiply, &var_delta);
        let name = "NormGrad/var/Add";
        work.push(elementwise::in_place(
            name,
            ElementwiseOp::Binary(BinaryOpType::Add),
            dtype,
            elements,
        ));
        rows.apply_broadcast(machine, work, "NormGrad/mean/Add", BinaryOpType::Add, &mean_delta);
        self.scale_by_deviation(work, statistics);
        work.push_temporary("NormGrad/whitened", self.layout.bytes(dtype.bytes()), start);
        Ok(affine)
    }

    /// Adds the sums on which the gradient depends, and the product of the gradient of the output
    /// with the scale.
    fn gradient_sums(
        &self,
        work: &mut OperationWork,
        scale: &TensorLayout,
        statistics: &NormStatistics,
    ) -> Result<NormGradientSums, ReduceError> {
        let dtype = self.statistics.dtype;
        let elements = &self.layout.elements;
        let start = work.phases().len();
        work.push(relayout::copy("NormGrad/whiten", dtype, elements, LOAD_BYTES / dtype.bytes()));
        self.whiten(work, "NormGrad/whiten", statistics);
        let multiply = ElementwiseOp::Binary(BinaryOpType::Multiply);
        let machine = &self.machine;
        let rows = &self.statistics;
        let channels = &self.channels;
        let first = work.phases().len();
        work.push(elementwise::apart("NormGrad/delta/Mul", multiply, dtype, elements));
        // Sums of the product and of the gradient itself.
        let sums = ["NormGrad/delta/scale", "NormGrad/delta/shift"]
            .map(|name| (name, ReduceOperation::Add));
        let affine = self.reduce_together(work, channels, sums, dtype)?;
        // Each temporary needs its own runs, because the allocator joins variables that share runs.
        let product_bytes = self.layout.bytes(dtype.bytes());
        work.push_temporary("NormGrad/delta/product", product_bytes, first);
        channels.apply_broadcast(machine, work, "NormGrad/scale", BinaryOpType::Multiply, scale);
        let second = work.phases().len();
        work.push(elementwise::apart("NormGrad/statistics/Mul", multiply, dtype, elements));
        let sums = ["NormGrad/statistics/var", "NormGrad/statistics/mean"]
            .map(|name| (name, ReduceOperation::Add));
        let deltas = self.reduce_together(work, rows, sums, DType::Float)?;
        let product_bytes = self.layout.bytes(dtype.bytes());
        work.push_temporary("NormGrad/statistics/product", product_bytes, second);
        Ok(NormGradientSums { affine, deltas, start })
    }

    /// Adds the product of the future gradient with the inverse deviations.
    fn scale_by_deviation(&self, work: &mut OperationWork, statistics: &NormStatistics) {
        let rows = &self.statistics;
        let inverse = &statistics.inverse_deviation;
        let name = "NormGrad/iStdDev/Mul";
        let operation = BinaryOpType::Multiply;
        rows.apply_broadcast(&self.machine, work, name, operation, inverse);
    }

    /// Adds the difference and the product with the statistics.
    fn whiten(&self, work: &mut OperationWork, name: &str, statistics: &NormStatistics) {
        let NormStatistics { mean, inverse_deviation } = statistics;
        for (step, operation, values) in [
            ("Sub", BinaryOpType::Subtract, mean),
            ("Mul", BinaryOpType::Multiply, inverse_deviation),
        ] {
            let name = format!("{name}/{step}");
            self.statistics.apply_broadcast(&self.machine, work, &name, operation, values);
        }
    }

    /// Adds two reductions of the same rows that share compute sets. Returns the layouts of their
    /// results.
    fn reduce_together(
        &self,
        work: &mut OperationWork,
        rows: &TensorRows,
        reductions: [(&str, ReduceOperation); 2],
        output: DType,
    ) -> Result<[TensorLayout; 2], ReduceError> {
        let [(one_name, one_operation), (other_name, other_operation)] = reductions;
        let mut one = OperationWork::default();
        let mut other = OperationWork::default();
        let first = rows.reduce(&self.machine, &mut one, one_name, one_operation, output)?;
        let second = rows.reduce(&self.machine, &mut other, other_name, other_operation, output)?;
        work.append_merged(one, other);
        Ok([first, second])
    }
}
