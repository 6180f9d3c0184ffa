//! Searches for better specs, and files of their results.

use super::AppSession;
use super::simulation_places::free_place;
use crate::shell::report_locations::stable_number;
use crate::shell::simulation_process::{ChildProgramError, SimulationProcess};
use crate::shell::spec_queries::write_spec;
use crate::views::what_if::search::{SearchOrigin, SearchStart, SpecSearch};
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::temporary_directory::TemporaryDirectoryError;

/// The name of simulated points.
const POINT: &str = "found";

impl AppSession {
    /// Shows the search from the edited spec of the report.
    pub(super) fn show_search(&mut self) {
        let shown = self.search_of_report();
        self.tell_failure(shown);
    }

    fn search_of_report(&mut self) -> Result<(), TemporaryDirectoryError> {
        let Some(page) = self.workspace.shown() else { return Ok(()) };
        let panel = self.what_ifs.of_report(page.opened(), &mut self.places)?;
        let Some(panel) = panel else { return Ok(()) };
        let name = panel.report_name();
        let text = panel.whole_text();
        let origin = SearchOrigin::Report(panel.base().to_owned());
        let place = results_place(&self.places.searches()?, &name, &text);
        self.dialogs
            .show_search(&origin, || SpecSearch::new(origin.clone(), name))
            .begin_with(SearchStart { text, place });
        Ok(())
    }

    /// Shows the contents of a file of results.
    pub(super) fn show_results(&mut self, file: PathBuf) {
        let file = std::path::absolute(&file).unwrap_or(file);
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let origin = SearchOrigin::Results(file);
        self.dialogs.show_search(&origin, || SpecSearch::new(origin.clone(), name)).read_again();
    }

    /// Simulates a spec and opens its report.
    pub(super) fn simulate_text(&mut self, context: &Context, text: &str) {
        let directory = self.places.variants();
        self.messages.extend(self.jobs.simulate(|| start(directory, text, context)));
    }
}

/// The path for the results of a search: equal for equal specs and programs.
fn results_place(directory: &Path, name: &str, spec: &str) -> PathBuf {
    let name = name.trim_end_matches(".pop");
    let name = name.replace(|letter: char| !letter.is_alphanumeric() && letter != '-', "_");
    let name: String = name.chars().take(60).collect();
    let all = format!("{}\n{spec}", env!("CARGO_PKG_VERSION"));
    directory.join(format!("{name}-{:016x}", stable_number(all.as_bytes())))
}

/// Starts to simulate a spec. The spec is stored beside its report.
///
/// # Errors
/// Returns an error if the spec cannot be written or the simulator cannot be started.
fn start(
    directory: Result<PathBuf, TemporaryDirectoryError>,
    text: &str,
    context: &Context,
) -> Result<SimulationProcess, ChildProgramError> {
    let directory = directory?;
    let place = free_place(&directory, POINT);
    let spec = place.with_extension("toml");
    std::fs::create_dir_all(&directory).map_err(|error| ChildProgramError::spec(error, &spec))?;
    write_spec(&spec, text)?;
    let mut simulation = SimulationProcess::start(&spec.display().to_string(), place, context)?;
    POINT.clone_into(&mut simulation.spec);
    Ok(simulation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_spec_has_its_own_results() {
        let place = |name: &str, spec: &str| results_place(Path::new("d"), name, spec);
        assert_eq!(place("a b.pop", "x"), place("a b.pop", "x"));
        assert_ne!(place("a", "x"), place("a", "y"));
        assert!(
            place("a/../b", "x")
                .file_name()
                .is_some_and(|name| { name.to_string_lossy().starts_with("a____b-") })
        );
        // An extension is appended to the whole name.
        assert_eq!(place("v1.2", "x").with_extension("db").extension().unwrap(), "db");
        assert!(place("v1.2", "x").extension().is_none());
    }
}
