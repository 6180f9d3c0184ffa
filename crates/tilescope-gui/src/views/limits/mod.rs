//! The limits view: the efficiency of each operation and of the run, relative to the capability of
//! the machine.

mod details;
mod waterfall_plot;

use super::{ReportView, ViewContext, ViewDescriptor};
use crate::model::command::{AppCommand, ViewAction};
use crate::model::message::StatusMessage;
use crate::model::view_id::ViewId;
use crate::theme::{ThemePalette, spacing};
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::bottom_panel::{BottomPanel, LOW, tabs_row_ui};
use crate::widgets::figure::{FigureLook, figure_ui};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::table::TableState;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui};
use crate::widgets::{central_ui, empty_state_ui, tables_height, tabs_ui};
use egui::{Frame, Margin, Panel, Ui};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::figures::Figure;
use tilescope_analysis::limits::{LimitsRow, ReportLimits, Roofline, RunLimits, limits, roofline};
use tilescope_analysis::tables::limits as tables;
use tilescope_analysis::topics::roofline_figure;
use tilescope_report::units::{IpuId, OperationId};
use tilescope_report::{Report, ReportError, ReportPart};
use waterfall_plot::waterfall_ui;

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Limits,
    help: include_str!("../../../../../assets/help/limits.md"),
    icon: Icon::Roofline,
    settings: &["plots", "tab"],
    create: || Box::<LimitsView>::default(),
};

/// The width from which both plots are side by side.
const TWO_PLOTS: f32 = 620.0;
/// The share of the width for the waterfall beside the roofline.
const WATERFALL_SHARE: f32 = 0.42;

/// The plots in the upper half of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LimitPlots {
    #[default]
    Both,
    Roofline,
    Waterfall,
}

/// The tables in the lower half of the view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LimitsTab {
    #[default]
    Operations,
    Classes,
    Roofline,
    Waterfall,
    Details,
}

/// The limits of the operations on an IPU or on all of them, with plots and tables.
struct LimitsData {
    limits: ReportLimits,
    roofline: Roofline,
    figure: Figure,
    operations: Arc<DataTable>,
    classes: Arc<DataTable>,
    points: Arc<DataTable>,
    waterfall: Arc<DataTable>,
}

impl LimitsData {
    fn read(report: &Report, ipu: Option<IpuId>) -> Result<Self, ReportError> {
        let mut found = ReportLimits::clone(&*limits(report)?);
        found.rows.retain(|row| ipu.is_none() || row.ipu == ipu);
        let roofline = roofline(&found.machine, &found.rows, None);
        let cycles = found.run.as_ref().and_then(|run| run.waterfall(ipu)).copied();
        Ok(Self {
            operations: Arc::new(tables::operations(&found.rows).with_keys(report)?),
            classes: Arc::new(tables::classes(&found.rows).with_keys(report)?),
            points: Arc::new(
                tables::roofline(&roofline, &found.rows, &found.machine).with_keys(report)?,
            ),
            waterfall: Arc::new(tables::waterfall(&cycles.unwrap_or_default())),
            figure: roofline_figure(&found, &roofline),
            roofline,
            limits: found,
        })
    }

    /// The row of an operation, or of programs with this name that belong to no operation.
    fn place(&self, operation: Option<OperationId>, other: Option<&str>) -> Option<usize> {
        let mut rows = self.limits.rows.iter();
        match operation {
            Some(_) => rows.position(|row| row.operation == operation),
            None => rows.position(|row| row.operation.is_none() && Some(&*row.name) == other),
        }
    }
}

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LimitsView {
    #[serde(skip)]
    found: BackgroundQuery<Option<IpuId>, LimitsData>,
    /// The IPU whose operations are shown; `None` for all IPUs.
    ipu: Option<IpuId>,
    plots: LimitPlots,
    tab: LimitsTab,
    /// The name of a selected row that is not an operation of the model.
    other: Option<String>,
    tables: [TableState; 4],
    panel: BottomPanel,
    /// True if the plots reset their zoom.
    #[serde(skip)]
    reset: bool,
}

impl ReportView for LimitsView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let report = &context.opened.report;
        if !report.has(ReportPart::Execution) {
            let sentence = "The program was compiled but not run, so the cycles of its operations \
                            are unknown.";
            return empty_state_ui(ui, "No run recorded", sentence);
        }
        self.reset |= context.actions.contains(&ViewAction::ZoomToSelection);
        if context.selection.operation.is_some() {
            self.other = None;
        }
        toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context));
        let report = report.clone();
        let texts = QueryTexts { waiting: "Adding up limits…", failed: "Limits cannot be read" };
        let found = self
            .found
            .ask(ui.ctx(), context.workers, &self.ipu, move |ipu| LimitsData::read(&report, *ipu));
        found.show(ui, texts, |ui, found| self.panels_ui(ui, context, found));
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        vec![AppCommand::SelectOperation(None)]
    }
}

impl LimitsView {
    fn controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let count = context.opened.target.ipus_per_replica;
        let names: Vec<String> = (0..count).map(|ipu| format!("IPU {ipu}")).collect();
        let numbered = (0..count).map(IpuId).map(Some).zip(names.iter().map(String::as_str));
        let ipus: Vec<_> = std::iter::once((None, "All IPUs")).chain(numbered).collect();
        if !ipus.iter().any(|(ipu, _)| *ipu == self.ipu) {
            self.ipu = None;
        }
        if let Some(ipu) = bar.choice("IPU", &ipus, self.ipu) {
            self.ipu = ipu;
        }
        let plots = [
            (LimitPlots::Both, "Roofline and waterfall"),
            (LimitPlots::Roofline, "Roofline"),
            (LimitPlots::Waterfall, "Waterfall"),
        ];
        if let Some(plots) = bar.choice("Plots", &plots, self.plots) {
            self.plots = plots;
        }
        bar.align_right();
        self.reset |= bar.button("Whole plot", "Show all points of the roofline (F)");
    }

    fn panels_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>, found: &Versioned<LimitsData>) {
        let chosen = found.place(context.selection.operation, self.other.as_deref());
        let room = (tables_height(ui, 0.44), LOW);
        self.panel = self.panel.ui(ui, "limits tables", room, |ui, open| {
            self.tables_ui(ui, context, found, chosen, open);
        });
        central_ui(ui, |ui| {
            if let Some(clicked) = self.plots_ui(ui, found, chosen) {
                self.tab = LimitsTab::Details;
                self.choose(context, found.limits.rows.get(clicked), chosen == Some(clicked));
            }
        });
    }

    /// Shows the plots. Returns the row of the clicked point.
    fn plots_ui(
        &mut self,
        ui: &mut Ui,
        found: &LimitsData,
        chosen: Option<usize>,
    ) -> Option<usize> {
        let run = found.limits.run.as_ref()?;
        let reset = std::mem::take(&mut self.reset);
        let is_wide = ui.available_width() >= TWO_PLOTS;
        let waterfall = run.waterfall(self.ipu);
        if self.plots == LimitPlots::Waterfall {
            if let Some(cycles) = waterfall {
                waterfall_ui(ui, cycles, run, self.ipu);
            }
            return None;
        }
        if self.plots == LimitPlots::Both && is_wide {
            let width = ui.available_width() * WATERFALL_SHARE;
            let frame = Frame::new().fill(ThemePalette::for_ui(ui).page);
            let panel = Panel::right("waterfall").resizable(false).exact_size(width);
            panel.frame(frame).show(ui, |ui| {
                if let Some(cycles) = waterfall {
                    waterfall_ui(ui, cycles, run, self.ipu);
                }
            });
        }
        if let Some(sentence) = no_points(run, found) {
            empty_state_ui(ui, "No points", sentence);
            return None;
        }
        let look = FigureLook { chosen, chooses: true, zooms: true, reset, path: &[] };
        let margin = Margin { left: spacing::S as i8, top: spacing::XS as i8, ..Margin::ZERO };
        let frame = Frame::new().inner_margin(margin);
        frame.show(ui, |ui| figure_ui(ui, &found.figure, look)).inner
    }

    fn tables_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        found: &Versioned<LimitsData>,
        chosen: Option<usize>,
        open: &mut bool,
    ) {
        let tabs = [
            (LimitsTab::Operations, "Operations"),
            (LimitsTab::Classes, "Where cycles go"),
            (LimitsTab::Roofline, "Roofline"),
            (LimitsTab::Waterfall, "Waterfall"),
            (LimitsTab::Details, "Details"),
        ];
        *open |= tabs_row_ui(ui, |ui| tabs_ui(ui, VIEW.id.name(), &tabs, &mut self.tab));
        if !*open {
            return;
        }
        ui.add_space(spacing::XS);
        let rows = &found.limits.rows;
        let (table, index) = match self.tab {
            LimitsTab::Operations => (&found.operations, 0),
            LimitsTab::Classes => (&found.classes, 1),
            LimitsTab::Roofline => (&found.points, 2),
            LimitsTab::Waterfall => (&found.waterfall, 3),
            LimitsTab::Details => {
                let row = chosen.and_then(|row| rows.get(row));
                return details::details_ui(ui, context, row, &found.limits);
            }
        };
        let hint = "Filter limits";
        let version = found.version();
        let state = &mut self.tables[index];
        // Points correspond to some of the rows; steps of the waterfall do not.
        let points = &found.roofline.points;
        let own = match self.tab {
            LimitsTab::Waterfall => {
                state.ui(ui, context.workers, table, version, hint);
                return;
            }
            LimitsTab::Roofline => points.iter().position(|point| Some(point.row) == chosen),
            _ => chosen,
        };
        let entered = state.menu_entries(&ROW_ENTRIES);
        let clicked = ui.push_id(index, |ui| {
            state.choose_ui(ui, context.workers, table, version, hint, own.as_slice())
        });
        let (place, entry) = match (entered, clicked.inner) {
            (Some((row, entry)), _) => (row, Some(entry)),
            (None, Some(row)) => (row, None),
            (None, None) => return,
        };
        let row = match self.tab {
            LimitsTab::Roofline => points.get(place).map(|point| point.row),
            _ => Some(place),
        };
        let row = row.and_then(|row| rows.get(row));
        match entry {
            Some(entry) => show_row(context, row, entry),
            None => self.choose(context, row, own == Some(place)),
        }
    }

    /// Selects a row, or clears the selection if the row is selected already.
    fn choose(&mut self, context: &ViewContext<'_>, row: Option<&LimitsRow>, again: bool) {
        let row = row.filter(|_| !again);
        let operation = row.and_then(|row| row.operation);
        self.other = row.filter(|_| operation.is_none()).map(|row| row.name.clone());
        context.commands.push(AppCommand::SelectOperation(operation));
    }
}

/// The entries of the menu of a row.
const ROW_ENTRIES: [&str; 3] =
    ["Show in Operations", "Show in Operations graph", "Show in Tile mapping"];
/// The views that they lead to.
const ROW_VIEWS: [ViewId; 3] = [ViewId::Operations, ViewId::OperationsGraph, ViewId::TileMapping];

/// Shows the operation of a row in another view. Some rows belong to no operation.
fn show_row(context: &ViewContext<'_>, row: Option<&LimitsRow>, entry: usize) {
    let Some(view) = ROW_VIEWS.get(entry) else { return };
    if let Some(operation) = row.and_then(|row| row.operation) {
        context.commands.push(AppCommand::SelectOperation(Some(operation)));
        context.commands.push(AppCommand::ShowView(*view));
        return;
    }
    let words = "This row is not an operation of the model, so no other view shows it.";
    context.commands.push(AppCommand::ShowMessage(StatusMessage::warning(words)));
}

/// The reason that there are no points to draw, if so.
fn no_points(run: &RunLimits, found: &LimitsData) -> Option<&'static str> {
    if !found.roofline.points.is_empty() {
        return None;
    }
    let reason = run.unknown.map(|unknown| unknown.sentence());
    Some(reason.unwrap_or(
        "No operation here has floating point operations, so the roofline has \
                           no points.",
    ))
}

/// The table of this name, as the view shows it.
#[cfg(test)]
pub(in crate::views) fn seen(report: &Report, name: &str) -> DataTable {
    let data = LimitsData::read(report, None).unwrap();
    let table = match name {
        "operations" => data.operations,
        "classes" => data.classes,
        "roofline" => data.points,
        _ => data.waterfall,
    };
    table.as_ref().clone()
}
