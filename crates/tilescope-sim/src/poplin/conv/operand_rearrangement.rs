//! Operands and results whose tiles or layout differ from those of a plan.
//!
//! Data with another innermost dimension are regrouped first: blocks of the two groupings are moved
//! to one tile each and transposed there (popops `Rearrange.cpp`). Then they are moved to the tiles
//! of the plan. Exchanges put their words directly into place. Elements smaller than a word take
//! [`SUBWORD_REARRANGE_CYCLES_PER_BYTE`] longer. Only data that no exchange delivers, such as
//! padding, are copied on the tile.

use super::operand_routes::{OperandPattern, OperandTransfer};
use super::work_builder::{ConvWorkBuilder, OperandExchangeFlow, messages, vertex_on};
use crate::cost_constants::{
    RELAYOUT_MESSAGES, SUBWORD_REARRANGE_CYCLES_PER_BYTE, TRANSPOSING_MESSAGES,
};
use crate::poplar::exchange::WORD_BYTES;
pub(crate) use crate::popops::rearrange::{TransposeBlockShape, regroup_grain};
use crate::popops::transpose::{self, TransposeMatrices};
use crate::poputil::list_length;
use crate::shape::DType;
use crate::targets::IpuTarget;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements, Quantity};

/// Bytes on each of `tiles` tiles of a tensor spread evenly in grains of `grain`.
pub(crate) fn spread(bytes: Bytes, grain: Bytes, tiles: u64) -> Vec<Bytes> {
    deal(bytes.0, grain.0, tiles).into_iter().map(Bytes).collect()
}

/// Parts of `count` items on each of `tiles` tiles, in whole grains except the last.
pub(crate) fn deal(count: u64, grain: u64, tiles: u64) -> Vec<u64> {
    let grain = grain.max(1);
    let grains = count.div_ceil(grain);
    let mut parts = Vec::new();
    let mut start = 0;
    for tile in 0..tiles {
        // Rounded up, so that a tensor of few grains begins at tile 0.
        let end = (grains.share_rounded_up(tile + 1, tiles) * grain).min(count);
        parts.push(end - start);
        start = end;
    }
    parts
}

/// Adds the exchange that moves tensors of `data_type` to other tiles. `bytes` arrive on each tile.
pub(crate) fn relocate(
    builder: &mut ConvWorkBuilder,
    machine: &IpuTarget,
    name: &str,
    data_type: DType,
    bytes: &[Bytes],
    pattern: OperandPattern,
    transposing: bool,
) {
    let messages_in = if transposing { &TRANSPOSING_MESSAGES } else { &RELAYOUT_MESSAGES }.count();
    let placing = if data_type.bytes() < WORD_BYTES {
        SUBWORD_REARRANGE_CYCLES_PER_BYTE.ratio()
    } else {
        0.0
    };
    let flow = bytes.iter().map(|&bytes| OperandExchangeFlow {
        received: bytes,
        sent: bytes,
        // Even if there are few pieces, long ones are sent in instructions of 64 words.
        messages_in: if !bytes.is_zero() { messages_in.max(messages(bytes)) } else { 0 },
        placing_cycles: Cycles::from_f64((bytes.as_f64() * placing).round()),
        ..OperandExchangeFlow::default()
    });
    let operand = OperandTransfer { flows: flow.collect(), pattern };
    builder.exchange(machine, format!("{name}/ExchangePre"), &[operand]);
}

/// Tensor whose blocks are transposed on their tiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockTransposition {
    /// Size of the blocks.
    pub blocks: TransposeBlockShape,
    /// Number of blocks on each tile.
    pub counts: Vec<u64>,
}

impl BlockTransposition {
    /// Distributes `elements` of a type in blocks over the first `holders` tiles, the number of
    /// tiles that hold the tensor, with equal numbers on each until none are left (popops
    /// `Rearrange.cpp` regroupTensor).
    pub(crate) fn dealt(
        blocks: TransposeBlockShape,
        (elements, data_type): (Elements, DType),
        holders: u64,
        tiles: u64,
    ) -> Self {
        let blocks = blocks.spread(elements, tiles, data_type);
        let mut left = blocks.count(elements);
        let each = left.div_ceil(holders.max(1));
        let mut counts = Vec::new();
        for _ in 0..holders {
            let count = each.min(left);
            left -= count;
            counts.push(count);
        }
        Self { blocks, counts }
    }

    /// Returns the blocks of a tensor with `stored` elements on each tile, whose rows have `group`
    /// elements of the innermost dimension. The tile that holds the first element of a block
    /// transposes it.
    pub(crate) fn in_place(blocks: TransposeBlockShape, group: u64, stored: &[Elements]) -> Self {
        // Adjacent blocks begin in the same row.
        let rows_of_blocks = group * blocks.to;
        let beside = group / blocks.from;
        let mut counts = Vec::with_capacity(stored.len());
        let mut first = 0;
        for elements in stored {
            let end = first + elements.0;
            let begins = end.div_ceil(rows_of_blocks) - u64::div_ceil(first, rows_of_blocks);
            counts.push(beside * begins);
            first = end;
        }
        Self { blocks, counts }
    }

    /// Estimates the speed at which the tiles transpose the blocks of a fully connected layer.
    /// Higher is faster. If a block is not contiguous afterwards, `is_scattered`, the blocks are
    /// gathered once more (poplibs `Convolution.cpp` blockScore).
    pub(crate) fn score(&self, data_type: DType, is_scattered: bool) -> f64 {
        let TransposeBlockShape { from, to } = self.blocks;
        let tiles = self.counts.iter().filter(|count| **count > 0);
        let is_fast = tiles.clone().all(|count| {
            TransposeMatrices { count: *count, rows: to, columns: from }.is_fast(data_type)
        });
        let of_tile = if is_fast { 5.0 } else { 1.0 };
        tiles.count() as f64 * if is_scattered { of_tile / 3.0 } else { of_tile }
    }

    /// Bytes of the blocks on each tile.
    pub(crate) fn bytes(&self, data_type: DType) -> impl Iterator<Item = Bytes> {
        let block = self.blocks.from * self.blocks.to * data_type.bytes();
        self.counts.iter().map(move |count| *count * block)
    }

    /// Vertices of `count` blocks on one tile.
    fn vertices(&self, machine: &IpuTarget, count: u64, data_type: DType) -> TransposeVertices {
        let TransposeBlockShape { from, to } = self.blocks;
        let blocks = TransposeMatrices { count, rows: to, columns: from };
        let cycles = transpose::transpose(data_type, blocks);
        let workers = if blocks.share_a_vertex(data_type) {
            None
        } else {
            Some(count.min(machine.workers()))
        };
        TransposeVertices { cycles, workers }
    }
}

/// Vertices that transpose blocks on one tile.
struct TransposeVertices {
    cycles: Cycles,
    /// Number of workers that share the blocks, with one vertex each. `None` if one vertex occupies
    /// the tile.
    workers: Option<u64>,
}

/// Adds the exchange that gathers the blocks of `tensors`, and their transposition. `padding` is
/// the cycles of each tile for filling in elements that the tensors lack.
///
/// Returns the first phase that no longer reads the tensors.
pub(crate) fn regroup(
    builder: &mut ConvWorkBuilder,
    machine: &IpuTarget,
    name: &str,
    data_type: DType,
    tensors: &[BlockTransposition],
    pattern: OperandPattern,
    padding: &[Cycles],
) -> usize {
    let mut bytes = vec![Bytes::ZERO; machine.tiles as usize];
    for tensor in tensors {
        bytes.iter_mut().zip(tensor.bytes(data_type)).for_each(|(sum, bytes)| *sum += bytes);
    }
    let gathered = format!("{name}/preRegroup");
    let start = builder.phase_count();
    relocate(builder, machine, &gathered, data_type, &bytes, pattern, true);
    builder.copies(format!("{gathered}/OnTileCopy-0"), padding, &[]);
    let transposed_at = builder.phase_count();
    transpose(builder, machine, format!("{name}/Transpose_#0"), data_type, tensors);
    temporary(builder, gathered, start, &bytes);
    // The result is stored beside the operand, and is freed after the next exchange.
    let live = transposed_at..transposed_at + 2;
    let name = format!("{name}/partialTranspose");
    builder.temporary_until(name, MemoryCategory::Rearrangement, false, live, &bytes);
    transposed_at
}

/// Adds the transposition of blocks on their tiles. Vertices of the whole tile run in sequence,
/// those of single workers in parallel.
pub(crate) fn transpose(
    builder: &mut ConvWorkBuilder,
    machine: &IpuTarget,
    name: String,
    data_type: DType,
    tensors: &[BlockTransposition],
) {
    let tiles = tensors.iter().map(|tensor| tensor.counts.len()).max().unwrap_or(0);
    let mut cycles = vec![Cycles::ZERO; tiles];
    let mut vertices = Vec::new();
    for (tile, cycles) in cycles.iter_mut().enumerate() {
        let on_tile = tensors.iter().filter_map(|tensor| {
            let count = *tensor.counts.get(tile).filter(|count| **count > 0)?;
            Some(tensor.vertices(machine, count, data_type))
        });
        *cycles = side_by_side(on_tile, machine.workers());
    }
    for tensor in tensors {
        let mut of_workers = Vec::new();
        let mut of_tiles = Vec::new();
        for count in &tensor.counts {
            let workers = tensor.vertices(machine, *count, data_type).workers;
            of_workers.push(workers.unwrap_or(0));
            of_tiles.push(u64::from(workers.is_none()));
        }
        let ty = data_type.poplar_name();
        vertices.push(vertex_on(format!("poplar_rt::Transpose<{ty}>"), of_workers, 2));
        vertices.push(vertex_on(format!("poplar_rt::Transpose1D<{ty}>"), of_tiles, 2));
    }
    vertices.retain(|vertex| !vertex.count.is_empty());
    builder.compute(name, &cycles, vertices);
}

/// Cycles of vertices on one tile, which share its workers.
fn side_by_side(on_tile: impl Iterator<Item = TransposeVertices>, workers: u64) -> Cycles {
    let mut together = Cycles::ZERO;
    let mut busy = vec![Cycles::ZERO; list_length(workers)];
    for TransposeVertices { cycles, workers } in on_tile {
        match workers {
            None => together += cycles,
            Some(workers) => {
                for _ in 0..workers {
                    if let Some(first_free) = busy.iter_mut().min() {
                        *first_free += cycles;
                    }
                }
            }
        }
    }
    together + busy.into_iter().max().unwrap_or_default()
}

/// Adds temporary copies of a rearranged tensor.
pub(crate) fn temporary(builder: &mut ConvWorkBuilder, name: String, from: usize, bytes: &[Bytes]) {
    builder.temporary(name, MemoryCategory::Rearrangement, false, from, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_transpose_in_parallel() {
        let vertices = |cycles, workers| TransposeVertices { cycles: Cycles(cycles), workers };
        let together = |one, other| side_by_side([one, other].into_iter(), 6);
        assert_eq!(together(vertices(100, Some(2)), vertices(70, Some(1))), Cycles(100));
        assert_eq!(together(vertices(100, Some(6)), vertices(70, Some(1))), Cycles(170));
        assert_eq!(together(vertices(100, None), vertices(70, Some(6))), Cycles(170));
    }
}
