//! Memory: how full every tile is, and what fills it.

mod tables;

use super::{View, ViewContext, ViewInfo};
use crate::analysis::memory::{Breakdown, CurveKey, curves};
use crate::analysis::tiles::{Curves, Order};
use crate::gui::command::Command;
use crate::gui::icons::Icon;
use crate::gui::prefs::MemoryPrefs;
use crate::gui::theme::Palette;
use crate::gui::widgets::tile_graph::{Graph, Look};
use crate::gui::widgets::tile_picker::TilePicker;
use crate::gui::widgets::{choice_ui, missing_ui, tabs_ui, toolbar_ui, waiting_ui};
use crate::gui::worker::{Asked, Slot};
use egui::{Align, CentralPanel, Frame, Layout, Panel, Ui};
use std::sync::Arc;
use tables::Tables;

/// This view, for the list.
pub const VIEW: ViewInfo = ViewInfo {
    name: "memory",
    title: "Memory",
    icon: Icon::Chip,
    create: || Box::<Memory>::default(),
};

/// The tables below the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Tab {
    #[default]
    Details,
    Variables,
    Vertices,
    Exchanges,
}

/// State of the view.
#[derive(Default)]
struct Memory {
    curves: Slot<CurveKey, Result<Arc<Curves>, String>>,
    breakdown: Breakdown,
    order: Order,
    per_ipu: bool,
    graph: Graph,
    tables: Tables,
    tab: Tab,
    picker: TilePicker,
}

impl View for Memory {
    fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        toolbar_ui(ui, |ui| self.controls_ui(ui, context));
        let prefs = context.prefs.memory;
        let key = CurveKey {
            breakdown: self.breakdown,
            include_gaps: prefs.include_gaps,
            order: self.order,
            per_ipu: self.per_ipu,
        };
        let report = context.opened.report.clone();
        let question = move |key: &CurveKey| {
            curves(&report, key).map(Arc::new).map_err(|error| error.to_string())
        };
        let asked = self.curves.ask(ui.ctx(), context.workers, &key, question);
        let curves = match asked {
            Asked::Fresh(Ok(curves)) | Asked::Stale(Ok(curves)) => curves.clone(),
            Asked::Fresh(Err(problem)) | Asked::Stale(Err(problem)) => {
                return missing_ui(ui, "Memory cannot be read", problem);
            }
            Asked::Failed => return missing_ui(ui, "Memory cannot be read", "Please report this."),
            Asked::Waiting => {
                if self.curves.is_slow() {
                    waiting_ui(ui, "Reading memory…");
                }
                return;
            }
        };
        if curves.layers.iter().all(|curve| curve.values.is_empty()) || curves.max == 0 {
            let sentence = "This report does not say how much memory its tiles use. \
                            With Poplar, switch on autoReport.outputGraphProfile.";
            return missing_ui(ui, "No memory recorded", sentence);
        }
        self.panels_ui(ui, context, &curves);
    }
}

impl Memory {
    fn panels_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, curves: &Arc<Curves>) {
        let height = ui.available_height();
        let frame = Frame::new().fill(Palette::of(ui.visuals()).page);
        Panel::bottom("memory tables")
            .resizable(true)
            .default_size((height * 0.46).clamp(120.0, 420.0))
            .size_range(60.0..=(height - 120.0).max(61.0))
            .frame(frame)
            .show(ui, |ui| {
                ui.take_available_space();
                self.tables_ui(ui, context);
            });
        CentralPanel::default().frame(frame).show(ui, |ui| {
            let total = match (self.per_ipu, context.prefs.memory.include_gaps) {
                (false, false) => "Tile memory (without gaps)",
                (false, true) => "Tile memory (including gaps)",
                (true, false) => "IPU memory (without gaps)",
                (true, true) => "IPU memory (including gaps)",
            };
            let look = Look {
                name: "Memory by tile",
                total,
                order: self.order,
                per_ipu: self.per_ipu,
                max_memory: self.max_memory(context.prefs.memory),
            };
            self.graph.ui(ui, context, curves, look);
        });
    }

    /// Whether the line of a tile's capacity is shown: as chosen, or where it is near.
    fn max_memory(&self, prefs: MemoryPrefs) -> bool {
        let latest = self.curves.latest().and_then(|curves| curves.as_ref().ok());
        let near = latest.is_some_and(|curves| curves.max.saturating_mul(5) > curves.capacity * 2);
        prefs.max_memory.unwrap_or(near)
    }

    fn tables_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let tabs = [
            (Tab::Details, "Details"),
            (Tab::Variables, "Variables"),
            (Tab::Vertices, "Vertices"),
            (Tab::Exchanges, "Exchanges"),
        ];
        ui.horizontal(|ui| {
            ui.add_space(6.0);
            tabs_ui(ui, &tabs, &mut self.tab);
        });
        ui.add_space(4.0);
        self.tables.ui(ui, context, self.tab);
    }

    fn controls_ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        let breakdowns = [
            (Breakdown::None, "None"),
            (Breakdown::Region, "Region"),
            (Breakdown::Category, "Category"),
            (Breakdown::Liveness, "Liveness"),
        ];
        if let Some(breakdown) = choice_ui(ui, "Breakdown", &breakdowns, self.breakdown) {
            self.breakdown = breakdown;
        }
        let orders = [(Order::Software, "Software order"), (Order::Hardware, "Hardware order")];
        if let Some(order) = choice_ui(ui, "Tiles", &orders, self.order) {
            self.order = order;
            self.graph.reset();
        }
        let old = context.prefs.memory;
        let mut prefs: MemoryPrefs = old;
        ui.checkbox(&mut prefs.include_gaps, "Include gaps")
            .on_hover_text("Count what lies unused below the last used address of a tile.");
        let mut shown = self.max_memory(old);
        if ui
            .checkbox(&mut shown, "Show max memory")
            .on_hover_text("A line at the memory that a tile has.")
            .changed()
        {
            prefs.max_memory = Some(shown);
        }
        if prefs != old {
            context.commands.push(Command::SetMemoryPrefs(prefs));
        }
        if context.opened.target.ipus_per_replica > 1
            && ui.checkbox(&mut self.per_ipu, "Per IPU").changed()
        {
            self.graph.reset();
        }
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if ui.button("Whole chip").on_hover_text("Show all tiles").clicked() {
                self.graph.reset();
            }
            self.picker.ui(ui, context);
        });
    }
}
