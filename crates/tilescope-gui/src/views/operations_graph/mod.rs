//! The operations graph view: the model as nodes and arrows, one lane per IPU.

mod details;
mod graph_canvas;

use super::{ReportView, ViewContext, ViewDescriptor, ViewScales};
use crate::model::command::{AppCommand, ViewAction};
use crate::model::preferences::{OperationsGraphMetric as Metric, OperationsGraphPrefs};
use crate::model::view_id::ViewId;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::bottom_panel::{BottomPanel, LOW, closed_ui};
use crate::widgets::heat_scale::HeatScale;
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui};
use crate::widgets::{central_ui, empty_state_ui, tables_height};
use details::Details;
use egui::Ui;
use graph_canvas::{GraphCanvas, GraphCanvasEvent};
use serde::{Deserialize, Serialize};
use tilescope_analysis::operations::OpRow;
use tilescope_analysis::operations_graph::{OpGraph, OpGraphKey, OpGraphNode, graph};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::OperationsGraph,
    help: include_str!("../../../../../assets/help/operations-graph.md"),
    icon: Icon::Graph,
    settings: &[],
    create: || Box::<OperationsGraphView>::default(),
};

impl Metric {
    /// All metrics with their titles.
    const ALL: [(Self, &'static str); 5] = [
        (Self::Pass, "Pass"),
        (Self::Elapsed, "Cycles in the run"),
        (Self::Code, "Code"),
        (Self::Flops, "FLOPs"),
        (Self::Memory, "Memory"),
    ];

    /// The figure of one operation; `None` if the colour shows no figure.
    fn value(self, row: &OpRow) -> Option<u64> {
        match self {
            Self::Pass => None,
            Self::Elapsed => Some(row.elapsed.0),
            Self::Code => Some(row.code().0),
            Self::Flops => Some(row.flops),
            Self::Memory => Some(row.memory.0),
        }
    }

    /// The title and the scale of all nodes; `None` if colours show no figures.
    fn heat_scale(self, graph: &OpGraph) -> Option<(&'static str, HeatScale)> {
        let name = Self::ALL.into_iter().find(|(metric, _)| *metric == self)?.1;
        let most = graph.nodes.iter().filter_map(|node| self.node_value(graph, node)).max()?;
        Some((name, HeatScale::from_zero(most, false)))
    }

    /// The figure of a node: the sum over its operations.
    fn node_value(self, graph: &OpGraph, node: &OpGraphNode) -> Option<u64> {
        let rows = node.operations.iter().filter_map(|index| graph.rows.get(*index));
        rows.map(|row| self.value(row))
            .try_fold(0u64, |sum, value| Some(sum.saturating_add(value?)))
    }
}

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct OperationsGraphView {
    #[serde(skip)]
    graph: BackgroundQuery<OpGraphKey, Option<Versioned<OpGraph>>>,
    /// The unfolded blocks; `None` shows every operation.
    open: Option<Vec<String>>,
    /// True if the initial folding is done.
    folded: bool,
    /// True if the initial folding was checked for hiding too much.
    judged: bool,
    canvas: GraphCanvas,
    /// The meaning of the colours in the last frame.
    #[serde(skip)]
    heat_scale: Option<(&'static str, HeatScale)>,
    #[serde(skip)]
    details: Details,
    panel: BottomPanel,
}

/// The number of blocks below which the graph does not show how operations depend on each other.
const FEW_BLOCKS: usize = 3;
/// The number of operations above which a graph is hard to read at once.
const MANY_OPERATIONS: usize = 60;

/// Returns true if a folded graph is better shown unfolded.
fn hides_too_much(graph: &OpGraph) -> bool {
    let operations: usize = graph.nodes.iter().map(|node| node.operations.len()).sum();
    graph.nodes.len() < FEW_BLOCKS && operations <= MANY_OPERATIONS
}

impl ReportView for OperationsGraphView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if !std::mem::replace(&mut self.folded, true) {
            self.open = Some(Vec::new());
        }
        let prefs = context.prefs.operations_graph;
        let key =
            OpGraphKey { backward: prefs.backward, update: prefs.updates, open: self.open.clone() };
        let texts =
            QueryTexts { waiting: "Laying out the graph…", failed: "The graph cannot be read" };
        let graph = context.ask(ui, &mut self.graph, &key, |report, key| {
            Ok(graph(report, key)?.map(Versioned::new))
        });
        graph.show(ui, texts, |ui, graph| match graph.as_ref() {
            Some(graph) => self.graph_ui(ui, context, graph),
            None => {
                let sentence = "This report does not record the data flow between operations. The \
                                Operations view lists their costs.";
                empty_state_ui(ui, "No graph recorded", sentence);
            }
        });
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        vec![AppCommand::SelectOperation(None)]
    }

    fn scales(&self) -> ViewScales {
        ViewScales { graph_top: None, heat: self.heat_scale }
    }
}

impl OperationsGraphView {
    fn graph_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, shown: &Versioned<OpGraph>) {
        if !std::mem::replace(&mut self.judged, true) && hides_too_much(shown) {
            self.open = None;
        }
        toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context));
        let prefs = context.prefs.operations_graph;
        let chosen = context.selection.operation.is_some();
        let room = (tables_height(ui, 0.3), LOW);
        let details = &mut self.details;
        self.panel = self.panel.ui_when(chosen, ui, "graph details", room, |ui, open| {
            if *open {
                details.ui(ui, context, shown);
            } else {
                closed_ui(ui, "Click on an operation to display its details.");
            }
        });
        central_ui(ui, |ui| {
            let chosen = context.selection.operation;
            if context.actions.contains(&ViewAction::ZoomToSelection) {
                self.canvas.fit();
            }
            self.heat_scale = prefs.metric.heat_scale(shown);
            let scale = self.heat_scale.map(|(_, own)| context.shared_scale(own));
            match self.canvas.ui(ui, shown, (prefs, scale), chosen) {
                Some(GraphCanvasEvent::Select(node)) => {
                    let row = node.and_then(|node| shown.nodes.get(node)?.operations.first());
                    let operation = row.and_then(|row| shown.rows.get(*row)?.operation);
                    context.commands.push(AppCommand::SelectOperation(operation));
                }
                Some(GraphCanvasEvent::ToggleFold(node)) => self.toggle(shown, node),
                None => {}
            }
        });
    }

    /// Shows the operations of a block, or folds them into the block.
    fn toggle(&mut self, graph: &OpGraph, node: usize) {
        let Some(block) = graph.nodes.get(node).map(|node| node.block.clone()) else { return };
        if block.is_empty() {
            return;
        }
        let open = self.open.get_or_insert_with(|| {
            graph.nodes.iter().map(|node| node.block.clone()).collect::<Vec<_>>()
        });
        if open.contains(&block) {
            open.retain(|known| *known != block)
        } else {
            open.push(block)
        }
        open.sort_unstable();
        open.dedup();
    }

    fn controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let old = context.prefs.operations_graph;
        let mut prefs: OperationsGraphPrefs = old;
        if let Some(metric) = bar.choice("Colour", &Metric::ALL, prefs.metric) {
            prefs.metric = metric;
        }
        bar.checkbox("Show backward pass", &mut prefs.backward, "");
        bar.checkbox("Show weight updates", &mut prefs.updates, "");
        if (prefs.backward, prefs.updates) != (old.backward, old.updates) {
            self.canvas.fit();
        }
        let hint = "Show tensor shapes on the arrows where they fit.";
        bar.checkbox("Edge labels", &mut prefs.edge_labels, hint);
        if prefs != old {
            context.commands.push(AppCommand::SetGraphPrefs(prefs));
        }
        bar.align_right();
        if bar.button("Whole graph", "Fit the whole graph (F)") {
            self.canvas.fit();
        }
        if bar.button("Unfold all", "Show every operation") {
            self.open = None;
            self.canvas.fit();
        }
        if bar.button("Fold all", "Show blocks as one node per pass") {
            self.open = Some(Vec::new());
            self.canvas.fit();
        }
    }
}
