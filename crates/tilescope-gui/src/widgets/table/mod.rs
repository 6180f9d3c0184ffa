//! Tables: sortable columns, a filter box, groups of rows, a row of totals. Only the rows on the screen
//! are laid out; sorting, filtering and grouping happen off the UI thread.

mod column_widths;
mod row_menu;
mod row_order;

use super::elided_text::without_middle;
use super::requested_control::takes_request_of_table;
use super::{choice_ui, hint_ui, neighbour, open_choice, search_ui};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use column_widths::TableColumnWidths;
use egui::accesskit::Role;
use egui::{
    Align, Color32, CornerRadius, Label, Layout, Rect, Response, RichText, Sense, TextStyle, Ui,
    WidgetInfo, vec2,
};
use egui_extras::{Column as Width, TableBuilder};
use row_menu::{RowMenu, RowMenuChoice};
use row_order::{ShownGroup, TableLine, TableQuestion, TableRowOrder, order};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use tilescope_analysis::data_table::{ColumnAlignment, DataTable, TableCell, TableColumn};
use tilescope_analysis::grouping::GroupKey;
use tilescope_report::units::{Bytes, grouped, percent};

const ROW_HEIGHT: f32 = 24.0;
/// Room for the number of a share beside its bar.
const SHARE_NUMBER: f32 = 54.0;
/// Name of the choice of groups.
const GROUP_BY: &str = "Group by";
const BETWEEN: f32 = 12.0;
/// The sign after the title of a column sorted in descending order.
const DESCENDING: &str = " ▼";
/// The sign after the title of a column sorted in ascending order.
const ASCENDING: &str = " ▲";

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
    /// The grouping of rows. Until the user chooses one, long tables are grouped.
    group_by: ChosenGroups,
    /// Paths of groups whose rows are shown.
    #[serde(skip)]
    open: BTreeSet<String>,
    #[serde(skip)]
    order: BackgroundQuery<TableQuestion, TableRowOrder>,
    /// The line that a key has led to, until it has the focus.
    #[serde(skip)]
    focus: Option<usize>,
    /// Entries of the menu of a row beside copying and filtering.
    #[serde(skip)]
    entries: &'static [&'static str],
    /// A row, and the index of the entry that was chosen in its menu.
    #[serde(skip)]
    entered: Option<(usize, usize)>,
}

/// The grouping that the user chose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ChosenGroups {
    /// The most useful key of a long table; no groups for a short one.
    #[default]
    ByItself,
    Nothing,
    By(GroupKey),
}

impl ChosenGroups {
    fn key(self, table: &DataTable) -> Option<GroupKey> {
        let keys = table.keys.as_ref()?;
        match self {
            Self::ByItself => keys.at_first(table.rows.len()),
            Self::Nothing => None,
            // A saved choice may be of another report.
            Self::By(key) => Some(key).filter(|key| keys.count(*key) > 1),
        }
    }
}

/// The selectable and selected rows of a table, its open groups, and the line that a key moves to.
struct TableRowSelection<'a> {
    /// `None` if rows cannot be chosen.
    chosen: Option<&'a [usize]>,
    focus: &'a mut Option<usize>,
    open: &'a mut BTreeSet<String>,
}

impl TableState {
    /// A state whose rows keep their given order until the user sorts them.
    pub(crate) fn as_given() -> Self {
        Self { as_given: true, ..Self::default() }
    }

    /// Lets rows keep their given order until the user sorts them, or not.
    pub(crate) fn keep_order(&mut self, as_given: bool) {
        self.as_given = as_given;
    }

    /// Sets the entries in the menu of every row. Returns a row and the entry of its menu that was
    /// chosen in the last frame.
    pub(crate) fn menu_entries(
        &mut self,
        entries: &'static [&'static str],
    ) -> Option<(usize, usize)> {
        self.entries = entries;
        self.entered.take()
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
            hint_ui(ui, "No rows");
            return None;
        }
        ui.horizontal(|ui| {
            ui.add_space(spacing::S);
            search_ui(ui, &mut self.filter, hint, 220.0);
            self.group_by_ui(ui, table);
            self.count_ui(ui, table);
        });
        ui.add_space(spacing::XS);
        let first_number = table.columns.iter().position(|column| !is_wide(column)).unwrap_or(0);
        // After the last column all rows are equal.
        let unsorted = if self.as_given { table.columns.len() } else { first_number };
        let (column, descending) = self.sort.unwrap_or((unsorted, true));
        let filter = self.filter.trim().to_lowercase();
        let shared = table.clone();
        let question = TableQuestion {
            generation,
            // A saved place may sort by a column that this table does not have.
            column: column.min(table.columns.len()),
            descending,
            filter,
            group_by: self.group_by.key(table),
            open: self.open.clone(),
        };
        let compute = move |question: &TableQuestion| order(&shared, question);
        let asked = self.order.compute(ui.ctx(), workers, &question, compute);
        // The order of another table says nothing about the rows of this one.
        let order = asked.answer().filter(|order| order.generation == generation)?;
        let mut menu = RowMenu { entries: self.entries, chosen: None };
        let sort = &mut self.sort;
        let focus = &mut self.focus;
        let open = &mut self.open;
        let choice = TableRowSelection { chosen: choice, focus, open };
        let frame = egui::Frame::new().inner_margin(egui::Margin {
            left: 14,
            right: 8,
            ..egui::Margin::ZERO
        });
        let sorted = (column, descending);
        let clicked = frame
            .show(ui, |ui| {
                // The rows leave room for the scroll bar beside them.
                let bar = ui.spacing().scroll.allocated_width();
                let widths = TableColumnWidths::of(ui, table, order, ui.available_width() - bar);
                let needed = widths.total() + bar;
                if needed <= ui.available_width() {
                    return rows_ui(ui, (table, &widths), order, (sorted, sort), choice, &mut menu);
                }
                let area = egui::ScrollArea::horizontal().auto_shrink(false).id_salt("columns");
                area.show(ui, |ui| {
                    // Columns keep their smallest width and the table scrolls, instead of squeezing
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

    /// The choice of what rows are grouped by, where that tells them apart.
    fn group_by_ui(&mut self, ui: &mut Ui, table: &DataTable) {
        let Some(keys) = &table.keys else { return };
        let useful = keys.useful().map(|key| (Some(key), key.title()));
        let choices: Vec<_> = std::iter::once((None, "No groups")).chain(useful).collect();
        if choices.len() == 1 {
            return;
        }
        let is_requested = takes_request_of_table(ui.ctx(), GROUP_BY);
        let chosen = choice_ui(ui, GROUP_BY, &choices, self.group_by.key(table));
        if is_requested {
            open_choice(ui, GROUP_BY);
        }
        if let Some(chosen) = chosen {
            self.group_by = chosen.map_or(ChosenGroups::Nothing, ChosenGroups::By);
            self.open.clear();
        }
    }

    fn count_ui(&self, ui: &mut Ui, table: &DataTable) {
        // The last count stays while a filter is being applied: numbers would flicker at every
        // letter.
        let shown = self.order.latest().map_or(table.rows.len(), |order| order.rows.len());
        let all = table.rows.len();
        let rows = if shown == all {
            format!("{} rows", grouped(all as u64))
        } else {
            format!("{} of {} rows", grouped(shown as u64), grouped(all as u64))
        };
        let groups = self.order.latest().map_or(0, |order| order.groups_at_top());
        if groups == 0 {
            ui.add(Label::new(RichText::new(rows).weak()).truncate());
            return;
        }
        let groups = format!("{} groups", grouped(groups as u64));
        let all = format!("{groups}, {rows}");
        let font = TextStyle::Body.resolve(ui.style());
        let width = ui.painter().layout_no_wrap(all.clone(), font, Color32::PLACEHOLDER).size().x;
        if width <= ui.available_width() {
            ui.add(Label::new(RichText::new(all).weak()).truncate());
        } else {
            // A number that is cut looks like a smaller one.
            ui.add(Label::new(RichText::new(groups).weak()).truncate()).on_hover_text(all);
        }
    }
}

fn rows_ui(
    ui: &mut Ui,
    (table, widths): (&DataTable, &TableColumnWidths),
    order: &TableRowOrder,
    (sorted, sort): ((usize, bool), &mut Option<(usize, bool)>),
    choice: TableRowSelection<'_>,
    menu: &mut RowMenu,
) -> Option<usize> {
    ui.spacing_mut().item_spacing = egui::vec2(BETWEEN, 0.0);
    let totals = usize::from(table.totals && !order.rows.is_empty());
    let mut clicked = None;
    let reacts = choice.chosen.is_some() || !order.groups.is_empty();
    let sense = if reacts { Sense::click() } else { Sense::hover() };
    let builder = TableBuilder::new(ui)
        .striped(true)
        .vscroll(true)
        .auto_shrink(false)
        // A panel may be lower than the default minimum height of a table.
        .min_scrolled_height(0.0);
    // From left to right, so that the contents of a cell do not make its row higher.
    let across = Layout::left_to_right(Align::Center);
    let mut builder = builder.sense(sense).cell_layout(across);
    let name = table.name_column();
    for at in widths.shown.iter().copied() {
        let column = &table.columns[at];
        let width = &widths.each[at];
        builder = builder.column(match (is_wide(column), column.short) {
            (true, true) => Width::exact(*width).clip(true),
            (true, false) => Width::remainder().at_least(*width).clip(true),
            (false, _) => Width::exact(*width),
        });
        if at == name && order.shares.is_some() {
            builder = builder.column(Width::exact(widths.share).clip(true));
        }
    }
    let wanted = *choice.focus;
    if let Some(line) = wanted.filter(|line| *line < order.lines.len()) {
        builder = builder.scroll_to_row(line + totals, None);
    }
    // Text that can be selected takes the clicks that are to choose its row.
    let selectable = !reacts;
    let header = builder.header(26.0, |mut row| {
        for index in widths.shown.iter().copied() {
            row.col(|ui| header_ui(ui, &table.columns[index], index, sorted, sort));
            if let Some((of, _)) = order.shares.as_ref().filter(|_| index == name) {
                row.col(|ui| share_header_ui(ui, &table.columns[*of]));
            }
        }
    });
    header.body(|body| {
        body.rows(ROW_HEIGHT, order.lines.len() + totals, |mut row| {
            let index = row.index();
            if totals == 1 && index == 0 {
                for (place, index) in widths.shown.iter().copied().enumerate() {
                    let column = &table.columns[index];
                    let words: TableCell = if place == 0 { "Total" } else { "" }.into();
                    let sum = order.sums[index].as_ref().unwrap_or(&words);
                    row.col(|ui| {
                        let text = strong(sum.text_in(numbers(ui)));
                        cell_ui(ui, column, (sum, text), selectable);
                    });
                    if index == name && order.shares.is_some() {
                        row.col(|_| {});
                    }
                }
                return;
            }
            let line = index - totals;
            let (cells, depth, group) = match order.lines.get(line) {
                Some(TableLine::Group(at)) => {
                    let Some(shown) = order.groups.get(*at) else { return };
                    (&shown.group.cells, shown.depth, Some(shown))
                }
                // `row` is in range: orders of other tables were turned away by their generation.
                Some(TableLine::Row { row, depth }) => (&table.rows[*row], *depth, None),
                None => return,
            };
            let is_chosen = |place: &usize| match (group, order.lines.get(line)) {
                (Some(shown), _) => {
                    !shown.is_open && shown.group.rows.iter().any(|row| *row as usize == *place)
                }
                (None, Some(TableLine::Row { row, .. })) => row == place,
                (None, _) => false,
            };
            let chosen = choice.chosen.is_some_and(|chosen| chosen.iter().any(is_chosen));
            row.set_selected(chosen);
            let mut pointed: Option<Response> = None;
            for at in widths.shown.iter().copied() {
                let (column, cell) = (&table.columns[at], &cells[at]);
                let zero = matches!(cell, TableCell::Bytes(Bytes::ZERO) | TableCell::Count(0));
                row.col(|ui| match group.filter(|_| at == name) {
                    Some(shown) => group_name_ui(ui, shown),
                    None => {
                        if at == name && depth > 0 {
                            ui.add_space(depth as f32 * spacing::INDENT);
                        }
                        let text = RichText::new(cell.text_in(numbers(ui)));
                        let text = if zero { text.weak() } else { text };
                        let cell = cell_ui(ui, column, (cell, text), selectable);
                        pointed = pointed.take().map(|all| all | cell.clone()).or(Some(cell));
                    }
                });
                if at == name && order.shares.is_some() {
                    row.col(|ui| {
                        share_ui(ui, order.share(cells), order.largest_share, group.is_some());
                    });
                }
            }
            if let Some(TableLine::Row { row: place, .. }) = order.lines.get(line) {
                // Text that can be selected lies above its row.
                let pointed = pointed.map_or_else(|| row.response(), |of| row.response() | of);
                menu.ui(&pointed, table, *place);
            }
            if !reacts {
                return;
            }
            let response = row.response();
            match group {
                Some(shown) => {
                    name_row(&response, shown.is_open, &shown.name());
                    if response.clicked() && !choice.open.remove(&shown.path) {
                        choice.open.insert(shown.path.clone());
                    }
                }
                None => {
                    // Not every program has a name: its kind stands in for it.
                    let mut names = cells.iter().map(TableCell::text);
                    let name = names.find(|text| !text.is_empty()).unwrap_or_default();
                    name_row(&response, chosen, &name);
                }
            }
            let place = |line: usize| match order.lines.get(line) {
                Some(TableLine::Row { row, .. }) if choice.chosen.is_some() => Some(*row),
                _ => None,
            };
            clicked = place(line).filter(|_| response.clicked()).or(clicked);
            // Rows off the screen do not exist: one that a key leads to is scrolled to first,
            // and takes the focus in the frame that lays it out.
            if *choice.focus == Some(line) {
                *choice.focus = None;
                response.request_focus();
            }
            if let Some(next) = neighbour(&response, line, order.lines.len()) {
                *choice.focus = Some(next);
                clicked = place(next).or(clicked);
            }
        });
    });
    clicked
}

/// Sets the accessible name of a row.
fn name_row(response: &Response, selected: bool, name: &str) {
    response.widget_info(|| WidgetInfo::selected(Role::Row, true, selected, name));
}

/// The label of a group, and how many rows it has.
fn group_name_ui(ui: &mut Ui, shown: &ShownGroup) {
    ui.add_space(shown.depth as f32 * spacing::INDENT);
    let arrow = if shown.is_open { "▼" } else { "▶" };
    ui.spacing_mut().item_spacing.x = spacing::XS;
    ui.add(Label::new(RichText::new(arrow).weak().size(text_size::SIGN)).selectable(false));
    let count = format!("× {}", grouped(shown.group.rows.len() as u64));
    let room = (ui.available_width() - 12.0 - count.chars().count() as f32 * 7.0).max(20.0);
    ui.scope(|ui| {
        ui.set_max_width(room);
        let label = shown.group.label.as_str();
        match path_that_fits(ui, label) {
            Some(short) => {
                let response = ui.add(Label::new(short).extend().selectable(false));
                response.on_hover_text(label);
            }
            None => drop(ui.add(Label::new(label).truncate().selectable(false))),
        }
    });
    ui.add(Label::new(RichText::new(count).weak()).selectable(false));
}

/// Shows the head of the column of shares, with the column that they are shares of.
fn share_header_ui(ui: &mut Ui, of: &TableColumn) {
    let palette = ThemePalette::for_ui(ui);
    let title = format!("Share of {}", of.title.to_lowercase());
    let text = RichText::new(title).color(palette.weak_text).size(text_size::SMALL);
    let hint = format!("{}: part / sum of all rows of the table", of.title);
    ui.add(Label::new(text).truncate().selectable(false)).on_hover_text(hint);
}

/// A share as a bar relative to the largest share, and as a number.
fn share_ui(ui: &mut Ui, share: Option<f64>, largest: f64, is_group: bool) {
    let Some(share) = share else { return };
    let palette = ThemePalette::for_ui(ui);
    let room = ui.available_rect_before_wrap();
    let part = (share / largest.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0) as f32;
    let length = (room.width() - SHARE_NUMBER).max(0.0) * part;
    let size = vec2(length.max(1.0), ROW_HEIGHT - 14.0);
    let corner = egui::pos2(room.left(), room.center().y - size.y / 2.0);
    let colour = if is_group { palette.accent } else { palette.outline };
    ui.painter().rect_filled(Rect::from_min_size(corner, size), CornerRadius::same(2), colour);
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
        ui.add(Label::new(percent(share)).selectable(false));
    });
}

/// Shows a cell with its text. All digits of a shortened number are its hover text and its accessible
/// name.
fn cell_ui(
    ui: &mut Ui,
    column: &TableColumn,
    (cell, text): (&TableCell, RichText),
    selectable: bool,
) -> Response {
    let is_text = is_wide(column);
    let layout = if is_text {
        Layout::left_to_right(Align::Center)
    } else {
        Layout::right_to_left(Align::Center)
    };
    ui.with_layout(layout, |ui| {
        if is_text && let Some(short) = path_that_fits(ui, text.text()) {
            let label = Label::new(short).extend().selectable(false);
            let response = ui.add(label).on_hover_text(text.text());
            response.widget_info(|| WidgetInfo::labeled(Role::Label, true, text.text()));
            return response;
        }
        let label = Label::new(text.clone()).truncate();
        // Only text can be too long for its column, also among numbers.
        let is_cut = is_text || matches!(cell, TableCell::Text(_));
        let label = if is_cut { label } else { Label::new(text.clone()).extend() };
        let response = ui.add(label.selectable(selectable));
        let exact = cell.exact();
        if cell.is_name() || exact == text.text() {
            return response;
        }
        let response = response.on_hover_text(&exact);
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &exact));
        response
    })
    .inner
}

/// Omits the middle of a path of names if all of it does not fit. Names of one operation begin
/// alike and differ at their ends.
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
            // Numbers sort from the largest at first, text from the beginning of the alphabet.
            let first = !is_wide(column);
            *sort = Some((index, if chosen { !descending } else { first }));
        }
    });
}
