//! The visible rows and groups of a table in their order, with their sums.

use std::collections::BTreeSet;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::grouping::{GroupKey, RowGroup, share_of};
use tilescope_report::units::grouped;

/// Groups of more rows than these have subgroups, if a further key helps.
const GROUPED_WITHIN: usize = 12;

/// The visible rows and their order, as a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TableQuestion {
    /// The table of the rows.
    pub generation: u64,
    /// The column that rows are sorted by. Past the last one, all rows are equal.
    pub column: usize,
    pub descending: bool,
    /// In lower case.
    pub filter: String,
    pub group_by: Option<GroupKey>,
    /// Paths of groups whose rows are shown.
    pub open: BTreeSet<String>,
}

/// A visible group, which takes one line.
#[derive(Debug, PartialEq)]
pub(crate) struct ShownGroup {
    /// Its label, after those of the groups that contain it.
    pub path: String,
    pub depth: usize,
    pub group: RowGroup,
    pub is_open: bool,
}

/// A line of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TableLine {
    /// A group by its place.
    Group(usize),
    /// A row of the table, with the number of groups above it.
    Row { row: usize, depth: usize },
}

/// The visible rows, in order.
#[derive(Default)]
pub(crate) struct TableRowOrder {
    /// The table that it belongs to.
    pub generation: u64,
    /// Places of the rows, whether or not their group is open.
    pub rows: Vec<u32>,
    /// Rows and groups from top to bottom.
    pub lines: Vec<TableLine>,
    pub groups: Vec<ShownGroup>,
    /// The column that shares are of, and its sum over all rows of the table.
    pub shares: Option<(usize, TableCell)>,
    /// The share of the largest group.
    pub largest_share: f64,
    /// Sums over these rows; `None` for columns of words.
    pub sums: Vec<Option<TableCell>>,
    /// The widest number of each column among these rows and their sums, or the widest short word.
    pub widest: Vec<Option<TableCell>>,
}

impl ShownGroup {
    /// Its label with the number of its rows.
    pub(crate) fn name(&self) -> String {
        format!("{} × {}", self.group.label, grouped(self.group.rows.len() as u64))
    }
}

impl TableRowOrder {
    /// Number of groups that are in no other one.
    pub(crate) fn groups_at_top(&self) -> usize {
        self.groups.iter().filter(|of| of.depth == 0).count()
    }

    /// The share of a row or group; `None` without a total.
    pub(crate) fn share(&self, cells: &[TableCell]) -> Option<f64> {
        let (column, whole) = self.shares.as_ref()?;
        share_of(cells.get(*column)?, Some(whole))
    }

    /// Adds the groups of rows, and the contents of open groups.
    fn push_groups(
        &mut self,
        (table, question): (&DataTable, &TableQuestion),
        (key, rows): (GroupKey, &[u32]),
        (above, depth): (&str, usize),
    ) {
        let mut groups = table.groups(key, rows);
        if depth > 0 && groups.len() == 1 {
            return self.push_rows(rows, depth);
        }
        if question.column == table.name_column() {
            groups.sort_by(|a, b| a.label.cmp(&b.label));
            if question.descending {
                groups.reverse();
            }
        } else if question.column < table.columns.len() {
            groups.sort_by(|a, b| {
                let ordering = a.cells[question.column].compare(&b.cells[question.column]);
                if question.descending { ordering.reverse() } else { ordering }
            });
        }
        for group in groups {
            let path = format!("{above}\n{}", group.label);
            let is_open = question.open.contains(&path);
            let within = if is_open { group.rows.clone() } else { Vec::new() };
            self.lines.push(TableLine::Group(self.groups.len()));
            self.groups.push(ShownGroup { path: path.clone(), depth, group, is_open });
            match key.below().filter(|_| within.len() > GROUPED_WITHIN) {
                Some(below) => {
                    self.push_groups((table, question), (below, &within), (&path, depth + 1));
                }
                None => self.push_rows(&within, depth + 1),
            }
        }
    }

    fn push_rows(&mut self, rows: &[u32], depth: usize) {
        for row in rows {
            self.lines.push(TableLine::Row { row: *row as usize, depth });
        }
    }
}

/// The rows that hold a string, ordered by a column, in groups.
pub(crate) fn order(table: &DataTable, question: &TableQuestion) -> TableRowOrder {
    let TableQuestion { column, descending, filter, .. } = question;
    let holds = |row: &Vec<TableCell>| {
        let mut names = row.iter().filter(|cell| cell.is_name());
        filter.is_empty() || names.any(|cell| cell.text().to_lowercase().contains(filter))
    };
    let mut rows: Vec<u32> =
        (0..).zip(&table.rows).filter(|(_, row)| holds(row)).map(|(index, _)| index).collect();
    rows.sort_by(|a, b| {
        let cells = |row: &u32| table.rows[*row as usize].get(*column);
        let ordering = match (cells(a), cells(b)) {
            (Some(a), Some(b)) => a.compare(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        // Equal rows keep their order in both directions of sorting.
        if *descending { ordering.reverse() } else { ordering }
    });
    let columns = 0..table.columns.len();
    let sums: Vec<Option<TableCell>> =
        columns.clone().map(|column| sum(table, &rows, column)).collect();
    let mut order = TableRowOrder { generation: question.generation, ..TableRowOrder::default() };
    match question.group_by.filter(|_| table.keys.is_some()) {
        Some(key) => {
            order.push_groups((table, question), (key, &rows), ("", 0));
            order.shares = shares(table, *column);
            let of_groups = order.groups.iter().filter_map(|of| order.share(&of.group.cells));
            order.largest_share = of_groups.fold(0.0, f64::max);
        }
        None => order.push_rows(&rows, 0),
    }
    for (column, sum) in columns.zip(&sums) {
        let of_groups = order.groups.iter().map(|of| &of.group.cells[column]).chain(sum);
        order.widest.push(widest(table, &rows, column, of_groups));
    }
    TableRowOrder { rows, sums, ..order }
}

/// The column that shares are shares of, with its sum: the sorted column, or the first that adds up.
fn shares(table: &DataTable, sorted: usize) -> Option<(usize, TableCell)> {
    let of_sorted = table.columns.get(sorted).filter(|column| column.is_summed_in_groups());
    let column = of_sorted.map(|_| sorted).or_else(|| table.first_sum())?;
    let all: Vec<u32> = (0..).take(table.rows.len()).collect();
    Some((column, table.aggregate(column, &all)))
}

/// The cell with most letters, without writing all of them: whole numbers have those of their digits.
fn widest<'a>(
    table: &'a DataTable,
    rows: &'a [u32],
    column: usize,
    sums: impl Iterator<Item = &'a TableCell>,
) -> Option<TableCell> {
    let cells = rows.iter().filter_map(|row| table.rows[*row as usize].get(column));
    let is_short = table.columns[column].short;
    let shown = cells.chain(sums).filter(|cell| is_short || !matches!(cell, TableCell::Text(_)));
    let letters = |cell: &TableCell| match cell {
        TableCell::Text(text) => text.chars().count(),
        // The user may want all digits of bytes.
        TableCell::Bytes(_) => grouped_letters(cell) + 2,
        TableCell::Change { bytes: true, .. } => grouped_letters(cell) + 3,
        TableCell::Count(count) if *count < 1_000_000 => grouped_letters(cell),
        _ => cell.text().chars().count(),
    };
    let longer =
        |a: &&TableCell, b: &&TableCell| letters(a).cmp(&letters(b)).then_with(|| a.compare(b));
    shown.max_by(longer).cloned()
}

/// The number of characters of a whole number with separators.
fn grouped_letters(cell: &TableCell) -> usize {
    let size = cell.number().map_or(1.0, |number| number.abs().max(1.0));
    let digits = size.log10().floor() as usize + 1;
    digits + (digits - 1) / 3
}

fn sum(table: &DataTable, rows: &[u32], column: usize) -> Option<TableCell> {
    table.sum_of(column, rows.iter().map(|row| &table.rows[*row as usize]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_analysis::data_table::TableColumn;
    use tilescope_report::units::Bytes;

    fn table() -> DataTable {
        let row =
            |name: &str, bytes| vec![TableCell::Text(name.to_owned()), TableCell::Bytes(bytes)];
        let columns = vec![TableColumn::text("Variable"), TableColumn::bytes("Size")];
        let rows = vec![row("beta", Bytes(7)), row("alpha", Bytes(40)), row("Alphabet", Bytes(2))];
        DataTable::new(columns, rows).with_totals()
    }

    fn order(table: &DataTable, column: usize, descending: bool, filter: &str) -> TableRowOrder {
        let filter = filter.to_owned();
        super::order(table, &TableQuestion { column, descending, filter, ..Default::default() })
    }

    #[test]
    fn numbers_are_sorted_by_value_not_as_text() {
        assert_eq!(order(&table(), 1, true, "").rows, [1, 0, 2]);
        assert_eq!(order(&table(), 1, false, "").rows, [2, 0, 1]);
        assert_eq!(order(&table(), 0, false, "").rows, [2, 1, 0]);
    }

    #[test]
    fn the_width_of_whole_numbers_is_that_of_their_digits() {
        let columns = vec![TableColumn::number("Value")];
        let cells = [TableCell::Real(1.25), TableCell::Count(70_368_745_177_714)];
        let table = DataTable::new(columns, cells.map(|cell| vec![cell]).to_vec());
        assert_eq!(
            order(&table, 0, false, "").widest,
            [Some(TableCell::Count(70_368_745_177_714))]
        );
    }

    #[test]
    fn totals_cover_the_visible_rows() {
        let order = order(&table(), 1, true, "alpha");
        assert_eq!(order.rows, [1, 2]);
        assert_eq!(order.sums, [None, Some(TableCell::Bytes(Bytes(42)))]);
    }

    #[test]
    fn columns_fit_their_widest_number() {
        let widest = order(&table(), 0, false, "").widest;
        assert_eq!(
            widest,
            [None, Some(TableCell::Bytes(Bytes(49)))],
            "the total is larger than any row"
        );
        let mut changes = table();
        for (row, change) in changes.rows.iter_mut().zip([-1_000, 7, 1_000]) {
            row[1] = TableCell::Change { change, bytes: true };
        }
        let widest = order(&changes, 0, false, "").widest[1].clone();
        assert_eq!(widest.map(|cell| cell.exact().len()), Some("-1,000 B".len()));
    }
}
