//! The widths of the columns of a table. All digits of numbers are shown, because truncated ones look
//! like other numbers; text gives way.

use super::row_order::TableRowOrder;
use super::{BETWEEN, DESCENDING, is_wide};
use crate::theme::fonts::strong_family;
use crate::theme::{numbers, text_size};
use egui::{FontId, TextStyle, Ui};
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};

const WORDS_WIDTH: f32 = 120.0;
/// The smallest width of words beside labels of groups that lack room.
const LEAST_WORDS_WIDTH: f32 = 92.0;
/// The smallest width of a single text column, because only its names distinguish rows.
const NAME_WIDTH: f32 = 210.0;
const SHORT_WIDTH: f32 = 72.0;
/// The largest width of a column of short words.
const MOST_SHORT_WIDTH: f32 = 132.0;
/// The width of the labels of groups, if there is room or the table scrolls.
const GROUP_WIDTH: f32 = 300.0;
/// The width of the labels of groups for which bars and other words give way.
const WANTED_GROUP_WIDTH: f32 = 200.0;
/// The smallest width of the labels of groups: they differ at their ends.
const LEAST_GROUP_WIDTH: f32 = 170.0;
/// The width of the bars of shares, with their number.
const SHARE_WIDTH: f32 = 136.0;
/// The same if labels of groups lack room.
const LEAST_SHARE_WIDTH: f32 = 104.0;
/// As wide as bytes are where three figures are enough.
const WIDEST_BYTES: &str = "+1023 KiB";

/// The smallest widths of the columns of a table.
pub(super) struct TableColumnWidths {
    pub each: Vec<f32>,
    /// The width of the column of shares; 0 without one.
    pub share: f32,
    /// The columns from left to right.
    pub shown: Vec<usize>,
}

impl TableColumnWidths {
    /// Computes the widths for `room` points.
    pub(super) fn of(ui: &Ui, table: &DataTable, order: &TableRowOrder, room: f32) -> Self {
        let names = table.columns.iter().filter(|column| is_name(column)).count();
        let words = if names == 1 { NAME_WIDTH } else { WORDS_WIDTH };
        let mut each: Vec<f32> = Vec::new();
        for (column, widest) in table.columns.iter().zip(&order.widest) {
            each.push(least_width(ui, (column, words), widest.as_ref()));
        }
        let share = if order.shares.is_some() { SHARE_WIDTH } else { 0.0 };
        let shown = (0..each.len()).collect();
        let mut widths = Self { each, share, shown };
        if !order.groups.is_empty() {
            widths.widen_groups(table, room);
        }
        if widths.total() > room {
            widths.shown = numbers_first(table);
        }
        widths
    }

    /// The width of the whole table.
    pub(super) fn total(&self) -> f32 {
        let share = if self.share > 0.0 { self.share + BETWEEN } else { 0.0 };
        share + self.each.iter().map(|width| width + BETWEEN).sum::<f32>()
    }

    /// Gives the labels of groups the room that is left, and some of that of bars and other words.
    fn widen_groups(&mut self, table: &DataTable, room: f32) {
        let label = table.name_column();
        self.each[label] = self.each[label].min(LEAST_GROUP_WIDTH);
        let mut lacking = WANTED_GROUP_WIDTH - self.each[label] - (room - self.total()).max(0.0);
        if self.share > 0.0 {
            lacking -= give(&mut self.share, LEAST_SHARE_WIDTH, lacking);
        }
        for (at, column) in table.columns.iter().enumerate() {
            if at != label && is_name(column) {
                lacking -= give(&mut self.each[at], LEAST_WORDS_WIDTH, lacking);
            }
        }
        let missing = (GROUP_WIDTH - self.each[label]).max(0.0);
        let spare = room - self.total();
        // A table that scrolls far has room for labels; one that nearly fits stays in sight.
        let more = if -spare > missing { missing } else { spare.clamp(0.0, missing) };
        self.each[label] = (self.each[label] + more).max(LEAST_GROUP_WIDTH);
    }
}

/// The columns of a table that scrolls: its names, then numbers, which it is sorted by, then other
/// words.
fn numbers_first(table: &DataTable) -> Vec<usize> {
    let name = table.name_column();
    let mut columns: Vec<usize> = (0..table.columns.len()).collect();
    columns.sort_by_key(|at| (*at != name, is_wide(&table.columns[*at])));
    columns
}

/// Reduces a width by `wanted`, down to `least`. Returns the reduction.
fn give(width: &mut f32, least: f32, wanted: f32) -> f32 {
    let given = wanted.clamp(0.0, (*width - least).max(0.0));
    *width -= given;
    given
}

/// Returns true for columns of long words.
fn is_name(column: &TableColumn) -> bool {
    is_wide(column) && !column.short
}

/// The smallest readable width of a column with the widest cell `widest`: its whole title with its
/// sort sign, and all of a number.
fn least_width(
    ui: &Ui,
    (column, words_width): (&TableColumn, f32),
    widest: Option<&TableCell>,
) -> f32 {
    if is_name(column) {
        return words_width;
    }
    let colour = ui.visuals().text_color();
    let width = |text: String, font: FontId| {
        // Signs differ in width.
        ui.painter().layout_no_wrap(text, font, colour).size().x.ceil() + 4.0
    };
    let head =
        width(format!("{}{DESCENDING}", column.title), FontId::proportional(text_size::SMALL));
    // In the font of the totals.
    let font = FontId::new(TextStyle::Body.resolve(ui.style()).size, strong_family());
    let number = widest.map_or(0.0, |cell| width(cell.text_in(numbers(ui)), font.clone()));
    if is_wide(column) {
        return head.max(number).min(MOST_SHORT_WIDTH);
    }
    let is_bytes = |cell: &&TableCell| {
        matches!(cell, TableCell::Bytes(_) | TableCell::Change { bytes: true, .. })
    };
    // The largest of bytes has few letters where it is a round number of MiB.
    let bytes = widest.filter(is_bytes).map_or(0.0, |_| width(WIDEST_BYTES.to_owned(), font));
    head.max(number).max(bytes).max(SHORT_WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_table_that_scrolls_are_beside_its_names() {
        let columns = vec![
            TableColumn::text("Kind"),
            TableColumn::operation("Operation"),
            TableColumn::short("IPU"),
            TableColumn::number("Cycles"),
            TableColumn::bytes("Memory"),
        ];
        assert_eq!(numbers_first(&DataTable::new(columns, Vec::new())), [1, 3, 4, 0, 2]);
    }

    #[test]
    fn a_width_gives_no_more_than_it_has() {
        let mut width = 136.0;
        assert_eq!(give(&mut width, 104.0, 10.0), 10.0);
        assert_eq!(give(&mut width, 104.0, 100.0), 22.0);
        assert_eq!((give(&mut width, 104.0, 100.0), give(&mut width, 104.0, -5.0)), (0.0, 0.0));
        assert_eq!(width, 104.0);
    }
}
