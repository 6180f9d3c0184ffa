//! What lies over the view for a while.

use crate::model::command::{ChooserPurpose, OverlayKind};
use crate::shell::overlay::OverlayState;
use crate::shell::report_chooser::ReportChooser;
use std::path::PathBuf;

/// The overlay, the list of reports to choose from, and the question whether to quit; each is open or
/// not.
#[derive(Default)]
pub(crate) struct WindowDialogs {
    overlay: Option<OverlayState>,
    chooser: Option<ReportChooser>,
    asks_to_quit: bool,
}

impl WindowDialogs {
    /// The overlay that is open.
    pub(crate) fn overlay(&self) -> Option<&OverlayState> {
        self.overlay.as_ref()
    }

    /// The overlay, to be painted and then [put back](Self::put_overlay_back).
    pub(crate) fn take_overlay(&mut self) -> Option<OverlayState> {
        self.overlay.take()
    }

    pub(crate) fn put_overlay_back(&mut self, overlay: OverlayState) {
        self.overlay = Some(overlay);
    }

    /// Opens an overlay in place of the one that is open, or closes that one: asking for what is
    /// open sends it away.
    pub(super) fn toggle_overlay(&mut self, kind: Option<OverlayKind>) {
        let open = self.overlay.take().map(|overlay| overlay.kind);
        self.overlay = kind.filter(|kind| open != Some(*kind)).map(OverlayState::new);
    }

    /// The list of reports, to be painted and then [put back](Self::put_chooser_back).
    pub(crate) fn take_chooser(&mut self) -> Option<ReportChooser> {
        self.chooser.take()
    }

    pub(crate) fn put_chooser_back(&mut self, chooser: ReportChooser) {
        self.chooser = Some(chooser);
    }

    /// Asks for a report, beginning in a directory, or stops asking. With nothing but the home
    /// screen there is nothing to compare.
    pub(super) fn toggle_chooser(
        &mut self,
        purpose: ChooserPurpose,
        report_is_open: bool,
        directory: Option<PathBuf>,
    ) {
        let asking = self.chooser.take().is_some_and(|chooser| chooser.purpose == purpose);
        let wanted = !asking && (report_is_open || purpose == ChooserPurpose::Open);
        self.chooser = wanted.then(|| ReportChooser::new(purpose, directory));
    }

    /// Whether it is being asked whether to quit.
    pub(crate) fn asks_to_quit(&self) -> bool {
        self.asks_to_quit
    }

    /// Asks whether to quit, or stops asking.
    pub(super) fn ask_to_quit(&mut self, ask: bool) {
        self.asks_to_quit = ask;
    }

    /// Whether something lies over the view that takes the keys.
    pub(crate) fn cover_the_view(&self) -> bool {
        self.overlay.is_some() || self.chooser.is_some() || self.asks_to_quit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asking_for_what_is_open_sends_it_away() {
        let mut dialogs = WindowDialogs::default();
        let kind = |dialogs: &WindowDialogs| dialogs.overlay().map(|overlay| overlay.kind);
        dialogs.toggle_overlay(Some(OverlayKind::Help));
        dialogs.toggle_overlay(Some(OverlayKind::Preferences));
        assert_eq!(kind(&dialogs), Some(OverlayKind::Preferences));
        dialogs.toggle_overlay(Some(OverlayKind::Preferences));
        assert_eq!(kind(&dialogs), None);
    }

    #[test]
    fn nothing_is_compared_with_the_home_screen() {
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
