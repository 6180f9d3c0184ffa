//! Matrix engine: kernels of size one (`ConvPartial1x1Out`) and of any size (`ConvPartialnx1`).

use super::worker_partition::{ConvOutputRows, ConvWorkerShare};
use super::{ConvVertexContext, ConvVertexWork};
use crate::poplin::planner::vertex_candidates::{ConvVertexType, weights_per_conv_unit};
use crate::shape::DType;
use crate::targets::IpuTarget;
use tilescope_report::units::Cycles;

/// Parameters that determine the speed of the inner loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AmpCycleEstimator {
    float_inputs: bool,
    float_partials: bool,
    quarter: bool,
    units: u64,
    passes: u64,
    /// Cycles to load the weights of one pass.
    weight_load: u64,
    workers: u64,
}

/// Cycles of a worker that are saved by state kept between calls.
#[derive(Default)]
struct RetentionSavings {
    /// Cycles that only the first call saves.
    first_call: u64,
    /// Cycles that every group of input channels saves.
    input_group: u64,
}

impl AmpCycleEstimator {
    /// The engine of `vertex` with `units` units in use.
    pub(crate) fn new(vertex: &ConvVertexType, machine: &IpuTarget, units: u64) -> Self {
        let weight_bytes = weights_per_conv_unit(vertex.input_type) * vertex.input_type.bytes();
        // `convUnitCoeffLoadBytesPerCycle` applies to loads of 128 bits, and is halved without
        // `use128BitConvUnitLoad` (poplibs lib/poplin/ConvModel.cpp, poplinCycleEstimators.cpp).
        // The rate of a chip here applies to 64 bits.
        let loads = if vertex.wide_weight_loads { 2 } else { 1 };
        Self {
            float_inputs: vertex.float_inputs(),
            float_partials: vertex.float_partials(),
            quarter: vertex.input_type == DType::Quarter,
            units,
            passes: vertex.out_chans_per_group.div_ceil(units),
            // A unit takes 32 bytes of weights. The supervisor loads them while all workers wait.
            weight_load: units * weight_bytes.0 / (loads * machine.chip.coeff_load_speed.0),
            workers: machine.workers(),
        }
    }

    /// Cycles of a worker per output.
    fn core(&self) -> u64 {
        if self.float_inputs { 8 } else { 4 }
    }

    /// Returns true if the worker is the common one of half inputs with float partials or 16 units.
    fn is_common_half(&self) -> bool {
        !self.float_inputs && (self.float_partials || self.units == 16)
    }

    /// Cycles saved by state kept between calls (`conv1x1WorkerRetentionSavings`).
    fn retention_savings(&self) -> RetentionSavings {
        // Registers that still hold the values of a worker's last call are not set up again.
        if self.is_common_half() && !self.quarter {
            RetentionSavings { first_call: 10, input_group: 2 }
        } else {
            RetentionSavings::default()
        }
    }

    /// Cycles of a worker of the 1x1 vertex for `outputs` outputs: the inner part of
    /// `getConvPartial1x1SupervisorInnerLoopCycleEstimate`.
    fn worker_1x1(&self, outputs: u64, zeroing: bool) -> u64 {
        let pipelined = outputs.saturating_sub(3) * self.core();
        if self.quarter {
            // Poplibs 2023, the first version with 8-bit floats.
            let base = match outputs {
                0 => 21,
                1 => 35,
                2 => 40,
                _ => 44 + pipelined,
            };
            return base - if zeroing && outputs > 0 { 5 } else { 0 };
        }
        // Up to two outputs take separate branches around the pipelined loop, which starts at
        // three.
        if self.is_common_half() {
            let extra = if zeroing { 2 } else { 4 };
            let base = match outputs {
                0 => 20 + extra,
                1 => 31 + extra,
                2 => 40 + extra,
                _ => pipelined + if zeroing { 38 } else { 40 },
            };
            return base - self.retention_savings().first_call;
        }
        let zero_cycles = if self.float_inputs && self.units == 16 {
            8
        } else if self.float_partials {
            4
        } else {
            2
        };
        // Other codelets have no loop that starts from zeros: they clear their outputs first and
        // then add to them as to any partials.
        let zero = if zeroing && outputs > 0 { 2 + zero_cycles * outputs } else { 0 };
        zero + match (outputs, self.float_inputs) {
            (0, _) => 24,
            (1, true) => 47,
            (1, false) => 39,
            (2, true) => 46,
            (2, false) => 40,
            (_, true) => 46 + pipelined,
            (_, false) => 41 + pipelined,
        }
    }

    /// Cycles until all workers of the 1x1 vertex have finished one pass over at most one row each.
    /// Workers without outputs have no entry and cost nothing
    /// (`getConvPartial1x1SupervisorInnerLoopCycleEstimate`; in the 14 cycles the fastest worker
    /// exits).
    fn inner_1x1(&self, rows: ConvOutputRows, zeroing: bool) -> u64 {
        let workers = rows.worker_cost_extremes(self.workers, |share: ConvWorkerShare| {
            if share.first == 0 { 0 } else { self.worker_1x1(share.first, zeroing) }
        });
        // Even with equal shares the supervisor waits for the worker that it started last.
        (self.workers * workers.slowest).max(self.workers * workers.fastest + 14)
    }

    /// Cycles of the 1x1 vertex (`getConvPartial1x1SupervisorOuterLoopCycleEstimate`).
    pub(crate) fn cycles_1x1(&self, work: &ConvVertexWork, rows: ConvOutputRows) -> Cycles {
        let conv_groups = work.conv_groups;
        let in_groups = work.in_groups;
        let out_groups = work.out_groups;
        // Only the first group of input channels starts from zeros. The others add to its partials.
        let first = self.inner_1x1(rows, true);
        let later = self.inner_1x1(rows, false);
        let loads = self.weight_load;
        if self.quarter {
            let out_group = 46 + 131 + loads + first + (in_groups - 1) * (108 + loads + later);
            return Cycles(46 + conv_groups * (21 + out_groups * out_group));
        }
        let saved = self.retention_savings();
        let later_pass = out_groups * (19 + self.passes * (6 + loads + later));
        let first_pass = out_groups * (19 + self.passes * (7 + loads + first));
        Cycles(
            // `worker_1x1` subtracts kept state from every call. The first call had none, so its
            // cycles are added here.
            50 + self.workers
                * (saved.first_call + saved.input_group * (in_groups * conv_groups - 1))
                + conv_groups * (12 + (in_groups - 1) * (16 + later_pass) + 11 + first_pass),
        )
    }

    /// Cycles of a worker of the nx1 vertex for one kernel position
    /// (`getConvPartialnx1SupervisorInnerLoopCycleEstimate`).
    fn worker_nx1(&self, share: ConvWorkerShare) -> u64 {
        let rows = share.sum_over_worklist(|outputs| {
            let cycles = match (outputs, self.float_inputs) {
                (0, _) => 17,
                (1, true) => 33,
                (1, false) => 29,
                (2, true) => 44,
                (2, false) => 33,
                (_, true) => 45 + 8 * (outputs - 3),
                (_, false) => 34 + 4 * (outputs - 3),
            };
            cycles - NX1_RETENTION
        });
        17 + u64::from(!self.float_partials) + rows
    }

    /// Cycles of one kernel position of the nx1 vertex with outputs `rows`
    /// (`getConvPartialnx1SupervisorInnerLoopCycleEstimate`, one iteration of its loop over the
    /// kernel).
    pub(crate) fn kernel_position_cycles_nx1(&self, rows: ConvOutputRows, height: u64) -> Cycles {
        let workers = rows.worker_cost_extremes(self.workers, |share| self.worker_nx1(share));
        // The more kernel rows share a unit, the more pieces its weights are gathered from.
        let switch = match height {
            1 => 15,
            2 => 46,
            4 => 60,
            _ => 20 * height,
        };
        let workers = (self.workers * workers.slowest).max(self.workers * workers.fastest + 9);
        Cycles(12 + self.passes * (self.weight_load + switch + 3 + workers))
    }

    /// Cycles of the nx1 vertex. `inner` is the sum over kernel positions, `field` the number of
    /// outputs to be zeroed first (`getConvPartialnx1SupervisorOuterLoopCycleEstimate`).
    pub(crate) fn cycles_nx1(
        &self,
        machine: &IpuTarget,
        vertex: &ConvVertexType,
        work: &ConvVertexWork,
        inner: Cycles,
        field: u64,
    ) -> Cycles {
        let conv_groups = work.conv_groups;
        let in_groups = work.in_groups;
        let out_groups = work.out_groups;
        // This vertex only adds, so all partials are zeroed before its first kernel position.
        let zero_retention = zero_partials_retention(self.float_partials);
        Cycles(
            NX1_OVERHEAD
                + self.workers * (NX1_RETENTION + zero_retention)
            // A taken `brnzdec` stalls the supervisor for six cycles. The last one falls through in
            // one.
                + conv_groups * (out_groups * 17 + out_groups.saturating_sub(1) * 6 + 1)
                + conv_groups.saturating_sub(1) * 6
                + 1
                + conv_groups * (16 + in_groups * (14 + out_groups * (14 + inner.0)))
                + zero_cycles(
                    machine,
                    field * vertex.out_chans_per_group,
                    out_groups * conv_groups,
                ),
        )
    }
}

/// Supervisor cycles of the nx1 vertex outside all loops (`convNx1Overhead`).
const NX1_OVERHEAD: u64 = 103;

/// Worker cycles saved by state kept between calls of the zeroing vertex
/// (`zeroPartialsRetentionSavings`).
pub(super) fn zero_partials_retention(float_partials: bool) -> u64 {
    if float_partials { 9 } else { 10 }
}

/// Worker cycles saved by state kept between calls of the nx1 vertex
/// (`convnx1WorkerRetentionSavings`).
const NX1_RETENTION: u64 = 6;

/// Cycles to zero `groups` blocks of `elements` partials each
/// (`getZeroSupervisorVertexCycleEstimate`). Poplibs always counts them as floats here.
pub(super) fn zero_cycles(machine: &IpuTarget, elements: u64, groups: u64) -> u64 {
    let per_worker = elements.div_ceil(machine.workers());
    let vectors = per_worker.div_ceil(machine.vector_width(DType::Float));
    // 9 of the 14 cycles of a call are kept state, which the caller adds once for the first call.
    (vectors + 14 - 9) * machine.workers() * groups
}

/// Cycles of an AMP vertex as the planner estimates it: every kernel position covers the whole
/// field.
pub(crate) fn cycles(
    context: &ConvVertexContext,
    machine: &IpuTarget,
    work: &ConvVertexWork,
    units: u64,
) -> Cycles {
    let engine = AmpCycleEstimator::new(&context.vertex, machine, units);
    let dims = context.dims;
    let height = context.vertex.kernel_height(machine);
    let positions: u64 = work.kernel[..dims].iter().product();
    let field: u64 = work.field[..dims].iter().product::<u64>() * work.batch;
    let rows = active_rows(context, work);
    // Here the choice is for the whole operation, as in the planner of poplibs. Lowering decides
    // again for each tile by its own worklist.
    if context.may_use_1x1 && height == 1 && positions == 1 {
        return engine.cycles_1x1(work, rows);
    }
    let outer = work.kernel[0].div_ceil(height);
    let inner = outer * positions / work.kernel[0] / outer;
    let inner = outer * (Cycles(14) + inner * engine.kernel_position_cycles_nx1(rows, height));
    engine.cycles_nx1(machine, &context.vertex, work, inner, field)
}

/// The outputs that one kernel position contributes to.
pub(crate) fn active_rows(context: &ConvVertexContext, work: &ConvVertexWork) -> ConvOutputRows {
    let last = context.dims - 1;
    // Other outputs meet the zeros between dilated inputs at this kernel element, so they have no
    // entry in the worklist.
    let outer = (0..last).map(|dim| work.field[dim].div_ceil(context.active_step(dim)));
    ConvOutputRows {
        count: work.batch * outer.product::<u64>(),
        length: work.field[last].div_ceil(context.active_step(last)),
    }
}

/// Lower bound of [`cycles`], as a plain number: weight loads and one core loop per output.
pub(super) fn cycles_lower_bound(
    context: &ConvVertexContext,
    work: &ConvVertexWork,
    groups: u64,
    elements: u64,
    units: u64,
) -> u64 {
    let vertex = &context.vertex;
    let core = if vertex.float_inputs() { 8 } else { 4 };
    let passes = vertex.out_chans_per_group.div_ceil(units);
    // A kernel packed into the height of the engine takes at least a quarter of the positions.
    let full = weights_per_conv_unit(vertex.input_type);
    let packed = (full / vertex.in_chans_per_group).max(1);
    let outer = work.kernel[0].div_ceil(packed);
    let inner: u64 = work.kernel[1..context.dims].iter().product();
    groups * passes * outer * inner * core * elements
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplin::planner::vertex_candidates::ConvMethod;
    use crate::targets::find_chip;

    /// Loads of 128 bits bring a block of weights in half the cycles, and change nothing else.
    #[test]
    fn wide_loads_halve_the_cycles_of_weights() {
        let machine = IpuTarget::all_tiles_of(*find_chip("mk2").expect("a chip"));
        for (input_type, partial_type, units) in [
            (DType::Half, DType::Float, 16),
            (DType::Half, DType::Half, 8),
            (DType::Float, DType::Float, 8),
        ] {
            let vertex = |wide_weight_loads| ConvVertexType {
                method: ConvMethod::Amp { conv_units: units },
                input_type,
                partial_type,
                groups_per_group: 1,
                in_chans_per_group: weights_per_conv_unit(input_type),
                out_chans_per_group: units,
                wide_weight_loads,
            };
            let of = |wide| AmpCycleEstimator::new(&vertex(wide), &machine, units);
            assert_eq!((of(false).weight_load, of(true).weight_load), (4 * units, 2 * units));
            for (conv_groups, in_groups, out_groups, count) in
                [(1, 1, 1, 7), (2, 3, 5, 1), (1, 13, 1, 100)]
            {
                let work = ConvVertexWork {
                    batch: 1,
                    field: [1; 3],
                    kernel: [1; 3],
                    conv_groups,
                    in_groups,
                    out_groups,
                };
                let rows = ConvOutputRows { count, length: 1 };
                let saved = of(false).cycles_1x1(&work, rows) - of(true).cycles_1x1(&work, rows);
                assert_eq!(saved, Cycles(2 * units * conv_groups * in_groups * out_groups));
            }
        }
    }
}
