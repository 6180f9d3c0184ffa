//! The memory view: the fill level of every tile, and its contents.

mod fullest;
mod memory_map;
pub(super) mod tables;

pub(in crate::views) use fullest::TileFullness;

use super::{ReportView, ViewContext, ViewDescriptor, ViewScales};
use crate::model::command::AppCommand;
use crate::model::preferences::MemoryPrefs;
use crate::model::view_id::ViewId;
use crate::theme::spacing;
use crate::views::tile_selection::{
    floor_plan_ui, tile_graph_ui, tile_picker_ui, trace_cursor_button_ui,
};
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::bottom_panel::{BottomPanel, LOW, tabs_row_ui};
use crate::widgets::floor_plan::{FloorPlanValues, FloorPlanWidget};
use crate::widgets::heat_scale::{HeatScale, scale_ui};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::requested_control::{ControlKind, takes_request};
use crate::widgets::stack_graph::is_near;
use crate::widgets::tile_graph::{StackedTileCurves, TileGraph, TileGraphOptions};
use crate::widgets::tile_picker::TilePicker;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui};
use crate::widgets::{central_ui, empty_state_ui, hint_ui, tabs_ui};
use egui::Ui;
use fullest::{FullestTileQuery, fullest_ui};
use memory_map::MemoryMapPanel;
use serde::{Deserialize, Serialize};
use tables::MemoryTables;
use tilescope_analysis::memory::{MemoryBreakdown, MemoryCurveKey, curves};
use tilescope_analysis::tile_curves::{
    TileAxisOrder, TileCurve, TileCurveLayer, TileCurveStack, TileCurveUnit,
};
use tilescope_analysis::tile_mapping::{MappingSubject, mapping};
use tilescope_report::units::{VariableId, grouped};
use tilescope_report::{MemoryCategory, Report, ReportError, ReportPart};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Memory,
    help: include_str!("../../../../../assets/help/memory.md"),
    icon: Icon::Chip,
    settings: &["show", "breakdown", "order", "powers", "tab"],
    create: || Box::<MemoryView>::default(),
};

/// The largest number of variables shown over tiles at once.
const MAX_CHOSEN: usize = 8;

/// The tables in the lower half of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MemoryTab {
    #[default]
    Details,
    Variables,
    Vertices,
    Exchanges,
    ComputeSets,
}

/// The graph in the upper half of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MemoryGraphMode {
    #[default]
    Total,
    /// The selected variables over tiles.
    Variables,
    /// Memory on the floor plan, in total or of one category.
    Map(Option<MemoryCategory>),
}

/// The variables shown over tiles, the order of tiles, and true for one place per IPU.
type VariableCurvesKey = (Vec<VariableId>, TileAxisOrder, bool);

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct MemoryView {
    #[serde(skip)]
    curves: BackgroundQuery<MemoryCurveKey, StackedTileCurves>,
    show: MemoryGraphMode,
    /// The selected variables, in the order of selection.
    variables: Vec<VariableId>,
    #[serde(skip)]
    variable: BackgroundQuery<VariableCurvesKey, StackedTileCurves>,
    #[serde(skip)]
    map: FloorPlanWidget,
    /// True if the colours of the map use a logarithmic scale.
    powers: bool,
    /// The subject of the map and the scale of its bytes in the last frame.
    #[serde(skip)]
    heat_scale: Option<(&'static str, HeatScale)>,
    /// The bytes of the strongest colour of the map; `None` for those of the fullest tile.
    strongest: Option<u64>,
    breakdown: MemoryBreakdown,
    order: TileAxisOrder,
    per_ipu: bool,
    graph: TileGraph,
    tables: MemoryTables,
    banks: MemoryMapPanel,
    #[serde(skip)]
    fullest: FullestTileQuery,
    panel: BottomPanel,
    tab: MemoryTab,
    #[serde(skip)]
    picker: TilePicker,
}

impl ReportView for MemoryView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        self.notice_selection(context);
        toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context));
        let prefs = context.prefs.memory;
        let plain =
            MemoryCurveKey { include_gaps: prefs.include_gaps, ..MemoryCurveKey::default() };
        let key = match self.show {
            MemoryGraphMode::Map(None) => plain,
            MemoryGraphMode::Map(Some(_)) => {
                MemoryCurveKey { breakdown: MemoryBreakdown::Category, ..plain }
            }
            MemoryGraphMode::Total | MemoryGraphMode::Variables => MemoryCurveKey {
                breakdown: self.breakdown,
                order: self.order,
                per_ipu: self.per_ipu,
                ..plain
            },
        };
        let texts = QueryTexts { waiting: "Reading memory…", failed: "Memory cannot be read" };
        let found = context.ask(ui, &mut self.curves, &key, move |report, key| {
            let total = total_title(key);
            curves(report, key).map(|curves| {
                StackedTileCurves::new(curves, |layer| match layer {
                    TileCurveLayer::Total => total.to_owned(),
                    layer => layer.title().to_owned(),
                })
            })
        });
        found.show(ui, texts, |ui, curves| {
            if curves.curves.max == 0 {
                let sentence = "This report does not record the memory of its tiles. With Poplar, \
                                switch on autoReport.outputGraphProfile.";
                return empty_state_ui(ui, "No memory recorded", sentence);
            }
            self.panels_ui(ui, context, curves);
        });
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        let tiles = AppCommand::SelectTiles(Vec::new());
        vec![tiles, AppCommand::SelectVariable(None), AppCommand::SelectIpu(None)]
    }

    fn scales(&self) -> ViewScales {
        match self.show {
            MemoryGraphMode::Map(_) => ViewScales { graph_top: None, heat: self.heat_scale },
            _ => ViewScales { graph_top: self.graph.highest(), heat: None },
        }
    }
}

impl MemoryView {
    fn panels_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        curves: &Versioned<StackedTileCurves>,
    ) {
        let room = ((ui.available_height() * 0.46).clamp(120.0, 420.0), LOW);
        self.panel =
            self.panel.ui(ui, "memory tables", room, |ui, open| self.tables_ui(ui, context, open));
        central_ui(ui, |ui| match self.show {
            MemoryGraphMode::Total => {
                fullest_ui(ui, context, &mut self.fullest);
                self.total_ui(ui, context, curves);
            }
            MemoryGraphMode::Variables => self.variables_ui(ui, context),
            MemoryGraphMode::Map(category) => self.map_ui(ui, context, curves, category),
        });
    }

    fn total_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        curves: &Versioned<StackedTileCurves>,
    ) {
        let look = TileGraphOptions {
            name: "Memory by tile",
            order: self.order,
            per_ipu: self.per_ipu,
            max_memory: self.max_memory(context.prefs.memory),
            ..TileGraphOptions::default()
        };
        tile_graph_ui(ui, context, &mut self.graph, (curves, look));
    }

    /// Shows the bytes of the selected variables.
    fn variables_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if self.variables.is_empty() {
            let sentence = "Select a variable in the table below to see its tiles; Shift + click \
                 adds another one.";
            return hint_ui(ui, sentence);
        }
        let key = (self.variables.clone(), self.order, self.per_ipu);
        let curves = context.ask(ui, &mut self.variable, &key, variable_curves);
        let texts = QueryTexts { waiting: "Reading…", failed: "The variable cannot be read" };
        curves.show(ui, texts, |ui, curves| {
            let name = "Memory of the selected variables by tile";
            let look = TileGraphOptions {
                name,
                order: self.order,
                per_ipu: self.per_ipu,
                max_memory: false,
                ..TileGraphOptions::default()
            };
            tile_graph_ui(ui, context, &mut self.graph, (curves, look));
        });
    }

    /// Shows memory on the floor plan.
    fn map_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        curves: &Versioned<StackedTileCurves>,
        category: Option<MemoryCategory>,
    ) {
        let layer = category.map_or(TileCurveLayer::Total, TileCurveLayer::Category);
        let version = curves.version();
        let curves = &curves.curves;
        let Some(curve) = curves.layers.iter().find(|curve| curve.layer == layer) else {
            return hint_ui(ui, "No tile has memory of this kind.");
        };
        let values = &curve.values[..];
        let unit = curves.unit;
        let own = HeatScale::of(values, self.powers);
        self.heat_scale = Some((layer.title(), own));
        let scale = context.shared_scale(own);
        let most = scale.most();
        let scale = scale.with_most(self.strongest.unwrap_or(most));
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            scale_ui(ui, &unit.exact(scale.least()), &unit.exact(scale.most()));
            self.strongest_ui(ui, most);
            ui.label(layer.title());
        });
        let place = category.and_then(|c| MemoryCategory::ALL.iter().position(|known| *known == c));
        let generation = (version, place.map_or(0, |at| 1 + at as u64));
        let name = "Memory on the floor plan";
        let shown = FloorPlanValues { name, values, generation, scale, unit };
        floor_plan_ui(ui, context, &mut self.map, shown);
    }
}

impl MemoryView {
    /// The control of the bytes from which a tile has the strongest colour.
    fn strongest_ui(&mut self, ui: &mut Ui, most: u64) {
        let mut strongest = self.strongest.unwrap_or(most);
        let drag = egui::DragValue::new(&mut strongest)
            .range(1..=u64::MAX)
            .speed(most as f64 * 0.005)
            .custom_formatter(|bytes, _| grouped(bytes as u64))
            .custom_parser(|text| text.replace([',', ' '], "").parse().ok())
            .prefix("Full colour from ")
            .suffix(" B");
        let hint = "Tiles with at least this many bytes have the full colour: drag or type a \
             number";
        if ui.add(drag).on_hover_text(hint).changed() {
            self.strongest = Some(strongest);
        }
        if self.strongest.is_some() && ui.button("Reset to the fullest tile").clicked() {
            self.strongest = None;
        }
    }
}

/// The available breakdowns of a report's memory.
fn breakdowns(report: &Report) -> Vec<(MemoryBreakdown, &'static str)> {
    let all = [
        (MemoryBreakdown::None, "None", None),
        (MemoryBreakdown::Region, "Region", Some(ReportPart::Regions)),
        (MemoryBreakdown::Category, "Category", Some(ReportPart::Categories)),
        (MemoryBreakdown::Liveness, "Liveness", Some(ReportPart::Lifetimes)),
    ];
    let known = all.into_iter().filter(|(_, _, part)| part.is_none_or(|part| report.has(part)));
    known.map(|(breakdown, name, _)| (breakdown, name)).collect()
}

/// The title of a single curve.
fn total_title(key: &MemoryCurveKey) -> &'static str {
    match (key.per_ipu, key.include_gaps) {
        (false, false) => "Tile memory (without gaps)",
        (false, true) => "Tile memory (including gaps)",
        (true, false) => "IPU memory (without gaps)",
        (true, true) => "IPU memory (including gaps)",
    }
}

/// The curves of variables, one layer each.
fn variable_curves(
    report: &Report,
    key: &VariableCurvesKey,
) -> Result<StackedTileCurves, ReportError> {
    let (ids, order, per_ipu) = key;
    let mut layers = Vec::new();
    let mut titles = Vec::new();
    for (place, id) in (0u8..).zip(ids) {
        let Some(mapping) = mapping(report, MappingSubject::Tensor(*id))? else { continue };
        layers.push(TileCurve { layer: TileCurveLayer::Nth(place), values: mapping.bytes });
        titles.push((TileCurveLayer::Nth(place), mapping.name));
    }
    let target = report.target()?;
    let curves =
        TileCurveStack::stacked(layers, TileCurveUnit::Bytes).arranged(&target, *order, *per_ipu);
    Ok(StackedTileCurves::new(curves, |layer| {
        let named = titles.iter().find(|(known, _)| *known == layer);
        named.map_or_else(String::new, |(_, title)| title.clone())
    }))
}

impl MemoryView {
    /// Returns true if the line of a tile's capacity is shown: as chosen, or if a curve comes near
    /// it.
    fn max_memory(&self, prefs: MemoryPrefs) -> bool {
        let latest = self.curves.latest();
        let near = latest.is_some_and(|shown| is_near(shown.curves.capacity, shown.curves.max));
        prefs.max_memory.unwrap_or(near)
    }

    fn tables_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, open: &mut bool) {
        let tabs = [
            (MemoryTab::Details, "Details"),
            (MemoryTab::ComputeSets, "Compute sets"),
            (MemoryTab::Variables, "Variables"),
            (MemoryTab::Vertices, "Vertices"),
            (MemoryTab::Exchanges, "Exchanges"),
        ];
        *open |= tabs_row_ui(ui, |ui| tabs_ui(ui, VIEW.id.name(), &tabs, &mut self.tab));
        if takes_request(ui.ctx(), VIEW.id.name(), ControlKind::Tab, |name| name == "Memory map") {
            (self.tab, *open) = (MemoryTab::Variables, true);
            let prefs = MemoryPrefs { variable_map: true, ..context.prefs.memory };
            context.commands.push(AppCommand::SetMemoryPrefs(prefs));
        }
        if !*open {
            return;
        }
        ui.add_space(spacing::XS);
        if self.tab == MemoryTab::Variables && context.opened.report.has(ReportPart::Variables) {
            self.variables_look_ui(ui, context);
            if context.prefs.memory.variable_map {
                if let Some(variable) = self.banks.ui(ui, context, &self.variables) {
                    let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
                    self.choose(context, variable, add);
                }
                return;
            }
        }
        if let Some((variable, add)) = self.tables.ui(ui, context, self.tab, &self.variables) {
            self.choose(context, variable, add);
        }
    }

    /// The choice between a table and a map of variables. The choice is stored.
    fn variables_look_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let mut prefs = context.prefs.memory;
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            for (map, text) in [(false, "Table"), (true, "Memory map")] {
                if ui.selectable_label(prefs.variable_map == map, text).clicked() {
                    prefs.variable_map = map;
                }
            }
        });
        if prefs != context.prefs.memory {
            context.commands.push(AppCommand::SetMemoryPrefs(prefs));
        }
    }

    /// Replaces the selected variables by one selected elsewhere.
    fn notice_selection(&mut self, context: &ViewContext<'_>) {
        if context.selection.variable != self.variables.last().copied() {
            self.variables = context.selection.variable.into_iter().collect();
        }
    }

    fn choose(&mut self, context: &ViewContext<'_>, variable: VariableId, add: bool) {
        match self.variables.iter().position(|known| *known == variable) {
            Some(at) if add => drop(self.variables.remove(at)),
            _ if add => {
                self.variables.truncate(MAX_CHOSEN - 1);
                self.variables.push(variable);
            }
            _ => self.variables = vec![variable],
        }
        context.commands.push(AppCommand::SelectVariable(self.variables.last().copied()));
    }

    fn controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let mut shows = vec![
            (MemoryGraphMode::Total, "Total memory"),
            (MemoryGraphMode::Variables, "Selected variables"),
            (MemoryGraphMode::Map(None), "Tile map"),
        ];
        if context.opened.report.has(ReportPart::Categories) {
            shows.extend(MemoryCategory::ALL.map(|c| (MemoryGraphMode::Map(Some(c)), c.title())));
        }
        if let Some(show) = bar.choice("Graph", &shows, self.show) {
            self.show = show;
            self.graph.reset();
        }
        let breakdowns = breakdowns(&context.opened.report);
        if !breakdowns.iter().any(|(breakdown, _)| *breakdown == self.breakdown) {
            self.breakdown = MemoryBreakdown::None;
        }
        let map = matches!(self.show, MemoryGraphMode::Map(_));
        if self.show == MemoryGraphMode::Total
            && let Some(breakdown) = bar.choice("Breakdown", &breakdowns, self.breakdown)
        {
            self.breakdown = breakdown;
        }
        let orders = [
            (TileAxisOrder::Software, "Software order"),
            (TileAxisOrder::Hardware, "Hardware order"),
        ];
        if !map && let Some(order) = bar.choice("Tiles", &orders, self.order) {
            self.order = order;
            self.graph.reset();
        }
        if map {
            let hint = "Logarithmic colour scale, to tell small values apart.";
            bar.checkbox("Logarithmic colours", &mut self.powers, hint);
            trace_cursor_button_ui(bar, context);
        }
        let old = context.prefs.memory;
        let mut prefs: MemoryPrefs = old;
        let hint = "Count unused bytes below the last used address of a tile.";
        bar.checkbox("Include gaps", &mut prefs.include_gaps, hint);
        let mut shown = self.max_memory(old);
        if bar.checkbox("Show max memory", &mut shown, "A line at the memory per tile.") {
            prefs.max_memory = Some(shown);
        }
        if prefs != old {
            context.commands.push(AppCommand::SetMemoryPrefs(prefs));
        }
        if !map
            && context.opened.target.ipus_per_replica > 1
            && bar.checkbox("Per IPU", &mut self.per_ipu, "One graph per IPU, stacked.")
        {
            self.graph.reset();
        }
        bar.align_right();
        if bar.button("Whole chip", "Show all tiles") {
            self.graph.reset();
        }
        bar.add_box("Select tiles", |ui| tile_picker_ui(ui, context, &mut self.picker));
    }
}
