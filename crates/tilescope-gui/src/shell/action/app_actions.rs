//! The table of actions: those of the window, then those of the visible view, then the views.

use super::view_actions::VIEW_ACTIONS;
use super::{ActionGroup, AppAction, KeyShortcut};
use crate::model::command::{AppCommand, ChooserPurpose, OverlayKind};
use crate::model::preferences::UserPreferences;
use crate::model::selection::Selection;
use crate::views::VIEWS;
use crate::widgets::icons::Icon;
use egui::Key;
use std::sync::LazyLock;

/// All actions, in the order of lists: those below, and one per view.
pub fn actions() -> &'static [AppAction] {
    static ALL: LazyLock<Vec<AppAction>> = LazyLock::new(|| {
        let views = VIEWS.iter().enumerate().map(|(at, view)| {
            AppAction::new(ActionGroup::Views, view.id.name(), view.id.title())
                .help(view.about())
                .keys(VIEW_KEYS.get(at..=at).unwrap_or_default())
                .shows(view.id)
        });
        APP_ACTIONS.iter().chain(VIEW_ACTIONS).copied().chain(views).collect()
    });
    &ALL
}

/// The keys of views in order. Views with a number had it first and keep it.
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

/// All actions except those that show a view.
const APP_ACTIONS: &[AppAction] = &[
    AppAction::new(ActionGroup::Report, "open-report", "Open a report or model…")
        .help("Choose a report, or an ONNX file to simulate, from recent files or a directory.")
        .keys(&[KeyShortcut::ctrl(Key::O)])
        .runs(|_| Some(AppCommand::ChooseReport(ChooserPurpose::Open))),
    AppAction::new(ActionGroup::Report, "simulate-model", "Simulate a model…")
        .help("Choose an ONNX file, its dimensions, loss and system, and simulate it.")
        .keys(&[KeyShortcut::ctrl(Key::O).shift()])
        .runs(|_| Some(AppCommand::ChooseReport(ChooserPurpose::Model))),
    AppAction::new(ActionGroup::Report, "reload-report", "Reload report")
        .help("Reload the report. The selection is kept where it still exists.")
        .keys(&[KeyShortcut::ctrl(Key::R), KeyShortcut::key(Key::F5)])
        .in_menu(Icon::Reload)
        .runs(|session| session.page().map(|_| AppCommand::Reload)),
    AppAction::new(ActionGroup::Report, "close-report", "Close report")
        .help("Close this tab.")
        .keys(&[KeyShortcut::ctrl(Key::W)])
        .in_menu(Icon::Close)
        .runs(|session| session.page().map(|_| AppCommand::CloseReport)),
    AppAction::new(ActionGroup::Report, "compare", "Compare with…")
        .help("Show this report beside another one, in every view.")
        .keys(&[KeyShortcut::ctrl(Key::D)])
        .in_menu(Icon::Exchange)
        .runs(|session| session.page().map(|_| AppCommand::ChooseReport(ChooserPurpose::Compare))),
    AppAction::new(ActionGroup::Report, "series", "Series of a folder…")
        .help(
            "Show all reports of a folder as a series: a table of runs, figures over runs, and \
             change points.",
        )
        .keys(&[KeyShortcut::ctrl(Key::E).shift()])
        .runs(|_| Some(AppCommand::ChooseReport(ChooserPurpose::Series))),
    AppAction::new(ActionGroup::Report, "series-of-tabs", "Series of the open reports")
        .help("Show the reports of all tabs as a series.")
        .runs(|session| {
            let open = session.open_reports();
            if open.len() > 1 { Some(AppCommand::ShowSeries(open)) } else { None }
        }),
    AppAction::new(ActionGroup::Report, "last-series", "Back to the series")
        .help("Show the last series again.")
        .runs(|session| session.dialogs().has_series().then_some(AppCommand::ShowLastSeries)),
    AppAction::new(ActionGroup::Report, "pin-baseline", "Pin this report as baseline")
        .help("Compare every report opened from now on with this one, in every view.")
        .runs(|session| {
            let path = session.page()?.opened().absolute_path();
            let is_pinned = session.baseline_for(&path).is_none();
            let is_pinned = is_pinned && session.pinned_baseline().is_some();
            if !is_pinned { Some(AppCommand::PinBaseline(Some(path))) } else { None }
        }),
    AppAction::new(ActionGroup::Report, "unpin-baseline", "Unpin the baseline")
        .help("Open reports without comparison again.")
        .runs(|session| session.pinned_baseline().map(|_| AppCommand::PinBaseline(None))),
    AppAction::new(ActionGroup::Report, "what-if", "What if…")
        .help("Change the spec of this report, simulate it again and compare.")
        .keys(&[KeyShortcut::ctrl(Key::T)])
        .in_menu(Icon::Flask)
        .runs(|session| session.page().map(|_| AppCommand::ToggleWhatIf)),
    AppAction::new(ActionGroup::Report, "other-machines", "Try other machines")
        .help(
            "Simulate the spec of this report with twice the exchange, clock, memory, links, \
             host, … and show the gain of each.",
        )
        .runs(|session| {
            let spec = session.page()?.opened().report.spec();
            spec.map(|_| AppCommand::TryOtherMachines)
        }),
    AppAction::new(ActionGroup::Report, "search-spec", "Search for a better spec…")
        .help(
            "Search from the spec of this report: a guided search, or every combination of \
             values, with plots.",
        )
        .keys(&[KeyShortcut::ctrl(Key::T).shift()])
        .runs(|session| {
            let spec = session.page()?.opened().report.spec();
            spec.map(|_| AppCommand::ShowSpecSearch)
        }),
    AppAction::new(ActionGroup::Report, "stop-search", "Stop the search")
        .help("Stop the running search for a better spec. Finished results are kept.")
        .runs(|session| session.dialogs().is_searching().then_some(AppCommand::StopSpecSearch)),
    AppAction::new(ActionGroup::Report, "simulate-variant", "Simulate the changed spec")
        .help("Simulate the changes made under What if… and compare the result.")
        .runs(|session| {
            if session.what_ifs().open()?.is_spec_valid() {
                Some(AppCommand::SimulateVariant)
            } else {
                None
            }
        }),
    AppAction::new(ActionGroup::Report, "swap-sides", "Swap source and target")
        .help("Swap the two reports of a comparison.")
        .runs(|session| session.page()?.compared().map(|_| AppCommand::SwapSides)),
    AppAction::new(ActionGroup::Report, "end-comparison", "End the comparison")
        .help("Close the target and keep the source.")
        .runs(|session| session.page()?.compared().map(|_| AppCommand::EndComparison)),
    AppAction::new(ActionGroup::Report, "next-tab", "Next report")
        .help("Show the next tab.")
        .keys(&[KeyShortcut::ctrl(Key::Tab)])
        .runs(|session| (session.workspace().tab_count() > 1).then_some(AppCommand::NextTab(true))),
    AppAction::new(ActionGroup::Report, "previous-tab", "Previous report")
        .help("Show the previous tab.")
        .keys(&[KeyShortcut::ctrl(Key::Tab).shift()])
        .runs(|session| {
            if session.workspace().tab_count() > 1 {
                Some(AppCommand::NextTab(false))
            } else {
                None
            }
        }),
    AppAction::new(ActionGroup::Report, "home-screen", "Home screen")
        .help("Go to the first tab: recent reports, demo reports, specs to simulate.")
        .keys(&[KeyShortcut::alt(Key::Home)])
        .runs(|session| session.page().map(|_| AppCommand::ShowTab(None))),
    AppAction::new(ActionGroup::Report, "cancel-simulation", "Cancel simulation")
        .help("Stop the running simulation; no report is opened.")
        .runs(|session| session.simulation().map(|_| AppCommand::CancelSimulation)),
    AppAction::new(ActionGroup::Window, "new-window", "New window")
        .help("Open another window with the same report and view.")
        .keys(&[KeyShortcut::ctrl(Key::N).shift()])
        .runs(|_| Some(AppCommand::NewWindow)),
    AppAction::new(ActionGroup::Window, "quit", "Quit")
        .help("Close the window. Asks before discarding changes.")
        .keys(&[KeyShortcut::ctrl(Key::Q)])
        .runs(|_| Some(AppCommand::Quit)),
    AppAction::new(ActionGroup::Find, "find", "Find…")
        .help(
            "Find steps, operations, programs, variables, tensors and vertices in the whole \
             report.",
        )
        .keys(&[KeyShortcut::key(Key::Slash), KeyShortcut::ctrl(Key::F).shift()])
        .in_menu(Icon::Find)
        .runs(|session| session.page().map(|_| AppCommand::OpenSearch)),
    AppAction::new(ActionGroup::Find, "measure-selection", "Measure the selection")
        .help("Count, sum, quantiles, histogram and distribution over tiles of the selection.")
        .keys(&[KeyShortcut::ctrl(Key::I)])
        .runs(|session| {
            let any = Selection { step: None, cycles: None, ..session.selection().clone() };
            let something = session.page().is_some() && any != Selection::default();
            if something { Some(AppCommand::ShowSelectionStatistics) } else { None }
        }),
    AppAction::new(ActionGroup::Find, "next-found", "Next result")
        .help("Go to the next search result.")
        .keys(&[KeyShortcut::key(Key::N)])
        .runs(|session| {
            session
                .page()
                .filter(|page| page.search().has_query())
                .map(|_| AppCommand::NextSearchResult(1))
        }),
    AppAction::new(ActionGroup::Find, "previous-found", "Previous result")
        .help("Go to the previous search result.")
        .keys(&[KeyShortcut::key(Key::N).shift()])
        .runs(|session| {
            session
                .page()
                .filter(|page| page.search().has_query())
                .map(|_| AppCommand::NextSearchResult(-1))
        }),
    AppAction::new(ActionGroup::Navigation, "undo", "Undo")
        .help("Go back to the previous view, selection, zoom and settings.")
        .keys(&[KeyShortcut::ctrl(Key::Z), KeyShortcut::alt(Key::ArrowLeft)])
        .runs(|session| {
            let page = session.page()?;
            if page.tab.history.can_undo() { Some(AppCommand::Undo) } else { None }
        }),
    AppAction::new(ActionGroup::Navigation, "redo", "Redo")
        .help("Redo the last undone change.")
        .keys(&[
            KeyShortcut::ctrl(Key::Z).shift(),
            KeyShortcut::ctrl(Key::Y),
            KeyShortcut::alt(Key::ArrowRight),
        ])
        .runs(|session| {
            let page = session.page()?;
            if page.tab.history.can_redo() { Some(AppCommand::Redo) } else { None }
        }),
    AppAction::new(ActionGroup::Navigation, "copy-link", "Copy link to this view")
        .help("Copy a link that restores this view: tilescope REPORT --at LINK.")
        .keys(&[KeyShortcut::ctrl(Key::C).shift()])
        .runs(|session| session.page().map(|_| AppCommand::CopyLink)),
    AppAction::new(ActionGroup::Navigation, "add-bookmark", "Bookmark this view")
        .help("Save this view under a name, in a file next to the report.")
        .keys(&[KeyShortcut::ctrl(Key::M)])
        .runs(|session| session.page().map(|_| AppCommand::AddBookmark)),
    AppAction::new(ActionGroup::Navigation, "bookmarks", "Bookmarks and notes")
        .help("List the bookmarks of this report: open, rename, add notes.")
        .keys(&[KeyShortcut::ctrl(Key::M).shift()])
        .runs(|session| session.page().map(|_| AppCommand::Overlay(Some(OverlayKind::Bookmarks)))),
    AppAction::new(ActionGroup::Report, "save", "Save picture or table…")
        .help(
            "Save the view as PNG or SVG, one of its tables as CSV, or share the report as a page.",
        )
        .keys(&[KeyShortcut::ctrl(Key::S)])
        .in_menu(Icon::Camera)
        .runs(|session| {
            session.page().map(|_| AppCommand::Overlay(Some(OverlayKind::ExportDialog)))
        }),
    AppAction::new(ActionGroup::Window, "commands", "Commands")
        .help("Search for a command and run it.")
        .keys(&[KeyShortcut::ctrl(Key::P).shift()])
        .in_menu(Icon::Play)
        .runs(|_| Some(AppCommand::Overlay(Some(OverlayKind::CommandPalette)))),
    AppAction::new(ActionGroup::Window, "keys-and-help", "Keys and help")
        .help("List all keyboard shortcuts and mouse gestures.")
        .keys(&[KeyShortcut::key(Key::Questionmark), KeyShortcut::key(Key::F1)])
        .in_menu(Icon::Help)
        .runs(|_| Some(AppCommand::Overlay(Some(OverlayKind::Shortcuts)))),
    AppAction::new(ActionGroup::Window, "help", "Help pages")
        .help("Open the page about this view; all pages can be searched.")
        .keys(&[KeyShortcut::key(Key::F1).shift()])
        .runs(|_| Some(AppCommand::Overlay(Some(OverlayKind::Help)))),
    AppAction::new(ActionGroup::Window, "preferences", "Preferences")
        .help("Choose units, colours, text size, the effect of dragging, and keys.")
        .keys(&[KeyShortcut::ctrl(Key::Comma)])
        .runs(|_| Some(AppCommand::Overlay(Some(OverlayKind::Preferences)))),
    AppAction::new(ActionGroup::Window, "next-theme", "Change theme")
        .help("Light, dark, or the system setting.")
        .in_menu(Icon::Theme)
        .titled(|prefs: &UserPreferences| format!("Theme: {}", prefs.theme.title()))
        .runs(|session| Some(AppCommand::SetTheme(session.prefs().theme.next()))),
    AppAction::new(ActionGroup::Window, "toggle-menu", "Hide or show the menu")
        .help("Show the side menu as icons only, or with labels.")
        .keys(&[KeyShortcut::ctrl(Key::B)])
        .in_menu(Icon::Collapse)
        .titled(|prefs: &UserPreferences| {
            (if prefs.narrow_menu { "Show menu" } else { "Hide menu" }).to_owned()
        })
        .runs(|session| session.page().map(|_| AppCommand::ToggleMenu)),
    AppAction::new(ActionGroup::Window, "dismiss-messages", "Dismiss all messages")
        .help("Close all messages.")
        .runs(|session| (!session.messages().is_empty()).then_some(AppCommand::DismissMessages)),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::action::ActionEffect;
    use crate::shell::session::AppSession;

    #[test]
    fn actions_have_unique_names_titles_and_help() {
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
    fn no_key_triggers_two_actions() {
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
    fn view_actions_name_at_least_one_view() {
        for action in actions() {
            if let ActionEffect::SendToView(_, views) = action.effect {
                assert!(!views.is_empty(), "{}", action.name);
            }
        }
    }
}
