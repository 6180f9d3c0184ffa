//! Vertices around serial loops and weight updates: slices, updates, additions (poplibs
//! `lib/popops/popopsCycleEstimators.cpp` of March 2021).

use crate::shape::DType;
use crate::targets::IpuTarget;
use tilescope_report::units::{Cycles, Elements};

/// Cycles of a supervisor around an elementwise vertex (`basicOpSupervisorOverhead`).
const SUPERVISOR: u64 = 11;

/// Cycles to slice `elements` of a tile out of a larger tensor, or to write them back
/// (`getDynamicSlice1dEstimate`).
pub(crate) fn dynamic_slice(
    machine: &IpuTarget,
    Elements(elements): Elements,
    data_type: DType,
) -> Cycles {
    let per_worker = elements.div_ceil(machine.workers());
    let vectors = per_worker / machine.vector_width(data_type);
    Cycles(SUPERVISOR + 14 + (41 + 27 + vectors) * machine.workers())
}

/// Cycles to add `elements` of a tile in place (`getBinaryOp1DInPlaceSupervisorEstimate`). Like all loops
/// here that read two operands, it takes 2 cycles per vector: the published benchmarks were
/// estimated with operands in interleaved memory.
pub(crate) fn add_in_place(
    machine: &IpuTarget,
    Elements(elements): Elements,
    data_type: DType,
) -> Cycles {
    let per_worker = elements.div_ceil(machine.workers());
    let vectors = per_worker.div_ceil(machine.vector_width(data_type));
    Cycles(machine.workers() * (58 + 2 * vectors) + SUPERVISOR)
}

/// Cycles to zero `elements` of a tile (`estimateZeroSupervisorCycles` in
/// `lib/poplin/PerformanceEstimation.hpp`).
pub(crate) fn zero(machine: &IpuTarget, Elements(elements): Elements, data_type: DType) -> Cycles {
    let per_loop = machine.workers() * machine.vector_width(data_type);
    Cycles(elements.div_ceil(per_loop) * machine.workers())
}

/// Cycles to transpose `count` blocks of `rows` x `columns` on one tile (popops
/// `TransposeWorkerCycles`, `Transpose2d`): small or single blocks run on one worker, others are dealt out.
pub(crate) fn transpose(
    machine: &IpuTarget,
    count: u64,
    rows: u64,
    columns: u64,
    data_type: DType,
) -> Cycles {
    if count == 0 {
        return Cycles::ZERO;
    }
    let workers = machine.workers();
    let per_worker = count.div_ceil(workers);
    if data_type == DType::Float {
        let fast = rows * columns.saturating_sub(2) / 2 < 512
            && rows.is_multiple_of(2)
            && columns.is_multiple_of(2);
        let worker = if fast {
            27 + per_worker * (11 + rows / 2 * (6 + 3 * (columns / 2).saturating_sub(1)))
        } else {
            13 + per_worker * (8 + columns * (5 + 2 * rows))
        };
        return Cycles(workers * worker);
    }
    if !transposes_together(rows, columns, data_type) {
        return Cycles(workers * (15 + per_worker * (8 + columns * (5 + rows * 5 / 2))));
    }
    let worker = |blocks: u64| {
        if rows == 4 && columns == 4 {
            37 + 4 * blocks.saturating_sub(2)
        } else {
            29 + blocks * (18 + rows / 4 * (12 + 4 * (columns / 4).saturating_sub(2)))
        }
    };
    if count == 1 || (rows == 4 && columns == 4 && count <= 4) {
        Cycles(workers * worker(count))
    } else {
        // The supervisor vertex takes 7 cycles itself and jumps over the first 7 of the worker's
        // codelet.
        Cycles(7 + workers * (worker(per_worker) - 7))
    }
}

/// Whether one vertex of the whole tile transposes several blocks of this size.
pub(crate) fn transposes_together(rows: u64, columns: u64, data_type: DType) -> bool {
    data_type != DType::Float && rows.is_multiple_of(4) && columns.is_multiple_of(4)
}
