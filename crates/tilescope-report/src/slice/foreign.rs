//! Slices of files of other tools: copies of their tables, with only the rows of the wanted steps.
//!
//! The untrusted file is copied column by column; none of its statements is executed.

use super::Slicing;
use crate::atomic_file::AtomicFile;
use crate::error::ReportError;
use crate::model::SliceOrigin;
use crate::open_file::REPORT_FILE;
use crate::schema;
use crate::units::{IpuId, StepId};
use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags, params_from_iter};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Tables of tilescope that describe a whole run by cycles and steps. They do not apply to a part.
const LEFT_OUT: [&str; 9] = [
    "meta",
    "marks",
    "mark_kinds",
    "mark_chunks",
    "mark_rows",
    "mark_blocks",
    "replica_mark_chunks",
    "replica_lanes",
    "checksums",
];
/// Rows between two checks of the cancel flag.
const ROWS_BETWEEN_LOOKS: u64 = 1 << 16;

/// A column of a table.
struct ForeignColumn {
    name: String,
    declaration: String,
}

/// A table of a foreign file.
struct ForeignTable {
    name: String,
    columns: Vec<ForeignColumn>,
}

impl ForeignTable {
    fn read(source: &Connection, name: String) -> rusqlite::Result<Self> {
        let mut info = source.prepare("SELECT name, type, pk FROM pragma_table_info(?1)")?;
        let rows = info.query_map([&name], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?))
        })?;
        let rows: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
        let keys = rows.iter().filter(|(_, _, key)| *key > 0).count();
        let columns = rows.into_iter().map(|(name, kind, key)| {
            // Rows can be looked up by such a key. Other declared types are only an affinity.
            let is_key = keys == 1 && key == 1 && kind.eq_ignore_ascii_case("INTEGER");
            let declaration = match kind.to_ascii_uppercase() {
                _ if is_key => "INTEGER PRIMARY KEY",
                kind if kind.contains("INT") => "INTEGER",
                kind if kind.contains("CHAR") || kind.contains("TEXT") => "TEXT",
                kind if kind.contains("REAL") || kind.contains("FLOA") => "REAL",
                _ => "",
            };
            ForeignColumn { name, declaration: declaration.to_owned() }
        });
        Ok(Self { name, columns: columns.collect() })
    }

    fn quoted_columns(&self) -> Vec<String> {
        self.columns.iter().map(|column| quoted(&column.name)).collect()
    }

    fn create(&self) -> String {
        let columns = self.columns.iter();
        let columns =
            columns.map(|column| format!("{} {}", quoted(&column.name), column.declaration));
        let columns: Vec<String> = columns.collect();
        format!("CREATE TABLE {} ({})", quoted(&self.name), columns.join(", "))
    }

    fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|of| of.name.eq_ignore_ascii_case(column))
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// A name inside a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

impl Slicing<'_> {
    pub(super) fn write_foreign(
        &mut self,
        origin: &SliceOrigin,
        directory: &Path,
    ) -> Result<PathBuf, ReportError> {
        let source = self.report.another_sqlite_connection()?;
        if directory.is_file() {
            let problem = "the output must be a directory, and this is a file".to_owned();
            return Err(ReportError::Write { problem, path: directory.to_owned() });
        }
        fs::create_dir_all(directory).map_err(|e| ReportError::writing(&e, directory))?;
        let part = AtomicFile::create_exclusive(&directory.join(REPORT_FILE))?;
        let path = part.temporary_path().to_owned();
        let to_error = |e: rusqlite::Error| ReportError::sqlite_writing(&e, &path);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let target = Connection::open_with_flags(&path, flags).map_err(to_error)?;
        let begin = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN";
        target.execute_batch(begin).map_err(to_error)?;
        self.copy_tables(&source, &target, &path)?;
        note(&target, &origin.sentence()).map_err(to_error)?;
        target.execute_batch("COMMIT").map_err(to_error)?;
        target.close().map_err(|(_, e)| to_error(e))?;
        Ok(part.commit()?)
    }

    fn copy_tables(
        &mut self,
        source: &Connection,
        target: &Connection,
        path: &Path,
    ) -> Result<(), ReportError> {
        let to_damage = |e: rusqlite::Error| self.damage(&e);
        // Tables stored in the file, without views and virtual tables.
        let list = "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0
                    AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'";
        let mut names = source.prepare(list).map_err(to_damage)?;
        let names = names.query_map([], |row| row.get::<_, String>(0)).map_err(to_damage)?;
        let names: Vec<String> = names.collect::<rusqlite::Result<_>>().map_err(to_damage)?;
        let is_left_out = |name: &String| {
            let mut left_out = LEFT_OUT.iter().chain(schema::TRACE_TABLES);
            left_out.any(|of| name.eq_ignore_ascii_case(of))
        };
        let names: Vec<String> = names.into_iter().filter(|name| !is_left_out(name)).collect();
        let kept = self.kept_ids()?;
        let all = names.len().max(1) as f64;
        for (done, name) in names.into_iter().enumerate() {
            let table = ForeignTable::read(source, name).map_err(|e| self.damage(&e))?;
            if !table.columns.is_empty() {
                self.copy_table(&table, &kept, source, (target, path))?;
            }
            (self.progress)((done + 1) as f64 / all);
        }
        Ok(())
    }

    fn damage(&self, error: &rusqlite::Error) -> ReportError {
        let problem = error.to_string();
        ReportError::Damaged { problem, path: self.report.path().to_owned() }
    }

    fn copy_table(
        &self,
        table: &ForeignTable,
        kept: &[Range<u64>],
        source: &Connection,
        (target, path): (&Connection, &Path),
    ) -> Result<(), ReportError> {
        let to_error = |e: rusqlite::Error| ReportError::sqlite_writing(&e, path);
        let to_damage = |e: rusqlite::Error| self.damage(&e);
        target.execute_batch(&table.create()).map_err(to_error)?;
        let columns = table.quoted_columns();
        let holes = vec!["?"; columns.len()].join(", ");
        let insert = format!("INSERT INTO {} VALUES ({holes})", quoted(&table.name));
        let mut insert = target.prepare(&insert).map_err(to_error)?;
        let select = format!("SELECT {} FROM {}", columns.join(", "), quoted(&table.name));
        let mut select = source.prepare(&select).map_err(to_damage)?;
        let mut rows = select.query([]).map_err(to_damage)?;
        let mut count = 0u64;
        while let Some(row) = rows.next().map_err(to_damage)? {
            let cells = (0..columns.len()).map(|at| row.get::<_, Value>(at));
            let mut cells: Vec<Value> =
                cells.collect::<rusqlite::Result<_>>().map_err(to_damage)?;
            if self.takes(table, &mut cells, kept)? {
                insert.execute(params_from_iter(cells)).map_err(to_error)?;
            }
            count += 1;
            if count.is_multiple_of(ROWS_BETWEEN_LOOKS) {
                self.go_on()?;
            }
        }
        Ok(())
    }

    /// Returns true if a row is in the slice. Converts its cycles to those of the slice.
    fn takes(
        &self,
        table: &ForeignTable,
        cells: &mut [Value],
        kept: &[Range<u64>],
    ) -> Result<bool, ReportError> {
        let get_number = |column: &str| match cells.get(table.place(column)?) {
            Some(Value::Integer(value)) => u64::try_from(*value).ok(),
            _ => None,
        };
        let is_kept = |id: u64| {
            let at = kept.partition_point(|run| run.end <= id);
            kept.get(at).is_some_and(|run| run.contains(&id))
        };
        if table.is("steps") && table.place("id").is_some() {
            return Ok(get_number("id").is_some_and(is_kept));
        }
        if table.is("execution_cycle_totals") {
            let length = self.plan.range.end.saturating_sub(self.plan.origin);
            if let Some(cell) = table.place("total").and_then(|place| cells.get_mut(place)) {
                *cell = Value::Integer(i64::try_from(length.0).unwrap_or(i64::MAX));
            }
            return Ok(true);
        }
        if !table.is("steps_by_ipu") || table.place("step_id").is_none() {
            return Ok(true);
        }
        let Some(step) = get_number("step_id") else { return Ok(false) };
        let Some(ipu) = get_number("ipu") else { return Ok(false) };
        let Ok(ipu) = u32::try_from(ipu) else { return Ok(false) };
        if !is_kept(step) || !self.has_row(IpuId(ipu), get_number("sub_lane"), StepId(step))? {
            return Ok(false);
        }
        self.move_cycles(table, cells);
        Ok(true)
    }

    /// True if a row of a step is in the slice: its lane contains the step there. Rows of IPUs
    /// without a part in a step are on no lane, and follow the step.
    fn has_row(
        &self,
        ipu: IpuId,
        sub_lane: Option<u64>,
        step: StepId,
    ) -> Result<bool, ReportError> {
        let own = self.plan.lanes.iter().filter(|(info, _)| {
            info.ipu == ipu && sub_lane.is_none_or(|lane| u64::from(info.sub_lane) == lane)
        });
        let mut is_chosen = false;
        for (info, positions) in own {
            is_chosen |= !positions.is_empty();
            let lane = self.lane(info);
            let found = lane.map(|lane| lane.find(step)).transpose()?.flatten();
            if let Some(found) = found {
                return Ok(positions.contains(&found.position));
            }
        }
        Ok(is_chosen)
    }

    /// Shifts the cycles of a row: its base if it has one, otherwise the values counted from the
    /// start.
    fn move_cycles(&self, table: &ForeignTable, cells: &mut [Value]) {
        let Ok(origin) = i64::try_from(self.plan.origin.0) else { return };
        let mut rest = origin;
        let base = table.place("cycles_base").and_then(|place| cells.get_mut(place));
        if let Some(Value::Integer(base)) = base {
            let moved = (*base).min(origin);
            *base -= moved;
            rest = origin - moved;
        }
        for column in [
            "active_cycles_from_min",
            "active_cycles_from_max",
            "active_cycles_to_min",
            "active_cycles_to_max",
        ] {
            let cell = table.place(column).and_then(|place| cells.get_mut(place));
            if let Some(Value::Integer(cycle)) = cell {
                *cycle = cycle.saturating_sub(rest).max(0);
            }
        }
    }

    /// Ids of the steps of the slice, in order.
    fn kept_ids(&self) -> Result<Vec<Range<u64>>, ReportError> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for (info, positions) in &self.plan.lanes {
            let Some(lane) = self.lane(info) else { continue };
            let first_of_lane = runs.len();
            lane.visit_records(positions.clone(), |step| {
                let id = step.step.0;
                match runs.get_mut(first_of_lane..).and_then(<[Range<u64>]>::last_mut) {
                    Some(run) if run.end == id => run.end += 1,
                    _ => runs.push(id..id.saturating_add(1)),
                }
            })?;
            self.go_on()?;
        }
        runs.sort_by_key(|run| run.start);
        runs.dedup_by(|next, before| {
            let joins = next.start <= before.end;
            if joins {
                before.end = before.end.max(next.end);
            }
            joins
        });
        Ok(runs)
    }
}

/// Adds a note to those of the file.
fn note(target: &Connection, text: &str) -> rusqlite::Result<()> {
    target.execute_batch("CREATE TABLE IF NOT EXISTS notes (id INTEGER PRIMARY KEY, text TEXT)")?;
    let next = "SELECT coalesce(max(id) + 1, 0) FROM notes";
    target.execute(&format!("INSERT INTO notes (id, text) VALUES (({next}), ?1)"), [text])?;
    Ok(())
}
