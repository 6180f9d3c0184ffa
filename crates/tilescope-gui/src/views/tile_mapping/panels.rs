//! The tables below the floor plan: regions, vertices, rearrangements.

use crate::theme::ThemePalette;
use crate::views::ViewContext;
use crate::widgets::hint_ui;
use crate::widgets::table::{TableState, TableWidgetCell, TableWidgetColumn, TableWidgetData};
use egui::{RichText, Ui};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::tile_mapping::{
    MAX_REGIONS, MappedRearrangement, MappedVariableRegion, MappedVertexRow, MappingSubject,
    SubjectTileMapping,
};
use tilescope_report::ReportPart;
use tilescope_report::units::{TileRange, exact_bytes, grouped};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TileMappingTab {
    /// Which tiles hold which part.
    #[default]
    Regions,
    Vertices,
    /// Layouts before and after data is rearranged.
    Rearrangements,
    /// The list of subjects.
    List,
}

/// State of the tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TileMappingTables {
    #[serde(skip)]
    made: Option<(u64, [Arc<TableWidgetData>; 3])>,
    states: [TableState; 3],
    /// The rearrangement that is shown, of which subject.
    rearrangement: Option<(MappingSubject, usize)>,
}

impl TileMappingTables {
    /// The rearrangement that is shown: the chosen one, or the first.
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
        mapping: &SubjectTileMapping,
        (subject, generation): (MappingSubject, u64),
    ) {
        if self.made.as_ref().is_none_or(|(known, _)| *known != generation) {
            let addresses = context.opened.report.has(ReportPart::Addresses);
            self.made = Some((generation, tables(mapping, addresses)));
        }
        self.rearrangement.take_if(|(of, _)| *of != subject);
        let Some((_, made)) = &self.made else { return };
        let Some(table) = made.get(tab as usize).cloned() else { return };
        if table.rows.is_empty() {
            return hint_ui(ui, empty_table_text(tab));
        }
        if tab == TileMappingTab::Regions && mapping.truncated {
            let text = format!("Only the first {} are listed.", grouped(MAX_REGIONS as u64));
            ui.label(RichText::new(text).color(ThemePalette::for_visuals(ui.visuals()).warning));
        }
        let chosen = match tab {
            TileMappingTab::Rearrangements => self.rearrangement(mapping).map(|(at, _)| at),
            TileMappingTab::Regions | TileMappingTab::Vertices | TileMappingTab::List => None,
        };
        let hint = ["Filter regions", "Filter vertices", "Filter rearrangements"][tab as usize];
        let state = &mut self.states[tab as usize];
        let workers = context.workers;
        ui.push_id(tab, |ui| {
            if tab != TileMappingTab::Rearrangements {
                return state.ui(ui, workers, &table, generation, hint);
            }
            if let Some(row) =
                state.choose_ui(ui, workers, &table, generation, hint, chosen.as_slice())
            {
                self.rearrangement = Some((subject, row));
            }
        });
    }
}

fn empty_table_text(tab: TileMappingTab) -> &'static str {
    match tab {
        TileMappingTab::Regions | TileMappingTab::List => {
            "The report attributes no variable to this."
        }
        TileMappingTab::Vertices => "The report attributes no vertices to this.",
        TileMappingTab::Rearrangements => {
            "No data is rearranged for this: no exchange is followed by vertices that only copy."
        }
    }
}

fn tables(mapping: &SubjectTileMapping, addresses: bool) -> [Arc<TableWidgetData>; 3] {
    [regions(mapping, addresses), vertices(mapping), rearrangements(mapping)].map(Arc::new)
}

fn tiles_text(tiles: TileRange) -> String {
    match tiles.count() {
        1 => format!("Tile {}", grouped(tiles.first.into())),
        _ => format!("Tiles {} - {}", grouped(tiles.first.into()), grouped((tiles.end - 1).into())),
    }
}

fn regions(mapping: &SubjectTileMapping, addresses: bool) -> TableWidgetData {
    let columns = vec![
        TableWidgetColumn::text("Tiles"),
        TableWidgetColumn::text("Variable"),
        TableWidgetColumn::text("Part, in layout order"),
        TableWidgetColumn::number("Bytes per tile"),
        TableWidgetColumn::number("Address"),
    ];
    let row = |region: &MappedVariableRegion| {
        vec![
            TableWidgetCell::Text(tiles_text(region.tiles)),
            TableWidgetCell::Text(region.variable.clone()),
            TableWidgetCell::Text(region.part()),
            TableWidgetCell::Bytes(region.bytes),
            if addresses {
                TableWidgetCell::Count(region.offset)
            } else {
                TableWidgetCell::Missing
            },
        ]
    };
    TableWidgetData { columns, rows: mapping.regions.iter().map(row).collect(), totals: false }
}

fn vertices(mapping: &SubjectTileMapping) -> TableWidgetData {
    let columns = vec![
        TableWidgetColumn::text("Vertex type"),
        TableWidgetColumn::text("About"),
        TableWidgetColumn::number("Vertices"),
        TableWidgetColumn::number("Tiles"),
        TableWidgetColumn::number("Max per tile"),
    ];
    let row = |row: &MappedVertexRow| {
        let about = if row.strided_copy { "⚠ strided copy: rearranges data" } else { "" };
        vec![
            TableWidgetCell::Text(row.name.clone()),
            TableWidgetCell::Text(about.to_owned()),
            TableWidgetCell::Count(row.count),
            TableWidgetCell::Count(row.tiles),
            TableWidgetCell::Count(row.most),
        ]
    };
    TableWidgetData { columns, rows: mapping.vertex_types.iter().map(row).collect(), totals: false }
}

fn rearrangements(mapping: &SubjectTileMapping) -> TableWidgetData {
    let columns = vec![
        TableWidgetColumn::text("Rearrangement"),
        TableWidgetColumn::text("About"),
        TableWidgetColumn::number("Bytes"),
        TableWidgetColumn::number("Cycles"),
    ];
    let row = |one: &MappedRearrangement| {
        let (from, to) = (holders(&one.before), holders(&one.after));
        let about = format!(
            "{} tiles, at most {} -> {} tiles, at most {}",
            grouped(from),
            exact_bytes(one.before.max()),
            grouped(to),
            exact_bytes(one.after.max())
        );
        vec![
            TableWidgetCell::Text(one.name.clone()),
            TableWidgetCell::Text(about),
            TableWidgetCell::Bytes(one.after.total()),
            TableWidgetCell::Count(one.cycles),
        ]
    };
    TableWidgetData {
        columns,
        rows: mapping.rearrangements.iter().map(row).collect(),
        totals: false,
    }
}

fn holders(tiles: &tilescope_report::units::TileRuns<u64>) -> u64 {
    let some = tiles.iter().filter(|(_, bytes)| **bytes > 0);
    some.map(|(range, _)| u64::from(range.count())).sum()
}
