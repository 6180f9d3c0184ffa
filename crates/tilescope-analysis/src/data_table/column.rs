//! The columns of tables: heading, unit, description, and the meaning of several of their cells.

use crate::grouping::GroupKey;
use serde::Serialize;
use tilescope_report::schema::SchemaColumn;

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
    /// The largest is the most informative.
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
    /// The aggregation of its numbers. Sums of bytes that are never live together, and of cycles of
    /// IPUs that run at the same time, mean nothing.
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
        Self::text(title).labelling(GroupKey::Operator)
    }

    /// A column of passes.
    pub fn pass(title: impl Into<String>) -> Self {
        Self::short(title).labelling(GroupKey::Pass)
    }

    /// A column of IPUs in words.
    pub fn ipu(title: impl Into<String>) -> Self {
        Self::short(title).labelling(GroupKey::Ipu)
    }

    /// A column of numbers of IPUs.
    pub fn ipu_id(title: impl Into<String>) -> Self {
        Self::id(title).labelling(GroupKey::Ipu)
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

    /// A column of cycles whose maximum describes a group.
    pub fn most_cycles(title: impl Into<String>) -> Self {
        Self::cycles(title).aggregating(ColumnAggregate::Max)
    }

    /// A column of bytes whose maximum describes a group.
    pub fn most_bytes(title: impl Into<String>) -> Self {
        Self::bytes(title).aggregating(ColumnAggregate::Max)
    }

    /// A column of numbers whose maximum describes a group.
    pub fn most(title: impl Into<String>) -> Self {
        Self::number(title).aggregating(ColumnAggregate::Max)
    }

    /// A column of cycles of a run, which grow with the work of the run.
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
        let title = if name == "ipu" { "IPU".to_owned() } else { title };
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

    /// The same as a column that states the label of rows for a key.
    #[must_use]
    pub(crate) fn labelling(self, key: GroupKey) -> Self {
        Self { subject: Some(ColumnSubject::Key(key)), ..self }
    }

    /// True for numbers that add up within a group.
    pub fn is_summed_in_groups(&self) -> bool {
        self.alignment == ColumnAlignment::Right && self.aggregate.adds_up()
    }

    /// True if the sum over all rows of the table has a meaning.
    pub fn has_total(&self) -> bool {
        self.aggregate == ColumnAggregate::Sum
    }

    /// True for names of operations or of their programs.
    pub(crate) fn names_operations(&self) -> bool {
        matches!(self.subject, Some(ColumnSubject::Operation | ColumnSubject::Program))
    }

    /// True if the column has a meaning in a table of groups by a key.
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
