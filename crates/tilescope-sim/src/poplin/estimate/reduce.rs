//! Addition of partial sums: stages, vertices, casts.

use crate::shape::DType;
use crate::targets::IpuTarget;
use tilescope_report::units::{Cycles, Elements};

/// Remaining depths after each intermediate stage of a reduction of `depth` partial sums. Empty if
/// one stage is sufficient. More stages mean fewer messages, `n * depth^(1/n)` for `n` stages
/// (poplibs `ConvReducePlan.cpp`).
pub(crate) fn stage_depths(depth: u64) -> Vec<u64> {
    let stages = match depth {
        // Found by benchmarks, according to poplibs: the savings are mostly exchange code.
        125.. => 3,
        16.. => 2,
        _ => 1,
    };
    split_stages(depth, stages).0
}

/// The intermediate depths and the number of messages of each tile.
fn split_stages(depth: u64, stages: u32) -> (Vec<u64>, f32) {
    if stages == 1 {
        return (Vec::new(), depth as f32);
    }
    let exponent = f64::from(stages - 1) / f64::from(stages);
    // The best depth is a root that is rarely whole, so both neighbours are tried. As in poplibs,
    // messages are counted in single precision, or near ties would be resolved differently.
    let lower = Elements::from_f64((depth as f64).powf(exponent)).0;
    let down = split_stages_at(depth, lower, stages);
    let up = split_stages_at(depth, lower + 1, stages);
    if down.1 < up.1 { down } else { up }
}

/// The intermediate depths and the number of messages of each tile, if `next` is the first
/// intermediate depth.
fn split_stages_at(depth: u64, next: u64, stages: u32) -> (Vec<u64>, f32) {
    let (rest, messages) = split_stages(next, stages - 1);
    let mut depths = vec![next];
    depths.extend(rest);
    (depths, messages + depth as f32 / next as f32)
}

/// One stage of a reduction, on one tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvReduceStage {
    /// Number of partial sums that are added into one.
    pub depth: u64,
    pub outputs: Elements,
    /// True for the last stage.
    pub last: bool,
}

/// Stages that reduce `depth` partial sums, where each tile starts with `partials` of them.
pub(crate) fn stages(partials: Elements, depth: u64) -> Vec<ConvReduceStage> {
    if depth <= 1 {
        return Vec::new();
    }
    let mut remaining = depth;
    let mut outputs = partials;
    let mut found = Vec::new();
    // Depths that do not divide evenly leave less than planned, hence the second rounding.
    for target in stage_depths(depth) {
        let depth = remaining.div_ceil(target);
        remaining = remaining.div_ceil(depth);
        outputs = outputs.div_ceil(depth);
        found.push(ConvReduceStage { depth, outputs, last: remaining == 1 });
    }
    if remaining > 1 {
        let outputs = outputs.div_ceil(remaining);
        found.push(ConvReduceStage { depth: remaining, outputs, last: true });
    }
    found
}

/// Returns true if a stage runs on the vertex that reads its partial sums as one block: they must
/// take less than a sixteenth of the tile and form whole vectors (poplibs `ConvReducePlan.hpp`).
pub(crate) fn is_single_input(
    machine: &IpuTarget,
    stage: &ConvReduceStage,
    partials: DType,
) -> bool {
    let vector = if partials == DType::Float { 4 } else { 8 };
    let element = machine.chip.memory_element_bytes;
    // One of the partial sums was computed on this tile and is not part of the block that arrives.
    let bytes = (stage.depth - 1) * stage.outputs * partials.bytes();
    // poplibs measures memory from the first to the last element's offset, one element short. On
    // the first chip a sixteenth of that is less than one element, so no block ever fits.
    stage.outputs.0.is_multiple_of(vector)
        && bytes.next_multiple_of(element) < (machine.chip.bytes_per_tile - element) / 16
}

/// Cycles of a reduction vertex (`getReduceCycleEstimate`).
pub(crate) fn stage_cycles(
    machine: &IpuTarget,
    stage: &ConvReduceStage,
    partials: DType,
    output: DType,
) -> Cycles {
    let workers = machine.workers();
    let vector = if partials == DType::Float { 4 } else { 8 };
    // 64 bits at a time: loads of 128 need partials in interleaved memory, which poplibs requires
    // only for its fast reduction, off by default.
    let loads = vector / machine.vector_width(partials).min(vector);
    let float_partials = partials == DType::Float;
    let float_output = output == DType::Float;
    if is_single_input(machine, stage, partials) {
        let loops = (stage.outputs.0 / vector).div_ceil(workers);
        let overhead = match (float_partials, float_output) {
            (true, true) => 8,
            (true, false) => 7,
            (false, true) => 10,
            (false, false) => 9,
        };
        let worker = 20 + (loads * (stage.depth - 1) + overhead) * loops;
        return Cycles(worker * workers + 33);
    }
    // The rest of a vector is processed in halves of it: one loop for each bit of the rest.
    let tail = stage.outputs.0 % vector;
    let loops = stage.outputs.0 / vector + u64::from(tail.count_ones());
    let mut cycles = 32;
    let mut per_worker = loops / workers;
    if !loops.is_multiple_of(workers) {
        if tail != 0 {
            cycles += 2 * stage.depth + if float_partials { 13 } else { 11 };
        } else {
            per_worker += 1;
        }
    }
    let overhead = match (float_partials, float_output) {
        (true, true) => 7,
        (true, false) => 6,
        (false, true) => 9,
        (false, false) => 8,
    };
    // One additional cycle per partial sum for its pointer, because they are not in one block.
    Cycles((cycles + ((loads + 1) * stage.depth + overhead) * per_worker) * workers)
}

/// Cycles to cast `elements` of a tile (`estimateCastCycles`).
pub(crate) fn cast_cycles(
    machine: &IpuTarget,
    Elements(elements): Elements,
    from: DType,
    to: DType,
) -> Cycles {
    let per_worker = elements.div_ceil(machine.workers());
    let loads = per_worker.div_ceil(machine.vector_width(from));
    let stores = per_worker.div_ceil(machine.vector_width(to));
    Cycles((loads.max(stores) + 26) * machine.workers())
}

/// Cycles of all stages of the reduction, or of the cast if there is nothing to reduce. With serial
/// input channels the cast follows the last addition.
pub(crate) fn reduce_cycles(
    machine: &IpuTarget,
    outputs: Elements,
    depth: u64,
    serial_inputs: u64,
    partials: DType,
    output: DType,
) -> Cycles {
    if depth <= 1 {
        let casts = (partials == DType::Float) != (output == DType::Float) && serial_inputs == 1;
        return if casts { cast_cycles(machine, outputs, partials, output) } else { Cycles::ZERO };
    }
    stages(outputs * depth, depth)
        .iter()
        .map(|stage| {
            let to = if stage.last { output } else { partials };
            stage_cycles(machine, stage, partials, to)
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::{MK1, MK2};

    #[test]
    fn deep_reductions_take_more_stages() {
        assert!(stage_depths(15).is_empty());
        assert_eq!(stage_depths(16), [4]);
        assert_eq!(stage_depths(64), [8]);
        assert_eq!(stage_depths(125).len(), 2);
        let stages = stages(Elements(8000), 64);
        assert_eq!(stages.iter().map(|stage| stage.depth).product::<u64>(), 64);
        assert_eq!(stages.last().map(|stage| stage.outputs), Some(Elements(125)));
    }

    #[test]
    fn one_block_of_partials_is_never_small_enough_on_the_first_chip() {
        let stage = ConvReduceStage { depth: 2, outputs: Elements(4), last: true };
        assert!(!is_single_input(&IpuTarget::all_tiles_of(MK1), &stage, DType::Float));
        assert!(is_single_input(&IpuTarget::all_tiles_of(MK2), &stage, DType::Float));
        let large = ConvReduceStage { depth: 2, outputs: Elements(8196), last: true };
        assert!(!is_single_input(&IpuTarget::all_tiles_of(MK2), &large, DType::Float));
    }
}
