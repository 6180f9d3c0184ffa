//! Collects runs of tiles from untrusted rows.

use crate::database::ReportDatabase;
use crate::limits::MAX_TILES;
use crate::row_cells::RowCells;
use crate::strided_tile_runs::StridedTileRuns;
use crate::units::{TileId, TileRange, TileRuns};

/// The strided runs in the columns from `at` on; `None` if they exceed the `tiles` of the replica.
pub(super) fn strided_runs_at(cells: &RowCells, at: usize, tiles: u32) -> Option<StridedTileRuns> {
    let read_column = |column: usize| cells.small_up_to(at + column, MAX_TILES);
    let first = TileId(read_column(0)?);
    let end = TileId(read_column(1)?);
    StridedTileRuns::checked(first, end, read_column(2)?, read_column(3)?, tiles)
}

/// Collects runs; those that overlap others are left out.
pub(super) struct TileRunCollector<T> {
    runs: Vec<(TileRange, T)>,
    tiles: u64,
    broken: bool,
}

impl<T> Default for TileRunCollector<T> {
    fn default() -> Self {
        Self { runs: Vec::new(), tiles: 0, broken: false }
    }
}

impl<T: Clone + PartialEq> TileRunCollector<T> {
    pub(super) fn push(&mut self, strided: Option<StridedTileRuns>, value: T) {
        let Some(strided) = strided else {
            self.broken = true;
            return;
        };
        // Runs that do not overlap have at most as many tiles as exist.
        self.tiles += strided.count();
        if self.tiles > MAX_TILES.into() {
            self.broken = true;
            return;
        }
        // A few bytes in the file may expand to a million runs, so they are counted first.
        self.runs.extend(strided.ranges().map(|tiles| (tiles, value.clone())));
    }

    /// The runs in order; a warning names `table` if some overlapped and were left out.
    pub(super) fn finish(mut self, db: &ReportDatabase, table: &str) -> TileRuns<T> {
        self.runs.sort_by_key(|(tiles, _)| *tiles);
        let mut runs = TileRuns::empty();
        let mut end = TileId(0);
        for (tiles, value) in self.runs {
            // Sorted, so a run that overlaps any other overlaps the last one kept.
            if tiles.first < end {
                self.broken = true;
                continue;
            }
            end = tiles.end;
            runs.push(tiles, value);
        }
        if self.broken {
            db.warnings.add(format!(
                "{table} has runs of tiles that overlap or do not exist; they are left out"
            ));
        }
        runs
    }
}
