//! What lies over the view for a while.

use crate::model::command::OverlayKind;
use crate::shell::overlay::OverlayState;

/// The overlay and the question which report to compare with; each is open or not.
#[derive(Default)]
pub(crate) struct WindowDialogs {
    overlay: Option<OverlayState>,
    /// The path that is typed where the window asks what to compare with.
    compare_path: Option<String>,
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

    /// What is typed into the question which report to compare with, while that is open.
    pub(crate) fn compare_path_mut(&mut self) -> Option<&mut String> {
        self.compare_path.as_mut()
    }

    /// Asks which report to compare with, where there is one to compare, or stops asking.
    pub(super) fn toggle_compare(&mut self, report_is_open: bool) {
        let asking = self.compare_path.take().is_some();
        self.compare_path = (!asking && report_is_open).then(String::new);
    }

    pub(super) fn close_compare(&mut self) {
        self.compare_path = None;
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
        dialogs.toggle_compare(false);
        assert!(dialogs.compare_path_mut().is_none());
        dialogs.toggle_compare(true);
        assert!(dialogs.compare_path_mut().is_some());
        dialogs.toggle_compare(true);
        assert!(dialogs.compare_path_mut().is_none());
    }
}
