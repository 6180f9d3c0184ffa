//! The state of the home screen.

use crate::model::preferences::UserPreferences;
use crate::shell::remote_form::RemoteForm;
use crate::shell::report_locations::SampleReport;
use crate::shell::simulation_process::{BundledSpec, bundled_specs};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::path_input::{ListedFiles, PathInput};
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::remote::is_remote;

/// The number of reports that can be selected for a comparison.
const MAX_CANDIDATES: usize = 2;

/// The available reports and specs, and the input on the home screen.
pub(crate) struct HomeScreen {
    /// The sample reports of the program.
    sample_reports: Vec<SampleReport>,
    /// The bundled specs of the program.
    specs: BackgroundQuery<(), Vec<BundledSpec>>,
    /// Checks which recent reports still exist; this may be slow on network disks.
    recent_existence: BackgroundQuery<Vec<PathBuf>, Vec<bool>>,
    /// The reports selected for a comparison, in the order of selection.
    comparison_candidates: Vec<PathBuf>,
    typed_path: PathInput,
    /// True if the tab for reports on other machines is visible.
    is_remote_shown: bool,
    remote: RemoteForm,
    /// The filter for names and descriptions of listed specs.
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

/// The parts of the session that the home screen shows.
pub(crate) struct HomeContext<'a> {
    pub prefs: &'a UserPreferences,
    pub workers: &'a BackgroundWorkers,
    /// True while a simulation is running.
    pub simulating: bool,
}

impl HomeScreen {
    pub(super) fn set_sample_reports(&mut self, reports: Vec<SampleReport>) {
        self.sample_reports = reports;
    }

    /// The sample reports of the program.
    pub(crate) fn sample_reports(&self) -> &[SampleReport] {
        &self.sample_reports
    }

    /// The text box for a path.
    pub(crate) fn typed_path(&mut self) -> &mut PathInput {
        &mut self.typed_path
    }

    /// The visibility of the tab of other machines, and its form.
    pub(crate) fn remote(&mut self) -> (&mut bool, &mut RemoteForm) {
        (&mut self.is_remote_shown, &mut self.remote)
    }

    /// Records in the remote form why a report could not be opened, so that the user can retry.
    pub(super) fn tell_remote_failure(&mut self, path: PathBuf, why: String) {
        self.is_remote_shown = true;
        self.remote.tell_failure(path, why);
    }

    pub(super) fn forget_remote_failure(&mut self) {
        self.remote.clear_failure();
    }

    /// The text that filters the bundled specs.
    pub(crate) fn spec_filter(&mut self) -> &mut String {
        &mut self.spec_filter
    }

    /// The bundled specs. The list is empty until it is loaded, or if loading fails.
    pub(crate) fn bundled_specs(
        &mut self,
        context: &Context,
        workers: &BackgroundWorkers,
    ) -> &[BundledSpec] {
        self.specs.compute(context, workers, &(), |()| bundled_specs());
        self.specs.latest().map_or(&[], |specs| specs)
    }

    /// Returns true once the list of bundled specs is loaded, even if it is empty.
    pub(crate) fn specs_are_listed(&self) -> bool {
        self.specs.latest().is_some()
    }

    /// For each recent report, true if it still exists. True until the check has ended.
    pub(crate) fn recent_exist(&mut self, context: &Context, home: &HomeContext<'_>) -> Vec<bool> {
        let recent = home.prefs.recent.iter();
        let paths: Vec<PathBuf> = recent.map(|recent| recent.path.clone()).collect();
        // Only a connection can tell if a report exists on another machine.
        match self.recent_existence.compute(context, home.workers, &paths, move |paths| {
            paths.iter().map(|path| is_remote(path) || path.exists()).collect()
        }) {
            QueryState::Fresh(known) => known.to_vec(),
            _ => vec![true; paths.len()],
        }
    }

    /// Returns true if a report is selected for a comparison.
    pub(crate) fn is_candidate(&self, path: &Path) -> bool {
        self.comparison_candidates.iter().any(|known| known == path)
    }

    /// The two reports to compare, once two are selected.
    pub(crate) fn comparison(&self) -> Option<(&Path, &Path)> {
        match self.comparison_candidates.as_slice() {
            [source, target] => Some((source, target)),
            _ => None,
        }
    }

    /// Selects or deselects a report. If there are too many, the oldest is deselected.
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
    fn at_most_two_reports_can_be_selected() {
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
