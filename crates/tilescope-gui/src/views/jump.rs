//! Links from programs to where they ran in the execution trace.

use super::ViewContext;
use crate::model::command::{ChosenStep, Command};
use crate::model::message::Message;
use crate::model::view_id::ViewId;
use crate::widgets::worker::{Asked, Slot};
use egui::Context;
use tilescope_analysis::trace::{Found, first_run};
use tilescope_report::Report;
use tilescope_report::units::ProgramId;

/// A way to the trace that is being looked for.
#[derive(Default)]
pub(crate) struct TraceJump {
    wanted: Option<(ProgramId, u64)>,
    presses: u64,
    found: Slot<(ProgramId, u64), Result<Option<Found>, String>>,
}

impl TraceJump {
    /// Goes to the first step of a program, once it is found.
    pub(crate) fn start(&mut self, program: ProgramId) {
        self.presses += 1;
        self.wanted = Some((program, self.presses));
    }

    /// Goes there if it has been found.
    pub(crate) fn update(&mut self, ui: &Context, context: &mut ViewContext<'_>) {
        let Some(wanted) = self.wanted else { return };
        let report = context.opened.report.clone();
        let asked = self
            .found
            .ask(ui, context.workers, &wanted, move |(program, _)| find(&report, *program));
        let answer = match asked {
            Asked::Fresh(answer) => answer.clone(),
            Asked::Failed => Err("Looking for the step broke down.".to_owned()),
            Asked::Stale(_) | Asked::Waiting => return,
        };
        self.wanted = None;
        match answer {
            Ok(Some(Found { ipu, sub_lane, step })) => {
                let position = step.position;
                let chosen = ChosenStep { ipu, sub_lane, position, step: step.step };
                context.commands.push(Command::SelectStep(Some(chosen)));
                context.commands.push(Command::ShowCycles(Some(step.range)));
                context.commands.push(Command::ShowView(ViewId::ExecutionTrace));
            }
            Ok(None) => {
                let words = "This program was not executed in the steps that were recorded.";
                context.commands.push(Command::Say(Message::warning(words)));
            }
            Err(problem) => context.commands.push(Command::Say(Message::error(problem))),
        }
    }
}

fn find(report: &Report, program: ProgramId) -> Result<Option<Found>, String> {
    let words = |error: tilescope_report::ReportError| error.to_string();
    match report.trace().map_err(words)? {
        Some(trace) => first_run(&trace, program).map_err(words),
        None => Ok(None),
    }
}
