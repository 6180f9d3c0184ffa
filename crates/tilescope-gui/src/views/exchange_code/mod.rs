//! Exchange code: what it costs on every tile, which programs it belongs to, who sends to whom.

mod matrix;
pub(super) mod tables;

use super::jump::TraceJump;
use super::state::{State, kept, restored};
use super::{View, ViewContext, ViewInfo};
use crate::command::Command;
use crate::icons::Icon;
use crate::session::Selection;
use crate::theme::Palette;
use crate::widgets::tile_graph::{Look, TileCurves, TileGraph};
use crate::widgets::tile_picker::TilePicker;
use crate::widgets::toolbar::{Bar, toolbar_ui};
use crate::widgets::{missing_ui, tables_height, tabs_ui, waiting_ui};
use crate::worker::{Asked, Slot};
use egui::{CentralPanel, Frame, Panel, Ui};
use matrix::MatrixView;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tables::Tables;
use tilescope_analysis::exchange_code::{Flows, Link, Measure, curves};
use tilescope_analysis::tiles::Order;
use tilescope_report::units::ProgramId;
use tilescope_report::{Part, Report, TargetKind};

/// This view, for the list.
pub(crate) const VIEW: ViewInfo = ViewInfo {
    name: "exchange-code",
    title: "Exchange code",
    help: include_str!("../../../../../assets/help/exchange-code.md"),
    icon: Icon::Exchange,
    settings: &["show", "link", "order", "tab"],
    create: || Box::<ExchangeCode>::default(),
};

/// What the upper half shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Show {
    Curves(Measure),
    Matrix,
}

impl Default for Show {
    fn default() -> Self {
        Self::Curves(Measure::Code)
    }
}

/// The tables below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Tab {
    #[default]
    Overview,
    Programs,
    Tiles,
}

/// State of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct ExchangeCode {
    #[serde(skip)]
    curves: Slot<(Measure, Order, bool), Result<Arc<TileCurves>, String>>,
    #[serde(skip)]
    flows: Slot<(), Result<Arc<Flows>, String>>,
    show: Show,
    order: Order,
    per_ipu: bool,
    graph: TileGraph,
    matrix: MatrixView,
    link: Option<Link>,
    /// The program that was chosen in the last frame.
    #[serde(skip)]
    program: Option<ProgramId>,
    #[serde(skip)]
    jump: TraceJump,
    tables: Tables,
    tab: Tab,
    #[serde(skip)]
    picker: TilePicker,
}

impl View for ExchangeCode {
    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        if let Some((heading, sentence)) = why_empty(&context.opened.report) {
            return missing_ui(ui, heading, sentence);
        }
        self.notice_program(context);
        self.jump.update(ui.ctx(), context);
        toolbar_ui(ui, VIEW.name, |bar| self.controls_ui(bar, context));
        let height = ui.available_height();
        let frame = Frame::new().fill(Palette::of(ui.visuals()).page);
        Panel::bottom("exchange tables")
            .resizable(true)
            .default_size(tables_height(ui, 0.42))
            .size_range(60.0..=(height - 120.0).max(61.0))
            .frame(frame)
            .show(ui, |ui| {
                ui.take_available_space();
                self.tables_ui(ui, context);
            });
        CentralPanel::default().frame(frame).show(ui, |ui| match self.show {
            Show::Curves(measure) => self.curves_ui(ui, context, measure),
            Show::Matrix => self.matrix_ui(ui, context),
        });
    }

    fn clears(&self) -> Vec<Command> {
        vec![Command::SelectTiles(Vec::new()), Command::SelectProgram(None)]
    }

    fn state(&self) -> State {
        kept(self)
    }

    fn restore(&mut self, state: &State, selection: &Selection) -> Vec<String> {
        let strange;
        (*self, strange) = restored(state);
        self.program = selection.program;
        strange
    }
}

/// Why there is nothing to show, if there is nothing.
fn why_empty(report: &Report) -> Option<(&'static str, &'static str)> {
    let recorded = report.has(Part::Exchanges) || report.has(Part::Categories);
    (!recorded).then_some((
        "No exchange code recorded",
        "This report says neither what memory is used for nor what exchanges move. \
         With Poplar, switch on autoReport.outputGraphProfile.",
    ))
}

impl ExchangeCode {
    /// A program that is chosen while its table is shown is looked at in the matrix.
    fn notice_program(&mut self, context: &ViewContext<'_>) {
        let program = context.selection.program;
        if program != self.program && program.is_some() && self.tab == Tab::Programs {
            self.show = Show::Matrix;
        }
        self.program = program;
    }

    fn controls_ui(&mut self, bar: &mut Bar<'_>, context: &mut ViewContext<'_>) {
        let shows = [
            (Show::Curves(Measure::Code), "Code by tile"),
            (Show::Curves(Measure::Traffic), "Bytes by tile"),
            (Show::Curves(Measure::Messages), "Messages by tile"),
            (Show::Matrix, "Who sends to whom"),
        ];
        if let Some(show) = bar.choice("Show", &shows, self.show) {
            self.show = show;
        }
        if self.show == Show::Matrix {
            self.matrix_controls_ui(bar, context);
        } else {
            let orders = [(Order::Software, "Software order"), (Order::Hardware, "Hardware order")];
            if let Some(order) = bar.choice("Tiles", &orders, self.order) {
                self.order = order;
                self.graph.reset();
            }
            if context.opened.target.ipus_per_replica > 1
                && bar.tick("Per IPU", &mut self.per_ipu, "A graph per IPU, above each other.")
            {
                self.graph.reset();
            }
        }
        bar.end();
        if bar.button("Whole chip", "Show all tiles") {
            self.graph.reset();
            self.matrix.reset();
        }
        bar.add("Select tiles", |ui| self.picker.ui(ui, context));
    }

    fn matrix_controls_ui(&mut self, bar: &mut Bar<'_>, context: &mut ViewContext<'_>) {
        let links = [
            (None, "All links"),
            (Some(Link::Internal), "Inside IPUs"),
            (Some(Link::Global), "Between IPUs"),
        ];
        if let Some(link) = bar.choice("Link", &links, self.link) {
            self.link = link;
        }
        let Some(program) = context.selection.program else { return };
        let hint = "The matrix shows the program that is chosen; show all of them";
        if bar.button("All programs", hint) {
            context.commands.push(Command::SelectProgram(None));
        }
        let hint = "Where the chosen program ran first";
        if bar.button("Show in trace", hint) {
            self.jump.start(program);
        }
    }

    fn curves_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, measure: Measure) {
        if measure != Measure::Code && !context.opened.report.has(Part::Exchanges) {
            let sentence = "This report does not say what each tile sends and receives.";
            return missing_ui(ui, "No traffic recorded", sentence);
        }
        let report = context.opened.report.clone();
        let key = (measure, self.order, self.per_ipu);
        let question = move |&(measure, order, per_ipu): &(Measure, Order, bool)| {
            let found = curves(&report, measure, order, per_ipu);
            let ready = |curves| Arc::new(TileCurves::new(curves, |of| of.title().to_owned()));
            found.map(ready).map_err(|error| error.to_string())
        };
        let asked = self.curves.ask(ui.ctx(), context.workers, &key, question);
        let curves = match asked {
            Asked::Fresh(Ok(curves)) | Asked::Stale(Ok(curves)) => curves.clone(),
            Asked::Fresh(Err(problem)) | Asked::Stale(Err(problem)) => {
                return missing_ui(ui, "Exchange code cannot be read", problem);
            }
            Asked::Failed => {
                return missing_ui(ui, "Exchange code cannot be read", "Please report this.");
            }
            Asked::Waiting => {
                if self.curves.is_slow() {
                    waiting_ui(ui, "Reading exchanges…");
                }
                return;
            }
        };
        if curves.curves.max == 0 {
            let (heading, sentence) = nothing(context, measure);
            return missing_ui(ui, heading, sentence);
        }
        let name = match measure {
            Measure::Code => "Exchange code by tile",
            Measure::Traffic => "Bytes received and sent by tile",
            Measure::Messages => "Messages by tile",
        };
        let (order, per_ipu) = (self.order, self.per_ipu);
        let look = Look { name, order, per_ipu, max_memory: false };
        self.graph.ui(ui, context, &curves, look);
    }

    fn matrix_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        if !context.opened.report.has(Part::Exchanges) {
            let sentence = "This report does not say what each tile sends and receives.";
            return missing_ui(ui, "No traffic recorded", sentence);
        }
        let report = context.opened.report.clone();
        let question =
            move |(): &()| Flows::read(&report).map(Arc::new).map_err(|error| error.to_string());
        match self.flows.ask(ui.ctx(), context.workers, &(), question) {
            Asked::Fresh(Ok(flows)) | Asked::Stale(Ok(flows)) => {
                let flows = flows.clone();
                // Programs that move nothing between tiles are no reason to show nothing.
                let program = self.program.filter(|program| flows.tiles_of(*program).is_some());
                self.matrix.ui(ui, context, &flows, self.link, program);
            }
            Asked::Fresh(Err(problem)) | Asked::Stale(Err(problem)) => {
                missing_ui(ui, "Exchanges cannot be read", problem);
            }
            Asked::Failed => missing_ui(ui, "Exchanges cannot be read", "Please report this."),
            Asked::Waiting => {
                if self.flows.is_slow() {
                    waiting_ui(ui, "Reading exchanges…");
                }
            }
        }
    }

    fn tables_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let tabs =
            [(Tab::Overview, "Overview"), (Tab::Programs, "Programs"), (Tab::Tiles, "Tiles")];
        ui.horizontal(|ui| {
            ui.add_space(6.0);
            tabs_ui(ui, &tabs, &mut self.tab);
        });
        ui.add_space(4.0);
        self.tables.ui(ui, context, self.tab);
    }
}

/// Why a measure is nothing everywhere.
fn nothing(context: &ViewContext<'_>, measure: Measure) -> (&'static str, &'static str) {
    let model = context.opened.target.kind == TargetKind::IpuModel;
    match measure {
        Measure::Code if model => (
            "No exchange code",
            "The IPU Model generates no code, so exchanges take none. \
             What they move is under \"Bytes by tile\".",
        ),
        Measure::Code => ("No exchange code", "No tile of this program holds exchange code."),
        Measure::Traffic | Measure::Messages => {
            ("Nothing moves", "No tile of this program sends or receives anything.")
        }
    }
}
