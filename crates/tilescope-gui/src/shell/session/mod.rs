//! What outlives a frame: parts that each own their state, and commands that change them.
//!
//! Nothing outside this folder writes to a part but through its methods; views do not even know that
//! there is a session and push commands, which `AppSession::apply` hands on.

mod apply;
mod background_jobs;
mod home_screen;
mod models;
mod open;
mod open_tabs;
mod report_opening;
mod report_page;
mod searches;
mod series;
mod simulation_places;
mod stored_preferences;
mod what_if_panels;
mod window_dialogs;
mod workspace;

use crate::model::command::ViewAction;
use crate::model::message::{MessageList, StatusMessage};
use crate::model::navigation::{NavigationState, ReportLink};
use crate::model::open_report::OpenReport;
use crate::model::preferences::UserPreferences;
pub use crate::model::selection::Selection;
use crate::shell::report_locations::{demos, simulated_reports};
use crate::shell::simulation_process::SimulationProcess;
use crate::views::what_if::WhatIfPanel;
use crate::widgets::background_query::BackgroundWorkers;
use background_jobs::BackgroundJobs;
use egui::Context;
pub(crate) use home_screen::{HomeContext, HomeScreen};
use open_tabs::TabsToReopen;
pub use report_page::ReportPage;
use simulation_places::SimulationPlaces;
use std::path::{Path, PathBuf};
use stored_preferences::StoredPreferences;
use tilescope_report::remote::RemoteSettings;
use what_if_panels::WhatIfPanels;
use window_dialogs::WindowDialogs;
use workspace::Workspace;

/// The state of a window.
pub struct AppSession {
    preferences: StoredPreferences,
    workspace: Workspace,
    /// Before the places, which remove files that a simulation may be writing: fields end in this
    /// order.
    jobs: BackgroundJobs,
    places: SimulationPlaces,
    what_ifs: WhatIfPanels,
    home: HomeScreen,
    dialogs: WindowDialogs,
    messages: MessageList,
    workers: BackgroundWorkers,
    /// The report that others are compared with when they are opened.
    baseline: Option<PathBuf>,
    /// Tabs of the last session that are opened again.
    reopening: TabsToReopen,
    /// Whether the user wants to quit whatever is lost.
    may_quit: bool,
}

/// A page that is to be painted, and what its views read.
pub(crate) struct ShownPage<'a> {
    pub page: &'a mut ReportPage,
    pub prefs: &'a UserPreferences,
    pub workers: &'a BackgroundWorkers,
    /// Actions for the shown view to perform.
    pub actions: Vec<ViewAction>,
}

impl AppSession {
    /// A session that remembers nothing, for pictures and tests.
    pub(crate) fn detached() -> Self {
        Self::new(StoredPreferences::in_memory())
    }

    pub(crate) fn for_user() -> Self {
        let (preferences, message) = StoredPreferences::of_user();
        let mut session = Self::new(preferences);
        session.messages.extend(message);
        // Nobody sits at a terminal.
        RemoteSettings { without_terminal: true, ..RemoteSettings::current() }.set();
        session.keep_simulated_in(simulated_reports());
        session.home.set_sample_reports(demos());
        session.watch_files();
        session.check_reports();
        session
    }

    fn new(preferences: StoredPreferences) -> Self {
        Self {
            preferences,
            workspace: Workspace::default(),
            jobs: BackgroundJobs::default(),
            places: SimulationPlaces::default(),
            what_ifs: WhatIfPanels::default(),
            home: HomeScreen::default(),
            dialogs: WindowDialogs::default(),
            messages: MessageList::default(),
            workers: BackgroundWorkers::default(),
            baseline: None,
            reopening: TabsToReopen::default(),
            may_quit: false,
        }
    }

    /// The user's preferences.
    pub fn prefs(&self) -> &UserPreferences {
        self.preferences.current()
    }

    /// The user's preferences, to change them.
    pub fn prefs_mut(&mut self) -> &mut UserPreferences {
        self.preferences.current_mut()
    }

    /// The page that is shown; without one, that is the home screen.
    pub fn page(&self) -> Option<&ReportPage> {
        self.workspace.shown()
    }

    /// What is selected in the report that is shown.
    pub fn selection(&self) -> &Selection {
        self.workspace.selection()
    }

    /// What is selected in the report that is shown, to change it.
    pub fn selection_mut(&mut self) -> &mut Selection {
        self.workspace.selection_mut()
    }

    /// Messages to the user, oldest first.
    pub fn messages(&self) -> &[StatusMessage] {
        self.messages.as_slice()
    }

    /// Messages to the user, to add some or to clear them.
    pub fn messages_mut(&mut self) -> &mut MessageList {
        &mut self.messages
    }

    /// The spec of a report that is being changed.
    pub fn what_if(&self) -> Option<&WhatIfPanel> {
        self.what_ifs.current()
    }

    /// The spec of a report that is being changed, to change it.
    pub fn what_if_mut(&mut self) -> Option<&mut WhatIfPanel> {
        self.what_ifs.current_mut()
    }

    /// The spec of the model whose dialog is open.
    pub fn model_spec(&self) -> Option<String> {
        self.dialogs.model().map(|dialog| dialog.form.spec())
    }

    /// Replaces the spec of the model whose dialog is open.
    pub fn set_model_spec(&mut self, text: String) {
        if let Some(dialog) = self.dialogs.model_mut() {
            dialog.form.set_spec(text);
        }
    }

    /// The simulation that is running.
    pub fn simulation(&self) -> Option<&SimulationProcess> {
        self.jobs.simulation()
    }

    /// Whether a picture or a table is being written.
    pub fn is_exporting(&self) -> bool {
        self.jobs.is_exporting()
    }

    /// The path that a report is being opened from.
    pub fn opening_path(&self) -> Option<&Path> {
        self.jobs.opening().path()
    }

    /// Counts background work.
    pub fn workers(&self) -> &BackgroundWorkers {
        &self.workers
    }

    /// Names of all tabs.
    pub fn tab_titles(&self) -> Vec<String> {
        self.workspace.tab_titles()
    }

    /// A link to what is looked at.
    pub fn link(&self) -> Option<ReportLink> {
        self.page()?.link(self.prefs())
    }

    /// Shows a report that is open already.
    pub fn show(&mut self, opened: OpenReport) {
        self.prepare_trace_for(&opened.absolute_path());
        self.messages.extend(self.workspace.open(opened, None));
    }

    /// Switches off what was switched on to look closely at the shown report, unless the report that
    /// is opened is the same.
    fn prepare_trace_for(&mut self, path: &Path) {
        let shown = self.workspace.shown().map(|page| page.opened().absolute_path());
        if shown.as_deref() != Some(path) {
            let prefs = self.preferences.current_mut();
            prefs.trace = prefs.trace.for_another_report();
        }
    }

    /// Compares the shown report with another one, in the tab that shows it.
    pub(crate) fn compare_in_place(&mut self, target: OpenReport) {
        self.messages.extend(self.workspace.compare_in_place(target));
    }

    /// Shows a place of the open report; what does not exist there is said.
    pub fn go_to(&mut self, place: &NavigationState) {
        if let Some(page) = self.workspace.shown_mut() {
            self.messages.extend(page.go_to(place, self.preferences.current_mut()));
        }
    }

    /// Remembers what is looked at, for undo.
    pub(crate) fn record_navigation(&mut self, context: &Context) {
        if let Some(page) = self.workspace.shown_mut() {
            page.record_navigation(context, self.preferences.current());
        }
    }

    /// Keeps reports of changed specs and of models in a directory; without one they end with the
    /// session.
    pub fn keep_simulated_in(&mut self, directory: PathBuf) {
        self.places.keep_in(directory);
    }

    /// Has reports that are opened from now on read again when their files change.
    pub fn watch_files(&mut self) {
        self.workspace.watch_files();
    }

    /// Has the laws of reports checked that are opened from now on; a line above the views says
    /// which are broken.
    pub fn check_reports(&mut self) {
        self.workspace.check_reports();
    }

    /// Keeps preferences that have changed, and what was tried.
    pub(crate) fn save(&mut self, context: &Context) {
        self.save_variants();
        self.messages.extend(self.preferences.save(context));
    }

    /// Keeps what is not kept yet, before the window is gone.
    pub(crate) fn finish(&mut self, context: &Context) {
        self.remember_tabs();
        self.save_variants();
        self.preferences.finish(context);
    }

    /// Keeps what was tried, if its reports are kept.
    fn save_variants(&mut self) {
        if self.places.are_kept() {
            self.messages.extend(self.what_ifs.save());
        }
    }

    pub(crate) fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    pub(crate) fn jobs(&self) -> &BackgroundJobs {
        &self.jobs
    }

    pub(crate) fn what_ifs(&self) -> &WhatIfPanels {
        &self.what_ifs
    }

    pub(crate) fn what_ifs_mut(&mut self) -> &mut WhatIfPanels {
        &mut self.what_ifs
    }

    pub(crate) fn home(&self) -> &HomeScreen {
        &self.home
    }

    pub(crate) fn dialogs(&self) -> &WindowDialogs {
        &self.dialogs
    }

    pub(crate) fn dialogs_mut(&mut self) -> &mut WindowDialogs {
        &mut self.dialogs
    }

    /// The page that is shown, to be painted; takes what its view was asked for since the last frame.
    pub(crate) fn page_to_paint(&mut self) -> Option<ShownPage<'_>> {
        // What nobody is there to perform is not kept for the next report.
        let actions = self.workspace.take_view_actions();
        let page = self.workspace.shown_mut()?;
        Some(ShownPage { page, prefs: self.preferences.current(), workers: &self.workers, actions })
    }

    /// The home screen, to be painted, and what it shows of the rest.
    pub(crate) fn home_to_paint(&mut self) -> (&mut HomeScreen, HomeContext<'_>) {
        let context = HomeContext {
            prefs: self.preferences.current(),
            workers: &self.workers,
            simulating: self.jobs.simulation().is_some(),
        };
        (&mut self.home, context)
    }
}
