//! The tables of differences.

use super::{ComparisonSide, SharedAlignment};
use crate::model::open_report::OpenReport;
use crate::model::view_id::ViewId;
use crate::theme::{numbers, spacing};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, Versioned};
use crate::widgets::bottom_panel::tabs_row_ui;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::table::TableState;
use crate::widgets::{hint_ui, tabs_ui};
use egui::Ui;
use std::collections::BTreeMap;
use std::sync::Arc;
use tilescope_analysis::compare::{
    ComparedReports, ComparisonTable as Compared, WorkUnit, comparison,
};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::ReportError;
use tilescope_report::units::NumberFormat;

/// A formatted table of differences.
struct DifferenceTable {
    title: &'static str,
    table: Arc<DataTable>,
    places: Vec<[Option<ViewLocation>; 2]>,
    differs: bool,
}

/// The state of the tables of all views.
#[derive(Default)]
pub(crate) struct DifferenceTablesPanel {
    tables: BackgroundQuery<(ViewId, NumberFormat, WorkUnit), Vec<DifferenceTable>>,
    chosen: BTreeMap<ViewId, usize>,
    states: BTreeMap<(ViewId, usize), TableState>,
    row: Option<(ViewId, usize, usize)>,
}

impl DifferenceTablesPanel {
    /// The index of the table that the user selected for a view.
    pub(crate) fn chosen(&self, view: ViewId) -> Option<usize> {
        self.chosen.get(&view).copied()
    }

    /// Selects a table for a view; `None` shows the first one with differences.
    pub(crate) fn choose(&mut self, view: ViewId, table: Option<usize>) {
        match table {
            Some(table) => drop(self.chosen.insert(view, table)),
            None => drop(self.chosen.remove(&view)),
        }
    }

    /// The titles of the tables in the last frame.
    pub(crate) fn titles(&self) -> Vec<&'static str> {
        let tables = self.tables.latest();
        tables.map_or_else(Vec::new, |tables| tables.iter().map(|table| table.title).collect())
    }

    /// Shows the tables of a view. Returns the places of the clicked row.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        (view, unit): (ViewId, WorkUnit),
        (source, target): (&OpenReport, &OpenReport),
        (aligned, open): (&SharedAlignment, &mut bool),
    ) -> Option<[Option<ViewLocation>; 2]> {
        let source = source.report.clone();
        let target = target.report.clone();
        let alignment = aligned.clone();
        let key = (view, numbers(ui), unit);
        let compare = move |(view, numbers, unit): &(ViewId, NumberFormat, WorkUnit)| {
            let sides = ComparedReports {
                source: &source,
                target: &target,
                alignment: &alignment,
                numbers: *numbers,
                unit: *unit,
            };
            let tables = comparison(view.name()).map_or(Ok(Vec::new()), |one| (one.tables)(&sides));
            Ok::<_, ReportError>(tables?.into_iter().map(DifferenceTable::new).collect())
        };
        let texts =
            QueryTexts { waiting: "Comparing…", failed: "The reports cannot be compared" };
        // Tables of another view do not apply to this one.
        let tables = self.tables.ask(ui.ctx(), workers, &key, compare).fresh_only();
        tables
            .show(ui, texts, |ui, tables| self.tables_ui(ui, workers, view, (tables, open)))
            .flatten()
    }

    fn tables_ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        view: ViewId,
        (tables, open): (&Versioned<Vec<DifferenceTable>>, &mut bool),
    ) -> Option<[Option<ViewLocation>; 2]> {
        if tables.is_empty() {
            hint_ui(ui, "Nothing to compare here.");
            return None;
        }
        let first = tables.iter().position(|table| table.differs).unwrap_or(0);
        let mut chosen = self.chosen(view).unwrap_or(first).min(tables.len() - 1);
        let titles: Vec<(usize, &str)> =
            tables.iter().enumerate().map(|(at, table)| (at, table.title)).collect();
        let before = chosen;
        tabs_row_ui(ui, |ui| tabs_ui(ui, "comparison", &titles, &mut chosen));
        if chosen != before {
            self.chosen.insert(view, chosen);
        }
        if !*open {
            *open = chosen != before;
            return None;
        }
        ui.add_space(spacing::XXS);
        let at = chosen;
        let shown = &tables[at];
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

impl DifferenceTable {
    fn new(table: Compared) -> Self {
        let mut data = table.data();
        // Indentation shows the depth.
        for (cells, row) in data.rows.iter_mut().zip(&table.rows) {
            cells[0] = format!("{:1$}{2}", "", row.depth as usize * 4, row.name).into();
        }
        Self {
            title: table.title,
            differs: table.rows.iter().any(|row| !row.is_same()),
            table: Arc::new(data),
            places: table
                .rows
                .into_iter()
                .map(|row| [row.source_place, row.target_place])
                .collect(),
        }
    }
}

/// The commands that show the places on both sides.
pub(crate) fn locations_by_side(
    places: &[Option<ViewLocation>; 2],
) -> impl Iterator<Item = (ComparisonSide, &ViewLocation)> {
    [ComparisonSide::Source, ComparisonSide::Target]
        .into_iter()
        .zip(places)
        .filter_map(|(side, place)| place.as_ref().map(|place| (side, place)))
}
