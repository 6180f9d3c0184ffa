//! Overview of tiles: the fullest ones, and a histogram of their memory.

use super::InsightFacts;
use crate::memory::needed;
use serde::Serialize;
use tilescope_report::units::{Bytes, IpuId, TileId};

/// Number of bars of the histogram.
const BUCKETS: usize = 20;

/// One of the fullest tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FullestTile {
    pub tile: TileId,
    pub ipu: IpuId,
    /// Its memory including gaps.
    pub bytes: Bytes,
}

/// Tiles with similar memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TileMemoryBin {
    /// Inclusive lower bound.
    pub from: Bytes,
    /// Exclusive upper bound.
    pub to: Bytes,
    pub tiles: u64,
}

/// Overview of the memory of all tiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TileMemoryOverview {
    /// Bytes in use over all tiles, excluding gaps.
    pub used: Bytes,
    /// Total memory of all tiles in bytes.
    pub capacity: Bytes,
    /// Memory of one tile in bytes.
    pub tile_capacity: Bytes,
    /// Number of tiles that need more memory than they have.
    pub overfull: u64,
    /// The five fullest tiles, the fullest first.
    pub worst: Vec<FullestTile>,
    /// Tiles by memory including gaps.
    pub histogram: Vec<TileMemoryBin>,
}

/// Summarizes the memory of all tiles.
pub fn tile_memory_overview(facts: &InsightFacts) -> TileMemoryOverview {
    let tile_capacity = facts.target.bytes_per_tile;
    let worst: Vec<FullestTile> = facts
        .fullest(5)
        .into_iter()
        .map(|(tile, bytes)| FullestTile { tile, ipu: facts.target.ipu_of_tile(tile), bytes })
        .collect();
    let most = worst.first().map_or(Bytes::ZERO, |tile| tile.bytes);
    let width = (most.max(tile_capacity) + Bytes(1)).div_ceil(BUCKETS as u64).max(Bytes(1));
    let mut histogram: Vec<TileMemoryBin> = (0..BUCKETS as u64)
        .map(|index| TileMemoryBin { from: index * width, to: (index + 1) * width, tiles: 0 })
        .collect();
    for (range, memory) in facts.memory.iter() {
        let index = (needed(memory) / width) as usize;
        histogram[index.min(BUCKETS - 1)].tiles += u64::from(range.count());
    }
    TileMemoryOverview {
        used: facts.used_bytes(),
        capacity: tile_capacity.saturating_mul(facts.target.tiles_per_replica().into()),
        tile_capacity,
        overfull: facts.memory.map(|tile| u64::from(tile.overflowed > Bytes::ZERO)).total(),
        worst,
        histogram,
    }
}
