//! The tables below the floor plan: regions, vertices, rearrangements.

use crate::theme::Palette;
use crate::views::ViewContext;
use crate::widgets::hint_ui;
use crate::widgets::table::{Cell, Column, Table, TableState};
use egui::{RichText, Ui};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::tile_mapping::{
    MAX_REGIONS, Mapping, Rearrangement, Region, Subject, VertexRow,
};
use tilescope_report::Part;
use tilescope_report::units::{TileRange, exact_bytes, grouped};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tab {
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
pub(crate) struct Tables {
    #[serde(skip)]
    made: Option<(u64, [Arc<Table>; 3])>,
    states: [TableState; 3],
    /// The rearrangement that is shown, of which subject.
    rearrangement: Option<(Subject, usize)>,
}

impl Tables {
    /// The rearrangement that is shown: the chosen one, or the first.
    pub(crate) fn rearrangement<'a>(
        &self,
        mapping: &'a Mapping,
    ) -> Option<(usize, &'a Rearrangement)> {
        let at = self.rearrangement.map_or(0, |(_, at)| at);
        let at = if at < mapping.rearrangements.len() { at } else { 0 };
        mapping.rearrangements.get(at).map(|one| (at, one))
    }

    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        tab: Tab,
        mapping: &Mapping,
        (subject, generation): (Subject, u64),
    ) {
        if self.made.as_ref().is_none_or(|(known, _)| *known != generation) {
            let addresses = context.opened.report.has(Part::Addresses);
            self.made = Some((generation, tables(mapping, addresses)));
        }
        self.rearrangement.take_if(|(of, _)| *of != subject);
        let Some((_, made)) = &self.made else { return };
        let Some(table) = made.get(tab as usize).cloned() else { return };
        if table.rows.is_empty() {
            return hint_ui(ui, nothing(tab));
        }
        if tab == Tab::Regions && mapping.cut {
            let text = format!("Only the first {} are listed.", grouped(MAX_REGIONS as u64));
            ui.label(RichText::new(text).color(Palette::of(ui.visuals()).warning));
        }
        let chosen = match tab {
            Tab::Rearrangements => self.rearrangement(mapping).map(|(at, _)| at),
            Tab::Regions | Tab::Vertices | Tab::List => None,
        };
        let hint = ["Filter regions", "Filter vertices", "Filter rearrangements"][tab as usize];
        let state = &mut self.states[tab as usize];
        let workers = context.workers;
        ui.push_id(tab, |ui| {
            if tab != Tab::Rearrangements {
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

fn nothing(tab: Tab) -> &'static str {
    match tab {
        Tab::Regions | Tab::List => "The report attributes no variable to this.",
        Tab::Vertices => "The report attributes no vertices to this.",
        Tab::Rearrangements => {
            "No data is rearranged for this: no exchange is followed by vertices that only copy."
        }
    }
}

fn tables(mapping: &Mapping, addresses: bool) -> [Arc<Table>; 3] {
    [regions(mapping, addresses), vertices(mapping), rearrangements(mapping)].map(Arc::new)
}

fn tiles_text(tiles: TileRange) -> String {
    match tiles.count() {
        1 => format!("Tile {}", grouped(tiles.first.into())),
        _ => format!("Tiles {} - {}", grouped(tiles.first.into()), grouped((tiles.end - 1).into())),
    }
}

fn regions(mapping: &Mapping, addresses: bool) -> Table {
    let columns = vec![
        Column::text("Tiles"),
        Column::text("Variable"),
        Column::text("Part, in layout order"),
        Column::number("Bytes per tile"),
        Column::number("Address"),
    ];
    let row = |region: &Region| {
        vec![
            Cell::Text(tiles_text(region.tiles)),
            Cell::Text(region.variable.clone()),
            Cell::Text(region.part()),
            Cell::Bytes(region.bytes),
            if addresses { Cell::Count(region.offset) } else { Cell::Missing },
        ]
    };
    Table { columns, rows: mapping.regions.iter().map(row).collect(), totals: false }
}

fn vertices(mapping: &Mapping) -> Table {
    let columns = vec![
        Column::text("Vertex type"),
        Column::text("About"),
        Column::number("Vertices"),
        Column::number("Tiles"),
        Column::number("Max per tile"),
    ];
    let row = |row: &VertexRow| {
        let about = if row.strided_copy { "⚠ strided copy: rearranges data" } else { "" };
        vec![
            Cell::Text(row.name.clone()),
            Cell::Text(about.to_owned()),
            Cell::Count(row.count),
            Cell::Count(row.tiles),
            Cell::Count(row.most),
        ]
    };
    Table { columns, rows: mapping.vertex_types.iter().map(row).collect(), totals: false }
}

fn rearrangements(mapping: &Mapping) -> Table {
    let columns = vec![
        Column::text("Rearrangement"),
        Column::text("About"),
        Column::number("Bytes"),
        Column::number("Cycles"),
    ];
    let row = |one: &Rearrangement| {
        let (from, to) = (holders(&one.before), holders(&one.after));
        let about = format!(
            "{} tiles, at most {} -> {} tiles, at most {}",
            grouped(from),
            exact_bytes(one.before.max()),
            grouped(to),
            exact_bytes(one.after.max())
        );
        vec![
            Cell::Text(one.name.clone()),
            Cell::Text(about),
            Cell::Bytes(one.after.total()),
            Cell::Count(one.cycles),
        ]
    };
    Table { columns, rows: mapping.rearrangements.iter().map(row).collect(), totals: false }
}

fn holders(tiles: &tilescope_report::units::TileRuns<u64>) -> u64 {
    let some = tiles.iter().filter(|(_, bytes)| **bytes > 0);
    some.map(|(range, _)| u64::from(range.count())).sum()
}
