//! Lowering of the plan of a matrix product or convolution to the work of tiles.
//!
//! The planner's estimate chooses plans. This module determines what a plan executes: operands are
//! gathered, arranged and multiplied, partial sums are reduced and cast, possibly in a serial loop,
//! with the rearrangements before and after for operands and results in other layouts. Every tile
//! gets its actual part, including ragged ends (poplibs `Convolution.cpp` convolutionImpl).
//!
//! Phases have the debug names of real profiles. Start-up cycles of exchanges and compute sets are
//! not included, see [`crate::cost_constants`].

pub(crate) mod operand_layout;
mod operand_preparation;
mod operand_rearrangement;
mod operand_routes;
mod operand_view;
mod pass_lowering;
mod reduction;
mod serial_loop;
mod start_tile;
mod temporaries;
mod tensor_places;
mod tile_parts;
mod vertices;
mod work_builder;

pub use operand_layout::{
    ConvPlanLayouts, InnermostDim, OperandLayout, planned_layouts, result_memory_constraint,
};
pub(crate) use pass_lowering::lower_placed;
pub use pass_lowering::{
    ConvPassOperands, LoweredConvPass, OperandSource, ResultDestination, lower,
    transpose_weights_ahead,
};
pub(crate) use start_tile::ConvStartTile;
pub(crate) use tensor_places::{TensorPlace, TensorPlaces};

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

    /// Operands of the backward pass. The forward weights are transposed into the layout of its
    /// plan.
    pub fn backward(plans: &'a ConvTrainingPlans, gradient: OperandSource<'a>) -> Self {
        Self {
            input: gradient,
            weights: OperandSource::ForwardWeights(&plans.forward),
            result: ResultDestination::Planned,
        }
    }

    /// Operands of the weight update, whose result is moved to the layout of the forward weights.
    /// Input and output gradient have the layouts of the other two passes.
    pub fn weight_update(plans: &'a ConvTrainingPlans) -> Self {
        // The weight update sums over the batch. Channels, the innermost dimension of the other
        // passes, are not summed, so both operands are transposed.
        Self {
            input: transposed_from(&plans.forward),
            weights: transposed_from(&plans.backward),
            result: ResultDestination::Weights(&plans.forward),
        }
    }
}

/// An operand in the layout of `plan`, for a pass that reads it with another dimension innermost.
fn transposed_from<'a>(plan: &ConvPlan) -> OperandSource<'a> {
    OperandSource::Transposed { group: plan.vertex.in_chans_per_group, tiles: plan.tiles() }
}

/// Returns the forward pass of operands in the given layouts.
pub fn forward(
    machine: &IpuTarget,
    plan: &ConvPlan,
    input: OperandSource,
    weights: OperandSource,
) -> OperationWork {
    lower(machine, plan, &ConvPassOperands::forward(input, weights)).work
}

/// Number of multiply-accumulates of the vertices of all tiles, without those on padding.
pub fn lowered_macs(plan: &ConvPlan) -> u64 {
    let layout = PartitionedConv::from_plan(plan);
    let tiles = layout.parts.iter().map(|part| layout.macs(part));
    // `parts` are those of one slice, and serial splits divide the channels evenly.
    tiles.sum::<u64>() * plan.partition.serial()
}

/// Name of a pass in profiles: `Conv_1` for matrix products, `Conv_3x3_stride2x2` for others
/// (poplibs `Convolution.cpp` convSuffix).
pub(crate) fn layer_name(plan: &ConvPlan) -> String {
    let dims = &plan.params.dims;
    let mut name = format!("Conv_{}", joined_sizes(dims, |dim| dim.kernel));
    if dims.iter().any(|dim| dim.output_transform.stride != 1) {
        name += &format!("_stride{}", joined_sizes(dims, |dim| dim.output_transform.stride));
    }
    if dims.iter().any(|dim| dim.input_transform.dilation != 1) {
        name += &format!("_inDilation{}", joined_sizes(dims, |dim| dim.input_transform.dilation));
    }
    name
}

/// Sizes of all dimensions, such as `3x3`.
fn joined_sizes(dims: &[FieldDim], size: fn(&FieldDim) -> u64) -> String {
    dims.iter().map(|dim| size(dim).to_string()).collect::<Vec<_>>().join("x")
}
