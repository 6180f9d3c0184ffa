//! The tables below the graph: the tree of details, variables, vertices, exchanges.

use super::MemoryTab;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, Versioned};
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::TableState;
use crate::widgets::{focus_ui, hint_ui, region_ui};
use egui::accesskit::Role;
use egui::{
    Align2, Rect, RichText, ScrollArea, Sense, Stroke, TextStyle, Ui, WidgetInfo, pos2, vec2,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::memory::{self, MemoryList, MemoryTreeRow};
use tilescope_analysis::tables::memory as columns;
use tilescope_report::units::{Bytes, NumberFormat, TileId, VariableId, grouped};
use tilescope_report::{Report, ReportError, ReportPart};

const ROW_HEIGHT: f32 = 23.0;
const VALUE_WIDTH: f32 = 150.0;

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
                cut_ui(ui);
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
        let folded = &mut self.folded;
        ScrollArea::both().auto_shrink(false).id_salt("memory details").show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            tree_header_ui(ui, &titles);
            let mut hidden_below: Option<u32> = None;
            let mut shown = 0;
            for (index, (row, cells)) in rows.iter().zip(&table.rows).enumerate() {
                if hidden_below.is_some_and(|depth| row.depth > depth) {
                    continue;
                }
                hidden_below = None;
                let parent = rows.get(index + 1).is_some_and(|next| next.depth > row.depth);
                let is_folded = parent && folded.contains(&row.name);
                if is_folded {
                    hidden_below = Some(row.depth);
                }
                shown += 1;
                if tree_row_ui(ui, (row, &cells[2..]), parent, is_folded, shown % 2 == 0) {
                    if is_folded {
                        folded.remove(&row.name)
                    } else {
                        folded.insert(row.name.clone())
                    };
                }
            }
            ui.add_space(spacing::M);
        });
    }
}

/// A note that the list is truncated.
fn cut_ui(ui: &mut Ui) {
    let most = grouped(memory::MAX_VARIABLES as u64);
    let text = format!("Only the first {most} are listed; select tiles to see all of theirs.");
    ui.horizontal(|ui| {
        ui.add_space(spacing::M);
        ui.label(RichText::new(text).color(ThemePalette::for_ui(ui).warning));
    });
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

fn value_rect(row: Rect, name_width: f32, column: usize) -> Rect {
    let left = row.left() + name_width + column as f32 * VALUE_WIDTH;
    Rect::from_min_size(pos2(left, row.top()), vec2(VALUE_WIDTH, row.height()))
}

fn name_width(ui: &Ui) -> f32 {
    (ui.clip_rect().width() * 0.4).clamp(220.0, 360.0)
}

fn tree_header_ui(ui: &mut Ui, titles: &[&str]) {
    let palette = ThemePalette::for_ui(ui);
    let names = name_width(ui);
    let size = vec2(names + titles.len() as f32 * VALUE_WIDTH + 16.0, ROW_HEIGHT);
    let (rect, _) = ui.allocate_exact_size(size, Sense::hover());
    let font = egui::FontId::proportional(text_size::SMALL);
    for (column, title) in titles.iter().enumerate() {
        let place = value_rect(rect, names, column);
        let at = place.right_center();
        ui.painter().text(at, Align2::RIGHT_CENTER, title, font.clone(), palette.weak_text);
        let id = ui.scope_id().with(("column", column));
        region_ui(ui, id, place, Role::ColumnHeader, title, "");
    }
    let line = Stroke::new(1.0, palette.rule);
    ui.painter().hline(ui.clip_rect().x_range(), rect.bottom() - 0.5, line);
}

/// Shows one line of the tree. Returns true if it was clicked to fold or unfold it.
fn tree_row_ui(
    ui: &mut Ui,
    (row, cells): (&MemoryTreeRow, &[TableCell]),
    parent: bool,
    folded: bool,
    striped: bool,
) -> bool {
    let palette = ThemePalette::for_ui(ui);
    let names = name_width(ui);
    let size = vec2(names + row.bytes.len() as f32 * VALUE_WIDTH + 16.0, ROW_HEIGHT);
    let sense = if parent { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(size, sense);
    let values: Vec<String> = cells.iter().map(TableCell::text).collect();
    let role = if parent { Role::DisclosureTriangle } else { Role::Row };
    response.widget_info(|| WidgetInfo::selected(role, true, parent && !folded, &row.name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(values.join(", ")));
    let across = Rect::from_x_y_ranges(ui.clip_rect().x_range(), rect.y_range());
    if parent && response.hovered() {
        ui.painter().rect_filled(across, 0.0, palette.hover);
    } else if striped {
        ui.painter().rect_filled(across, 0.0, palette.stripe);
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
    if !row.formula.is_empty() {
        response.on_hover_text(row.formula);
    }
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
        table: Arc::new(columns(&listing, tiles)),
        variables: listing.variables,
        truncated: listing.truncated,
    })
}
