//! Runs of tiles out of rows that may say anything.

use crate::report::db::{Cells, Db};
use crate::units::{TileRange, TileRuns};

/// The tiles `first..end` of the columns `at` and `at + 1`; `None` if there are no such tiles
/// among the `tiles` of the replica.
pub(super) fn tile_range(cells: &Cells, at: usize, tiles: u32) -> Option<TileRange> {
    let first = cells.count(at, tiles.into())? as u32;
    let end = cells.count(at + 1, tiles.into())? as u32;
    (first < end).then(|| TileRange::new(first, end))
}

/// Collects runs; those that do not follow the last one are left out.
pub(super) struct RunCollector<T> {
    runs: TileRuns<T>,
    end: u32,
}

impl<T: Clone + PartialEq> Default for RunCollector<T> {
    fn default() -> Self {
        Self { runs: TileRuns::empty(), end: 0 }
    }
}

impl<T: Clone + PartialEq> RunCollector<T> {
    pub(super) fn push(&mut self, db: &Db, table: &str, tiles: Option<TileRange>, value: T) {
        match tiles {
            Some(tiles) if tiles.first >= self.end => {
                self.end = tiles.end;
                self.runs.push(tiles, value);
            }
            _ => db.warnings.add(format!(
                "{table} has runs of tiles that overlap or cannot be; they are left out"
            )),
        }
    }

    pub(super) fn finish(self) -> TileRuns<T> {
        self.runs
    }
}
