//! Variables: compact in our files, one row per tile in those of Poplar.

use super::tile_run_collector::{STRIDED_RUN_COLUMNS, TileRunCollector, strided_runs_at};
use super::{Report, VariableFilter};
use crate::address_blob;
use crate::database::{RowCells, SelectQuery};
use crate::error::ReportError;
use crate::limits::{MAX_SHARED_NAME_BYTES, MAX_TILE_BYTES, SHORT_NAME_BYTES};
use crate::model::{MemoryCategory, Variable, VariablePlacement};
use crate::units::{Bytes, OperationId, TileId, TileRange, TileRuns, VariableId};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

const COLUMNS: [&str; 7] =
    ["id", "name", "category", "operation", "shape", "first_live", "end_live"];
const FOREIGN_COLUMNS: [&str; 5] = ["id", "name", "category", "tile", "size_bytes"];

impl Report {
    /// Whether variables are kept as rows per tile.
    pub(super) fn is_per_tile(&self) -> bool {
        !self.db.has("vars", "id") && self.db.has("vars_info", "tile")
    }

    /// Number of variables; in foreign files, of parts of variables on tiles.
    pub fn variable_count(&self) -> Result<u64, ReportError> {
        let table = if self.is_per_tile() { "vars_info" } else { "vars" };
        Ok(self.db.row_count(table)?.unwrap_or(0))
    }

    /// The variable with this id, if there is one.
    pub fn variable(&self, id: VariableId) -> Result<Option<Variable>, ReportError> {
        let after = id.0.checked_sub(1).map(VariableId);
        let filter = VariableFilter { tiles: None, category: None, after, limit: 1 };
        let found = self.variables(&filter)?.pop();
        Ok(found.filter(|(found, _)| *found == id).map(|(_, variable)| variable))
    }

    /// The variables that pass the filter, ordered by id.
    pub fn variables(
        &self,
        filter: &VariableFilter,
    ) -> Result<Vec<(VariableId, Variable)>, ReportError> {
        if self.is_per_tile() {
            self.variables_per_tile(filter)
        } else if self.db.has("vars", "id") {
            self.compact_variables(filter)
        } else {
            Ok(Vec::new())
        }
    }

    fn compact_variables(
        &self,
        filter: &VariableFilter,
    ) -> Result<Vec<(VariableId, Variable)>, ReportError> {
        let (strings, categories) = (self.strings()?, self.categories()?);
        let operations = self.operations()?.len();
        // Ids first: a variable is one row here, and its tiles are in another table.
        let on_tiles = filter.tiles.map(|tiles| self.variables_on(tiles)).transpose()?;
        // Pages go on behind an id instead of using OFFSET, which would read all rows before it.
        let after = [filter.after.map_or(-1, |id| i64::from(id.0))];
        let mut names = SharedNames { strings: &strings, bytes: 0 };
        let select =
            SelectQuery::all("vars", &COLUMNS).clauses("WHERE id > ?1 ORDER BY id").params(&after);
        let mut found = Vec::new();
        self.db.read(select, |cells| {
            let Some(id) = cells.small(0) else { return Ok(ControlFlow::Continue(())) };
            let category = category(cells, &categories);
            let wanted = filter.category.is_none_or(|wanted| wanted == category)
                && on_tiles.as_ref().is_none_or(|ids| ids.contains(&id));
            if wanted && found.len() < filter.limit {
                let operation = cells.small(3).map(OperationId);
                let variable = Variable {
                    name: names.name(cells, 1),
                    category,
                    operation: operation.filter(|id| id.index() < operations),
                    shape: names.name(cells, 4),
                    lifetime: lifetime(cells),
                    tiles: TileRuns::empty(),
                };
                found.push((VariableId(id), variable));
            }
            let more = found.len() < filter.limit;
            Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        self.warn_of_cut_names(&names);
        self.read_placements(&mut found)?;
        Ok(found)
    }

    fn warn_of_cut_names(&self, names: &SharedNames) {
        if names.are_cut() {
            self.warnings.add("names of variables are too long to hold in memory: some are cut");
        }
    }

    /// Ids of variables with a part on one of `tiles`.
    fn variables_on(&self, tiles: TileRange) -> Result<HashSet<u32>, ReportError> {
        if !STRIDED_RUN_COLUMNS
            .iter()
            .chain(&["var"])
            .all(|column| self.db.has("var_tiles", column))
        {
            return Ok(HashSet::new());
        }
        let count = self.target()?.tiles_per_replica();
        let columns = ["var", "first_tile", "end_tile", "every", "times"];
        let on_tiles = |cells: &RowCells| {
            strided_runs_at(cells, 1, count)
                .filter(|strided| strided.overlaps(tiles))
                .and(cells.small(0))
        };
        let mut found = HashSet::new();
        self.db.stream(SelectQuery::all("var_tiles", &columns), |cells| {
            found.extend(on_tiles(cells));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(found)
    }

    /// Fills in where variables lie; `found` is in order of ids.
    fn read_placements(&self, found: &mut [(VariableId, Variable)]) -> Result<(), ReportError> {
        let (Some(first), Some(last)) = (found.first(), found.last()) else { return Ok(()) };
        let ids = [i64::from(first.0.0), i64::from(last.0.0)];
        let mut addresses = self.addresses(ids, found)?;
        let table = "var_tiles";
        let tiles = self.target()?.tiles_per_replica();
        if !self.db.has(table, "var") || !self.db.has(table, "first_tile") {
            return Ok(());
        }
        let columns = ["var", "first_tile", "end_tile", "every", "times", "bytes"];
        let select = SelectQuery::all(table, &columns).keys(ids[0], ids[1]);
        // Both lists are in the order of ids: one walk joins them.
        let mut at = 0;
        let mut runs = TileRunCollector::default();
        let mut finish = |(id, variable): &mut (VariableId, Variable),
                          runs: TileRunCollector<Bytes>| {
            let addresses = addresses.remove(&id.0).unwrap_or_default();
            let bytes = runs.finish(&self.db, table);
            variable.tiles =
                bytes.zip(&addresses, |bytes, offset| VariablePlacement { bytes, offset });
        };
        self.db.read(select, |cells| {
            let Some(id) = cells.small(0) else { return Ok(ControlFlow::Continue(())) };
            while let Some(before) = found.get_mut(at).filter(|(at, _)| at.0 < id) {
                finish(before, std::mem::take(&mut runs));
                at += 1;
            }
            if found.get(at).is_some_and(|(at, _)| at.0 == id) {
                runs.push(
                    strided_runs_at(cells, 1, tiles),
                    cells.count(5, MAX_TILE_BYTES).unwrap_or_default(),
                );
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if let Some(last) = found.get_mut(at) {
            finish(last, runs);
        }
        Ok(())
    }

    /// Addresses of the parts of `wanted` variables, in order of ids, with these first and last ids.
    fn addresses(
        &self,
        ids: [i64; 2],
        wanted: &[(VariableId, Variable)],
    ) -> Result<HashMap<u32, TileRuns<Bytes>>, ReportError> {
        let table = "var_addresses";
        let tiles = self.target()?.tiles_per_replica();
        let select = SelectQuery::all(table, &["var", "data"]).keys(ids[0], ids[1]);
        let mut addresses = HashMap::new();
        if !self.db.has(table, "var") {
            return Ok(addresses);
        }
        self.db.read(select, |cells| {
            let id = cells.small(0).map(VariableId);
            let id = id.filter(|id| wanted.binary_search_by_key(id, |(id, _)| *id).is_ok());
            let Some(VariableId(id)) = id else { return Ok(ControlFlow::Continue(())) };
            let mut runs = TileRunCollector::default();
            for part in address_blob::decode(cells.blob(1).unwrap_or_default(), tiles) {
                let known = part.filter(|(_, address)| *address <= MAX_TILE_BYTES);
                runs.push(
                    known.map(|(strided, _)| strided),
                    known.map_or(Bytes::ZERO, |(_, address)| address),
                );
            }
            addresses.insert(id, runs.finish(&self.db, table));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(addresses)
    }

    fn variables_per_tile(
        &self,
        filter: &VariableFilter,
    ) -> Result<Vec<(VariableId, Variable)>, ReportError> {
        let (strings, categories) = (self.strings()?, self.categories()?);
        // Any table without a key of its own has SQLite's row numbers.
        let id = if self.db.has("vars_info", "id") { "id" } else { "rowid" };
        let columns =
            [id, FOREIGN_COLUMNS[1], FOREIGN_COLUMNS[2], FOREIGN_COLUMNS[3], FOREIGN_COLUMNS[4]];
        let count = self.target()?.tiles_per_replica();
        let tiles = filter.tiles.unwrap_or(TileRange::first_tiles(count));
        let after = filter.after.map_or(-1, |id| i64::from(id.0));
        let params = [after, tiles.first.0.into(), tiles.end.0.into()];
        let rest = format!("WHERE \"{id}\" > ?1 AND tile >= ?2 AND tile < ?3 ORDER BY \"{id}\"");
        let select = SelectQuery::all("vars_info", &columns).clauses(&rest).params(&params);
        let mut names = SharedNames { strings: &strings, bytes: 0 };
        let mut found = Vec::new();
        self.db.read(select, |cells| {
            let category = category(cells, &categories);
            let tile = cells.small(3).filter(|tile| *tile < count);
            if let (Some(id), Some(tile)) = (cells.small(0), tile)
                && filter.category.is_none_or(|wanted| wanted == category)
                && found.len() < filter.limit
            {
                let tile = TileRange::single(TileId(tile));
                let bytes = cells.count(4, MAX_TILE_BYTES).unwrap_or_default();
                let variable = Variable {
                    name: names.name(cells, 1),
                    category,
                    operation: None,
                    shape: String::new(),
                    lifetime: None,
                    tiles: TileRuns::uniform(
                        tile,
                        VariablePlacement { bytes, offset: Bytes::ZERO },
                    ),
                };
                found.push((VariableId(id), variable));
            }
            let more = found.len() < filter.limit;
            Ok(if more { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        self.warn_of_cut_names(&names);
        Ok(found)
    }

    /// Interned names by id, read once.
    fn strings(&self) -> Result<Arc<Vec<(i64, String)>>, ReportError> {
        self.strings.get(|| {
            // Poplar's second column has been seen as `string` only; others are not guessed at.
            let select = SelectQuery::all("vars_string_table", &["id", "string"]);
            let strings = self.db.list(select, |cells| Some((cells.int(0)?, cells.text(1)?)))?;
            let mut strings: Vec<_> = strings.into_iter().flatten().collect();
            strings.sort_by_key(|(id, _)| *id);
            Ok(strings)
        })
    }

    /// What the file's category numbers mean, read once.
    pub(super) fn categories(&self) -> Result<Arc<BTreeMap<i64, MemoryCategory>>, ReportError> {
        self.categories.get(|| {
            let select = SelectQuery::all("var_categories", &["id", "name"]);
            let named = self.db.list(select, |cells| Some((cells.int(0)?, cells.text(1)?)))?;
            let mut categories = BTreeMap::new();
            for (id, name) in named.into_iter().flatten() {
                let category = MemoryCategory::from_name(&name);
                if category == MemoryCategory::Unknown && name != MemoryCategory::Unknown.name() {
                    self.warnings.add(format!("unknown memory category {name}"));
                }
                categories.insert(id, category);
            }
            Ok(categories)
        })
    }
}

fn category(cells: &RowCells, categories: &BTreeMap<i64, MemoryCategory>) -> MemoryCategory {
    let known = cells.int(2).and_then(|id| categories.get(&id).copied());
    known.unwrap_or(MemoryCategory::Unknown)
}

/// Names of the variables of one list. A few long names may be those of very many variables, each
/// of which holds its own.
struct SharedNames<'a> {
    strings: &'a [(i64, String)],
    bytes: usize,
}

impl SharedNames<'_> {
    /// A name that is either interned or written out.
    fn name(&mut self, cells: &RowCells, column: usize) -> String {
        let Some(text) = cells.text(column) else { return String::new() };
        let id = text.parse::<i64>().ok();
        // A name that merely looks like a number is kept as it is if no such string exists.
        let place = id.and_then(|id| self.strings.binary_search_by_key(&id, |(id, _)| *id).ok());
        let Some((_, shared)) = place.and_then(|place| self.strings.get(place)) else {
            return text;
        };
        self.bytes += shared.len();
        match self.are_cut() {
            false => shared.clone(),
            true => shared.chars().take(SHORT_NAME_BYTES / 4).collect(),
        }
    }

    fn are_cut(&self) -> bool {
        self.bytes > MAX_SHARED_NAME_BYTES
    }
}

fn lifetime(cells: &RowCells) -> Option<Range<u32>> {
    let (first, end) = (cells.small(5)?, cells.small(6)?);
    Some(first..end.max(first))
}
