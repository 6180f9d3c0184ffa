//! Layout changes that the planner assumes around a pass. Their cost affects the choice of plans.
//!
//! These are weights of a decision, not predictions (poplibs `ConvModel.cpp`
//! addTransformCycleEstimate). Lowering determines the actual phases around a plan.

use super::cost_model::{ConvModelRole, ConvPartElements};
use super::plan::ConvPass;
use super::transforms::ConvTransform;
use super::vertex_candidates::{ConvVertexType, weights_per_conv_unit};
use crate::poplin::params::ConvParams;
use crate::shape::DType;
use crate::targets::{BytesPerCycle, IpuTarget};
use tilescope_report::units::{Bytes, Cycles, Elements};

/// Rate of an on-tile copy.
const COPY_SPEED: BytesPerCycle = BytesPerCycle(8);

/// Cost of layout changes on one tile.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LayoutChangeCost {
    /// Cycles of copies on the tile.
    pub copy: Cycles,
    /// Cycles of exchanges between tiles.
    pub exchange: Cycles,
    /// Bytes of temporaries.
    pub bytes: Bytes,
}

impl LayoutChangeCost {
    /// Cycles of copies and exchanges, which run in sequence.
    pub(crate) fn cycles(&self) -> Cycles {
        self.copy + self.exchange
    }
}

/// One rearranged set of elements.
#[derive(Clone, Copy, Debug)]
struct LayoutChangeTerm {
    /// Number of elements over all tiles.
    elements: Elements,
    /// Bytes of an element.
    element_bytes: Bytes,
    /// Number of adjacent elements that stay together.
    contiguous_elements: Elements,
    /// Cycles per copied unit as a fraction: 5/4 for well divisible channels, otherwise 5/3.
    scale: (u64, u64),
    /// True if elements move between tiles.
    exchanged: bool,
}

impl LayoutChangeTerm {
    /// Cost on one of `tiles` tiles.
    fn cost(&self, machine: &IpuTarget, tiles: u64) -> LayoutChangeCost {
        let bytes = self.elements.div_ceil(tiles) * self.element_bytes;
        // A copy moves 64 bits at a time only if 64 bits stay together.
        let per_cycle = COPY_SPEED.0.min((self.contiguous_elements * self.element_bytes).0);
        let copy = BytesPerCycle(per_cycle * self.scale.1).cycles_for(bytes * self.scale.0);
        let exchange =
            if self.exchanged { machine.exchange_cycles(bytes, false) } else { Cycles::ZERO };
        LayoutChangeCost { copy, exchange, bytes }
    }
}

/// All rearrangements around one pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct LayoutChange {
    changes: Vec<LayoutChangeTerm>,
}

impl LayoutChange {
    /// Determines the rearrangements of `role` around a shape that was transformed to `shape`.
    /// `whole` are the elements of the padded operation.
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
        // The next layer is assumed to read the number of channels that the engine multiplies at a
        // time.
        let full = weights_per_conv_unit(original.input_type);
        let group = Elements(vertex.out_chans_per_group);
        let regroup_outputs = !pass.is_fully_connected() && group.0 != full;
        // The backward pass reads the weights in blocks of both passes' groups, which become small
        // if one does not divide the other.
        let regroup_weights = pass == ConvPass::TrainingForward && !group.0.is_multiple_of(full);

        let mut changes = Vec::new();
        let change_operand =
            |elements: Elements, together: Elements, scaled_by: u64, exchanged: bool| {
                LayoutChangeTerm {
                    elements,
                    // poplibs uses the size of the output's elements for the operands too.
                    element_bytes: original.output_type.bytes(),
                    contiguous_elements: together,
                    scale: scale(shape.input_type, scaled_by),
                    exchanged,
                }
            };
        if regroup_weights && !weights {
            changes.push(change_operand(whole.weights, group, shape.out_channels, false));
        }
        if inputs || weights {
            let mut elements = Elements::ZERO;
            if inputs {
                elements += whole.inputs;
            }
            if weights {
                elements += whole.weights;
            }
            let channels = shape.in_channels.saturating_mul(shape.out_channels);
            changes.push(change_operand(elements, Elements(1), channels, true));
        }
        if outputs || regroup_outputs {
            changes.push(LayoutChangeTerm {
                elements: whole.outputs,
                element_bytes: original.output_type.bytes(),
                // A rearrangement may scatter every element, whereas a regroup keeps channel groups
                // together.
                contiguous_elements: if outputs { Elements(1) } else { group },
                scale: scale(shape.output_type, shape.out_channels),
                exchanged: outputs,
            });
        }
        Self { changes }
    }

    /// Cost of all changes on one of `tiles` tiles. They run one after the other, with source and
    /// target live together.
    pub(crate) fn cost(&self, machine: &IpuTarget, tiles: u64) -> LayoutChangeCost {
        let mut sum = LayoutChangeCost::default();
        for change in self.changes.iter().map(|change| change.cost(machine, tiles)) {
            sum.copy += change.copy;
            sum.exchange += change.exchange;
            sum.bytes = sum.bytes.max(2 * change.bytes);
        }
        sum
    }
}

/// Correction that poplibs found on the layers of a ResNet-50.
fn scale(data_type: DType, size: u64) -> (u64, u64) {
    let grain = if data_type == DType::Float { 2 } else { 4 };
    if size.is_multiple_of(grain) { (5, 4) } else { (5, 3) }
}
