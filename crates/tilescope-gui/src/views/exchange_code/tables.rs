//! The tables below: sums by link, programs, tiles.

use super::ExchangeCodeTab;
use crate::command::AppCommand;
use crate::fonts::strong;
use crate::theme::ThemePalette;
use crate::views::ViewContext;
use crate::widgets::hint_ui;
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::{TableState, TableWidgetCell, TableWidgetColumn, TableWidgetData};
use crate::widgets::tile_picker::select_tile;
use crate::worker::{BackgroundQuery, Versioned};
use egui::{Grid, RichText, ScrollArea, Ui, vec2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::exchange_code::{
    self as analysis, ExchangeCodeOverview, ExchangeLink, ExchangeLinkTotals, ExchangeProgramRow,
    ExchangeTileRow,
};
use tilescope_report::units::{Bytes, exact_bytes, grouped, percent};
use tilescope_report::{Report, ReportError, ReportPart};

/// A list with what its rows stand for.
struct ExchangeTableRows<T> {
    rows: Vec<T>,
    table: Arc<TableWidgetData>,
}

/// State of all tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct ExchangeCodeTables {
    #[serde(skip)]
    overview: BackgroundQuery<(), ExchangeCodeOverview>,
    #[serde(skip)]
    programs: BackgroundQuery<Vec<u32>, ExchangeTableRows<ExchangeProgramRow>>,
    #[serde(skip)]
    tiles: BackgroundQuery<(), ExchangeTableRows<ExchangeTileRow>>,
    states: [TableState; 2],
}

impl ExchangeCodeTables {
    pub(super) fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, tab: ExchangeCodeTab) {
        if tab != ExchangeCodeTab::Overview && !context.opened.report.has(ReportPart::Exchanges) {
            let what = if tab == ExchangeCodeTab::Programs {
                "programs move"
            } else {
                "tiles send and receive"
            };
            return hint_ui(ui, &format!("This report does not say what {what}."));
        }
        match tab {
            ExchangeCodeTab::Overview => self.overview_ui(ui, context),
            ExchangeCodeTab::Programs => self.programs_ui(ui, context),
            ExchangeCodeTab::Tiles => self.tiles_ui(ui, context),
        }
    }

    fn overview_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let report = context.opened.report.clone();
        let question = move |(): &()| analysis::overview(&report);
        let texts = QueryTexts { waiting: "Reading…", failed: "Exchange code cannot be read" };
        let found = self.overview.ask(ui.ctx(), context.workers, &(), question);
        found.show(ui, texts, |ui, found| overview_grid_ui(ui, context, found));
    }

    fn programs_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let report = context.opened.report.clone();
        let key = context.selection.tiles.clone();
        let question = move |tiles: &Vec<u32>| programs_of(&report, tiles);
        let listed = self.programs.ask(ui.ctx(), context.workers, &key, question);
        listed.show(ui, LIST_TEXTS, |ui, listed| self.programs_table_ui(ui, context, listed));
    }

    fn programs_table_ui(
        &mut self,
        ui: &mut Ui,
        context: &mut ViewContext<'_>,
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

    fn tiles_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let report = context.opened.report.clone();
        let question = move |(): &()| tiles_of(&report);
        let listed = self.tiles.ask(ui.ctx(), context.workers, &(), question);
        listed.show(ui, LIST_TEXTS, |ui, listed| self.tiles_table_ui(ui, context, listed));
    }

    fn tiles_table_ui(
        &mut self,
        ui: &mut Ui,
        context: &mut ViewContext<'_>,
        listed: &Versioned<ExchangeTableRows<ExchangeTileRow>>,
    ) {
        let state = &mut self.states[1];
        let place = |tile: &u32| listed.rows.iter().position(|row| row.tile == *tile);
        let chosen: Vec<usize> = context.selection.tiles.iter().filter_map(place).collect();
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

fn programs_of(
    report: &Report,
    tiles: &[u32],
) -> Result<ExchangeTableRows<ExchangeProgramRow>, ReportError> {
    let rows = analysis::programs(report, tiles)?;
    let number = TableWidgetColumn::number;
    let columns = vec![
        TableWidgetColumn::text("Program"),
        number("Code").about("Code of this program, summed over tiles"),
        number("Received").about("Bytes that arrive when it runs once, summed over tiles"),
        number("Sent").about("Bytes that leave when it runs once; a multicast counts once"),
        number("Messages sent").about("When it runs once; a multicast counts once"),
        number("Tiles").about("Tiles that take part"),
    ];
    let row = |row: &ExchangeProgramRow| {
        let name = format!("{}: {}", row.kind.name(), row.name);
        vec![
            TableWidgetCell::Text(name),
            TableWidgetCell::Bytes(row.traffic.code_bytes),
            TableWidgetCell::Bytes(row.traffic.bytes_in),
            TableWidgetCell::Bytes(row.traffic.bytes_out),
            TableWidgetCell::Count(row.traffic.messages_out),
            TableWidgetCell::Count(row.tiles),
        ]
    };
    let table = TableWidgetData { columns, rows: rows.iter().map(row).collect(), totals: true };
    Ok(ExchangeTableRows { rows, table: Arc::new(table) })
}

fn tiles_of(report: &Report) -> Result<ExchangeTableRows<ExchangeTileRow>, ReportError> {
    let rows = analysis::tiles(report)?;
    let mut columns = vec![TableWidgetColumn::text("Tile")];
    let code = |link: ExchangeLink| TableWidgetColumn::number(format!("{} code", link.title()));
    columns
        .extend(ExchangeLink::ALL.map(|link| code(link).about("Bytes in the memory of this tile")));
    let moved = ["Received", "Sent", "Messages received", "Messages sent"];
    columns.extend(moved.map(|title| TableWidgetColumn::number(title).about(BYTES_MOVED_HINT)));
    let row = |row: &ExchangeTileRow| {
        let mut cells = vec![TableWidgetCell::Text(format!("Tile {}", grouped(row.tile.into())))];
        cells.extend(row.code.map(TableWidgetCell::Bytes));
        cells.extend([row.traffic.bytes_in, row.traffic.bytes_out].map(TableWidgetCell::Bytes));
        cells.extend(
            [row.traffic.messages_in, row.traffic.messages_out].map(TableWidgetCell::Count),
        );
        cells
    };
    let table = TableWidgetData { columns, rows: rows.iter().map(row).collect(), totals: true };
    Ok(ExchangeTableRows { rows, table: Arc::new(table) })
}

const SHARED_CODE_HINT: &str = "Bytes of the programs, each counted by itself, less bytes in memory: \
                      what programs share with one another.";
const UNATTRIBUTED_CODE_HINT: &str = "Bytes in memory less bytes of the programs: code that every tile holds, \
                      whatever it exchanges.";
const BYTES_MOVED_HINT: &str = "Each program once; loops repeat them.";

fn overview_grid_ui(ui: &mut Ui, context: &mut ViewContext<'_>, overview: &ExchangeCodeOverview) {
    let palette = ThemePalette::for_visuals(ui.visuals());
    ScrollArea::both().auto_shrink(false).id_salt("exchange overview").show(ui, |ui| {
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            ui.add_space(14.0);
            Grid::new("links").num_columns(10).spacing(vec2(26.0, 8.0)).show(ui, |ui| {
                let titles = [
                    ("Link", ""),
                    ("Code in memory", "Bytes over all tiles of a replica"),
                    ("Share of memory", "Bytes of code / bytes that tiles use"),
                    ("Fullest tile", "Most code of this kind on one tile"),
                    ("Code of programs", "Sum over programs, each counted by itself"),
                    ("Shared", SHARED_CODE_HINT),
                    ("Of no program", UNATTRIBUTED_CODE_HINT),
                    ("Programs", "Programs that move data over this link"),
                    ("Messages", BYTES_MOVED_HINT),
                    ("Bytes moved", BYTES_MOVED_HINT),
                ];
                for (title, hint) in titles {
                    let label = ui.label(RichText::new(title).color(palette.weak_text).size(12.0));
                    if !hint.is_empty() {
                        label.on_hover_text(hint);
                    }
                }
                ui.end_row();
                for totals in &overview.links {
                    link_ui(ui, totals, overview.used);
                }
                total_ui(ui, overview);
            });
        });
        ui.add_space(10.0);
        ui.horizontal(|ui| {
            ui.add_space(14.0);
            ui.label(replicas_text(overview));
            if context.opened.report.spec().is_some() {
                replicas_ui(ui, context, overview);
            }
        });
        ui.add_space(8.0);
    });
}

/// What stands for figures that a report does not have.
const NOT_RECORDED: &str = "not recorded";

fn link_ui(ui: &mut Ui, totals: &ExchangeLinkTotals, used: u64) {
    let palette = ThemePalette::for_visuals(ui.visuals());
    ui.horizontal(|ui| {
        let (dot, _) = ui.allocate_exact_size(vec2(10.0, 10.0), egui::Sense::hover());
        ui.painter().rect_filled(dot, 2.0, palette.category(totals.link.category()));
        ui.label(totals.link.title());
    });
    let known = totals.program_bytes.is_some();
    let unknown = || NOT_RECORDED.to_owned();
    let told = |text: String| if known { text } else { unknown() };
    let cells = [
        exact_bytes(totals.stored),
        share(totals.stored, used),
        exact_bytes(totals.fullest),
        totals.program_bytes.map_or_else(unknown, exact_bytes),
        totals.shared().map_or_else(unknown, exact_bytes),
        totals.unattributed().map_or_else(unknown, exact_bytes),
        told(grouped(totals.programs)),
        told(grouped(totals.messages)),
        told(Bytes(totals.bytes).to_string()),
    ];
    for cell in cells {
        ui.label(cell);
    }
    ui.end_row();
}

fn share(part: u64, all: u64) -> String {
    if all == 0 { "-".to_owned() } else { percent(part as f64 / all as f64) }
}

fn total_ui(ui: &mut Ui, overview: &ExchangeCodeOverview) {
    let sum = |value: fn(&ExchangeLinkTotals) -> u64| overview.links.iter().map(value).sum::<u64>();
    let known = overview.links.iter().any(|totals| totals.program_bytes.is_some());
    let told = |text: String| strong(if known { text } else { NOT_RECORDED.to_owned() });
    ui.label(strong("All"));
    let stored = sum(|totals| totals.stored);
    ui.label(strong(exact_bytes(stored)));
    ui.label(strong(share(stored, overview.used)));
    ui.label("");
    ui.label(told(exact_bytes(sum(|totals| totals.program_bytes.unwrap_or(0)))));
    ui.label(told(exact_bytes(sum(|totals| totals.shared().unwrap_or(0)))));
    ui.label(told(exact_bytes(sum(|totals| totals.unattributed().unwrap_or(0)))));
    ui.label(told(grouped(sum(|totals| totals.programs))));
    ui.label(told(grouped(sum(|totals| totals.messages))));
    ui.label(told(Bytes(sum(|totals| totals.bytes)).to_string()));
    ui.end_row();
}

/// Replicas that a program of one is tried with.
const TRIED_REPLICAS: u32 = 4;

/// A way to see what replicas add: the same program with another number of them.
fn replicas_ui(ui: &mut Ui, context: &mut ViewContext<'_>, overview: &ExchangeCodeOverview) {
    let (replicas, words) = match overview.replicas {
        0 | 1 => (TRIED_REPLICAS, format!("Try {TRIED_REPLICAS} replicas…")),
        _ => (1, "Try one replica…".to_owned()),
    };
    let hint = "Opens What if with this change; simulating it compares both reports";
    if ui.button(words).on_hover_text(hint).clicked() {
        let (key, value) = ("options.replication_factor", replicas.to_string());
        context.commands.push(AppCommand::OpenWhatIfWith(key, value));
    }
}

fn replicas_text(overview: &ExchangeCodeOverview) -> String {
    let stored: u64 = overview.links.iter().map(|totals| totals.stored).sum();
    match overview.replicas {
        0 | 1 => "One replica: no code is there for replication. Compare with a report of more \
                  replicas to see what they add."
            .to_owned(),
        replicas => format!(
            "{replicas} replicas: each holds {}, all together {}. Compare with a report of one \
             replica to see what the others add.",
            exact_bytes(stored),
            exact_bytes(stored.saturating_mul(replicas.into()))
        ),
    }
}
