//! An open report with its views.

use crate::model::message::StatusMessage;
use crate::model::navigation::{
    NavigationState, ReportBookmark, ReportLink, ReportNotes, carry_over_selection,
    existing_selection, set_view_prefs, view_prefs,
};
use crate::model::open_report::OpenReport;
use crate::model::preferences::UserPreferences;
use crate::model::report_tab::ReportTab;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::model::view_state::ViewState;
use crate::shell::export_task::ExportSource;
use crate::shell::report_check::ReportCheck;
use crate::shell::report_file_watcher::{FileEvent, ReportFileWatcher};
use crate::shell::report_locations::notes_files;
use crate::views::compare::ComparisonTarget;
use crate::views::search_panel::SearchPanel;
use crate::views::{self, ReportView, VIEWS};
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::remote::{absolute_path, is_remote};

/// The contents of a tab: a report, alone or compared, and the state of its views.
pub struct ReportPage {
    pub(crate) tab: ReportTab,
    /// The views, in menu order.
    pub(crate) views: Vec<(ViewId, Box<dyn ReportView>)>,
    /// The report it is compared with.
    pub(crate) compared: Option<Box<ComparisonTarget>>,
    pub(crate) search: SearchPanel,
    /// Watch the files for changes; empty if files are not watched.
    file_watchers: Vec<ReportFileWatcher>,
    /// Check the invariants; empty if reports are not checked.
    pub(crate) checks: Vec<ReportCheck>,
}

impl ReportPage {
    /// A page for a report or a comparison, with the notes of the first report. Returns a message
    /// if the notes are unreadable.
    pub(super) fn new(
        opened: OpenReport,
        with: Option<OpenReport>,
        view: ViewId,
        selection: Selection,
    ) -> (Self, Option<StatusMessage>) {
        let report = opened.report.path();
        let (mut notes, mut message) = ReportNotes::read(notes_files(report));
        if is_remote(report) {
            let remote_message = match &opened.notes_there {
                Ok(words) => notes.take_in(words.as_deref(), (report, &opened.path)),
                Err(problem) => Some(format!("Bookmarks could not be read: {problem}")),
            };
            message = message.or(remote_message);
        }
        let page = Self {
            tab: ReportTab::new(opened, notes, view, selection),
            views: views::VIEWS.iter().map(|info| (info.id, (info.create)())).collect(),
            compared: with.map(|with| Box::new(ComparisonTarget::new(with))),
            search: SearchPanel::default(),
            file_watchers: Vec::new(),
            checks: Vec::new(),
        };
        (page, message.map(StatusMessage::warning))
    }

    /// The report; the source of a comparison.
    pub fn opened(&self) -> &OpenReport {
        &self.tab.opened
    }

    /// The visible view.
    pub fn view(&self) -> ViewId {
        self.tab.view
    }

    /// The report it is compared with.
    pub fn compared(&self) -> Option<&ComparisonTarget> {
        self.compared.as_deref()
    }

    /// The find panel of the page.
    pub fn search(&self) -> &SearchPanel {
        &self.search
    }

    /// The path of the report it is compared with.
    pub(crate) fn compared_path(&self) -> Option<&Path> {
        self.compared.as_ref().map(|compared| compared.target.path.as_path())
    }

    /// The title of its tab.
    pub(crate) fn title(&self) -> String {
        match &self.compared {
            Some(compared) => format!("{} ↔ {}", self.tab.opened.name(), compared.target.name()),
            None => self.tab.opened.name(),
        }
    }

    /// Returns true if it shows this report, or this comparison.
    pub(super) fn shows(&self, path: &Path, with: Option<&Path>) -> bool {
        let same_target = match (self.compared_path(), with) {
            (Some(shown), Some(wanted)) => same_file(shown, wanted),
            (None, None) => true,
            _ => false,
        };
        same_file(&self.tab.opened.path, path) && same_target
    }

    /// Returns true if a link leads to the reports of this page.
    pub(super) fn is_target_of(&self, link: &ReportLink) -> bool {
        let same =
            link.report.as_os_str().is_empty() || same_file(&self.tab.opened.path, &link.report);
        let beside = match (&link.place.target, &self.compared) {
            (Some(wanted), Some(shown)) => same_file(&wanted.report, &shown.target.path),
            (None, None) => true,
            _ => false,
        };
        same && beside
    }

    /// The settings of each view, to apply them to another report.
    pub(super) fn view_settings(&self) -> Vec<ViewState> {
        let known = VIEWS.iter().zip(&self.views);
        known.map(|(info, (_, view))| info.settings_of(view.state())).collect()
    }

    /// Restores the settings of each view.
    pub(super) fn restore_views(&mut self, states: &[ViewState]) {
        for ((_, view), state) in self.views.iter_mut().zip(states) {
            view.restore(state, &self.tab.selection);
        }
    }

    /// Continues at the place of an earlier page on the same reports.
    pub(super) fn inherit_from(&mut self, before: Self) {
        if let (Some(fresh), Some(before)) = (&mut self.compared, &before.compared) {
            let selection =
                carry_over_selection(&before.selection, &before.target.report, &fresh.target);
            fresh.inherit_from(before, &selection);
        }
        self.tab.history = before.tab.history;
        self.search.open = before.search.open;
        self.search.text = before.search.text;
        let states: Vec<ViewState> = before.views.iter().map(|(_, view)| view.state()).collect();
        self.restore_views(&states);
    }

    /// The page with source and target swapped, and a message if notes are unreadable. `None`
    /// without a comparison.
    pub(super) fn swapped(&self) -> Option<(Self, Option<StatusMessage>)> {
        let compared = self.compared.as_ref()?;
        let source = self.tab.opened.clone();
        let (mut page, message) = Self::new(
            compared.target.clone(),
            Some(source),
            self.tab.view,
            compared.selection.clone(),
        );
        if let Some(target) = &mut page.compared {
            target.selection = self.tab.selection.clone();
        }
        Some((page, message))
    }

    /// Starts watching the files of its reports.
    pub(super) fn watch_files(&mut self) {
        let target = self.compared.as_ref().map(|with| with.target.report.path());
        let files = std::iter::once(self.tab.opened.report.path()).chain(target);
        // The system reports no changes on other machines.
        let files = files.filter(|path| !is_remote(path));
        self.file_watchers = files.map(ReportFileWatcher::new).collect();
    }

    /// Checks the invariants of its reports once.
    pub(super) fn check_reports(&mut self) {
        let target = self.compared.as_ref().map(|with| &with.target);
        let reports = std::iter::once(&self.tab.opened).chain(target);
        self.checks = reports.cloned().map(ReportCheck::new).collect();
    }

    /// Returns true if one of its files has changed, and a message for each that is gone.
    pub(super) fn poll_files(&mut self, context: &Context) -> (bool, Vec<StatusMessage>) {
        let mut have_changed = false;
        let mut messages = Vec::new();
        for watcher in &mut self.file_watchers {
            match watcher.event(context) {
                Some(FileEvent::Changed) => have_changed = true,
                Some(FileEvent::Gone) => messages.push(StatusMessage::warning(format!(
                    "The file was deleted or renamed; the data read so far stays open: {}",
                    watcher.path().display()
                ))),
                None => {}
            }
        }
        (have_changed, messages)
    }

    /// The current place.
    pub(crate) fn navigation_state(&self, prefs: &UserPreferences) -> Option<NavigationState> {
        let shown = self.tab.view;
        let (_, view) = self.views.iter().find(|(name, _)| *name == shown)?;
        Some(NavigationState {
            view: shown,
            selection: Selection { cycles: None, ..self.tab.selection.clone() },
            state: view.state(),
            prefs: view_prefs(shown, prefs),
            target: self
                .compared
                .as_ref()
                .map(|with| Box::new(with.target_navigation_state(shown))),
        })
    }

    /// A link to the current place.
    pub(crate) fn link(&self, prefs: &UserPreferences) -> Option<ReportLink> {
        Some(ReportLink::new(&self.tab.opened.path, self.navigation_state(prefs)?))
    }

    /// Goes to a place of the report and sets the preferences of the place. Returns messages about
    /// missing parts.
    pub(super) fn go_to(
        &mut self,
        place: &NavigationState,
        prefs: &mut UserPreferences,
    ) -> Vec<StatusMessage> {
        let view = place.view;
        self.tab.view = view;
        let (selection, gone) = existing_selection(&place.selection, &self.tab.opened);
        self.tab.selection = selection;
        let mut messages: Vec<StatusMessage> =
            gone.into_iter().map(StatusMessage::warning).collect();
        let mut strange = set_view_prefs(view, &place.prefs, prefs);
        if let Some((_, shown)) = self.views.iter_mut().find(|(name, _)| *name == view) {
            strange.extend(shown.restore(&place.state, &self.tab.selection));
        }
        strange.extend(self.go_to_in_target(place, &mut messages));
        if !strange.is_empty() {
            let words = strange.join(", ");
            let words = format!("{}: unknown settings ignored: {words}", view.title());
            messages.push(StatusMessage::warning(words));
        }
        messages
    }

    /// Applies the target's part of a place. Returns the names of unknown settings.
    fn go_to_in_target(
        &mut self,
        place: &NavigationState,
        messages: &mut Vec<StatusMessage>,
    ) -> Vec<String> {
        let Some(beside) = &place.target else { return Vec::new() };
        let compared = self.compared.as_mut();
        match compared.filter(|with| same_file(&with.target.path, &beside.report)) {
            Some(compared) => {
                let (selection, gone) = existing_selection(&beside.selection, &compared.target);
                messages.extend(gone.into_iter().map(StatusMessage::warning));
                compared.restore(place.view, selection, beside)
            }
            None => {
                messages.push(StatusMessage::warning(format!(
                    "This link belongs to a comparison with {}, which is not open.",
                    beside.report.display()
                )));
                Vec::new()
            }
        }
    }

    /// Records the current place for undo.
    pub(super) fn record_navigation(&mut self, context: &Context, prefs: &UserPreferences) {
        let (time, held) = context.input(|input| (input.time, input.pointer.any_down()));
        let Some(place) = self.navigation_state(prefs).filter(|_| !held) else { return };
        if self.tab.history.record(place, time) {
            context.request_repaint_after_secs(0.2);
        }
    }

    /// Adds a bookmark for the current place. Returns a message for the user, if any.
    pub(super) fn bookmark(&mut self, prefs: &UserPreferences) -> Option<StatusMessage> {
        let link = self.link(prefs)?;
        let name = format!("{} {}", link.place.title(), self.tab.notes.bookmarks.len() + 1);
        self.tab.notes.add(name, &link);
        self.save_notes()
    }

    /// Replaces the list of bookmarks. Returns a message for the user, if any.
    pub(super) fn set_bookmarks(
        &mut self,
        bookmarks: Vec<ReportBookmark>,
    ) -> Option<StatusMessage> {
        self.tab.notes.bookmarks = bookmarks;
        self.save_notes()
    }

    fn save_notes(&mut self) -> Option<StatusMessage> {
        match self.tab.notes.save() {
            Ok(message) => message.map(StatusMessage::warning),
            Err(error) => Some(StatusMessage::error(error.to_string())),
        }
    }

    /// The state of the screen to be written to a file.
    pub(super) fn export_source(&self, prefs: &UserPreferences) -> Option<ExportSource> {
        Some(ExportSource {
            opened: self.tab.opened.clone(),
            compared: self.compared_path().map(Path::to_owned),
            unit: self.compared.as_ref().map(|with| with.unit()).unwrap_or_default(),
            view: self.tab.view,
            link: self.link(prefs)?.to_string(),
        })
    }

    /// The paths of its reports, to read them again.
    pub(super) fn paths(&self) -> (PathBuf, Option<PathBuf>) {
        (self.tab.opened.path.clone(), self.compared_path().map(Path::to_owned))
    }
}

/// Returns true if two paths name the same report, judged by the paths alone.
fn same_file(a: &Path, b: &Path) -> bool {
    absolute_path(a) == absolute_path(b)
}
