//! The tables of differences.

use super::{Aligned, Side};
use crate::opening::Opened;
use crate::widgets::below::tabs_row_ui;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::table::{Cell, Column, Table, TableState};
use crate::widgets::{hint_ui, tabs_ui};
use crate::worker::{BackgroundQuery, Versioned, Workers};
use egui::Ui;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_analysis::compare::{Cell as Value, Row, Sides, Table as Compared, comparison};
use tilescope_analysis::insights::Place;
use tilescope_report::ReportError;

/// A table of differences, ready to be shown.
struct Shown {
    title: &'static str,
    table: Arc<Table>,
    places: Vec<[Option<Place>; 2]>,
    complete: bool,
    differs: bool,
}

/// State of the tables of all views.
#[derive(Default)]
pub(crate) struct Lower {
    tables: BackgroundQuery<&'static str, Vec<Shown>>,
    chosen: BTreeMap<&'static str, usize>,
    states: BTreeMap<(&'static str, usize), TableState>,
    row: Option<(&'static str, usize, usize)>,
}

impl Lower {
    /// The table of a view that the user has chosen.
    pub(crate) fn chosen(&self, view: &str) -> Option<usize> {
        self.chosen.get(view).copied()
    }

    /// Shows that table of a view, or the first that differs.
    pub(crate) fn choose(&mut self, view: &'static str, table: Option<usize>) {
        match table {
            Some(table) => drop(self.chosen.insert(view, table)),
            None => drop(self.chosen.remove(view)),
        }
    }

    /// Titles of the tables that were shown last.
    pub(crate) fn titles(&self) -> Vec<&'static str> {
        let tables = self.tables.latest();
        tables.map_or_else(Vec::new, |tables| tables.iter().map(|table| table.title).collect())
    }

    /// Shows the tables of a view; where the row that was clicked can be seen.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &Workers,
        view: &'static str,
        (source, target): (&Opened, &Opened),
        (aligned, open): (&Aligned, &mut bool),
    ) -> Option<[Option<Place>; 2]> {
        let (source, target) = (source.report.clone(), target.report.clone());
        let alignment = aligned.clone();
        let question = move |view: &&'static str| {
            let sides = Sides { source: &source, target: &target, alignment: &alignment };
            let tables = comparison(view).map_or(Ok(Vec::new()), |one| (one.tables)(&sides));
            Ok::<_, ReportError>(tables?.into_iter().map(Shown::new).collect())
        };
        let texts =
            QueryTexts { waiting: "Comparing…", failed: "The reports cannot be compared" };
        // Tables of another view say nothing about this one.
        let tables = self.tables.ask(ui.ctx(), workers, &view, question).fresh_only();
        let show = |ui: &mut Ui, tables: &_| self.tables_ui(ui, workers, view, (tables, open));
        tables.show(ui, texts, show).flatten()
    }

    fn tables_ui(
        &mut self,
        ui: &mut Ui,
        workers: &Workers,
        view: &'static str,
        (tables, open): (&Versioned<Vec<Shown>>, &mut bool),
    ) -> Option<[Option<Place>; 2]> {
        if tables.is_empty() {
            hint_ui(ui, "There is nothing to compare here.");
            return None;
        }
        let first = tables.iter().position(|table| table.differs).unwrap_or(0);
        let mut chosen = self.chosen(view).unwrap_or(first).min(tables.len() - 1);
        let titles: Vec<(usize, &str)> =
            tables.iter().enumerate().map(|(at, table)| (at, table.title)).collect();
        let before = chosen;
        tabs_row_ui(ui, |ui| tabs_ui(ui, &titles, &mut chosen));
        if chosen != before {
            self.chosen.insert(view, chosen);
        }
        if !*open {
            *open = chosen != before;
            return None;
        }
        ui.add_space(2.0);
        let at = chosen;
        let shown = &tables[at];
        if !shown.complete {
            hint_ui(ui, "The runs are long: not every step was looked at.");
        }
        let state = self.states.entry((view, at)).or_insert_with(TableState::as_given);
        let generation = tables.version();
        let row = self.row.filter(|row| (row.0, row.1) == (view, at)).map(|row| row.2);
        let clicked = ui
            .push_id((view, at), |ui| {
                state.choose_ui(
                    ui,
                    workers,
                    &shown.table,
                    generation,
                    "Filter rows",
                    row.as_slice(),
                )
            })
            .inner?;
        self.row = Some((view, at, clicked));
        shown.places.get(clicked).cloned()
    }
}

impl Shown {
    fn new(table: Compared) -> Self {
        let worded = |row: &Row| {
            [&row.source, &row.target].iter().any(|side| matches!(side, Some(Value::Words(_))))
        };
        let words = table.rows.iter().any(worded);
        let side = |title: &str| if words { Column::text(title) } else { Column::number(title) };
        let columns = vec![
            Column::text(table.column),
            side("Source"),
            side("Target"),
            Column::number("Diff").about("Target less source; a missing side counts as nothing"),
            Column::number("Of larger").about("The difference as a share of the larger side"),
        ];
        let cells = |row: &Row| {
            vec![
                Cell::Text(format!("{:1$}{2}", "", row.depth as usize * 4, row.name)),
                cell(&row.source),
                cell(&row.target),
                difference(row),
                share(row),
            ]
        };
        Self {
            title: table.title,
            differs: table.rows.iter().any(|row| !row.is_same()),
            complete: table.complete,
            table: Arc::new(Table {
                columns,
                rows: table.rows.iter().map(cells).collect(),
                totals: table.total.is_some(),
            }),
            places: table
                .rows
                .into_iter()
                .map(|row| [row.source_place, row.target_place])
                .collect(),
        }
    }
}

fn cell(side: &Option<Value>) -> Cell {
    match side {
        None => Cell::Missing,
        Some(Value::Bytes(bytes)) => Cell::Bytes(*bytes),
        Some(Value::Count(count)) => Cell::Count(*count),
        Some(value) => Cell::Text(value.text()),
    }
}

fn difference(row: &Row) -> Cell {
    let bytes = [&row.source, &row.target].iter().any(|side| matches!(side, Some(Value::Bytes(_))));
    match row.whole_change() {
        Some(change) => Cell::Change { change, bytes },
        None => Cell::Text(row.change_text()),
    }
}

fn share(row: &Row) -> Cell {
    match row.share() {
        // In ten-thousandths: two decimals of a percentage.
        Some(share) => Cell::Share((share.abs() * 10_000.0).round() as u32),
        None => Cell::Text(String::new()),
    }
}

/// The commands that show places on both sides.
pub(crate) fn sides(places: &[Option<Place>; 2]) -> impl Iterator<Item = (Side, &Place)> {
    [Side::Source, Side::Target]
        .into_iter()
        .zip(places)
        .filter_map(|(side, place)| place.as_ref().map(|place| (side, place)))
}
