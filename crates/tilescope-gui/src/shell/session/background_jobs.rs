//! What is done beside the window: each job has a result some time.

use super::report_opening::ReportOpening;
use crate::model::export_request::ExportRequest;
use crate::model::message::StatusMessage;
use crate::shell::export_task::{ExportResult, ExportSource};
use crate::shell::simulation_process::{ChildProgramError, SimulationOutcome, SimulationProcess};
use crate::widgets::background_task::{BackgroundTask, PendingStartError};
use egui::Context;

/// Jobs under way.
#[derive(Default)]
pub(crate) struct BackgroundJobs {
    pub(super) opening: ReportOpening,
    /// Pictures and tables being written.
    exports: Vec<BackgroundTask<ExportResult>>,
    /// There is one at a time.
    simulation: Option<SimulationProcess>,
}

impl BackgroundJobs {
    /// The reports that are being opened.
    pub(crate) fn opening(&self) -> &ReportOpening {
        &self.opening
    }

    /// The simulation that is running.
    pub(crate) fn simulation(&self) -> Option<&SimulationProcess> {
        self.simulation.as_ref()
    }

    /// Whether something is being written.
    pub(crate) fn is_exporting(&self) -> bool {
        !self.exports.is_empty()
    }

    /// Starts to write a picture or a table.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn export(
        &mut self,
        context: &Context,
        request: ExportRequest,
        shown: ExportSource,
    ) -> Result<(), PendingStartError> {
        self.exports.push(request.start(context, shown)?);
        Ok(())
    }

    /// How writing went, for what has ended since it was last asked for.
    pub(super) fn poll_exports(&mut self) -> Vec<StatusMessage> {
        let mut messages = Vec::new();
        self.exports.retain(|pending| {
            let Some(ended) = pending.poll() else { return true };
            messages.push(match ended {
                Ok(Ok(path)) => StatusMessage::done(format!("Saved {}", path.display())),
                Ok(Err(error)) => StatusMessage::error(error.to_string()),
                Err(()) => StatusMessage::error("Saving failed."),
            });
            false
        });
        messages
    }

    /// Simulates what `start` starts, if nothing is being simulated; a message if that cannot be.
    pub(super) fn simulate(
        &mut self,
        start: impl FnOnce() -> Result<SimulationProcess, ChildProgramError>,
    ) -> Option<StatusMessage> {
        if self.simulation.is_some() {
            return Some(StatusMessage::warning("A simulation is running already."));
        }
        match start() {
            Ok(simulation) => {
                self.simulation = Some(simulation);
                None
            }
            Err(error) => Some(StatusMessage::error(error.to_string())),
        }
    }

    /// Stops the simulation; how it ended is told by [`poll_simulation`](Self::poll_simulation).
    pub(super) fn cancel_simulation(&self) {
        if let Some(simulation) = &self.simulation {
            simulation.cancel();
        }
    }

    /// How the simulation ended, once.
    pub(super) fn poll_simulation(&mut self) -> Option<SimulationOutcome> {
        let ended = self.simulation.as_ref().and_then(SimulationProcess::ended)?;
        self.simulation = None;
        Some(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::message::MessageKind;
    use std::io;
    use std::path::Path;

    #[test]
    fn a_simulation_that_cannot_start_is_told_and_not_waited_for() {
        let mut jobs = BackgroundJobs::default();
        let broken = io::Error::from(io::ErrorKind::PermissionDenied);
        let message = jobs.simulate(|| Err(ChildProgramError::spec(broken, Path::new("a.toml"))));
        assert_eq!(message.map(|message| message.kind), Some(MessageKind::Error));
        assert!(jobs.simulation().is_none() && jobs.poll_simulation().is_none());
    }
}
