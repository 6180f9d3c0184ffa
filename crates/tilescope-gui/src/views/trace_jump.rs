//! Links to the execution trace: from programs to their first steps, and from findings to the steps
//! that they name.

use super::ViewContext;
use crate::model::command::{AppCommand, SelectedStep};
use crate::model::message::StatusMessage;
use crate::model::view_id::ViewId;
use crate::widgets::background_query::BackgroundQuery;
use egui::Context;
use tilescope_analysis::trace::{LaneStepLocation, LocatedStep, located_step};
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::ProgramId;

/// A pending link to the trace.
#[derive(Default)]
pub(crate) struct TraceJump {
    wanted: Option<(ViewLocation, u64)>,
    presses: u64,
    found: BackgroundQuery<(ViewLocation, u64), Option<LocatedStep>>,
}

impl TraceJump {
    /// Starts to look up the first step of a program, to go there.
    pub(crate) fn start(&mut self, program: ProgramId) {
        self.start_at(ViewLocation { program: Some(program), ..ViewLocation::default() });
    }

    /// Starts to look up the step of a place, to go there.
    pub(crate) fn start_at(&mut self, place: ViewLocation) {
        self.presses += 1;
        self.wanted = Some((place, self.presses));
    }

    /// Goes to the place once it is found.
    pub(crate) fn update(&mut self, ui: &Context, context: &ViewContext<'_>) {
        let Some(wanted) = self.wanted.clone() else { return };
        let asked = context
            .ask(ui, &mut self.found, &wanted, |report, (place, _)| located_step(report, place));
        let Some(answer) = asked.finished() else { return };
        self.wanted = None;
        match answer.map(|found| *found) {
            Ok(Some(LocatedStep { location, window })) => {
                let LaneStepLocation { ipu, sub_lane, step } = location;
                let position = step.position;
                let at = ipu.into();
                let chosen = SelectedStep { at, sub_lane, position, step: step.step };
                context.commands.push(AppCommand::SelectStep(Some(chosen)));
                context.commands.push(AppCommand::ZoomToCycles(Some(window)));
                context.commands.push(AppCommand::ShowView(ViewId::ExecutionTrace));
            }
            Ok(None) => {
                let words = match wanted.0.program {
                    Some(_) => "None of the recorded steps executes this program.",
                    None => "No step was recorded there.",
                };
                context.tell(StatusMessage::warning(words));
            }
            Err(error) => context.tell(StatusMessage::error(error.to_string())),
        }
    }
}
