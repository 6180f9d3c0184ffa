//! The operations view: the cost of each operation, and the planner's partition of it.

pub(crate) mod columns;
mod details_panel;
mod flops_and_debug;

use super::{ReportView, TraceJump, ViewContext, ViewDescriptor};
use crate::model::command::AppCommand;
use crate::model::preferences::OperationPrefs;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::theme::spacing;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::bottom_panel::{BottomPanel, LOW};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::table::TableState;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui};
use crate::widgets::{central_ui, empty_state_ui, tables_height};
use details_panel::OperationDetailsPanel;
use egui::Ui;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::operations::{
    OpRow, OperationLayer, OperationTotals, operations_with_totals,
};
use tilescope_analysis::tables::operations as tables;
use tilescope_report::units::{OperationId, ProgramId};
use tilescope_report::{ModelOperation, ProgramKind, ProgramNodeTable, ReportPart};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Operations,
    help: include_str!("../../../../../assets/help/operations.md"),
    icon: Icon::Table,
    settings: &["layer"],
    create: || Box::<OperationsView>::default(),
};

/// The operations, their table, and the report's data about each.
struct OperationsTableData {
    layer: OperationLayer,
    rows: Vec<OpRow>,
    totals: OperationTotals,
    programs: Arc<ProgramNodeTable>,
    /// The operations of the model.
    operations: Arc<Vec<ModelOperation>>,
    table: Arc<DataTable>,
}

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct OperationsView {
    layer: OperationLayer,
    #[serde(skip)]
    shown: BackgroundQuery<(OperationLayer, Vec<String>), OperationsTableData>,
    table: TableState,
    /// The selected row in a layer.
    chosen: Option<(OperationLayer, usize)>,
    /// The operation last taken over from the selection.
    #[serde(skip)]
    seen: Option<OperationId>,
    lower: OperationDetailsPanel,
    panel: BottomPanel,
    #[serde(skip)]
    jump: TraceJump,
}

impl ReportView for OperationsView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if !context.opened.report.has(ReportPart::Programs)
            && !context.opened.report.has(ReportPart::Operations)
        {
            let sentence = "This report has no breakdown of costs: it records neither operations \
                            nor programs.";
            return empty_state_ui(ui, "No operations recorded", sentence);
        }
        if !context.opened.report.has(ReportPart::Operations) && self.layer == OperationLayer::Model
        {
            self.layer = OperationLayer::Library;
        }
        toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context));
        let key = (self.layer, context.prefs.operations.switched.clone());
        let texts =
            QueryTexts { waiting: "Adding up costs…", failed: "Operations cannot be read" };
        let found = context.ask(ui, &mut self.shown, &key, |report, (layer, switched)| {
            let (found, totals) = operations_with_totals(report, *layer)?;
            let table = tables::operations(&found, report, *layer).with_keys(report)?;
            let table = columns::shown(table, switched);
            Ok(OperationsTableData {
                layer: *layer,
                rows: found,
                totals,
                programs: report.executed_program_nodes()?,
                operations: report.operations()?,
                table: Arc::new(table),
            })
        });
        found.show(ui, texts, |ui, shown| {
            self.follow(context, shown);
            self.panels_ui(ui, context, shown);
        });
        self.jump.update(ui.ctx(), context);
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        vec![AppCommand::SelectOperation(None)]
    }

    fn notice_restored(&mut self, selection: &Selection) {
        self.seen = selection.operation;
    }
}

impl OperationsView {
    /// Selects an operation that was selected elsewhere.
    fn follow(&mut self, context: &ViewContext<'_>, shown: &OperationsTableData) {
        if self.seen != context.selection.operation {
            self.seen = context.selection.operation;
            let mut rows = shown.rows.iter();
            let row = rows.position(|row| row.operation.is_some() && row.operation == self.seen);
            self.chosen = row.map(|row| (shown.layer, row));
        }
    }

    /// Runs the entry chosen in the menu of a row.
    fn enter(
        &mut self,
        context: &ViewContext<'_>,
        shown: &OperationsTableData,
        (row, entry): (usize, usize),
    ) {
        let Some(found) = shown.rows.get(row) else { return };
        self.chosen = Some((shown.layer, row));
        self.seen = found.operation;
        context.commands.push(AppCommand::SelectOperation(found.operation));
        let mut programs = found.programs.iter().copied();
        let computes = |id: &ProgramId| {
            shown.programs.get(*id).is_some_and(|of| of.kind == ProgramKind::OnTileExecute)
        };
        let program = programs.clone().find(computes).or_else(|| programs.next());
        match (ROW_ENTRIES.get(entry), program) {
            (Some(&IN_TRACE), Some(program)) => self.jump.start(program),
            (Some(&IN_TREE), Some(program)) => {
                context.commands.push(AppCommand::SelectProgram(Some(program)));
                context.commands.push(AppCommand::ShowView(ViewId::ProgramTree));
            }
            (Some(&IN_GRAPH), _) => {
                context.commands.push(AppCommand::ShowView(ViewId::OperationsGraph));
            }
            _ => {}
        }
    }

    fn controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let mut layers =
            vec![(OperationLayer::Library, "Library calls"), (OperationLayer::Program, "Programs")];
        if context.opened.report.has(ReportPart::Operations) {
            layers.insert(0, (OperationLayer::Model, "Model operations"));
        }
        if let Some(layer) = bar.choice("Layer", &layers, self.layer) {
            self.layer = layer;
        }
        bar.menu("Columns", |ui| columns_ui(ui, context));
    }

    fn panels_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        shown: &Versioned<OperationsTableData>,
    ) {
        let chosen = self.chosen.filter(|(layer, _)| *layer == shown.layer).map(|(_, row)| row);
        let row = chosen.and_then(|row| shown.rows.get(row));
        let room = (tables_height(ui, 0.42), LOW);
        let lower = &mut self.lower;
        let mut place = None;
        self.panel =
            self.panel.ui_when(row.is_some(), ui, "operation details", room, |ui, open| {
                place = lower.ui(ui, context, shown, row, open);
            });
        if let Some(place) = place {
            self.chosen = Some((shown.layer, place));
            self.seen = shown.rows.get(place).and_then(|row| row.operation);
            context.commands.push(AppCommand::SelectOperation(self.seen));
        }
        central_ui(ui, |ui| {
            ui.add_space(spacing::S);
            let hint = "Filter operations";
            if let Some((row, entry)) = self.table.menu_entries(&ROW_ENTRIES) {
                self.enter(context, shown, (row, entry));
            }
            let table = &shown.table;
            let generation = shown.version();
            let clicked = self.table.choose_ui(
                ui,
                context.workers,
                table,
                generation,
                hint,
                chosen.as_slice(),
            );
            if let Some(row) = clicked {
                self.chosen = if chosen != Some(row) { Some((shown.layer, row)) } else { None };
                self.seen = self.chosen.and_then(|(_, row)| shown.rows.get(row)?.operation);
                context.commands.push(AppCommand::SelectOperation(self.seen));
            }
        });
    }
}

/// The entries of the menu of a row.
const ROW_ENTRIES: [&str; 3] = [IN_TRACE, IN_TREE, IN_GRAPH];
const IN_TRACE: &str = "Show in Execution trace";
const IN_TREE: &str = "Show in Program tree";
const IN_GRAPH: &str = "Show in Operations graph";

/// Lets the user choose the visible columns.
fn columns_ui(ui: &mut Ui, context: &ViewContext<'_>) {
    let mut switched = context.prefs.operations.switched.clone();
    for known in tables::COLUMNS.iter() {
        let mut shown = columns::is_shown(known, &switched);
        let title = if known.title == "IPU" { "On IPU" } else { known.title };
        if ui.checkbox(&mut shown, title).on_hover_text(known.about).changed() {
            match switched.iter().position(|key| key == known.key) {
                Some(at) => drop(switched.remove(at)),
                None => switched.push(known.key.to_owned()),
            }
        }
    }
    if switched != context.prefs.operations.switched {
        context.commands.push(AppCommand::SetOperationPrefs(OperationPrefs { switched }));
    }
}
