//! Layout changes between operations: an exchange, then copies on the tiles that bring the
//! elements into the order the next vertices read.

use super::elementwise;
use crate::cost_constants::{
    HALF_COPY_CYCLES, ON_TILE_COPY_CYCLES, SUBWORD_REARRANGE_CYCLES_PER_BYTE,
};
use crate::poplar::exchange;
use crate::poplar::exchange::WORD_BYTES;
use crate::poplar::work::{OperationWork, TemporaryVariable, WorkPhase};
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::gcd;
use crate::shape::{DType, TensorInfo};
use crate::targets::{BytesPerCycle, IpuTarget, WORKERS};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, TileRuns};

/// What a copy of double words moves.
pub(crate) const COPY_SPEED: BytesPerCycle = BytesPerCycle(8);

/// The copy vertex for pieces of `contiguous` elements: 8-byte pieces can be copied a double word
/// at a time, 4-byte ones a word at a time, smaller ones need read-modify-write.
pub(crate) fn copy_vertex(dtype: DType, contiguous: u64) -> &'static str {
    match (contiguous * dtype.bytes()).0 {
        piece if piece.is_multiple_of(8) => "poplar_rt::DstStridedCopy64BitMultiAccess",
        piece if piece.is_multiple_of(4) => "poplar_rt::DstStridedCopyDA32",
        _ => "poplar_rt::DstStridedCopy16BitMultiAccess",
    }
}

/// Elements that stay together between two orders of a tensor of `shape`.
fn contiguous(from: ElementOrder, to: ElementOrder, shape: &[u64]) -> u64 {
    let ((from_axis, from_group), (to_axis, to_group)) =
        (from.innermost(shape), to.innermost(shape));
    if from_axis == to_axis { gcd(from_group, to_group) } else { 1 }
}

/// On-tile copies of `bytes` that lie together in pieces of `piece` bytes, all workers of a tile.
pub(crate) fn arrange(
    name: &str,
    vertex: &str,
    bytes: &TileRuns<Bytes>,
    piece: Bytes,
) -> WorkPhase {
    arrange_pieces(name, vertex, &bytes.map(|bytes| arrange_cycles(*bytes, piece)))
}

/// On-tile copies that take the workers of each tile so many cycles.
pub(crate) fn arrange_pieces(name: &str, vertex: &str, cycles: &TileRuns<Cycles>) -> WorkPhase {
    let mut phase = elementwise::phase(name, vertex.to_string(), 2, cycles, |cycles| *cycles);
    if let crate::poplar::work::WorkPhaseKind::Compute { vertices, .. } = &mut phase.kind {
        for vertex in vertices {
            vertex.count = vertex.count.map(|_| WORKERS);
        }
    }
    phase
}

/// Cycles to bring `bytes` into another order on a tile, in pieces of `piece` bytes. Words move at
/// the rate that planned operations rearrange at; halves are copied one by one.
pub(crate) fn arrange_cycles(bytes: Bytes, piece: Bytes) -> Cycles {
    let words =
        Cycles::from_f64((bytes.as_f64() * SUBWORD_REARRANGE_CYCLES_PER_BYTE.ratio()).ceil());
    if is_whole_words(piece) {
        words
    } else {
        // A piece that ends inside a word shares it with another: it is read, merged and written.
        // What lies between its ends are words, though not where words begin.
        let between = if piece > WORD_BYTES { words } else { Cycles::ZERO };
        ON_TILE_COPY_CYCLES.cycles() + between + copy_cycles(bytes, piece)
    }
}

/// Cycles to copy `bytes` that lie together in pieces of `piece` bytes: double words, or one half
/// at a time.
pub(crate) fn copy_cycles(bytes: Bytes, piece: Bytes) -> Cycles {
    if is_whole_words(piece) {
        COPY_SPEED.cycles_for(bytes)
    } else {
        bytes.next_multiple_of(piece) / piece * HALF_COPY_CYCLES.cycles()
    }
}

fn is_whole_words(piece: Bytes) -> bool {
    (piece % WORD_BYTES).is_zero()
}

/// On-tile copies around another operation, of so many cycles after their start.
pub(crate) fn on_tile_copies(name: &str, vertex: &str, cycles: &TileRuns<Cycles>) -> WorkPhase {
    let name = format!("{name}/OnTileCopy");
    elementwise::phase(&name, vertex.to_string(), 2, cycles, |cycles| {
        ON_TILE_COPY_CYCLES.cycles() + *cycles
    })
}

/// The phases that bring a tensor of type `ty` from one layout into another for the operation step
/// `name`; none where it lies so already.
pub(crate) fn bring(
    machine: &IpuTarget,
    ty: &TensorInfo,
    from: &TensorLayout,
    to: &TensorLayout,
    name: &str,
) -> OperationWork {
    let mut work = OperationWork::default();
    if from == to {
        return work;
    }
    let bytes = to.bytes(ty.dtype.bytes());
    let reorder = from.order != to.order;
    work.push_some(exchange::relayout(
        name,
        &from.bytes(ty.dtype.bytes()),
        &bytes,
        reorder,
        machine.tiles,
        machine.exchange_speed(),
    ));
    // Without a change of order the exchange itself puts every word in its place.
    if reorder {
        let together = contiguous(from.order, to.order, &ty.shape);
        let vertex = copy_vertex(ty.dtype, together);
        let piece = together * ty.dtype.bytes();
        work.push(arrange(&format!("{name}/PreArrange-0"), vertex, &bytes, piece));
    }
    let phases = work.items.len();
    work.temporaries.push(TemporaryVariable::anywhere(
        format!("{name}/rearranged"),
        MemoryCategory::Rearrangement,
        bytes,
        // One phase longer: the operation that asked for the layout reads it in its first phase.
        0..phases + 1,
    ));
    work
}
