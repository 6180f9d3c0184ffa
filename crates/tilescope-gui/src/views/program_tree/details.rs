//! The details of the selected node, and links from it to other views.

use super::tree_rows::kind_colour;
use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing};
use crate::views::ViewContext;
use crate::views::trace_jump::TraceJump;
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::fact_row_ui;
use crate::widgets::query_state::QueryTexts;
use egui::{CornerRadius, Grid, Label, Rect, ScrollArea, Ui, pos2, vec2};
use tilescope_analysis::program_tree::{ProgramFact, facts, label};
use tilescope_report::units::{NumberFormat, OperationId, ProgramId, grouped};
use tilescope_report::{ProgramKind, ProgramNodeTable, ReportPart};

/// The state of the details.
#[derive(Default)]
pub(crate) struct ProgramDetailsPanel {
    facts: BackgroundQuery<(ProgramId, NumberFormat), Vec<ProgramFact>>,
}

impl ProgramDetailsPanel {
    /// Shows the details, or without a selection the number of nodes of each kind.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        programs: &ProgramNodeTable,
        tally: &[(ProgramKind, u64)],
        jump: &mut TraceJump,
    ) {
        let chosen = context.selection.program;
        let Some((id, program)) = chosen.and_then(|id| Some((id, programs.get(id)?))) else {
            return tally_ui(ui, tally);
        };
        let known =
            context.ask(ui, &mut self.facts, &(id, numbers(ui)), |report, (id, numbers)| {
                facts(report, *id, *numbers)
            });
        let texts = QueryTexts { waiting: "Reading…", failed: "The node cannot be read" };
        let palette = ThemePalette::for_ui(ui);
        ScrollArea::both().auto_shrink(false).id_salt("program details").show(ui, |ui| {
            ui.add_space(spacing::M);
            let top = ui.cursor().top();
            ui.horizontal_top(|ui| {
                ui.add_space(spacing::XL);
                ui.vertical(|ui| {
                    let title: String = label(program).chars().take(600).collect();
                    ui.add(Label::new(strong(title)).selectable(true).extend());
                    let target = program.children.first().copied();
                    let function = target.filter(|_| program.kind == ProgramKind::Call);
                    links_ui(ui, context, (id, function), program.operation, jump);
                    known.show(ui, texts, |ui, facts| facts_ui(ui, facts));
                });
            });
            let bottom = ui.cursor().top() - 4.0;
            let edge = Rect::from_min_max(
                pos2(ui.min_rect().left() + 14.0, top),
                pos2(ui.min_rect().left() + 18.0, bottom),
            );
            ui.painter().rect_filled(edge, CornerRadius::same(2), kind_colour(palette, program));
            ui.add_space(spacing::M);
        });
    }
}

/// A sentence, and the kinds of nodes with their counts.
fn tally_ui(ui: &mut Ui, tally: &[(ProgramKind, u64)]) {
    ScrollArea::both().auto_shrink(false).id_salt("program tally").show(ui, |ui| {
        ui.add_space(spacing::M);
        ui.horizontal_top(|ui| {
            ui.add_space(spacing::L);
            ui.vertical(|ui| {
                let text = "Select a step in the program tree to see details.";
                ui.weak(text);
                ui.add_space(spacing::XS);
                let all: u64 = tally.iter().map(|(_, count)| count).sum();
                let grid = Grid::new("program tally").num_columns(2).min_row_height(17.0);
                grid.spacing(vec2(24.0, 4.0)).show(ui, |ui| {
                    ui.label(strong("Nodes of this program"));
                    ui.label(strong(grouped(all)));
                    ui.end_row();
                    for (kind, count) in tally {
                        ui.label(kind.name());
                        ui.label(grouped(*count));
                        ui.end_row();
                    }
                });
            });
        });
    });
}

fn links_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    (id, function): (ProgramId, Option<ProgramId>),
    operation: Option<OperationId>,
    jump: &mut TraceJump,
) {
    ui.horizontal(|ui| {
        if let Some(function) = function
            && ui.link("Go to the function").clicked()
        {
            context.commands.push(AppCommand::SelectProgram(Some(function)));
        }
        if context.opened.report.has(ReportPart::Execution)
            && ui.link("Show in Execution trace").clicked()
        {
            jump.start(id);
        }
        if context.opened.report.has(ReportPart::Liveness) && ui.link("Show in Liveness").clicked()
        {
            context.commands.push(AppCommand::ShowView(ViewId::Liveness));
        }
        if operation.is_some() && ui.link("Show in Operations").clicked() {
            context.commands.push(AppCommand::SelectOperation(operation));
            context.commands.push(AppCommand::ShowView(ViewId::Operations));
        }
    });
}

fn facts_ui(ui: &mut Ui, facts: &[ProgramFact]) {
    Grid::new("program facts").num_columns(2).min_row_height(17.0).spacing(vec2(24.0, 4.0)).show(
        ui,
        |ui| {
            for fact in facts {
                fact_row_ui(ui, fact.name, &fact.value, fact.formula.unwrap_or_default());
            }
        },
    );
}
