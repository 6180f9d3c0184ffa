//! The menu of a row: copies, a filter to its name, and entries of the view.

use egui::{Response, Ui};
use tilescope_analysis::data_table::{DataTable, TableCell};

/// An entry that was chosen in the menu of a row.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RowMenuChoice {
    /// Show rows with this text only.
    Filter(String),
    /// An entry of the view, by its place, for a row.
    Entry { row: usize, entry: usize },
}

/// The entries of a view, and the entry chosen in this frame.
pub(super) struct RowMenu {
    pub(super) entries: &'static [&'static str],
    pub(super) chosen: Option<RowMenuChoice>,
}

impl RowMenu {
    /// Opens with a right click on a row.
    pub(super) fn ui(&mut self, response: &Response, table: &DataTable, row: usize) {
        let mut chosen = None;
        response.context_menu(|ui| chosen = self.entries_ui(ui, table, row));
        if chosen.is_some() {
            self.chosen = chosen;
        }
    }

    fn entries_ui(&self, ui: &mut Ui, table: &DataTable, row: usize) -> Option<RowMenuChoice> {
        let cells = table.rows.get(row)?;
        let mut texts = cells.iter().map(TableCell::text);
        let name = texts.find(|text| !text.is_empty()).unwrap_or_default();
        let mut chosen = None;
        for (entry, title) in self.entries.iter().enumerate() {
            if ui.button(*title).clicked() {
                chosen = Some(RowMenuChoice::Entry { row, entry });
            }
        }
        if !self.entries.is_empty() {
            ui.separator();
        }
        if ui.button("Copy name").clicked() {
            ui.ctx().copy_text(name.clone());
        }
        ui.menu_button("Copy value", |ui| {
            for (column, cell) in table.columns.iter().zip(cells) {
                let shown = cell.exact();
                let title = format!("{}: {shown}", column.title);
                if !shown.is_empty() && ui.button(title).clicked() {
                    ui.ctx().copy_text(cell.plain());
                }
            }
        });
        if ui.button("Copy row").clicked() {
            ui.ctx().copy_text(row_text(cells));
        }
        if ui.button("Filter to this name").clicked() {
            chosen = Some(RowMenuChoice::Filter(name));
        }
        chosen
    }
}

/// The cells of a row with tabs between, as spreadsheets take them.
fn row_text(cells: &[TableCell]) -> String {
    let texts: Vec<String> = cells.iter().map(TableCell::text).collect();
    texts.join("\t")
}
