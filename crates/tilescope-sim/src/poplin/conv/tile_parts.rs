//! Parts of a planned operation on the tiles.
//!
//! Axes are cut into grains, and part `i` of `n` gets the grains from `i * grains / n` to
//! `(i + 1) * grains / n`, so parts differ by at most one grain. Parts are assigned to tiles with
//! output channels innermost, then the field, batch, kernel, input channels and groups (poplibs
//! `Convolution.cpp` linearizeTileIndices and iteratePartitionParallel).

use crate::poplin::params::{OperandTransform, OutputTransform};
use crate::poplin::planner::cost_model::ConvGrainSize;
use crate::poplin::planner::{ConvPlan, LinearizeTileOrder};
use crate::poplin::{ConvParams, FieldDim};
use std::ops::Range;
use tilescope_report::units::Elements;
use tilescope_report::{TileDigit, TileGroups};

/// Part that one tile computes in one serial iteration. Channels and groups are padded to whole
/// groups of the vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConvTilePart {
    /// Outputs of each dimension.
    pub field: [Range<u64>; 3],
    /// Kernel elements of each dimension.
    pub kernel: [Range<u64>; 3],
    /// Input positions of each dimension, including the halo.
    pub inputs: [u64; 3],
    pub batch: u64,
    /// Conv groups, with and without padding.
    pub groups: PaddedSize,
    /// Input channels of a group.
    pub in_channels: PaddedSize,
    /// Output channels of a group.
    pub out_channels: PaddedSize,
    /// Index of this tile among those with partial sums of the same outputs.
    pub member: u64,
}

/// Size with and without padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PaddedSize {
    /// Size with padding.
    pub size: u64,
    /// Size without padding.
    pub real: u64,
}

/// Plan applied to its shape: all sizes that lowering needs.
#[derive(Clone, Debug)]
pub(crate) struct PartitionedConv {
    /// Shape of one serial iteration after the transform, without padding of channels.
    pub slice: ConvParams,
    /// The same shape with channels padded to whole groups.
    pub padded: ConvParams,
    /// Parts in tile order.
    pub parts: Vec<ConvTilePart>,
    /// Axes of the partition with their number of parts, in the order of tile numbers, outermost
    /// first.
    axes: Vec<(ConvAxis, u32)>,
}

/// Axis of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConvAxis {
    Groups,
    InChannels,
    Kernel,
    Batch,
    Field,
    OutChannels,
}

impl ConvAxis {
    /// The axes as they are numbered in a partition.
    const ALL: [Self; 10] = [
        Self::Groups,
        Self::InChannels,
        Self::Kernel,
        Self::Kernel,
        Self::Kernel,
        Self::Batch,
        Self::Field,
        Self::Field,
        Self::Field,
        Self::OutChannels,
    ];
}

impl PartitionedConv {
    /// Computes the parts of `plan`.
    pub(crate) fn from_plan(plan: &ConvPlan) -> Self {
        let split = &plan.partition;
        let grain = ConvGrainSize::of_vertex(&plan.vertex);
        let shape = &plan.transformed.shape;
        let slice = ConvParams {
            in_channels: shape.in_channels.div_ceil(split.in_channels_serial),
            out_channels: shape.out_channels.div_ceil(split.out_channels_serial),
            ..shape.clone()
        };
        let padded = ConvParams {
            conv_groups: slice.conv_groups.next_multiple_of(grain.groups),
            in_channels: slice.in_channels.next_multiple_of(grain.in_channels),
            out_channels: slice.out_channels.next_multiple_of(grain.out_channels),
            ..slice.clone()
        };
        let (parts, axes) = cut_parts(plan, &slice, grain);
        Self { slice, padded, parts, axes }
    }

    /// Groups of tiles that differ only in parts of the `joined` axes.
    pub(crate) fn tile_groups(&self, joined: &[ConvAxis]) -> TileGroups {
        let digits = self.axes.iter().map(|(axis, size)| {
            if joined.contains(axis) { TileDigit::joined(*size) } else { TileDigit::apart(*size) }
        });
        groups_of(digits)
    }

    /// Groups of tiles that add partial sums of the same outputs in a stage with `sums` sums, or
    /// `None` if they have no simple form.
    pub(crate) fn reduction_groups(&self, sums: u64) -> Option<TileGroups> {
        let summed = [ConvAxis::InChannels, ConvAxis::Kernel];
        let is_summed = |(axis, size): &&(ConvAxis, u32)| *size > 1 && summed.contains(axis);
        let first = self.axes.iter().position(|axis| is_summed(&axis))?;
        let count = self.axes.iter().filter(is_summed).count();
        // Input channels come before parts of the kernel, which takes part in the number of a
        // member.
        let mut members = self.axes[first..].iter().filter(|(_, size)| *size > 1);
        if !members.by_ref().take(count).all(|axis| is_summed(&axis)) {
            return None;
        }
        let depth = self.axes.iter().filter(is_summed).map(|(_, size)| *size).product();
        let parts = u32::try_from(sums).ok()?;
        let mut digits = Vec::new();
        for (at, axis) in self.axes.iter().enumerate() {
            if at == first {
                digits.push(TileDigit { size: depth, parts });
            } else if !is_summed(&axis) {
                digits.push(TileDigit::apart(axis.1));
            }
        }
        Some(groups_of(digits.into_iter()))
    }

    /// The tiles whose parts read an operand. `None` if parts overlap, as with halos, or if rows are
    /// divided along more than one axis.
    pub(crate) fn readers(&self, is_input: bool) -> Option<OperandReaders> {
        let slice = &self.slice;
        let is_plain = slice.dims.iter().all(|dim| {
            dim.kernel == 1
                && dim.input_transform == OperandTransform::NONE
                && dim.kernel_transform == OperandTransform::NONE
                && dim.output_transform == OutputTransform::NONE
        });
        if !is_plain || slice.conv_groups != 1 {
            return None;
        }
        let rows_axis = match (is_input, slice.batch) {
            (false, _) => ConvAxis::OutChannels,
            (true, 1) => ConvAxis::Field,
            (true, _) => ConvAxis::Batch,
        };
        let long = slice.dims.iter().filter(|dim| dim.input > 1).count();
        if is_input && long > usize::from(slice.batch == 1) {
            return None;
        }
        let mut readers = OperandReaders { users: 1, ..OperandReaders::default() };
        let mut of_parts = Vec::new();
        let mut distance: usize = self.axes.iter().map(|(_, count)| *count as usize).product();
        for (axis, count) in &self.axes {
            distance /= *count as usize;
            let digit = [*count, u32::try_from(distance).ok()?];
            let first_parts = self.parts.iter().step_by(distance.max(1)).take(*count as usize);
            if *axis == ConvAxis::InChannels {
                readers.channels = first_parts.map(|part| part.in_channels.real).collect();
                of_parts.insert(0, digit);
            } else if *axis == rows_axis && *count > 1 {
                readers.rows = first_parts.map(|part| part.rows(is_input)).collect();
                of_parts.push(digit);
            } else if *count > 1 {
                readers.users *= u64::from(*count);
                readers.digits.push(digit);
            }
        }
        if readers.rows.is_empty() {
            readers.rows = vec![self.parts.first()?.rows(is_input)];
        }
        readers.digits.extend(of_parts);
        let elements = self.parts.iter().map(|part| part.rows(is_input) * part.in_channels.real);
        readers.elements = elements.map(Elements).collect();
        Some(readers)
    }

    pub(crate) fn dims(&self) -> usize {
        self.slice.dims.len()
    }

    /// Input elements that a tile needs, including the halo, with padded channels.
    pub(crate) fn inputs(&self, part: &ConvTilePart) -> Elements {
        let field: u64 = part.inputs.iter().product();
        Elements(field * part.batch * part.in_channels.size * part.groups.size)
    }

    /// Weights that a tile needs, channels padded.
    pub(crate) fn weights(&self, part: &ConvTilePart) -> Elements {
        let channels = part.in_channels.size * part.out_channels.size;
        Elements(part.kernel_elements() * channels * part.groups.size)
    }

    /// Partial sums that a tile computes, channels padded.
    pub(crate) fn partials(&self, part: &ConvTilePart) -> Elements {
        Elements(part.field_elements() * part.batch * part.out_channels.size * part.groups.size)
    }

    /// Effective multiply-accumulates of a tile, without those on padding and on truncated
    /// elements.
    pub(crate) fn macs(&self, part: &ConvTilePart) -> u64 {
        let mut field_macs = 1;
        for (dim, field) in self.slice.dims.iter().enumerate() {
            // Outputs between the steps meet zeros of a dilated input, and the vertex skips them.
            let step = field.active_output_step();
            let mut dim_macs = 0;
            for kernel in part.kernel[dim].clone() {
                let outputs = field.outputs_of_kernel(&part.field[dim], kernel);
                dim_macs += length(&outputs).div_ceil(step);
            }
            field_macs *= dim_macs;
        }
        field_macs * part.batch * part.in_channels.real * part.out_channels.real * part.groups.real
    }
}

/// Joins adjacent digits of a kind.
fn groups_of(digits: impl Iterator<Item = TileDigit>) -> TileGroups {
    let mut joined: Vec<TileDigit> = Vec::new();
    for digit in digits.filter(|digit| digit.size > 1) {
        match joined.last_mut() {
            Some(last) if last.parts == 1 && digit.parts == 1 => last.size *= digit.size,
            Some(last) if last.parts == last.size && digit.parts == digit.size => {
                *last = TileDigit::apart(last.size * digit.size);
            }
            _ => joined.push(digit),
        }
    }
    TileGroups::of_digits(joined)
}

/// Parts of one serial iteration `slice`, in tile order, and the axes of that order.
fn cut_parts(
    plan: &ConvPlan,
    slice: &ConvParams,
    grain: ConvGrainSize,
) -> (Vec<ConvTilePart>, Vec<(ConvAxis, u32)>) {
    let split = &plan.partition;
    let dims = slice.dims.len();
    let groups = cut_padded(slice.conv_groups, grain.groups, split.groups);
    let inputs = cut_padded(slice.in_channels, grain.in_channels, split.in_channels);
    let outputs = cut_padded(slice.out_channels, grain.out_channels, split.out_channels);
    let batches = split_into_grains(slice.batch, 1, split.batch);
    let split_dims = |size: fn(&FieldDim) -> u64, splits: &[u64; 3], innermost_grain: u64| {
        [0, 1, 2].map(|dim| {
            let grain = if dim + 1 == dims { innermost_grain } else { 1 };
            let (size, parts) =
                slice.dims.get(dim).map_or((1, 1), |field| (size(field), splits[dim]));
            split_into_grains(size, grain, parts)
        })
    };
    let fields = split_dims(FieldDim::output, &split.field, plan.field_grain);
    let kernels = split_dims(|dim| dim.kernel, &split.kernel, 1);
    let lengths =
        [0, 1, 2].map(|dim| input_lengths(slice.dims.get(dim), &fields[dim], &kernels[dim]));

    let counts = [
        groups.len(),
        inputs.len(),
        kernels[0].len(),
        kernels[1].len(),
        kernels[2].len(),
        batches.len(),
        fields[0].len(),
        fields[1].len(),
        fields[2].len(),
        outputs.len(),
    ];
    // Axes in the order of tile numbers, outermost first. A joint plan numbers those of its other
    // passes so that weights stay on the tiles of the forward pass.
    let mut order: [usize; 10] = std::array::from_fn(|axis| axis);
    match plan.tile_order {
        LinearizeTileOrder::Standard => {}
        // Axis 1 is the input channels, which are swapped with the innermost field dimension in
        // use.
        LinearizeTileOrder::FcBackward => order.swap(1, 5 + dims),
        LinearizeTileOrder::FcWeightUpdate => order.swap(1, 9),
    }
    let tiles: usize = counts.iter().product();
    let axes = order.map(|axis| (ConvAxis::ALL[axis], u32::try_from(counts[axis]).unwrap_or(1)));
    let parts = (0..tiles)
        .map(|tile| {
            let mut rest = tile;
            let mut index = [0; 10];
            for &axis in order.iter().rev() {
                index[axis] = rest % counts[axis];
                rest /= counts[axis];
            }
            // Tiles that differ only in input channels or kernel add to the same outputs.
            let kernel_index =
                [0, 1, 2].iter().fold(0, |at, dim| at * counts[2 + dim] + index[2 + dim]);
            let kernel_parts: usize = counts[2..5].iter().product();
            ConvTilePart {
                groups: groups[index[0]],
                in_channels: inputs[index[1]],
                kernel: std::array::from_fn(|dim| kernels[dim][index[2 + dim]].clone()),
                inputs: std::array::from_fn(|dim| lengths[dim][index[6 + dim]][index[2 + dim]]),
                batch: length(&batches[index[5]]),
                field: std::array::from_fn(|dim| fields[dim][index[6 + dim]].clone()),
                out_channels: outputs[index[9]],
                member: (index[1] * kernel_parts + kernel_index) as u64,
            }
        })
        .collect();
    (parts, axes.to_vec())
}

/// Number of input positions of one dimension that each of its parts needs from each part of the
/// kernel.
fn input_lengths(
    field: Option<&FieldDim>,
    outputs: &[Range<u64>],
    kernels: &[Range<u64>],
) -> Vec<Vec<u64>> {
    let mut lengths = Vec::new();
    for outputs in outputs {
        let mut of_kernels = Vec::new();
        for kernel in kernels {
            let inputs = field.map_or(1, |field| length(&field.inputs_of(outputs, kernel.clone())));
            of_kernels.push(inputs);
        }
        lengths.push(of_kernels);
    }
    lengths
}

/// The tiles whose parts read an operand, each a part of its rows and of its input channels.
#[derive(Clone, Debug, Default)]
pub(crate) struct OperandReaders {
    /// Sizes of the parts of the rows, and of the channels.
    pub rows: Vec<u64>,
    pub channels: Vec<u64>,
    /// Number of tiles that read the same part.
    pub users: u64,
    /// Digits of the position of a tile, with the distance of their numbers: users, channels, rows.
    pub digits: Vec<[u32; 2]>,
    /// Elements of the operand that each tile reads, from tile 0 on.
    pub elements: Vec<Elements>,
}

impl ConvTilePart {
    /// Rows of an operand without halos.
    fn rows(&self, is_input: bool) -> u64 {
        if is_input { self.field_elements() * self.batch } else { self.out_channels.real }
    }

    /// Number of outputs of the field.
    pub(crate) fn field_elements(&self) -> u64 {
        self.field.iter().map(length).product()
    }

    pub(crate) fn kernel_elements(&self) -> u64 {
        self.kernel.iter().map(length).product()
    }
}

/// Number of elements of a range.
pub(crate) fn length(range: &Range<u64>) -> u64 {
    range.end - range.start
}

/// Splits `size` elements into `parts` parts of whole grains. The last grain may be short.
pub(crate) fn split_into_grains(size: u64, grain: u64, parts: u64) -> Vec<Range<u64>> {
    let grains = size.div_ceil(grain);
    let mut ranges = Vec::new();
    let mut start = 0;
    for part in 0..parts {
        // The same rounding as in poplibs: the position of the odd grains determines the fullest
        // tiles.
        let end = ((part + 1) * grains / parts * grain).min(size);
        ranges.push(start..end);
        start = end;
    }
    ranges
}

/// As [`split_into_grains`], for channels, which are padded to whole grains.
fn cut_padded(size: u64, grain: u64, parts: u64) -> Vec<PaddedSize> {
    split_into_grains(size, grain, parts)
        .iter()
        .map(|range| {
            let real = length(range);
            PaddedSize { size: real.next_multiple_of(grain), real }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_differ_by_at_most_a_grain() {
        let sizes = |size, grain, parts| {
            split_into_grains(size, grain, parts).iter().map(length).collect::<Vec<_>>()
        };
        assert_eq!(sizes(10, 1, 4), [2, 3, 2, 3]);
        assert_eq!(sizes(20, 8, 2), [8, 12]);
        assert_eq!(sizes(7, 1, 7), [1; 7]);
    }
}
