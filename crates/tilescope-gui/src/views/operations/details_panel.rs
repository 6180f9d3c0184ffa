//! The panel below the table: the description of the selected operation, its programs, its costs by
//! tile, and the planner's choice.

use super::OperationsTableData;
use super::flops_and_debug::{debug_ui, flops_ui};
use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::views::tile_selection::select_tile;
use crate::views::trace_jump::TraceJump;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::bottom_panel::tabs_row_ui;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::stack_graph::{StackGraph, StackGraphInput, StackLayer, StackedValues};
use crate::widgets::{hint_ui, waiting_tabs_ui};
use egui::{Color32, CornerRadius, Grid, Label, Rect, RichText, ScrollArea, Sense, Ui, vec2};
use serde::{Deserialize, Serialize};
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::json::JsonLine;
use tilescope_analysis::operation_debug::debug_lines;
use tilescope_analysis::operations::{
    OpRow, OperationLayer as OpLayer, OperationTileCosts, PASSES, PlanLine, per_tile, plan_lines,
    share_of_run,
};
use tilescope_analysis::program_tree::label;
use tilescope_analysis::tables::operations::{COLUMNS, pass_title};
use tilescope_analysis::tile_curves::TileCurveUnit;
use tilescope_report::units::{
    Bytes, Cycles, OperationId, ProgramId, TileId, exact_bytes, grouped, percent,
};
use tilescope_report::{
    MemoryCategory, ModelOperation, ProgramNodeTable, Report, ReportError, ReportPart,
};

/// The tables of the panel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OperationDetailsTab {
    #[default]
    Summary,
    Programs,
    Code,
    Cycles,
    Flops,
    Plan,
    Debug,
}

/// The costs by tile, ready to be drawn.
struct OperationTileGraphs {
    cycles: Versioned<StackedValues>,
    code: Versioned<StackedValues>,
}

/// The operation and the programs to describe.
type OperationDebugKey = (Option<OperationId>, Vec<ProgramId>);

/// The state of the panel.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct OperationDetailsPanel {
    tab: OperationDetailsTab,
    #[serde(skip)]
    debug: BackgroundQuery<OperationDebugKey, Vec<JsonLine>>,
    #[serde(skip)]
    graphs: BackgroundQuery<Vec<ProgramId>, OperationTileGraphs>,
    cycles: StackGraph,
    code: StackGraph,
    #[serde(skip)]
    jump: TraceJump,
}

impl OperationDetailsPanel {
    /// Shows the panel, or only its tabs if it is not `open`. `row` is the index of the selected
    /// operation in the table above. Returns the index of the operation selected here.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        shown: &OperationsTableData,
        row: Option<&OpRow>,
        open: &mut bool,
    ) -> Option<usize> {
        let OperationsTableData { layer, rows, .. } = shown;
        let mut chosen = None;
        let tabs = [
            (OperationDetailsTab::Summary, "Summary"),
            (OperationDetailsTab::Programs, "Steps"),
            (OperationDetailsTab::Code, "Code"),
            (OperationDetailsTab::Cycles, "Cycles"),
            (OperationDetailsTab::Flops, "FLOPs"),
            (OperationDetailsTab::Plan, "Plan"),
            (OperationDetailsTab::Debug, "Debug"),
        ];
        *open |= tabs_row_ui(ui, |ui| {
            let waits = |tab| {
                (row.is_none() && tab != OperationDetailsTab::Summary)
                    .then_some("Select an operation first")
            };
            waiting_tabs_ui(ui, ViewId::Operations.name(), &tabs, &mut self.tab, waits)
        });
        if !*open {
            return None;
        }
        ui.add_space(spacing::XS);
        match (self.tab, row) {
            (OperationDetailsTab::Summary, None) => totals_ui(ui, &context.opened.report, shown),
            (_, None) => hint_ui(ui, "Click on an operation above to display its details."),
            (OperationDetailsTab::Summary, Some(row)) => summary_ui(ui, context, *layer, row),
            (OperationDetailsTab::Programs, Some(row)) => {
                self.programs_ui(ui, context, &shown.programs, row)
            }
            (OperationDetailsTab::Code | OperationDetailsTab::Cycles, Some(row)) => {
                self.graphs_ui(ui, context, row)
            }
            (OperationDetailsTab::Plan, Some(row)) => plan_ui(ui, &shown.operations, row),
            (OperationDetailsTab::Flops, Some(row)) => chosen = flops_ui(ui, rows, row),
            (OperationDetailsTab::Debug, Some(row)) => self.debug_ui(ui, context, row),
        }
        self.jump.update(ui.ctx(), context);
        chosen
    }

    fn debug_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, row: &OpRow) {
        let key = (row.operation, row.programs.clone());
        let texts = QueryTexts { waiting: "Reading…", failed: "The operation cannot be read" };
        let lines = context.ask(ui, &mut self.debug, &key, |report, (operation, programs)| {
            debug_lines(report, *operation, programs)
        });
        lines.show(ui, texts, |ui, lines| debug_ui(ui, lines));
    }

    fn programs_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        programs: &ProgramNodeTable,
        row: &OpRow,
    ) {
        let executed = context.opened.report.has(ReportPart::Execution);
        let area = ScrollArea::both().auto_shrink(false).id_salt("operation programs");
        area.show_rows(ui, 20.0, row.programs.len(), |ui, shown| {
            for place in shown {
                let id = row.programs[place];
                let Some(program) = programs.get(id) else { continue };
                ui.push_id(place, |ui| {
                    ui.horizontal(|ui| {
                        ui.set_height(18.0);
                        ui.add_space(spacing::L);
                        if ui.link(label(program)).on_hover_text("Show in Program tree").clicked() {
                            context.commands.push(AppCommand::SelectProgram(Some(id)));
                            context.commands.push(AppCommand::ShowView(ViewId::ProgramTree));
                        }
                        if executed && ui.link("Execution trace").clicked() {
                            self.jump.start(id);
                        }
                    });
                });
            }
        });
    }

    fn graphs_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, row: &OpRow) {
        let texts = QueryTexts { waiting: "Reading…", failed: "Costs cannot be read" };
        let graphs = context
            .ask(ui, &mut self.graphs, &row.programs, |report, programs| graphs(report, programs));
        graphs.fresh_only().show(ui, texts, |ui, graphs| self.graph_ui(ui, context, graphs));
    }

    fn graph_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, graphs: &OperationTileGraphs) {
        let cycles = self.tab == OperationDetailsTab::Cycles;
        let stack = if cycles { &graphs.cycles } else { &graphs.code };
        if (0..stack.places()).all(|tile| stack.total(tile) == 0) {
            let what = if cycles { "cycles" } else { "code" };
            return hint_ui(ui, &format!("No {what} of this operation was recorded on any tile."));
        }
        let palette = ThemePalette::for_ui(ui);
        let shades: Vec<Color32> =
            (0..stack.titles().len()).map(|layer| palette.categorical_colour(layer)).collect();
        let code = [
            palette.category(MemoryCategory::VertexCode),
            palette.category(MemoryCategory::InternalExchangeCode),
        ];
        let chosen: Vec<usize> = context.selection.tiles.iter().map(|tile| tile.index()).collect();
        let label = |tile: usize| format!("Tile {}", grouped(tile as u64));
        let look = StackGraphInput {
            name: if cycles { "Cycles by tile" } else { "Code by tile" },
            axis: "Tiles",
            label: &label,
            unit: if cycles { TileCurveUnit::Cycles } else { TileCurveUnit::Bytes },
            colours: if cycles { &shades } else { &code },
            chosen: &chosen,
            spans: &[],
            annotations: &[],
            levels: &[],
            least_top: 0,
            matching: None,
        };
        let graph = if cycles { &mut self.cycles } else { &mut self.code };
        let answer = graph.ui(ui, stack, &look);
        if let Some(tile) = answer.hovered {
            answer.response.on_hover_ui_at_pointer(|ui| {
                ui.label(strong(label(tile)));
                ui.label(look.unit.exact(stack.total(tile)));
            });
        }
        if let Some((tile, add)) = answer.clicked {
            select_tile(context, TileId::from_index(tile), add);
        }
    }
}

fn graphs(report: &Report, programs: &[ProgramId]) -> Result<OperationTileGraphs, ReportError> {
    let OperationTileCosts { cycles, vertex_code, exchange_code } = per_tile(report, programs)?;
    let layer = |(title, values): (String, Vec<u64>)| StackLayer { title, values };
    let of_set = |(title, cycles): (String, Vec<Cycles>)| StackLayer {
        title,
        values: cycles.into_iter().map(|cycles| cycles.0).collect(),
    };
    let numbers = |bytes: Vec<Bytes>| bytes.into_iter().map(|bytes| bytes.0).collect();
    Ok(OperationTileGraphs {
        cycles: Versioned::new(StackedValues::new(cycles.into_iter().map(of_set).collect())),
        code: Versioned::new(StackedValues::new(vec![
            layer(("Vertex code".to_owned(), numbers(vertex_code))),
            layer(("Exchange code".to_owned(), numbers(exchange_code))),
        ])),
    })
}

fn row_ui(ui: &mut Ui, name: &str, value: &str, about: &str) {
    ui.weak(name).on_hover_text(about);
    ui.add(Label::new(value).selectable(true).extend());
    ui.end_row();
}

fn page_ui(ui: &mut Ui, title: &str, links: impl FnOnce(&mut Ui), rows: impl FnOnce(&mut Ui)) {
    ScrollArea::both().auto_shrink(false).id_salt("operation summary").show(ui, |ui| {
        ui.add_space(spacing::S);
        ui.horizontal_top(|ui| {
            ui.add_space(spacing::L);
            ui.vertical(|ui| {
                let title: String = title.chars().take(600).collect();
                ui.add(Label::new(strong(title)).selectable(true).extend());
                links(ui);
                let grid = Grid::new("operation rows").num_columns(2);
                grid.min_row_height(17.0).spacing(vec2(24.0, 4.0)).show(ui, rows);
            });
        });
        ui.add_space(spacing::M);
    });
}

/// The placeholder of figures that a report does not have.
const NOT_RECORDED: &str = "not recorded";

fn totals_ui(ui: &mut Ui, report: &Report, shown: &OperationsTableData) {
    let OperationsTableData { layer, rows, totals, .. } = shown;
    let known = |holds: bool, text: String| if holds { text } else { NOT_RECORDED.to_owned() };
    let numbers = numbers(ui);
    page_ui(
        ui,
        "All operations",
        |_| (),
        |ui| {
            row_ui(ui, "Operations", &grouped(rows.len() as u64), "Rows of this layer");
            let code = totals.code.0;
            let about = "Exchange code, and the code of vertex types once per tile even if several \
                         operations share it";
            let text = format!("{} ({})", numbers.bytes(code), exact_bytes(code));
            row_ui(ui, "Code", &known(report.has(ReportPart::Exchanges), text), about);
            let about = "Sum over tiles of one execution of each; not elapsed time";
            let text = totals.cycles_all_tiles.to_string();
            let holds = report.has(ReportPart::ComputeSetCycles);
            row_ui(ui, "Cycles, all tiles", &known(holds, text), about);
            let about = "Cycles of all their steps, averaged over IPUs, which run at the same \
                         time. The rest of the run is idle or belongs to no operation";
            let share_of_run = |cycles| share_of_run(cycles, totals.run, totals.lanes);
            let executed = report.has(ReportPart::Execution);
            let text = known(executed, share_of_run(totals.mean_elapsed));
            row_ui(ui, "Share of the run", &text, about);
            let holds = report.has(ReportPart::Operations) && *layer == OpLayer::Model;
            let passes = PASSES.into_iter().zip(totals.mean_of_passes);
            for (pass, cycles) in passes.filter(|(_, cycles)| holds && *cycles > Cycles::ZERO) {
                row_ui(ui, pass_title(Some(pass)), &share_of_run(cycles), about);
            }
            let text = known(holds, grouped(totals.flops));
            row_ui(ui, "FLOPs", &text, "One execution of each operation of the model");
        },
    );
}

fn summary_ui(ui: &mut Ui, context: &ViewContext<'_>, layer: OpLayer, row: &OpRow) {
    let report = context.opened.report.clone();
    let links = |ui: &mut Ui| {
        ui.horizontal(|ui| {
            if let Some(first) = row.programs.first()
                && ui.link("Show in Program tree").clicked()
            {
                context.commands.push(AppCommand::SelectProgram(Some(*first)));
                context.commands.push(AppCommand::ShowView(ViewId::ProgramTree));
            }
            if row.operation.is_some() && ui.link("Show in Operations graph").clicked() {
                context.commands.push(AppCommand::SelectOperation(row.operation));
                context.commands.push(AppCommand::ShowView(ViewId::OperationsGraph));
            }
        });
    };
    page_ui(ui, &row.name, links, |ui| {
        let words = [
            ("Operator", row.kind.as_str()),
            ("Pass", pass_title(row.pass)),
            ("Block", row.block.as_str()),
            ("Shapes", row.shapes.as_str()),
        ];
        for (name, value) in words.into_iter().filter(|(_, value)| !value.is_empty()) {
            row_ui(ui, name, value, name);
        }
        let numbers = COLUMNS.iter().filter_map(|known| match known.cell(row, &report, layer) {
            // Error bands are the only figures that are text.
            TableCell::Text(band) if known.key.starts_with("errors") && !band.is_empty() => {
                Some((known, band))
            }
            TableCell::Text(_) | TableCell::Id(_) => None,
            TableCell::Missing => Some((known, NOT_RECORDED.to_owned())),
            cell => Some((known, cell.exact())),
        });
        for (known, text) in numbers {
            row_ui(ui, known.title, &text, known.about);
        }
        if row.elapsed > Cycles::ZERO && row.flops > 0 {
            let rate = row.flops as f64 * row.executions as f64 / row.elapsed.as_f64();
            let about = "FLOPs x executions / cycles of its steps in the run";
            row_ui(ui, "FLOPs per cycle", &format!("{rate:.1}"), about);
        }
    });
}

fn plan_ui(ui: &mut Ui, operations: &[ModelOperation], row: &OpRow) {
    let operation = row.operation.and_then(|id| operations.get(id.index()));
    let Some(plan) = operation.and_then(|operation| operation.plan.as_deref()) else {
        let sentence = "No plan is recorded for this operation. Only matmuls, convolutions and \
                        poolings have plans, and other tools do not record them.";
        return hint_ui(ui, sentence);
    };
    let lines = plan_lines(plan);
    let most = lines.iter().filter(|line| !is_total(line)).filter_map(|line| line.cycles).max();
    let total: Cycles =
        lines.iter().filter(|line| !is_total(line)).filter_map(|line| line.cycles).sum();
    ScrollArea::both().auto_shrink(false).id_salt("plan").show(ui, |ui| {
        ui.add_space(spacing::S);
        ui.horizontal_top(|ui| {
            ui.add_space(spacing::L);
            let grid = Grid::new("plan lines").num_columns(3).min_row_height(17.0);
            grid.spacing(vec2(20.0, 4.0)).show(ui, |ui| {
                for line in &lines {
                    plan_line_ui(ui, line, most.unwrap_or_default(), total);
                }
            });
        });
        ui.add_space(spacing::M);
    });
}

/// Returns true if a line is a sum of others.
fn is_total(plan: &PlanLine) -> bool {
    plan.line.name.to_lowercase().contains("total")
}

fn plan_line_ui(ui: &mut Ui, plan: &PlanLine, most: Cycles, total: Cycles) {
    let line = &plan.line;
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal(|ui| {
        ui.add_space(line.depth as f32 * spacing::INDENT);
        let name = RichText::new(&line.name);
        ui.label(if line.value.is_empty() { strong(&line.name) } else { name.weak() });
    });
    ui.add(Label::new(&line.value).selectable(true).extend());
    if let Some(cycles) = plan.cycles.filter(|_| most > Cycles::ZERO && !is_total(plan)) {
        ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(vec2(160.0, 10.0), Sense::hover());
            let width = rect.width() * cycles.0 as f32 / most.0 as f32;
            let bar = Rect::from_min_size(rect.min, vec2(width, rect.height()));
            ui.painter().rect_filled(bar, CornerRadius::same(2), palette.balance);
            let text = percent(cycles.as_f64() / total.max(Cycles(1)).as_f64());
            ui.label(RichText::new(text).weak().size(text_size::SMALL))
                .on_hover_text("Share of the estimated cycles of all phases");
        });
    }
    ui.end_row();
}
