//! From the plan of a matrix product or convolution to what tiles do.
//!
//! The planner's estimate chooses plans; here is what a plan really executes: operands are
//! brought together, arranged, multiplied, partial sums reduced and cast, perhaps in a serial
//! loop, with the rearrangements that operands and results in other layouts need before and
//! after. Every tile gets its real part, ragged ends included (poplibs `Convolution.cpp`
//! convolutionImpl).
//!
//! Phases carry the debug names of real profiles. Start-up cycles of exchanges and compute sets
//! are not in here, see [`crate::poplar::constants`].

mod build;
pub(crate) mod layout;
mod operands;
mod parts;
mod pass;
mod rearrange;
mod reduction;
mod serial;
mod start;
mod temporaries;
mod vertices;

pub use layout::{Innermost, OperandLayout, PlannedLayouts, planned_layouts, result_place};
pub use pass::{Destination, Lowered, Operands, Source, lower, turn_weights};
pub(crate) use start::Start;

use super::FieldDim;
use super::planner::{Plan, TrainingPlans};
use crate::poplar::work::Work;
use crate::targets::Machine;
use parts::Layout;

impl<'a> Operands<'a> {
    /// Operands of the forward pass.
    pub fn forward(input: Source<'a>, weights: Source<'a>) -> Self {
        Self { input, weights, result: Destination::Planned }
    }

    /// Operands of the backward pass: the forward weights are transposed into what its plan wants.
    pub fn backward(plans: &'a TrainingPlans, gradient: Source<'a>) -> Self {
        Self {
            input: gradient,
            weights: Source::ForwardWeights(&plans.forward),
            result: Destination::Planned,
        }
    }

    /// Operands of the weight update, whose result is brought to where the forward weights are.
    /// Input and output gradient lie as the other two passes want them.
    pub fn weight_update(plans: &'a TrainingPlans) -> Self {
        let wanted_by = |plan: &Plan| Source::Transposed {
            group: plan.vertex.in_chans_per_group,
            tiles: plan.tiles(),
        };
        Self {
            input: wanted_by(&plans.forward),
            weights: wanted_by(&plans.backward),
            result: Destination::Weights(&plans.forward),
        }
    }
}

/// The forward pass of operands that lie as said.
pub fn forward(machine: &Machine, plan: &Plan, input: Source, weights: Source) -> Work {
    lower(machine, plan, &Operands::forward(input, weights)).work
}

/// Multiply-accumulates that the vertices of all tiles do for the operation, padding left out.
pub fn lowered_macs(plan: &Plan) -> u64 {
    let layout = Layout::of(plan);
    let tiles = layout.parts.iter().map(|part| layout.macs(part));
    tiles.sum::<u64>() * plan.partition.serial()
}

/// Name of a pass in profiles: `Conv_1` for matrix products, `Conv_3x3_stride2x2` for others
/// (poplibs `Convolution.cpp` convSuffix).
pub(crate) fn layer_name(plan: &Plan) -> String {
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
