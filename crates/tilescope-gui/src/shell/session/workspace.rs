//! The open reports, each in a tab.

use super::report_page::ReportPage;
use crate::model::command::{AppCommand, ViewAction};
use crate::model::message::StatusMessage;
use crate::model::navigation::{ReportLink, carry_over_selection};
use crate::model::open_report::OpenReport;
use crate::model::selection::Selection;
use crate::model::selection_query::selection_query;
use crate::model::tab_list::TabList;
use crate::model::view_id::ViewId;
use crate::views::compare::ComparisonTarget;
use egui::Context;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tilescope_report::Report;

/// The longest time to wait for background queries that still read a closed report.
const LONGEST_USE: Duration = Duration::from_secs(10);
/// The time between two looks at whether they have ended.
const USE_POLL: Duration = Duration::from_millis(20);
/// The longest time that dropping a report is expected to take.
const LONGEST_DROP: Duration = Duration::from_millis(500);

/// The tabs, one for each report and comparison. A tab owns its state.
#[derive(Default)]
pub(crate) struct Workspace {
    tabs: TabList<ReportPage>,
    /// The selection while no report is visible. It receives the selection of the last closed
    /// report, and the next opened report inherits its tiles and IPU.
    home_selection: Selection,
    /// The actions for the visible view in the next frame.
    view_actions: Vec<ViewAction>,
    /// True if reports are read again when their files change.
    watch_files: bool,
    /// True if the invariants of reports are checked after opening.
    check_reports: bool,
}

impl Workspace {
    /// The visible page; `None` for the home screen.
    pub(crate) fn shown(&self) -> Option<&ReportPage> {
        self.tabs.shown()
    }

    /// The visible page, for changes.
    pub(crate) fn shown_mut(&mut self) -> Option<&mut ReportPage> {
        self.tabs.shown_mut()
    }

    /// All open pages, the visible one first.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &ReportPage> {
        let shown = self.tabs.shown_index();
        let others = self.tabs.iter().enumerate().filter(move |(at, _)| Some(*at) != shown);
        self.tabs.shown().into_iter().chain(others.map(|(_, page)| page))
    }

    /// All open pages, in tab order.
    pub(super) fn tabs(&self) -> impl Iterator<Item = &ReportPage> {
        self.tabs.iter()
    }

    /// The index of the tab that a link leads to.
    pub(super) fn tab_of(&self, link: &ReportLink) -> Option<usize> {
        self.tabs.iter().position(|page| page.is_target_of(link))
    }

    pub(crate) fn tab_count(&self) -> usize {
        self.tabs.len()
    }

    /// The index of the visible tab.
    pub(crate) fn shown_tab(&self) -> Option<usize> {
        self.tabs.shown_index()
    }

    /// The names of all tabs.
    pub(crate) fn tab_titles(&self) -> Vec<String> {
        self.tabs.iter().map(ReportPage::title).collect()
    }

    pub(crate) fn selection(&self) -> &Selection {
        self.tabs.shown().map_or(&self.home_selection, |page| &page.tab.selection)
    }

    pub(crate) fn selection_mut(&mut self) -> &mut Selection {
        match self.tabs.shown_mut() {
            Some(page) => &mut page.tab.selection,
            None => &mut self.home_selection,
        }
    }

    /// Reloads reports opened from now on when their files change.
    pub(super) fn watch_files(&mut self) {
        self.watch_files = true;
    }

    /// Checks the invariants of reports opened from now on.
    pub(super) fn check_reports(&mut self) {
        self.check_reports = true;
    }

    /// Sends an action to the visible view for the next frame.
    pub(super) fn send_to_view(&mut self, action: ViewAction) {
        self.view_actions.push(action);
    }

    /// Takes the actions sent to the visible view since the last frame.
    pub(super) fn take_view_actions(&mut self) -> Vec<ViewAction> {
        std::mem::take(&mut self.view_actions)
    }

    /// Shows a report or a comparison, in its existing tab or in a new one. Returns messages about
    /// its notes.
    pub(super) fn open(
        &mut self,
        opened: OpenReport,
        with: Option<OpenReport>,
    ) -> Option<StatusMessage> {
        let path = with.as_ref().map(|with| with.path.as_path());
        let known = self.tabs.iter().position(|page| page.shows(&opened.path, path));
        match known {
            Some(at) => self.open_again(at, opened, with),
            None => self.open_in_new_tab(opened, with),
        }
    }

    /// Shows reports that were read again, in their tab. Returns a message for the user, if any.
    fn open_again(
        &mut self,
        at: usize,
        opened: OpenReport,
        with: Option<OpenReport>,
    ) -> Option<StatusMessage> {
        self.show_tab(Some(at));
        let shown = self.tabs.shown_mut()?;
        let selection =
            carry_over_selection(&shown.tab.selection, &shown.tab.opened.report, &opened);
        let (page, message) = ReportPage::new(opened, with, shown.tab.view, selection);
        let before = std::mem::replace(shown, page);
        shown.inherit_from(before);
        look_after(shown, (self.watch_files, self.check_reports));
        message
    }

    fn open_in_new_tab(
        &mut self,
        opened: OpenReport,
        with: Option<OpenReport>,
    ) -> Option<StatusMessage> {
        let before = self.tabs.shown();
        // A comparison continues in the view from which it was started.
        let asked_in = before.filter(|page| with.is_some() && page.opened().path == opened.path);
        let view = asked_in.map(ReportPage::view).unwrap_or_default();
        let settings = before.map(ReportPage::view_settings).unwrap_or_default();
        let selection = self.selection().clone().retain_existing(&opened.target);
        let (mut page, message) = ReportPage::new(opened, with, view, selection);
        page.restore_views(&settings);
        look_after(&mut page, (self.watch_files, self.check_reports));
        self.home_selection = Selection::default();
        self.tabs.open(page);
        message
    }

    /// Compares the visible report with another one, in the same tab.
    pub(super) fn compare_in_place(&mut self, target: OpenReport) -> Option<StatusMessage> {
        let source = self.tabs.shown()?.opened().clone();
        let alone = self.tabs.shown_index();
        let message = self.open(source, Some(target));
        if let Some(alone) = alone.filter(|_| alone != self.tabs.shown_index()) {
            self.close_tab(alone);
        }
        message
    }

    /// Shows a tab, or the home screen.
    pub(super) fn show_tab(&mut self, at: Option<usize>) {
        if self.tabs.show(at) {
            self.home_selection = Selection::default();
        }
    }

    /// Shows the next tab or the previous one.
    pub(super) fn show_neighbour(&mut self, forwards: bool) {
        if let Some(at) = self.tabs.neighbour(forwards) {
            self.show_tab(Some(at));
        }
    }

    /// Closes a tab and shows its neighbour, or the home screen after the last tab.
    pub(super) fn close_tab(&mut self, at: usize) {
        let was_shown = self.tabs.shown_index() == Some(at);
        let Some(closed) = self.tabs.close(at) else { return };
        if was_shown && self.tabs.shown().is_none() {
            self.home_selection = closed.tab.selection.clone();
        }
        give_back_memory_of(closed);
    }

    pub(super) fn close_shown_tab(&mut self) {
        if let Some(at) = self.tabs.shown_index() {
            self.close_tab(at);
        }
    }

    /// Shows the source of a comparison alone, in the same view. Returns a message for the user, if
    /// any.
    pub(super) fn end_comparison(&mut self) -> Option<StatusMessage> {
        let (opened, view) = self.tabs.shown().map(|page| (page.opened().clone(), page.view()))?;
        self.close_shown_tab();
        let message = self.open(opened, None);
        self.show_view(view);
        message
    }

    /// Swaps source and target of the visible comparison.
    pub(super) fn swap_sides(&mut self) -> Option<StatusMessage> {
        let shown = self.tabs.shown_mut()?;
        let (page, message) = shown.swapped()?;
        *shown = page;
        look_after(shown, (self.watch_files, self.check_reports));
        message
    }

    pub(super) fn show_view(&mut self, view: ViewId) {
        if let Some(page) = self.tabs.shown_mut() {
            page.tab.view = view;
        }
    }

    /// Selects an object in the report on the right.
    pub(super) fn select_in_target(&mut self, command: AppCommand) {
        if let Some(compared) = self.compared_mut() {
            compared.selection.apply(command);
        }
    }

    fn compared_mut(&mut self) -> Option<&mut ComparisonTarget> {
        self.tabs.shown_mut()?.compared.as_deref_mut()
    }

    /// Opens the find panel.
    pub(super) fn open_search(&mut self) {
        if let Some(page) = self.tabs.shown_mut() {
            page.search.start();
        }
    }

    /// Goes to another search result.
    pub(super) fn step_search(&mut self, by: i64) {
        if let Some(page) = self.tabs.shown_mut() {
            page.search.step(by);
        }
    }

    /// Shows statistics of the selection in the find panel.
    pub(super) fn measure_selection(&mut self) {
        if let Some(page) = self.tabs.shown_mut()
            && let Some(query) = selection_query(&page.tab.selection, &page.tab.opened)
        {
            page.search.measure(&query);
        }
    }

    /// Returns true if a visible file has changed, and a message for each that is gone.
    pub(super) fn poll_files(&mut self, context: &Context) -> (bool, Vec<StatusMessage>) {
        self.tabs.shown_mut().map(|page| page.poll_files(context)).unwrap_or_default()
    }
}

/// Starts file watchers and checks for a new page, if they are enabled.
fn look_after(page: &mut ReportPage, (watch_files, check_reports): (bool, bool)) {
    if watch_files {
        page.watch_files();
    }
    if check_reports {
        page.check_reports();
    }
}

/// Drops a closed page, and gives its memory back to the system as soon as nothing reads its reports
/// any more. The allocator would keep it for later.
fn give_back_memory_of(closed: ReportPage) {
    let mut reports = vec![Arc::downgrade(&closed.opened().report)];
    reports.extend(closed.compared.as_ref().map(|with| Arc::downgrade(&with.target.report)));
    // Otherwise the thread might give back what it has before the views are dropped.
    drop(closed);
    let wait_and_give_back = move || {
        let end = Instant::now() + LONGEST_USE;
        let is_read = |report: &Weak<Report>| report.strong_count() > 0;
        while reports.iter().any(is_read) && Instant::now() < end {
            std::thread::sleep(USE_POLL);
        }
        // The count is 0 before the report is dropped, which another thread may be doing now.
        std::thread::sleep(LONGEST_DROP);
        tilescope_heap::give_back();
    };
    // Without a thread the memory is not returned, which is harmless.
    let _ = std::thread::Builder::new().spawn(wait_and_give_back);
}
