//! The tables below: sums by link, programs, tiles.

use super::Tab;
use crate::command::Command;
use crate::fonts::strong;
use crate::theme::Palette;
use crate::views::ViewContext;
use crate::widgets::hint_ui;
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::{Cell, Column, Table, TableState};
use crate::widgets::tile_picker::pick;
use crate::worker::{BackgroundQuery, Versioned};
use egui::{Grid, RichText, ScrollArea, Ui, vec2};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::exchange_code::{
    self as analysis, Link, LinkTotals, Overview, ProgramRow, TileRow,
};
use tilescope_report::units::{Bytes, exact_bytes, grouped, percent};
use tilescope_report::{Part, Report, ReportError};

/// A list with what its rows stand for.
struct Listed<T> {
    rows: Vec<T>,
    table: Arc<Table>,
}

/// State of all tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Tables {
    #[serde(skip)]
    overview: BackgroundQuery<(), Overview>,
    #[serde(skip)]
    programs: BackgroundQuery<Vec<u32>, Listed<ProgramRow>>,
    #[serde(skip)]
    tiles: BackgroundQuery<(), Listed<TileRow>>,
    states: [TableState; 2],
}

impl Tables {
    pub(super) fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, tab: Tab) {
        if tab != Tab::Overview && !context.opened.report.has(Part::Exchanges) {
            let what =
                if tab == Tab::Programs { "programs move" } else { "tiles send and receive" };
            return hint_ui(ui, &format!("This report does not say what {what}."));
        }
        match tab {
            Tab::Overview => self.overview_ui(ui, context),
            Tab::Programs => self.programs_ui(ui, context),
            Tab::Tiles => self.tiles_ui(ui, context),
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
        listed: &Versioned<Listed<ProgramRow>>,
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
            context.commands.push(Command::SelectProgram(chosen));
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
        listed: &Versioned<Listed<TileRow>>,
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
            pick(context, listed.rows[row].tile, add);
        }
    }
}

fn programs_of(report: &Report, tiles: &[u32]) -> Result<Listed<ProgramRow>, ReportError> {
    let rows = analysis::programs(report, tiles)?;
    let number = Column::number;
    let columns = vec![
        Column::text("Program"),
        number("Code").about("Code of this program, summed over tiles"),
        number("Received").about("Bytes that arrive when it runs once, summed over tiles"),
        number("Sent").about("Bytes that leave when it runs once; a multicast counts once"),
        number("Messages sent").about("When it runs once; a multicast counts once"),
        number("Tiles").about("Tiles that take part"),
    ];
    let row = |row: &ProgramRow| {
        let name = format!("{}: {}", row.kind.name(), row.name);
        vec![
            Cell::Text(name),
            Cell::Bytes(row.traffic.code_bytes),
            Cell::Bytes(row.traffic.bytes_in),
            Cell::Bytes(row.traffic.bytes_out),
            Cell::Count(row.traffic.messages_out),
            Cell::Count(row.tiles),
        ]
    };
    let table = Table { columns, rows: rows.iter().map(row).collect(), totals: true };
    Ok(Listed { rows, table: Arc::new(table) })
}

fn tiles_of(report: &Report) -> Result<Listed<TileRow>, ReportError> {
    let rows = analysis::tiles(report)?;
    let mut columns = vec![Column::text("Tile")];
    let code = |link: Link| Column::number(format!("{} code", link.title()));
    columns.extend(Link::ALL.map(|link| code(link).about("Bytes in the memory of this tile")));
    let moved = ["Received", "Sent", "Messages received", "Messages sent"];
    columns.extend(moved.map(|title| Column::number(title).about(MOVED)));
    let row = |row: &TileRow| {
        let mut cells = vec![Cell::Text(format!("Tile {}", grouped(row.tile.into())))];
        cells.extend(row.code.map(Cell::Bytes));
        cells.extend([row.traffic.bytes_in, row.traffic.bytes_out].map(Cell::Bytes));
        cells.extend([row.traffic.messages_in, row.traffic.messages_out].map(Cell::Count));
        cells
    };
    let table = Table { columns, rows: rows.iter().map(row).collect(), totals: true };
    Ok(Listed { rows, table: Arc::new(table) })
}

const SHARED: &str = "Bytes of the programs, each counted by itself, less bytes in memory: \
                      what programs share with one another.";
const BESIDE: &str = "Bytes in memory less bytes of the programs: code that every tile holds, \
                      whatever it exchanges.";
const MOVED: &str = "Each program once; loops repeat them.";

fn overview_grid_ui(ui: &mut Ui, context: &mut ViewContext<'_>, overview: &Overview) {
    let palette = Palette::of(ui.visuals());
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
                    ("Shared", SHARED),
                    ("Of no program", BESIDE),
                    ("Programs", "Programs that move data over this link"),
                    ("Messages", MOVED),
                    ("Bytes moved", MOVED),
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

fn link_ui(ui: &mut Ui, totals: &LinkTotals, used: u64) {
    let palette = Palette::of(ui.visuals());
    ui.horizontal(|ui| {
        let (dot, _) = ui.allocate_exact_size(vec2(10.0, 10.0), egui::Sense::hover());
        ui.painter().rect_filled(dot, 2.0, palette.category(totals.link.category()));
        ui.label(totals.link.title());
    });
    let known = totals.of_programs.is_some();
    let unknown = || NOT_RECORDED.to_owned();
    let told = |text: String| if known { text } else { unknown() };
    let cells = [
        exact_bytes(totals.stored),
        share(totals.stored, used),
        exact_bytes(totals.fullest),
        totals.of_programs.map_or_else(unknown, exact_bytes),
        totals.shared().map_or_else(unknown, exact_bytes),
        totals.beside().map_or_else(unknown, exact_bytes),
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

fn total_ui(ui: &mut Ui, overview: &Overview) {
    let sum = |value: fn(&LinkTotals) -> u64| overview.links.iter().map(value).sum::<u64>();
    let known = overview.links.iter().any(|totals| totals.of_programs.is_some());
    let told = |text: String| strong(if known { text } else { NOT_RECORDED.to_owned() });
    ui.label(strong("All"));
    let stored = sum(|totals| totals.stored);
    ui.label(strong(exact_bytes(stored)));
    ui.label(strong(share(stored, overview.used)));
    ui.label("");
    ui.label(told(exact_bytes(sum(|totals| totals.of_programs.unwrap_or(0)))));
    ui.label(told(exact_bytes(sum(|totals| totals.shared().unwrap_or(0)))));
    ui.label(told(exact_bytes(sum(|totals| totals.beside().unwrap_or(0)))));
    ui.label(told(grouped(sum(|totals| totals.programs))));
    ui.label(told(grouped(sum(|totals| totals.messages))));
    ui.label(told(Bytes(sum(|totals| totals.bytes)).to_string()));
    ui.end_row();
}

/// Replicas that a program of one is tried with.
const TRIED_REPLICAS: u32 = 4;

/// A way to see what replicas add: the same program with another number of them.
fn replicas_ui(ui: &mut Ui, context: &mut ViewContext<'_>, overview: &Overview) {
    let (replicas, words) = match overview.replicas {
        0 | 1 => (TRIED_REPLICAS, format!("Try {TRIED_REPLICAS} replicas…")),
        _ => (1, "Try one replica…".to_owned()),
    };
    let hint = "Opens What if with this change; simulating it compares both reports";
    if ui.button(words).on_hover_text(hint).clicked() {
        let (key, value) = ("options.replication_factor", replicas.to_string());
        context.commands.push(Command::WhatIfWith(key, value));
    }
}

fn replicas_text(overview: &Overview) -> String {
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
