//! Links from programs to where they ran in the execution trace.

use super::ViewContext;
use crate::model::command::{AppCommand, SelectedStep};
use crate::model::message::StatusMessage;
use crate::model::view_id::ViewId;
use crate::widgets::background_query::BackgroundQuery;
use egui::Context;
use tilescope_analysis::trace::{LaneStepLocation, first_run};
use tilescope_report::Report;
use tilescope_report::ReportError;
use tilescope_report::units::ProgramId;

/// A way to the trace that is being looked for.
#[derive(Default)]
pub(crate) struct TraceJump {
    wanted: Option<(ProgramId, u64)>,
    presses: u64,
    found: BackgroundQuery<(ProgramId, u64), Option<LaneStepLocation>>,
}

impl TraceJump {
    /// Goes to the first step of a program, once it is found.
    pub(crate) fn start(&mut self, program: ProgramId) {
        self.presses += 1;
        self.wanted = Some((program, self.presses));
    }

    /// Goes there if it has been found.
    pub(crate) fn update(&mut self, ui: &Context, context: &ViewContext<'_>) {
        let Some(wanted) = self.wanted else { return };
        let report = context.opened.report.clone();
        let question = move |(program, _): &(ProgramId, u64)| find(&report, *program);
        let asked = self.found.ask(ui, context.workers, &wanted, question);
        let Some(answer) = asked.finished() else { return };
        self.wanted = None;
        match answer.map(|found| *found) {
            Ok(Some(LaneStepLocation { ipu, sub_lane, step })) => {
                let position = step.position;
                let chosen = SelectedStep { ipu, sub_lane, position, step: step.step };
                context.commands.push(AppCommand::SelectStep(Some(chosen)));
                context.commands.push(AppCommand::ZoomToCycles(Some(step.range)));
                context.commands.push(AppCommand::ShowView(ViewId::ExecutionTrace));
            }
            Ok(None) => {
                let words = "None of the recorded steps executes this program.";
                context.commands.push(AppCommand::ShowMessage(StatusMessage::warning(words)));
            }
            Err(error) => context
                .commands
                .push(AppCommand::ShowMessage(StatusMessage::error(error.to_string()))),
        }
    }
}

fn find(report: &Report, program: ProgramId) -> Result<Option<LaneStepLocation>, ReportError> {
    match report.trace()? {
        Some(trace) => first_run(&trace, program),
        None => Ok(None),
    }
}
