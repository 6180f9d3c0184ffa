//! The selected operation: its costs, its inputs, and the operations that read its outputs.

use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{spacing, text_size};
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::fact_row_ui;
use crate::widgets::query_state::QueryTexts;
use egui::{Grid, Label, RichText, ScrollArea, Ui, vec2};
use std::collections::BTreeMap;
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::operations::{OpRow, OperationLayer};
use tilescope_analysis::operations_graph::OpGraph;
use tilescope_analysis::tables::operations::{COLUMNS, pass_title};
use tilescope_report::units::{Cycles, IpuId, OperationId, grouped};
use tilescope_report::{Report, ReportError};

/// The largest number of operations listed on one side.
const MOST: usize = 40;
/// The number of operations offered without a selection.
const LONGEST: usize = 8;

/// The inputs of an operation, and the readers of its outputs.
struct DataDependences {
    reads: Vec<OperationId>,
    readers: Vec<OperationId>,
}

/// The state of the details.
#[derive(Default)]
pub(crate) struct Details {
    /// Keyed by the version of the graph and the operation.
    dependences: BackgroundQuery<(u64, OperationId), DataDependences>,
}

impl Details {
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        graph: &Versioned<OpGraph>,
    ) {
        let chosen = context.selection.operation;
        let row = chosen.and_then(|id| graph.rows.iter().find(|row| row.operation == Some(id)));
        let Some((id, row)) = chosen.zip(row) else {
            return overview_ui(ui, context, graph);
        };
        let shared = graph.clone();
        let key = (graph.version(), id);
        let state = context
            .ask(ui, &mut self.dependences, &key, move |report, (_, id)| {
                dependences(report, &shared, *id)
            })
            .fresh_only();
        let texts = QueryTexts { waiting: "Reading…", failed: "Operations cannot be read" };
        ScrollArea::both().auto_shrink(false).id_salt("graph details").show(ui, |ui| {
            ui.add_space(spacing::M);
            ui.horizontal_top(|ui| {
                ui.add_space(spacing::L);
                ui.vertical(|ui| facts_ui(ui, context, row));
                ui.add_space(spacing::XL);
                state.show(ui, texts, |ui, found| {
                    ui.vertical(|ui| links_ui(ui, context, graph, "Reads", &found.reads));
                    ui.add_space(spacing::XL);
                    ui.vertical(|ui| links_ui(ui, context, graph, "Read by", &found.readers));
                });
            });
            ui.add_space(spacing::M);
        });
    }
}

fn dependences(
    report: &Report,
    graph: &OpGraph,
    id: OperationId,
) -> Result<DataDependences, ReportError> {
    let operations = report.operations()?;
    let reads = operations.get(id.index()).map(|of| of.inputs.clone()).unwrap_or_default();
    let mut readers = Vec::new();
    for reader in graph.rows.iter().filter_map(|row| row.operation) {
        let operation = operations.get(reader.index());
        if operation.is_some_and(|operation| operation.inputs.contains(&id)) {
            readers.push(reader);
        }
    }
    Ok(DataDependences { reads, readers })
}

/// The overview without a selection: the operations on each IPU, and the longest ones.
fn overview_ui(ui: &mut Ui, context: &ViewContext<'_>, graph: &OpGraph) {
    let mut ipus: BTreeMap<Option<IpuId>, (u64, u64, u64)> = BTreeMap::new();
    for row in &graph.rows {
        let (count, flops, cycles) = ipus.entry(row.ipu).or_default();
        *count += 1;
        *flops = flops.saturating_add(row.flops);
        *cycles = cycles.saturating_add(row.elapsed.0);
    }
    let mut longest: Vec<&OpRow> =
        graph.rows.iter().filter(|row| row.elapsed > Cycles::ZERO).collect();
    longest.sort_by_key(|row| (std::cmp::Reverse(row.elapsed), row.operation));
    ScrollArea::both().auto_shrink(false).id_salt("graph overview").show(ui, |ui| {
        ui.add_space(spacing::M);
        ui.horizontal_top(|ui| {
            ui.add_space(spacing::L);
            ui.vertical(|ui| {
                let text = "Click on an operation to display its details.";
                ui.weak(text);
                let grid = Grid::new("graph ipus").num_columns(4).min_row_height(17.0);
                grid.spacing(vec2(24.0, 4.0)).show(ui, |ui| {
                    for title in ["IPU", "Operations", "FLOPs", "Cycles in the run"] {
                        ui.label(RichText::new(title).weak().size(text_size::SMALL));
                    }
                    ui.end_row();
                    for (ipu, (count, flops, cycles)) in &ipus {
                        ui.label(ipu.map_or_else(|| "?".to_owned(), |ipu| ipu.to_string()));
                        // Without a run no operation has cycles.
                        let cycles = Some(*cycles).filter(|_| !longest.is_empty());
                        for value in [Some(*count), Some(*flops), cycles] {
                            ui.label(value.map_or_else(|| "not recorded".to_owned(), grouped));
                        }
                        ui.end_row();
                    }
                });
            });
            if longest.is_empty() {
                return;
            }
            ui.add_space(spacing::XL);
            ui.vertical(|ui| {
                ui.weak("Most cycles in the run");
                for row in longest.iter().take(LONGEST) {
                    let name: String = row.name.chars().take(80).collect();
                    let text = format!("{name}: {}", grouped(row.elapsed.0));
                    ui.push_id(row.operation, |ui| {
                        if ui.link(text).clicked() {
                            context.commands.push(AppCommand::SelectOperation(row.operation));
                        }
                    });
                }
            });
        });
    });
}

fn facts_ui(ui: &mut Ui, context: &ViewContext<'_>, row: &OpRow) {
    let title: String = row.name.chars().take(300).collect();
    ui.add(Label::new(strong(title)).selectable(true).extend());
    ui.horizontal(|ui| {
        if ui.link("Show in Operations").clicked() {
            context.commands.push(AppCommand::ShowView(ViewId::Operations));
        }
        if let Some(first) = row.programs.first()
            && ui.link("Show in Program tree").clicked()
        {
            context.commands.push(AppCommand::SelectProgram(Some(*first)));
            context.commands.push(AppCommand::ShowView(ViewId::ProgramTree));
        }
    });
    let report = context.opened.report.clone();
    Grid::new("graph facts").num_columns(2).min_row_height(17.0).spacing(vec2(20.0, 4.0)).show(
        ui,
        |ui| {
            let words = [("Pass", pass_title(row.pass)), ("Shapes", row.shapes.as_str())];
            for (name, value) in words.into_iter().filter(|(_, value)| !value.is_empty()) {
                fact_row_ui(ui, name, value, "");
            }
            for known in COLUMNS.iter() {
                let cell = known.cell(row, &report, OperationLayer::Model);
                if let TableCell::Bytes(_) | TableCell::Count(_) = cell {
                    let name = RichText::new(known.title).weak();
                    ui.label(name).on_hover_text(known.about);
                    ui.label(cell.text());
                    ui.end_row();
                }
            }
        },
    );
}

fn links_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    graph: &OpGraph,
    title: &str,
    operations: &[OperationId],
) {
    ui.weak(title);
    if operations.is_empty() {
        ui.label("no operations");
    }
    for id in operations.iter().take(MOST) {
        let name = graph.rows.get(id.index()).map_or("unknown", |row| row.name.as_str());
        let name: String = name.chars().take(80).collect();
        ui.push_id(id.0, |ui| {
            if ui.link(name).clicked() {
                context.commands.push(AppCommand::SelectOperation(Some(*id)));
            }
        });
    }
    if operations.len() > MOST {
        ui.label(format!("and {} more", operations.len() - MOST));
    }
}
