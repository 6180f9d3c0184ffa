//! Cycles of the vertices of a convolution, as poplibs estimates them.
//!
//! All functions are pure and return tile cycles: six workers take turns with one instruction each,
//! so a worker's cycles count six times. Formulas and constants are those of poplibs in March 2021,
//! `lib/poplin/PerformanceEstimation.hpp` unless stated otherwise. Inside a formula cycles are
//! plain numbers. Functions for other files return [`Cycles`].

pub(crate) mod amp;
pub(crate) mod mac;
pub(crate) mod reduce;
pub(crate) mod slic;
pub(crate) mod worker_partition;

use super::planner::vertex_candidates::{ConvMethod, ConvVertexType};
use crate::targets::IpuTarget;
use tilescope_report::units::Cycles;

/// Work of one vertex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConvVertexWork {
    pub batch: u64,
    /// Number of output elements of each dimension.
    pub field: [u64; 3],
    /// Number of kernel elements of each dimension.
    pub kernel: [u64; 3],
    pub conv_groups: u64,
    /// Number of groups of input channels.
    pub in_groups: u64,
    /// Number of groups of output channels.
    pub out_groups: u64,
}

/// Properties of an operation that are equal on all tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvVertexContext {
    pub vertex: ConvVertexType,
    /// Number of dimensions in use.
    pub dims: usize,
    /// Input dilation of each dimension, or 1 if the dimension is transformed.
    pub dilation: [u64; 3],
    /// Output stride of each dimension, or 1 if the dimension is transformed.
    pub stride: [u64; 3],
    /// Stride of the innermost dimension of the operation itself.
    pub innermost_stride: u64,
    /// True if the shape of the whole operation allows the 1x1 vertex for kernels of size 1.
    pub may_use_1x1: bool,
    /// True if the result of the operation is 32-bit float.
    pub float_output: bool,
}

impl ConvVertexContext {
    /// Distance between outputs of dimension `dim` that one kernel element contributes to.
    pub(crate) fn active_step(&self, dim: usize) -> u64 {
        self.dilation[dim] / crate::shape::gcd(self.dilation[dim], self.stride[dim])
    }
}

/// Cycles of one vertex on its tile, or `None` if the vertex does not support the work.
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

/// Lower bound of `vertex_cycles`. It counts only inner loops, so it is linear in the field and
/// fast.
pub(crate) fn vertex_cycles_lower_bound(
    context: &ConvVertexContext,
    work: &ConvVertexWork,
) -> Cycles {
    let dims = context.dims;
    let positions: u64 = work.kernel[..dims].iter().product();
    // With a dilated input one output in `dilation` meets a given kernel element, or more if
    // strides share a factor. This is the minimum.
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
