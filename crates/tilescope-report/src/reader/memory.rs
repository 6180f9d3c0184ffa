//! Memory of tiles and the liveness walk.

use super::Report;
use super::tile_run_collector::{TileRunCollector, strided_runs_at};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_COUNT, MAX_TILE_BYTES, MAX_TILES};
use crate::model::{CategoryBytes, LivenessStep, MemoryCategory, MemoryRegion, TileMemory};
use crate::units::{Bytes, ProgramId, TileId, TileRange, TileRuns};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of a category on a tile.
type TileShare = ((TileId, MemoryCategory), Bytes);

/// The number of variables whose bytes are collected before they are summed: 64 MB.
const BYTES_SUMMED_TOGETHER: usize = 1 << 22;

impl Report {
    /// Memory of each tile of the replica; empty if not recorded.
    pub fn tile_memory(&self) -> Result<Arc<TileRuns<TileMemory>>, ReportError> {
        self.tile_memory.get(|| {
            if self.db.has("memory_by_tile", "total") && self.db.has_rows("memory_by_tile") {
                return self.recorded_memory();
            }
            Ok(runs_of_shares(&self.bytes_per_tile()?, |shares| {
                let total = shares.iter().map(|(_, bytes)| *bytes);
                tile_memory_from_total(total.fold(Bytes::ZERO, Bytes::saturating_add))
            }))
        })
    }

    fn recorded_memory(&self) -> Result<TileRuns<TileMemory>, ReportError> {
        let columns = [
            "tile",
            "total",
            "total_including_gaps",
            "non_interleaved",
            "interleaved",
            "overflowed",
            "always_live",
            "peak_not_always_live",
        ];
        let count = self.target()?.tiles_per_replica();
        let mut tiles: Vec<(TileId, TileMemory)> = Vec::new();
        let order = if self.db.has("memory_by_tile", "tile") { "ORDER BY tile" } else { "" };
        let mut row = 0;
        self.db.read(SelectQuery::all("memory_by_tile", &columns).clauses(order), |cells| {
            let read_bytes = |column| cells.count(column, MAX_TILE_BYTES);
            let numbered = cells.small_up_to(0, count);
            // Without tile numbers, rows are in the order of tiles.
            let tile = if order.is_empty() { Some(row) } else { numbered };
            let tile = tile.filter(|tile| *tile < count).map(TileId);
            row = row.saturating_add(1);
            let whole = tile_memory_from_total(read_bytes(1).unwrap_or_default());
            let memory = match read_bytes(3) {
                None => whole,
                Some(non_interleaved) => TileMemory {
                    including_gaps: read_bytes(2).unwrap_or(whole.including_gaps),
                    non_interleaved,
                    interleaved: read_bytes(4).unwrap_or_default(),
                    overflowed: read_bytes(5).unwrap_or_default(),
                    always_live: read_bytes(6).unwrap_or_default(),
                    peak_not_always_live: read_bytes(7).unwrap_or_default(),
                },
            };
            tiles.extend(tile.map(|tile| (tile, memory)));
            Ok(ControlFlow::Continue(()))
        })?;
        // Sorted already, except for values that SQLite does not compare as numbers. Of two rows of
        // a tile the last counts.
        tiles.reverse();
        tiles.sort_by_key(|(tile, _)| *tile);
        tiles.dedup_by_key(|(tile, _)| *tile);
        Ok(runs_of(tiles.into_iter()))
    }

    /// Memory of each tile by category; empty if not recorded.
    pub fn tile_categories(&self) -> Result<Arc<TileRuns<Vec<CategoryBytes>>>, ReportError> {
        self.tile_categories.get(|| {
            if self.db.has("category_bytes", "first_tile") {
                return self.recorded_categories();
            }
            // Poplar's files do not record the region of a variable.
            let region = MemoryRegion::NonInterleaved;
            Ok(runs_of_shares(&self.bytes_per_tile()?, |shares| {
                shares
                    .iter()
                    .map(|&((_, category), bytes)| CategoryBytes {
                        category,
                        region,
                        overlapped: false,
                        bytes,
                    })
                    .collect()
            }))
        })
    }

    fn recorded_categories(&self) -> Result<TileRuns<Vec<CategoryBytes>>, ReportError> {
        let categories = self.categories()?;
        let table = "category_bytes";
        let tiles = self.target()?.tiles_per_replica();
        let columns = [
            "category",
            "first_tile",
            "end_tile",
            "every",
            "times",
            "region",
            "overlapped",
            "bytes",
        ];
        let mut owners: BTreeMap<(MemoryCategory, MemoryRegion, bool), TileRunCollector<Bytes>> =
            BTreeMap::new();
        self.db.read(SelectQuery::all(table, &columns), |cells| {
            let category = cells.int(0).and_then(|id| categories.get(&id).copied());
            let region = cells.count(5, MemoryRegion::ALL.len() as u64 - 1).unwrap_or(0);
            let region = usize::try_from(region).ok().and_then(|at| MemoryRegion::ALL.get(at));
            let owner = (
                category.unwrap_or(MemoryCategory::Unknown),
                region.copied().unwrap_or(MemoryRegion::NonInterleaved),
                cells.int(6) == Some(1),
            );
            let bytes = cells.count(7, MAX_TILE_BYTES).unwrap_or_default();
            owners.entry(owner).or_default().push(strided_runs_at(cells, 1, tiles), bytes);
            Ok(ControlFlow::Continue(()))
        })?;
        let mut lists: BTreeMap<TileId, Vec<CategoryBytes>> = BTreeMap::new();
        for ((category, region, overlapped), runs) in owners {
            for (tiles, bytes) in runs.finish(&self.db, table).iter() {
                for tile in tiles.iter() {
                    let share = CategoryBytes { category, region, overlapped, bytes: *bytes };
                    lists.entry(tile).or_default().push(share);
                }
            }
        }
        Ok(runs_of(lists.into_iter()))
    }

    /// Bytes of variables on each tile by category, in order; zero entries are left out.
    fn bytes_per_tile(&self) -> Result<Vec<TileShare>, ReportError> {
        let mut sums = Vec::new();
        if !self.db.has("vars_info", "tile") || !self.db.has("vars_info", "size_bytes") {
            return Ok(sums);
        }
        let categories = self.categories()?;
        let mut room = BYTES_SUMMED_TOGETHER;
        // Summed here: SQLite would sort all rows in a temporary table, which takes three times as
        // long.
        let select = SelectQuery::all("vars_info", &["tile", "size_bytes", "category"]);
        self.db.stream(select, |cells| {
            let tile = cells.small_up_to(0, MAX_TILES - 1).map(TileId);
            if let Some((tile, bytes)) = tile.zip(cells.count(1, MAX_TILE_BYTES)) {
                let category = cells.int(2).and_then(|id| categories.get(&id).copied());
                let key = (tile, category.unwrap_or(MemoryCategory::Unknown));
                push_in_order(&mut sums, key, bytes);
            }
            if sums.len() >= room {
                add_up(&mut sums);
                room = BYTES_SUMMED_TOGETHER.max(2 * sums.len());
            }
            Ok(ControlFlow::Continue(()))
        })?;
        add_up(&mut sums);
        Ok(sums)
    }

    /// The liveness walk; empty if not recorded.
    pub fn liveness(&self) -> Result<Vec<LivenessStep>, ReportError> {
        self.db.list(SelectQuery::all("liveness_steps", &["program", "bytes"]), |cells| {
            LivenessStep {
                program: ProgramId(cells.small(0).unwrap_or(0)),
                bytes: Bytes(cells.count(1, MAX_COUNT).unwrap_or(0)),
            }
        })
    }
}

/// Adds the bytes of a variable on a tile. Files mostly go from tile to tile, so the entries of one
/// tile are kept sorted and little remains to be sorted at the end.
fn push_in_order(sums: &mut Vec<TileShare>, key: (TileId, MemoryCategory), bytes: Bytes) {
    let behind = sums
        .iter()
        .rev()
        .take_while(|((tile, category), _)| *tile == key.0 && *category > key.1)
        .count();
    let place = sums.len() - behind;
    match place.checked_sub(1).and_then(|last| sums.get_mut(last)) {
        Some((known, sum)) if *known == key => *sum = sum.saturating_add(bytes),
        _ => sums.insert(place, (key, bytes)),
    }
}

/// Sorts sums and merges those with the same key.
fn add_up<K: Copy + Ord>(sums: &mut Vec<(K, Bytes)>) {
    sums.sort_by_key(|(key, _)| *key);
    sums.dedup_by(|(later, more), (key, sum)| {
        let same = later == key;
        if same {
            *sum = sum.saturating_add(*more);
        }
        same
    });
}

/// Memory of a tile with only a known total.
fn tile_memory_from_total(total: Bytes) -> TileMemory {
    TileMemory {
        // A single number tells neither gaps nor liveness nor regions. Treating all of it as always
        // live never shows free memory that does not exist.
        including_gaps: total,
        non_interleaved: total,
        always_live: total,
        ..TileMemory::default()
    }
}

/// Runs of the values that `value` computes from the shares of each tile; the shares of a tile are
/// adjacent.
fn runs_of_shares<T: Clone + PartialEq>(
    shares: &[TileShare],
    value: impl Fn(&[TileShare]) -> T,
) -> TileRuns<T> {
    let tiles = shares.chunk_by(|((one, _), _), ((other, _), _)| one == other);
    runs_of(tiles.filter_map(|own| own.first().map(|((tile, _), _)| (*tile, value(own)))))
}

fn runs_of<T: Clone + PartialEq>(tiles: impl Iterator<Item = (TileId, T)>) -> TileRuns<T> {
    let mut runs = TileRuns::empty();
    for (tile, value) in tiles {
        runs.push(TileRange::single(tile), value);
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tilescope_test_tiers::cases;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(cases(250)))]
        #[test]
        fn sums_do_not_depend_on_the_order_of_rows(
            rows in prop::collection::vec((0u32..6, 0usize..4, 0u64..9), 0..80),
        ) {
            let mut sums = Vec::new();
            let mut slow: BTreeMap<(TileId, MemoryCategory), Bytes> = BTreeMap::new();
            for (tile, category, bytes) in rows {
                let key = (TileId(tile), MemoryCategory::ALL[category]);
                push_in_order(&mut sums, key, Bytes(bytes));
                *slow.entry(key).or_default() += Bytes(bytes);
            }
            add_up(&mut sums);
            prop_assert_eq!(sums, slow.into_iter().collect::<Vec<_>>());
        }
    }
}
