//! Virtual tables of SQLite in safe Rust.
//!
//! A source of rows implements [`VirtualTable`]; [`register`] adds it to a connection as a table.
//! Conditions of a query that narrow the rows arrive as [`ColumnBounds`]: ranges of integers, so
//! that a table need not handle operators, types and NULLs. SQLite checks every row again, so a
//! table may return more rows than requested.
//!
//! Hidden columns are arguments: with a hidden column `first_cycle`, a table `totals` is queried as
//! `totals(100)`.

mod plan;

pub use plan::ColumnBounds;
use plan::{Comparison, QueryPlan};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::vtab::{
    Context, CreateVTab, DistinctMode, Filters, IndexInfo, Module, VTab, VTabConnection,
    VTabCursor, VTabKind, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error};
use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::fmt::Display;
use std::sync::Arc;

/// A column of a virtual table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualColumn {
    pub name: &'static str,
    /// Its type in SQL.
    pub declaration: &'static str,
    pub role: ColumnRole,
    /// The unit of its numbers; empty if they have none.
    pub unit: &'static str,
    /// A description of its content.
    pub about: &'static str,
}

/// The use of a column's value for selecting rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnRole {
    /// None: SQLite checks each row.
    Plain,
    /// Bounds on it narrow the rows to read.
    Bounded,
    /// It is an argument: not part of `SELECT *`, and its value is the given one.
    Argument,
}

/// An estimate of the number of rows of a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowEstimate {
    pub rows: f64,
    /// True if there is at most one.
    pub unique: bool,
}

/// The reason why rows cannot be read, as text.
#[derive(Debug)]
pub struct VirtualTableError(String);

impl<E: Display> From<E> for VirtualTableError {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A table whose rows are computed while they are read.
pub trait VirtualTable: Send + Sync + 'static {
    /// Its columns in order.
    fn columns(&self) -> &'static [VirtualColumn];

    /// Columns by which rows are sorted, the first one first.
    fn order(&self) -> &'static [usize];

    /// True if rows with equal values of these columns can follow each other, whatever the order of
    /// the values is. `wanted` returns true for columns whose values are used.
    fn groups(&self, _columns: &[usize], _wanted: &dyn Fn(usize) -> bool) -> bool {
        false
    }

    /// An estimate of the number of rows if the columns `bounded` have bounds; `fixed` are those of
    /// them that have one value.
    fn estimate(&self, bounded: &[usize], fixed: &[usize]) -> RowEstimate;

    /// The rows within `bounds`, and perhaps others, in groups if `bounds` ask for them. `wanted`
    /// returns true for columns whose values are used.
    ///
    /// # Errors
    /// The rows cannot be read.
    fn rows(
        &self,
        bounds: &ColumnBounds,
        wanted: &dyn Fn(usize) -> bool,
    ) -> Result<Box<dyn VirtualRows>, VirtualTableError>;
}

/// An iterator over rows of a virtual table, initially before the first.
pub trait VirtualRows {
    /// Moves to the next row. Returns `false` after the last.
    ///
    /// # Errors
    /// The row cannot be read.
    fn advance(&mut self) -> Result<bool, VirtualTableError>;

    /// A cell of the row; never called for arguments.
    fn value(&self, column: usize) -> ValueRef<'_>;

    /// The `rowid` of the row, if it differs from its index among the rows.
    ///
    /// # Errors
    /// Rows that stand for several others have none.
    fn rowid(&self) -> Result<Option<i64>, VirtualTableError> {
        Ok(None)
    }
}

/// Adds `table` to a connection under `name`.
///
/// # Errors
/// Those of SQLite.
pub fn register(
    connection: &Connection,
    name: &str,
    table: Arc<dyn VirtualTable>,
) -> rusqlite::Result<()> {
    const MODULE: &Module<TableAdapter> = &Module::read_only_module();
    connection.create_module(name, MODULE, Some(table))
}

/// A table in the form that SQLite needs.
#[repr(C)]
struct TableAdapter {
    /// SQLite's own part; must be first.
    base: sqlite3_vtab,
    table: Arc<dyn VirtualTable>,
}

#[expect(unsafe_code, reason = "the type is laid out as the trait demands: C, SQLite's part first")]
// SAFETY: `TableAdapter` is `repr(C)` and its first field is a `sqlite3_vtab`.
unsafe impl VTab<'_> for TableAdapter {
    type Aux = Arc<dyn VirtualTable>;
    type Cursor = CursorAdapter;

    fn connect(
        _: &mut VTabConnection,
        table: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        let table = table.ok_or_else(|| failure("a module without a table"))?.clone();
        let columns: Vec<String> = table
            .columns()
            .iter()
            .map(|column| {
                let hidden = if column.role == ColumnRole::Argument { " HIDDEN" } else { "" };
                format!("\"{}\" {}{hidden}", column.name, column.declaration)
            })
            .collect();
        let sql = CString::new(format!("CREATE TABLE rows ({})", columns.join(", ")));
        let sql = sql.map_err(failure)?;
        Ok((Cow::Owned(sql), Self { base: sqlite3_vtab::default(), table }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        let columns = self.table.columns();
        let mut plan = QueryPlan::new(info.col_used());
        let mut waits = false;
        let mut bounded = Vec::new();
        let mut fixed = Vec::new();
        // Under another collation, texts with different bytes can be equal.
        let is_binary = |at| info.collation(at).is_ok_and(|name| name == "BINARY");
        let binary: Vec<bool> = (0..info.constraints().count()).map(is_binary).collect();
        for ((constraint, mut usage), is_binary) in info.constraints_and_usages().zip(binary) {
            let column = usize::try_from(constraint.column()).ok();
            let Some(column) = column.filter(|at| *at < columns.len()) else { continue };
            let role = columns.get(column).map_or(ColumnRole::Plain, |column| column.role);
            let Some(comparison) = Comparison::of(&constraint.operator()) else { continue };
            let is_argument = role == ColumnRole::Argument && comparison == Comparison::Equal;
            if !is_argument && (role != ColumnRole::Bounded || !is_binary) {
                continue;
            }
            if !constraint.is_usable() {
                // An argument from another table is only known inside a loop over that table.
                waits |= is_argument;
                continue;
            }
            usage.set_argv_index(plan.add(column, comparison));
            // An argument always matches; everything else is checked again.
            usage.set_omit(is_argument);
            bounded.push(column);
            if comparison == Comparison::Equal {
                fixed.push(column);
            }
        }
        if waits {
            return Ok(false);
        }
        let estimate = self.table.estimate(&bounded, &fixed);
        info.set_estimated_cost(estimate.rows.max(1.0) + 10.0);
        #[expect(clippy::cast_possible_truncation, reason = "an estimate")]
        info.set_estimated_rows(estimate.rows.clamp(1.0, 1e15) as i64);
        if estimate.unique {
            info.set_idx_flags(rusqlite::vtab::IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
        }
        info.set_order_by_consumed(self.has_order(info, &mut plan));
        info.set_idx_str(&plan.to_string());
        Ok(true)
    }

    fn open(&mut self) -> rusqlite::Result<CursorAdapter> {
        Ok(CursorAdapter {
            base: sqlite3_vtab_cursor::default(),
            table: self.table.clone(),
            arguments: Vec::new(),
            rows: None,
            row: 0,
        })
    }
}

impl TableAdapter {
    /// True if rows come in the order that a query needs. Adds the groups that it asks for to the
    /// plan.
    fn has_order(&self, info: &IndexInfo, plan: &mut QueryPlan) -> bool {
        let needs_order =
            matches!(info.distinct(), DistinctMode::Ordered | DistinctMode::DistinctOrdered);
        let mut columns = Vec::new();
        for by in info.order_bys() {
            let Ok(column) = usize::try_from(by.column()) else { return false };
            if needs_order && by.is_order_by_desc() {
                return false;
            }
            columns.push(column);
        }
        let order = self.table.order();
        if order.starts_with(&columns) {
            return true;
        }
        if needs_order {
            return false;
        }
        // Equal rows follow each other, whichever column comes first.
        let are_first = |first: &[usize]| columns.iter().all(|column| first.contains(column));
        if order.get(..columns.len()).is_some_and(are_first) {
            return true;
        }
        let groups = self.table.groups(&columns, &|column| plan.wants(column));
        if groups {
            plan.group_by(columns);
        }
        groups
    }
}

impl CreateVTab<'_> for TableAdapter {
    // Available by its name, and by others after `CREATE VIRTUAL TABLE`.
    const KIND: VTabKind = VTabKind::Eponymous;
}

/// A cursor over rows in the form that SQLite needs.
#[repr(C)]
struct CursorAdapter {
    /// SQLite's own part; must be first.
    base: sqlite3_vtab_cursor,
    table: Arc<dyn VirtualTable>,
    /// Values of arguments, by column.
    arguments: Vec<(usize, i64)>,
    /// The remaining rows; `None` after the last.
    rows: Option<Box<dyn VirtualRows>>,
    row: i64,
}

impl CursorAdapter {
    fn is_argument(&self, column: usize) -> bool {
        let column = self.table.columns().get(column);
        column.is_some_and(|column| column.role == ColumnRole::Argument)
    }

    fn advance(&mut self) -> rusqlite::Result<()> {
        let Some(rows) = &mut self.rows else { return Ok(()) };
        self.row += 1;
        if !rows.advance().map_err(|error| failure(error.0))? {
            self.rows = None;
        }
        Ok(())
    }
}

#[expect(unsafe_code, reason = "the type is laid out as the trait demands: C, SQLite's part first")]
// SAFETY: `CursorAdapter` is `repr(C)` and its first field is a `sqlite3_vtab_cursor`.
unsafe impl VTabCursor for CursorAdapter {
    fn filter(
        &mut self,
        _: c_int,
        plan: Option<&str>,
        values: &Filters<'_>,
    ) -> rusqlite::Result<()> {
        let plan = QueryPlan::parse(plan.unwrap_or_default());
        let bounds = ColumnBounds::new(&plan, values.iter());
        if let Some(column) = plan.text_of(values.iter(), |at| self.is_argument(at)) {
            let name = self.table.columns().get(column).map_or("", |column| column.name);
            return Err(failure(format!("argument {name} is not a number")));
        }
        let columns = self.table.columns().iter().enumerate();
        let arguments = columns.filter(|(_, column)| column.role == ColumnRole::Argument);
        self.arguments =
            arguments.filter_map(|(at, _)| bounds.value(at).map(|value| (at, value))).collect();
        self.row = 0;
        self.rows = None;
        if bounds.are_empty() {
            return Ok(());
        }
        let rows = self.table.rows(&bounds, &|column| plan.wants(column));
        self.rows = Some(rows.map_err(|error| failure(error.0))?);
        self.advance()
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        self.advance()
    }

    fn eof(&self) -> bool {
        self.rows.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let column = usize::try_from(column).map_err(failure)?;
        let argument = self.arguments.iter().find(|(at, _)| *at == column);
        let value = match (argument, &self.rows) {
            (Some((_, value)), _) => ValueRef::Integer(*value),
            (None, Some(rows)) => rows.value(column),
            (None, None) => ValueRef::Null,
        };
        context.set_result(ToSqlOutput::Borrowed(value))
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        let Some(rows) = &self.rows else { return Ok(self.row) };
        let rowid = rows.rowid().map_err(|error| failure(error.0))?;
        Ok(rowid.unwrap_or(self.row))
    }
}

fn failure(problem: impl Display) -> Error {
    Error::ModuleError(problem.to_string())
}

#[cfg(test)]
mod tests;
