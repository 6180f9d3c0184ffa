//! Models of the user: the dialog that makes a spec from an ONNX file, and its simulation.

use super::AppSession;
use super::simulation_places::free_place;
use crate::model::message::StatusMessage;
use crate::shell::model_dialog::ModelDialog;
use crate::shell::simulation_process::{ChildProgramError, SimulationProcess};
use crate::shell::spec_queries::write_spec;
use crate::views::what_if::spec_text::for_directory;
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::atomic_file::write_whole;
use tilescope_report::temporary_directory::TemporaryDirectoryError;

impl AppSession {
    /// Shows the dialog of a model, or queues it behind the open one.
    pub(super) fn open_model(&mut self, path: PathBuf) {
        // The simulation may run in another directory.
        let path = std::path::absolute(&path).unwrap_or(path);
        let checks = self.places.checks();
        let opened = checks.map(|checks| self.dialogs.open_model(path, &checks));
        self.tell_failure(opened);
    }

    /// Closes the dialog of a model and shows the next one in the queue.
    pub(super) fn close_model(&mut self) {
        if let Some(next) = self.dialogs.close_model() {
            self.open_model(next);
        }
    }

    /// Simulates the model that the dialog shows.
    pub(super) fn simulate_model(&mut self, context: &Context) {
        let Some(dialog) = self.dialogs.model_mut() else { return };
        let directory = self.places.models();
        if let Some(message) = self.jobs.simulate(|| start(dialog, directory, context)) {
            // The dialog covers the messages.
            dialog.failed(message.text);
        }
    }

    /// Writes the spec of the model that the dialog shows.
    pub(super) fn save_model_spec(&mut self, path: &Path) {
        let Some(dialog) = self.dialogs.model_mut() else { return };
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let directory = whole.parent().unwrap_or(Path::new(""));
        let text = for_directory(&dialog.form.spec(), directory);
        dialog.saved(match write_whole(&whole, text.as_bytes()) {
            Ok(()) => StatusMessage::done(format!("Saved {}", whole.display())),
            Err(error) => StatusMessage::error(error.to_string()),
        });
    }
}

/// Starts to simulate the spec of a dialog. The spec is stored beside its report.
///
/// # Errors
/// Returns an error if the spec cannot be written or the simulator cannot be started.
fn start(
    dialog: &mut ModelDialog,
    directory: Result<PathBuf, TemporaryDirectoryError>,
    context: &Context,
) -> Result<SimulationProcess, ChildProgramError> {
    let directory = directory?;
    let name = dialog.form.name();
    let place = free_place(&directory, &name);
    let mut spec = place.clone().into_os_string();
    spec.push(".toml");
    let spec = PathBuf::from(spec);
    std::fs::create_dir_all(&directory).map_err(|error| ChildProgramError::spec(error, &spec))?;
    write_spec(&spec, &dialog.form.spec())?;
    let mut simulation =
        SimulationProcess::start(&spec.display().to_string(), place.clone(), context)?;
    simulation.spec = name;
    dialog.started(place);
    Ok(simulation)
}
