//! Layouts in which a plan reads its operands and leaves its result.
//!
//! An operand is stored on the tiles that use it: the users of a slice share it evenly. Channels
//! are in groups, innermost. Two passes with the same [`OperandLayout`] need no copy between them.

use super::operand_rearrangement::spread;
use super::reduction::{reduced_part, reduction_grain};
use super::tile_parts::PartitionedConv;
use super::work_builder::nonzero_runs_of;
use crate::poplar::work::MemoryConstraint;
use crate::poplin::planner::ConvPlan;
use crate::poplin::planner::vertex_candidates::ConvMethod;
use crate::shape::gcd;
use crate::targets::IpuTarget;
use tilescope_report::units::{Bytes, Elements, Quantity, TileRuns};

/// Smallest piece of an input on one tile (poplibs `Convolution.cpp` mapActivationsOrWeights).
const INPUT_GRAIN_BYTES: Bytes = Bytes(128);

/// Smallest piece of weights on one tile.
const WEIGHT_GRAIN_BYTES: Bytes = Bytes(256);

/// The innermost dimension of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InnermostDim {
    /// Input channels, or the batch in a weight update.
    InChannels,
    OutChannels,
    /// The batch: the result of a plan with swapped operands.
    Batch,
}

/// Layout of one tensor on the tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandLayout {
    /// Bytes on each tile.
    pub bytes: TileRuns<Bytes>,
    pub innermost: InnermostDim,
    /// Number of contiguous elements of the innermost dimension.
    pub group: u64,
}

impl OperandLayout {
    /// Returns the layout of a tensor that consists of `parts` parts with this layout, all on the
    /// same tiles.
    pub(crate) fn of_parts(&self, parts: u64) -> Self {
        Self { bytes: self.bytes.map(|bytes| *bytes * parts), ..self.clone() }
    }
}

/// Layouts of all tensors of a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvPlanLayouts {
    /// Input: activations, or the left operand of a matrix product.
    pub input: OperandLayout,
    /// Weights, or the right operand.
    pub weights: OperandLayout,
    pub output: OperandLayout,
}

/// Returns the layouts of the operands and the result of `plan`.
pub fn planned_layouts(machine: &IpuTarget, plan: &ConvPlan) -> ConvPlanLayouts {
    let params = &plan.params;
    let group = gcd(plan.vertex.in_chans_per_group, params.in_channels);
    let input_bytes = params.input_elements() * params.input_type.bytes();
    let input_grain = grain_bytes(plan, plan.transform().swap_operands);
    ConvPlanLayouts {
        input: OperandLayout {
            bytes: nonzero_runs_of(spread(input_bytes, input_grain, plan.tiles())),
            innermost: InnermostDim::InChannels,
            group,
        },
        weights: OperandLayout {
            bytes: nonzero_runs_of(weight_shares(machine, plan)),
            innermost: InnermostDim::InChannels,
            group,
        },
        output: output_layout(plan),
    }
}

/// Bytes of the weights of `plan` on each tile. Small weights are on few tiles.
pub(crate) fn weight_shares(machine: &IpuTarget, plan: &ConvPlan) -> Vec<Bytes> {
    let bytes = plan.params.weight_elements() * plan.params.input_type.bytes();
    spread(bytes, grain_bytes(plan, !plan.transform().swap_operands), machine.tiles.into())
}

/// Bytes of an operand that stay on one tile. `as_weights` is true if the vertex reads it as
/// weights.
fn grain_bytes(plan: &ConvPlan, as_weights: bool) -> Bytes {
    let vertex = &plan.vertex;
    let inputs = vertex.in_chans_per_group * vertex.groups_per_group;
    let (elements, least) = if as_weights {
        (inputs * vertex.out_chans_per_group, WEIGHT_GRAIN_BYTES)
    } else {
        (inputs, INPUT_GRAIN_BYTES)
    };
    // poplibs chose the minimum bytes of a tile by experiment: a larger minimum means less exchange
    // code but less balanced exchanges.
    let grain = elements * vertex.input_type.bytes();
    least.next_multiple_of(grain)
}

/// Layout of the result as the last stage of the reduction leaves it.
fn output_layout(plan: &ConvPlan) -> OperandLayout {
    // With swapped operands the batch is the output channels of the vertices.
    let innermost = if plan.transform().swap_operands {
        InnermostDim::Batch
    } else {
        InnermostDim::OutChannels
    };
    let bytes = nonzero_runs_of(result_shares(plan));
    OperandLayout { bytes, innermost, group: plan.vertex.out_chans_per_group }
}

/// Bytes of the result of `plan` on each tile. The tiles that computed the partial sums of a part
/// hold the sums they added.
pub(crate) fn result_shares(plan: &ConvPlan) -> Vec<Bytes> {
    let layout = PartitionedConv::from_plan(plan);
    let depth = plan.partition.reduction_depth();
    let element = plan.params.output_type.bytes();
    let serial = plan.partition.out_channels_serial;
    let grain = reduction_grain(plan, plan.params.output_type);
    let share = layout.parts.iter().map(|part| {
        let real = part.field_elements() * part.batch * part.out_channels.real * part.groups.real;
        let made = layout.partials(part).0.max(1);
        let added = reduced_part(made, grain, depth, part.member);
        // Serial output channels leave one slice after the other on the same tiles. Padding
        // channels are cut off when the result leaves the convolution.
        let kept =
            (real * serial).share(added.end, made) - (real * serial).share(added.start, made);
        Elements(kept) * element
    });
    share.collect()
}

/// Placement constraint of the result of a plan. The matrix engine and SLIC vertices need
/// interleaved memory for their output, which is the result itself if there is nothing to add or
/// cast.
pub fn result_memory_constraint(plan: &ConvPlan) -> MemoryConstraint {
    let split = &plan.partition;
    let direct = split.reduction_depth() == 1
        && split.serial() == 1
        && plan.partial_type() == plan.params.output_type;
    match plan.vertex.method {
        // They load and store partials 128 bits at a time, which only interleaved memory allows.
        ConvMethod::Amp { .. } | ConvMethod::Slic { .. } if direct => MemoryConstraint::Interleaved,
        _ => MemoryConstraint::Any,
    }
}
