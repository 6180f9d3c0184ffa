//! The cost of exchanges in the run: the table of all, the description of the selected one, and its
//! tiles.

use super::tables::ExchangeTableRows;
use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::views::tile_selection::select_tile;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::hint_ui;
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::TableState;
use egui::{Grid, Label, RichText, ScrollArea, Ui};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::exchange_code::{
    ExchangeCycles, ExchangeCyclesList, ExchangeTile, exchange_cycles, exchange_tiles,
    explain_exchange,
};
use tilescope_analysis::tables::exchange_code as columns;
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::{IpuId, ProgramId};
use tilescope_report::{Report, ReportError};

/// All exchanges, and their table.
struct ExchangeCyclesData {
    list: ExchangeCyclesList,
    table: Arc<DataTable>,
}

impl ExchangeCyclesData {
    fn read(report: &Report) -> Result<Self, ReportError> {
        let list = exchange_cycles(report)?;
        let table = Arc::new(columns::cycles(&list).with_keys(report)?);
        Ok(Self { list, table })
    }
}

/// The state of the tables.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ExchangeCycleTables {
    #[serde(skip)]
    all: BackgroundQuery<(), ExchangeCyclesData>,
    #[serde(skip)]
    tiles: BackgroundQuery<ProgramId, ExchangeTableRows<ExchangeTile>>,
    states: [TableState; 2],
    /// The selected IPU of an exchange on several IPUs.
    ipu: Option<IpuId>,
}

const TEXTS: QueryTexts<'static> =
    QueryTexts { waiting: "Adding up exchanges…", failed: "Exchanges cannot be read" };

impl ExchangeCycleTables {
    /// Clears the selected IPU, because the exchange was selected elsewhere.
    pub(super) fn forget_ipu(&mut self) {
        self.ipu = None;
    }

    /// Shows the table of all exchanges.
    pub(super) fn all_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let all = context.read(ui, &mut self.all, ExchangeCyclesData::read);
        all.show(ui, TEXTS, |ui, all| self.table_ui(ui, context, all));
    }

    fn table_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        all: &Versioned<ExchangeCyclesData>,
    ) {
        let own = self.chosen(context, &all.list.rows);
        let state = &mut self.states[0];
        let version = all.version();
        let clicked = ui.push_id("cycles", |ui| {
            let workers = context.workers;
            let hint = "Filter exchanges";
            state.choose_ui(ui, workers, &all.table, version, hint, own.as_slice())
        });
        let Some(clicked) = clicked.inner else { return };
        let row = all.list.rows.get(clicked).filter(|_| own != Some(clicked));
        self.ipu = row.map(|row| row.ipu);
        context.commands.push(AppCommand::SelectProgram(row.map(|row| row.program)));
    }

    /// The row of the selection: on the clicked IPU, or on the IPU of the selected step.
    fn chosen(&self, context: &ViewContext<'_>, rows: &[ExchangeCycles]) -> Option<usize> {
        let program = context.selection.program?;
        let of_step = context.selection.step.map(|step| step.at.ipu);
        let find_row = |ipu: Option<IpuId>| {
            rows.iter().position(|row| row.program == program && Some(row.ipu) == ipu)
        };
        find_row(self.ipu)
            .or_else(|| find_row(of_step))
            .or_else(|| rows.iter().position(|row| row.program == program))
    }

    /// Describes the selected exchange. Returns the place in the trace if its link was clicked.
    pub(super) fn details_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
    ) -> Option<ViewLocation> {
        let all = context.read(ui, &mut self.all, ExchangeCyclesData::read);
        let shown = all.show(ui, TEXTS, |ui, all| {
            let row = self.chosen(context, &all.list.rows);
            match row.and_then(|row| all.list.rows.get(row)) {
                Some(row) => words_ui(ui, context, row, &all.list),
                None => {
                    hint_ui(ui, "Select an exchange under Cycles to see its lower bound.");
                    None
                }
            }
        });
        shown.flatten()
    }

    /// Shows the tiles of the selected exchange.
    pub(super) fn tiles_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let Some(program) = context.selection.program else {
            return hint_ui(ui, "Select an exchange under Cycles to see the bytes of its tiles.");
        };
        let tiles = context
            .ask(ui, &mut self.tiles, &program, |report, program| tiles_of(report, *program));
        tiles.show(ui, LIST_TEXTS, |ui, tiles| {
            let mut chosen = Vec::new();
            for tile in &context.selection.tiles {
                chosen.extend(tiles.rows.iter().position(|row| row.tile == *tile));
            }
            let state = &mut self.states[1];
            let version = tiles.version();
            let clicked = ui.push_id("hot tiles", |ui| {
                let hint = "Filter tiles";
                state.choose_ui(ui, context.workers, &tiles.table, version, hint, &chosen)
            });
            if let Some(row) = clicked.inner.and_then(|row| tiles.rows.get(row)) {
                let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
                select_tile(context, row.tile, add);
            }
        });
    }
}

fn tiles_of(
    report: &Report,
    program: ProgramId,
) -> Result<ExchangeTableRows<ExchangeTile>, ReportError> {
    let rows = exchange_tiles(report, program)?;
    let table = Arc::new(columns::exchange_tiles(&rows));
    Ok(ExchangeTableRows { rows, table })
}

/// Describes an exchange, with links. Returns the place in the trace if its link was clicked.
fn words_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    row: &ExchangeCycles,
    list: &ExchangeCyclesList,
) -> Option<ViewLocation> {
    let mut place = None;
    let area = ScrollArea::vertical().auto_shrink(false).id_salt("exchange details");
    area.show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            ui.add_space(spacing::L);
            ui.label(strong(row.name.as_str()));
            let kind = format!("{} on IPU {}", row.kind.name(), row.ipu);
            ui.weak(kind);
            place = links_ui(ui, context, row);
        });
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            let grid = Grid::new("exchange in words").num_columns(3);
            grid.spacing([spacing::L, spacing::S]).show(ui, |ui| {
                for line in explain_exchange(row, &list.machine, numbers(ui)) {
                    ui.weak(line.title);
                    ui.label(line.value.as_deref().unwrap_or("—"));
                    let sentence = RichText::new(line.sentence).size(text_size::SMALL);
                    ui.add(Label::new(sentence).wrap());
                    ui.end_row();
                }
            });
        });
    });
    place
}

fn links_ui(ui: &mut Ui, context: &ViewContext<'_>, row: &ExchangeCycles) -> Option<ViewLocation> {
    let ran = row.run.is_some_and(|run| run.executions > 0);
    let program = Some(row.program);
    let ipu = Some(row.ipu);
    let hint = "Where it first ran on this IPU";
    let to_trace = ran && ui.link("Show in Execution trace").on_hover_text(hint).clicked();
    if row.operation.is_some() && ui.link("Show in Operations").clicked() {
        context.commands.push(AppCommand::SelectOperation(row.operation));
        context.commands.push(AppCommand::ShowView(ViewId::Operations));
    }
    if to_trace { Some(ViewLocation { program, ipu, ..ViewLocation::default() }) } else { None }
}

/// The table of all exchanges, as the view shows it.
#[cfg(test)]
pub(super) fn seen(report: &Report) -> DataTable {
    ExchangeCyclesData::read(report).unwrap().table.as_ref().clone()
}
