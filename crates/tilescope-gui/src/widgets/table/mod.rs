//! Tables: sortable columns, a filter box, a row of totals. Only the rows on the screen are laid
//! out; sorting and filtering happen off the UI thread.

mod row_menu;
mod row_order;

use super::elided_text::without_middle;
use super::{hint_ui, neighbour, search_ui};
use crate::theme::fonts::{strong, strong_family};
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use egui::accesskit::Role;
use egui::{Align, FontId, Label, Layout, RichText, Sense, TextStyle, Ui, WidgetInfo};
use egui_extras::{Column as Width, TableBuilder};
use row_menu::{RowMenu, RowMenuChoice};
use row_order::{TableRowOrder, order};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::{ColumnAlignment, DataTable, TableCell, TableColumn};
use tilescope_report::units::{Bytes, grouped};

const ROW_HEIGHT: f32 = 24.0;
const WORDS_WIDTH: f32 = 120.0;
/// The same of the only column of words, in which alone rows differ by name.
const NAME_WIDTH: f32 = 210.0;
const SHORT_WIDTH: f32 = 72.0;
const BETWEEN: f32 = 12.0;
/// Behind the head of the column that rows are sorted by.
const DESCENDING: &str = " ▼";
const ASCENDING: &str = " ▲";

/// Narrowest that a column can be read in, where `widest` is its widest number: of numbers all
/// digits are shown, or they are others; and all of their head, sorted or not.
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
    let width = |text: String, font: FontId| {
        // Signs are not all as wide as each other.
        ui.painter().layout_no_wrap(text, font, colour).size().x.ceil() + 4.0
    };
    let head =
        width(format!("{}{DESCENDING}", column.title), FontId::proportional(text_size::SMALL));
    // As totals are written.
    let font = FontId::new(TextStyle::Body.resolve(ui.style()).size, strong_family());
    let number = widest.map_or(0.0, |cell| width(cell.text(), font));
    head.max(number).max(SHORT_WIDTH)
}

/// Whether a column takes the room that is left.
fn is_wide(column: &TableColumn) -> bool {
    column.alignment == ColumnAlignment::Left
}

/// How the user looks at a table.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TableState {
    filter: String,
    /// Whether rows stay as they are given until the user sorts them.
    as_given: bool,
    /// Column and direction; without it, by the first column of numbers, largest first.
    sort: Option<(usize, bool)>,
    #[serde(skip)]
    order: BackgroundQuery<(u64, usize, bool, String), TableRowOrder>,
    /// The row that a key has led to, until it has the focus.
    #[serde(skip)]
    focus: Option<usize>,
    /// What the menu of a row offers beside copying and filtering.
    #[serde(skip)]
    entries: &'static [&'static str],
    /// A row, and the place of the entry of its menu that was chosen.
    #[serde(skip)]
    entered: Option<(usize, usize)>,
}

/// Which rows of a table can be chosen, which are, and where a key leads to.
struct TableRowSelection<'a> {
    chosen: &'a [usize],
    focus: &'a mut Option<usize>,
}

impl TableState {
    /// Rows stay as they are given until the user sorts them.
    pub(crate) fn as_given() -> Self {
        Self { as_given: true, ..Self::default() }
    }

    /// Offers these entries in the menu of every row from now on. Gives a row and the entry of its
    /// menu that was chosen in the last frame.
    pub(crate) fn menu_entries(
        &mut self,
        entries: &'static [&'static str],
    ) -> Option<(usize, usize)> {
        self.entries = entries;
        self.entered.take()
    }

    /// Shows a table; `generation` tells one table from the next.
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

    /// Shows a table of which rows may be chosen; the row that was clicked.
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
        // Behind the last column all rows are alike.
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
        // The order of another table says nothing about the rows of this one.
        let order = asked.answer().filter(|order| order.generation == generation)?;
        let mut menu = RowMenu { entries: self.entries, chosen: None };
        let sort = &mut self.sort;
        let choice = choice.map(|chosen| TableRowSelection { chosen, focus: &mut self.focus });
        let frame = egui::Frame::new().inner_margin(egui::Margin {
            left: 14,
            right: 8,
            ..egui::Margin::ZERO
        });
        let sorted = (column, descending);
        let clicked = frame
            .show(ui, |ui| {
                let is_name = |column: &&TableColumn| is_wide(column) && !column.short;
                let alone = table.columns.iter().filter(is_name).count() == 1;
                let words = if alone { NAME_WIDTH } else { WORDS_WIDTH };
                let columns = table.columns.iter().zip(&order.widest);
                let widths = columns
                    .map(|(column, widest)| least_width(ui, (column, words), widest.as_ref()));
                let widths: Vec<f32> = widths.collect();
                let needed: f32 = widths.iter().map(|width| width + BETWEEN).sum();
                if needed <= ui.available_width() {
                    return rows_ui(ui, (table, &widths), order, (sorted, sort), choice, &mut menu);
                }
                let area = egui::ScrollArea::horizontal().auto_shrink(false).id_salt("columns");
                area.show(ui, |ui| {
                    // Columns keep their least width and the table scrolls, instead of squeezing
                    // numbers.
                    ui.set_width(needed);
                    rows_ui(ui, (table, &widths), order, (sorted, sort), choice, &mut menu)
                })
                .inner
            })
            .inner;
        match menu.chosen {
            Some(RowMenuChoice::Filter(text)) => self.filter = text,
            Some(RowMenuChoice::Entry { row, entry }) => {
                self.entered = Some((row, entry));
                ui.ctx().request_repaint();
            }
            None => {}
        }
        clicked
    }

    fn count_ui(&self, ui: &mut Ui, table: &DataTable) {
        // The last count stays while a filter is worked on: numbers would flicker at every letter.
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
    (sorted, sort): ((usize, bool), &mut Option<(usize, bool)>),
    mut choice: Option<TableRowSelection<'_>>,
    menu: &mut RowMenu,
) -> Option<usize> {
    ui.spacing_mut().item_spacing = egui::vec2(BETWEEN, 0.0);
    let totals = usize::from(table.totals && !order.rows.is_empty());
    let mut clicked = None;
    let sense = if choice.is_some() { Sense::click() } else { Sense::hover() };
    let builder = TableBuilder::new(ui)
        .striped(true)
        .vscroll(true)
        .auto_shrink(false)
        // A panel may be lower than a table would like to be.
        .min_scrolled_height(0.0);
    // From left to right, so that what a cell holds does not make its row higher.
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
    // Text that can be selected takes the clicks that are to choose its row.
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
                    row.col(|ui| {
                        cell_ui(ui, column, strong(text), !choosing);
                    });
                }
                return;
            }
            let Some(place) = order.rows.get(index - totals).map(|row| *row as usize) else {
                return;
            };
            // `place` is in range: orders of other tables were turned away by their generation.
            let chosen = choice.as_ref().is_some_and(|choice| choice.chosen.contains(&place));
            row.set_selected(chosen);
            let mut pointed: Option<egui::Response> = None;
            for (column, cell) in table.columns.iter().zip(&table.rows[place]) {
                let text = RichText::new(cell.text());
                let zero = matches!(cell, TableCell::Bytes(Bytes::ZERO) | TableCell::Count(0));
                let text = if zero { text.weak() } else { text };
                row.col(|ui| {
                    let cell = cell_ui(ui, column, text, !choosing);
                    pointed = pointed.take().map(|all| all | cell.clone()).or(Some(cell));
                });
            }
            // Text that can be selected lies above its row.
            let pointed = pointed.map_or_else(|| row.response(), |cells| row.response() | cells);
            menu.ui(&pointed, table, place);
            if let Some(choice) = &mut choice {
                let response = row.response();
                // Not every program has a name: its kind stands in for it.
                let mut names = table.rows[place].iter().map(TableCell::text);
                let name = names.find(|text| !text.is_empty()).unwrap_or_default();
                response.widget_info(|| WidgetInfo::selected(Role::Row, true, chosen, &name));
                clicked = response.clicked().then_some(place).or(clicked);
                // Rows off the screen do not exist: one that a key leads to is scrolled to first,
                // and takes the focus in the frame that lays it out.
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

fn cell_ui(ui: &mut Ui, column: &TableColumn, text: RichText, selectable: bool) -> egui::Response {
    let (layout, full) = match is_wide(column) {
        true => (Layout::left_to_right(Align::Center), true),
        false => (Layout::right_to_left(Align::Center), false),
    };
    ui.with_layout(layout, |ui| {
        if full && let Some(short) = path_that_fits(ui, text.text()) {
            let label = Label::new(short).extend().selectable(false);
            let response = ui.add(label).on_hover_text(text.text());
            response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.text()));
            return response;
        }
        let label = Label::new(text.clone()).truncate();
        // Only words can be too long for their column.
        let label = if full { label } else { Label::new(text).extend() };
        ui.add(label.selectable(selectable))
    })
    .inner
}

/// A path of names without its middle, if all of it does not fit: names of one operation begin
/// alike, and their ends tell them apart.
fn path_that_fits(ui: &Ui, text: &str) -> Option<String> {
    text.contains('/').then_some(())?;
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
            // Numbers are sought from the largest, words from the first.
            let first = !is_wide(column);
            *sort = Some((index, if chosen { !descending } else { first }));
        }
    });
}
