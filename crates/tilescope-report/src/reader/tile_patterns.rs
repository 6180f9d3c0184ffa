//! Work and data of items on tiles: patterns shared by equal items, or rows in files before version
//! 2.0.

use super::Report;
use super::tile_run_collector::{TileRunCollector, strided_runs_at};
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_PATTERN_RUNS, MAX_TILES};
use crate::row_cells::RowCells;
use crate::strided_tile_runs::StridedTileRuns;
use crate::units::{TileId, TileRuns};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{ControlFlow, RangeInclusive};

/// A table of items that are distributed over tiles.
pub(super) struct TileRunSource<const VALUES: usize> {
    /// The table with the pattern of each item.
    pub(super) owners: &'static str,
    /// Column of ids in `owners`.
    pub(super) id: &'static str,
    /// The table of runs before version 2.0.
    pub(super) rows: &'static str,
    /// Column of ids in `rows`.
    pub(super) rows_id: &'static str,
    /// Columns of values in `rows`, in the order of patterns, and their largest valid numbers.
    pub(super) values: [(&'static str, u64); VALUES],
}

/// All ids that a file can have.
pub(super) const ALL_IDS: RangeInclusive<u32> = 0..=u32::MAX;

/// The pattern of an item, and the tile that it is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PatternPlace {
    pub(super) pattern: u32,
    pub(super) base: TileId,
}

impl PatternPlace {
    /// The pattern moved to its tile. `None`, with a warning, if it would extend beyond the last of
    /// the `tiles` tiles.
    pub(super) fn place<T>(
        self,
        runs: &TileRuns<T>,
        tiles: u32,
        mut out_of_bounds: impl FnMut(),
    ) -> TileRuns<T> {
        let end = runs.end().map_or(Some(TileId(0)), |end| end.checked_add(self.base.0));
        if end.is_none_or(|end| end > TileId(tiles)) {
            out_of_bounds();
            return TileRuns::default();
        }
        runs.shifted(self.base.0)
    }
}

impl Report {
    /// The runs of tiles of the items of `source` with these ids, by id; items on no tile are left
    /// out.
    pub(super) fn tile_runs<T: Clone + PartialEq, const N: usize>(
        &self,
        source: &TileRunSource<N>,
        ids: RangeInclusive<u32>,
        value: impl Fn([u64; N]) -> T,
    ) -> Result<BTreeMap<u32, TileRuns<T>>, ReportError> {
        if !self.has_patterns(source) {
            return self.runs_of_rows(source, ids, value);
        }
        let tiles = self.target()?.tiles_per_replica();
        let places = self.pattern_places(source, ids)?;
        let patterns = self.patterns(source, &places, value)?;
        Ok(places
            .iter()
            .filter_map(|(id, place)| {
                let runs = patterns.get(&place.pattern)?;
                Some((*id, place.place(runs, tiles, || self.warn_of_tiles("tile_patterns"))))
            })
            .collect())
    }

    /// True if the items of `source` have patterns, as since version 2.0.
    pub(super) fn has_patterns<const N: usize>(&self, source: &TileRunSource<N>) -> bool {
        self.db.has("tile_patterns", "runs") && self.db.has(source.owners, "pattern")
    }

    /// The patterns of the items of `source` with these ids; items on no tile are left out.
    pub(super) fn pattern_places<const N: usize>(
        &self,
        source: &TileRunSource<N>,
        ids: RangeInclusive<u32>,
    ) -> Result<BTreeMap<u32, PatternPlace>, ReportError> {
        let clauses = format!(
            "WHERE \"{0}\" BETWEEN ?1 AND ?2 AND pattern IS NOT NULL ORDER BY \"{0}\"",
            source.id
        );
        let params = [i64::from(*ids.start()), i64::from(*ids.end())];
        let columns = [source.id, "base_tile", "pattern"];
        let select = SelectQuery::all(source.owners, &columns).clauses(&clauses).params(&params);
        let places = self.db.list(select, |cells| {
            let base = TileId(cells.small_up_to(1, MAX_TILES)?);
            Some((cells.small(0)?, PatternPlace { base, pattern: cells.small(2)? }))
        })?;
        Ok(places.into_iter().flatten().collect())
    }

    /// The patterns of `places`, relative to tile 0.
    ///
    /// # Errors
    /// The items together have more runs than those of any real report. A few bytes could otherwise
    /// cause unbounded work.
    pub(super) fn patterns<T: Clone + PartialEq, const N: usize>(
        &self,
        source: &TileRunSource<N>,
        places: &BTreeMap<u32, PatternPlace>,
        value: impl Fn([u64; N]) -> T,
    ) -> Result<HashMap<u32, TileRuns<T>>, ReportError> {
        let wanted: BTreeSet<u32> = places.values().map(|place| place.pattern).collect();
        let Some(first) = wanted.first() else { return Ok(HashMap::new()) };
        let Some(last) = wanted.last() else { return Ok(HashMap::new()) };
        let ids = [i64::from(*first), i64::from(*last)];
        let select = SelectQuery::all("tile_patterns", &["id", "runs"])
            .clauses("WHERE id BETWEEN ?1 AND ?2")
            .params(&ids);
        let mut patterns = HashMap::new();
        self.db.stream(select, |cells| {
            // Ids of one kind of items are adjacent, with a few of other kinds in between, so only
            // wanted ones are parsed.
            if let Some(id) = cells.small(0).filter(|id| wanted.contains(id)) {
                let text = cells.long_text(1).unwrap_or_default();
                patterns.insert(id, self.pattern_runs(source, &text, &value));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let count_runs =
            |place: &PatternPlace| patterns.get(&place.pattern).map_or(0, TileRuns::len);
        // Patterns are read once, but callers walk the runs of each item.
        if places.values().map(count_runs).sum::<usize>() > MAX_PATTERN_RUNS {
            let problem =
                format!("rows of {} have more runs of tiles than any report", source.owners);
            return Err(self.db.damage("tile_patterns", &problem));
        }
        Ok(patterns)
    }

    fn pattern_runs<T: Clone + PartialEq, const N: usize>(
        &self,
        source: &TileRunSource<N>,
        text: &str,
        value: impl Fn([u64; N]) -> T,
    ) -> TileRuns<T> {
        let Ok(rows) = serde_json::from_str::<Vec<Vec<u64>>>(text) else {
            self.warnings.add("tile_patterns.runs holds invalid values; they are left out");
            return TileRuns::default();
        };
        // Relative to tile 0. The tiles of each item are checked when the pattern is placed.
        let mut runs = TileRunCollector::default();
        for row in rows {
            let numbers: [u64; N] = std::array::from_fn(|at| {
                let (column, most) = source.values.get(at).copied().unwrap_or_default();
                let number = row.get(4 + at).copied().filter(|number| *number <= most);
                if number.is_none() {
                    self.warnings.add(format!(
                        "{}.{column} holds invalid values; they are left out",
                        source.rows
                    ));
                }
                number.unwrap_or(0)
            });
            runs.push(strided_runs_of_numbers(&row), value(numbers));
        }
        runs.finish(&self.db, source.rows)
    }

    fn runs_of_rows<T: Clone + PartialEq, const N: usize>(
        &self,
        source: &TileRunSource<N>,
        ids: RangeInclusive<u32>,
        value: impl Fn([u64; N]) -> T,
    ) -> Result<BTreeMap<u32, TileRuns<T>>, ReportError> {
        let &TileRunSource { rows, rows_id, values, .. } = source;
        if !self.db.has(rows, rows_id) || !self.db.has(rows, "first_tile") {
            return Ok(BTreeMap::new());
        }
        let tiles = self.target()?.tiles_per_replica();
        let mut columns = vec![rows_id, "first_tile", "end_tile", "every", "times"];
        columns.extend(values.map(|(column, _)| column));
        let clauses =
            format!("WHERE \"{rows_id}\" BETWEEN ?1 AND ?2 ORDER BY \"{rows_id}\", first_tile");
        let params = [i64::from(*ids.start()), i64::from(*ids.end())];
        let select = SelectQuery::all(rows, &columns).clauses(&clauses).params(&params);
        let mut found: BTreeMap<u32, TileRunCollector<T>> = BTreeMap::new();
        self.db.read(select, |cells: &RowCells| {
            if let Some(id) = cells.small(0) {
                let numbers: [u64; N] = std::array::from_fn(|at| {
                    let most = values.get(at).map_or(0, |(_, most)| *most);
                    cells.count(5 + at, most).unwrap_or(0)
                });
                found.entry(id).or_default().push(strided_runs_at(cells, 1, tiles), value(numbers));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found.into_iter().map(|(id, runs)| (id, runs.finish(&self.db, rows))).collect())
    }

    /// Warns of runs of `table` on tiles that do not exist.
    pub(super) fn warn_of_tiles(&self, table: &str) {
        self.warnings.add(format!(
            "{table} has runs of tiles that overlap or do not exist; they are left out"
        ));
    }
}

/// The first four numbers of a row of a pattern.
pub(super) fn strided_runs_of_numbers(row: &[u64]) -> Option<StridedTileRuns> {
    let get_number = |at: usize| row.get(at).and_then(|number| u32::try_from(*number).ok());
    let first = TileId(get_number(0)?);
    let end = TileId(get_number(1)?);
    StridedTileRuns::checked(first, end, get_number(2)?, get_number(3)?, MAX_TILES)
}
