//! Tensors that change their innermost dimension. Blocks of the two groupings are moved to one tile
//! each and transposed there (poplibs lib/popops/Rearrange.cpp).

use super::transpose::{LARGEST_STRIDE, TransposeMatrices, transpose};
use crate::poplar::exchange::{self, OrderChange};
use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::{
    OperationWork, TemporaryVariable, VertexInstances, WorkPhase, WorkPhaseKind,
};
use crate::poputil::rearranged_blocks::rearrangement;
use crate::poputil::tensor_layout::{ElementOrder, Innermost, TensorLayout};
use crate::shape::{DType, TensorInfo, gcd};
use crate::targets::{IpuTarget, WORKERS};
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Elements, TileId, TileRuns};

/// Blocks of a tensor, with the number of contiguous elements of each of two dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransposeBlockShape {
    /// Elements of the dimension that is innermost before.
    pub from: u64,
    /// Elements of the dimension that becomes innermost.
    pub to: u64,
}

impl TransposeBlockShape {
    /// Returns smaller blocks of the same elements, so that more tiles and workers have some. The
    /// area, in units of grains, is divided by the factor that minimises the time of the tile with
    /// most blocks (popops `Rearrange.cpp` updateGroupingInternal). Blocks with sides that are not
    /// multiples of a grain stay unchanged.
    pub(crate) fn spread(self, elements: Elements, tiles: u64, data_type: DType) -> Self {
        let grain = regroup_grain(data_type);
        if !self.from.is_multiple_of(grain) || !self.to.is_multiple_of(grain) {
            return self;
        }
        let area = self.from * self.to / (grain * grain);
        let blocks = self.count(elements);
        // If a stride would be too long for an instruction, tiles may have several blocks.
        let stride = (self.from.max(self.to) / 4 * 3).saturating_sub(1);
        let most = tiles * stride.div_ceil(LARGEST_STRIDE).clamp(1, WORKERS);
        let mut cut = 1;
        let mut least_cost = u64::MAX;
        for factor in (1..=area).filter(|factor| area.is_multiple_of(*factor)) {
            if blocks * factor > most {
                break;
            }
            let of_worker = (blocks * factor).div_ceil(tiles).div_ceil(WORKERS);
            let cost = area / factor * of_worker;
            if cost < least_cost {
                least_cost = cost;
                cut = factor;
            }
        }
        let from = gcd(cut, self.from / grain);
        let to = gcd(cut / from, self.to / grain);
        Self { from: self.from / from, to: self.to / to }
    }

    /// Number of blocks that hold `elements`.
    pub(crate) fn count(&self, elements: Elements) -> u64 {
        elements.div_ceil((self.from * self.to).max(1)).0
    }
}

/// Smallest grouping that is worth a regroup: 4 halves or 2 floats (getMinimumRegroupGrainSize).
pub(crate) fn regroup_grain(data_type: DType) -> u64 {
    match data_type {
        DType::Float => 2,
        DType::Quarter => 8,
        _ => 4,
    }
}

/// Returns the blocks for transposing a tensor from layout `from` to the innermost elements `to`,
/// if the innermost dimensions differ and both are grouped in grains (regroupIfBeneficial).
pub(crate) fn blocks_between(
    ty: &TensorInfo,
    from: &TensorLayout,
    to: Innermost,
) -> Option<TransposeBlockShape> {
    let from_step = from.order.innermost(&ty.shape).step;
    let from_group = from.group_on_tile(&ty.shape);
    let grain = regroup_grain(ty.dtype);
    let whole_grains = from_group.is_multiple_of(grain) && to.group.is_multiple_of(grain);
    // Only types used in computations are stored in groups.
    let valid = matches!(ty.dtype, DType::Half | DType::Float);
    if !valid || from_step == to.step || !whole_grains {
        return None;
    }
    Some(TransposeBlockShape { from: from_group, to: to.group })
}

/// Tensor that was transposed in blocks.
pub(crate) struct RegroupedTensor {
    /// Blocks after spreading them over the tiles.
    pub blocks: TransposeBlockShape,
    /// Layout of the result.
    pub layout: TensorLayout,
}

/// Adds the transposition of a tensor in these blocks, distributed evenly over the tiles that hold
/// it.
pub(crate) fn regroup(
    work: &mut OperationWork,
    machine: &IpuTarget,
    ty: &TensorInfo,
    from: &TensorLayout,
    (blocks, to): (TransposeBlockShape, Innermost),
    name: &str,
) -> RegroupedTensor {
    let tiles = machine.tiles;
    let blocks = blocks.spread(ty.elements(), tiles.into(), ty.dtype);
    let size = Elements(blocks.from * blocks.to);
    let count = blocks.count(ty.elements());
    let each = count.div_ceil(u64::from(from.elements.tile_count()).max(1));
    let mut left = count;
    let mut counts = Vec::new();
    for tile in TileId(0).onwards() {
        if left == 0 {
            break;
        }
        let count = each.min(left);
        left -= count;
        counts.push((tile, count));
    }
    let counts: TileRuns<u64> = per_tile(counts);
    // Blocks divide both dimensions, so they contain every element once.
    let held = counts.map(|count| size * *count);
    let order = ElementOrder::grouped_at(&ty.shape, Innermost { group: blocks.to, ..to });
    let layout = TensorLayout { elements: held, order };
    let bytes = layout.bytes(ty.dtype.bytes());
    let start = work.phases().len();
    // Blocks are transposed on the tiles that receive them, which hold the same elements then.
    let change = match rearrangement(ty, from, &layout) {
        Some(order) => OrderChange::Known(order),
        None => OrderChange::Unknown,
    };
    work.push_some(exchange::relayout(
        &format!("{name}/preRegroup"),
        &from.bytes(ty.dtype.bytes()),
        &bytes,
        change,
        tiles,
        machine.exchange_speed(),
    ));
    work.push(transpose_phase(&format!("{name}/Transpose"), machine, ty.dtype, blocks, &counts));
    let mut push_temporary = |part: &str, live| {
        work.temporaries.push(TemporaryVariable::anywhere(
            format!("{name}/{part}"),
            MemoryCategory::Rearrangement,
            bytes.clone(),
            live,
        ));
    };
    push_temporary("preRegroup", start..start + 2);
    // The result is stored beside the operand, and is freed after the next exchange.
    push_temporary("partialTranspose", start + 1..start + 3);
    RegroupedTensor { blocks, layout }
}

/// Compute set that transposes the given number of blocks on each tile.
fn transpose_phase(
    name: &str,
    machine: &IpuTarget,
    dtype: DType,
    blocks: TransposeBlockShape,
    counts: &TileRuns<u64>,
) -> WorkPhase {
    let mut cycles = TileRuns::empty();
    let mut of_workers = TileRuns::empty();
    let mut of_tiles = TileRuns::empty();
    for (tiles, count) in counts.iter() {
        let matrices = TransposeMatrices { count: *count, rows: blocks.to, columns: blocks.from };
        cycles.push(tiles, transpose(dtype, matrices));
        if matrices.share_a_vertex(dtype) {
            of_tiles.push(tiles, 1);
        } else {
            of_workers.push(tiles, (*count).min(machine.workers()));
        }
    }
    let mut vertices = Vec::new();
    for (kind, instances) in [("Transpose", of_workers), ("Transpose1D", of_tiles)] {
        if !instances.is_empty() {
            let kind = format!("poplar_rt::{kind}<{}>", dtype.poplar_name());
            vertices.push(VertexInstances::of_edges(kind, instances, 2));
        }
    }
    WorkPhase { name: name.to_string(), kind: WorkPhaseKind::Compute { cycles, vertices } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_spread_over_tiles_down_to_grains() {
        let blocks = |from, to| TransposeBlockShape { from, to };
        let half = |block: TransposeBlockShape, count: u64| {
            block.spread(Elements(block.from * block.to * count), 1_472, DType::Half)
        };
        assert_eq!(half(blocks(8, 8), 3_150), blocks(8, 8));
        assert_eq!(half(blocks(16, 16), 300), blocks(4, 16));
        assert_eq!(half(blocks(16, 16), 1), blocks(4, 4));
        assert_eq!(half(blocks(6, 16), 1), blocks(6, 16));
        let of_floats = blocks(118, 2).spread(Elements(118 * 2 * 354), 1_472, DType::Float);
        assert_eq!(of_floats, blocks(118, 2), "59 is prime, and 59 times as many are too many");
        let of_floats = blocks(118, 6).spread(Elements(118 * 6 * 354), 1_472, DType::Float);
        assert_eq!(of_floats, blocks(118, 2));
    }

    #[test]
    fn groups_of_whole_grains_are_transposed() {
        let ty = |rows, columns| TensorInfo::new([rows, columns], DType::Half);
        let blocks = |rows, columns, group: u64| {
            let ty = ty(rows, columns);
            let from = TensorLayout {
                order: ElementOrder::grouped(&ty.shape, 0, 8),
                ..TensorLayout::linear(ty.elements(), ty.dtype.bytes(), 16)
            };
            blocks_between(&ty, &from, Innermost { step: Some(1), group: gcd(group, columns) })
        };
        assert_eq!(blocks(64, 64, 16), Some(TransposeBlockShape { from: 8, to: 16 }));
        // Groups of eight end inside 65 rows. A group of two columns is not a grain.
        assert_eq!(blocks(65, 64, 16), None);
        assert_eq!(blocks(64, 64, 2), None);
        assert_eq!(blocks(64, 66, 16), None);
    }
}
