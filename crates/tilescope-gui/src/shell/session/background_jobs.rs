//! Background jobs with a later result.

use super::report_opening::ReportOpening;
use crate::model::export_request::ExportRequest;
use crate::model::message::StatusMessage;
use crate::shell::export_task::{ExportResult, ExportSource};
use crate::shell::simulation_process::{ChildProgramError, SimulationOutcome, SimulationProcess};
use crate::widgets::background_task::{BackgroundTask, PendingStartError};
use egui::Context;

/// The jobs in progress.
#[derive(Default)]
pub(crate) struct BackgroundJobs {
    pub(super) opening: ReportOpening,
    /// The pictures and tables being written.
    exports: Vec<BackgroundTask<ExportResult>>,
    /// At most one runs at a time.
    simulation: Option<SimulationProcess>,
}

impl BackgroundJobs {
    /// The reports being opened.
    pub(crate) fn opening(&self) -> &ReportOpening {
        &self.opening
    }

    /// The running simulation, if any.
    pub(crate) fn simulation(&self) -> Option<&SimulationProcess> {
        self.simulation.as_ref()
    }

    /// Returns true while a picture or a table is being written.
    pub(crate) fn is_exporting(&self) -> bool {
        !self.exports.is_empty()
    }

    /// Starts writing a picture or a table.
    ///
    /// # Errors
    /// Returns an error if no thread can be started.
    pub(super) fn export(
        &mut self,
        context: &Context,
        request: ExportRequest,
        shown: ExportSource,
    ) -> Result<(), PendingStartError> {
        self.exports.push(request.start(context, shown)?);
        Ok(())
    }

    /// Returns a message for each write that ended since the last call.
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

    /// Starts a simulation with `start` if none is running. Returns a message if it cannot start.
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

    /// Stops the simulation. [`poll_simulation`](Self::poll_simulation) returns the outcome.
    pub(super) fn cancel_simulation(&self) {
        if let Some(simulation) = &self.simulation {
            simulation.cancel();
        }
    }

    /// Returns the outcome of the simulation once, after it has ended.
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
    fn a_simulation_that_cannot_start_is_reported() {
        let mut jobs = BackgroundJobs::default();
        let broken = io::Error::from(io::ErrorKind::PermissionDenied);
        let message = jobs.simulate(|| Err(ChildProgramError::spec(broken, Path::new("a.toml"))));
        assert_eq!(message.map(|message| message.kind), Some(MessageKind::Error));
        assert!(jobs.simulation().is_none() && jobs.poll_simulation().is_none());
    }
}
