//! The details of the selection: a mark, a bar, a step, or several steps side by side.

use super::events::TraceEvent;
use super::layers::marks::SelectedMark;
use super::loaded_trace::LoadedTrace;
use super::queries::TraceQueries;
use super::settings::TraceSettings;
use super::why_links::why_ui;
use super::{details_tables, places};
use crate::model::command::{AppCommand, SelectedStep};
use crate::model::view_id::ViewId;
use crate::theme::numbers;
use crate::views::ViewContext;
use crate::widgets::background_query::Versioned;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{empty_state_ui, hint_ui};
use egui::Ui;
use tilescope_analysis::critical_path::{WhyChain, why};
use tilescope_analysis::trace::{MarkDetailReport, StepDetailReport, mark_details, step_view};
use tilescope_report::units::NumberFormat;
use tilescope_report::{Report, ReportError, ReportPart};

/// Shows the details of the selection, or places to go to without one. Returns the event of a
/// clicked link.
pub(super) fn details_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    prepared: &Versioned<LoadedTrace>,
    (settings, queries): (&TraceSettings, &mut TraceQueries),
) -> Vec<TraceEvent> {
    if let Some(bar) = &settings.bar {
        let is_path_found = prepared.known_path().is_some();
        let why = bar.longest.and_then(|step| ask_why(ui, context, queries, (step, is_path_found)));
        return details_tables::bar_ui(ui, bar, &prepared.ipu_words(bar.at), |ui| {
            why.iter().flat_map(|chain| why_ui(ui, context, chain)).collect()
        });
    }
    if let Some(mark) = settings.mark {
        mark_ui(ui, context, prepared, mark, queries);
    } else if settings.chosen_steps(context.selection.step).is_empty() {
        let clock = context.opened.target.clock;
        if !places::repeated(prepared).is_empty() {
            return places::places_ui(ui, prepared, clock).into_iter().collect();
        }
        let sentence = "Click on a step to see its details; Shift + click adds another one.";
        hint_ui(ui, sentence);
    } else {
        return steps_ui(ui, context, prepared, (settings, queries));
    }
    Vec::new()
}

fn mark_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    prepared: &Versioned<LoadedTrace>,
    mark: SelectedMark,
    queries: &mut TraceQueries,
) {
    let shared = prepared.clone();
    let texts = QueryTexts { waiting: "Reading…", failed: "The mark cannot be read" };
    let asked = context.ask(ui, &mut queries.mark_details, &mark, move |report, mark| {
        mark_report(report, &shared, mark)
    });
    asked.show(ui, texts, |ui, details| match details.as_ref() {
        Some(details) => details_tables::mark_ui(ui, details),
        None => empty_state_ui(ui, "No details", "This mark is not in the report."),
    });
}

fn mark_report(
    report: &Report,
    prepared: &LoadedTrace,
    mark: &SelectedMark,
) -> Result<Option<MarkDetailReport>, ReportError> {
    let Some(rows) = prepared.known_marks() else { return Ok(None) };
    mark_details(report, &prepared.trace, rows, (mark.row, mark.first, mark.count))
}

fn steps_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    prepared: &LoadedTrace,
    (settings, queries): (&TraceSettings, &mut TraceQueries),
) -> Vec<TraceEvent> {
    let steps = settings.chosen_steps(context.selection.step);
    let why = match steps.as_slice() {
        [step] => ask_why(ui, context, queries, (*step, prepared.known_path().is_some())),
        _ => None,
    };
    let mut events = Vec::new();
    let texts = QueryTexts { waiting: "Reading…", failed: "The step cannot be read" };
    let key = (steps.clone(), numbers(ui));
    let views = context.ask(ui, &mut queries.details, &key, |report, (steps, numbers)| {
        views(report, steps, *numbers)
    });
    views.show(ui, texts, |ui, views| match (views.as_slice(), steps.as_slice()) {
        ([], _) => empty_state_ui(ui, "No details", "This step is not in the report."),
        ([view], [step]) => {
            events = details_tables::step_ui(ui, view, &prepared.ipu_words(step.at), |ui| {
                exchange_link_ui(ui, context, view);
                why.iter().flat_map(|chain| why_ui(ui, context, chain)).collect()
            });
        }
        (views, _) => details_tables::steps_ui(ui, views),
    });
    events
}

/// The link to the lower bound of an exchange.
fn exchange_link_ui(ui: &mut Ui, context: &ViewContext<'_>, view: &StepDetailReport) {
    let exchange = view.program.filter(|_| view.kind.moves_data());
    let recorded = context.opened.report.has(ReportPart::Exchanges);
    let hint = "Arrival of its tiles, its duration and its lower bound";
    if exchange.is_some()
        && recorded
        && ui.link("Show in Exchange code").on_hover_text(hint).clicked()
    {
        context.commands.push(AppCommand::SelectProgram(exchange));
        context.commands.push(AppCommand::ShowTables(ViewId::ExchangeCode, "Details"));
    }
}

/// Queries the reasons for the length of a step; `None` until they are known.
fn ask_why(
    ui: &Ui,
    context: &ViewContext<'_>,
    queries: &mut TraceQueries,
    (step, is_path_found): (SelectedStep, bool),
) -> Option<WhyChain> {
    let key = (step, numbers(ui), is_path_found);
    let asked = context.ask(ui, &mut queries.why, &key, |report, (step, numbers, is_found)| {
        // Without a stored path, finding it takes a pass over all steps.
        if !is_found && report.known_critical_path()?.is_none() {
            return Ok(None);
        }
        why(report, step.step, step.at, step.sub_lane, *numbers)
    });
    asked.answer().and_then(|found| found.as_ref().cloned())
}

/// The details of those steps that are in the report.
fn views(
    report: &Report,
    steps: &[SelectedStep],
    numbers: NumberFormat,
) -> Result<Vec<StepDetailReport>, ReportError> {
    let read_view =
        |step: &SelectedStep| step_view(report, step.step, step.at, step.sub_lane, numbers);
    let found: Result<Vec<Option<StepDetailReport>>, _> = steps.iter().map(read_view).collect();
    Ok(found?.into_iter().flatten().collect())
}
