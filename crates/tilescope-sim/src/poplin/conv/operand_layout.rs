//! How a plan wants its operands to lie, and how its result comes out.
//!
//! An operand is stored where it is used: the users of a slice share it evenly. Channels lie in
//! groups, innermost. Two passes that agree on an [`OperandLayout`] need no copy between them.

use super::operand_rearrangement::spread;
use super::reduction::{reduced_part, reduction_grain};
use super::tile_parts::PartitionedConv;
use super::work_builder::tile_runs_of;
use crate::poplar::work::MemoryConstraint;
use crate::poplin::planner::ConvPlan;
use crate::poplin::planner::vertex_candidates::ConvMethod;
use crate::shape::gcd;
use crate::targets::IpuTarget;
use tilescope_report::units::{Bytes, Elements, Quantity, TileRuns};

/// Smallest piece of an input on one tile (poplibs `Convolution.cpp`
/// mapActivationsOrWeights).
const INPUT_GRAIN_BYTES: Bytes = Bytes(128);

/// Smallest piece of weights on one tile.
const WEIGHT_GRAIN_BYTES: Bytes = Bytes(256);

/// Which dimension of a tensor is innermost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InnermostDim {
    /// Input channels; the batch in a weight update.
    InChannels,
    OutChannels,
    /// The batch: the result of a plan with swapped operands.
    Batch,
}

/// How one tensor lies on the tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperandLayout {
    /// Bytes of each tile.
    pub bytes: TileRuns<Bytes>,
    pub innermost: InnermostDim,
    /// Elements of it that lie together.
    pub group: u64,
}

impl OperandLayout {
    /// The layout of a tensor that is cut into parts which lie so, all parts on the same tiles.
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

/// The layouts `plan` wants and makes.
pub fn planned_layouts(machine: &IpuTarget, plan: &ConvPlan) -> ConvPlanLayouts {
    let params = &plan.params;
    let bytes = |elements: Elements| elements * params.input_type.bytes();
    let group = gcd(plan.vertex.in_chans_per_group, params.in_channels);
    let operand = |shares: Vec<Bytes>| OperandLayout {
        bytes: tile_runs_of(shares.into_iter().map(|bytes| (!bytes.is_zero()).then_some(bytes))),
        innermost: InnermostDim::InChannels,
        group,
    };
    ConvPlanLayouts {
        input: operand(spread(
            bytes(params.input_elements()),
            grain_bytes(plan, plan.transform().swap_operands),
            plan.tiles(),
        )),
        weights: operand(weight_shares(machine, plan)),
        output: output_layout(plan),
    }
}

/// Bytes of the weights of `plan` on each tile. Small weights lie on few tiles.
pub(crate) fn weight_shares(machine: &IpuTarget, plan: &ConvPlan) -> Vec<Bytes> {
    let bytes = plan.params.weight_elements() * plan.params.input_type.bytes();
    spread(bytes, grain_bytes(plan, !plan.transform().swap_operands), machine.tiles.into())
}

/// Bytes of an operand that stay on one tile; `as_weights` where the vertex takes it as weights.
fn grain_bytes(plan: &ConvPlan, as_weights: bool) -> Bytes {
    let vertex = &plan.vertex;
    let inputs = vertex.in_chans_per_group * vertex.groups_per_group;
    let (elements, least) = if as_weights {
        (inputs * vertex.out_chans_per_group, WEIGHT_GRAIN_BYTES)
    } else {
        (inputs, INPUT_GRAIN_BYTES)
    };
    // poplibs chose the least bytes of a tile by experiment: more of them make less exchange code
    // but less balanced exchanges.
    let grain = elements * vertex.input_type.bytes();
    least.next_multiple_of(grain)
}

/// The result lies where the last stage of the reduction leaves it.
fn output_layout(plan: &ConvPlan) -> OperandLayout {
    let shares = result_shares(plan).into_iter().map(|bytes| (!bytes.is_zero()).then_some(bytes));
    // With operands swapped the vertices made the batch as their output channels.
    let innermost = if plan.transform().swap_operands {
        InnermostDim::Batch
    } else {
        InnermostDim::OutChannels
    };
    OperandLayout { bytes: tile_runs_of(shares), innermost, group: plan.vertex.out_chans_per_group }
}

/// Bytes of the result of `plan` on each tile: of a part, the tiles that made its partial sums have
/// what they added up.
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
        // Serial output channels leave one slice after the other on the same tiles; padding
        // channels are cut off when the result leaves the convolution.
        let kept = |until: u64| (real * serial).share(until, made);
        Elements(kept(added.end) - kept(added.start)) * element
    });
    share.collect()
}

/// Where the result of a plan must lie: the matrix engine and SLIC vertices want interleaved memory
/// for what they write, which is the result itself where nothing is to be added up or cast.
pub fn result_memory_constraint(plan: &ConvPlan) -> MemoryConstraint {
    let split = &plan.partition;
    let direct = split.reduction_depth() == 1
        && split.serial() == 1
        && plan.partial_type() == plan.params.output_type;
    match plan.vertex.method {
        // They load and store partials 128 bits at a time, which only interleaved memory can.
        ConvMethod::Amp { .. } | ConvMethod::Slic { .. } if direct => MemoryConstraint::Interleaved,
        _ => MemoryConstraint::Any,
    }
}
