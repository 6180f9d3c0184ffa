//! Details of the selection: a bar, a step, or several steps side by side.

use super::details_tables;
use super::queries::StepDetailsKey;
use super::settings::TraceSettings;
use crate::model::command::SelectedStep;
use crate::theme::numbers;
use crate::views::ViewContext;
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{empty_state_ui, hint_ui};
use egui::Ui;
use tilescope_analysis::trace::{StepDetailReport, step_view};
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError};

/// Shows the details of what is chosen.
pub(super) fn details_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    settings: &TraceSettings,
    details: &mut BackgroundQuery<StepDetailsKey, Vec<StepDetailReport>>,
) {
    if let Some(bar) = &settings.bar {
        return details_tables::bar_ui(ui, bar);
    }
    let steps = settings.chosen_steps(context.selection.step);
    if steps.is_empty() {
        let sentence = "Click on a step to see its details; Shift + click adds another one.";
        return hint_ui(ui, sentence);
    }
    let report = context.opened.report.clone();
    let question = move |(steps, numbers): &StepDetailsKey| views(&report, steps, *numbers);
    let texts = QueryTexts { waiting: "Reading…", failed: "The step cannot be read" };
    let views = details.ask(ui.ctx(), context.workers, &(steps.clone(), numbers(ui)), question);
    views.show(ui, texts, |ui, views| match (views.as_slice(), steps.as_slice()) {
        ([], _) => empty_state_ui(ui, "No details", "This step is not in the report."),
        ([view], [step]) => details_tables::step_ui(ui, view, step.ipu),
        (views, _) => details_tables::steps_ui(ui, views),
    });
}

/// Those of the steps that are in the report.
fn views(
    report: &Report,
    steps: &[SelectedStep],
    numbers: NumberFormat,
) -> Result<Vec<StepDetailReport>, ReportError> {
    let view = |step: &SelectedStep| step_view(report, step.step, step.ipu, step.sub_lane, numbers);
    let found: Result<Vec<Option<StepDetailReport>>, _> = steps.iter().map(view).collect();
    Ok(found?.into_iter().flatten().collect())
}
