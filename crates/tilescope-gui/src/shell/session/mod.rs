//! The state that outlives a frame: parts that own their state, and commands that change them.
//!
//! Code outside this folder changes a part only through its methods. Views do not know the session;
//! they push commands, which `AppSession::apply` dispatches.

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
    /// Declared before the directories, which remove files that a simulation may be writing: fields
    /// are dropped in this order.
    jobs: BackgroundJobs,
    places: SimulationPlaces,
    what_ifs: WhatIfPanels,
    home: HomeScreen,
    dialogs: WindowDialogs,
    messages: MessageList,
    workers: BackgroundWorkers,
    /// The report with which newly opened reports are compared.
    baseline: Option<PathBuf>,
    /// The tabs of the last session that are still to be reopened.
    reopening: TabsToReopen,
    /// True if the user confirmed quitting.
    may_quit: bool,
}

/// The page to paint, and the data that its views read.
pub(crate) struct ShownPage<'a> {
    pub page: &'a mut ReportPage,
    pub prefs: &'a UserPreferences,
    pub workers: &'a BackgroundWorkers,
    /// The actions for the visible view.
    pub actions: Vec<ViewAction>,
}

impl AppSession {
    /// A session without stored preferences, for pictures and tests.
    pub(crate) fn detached() -> Self {
        Self::new(StoredPreferences::in_memory())
    }

    pub(crate) fn for_user() -> Self {
        let (preferences, message) = StoredPreferences::of_user();
        let mut session = Self::new(preferences);
        session.messages.extend(message);
        // No user is at a terminal.
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

    /// The user's preferences, for changes.
    pub fn prefs_mut(&mut self) -> &mut UserPreferences {
        self.preferences.current_mut()
    }

    /// The visible page; `None` for the home screen.
    pub fn page(&self) -> Option<&ReportPage> {
        self.workspace.shown()
    }

    /// The selection in the visible report.
    pub fn selection(&self) -> &Selection {
        self.workspace.selection()
    }

    /// The selection in the visible report, for changes.
    pub fn selection_mut(&mut self) -> &mut Selection {
        self.workspace.selection_mut()
    }

    /// The messages to the user, oldest first.
    pub fn messages(&self) -> &[StatusMessage] {
        self.messages.as_slice()
    }

    /// The messages to the user, for changes.
    pub fn messages_mut(&mut self) -> &mut MessageList {
        &mut self.messages
    }

    /// The open spec editor of a report, if any.
    pub fn what_if(&self) -> Option<&WhatIfPanel> {
        self.what_ifs.current()
    }

    /// The open spec editor of a report, for changes.
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

    /// The running simulation, if any.
    pub fn simulation(&self) -> Option<&SimulationProcess> {
        self.jobs.simulation()
    }

    /// Returns true while a picture or a table is being written.
    pub fn is_exporting(&self) -> bool {
        self.jobs.is_exporting()
    }

    /// The path of the report being opened.
    pub fn opening_path(&self) -> Option<&Path> {
        self.jobs.opening().path()
    }

    /// The counter of background work.
    pub fn workers(&self) -> &BackgroundWorkers {
        &self.workers
    }

    /// The names of all tabs.
    pub fn tab_titles(&self) -> Vec<String> {
        self.workspace.tab_titles()
    }

    /// A link to the current place.
    pub fn link(&self) -> Option<ReportLink> {
        self.page()?.link(self.prefs())
    }

    /// Shows a report that is already open.
    pub fn show(&mut self, opened: OpenReport) {
        self.prepare_trace_for(&opened.absolute_path());
        self.messages.extend(self.workspace.open(opened, None));
    }

    /// Switches off options that were switched on to examine the visible report, unless the opened
    /// report is the same.
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

    /// Shows a place of the open report. Missing parts are reported to the user.
    pub fn go_to(&mut self, place: &NavigationState) {
        if let Some(page) = self.workspace.shown_mut() {
            self.messages.extend(page.go_to(place, self.preferences.current_mut()));
        }
    }

    /// Records the current place for undo.
    pub(crate) fn record_navigation(&mut self, context: &Context) {
        if let Some(page) = self.workspace.shown_mut() {
            page.record_navigation(context, self.preferences.current());
        }
    }

    /// Stores reports of changed specs and of models in a directory. Without one they are deleted
    /// with the session.
    pub fn keep_simulated_in(&mut self, directory: PathBuf) {
        self.places.keep_in(directory);
    }

    /// Reloads reports opened from now on when their files change.
    pub fn watch_files(&mut self) {
        self.workspace.watch_files();
    }

    /// Checks the invariants of reports opened from now on. A line above the views lists
    /// violations.
    pub fn check_reports(&mut self) {
        self.workspace.check_reports();
    }

    /// Saves changed preferences and the simulated variants.
    pub(crate) fn save(&mut self, context: &Context) {
        self.save_variants();
        self.messages.extend(self.preferences.save(context));
    }

    /// Saves everything unsaved before the window closes.
    pub(crate) fn finish(&mut self, context: &Context) {
        self.remember_tabs();
        self.save_variants();
        self.preferences.finish(context);
    }

    /// Saves the simulated variants, if their reports are kept.
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

    /// Returns the visible page for painting, with the actions received since the last frame.
    pub(crate) fn page_to_paint(&mut self) -> Option<ShownPage<'_>> {
        // Actions without a view to perform them are dropped.
        let actions = self.workspace.take_view_actions();
        let page = self.workspace.shown_mut()?;
        Some(ShownPage { page, prefs: self.preferences.current(), workers: &self.workers, actions })
    }

    /// Returns the home screen for painting, with the parts of the session that it shows.
    pub(crate) fn home_to_paint(&mut self) -> (&mut HomeScreen, HomeContext<'_>) {
        let context = HomeContext {
            prefs: self.preferences.current(),
            workers: &self.workers,
            simulating: self.jobs.simulation().is_some(),
        };
        (&mut self.home, context)
    }
}
