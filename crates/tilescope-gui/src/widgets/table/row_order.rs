//! The visible rows of a table in order, with their sums.

use tilescope_analysis::data_table::{DataTable, TableCell};

/// The visible rows, in order.
#[derive(Default)]
pub(crate) struct TableRowOrder {
    /// The table that it belongs to.
    pub generation: u64,
    /// The indices of the rows.
    pub rows: Vec<u32>,
    /// The sums over these rows; `None` for text columns.
    pub sums: Vec<Option<TableCell>>,
    /// The widest number of each column among these rows and their sums.
    pub widest: Vec<Option<TableCell>>,
}

impl TableRowOrder {
    /// The position of a row of the table among the visible ones.
    pub(crate) fn place_of(&self, row: usize) -> Option<usize> {
        self.rows.iter().position(|known| *known as usize == row)
    }
}

/// The rows that contain a text, sorted by a column.
pub(crate) fn order(
    table: &DataTable,
    column: usize,
    descending: bool,
    filter: &str,
) -> TableRowOrder {
    let holds = |row: &Vec<TableCell>| {
        let mut names = row.iter().filter(|cell| cell.is_name());
        filter.is_empty() || names.any(|cell| cell.text().to_lowercase().contains(filter))
    };
    let mut rows: Vec<u32> =
        (0..).zip(&table.rows).filter(|(_, row)| holds(row)).map(|(index, _)| index).collect();
    rows.sort_by(|a, b| {
        let find_cell = |row: &u32| table.rows[*row as usize].get(column);
        let ordering = match (find_cell(a), find_cell(b)) {
            (Some(a), Some(b)) => a.compare(b),
            (a, b) => a.is_some().cmp(&b.is_some()),
        };
        // Equal rows keep their order in either direction.
        if descending { ordering.reverse() } else { ordering }
    });
    let columns = 0..table.columns.len();
    let sums: Vec<Option<TableCell>> =
        columns.clone().map(|column| sum(table, &rows, column)).collect();
    let widest = columns.zip(&sums).map(|(column, sum)| widest(table, &rows, column, sum));
    let widest = widest.collect();
    TableRowOrder { generation: 0, rows, sums, widest }
}

/// The cell with the most characters, without formatting all of them: for whole numbers the digits
/// count.
fn widest(
    table: &DataTable,
    rows: &[u32],
    column: usize,
    sum: &Option<TableCell>,
) -> Option<TableCell> {
    let cells = rows.iter().filter_map(|row| table.rows[*row as usize].get(column));
    let numbers = cells.chain(sum).filter(|cell| !matches!(cell, TableCell::Text(_)));
    let widest = numbers.max_by(|a, b| letters(a).cmp(&letters(b)).then_with(|| a.compare(b)));
    widest.cloned()
}

fn letters(cell: &TableCell) -> usize {
    match cell {
        TableCell::Real(_) | TableCell::RealChange(_) => cell.text().len(),
        TableCell::Bytes(_) => grouped_letters(cell) + 2,
        TableCell::Change { bytes, .. } => grouped_letters(cell) + 1 + usize::from(*bytes) * 2,
        _ => grouped_letters(cell),
    }
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
        assert_eq!(widest.map(|cell| cell.text().len()), Some("-1,000 B".len()));
    }
}
