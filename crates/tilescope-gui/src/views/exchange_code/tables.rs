//! The tables in the lower half: sums by link, programs, tiles.

use super::ExchangeCodeTab;
use super::cycle_tables::ExchangeCycleTables;
use crate::model::command::AppCommand;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::views::tile_selection::select_tile;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::hint_ui;
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::TableState;
use egui::accesskit::Role;
use egui::{Grid, RichText, ScrollArea, Ui, WidgetInfo, vec2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::exchange_code::{
    self as analysis, ExchangeCodeOverview, ExchangeLink, ExchangeProgramRow, ExchangeTileRow,
};
use tilescope_analysis::tables::exchange_code as columns;
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::{Bytes, NumberFormat, TileId};
use tilescope_report::{Report, ReportError, ReportPart};

/// A table with the objects that its rows represent.
pub(super) struct ExchangeTableRows<T> {
    pub rows: Vec<T>,
    pub table: Arc<DataTable>,
}

/// The state of all tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ExchangeCodeTables {
    #[serde(skip)]
    overview: BackgroundQuery<(), ExchangeCodeOverview>,
    #[serde(skip)]
    programs: BackgroundQuery<Vec<TileId>, ExchangeTableRows<ExchangeProgramRow>>,
    #[serde(skip)]
    tiles: BackgroundQuery<(), ExchangeTableRows<ExchangeTileRow>>,
    #[serde(skip)]
    pairs: BackgroundQuery<(), Arc<DataTable>>,
    states: [TableState; 3],
    cycles: ExchangeCycleTables,
}

impl ExchangeCodeTables {
    /// Shows a tab. Returns the place in the trace if its link was clicked.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        tab: ExchangeCodeTab,
    ) -> Option<ViewLocation> {
        let recorded = context.opened.report.has(ReportPart::Exchanges);
        match tab {
            ExchangeCodeTab::Programs if !recorded => hint_ui(ui, &not_recorded("programs move")),
            ExchangeCodeTab::Tiles | ExchangeCodeTab::HotTiles if !recorded => {
                hint_ui(ui, &not_recorded("tiles send and receive"));
            }
            ExchangeCodeTab::Overview => self.overview_ui(ui, context),
            ExchangeCodeTab::Programs => self.programs_ui(ui, context),
            ExchangeCodeTab::Tiles => self.tiles_ui(ui, context),
            ExchangeCodeTab::Pairs => self.pairs_ui(ui, context),
            ExchangeCodeTab::Cycles => self.cycles.all_ui(ui, context),
            ExchangeCodeTab::HotTiles => self.cycles.tiles_ui(ui, context),
            ExchangeCodeTab::Details => return self.cycles.details_ui(ui, context),
        }
        None
    }

    /// Clears the selected IPU, because the program was selected elsewhere.
    pub(super) fn forget_ipu(&mut self) {
        self.cycles.forget_ipu();
    }

    fn overview_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let texts = QueryTexts { waiting: "Reading…", failed: "Exchange code cannot be read" };
        let found = context.read(ui, &mut self.overview, analysis::overview);
        found.show(ui, texts, |ui, found| overview_grid_ui(ui, context, found));
    }

    fn programs_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let key = context.selection.tiles.clone();
        let listed =
            context.ask(ui, &mut self.programs, &key, |report, tiles| programs_of(report, tiles));
        listed.show(ui, LIST_TEXTS, |ui, listed| self.programs_table_ui(ui, context, listed));
    }

    fn programs_table_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        listed: &Versioned<ExchangeTableRows<ExchangeProgramRow>>,
    ) {
        let state = &mut self.states[0];
        let chosen = context.selection.program;
        let chosen = listed.rows.iter().position(|row| Some(row.program) == chosen);
        let generation = listed.version();
        let clicked = ui
            .push_id("programs", |ui| {
                let hint = "Filter programs";
                state.choose_ui(
                    ui,
                    context.workers,
                    &listed.table,
                    generation,
                    hint,
                    chosen.as_slice(),
                )
            })
            .inner;
        if let Some(row) = clicked {
            let clicked = Some(listed.rows[row].program);
            let chosen = clicked.filter(|_| context.selection.program != clicked);
            context.commands.push(AppCommand::SelectProgram(chosen));
        }
    }

    /// The traffic between IPUs in the run.
    fn pairs_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let listed = context.read(ui, &mut self.pairs, pairs_of);
        listed.show(ui, LIST_TEXTS, |ui, listed| {
            if listed.rows.is_empty() {
                return hint_ui(ui, "No IPU sends data to another IPU in the recorded run.");
            }
            let state = &mut self.states[2];
            let version = listed.version();
            ui.push_id("pairs", |ui| {
                state.ui(ui, context.workers, listed, version, "Filter IPUs");
            });
        });
    }

    fn tiles_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let listed = context.read(ui, &mut self.tiles, tiles_of);
        listed.show(ui, LIST_TEXTS, |ui, listed| self.tiles_table_ui(ui, context, listed));
    }

    fn tiles_table_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        listed: &Versioned<ExchangeTableRows<ExchangeTileRow>>,
    ) {
        let state = &mut self.states[1];
        let mut chosen = Vec::new();
        for tile in &context.selection.tiles {
            chosen.extend(listed.rows.iter().position(|row| row.tile == *tile));
        }
        let generation = listed.version();
        let clicked = ui
            .push_id("tiles", |ui| {
                let hint = "Filter tiles";
                state.choose_ui(ui, context.workers, &listed.table, generation, hint, &chosen)
            })
            .inner;
        if let Some(row) = clicked {
            let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
            select_tile(context, listed.rows[row].tile, add);
        }
    }
}

fn not_recorded(what: &str) -> String {
    format!("This report does not record what {what}.")
}

/// The table of this name, as the view shows it.
#[cfg(test)]
pub(in crate::views) fn seen(report: &Report, name: &str) -> DataTable {
    match name {
        "overview" => columns::overview(&analysis::overview(report).unwrap()),
        "cycles" => super::cycle_tables::seen(report),
        "ipu-pairs" => pairs_of(report).unwrap().as_ref().clone(),
        "programs" => programs_of(report, &[]).unwrap().table.as_ref().clone(),
        _ => tiles_of(report).unwrap().table.as_ref().clone(),
    }
}

fn programs_of(
    report: &Report,
    tiles: &[TileId],
) -> Result<ExchangeTableRows<ExchangeProgramRow>, ReportError> {
    let rows = analysis::programs(report, tiles)?;
    let table = Arc::new(columns::programs(&rows).with_keys(report)?);
    Ok(ExchangeTableRows { rows, table })
}

fn pairs_of(report: &Report) -> Result<Arc<DataTable>, ReportError> {
    Ok(Arc::new(columns::ipu_pairs(&analysis::ipu_pairs(report)?)))
}

fn tiles_of(report: &Report) -> Result<ExchangeTableRows<ExchangeTileRow>, ReportError> {
    let rows = analysis::tiles(report)?;
    let table = Arc::new(columns::tiles(&rows));
    Ok(ExchangeTableRows { rows, table })
}

fn overview_grid_ui(ui: &mut Ui, context: &ViewContext<'_>, overview: &ExchangeCodeOverview) {
    let table = columns::overview(overview);
    ScrollArea::both().auto_shrink(false).id_salt("exchange overview").show(ui, |ui| {
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            Grid::new("links").num_columns(10).spacing(vec2(26.0, 8.0)).show(ui, |ui| {
                for column in &table.columns {
                    let title = RichText::new(&column.title);
                    let label = ui.label(title.weak().size(text_size::SMALL));
                    if !column.about.is_empty() {
                        label.on_hover_text(column.about);
                    }
                }
                ui.end_row();
                for (totals, row) in overview.links.iter().zip(&table.rows) {
                    link_ui(ui, totals.link, row);
                }
                total_ui(ui, &table);
            });
        });
        ui.add_space(spacing::M);
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            ui.label(replicas_text(overview, numbers(ui)));
            if context.opened.report.spec().is_some() {
                replicas_ui(ui, context, overview);
            }
        });
        ui.add_space(spacing::M);
    });
}

/// The placeholder of figures that a report does not have.
const NOT_RECORDED: &str = "not recorded";

/// A figure of the overview, with all its digits where a pointer rests on it.
fn figure_ui(ui: &mut Ui, cell: &TableCell, is_sum: bool) {
    let text = match cell {
        TableCell::Missing => NOT_RECORDED.to_owned(),
        cell => cell.text_in(numbers(ui)),
    };
    let exact = if *cell == TableCell::Missing { text.clone() } else { cell.exact() };
    let shown = if is_sum { strong(text.as_str()) } else { RichText::new(&text) };
    let mut response = ui.label(shown);
    if exact != text {
        response = response.on_hover_text(&exact);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &exact));
}

fn link_ui(ui: &mut Ui, link: ExchangeLink, row: &[TableCell]) {
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal(|ui| {
        let (dot, _) = ui.allocate_exact_size(vec2(10.0, 10.0), egui::Sense::hover());
        ui.painter().rect_filled(dot, 2.0, palette.category(link.category()));
        if let Some(name) = row.first() {
            figure_ui(ui, name, false);
        }
    });
    for cell in row.iter().skip(1) {
        figure_ui(ui, cell, false);
    }
    ui.end_row();
}

/// All links together: the sums of additive figures.
fn total_ui(ui: &mut Ui, table: &DataTable) {
    ui.label(strong("All"));
    for (at, column) in table.columns.iter().enumerate().skip(1) {
        // The fullest tile of one link is not that of another.
        let sum = if column.has_total() { table.sum_of(at, &table.rows).into() } else { "".into() };
        figure_ui(ui, &sum, true);
    }
    ui.end_row();
}

/// The number of replicas to try for a program of one replica.
const TRIED_REPLICAS: u32 = 4;

/// A link that shows the effect of replicas: the same program with another number of them.
fn replicas_ui(ui: &mut Ui, context: &ViewContext<'_>, overview: &ExchangeCodeOverview) {
    let (replicas, words) = match overview.replicas {
        0 | 1 => (TRIED_REPLICAS, format!("Try {TRIED_REPLICAS} replicas…")),
        _ => (1, "Try one replica…".to_owned()),
    };
    let hint = "Open What if with this change, to simulate it and compare both reports";
    if ui.button(words).on_hover_text(hint).clicked() {
        let key = "options.replication_factor";
        let value = replicas.to_string();
        context.commands.push(AppCommand::OpenWhatIfWith(key, value));
    }
}

fn replicas_text(overview: &ExchangeCodeOverview, numbers: NumberFormat) -> String {
    let stored: Bytes = overview.links.iter().map(|totals| totals.stored).sum();
    match overview.replicas {
        0 | 1 => "A single replica has no code for replication. Compare with a report of more \
                  replicas to see their cost."
            .to_owned(),
        replicas => format!(
            "{replicas} replicas hold {} each, {} in total. Compare with a report of one replica \
             to see the cost of replication.",
            numbers.bytes(stored.0),
            numbers.bytes(stored.saturating_mul(replicas.into()).0)
        ),
    }
}
