//! Layout changes the planner expects around a pass: what they cost decides between plans.
//!
//! These are weights of a decision, not predictions (poplibs `ConvModel.cpp`
//! addTransformCycleEstimate). What really happens around a plan is the business of lowering.

use super::candidates::{ConvVertexType, weights_per_conv_unit};
use super::model::{ConvModelRole, ConvPartElements};
use super::plan::ConvPass;
use super::transforms::ConvTransform;
use crate::poplin::params::ConvParams;
use crate::shape::DType;
use crate::targets::IpuTarget;

/// Bytes an on-tile copy moves per cycle.
const COPY_BYTES_PER_CYCLE: u64 = 8;

/// One rearranged set of elements.
#[derive(Clone, Copy, Debug)]
struct LayoutChangeTerm {
    /// Elements over all tiles.
    elements: u64,
    /// Bytes of an element.
    element_bytes: u64,
    /// Neighbouring elements that stay together.
    contiguous_elements: u64,
    /// Cycles per copied unit as a fraction: 5/4 for well divisible channels, else 5/3.
    scale: (u64, u64),
    /// Whether elements move between tiles.
    exchanged: bool,
}

impl LayoutChangeTerm {
    /// Copy cycles, exchange cycles and bytes of one of `tiles` tiles.
    fn cost(&self, machine: &IpuTarget, tiles: u64) -> (u64, u64, u64) {
        let bytes = self.elements.div_ceil(tiles) * self.element_bytes;
        // A copy moves 64 bits at a time only where as much stays together.
        let per_cycle = COPY_BYTES_PER_CYCLE.min(self.contiguous_elements * self.element_bytes);
        let copy = (bytes * self.scale.0).div_ceil(per_cycle * self.scale.1);
        let exchange = if self.exchanged { machine.exchange_cycles(bytes, false) } else { 0 };
        (copy, exchange, bytes)
    }
}

/// Everything that is rearranged around one pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutChange {
    changes: Vec<LayoutChangeTerm>,
}

impl LayoutChange {
    /// What `role` rearranges around a shape that was transformed to `shape`. `whole` are the
    /// elements of the padded operation.
    pub(crate) fn new(
        role: ConvModelRole,
        original: &ConvParams,
        transform: &ConvTransform,
        shape: &ConvParams,
        vertex: &ConvVertexType,
        whole: &ConvPartElements,
    ) -> Self {
        let pass = role.pass;
        let expands = !transform.expand_dims.is_empty();
        let flattens = !transform.flatten_to_channels.is_empty();
        let combines = transform.combine_groups > 1;
        let pads_in = !shape.in_channels.is_multiple_of(vertex.in_chans_per_group);
        let pads_out = !shape.out_channels.is_multiple_of(vertex.out_chans_per_group);
        let conv_update = pass == ConvPass::TrainingWeightUpdate;
        // Inputs and weights of a matrix product are laid out for swapped operands.
        let misplaced = transform.swap_operands != pass.is_matmul();

        let both = conv_update || expands || misplaced || combines || pads_in;
        let inputs = both
            || pass == ConvPass::FcTrainingWeightUpdate
            || (pass == ConvPass::FcTrainingBackward && !role.joint);
        let weights = both || flattens || pads_out;
        let output_is_swapped = conv_update || pass.is_matmul();
        let outputs = transform.swap_operands != output_is_swapped
            || flattens
            || combines
            || pads_out
            || (pass == ConvPass::FcTrainingWeightUpdate && !role.joint);
        // The next layer is assumed to take as many channels at a time as the engine multiplies.
        let full = weights_per_conv_unit(original.input_type);
        let group = vertex.out_chans_per_group;
        let regroup_outputs = !pass.is_fully_connected() && group != full;
        // The backward pass takes the weights in blocks of both passes' groups, which get small
        // where one does not divide the other.
        let regroup_weights = pass == ConvPass::TrainingForward && !group.is_multiple_of(full);

        let mut changes = Vec::new();
        let operand =
            |elements: u64, together: u64, scaled_by: u64, exchanged: bool| LayoutChangeTerm {
                elements,
                // poplibs takes the size of the output's elements for the operands too.
                element_bytes: original.output_type.bytes(),
                contiguous_elements: together,
                scale: scale(shape.input_type, scaled_by),
                exchanged,
            };
        if regroup_weights && !weights {
            changes.push(operand(whole.weights, group, shape.out_channels, false));
        }
        if inputs || weights {
            let elements =
                if inputs { whole.inputs } else { 0 } + if weights { whole.weights } else { 0 };
            let channels = shape.in_channels.saturating_mul(shape.out_channels);
            changes.push(operand(elements, 1, channels, true));
        }
        if outputs || regroup_outputs {
            changes.push(LayoutChangeTerm {
                elements: whole.outputs,
                element_bytes: original.output_type.bytes(),
                // A rearrangement may scatter every element; a regroup keeps channel groups
                // together.
                contiguous_elements: if outputs { 1 } else { group },
                scale: scale(shape.output_type, shape.out_channels),
                exchanged: outputs,
            });
        }
        Self { changes }
    }

    /// Copy cycles, exchange cycles and temporary bytes of one of `tiles` tiles. Changes happen
    /// one after the other, source and target side by side.
    pub(crate) fn cost(&self, machine: &IpuTarget, tiles: u64) -> (u64, u64, u64) {
        let costs = self.changes.iter().map(|change| change.cost(machine, tiles));
        let (copy, exchange, bytes) =
            costs.fold((0, 0, 0), |sum, cost| (sum.0 + cost.0, sum.1 + cost.1, sum.2.max(cost.2)));
        (copy, exchange, 2 * bytes)
    }
}

/// A correction found by poplibs on the layers of a ResNet-50.
fn scale(data_type: DType, size: u64) -> (u64, u64) {
    let grain = if data_type == DType::Float { 2 } else { 4 };
    if size.is_multiple_of(grain) { (5, 4) } else { (5, 3) }
}
