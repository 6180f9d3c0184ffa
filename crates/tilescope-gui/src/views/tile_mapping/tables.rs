//! The tables below the floor plan: regions, vertices, rearrangements.

use crate::views::ViewContext;
use crate::widgets::table::TableState;
use crate::widgets::{cut_list_ui, hint_ui};
use egui::Ui;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::tile_mapping as columns;
use tilescope_analysis::tile_mapping::{
    MAX_REGIONS, MappedRearrangement, MappingSubject, SubjectTileMapping,
};
use tilescope_report::units::grouped;
use tilescope_report::{Report, ReportError, ReportPart};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TileMappingTab {
    /// The tiles that hold each part.
    #[default]
    Regions,
    Vertices,
    /// The layouts before and after data is rearranged.
    Rearrangements,
    /// The list of subjects.
    List,
    /// The part that each replica holds.
    Replicas,
}

/// The state of the tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TileMappingTables {
    states: [TableState; 3],
    /// The selected rearrangement, and its subject.
    rearrangement: Option<(MappingSubject, usize)>,
}

impl TileMappingTables {
    /// The visible rearrangement: the selected one, or the first.
    pub(crate) fn rearrangement<'a>(
        &self,
        mapping: &'a SubjectTileMapping,
    ) -> Option<(usize, &'a MappedRearrangement)> {
        let at = self.rearrangement.map_or(0, |(_, at)| at);
        let at = if at < mapping.rearrangements.len() { at } else { 0 };
        mapping.rearrangements.get(at).map(|one| (at, one))
    }

    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        tab: TileMappingTab,
        (mapping, tables): (&SubjectTileMapping, &[Arc<DataTable>; 3]),
        (subject, generation): (MappingSubject, u64),
    ) {
        self.rearrangement.take_if(|(of, _)| *of != subject);
        let Some(table) = tables.get(tab as usize) else { return };
        if table.rows.is_empty() {
            return hint_ui(ui, empty_table_text(tab));
        }
        if tab == TileMappingTab::Regions && mapping.truncated {
            let most = grouped(MAX_REGIONS as u64);
            cut_list_ui(ui, format!("Only the first {most} regions are listed."));
        }
        let chosen = match tab {
            TileMappingTab::Rearrangements => self.rearrangement(mapping).map(|(at, _)| at),
            TileMappingTab::Regions
            | TileMappingTab::Vertices
            | TileMappingTab::List
            | TileMappingTab::Replicas => None,
        };
        let hint = ["Filter regions", "Filter vertices", "Filter rearrangements"][tab as usize];
        let state = &mut self.states[tab as usize];
        let workers = context.workers;
        ui.push_id(tab, |ui| {
            if tab != TileMappingTab::Rearrangements {
                return state.ui(ui, workers, table, generation, hint);
            }
            if let Some(row) =
                state.choose_ui(ui, workers, table, generation, hint, chosen.as_slice())
            {
                self.rearrangement = Some((subject, row));
            }
        });
    }
}

fn empty_table_text(tab: TileMappingTab) -> &'static str {
    match tab {
        TileMappingTab::Regions | TileMappingTab::List | TileMappingTab::Replicas => {
            "The report attributes no variable to this."
        }
        TileMappingTab::Vertices => "The report attributes no vertices to this.",
        TileMappingTab::Rearrangements => {
            "No rearrangement: no exchange is followed by vertices that only copy."
        }
    }
}

/// The tables of regions, vertices and rearrangements of a subject.
pub(super) fn of_subject(
    report: &Report,
    mapping: &SubjectTileMapping,
) -> Result<[Arc<DataTable>; 3], ReportError> {
    let addresses = report.has(ReportPart::Addresses);
    Ok([
        Arc::new(columns::regions(mapping, addresses).with_keys(report)?),
        Arc::new(columns::vertices(mapping)),
        Arc::new(columns::rearrangements(mapping).with_keys(report)?),
    ])
}
