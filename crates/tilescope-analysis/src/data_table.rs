//! Tables for all readers: views, CSV files, the command line and comparisons use the same columns
//! and cells, so that saved tables equal the visible ones.

use crate::grouping::{GroupKey, RowKeys};
use serde::Serialize;
use serde::ser::Serializer;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;
use tilescope_report::schema::SchemaColumn;
use tilescope_report::units::{
    Bytes, ComputeSetId, Cycles, IpuId, NumberFormat, OperationId, ProgramId, TileId, VariableId,
    exact_bytes, exact_real, grouped, grouped_real, percent, percentage_points, seconds,
    short_count,
};

/// One value of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableCell {
    /// A text.
    Text(String),
    Bytes(Bytes),
    /// A number of items, or cycles.
    Count(u64),
    /// A number that identifies an entity: never summed, never grouped by thousands.
    Id(u64),
    /// A tile by its number.
    Tile(TileId),
    /// A change of bytes or counts.
    Change {
        /// The difference, positive for an increase.
        change: i128,
        /// True if it is a number of bytes.
        bytes: bool,
    },
    /// A share, 1 for the whole.
    Share(f64),
    /// A change as a share of the original value: 3 for four times as much.
    ChangeShare(f64),
    /// A measured or derived number.
    Real(f64),
    /// A change of a measured or derived number.
    RealChange(f64),
    /// Time.
    Seconds(f64),
    /// How much more, or less, time.
    SecondsChange(f64),
    /// The difference of two shares of one.
    ShareChange(f64),
    /// Nothing where other rows have a number.
    Missing,
}

impl From<&str> for TableCell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for TableCell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&String> for TableCell {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<Bytes> for TableCell {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Cycles> for TableCell {
    fn from(cycles: Cycles) -> Self {
        Self::Count(cycles.0)
    }
}

impl From<u64> for TableCell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<TileId> for TableCell {
    fn from(tile: TileId) -> Self {
        Self::Tile(tile)
    }
}

/// Cells of typed ids.
macro_rules! id_cells {
    ($($id:ident)*) => {$(
        impl From<$id> for TableCell {
            fn from(id: $id) -> Self {
                Self::id(id.0)
            }
        }
    )*};
}
id_cells!(IpuId ProgramId OperationId VariableId ComputeSetId);

impl<T: Into<Self>> From<Option<T>> for TableCell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}

impl TableCell {
    /// Creates a cell of a number that identifies an entity.
    pub fn id(id: impl Into<u64>) -> Self {
        Self::Id(id.into())
    }

    /// The value in three or four figures with its unit, as people read it.
    pub fn text(&self) -> String {
        self.text_in(NumberFormat::default())
    }

    /// The same in the units that the user chose.
    pub fn text_in(&self, numbers: NumberFormat) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => numbers.bytes(bytes.0),
            Self::Count(count) => short_count(*count),
            Self::Id(id) => id.to_string(),
            Self::Tile(tile) => format!("Tile {}", grouped((*tile).into())),
            Self::Change { change, bytes } => {
                let size = u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX);
                let size = if *bytes { numbers.bytes(size) } else { short_count(size) };
                format!("{}{size}", ["-", "", "+"][(change.signum() + 1) as usize])
            }
            Self::Share(share) => percent(*share),
            Self::ChangeShare(share) => {
                format!("{}{:.2} %", plus_of(*share), share * 100.0)
            }
            Self::ShareChange(change) => percentage_points(*change),
            Self::Real(value) => grouped_real(*value),
            Self::RealChange(value) => format!("{}{}", plus_of(*value), grouped_real(*value)),
            Self::Seconds(value) => seconds(*value),
            Self::SecondsChange(value) => format!("{}{}", plus_of(*value), seconds(*value)),
            Self::Missing => "—".to_owned(),
        }
    }

    /// The value with all its digits and its unit.
    pub fn exact(&self) -> String {
        match self {
            Self::Bytes(bytes) => exact_bytes(bytes.0),
            Self::Count(count) => grouped(*count),
            Self::Change { change, bytes } => {
                let size = u64::try_from(change.unsigned_abs()).unwrap_or(u64::MAX);
                let size = if *bytes { exact_bytes(size) } else { grouped(size) };
                format!("{}{size}", ["-", "", "+"][(change.signum() + 1) as usize])
            }
            Self::Real(value) => exact_real(*value),
            Self::RealChange(value) => format!("{}{}", plus_of(*value), exact_real(*value)),
            Self::Seconds(value) => format!("{} s", exact_real(*value)),
            Self::SecondsChange(value) => format!("{}{} s", plus_of(*value), exact_real(*value)),
            Self::Text(_) | Self::Id(_) | Self::Tile(_) | Self::Share(_) => self.text(),
            Self::ChangeShare(_) | Self::ShareChange(_) | Self::Missing => self.text(),
        }
    }

    /// True for a difference.
    pub fn is_change(&self) -> bool {
        matches!(
            self,
            Self::Change { .. }
                | Self::ChangeShare(_)
                | Self::RealChange(_)
                | Self::SecondsChange(_)
                | Self::ShareChange(_)
        )
    }

    /// The value as programs read it: digits without separators or units, in the unit that the
    /// head of the column names.
    pub fn plain(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Bytes(bytes) => bytes.0.to_string(),
            Self::Count(value) | Self::Id(value) => value.to_string(),
            Self::Tile(tile) => tile.to_string(),
            Self::Change { change, .. } => change.to_string(),
            Self::Missing => String::new(),
            Self::Share(value)
            | Self::ChangeShare(value)
            | Self::ShareChange(value)
            | Self::Real(value)
            | Self::RealChange(value)
            | Self::Seconds(value)
            | Self::SecondsChange(value) => value.to_string(),
        }
    }

    /// The value as a whole number; `None` for fractions and text.
    pub(crate) fn whole(&self) -> Option<i128> {
        match self {
            Self::Bytes(bytes) => Some(bytes.0.into()),
            Self::Count(value) | Self::Id(value) => Some((*value).into()),
            Self::Tile(tile) => Some(tile.0.into()),
            Self::Change { change, .. } => Some(*change),
            Self::Share(_) | Self::ChangeShare(_) | Self::ShareChange(_) => None,
            Self::Real(_) | Self::RealChange(_) => None,
            Self::Seconds(_) | Self::SecondsChange(_) => None,
            Self::Text(_) | Self::Missing => None,
        }
    }

    /// The value as a number; `None` for text and missing values.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Share(value)
            | Self::ChangeShare(value)
            | Self::ShareChange(value)
            | Self::Real(value)
            | Self::RealChange(value)
            | Self::Seconds(value)
            | Self::SecondsChange(value) => Some(*value),
            _ => self.whole().map(|value| value as f64),
        }
    }

    /// The order of cells in a column: text, then missing values, then numbers. Changes are ordered
    /// by size, independent of their sign.
    pub fn compare(&self, other: &Self) -> Ordering {
        let class = |cell: &Self| match cell {
            Self::Text(_) => 0,
            Self::Missing => 1,
            _ => 2,
        };
        class(self).cmp(&class(other)).then_with(|| {
            // Byte counts of large programs have more digits than a float can hold.
            match (self, other, self.whole(), other.whole()) {
                (Self::Text(a), Self::Text(b), ..) => a.cmp(b),
                (_, _, Some(a), Some(b)) => a.unsigned_abs().cmp(&b.unsigned_abs()),
                _ => {
                    let size = |cell: &Self| cell.number().map_or(0.0, f64::abs);
                    size(self).total_cmp(&size(other))
                }
            }
        })
    }

    /// The sum of both cells; `None` if a sum has no meaning.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => Some(Self::Bytes(*a + *b)),
            (Self::Count(a), Self::Count(b)) => Some(Self::Count(a + b)),
            (Self::Change { change: a, bytes }, Self::Change { change: b, .. }) => {
                Some(Self::Change { change: a + b, bytes: *bytes })
            }
            (Self::Real(a), Self::Real(b)) => Some(Self::Real(a + b)),
            (Self::Share(a), Self::Share(b)) => Some(Self::Share(a + b)),
            (Self::RealChange(a), Self::RealChange(b)) => Some(Self::RealChange(a + b)),
            (Self::Seconds(a), Self::Seconds(b)) => Some(Self::Seconds(a + b)),
            (Self::SecondsChange(a), Self::SecondsChange(b)) => Some(Self::SecondsChange(a + b)),
            _ => None,
        }
    }

    /// True if a column of such cells can be summed.
    pub fn is_summable(&self) -> bool {
        let whole = matches!(self, Self::Bytes(_) | Self::Count(_) | Self::Change { .. });
        let real = matches!(self, Self::Real(_) | Self::RealChange(_));
        whole || real || matches!(self, Self::Seconds(_) | Self::SecondsChange(_))
    }

    /// True if a search for text considers the cell.
    pub fn is_name(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Id(_) | Self::Tile(_))
    }
}

/// The sign in front of a difference that is more.
fn plus_of(change: f64) -> &'static str {
    if change > 0.0 { "+" } else { "" }
}

impl Serialize for TableCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Bytes(bytes) => bytes.serialize(serializer),
            Self::Count(value) | Self::Id(value) => serializer.serialize_u64(*value),
            Self::Tile(tile) => serializer.serialize_u32(tile.0),
            Self::Change { change, .. } => match i64::try_from(*change) {
                Ok(change) => serializer.serialize_i64(change),
                Err(_) => serializer.serialize_f64(*change as f64),
            },
            Self::Share(value)
            | Self::ChangeShare(value)
            | Self::ShareChange(value)
            | Self::Real(value)
            | Self::RealChange(value)
            | Self::Seconds(value)
            | Self::SecondsChange(value) => serializer.serialize_f64(*value),
            Self::Missing => serializer.serialize_none(),
        }
    }
}

/// The alignment of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnAlignment {
    /// Left-aligned text.
    Left,
    /// Right-aligned numbers, with digits of equal weight below each other.
    Right,
}

/// The kind of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnQuantity {
    Words,
    /// Numeric ids.
    Id,
    /// Positions in an order.
    Ordinal,
    Count,
    Cycles,
    /// Cycles that may have fractions.
    MeanCycles,
    Bytes,
    Share,
    /// Shares of one whole that add up to 1.
    Part,
}

impl ColumnQuantity {
    /// The quantity of a column in a table of a file.
    pub(crate) fn of_file(column: &SchemaColumn) -> Self {
        match column.unit {
            "id" => Self::Id,
            "number" => Self::Ordinal,
            "cycles" => Self::Cycles,
            "bytes" => Self::Bytes,
            "share" => Self::Share,
            _ if column.declaration.starts_with("TEXT") => Self::Words,
            _ => Self::Count,
        }
    }

    /// The unit as SQL lists it.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Words => "",
            Self::Id => "id",
            Self::Ordinal => "number",
            Self::Count => "count",
            Self::Cycles | Self::MeanCycles => "cycles",
            Self::Bytes => "bytes",
            Self::Share | Self::Part => "share",
        }
    }

    /// The type of the column in SQL.
    pub fn declaration(self) -> &'static str {
        match self {
            Self::Words => "TEXT",
            Self::MeanCycles | Self::Share | Self::Part => "REAL",
            Self::Id | Self::Ordinal | Self::Count | Self::Cycles | Self::Bytes => "INTEGER",
        }
    }
}

/// The meaning of the cells of several rows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnAggregate {
    /// They add up, and so do all rows of the table.
    Sum,
    /// They add up within a group. All rows have no total: IPUs run at the same time, and not all
    /// bytes live together.
    SumOfGroup,
    /// The largest says most.
    Max,
    /// Neither means anything.
    None,
}

impl ColumnAggregate {
    /// True for sums, over a group at least.
    pub fn adds_up(self) -> bool {
        matches!(self, Self::Sum | Self::SumOfGroup)
    }
}

/// The property of an operation that a column names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnSubject {
    /// Its name, or that of a program of it.
    Operation,
    /// A program, by its number.
    Program,
    /// A property that rows are grouped by.
    Key(GroupKey),
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableColumn {
    /// Its name for programs, if that does not follow from the title.
    #[serde(skip)]
    pub name: Option<&'static str>,
    #[serde(skip)]
    pub quantity: ColumnQuantity,
    /// Its heading.
    pub title: String,
    /// The unit of its numbers, if the numbers do not show it.
    pub unit: Option<&'static str>,
    /// The full description of its content and computation; empty if the title says enough.
    pub about: &'static str,
    /// The side that its cells are aligned to.
    #[serde(skip)]
    pub alignment: ColumnAlignment,
    /// True for short text.
    #[serde(skip)]
    pub short: bool,
    /// How its numbers aggregate: bytes that never live together, and cycles of IPUs that run at the
    /// same time, add up to nothing.
    #[serde(skip)]
    pub aggregate: ColumnAggregate,
    /// The property of an operation that it names.
    #[serde(skip)]
    pub subject: Option<ColumnSubject>,
}

impl TableColumn {
    /// Creates a column of text.
    pub fn text(title: impl Into<String>) -> Self {
        Self {
            name: None,
            quantity: ColumnQuantity::Words,
            title: title.into(),
            unit: None,
            about: "",
            alignment: ColumnAlignment::Left,
            short: false,
            aggregate: ColumnAggregate::Sum,
            subject: None,
        }
    }

    /// A column of names of operations, or of programs of theirs.
    pub fn operation(title: impl Into<String>) -> Self {
        Self { subject: Some(ColumnSubject::Operation), ..Self::text(title) }
    }

    /// A column of programs by their numbers.
    pub fn program(title: impl Into<String>) -> Self {
        Self { subject: Some(ColumnSubject::Program), ..Self::id(title) }
    }

    /// A column of operators.
    pub fn operator(title: impl Into<String>) -> Self {
        Self::text(title).telling(GroupKey::Operator)
    }

    /// A column of passes.
    pub fn pass(title: impl Into<String>) -> Self {
        Self::short(title).telling(GroupKey::Pass)
    }

    /// A column of IPUs in words.
    pub fn ipu(title: impl Into<String>) -> Self {
        Self::short(title).telling(GroupKey::Ipu)
    }

    /// A column of numbers of IPUs.
    pub fn ipu_id(title: impl Into<String>) -> Self {
        Self::id(title).telling(GroupKey::Ipu)
    }

    /// A column of words of few letters.
    pub fn short(title: impl Into<String>) -> Self {
        Self { short: true, ..Self::text(title) }
    }

    /// Creates a column of numeric ids.
    pub fn id(title: impl Into<String>) -> Self {
        Self { quantity: ColumnQuantity::Id, ..Self::short(title) }
    }

    /// Creates a column of numbers.
    pub fn number(title: impl Into<String>) -> Self {
        let quantity = ColumnQuantity::Count;
        Self { quantity, alignment: ColumnAlignment::Right, ..Self::text(title) }
    }

    /// Creates a column of numbers that cannot be summed.
    pub fn unsummed(title: impl Into<String>) -> Self {
        Self::number(title).without_sum()
    }

    /// Creates a column of cycles that cannot be summed.
    pub fn unsummed_cycles(title: impl Into<String>) -> Self {
        Self::cycles(title).without_sum()
    }

    /// Creates a column of bytes.
    pub fn bytes(title: impl Into<String>) -> Self {
        Self { quantity: ColumnQuantity::Bytes, unit: Some("bytes"), ..Self::number(title) }
    }

    /// Creates a column of bytes that cannot be summed.
    pub fn unsummed_bytes(title: impl Into<String>) -> Self {
        Self::bytes(title).without_sum()
    }

    /// A column of numbers that add up within a group only.
    pub fn grouped_number(title: impl Into<String>) -> Self {
        Self::number(title).aggregating(ColumnAggregate::SumOfGroup)
    }

    /// A column of cycles that add up within a group only.
    pub fn grouped_cycles(title: impl Into<String>) -> Self {
        Self::cycles(title).aggregating(ColumnAggregate::SumOfGroup)
    }

    /// A column of cycles of which the most say something of a group.
    pub fn most_cycles(title: impl Into<String>) -> Self {
        Self::cycles(title).aggregating(ColumnAggregate::Max)
    }

    /// A column of bytes of which the most say something of a group.
    pub fn most_bytes(title: impl Into<String>) -> Self {
        Self::bytes(title).aggregating(ColumnAggregate::Max)
    }

    /// A column of numbers of which the largest says something of a group.
    pub fn most(title: impl Into<String>) -> Self {
        Self::number(title).aggregating(ColumnAggregate::Max)
    }

    /// A column of cycles of a run, which grow with what it works on.
    pub fn cycles(title: impl Into<String>) -> Self {
        Self { quantity: ColumnQuantity::Cycles, ..Self::number(title) }
    }

    /// Creates a column of shares.
    pub fn share(title: impl Into<String>) -> Self {
        Self { quantity: ColumnQuantity::Share, ..Self::unsummed(title) }
    }

    /// Creates a column of parts of one whole.
    pub fn part(title: impl Into<String>) -> Self {
        Self { quantity: ColumnQuantity::Part, ..Self::number(title) }
    }

    /// Creates a column that programs address by a separate name.
    pub(crate) fn named(name: &'static str, quantity: ColumnQuantity, about: &'static str) -> Self {
        let title = name.replace('_', " ");
        let title = title[..1].to_uppercase() + &title[1..];
        let column = match quantity {
            ColumnQuantity::Words => Self::text(title),
            ColumnQuantity::Id | ColumnQuantity::Ordinal => Self::short(title),
            ColumnQuantity::Bytes => Self::bytes(title),
            _ => Self::number(title),
        };
        Self { name: Some(name), quantity, about, ..column }
    }

    /// The same without a sum.
    #[must_use]
    pub(crate) fn without_sum(self) -> Self {
        self.aggregating(ColumnAggregate::None)
    }

    /// The same with another aggregate.
    #[must_use]
    pub fn aggregating(self, aggregate: ColumnAggregate) -> Self {
        Self { aggregate, ..self }
    }

    /// The same as a column that says what rows are grouped by.
    #[must_use]
    pub(crate) fn telling(self, key: GroupKey) -> Self {
        Self { subject: Some(ColumnSubject::Key(key)), ..self }
    }

    /// True for numbers that add up within a group.
    pub fn is_summed_in_groups(&self) -> bool {
        self.alignment == ColumnAlignment::Right && self.aggregate.adds_up()
    }

    /// Whether all rows of the table have a sum that means something.
    pub fn has_total(&self) -> bool {
        self.aggregate == ColumnAggregate::Sum
    }

    /// True for names of operations or of their programs.
    pub(crate) fn names_operations(&self) -> bool {
        matches!(self.subject, Some(ColumnSubject::Operation | ColumnSubject::Program))
    }

    /// Whether it says something of groups by a key.
    pub(crate) fn is_in_groups_of(&self, key: GroupKey) -> bool {
        match self.subject {
            Some(ColumnSubject::Key(own)) => own != key,
            Some(ColumnSubject::Operation | ColumnSubject::Program) => false,
            None if self.alignment == ColumnAlignment::Left => false,
            None => self.aggregate != ColumnAggregate::None,
        }
    }

    /// The same with a description.
    #[must_use]
    pub fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// Its title as the head of a column in a file: in lower case, with the unit.
    pub fn head(&self) -> String {
        let title = self.title.to_lowercase();
        match self.unit {
            Some(unit) => format!("{title} ({unit})"),
            None => title,
        }
    }
}

/// A table of columns and rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DataTable {
    /// The columns, from left to right.
    pub columns: Vec<TableColumn>,
    /// The rows, each with one cell per column.
    pub rows: Vec<Vec<TableCell>>,
    /// True if the table has a row of sums.
    #[serde(skip)]
    pub totals: bool,
    /// What its rows can be grouped by; none where they name no operations.
    #[serde(skip)]
    pub keys: Option<Arc<RowKeys>>,
}

impl DataTable {
    /// Names of columns for programs, all different: `live_bytes` for `Live (bytes)`.
    pub fn identifiers(&self) -> Vec<String> {
        let mut taken = BTreeSet::new();
        let name = |column: &TableColumn| {
            let name = column.name.map_or_else(|| identifier(&column.head()), str::to_owned);
            unique(name, &mut taken)
        };
        self.columns.iter().map(name).collect()
    }

    /// The same with names of its columns for programs.
    #[must_use]
    pub(crate) fn with_names(mut self, names: &[&'static str]) -> Self {
        debug_assert_eq!(self.columns.len(), names.len(), "a name for each column");
        for (column, name) in self.columns.iter_mut().zip(names) {
            column.name = Some(name);
        }
        self
    }

    /// Creates a table without a row of sums.
    pub fn new(columns: Vec<TableColumn>, rows: Vec<Vec<TableCell>>) -> Self {
        debug_assert!(rows.iter().all(|row| row.len() == columns.len()), "a cell for each column");
        Self { columns, rows, totals: false, keys: None }
    }

    /// The same with a row of sums.
    #[must_use]
    pub fn with_totals(self) -> Self {
        Self { totals: true, ..self }
    }

    /// The same with only the columns whose indices satisfy `wanted`.
    #[must_use]
    pub fn with_columns(self, wanted: impl Fn(usize) -> bool) -> Self {
        let columns: Vec<usize> = (0..self.columns.len()).filter(|at| wanted(*at)).collect();
        let row = |row: &Vec<TableCell>| columns.iter().map(|at| row[*at].clone()).collect();
        let rows = self.rows.iter().map(row).collect();
        let columns = columns.iter().map(|at| self.columns[*at].clone()).collect();
        Self { columns, rows, ..self }
    }

    /// The sum of a column over some rows; `None` if a sum has no meaning.
    pub fn sum_of<'a>(
        &'a self,
        column: usize,
        rows: impl IntoIterator<Item = &'a Vec<TableCell>>,
    ) -> Option<TableCell> {
        let of = self.columns.get(column).filter(|column| column.has_total())?;
        let mut total: Option<TableCell> = None;
        for row in rows {
            total = match (row.get(column)?, total) {
                (TableCell::Missing, sum) => sum,
                (cell, None) if cell.is_summable() || of.quantity == ColumnQuantity::Part => {
                    Some(cell.clone())
                }
                (cell, Some(sum)) => Some(sum.plus(cell)?),
                (_, None) => return None,
            };
        }
        total
    }

    /// The row of sums over all rows; `None` if the table has no such row.
    pub fn totals(&self) -> Option<Vec<TableCell>> {
        let sum = |column: usize| match column {
            0 => "Total".into(),
            column => self.sum_of(column, &self.rows).unwrap_or_else(|| "".into()),
        };
        let has_sums = self.totals && !self.rows.is_empty();
        if has_sums { Some((0..self.columns.len()).map(sum).collect()) } else { None }
    }

    /// The table as CSV according to RFC 4180, with plain line ends.
    pub fn csv(&self) -> String {
        let heads: Vec<String> = self.columns.iter().map(|of| quoted(&of.head())).collect();
        let mut text = heads.join(",");
        text.push('\n');
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate() {
                let comma = if at > 0 { "," } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(text, "{comma}{}", quoted(&unexecuted(cell)));
            }
            text.push('\n');
        }
        text
    }
}

/// A table of rows. Each line of the macro is a column, with its kind, its title, the cell of a
/// row, and a description; `all` precedes several columns and their cells.
#[macro_export]
macro_rules! table {
    ($rows:expr, |$row:pat_param| $($kind:ident $title:expr => $cell:expr $(, $about:expr)?;)*) => {{
        let mut columns: Vec<$crate::data_table::TableColumn> = Vec::new();
        $($crate::table_column!(columns, $kind, $title $(, $about)?);)*
        let mut rows = Vec::new();
        for $row in $rows {
            let mut cells: Vec<$crate::data_table::TableCell> = Vec::with_capacity(columns.len());
            $($crate::table_cell!(cells, $kind, $cell);)*
            rows.push(cells);
        }
        $crate::data_table::DataTable::new(columns, rows)
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! table_column {
    ($columns:ident, all, $all:expr) => {
        $columns.extend($all)
    };
    ($columns:ident, $kind:ident, $title:expr $(, $about:expr)?) => {
        $columns.extend([$crate::data_table::TableColumn::$kind($title)$(.about($about))?])
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! table_cell {
    ($cells:ident, all, $all:expr) => {
        $cells.extend($all.into_iter().map($crate::data_table::TableCell::from))
    };
    ($cells:ident, share, $cell:expr) => {
        $cells.extend([Option::<f64>::from($cell).map($crate::data_table::TableCell::Share).into()])
    };
    ($cells:ident, part, $cell:expr) => {
        $crate::table_cell!($cells, share, $cell)
    };
    ($cells:ident, $kind:ident, $cell:expr) => {
        $cells.extend([$crate::data_table::TableCell::from($cell)])
    };
}

/// The text of a cell that a spreadsheet shows unevaluated.
fn unexecuted(cell: &TableCell) -> String {
    match cell {
        TableCell::Text(text) => without_formula(text),
        cell => cell.plain(),
    }
}

/// Spreadsheets would evaluate foreign names that begin like a formula, so these get an apostrophe
/// in front.
fn without_formula(text: &str) -> String {
    let begins_like_one = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    if begins_like_one { format!("'{text}") } else { text.to_owned() }
}

/// A foreign text as a cell of a CSV file: no spreadsheet takes it for a formula, and no terminal
/// that prints the file obeys it.
pub(crate) fn quoted_for_csv(text: &str) -> String {
    quoted(&without_formula(text))
}

/// The text in quotes if it contains a comma, a quote or a line end. Control characters other than
/// line ends and tabs are escaped, as in all output of commands.
fn quoted(text: &str) -> String {
    if text.contains(is_spelled_out) {
        let mut plain = String::with_capacity(text.len());
        for letter in text.chars() {
            if is_spelled_out(letter) {
                plain.push_str(&format!("\\u{:04x}", u32::from(letter)));
            } else {
                plain.push(letter);
            }
        }
        return quoted(&plain);
    }
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// True for control characters other than line ends and tabs.
fn is_spelled_out(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\r' | '\t')
}

/// The head of a column as a name in Python: `live_bytes` for `Live (bytes)`.
fn identifier(head: &str) -> String {
    let mut name = String::new();
    for letter in head.to_lowercase().chars() {
        match letter {
            letter if letter.is_alphanumeric() => name.push(letter),
            '%' => name.push_str("percent"),
            _ if !name.is_empty() && !name.ends_with('_') => name.push('_'),
            _ => {}
        }
    }
    name.trim_end_matches('_').to_owned()
}

/// The name, made different from those of all other columns.
fn unique(name: String, taken: &mut BTreeSet<String>) -> String {
    let name = if name.is_empty() { "column".to_owned() } else { name };
    let numbered = (2..).map(|number| format!("{name}_{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_only_where_they_must_be() {
        let columns = vec![TableColumn::text("Name"), TableColumn::bytes("Size")];
        let rows = vec![
            vec!["a,b \"c\"".into(), TableCell::Bytes(Bytes(7_000))],
            vec!["plain".into(), TableCell::Missing],
            vec![TableCell::Share(0.25), TableCell::Count(1)],
        ];
        let formula: TableCell = "=HYPERLINK(\"x\")".into();
        let names = DataTable::new(
            vec![TableColumn::text("Name"), TableColumn::number("Change")],
            vec![vec![formula, TableCell::RealChange(-1.5)]],
        );
        assert_eq!(names.csv(), "name,change\n\"'=HYPERLINK(\"\"x\"\")\",-1.5\n");
        let csv = "name,size (bytes)\n\"a,b \"\"c\"\"\",7000\nplain,\n0.25,1\n";
        assert_eq!(DataTable::new(columns, rows).csv(), csv);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(
            quoted("a\u{1b}]52;c\u{7}\0\u{9b}b\tc"),
            "a\\u001b]52;c\\u0007\\u0000\\u009bb\tc"
        );
        assert_eq!(quoted("two\nlines"), "\"two\nlines\"");
    }

    #[test]
    fn numbers_sort_by_size_after_text() {
        let change = |change| TableCell::Change { change, bytes: false };
        let rising = [
            "a".into(),
            TableCell::Missing,
            change(1),
            change(-3),
            TableCell::Real(3.5),
            TableCell::Count(u64::MAX - 1),
            TableCell::Count(u64::MAX),
        ];
        for pair in rising.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
