//! Messages above the view, newest last.

use crate::model::command::{AppCommand, CommandQueue};
use crate::model::message::{MessageKind, StatusMessage};
use crate::theme::ThemePalette;
use crate::theme::fonts::strong;
use crate::widgets::icon_button_ui;
use crate::widgets::icons::{self, Icon};
use egui::accesskit::{Live, Role};
use egui::{Align, Color32, Frame, Label, Layout, Margin, Panel, Sense, Ui, WidgetInfo, vec2};

/// The number of messages shown at once. Older ones appear when newer ones are dismissed.
const MAX_SHOWN: usize = 4;

/// The appearance of a kind of message.
impl MessageKind {
    fn icon(self) -> Icon {
        match self {
            Self::Done => Icon::Done,
            Self::Warning => Icon::Warning,
            Self::Error => Icon::Error,
        }
    }

    pub(crate) fn colour(self, palette: &ThemePalette) -> Color32 {
        match self {
            Self::Done => palette.good,
            Self::Warning => palette.warning,
            Self::Error => palette.error,
        }
    }

    /// The role for screen readers, and the urgency of the announcement.
    fn accessibility_role(self) -> (Role, Live) {
        match self {
            Self::Done => (Role::Status, Live::Polite),
            Self::Warning => (Role::Alert, Live::Polite),
            Self::Error => (Role::Alert, Live::Assertive),
        }
    }
}

/// The messages above the view, each with a close button.
pub(crate) fn messages_ui(ui: &mut Ui, messages: &[StatusMessage], commands: &CommandQueue) {
    if messages.is_empty() {
        return;
    }
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(12, 6));
    Panel::top("messages").resizable(false).frame(frame).show(ui, |ui| {
        let hidden = messages.len().saturating_sub(MAX_SHOWN);
        for (index, message) in messages.iter().enumerate().skip(hidden) {
            ui.push_id(index, |ui| message_ui(ui, index, message, commands));
        }
        if hidden > 0 {
            ui.horizontal(|ui| {
                let text = format!("{hidden} earlier messages");
                ui.weak(text);
                if ui.button("Dismiss all").clicked() {
                    commands.push(AppCommand::DismissMessages);
                }
            });
        }
    });
}

fn message_ui(ui: &mut Ui, index: usize, message: &StatusMessage, commands: &CommandQueue) {
    let palette = ThemePalette::for_ui(ui);
    let StatusMessage { kind, text } = message;
    let colour = kind.colour(palette);
    let row = ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if icon_button_ui(ui, Icon::Close, "Dismiss message").clicked() {
                commands.push(AppCommand::DismissMessage(index));
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let (rect, _) = ui.allocate_exact_size(vec2(18.0, 18.0), Sense::hover());
                icons::paint(ui.painter(), rect, kind.icon(), colour);
                ui.label(strong(kind.word()).color(colour));
                ui.add(Label::new(text.as_str()).wrap().selectable(true));
            });
        });
    });
    let (role, live) = kind.accessibility_role();
    let id = ui.scope_id().with("announced");
    let words = format!("{}: {text}", kind.word());
    let response = ui.interact(row.response.rect, id, Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(role, true, &words));
    ui.ctx().accesskit_node_builder(id, |node| node.set_live(live));
}
