//! The block of energy and cost in the summary.

use super::{SummaryFactRow, SummaryPageData, rows_ui};
use egui::Ui;
use tilescope_analysis::running_costs::{RunningCostRow, RunningCosts};

pub(super) fn running_costs_ui(ui: &mut Ui, facts: &SummaryPageData) {
    let energy = facts.summary.energy.clone();
    let cost = facts.summary.cost.clone();
    let to_row = |RunningCostRow { name, value, explanation }| SummaryFactRow {
        name: String::from(name),
        value,
        formula: explanation.into(),
    };
    let rows: Vec<SummaryFactRow> =
        RunningCosts { energy, cost }.rows().into_iter().map(to_row).collect();
    rows_ui(ui, "energy and cost", &rows);
}
