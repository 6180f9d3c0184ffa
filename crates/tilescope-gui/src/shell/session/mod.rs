//! All state that outlives a frame and that several views share, and the one function that
//! changes it.

mod apply;
mod open;

use crate::model::command::ViewAction;
use crate::model::message::StatusMessage;
use crate::model::navigation::{NavigationHistory, ReportLink, ReportNotes};
use crate::model::open_report::OpenReport;
use crate::model::preferences::UserPreferences;
pub use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::shell::export_task::ExportResult;
use crate::shell::overlay::OverlayState;
use crate::shell::preferences_file::PreferencesFile;
use crate::shell::report_file_watcher::ReportFileWatcher;
use crate::shell::report_locations::{SampleReport, demos};
use crate::shell::report_tabs::ReportTabs;
use crate::shell::session_temp_dir::{SessionTempDir, remove_stale_directories};
use crate::shell::session_what_if::variants_directory;
use crate::shell::simulation_process::{BundledSpec, SimulationProcess, bundled_specs};
use crate::views::compare::ComparisonTarget;
use crate::views::search_panel::SearchPanel;
use crate::views::what_if::WhatIfPanel;
use crate::views::{self, ReportView};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::background_task::BackgroundTask;
use crate::widgets::path_input::PathInput;
use egui::Context;
use std::path::PathBuf;
use tilescope_report::ReportError;

/// The open report and the state of its views.
pub struct ReportPage {
    pub opened: OpenReport,
    /// The view that is shown.
    pub view: ViewId,
    /// The views, in the order of the menu.
    pub views: Vec<(ViewId, Box<dyn ReportView>)>,
    /// The report it is compared with.
    pub compared: Option<Box<ComparisonTarget>>,
    /// Undo and redo history of places.
    pub history: NavigationHistory,
    pub notes: ReportNotes,
    pub search: SearchPanel,
    /// Notice that a file has changed.
    pub(super) file_watchers: Vec<ReportFileWatcher>,
}

impl ReportPage {
    pub(super) fn new(opened: OpenReport, view: ViewId) -> Self {
        let views = views::VIEWS.iter().map(|info| (info.id, (info.create)())).collect();
        let (history, notes) = (NavigationHistory::default(), ReportNotes::default());
        let (search, compared, file_watchers) = (SearchPanel::default(), None, Vec::new());
        Self { opened, view, views, compared, history, notes, search, file_watchers }
    }

    /// The view that is shown.
    pub(crate) fn shown(&mut self) -> Option<&mut Box<dyn ReportView>> {
        let name = self.view;
        self.views.iter_mut().find(|(view, _)| *view == name).map(|(_, view)| view)
    }
}

/// Two reports that are read to be compared.
type PendingComparison = BackgroundTask<Result<(OpenReport, OpenReport), ReportError>>;

/// The state of a window.
pub struct AppSession {
    pub prefs: UserPreferences,
    preferences_file: PreferencesFile,
    /// The open report that is shown; without one, that is the home screen.
    pub page: Option<ReportPage>,
    pub selection: Selection,
    /// The other reports that are open.
    pub tabs: ReportTabs,
    /// Reports of the home screen that are ticked for a comparison.
    pub comparison_candidates: Vec<PathBuf>,
    /// The path that is typed where the window asks what to compare with.
    pub compare_dialog_text: Option<String>,
    /// The spec of a report that is being changed.
    pub what_if: Option<Box<WhatIfPanel>>,
    /// Those of other reports.
    pub(super) other_what_ifs: Vec<WhatIfPanel>,
    /// Whether it is shown.
    pub what_if_open: bool,
    /// Where reports of changed specs are written; without one, where they end with the session.
    pub(super) variants_directory: Option<PathBuf>,
    /// Two reports being opened to be compared.
    opening_comparison: Option<(PathBuf, PathBuf, PendingComparison)>,
    /// A report being opened.
    pub opening: Option<(PathBuf, BackgroundTask<Result<OpenReport, ReportError>>)>,
    /// Pictures and tables being written.
    pub exports: Vec<BackgroundTask<ExportResult>>,
    pub dialog: Option<BackgroundTask<Option<PathBuf>>>,
    /// A simulation under way.
    pub simulation: Option<SimulationProcess>,
    /// Files that end with the session; after the simulation, which may be writing some.
    pub(super) temp_directory: SessionTempDir,
    /// Messages to the user, oldest first.
    pub messages: Vec<StatusMessage>,
    pub overlay: Option<OverlayState>,
    /// Actions for the shown view to perform in the next frame.
    pub view_actions: Vec<ViewAction>,
    /// Path typed on the home screen.
    pub typed_path: PathInput,
    /// Reports that come with the program.
    pub sample_reports: Vec<SampleReport>,
    /// Specs that come with the program.
    pub specs: BackgroundQuery<(), Vec<BundledSpec>>,
    /// Which recent reports still exist; asking may take long on disks far away.
    recent_existence: BackgroundQuery<Vec<PathBuf>, Vec<bool>>,
    /// Counts background work.
    pub workers: BackgroundWorkers,
    /// Whether reports are read again when their files change.
    pub watch_files: bool,
    /// Where to go once the report is open.
    pub(super) pending_link: Option<ReportLink>,
}

impl AppSession {
    /// A session that remembers nothing, for pictures and tests.
    pub(crate) fn detached() -> Self {
        let (store, prefs) = PreferencesFile::in_memory();
        Self::new(store, prefs)
    }

    pub(crate) fn for_user() -> Self {
        let (store, prefs, message) = PreferencesFile::open();
        let mut session = Self::new(store, prefs);
        session.messages.extend(message.map(StatusMessage::warning));
        session.keep_variants_in(variants_directory());
        remove_stale_directories();
        session.sample_reports = demos();
        session.watch_files = true;
        session
    }

    fn new(preferences_file: PreferencesFile, prefs: UserPreferences) -> Self {
        Self {
            prefs,
            preferences_file,
            page: None,
            selection: Selection::default(),
            tabs: ReportTabs::default(),
            comparison_candidates: Vec::new(),
            compare_dialog_text: None,
            what_if: None,
            other_what_ifs: Vec::new(),
            what_if_open: false,
            variants_directory: None,
            opening_comparison: None,
            opening: None,
            exports: Vec::new(),
            dialog: None,
            simulation: None,
            temp_directory: SessionTempDir::default(),
            messages: Vec::new(),
            overlay: None,
            view_actions: Vec::new(),
            typed_path: PathInput::default(),
            sample_reports: Vec::new(),
            specs: BackgroundQuery::default(),
            recent_existence: BackgroundQuery::default(),
            workers: BackgroundWorkers::default(),
            watch_files: false,
            pending_link: None,
        }
    }

    /// Shows a report that is open already.
    pub fn show(&mut self, opened: OpenReport) {
        self.show_page(opened, None);
    }

    /// Keeps reports of changed specs in a directory; without one they end with the session.
    pub fn keep_variants_in(&mut self, directory: PathBuf) {
        self.variants_directory = Some(directory);
    }

    /// Keeps preferences that have changed, and what was tried.
    pub(crate) fn save(&mut self, context: &Context) {
        self.save_variants();
        let message = self.preferences_file.save(context, &mut self.prefs);
        self.messages.extend(message.map(StatusMessage::warning));
    }

    /// Keeps what is not kept yet, before the window is gone.
    pub(crate) fn finish(&mut self, context: &Context) {
        self.save_variants();
        // Nobody is there any more to be told.
        let _ = self.preferences_file.finish(context, &mut self.prefs);
    }

    /// Asks for the list of bundled specs.
    pub(crate) fn bundled(&mut self, context: &Context) -> &[BundledSpec] {
        let workers = self.workers.clone();
        self.specs.compute(context, &workers, &(), |()| bundled_specs());
        self.specs.latest().map_or(&[], |specs| specs)
    }

    /// For each recent report, whether it still exists; yes until the opposite is known.
    pub(crate) fn recent_exist(&mut self, context: &Context) -> Vec<bool> {
        let paths: Vec<PathBuf> =
            self.prefs.recent.iter().map(|recent| recent.path.clone()).collect();
        let workers = self.workers.clone();
        let question = |paths: &Vec<PathBuf>| paths.iter().map(|path| path.exists()).collect();
        match self.recent_existence.compute(context, &workers, &paths, question) {
            QueryState::Fresh(known) => known.to_vec(),
            _ => vec![true; paths.len()],
        }
    }
}
