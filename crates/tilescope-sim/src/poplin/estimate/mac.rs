//! Vertices without the matrix engine: dot products (`ConvPartialHorizontalMac`), elementwise
//! products of several groups (`ConvPartialVerticalMac`) and outer products.

use super::{ConvVertexContext, ConvVertexWork, amp};
use crate::shape::gcd;
use crate::targets::IpuTarget;
use tilescope_report::units::Cycles;

/// Cycles of a dot product of `size` input channels (`getDenseDotProductCycles`).
fn dot_product(float_inputs: bool, float_partials: bool, size: u64) -> u64 {
    // 7 cycles set up and wind down the loop, add the old partial sum and branch. Channels that do
    // not fill 64-bit vectors are processed one by one.
    match (float_inputs, float_partials) {
        (true, _) => 7 + if size.is_multiple_of(2) { size } else { 2 * size },
        (false, true) => 7 + if size.is_multiple_of(4) { size / 4 } else { size },
        (false, false) if size.is_multiple_of(4) => 11 + size / 4,
        (false, false) => 12 + size,
    }
}

/// Supervisor cycles of a dot product vertex outside all loops (`convHorizontalMacOverhead`).
fn horizontal_mac_overhead(float_inputs: bool) -> u64 {
    if float_inputs { 58 } else { 63 }
}

/// Rows distributed over workers in equal parts: whole rows and parts of a row of the busiest
/// worker.
struct BusiestWorkerRows {
    whole: u64,
    parts: u64,
    /// Number of parts into which a row is cut.
    cut: u64,
}

fn deal(rows: u64, workers: u64) -> BusiestWorkerRows {
    // The number of parts is such that the workers divide it: otherwise some would idle while
    // others process a whole row more.
    let cut = workers / gcd(workers, rows);
    let busiest = (rows * cut).div_ceil(workers);
    BusiestWorkerRows { whole: busiest / cut, parts: busiest % cut, cut }
}

/// Cycles of a dot product vertex (`getConvPartialHorizontalMacCycleEstimate` for a worker,
/// `getConvPartialHorizontalMacSupervisorInnerLoopCycleEstimate` and
/// `getConvPartialHorizontalMacSupervisorOuterLoopCycleEstimate` around it).
pub(crate) fn horizontal_cycles(
    context: &ConvVertexContext,
    machine: &IpuTarget,
    work: &ConvVertexWork,
) -> Cycles {
    let vertex = &context.vertex;
    let float_inputs = vertex.float_inputs();
    let float_partials = vertex.float_partials();
    let last = context.dims - 1;
    // Divide by the whole dilation, even if strides cancel some of it, as in poplibs' estimate of
    // this vertex, but unlike that of AMP.
    let outer = (0..last).map(|dim| work.field[dim].div_ceil(context.dilation[dim]));
    let rows = work.batch * outer.product::<u64>();
    let row = work.field[last].div_ceil(context.dilation[last]);
    let dealt = deal(rows, machine.workers());

    let dot = dot_product(float_inputs, float_partials, vertex.in_chans_per_group);
    // With half partials two output channels are processed at once. The published estimate halves
    // the count again for every row, so only the first one pays for its products.
    let first_chans =
        if float_partials { vertex.out_chans_per_group } else { vertex.out_chans_per_group / 2 };
    let later_chans = if float_partials { first_chans } else { 0 };
    let mut position = 16;
    if dealt.whole > 0 {
        position += horizontal_entry(row, first_chans, dot)
            + (dealt.whole - 1) * horizontal_entry(row, later_chans, dot);
    }
    if dealt.parts > 0 {
        let part = dealt.parts * (row + dealt.cut - 1) / dealt.cut;
        let chans = if dealt.whole > 0 { later_chans } else { first_chans };
        position += if part == 0 { 7 } else { horizontal_entry(part, chans, dot) };
    }
    let positions: u64 = work.kernel[..context.dims].iter().product();
    let inner = machine.workers() * (positions * position + 16);

    let zero_retention = amp::zero_partials_retention(float_partials);
    let overhead = horizontal_mac_overhead(float_inputs);
    let zero = amp::zero_cycles(
        machine,
        rows * work.field[last] * vertex.out_chans_per_group,
        work.out_groups * work.conv_groups,
    );
    Cycles(
        overhead
            + machine.workers() * zero_retention
            + work.conv_groups * (23 + work.in_groups * (15 + work.out_groups * (10 + inner)))
            + zero,
    )
}

/// Cycles of a worklist entry of `outputs` outputs of a dot product vertex, where one product takes
/// `dot` cycles.
fn horizontal_entry(outputs: u64, out_chans: u64, dot: u64) -> u64 {
    19 + outputs * (7 + out_chans * dot)
}

/// Cycles of an elementwise product vertex. `None` if it has more than one output channel
/// (`getConvPartialVerticalMacCycleEstimate` for a worker, the
/// `getConvPartialVerticalMacSupervisor` estimates for zeroing, reduction and the loops around it).
pub(crate) fn vertical_cycles(
    context: &ConvVertexContext,
    machine: &IpuTarget,
    work: &ConvVertexWork,
) -> Option<Cycles> {
    // The vertex multiplies one input with one output channel, for several groups of a depthwise
    // convolution at a time.
    if work.out_groups > 1 {
        return None;
    }
    let last = context.dims - 1;
    let field: u64 = work.field[..context.dims].iter().product();
    let height = work.kernel[..last].iter().product::<u64>();
    let width = work.kernel[last];
    let dealt = deal(field * work.batch, machine.workers());
    let worker = 6 + height
        * (dealt.whole * vertical_entry(width)
            + dealt.parts * vertical_entry(width.div_ceil(dealt.cut)));
    let inner = machine.workers() * worker;

    // Every worker zeroes its own partials for the whole field. They are added at the end.
    let zero = 4 + field;
    let per_worker = field.div_ceil(machine.workers());
    let reduce = 10 + (9 + 2 * (machine.workers() - 1)) * per_worker / 4;
    let groups = zero + 32 + work.in_groups * (24 + inner) + reduce;
    Some(Cycles(61 + 13 + 26 + groups * work.conv_groups))
}

/// Cycles of a worklist entry of `width` outputs of an elementwise product vertex.
fn vertical_entry(width: u64) -> u64 {
    // 5 of the 20 store and reload the accumulators. poplibs counts them for every entry, although
    // only a change of outputs needs them.
    20 + 2 * (width - 1)
}

/// Cycles of an outer product vertex. `None` if it has more than one column times one row
/// (`getOuterProductCycleEstimate`).
pub(crate) fn outer_product_cycles(
    context: &ConvVertexContext,
    machine: &IpuTarget,
    work: &ConvVertexWork,
) -> Option<Cycles> {
    let outer: u64 = work.field[..context.dims - 1].iter().product();
    let kernel: u64 = work.kernel[..context.dims].iter().product();
    if work.batch * work.in_groups * outer * kernel != 1 {
        return None;
    }
    let chans = context.vertex.out_chans_per_group;
    let width = work.field[context.dims - 1].div_ceil(machine.workers());
    let groups = work.out_groups * work.conv_groups;
    let float = context.vertex.float_inputs() || context.float_output;
    let entry = chans;
    let cycles = if float {
        // The unrolled loop needs at least this number of channels to fill, processes whole
        // vectors, and strides over rows with a field of limited size. All others use the slow
        // loop.
        let row = if entry >= 6 && entry.is_multiple_of(2) && entry / 2 + 1 < 512 {
            6 + (entry - 6) / 2
        } else {
            10 + entry * 2
        };
        25 + groups * (11 + width * row)
    } else {
        let row = if entry >= 12 && entry.is_multiple_of(4) && entry / 4 + 1 < 512 {
            6 + (entry - 12) / 4
        } else {
            10 + entry * 5 / 2
        };
        25 + groups * (10 + width * row)
    };
    Some(Cycles(cycles * machine.workers()))
}
