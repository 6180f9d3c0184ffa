//! The tables below the graph: the tree of details, variables, vertices, exchanges.

use super::MemoryTab;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, Versioned};
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::TableState;
use crate::widgets::{cut_list_ui, focus_ui, hint_ui, region_ui};
use egui::accesskit::Role;
use egui::{
    Align2, Rect, RichText, ScrollArea, Sense, Stroke, TextStyle, Ui, WidgetInfo, pos2, vec2,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::memory::{self, MemoryList, MemoryTreeRow};
use tilescope_analysis::tables::memory as columns;
use tilescope_report::units::{Bytes, NumberFormat, TileId, VariableId, grouped};
use tilescope_report::{Report, ReportError, ReportPart};

const ROW_HEIGHT: f32 = 23.0;
const VALUE_WIDTH: f32 = 150.0;
/// The smallest and largest width of names in the tree of details.
const NAME_WIDTH: (f32, f32) = (260.0, 360.0);
/// The gap between columns of the tree.
const COLUMN_GAP: f32 = 32.0;
const MOST_COLUMNS: usize = 3;
/// The depth of the deepest parts that a column of the tree begins with.
const DEEPEST_CUT: u32 = 2;

/// A table, the variables of its rows, and true if there are more rows.
struct MemoryTableData {
    table: Arc<DataTable>,
    variables: Vec<VariableId>,
    truncated: bool,
}

/// The contents of the selected tiles, and their table. They are kept together so that titles
/// always match figures.
struct MemoryTree {
    rows: Vec<MemoryTreeRow>,
    table: DataTable,
}

/// The state of all tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct MemoryTables {
    #[serde(skip)]
    details: BackgroundQuery<Vec<TileId>, MemoryTree>,
    folded: BTreeSet<String>,
    #[serde(skip)]
    listed: BackgroundQuery<(MemoryTab, Vec<TileId>, NumberFormat), MemoryTableData>,
    states: [TableState; 4],
}

impl MemoryTables {
    /// Shows a table. Returns the clicked variable, and true if it is added to the selected ones.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        tab: MemoryTab,
        chosen: &[VariableId],
    ) -> Option<(VariableId, bool)> {
        let (part, index) = match tab {
            MemoryTab::Details => {
                self.details_ui(ui, context);
                return None;
            }
            MemoryTab::Variables => (ReportPart::Variables, 0),
            MemoryTab::Vertices => (ReportPart::Vertices, 1),
            MemoryTab::Exchanges => (ReportPart::Exchanges, 2),
            MemoryTab::ComputeSets => (ReportPart::Vertices, 3),
        };
        if !context.opened.report.has(part) {
            let what = ["variables", "vertices", "exchanges", "compute sets"][index];
            let sentence = format!("The {what} of each tile were not recorded in this report.");
            hint_ui(ui, &sentence);
            return None;
        }
        let key = (tab, context.selection.tiles.clone(), numbers(ui));
        let listed = context.ask(ui, &mut self.listed, &key, |report, (tab, tiles, numbers)| {
            listed(report, *tab, tiles, *numbers)
        });
        let state = &mut self.states[index];
        let workers = context.workers;
        // The table of another tab must not stand in.
        let clicked = listed.fresh_only().show(ui, LIST_TEXTS, |ui, listed| {
            if listed.truncated {
                let most = grouped(memory::MAX_VARIABLES as u64);
                let rest = "select tiles to see all of theirs";
                cut_list_ui(ui, format!("Only the first {most} are listed; {rest}."));
            }
            let hint =
                ["Filter variables", "Filter vertices", "Filter exchanges", "Filter compute sets"]
                    [index];
            ui.push_id(index, |ui| match tab {
                MemoryTab::Variables => variables_ui(ui, workers, state, listed, (hint, chosen)),
                _ => {
                    state.ui(ui, workers, &listed.table, listed.version(), hint);
                    None
                }
            })
            .inner
        });
        clicked.flatten()
    }

    fn details_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let tiles = context.selection.tiles.clone();
        let texts = QueryTexts { waiting: "Reading…", failed: "Details cannot be read" };
        let rows = context.ask(ui, &mut self.details, &tiles, |report, tiles| {
            let rows = memory::details(report, tiles)?;
            let table = columns::details(&rows, tiles);
            Ok(MemoryTree { rows, table })
        });
        rows.show(ui, texts, |ui, tree| self.tree_ui(ui, tree));
    }

    fn tree_ui(&mut self, ui: &mut Ui, MemoryTree { rows, table }: &MemoryTree) {
        // Indentation shows the depth of the part.
        let titles: Vec<&str> =
            table.columns.iter().skip(2).map(|column| column.title.as_str()).collect();
        let lines = visible_lines(rows, &self.folded);
        let depths: Vec<u32> = lines.iter().map(|line| rows[line.row].depth).collect();
        let layout = TreeLayout::new(ui, titles.len());
        let folded = &mut self.folded;
        ScrollArea::both().auto_shrink(false).id_salt("memory details").show(ui, |ui| {
            ui.spacing_mut().item_spacing = vec2(COLUMN_GAP, 0.0);
            ui.horizontal_top(|ui| {
                for column in tree_columns(&depths, layout.columns) {
                    let builder = egui::UiBuilder::new().id_salt(("column", column.start));
                    let down = egui::Layout::top_down(egui::Align::Min);
                    ui.scope_builder(builder.layout(down), |ui| {
                        ui.set_width(layout.width);
                        tree_header_ui(ui, &titles, layout);
                        for (at, line) in lines[column].iter().enumerate() {
                            let row = (&rows[line.row], &table.rows[line.row][2..]);
                            if !tree_row_ui(ui, row, *line, layout, at % 2 == 1) {
                                continue;
                            }
                            if line.is_folded {
                                folded.remove(&row.0.name)
                            } else {
                                folded.insert(row.0.name.clone())
                            };
                        }
                        ui.add_space(spacing::M);
                    });
                }
            });
        });
    }
}

/// Shows the table of variables. Returns the clicked one, and true if it is added.
fn variables_ui(
    ui: &mut Ui,
    workers: &BackgroundWorkers,
    state: &mut TableState,
    listed: &Versioned<MemoryTableData>,
    (hint, chosen): (&str, &[VariableId]),
) -> Option<(VariableId, bool)> {
    let chosen: Vec<usize> =
        chosen.iter().filter_map(|id| listed.variables.iter().position(|own| own == id)).collect();
    let row = state.choose_ui(ui, workers, &listed.table, listed.version(), hint, &chosen)?;
    let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
    Some((*listed.variables.get(row)?, add))
}

/// A line of the tree of details that no folded part hides.
#[derive(Clone, Copy)]
struct TreeLine {
    row: usize,
    is_parent: bool,
    is_folded: bool,
}

fn visible_lines(rows: &[MemoryTreeRow], folded: &BTreeSet<String>) -> Vec<TreeLine> {
    let mut lines = Vec::new();
    let mut hidden_below: Option<u32> = None;
    for (at, row) in rows.iter().enumerate() {
        if hidden_below.is_some_and(|depth| row.depth > depth) {
            continue;
        }
        let is_parent = rows.get(at + 1).is_some_and(|next| next.depth > row.depth);
        let is_folded = is_parent && folded.contains(&row.name);
        hidden_below = is_folded.then_some(row.depth);
        lines.push(TreeLine { row: at, is_parent, is_folded });
    }
    lines
}

/// The widths of the tree of details, which takes several columns on a wide page.
#[derive(Clone, Copy)]
struct TreeLayout {
    columns: usize,
    /// The width of a column of the page.
    width: f32,
    /// The width of the names in it.
    names: f32,
}

impl TreeLayout {
    fn new(ui: &Ui, values: usize) -> Self {
        let room = ui.available_width();
        let of_values = values as f32 * VALUE_WIDTH + 16.0;
        let least = NAME_WIDTH.0 + of_values;
        let columns = ((room + COLUMN_GAP) / (least + COLUMN_GAP)) as usize;
        let columns = columns.clamp(1, MOST_COLUMNS);
        let names = if columns == 1 {
            room * 0.4
        } else {
            (room + COLUMN_GAP) / columns as f32 - COLUMN_GAP - of_values
        };
        let names = names.clamp(NAME_WIDTH.0, NAME_WIDTH.1);
        Self { columns, width: names + of_values, names }
    }
}

/// Lines of a tree, given by their depths, cut into at most `most` columns of about the same
/// height. A column begins with a part that is not deep in the tree.
fn tree_columns(depths: &[u32], most: usize) -> Vec<Range<usize>> {
    let fill = |height: usize| {
        let mut columns = Vec::new();
        let mut from = 0;
        let mut cut = 0;
        for (at, depth) in depths.iter().enumerate() {
            if *depth <= DEEPEST_CUT {
                cut = at;
            }
            if at - from >= height && cut > from {
                columns.push(from..cut);
                from = cut;
            }
        }
        columns.push(from..depths.len());
        columns
    };
    let mut height = depths.len().div_ceil(most).max(1);
    loop {
        let columns = fill(height);
        if columns.len() <= most {
            return columns;
        }
        height += 1;
    }
}

fn value_rect(row: Rect, name_width: f32, column: usize) -> Rect {
    let left = row.left() + name_width + column as f32 * VALUE_WIDTH;
    Rect::from_min_size(pos2(left, row.top()), vec2(VALUE_WIDTH, row.height()))
}

fn tree_header_ui(ui: &mut Ui, titles: &[&str], TreeLayout { width, names, .. }: TreeLayout) {
    let palette = ThemePalette::for_ui(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(width, ROW_HEIGHT), Sense::hover());
    let font = egui::FontId::proportional(text_size::SMALL);
    for (column, title) in titles.iter().enumerate() {
        let place = value_rect(rect, names, column);
        let at = place.right_center();
        ui.painter().text(at, Align2::RIGHT_CENTER, title, font.clone(), palette.weak_text);
        let id = ui.scope_id().with(("column", column));
        region_ui(ui, id, place, Role::ColumnHeader, title, "");
    }
    let line = Stroke::new(1.0, palette.rule);
    ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, line);
}

/// Shows one line of the tree. Returns true if it was clicked to fold or unfold it.
fn tree_row_ui(
    ui: &mut Ui,
    (row, cells): (&MemoryTreeRow, &[TableCell]),
    TreeLine { is_parent: parent, is_folded: folded, .. }: TreeLine,
    TreeLayout { width, names, .. }: TreeLayout,
    striped: bool,
) -> bool {
    let palette = ThemePalette::for_ui(ui);
    let sense = if parent { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(width, ROW_HEIGHT), sense);
    let values: Vec<String> = cells.iter().map(|cell| cell.text_in(numbers(ui))).collect();
    let exact: Vec<String> = cells.iter().map(TableCell::exact).collect();
    let exact = exact.join(", ");
    let role = if parent { Role::DisclosureTriangle } else { Role::Row };
    response.widget_info(|| WidgetInfo::selected(role, true, parent && !folded, &row.name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(exact.as_str()));
    if parent && response.hovered() {
        ui.painter().rect_filled(rect, 0.0, palette.hover);
    } else if striped {
        ui.painter().rect_filled(rect, 0.0, palette.stripe);
    }
    focus_ui(ui, &response, rect);
    let left = rect.left() + 14.0 + row.depth as f32 * 18.0;
    if parent {
        let mark = if folded { "▶" } else { "▼" };
        let font = egui::FontId::proportional(text_size::SIGN);
        ui.painter().text(
            pos2(left, rect.center().y),
            Align2::LEFT_CENTER,
            mark,
            font,
            palette.weak_text,
        );
    }
    let name = if row.depth < 3 && parent { strong(&row.name) } else { RichText::new(&row.name) };
    let body = TextStyle::Body.resolve(ui.style());
    let galley = egui::WidgetText::from(name).into_galley(
        ui,
        Some(egui::TextWrapMode::Truncate),
        names - (left - rect.left()) - 22.0,
        TextStyle::Body,
    );
    let at = pos2(left + 16.0, rect.center().y - galley.size().y / 2.0);
    ui.painter().galley(at, galley, palette.text);
    for (column, (value, cell)) in values.iter().zip(cells).enumerate() {
        let at = value_rect(rect, names, column).right_center();
        let colour =
            if *cell == TableCell::Bytes(Bytes::ZERO) { palette.weak_text } else { palette.text };
        ui.painter().text(at, Align2::RIGHT_CENTER, value, body.clone(), colour);
    }
    let clicked = response.clicked();
    let hint = match row.formula {
        "" => exact,
        formula => format!("{exact}\n{formula}"),
    };
    response.on_hover_text(hint);
    clicked
}

/// The table of this name, as the view shows it.
#[cfg(test)]
pub(in crate::views) fn seen(report: &Report, name: &str) -> DataTable {
    let tab = match name {
        "details" => return columns::details(&memory::details(report, &[]).unwrap(), &[]),
        "variables" => MemoryTab::Variables,
        "vertices" => MemoryTab::Vertices,
        "compute-sets" => MemoryTab::ComputeSets,
        _ => MemoryTab::Exchanges,
    };
    listed(report, tab, &[], NumberFormat::default()).unwrap().table.as_ref().clone()
}

fn listed(
    report: &Report,
    tab: MemoryTab,
    tiles: &[TileId],
    numbers: NumberFormat,
) -> Result<MemoryTableData, ReportError> {
    type Columns = fn(&MemoryList, &[TileId]) -> DataTable;
    let (listing, columns): (MemoryList, Columns) = match tab {
        MemoryTab::Variables | MemoryTab::Details => {
            (memory::variables(report, tiles)?, columns::variables)
        }
        MemoryTab::Vertices => (memory::vertices(report, tiles)?, columns::vertices),
        MemoryTab::ComputeSets => (memory::compute_sets(report, tiles)?, columns::compute_sets),
        MemoryTab::Exchanges => (memory::exchanges(report, tiles, numbers)?, columns::exchanges),
    };
    Ok(MemoryTableData {
        table: Arc::new(columns(&listing, tiles).with_keys(report)?),
        variables: listing.variables,
        truncated: listing.truncated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_the_tree_hold_every_line_once_and_begin_with_whole_parts() {
        let depths = [0, 0, 1, 2, 2, 2, 1, 2, 3, 3, 3, 2, 3, 3, 3, 3];
        assert_eq!(tree_columns(&depths, 1), [0..16]);
        assert_eq!(tree_columns(&depths, 2), [0..7, 7..16]);
        assert_eq!(tree_columns(&depths, 3), [0..6, 6..11, 11..16]);
        assert_eq!(tree_columns(&[0, 3, 3, 3], 3), [0..4]);
        assert_eq!(tree_columns(&[], 3), [0..0]);
    }
}
