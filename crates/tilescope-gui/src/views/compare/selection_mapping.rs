//! The mapping of selections from one side to the other.

use super::ComparisonSide;
use crate::model::command::{AppCommand, SelectedStep};
use crate::model::open_report::OpenReport;
use tilescope_analysis::compare::ReportAlignment;
use tilescope_report::units::ReplicaClassId;
use tilescope_report::{Report, ReportError};

/// Maps commands of one side of a comparison to the other.
pub(crate) struct OtherSideMapper<'a> {
    pub alignment: &'a ReportAlignment,
    /// The side that issued a command.
    pub from: ComparisonSide,
    /// The report of the other side.
    pub opened: &'a OpenReport,
}

impl OtherSideMapper<'_> {
    /// The equivalent command for the other side, if the same object exists there.
    pub(crate) fn command(&self, command: &AppCommand) -> Option<AppCommand> {
        let target = &self.opened.target;
        let links = &self.alignment.links;
        let to_target = self.from == ComparisonSide::Source;
        Some(match command {
            AppCommand::SelectTiles(tiles) => {
                let there = tiles.iter().copied();
                let there = there.filter(|tile| target.has_tile(*tile)).collect();
                AppCommand::SelectTiles(there)
            }
            AppCommand::SelectIpu(ipu) => {
                AppCommand::SelectIpu(ipu.filter(|ipu| target.has_ipu(*ipu)))
            }
            AppCommand::SelectProgram(id) => AppCommand::SelectProgram(mapped(*id, |id| {
                let programs = &self.alignment.programs;
                if to_target { programs.to_target(id) } else { programs.to_source(id) }
            })?),
            AppCommand::SelectOperation(id) => AppCommand::SelectOperation(mapped(*id, |id| {
                if to_target {
                    links.operation_to_target(id)
                } else {
                    links.operation_to_source(id)
                }
            })?),
            AppCommand::SelectVariable(id) => AppCommand::SelectVariable(mapped(*id, |id| {
                if to_target { links.variable_to_target(id) } else { links.variable_to_source(id) }
            })?),
            AppCommand::SelectStep(None) => AppCommand::SelectStep(None),
            // `step_counterpart` finds the equivalent step off the UI thread.
            _ => return None,
        })
    }
}

/// The equivalent selection on the other side: `Some(None)` for an empty selection, `None` without
/// a counterpart.
fn mapped<T>(chosen: Option<T>, there: impl FnOnce(T) -> Option<T>) -> Option<Option<T>> {
    match chosen {
        None => Some(None),
        Some(id) => there(id).map(Some),
    }
}

/// The step of `there`, the report of the other side, that corresponds to a step of `from`. Reads
/// the trace.
pub(crate) fn step_counterpart(
    alignment: &ReportAlignment,
    there: &Report,
    (from, chosen): &(ComparisonSide, SelectedStep),
) -> Result<Option<SelectedStep>, ReportError> {
    let SelectedStep { at, sub_lane, position, .. } = *chosen;
    let lane = alignment.steps.as_ref().and_then(|steps| steps.lane(at.ipu, sub_lane));
    // Only lanes of replica 0 are aligned.
    let Some(lane) = lane.filter(|_| at.class == ReplicaClassId(0)) else {
        return Ok(None);
    };
    let position = match from {
        ComparisonSide::Source => lane.to_target(position),
        ComparisonSide::Target => lane.to_source(position),
    };
    let (Some(position), Some(trace)) = (position, there.trace()?) else {
        return Ok(None);
    };
    let found = trace.lane_of(at.ipu, sub_lane).map(|lane| lane.step(position)).transpose()?;
    let found = found.flatten();
    Ok(found.map(|step| SelectedStep { at, sub_lane, position, step: step.step }))
}

/// Returns true if a command changes the selection or the visible place of a report.
pub(crate) fn is_selection_command(command: &AppCommand) -> bool {
    matches!(
        command,
        AppCommand::SelectTiles(_)
            | AppCommand::SelectStep(_)
            | AppCommand::ZoomToCycles(_)
            | AppCommand::SelectProgram(_)
            | AppCommand::SelectOperation(_)
            | AppCommand::SelectVariable(_)
            | AppCommand::SelectIpu(_)
    )
}
