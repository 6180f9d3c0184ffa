//! The table of actions. Menus, keys, the list of keys and the command palette are generated from
//! it. A new action is one line in [`table`].

mod app_actions;
mod key_shortcut;
mod view_actions;
mod view_controls;

pub use app_actions::actions;
pub(crate) use key_shortcut::KeyShortcut;
pub(crate) use view_actions::GESTURES;
pub use view_controls::{VIEW_CONTROLS, ViewControls};

use crate::model::command::{AppCommand, ViewAction};
use crate::model::preferences::UserPreferences;
use crate::model::view_id::ViewId;
use crate::shell::session::AppSession;
use crate::widgets::icons::Icon;
use egui::Context;

/// The heading that lists an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionGroup {
    Report,
    /// Actions that show a view.
    Views,
    Find,
    /// Actions for history, links and bookmarks.
    Navigation,
    Window,
    Trace,
    /// Actions of graphs over tiles and steps.
    Graphs,
    /// Actions of the program tree and the graph of operations.
    Structure,
}

impl ActionGroup {
    /// All groups, in the order of lists.
    pub(crate) const ALL: [Self; 8] = [
        Self::Report,
        Self::Views,
        Self::Find,
        Self::Navigation,
        Self::Window,
        Self::Trace,
        Self::Graphs,
        Self::Structure,
    ];

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Report => "Report",
            Self::Views => "Views",
            Self::Find => "Find and measure",
            Self::Navigation => "History and bookmarks",
            Self::Window => "Window",
            Self::Trace => "Execution trace",
            Self::Graphs => "Memory, Liveness, Exchange code, Tile mapping",
            Self::Structure => "Program tree and operations graph",
        }
    }
}

/// The effect of an action.
#[derive(Clone, Copy)]
pub enum ActionEffect {
    /// Issues this command, if it applies now.
    RunCommand(fn(&AppSession) -> Option<AppCommand>),
    /// Shows a view.
    ShowView(ViewId),
    /// Sends an action to one of these views, if it is visible.
    SendToView(ViewAction, &'static [ViewId]),
}

/// An action of the window or of a view.
#[derive(Clone, Copy)]
pub struct AppAction {
    pub name: &'static str,
    /// The title in menus and lists.
    pub title: &'static str,
    /// A sentence that explains the action.
    pub help: &'static str,
    /// The group that lists the action.
    pub group: ActionGroup,
    /// The default keys of the action.
    pub keys: &'static [KeyShortcut],
    /// True if keys match by physical position, so that W A S D is under the left hand in every
    /// keyboard layout.
    pub by_physical_key: bool,
    /// The icon of its entry at the foot of the side menu, if any.
    pub menu: Option<Icon>,
    /// A menu title that depends on the state of the window.
    pub state: Option<fn(&UserPreferences) -> String>,
    pub effect: ActionEffect,
}

/// Constructors and queries of an action.
impl AppAction {
    /// Creates an action without an effect.
    const fn new(group: ActionGroup, name: &'static str, title: &'static str) -> Self {
        Self {
            name,
            title,
            help: "",
            group,
            keys: &[],
            by_physical_key: false,
            menu: None,
            state: None,
            effect: ActionEffect::RunCommand(|_| None),
        }
    }

    const fn help(self, help: &'static str) -> Self {
        Self { help, ..self }
    }

    const fn keys(self, keys: &'static [KeyShortcut]) -> Self {
        Self { keys, ..self }
    }

    const fn by_physical_key(self) -> Self {
        Self { by_physical_key: true, ..self }
    }

    /// Puts it at the foot of the side menu.
    const fn in_menu(self, icon: Icon) -> Self {
        Self { menu: Some(icon), ..self }
    }

    /// Gives it a menu title that depends on the state of the window.
    const fn titled(self, title: fn(&UserPreferences) -> String) -> Self {
        Self { state: Some(title), ..self }
    }

    /// Makes it issue a command, if the command applies.
    const fn runs(self, command: fn(&AppSession) -> Option<AppCommand>) -> Self {
        Self { effect: ActionEffect::RunCommand(command), ..self }
    }

    const fn shows(self, view: ViewId) -> Self {
        Self { effect: ActionEffect::ShowView(view), ..self }
    }

    /// Makes it send an action to one of these views, if it is visible.
    const fn asks(self, action: ViewAction, views: &'static [ViewId]) -> Self {
        Self { effect: ActionEffect::SendToView(action, views), ..self }
    }
}

impl AppAction {
    /// The command that it issues now; `None` if it does not apply.
    pub(crate) fn command(&self, session: &AppSession) -> Option<AppCommand> {
        let shown = session.page().map(|page| page.view());
        match self.effect {
            ActionEffect::RunCommand(command) => command(session),
            ActionEffect::ShowView(view) => shown.map(|_| AppCommand::ShowView(view)),
            ActionEffect::SendToView(action, views) => {
                shown.filter(|shown| views.contains(shown)).map(|_| AppCommand::SendToView(action))
            }
        }
    }

    /// The commands that it issues when invoked from any view. An action of other views runs in the
    /// first of them. The list is empty if the action does not apply.
    pub(crate) fn commands_from_anywhere(&self, session: &AppSession) -> Vec<AppCommand> {
        let here = self.command(session);
        match (self.effect, &here, session.page()) {
            (ActionEffect::SendToView(action, [first, ..]), None, Some(_)) => {
                vec![AppCommand::ShowView(*first), AppCommand::SendToView(action)]
            }
            _ => here.into_iter().collect(),
        }
    }

    /// The keys of the action: the user's, or the defaults.
    pub(crate) fn shortcuts(&self, prefs: &UserPreferences) -> Vec<KeyShortcut> {
        match prefs.keys.get(self.name) {
            // Invalid keys were reported when the preferences were opened.
            Some(chosen) => chosen.iter().filter_map(|text| text.parse().ok()).collect(),
            None => self.keys.to_vec(),
        }
    }

    /// The title in menus.
    pub fn menu_text(&self, prefs: &UserPreferences) -> String {
        self.state.map_or_else(|| self.title.to_owned(), |state| state(prefs))
    }

    /// The keys as text, separated by `or`.
    pub fn shortcut_text(&self, prefs: &UserPreferences) -> String {
        let texts: Vec<String> = self.shortcuts(prefs).iter().map(KeyShortcut::to_string).collect();
        texts.join(" or ")
    }

    /// Returns true if one key could trigger both at the same time.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        match (self.effect, other.effect) {
            (ActionEffect::SendToView(_, a), ActionEffect::SendToView(_, b)) => {
                a.iter().any(|view| b.contains(view))
            }
            _ => true,
        }
    }
}

/// Returns the commands for the keys pressed since the last frame. Keys of actions on the whole
/// window are removed from the input of widgets.
pub(crate) fn commands_for_pressed_keys(
    context: &Context,
    session: &AppSession,
) -> Vec<AppCommand> {
    let dialogs = session.dialogs();
    if dialogs.overlay().is_some_and(|overlay| overlay.capturing_shortcut_for.is_some()) {
        return Vec::new();
    }
    let typing = context.text_edit_focused();
    let covered = context.any_popup_open() || dialogs.cover_the_view();
    let mut commands = Vec::new();
    context.input_mut(|input| {
        input.events.retain(|event| {
            let Some((letter, place)) = KeyShortcut::from_event(event) else { return true };
            if typing && letter.types_text() {
                return true;
            }
            let found = actions().iter().filter(|action| {
                let press = if action.by_physical_key { place } else { letter };
                let hidden = covered && matches!(action.effect, ActionEffect::SendToView(..));
                !hidden && action.shortcuts(session.prefs()).contains(&press)
            });
            let mut found = found.filter_map(|action| Some((action, action.command(session)?)));
            // A letter goes to the open dialog, unless it opens another dialog.
            let reaches = |command: &AppCommand| {
                let dialog = matches!(command, AppCommand::Overlay(_));
                !dialogs.cover_the_view() || !letter.types_text() || dialog
            };
            let found = found.find(|(_, command)| reaches(command));
            let Some((action, command)) = found else { return true };
            commands.push(command);
            // A focused widget may need the arrow keys that a view uses too.
            matches!(action.effect, ActionEffect::SendToView(..))
        });
    });
    commands
}
