//! Matrix engine as a sliding window over a row (`ConvPartial1x4SLIC`).

use super::worker_partition::{ConvOutputRows, ConvWorkerShare};
use super::{ConvVertexContext, ConvVertexWork};
use crate::poplin::planner::vertex_candidates::SLIC_WINDOW;
use crate::targets::IpuTarget;
use tilescope_report::units::Cycles;

/// Variant of the vertex.
#[derive(Clone, Copy, Debug)]
struct SlicVertexVariant {
    /// True for two chains with half partials: each pass writes to a different buffer, and the
    /// buffers are merged at the end.
    merges: bool,
    float_partials: bool,
    /// Number of times the input is read.
    input_passes: u64,
    stride: u64,
}

impl SlicVertexVariant {
    fn new(context: &ConvVertexContext, chains: u64) -> Self {
        let float_partials = context.vertex.float_partials();
        Self {
            merges: chains == 2 && !float_partials,
            float_partials,
            input_passes: if chains == 4 { 1 } else { 2 },
            stride: context.innermost_stride,
        }
    }

    /// Cycles of one pass over a row of `outputs`: the inner part of
    /// `getConvPartialSlicSupervisorInnerLoopCycleEstimate`.
    fn row(&self, outputs: u64, zeroing: bool) -> u64 {
        let cycles = if self.stride == 1 {
            let unrolled = if self.merges { 6 } else { 5 };
            match (outputs < unrolled, zeroing) {
                (true, true) => 13 + if outputs > 1 { outputs } else { 0 },
                (true, false) if outputs == 1 => 13,
                // Short rows branch into the middle of the unrolled loop:
                // `7 + 1 + (n - 1) + 2 + (4 - n) + 2 + (3 - (4 - n)) + 3`.
                (true, false) => 17 + outputs,
                (false, _) => 10 + outputs + if self.merges && !zeroing { 3 } else { 0 },
            }
        } else if outputs < 3 {
            10 + if outputs == 1 { 3 } else { 5 }
        } else {
            15 + 2 * (outputs - 3)
        };
        // A dummy dual load advances both pointers at once for float partials.
        cycles - u64::from(self.float_partials)
    }

    /// Cycles of a worker for one group and sub-kernel
    /// (`getConvPartialSlicSupervisorInnerLoopCycleEstimate`).
    fn worker(&self, share: ConvWorkerShare, zeroing: bool) -> u64 {
        let start = if self.merges { 9 } else { 10 } + u64::from(zeroing);
        let partials = if self.float_partials { 3 } else { 0 };
        let entries = share.sum_over_worklist(|outputs| {
            start + partials + self.row(outputs, zeroing) * self.input_passes
        });
        17 + entries + if self.merges { 2 } else { 0 }
    }
}

/// Cycles of a SLIC vertex. `None` if it has more than one group of channels or a stride that the
/// vertex does not support (`getConvPartialSlicSupervisorOuterLoopCycleEstimate`, with
/// `getConvPartialSlicSupervisorWeightLoadCycleEstimate`).
pub(crate) fn cycles(
    context: &ConvVertexContext,
    machine: &IpuTarget,
    work: &ConvVertexWork,
    chains: u64,
) -> Option<Cycles> {
    if work.in_groups != 1 || work.out_groups != 1 || context.innermost_stride > 2 {
        return None;
    }
    let window = SlicVertexVariant::new(context, chains);
    let workers = machine.workers();
    let last = context.dims - 1;
    let outer: u64 = work.field[..last].iter().product();
    let rows = ConvOutputRows { count: work.batch * outer, length: work.field[last] };
    let outputs = rows.count * rows.length;
    let first = rows.worker_cost_extremes(workers, |share| window.worker(share, true)).slowest;
    let later = rows.worker_cost_extremes(workers, |share| window.worker(share, false)).slowest;
    // The buffers are merged with the last sub-kernel. The merge is counted with the first, the
    // zeroing one, because both occur equally often.
    let merge = if window.merges { 2 + 2 * outputs } else { 0 };

    let other: u64 = work.kernel[..last].iter().product();
    let sub_kernels = work.kernel[last].div_ceil(SLIC_WINDOW) * other;
    let groups = work.conv_groups;
    // Sixteen 64-bit loads fill the units. Weights of several groups are not in the order that the
    // units need, so workers rearrange them first.
    let weight_load = 16
        + match context.vertex.groups_per_group {
            1 => 18,
            4 => 9 + 6 + 10 * workers + 6,
            _ => 9 + 6 + 12 * workers + 6,
        };
    let (preamble, per_group, per_kernel) = if window.merges { (25, 12, 15) } else { (28, 15, 19) };
    Some(Cycles(
        preamble
            + per_group * groups
            + 6 * (groups - 1)
            + 1
            // Six cycles of a taken `brnzdec` in all iterations except the last, as in `per_group`
            // above.
            + (weight_load + per_kernel) * sub_kernels
            + 6 * (sub_kernels - 1)
            + 1
            + groups * (first * workers + merge)
            + groups * (sub_kernels - 1) * later * workers,
    ))
}
