//! One-hot encoding: rows with a one at the position of a label (poplibs lib/popops/Encoding.cpp,
//! encodeOneHotBase). They are encoded in a layout for this purpose, then moved to the layout of
//! their use.

use super::{elementwise, relayout};
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::OperationWork;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{DType, TensorInfo};
use crate::targets::IpuTarget;
use tilescope_report::units::{Elements, TileId, TileRuns};

/// Minimum number of grains of classes on a tile. A vertex processes its labels one after the
/// other, so long rows are better than many (minGrainsPerTile).
const MIN_CLASS_GRAINS: u64 = 4;

/// Distribution of rows of classes over the tiles, in blocks of labels and classes.
struct EncodedRows {
    layout: TensorLayout,
    /// Number of labels on each tile.
    labels: TileRuns<u64>,
}

impl EncodedRows {
    /// Distributes whole grains of labels over the tiles. If tiles are left over, they share the
    /// classes.
    fn dealt(ty: &TensorInfo, tiles: u32) -> Self {
        let labels = ty.shape[0];
        let classes = ty.shape[1];
        let grain = elementwise::vector_width(ty.dtype);
        let tiles = u64::from(tiles);
        let label_grains = labels.div_ceil(grain);
        let labels_of_group = label_grains.div_ceil(tiles).max(1) * grain;
        let groups = labels.div_ceil(labels_of_group).max(1);
        let class_grains = classes.div_ceil(grain).div_ceil((tiles / groups).max(1));
        let classes_of_tile = class_grains.max(MIN_CLASS_GRAINS) * grain;
        let blocks = (0..groups).flat_map(|group| {
            let labels = (labels - group * labels_of_group).min(labels_of_group);
            let starts = (0..classes).step_by(usize::try_from(classes_of_tile).unwrap_or(1));
            starts.map(move |start| (labels, (classes - start).min(classes_of_tile)))
        });
        // If there are more blocks than tiles, distribution continues from the first tile.
        let mut on_tiles = vec![(0, 0); usize::try_from(tiles).unwrap_or(0)];
        for (block, tile) in blocks.zip((0..on_tiles.len()).cycle()) {
            on_tiles[tile].0 += block.0;
            on_tiles[tile].1 += block.0 * block.1;
        }
        let elements = on_tiles.iter().map(|(_, elements)| Elements(*elements));
        let elements = per_tile(TileId(0).onwards().zip(elements));
        let labels = per_tile(TileId(0).onwards().zip(on_tiles.iter().map(|(labels, _)| *labels)));
        let group = classes_of_tile.min(classes);
        Self {
            layout: TensorLayout { elements, order: ElementOrder::grouped(&ty.shape, 1, group) },
            labels,
        }
    }
}

/// Adds the phases that encode `labels` as rows of `ty`, `[labels, classes]`, and move them to
/// `layout`.
pub(crate) fn encode(
    work: &mut OperationWork,
    machine: &IpuTarget,
    ty: &TensorInfo,
    labels: &TensorLayout,
    layout: &TensorLayout,
    name: &str,
) {
    let rows = EncodedRows::dealt(ty, machine.tiles);
    let size = DType::Int.bytes();
    let start = work.phases().len();
    work.push_some(exchange::phase(
        name,
        &rows.labels.map(|labels| *labels * size),
        &labels.bytes(size),
        TileMessages::each_way(2),
        machine.tiles,
        machine.exchange_speed(),
    ));
    work.push(elementwise::fill(&format!("{name}/zero"), ty.dtype, &rows.layout.elements));
    work.push(elementwise::one_hot(name, ty.dtype, &rows.labels));
    let encoded = rows.layout.bytes(ty.dtype.bytes());
    let moves = format!("{name}/postRegroup");
    work.append(relayout::bring_regrouped(machine, ty, &rows.layout, layout, &moves));
    work.push_temporary(&format!("{name}/encodedOut"), encoded, start);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_every_label_is_on_one_tile() {
        for (labels, classes) in [(1, 10), (8, 3), (160, 30_528), (4096, 2), (100_000, 17)] {
            let ty = TensorInfo::new([labels, classes], DType::Half);
            let rows = EncodedRows::dealt(&ty, 1472);
            assert_eq!(rows.layout.elements.total(), ty.elements());
            assert!(rows.layout.elements.tile_count() <= 1472);
            assert!(rows.labels.total() >= labels);
        }
    }
}
