//! The dialogs and overlays of the window.

use crate::model::command::{ChooserPurpose, OverlayKind};
use crate::model::mechanism_page::MechanismPage;
use crate::shell::model_dialog::ModelDialog;
use crate::shell::overlay::OverlayState;
use crate::shell::report_choice::ReportChoice;
use crate::shell::report_chooser::ReportChooser;
use crate::shell::simulation_process::SimulationOutcome;
use crate::views::series::SeriesPanel;
use crate::views::what_if::search::{SearchOrigin, SpecSearch};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// The overlay, the report chooser, the dialog of a model, and the questions about the report of a
/// directory and about quitting. Each is open or not.
#[derive(Default)]
pub(crate) struct WindowDialogs {
    overlay: Option<OverlayState>,
    chooser: Option<ReportChooser>,
    model: Option<Box<ModelDialog>>,
    /// The last closed model dialog. It keeps its choices for when it is opened again.
    closed_model: Option<Box<ModelDialog>>,
    /// The searches; the last one is or was visible.
    searches: Vec<SpecSearch>,
    shows_search: bool,
    /// The last visible series.
    series: Option<Box<SeriesPanel>>,
    shows_series: bool,
    /// The queue of models to show one after another.
    waiting_models: VecDeque<PathBuf>,
    report_choice: Option<ReportChoice>,
    asks_to_quit: bool,
}

impl WindowDialogs {
    /// The open overlay, if any.
    pub(crate) fn overlay(&self) -> Option<&OverlayState> {
        self.overlay.as_ref()
    }

    /// Takes the overlay for painting; it must be [put back](Self::put_overlay_back).
    pub(crate) fn take_overlay(&mut self) -> Option<OverlayState> {
        self.overlay.take()
    }

    pub(crate) fn put_overlay_back(&mut self, overlay: OverlayState) {
        self.overlay = Some(overlay);
    }

    /// Opens an overlay in place of the open one. Closes the overlay if the same kind is open
    /// already.
    pub(super) fn toggle_overlay(&mut self, kind: Option<OverlayKind>) {
        let open = self.overlay.take().map(|overlay| overlay.kind);
        self.overlay = kind.filter(|kind| open != Some(*kind)).map(OverlayState::new);
    }

    /// Opens help at the page of a mechanism, in place of the open overlay.
    pub(super) fn show_mechanism(&mut self, page: MechanismPage) {
        self.overlay = Some(OverlayState::of_mechanism(page));
    }

    /// Takes the report chooser for painting; it must be [put back](Self::put_chooser_back).
    pub(crate) fn take_chooser(&mut self) -> Option<ReportChooser> {
        self.chooser.take()
    }

    pub(crate) fn put_chooser_back(&mut self, chooser: ReportChooser) {
        self.chooser = Some(chooser);
    }

    /// Opens the report chooser in a directory, or closes it. The home screen offers nothing to
    /// compare.
    pub(super) fn toggle_chooser(
        &mut self,
        purpose: ChooserPurpose,
        report_is_open: bool,
        directory: Option<PathBuf>,
    ) {
        let asking = self.chooser.take().is_some_and(|chooser| chooser.purpose == purpose);
        let needs_report = [ChooserPurpose::Compare, ChooserPurpose::SpecModel].contains(&purpose);
        let wanted = !asking && (report_is_open || !needs_report);
        self.chooser = if wanted { Some(ReportChooser::new(purpose, directory)) } else { None };
    }

    /// The dialog of a model, if it is open.
    pub(crate) fn model(&self) -> Option<&ModelDialog> {
        self.model.as_deref()
    }

    /// The dialog of a model, for changes.
    pub(super) fn model_mut(&mut self) -> Option<&mut ModelDialog> {
        self.model.as_deref_mut()
    }

    /// Takes the dialog of a model for painting; it must be [put back](Self::put_model_back).
    pub(crate) fn take_model(&mut self) -> Option<Box<ModelDialog>> {
        self.model.take()
    }

    pub(crate) fn put_model_back(&mut self, dialog: Box<ModelDialog>) {
        self.model = Some(dialog);
    }

    /// The number of models that wait for the dialog.
    pub(crate) fn waiting_models(&self) -> usize {
        self.waiting_models.len()
    }

    /// Shows the dialog of a model, or queues it behind the open one.
    pub(super) fn open_model(&mut self, path: PathBuf, checks: &Path) {
        let is_of = |dialog: &ModelDialog| dialog.form.path() == path;
        if self.model().is_some_and(is_of) || self.waiting_models.contains(&path) {
            return;
        }
        if self.model.is_some() {
            return self.waiting_models.push_back(path);
        }
        let known = self.closed_model.take_if(|dialog| is_of(dialog));
        self.model = Some(
            known.unwrap_or_else(|| Box::new(ModelDialog::new(path.clone(), checks.to_owned()))),
        );
    }

    /// Closes the dialog of a model. Returns the next model in the queue.
    pub(super) fn close_model(&mut self) -> Option<PathBuf> {
        self.closed_model = self.model.take();
        if let Some(closed) = &mut self.closed_model {
            closed.close();
        }
        self.waiting_models.pop_front()
    }

    /// Reports the end of a simulation to the open dialog. Returns true if that dialog started it.
    pub(super) fn model_simulation_ended(&mut self, ended: &SimulationOutcome) -> bool {
        let handled = self.model.as_mut().is_some_and(|dialog| dialog.ended(ended));
        let closed = self.closed_model.as_mut().is_some_and(|dialog| dialog.ended(ended));
        debug_assert!(!(handled && closed), "one simulation has one dialog");
        handled
    }

    /// Takes the visible search for painting; it must be [put back](Self::put_search_back).
    pub(crate) fn take_search(&mut self) -> Option<SpecSearch> {
        if self.shows_search { self.searches.pop() } else { None }
    }

    pub(crate) fn put_search_back(&mut self, search: SpecSearch) {
        self.searches.push(search);
    }

    /// Shows and returns the search of an origin, or a new one if there is none.
    pub(super) fn show_search(
        &mut self,
        origin: &SearchOrigin,
        new: impl FnOnce() -> SpecSearch,
    ) -> &mut SpecSearch {
        let known = self.searches.iter().position(|search| search.origin() == origin);
        let search = known.map(|at| self.searches.remove(at));
        self.shows_search = true;
        let last = self.searches.len();
        self.searches.push(search.unwrap_or_else(new));
        &mut self.searches[last]
    }

    /// Shows the last search, or hides the visible one. A hidden search continues.
    pub(super) fn set_search_shown(&mut self, shown: bool) {
        self.shows_search = shown && !self.searches.is_empty();
        let running = self.searches.iter().rposition(|search| search.progress().is_some());
        if let (true, Some(at)) = (self.shows_search, running) {
            let search = self.searches.remove(at);
            self.searches.push(search);
        }
    }

    /// Takes the visible series for painting; it must be [put back](Self::put_series_back).
    pub(crate) fn take_series(&mut self) -> Option<Box<SeriesPanel>> {
        if self.shows_series { self.series.take() } else { None }
    }

    pub(crate) fn put_series_back(&mut self, series: Box<SeriesPanel>) {
        self.series = Some(series);
    }

    /// Shows and returns the series of a directory or of several reports. The settings of the panel
    /// stay.
    pub(super) fn show_series(&mut self, paths: Vec<PathBuf>) -> &mut SeriesPanel {
        self.shows_series = true;
        let known = self.series.take().filter(|series| series.paths() == paths);
        self.series.insert(known.unwrap_or_else(|| Box::new(SeriesPanel::new(paths))))
    }

    /// Shows the last series again, or closes it.
    pub(super) fn set_series_shown(&mut self, shown: bool) {
        self.shows_series = shown && self.series.is_some();
    }

    /// Returns true if there is a series to show again.
    pub(crate) fn has_series(&self) -> bool {
        self.series.is_some()
    }

    /// Receives the results of searches.
    pub(crate) fn poll_searches(&mut self) {
        self.searches.iter_mut().for_each(|search| search.poll());
    }

    /// The running search, if it is hidden.
    pub(crate) fn hidden_search(&self) -> Option<&SpecSearch> {
        let running = self.searches.iter().rev().find(|search| search.progress().is_some());
        running.filter(|_| !self.shows_search)
    }

    /// Returns true while a search is running.
    pub(crate) fn is_searching(&self) -> bool {
        self.searches.iter().any(|search| search.progress().is_some())
    }

    /// Stops all searches; their results stay.
    pub(super) fn stop_searches(&mut self) {
        self.searches.iter_mut().for_each(|search| search.stop());
    }

    /// Returns the model that was read since the last call.
    pub(super) fn take_newly_read_model(&mut self) -> Option<PathBuf> {
        self.model.as_mut()?.take_newly_read()
    }

    /// The open question about the report of a directory.
    pub(crate) fn report_choice(&self) -> Option<&ReportChoice> {
        self.report_choice.as_ref()
    }

    /// Asks which report of a directory to open, or closes the question.
    pub(super) fn ask_for_report(&mut self, choice: Option<ReportChoice>) {
        self.report_choice = choice;
    }

    /// Returns true while the question about quitting is open.
    pub(crate) fn asks_to_quit(&self) -> bool {
        self.asks_to_quit
    }

    /// Opens or closes the question about quitting.
    pub(super) fn ask_to_quit(&mut self, ask: bool) {
        self.asks_to_quit = ask;
    }

    /// Returns true if a dialog or overlay that takes the keys is open.
    pub(crate) fn cover_the_view(&self) -> bool {
        self.overlay.is_some()
            || self.chooser.is_some()
            || self.model.is_some()
            || self.shows_search
            || self.shows_series
            || self.report_choice.is_some()
            || self.asks_to_quit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opening_the_open_overlay_closes_it() {
        let mut dialogs = WindowDialogs::default();
        let kind = |dialogs: &WindowDialogs| dialogs.overlay().map(|overlay| overlay.kind);
        dialogs.toggle_overlay(Some(OverlayKind::Help));
        dialogs.toggle_overlay(Some(OverlayKind::Preferences));
        assert_eq!(kind(&dialogs), Some(OverlayKind::Preferences));
        dialogs.toggle_overlay(Some(OverlayKind::Preferences));
        assert_eq!(kind(&dialogs), None);
    }

    #[test]
    fn the_home_screen_cannot_be_compared() {
        let mut dialogs = WindowDialogs::default();
        let mut toggle = |purpose, report_is_open| {
            dialogs.toggle_chooser(purpose, report_is_open, None);
            dialogs.chooser.as_ref().map(|chooser| chooser.purpose)
        };
        assert_eq!(toggle(ChooserPurpose::Compare, false), None);
        assert_eq!(toggle(ChooserPurpose::Compare, true), Some(ChooserPurpose::Compare));
        assert_eq!(toggle(ChooserPurpose::Open, true), Some(ChooserPurpose::Open));
        assert_eq!(toggle(ChooserPurpose::Open, true), None);
    }
}
