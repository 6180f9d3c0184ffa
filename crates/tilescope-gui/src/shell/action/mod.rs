//! The one table of what can be done: menus, keys, the list of keys and the command palette are
//! made from it. A new action is one line in [`table`].

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

/// The heading an action is listed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionGroup {
    Report,
    /// Showing views.
    Views,
    Find,
    /// History, links and bookmarks.
    Navigation,
    Window,
    Trace,
    /// Graphs over tiles and steps.
    Graphs,
    /// The program tree and the graph of operations.
    Structure,
}

impl ActionGroup {
    /// Every group, in the order of lists.
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

/// What an action does.
#[derive(Clone, Copy)]
pub enum ActionEffect {
    /// Issues this command, if it makes sense now.
    RunCommand(fn(&AppSession) -> Option<AppCommand>),
    /// Shows a view.
    ShowView(ViewId),
    /// Asks one of these views, if it is shown.
    SendToView(ViewAction, &'static [ViewId]),
}

/// An action of the window or of a view.
#[derive(Clone, Copy)]
pub struct AppAction {
    pub name: &'static str,
    /// Title in menus and lists.
    pub title: &'static str,
    /// A sentence about it.
    pub help: &'static str,
    /// The group it is listed in.
    pub group: ActionGroup,
    /// Keys, unless the user has chosen others.
    pub keys: &'static [KeyShortcut],
    /// Whether keys go by their place on the keyboard: W A S D is where a hand lies, whatever the
    /// letters on it.
    pub by_physical_key: bool,
    /// Icon of its entry at the foot of the side menu, if it has one.
    pub menu: Option<Icon>,
    /// A title in menus that depends on the state of the window.
    pub state: Option<fn(&UserPreferences) -> String>,
    pub effect: ActionEffect,
}

/// Parts of an action.
impl AppAction {
    /// An action that does nothing yet.
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

    /// Gives it a title in menus that depends on the state of the window.
    const fn titled(self, title: fn(&UserPreferences) -> String) -> Self {
        Self { state: Some(title), ..self }
    }

    /// Has it issue a command, where that makes sense.
    const fn runs(self, command: fn(&AppSession) -> Option<AppCommand>) -> Self {
        Self { effect: ActionEffect::RunCommand(command), ..self }
    }

    const fn shows(self, view: ViewId) -> Self {
        Self { effect: ActionEffect::ShowView(view), ..self }
    }

    /// Has it ask one of these views, if it is shown.
    const fn asks(self, action: ViewAction, views: &'static [ViewId]) -> Self {
        Self { effect: ActionEffect::SendToView(action, views), ..self }
    }
}

impl AppAction {
    /// The command it issues now; `None` where it makes no sense.
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

    /// The commands it issues wherever it is asked for: what only other views do is done in the first
    /// of them. None where it makes no sense.
    pub(crate) fn commands_from_anywhere(&self, session: &AppSession) -> Vec<AppCommand> {
        let here = self.command(session);
        match (self.effect, &here, session.page()) {
            (ActionEffect::SendToView(action, [first, ..]), None, Some(_)) => {
                vec![AppCommand::ShowView(*first), AppCommand::SendToView(action)]
            }
            _ => here.into_iter().collect(),
        }
    }

    /// Its keys: the user's, or those of the table.
    pub(crate) fn shortcuts(&self, prefs: &UserPreferences) -> Vec<KeyShortcut> {
        match prefs.keys.get(self.name) {
            // What cannot be read was told when preferences were opened.
            Some(chosen) => chosen.iter().filter_map(|text| text.parse().ok()).collect(),
            None => self.keys.to_vec(),
        }
    }

    /// Its title in menus.
    pub fn menu_text(&self, prefs: &UserPreferences) -> String {
        self.state.map_or_else(|| self.title.to_owned(), |state| state(prefs))
    }

    /// Its keys as text, with `or` between them.
    pub fn shortcut_text(&self, prefs: &UserPreferences) -> String {
        let texts: Vec<String> = self.shortcuts(prefs).iter().map(KeyShortcut::to_string).collect();
        texts.join(" or ")
    }

    /// Whether both can be meant by one key at the same time.
    pub(crate) fn conflicts_with(&self, other: &Self) -> bool {
        match (self.effect, other.effect) {
            (ActionEffect::SendToView(_, a), ActionEffect::SendToView(_, b)) => {
                a.iter().any(|view| b.contains(view))
            }
            _ => true,
        }
    }
}

/// What the keys pressed since the last frame ask for. Keys of actions that act on the whole
/// window are taken away from the widgets.
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
            let meant = |action: &&AppAction| {
                let press = if action.by_physical_key { place } else { letter };
                let hidden = covered && matches!(action.effect, ActionEffect::SendToView(..));
                !hidden && action.shortcuts(session.prefs()).contains(&press)
            };
            let found = actions().iter().filter(meant);
            let mut found = found.filter_map(|action| Some((action, action.command(session)?)));
            // A letter is meant for the dialog that is open, unless it asks for another one.
            let reaches = |command: &AppCommand| {
                let dialog = matches!(command, AppCommand::Overlay(_));
                !dialogs.cover_the_view() || !letter.types_text() || dialog
            };
            let found = found.find(|(_, command)| reaches(command));
            let Some((action, command)) = found else { return true };
            commands.push(command);
            // A widget with the focus may want the arrows that a view wants too.
            matches!(action.effect, ActionEffect::SendToView(..))
        });
    });
    commands
}
