//! How a tensor lies on the tiles of its IPU.

use super::split::{self, Bounds};
use crate::sim::planner::ranges::gcd;
use crate::units::TileRuns;

/// The order of elements inside the tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As the shape says, innermost dimension contiguous.
    Linear,
    /// Groups of one axis are contiguous, as planned operations read and write them.
    Grouped {
        /// The innermost axis.
        axis: usize,
        /// Elements of it that lie together.
        group: u64,
    },
    /// Made for another shape: the tensor is a view.
    Reshaped,
}

impl Order {
    /// The innermost axis of a tensor of `shape`, and how many elements of it lie together.
    pub fn innermost(self, shape: &[u64]) -> (usize, u64) {
        match self {
            Self::Linear => (shape.len().saturating_sub(1), shape.last().copied().unwrap_or(1)),
            Self::Grouped { axis, group } => (axis, group),
            // Neighbours in memory are no neighbours in any axis of this shape.
            Self::Reshaped => (usize::MAX, 1),
        }
    }
}

/// Where the elements of a tensor are, and in which order.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Elements on each tile of the IPU, tiles numbered from 0.
    pub elements: TileRuns<u64>,
    /// Their order.
    pub order: Order,
}

/// Fewest bytes of a tensor that `mapTensorLinearly` puts on one tile
/// (poplibs lib/poputil/TileMapping.cpp).
const LINEAR_MIN_BYTES: u64 = 128;

impl Layout {
    /// Elements dealt out evenly from tile 0 up, as `poputil::mapTensorLinearly` does: in grains
    /// of 8 bytes, at least 128 bytes on a tile, as few tiles as keep the fullest one small (poplibs lib/poputil/TileMapping.cpp).
    pub fn linear(elements: u64, element_bytes: u64, tiles: u32) -> Self {
        Self {
            elements: linear_mapping(elements, element_bytes, LINEAR_MIN_BYTES, tiles),
            order: Order::Linear,
        }
    }

    /// How many elements of the innermost axis of a tensor of `shape` lie together on one tile:
    /// what a group and the largest share of a tile have in common (poplibs
    /// lib/poputil/VarStructure.cpp, detectInnermostGrouping).
    pub fn group_on_tile(&self, shape: &[u64]) -> u64 {
        let (_, group) = self.order.innermost(shape);
        gcd(group, self.elements.max().min(group))
    }

    /// Bytes on each tile.
    pub fn bytes(&self, element_bytes: u64) -> TileRuns<u64> {
        self.elements.map(|count| count * element_bytes)
    }
}

/// Elements of each tile when `elements` are dealt out in grains of 8 bytes over as many tiles as
/// hold at least `min_bytes` each.
pub fn linear_mapping(
    elements: u64,
    element_bytes: u64,
    min_bytes: u64,
    tiles: u32,
) -> TileRuns<u64> {
    let bounds = Bounds {
        grain: (8 / element_bytes).max(1),
        most: u64::from(tiles),
        least: min_bytes.div_ceil(element_bytes),
    };
    let counts = split::parts(elements, bounds).map(|part| Some(part.end - part.start));
    TileRuns::from_tiles(0, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_tensors_stay_on_few_tiles() {
        assert_eq!(Layout::linear(10, 4, 1472).elements.tile_count(), 1);
        assert_eq!(Layout::linear(64, 4, 1472).elements.tile_count(), 2);
    }

    proptest! {
        #[test]
        fn every_element_has_one_tile(elements in 1u64..5_000_000, bytes in prop_oneof![Just(1u64), Just(2), Just(4)]) {
            let layout = Layout::linear(elements, bytes, 1216);
            prop_assert_eq!(layout.elements.total(), elements);
            prop_assert!(layout.elements.tile_count() <= 1216);
        }
    }
}
