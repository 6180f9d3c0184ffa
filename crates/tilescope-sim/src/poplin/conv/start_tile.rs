//! First tile of a convolution.
//!
//! By default all begin at tile 0, which therefore holds a part of every small tensor. Dithering
//! lets each begin at a different tile (poplibs lib/poplin/ConvPlan.cpp getStartTile and
//! Convolution.cpp linearizeTileIndices; option enableConvDithering).

use crate::poplar::routes::WorkRoute;
use crate::poplar::work::{OperationWork, OperationWorkItem, WorkPhaseKind};
use crate::poplin::ConvParams;
use crate::poputil::shape_hash::{hash, place};
use crate::poputil::tensor_layout::TensorLayout;
use tilescope_report::units::{TileId, TileRange, TileRuns};
use tilescope_report::{Rearrangement, RouteMemory, RoutePattern, TileGroups, TileOrder, TileRing};

/// Number of tiles that share an exchange bus. A convolution begins at the first of them.
const TILES_PER_BUS: u32 = 2;

/// First tile of an operation and direction of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConvStartTile {
    first: TileId,
    descending: bool,
    /// Number of tiles of the IPU. The tile after the last one is the first one.
    tiles: u32,
}

impl ConvStartTile {
    /// Tile 0 of an IPU with `tiles` tiles, upwards.
    pub(crate) fn first(tiles: u32) -> Self {
        Self { first: TileId(0), descending: false, tiles }
    }

    /// Start that depends only on the shape of the forward pass, so that all passes agree.
    pub(crate) fn dithered(forward: &ConvParams, training: bool, tiles: u32) -> Self {
        let channels = [forward.batch, forward.out_channels, forward.in_channels];
        let channels = if training {
            // The passes permute these.
            vec![channels.iter().fold(1, |product: u64, size| product.wrapping_mul(*size))]
        } else {
            channels.to_vec()
        };
        let field = forward.dims.iter().map(|dim| dim.input);
        let hash = hash([forward.conv_groups].into_iter().chain(field).chain(channels));
        // Beginning inside a pair would put parts that read the same input on different buses.
        let buses = tiles.div_ceil(TILES_PER_BUS).max(1);
        let first = TileId(place(hash, buses) * TILES_PER_BUS);
        // One hash for both, as in poplibs: with an even number of buses all that begin at an odd
        // one go downwards.
        Self { first, descending: hash % 2 == 1, tiles }
    }

    /// Maps values from the operation's own tiles to those of the IPU.
    pub(crate) fn runs<T: Clone + PartialEq>(&self, own: &TileRuns<T>) -> TileRuns<T> {
        let moved = own.rotated(self.first, self.tiles);
        if self.descending { moved.mirrored(self.tiles) } else { moved }
    }

    /// Maps values from the tiles of the IPU to the operation's own ones.
    pub(crate) fn own_runs<T: Clone + PartialEq>(&self, runs: &TileRuns<T>) -> TileRuns<T> {
        let turned = if self.descending { runs.mirrored(self.tiles) } else { runs.clone() };
        match self.first - TileId(0) {
            0 => turned,
            first => turned.rotated(TileId(self.tiles - first), self.tiles),
        }
    }

    /// Maps a layout from the operation's own tiles to those of the IPU.
    pub(crate) fn shift_layout(&self, own: TensorLayout) -> TensorLayout {
        TensorLayout { elements: self.runs(&own.elements), ..own }
    }

    /// Maps the work of an operation from its own tiles to those of the IPU.
    pub(crate) fn shift_work(&self, mut own: OperationWork) -> OperationWork {
        if *self != Self::first(self.tiles) {
            self.items(&mut own.items);
            for temporary in &mut own.temporaries {
                temporary.bytes = self.runs(&temporary.bytes);
            }
        }
        own
    }

    /// The route of data in blocks that count along memory of the operation's own tiles, which is
    /// in the order of the IPU's tiles. `None` if they extend beyond it.
    pub(crate) fn route_of_memory(&self, own: Rearrangement) -> Option<WorkRoute> {
        let memory = own.memory.as_ref().map(|memory| self.memory(memory));
        let route = WorkRoute::of_memory(Rearrangement { memory, ..own.clone() })?;
        let tiles = self.own_runs(&route.tiles);
        Some(WorkRoute { tiles, pattern: RoutePattern::Rearranged(own) })
    }

    fn groups(&self, own: &TileGroups) -> TileGroups {
        let TileRing { first, descending, .. } = own.ring;
        debug_assert!(first == TileId(0) && !descending, "parts begin at tile 0: {own:?}");
        TileGroups { ring: self.ring(), digits: own.digits.clone() }
    }

    fn memory(&self, own: &RouteMemory) -> RouteMemory {
        let receivers = own
            .receivers
            .as_ref()
            .map(|order| TileOrder { ring: self.ring(), digits: order.digits.clone() });
        RouteMemory { bytes: self.runs(&own.bytes), receivers }
    }

    /// The operation's own tiles as numbers of the IPU's tiles.
    fn ring(&self) -> TileRing {
        let Self { first, descending, tiles } = *self;
        let first = if descending { TileId(tiles - 1 - first.0) } else { first };
        TileRing { first, tiles: TileRange::first_tiles(tiles), descending }
    }

    fn items(&self, items: &mut [OperationWorkItem]) {
        for item in items {
            match item {
                OperationWorkItem::Loop { body, .. } => self.items(body),
                OperationWorkItem::Phase(phase) => match &mut phase.kind {
                    WorkPhaseKind::Exchange { traffic, cycles, routes } => {
                        *traffic = self.runs(traffic);
                        *cycles = self.runs(cycles);
                        routes.change(|route| {
                            route.tiles = self.runs(&route.tiles);
                            // Layouts of tensors are in the order of the IPU's tiles.
                            route.pattern = route
                                .pattern
                                .moved(|groups| self.groups(groups), |of| self.memory(of));
                        });
                    }
                    WorkPhaseKind::Compute { cycles, vertices } => {
                        *cycles = self.runs(cycles);
                        for vertex in vertices {
                            vertex.count = self.runs(&vertex.count);
                        }
                    }
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplin::FieldDim;
    use crate::shape::DType;

    fn shape(size: u64, channels: u64) -> ConvParams {
        ConvParams {
            input_type: DType::Half,
            output_type: DType::Half,
            batch: 4,
            conv_groups: 1,
            in_channels: channels,
            out_channels: 64,
            dims: vec![FieldDim::new(size, 3), FieldDim::new(size, 3)],
        }
    }

    #[test]
    fn starts_spread_over_all_tiles() {
        let starts: Vec<ConvStartTile> =
            (1..200).map(|n| ConvStartTile::dithered(&shape(n, n * 7), true, 1472)).collect();
        let low = starts.iter().filter(|start| start.first < TileId(736)).count();
        assert!((60..140).contains(&low), "{low} of 199 in the lower half");
        assert!(
            starts.iter().any(|start| start.descending) && !starts.iter().all(|s| s.descending)
        );
        assert!(starts.iter().all(|start| start.first.0.is_multiple_of(2)));
    }

    #[test]
    fn passes_of_training_agree() {
        let forward = shape(14, 256);
        let backward = ConvParams { in_channels: 64, out_channels: 256, ..forward.clone() };
        let start = |shape| ConvStartTile::dithered(shape, true, 1472);
        assert_eq!(start(&forward), start(&backward));
    }

    #[test]
    fn no_value_is_lost_past_the_last_tile() {
        let own = TileRuns::from_tiles(TileId(0), (0..5u64).map(Some));
        let start = ConvStartTile { first: TileId(6), descending: true, tiles: 8 };
        let there = start.runs(&own);
        let at = |tile| there.get(TileId(tile)).copied();
        assert_eq!([at(1), at(0), at(7), at(6), at(5)], [0, 1, 2, 3, 4].map(Some));
        assert_eq!(there.total(), own.total());
        assert_eq!(start.own_runs(&there), own);
        let up = ConvStartTile { descending: false, ..start };
        assert_eq!(up.own_runs(&up.runs(&own)), own);
    }
}
