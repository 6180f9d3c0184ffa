//! Layout changes between operations: an exchange, then on-tile copies that put the elements into
//! the order that the next vertices read.

use super::{elementwise, rearrange};
use crate::cost_constants::ON_TILE_COPY_CYCLES;
use crate::poplar::exchange;
use crate::poplar::exchange::{OrderChange, WORD_BYTES};
use crate::poplar::work::{OperationWork, TemporaryVariable, WorkPhase};
use crate::poputil::rearranged_blocks;
use crate::poputil::tensor_layout::{Innermost, LOAD_BYTES, TensorLayout};
use crate::shape::{DType, TensorInfo};
use crate::targets::{BytesPerCycle, IpuTarget, WORKERS};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Cycles, Elements, TileRuns};

/// Rate of a copy of double words.
pub(crate) const COPY_SPEED: BytesPerCycle = BytesPerCycle(8);

/// Alignment of the pieces that are copied on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PieceAlignment {
    /// Pieces begin and end at double words.
    DoubleWords,
    /// Pieces begin and end at words.
    Words,
    /// Pieces begin or end inside words. Each word is read, merged and written.
    InsideWords,
}

impl PieceAlignment {
    fn of(piece: Bytes) -> Self {
        if (piece % LOAD_BYTES).is_zero() {
            Self::DoubleWords
        } else if (piece % WORD_BYTES).is_zero() {
            Self::Words
        } else {
            Self::InsideWords
        }
    }

    /// The copy vertex, as profiles name it.
    fn vertex(self) -> &'static str {
        match self {
            Self::DoubleWords => "poplar_rt::DstStridedCopy64BitMultiAccess",
            Self::Words => "poplar_rt::DstStridedCopyDA32",
            Self::InsideWords => "poplar_rt::StridedCopyAT2",
        }
    }

    /// Cycles to copy `bytes` into another order, after the start: a regression over ten thousand
    /// random rearrangements (poplibs lib/poplin/ConvModel.cpp, addTransformCycleEstimate). Its 587
    /// cycles before the first byte are the start of an exchange and of a compute set, which the
    /// run adds, and [`ON_TILE_COPY_CYCLES`].
    fn rearrange_cycles(self, Bytes(bytes): Bytes) -> Cycles {
        let per_kibibyte = match self {
            Self::DoubleWords => 451,
            Self::Words => 3200,
            Self::InsideWords => 5271,
        };
        Cycles((bytes * per_kibibyte).div_ceil(1024))
    }
}

/// The copy vertex for pieces of `contiguous` elements.
pub(crate) fn copy_vertex(dtype: DType, contiguous: u64) -> &'static str {
    PieceAlignment::of(contiguous * dtype.bytes()).vertex()
}

/// On-tile copies of `bytes` in contiguous pieces of `piece` bytes, by all workers of a tile.
fn arrange(name: &str, bytes: &TileRuns<Bytes>, piece: Bytes) -> WorkPhase {
    let vertex = PieceAlignment::of(piece).vertex();
    arrange_pieces(name, vertex, &bytes.map(|bytes| arrange_cycles(*bytes, piece)))
}

/// On-tile copies that keep the order of elements, in stretches of a multiple of `piece` elements.
/// If stretches begin and end at double words, these are contiguous.
pub(crate) fn copy(
    name: &str,
    dtype: DType,
    elements: &TileRuns<Elements>,
    piece: u64,
) -> WorkPhase {
    let bytes = elements.map(|count| *count * dtype.bytes());
    let piece = piece * dtype.bytes();
    let name = format!("{name}/OnTileCopy");
    if PieceAlignment::of(piece) == PieceAlignment::DoubleWords {
        let cycles =
            bytes.map(|bytes| ON_TILE_COPY_CYCLES.cycles() + COPY_SPEED.cycles_for(*bytes));
        return arrange_pieces(&name, "poplar_rt::Memcpy64Bit", &cycles);
    }
    arrange(&name, &bytes, piece)
}

/// On-tile copies that take the workers of each tile the given cycles.
pub(crate) fn arrange_pieces(name: &str, vertex: &str, cycles: &TileRuns<Cycles>) -> WorkPhase {
    let mut phase = elementwise::phase(name, vertex.to_string(), 2, cycles, |cycles| *cycles);
    if let crate::poplar::work::WorkPhaseKind::Compute { vertices, .. } = &mut phase.kind {
        for vertex in vertices {
            vertex.count = vertex.count.map(|_| WORKERS);
        }
    }
    phase
}

/// Cycles to reorder `bytes` on a tile, in pieces of `piece` bytes.
pub(crate) fn arrange_cycles(bytes: Bytes, piece: Bytes) -> Cycles {
    ON_TILE_COPY_CYCLES.cycles() + piece_cycles(bytes, piece)
}

/// As [`arrange_cycles`], without the start.
fn piece_cycles(bytes: Bytes, piece: Bytes) -> Cycles {
    let alignment = PieceAlignment::of(piece);
    // Remainders at both ends of a long piece. Each double word between is assembled from two.
    let ends = match alignment {
        PieceAlignment::DoubleWords => return alignment.rearrange_cycles(bytes),
        PieceAlignment::Words => LOAD_BYTES,
        PieceAlignment::InsideWords => WORD_BYTES,
    };
    if piece <= LOAD_BYTES {
        return alignment.rearrange_cycles(bytes);
    }
    let pieces = bytes.next_multiple_of(piece) / piece;
    COPY_SPEED.cycles_for(bytes * 2) + alignment.rearrange_cycles(pieces * ends)
}

/// Adds copies that align every row of `columns` elements to a double word.
pub(crate) fn pad_rows(
    work: &mut OperationWork,
    dtype: DType,
    columns: u64,
    elements: &TileRuns<Elements>,
    name: &str,
) {
    let bytes = elements.map(|count| *count * dtype.bytes());
    work.push(arrange(name, &bytes, columns * dtype.bytes()));
}

/// Cycles to copy `bytes` in contiguous pieces of `piece` bytes, by double words if pieces are
/// whole words.
pub(crate) fn copy_cycles(bytes: Bytes, piece: Bytes) -> Cycles {
    if (piece % WORD_BYTES).is_zero() {
        COPY_SPEED.cycles_for(bytes)
    } else {
        piece_cycles(bytes, piece)
    }
}

/// On-tile copies around another operation, with the given cycles after their start.
pub(crate) fn on_tile_copies(name: &str, vertex: &str, cycles: &TileRuns<Cycles>) -> WorkPhase {
    let name = format!("{name}/OnTileCopy");
    elementwise::phase(&name, vertex.to_string(), 2, cycles, |cycles| {
        ON_TILE_COPY_CYCLES.cycles() + *cycles
    })
}

/// Returns the phases that move a tensor of type `ty` from one layout to another for the operation
/// step `name`. Empty if the layouts are equal. Elements that do not stay together are copied on
/// the destination tile.
pub(crate) fn bring(
    machine: &IpuTarget,
    ty: &TensorInfo,
    from: &TensorLayout,
    to: &TensorLayout,
    name: &str,
) -> OperationWork {
    let mut work = OperationWork::default();
    if from != to {
        // Without a change of order the exchange itself puts every word in its place.
        let together = if from.order == to.order {
            None
        } else {
            Some(from.order.common_run(&to.order, &ty.shape))
        };
        push_moves(&mut work, machine, ty, [from, to], together, name);
    }
    work
}

/// As [`bring`], but if both orders have groups of whole grains along different axes, blocks of the
/// tensor are transposed on the way, as in operations of poplibs that request it
/// (lib/popops/Rearrange.cpp, regroupIfBeneficial).
pub(crate) fn bring_regrouped(
    machine: &IpuTarget,
    ty: &TensorInfo,
    from: &TensorLayout,
    to: &TensorLayout,
    name: &str,
) -> OperationWork {
    let innermost =
        Innermost { group: to.group_on_tile(&ty.shape), ..to.order.innermost(&ty.shape) };
    let Some(blocks) = rearrange::blocks_between(ty, from, innermost) else {
        return bring(machine, ty, from, to, name);
    };
    let mut work = OperationWork::default();
    let regrouped = rearrange::regroup(&mut work, machine, ty, from, (blocks, innermost), name);
    // Groups are now whole grains, which the exchange puts in their places.
    push_moves(&mut work, machine, ty, [&regrouped.layout, to], None, name);
    work
}

/// Returns the change of order between two layouts of a tensor.
fn order_change(ty: &TensorInfo, from: &TensorLayout, to: &TensorLayout) -> OrderChange {
    if from.order == to.order {
        return OrderChange::None;
    }
    match rearranged_blocks::rearrangement(ty, from, to) {
        Some(order) => OrderChange::Known(order),
        None => OrderChange::Unknown,
    }
}

/// Adds the exchange between two layouts, and on-tile copies if only `together` elements stay
/// together.
fn push_moves(
    work: &mut OperationWork,
    machine: &IpuTarget,
    ty: &TensorInfo,
    [from, to]: [&TensorLayout; 2],
    together: Option<u64>,
    name: &str,
) {
    let bytes = to.bytes(ty.dtype.bytes());
    let start = work.phases().len();
    work.push_some(exchange::relayout(
        name,
        &from.bytes(ty.dtype.bytes()),
        &bytes,
        order_change(ty, from, to),
        machine.tiles,
        machine.exchange_speed(),
    ));
    if let Some(together) = together {
        let piece = together * ty.dtype.bytes();
        work.push(arrange(&format!("{name}/PreArrange-0"), &bytes, piece));
    }
    let phases = work.phases().len();
    work.temporaries.push(TemporaryVariable::anywhere(
        format!("{name}/rearranged"),
        MemoryCategory::Rearrangement,
        bytes,
        // One phase longer: the operation that requested the layout reads it in its first phase.
        start..phases + 1,
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplar::work::WorkPhaseKind;
    use crate::poputil::tensor_layout::ElementOrder;
    use crate::targets::MK2;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    fn machine() -> IpuTarget {
        IpuTarget::all_tiles_of(MK2)
    }

    fn grouped(ty: &TensorInfo, axis: usize, group: u64) -> TensorLayout {
        let order = ElementOrder::grouped(&ty.shape, axis, group);
        TensorLayout { order, ..TensorLayout::linear(ty.elements(), ty.dtype.bytes(), 1472) }
    }

    /// Phases between groups of rows and groups of columns.
    fn turned(dtype: DType, shape: [u64; 2], regrouped: bool) -> OperationWork {
        let ty = TensorInfo::new(shape, dtype);
        let from = grouped(&ty, 0, 8);
        let to = grouped(&ty, 1, 16);
        let bring = if regrouped { bring_regrouped } else { bring };
        bring(&machine(), &ty, &from, &to, "Op")
    }

    /// Cycles of the busiest tile of each phase, per byte of the tensor.
    fn cycles_per_byte(dtype: DType, shape: [u64; 2], regrouped: bool) -> f64 {
        let work = turned(dtype, shape, regrouped);
        let cycles = |phase: &WorkPhase| match &phase.kind {
            WorkPhaseKind::Exchange { cycles, .. } | WorkPhaseKind::Compute { cycles, .. } => {
                cycles.max()
            }
        };
        let cycles: Cycles = work.phases().into_iter().map(|(phase, _)| cycles(phase)).sum();
        cycles.as_f64() / (TensorInfo::new(shape, dtype).elements() * dtype.bytes()).as_f64()
    }

    #[test]
    fn contiguous_elements_are_copied_faster() {
        let cycles = |piece| arrange_cycles(Bytes(1024), Bytes(piece));
        assert_eq!([8, 4, 2].map(cycles), [Cycles(651), Cycles(3400), Cycles(5471)]);
        // Only the ends of long pieces are merged: 86 of 12 bytes, 4 of 258.
        assert_eq!([16, 12, 258].map(cycles), [Cycles(651), Cycles(2606), Cycles(539)]);
    }

    #[test]
    fn whole_groups_are_transposed_and_others_copied() {
        let steps = |rows| {
            let work = turned(DType::Half, [rows, 768], true);
            work.phases().into_iter().map(|(phase, _)| phase.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(steps(1032), ["Op/preRegroup/ExchangePre", "Op/Transpose", "Op/ExchangePre"]);
        assert_eq!(steps(1033), ["Op/ExchangePre", "Op/PreArrange-0"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn every_byte_moves_once_in_each_exchange(
            [rows, columns] in [1u64..2000, 1u64..500],
            regrouped: bool,
            half: bool,
        ) {
            let dtype = if half { DType::Half } else { DType::Float };
            let bytes = rows * columns * dtype.bytes();
            for (phase, _) in turned(dtype, [rows, columns], regrouped).phases() {
                if let WorkPhaseKind::Exchange { traffic, .. } = &phase.kind {
                    let sum = |of: fn(&tilescope_report::TileTraffic) -> Bytes| {
                        traffic.map(of).total()
                    };
                    prop_assert_eq!(sum(|tile| tile.bytes_in), bytes, "{}", &phase.name);
                    prop_assert_eq!(sum(|tile| tile.bytes_out), bytes, "{}", &phase.name);
                    prop_assert_eq!(sum(|tile| tile.bytes_delivered), bytes, "{}", &phase.name);
                }
            }
        }

        /// An odd layout costs at least as much per byte as its neighbour padded to whole groups,
        /// provided that the neighbour distributes its groups of 16 by 16 evenly. The busiest tile
        /// of either may have a grain more than the mean. Halves in blocks of four by four are not
        /// odd: no larger block is transposed as fast (TransposeWorkerCycles takes 4 cycles for
        /// each).
        #[test]
        fn odd_layouts_are_no_cheaper_than_padded_ones(
            [rows, columns] in [1000u64..4000, 1000u64..4000],
            regrouped: bool,
            half: bool,
        ) {
            let dtype = if half { DType::Half } else { DType::Float };
            let in_fours = rows.is_multiple_of(4) && columns.is_multiple_of(4);
            prop_assume!(!(regrouped && half && in_fours));
            let odd = cycles_per_byte(dtype, [rows, columns], regrouped);
            let padded = [rows, columns].map(|size| size.next_multiple_of(16));
            let even = cycles_per_byte(dtype, padded, regrouped);
            let groups = padded[0] / 16 * (padded[1] / 16);
            let per_tile = groups as f64 / f64::from(machine().tiles);
            let evenness = per_tile / per_tile.ceil();
            prop_assert!(odd > 0.97 * even * evenness, "{} against {}", odd, even);
        }
    }
}
