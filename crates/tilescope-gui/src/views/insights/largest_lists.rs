//! The largest vertices, exchanges and variables of the model, an IPU or the fullest tile.

use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing};
use crate::views::ViewContext;
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::bottom_panel::tabs_row_ui;
use crate::widgets::query_state::LIST_TEXTS;
use crate::widgets::requested_control::{ControlKind, takes_request};
use crate::widgets::table::TableState;
use crate::widgets::{central_ui, choice_ui, hint_ui, ipu_names, open_choice, tabs_ui};
use egui::Ui;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::liveness::{LivenessScope, always_live, curve, live_at};
use tilescope_analysis::memory::{self, MemoryList};
use tilescope_analysis::tables::{liveness as live_columns, memory as columns};
use tilescope_report::units::{IpuId, NumberFormat, TileId, TileRange, grouped};
use tilescope_report::{Report, ReportError, ReportPart, Target};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LargestListTab {
    #[default]
    Vertices,
    Exchanges,
    Variables,
    /// The variables that are live at the step with the most live bytes.
    Peak,
}

/// The scope of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LargestListScope {
    /// All tiles of the replica.
    #[default]
    Model,
    /// The tiles of one IPU.
    Ipu(IpuId),
    /// The fullest tile.
    Tile,
}

/// The kind of list, its scope, and the format of numbers in text.
type LargestListKey = (LargestListTab, LivenessScope, TileRange, NumberFormat);

/// The state of the tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LargestLists {
    tab: LargestListTab,
    scope: LargestListScope,
    #[serde(skip)]
    listed: BackgroundQuery<LargestListKey, Arc<DataTable>>,
    states: [TableState; 4],
    /// The vertex type whose compute sets are listed beside it.
    vertex: Option<String>,
    #[serde(skip)]
    users: BackgroundQuery<(String, TileRange), Arc<DataTable>>,
    users_state: TableState,
}

/// The width from which tabs and choices fit on one line.
const ONE_LINE: f32 = 760.0;

impl LargestLists {
    fn scope_ui(&mut self, ui: &mut Ui, ipus: u32, fullest: Option<TileId>) {
        let mut scopes = vec![(LargestListScope::Model, "Whole model".to_owned())];
        if ipus > 1 {
            scopes.extend(ipu_names(ipus).map(|(ipu, name)| (LargestListScope::Ipu(ipu), name)));
        }
        if let Some(tile) = fullest {
            scopes
                .push((LargestListScope::Tile, format!("Fullest tile, {}", grouped(tile.into()))));
        }
        let scopes: Vec<(LargestListScope, &str)> =
            scopes.iter().map(|(scope, name)| (*scope, name.as_str())).collect();
        if let Some(scope) = choice_ui(ui, "Scope", &scopes, self.scope) {
            self.scope = scope;
        }
        if takes_request(ui.ctx(), ViewId::Insights.name(), ControlKind::Strip, |name| {
            name == "Scope"
        }) {
            open_choice(ui, "Scope");
        }
    }

    /// The tiles of the query.
    fn tiles(&self, target: &Target, fullest: Option<TileId>) -> TileRange {
        let all = TileRange::first_tiles(target.tiles_per_replica());
        match (self.scope, fullest) {
            (LargestListScope::Ipu(ipu), _) if target.has_ipu(ipu) => target.tiles_of_ipu(ipu),
            (LargestListScope::Tile, Some(tile)) => TileRange::single(tile),
            _ => all,
        }
    }

    /// Shows the lists below the findings. A click on a tab opens them.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        fullest: Option<TileId>,
        open: &mut bool,
    ) {
        let tabs = [
            (LargestListTab::Vertices, "Largest vertices"),
            (LargestListTab::Exchanges, "Largest exchanges"),
            (LargestListTab::Variables, "Largest variables"),
            (LargestListTab::Peak, "Live at the peak"),
        ];
        let narrow = ui.available_width() < ONE_LINE;
        let is_open = *open;
        *open |= tabs_row_ui(ui, |ui| {
            let clicked = tabs_ui(ui, ViewId::Insights.name(), &tabs, &mut self.tab);
            if !narrow && is_open {
                self.scope_ui(ui, context.opened.target.ipus_per_replica, fullest);
            }
            clicked
        });
        if !*open {
            return;
        }
        if narrow {
            ui.horizontal(|ui| {
                ui.add_space(spacing::S);
                self.scope_ui(ui, context.opened.target.ipus_per_replica, fullest);
            });
        }
        ui.add_space(spacing::XS);
        let (part, index, what) = match self.tab {
            LargestListTab::Vertices => (ReportPart::Vertices, 0, "vertices"),
            LargestListTab::Exchanges => (ReportPart::Exchanges, 1, "exchanges"),
            LargestListTab::Variables => (ReportPart::Variables, 2, "variables"),
            LargestListTab::Peak => (ReportPart::Liveness, 3, "variables"),
        };
        if !context.opened.report.has(part) {
            return hint_ui(
                ui,
                &format!("The {what} of each tile were not recorded in this report."),
            );
        }
        let all = context.opened.target.tiles_per_replica();
        let tiles = self.tiles(&context.opened.target, fullest);
        let source = match self.scope {
            LargestListScope::Model => LivenessScope::Whole,
            LargestListScope::Ipu(ipu) => LivenessScope::Ipu(ipu),
            LargestListScope::Tile => LivenessScope::Tile(tiles.first),
        };
        let key = (self.tab, source, tiles, numbers(ui));
        let listed = context.ask(
            ui,
            &mut self.listed,
            &key,
            move |report, (tab, source, tiles, numbers)| {
                if *tab == LargestListTab::Peak {
                    return live_at_peak(report, *source);
                }
                listed(report, *tab, &listed_tiles(*tiles, all), *numbers)
            },
        );
        let hint = format!("Filter {what}");
        listed.fresh_only().show(ui, LIST_TEXTS, |ui, table| {
            let generation = table.version();
            if self.tab == LargestListTab::Vertices {
                return self.vertices_ui(ui, context, (generation, table), tiles);
            }
            ui.push_id(index, |ui| {
                self.states[index].ui(ui, context.workers, table, generation, &hint);
            });
        });
    }

    /// The vertex types, and beside the selected one the compute sets that use it.
    fn vertices_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        (generation, table): (u64, &Arc<DataTable>),
        tiles: TileRange,
    ) {
        let place =
            table.rows.iter().position(|row| row.first().map(TableCell::text) == self.vertex);
        let Some(vertex) = self.vertex.clone().filter(|_| place.is_some()) else {
            return self.types_ui(ui, context, (generation, table), None);
        };
        if ui.available_width() < ONE_LINE {
            ui.horizontal(|ui| {
                ui.add_space(spacing::M);
                if ui.button("All vertices").clicked() {
                    self.vertex = None;
                }
            });
            return self.users_ui(ui, context, vertex, tiles);
        }
        let frame = egui::Frame::new().fill(ThemePalette::for_ui(ui).page);
        let half = ui.available_width() * 0.45;
        let panel = egui::Panel::right("compute sets of a vertex").default_size(half).frame(frame);
        panel.show(ui, |ui| {
            ui.take_available_space();
            self.users_ui(ui, context, vertex, tiles);
        });
        central_ui(ui, |ui| {
            self.types_ui(ui, context, (generation, table), place);
        });
    }

    fn types_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        (generation, table): (u64, &Arc<DataTable>),
        chosen: Option<usize>,
    ) {
        let state = &mut self.states[0];
        let workers = context.workers;
        let clicked = ui.push_id(0, |ui| {
            state.choose_ui(ui, workers, table, generation, "Filter vertices", chosen.as_slice())
        });
        if let Some(row) = clicked.inner {
            let again = chosen == Some(row);
            let name = table.rows[row].first().map(TableCell::text);
            self.vertex = name.filter(|_| !again);
        }
    }

    /// The compute sets that use a vertex type.
    fn users_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        vertex: String,
        tiles: TileRange,
    ) {
        ui.horizontal(|ui| {
            ui.add_space(spacing::M);
            let title = strong(format!("Compute sets that use {vertex}"));
            ui.add(egui::Label::new(title).truncate());
        });
        let all = context.opened.target.tiles_per_replica();
        let users =
            context.ask(ui, &mut self.users, &(vertex, tiles), move |report, (vertex, tiles)| {
                users(report, vertex, &listed_tiles(*tiles, all))
            });
        users.fresh_only().show(ui, LIST_TEXTS, |ui, table| {
            ui.push_id("users", |ui| {
                let hint = "Filter compute sets";
                self.users_state.ui(ui, context.workers, table, table.version(), hint);
            });
        });
    }
}

/// The tiles in the form of list queries: an empty list stands for all of them, which is faster.
fn listed_tiles(tiles: TileRange, all: u32) -> Vec<TileId> {
    if tiles.count() == all { Vec::new() } else { tiles.iter().collect() }
}

fn users(report: &Report, vertex: &str, tiles: &[TileId]) -> Result<Arc<DataTable>, ReportError> {
    let listing = summed(memory::users_of(report, vertex, tiles)?);
    Ok(Arc::new(columns::compute_sets(&listing, &[])))
}

/// The variables live at the step with the most live bytes, including always-live ones.
fn live_at_peak(report: &Report, source: LivenessScope) -> Result<Arc<DataTable>, ReportError> {
    let peak = curve(report, source)?.and_then(|curve| curve.peak());
    let mut live = always_live(report, source)?;
    if let Some(peak) = peak {
        live.extend(live_at(report, source, &[peak as u32])?);
    }
    Ok(Arc::new(live_columns::live_at_peak(&live, peak)))
}

fn listed(
    report: &Report,
    tab: LargestListTab,
    tiles: &[TileId],
    numbers: NumberFormat,
) -> Result<Arc<DataTable>, ReportError> {
    let table = match tab {
        LargestListTab::Vertices => {
            columns::vertices(&summed(memory::vertices(report, tiles)?), &[])
        }
        LargestListTab::Exchanges => {
            columns::exchanges(&summed(memory::exchanges(report, tiles, numbers)?), &[])
        }
        LargestListTab::Variables | LargestListTab::Peak => {
            columns::variables(&summed(memory::variables(report, tiles)?), &[])
        }
    };
    Ok(Arc::new(table))
}

/// A list with one column of bytes for the sum of all its tiles.
fn summed(mut listing: MemoryList) -> MemoryList {
    for listed in &mut listing.rows {
        listed.bytes = vec![listed.bytes.iter().sum()];
    }
    listing
}
