//! The tables below the graph: the live variables, the vertices, their cycles, and the position of
//! the step in the program.

use super::{LivenessGraphData, activity_label};
use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::spacing;
use crate::views::ViewContext;
use crate::views::trace_jump::TraceJump;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::hint_ui;
use crate::widgets::query_state::LIST_TEXTS;
use crate::widgets::table::TableState;
use egui::{Label, ScrollArea, Ui};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::liveness::{self, LiveVariable, LivenessScope, enclosing};
use tilescope_analysis::memory::fullest_tile;
use tilescope_analysis::tables::liveness as columns;
use tilescope_report::units::{ProgramId, VariableId, exact_bytes, grouped};
use tilescope_report::{Report, ReportError, ReportPart};

/// The tables below the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LivenessTab {
    /// The variables that are always live.
    #[default]
    Always,
    /// The variables live at the selected steps.
    Others,
    /// The vertices of the selected steps.
    Vertices,
    /// The cycles of the selected steps by tile.
    Cycles,
    /// The free blocks of one tile at the last selected step.
    Free,
    /// The position of the selected steps in the program.
    Step,
}

impl LivenessTab {
    /// All tables with their titles.
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Always, "Always live variables"),
        (Self::Others, "Not always live variables"),
        (Self::Vertices, "Vertices"),
        (Self::Cycles, "Cycle estimates"),
        (Self::Free, "Free blocks"),
        (Self::Step, "Step"),
    ];

    /// Returns true if it needs a selected step. Free blocks default to the fullest step.
    pub(super) fn needs_step(self) -> bool {
        !matches!(self, Self::Always | Self::Free)
    }
}

/// The query key of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LivenessTableKey {
    pub tab: LivenessTab,
    pub source: LivenessScope,
    /// The steps, one column each.
    pub steps: Vec<u32>,
}

/// A table, and the variable of each row if rows are variables.
struct LivenessTableData {
    table: Arc<DataTable>,
    variables: Vec<VariableId>,
}

/// The state of all tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LivenessTables {
    #[serde(skip)]
    made: BackgroundQuery<LivenessTableKey, LivenessTableData>,
    states: [TableState; 5],
}

impl LivenessTables {
    pub(crate) fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, key: LivenessTableKey) {
        let (part, index, hint) = match key.tab {
            LivenessTab::Always | LivenessTab::Step => {
                (ReportPart::Variables, 0, "Filter variables")
            }
            LivenessTab::Others => (ReportPart::Variables, 1, "Filter variables"),
            LivenessTab::Vertices => (ReportPart::Vertices, 2, "Filter vertices"),
            LivenessTab::Cycles => (ReportPart::ComputeSetCycles, 3, "Filter tiles"),
            LivenessTab::Free => (ReportPart::Addresses, 4, "Filter blocks"),
        };
        if !context.opened.report.has(part) {
            let what =
                ["variables", "variables", "vertices", "cycles of each tile", "addresses"][index];
            return hint_ui(ui, &format!("The {what} were not recorded in this report."));
        }
        let made = context.ask(ui, &mut self.made, &key, load_table).fresh_only();
        let state = &mut self.states[index];
        made.show(ui, LIST_TEXTS, |ui, made| {
            if made.table.rows.is_empty()
                && matches!(key.tab, LivenessTab::Vertices | LivenessTab::Cycles)
            {
                return hint_ui(ui, "This step runs no vertices.");
            }
            ui.push_id(index, |ui| table_ui(ui, context, state, made, hint));
        });
    }
}

/// The table of this name, as the view shows it.
#[cfg(test)]
pub(in crate::views) fn seen(report: &Report, name: &str) -> DataTable {
    let curve = liveness::curve(report, LivenessScope::Whole).unwrap();
    let peak = curve.and_then(|curve| curve.peak()).into_iter().map(|step| step as u32);
    let tab = match name {
        "peak" => LivenessTab::Others,
        "free-blocks" => LivenessTab::Free,
        _ => LivenessTab::Always,
    };
    let key = LivenessTableKey { tab, source: LivenessScope::Whole, steps: peak.collect() };
    load_table(report, &key).unwrap().table.as_ref().clone()
}

fn table_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    state: &mut TableState,
    made: &Versioned<LivenessTableData>,
    hint: &str,
) {
    let generation = made.version();
    let table = &made.table;
    let variables = &made.variables;
    if variables.is_empty() {
        return state.ui(ui, context.workers, table, generation, hint);
    }
    let chosen = context.selection.variable;
    let chosen = variables.iter().position(|id| Some(*id) == chosen);
    let clicked = state.choose_ui(ui, context.workers, table, generation, hint, chosen.as_slice());
    if let Some(row) = clicked {
        let variable = if chosen == Some(row) { None } else { variables.get(row).copied() };
        context.commands.push(AppCommand::SelectVariable(variable));
    }
}

fn load_table(report: &Report, key: &LivenessTableKey) -> Result<LivenessTableData, ReportError> {
    let walk = report.liveness()?;
    let programs: Vec<ProgramId> =
        key.steps.iter().filter_map(|step| walk.get(*step as usize)).map(|s| s.program).collect();
    let source = key.source;
    let steps = &key.steps;
    if key.tab == LivenessTab::Free {
        let table = Arc::new(load_free_blocks(report, source, steps.last().copied())?);
        return Ok(LivenessTableData { table, variables: Vec::new() });
    }
    let (table, variables) = match key.tab {
        LivenessTab::Always | LivenessTab::Free | LivenessTab::Step => {
            let rows = liveness::always_live(report, source)?;
            (columns::always_live(&rows, source), ids(&rows))
        }
        LivenessTab::Others => {
            let rows = liveness::live_at(report, source, steps)?;
            (columns::live_at(&rows, steps), ids(&rows))
        }
        LivenessTab::Vertices => {
            let rows = liveness::vertices(report, source, &programs)?;
            (columns::vertices(&rows, steps), Vec::new())
        }
        LivenessTab::Cycles => {
            let rows = liveness::cycles(report, source, &programs)?;
            (columns::cycles(&rows, steps), Vec::new())
        }
    };
    Ok(LivenessTableData { table: Arc::new(table.with_keys(report)?), variables })
}

/// The free blocks of the scope's tile or of the fullest one, at a step or at the tile's fullest
/// step.
fn load_free_blocks(
    report: &Report,
    source: LivenessScope,
    step: Option<u32>,
) -> Result<DataTable, ReportError> {
    let tile = match source {
        LivenessScope::Tile(tile) => tile,
        _ => fullest_tile(report)?,
    };
    let timeline = liveness::by_address(report, tile)?.unwrap_or_default();
    let free = step.or(timeline.peak()).map(|step| timeline.free_in(step..step + 1));
    Ok(columns::free_blocks(&timeline, &free.unwrap_or_default()))
}

/// The variables of the rows of a table.
fn ids(rows: &[LiveVariable]) -> Vec<VariableId> {
    rows.iter().filter(|live| columns::holds_bytes(live)).map(|live| live.id).collect()
}

/// Shows each selected step with the programs around it.
pub(super) fn steps_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    steps: &[(u32, ProgramId)],
    shown: &LivenessGraphData,
    jump: &mut TraceJump,
) {
    let LivenessGraphData { curve, programs, .. } = shown;
    ScrollArea::both().auto_shrink(false).id_salt("steps").show(ui, |ui| {
        for (step, program) in steps {
            ui.horizontal(|ui| {
                ui.add_space(spacing::L);
                let bytes = exact_bytes(curve.total(*step as usize).0);
                ui.label(strong(format!("Step {}", grouped((*step).into()))));
                ui.label(format!("{bytes} live"));
                if ui.link("Program tree").clicked() {
                    context.commands.push(AppCommand::SelectProgram(Some(*program)));
                    context.commands.push(AppCommand::ShowView(ViewId::ProgramTree));
                }
                if context.opened.report.has(ReportPart::Execution)
                    && ui.link("Execution trace").clicked()
                {
                    jump.start(*program);
                }
            });
            for (depth, id) in enclosing(programs, *program).into_iter().enumerate() {
                let Some(node) = programs.get(id) else { continue };
                let text = match node.name.as_str() {
                    "" => node.kind.name().to_owned(),
                    name => format!("{} ({name})", node.kind.name()),
                };
                ui.horizontal(|ui| {
                    ui.add_space(spacing::XL + depth as f32 * spacing::INDENT);
                    ui.add(Label::new(text).extend().selectable(true));
                    if id == *program {
                        ui.weak(activity_label(node.kind));
                    }
                });
            }
            ui.add_space(spacing::M);
        }
    });
}
