//! The what-if panel beside the view.

use crate::model::command::CommandQueue;
use crate::shell::session::AppSession;
use crate::shell::spec_queries::SPEC_QUERIES;
use crate::theme::ThemePalette;
use egui::{Frame, Margin, Panel, Ui};

/// Shows the panel beside the view, if it is open.
pub(crate) fn what_if_panel_ui(ui: &mut Ui, session: &mut AppSession, commands: &CommandQueue) {
    if session.page().is_none() {
        return;
    }
    let busy = session.simulation().is_some();
    let workers = session.workers().clone();
    let Some(what_if) = session.what_ifs_mut().open_mut() else { return };
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.page).inner_margin(Margin::symmetric(14, 10));
    let most = (ui.available_width() - 320.0).max(261.0);
    Panel::right("what if")
        .resizable(true)
        .default_size(400.0_f32.min(most))
        .size_range(260.0..=most)
        .frame(frame)
        .show(ui, |ui| {
            what_if.ui(ui, (&workers, SPEC_QUERIES), busy, commands);
        });
}
