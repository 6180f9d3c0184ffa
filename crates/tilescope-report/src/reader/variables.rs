//! Variables: compact in our files, one row per tile in Poplar's files.

use super::tile_patterns::{ALL_IDS, TileRunSource};
use super::tile_run_collector::TileRunCollector;
use super::{Report, VariableFilter};
use crate::address_blob;
use crate::database::SelectQuery;
use crate::error::ReportError;
use crate::limits::{MAX_SHARED_NAME_BYTES, MAX_TILE_BYTES, MAX_TILES, SHORT_NAME_BYTES};
use crate::model::{MemoryCategory, Variable, VariablePlacement};
use crate::row_cells::RowCells;
use crate::units::{Bytes, OperationId, TileId, TileRange, TileRuns, VariableId};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::{ControlFlow, Range, RangeInclusive};
use std::sync::Arc;

const COLUMNS: [&str; 7] =
    ["id", "name", "category", "operation", "shape", "first_live", "end_live"];
const FOREIGN_COLUMNS: [&str; 5] = ["id", "name", "category", "tile", "size_bytes"];

const VAR_TILES: TileRunSource<1> = TileRunSource {
    owners: "vars",
    id: "id",
    rows: "var_tiles",
    rows_id: "var",
    values: [("bytes", MAX_TILE_BYTES.0)],
};

impl Report {
    /// True if variables are stored as rows per tile.
    pub(super) fn is_per_tile(&self) -> bool {
        !self.db.has("vars", "id") && self.db.has("vars_info", "tile")
    }

    /// Number of variables; in foreign files, of parts of variables on tiles.
    pub fn variable_count(&self) -> Result<u64, ReportError> {
        let table = if self.is_per_tile() { "vars_info" } else { "vars" };
        Ok(self.db.row_count(table)?.unwrap_or(0))
    }

    /// Number of parts of variables on tiles.
    pub(super) fn variable_parts(&self) -> Result<u64, ReportError> {
        let runs = self.tile_runs(&VAR_TILES, ALL_IDS, |[bytes]| Bytes(bytes))?;
        Ok(runs.values().map(|runs| u64::from(runs.tile_count())).sum())
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
        let strings = self.strings()?;
        let categories = self.categories()?;
        let operations = self.operations()?.len();
        // Ids first: a variable is one row here, and its tiles are in another table.
        let on_tiles = filter.tiles.map(|tiles| self.variables_on(tiles)).transpose()?;
        // Pages continue after an id instead of using OFFSET, which would read all earlier rows.
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
            self.warnings
                .add_limit("names of variables are too long to hold in memory: some are cut");
        }
    }

    /// Ids of variables with a part on one of `tiles`.
    fn variables_on(&self, tiles: TileRange) -> Result<HashSet<u32>, ReportError> {
        let runs = self.tile_runs(&VAR_TILES, ALL_IDS, |[bytes]| Bytes(bytes))?;
        Ok(runs.iter().filter(|(_, runs)| runs.overlaps(tiles)).map(|(id, _)| *id).collect())
    }

    /// Fills in the placements of variables; `found` is sorted by id.
    fn read_placements(&self, found: &mut [(VariableId, Variable)]) -> Result<(), ReportError> {
        let Some(first) = found.first() else { return Ok(()) };
        let Some(last) = found.last() else { return Ok(()) };
        let ids = first.0.0..=last.0.0;
        let mut placements = if self.has_patterns(&VAR_TILES) {
            self.shared_placements(ids)?
        } else {
            self.placements_of_rows(ids)?
        };
        for (id, variable) in found {
            variable.tiles = placements.remove(&id.0).unwrap_or_default();
        }
        Ok(())
    }

    /// Placements of variables, by id. Each pattern is joined with its addresses once.
    fn shared_placements(
        &self,
        ids: RangeInclusive<u32>,
    ) -> Result<BTreeMap<u32, TileRuns<VariablePlacement>>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        // Patterns and addresses are relative to the same base tile, so both are joined before they
        // are moved to it.
        let places = self.pattern_places(&VAR_TILES, ids.clone())?;
        let sizes = self.patterns(&VAR_TILES, &places, |[bytes]| Bytes(bytes))?;
        let of_variable = self.address_ids(ids)?;
        let addresses = self.addresses("addresses", "id", of_variable.values(), MAX_TILES)?;
        let mut shared: HashMap<(u32, Option<u32>), TileRuns<VariablePlacement>> = HashMap::new();
        let mut placements = BTreeMap::new();
        let none = TileRuns::default();
        for (id, place) in &places {
            let Some(sizes) = sizes.get(&place.pattern) else { continue };
            let address = of_variable.get(id).copied();
            // Variables of equal layers have the same pattern and addresses: joined once, they
            // share memory too.
            let runs = shared.entry((place.pattern, address)).or_insert_with(|| {
                let known = address.and_then(|address| addresses.get(&address));
                placements_of(sizes, known.unwrap_or(&none))
            });
            let runs = place.place(runs, tiles, || self.warn_of_tiles("vars"));
            placements.insert(*id, runs);
        }
        Ok(placements)
    }

    /// The address ids of variables, by variable id.
    fn address_ids(&self, ids: RangeInclusive<u32>) -> Result<BTreeMap<u32, u32>, ReportError> {
        let params = [i64::from(*ids.start()), i64::from(*ids.end())];
        let select = SelectQuery::all("vars", &["id", "addresses"])
            .clauses("WHERE id BETWEEN ?1 AND ?2")
            .params(&params);
        let ids = self.db.list(select, |cells| Some((cells.small(0)?, cells.small(1)?)))?;
        Ok(ids.into_iter().flatten().collect())
    }

    /// Placements of variables in files before version 2.0, by id.
    fn placements_of_rows(
        &self,
        ids: RangeInclusive<u32>,
    ) -> Result<BTreeMap<u32, TileRuns<VariablePlacement>>, ReportError> {
        let tiles = self.target()?.tiles_per_replica();
        let sizes = self.tile_runs(&VAR_TILES, ids, |[bytes]| Bytes(bytes))?;
        let addresses = self.addresses("var_addresses", "var", sizes.keys(), tiles)?;
        let none = TileRuns::default();
        let placements = sizes
            .iter()
            .map(|(id, sizes)| (*id, placements_of(sizes, addresses.get(id).unwrap_or(&none))));
        Ok(placements.collect())
    }

    /// Addresses in the blobs of a table with these ids, on tiles before `tiles`.
    fn addresses<'a>(
        &self,
        table: &str,
        id: &str,
        wanted: impl Iterator<Item = &'a u32>,
        tiles: u32,
    ) -> Result<HashMap<u32, TileRuns<Bytes>>, ReportError> {
        let wanted: BTreeSet<u32> = wanted.copied().collect();
        let Some(first) = wanted.first() else { return Ok(HashMap::new()) };
        let Some(last) = wanted.last() else { return Ok(HashMap::new()) };
        let mut addresses = HashMap::new();
        if !self.db.has(table, id) {
            return Ok(addresses);
        }
        let params = [i64::from(*first), i64::from(*last)];
        let clauses = format!("WHERE \"{id}\" BETWEEN ?1 AND ?2");
        let columns = [id, "data"];
        let select = SelectQuery::all(table, &columns).clauses(&clauses).params(&params);
        self.db.read(select, |cells| {
            let Some(id) = cells.small(0).filter(|id| wanted.contains(id)) else {
                return Ok(ControlFlow::Continue(()));
            };
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
        let strings = self.strings()?;
        let categories = self.categories()?;
        // A table without a key has SQLite's row numbers.
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
            // Poplar's second column is only known under the name `string`; other names are not
            // guessed.
            let select = SelectQuery::all("vars_string_table", &["id", "string"]);
            let strings = self.db.list(select, |cells| Some((cells.int(0)?, cells.text(1)?)))?;
            let mut strings: Vec<_> = strings.into_iter().flatten().collect();
            strings.sort_by_key(|(id, _)| *id);
            Ok(strings)
        })
    }

    /// The meanings of the file's category numbers, read once.
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

/// Joins sizes with addresses; sizes without an address get address 0.
fn placements_of(
    sizes: &TileRuns<Bytes>,
    addresses: &TileRuns<Bytes>,
) -> TileRuns<VariablePlacement> {
    sizes.zip(addresses, |bytes, offset| VariablePlacement { bytes, offset })
}

fn category(cells: &RowCells, categories: &BTreeMap<i64, MemoryCategory>) -> MemoryCategory {
    let known = cells.int(2).and_then(|id| categories.get(&id).copied());
    known.unwrap_or(MemoryCategory::Unknown)
}

/// Names of the variables of one list. Many variables may share a few long names, and each holds
/// its own copy.
struct SharedNames<'a> {
    strings: &'a [(i64, String)],
    bytes: usize,
}

impl SharedNames<'_> {
    /// A name, which the file either interns or stores in place.
    fn name(&mut self, cells: &RowCells, column: usize) -> String {
        let Some(text) = cells.text(column) else { return String::new() };
        let id = text.parse::<i64>().ok();
        // A name that only looks like a number is kept if no such string exists.
        let place = id.and_then(|id| self.strings.binary_search_by_key(&id, |(id, _)| *id).ok());
        let Some((_, shared)) = place.and_then(|place| self.strings.get(place)) else {
            return text;
        };
        self.bytes += shared.len();
        if self.are_cut() {
            shared.chars().take(SHORT_NAME_BYTES / 4).collect()
        } else {
            shared.clone()
        }
    }

    fn are_cut(&self) -> bool {
        self.bytes > MAX_SHARED_NAME_BYTES
    }
}

fn lifetime(cells: &RowCells) -> Option<Range<u32>> {
    let first = cells.small(5)?;
    let end = cells.small(6)?;
    Some(first..end.max(first))
}
