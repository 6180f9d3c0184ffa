//! How a table is split for gathers and updates: rows, columns and lookups over tiles, so that
//! memory is least (poplibs lib/popops/DynamicSlice.cpp, `embedding::plan`).

use super::MultiSliceParams;
use crate::poplar::exchange::WORD_BYTES;
use crate::shape::DType;
use tilescope_report::units::Bytes;

/// Bytes that are stored at once: columns are dealt in grains of them.
const STORE_BYTES: Bytes = Bytes(4);

/// Fewest indices on one tile.
pub(crate) const INDICES_PER_TILE: u64 = 32;

/// Weight of bytes that stay against bytes that pass.
const PERSISTENT_WEIGHT: u64 = 10;

/// Numbers of parts, one tile each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicePlan {
    /// Parts of the columns.
    pub columns: u64,
    /// Parts of the rows: a second stage chooses between their results.
    pub rows: u64,
    /// Parts of the lookups: the table is copied to each, and their updates are added up.
    pub lookups: u64,
}

/// Part counts up to `most`, each the fewest that give their largest part, with that part.
fn splits(size: u64, most: u64) -> impl Iterator<Item = (u64, u64)> {
    let most = most.min(size);
    let mut next = 1;
    std::iter::from_fn(move || {
        let parts = next;
        let largest = size.checked_div(parts).filter(|_| parts <= most)?;
        let largest = largest + u64::from(!size.is_multiple_of(parts));
        next = if largest == 1 { most + 1 } else { size.div_ceil(largest - 1) };
        Some((parts, largest))
    })
}

/// The plan that needs the least memory on at most `tiles` tiles.
pub fn plan(embedding: &MultiSliceParams, tiles: u64, updated: bool) -> SlicePlan {
    least_memory(embedding, tiles, updated, embedding.lookups)
}

/// The plan that needs the least memory for rows that overwrite those of the table: what parts of
/// the lookups wrote could not be put together, so there is one.
pub(crate) fn overwriting_plan(embedding: &MultiSliceParams, tiles: u64) -> SlicePlan {
    least_memory(embedding, tiles, true, 1)
}

/// The plan of at most so many parts of the lookups that needs the least memory.
fn least_memory(
    embedding: &MultiSliceParams,
    tiles: u64,
    updated: bool,
    most_lookups: u64,
) -> SlicePlan {
    let grain = embedding.grain();
    let mut best = (Bytes::MAX, SlicePlan { columns: 1, rows: 1, lookups: 1 });
    for (columns, grains) in splits(embedding.width.div_ceil(grain), tiles) {
        // With fewer than two rows on a tile, overhead that poplibs does not count exceeds the
        // memory that is saved.
        let most_rows = embedding.rows.div_ceil(2).min(tiles / columns);
        for (rows, entries) in splits(embedding.rows, most_rows) {
            for (lookups, each) in {
                let most = most_lookups.min(tiles / (columns * rows));
                splits(embedding.lookups, most)
            } {
                let plan = SlicePlan { columns, rows, lookups };
                let cost = SlicePlanMemoryEstimate {
                    embedding,
                    plan,
                    grains,
                    rows_per_tile: entries,
                    lookups_per_tile: each,
                    tiles,
                    updated,
                };
                let goal = cost.weighted_bytes();
                if goal < best.0 {
                    best = (goal, plan);
                }
            }
        }
    }
    best.1
}

/// Bytes on the fullest tile.
struct SlicePlanMemoryEstimate<'a> {
    embedding: &'a MultiSliceParams,
    plan: SlicePlan,
    /// Grains of columns of a tile.
    grains: u64,
    /// Rows of a tile.
    rows_per_tile: u64,
    /// Lookups of a tile.
    lookups_per_tile: u64,
    tiles: u64,
    updated: bool,
}

impl SlicePlanMemoryEstimate<'_> {
    fn weighted_bytes(&self) -> Bytes {
        let persistent =
            self.table() + self.output_elements() * self.element() + self.indices() * WORD_BYTES;
        let passing = if self.updated {
            self.gather_bytes().max(self.update_bytes())
        } else {
            self.gather_bytes()
        };
        // Temporaries share their memory with those of other operations; table, output and code do
        // not.
        PERSISTENT_WEIGHT * (persistent + self.exchange_code()) + passing
    }

    fn element(&self) -> Bytes {
        self.embedding.dtype.bytes()
    }

    fn columns(&self) -> u64 {
        self.grains * self.embedding.grain()
    }

    fn table(&self) -> Bytes {
        let stored = (self.grains * self.rows_per_tile).div_ceil(self.plan.lookups);
        stored * self.embedding.grain() * self.element()
    }

    fn indices(&self) -> u64 {
        let count = self.embedding.lookups;
        INDICES_PER_TILE.min(count).max(count.div_ceil(self.tiles))
    }

    /// Lookups of a tile in the second stage.
    fn chosen(&self) -> u64 {
        self.lookups_per_tile.div_ceil(self.plan.rows)
    }

    fn output_elements(&self) -> u64 {
        self.chosen() * self.columns()
    }

    fn exchange_code(&self) -> Bytes {
        let split = |parts: u64| if parts > 1 { parts } else { 0 };
        // A message from every tile that holds some of the indices, once for each stage.
        let indices = self.lookups_per_tile.div_ceil(self.indices());
        let (table, rows) = (split(self.plan.lookups), split(self.plan.rows));
        let update = if self.updated { indices + table } else { 0 };
        WORD_BYTES * (table + 2 * indices + rows + update)
    }

    fn gather_bytes(&self) -> Bytes {
        let split = |parts: u64, bytes: Bytes| if parts > 1 { bytes } else { Bytes::ZERO };
        let row = self.columns() * self.element();
        let copy = split(self.plan.lookups, self.rows_per_tile * row);
        let first = split(self.plan.rows, self.lookups_per_tile * row);
        let second = split(self.plan.rows, self.plan.rows * self.chosen() * row);
        let stages = [
            copy + first + self.lookups_per_tile * WORD_BYTES,
            first + second + self.chosen() * WORD_BYTES,
        ];
        stages[0].max(stages[1])
    }

    fn update_bytes(&self) -> Bytes {
        let split = |parts: u64, elements: u64| {
            if parts > 1 { elements * WORD_BYTES } else { Bytes::ZERO }
        };
        let cast = if self.embedding.dtype == DType::Float {
            Bytes::ZERO
        } else {
            self.output_elements() * WORD_BYTES
        };
        let updates = split(self.plan.rows, self.lookups_per_tile * self.columns());
        let partials = split(self.plan.lookups, self.rows_per_tile * self.columns());
        let adding = updates + partials + self.lookups_per_tile * WORD_BYTES;
        // Casting, adding and reducing follow each other. Reduced sums take as much as the
        // partials, as does the table in floats.
        (cast + updates).max(adding).max(2 * partials)
    }
}

impl MultiSliceParams {
    /// Columns that are dealt to tiles together.
    pub(crate) fn grain(&self) -> u64 {
        (STORE_BYTES / self.dtype.bytes()).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_use_the_tiles_they_have() {
        for (rows, width, lookups) in [(1000, 200, 21_600), (50_000, 64, 16), (3, 1, 1)] {
            let embedding = MultiSliceParams { rows, width, lookups, dtype: DType::Half };
            for tiles in [1, 7, 1472] {
                let plan = plan(&embedding, tiles, true);
                assert!(plan.columns * plan.rows * plan.lookups <= tiles);
            }
        }
    }
}
