//! What the window tells its user, and where: above the view, newest last.

use super::command::AppCommand;
use super::fonts::strong;
use super::icons::{self, Icon};
use super::theme::ThemePalette;
use super::widgets::icon_button_ui;
use egui::accesskit::{Live, Role};
use egui::{
    Align, Color32, Frame, Label, Layout, Margin, Panel, RichText, Sense, Ui, WidgetInfo, vec2,
};

/// Messages that are shown at once; older ones come up when newer ones are dismissed.
const MAX_SHOWN: usize = 4;

/// Severity of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    Done,
    /// It is done, but not quite as asked, or something wants attention.
    Warning,
    /// It could not be done.
    Error,
}

impl MessageKind {
    /// All kinds of message, the mildest first.
    pub const ALL: [Self; 3] = [Self::Done, Self::Warning, Self::Error];

    /// The word before the message: nothing is told by a colour alone.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "Done",
            Self::Warning => "Note",
            Self::Error => "Error",
        }
    }

    fn icon(self) -> Icon {
        match self {
            Self::Done => Icon::Done,
            Self::Warning => Icon::Warning,
            Self::Error => Icon::Error,
        }
    }

    fn colour(self, palette: &ThemePalette) -> Color32 {
        match self {
            Self::Done => palette.good,
            Self::Warning => palette.warning,
            Self::Error => palette.error,
        }
    }

    /// How readers of the screen announce it, and whether at once.
    fn accessibility_role(self) -> (Role, Live) {
        match self {
            Self::Done => (Role::Status, Live::Polite),
            Self::Warning => (Role::Alert, Live::Polite),
            Self::Error => (Role::Alert, Live::Assertive),
        }
    }
}

/// Something to tell the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusMessage {
    pub kind: MessageKind,
    pub text: String,
}

impl StatusMessage {
    /// A command succeeded.
    pub fn done(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Done, text: text.into() }
    }

    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Warning, text: text.into() }
    }

    /// Something could not be done.
    pub fn error(text: impl Into<String>) -> Self {
        Self { kind: MessageKind::Error, text: text.into() }
    }
}

/// Messages above the view, each with a cross to close it.
pub(crate) fn messages_ui(ui: &mut Ui, messages: &[StatusMessage], commands: &mut Vec<AppCommand>) {
    if messages.is_empty() {
        return;
    }
    let palette = ThemePalette::for_visuals(ui.visuals());
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(12, 6));
    Panel::top("messages").resizable(false).frame(frame).show(ui, |ui| {
        let hidden = messages.len().saturating_sub(MAX_SHOWN);
        for (index, message) in messages.iter().enumerate().skip(hidden) {
            ui.push_id(index, |ui| message_ui(ui, index, message, commands));
        }
        if hidden > 0 {
            ui.horizontal(|ui| {
                let text = format!("{hidden} earlier messages");
                ui.label(RichText::new(text).color(palette.weak_text));
                if ui.button("Dismiss all").clicked() {
                    commands.push(AppCommand::DismissMessages);
                }
            });
        }
    });
}

fn message_ui(ui: &mut Ui, index: usize, message: &StatusMessage, commands: &mut Vec<AppCommand>) {
    let palette = ThemePalette::for_visuals(ui.visuals());
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
