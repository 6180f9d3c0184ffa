//! The table: what the window does, then what the shown view is asked for, then the views.

use super::view_actions::VIEW_ACTIONS;
use super::{ActionEffect, ActionGroup, AppAction, KeyShortcut};
use crate::model::command::{AppCommand, ChooserPurpose, OverlayKind};
use crate::model::preferences::UserPreferences;
use crate::model::selection::Selection;
use crate::views::VIEWS;
use crate::widgets::icons::Icon;
use egui::Key;
use std::sync::LazyLock;

/// Every action, in the order of lists: those below, and one per view.
pub fn actions() -> &'static [AppAction] {
    static ALL: LazyLock<Vec<AppAction>> = LazyLock::new(|| {
        let views = VIEWS.iter().enumerate().map(|(at, view)| AppAction {
            name: view.id.name(),
            title: view.id.title(),
            help: view.about(),
            effect: ActionEffect::ShowView(view.id),
            keys: VIEW_KEYS.get(at..=at).unwrap_or_default(),
            ..action_template(ActionGroup::Views)
        });
        APP_ACTIONS.iter().chain(VIEW_ACTIONS).copied().chain(views).collect()
    });
    &ALL
}

/// An action of a group, to be completed.
pub(super) const fn action_template(group: ActionGroup) -> AppAction {
    AppAction {
        name: "",
        title: "",
        help: "",
        group,
        keys: &[],
        by_physical_key: false,
        menu: None,
        state: None,
        effect: ActionEffect::RunCommand(|_| None),
    }
}

/// Keys of views in their order; those with a number were there first, and keep it.
const VIEW_KEYS: [KeyShortcut; 11] = [
    KeyShortcut::ctrl(Key::Num1),
    KeyShortcut::ctrl(Key::Num2),
    KeyShortcut::ctrl(Key::Num3),
    KeyShortcut::ctrl(Key::Num4),
    KeyShortcut::ctrl(Key::Num5),
    KeyShortcut::ctrl(Key::Num6),
    KeyShortcut::ctrl(Key::L),
    KeyShortcut::ctrl(Key::Num7),
    KeyShortcut::ctrl(Key::Num8),
    KeyShortcut::ctrl(Key::Num9),
    KeyShortcut::ctrl(Key::Num0),
];

/// Actions other than showing a view.
const APP_ACTIONS: &[AppAction] = &[
    AppAction {
        name: "open-report",
        title: "Open a report or model…",
        help: "Choose a report, or an ONNX file to simulate, from those at hand or in a directory.",
        keys: &[KeyShortcut::ctrl(Key::O)],
        effect: ActionEffect::RunCommand(|_| Some(AppCommand::ChooseReport(ChooserPurpose::Open))),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "simulate-model",
        title: "Simulate a model…",
        help: "Choose an ONNX file, its dimensions, loss and system, and simulate it.",
        keys: &[KeyShortcut::ctrl(Key::O).shift()],
        effect: ActionEffect::RunCommand(|_| Some(AppCommand::ChooseReport(ChooserPurpose::Model))),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "reload-report",
        title: "Reload report",
        help: "Read the report again; keeps the selection where it still exists.",
        keys: &[KeyShortcut::ctrl(Key::R), KeyShortcut::key(Key::F5)],
        menu: Some(Icon::Reload),
        effect: ActionEffect::RunCommand(|session| session.page().map(|_| AppCommand::Reload)),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "close-report",
        title: "Close report",
        help: "Close this tab.",
        keys: &[KeyShortcut::ctrl(Key::W)],
        menu: Some(Icon::Close),
        effect: ActionEffect::RunCommand(|session| session.page().map(|_| AppCommand::CloseReport)),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "compare",
        title: "Compare with…",
        help: "Show this report beside another one, in every view.",
        keys: &[KeyShortcut::ctrl(Key::D)],
        menu: Some(Icon::Exchange),
        effect: ActionEffect::RunCommand(|session| {
            session.page().map(|_| AppCommand::ChooseReport(ChooserPurpose::Compare))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "series",
        title: "Series of a folder…",
        help: "Show all reports of a folder as one: a table of runs, figures over runs, and where they change.",
        keys: &[KeyShortcut::ctrl(Key::E).shift()],
        effect: ActionEffect::RunCommand(|_| {
            Some(AppCommand::ChooseReport(ChooserPurpose::Series))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "series-of-tabs",
        title: "Series of the open reports",
        help: "Show the reports of all tabs as one series.",
        effect: ActionEffect::RunCommand(|session| {
            let open = session.open_reports();
            (open.len() > 1).then_some(AppCommand::ShowSeries(open))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "last-series",
        title: "Back to the series",
        help: "Show the series of reports that was shown last.",
        effect: ActionEffect::RunCommand(|session| {
            session.dialogs().has_series().then_some(AppCommand::ShowLastSeries)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "pin-baseline",
        title: "Pin this report as baseline",
        help: "Compare every report that is opened from now on with this one, in every view.",
        effect: ActionEffect::RunCommand(|session| {
            let path = session.page()?.opened().absolute_path();
            let is_pinned = session.baseline_for(&path).is_none();
            let is_pinned = is_pinned && session.pinned_baseline().is_some();
            (!is_pinned).then_some(AppCommand::PinBaseline(Some(path)))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "unpin-baseline",
        title: "Unpin the baseline",
        help: "Open reports by themselves again.",
        effect: ActionEffect::RunCommand(|session| {
            session.pinned_baseline().map(|_| AppCommand::PinBaseline(None))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "what-if",
        title: "What if…",
        help: "Change the spec this report was made from, simulate it again and compare.",
        keys: &[KeyShortcut::ctrl(Key::T)],
        menu: Some(Icon::Flask),
        effect: ActionEffect::RunCommand(|session| {
            session.page().map(|_| AppCommand::ToggleWhatIf)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "other-machines",
        title: "Try other machines",
        help: "Simulate the spec of this report with twice the exchange, clock, memory, links, host, …: what each would gain.",
        effect: ActionEffect::RunCommand(|session| {
            let spec = session.page()?.opened().report.spec();
            spec.map(|_| AppCommand::TryOtherMachines)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "search-spec",
        title: "Search for a better spec…",
        help: "Search from the spec of this report: guided, or every combination of values, with plots.",
        keys: &[KeyShortcut::ctrl(Key::T).shift()],
        effect: ActionEffect::RunCommand(|session| {
            let spec = session.page()?.opened().report.spec();
            spec.map(|_| AppCommand::ShowSpecSearch)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "stop-search",
        title: "Stop the search",
        help: "End the search for a better spec that goes on; what is finished is kept.",
        effect: ActionEffect::RunCommand(|session| {
            session.dialogs().is_searching().then_some(AppCommand::StopSpecSearch)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "simulate-variant",
        title: "Simulate the changed spec",
        help: "Simulate the changes made under What if… and compare the result.",
        effect: ActionEffect::RunCommand(|session| {
            session.what_ifs().open()?.is_spec_valid().then_some(AppCommand::SimulateVariant)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "swap-sides",
        title: "Swap source and target",
        help: "Exchange the two reports of a comparison.",
        effect: ActionEffect::RunCommand(|session| {
            session.page()?.compared().map(|_| AppCommand::SwapSides)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "end-comparison",
        title: "End the comparison",
        help: "Close the target and keep the source.",
        effect: ActionEffect::RunCommand(|session| {
            session.page()?.compared().map(|_| AppCommand::EndComparison)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "next-tab",
        title: "Next report",
        help: "Show the tab after this one.",
        keys: &[KeyShortcut::ctrl(Key::Tab)],
        effect: ActionEffect::RunCommand(|session| {
            (session.workspace().tab_count() > 1).then_some(AppCommand::NextTab(true))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "previous-tab",
        title: "Previous report",
        help: "Show the tab before this one.",
        keys: &[KeyShortcut::ctrl(Key::Tab).shift()],
        effect: ActionEffect::RunCommand(|session| {
            (session.workspace().tab_count() > 1).then_some(AppCommand::NextTab(false))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "home-screen",
        title: "Home screen",
        help: "Go to the first tab: recent reports, demo reports, specs to simulate.",
        keys: &[KeyShortcut::alt(Key::Home)],
        effect: ActionEffect::RunCommand(|session| {
            session.page().map(|_| AppCommand::ShowTab(None))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "cancel-simulation",
        title: "Cancel simulation",
        help: "Stop the running simulation; no report is opened.",
        effect: ActionEffect::RunCommand(|session| {
            session.simulation().map(|_| AppCommand::CancelSimulation)
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "new-window",
        title: "New window",
        help: "Open another window with the same report and view.",
        keys: &[KeyShortcut::ctrl(Key::N).shift()],
        effect: ActionEffect::RunCommand(|_| Some(AppCommand::NewWindow)),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "quit",
        title: "Quit",
        help: "Close the window; what would be lost is asked about first.",
        keys: &[KeyShortcut::ctrl(Key::Q)],
        effect: ActionEffect::RunCommand(|_| Some(AppCommand::Quit)),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "find",
        title: "Find…",
        help: "Find steps, operations, programs, variables, tensors and vertices in the whole report.",
        keys: &[KeyShortcut::key(Key::Slash), KeyShortcut::ctrl(Key::F).shift()],
        menu: Some(Icon::Find),
        effect: ActionEffect::RunCommand(|session| session.page().map(|_| AppCommand::OpenSearch)),
        ..action_template(ActionGroup::Find)
    },
    AppAction {
        name: "measure-selection",
        title: "Measure the selection",
        help: "Count, sum, quantiles, histogram and distribution over tiles of the selection.",
        keys: &[KeyShortcut::ctrl(Key::I)],
        effect: ActionEffect::RunCommand(|session| {
            let any = Selection { step: None, cycles: None, ..session.selection().clone() };
            let something = session.page().is_some() && any != Selection::default();
            something.then_some(AppCommand::ShowSelectionStatistics)
        }),
        ..action_template(ActionGroup::Find)
    },
    AppAction {
        name: "next-found",
        title: "Next result",
        help: "Go to the next search result.",
        keys: &[KeyShortcut::key(Key::N)],
        effect: ActionEffect::RunCommand(|session| {
            session
                .page()
                .filter(|page| page.search().has_query())
                .map(|_| AppCommand::NextSearchResult(1))
        }),
        ..action_template(ActionGroup::Find)
    },
    AppAction {
        name: "previous-found",
        title: "Previous result",
        help: "Go to the previous search result.",
        keys: &[KeyShortcut::key(Key::N).shift()],
        effect: ActionEffect::RunCommand(|session| {
            session
                .page()
                .filter(|page| page.search().has_query())
                .map(|_| AppCommand::NextSearchResult(-1))
        }),
        ..action_template(ActionGroup::Find)
    },
    AppAction {
        name: "undo",
        title: "Undo",
        help: "Go back to the previous view, selection, zoom and settings.",
        keys: &[KeyShortcut::ctrl(Key::Z), KeyShortcut::alt(Key::ArrowLeft)],
        effect: ActionEffect::RunCommand(|session| {
            let page = session.page()?;
            page.tab.history.can_undo().then_some(AppCommand::Undo)
        }),
        ..action_template(ActionGroup::Navigation)
    },
    AppAction {
        name: "redo",
        title: "Redo",
        help: "Restore what was undone.",
        keys: &[
            KeyShortcut::ctrl(Key::Z).shift(),
            KeyShortcut::ctrl(Key::Y),
            KeyShortcut::alt(Key::ArrowRight),
        ],
        effect: ActionEffect::RunCommand(|session| {
            let page = session.page()?;
            page.tab.history.can_redo().then_some(AppCommand::Redo)
        }),
        ..action_template(ActionGroup::Navigation)
    },
    AppAction {
        name: "copy-link",
        title: "Copy link to this view",
        help: "Copy a link that restores this view: tilescope REPORT --at LINK.",
        keys: &[KeyShortcut::ctrl(Key::C).shift()],
        effect: ActionEffect::RunCommand(|session| session.page().map(|_| AppCommand::CopyLink)),
        ..action_template(ActionGroup::Navigation)
    },
    AppAction {
        name: "add-bookmark",
        title: "Bookmark this view",
        help: "Save this view under a name, in a file next to the report.",
        keys: &[KeyShortcut::ctrl(Key::M)],
        effect: ActionEffect::RunCommand(|session| session.page().map(|_| AppCommand::AddBookmark)),
        ..action_template(ActionGroup::Navigation)
    },
    AppAction {
        name: "bookmarks",
        title: "Bookmarks and notes",
        help: "List the bookmarks of this report: open, rename, add notes.",
        keys: &[KeyShortcut::ctrl(Key::M).shift()],
        effect: ActionEffect::RunCommand(|session| {
            session.page().map(|_| AppCommand::Overlay(Some(OverlayKind::Bookmarks)))
        }),
        ..action_template(ActionGroup::Navigation)
    },
    AppAction {
        name: "save",
        title: "Save picture or table…",
        help: "Save the view as PNG or SVG, or one of its tables as CSV.",
        keys: &[KeyShortcut::ctrl(Key::S)],
        menu: Some(Icon::Camera),
        effect: ActionEffect::RunCommand(|session| {
            session.page().map(|_| AppCommand::Overlay(Some(OverlayKind::ExportDialog)))
        }),
        ..action_template(ActionGroup::Report)
    },
    AppAction {
        name: "commands",
        title: "Commands",
        help: "Search for a command and run it.",
        keys: &[KeyShortcut::ctrl(Key::P).shift()],
        menu: Some(Icon::Play),
        effect: ActionEffect::RunCommand(|_| {
            Some(AppCommand::Overlay(Some(OverlayKind::CommandPalette)))
        }),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "keys-and-help",
        title: "Keys and help",
        help: "List all keyboard shortcuts and mouse gestures.",
        keys: &[KeyShortcut::key(Key::Questionmark), KeyShortcut::key(Key::F1)],
        menu: Some(Icon::Help),
        effect: ActionEffect::RunCommand(|_| {
            Some(AppCommand::Overlay(Some(OverlayKind::Shortcuts)))
        }),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "help",
        title: "Help pages",
        help: "Open the page about this view; all pages can be searched.",
        keys: &[KeyShortcut::key(Key::F1).shift()],
        effect: ActionEffect::RunCommand(|_| Some(AppCommand::Overlay(Some(OverlayKind::Help)))),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "preferences",
        title: "Preferences",
        help: "Choose units, colours, text size, what dragging does, and keys.",
        keys: &[KeyShortcut::ctrl(Key::Comma)],
        effect: ActionEffect::RunCommand(|_| {
            Some(AppCommand::Overlay(Some(OverlayKind::Preferences)))
        }),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "next-theme",
        title: "Change theme",
        help: "Light, dark, or the system setting.",
        menu: Some(Icon::Theme),
        state: Some(|prefs: &UserPreferences| format!("Theme: {}", prefs.theme.title())),
        effect: ActionEffect::RunCommand(|session| {
            Some(AppCommand::SetTheme(session.prefs().theme.next()))
        }),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "toggle-menu",
        title: "Hide or show the menu",
        help: "Show the side menu as icons only, or with labels.",
        keys: &[KeyShortcut::ctrl(Key::B)],
        menu: Some(Icon::Collapse),
        state: Some(|prefs: &UserPreferences| {
            (if prefs.narrow_menu { "Show menu" } else { "Hide menu" }).to_owned()
        }),
        effect: ActionEffect::RunCommand(|session| session.page().map(|_| AppCommand::ToggleMenu)),
        ..action_template(ActionGroup::Window)
    },
    AppAction {
        name: "dismiss-messages",
        title: "Dismiss all messages",
        help: "Close all messages above the view.",
        effect: ActionEffect::RunCommand(|session| {
            (!session.messages().is_empty()).then_some(AppCommand::DismissMessages)
        }),
        ..action_template(ActionGroup::Window)
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::session::AppSession;

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
        let session = AppSession::detached();
        for (at, action) in actions().iter().enumerate() {
            for other in actions()[..at].iter().filter(|other| action.conflicts_with(other)) {
                let others = other.shortcuts(session.prefs());
                for press in action.shortcuts(session.prefs()) {
                    assert!(!others.contains(&press), "{press}: {} {}", action.name, other.name);
                }
            }
        }
    }

    #[test]
    fn what_is_asked_of_views_is_asked_of_some() {
        for action in actions() {
            if let ActionEffect::SendToView(_, views) = action.effect {
                assert!(!views.is_empty(), "{}", action.name);
            }
        }
    }
}
