//! The tables below the graph: what is live, which vertices run, what they take, where the step is
//! in the program.

use super::does;
use crate::command::Command;
use crate::fonts::strong;
use crate::theme::Palette;
use crate::views::ViewContext;
use crate::views::jump::TraceJump;
use crate::widgets::hint_ui;
use crate::widgets::query_state::LIST_TEXTS;
use crate::widgets::table::{Cell, Column, Table, TableState};
use crate::worker::{BackgroundQuery, Versioned};
use egui::{Label, RichText, ScrollArea, Ui};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::liveness::{self, Curve, Live, Source, enclosing};
use tilescope_report::units::{ProgramId, VariableId, exact_bytes, grouped};
use tilescope_report::{Part, Report, ReportError};

/// The tables below the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Tab {
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

impl Tab {
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
pub(crate) struct Key {
    /// Which table.
    pub tab: Tab,
    /// Which tiles.
    pub source: Source,
    /// Which steps, one column each.
    pub steps: Vec<u32>,
}

/// A table, and the variable of each row where rows are variables.
struct Made {
    table: Arc<Table>,
    variables: Vec<VariableId>,
}

/// State of all tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Tables {
    #[serde(skip)]
    made: BackgroundQuery<Key, Made>,
    states: [TableState; 4],
}

impl Tables {
    /// Shows a table.
    pub(crate) fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>, key: Key) {
        let (part, index, hint) = match key.tab {
            Tab::Always | Tab::Step => (Part::Variables, 0, "Filter variables"),
            Tab::Others => (Part::Variables, 1, "Filter variables"),
            Tab::Vertices => (Part::Vertices, 2, "Filter vertices"),
            Tab::Cycles => (Part::ComputeSetCycles, 3, "Filter tiles"),
        };
        if !context.opened.report.has(part) {
            let what = ["variables", "variables", "vertices", "cycles of each tile"][index];
            return hint_ui(ui, &format!("The {what} were not recorded in this report."));
        }
        let report = context.opened.report.clone();
        let question = move |key: &Key| made(&report, key);
        let made = self.made.ask(ui.ctx(), context.workers, &key, question).fresh_only();
        let state = &mut self.states[index];
        made.show(ui, LIST_TEXTS, |ui, made| {
            if made.table.rows.is_empty() && matches!(key.tab, Tab::Vertices | Tab::Cycles) {
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
    made: &Versioned<Made>,
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
        context.commands.push(Command::SelectVariable(variable));
    }
}

fn made(report: &Report, key: &Key) -> Result<Made, ReportError> {
    let titles: Vec<String> =
        key.steps.iter().map(|step| format!("Step {}", grouped((*step).into()))).collect();
    let walk = report.liveness()?;
    let programs: Vec<ProgramId> =
        key.steps.iter().filter_map(|step| walk.get(*step as usize)).map(|s| s.program).collect();
    let (table, variables) = match key.tab {
        Tab::Always | Tab::Step => {
            let title = match key.source {
                Source::Whole => "All tiles".to_owned(),
                Source::Ipu(ipu) => format!("IPU {ipu}"),
                Source::Tile(tile) => format!("Tile {}", grouped(tile.into())),
            };
            variables(liveness::always_live(report, key.source)?, &[title])
        }
        Tab::Others => variables(liveness::live_at(report, key.source, &key.steps)?, &titles),
        Tab::Vertices => {
            (vertices(liveness::vertices(report, key.source, &programs)?, &titles), Vec::new())
        }
        Tab::Cycles => {
            (cycles(liveness::cycles(report, key.source, &programs)?, &titles), Vec::new())
        }
    };
    Ok(Made { table: Arc::new(table), variables })
}

fn variables(mut rows: Vec<Live>, titles: &[String]) -> (Table, Vec<VariableId>) {
    rows.retain(|live| live.bytes.iter().any(|bytes| *bytes > 0));
    let mut columns = vec![Column::text("Variable"), Column::text("About")];
    columns.extend(titles.iter().map(Column::number));
    let row = |live: &Live| {
        let about = match &live.lifetime {
            None => live.about.clone(),
            Some(life) => {
                let last = life.end.saturating_sub(1);
                let steps = format!("{} - {}", grouped(life.start.into()), grouped(last.into()));
                format!("{}, live in steps {steps}", live.about)
            }
        };
        let mut cells = vec![Cell::Text(live.name.clone()), Cell::Text(about)];
        cells.extend(live.bytes.iter().map(|bytes| Cell::Bytes(*bytes)));
        cells
    };
    let cells = rows.iter().map(row).collect();
    (Table { columns, rows: cells, totals: true }, rows.iter().map(|live| live.id).collect())
}

fn vertices(rows: Vec<liveness::StepVertices>, titles: &[String]) -> Table {
    let mut columns = vec![Column::text("Vertex type")];
    columns.extend(titles.iter().map(Column::number));
    columns.push(Column::number("State of one"));
    let row = |vertices: liveness::StepVertices| {
        let mut cells = vec![Cell::Text(vertices.name)];
        cells.extend(vertices.counts.into_iter().map(Cell::Count));
        cells.push(Cell::Bytes(vertices.state_bytes));
        cells
    };
    Table { columns, rows: rows.into_iter().map(row).collect(), totals: false }
}

fn cycles(rows: Vec<liveness::TileCycles>, titles: &[String]) -> Table {
    let mut columns = vec![Column::text("Tile")];
    columns.extend(titles.iter().map(Column::number));
    let row = |of: liveness::TileCycles| {
        let mut cells = vec![Cell::Text(format!("Tile {}", grouped(of.tile.into())))];
        cells.extend(of.cycles.into_iter().map(|cycles| Cell::Count(cycles.unwrap_or(0))));
        cells
    };
    Table { columns, rows: rows.into_iter().map(row).collect(), totals: false }
}

/// Each chosen step with the programs around it.
pub(crate) fn steps_ui(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    steps: &[(u32, ProgramId)],
    curve: &Curve,
    jump: &mut TraceJump,
) {
    // Programs were read when the curve was.
    let Ok(programs) = context.opened.report.programs() else { return };
    let palette = Palette::of(ui.visuals());
    ScrollArea::both().auto_shrink(false).id_salt("steps").show(ui, |ui| {
        for (step, program) in steps {
            ui.horizontal(|ui| {
                ui.add_space(14.0);
                let bytes = exact_bytes(curve.total(*step as usize));
                ui.label(strong(format!("Step {}", grouped((*step).into()))));
                ui.label(format!("{bytes} live"));
                if ui.link("Program tree").clicked() {
                    context.commands.push(Command::SelectProgram(Some(*program)));
                    context.commands.push(Command::ShowView("program-tree"));
                }
                if context.opened.report.has(Part::Execution)
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
                        ui.label(RichText::new(does(node.kind)).color(palette.weak_text));
                    }
                });
            }
            ui.add_space(8.0);
        }
    });
}
