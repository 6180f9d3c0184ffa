//! Details of the selection: a bar, a step, or several steps side by side.

use super::{ExecutionTraceView, TraceDetailsTab, details_tables};
use crate::model::command::{AppCommand, SelectedStep};
use crate::theme::numbers;
use crate::views::ViewContext;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{empty_state_ui, hint_ui};
use egui::Ui;
use tilescope_analysis::trace::{StepDetailReport, step_view};
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError};

/// Most steps that are columns beside each other.
const MAX_COLUMNS: usize = 8;

impl ExecutionTraceView {
    /// Chooses a step, alone or beside those chosen before; a chosen one is taken out again.
    pub(super) fn select_step(&mut self, context: &ViewContext<'_>, step: SelectedStep, add: bool) {
        let mut chosen = if add { self.chosen_steps(context) } else { Vec::new() };
        match chosen.iter().position(|known| *known == step) {
            Some(at) if add => drop(chosen.remove(at)),
            _ => {
                chosen.truncate(MAX_COLUMNS - 1);
                chosen.push(step);
            }
        }
        self.bar = None;
        self.tab = TraceDetailsTab::Details;
        let last = chosen.pop();
        // The others are not to be forgotten when the selection changes.
        self.seen_step = last;
        self.also = chosen;
        context.commands.push(AppCommand::SelectStep(last));
    }

    /// Every chosen step, the one that all tabs know last.
    pub(super) fn chosen_steps(&self, context: &ViewContext<'_>) -> Vec<SelectedStep> {
        self.also.iter().copied().chain(context.selection.step).collect()
    }

    pub(super) fn details_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        if let Some(bar) = &self.bar {
            return details_tables::bar_ui(ui, bar);
        }
        let steps = self.chosen_steps(context);
        if steps.is_empty() {
            let sentence = "Click on a step to see its details; Shift + click adds another one.";
            return hint_ui(ui, sentence);
        }
        let report = context.opened.report.clone();
        let question = move |(steps, numbers): &(Vec<SelectedStep>, NumberFormat)| {
            views(&report, steps, *numbers)
        };
        let texts = QueryTexts { waiting: "Reading…", failed: "The step cannot be read" };
        let views =
            self.details.ask(ui.ctx(), context.workers, &(steps.clone(), numbers(ui)), question);
        views.show(ui, texts, |ui, views| match (views.as_slice(), steps.as_slice()) {
            ([], _) => empty_state_ui(ui, "No details", "This step is not in the report."),
            ([view], [step]) => details_tables::step_ui(ui, view, step.ipu),
            (views, _) => details_tables::steps_ui(ui, views),
        });
    }
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
