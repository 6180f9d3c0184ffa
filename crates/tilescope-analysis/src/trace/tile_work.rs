//! Working times of tiles in a step: the rows of the raster below the lanes.
//!
//! A report holds the cycles of each tile once per compute set, and the traffic of each tile once
//! per exchange. A step takes as long as its slowest tile, and the others end earlier: a tile works
//! for `step cycles x its own cycles / the most of any tile`, in exchanges with bytes in place of
//! cycles.

use std::collections::BTreeMap;
use tilescope_report::units::{ComputeSetId, ProgramId, TileRange, TileRuns};
use tilescope_report::{Report, ReportError};

/// Work of each tile in the programs of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TileWorkTimes {
    sets: BTreeMap<ComputeSetId, PerTileWork>,
    programs: BTreeMap<ProgramId, TileWorkSource>,
}

#[derive(Clone, Debug, PartialEq)]
enum TileWorkSource {
    ComputeSet(ComputeSetId),
    Exchange(PerTileWork),
    /// A further call of a function: the work of the program in the function.
    OutlinedCode(ProgramId),
}

/// Work of tiles, and its maximum.
#[derive(Clone, Debug, PartialEq)]
struct PerTileWork {
    tiles: TileRuns<u64>,
    most: u64,
}

impl PerTileWork {
    fn from_tile_runs(tiles: TileRuns<u64>) -> Option<Self> {
        let most = tiles.max();
        if most > 0 { Some(Self { tiles, most }) } else { None }
    }
}

impl TileWorkTimes {
    /// Reads the work of tiles.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn read(report: &Report) -> Result<Self, ReportError> {
        let sets = report.compute_sets()?.into_iter();
        let sets = sets
            .filter_map(|(id, set)| {
                Some((id, PerTileWork::from_tile_runs(set.cycles.map(|cycles| cycles.0))?))
            })
            .collect();
        let mut times = Self { sets, programs: BTreeMap::new() };
        for (id, program) in report.programs()?.iter() {
            if let Some(set) = program.compute_set {
                times.programs.insert(id, TileWorkSource::ComputeSet(set));
            }
        }
        for exchange in report.exchanges()? {
            let moved = exchange.tiles.map(|tile| tile.bytes_in.max(tile.bytes_out).0);
            if let Some(work) = PerTileWork::from_tile_runs(moved) {
                times.programs.insert(exchange.program, TileWorkSource::Exchange(work));
            }
        }
        for (id, body) in report.programs()?.further_uses() {
            times.programs.entry(id).or_insert(TileWorkSource::OutlinedCode(body));
        }
        Ok(times)
    }

    /// For each of `rows` rows of `tiles`, the mean share of a step of `program` that its tiles
    /// work; `None` if it was not recorded.
    pub fn rows(&self, program: ProgramId, tiles: TileRange, rows: usize) -> Option<Vec<f32>> {
        let source = match self.programs.get(&program)? {
            TileWorkSource::OutlinedCode(body) => self.programs.get(body)?,
            own => own,
        };
        let work = match source {
            TileWorkSource::Exchange(work) => work,
            TileWorkSource::ComputeSet(set) => self.sets.get(set)?,
            TileWorkSource::OutlinedCode(_) => return None,
        };
        let count = tiles.count() as usize;
        let mut sums = vec![0.0f32; rows];
        for (range, value) in work.tiles.iter() {
            let share = *value as f32 / work.most as f32;
            for tile in range.intersection(tiles).iter() {
                let place = (tile - tiles.first) as usize;
                let (top, bottom) = rows_of_tile(place, count, rows);
                sums[top..bottom].iter_mut().for_each(|sum| *sum += share);
            }
        }
        for (row, sum) in sums.iter_mut().enumerate() {
            *sum /= tiles_of_row(row, count, rows).max(1) as f32;
        }
        Some(sums)
    }
}

/// The half-open range of rows of the tile at a position: one row for several tiles, or several
/// rows for one tile.
pub fn rows_of_tile(place: usize, tiles: usize, rows: usize) -> (usize, usize) {
    let top = place * rows / tiles.max(1);
    let bottom = ((place + 1) * rows / tiles.max(1)).max(top + 1);
    (top.min(rows), bottom.min(rows))
}

/// Number of tiles that a row combines.
fn tiles_of_row(row: usize, tiles: usize, rows: usize) -> usize {
    if rows >= tiles {
        return 1;
    }
    // Tiles with this first row: `row <= place x rows / tiles < row + 1`.
    let first = (row * tiles).div_ceil(rows);
    ((row + 1) * tiles).div_ceil(rows) - first
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::{Cycles, TileId};

    fn times(builder: &ReportBuilder) -> TileWorkTimes {
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        TileWorkTimes::read(&report).unwrap()
    }

    #[test]
    fn the_slowest_tile_works_all_the_time_and_rows_hold_means() {
        let mut builder = ReportBuilder::new(1, 8);
        let work = builder.compute("a", 100);
        let half =
            TileRuns::from_tiles(TileId(0), (0..8).map(|tile| Some(Cycles(100 - 10 * tile))));
        builder.parts.compute_sets[0].cycles = half;
        let times = times(&builder);
        let all = TileRange::first_tiles(8);
        let every = times.rows(work, all, 8).unwrap();
        assert!((every[0] - 1.0).abs() < 1e-6 && (every[7] - 0.3).abs() < 1e-6);
        for rows in [1, 2, 3, 5, 8, 16, 100] {
            let shares = times.rows(work, all, rows).unwrap();
            assert_eq!(shares.len(), rows);
            assert!(shares.iter().all(|share| (0.29..=1.001).contains(share)), "{rows} {shares:?}");
        }
        let halves = times.rows(work, all, 2).unwrap();
        assert!((halves[0] - 0.85).abs() < 1e-6 && (halves[1] - 0.45).abs() < 1e-6);
    }

    #[test]
    fn every_tile_has_a_row_and_every_row_a_tile() {
        for tiles in [1usize, 3, 64, 1472] {
            for rows in [1usize, 2, 63, 160, 1472, 3000] {
                let covered = (0..tiles).map(|place| rows_of_tile(place, tiles, rows));
                assert!(covered.clone().all(|(top, bottom)| top < bottom && bottom <= rows));
                if rows <= tiles {
                    let counts: usize = (0..rows).map(|row| tiles_of_row(row, tiles, rows)).sum();
                    assert_eq!(counts, tiles);
                    for row in 0..rows {
                        let here = covered.clone().filter(|(top, _)| *top == row).count();
                        assert_eq!(here, tiles_of_row(row, tiles, rows));
                    }
                }
            }
        }
    }

    #[test]
    fn programs_without_tiles_have_no_rows() {
        let mut builder = ReportBuilder::new(1, 8);
        let sync = builder.program(tilescope_report::ProgramKind::Sync, "External");
        assert_eq!(times(&builder).rows(sync, TileRange::first_tiles(8), 4), None);
    }
}
