//! Groups of rows that are named after an operation (operations, exchanges, stretches of the
//! critical path, …) by block, layer, operator, pass, stage or IPU.
//!
//! A table says which of its columns name operations ([`ColumnSubject`]) and how each column
//! aggregates ([`ColumnAggregate`]). [`DataTable::with_keys`] finds the label of each row once;
//! [`DataTable::groups`] adds rows up. The window, files, SQL and Python share both.

mod operation_index;
mod row_keys;

pub use operation_index::OperationIndex;
pub use row_keys::RowKeys;

use crate::data_table::{ColumnAggregate, ColumnSubject, DataTable, TableCell, TableColumn};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use tilescope_report::{Report, ReportError};

/// More rows than these are grouped until the user wants otherwise.
pub const GROUPED_ABOVE: usize = 200;

/// The property of operations that rows are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupKey {
    /// Block of the model: `layer17`.
    Block,
    /// Name with the numbers of its layer folded: `layer*/ff2/wu`.
    Layer,
    /// The first two names of that: `layer*/ff2`.
    Part,
    /// Operator: `matmul_grad_weight`.
    Operator,
    /// Forward, backward or update.
    Pass,
    /// Stage of a pipeline, by the blocks that it computes.
    Stage,
    /// IPU of the replica.
    Ipu,
}

impl GroupKey {
    /// Every key, in the order in which they are offered.
    pub const ALL: [Self; 7] =
        [Self::Block, Self::Layer, Self::Part, Self::Operator, Self::Pass, Self::Stage, Self::Ipu];

    /// The name for programs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Layer => "layer",
            Self::Part => "part",
            Self::Operator => "operator",
            Self::Pass => "pass",
            Self::Stage => "stage",
            Self::Ipu => "ipu",
        }
    }

    /// The key of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// The name as users read it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Block => "Block",
            Self::Layer => "Layer kind",
            Self::Part => "Part of a layer",
            Self::Operator => "Operator",
            Self::Pass => "Pass",
            Self::Stage => "Stage",
            Self::Ipu => "IPU",
        }
    }

    /// The meaning of its labels.
    pub fn about(self) -> &'static str {
        match self {
            Self::Block => "Block of the model: layer17",
            Self::Layer => "Name with the number of its layer folded: layer*/ff2/wu",
            Self::Part => "First two names, with the number of the layer folded: layer*/ff2",
            Self::Operator => "Operator, or the kind of programs without an operation",
            Self::Pass => "Forward, backward or update",
            Self::Stage => "Stage of the pipeline, by the blocks that it computes",
            Self::Ipu => "IPU of the replica",
        }
    }

    /// The function of SQL that gives it for the name of an operation or a program.
    pub fn sql_function(self) -> &'static str {
        match self {
            Self::Block => "block_of",
            Self::Layer => "layer_of",
            Self::Part => "part_of",
            Self::Operator => "operator_of",
            Self::Pass => "pass_of",
            Self::Stage => "stage_of",
            Self::Ipu => "ipu_of",
        }
    }

    /// The key that distinguishes most rows within one of its groups; `None` if rows follow.
    pub fn below(self) -> Option<Self> {
        match self {
            Self::Stage | Self::Ipu => Some(Self::Block),
            Self::Pass | Self::Operator | Self::Part => Some(Self::Layer),
            Self::Block | Self::Layer => None,
        }
    }
}

/// The label of rows that have no such property.
pub const NO_LABEL: &str = "(none)";

/// The reason why rows cannot be grouped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GroupingError {
    /// No column names operations.
    #[error(
        "no column of the table {table:?} names operations, so its rows cannot be grouped; in SQL, \
         layer_of(name) and similar functions group by the name of a program"
    )]
    NoGroups { table: String },
    /// The report cannot be read.
    #[error(transparent)]
    Report(#[from] ReportError),
}

/// Rows with the same label.
#[derive(Clone, Debug, PartialEq)]
pub struct RowGroup {
    pub label: String,
    /// Places of its rows, in the order in which they were given.
    pub rows: Vec<u32>,
    /// A cell for each column of the table: an aggregate of the numbers, or the words that all rows
    /// have in common.
    pub cells: Vec<TableCell>,
}

impl DataTable {
    /// The same with the labels that its rows are grouped by; unchanged if no column names
    /// operations.
    ///
    /// # Errors
    /// Parts of the file that cannot be read.
    pub fn with_keys(mut self, report: &Report) -> Result<Self, ReportError> {
        if self.columns.iter().any(|column| column.names_operations()) {
            let index = OperationIndex::of(report)?;
            self.keys = Some(RowKeys::new(&self, &index).into());
        }
        Ok(self)
    }

    /// The first column whose cells add up within a group.
    pub fn first_sum(&self) -> Option<usize> {
        self.columns.iter().position(TableColumn::is_summed_in_groups)
    }

    /// The column that names its rows: of operations, or else the first.
    pub fn name_column(&self) -> usize {
        let names = |column: &TableColumn| column.subject == Some(ColumnSubject::Operation);
        self.columns.iter().position(names).unwrap_or(0)
    }

    /// The groups of some rows, those with the largest first sum first.
    pub fn groups(&self, key: GroupKey, rows: &[u32]) -> Vec<RowGroup> {
        let Some(keys) = &self.keys else { return Vec::new() };
        let mut members: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
        for row in rows {
            members.entry(keys.label(key, *row as usize)).or_default().push(*row);
        }
        let mut groups = Vec::with_capacity(members.len());
        for (label, rows) in members {
            let cells = (0..self.columns.len()).map(|at| self.aggregate(at, &rows)).collect();
            groups.push(RowGroup { label: label.to_owned(), rows, cells });
        }
        if let Some(at) = self.first_sum() {
            groups.sort_by(|a, b| b.cells[at].compare(&a.cells[at]));
        }
        groups
    }

    /// The value of a column over some rows: numbers are aggregated, and a text is kept if all rows
    /// have it.
    pub fn aggregate(&self, column: usize, rows: &[u32]) -> TableCell {
        let cells = || rows.iter().filter_map(|row| self.rows.get(*row as usize)?.get(column));
        let mut known = cells().filter(|cell| **cell != TableCell::Missing);
        let Some(first) = known.next() else { return TableCell::Missing };
        if first.is_name() {
            let alike = cells().all(|cell| cell == first);
            return if alike { first.clone() } else { "".into() };
        }
        match self.columns[column].aggregate {
            ColumnAggregate::Sum | ColumnAggregate::SumOfGroup => {
                known.try_fold(first.clone(), |sum, cell| sum.plus(cell)).into()
            }
            ColumnAggregate::Max => {
                let mut most = first;
                for cell in known {
                    if most.compare(cell) == Ordering::Less {
                        most = cell;
                    }
                }
                most.clone()
            }
            ColumnAggregate::None if rows.len() == 1 => first.clone(),
            ColumnAggregate::None => TableCell::Missing,
        }
    }

    /// One row for each group: its label, how many rows it has, its share of the first sum, and
    /// every column that aggregates; `None` for a table without keys.
    pub fn grouped_by(&self, key: GroupKey) -> Option<Self> {
        self.keys.as_ref()?;
        let all: Vec<u32> = (0..).take(self.rows.len()).collect();
        let groups = self.groups(key, &all);
        let first_sum = self.first_sum();
        let whole = first_sum.map(|at| self.aggregate(at, &all));
        let mut columns = vec![
            TableColumn::text(key.title()).about(key.about()),
            TableColumn::number("Rows").about("Rows of the table in the group"),
        ];
        let mut rows: Vec<Vec<TableCell>> = groups
            .iter()
            .map(|of| vec![of.label.as_str().into(), TableCell::Count(of.rows.len() as u64)])
            .collect();
        for (at, column) in self.columns.iter().enumerate() {
            if !column.is_in_groups_of(key) {
                continue;
            }
            columns.push(column.clone());
            for (row, group) in rows.iter_mut().zip(&groups) {
                row.push(group.cells[at].clone());
            }
            if Some(at) == first_sum {
                columns.push(share_column(column));
                for (row, group) in rows.iter_mut().zip(&groups) {
                    let share = share_of(&group.cells[at], whole.as_ref());
                    row.push(share.map(TableCell::Share).into());
                }
            }
        }
        Some(Self { totals: self.totals, ..Self::new(columns, rows) })
    }
}

/// The column of the shares that groups have of the sum of another column.
fn share_column(of: &TableColumn) -> TableColumn {
    TableColumn::part(format!("Share of {}", of.title.to_lowercase()))
        .about("Sum of the group / sum of all rows of the table")
}

/// A part of a sum; `None` if the sum is zero.
pub fn share_of(part: &TableCell, whole: Option<&TableCell>) -> Option<f64> {
    let whole = whole?.number().filter(|whole| *whole > 0.0)?;
    Some(part.number()? / whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::TrainingPass;

    fn report() -> (tempfile::TempDir, Report) {
        let mut builder = ReportBuilder::new(2, 8);
        let mut at = 0;
        for (layer, kind, pass) in [
            ("layer0/ff2", "matmul", TrainingPass::Forward),
            ("layer1/ff2", "matmul", TrainingPass::Forward),
            ("layer1/ff2/wu", "matmul_grad_weight", TrainingPass::Backward),
            ("loss", "cross_entropy", TrainingPass::Forward),
        ] {
            let operation = builder.operation(layer, kind);
            builder.parts.operations[operation.index()].pass = pass;
            let work = builder.compute(&format!("{layer}/Convolve"), 100);
            builder.parts.programs[work.index()].operation = Some(operation);
            builder.run(work, at..at + 100);
            at += 100;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let report = Report::open(builder.write(directory.path()).expect("written"));
        (directory, report.expect("opened"))
    }

    fn labels(table: &DataTable, key: GroupKey) -> Vec<String> {
        let grouped = table.grouped_by(key).expect("grouped");
        grouped.rows.iter().map(|row| format!("{} x {}", row[0].text(), row[1].text())).collect()
    }

    #[test]
    fn operations_have_the_labels_of_their_record() {
        let (_directory, report) = report();
        let table = tables::at_path("operations/operations").expect("known").keyed(&report);
        let table = table.expect("read");
        let of = |key| labels(&table, key);
        assert_eq!(of(GroupKey::Layer), ["layer*/ff2 x 2", "layer1/ff2/wu x 1", "loss x 1"]);
        assert_eq!(of(GroupKey::Part), ["layer*/ff2 x 3", "loss x 1"]);
        assert_eq!(of(GroupKey::Pass), ["Forward x 3", "Backward x 1"]);
        assert_eq!(of(GroupKey::Block), ["(none) x 4"]);
        let operators = ["matmul x 2", "cross_entropy x 1", "matmul_grad_weight x 1"];
        assert_eq!(of(GroupKey::Operator), operators);
    }

    /// Sums of groups are those of rows, in every table and by every key; no row is lost.
    #[test]
    fn groups_add_up_to_all_rows() {
        let (_directory, report) = report();
        let mut grouped = 0;
        for known in tables::all() {
            let table = known.keyed(&report).expect("read");
            if table.keys.is_none() {
                continue;
            }
            for key in GroupKey::ALL {
                super::laws::check(&table, key);
                grouped += 1;
            }
        }
        assert!(grouped > 50, "{grouped}");
    }
}

/// Laws of the groups of any table, which tests of real reports check too.
#[doc(hidden)]
pub mod laws {
    use super::{DataTable, GroupKey, TableCell};

    /// Checks that every row is in exactly one group, and that groups add up to the sum of all
    /// rows.
    ///
    /// # Panics
    /// If they do not.
    pub fn check(table: &DataTable, key: GroupKey) {
        let all: Vec<u32> = (0..).take(table.rows.len()).collect();
        let groups = table.groups(key, &all);
        let mut rows: Vec<u32> = groups.iter().flat_map(|of| of.rows.iter().copied()).collect();
        rows.sort_unstable();
        assert_eq!(rows, all, "{key:?}: rows of groups");
        for (at, column) in table.columns.iter().enumerate() {
            if !column.is_summed_in_groups() {
                continue;
            }
            let of_rows = sum(table.rows.iter().map(|row| &row[at]));
            let of_groups = sum(groups.iter().map(|group| &group.cells[at]));
            let near = (of_rows - of_groups).abs() <= of_rows.abs() * 1e-9;
            assert!(near, "{key:?}, {}: {of_groups} of {of_rows}", column.title);
        }
    }

    fn sum<'a>(cells: impl Iterator<Item = &'a TableCell>) -> f64 {
        cells.filter(|cell| !cell.is_name()).filter_map(TableCell::number).sum()
    }
}
