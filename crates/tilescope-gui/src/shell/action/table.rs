//! The table: what the window does, then what the shown view is asked for, then the views.

use super::asked::ASKED;
use super::{Action, Effect, Group, Press};
use crate::model::command::{Command, OverlayKind};
use crate::model::prefs::Prefs;
use crate::model::selection::Selection;
use crate::views::VIEWS;
use crate::widgets::icons::Icon;
use egui::Key;
use std::sync::LazyLock;

/// Every action, in the order of lists: those below, and one per view.
pub fn actions() -> &'static [Action] {
    static ALL: LazyLock<Vec<Action>> = LazyLock::new(|| {
        let views = VIEWS.iter().enumerate().map(|(at, view)| Action {
            name: view.id.name(),
            title: view.id.title(),
            help: view.about(),
            effect: Effect::Show(view.id),
            keys: VIEW_KEYS.get(at..=at).unwrap_or_default(),
            ..plain(Group::Views)
        });
        ACTIONS.iter().chain(ASKED).copied().chain(views).collect()
    });
    &ALL
}

/// An action of a group, to be completed.
pub(super) const fn plain(group: Group) -> Action {
    Action {
        name: "",
        title: "",
        help: "",
        group,
        keys: &[],
        by_place: false,
        menu: None,
        state: None,
        effect: Effect::Do(|_| None),
    }
}

const VIEW_KEYS: [Press; 10] = [
    Press::ctrl(Key::Num1),
    Press::ctrl(Key::Num2),
    Press::ctrl(Key::Num3),
    Press::ctrl(Key::Num4),
    Press::ctrl(Key::Num5),
    Press::ctrl(Key::Num6),
    Press::ctrl(Key::Num7),
    Press::ctrl(Key::Num8),
    Press::ctrl(Key::Num9),
    Press::ctrl(Key::Num0),
];

/// Actions other than showing a view.
const ACTIONS: &[Action] = &[
    Action {
        name: "open-report",
        title: "Open a report…",
        help: "Choose a report directory in the system's dialog.",
        keys: &[Press::ctrl(Key::O)],
        effect: Effect::Do(|session| session.dialog.is_none().then_some(Command::OpenDialog)),
        ..plain(Group::Report)
    },
    Action {
        name: "reload-report",
        title: "Reload report",
        help: "Read the report again; what is selected stays selected where it still exists.",
        keys: &[Press::ctrl(Key::R), Press::key(Key::F5)],
        menu: Some(Icon::Reload),
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::Reload)),
        ..plain(Group::Report)
    },
    Action {
        name: "close-report",
        title: "Close report",
        help: "Go back to the home screen.",
        keys: &[Press::ctrl(Key::W)],
        menu: Some(Icon::Close),
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::CloseReport)),
        ..plain(Group::Report)
    },
    Action {
        name: "compare",
        title: "Compare with…",
        help: "Show this report beside another one, in every view.",
        keys: &[Press::ctrl(Key::D)],
        menu: Some(Icon::Exchange),
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::AskCompare)),
        ..plain(Group::Report)
    },
    Action {
        name: "what-if",
        title: "What if…",
        help: "Change the spec this report was made from, simulate it again and compare.",
        keys: &[Press::ctrl(Key::T)],
        menu: Some(Icon::Flask),
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::ToggleWhatIf)),
        ..plain(Group::Report)
    },
    Action {
        name: "simulate-variant",
        title: "Simulate the changed spec",
        help: "Simulate what was changed under What if… and compare the result.",
        effect: Effect::Do(|session| {
            session
                .what_if_open
                .then_some(session.what_if.as_ref()?)?
                .is_sane()
                .then_some(Command::SimulateVariant)
        }),
        ..plain(Group::Report)
    },
    Action {
        name: "swap-sides",
        title: "Swap source and target",
        help: "Exchange the two reports of a comparison.",
        effect: Effect::Do(|session| {
            session.page.as_ref()?.compared.as_ref().map(|_| Command::SwapSides)
        }),
        ..plain(Group::Report)
    },
    Action {
        name: "end-comparison",
        title: "End the comparison",
        help: "Show the source of a comparison alone.",
        effect: Effect::Do(|session| {
            session.page.as_ref()?.compared.as_ref().map(|_| Command::EndComparison)
        }),
        ..plain(Group::Report)
    },
    Action {
        name: "next-tab",
        title: "Next report",
        help: "Show the tab after this one.",
        keys: &[Press::ctrl(Key::Tab)],
        effect: Effect::Do(|session| {
            (session.tab_titles().len() > 1).then_some(Command::NextTab(true))
        }),
        ..plain(Group::Report)
    },
    Action {
        name: "previous-tab",
        title: "Previous report",
        help: "Show the tab before this one.",
        keys: &[Press::ctrl(Key::Tab).shift()],
        effect: Effect::Do(|session| {
            (session.tab_titles().len() > 1).then_some(Command::NextTab(false))
        }),
        ..plain(Group::Report)
    },
    Action {
        name: "cancel-simulation",
        title: "Cancel simulation",
        help: "Stop the simulation that is running; nothing is opened.",
        effect: Effect::Do(|session| {
            session.simulation.as_ref().map(|_| Command::CancelSimulation)
        }),
        ..plain(Group::Report)
    },
    Action {
        name: "new-window",
        title: "New window",
        help: "Show in a window of its own what is shown here.",
        keys: &[Press::ctrl(Key::N).shift()],
        effect: Effect::Do(|_| Some(Command::NewWindow)),
        ..plain(Group::Window)
    },
    Action {
        name: "find",
        title: "Find…",
        help: "Find steps, operations, programs, variables, tensors and vertices in the whole report.",
        keys: &[Press::key(Key::Slash), Press::ctrl(Key::F).shift()],
        menu: Some(Icon::Find),
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::Find)),
        ..plain(Group::Find)
    },
    Action {
        name: "measure-selection",
        title: "Measure the selection",
        help: "Count, sum, quantiles, histogram and spread over tiles of what is selected.",
        keys: &[Press::ctrl(Key::I)],
        effect: Effect::Do(|session| {
            let any = Selection { step: None, cycles: None, ..session.selection.clone() };
            let something = session.page.is_some() && any != Selection::default();
            something.then_some(Command::MeasureSelection)
        }),
        ..plain(Group::Find)
    },
    Action {
        name: "next-found",
        title: "Next result",
        help: "Go to the next thing that was found.",
        keys: &[Press::key(Key::N)],
        effect: Effect::Do(|session| {
            session
                .page
                .as_ref()
                .filter(|page| page.finder.has_query())
                .map(|_| Command::NextFound(1))
        }),
        ..plain(Group::Find)
    },
    Action {
        name: "previous-found",
        title: "Previous result",
        help: "Go to the thing that was found before this one.",
        keys: &[Press::key(Key::N).shift()],
        effect: Effect::Do(|session| {
            session
                .page
                .as_ref()
                .filter(|page| page.finder.has_query())
                .map(|_| Command::NextFound(-1))
        }),
        ..plain(Group::Find)
    },
    Action {
        name: "undo",
        title: "Undo",
        help: "Go back to what was looked at before: view, selection, zoom and settings.",
        keys: &[Press::ctrl(Key::Z), Press::alt(Key::ArrowLeft)],
        effect: Effect::Do(|session| {
            let page = session.page.as_ref()?;
            page.history.can_undo().then_some(Command::Undo)
        }),
        ..plain(Group::Keep)
    },
    Action {
        name: "redo",
        title: "Redo",
        help: "Go forward again to what was undone.",
        keys: &[Press::ctrl(Key::Z).shift(), Press::ctrl(Key::Y), Press::alt(Key::ArrowRight)],
        effect: Effect::Do(|session| {
            let page = session.page.as_ref()?;
            page.history.can_redo().then_some(Command::Redo)
        }),
        ..plain(Group::Keep)
    },
    Action {
        name: "copy-link",
        title: "Copy link to this view",
        help: "Put a link on the clipboard that restores what is shown: tilescope REPORT --at LINK.",
        keys: &[Press::ctrl(Key::C).shift()],
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::CopyLink)),
        ..plain(Group::Keep)
    },
    Action {
        name: "add-bookmark",
        title: "Bookmark this view",
        help: "Keep what is shown under a name, in a file beside the report.",
        keys: &[Press::ctrl(Key::M)],
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::AddBookmark)),
        ..plain(Group::Keep)
    },
    Action {
        name: "bookmarks",
        title: "Bookmarks and notes",
        help: "List what is kept of this report; go there, rename, write a note.",
        keys: &[Press::ctrl(Key::M).shift()],
        effect: Effect::Do(|session| {
            session.page.as_ref().map(|_| Command::Overlay(Some(OverlayKind::Bookmarks)))
        }),
        ..plain(Group::Keep)
    },
    Action {
        name: "save",
        title: "Save picture or table…",
        help: "Write what is shown as PNG or SVG, or a table of this view as CSV.",
        keys: &[Press::ctrl(Key::S)],
        menu: Some(Icon::Camera),
        effect: Effect::Do(|session| {
            session.page.as_ref().map(|_| Command::Overlay(Some(OverlayKind::Save)))
        }),
        ..plain(Group::Report)
    },
    Action {
        name: "commands",
        title: "Commands",
        help: "Type a few letters of what you want to do.",
        keys: &[Press::ctrl(Key::P).shift()],
        menu: Some(Icon::Play),
        effect: Effect::Do(|_| Some(Command::Overlay(Some(OverlayKind::Commands)))),
        ..plain(Group::Window)
    },
    Action {
        name: "keys-and-help",
        title: "Keys and help",
        help: "List every key and every gesture.",
        keys: &[Press::key(Key::Questionmark), Press::key(Key::F1)],
        menu: Some(Icon::Help),
        effect: Effect::Do(|_| Some(Command::Overlay(Some(OverlayKind::Keys)))),
        ..plain(Group::Window)
    },
    Action {
        name: "help",
        title: "Help pages",
        help: "Read about the view that is shown; every page can be searched.",
        keys: &[Press::key(Key::F1).shift()],
        effect: Effect::Do(|_| Some(Command::Overlay(Some(OverlayKind::Help)))),
        ..plain(Group::Window)
    },
    Action {
        name: "preferences",
        title: "Preferences",
        help: "Choose units, colours, text size, what dragging does, and keys.",
        keys: &[Press::ctrl(Key::Comma)],
        effect: Effect::Do(|_| Some(Command::Overlay(Some(OverlayKind::Preferences)))),
        ..plain(Group::Window)
    },
    Action {
        name: "next-theme",
        title: "Change theme",
        help: "Light, dark, or as the system says.",
        menu: Some(Icon::Theme),
        state: Some(|prefs: &Prefs| format!("Theme: {}", prefs.theme.title())),
        effect: Effect::Do(|session| Some(Command::SetTheme(session.prefs.theme.next()))),
        ..plain(Group::Window)
    },
    Action {
        name: "toggle-menu",
        title: "Hide or show the menu",
        help: "Show the side menu as drawings only, or with words.",
        keys: &[Press::ctrl(Key::B)],
        menu: Some(Icon::Collapse),
        state: Some(|prefs: &Prefs| {
            (if prefs.narrow_menu { "Show menu" } else { "Hide menu" }).to_owned()
        }),
        effect: Effect::Do(|session| session.page.as_ref().map(|_| Command::ToggleMenu)),
        ..plain(Group::Window)
    },
    Action {
        name: "dismiss-messages",
        title: "Dismiss all messages",
        help: "Take the messages above the view away.",
        effect: Effect::Do(|session| {
            (!session.messages.is_empty()).then_some(Command::DismissMessages)
        }),
        ..plain(Group::Window)
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::session::Session;

    #[test]
    fn names_and_titles_are_unique_and_explained() {
        for (at, action) in actions().iter().enumerate() {
            assert!(action.help.ends_with('.'), "{}: a sentence", action.name);
            assert!(!action.title.is_empty() && !action.name.is_empty());
            for other in &actions()[..at] {
                assert_ne!(action.name, other.name);
                assert_ne!(action.title, other.title);
            }
        }
    }

    #[test]
    fn no_key_means_two_things_at_once() {
        let session = Session::detached();
        for (at, action) in actions().iter().enumerate() {
            for other in actions()[..at].iter().filter(|other| action.meets(other)) {
                let others = other.presses(&session.prefs);
                for press in action.presses(&session.prefs) {
                    assert!(!others.contains(&press), "{press}: {} {}", action.name, other.name);
                }
            }
        }
    }

    #[test]
    fn what_is_asked_of_views_is_asked_of_some() {
        for action in actions() {
            if let Effect::Ask(_, views) = action.effect {
                assert!(!views.is_empty(), "{}", action.name);
            }
        }
    }
}
