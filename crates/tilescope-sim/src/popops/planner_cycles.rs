//! Vertices for serial loops and weight updates: slices, updates, additions (poplibs
//! `lib/popops/popopsCycleEstimators.cpp` of March 2021).

use crate::shape::DType;
use crate::targets::IpuTarget;
use tilescope_report::units::{Cycles, Elements};

/// Cycles of a supervisor around an elementwise vertex (`basicOpSupervisorOverhead`).
const SUPERVISOR: u64 = 11;

/// Cycles to slice `elements` of a tile from a larger tensor, or to write them back
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

/// Cycles to add `elements` of a tile in place (`getBinaryOp1DInPlaceSupervisorEstimate`). Like all
/// loops here that read two operands, it takes 2 cycles per vector, because the published
/// benchmarks were estimated with operands in interleaved memory.
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
