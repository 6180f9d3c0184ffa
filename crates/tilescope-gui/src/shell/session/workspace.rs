//! The reports that are open, each in a tab.

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

/// A tab for each report, and for each comparison. What is shown belongs to its tab.
#[derive(Default)]
pub(crate) struct Workspace {
    tabs: TabList<ReportPage>,
    /// What is selected while no report is shown. When the last report is closed, its selection
    /// comes here: the next one to be opened takes over the tiles and the IPU.
    home_selection: Selection,
    /// Actions for the shown view to perform in the next frame.
    view_actions: Vec<ViewAction>,
    /// Whether reports are read again when their files change.
    watch_files: bool,
    /// Whether the laws of reports are checked when they are opened.
    check_reports: bool,
}

impl Workspace {
    /// The page that is shown; without one, that is the home screen.
    pub(crate) fn shown(&self) -> Option<&ReportPage> {
        self.tabs.shown()
    }

    /// The page that is shown, to change it.
    pub(crate) fn shown_mut(&mut self) -> Option<&mut ReportPage> {
        self.tabs.shown_mut()
    }

    /// Every page that is open, the one that is shown first.
    pub(crate) fn pages(&self) -> impl Iterator<Item = &ReportPage> {
        let shown = self.tabs.shown_index();
        let others = self.tabs.iter().enumerate().filter(move |(at, _)| Some(*at) != shown);
        self.tabs.shown().into_iter().chain(others.map(|(_, page)| page))
    }

    /// Every page that is open, in the order of the tabs.
    pub(super) fn tabs(&self) -> impl Iterator<Item = &ReportPage> {
        self.tabs.iter()
    }

    /// Index of the tab that a link leads to.
    pub(super) fn tab_of(&self, link: &ReportLink) -> Option<usize> {
        self.tabs.iter().position(|page| page.is_target_of(link))
    }

    pub(crate) fn tab_count(&self) -> usize {
        self.tabs.len()
    }

    /// Index of the tab that is shown.
    pub(crate) fn shown_tab(&self) -> Option<usize> {
        self.tabs.shown_index()
    }

    /// Names of all tabs.
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

    /// Has reports that are opened from now on read again when their files change.
    pub(super) fn watch_files(&mut self) {
        self.watch_files = true;
    }

    /// Has the laws of reports checked that are opened from now on.
    pub(super) fn check_reports(&mut self) {
        self.check_reports = true;
    }

    /// Asks the shown view for an action in the next frame.
    pub(super) fn send_to_view(&mut self, action: ViewAction) {
        self.view_actions.push(action);
    }

    /// What the shown view was asked for since the last frame.
    pub(super) fn take_view_actions(&mut self) -> Vec<ViewAction> {
        std::mem::take(&mut self.view_actions)
    }

    /// Shows a report, alone or compared, in the tab that has it already or in a new one; messages
    /// about what is kept of it.
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

    /// Shows reports that were read again, in their tab.
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
        // A comparison goes on in the view from which it was asked for.
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

    /// Compares the shown report with another one, in the tab that shows it.
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

    /// Shows the tab after the one that is shown, or the one before.
    pub(super) fn show_neighbour(&mut self, forwards: bool) {
        if let Some(at) = self.tabs.neighbour(forwards) {
            self.show_tab(Some(at));
        }
    }

    /// Closes a tab; its neighbour is shown, or the home screen after the last one.
    pub(super) fn close_tab(&mut self, at: usize) {
        let was_shown = self.tabs.shown_index() == Some(at);
        let Some(closed) = self.tabs.close(at) else { return };
        if was_shown && self.tabs.shown().is_none() {
            self.home_selection = closed.tab.selection;
        }
    }

    pub(super) fn close_shown_tab(&mut self) {
        if let Some(at) = self.tabs.shown_index() {
            self.close_tab(at);
        }
    }

    /// Shows the source of a comparison by itself, in the same view.
    pub(super) fn end_comparison(&mut self) -> Option<StatusMessage> {
        let (opened, view) = self.tabs.shown().map(|page| (page.opened().clone(), page.view()))?;
        self.close_shown_tab();
        let message = self.open(opened, None);
        self.show_view(view);
        message
    }

    /// Exchanges source and target of the comparison that is shown.
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

    /// Selects something in the report on the right.
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

    /// Goes to another result of the search.
    pub(super) fn step_search(&mut self, by: i64) {
        if let Some(page) = self.tabs.shown_mut() {
            page.search.step(by);
        }
    }

    /// Shows statistics of what is selected in the find panel.
    pub(super) fn measure_selection(&mut self) {
        if let Some(page) = self.tabs.shown_mut()
            && let Some(query) = selection_query(&page.tab.selection, &page.tab.opened)
        {
            page.search.measure(&query);
        }
    }

    /// True once a file of what is shown has changed; a message for each that is gone.
    pub(super) fn poll_files(&mut self, context: &Context) -> (bool, Vec<StatusMessage>) {
        self.tabs.shown_mut().map(|page| page.poll_files(context)).unwrap_or_default()
    }
}

/// Has a new page's files watched and its reports checked, if that is wanted.
fn look_after(page: &mut ReportPage, (watch_files, check_reports): (bool, bool)) {
    if watch_files {
        page.watch_files();
    }
    if check_reports {
        page.check_reports();
    }
}
