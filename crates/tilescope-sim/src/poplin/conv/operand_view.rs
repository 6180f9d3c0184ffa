//! Elements of an operand in the order in which a plan reads them: expanded, flattened and padded.
//!
//! Expanding a dimension turns its kernel elements into input channels: for each of them, the input
//! has the elements that all outputs read there, so elements are duplicated (poplibs
//! `Convolution.cpp` expandSpatialDim, which concatenates them outside the channels). Flattening a
//! dimension into output channels does the same with swapped operands, and outputs join the rows.

use crate::poplin::FieldDim;
use crate::poputil::axis_pieces::{
    AxisIndices, AxisPiece, MAX_BLOCKS, axis_pieces, combined, joined, joined_at, push, runs_of,
    whole,
};
use crate::poputil::element_order::ElementOrder;
use crate::poputil::list_length;
use crate::poputil::rearranged_blocks::{AxisMemory, PartMemory, memory_by_axis};
use crate::shape::gcd;
use tilescope_report::RouteBlock;

/// Combinations of kernel elements beyond which no blocks are looked for.
const MAX_KERNEL_ELEMENTS: usize = 1 << 14;

/// A dimension of the field of an operand in the view of a plan.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldView {
    /// It stays a dimension.
    Kept,
    /// Its elements are input channels.
    Channels { reversed: bool },
    /// Its kernel elements are input channels. Its outputs stay a dimension, or join the rows.
    Expanded { dim: FieldDim, joins_rows: bool },
}

/// An operand in the view of a plan.
#[derive(Clone, Debug)]
pub(super) struct OperandView {
    /// Shape of the tensor.
    pub shape: Vec<u64>,
    /// The axes of its channels and of its rows.
    pub channels: usize,
    pub rows: usize,
    /// Other axes, outermost first.
    pub field: Vec<(usize, FieldView)>,
    /// Indices of the dimensions that become channels, the first one inside the others.
    pub order: Vec<usize>,
    /// Number of channels and rows with padding.
    pub padded: [u64; 2],
    /// Number of channels of a group.
    pub group: u64,
}

impl OperandView {
    /// Sizes of rows with outputs that join them, channels, and dimensions that stay.
    pub(super) fn sizes(&self) -> [u64; 3] {
        let mut sizes = [self.shape[self.rows], self.shape[self.channels], 1];
        for (axis, of) in &self.field {
            match of {
                FieldView::Kept => sizes[2] *= self.shape[*axis],
                FieldView::Channels { .. } => sizes[1] *= self.shape[*axis],
                FieldView::Expanded { dim, joins_rows } => {
                    sizes[1] *= dim.kernel;
                    sizes[if *joins_rows { 0 } else { 2 }] *= dim.output();
                }
            }
        }
        sizes
    }

    /// Shape of the view with padding: rows, channels, and the dimensions that stay as one.
    pub(super) fn padded_shape(&self) -> Vec<u64> {
        let [channels, rows] = self.padded;
        vec![rows, channels, self.sizes()[2]]
    }

    /// Returns the blocks of the elements of a tensor in the given order, which receivers get in
    /// groups of channels in the order of the padded view. `None` if they have no simple form.
    pub(super) fn blocks(&self, order: &ElementOrder) -> Option<Vec<RouteBlock>> {
        let [channels, rows] = self.padded;
        if !channels.is_multiple_of(self.group) {
            return None;
        }
        let [_, _, stays] = self.sizes();
        let row_step = self.group * stays;
        let group_step = row_step * rows;
        let kernels = self.kernel_elements()?;
        // Blocks of descending elements are never joined.
        if kernels.len() > MAX_BLOCKS && self.descends() {
            return None;
        }
        // After so many kernel elements, channels begin at the same place of a group again.
        let channels = self.shape[self.channels];
        let period = list_length(self.group / gcd(self.group, channels));
        let mut blocks = Vec::new();
        for part in memory_by_axis(order, &self.shape)? {
            let mut of_kernels = Vec::new();
            for kernel in &kernels {
                of_kernels.push(self.pieces_of(&part, kernel, [row_step, group_step])?);
            }
            for AxisPiece { sent_at, received_at, dims } in joined_at(&of_kernels, period) {
                blocks.push(RouteBlock { sent_at, received_at, dims });
            }
        }
        if blocks.len() > MAX_BLOCKS { None } else { Some(blocks) }
    }

    /// Returns true if elements of a dimension descend while its channels ascend.
    fn descends(&self) -> bool {
        self.field.iter().any(|(_, of)| match of {
            FieldView::Kept => false,
            FieldView::Channels { reversed } => *reversed,
            FieldView::Expanded { dim, .. } => dim.input_transform.flip,
        })
    }

    /// All combinations of kernel elements that become channels, in the order of channels, as places
    /// among them. `None` if there are too many.
    fn kernel_elements(&self) -> Option<Vec<Vec<u64>>> {
        let mut found = vec![Vec::new()];
        for at in self.order.iter().rev() {
            let (axis, of) = &self.field[*at];
            let count = match of {
                FieldView::Expanded { dim, .. } => dim.kernel,
                _ => self.shape[*axis],
            };
            if list_length(count) * found.len() > MAX_KERNEL_ELEMENTS {
                return None;
            }
            let mut longer = Vec::new();
            for kernel in found {
                longer.extend((0..count).map(|element| [vec![element], kernel.clone()].concat()));
            }
            found = longer;
        }
        Some(found)
    }

    /// The pieces of one combination of kernel elements.
    fn pieces_of(
        &self,
        part: &PartMemory,
        kernel: &[u64],
        [row_step, group_step]: [u64; 2],
    ) -> Option<Vec<AxisPiece>> {
        let mut first_channel = 0;
        let mut around_channel = self.shape[self.channels];
        let mut pieces = vec![AxisPiece { sent_at: part.first, received_at: 0, dims: Vec::new() }];
        let mut around_row = self.shape[self.rows] * row_step;
        // Outputs that join the rows are outside them, the first dimension innermost.
        for (at, place) in self.order.iter().zip(kernel) {
            let (axis, of) = &self.field[*at];
            let find_element =
                |reversed: bool, count| if reversed { count - 1 - place } else { *place };
            let (count, indices) = match of {
                FieldView::Kept => return None,
                FieldView::Channels { reversed } => {
                    let single = AxisIndices {
                        first: find_element(*reversed, self.shape[*axis]),
                        count: 1,
                        step: 1,
                        received_at: 0,
                        received_step: 0,
                    };
                    (self.shape[*axis], Some(single))
                }
                FieldView::Expanded { dim, joins_rows } => {
                    let step = if *joins_rows { around_row } else { self.field_step(*at) };
                    if *joins_rows {
                        around_row *= dim.output();
                    }
                    let element = find_element(dim.kernel_transform.flip, dim.kernel);
                    (dim.kernel, inputs_of_kernel(dim, element, step)?)
                }
            };
            first_channel += place * around_channel;
            around_channel *= count;
            // Nothing but padding meets this kernel element.
            let Some(indices) = indices else { return Some(Vec::new()) };
            pieces = combined(&pieces, &axis_pieces(&part.axes[*axis], indices)?);
        }
        for (at, (axis, of)) in self.field.iter().enumerate() {
            if let FieldView::Kept = of {
                let all = whole(self.shape[*axis], self.field_step(at));
                pieces = combined(&pieces, &axis_pieces(&part.axes[*axis], all)?);
            }
        }
        let rows = whole(self.shape[self.rows], row_step);
        pieces = combined(&pieces, &axis_pieces(&part.axes[self.rows], rows)?);
        let channels = self.channel_pieces(&part.axes[self.channels], first_channel, group_step)?;
        Some(combined(&pieces, &channels))
    }

    /// Distance between receivers of adjacent elements of a dimension that stays.
    fn field_step(&self, at: usize) -> u64 {
        let inside = self.field[at + 1..].iter().map(|(axis, of)| match of {
            FieldView::Kept => self.shape[*axis],
            FieldView::Expanded { dim, joins_rows: false } => dim.output(),
            FieldView::Channels { .. } | FieldView::Expanded { .. } => 1,
        });
        self.group * inside.product::<u64>()
    }

    /// The pieces of all channels of the tensor, which begin at channel `first` of the view.
    fn channel_pieces(
        &self,
        memory: &AxisMemory,
        first: u64,
        group_step: u64,
    ) -> Option<Vec<AxisPiece>> {
        let group = self.group;
        let find_place = |channel: u64| (channel / group) * group_step + channel % group;
        let mut pieces = Vec::new();
        for run in runs_of(memory)? {
            // Whole groups of the view are at regular distances if runs are cut alike.
            let mut channel = first + run.part.start;
            let mut sent_at = run.at;
            let end = first + run.part.end;
            while channel < end {
                let (groups, size) = if channel.is_multiple_of(group) && end - channel >= group {
                    ((end - channel) / group, group)
                } else {
                    (1, (group - channel % group).min(end - channel))
                };
                let mut dims = Vec::new();
                push(&mut dims, groups, group * run.step, group_step);
                push(&mut dims, size, run.step, 1);
                pieces.push(AxisPiece { sent_at, received_at: find_place(channel), dims });
                channel += groups * size;
                sent_at += groups * size * run.step;
            }
            if pieces.len() > MAX_BLOCKS {
                return None;
            }
        }
        // Runs of one whole group each are groups at regular distances.
        Some(joined(pieces))
    }
}

/// The inputs that outputs read through a kernel element, whose receivers are `received_step` apart
/// per output. The inner `None`: they read only padding. The outer `None`: in descending order.
fn inputs_of_kernel(
    dim: &FieldDim,
    kernel: u64,
    received_step: u64,
) -> Option<Option<AxisIndices>> {
    let outputs = dim.outputs_of_kernel(&(0..dim.output()), kernel);
    if outputs.is_empty() {
        return Some(None);
    }
    let first = dim.input_index(outputs.start, kernel)?;
    let mut indices = AxisIndices {
        first,
        count: 1,
        step: 1,
        received_at: outputs.start * received_step,
        received_step,
    };
    // Outputs between those that meet a dilated input read zeros.
    let next = (outputs.start + 1..outputs.end)
        .find_map(|output| dim.input_index(output, kernel).map(|index| (output, index)));
    if let Some((output, index)) = next {
        let period = output - outputs.start;
        indices.step = index.checked_sub(first)?;
        indices.count = (outputs.end - 1 - outputs.start) / period + 1;
        indices.received_step = period * received_step;
    }
    Some(Some(indices))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poputil::rearranged_blocks::tests::positions;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    /// Follows every element of a view to the element of the tensor that it is, if any.
    fn followed(view: &OperandView, order: &ElementOrder) -> Vec<(u64, u64)> {
        let flat = order.flat_indices(&view.shape).expect("a known order");
        let mut place = vec![0; flat.len()];
        for (at, flat) in (0u64..).zip(flat) {
            place[list_length(flat)] = at;
        }
        // Coordinates of the view: row, channel, then for each dimension its kernel element and its
        // output, or its index.
        let mut sizes = vec![view.shape[view.rows], view.shape[view.channels]];
        for (axis, of) in &view.field {
            sizes.extend(match of {
                FieldView::Kept => [1, view.shape[*axis]],
                FieldView::Channels { .. } => [view.shape[*axis], 1],
                FieldView::Expanded { dim, .. } => [dim.kernel, dim.output()],
            });
        }
        let [rows, _, stays] = view.padded_shape()[..] else { unreachable!() };
        let mut found = Vec::new();
        for number in 0..sizes.iter().product::<u64>() {
            let mut left = number;
            let at: Vec<u64> = sizes
                .iter()
                .map(|size| {
                    let digit = left % size;
                    left /= size;
                    digit
                })
                .collect();
            let mut index = vec![0; view.shape.len()];
            index[view.rows] = at[0];
            index[view.channels] = at[1];
            let [mut row, mut channel, mut stay] = [at[0], at[1], 0];
            let [mut around_row, mut around_channel] = [sizes[0], sizes[1]];
            let mut is_padding = false;
            for (dim, (axis, of)) in view.field.iter().enumerate() {
                let [kernel, output] = [at[2 + 2 * dim], at[3 + 2 * dim]];
                index[*axis] = match of {
                    FieldView::Kept => output,
                    FieldView::Channels { .. } => kernel,
                    FieldView::Expanded { dim, .. } => {
                        let input = dim.input_index(output, kernel);
                        is_padding |= input.is_none();
                        input.unwrap_or(0)
                    }
                };
                if !matches!(of, FieldView::Expanded { joins_rows: true, .. }) {
                    stay = stay * sizes[3 + 2 * dim] + output;
                }
            }
            for dim in &view.order {
                let [kernel, output] = [at[2 + 2 * dim], at[3 + 2 * dim]];
                let count = sizes[2 + 2 * dim];
                let reversed = match view.field[*dim].1 {
                    FieldView::Channels { reversed } => reversed,
                    FieldView::Expanded { dim, .. } => dim.kernel_transform.flip,
                    FieldView::Kept => false,
                };
                channel += around_channel * if reversed { count - 1 - kernel } else { kernel };
                around_channel *= count;
                if let FieldView::Expanded { joins_rows: true, .. } = view.field[*dim].1 {
                    row += around_row * output;
                    around_row *= sizes[3 + 2 * dim];
                }
            }
            if is_padding {
                continue;
            }
            let mut from = 0;
            for (index, size) in index.iter().zip(&view.shape) {
                from = from * size + index;
            }
            let group = view.group;
            let to = ((channel / group * rows + row) * stays + stay) * group + channel % group;
            found.push((place[list_length(from)], to));
        }
        found.sort_unstable();
        found
    }

    fn any_dim() -> impl Strategy<Value = FieldDim> {
        let sizes = (1..6u64, 1..4u64, 0..2u64, 0..2u64);
        (sizes, 1..3u64, 1..3u64, any::<bool>()).prop_map(
            |((input, kernel, lower, upper), stride, dilation, flip)| {
                let mut dim =
                    FieldDim::new(input.max(kernel), kernel).padded(lower, upper).strided(stride);
                dim.input_transform.dilation = dilation;
                dim.kernel_transform.flip = flip;
                dim
            },
        )
    }

    /// A dimension, and its part in the view: 0 for one that stays, 1 for channels, 2 and 3 for
    /// expanded ones.
    fn any_field() -> impl Strategy<Value = Vec<(FieldDim, u8)>> {
        prop::collection::vec((any_dim(), 0..4u8), 0..3)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(400)))]
        #[test]
        fn blocks_follow_every_element(
            [rows, channels] in [1..6u64, 1..20],
            field in any_field(),
            [inner, inner_group, group, more_rows] in [0..4u64, 1..7, 1..9, 0..3],
            [swaps, reverses] in [any::<bool>(), any::<bool>()],
        ) {
            let mut shape = if swaps { vec![channels, rows] } else { vec![rows, channels] };
            let mut views = Vec::new();
            let mut order = Vec::new();
            for (at, (dim, part)) in field.into_iter().enumerate() {
                views.push((shape.len(), match part {
                    0 => FieldView::Kept,
                    1 => FieldView::Channels { reversed: dim.kernel_transform.flip },
                    _ => FieldView::Expanded { dim, joins_rows: part == 2 },
                }));
                shape.push(dim.input);
                if part > 0 {
                    order.push(at);
                }
            }
            if reverses {
                order.reverse();
            }
            let memory = ElementOrder::grouped(&shape, list_length(inner) % shape.len(), inner_group);
            let [channels, rows] = if swaps { [0, 1] } else { [1, 0] };
            let mut view =
                OperandView { shape, channels, rows, field: views, order, padded: [0, 0], group };
            let sizes = view.sizes();
            view.padded = [sizes[1].next_multiple_of(group), sizes[0] + more_rows];
            match view.blocks(&memory) {
                Some(blocks) => prop_assert_eq!(positions(&blocks), followed(&view, &memory)),
                None => prop_assert!(memory_by_axis(&memory, &view.shape).is_none()),
            }
        }
    }
}
