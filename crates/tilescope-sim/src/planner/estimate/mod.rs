//! Cycles of the vertices a convolution is made of, as poplibs estimates them.
//!
//! All functions are pure and return cycles of the tile: six workers take turns, one instruction
//! each, so a worker's cycles count six times. Formulas and constants are those of poplibs in
//! March 2021, `lib/poplin/PerformanceEstimation.hpp` where nothing else is said.

pub(crate) mod amp;
pub(crate) mod elementwise;
pub(crate) mod mac;
pub(crate) mod reduce;
pub(crate) mod slic;
pub(crate) mod workers;

use super::candidates::{Method, VertexType};
use super::plan::Machine;

/// What one vertex computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct VertexWork {
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
pub(crate) struct VertexContext {
    pub vertex: VertexType,
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

impl VertexContext {
    /// Distance between outputs of dimension `dim` that one kernel element contributes to.
    pub(crate) fn active_step(&self, dim: usize) -> u64 {
        self.dilation[dim] / super::ranges::gcd(self.dilation[dim], self.stride[dim])
    }
}

/// Cycles of one vertex on its tile; `None` if the vertex cannot do this.
pub(crate) fn vertex_cycles(
    context: &VertexContext,
    machine: &Machine,
    work: &VertexWork,
) -> Option<u64> {
    match context.vertex.method {
        Method::Amp { conv_units } => Some(amp::cycles(context, machine, work, conv_units)),
        Method::Slic { chains } => slic::cycles(context, machine, work, chains),
        Method::Hmac => Some(mac::horizontal_cycles(context, machine, work)),
        Method::Vmac => mac::vertical_cycles(context, machine, work),
        Method::OuterProduct => mac::outer_product_cycles(context, machine, work),
    }
}

/// A bound no vertex gets below: cycles of `vertex_cycles` are never fewer. It only counts inner
/// loops, so it is linear in the field and quick.
pub(crate) fn fewest_cycles(context: &VertexContext, work: &VertexWork) -> u64 {
    let dims = context.dims;
    let positions: u64 = work.kernel[..dims].iter().product();
    let elements = work.batch
        * (0..dims).map(|dim| work.field[dim].div_ceil(context.dilation[dim])).product::<u64>();
    let groups = work.conv_groups * work.in_groups;
    match context.vertex.method {
        Method::Amp { conv_units } => {
            amp::fewest_cycles(context, work, groups * work.out_groups, elements, conv_units)
        }
        Method::Slic { .. } => work.conv_groups * elements,
        Method::Hmac => groups * work.out_groups * positions * 7 * elements,
        Method::Vmac => groups * elements * 20 * (positions / work.kernel[dims - 1]),
        Method::OuterProduct => work.field[dims - 1] * work.out_groups,
    }
}
