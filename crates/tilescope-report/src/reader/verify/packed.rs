//! Laws of the tables whose rows may be compressed columns, which SQLite cannot join.

use super::{InvariantCheck, Report};
use crate::database::{RowCells, SelectQuery};
use crate::error::ReportError;
use crate::model::{MarkKind, TrainingPass};
use crate::units::Cycles;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// Tables of runs of tiles, and those that their first columns name rows of.
const TABLES_OF_RUNS: [(&str, &str); 5] = [
    ("compute_set_cycles", "compute_sets"),
    ("vertex_tiles", "vertex_groups"),
    ("exchange_tiles", "exchanges"),
    ("var_tiles", "vars"),
    ("category_bytes", "var_categories"),
];

/// One run of tiles, and the numbers of each of its tiles.
struct RunRow {
    owner: i64,
    /// Tiles of all its repetitions.
    tiles: i128,
    is_sound: bool,
}

impl RunRow {
    /// The columns it is read from.
    fn columns(owner: &str) -> [&str; 5] {
        [owner, "first_tile", "end_tile", "every", "times"]
    }

    fn read(cells: &RowCells) -> Self {
        let number = |column| i128::from(cells.int(column).unwrap_or_default());
        let (length, every, times) = (number(2) - number(1), number(3), number(4));
        let is_sound = times >= 1 && (times > 1 || every == length);
        Self { owner: cells.int(0).unwrap_or(-1), tiles: times * length, is_sound }
    }
}

impl Report {
    /// Runs of tiles are of something, and add up to the sizes of the graph.
    pub(super) fn verify_runs(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        for (table, owners) in TABLES_OF_RUNS {
            let Some(first) = crate::schema::find(table).and_then(|table| table.columns.first())
            else {
                continue;
            };
            // Ids are places in lists, which other laws check.
            let known = self.db.row_count(owners)?.unwrap_or(0) as i64;
            let (mut unknown, mut broken) = (0, 0);
            let columns = RunRow::columns(first.name);
            self.db.stream(SelectQuery::all(table, &columns), |cells| {
                let row = RunRow::read(cells);
                unknown += i64::from(!(0..known).contains(&row.owner));
                broken += i64::from(!row.is_sound);
                Ok(ControlFlow::Continue(()))
            })?;
            law.check(unknown == 0, || {
                format!(
                    "{table}.{} names what {owners} does not have in {unknown} rows",
                    first.name
                )
            });
            law.check(broken == 0, || format!("{table} has {broken} single runs with a distance"));
        }
        self.verify_graph_sizes(law)?;
        self.verify_addressed(law)
    }

    fn verify_graph_sizes(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        let edges_of = self.db.list(SelectQuery::all("vertex_groups", &["edges"]), |cells| {
            i128::from(cells.int(0).unwrap_or_default())
        })?;
        let (mut vertices, mut edges, mut variables) = (0i128, 0i128, 0i128);
        let columns = ["vertex_group", "first_tile", "end_tile", "every", "times", "count"];
        self.db.stream(SelectQuery::all("vertex_tiles", &columns), |cells| {
            let row = RunRow::read(cells);
            let count = row.tiles.saturating_mul(cells.int(5).unwrap_or_default().into());
            let group = usize::try_from(row.owner).ok().and_then(|group| edges_of.get(group));
            vertices = vertices.saturating_add(count);
            edges = edges.saturating_add(count.saturating_mul(group.copied().unwrap_or(0)));
            Ok(ControlFlow::Continue(()))
        })?;
        self.db.stream(SelectQuery::all("var_tiles", &RunRow::columns("var")), |cells| {
            variables = variables.saturating_add(RunRow::read(cells).tiles);
            Ok(ControlFlow::Continue(()))
        })?;
        let sizes = [
            ("num_vertices", "vertices", vertices),
            ("num_edges", "edges", edges),
            ("num_vars", "variables", variables),
        ];
        let columns = sizes.map(|(column, ..)| column);
        let told = self.db.first(SelectQuery::all("graph", &columns), |cells| {
            [0, 1, 2].map(|column| cells.int(column))
        })?;
        for ((_, what, sum), told) in sizes.into_iter().zip(told.unwrap_or_default()) {
            law.check(told.map(i128::from) == Some(sum), || {
                format!("graph has other than the {sum} listed {what}")
            });
        }
        Ok(())
    }

    /// Each variable has addresses, and each tile its memory.
    fn verify_addressed(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        for (table, column, owners) in
            [("var_addresses", "var", "vars"), ("memory_by_tile", "tile", "tiles")]
        {
            let known = self.db.row_count(owners)?.unwrap_or(0) as i64;
            let (mut rows, mut unknown) = (0, 0);
            self.db.stream(SelectQuery::all(table, &[column]), |cells| {
                rows += 1;
                unknown += i64::from(cells.int(0).is_none_or(|id| !(0..known).contains(&id)));
                Ok(ControlFlow::Continue(()))
            })?;
            law.check(unknown == 0, || {
                format!("{table}.{column} names what {owners} does not have in {unknown} rows")
            });
            law.check(table != "var_addresses" || rows == known, || {
                format!("{table} has {rows} rows for {known} {owners}")
            });
        }
        Ok(())
    }

    /// Marks are of known kinds on IPUs of the replica, and as many as `mark_kinds` says.
    pub(super) fn verify_mark_rows(&self, law: &mut InvariantCheck) -> Result<(), ReportError> {
        let ipus = i64::from(self.target()?.ipus_per_replica);
        let mut kinds: BTreeMap<String, (i64, Cycles)> = BTreeMap::new();
        let (mut count, mut last, mut broken, mut misplaced) = (0, -1, 0, 0);
        self.stream_marks(|chunk, cells| {
            let int = |column| cells.int(column);
            let kind = cells.text(1).unwrap_or_default();
            let known = MarkKind::from_name(&kind).is_some()
                && cells.text(4).is_none_or(|pass| TrainingPass::from_name(&pass).is_some())
                && int(3).is_none_or(|ipu| (0..ipus).contains(&ipu));
            broken += i64::from(!known || int(9) < int(8) || int(7) < int(6));
            misplaced += i64::from(chunk.is_some_and(|chunk| !chunk.holds(cells)));
            (count, last) = (count + 1, int(0).unwrap_or(-1).max(last));
            let length = int(9).unwrap_or(0).saturating_sub(int(8).unwrap_or(0));
            let (number, longest) = kinds.entry(kind).or_default();
            *number += 1;
            *longest = Cycles(u64::try_from(length).unwrap_or(0)).max(*longest);
        })?;
        law.check(last + 1 == count, || "ids of marks are not 0, 1, 2, …".to_owned());
        law.check(broken == 0, || format!("there are {broken} marks without length, IPU or kind"));
        law.check(misplaced == 0, || format!("mark_chunks hold {misplaced} marks of others"));
        let columns = ["kind", "count", "longest_cycles"];
        let told = self.db.list(SelectQuery::all("mark_kinds", &columns), |cells| {
            let longest = u64::try_from(cells.int(2)?).ok()?;
            Some((cells.text(0)?, (cells.int(1)?, Cycles(longest))))
        })?;
        let told: BTreeMap<_, _> = told.into_iter().flatten().collect();
        law.check(told == kinds, || {
            "mark_kinds has kinds of which there are other marks".to_owned()
        });
        Ok(())
    }
}
