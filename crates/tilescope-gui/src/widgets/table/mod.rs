//! Tables: sortable columns, a filter box, a row of totals. Only the visible rows are laid out;
//! sorting and filtering run off the UI thread.

mod row_order;

use super::elided_text::without_middle;
use super::{hint_ui, neighbour, search_ui};
use crate::theme::fonts::{strong, strong_family};
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use egui::accesskit::Role;
use egui::{Align, FontId, Label, Layout, RichText, Sense, TextStyle, Ui, WidgetInfo};
use egui_extras::{Column as Width, TableBuilder};
use row_order::{TableRowOrder, order};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::{ColumnAlignment, DataTable, TableCell, TableColumn};
use tilescope_report::units::{Bytes, grouped};

const ROW_HEIGHT: f32 = 24.0;
const WORDS_WIDTH: f32 = 120.0;
/// The smallest width of a single text column, because only its names distinguish rows.
const NAME_WIDTH: f32 = 210.0;
const SHORT_WIDTH: f32 = 72.0;
const BETWEEN: f32 = 12.0;
/// The sign after the title of a column sorted in descending order.
const DESCENDING: &str = " ▼";
/// The sign after the title of a column sorted in ascending order.
const ASCENDING: &str = " ▲";

/// The smallest readable width of a column with the widest number `widest`. All digits of numbers
/// are shown, because truncated ones look like other numbers, and the whole title with its sort
/// sign.
fn least_width(
    ui: &Ui,
    (column, words_width): (&TableColumn, f32),
    widest: Option<&TableCell>,
) -> f32 {
    match (is_wide(column), column.short) {
        (true, true) => return SHORT_WIDTH,
        (true, false) => return words_width,
        (false, _) => {}
    }
    let colour = ui.visuals().text_color();
    let measure = |text: String, font: FontId| {
        // Signs differ in width.
        ui.painter().layout_no_wrap(text, font, colour).size().x.ceil() + 4.0
    };
    let head =
        measure(format!("{}{DESCENDING}", column.title), FontId::proportional(text_size::SMALL));
    // In the font of the totals.
    let font = FontId::new(TextStyle::Body.resolve(ui.style()).size, strong_family());
    let number = widest.map_or(0.0, |cell| measure(cell.text(), font));
    head.max(number).max(SHORT_WIDTH)
}

/// Returns true if a column takes the remaining width.
fn is_wide(column: &TableColumn) -> bool {
    column.alignment == ColumnAlignment::Left
}

/// The user's settings of a table.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TableState {
    filter: String,
    /// True if rows keep their given order until the user sorts them.
    as_given: bool,
    /// The column and direction; `None` sorts by the first column of numbers, largest first.
    sort: Option<(usize, bool)>,
    #[serde(skip)]
    order: BackgroundQuery<(u64, usize, bool, String), TableRowOrder>,
    /// The row that a key moved to, until it has the focus.
    #[serde(skip)]
    focus: Option<usize>,
}

/// The selectable and selected rows of a table, and the row that a key moves to.
struct TableRowSelection<'a> {
    chosen: &'a [usize],
    focus: &'a mut Option<usize>,
}

impl TableState {
    /// A state whose rows keep their given order until the user sorts them.
    pub(crate) fn as_given() -> Self {
        Self { as_given: true, ..Self::default() }
    }

    /// Shows a table; `generation` distinguishes tables.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        table: &Arc<DataTable>,
        generation: u64,
        hint: &str,
    ) {
        self.shown_ui(ui, workers, table, generation, hint, None);
    }

    /// Shows a table with selectable rows. Returns the clicked row.
    pub(crate) fn choose_ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        table: &Arc<DataTable>,
        generation: u64,
        hint: &str,
        chosen: &[usize],
    ) -> Option<usize> {
        self.shown_ui(ui, workers, table, generation, hint, Some(chosen))
    }

    fn shown_ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        table: &Arc<DataTable>,
        generation: u64,
        hint: &str,
        choice: Option<&[usize]>,
    ) -> Option<usize> {
        if table.rows.is_empty() {
            hint_ui(ui, "There is nothing to list here.");
            return None;
        }
        ui.horizontal(|ui| {
            ui.add_space(spacing::S);
            search_ui(ui, &mut self.filter, hint, 220.0);
            self.count_ui(ui, table);
        });
        ui.add_space(spacing::XS);
        let first_number = table.columns.iter().position(|column| !is_wide(column)).unwrap_or(0);
        // After the last column all rows are equal.
        let unsorted = if self.as_given { table.columns.len() } else { first_number };
        let (column, descending) = self.sort.unwrap_or((unsorted, true));
        let filter = self.filter.trim().to_lowercase();
        let shared = table.clone();
        // A saved place may sort by a column that this table does not have.
        let key = (generation, column.min(table.columns.len()), descending, filter);
        let asked = self.order.compute(
            ui.ctx(),
            workers,
            &key,
            move |(generation, column, descending, text)| TableRowOrder {
                generation: *generation,
                ..order(&shared, *column, *descending, text)
            },
        );
        // The order of another table does not apply to the rows of this one.
        let order = asked.answer().filter(|order| order.generation == generation)?;
        let sort = &mut self.sort;
        let choice = choice.map(|chosen| TableRowSelection { chosen, focus: &mut self.focus });
        let frame = egui::Frame::new().inner_margin(egui::Margin {
            left: 14,
            right: 8,
            ..egui::Margin::ZERO
        });
        let sorted = (column, descending);
        frame
            .show(ui, |ui| {
                let alone =
                    table.columns.iter().filter(|column| is_wide(column) && !column.short).count()
                        == 1;
                let words = if alone { NAME_WIDTH } else { WORDS_WIDTH };
                let columns = table.columns.iter().zip(&order.widest);
                let widths = columns
                    .map(|(column, widest)| least_width(ui, (column, words), widest.as_ref()));
                let widths: Vec<f32> = widths.collect();
                let needed: f32 = widths.iter().map(|width| width + BETWEEN).sum();
                if needed <= ui.available_width() {
                    return rows_ui(ui, (table, &widths), order, sorted, sort, choice);
                }
                let area = egui::ScrollArea::horizontal().auto_shrink(false).id_salt("columns");
                area.show(ui, |ui| {
                    // Columns keep their smallest width and the table scrolls, instead of squeezing
                    // numbers.
                    ui.set_width(needed);
                    rows_ui(ui, (table, &widths), order, sorted, sort, choice)
                })
                .inner
            })
            .inner
    }

    fn count_ui(&self, ui: &mut Ui, table: &DataTable) {
        // The last count stays while a filter is being applied: numbers would flicker at every
        // letter.
        let shown = self.order.latest().map_or(table.rows.len(), |order| order.rows.len());
        let all = table.rows.len();
        let text = if shown == all {
            format!("{} rows", grouped(all as u64))
        } else {
            format!("{} of {} rows", grouped(shown as u64), grouped(all as u64))
        };
        ui.weak(text);
    }
}

fn rows_ui(
    ui: &mut Ui,
    (table, widths): (&DataTable, &[f32]),
    order: &TableRowOrder,
    sorted: (usize, bool),
    sort: &mut Option<(usize, bool)>,
    mut choice: Option<TableRowSelection<'_>>,
) -> Option<usize> {
    ui.spacing_mut().item_spacing = egui::vec2(BETWEEN, 0.0);
    let totals = usize::from(table.totals && !order.rows.is_empty());
    let mut clicked = None;
    let sense = if choice.is_some() { Sense::click() } else { Sense::hover() };
    let builder = TableBuilder::new(ui)
        .striped(true)
        .vscroll(true)
        .auto_shrink(false)
        // A panel may be lower than the default minimum height of a table.
        .min_scrolled_height(0.0);
    // From left to right, so that the contents of a cell do not make its row higher.
    let across = Layout::left_to_right(Align::Center);
    let mut builder = builder.sense(sense).cell_layout(across);
    for (column, width) in table.columns.iter().zip(widths) {
        builder = builder.column(match (is_wide(column), column.short) {
            (true, true) => Width::exact(*width).clip(true),
            (true, false) => Width::remainder().at_least(*width).clip(true),
            (false, _) => Width::exact(*width),
        });
    }
    let wanted = choice.as_ref().and_then(|choice| *choice.focus);
    if let Some(index) = wanted.and_then(|place| order.place_of(place)) {
        builder = builder.scroll_to_row(index + totals, None);
    }
    // Selectable text would take the clicks that select its row.
    let choosing = choice.is_some();
    let header = builder.header(26.0, |mut row| {
        for (index, column) in table.columns.iter().enumerate() {
            row.col(|ui| header_ui(ui, column, index, sorted, sort));
        }
    });
    header.body(|body| {
        body.rows(ROW_HEIGHT, order.rows.len() + totals, |mut row| {
            let index = row.index();
            if totals == 1 && index == 0 {
                for (index, (column, sum)) in table.columns.iter().zip(&order.sums).enumerate() {
                    let text = match sum {
                        Some(sum) => sum.text(),
                        None if index == 0 => "Total".to_owned(),
                        None => String::new(),
                    };
                    row.col(|ui| cell_ui(ui, column, strong(text), !choosing));
                }
                return;
            }
            let Some(place) = order.rows.get(index - totals).map(|row| *row as usize) else {
                return;
            };
            // `place` is in range: orders of other tables were rejected by their generation.
            let chosen = choice.as_ref().is_some_and(|choice| choice.chosen.contains(&place));
            row.set_selected(chosen);
            for (column, cell) in table.columns.iter().zip(&table.rows[place]) {
                let text = RichText::new(cell.text());
                let zero = matches!(cell, TableCell::Bytes(Bytes::ZERO) | TableCell::Count(0));
                let text = if zero { text.weak() } else { text };
                row.col(|ui| cell_ui(ui, column, text, !choosing));
            }
            if let Some(choice) = &mut choice {
                let response = row.response();
                // A program without a name is represented by its kind.
                let mut names = table.rows[place].iter().map(TableCell::text);
                let name = names.find(|text| !text.is_empty()).unwrap_or_default();
                response.widget_info(|| WidgetInfo::selected(Role::Row, true, chosen, &name));
                if response.clicked() {
                    clicked = Some(place);
                }
                // Rows outside the screen do not exist: a row that a key moves to is scrolled to
                // first, and takes the focus in the frame that lays it out.
                if *choice.focus == Some(place) {
                    *choice.focus = None;
                    response.request_focus();
                }
                let next = neighbour(&response, index - totals, order.rows.len());
                if let Some(next) = next.map(|next| order.rows[next] as usize) {
                    *choice.focus = Some(next);
                    clicked = Some(next);
                }
            }
        });
    });
    clicked
}

fn cell_ui(ui: &mut Ui, column: &TableColumn, text: RichText, selectable: bool) {
    let (layout, full) = if is_wide(column) {
        (Layout::left_to_right(Align::Center), true)
    } else {
        (Layout::right_to_left(Align::Center), false)
    };
    ui.with_layout(layout, |ui| {
        if full && let Some(short) = path_that_fits(ui, text.text()) {
            let label = Label::new(short).extend().selectable(false);
            let response = ui.add(label).on_hover_text(text.text());
            response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.text()));
            return;
        }
        let label = Label::new(text.clone()).truncate();
        // Only text can be too long for its column.
        let label = if full { label } else { Label::new(text).extend() };
        ui.add(label.selectable(selectable));
    });
}

/// Omits the middle of a path of names if all of it does not fit. Names of one operation begin
/// alike and differ at their ends.
fn path_that_fits(ui: &Ui, text: &str) -> Option<String> {
    if !text.contains('/') {
        return None;
    }
    let font = TextStyle::Body.resolve(ui.style());
    let colour = ui.visuals().text_color();
    without_middle(ui.painter(), text, font, colour, ui.available_width())
}

fn header_ui(
    ui: &mut Ui,
    column: &TableColumn,
    index: usize,
    (sorted, descending): (usize, bool),
    sort: &mut Option<(usize, bool)>,
) {
    let palette = ThemePalette::for_ui(ui);
    let chosen = sorted == index;
    let arrow = match (chosen, descending) {
        (false, _) => "",
        (true, true) => DESCENDING,
        (true, false) => ASCENDING,
    };
    let align = if is_wide(column) { Align::Min } else { Align::Max };
    let layout = Layout::left_to_right(Align::Center).with_main_align(align);
    ui.with_layout(layout.with_main_justify(true), |ui| {
        let colour = if chosen { palette.text } else { palette.weak_text };
        let text =
            RichText::new(format!("{}{arrow}", column.title)).color(colour).size(text_size::SMALL);
        let button = egui::Button::new(text).frame(false).truncate();
        let response = ui.add(button);
        response
            .widget_info(|| WidgetInfo::selected(Role::ColumnHeader, true, chosen, &column.title));
        let hint = match column.about {
            "" => "Sort by this column".to_owned(),
            about => format!("{about}\nSort by this column"),
        };
        if response.on_hover_text(hint).interact(Sense::click()).clicked() {
            // Numbers sort from the largest at first, text from the beginning of the alphabet.
            let first = !is_wide(column);
            *sort = Some((index, if chosen { !descending } else { first }));
        }
    });
}
