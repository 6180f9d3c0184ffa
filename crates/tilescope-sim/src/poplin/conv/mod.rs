//! From the plan of a matrix product or convolution to what tiles do.
//!
//! The planner's estimate chooses plans; here is what a plan really executes: operands are
//! brought together, arranged, multiplied, partial sums reduced and cast, perhaps in a serial
//! loop, with the rearrangements that operands and results in other layouts need before and
//! after. Every tile gets its real part, ragged ends included (poplibs `Convolution.cpp`
//! convolutionImpl).
//!
//! Phases carry the debug names of real profiles. Start-up cycles of exchanges and compute sets
//! are not in here, see [`crate::cost_constants`].

pub(crate) mod operand_layout;
mod operand_preparation;
mod operand_rearrangement;
mod pass_lowering;
mod reduction;
mod serial_loop;
mod start_tile;
mod temporaries;
mod tile_parts;
mod vertices;
mod work_builder;

pub use operand_layout::{
    ConvPlanLayouts, InnermostDim, OperandLayout, planned_layouts, result_memory_constraint,
};
pub use pass_lowering::{
    ConvPassOperands, LoweredConvPass, OperandSource, ResultDestination, lower,
    transpose_weights_ahead,
};
pub(crate) use start_tile::ConvStartTile;

use super::FieldDim;
use super::planner::{ConvPlan, ConvTrainingPlans};
use crate::poplar::work::OperationWork;
use crate::targets::IpuTarget;
use tile_parts::PartitionedConv;

impl<'a> ConvPassOperands<'a> {
    /// Operands of the forward pass.
    pub fn forward(input: OperandSource<'a>, weights: OperandSource<'a>) -> Self {
        Self { input, weights, result: ResultDestination::Planned }
    }

    /// Operands of the backward pass: the forward weights are transposed into what its plan wants.
    pub fn backward(plans: &'a ConvTrainingPlans, gradient: OperandSource<'a>) -> Self {
        Self {
            input: gradient,
            weights: OperandSource::ForwardWeights(&plans.forward),
            result: ResultDestination::Planned,
        }
    }

    /// Operands of the weight update, whose result is brought to where the forward weights are.
    /// Input and output gradient lie as the other two passes want them.
    pub fn weight_update(plans: &'a ConvTrainingPlans) -> Self {
        // The weight update sums over the batch, so what was innermost for the other passes,
        // channels, is not for it: both operands are turned around.
        let wanted_by = |plan: &ConvPlan| OperandSource::Transposed {
            group: plan.vertex.in_chans_per_group,
            tiles: plan.tiles(),
        };
        Self {
            input: wanted_by(&plans.forward),
            weights: wanted_by(&plans.backward),
            result: ResultDestination::Weights(&plans.forward),
        }
    }
}

/// The forward pass of operands that lie as said.
pub fn forward(
    machine: &IpuTarget,
    plan: &ConvPlan,
    input: OperandSource,
    weights: OperandSource,
) -> OperationWork {
    lower(machine, plan, &ConvPassOperands::forward(input, weights)).work
}

/// Multiply-accumulates that the vertices of all tiles do for the operation, padding left out.
pub fn lowered_macs(plan: &ConvPlan) -> u64 {
    let layout = PartitionedConv::from_plan(plan);
    let tiles = layout.parts.iter().map(|part| layout.macs(part));
    // `parts` are those of one slice, and serial splits divide the channels evenly.
    tiles.sum::<u64>() * plan.partition.serial()
}

/// Name of a pass in profiles: `Conv_1` for matrix products, `Conv_3x3_stride2x2` for others
/// (poplibs `Convolution.cpp` convSuffix).
pub(crate) fn layer_name(plan: &ConvPlan) -> String {
    let along = |size: fn(&FieldDim) -> u64| {
        let sizes = plan.params.dims.iter().map(|dim| size(dim).to_string());
        sizes.collect::<Vec<_>>().join("x")
    };
    let mut name = format!("Conv_{}", along(|dim| dim.kernel));
    if plan.params.dims.iter().any(|dim| dim.output_transform.stride != 1) {
        name += &format!("_stride{}", along(|dim| dim.output_transform.stride));
    }
    if plan.params.dims.iter().any(|dim| dim.input_transform.dilation != 1) {
        name += &format!("_inDilation{}", along(|dim| dim.input_transform.dilation));
    }
    name
}
