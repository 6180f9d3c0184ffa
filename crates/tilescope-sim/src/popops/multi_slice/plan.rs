//! Plans of gathers and updates: splits of rows, columns and lookups over tiles that minimise
//! memory or cycles (poplibs lib/popops/DynamicSlice.cpp, `embedding::plan`, of March 2021 and of
//! 2023).

use super::MultiSliceParams;
use crate::poplar::exchange::WORD_BYTES;
use crate::poputil::tensor_layout::LOAD_BYTES;
use crate::shape::DType;
use crate::targets::{IpuTarget, WORKERS};
use tilescope_report::units::{Bytes, Cycles, Quantity};

/// Bytes of one store. Plans of least memory distribute columns in grains of this size.
const STORE_BYTES: Bytes = Bytes(4);

/// Minimum number of indices on one tile.
pub(crate) const INDICES_PER_TILE: u64 = 32;

/// Weight of persistent bytes relative to temporary bytes.
const PERSISTENT_WEIGHT: u64 = 10;

/// Numbers of parts, one tile for each combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlicePlan {
    /// Parts of the columns.
    pub columns: u64,
    /// Parts of the rows. A second stage selects between their results.
    pub rows: u64,
    /// Parts of the lookups. Each gets a copy of the table, and their updates are summed.
    pub lookups: u64,
    /// Columns that are distributed to tiles together.
    pub grain: u64,
}

/// Part of a table and of its lookups on the fullest tile.
#[derive(Clone, Copy, Debug)]
struct LargestPart {
    grains: u64,
    rows: u64,
    lookups: u64,
}

/// Numbers of parts up to `most`, each the smallest that yields its largest part, with that part.
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

/// Returns the plan with the least memory on at most `tiles` tiles.
pub fn plan(embedding: &MultiSliceParams, tiles: u64, updated: bool) -> SlicePlan {
    least_memory(embedding, tiles, updated, embedding.lookups)
}

/// Returns the plan with the least memory for rows that overwrite those of the table. Results of
/// several parts of the lookups could not be combined, so there is one part.
pub(crate) fn overwriting_plan(embedding: &MultiSliceParams, tiles: u64) -> SlicePlan {
    least_memory(embedding, tiles, true, 1)
}

/// Returns the plan with the least memory and at most `most_lookups` parts of the lookups.
fn least_memory(
    embedding: &MultiSliceParams,
    tiles: u64,
    updated: bool,
    most_lookups: u64,
) -> SlicePlan {
    let grain = (STORE_BYTES / embedding.dtype.bytes()).max(1);
    least(embedding, (tiles, grain), most_lookups, |plan, part| {
        let estimate = SlicePlanMemoryEstimate { embedding, plan, part, tiles, updated };
        estimate.weighted_bytes()
    })
}

/// Returns the plan of a single gather with the fewest cycles by the estimate of poplibs of 2023,
/// among those whose temporaries leave enough of a tile's memory, if there are any. PopART plans
/// gathers and the updates of their tables separately (popart willow/src/popx/op/gatherx.cpp).
pub(crate) fn fastest_gather(embedding: &MultiSliceParams, machine: &IpuTarget) -> SlicePlan {
    let tiles = u64::from(machine.tiles);
    let grain = (LOAD_BYTES / embedding.dtype.bytes()).clamp(1, embedding.width.max(1));
    let room = machine.chip.bytes_per_tile.share(TEMPORARY_SHARE.0, TEMPORARY_SHARE.1);
    least(embedding, (tiles, grain), embedding.lookups, |plan, part| {
        let estimate = GatherEstimate { embedding, plan, part, tiles };
        (estimate.temporary_bytes() > room, estimate.cycles())
    })
}

/// Returns the plan with the lowest `cost` that has at most `most_lookups` parts of the lookups,
/// with columns in grains of `grain`.
fn least<T: Ord>(
    embedding: &MultiSliceParams,
    (tiles, grain): (u64, u64),
    most_lookups: u64,
    cost: impl Fn(SlicePlan, LargestPart) -> T,
) -> SlicePlan {
    let mut best: Option<(T, SlicePlan)> = None;
    for (columns, grains) in splits(embedding.width.div_ceil(grain), tiles) {
        // With fewer than two rows on a tile, overhead that poplibs does not count exceeds the
        // memory saved.
        let most_rows = embedding.rows.div_ceil(2).min(tiles / columns);
        for (rows, entries) in splits(embedding.rows, most_rows) {
            let most = most_lookups.min(tiles / (columns * rows));
            for (lookups, each) in splits(embedding.lookups, most) {
                let plan = SlicePlan { columns, rows, lookups, grain };
                let cost = cost(plan, LargestPart { grains, rows: entries, lookups: each });
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, plan));
                }
            }
        }
    }
    best.map_or(SlicePlan { columns: 1, rows: 1, lookups: 1, grain }, |(_, plan)| plan)
}

/// Default share of a tile's memory that temporaries of a gather may occupy
/// (`SliceOptions::availableMemoryProportion`).
const TEMPORARY_SHARE: (u64, u64) = (6, 10);

/// Costs of a gather on the fullest tile as poplibs of 2023 estimates them (`constructModel`),
/// without its serial splits of the lookups.
struct GatherEstimate<'a> {
    embedding: &'a MultiSliceParams,
    plan: SlicePlan,
    part: LargestPart,
    tiles: u64,
}

impl GatherEstimate<'_> {
    fn row(&self) -> Bytes {
        self.part.grains * self.plan.grain * self.embedding.dtype.bytes()
    }

    /// Bytes of the table that a tile copies: its part if lookups share it, otherwise its excess
    /// over an even distribution of the table.
    fn table_copy(&self) -> Bytes {
        let held = self.part.rows * self.row();
        let grains = self.embedding.rows * self.embedding.width.div_ceil(self.plan.grain);
        let even = grains.div_ceil(self.tiles) * self.plan.grain * self.embedding.dtype.bytes();
        if self.plan.lookups > 1 { held } else { held - even.min(held) }
    }

    /// Lookups of a tile in the second stage.
    fn chosen(&self) -> u64 {
        self.part.lookups.div_ceil(self.plan.rows)
    }

    /// Bytes from which the second stage selects.
    fn candidates(&self) -> Bytes {
        self.plan.rows * self.chosen() * self.row()
    }

    fn cycles(&self) -> Cycles {
        let columns = self.part.grains * self.plan.grain;
        let first = exchange_cycles(self.table_copy()) + self.slices(columns, self.part.lookups);
        if self.plan.rows == 1 {
            return first;
        }
        // Here poplibs uses the grains of a row as its columns.
        first + exchange_cycles(self.candidates()) + self.slices(self.part.grains, self.chosen())
    }

    /// `getMultiSliceCycleEstimate`: rows on another tile cost less.
    fn slices(&self, columns: u64, lookups: u64) -> Cycles {
        let (width, each) = match self.embedding.dtype.bytes() {
            Bytes(1) => (4, 3),
            _ => (2, 2),
        };
        let of_worker = lookups.div_ceil(WORKERS);
        let found = (of_worker * self.part.rows).div_ceil(self.embedding.rows.max(1));
        let rows = found * (19 + columns.div_ceil(width) * each) + (of_worker - found) * 8;
        Cycles(WORKERS * (30 + rows))
    }

    fn temporary_bytes(&self) -> Bytes {
        let first_result =
            if self.plan.rows > 1 { self.part.lookups * self.row() } else { Bytes::ZERO };
        let candidates = if self.plan.rows > 1 { self.candidates() } else { Bytes::ZERO };
        let first = self.table_copy() + first_result + self.part.lookups * WORD_BYTES;
        first.max(first_result + candidates + self.chosen() * WORD_BYTES)
    }
}

/// Cycles to exchange `bytes`, one word per cycle.
fn exchange_cycles(bytes: Bytes) -> Cycles {
    Cycles(bytes.div_ceil(WORD_BYTES.0).0)
}

/// Returns `bytes` if there are several parts, otherwise zero.
fn bytes_if_split(parts: u64, bytes: Bytes) -> Bytes {
    if parts > 1 { bytes } else { Bytes::ZERO }
}

/// Bytes on the fullest tile.
struct SlicePlanMemoryEstimate<'a> {
    embedding: &'a MultiSliceParams,
    plan: SlicePlan,
    part: LargestPart,
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
        // Temporaries share their memory with those of other operations. Table, output and code do
        // not.
        PERSISTENT_WEIGHT * (persistent + self.exchange_code()) + passing
    }

    fn element(&self) -> Bytes {
        self.embedding.dtype.bytes()
    }

    fn columns(&self) -> u64 {
        self.part.grains * self.plan.grain
    }

    fn table(&self) -> Bytes {
        let stored = (self.part.grains * self.part.rows).div_ceil(self.plan.lookups);
        stored * self.plan.grain * self.element()
    }

    fn indices(&self) -> u64 {
        let count = self.embedding.lookups;
        INDICES_PER_TILE.min(count).max(count.div_ceil(self.tiles))
    }

    /// Lookups of a tile in the second stage.
    fn chosen(&self) -> u64 {
        self.part.lookups.div_ceil(self.plan.rows)
    }

    fn output_elements(&self) -> u64 {
        self.chosen() * self.columns()
    }

    fn exchange_code(&self) -> Bytes {
        // One message from every tile that holds some of the indices, for each stage.
        let indices = self.part.lookups.div_ceil(self.indices());
        let table = if self.plan.lookups > 1 { self.plan.lookups } else { 0 };
        let rows = if self.plan.rows > 1 { self.plan.rows } else { 0 };
        let update = if self.updated { indices + table } else { 0 };
        WORD_BYTES * (table + 2 * indices + rows + update)
    }

    fn gather_bytes(&self) -> Bytes {
        let row = self.columns() * self.element();
        let copy = bytes_if_split(self.plan.lookups, self.part.rows * row);
        let first = bytes_if_split(self.plan.rows, self.part.lookups * row);
        let second = bytes_if_split(self.plan.rows, self.plan.rows * self.chosen() * row);
        let stages = [
            copy + first + self.part.lookups * WORD_BYTES,
            first + second + self.chosen() * WORD_BYTES,
        ];
        stages[0].max(stages[1])
    }

    fn update_bytes(&self) -> Bytes {
        let cast = if self.embedding.dtype == DType::Float {
            Bytes::ZERO
        } else {
            self.output_elements() * WORD_BYTES
        };
        let row = self.columns() * WORD_BYTES;
        let updates = bytes_if_split(self.plan.rows, self.part.lookups * row);
        let partials = bytes_if_split(self.plan.lookups, self.part.rows * row);
        let adding = updates + partials + self.part.lookups * WORD_BYTES;
        // Casting, adding and reducing run in sequence. Reduced sums take the same memory as the
        // partials, as does the table in floats.
        (cast + updates).max(adding).max(2 * partials)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::MK2;

    #[test]
    fn plans_use_the_tiles_they_have() {
        for (rows, width, lookups) in [(1000, 200, 21_600), (50_000, 64, 16), (3, 1, 1)] {
            let embedding = MultiSliceParams { rows, width, lookups, dtype: DType::Half };
            for tiles in [1, 7, 1472] {
                let machine = IpuTarget { tiles, ..IpuTarget::all_tiles_of(MK2) };
                let gather = fastest_gather(&embedding, &machine);
                for plan in [plan(&embedding, tiles.into(), true), gather] {
                    let used = plan.columns * plan.rows * plan.lookups;
                    assert!(used <= u64::from(tiles), "{plan:?}");
                }
            }
        }
    }
}
