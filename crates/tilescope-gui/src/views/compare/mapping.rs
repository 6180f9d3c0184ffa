//! What is chosen on one side, in the words of the other.

use super::Side;
use crate::model::command::{ChosenStep, Command};
use crate::model::opening::Opened;
use tilescope_analysis::compare::Alignment;
use tilescope_report::ReportError;

/// The other side, and how to get there.
pub(crate) struct Other<'a> {
    /// What belongs together.
    pub alignment: &'a Alignment,
    /// The side a command comes from.
    pub from: Side,
    /// The report of the other side.
    pub opened: &'a Opened,
}

impl Other<'_> {
    /// The command that chooses the same on the other side, where it has the same.
    pub(crate) fn command(&self, command: &Command) -> Option<Command> {
        let target = &self.opened.target;
        let links = &self.alignment.links;
        let to_target = self.from == Side::Source;
        Some(match command {
            Command::SelectTiles(tiles) => {
                let there = tiles.iter().copied();
                let there = there.filter(|tile| *tile < target.tiles_per_replica()).collect();
                Command::SelectTiles(there)
            }
            Command::SelectIpu(ipu) => {
                Command::SelectIpu(ipu.filter(|ipu| *ipu < target.ipus_per_replica))
            }
            Command::SelectProgram(None) => Command::SelectProgram(None),
            Command::SelectProgram(Some(id)) => {
                let programs = &self.alignment.programs;
                let there =
                    if to_target { programs.to_target(*id) } else { programs.to_source(*id) };
                Command::SelectProgram(Some(there?))
            }
            Command::SelectOperation(None) => Command::SelectOperation(None),
            Command::SelectOperation(Some(id)) => {
                let there = if to_target {
                    links.operation_to_target(*id)
                } else {
                    links.operation_to_source(*id)
                };
                Command::SelectOperation(Some(there?))
            }
            Command::SelectVariable(None) => Command::SelectVariable(None),
            Command::SelectVariable(Some(id)) => {
                let there = if to_target {
                    links.variable_to_target(*id)
                } else {
                    links.variable_to_source(*id)
                };
                Command::SelectVariable(Some(there?))
            }
            Command::SelectStep(None) => Command::SelectStep(None),
            Command::SelectStep(Some(step)) => {
                Command::SelectStep(Some(self.step(step).ok().flatten()?))
            }
            _ => return None,
        })
    }

    fn step(&self, chosen: &ChosenStep) -> Result<Option<ChosenStep>, ReportError> {
        let ChosenStep { ipu, sub_lane, position, .. } = *chosen;
        let steps = self.alignment.steps.as_ref();
        let Some(lane) = steps.and_then(|steps| steps.lane(ipu, sub_lane)) else {
            return Ok(None);
        };
        let there = match self.from {
            Side::Source => lane.to_target(position),
            Side::Target => lane.to_source(position),
        };
        let (Some(position), Some(trace)) = (there, self.opened.report.trace()?) else {
            return Ok(None);
        };
        let found = trace.lane_of(ipu, sub_lane).map(|lane| lane.step(position)).transpose()?;
        let found = found.flatten();
        Ok(found.map(|step| ChosenStep { ipu, sub_lane, position, step: step.step }))
    }
}

/// Whether a command says what is chosen or shown in a report.
pub(crate) fn is_choice(command: &Command) -> bool {
    matches!(
        command,
        Command::SelectTiles(_)
            | Command::SelectStep(_)
            | Command::ShowCycles(_)
            | Command::SelectProgram(_)
            | Command::SelectOperation(_)
            | Command::SelectVariable(_)
            | Command::SelectIpu(_)
    )
}
