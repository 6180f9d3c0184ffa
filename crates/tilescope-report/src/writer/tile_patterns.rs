//! Writes patterns of tiles, which equal items share.

use crate::error::ReportError;
use crate::row_writer::{RowWriter, check_tiles_exist};
use crate::strided_tile_runs::{StridedTileRuns, strided_runs_of};
use crate::units::{TileId, TileRange, TileRuns};
use rusqlite::params;
use std::collections::HashMap;
use std::fmt::Write;

/// The pattern and base tile of an item, as columns; NULL for an item on no tile.
#[derive(Clone, Copy, Default)]
pub(super) struct PatternColumns {
    pub(super) base_tile: Option<TileId>,
    /// `tile_patterns.id`
    pub(super) pattern: Option<i64>,
}

/// Assigns ids to patterns, in the order of first use.
///
/// A pattern is relative to the first tile of the IPU on which it begins, so that equal layers on
/// several IPUs have the same pattern. Of runs that share their memory, only the first are encoded.
pub(super) struct TilePatternWriter<'a> {
    rows: &'a RowWriter<'a>,
    tiles_per_ipu: u32,
    tiles: u32,
    by_text: HashMap<String, i64>,
    /// By the identity of the runs and their distance from the base. All runs of a compilation are
    /// alive while it is written, so different runs never have the same address.
    by_runs: HashMap<(usize, i64), i64>,
}

impl<'a> TilePatternWriter<'a> {
    pub(super) fn new(rows: &'a RowWriter<'a>, tiles_per_ipu: u32, tiles: u32) -> Self {
        let by_text = HashMap::new();
        let by_runs = HashMap::new();
        Self { rows, tiles_per_ipu, tiles, by_text, by_runs }
    }

    /// The pattern of `runs`, with the numbers of their values. `what` is only called for an error
    /// message.
    pub(super) fn place<T: Clone + Ord, const N: usize>(
        &mut self,
        runs: &TileRuns<T>,
        numbers: impl Fn(&T) -> Result<[i64; N], ReportError>,
        what: impl Fn() -> String,
    ) -> Result<PatternColumns, ReportError> {
        self.place_parts(runs, TileRuns::clone, numbers, what)
    }

    /// The pattern of a part of `runs`, with the numbers of its values.
    pub(super) fn place_parts<T, U: Clone + Ord, const N: usize>(
        &mut self,
        runs: &TileRuns<T>,
        part: impl FnOnce(&TileRuns<T>) -> TileRuns<U>,
        numbers: impl Fn(&U) -> Result<[i64; N], ReportError>,
        what: impl Fn() -> String,
    ) -> Result<PatternColumns, ReportError> {
        let Some(first) = runs.iter().map(|(tiles, _)| tiles.first).next() else {
            return Ok(PatternColumns::default());
        };
        let all = TileRange::new(first, runs.end().unwrap_or(first));
        check_tiles_exist(&StridedTileRuns::single_run(all), self.tiles, &what)?;
        let base = TileId(first.0 - first.0 % self.tiles_per_ipu.max(1));
        // Equal operations share their runs in memory, shifted from IPU to IPU: the second one
        // costs a lookup, and its strided runs are not computed again.
        let (kept, offset) = runs.shared_key();
        let key = (kept, i64::from(offset) - i64::from(base.0));
        let pattern = match self.by_runs.get(&key) {
            Some(&known) => known,
            None => {
                let id = self.pattern(text(&part(runs), base, numbers)?)?;
                *self.by_runs.entry(key).or_insert(id)
            }
        };
        Ok(PatternColumns { base_tile: Some(base), pattern: Some(pattern) })
    }

    fn pattern(&mut self, text: String) -> Result<i64, ReportError> {
        if let Some(&known) = self.by_text.get(&text) {
            return Ok(known);
        }
        let id = self.by_text.len() as i64;
        self.rows.insert("tile_patterns", params![id, text])?;
        self.by_text.insert(text, id);
        Ok(id)
    }
}

/// A pattern as JSON.
fn text<T: Clone + Ord, const N: usize>(
    runs: &TileRuns<T>,
    base: TileId,
    numbers: impl Fn(&T) -> Result<[i64; N], ReportError>,
) -> Result<String, ReportError> {
    let mut text = String::from("[");
    for (strided, value) in strided_runs_of(runs) {
        let comma = if text.len() > 1 { "," } else { "" };
        let StridedTileRuns { first, stride, repeats, .. } = strided;
        let first = first - base;
        let end = strided.first_run_end() - base;
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}[{first},{end},{stride},{repeats}");
        for number in numbers(&value)? {
            let _ = write!(text, ",{number}");
        }
        text.push(']');
    }
    text.push(']');
    Ok(text)
}
