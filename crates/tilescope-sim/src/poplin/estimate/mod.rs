//! Cycles of the vertices a convolution is made of, as poplibs estimates them.
//!
//! All functions are pure and return cycles of the tile: six workers take turns, one instruction
//! each, so a worker's cycles count six times. Formulas and constants are those of poplibs in
//! March 2021, `lib/poplin/PerformanceEstimation.hpp` where nothing else is said. Inside a formula
//! cycles are plain numbers; what leaves a file are [`Cycles`].

pub(crate) mod amp;
pub(crate) mod mac;
pub(crate) mod reduce;
pub(crate) mod slic;
pub(crate) mod worker_partition;

use super::planner::vertex_candidates::{ConvMethod, ConvVertexType};
use crate::targets::IpuTarget;
use tilescope_report::units::Cycles;

/// What one vertex computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConvVertexWork {
    pub batch: u64,
    /// Output elements of each dimension.
    pub field: [u64; 3],
    /// Kernel elements of each dimension.
    pub kernel: [u64; 3],
    pub conv_groups: u64,
    /// Groups of input channels.
    pub in_groups: u64,
    /// Groups of output channels.
    pub out_groups: u64,
}

/// What is the same for every tile of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvVertexContext {
    pub vertex: ConvVertexType,
    /// Number of dimensions in use.
    pub dims: usize,
    /// Input dilation of each dimension, 1 where the dimension is transformed.
    pub dilation: [u64; 3],
    /// Output stride of each dimension, 1 where the dimension is transformed.
    pub stride: [u64; 3],
    /// Stride of the innermost dimension of the operation itself.
    pub innermost_stride: u64,
    /// Whether the shape of the whole operation allows the 1x1 vertex where the kernel is 1.
    pub may_use_1x1: bool,
    /// Whether the result of the operation is 32-bit float.
    pub float_output: bool,
}

impl ConvVertexContext {
    /// Distance between outputs of dimension `dim` that one kernel element contributes to.
    pub(crate) fn active_step(&self, dim: usize) -> u64 {
        self.dilation[dim] / crate::shape::gcd(self.dilation[dim], self.stride[dim])
    }
}

/// Cycles of one vertex on its tile; `None` if the vertex cannot do this.
pub(crate) fn vertex_cycles(
    context: &ConvVertexContext,
    machine: &IpuTarget,
    work: &ConvVertexWork,
) -> Option<Cycles> {
    match context.vertex.method {
        ConvMethod::Amp { conv_units } => Some(amp::cycles(context, machine, work, conv_units)),
        ConvMethod::Slic { chains } => slic::cycles(context, machine, work, chains),
        ConvMethod::Hmac => Some(mac::horizontal_cycles(context, machine, work)),
        ConvMethod::Vmac => mac::vertical_cycles(context, machine, work),
        ConvMethod::OuterProduct => mac::outer_product_cycles(context, machine, work),
    }
}

/// A bound no vertex gets below: cycles of `vertex_cycles` are never fewer. It only counts inner
/// loops, so it is linear in the field and quick.
pub(crate) fn vertex_cycles_lower_bound(
    context: &ConvVertexContext,
    work: &ConvVertexWork,
) -> Cycles {
    let dims = context.dims;
    let positions: u64 = work.kernel[..dims].iter().product();
    // With a dilated input one output in `dilation` meets a given kernel element, or more where
    // strides share a factor: this is the least.
    let elements = work.batch
        * (0..dims).map(|dim| work.field[dim].div_ceil(context.dilation[dim])).product::<u64>();
    let groups = work.conv_groups * work.in_groups;
    Cycles(match context.vertex.method {
        ConvMethod::Amp { conv_units } => {
            amp::cycles_lower_bound(context, work, groups * work.out_groups, elements, conv_units)
        }
        ConvMethod::Slic { .. } => work.conv_groups * elements,
        ConvMethod::Hmac => groups * work.out_groups * positions * 7 * elements,
        ConvMethod::Vmac => groups * elements * 20 * (positions / work.kernel[dims - 1]),
        ConvMethod::OuterProduct => work.field[dims - 1] * work.out_groups,
    })
}
