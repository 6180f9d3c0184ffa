//! What lies over the view for a while: the command palette, lists, questions.

mod bookmarks;
mod commands;
mod help;
mod keys;
mod preferences;
mod save;

use crate::model::command::{Command, OverlayKind};
use crate::shell::session::Session;
use crate::widgets::icon_button_ui;
use crate::widgets::icons::Icon;
use egui::{Align, Context, Frame, Id, Layout, Margin, Modal, Ui};

/// What lies over the view, with its state.
pub struct Overlay {
    /// Which it is.
    pub kind: OverlayKind,
    /// What has been typed into it.
    typed: String,
    /// The entry that Enter means.
    at: usize,
    /// Whether it has been painted before.
    shown: bool,
    /// The action whose new key is waited for.
    pub capturing: Option<&'static str>,
}

impl Overlay {
    /// A fresh one.
    pub(crate) fn new(kind: OverlayKind) -> Self {
        Self { kind, typed: String::new(), at: 0, shown: false, capturing: None }
    }
}

/// Paints what lies over the view.
pub(crate) fn overlay_ui(context: &Context, session: &mut Session, commands: &mut Vec<Command>) {
    let Some(mut overlay) = session.overlay.take() else { return };
    let frame = Frame::window(&context.global_style()).inner_margin(Margin::same(20));
    let response = Modal::new(Id::unique("overlay")).frame(frame).show(context, |ui| {
        let width = if overlay.kind == OverlayKind::Keys { 520.0 } else { 560.0_f32 };
        ui.set_width(width.min(context.content_rect().width() - 60.0));
        match overlay.kind {
            OverlayKind::Commands => commands::commands_ui(ui, &mut overlay, session, commands),
            OverlayKind::Keys => keys::keys_ui(ui, &session.prefs),
            OverlayKind::Bookmarks => bookmarks::bookmarks_ui(ui, session, commands),
            OverlayKind::Preferences => {
                preferences::preferences_ui(ui, &mut overlay, session, commands);
            }
            OverlayKind::Help => help::help_ui(ui, &mut overlay, session),
            OverlayKind::Save => save::save_ui(ui, &mut overlay, session, commands),
        }
    });
    overlay.shown = true;
    if response.should_close() {
        commands.push(Command::Overlay(None));
    }
    session.overlay = Some(overlay);
}

/// A heading with a cross at the right.
fn heading_ui(ui: &mut Ui, title: &str) {
    ui.horizontal(|ui| {
        ui.heading(title);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if icon_button_ui(ui, Icon::Close, &format!("Close {}", title.to_lowercase())).clicked()
            {
                ui.close();
            }
        });
    });
}

/// Height left for what scrolls.
fn scroll_height(ui: &Ui) -> f32 {
    (ui.ctx().content_rect().height() - 160.0).max(80.0)
}
