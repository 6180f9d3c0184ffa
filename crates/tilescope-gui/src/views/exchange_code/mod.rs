//! The exchange code view: the code on every tile, the programs that own it, the traffic between
//! tiles, and the measured and minimum cost of exchanges.

mod cycle_tables;
mod floor_plans;
mod matrix;
pub(super) mod tables;

use super::trace_jump::TraceJump;
use super::{ReportView, ViewContext, ViewDescriptor, ViewScales};
use crate::model::command::AppCommand;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::theme::spacing;
use crate::views::tile_selection::{
    measured_tiles_ui, tile_graph_ui, tile_picker_ui, trace_cursor_button_ui,
};
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::bottom_panel::{BottomPanel, LOW, tabs_row_ui};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::tile_graph::{StackedTileCurves, TileGraph, TileGraphOptions};
use crate::widgets::tile_picker::TilePicker;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui};
use crate::widgets::{central_ui, empty_state_ui, tables_height, waiting_tabs_ui};
use egui::Ui;
use floor_plans::ExchangeFloorPlans;
use matrix::ExchangeMatrixPanel;
use serde::{Deserialize, Serialize};
use tables::ExchangeCodeTables;
use tilescope_analysis::exchange_code::{ExchangeFlows, ExchangeLink, ExchangeMeasure, curves};
use tilescope_analysis::tile_curves::TileAxisOrder;
use tilescope_report::units::ProgramId;
use tilescope_report::{Report, ReportPart, TargetKind};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::ExchangeCode,
    help: include_str!("../../../../../assets/help/exchange-code.md"),
    icon: Icon::Exchange,
    settings: &["show", "link", "order", "tab"],
    create: || Box::<ExchangeCodeView>::default(),
};

/// The message for reports without the traffic of tiles.
const NO_TRAFFIC: &str = "This report does not record the traffic of each tile.";

/// The graph in the upper half of the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExchangeCodeGraphMode {
    Curves(ExchangeMeasure),
    Matrix,
    FloorPlans,
}

impl Default for ExchangeCodeGraphMode {
    fn default() -> Self {
        Self::Curves(ExchangeMeasure::Code)
    }
}

/// The tables in the lower half of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExchangeCodeTab {
    #[default]
    Overview,
    Programs,
    Cycles,
    Details,
    HotTiles,
    Pairs,
    Tiles,
}

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ExchangeCodeView {
    #[serde(skip)]
    curves: BackgroundQuery<(ExchangeMeasure, TileAxisOrder, bool), StackedTileCurves>,
    #[serde(skip)]
    flows: BackgroundQuery<(), ExchangeFlows>,
    show: ExchangeCodeGraphMode,
    order: TileAxisOrder,
    per_ipu: bool,
    graph: TileGraph,
    matrix: ExchangeMatrixPanel,
    #[serde(skip)]
    floor_plans: ExchangeFloorPlans,
    link: Option<ExchangeLink>,
    /// The selected program of the last frame.
    #[serde(skip)]
    program: Option<ProgramId>,
    #[serde(skip)]
    jump: TraceJump,
    tables: ExchangeCodeTables,
    panel: BottomPanel,
    tab: ExchangeCodeTab,
    #[serde(skip)]
    picker: TilePicker,
}

impl ReportView for ExchangeCodeView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if let Some((heading, sentence)) = why_empty(&context.opened.report) {
            empty_state_ui(ui, heading, sentence);
            return measured_tiles_ui(ui, context);
        }
        self.notice_program(context);
        self.jump.update(ui.ctx(), context);
        toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context));
        // The code overview does not apply to pictures of the traffic.
        let curves = matches!(self.show, ExchangeCodeGraphMode::Curves(_));
        let about = curves || self.tab != ExchangeCodeTab::Overview;
        let room = (tables_height(ui, if about { 0.42 } else { 0.3 }), LOW);
        self.panel = self.panel.ui_when(about, ui, "exchange tables", room, |ui, open| {
            self.tables_ui(ui, context, open);
        });
        central_ui(ui, |ui| match self.show {
            ExchangeCodeGraphMode::Curves(measure) => self.curves_ui(ui, context, measure),
            ExchangeCodeGraphMode::Matrix => self.matrix_ui(ui, context),
            ExchangeCodeGraphMode::FloorPlans => self.floor_plans_ui(ui, context),
        });
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        vec![AppCommand::SelectTiles(Vec::new()), AppCommand::SelectProgram(None)]
    }

    fn scales(&self) -> ViewScales {
        let (name, scale) = match self.show {
            ExchangeCodeGraphMode::Matrix => ("Traffic matrix", self.matrix.heat_scale()),
            ExchangeCodeGraphMode::FloorPlans => ("Floor plan", self.floor_plans.heat_scale()),
            ExchangeCodeGraphMode::Curves(_) => ("", None),
        };
        let heat = scale.map(|scale| (name, scale));
        ViewScales { graph_top: self.graph.highest(), heat }
    }

    fn notice_restored(&mut self, selection: &Selection) {
        self.program = selection.program;
    }
}

/// The reason for an empty view, if any.
fn why_empty(report: &Report) -> Option<(&'static str, &'static str)> {
    let recorded = report.has(ReportPart::Exchanges) || report.has(ReportPart::Categories);
    if !recorded {
        Some((
            "No exchange code recorded",
            "This report records neither memory categories nor exchange traffic. With Poplar, switch \
         on autoReport.outputGraphProfile.",
        ))
    } else {
        None
    }
}

impl ExchangeCodeView {
    /// Shows a newly selected program in the matrix, or on the floor plan if its cycles are
    /// selected.
    fn notice_program(&mut self, context: &ViewContext<'_>) {
        use ExchangeCodeTab::{Cycles, Details, HotTiles, Overview, Pairs, Programs, Tiles};
        let program = context.selection.program;
        if program == self.program {
            return;
        }
        self.program = program;
        match self.tab {
            Programs if program.is_some() => self.show = ExchangeCodeGraphMode::Matrix,
            Cycles | Details | HotTiles if program.is_some() => {
                self.show = ExchangeCodeGraphMode::FloorPlans;
            }
            Overview | Programs | Cycles | Details | HotTiles | Pairs | Tiles => {}
        }
        if self.tab != Cycles {
            self.tables.forget_ipu();
        }
    }

    fn controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let shows = [
            (ExchangeCodeGraphMode::Curves(ExchangeMeasure::Code), "Code by tile"),
            (ExchangeCodeGraphMode::Curves(ExchangeMeasure::Traffic), "Bytes by tile"),
            (ExchangeCodeGraphMode::Curves(ExchangeMeasure::Messages), "Messages by tile"),
            (ExchangeCodeGraphMode::Matrix, "Traffic matrix"),
            (ExchangeCodeGraphMode::FloorPlans, "Floor plan"),
        ];
        if let Some(show) = bar.choice("Show", &shows, self.show) {
            self.show = show;
        }
        match self.show {
            ExchangeCodeGraphMode::Curves(_) => self.curve_controls_ui(bar, context),
            ExchangeCodeGraphMode::Matrix => self.matrix_controls_ui(bar, context),
            ExchangeCodeGraphMode::FloorPlans => {
                self.program_controls_ui(bar, context);
                trace_cursor_button_ui(bar, context);
            }
        }
        bar.align_right();
        if self.show != ExchangeCodeGraphMode::FloorPlans
            && bar.button("Whole chip", "Show all tiles")
        {
            self.graph.reset();
            self.matrix.reset();
        }
        bar.add_box("Select tiles", |ui| tile_picker_ui(ui, context, &mut self.picker));
    }

    fn curve_controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let orders = [
            (TileAxisOrder::Software, "Software order"),
            (TileAxisOrder::Hardware, "Hardware order"),
        ];
        if let Some(order) = bar.choice("Tiles", &orders, self.order) {
            self.order = order;
            self.graph.reset();
        }
        if context.opened.target.ipus_per_replica > 1
            && bar.checkbox("Per IPU", &mut self.per_ipu, "One graph per IPU, stacked.")
        {
            self.graph.reset();
        }
    }

    fn matrix_controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let links = [
            (None, "All links"),
            (Some(ExchangeLink::Internal), "Inside IPUs"),
            (Some(ExchangeLink::Global), "Between IPUs"),
        ];
        if let Some(link) = bar.choice("Link", &links, self.link) {
            self.link = link;
        }
        self.program_controls_ui(bar, context);
    }

    /// The controls for the selected program.
    fn program_controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let Some(program) = context.selection.program else { return };
        let hint = "The picture shows the selected program; show all programs";
        if bar.button("All programs", hint) {
            context.commands.push(AppCommand::SelectProgram(None));
        }
        let hint = "Where the selected program first ran";
        if bar.button("Show in trace", hint) {
            self.jump.start(program);
        }
    }

    fn curves_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, measure: ExchangeMeasure) {
        if measure != ExchangeMeasure::Code && !context.opened.report.has(ReportPart::Exchanges) {
            return empty_state_ui(ui, "No traffic recorded", NO_TRAFFIC);
        }
        let key = (measure, self.order, self.per_ipu);
        let texts =
            QueryTexts { waiting: "Reading exchanges…", failed: "Exchange code cannot be read" };
        let found =
            context.ask(ui, &mut self.curves, &key, |report, &(measure, order, per_ipu)| {
                let found = curves(report, measure, order, per_ipu)?;
                Ok(StackedTileCurves::new(found, |of| of.title().to_owned()))
            });
        found.show(ui, texts, |ui, curves| {
            if curves.curves.max == 0 {
                let (heading, sentence) = zero_measure_reason(context, measure);
                return empty_state_ui(ui, heading, sentence);
            }
            let name = match measure {
                ExchangeMeasure::Code => "Exchange code by tile",
                ExchangeMeasure::Traffic => "Bytes received and sent by tile",
                ExchangeMeasure::Messages => "Messages by tile",
            };
            let order = self.order;
            let per_ipu = self.per_ipu;
            let look = TileGraphOptions { name, order, per_ipu, ..TileGraphOptions::default() };
            tile_graph_ui(ui, context, &mut self.graph, (curves, look));
        });
    }

    fn floor_plans_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if !context.opened.report.has(ReportPart::Exchanges) {
            return empty_state_ui(ui, "No traffic recorded", NO_TRAFFIC);
        }
        self.floor_plans.ui(ui, context, self.program);
    }

    fn matrix_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if !context.opened.report.has(ReportPart::Exchanges) {
            return empty_state_ui(ui, "No traffic recorded", NO_TRAFFIC);
        }
        let report = context.opened.report.clone();
        let texts =
            QueryTexts { waiting: "Reading exchanges…", failed: "Exchanges cannot be read" };
        let flows =
            self.flows.ask(ui.ctx(), context.workers, &(), move |()| ExchangeFlows::read(&report));
        flows.show(ui, texts, |ui, flows| {
            // Programs that move nothing between tiles must not empty the picture.
            let program = self.program.filter(|program| flows.tiles_of(*program).is_some());
            self.matrix.ui(ui, context, flows, self.link, program);
        });
    }

    fn tables_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, open: &mut bool) {
        let tabs = [
            (ExchangeCodeTab::Overview, "Overview"),
            (ExchangeCodeTab::Programs, "Programs"),
            (ExchangeCodeTab::Cycles, "Cycles"),
            (ExchangeCodeTab::Details, "Details"),
            (ExchangeCodeTab::HotTiles, "Hot tiles"),
            (ExchangeCodeTab::Pairs, "IPU pairs"),
            (ExchangeCodeTab::Tiles, "Tiles"),
        ];
        let none = context.selection.program.is_none();
        let chosen = tabs_row_ui(ui, |ui| {
            waiting_tabs_ui(ui, VIEW.id.name(), &tabs, &mut self.tab, |tab| {
                let waits = matches!(tab, ExchangeCodeTab::Details | ExchangeCodeTab::HotTiles);
                if none && waits { Some("Select an exchange first") } else { None }
            })
        });
        *open |= chosen;
        let of_one = matches!(self.tab, ExchangeCodeTab::Details | ExchangeCodeTab::HotTiles);
        let curves = matches!(self.show, ExchangeCodeGraphMode::Curves(_));
        if chosen && of_one && curves && !none {
            self.show = ExchangeCodeGraphMode::FloorPlans;
        }
        if *open {
            ui.add_space(spacing::XS);
            if let Some(place) = self.tables.ui(ui, context, self.tab) {
                self.jump.start_at(place);
            }
        }
    }
}

/// The reason that a measure is zero everywhere.
fn zero_measure_reason(
    context: &ViewContext<'_>,
    measure: ExchangeMeasure,
) -> (&'static str, &'static str) {
    let model = context.opened.target.kind == TargetKind::IpuModel;
    match measure {
        ExchangeMeasure::Code if model => (
            "No exchange code",
            "The IPU Model generates no exchange code. \"Bytes by tile\" shows the traffic.",
        ),
        ExchangeMeasure::Code => {
            ("No exchange code", "No tile of this program holds exchange code.")
        }
        ExchangeMeasure::Traffic | ExchangeMeasure::Messages => {
            ("No traffic", "No tile of this program sends or receives anything.")
        }
    }
}
