//! The tables below the graph: what is live, which vertices run, what they take, where the step is
//! in the program.

use super::activity_label;
use crate::command::AppCommand;
use crate::fonts::strong;
use crate::theme::ThemePalette;
use crate::views::ViewContext;
use crate::views::jump::TraceJump;
use crate::widgets::hint_ui;
use crate::widgets::query_state::LIST_TEXTS;
use crate::widgets::table::{TableState, TableWidgetCell, TableWidgetColumn, TableWidgetData};
use crate::worker::{BackgroundQuery, Versioned};
use egui::{Label, RichText, ScrollArea, Ui};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::liveness::{self, LiveVariable, LivenessCurve, LivenessScope, enclosing};
use tilescope_report::units::{ProgramId, VariableId, exact_bytes, grouped};
use tilescope_report::{Report, ReportError, ReportPart};

/// The tables below the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LivenessTab {
    /// Variables that are always live.
    #[default]
    Always,
    /// Variables that are live at the chosen steps.
    Others,
    /// Vertices of the chosen steps.
    Vertices,
    /// Cycles of the chosen steps, tile by tile.
    Cycles,
    /// Where the chosen steps are in the program.
    Step,
}

impl LivenessTab {
    /// Every table with its title.
    pub(crate) const ALL: [(Self, &'static str); 5] = [
        (Self::Always, "Always live variables"),
        (Self::Others, "Not always live variables"),
        (Self::Vertices, "Vertices"),
        (Self::Cycles, "Cycle estimates"),
        (Self::Step, "Step"),
    ];
}

/// What a table is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LivenessTableKey {
    /// Which table.
    pub tab: LivenessTab,
    /// Which tiles.
    pub source: LivenessScope,
    /// Which steps, one column each.
    pub steps: Vec<u32>,
}

/// A table, and the variable of each row where rows are variables.
struct LivenessTableData {
    table: Arc<TableWidgetData>,
    variables: Vec<VariableId>,
}

/// State of all tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct LivenessTables {
    #[serde(skip)]
    made: BackgroundQuery<LivenessTableKey, LivenessTableData>,
    states: [TableState; 4],
}

impl LivenessTables {
    /// Shows a table.
    pub(crate) fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, key: LivenessTableKey) {
        let (part, index, hint) = match key.tab {
            LivenessTab::Always | LivenessTab::Step => {
                (ReportPart::Variables, 0, "Filter variables")
            }
            LivenessTab::Others => (ReportPart::Variables, 1, "Filter variables"),
            LivenessTab::Vertices => (ReportPart::Vertices, 2, "Filter vertices"),
            LivenessTab::Cycles => (ReportPart::ComputeSetCycles, 3, "Filter tiles"),
        };
        if !context.opened.report.has(part) {
            let what = ["variables", "variables", "vertices", "cycles of each tile"][index];
            return hint_ui(ui, &format!("The {what} were not recorded in this report."));
        }
        let report = context.opened.report.clone();
        let question = move |key: &LivenessTableKey| load_table(&report, key);
        let made = self.made.ask(ui.ctx(), context.workers, &key, question).fresh_only();
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

fn table_ui(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut TableState,
    made: &Versioned<LivenessTableData>,
    hint: &str,
) {
    let (generation, table, variables) = (made.version(), &made.table, &made.variables);
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
    let titles: Vec<String> =
        key.steps.iter().map(|step| format!("Step {}", grouped((*step).into()))).collect();
    let walk = report.liveness()?;
    let programs: Vec<ProgramId> =
        key.steps.iter().filter_map(|step| walk.get(*step as usize)).map(|s| s.program).collect();
    let (table, variables) = match key.tab {
        LivenessTab::Always | LivenessTab::Step => {
            let title = match key.source {
                LivenessScope::Whole => "All tiles".to_owned(),
                LivenessScope::Ipu(ipu) => format!("IPU {ipu}"),
                LivenessScope::Tile(tile) => format!("Tile {}", grouped(tile.into())),
            };
            variables(liveness::always_live(report, key.source)?, &[title])
        }
        LivenessTab::Others => {
            variables(liveness::live_at(report, key.source, &key.steps)?, &titles)
        }
        LivenessTab::Vertices => {
            (vertices(liveness::vertices(report, key.source, &programs)?, &titles), Vec::new())
        }
        LivenessTab::Cycles => {
            (cycles(liveness::cycles(report, key.source, &programs)?, &titles), Vec::new())
        }
    };
    Ok(LivenessTableData { table: Arc::new(table), variables })
}

fn variables(mut rows: Vec<LiveVariable>, titles: &[String]) -> (TableWidgetData, Vec<VariableId>) {
    rows.retain(|live| live.bytes.iter().any(|bytes| *bytes > 0));
    let mut columns = vec![TableWidgetColumn::text("Variable"), TableWidgetColumn::text("About")];
    columns.extend(titles.iter().map(TableWidgetColumn::number));
    let row = |live: &LiveVariable| {
        let about = match &live.lifetime {
            None => live.about.clone(),
            Some(life) => {
                let last = life.end.saturating_sub(1);
                let steps = format!("{} - {}", grouped(life.start.into()), grouped(last.into()));
                format!("{}, live in steps {steps}", live.about)
            }
        };
        let mut cells =
            vec![TableWidgetCell::Text(live.name.clone()), TableWidgetCell::Text(about)];
        cells.extend(live.bytes.iter().map(|bytes| TableWidgetCell::Bytes(*bytes)));
        cells
    };
    let cells = rows.iter().map(row).collect();
    (
        TableWidgetData { columns, rows: cells, totals: true },
        rows.iter().map(|live| live.id).collect(),
    )
}

fn vertices(rows: Vec<liveness::StepVertices>, titles: &[String]) -> TableWidgetData {
    let mut columns = vec![TableWidgetColumn::text("Vertex type")];
    columns.extend(titles.iter().map(TableWidgetColumn::number));
    columns.push(TableWidgetColumn::number("State of one"));
    let row = |vertices: liveness::StepVertices| {
        let mut cells = vec![TableWidgetCell::Text(vertices.name)];
        cells.extend(vertices.counts.into_iter().map(TableWidgetCell::Count));
        cells.push(TableWidgetCell::Bytes(vertices.state_bytes));
        cells
    };
    TableWidgetData { columns, rows: rows.into_iter().map(row).collect(), totals: false }
}

fn cycles(rows: Vec<liveness::TileCycles>, titles: &[String]) -> TableWidgetData {
    let mut columns = vec![TableWidgetColumn::text("Tile")];
    columns.extend(titles.iter().map(TableWidgetColumn::number));
    let row = |of: liveness::TileCycles| {
        let mut cells = vec![TableWidgetCell::Text(format!("Tile {}", grouped(of.tile.into())))];
        cells.extend(
            of.cycles.into_iter().map(|cycles| TableWidgetCell::Count(cycles.unwrap_or(0))),
        );
        cells
    };
    TableWidgetData { columns, rows: rows.into_iter().map(row).collect(), totals: false }
}

/// Each chosen step with the programs around it.
pub(crate) fn steps_ui(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    steps: &[(u32, ProgramId)],
    curve: &LivenessCurve,
    jump: &mut TraceJump,
) {
    // Programs were read when the curve was.
    let Ok(programs) = context.opened.report.programs() else { return };
    let palette = ThemePalette::for_visuals(ui.visuals());
    ScrollArea::both().auto_shrink(false).id_salt("steps").show(ui, |ui| {
        for (step, program) in steps {
            ui.horizontal(|ui| {
                ui.add_space(14.0);
                let bytes = exact_bytes(curve.total(*step as usize));
                ui.label(strong(format!("Step {}", grouped((*step).into()))));
                ui.label(format!("{bytes} live"));
                if ui.link("Program tree").clicked() {
                    context.commands.push(AppCommand::SelectProgram(Some(*program)));
                    context.commands.push(AppCommand::ShowView("program-tree"));
                }
                if context.opened.report.has(ReportPart::Execution)
                    && ui.link("Execution trace").clicked()
                {
                    jump.start(*program);
                }
            });
            for (depth, id) in enclosing(&programs, *program).into_iter().enumerate() {
                let Some(node) = programs.get(id) else { continue };
                let text = match node.name.as_str() {
                    "" => node.kind.name().to_owned(),
                    name => format!("{} ({name})", node.kind.name()),
                };
                ui.horizontal(|ui| {
                    ui.add_space(24.0 + depth as f32 * 16.0);
                    ui.add(Label::new(text).extend().selectable(true));
                    if id == *program {
                        ui.label(RichText::new(activity_label(node.kind)).color(palette.weak_text));
                    }
                });
            }
            ui.add_space(8.0);
        }
    });
}
