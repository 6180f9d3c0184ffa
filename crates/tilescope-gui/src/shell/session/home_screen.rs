//! What the home screen knows.

use crate::model::preferences::UserPreferences;
use crate::shell::remote_form::RemoteForm;
use crate::shell::report_locations::SampleReport;
use crate::shell::simulation_process::{BundledSpec, bundled_specs};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::path_input::{ListedFiles, PathInput};
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::remote::is_remote;

/// Reports ticked for a comparison: so many can be compared.
const MAX_CANDIDATES: usize = 2;

/// Reports and specs at hand, and what is typed and ticked on the home screen.
pub(crate) struct HomeScreen {
    /// Reports that come with the program.
    sample_reports: Vec<SampleReport>,
    /// Specs that come with the program.
    specs: BackgroundQuery<(), Vec<BundledSpec>>,
    /// Which recent reports still exist; asking may take long on disks far away.
    recent_existence: BackgroundQuery<Vec<PathBuf>, Vec<bool>>,
    /// Reports that are ticked for a comparison, in the order of ticking.
    comparison_candidates: Vec<PathBuf>,
    typed_path: PathInput,
    /// Whether reports of other machines are asked for.
    is_remote_shown: bool,
    remote: RemoteForm,
    /// Letters that names or descriptions of listed specs have to contain.
    spec_filter: String,
}

impl Default for HomeScreen {
    fn default() -> Self {
        Self {
            sample_reports: Vec::new(),
            specs: BackgroundQuery::default(),
            recent_existence: BackgroundQuery::default(),
            comparison_candidates: Vec::new(),
            typed_path: PathInput::new("home screen", None, ListedFiles::ReportsAndModels),
            is_remote_shown: false,
            remote: RemoteForm::default(),
            spec_filter: String::new(),
        }
    }
}

/// What the home screen shows of the rest of the session.
pub(crate) struct HomeContext<'a> {
    pub prefs: &'a UserPreferences,
    pub workers: &'a BackgroundWorkers,
    /// Whether a simulation is running.
    pub simulating: bool,
}

impl HomeScreen {
    pub(super) fn set_sample_reports(&mut self, reports: Vec<SampleReport>) {
        self.sample_reports = reports;
    }

    /// Reports that come with the program.
    pub(crate) fn sample_reports(&self) -> &[SampleReport] {
        &self.sample_reports
    }

    /// The box that a path is typed into.
    pub(crate) fn typed_path(&mut self) -> &mut PathInput {
        &mut self.typed_path
    }

    /// Whether the tab of other machines is shown, and what is in it.
    pub(crate) fn remote(&mut self) -> (&mut bool, &mut RemoteForm) {
        (&mut self.is_remote_shown, &mut self.remote)
    }

    /// Tells why a report on another machine could not be opened, where it can be tried again.
    pub(super) fn tell_remote_failure(&mut self, path: PathBuf, why: String) {
        self.is_remote_shown = true;
        self.remote.tell_failure(path, why);
    }

    pub(super) fn forget_remote_failure(&mut self) {
        self.remote.clear_failure();
    }

    /// What is typed to filter the bundled specs.
    pub(crate) fn spec_filter(&mut self) -> &mut String {
        &mut self.spec_filter
    }

    /// The specs that come with the program; none until they are listed, and where that fails.
    pub(crate) fn bundled_specs(
        &mut self,
        context: &Context,
        workers: &BackgroundWorkers,
    ) -> &[BundledSpec] {
        self.specs.compute(context, workers, &(), |()| bundled_specs());
        self.specs.latest().map_or(&[], |specs| specs)
    }

    /// Whether the list of bundled specs is there, even if it is empty.
    pub(crate) fn specs_are_listed(&self) -> bool {
        self.specs.latest().is_some()
    }

    /// For each recent report, whether it still exists; yes until the opposite is known.
    pub(crate) fn recent_exist(&mut self, context: &Context, home: &HomeContext<'_>) -> Vec<bool> {
        let recent = home.prefs.recent.iter();
        let paths: Vec<PathBuf> = recent.map(|recent| recent.path.clone()).collect();
        // Whether one is there on another machine is only found by asking that.
        let exists = |path: &PathBuf| is_remote(path) || path.exists();
        let question = move |paths: &Vec<PathBuf>| paths.iter().map(exists).collect();
        match self.recent_existence.compute(context, home.workers, &paths, question) {
            QueryState::Fresh(known) => known.to_vec(),
            _ => vec![true; paths.len()],
        }
    }

    /// Whether a report is ticked for a comparison.
    pub(crate) fn is_candidate(&self, path: &Path) -> bool {
        self.comparison_candidates.iter().any(|known| known == path)
    }

    /// The two reports to compare, once two are ticked.
    pub(crate) fn comparison(&self) -> Option<(&Path, &Path)> {
        match self.comparison_candidates.as_slice() {
            [source, target] => Some((source, target)),
            _ => None,
        }
    }

    /// Ticks a report, or takes its tick away; of too many, the oldest loses its tick.
    pub(super) fn toggle_candidate(&mut self, path: PathBuf) {
        let ticked = &mut self.comparison_candidates;
        match ticked.iter().position(|known| *known == path) {
            Some(at) => drop(ticked.remove(at)),
            None => {
                ticked.push(path);
                let surplus = ticked.len().saturating_sub(MAX_CANDIDATES);
                ticked.drain(..surplus);
            }
        }
    }

    pub(super) fn clear_candidates(&mut self) {
        self.comparison_candidates.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_reports_can_be_ticked() {
        let mut home = HomeScreen::default();
        let mut tick = |name: &str| home.toggle_candidate(PathBuf::from(name));
        tick("a");
        tick("b");
        tick("c");
        assert_eq!(home.comparison(), Some((Path::new("b"), Path::new("c"))));
        home.toggle_candidate(PathBuf::from("b"));
        assert!(home.comparison().is_none() && home.is_candidate(Path::new("c")));
    }
}
