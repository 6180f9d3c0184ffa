//! Tests of the window as a workplace: tabs, opening, completion, the focus of dialogs, quitting,
//! the palette, panels that fold, and idle windows.

use crate::gui_support::{
    VARIANTS, Variant, Window, assert_says, click, opened_window, press, press_role, says, settle,
    show_view, simulator, type_text, until, window, window_of,
};
use egui::accesskit::{Role, Toggled};
use egui::{Key, Modifiers, Vec2, ViewportCommand, ViewportEvent, ViewportId};
use egui_kittest::kittest::{NodeT, Queryable};
use std::path::Path;
use std::time::Duration;
use tilescope_gui::action::{ActionEffect, VIEW_CONTROLS, actions};
use tilescope_gui::app::TilescopeApp;
use tilescope_gui::{OpenReport, view_names};
use tilescope_test_tiers::slow_tests;

const SIZE: Vec2 = Vec2::new(1280.0, 800.0);

/// An idle window on the home screen.
fn home(size: Vec2) -> Window {
    window_of(TilescopeApp::detached(&egui::Context::default(), None), size, 1.0)
}

fn tabs(window: &Window) -> Vec<String> {
    window.state().session().tab_titles()
}

/// A directory with two reports, `first` and `second`, and a directory without one.
fn reports() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in ["first", "second"] {
        let place = directory.path().join(name);
        (Variant::named("small").write)(&place);
    }
    std::fs::create_dir(directory.path().join("empty")).unwrap();
    directory
}

fn text_inputs(window: &Window) -> Vec<bool> {
    let roles = [Role::TextInput, Role::MultilineTextInput];
    let nodes = window.root().children_recursive();
    let inputs = nodes.filter(|node| roles.contains(&node.accesskit_node().role()));
    inputs.map(|node| node.accesskit_node().is_focused()).collect()
}

#[test]
fn tabs_with_home_are_always_there_and_another_report_can_be_opened() {
    let plus = "Open another report or model (Ctrl+O)";
    for mut window in [home(SIZE), window(Variant::named("small"), "memory", SIZE)] {
        let home = window.get_by_role_and_label(Role::Tab, "Home");
        assert!(home.rect().top() < 20.0, "{:?}", home.rect());
        assert!(window.query_by_role_and_label(Role::Button, plus).is_some());
        click(&mut window, Role::Button, plus);
        assert!(says(&window, "Path of the report or model to open"));
        press(&mut window, Modifiers::NONE, Key::Escape);
        assert!(!says(&window, "Path of the report or model to open"));
        click(&mut window, Role::Tab, "Home");
        assert!(says(&window, "Open a report or model…"));
    }
}

#[test]
fn letters_and_arrow_keys_choose_a_report_from_a_list() {
    let directory = reports();
    let first = OpenReport::read(&directory.path().join("first")).unwrap();
    let mut window = opened_window(first, "memory", SIZE);
    press(&mut window, Modifiers::COMMAND, Key::O);
    // The reports beside the visible one, with a preview of the one that Enter opens.
    assert!(window.query_by_role_and_label(Role::Button, "second").is_some());
    type_text(&mut window, "Path of the report or model to open", "SECO");
    assert!(window.query_by_role_and_label(Role::Button, "empty/").is_none());
    for words in ["1,200 cycles", "2 IPUs", "file of"] {
        assert!(says(&window, words), "the preview says {words}");
    }
    press(&mut window, Modifiers::NONE, Key::Enter);
    until(&mut window, "second is open", |window| tabs(window) == ["first", "second"]);
    assert!(!says(&window, "Path of the report or model to open"));
    // A report that is already open is shown again, under any path.
    press(&mut window, Modifiers::COMMAND, Key::O);
    press(&mut window, Modifiers::NONE, Key::Enter);
    until(&mut window, "first is shown", |window| {
        window.state().session().page().is_some_and(|page| page.opened().name() == "first")
    });
    assert_eq!(tabs(&window), ["first", "second"]);
}

#[test]
fn keys_enter_and_leave_directories() {
    let directory = reports();
    let deep = directory.path().join("empty/deep");
    (Variant::named("small").write)(&deep);
    let mut window = home(SIZE);
    press(&mut window, Modifiers::COMMAND, Key::O);
    let typed = format!("{}/emp", directory.path().display());
    type_text(&mut window, "Path of the report or model to open", &typed);
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert!(window.query_by_role_and_label(Role::Button, "deep").is_some(), "inside of empty");
    click(&mut window, Role::Button, "Parent folder");
    let shown = ["first", "second", "empty/"];
    for name in shown {
        assert!(window.query_by_role_and_label(Role::Button, name).is_some(), "{name}");
    }
    // Reports come before directories; the second of them is two lines below the box.
    press(&mut window, Modifiers::NONE, Key::ArrowDown);
    press(&mut window, Modifiers::NONE, Key::Enter);
    until(&mut window, "second is open", |window| tabs(window) == ["second"]);
}

#[test]
fn a_half_typed_path_is_completed_by_enter_on_the_home_screen() {
    let directory = reports();
    let mut window = home(SIZE);
    window.get_by_label("Path of a report or model").focus();
    window.step();
    let typed = format!("{}/sec", directory.path().display());
    type_text(&mut window, "Path of a report or model", &typed);
    press(&mut window, Modifiers::NONE, Key::Enter);
    until(&mut window, "second is open", |window| tabs(window) == ["second"]);
    assert!(window.state().session().messages().is_empty());
}

/// Every dialog that a key opens: immediate typing goes into it.
#[test]
fn every_dialog_focuses_its_text_box() {
    let directory = reports();
    let mut dialogs = Vec::new();
    for action in actions() {
        let ActionEffect::RunCommand(_) = action.effect else { continue };
        let Some(shortcut) = action.keys.first() else { continue };
        if ["new-window", "quit", "close-report"].contains(&action.name) {
            continue;
        }
        let opened = OpenReport::read(&directory.path().join("first")).unwrap();
        let mut window = opened_window(opened, "summary", SIZE);
        // So that there is something to rename.
        press(&mut window, Modifiers::COMMAND, Key::M);
        let is_open =
            |window: &Window| window.ctx.memory(|memory| memory.top_modal_layer().is_some());
        let mut modifiers = Modifiers::NONE;
        modifiers.ctrl = shortcut.ctrl;
        modifiers.command = shortcut.ctrl;
        modifiers.shift = shortcut.shift;
        modifiers.alt = shortcut.alt;
        press(&mut window, modifiers, shortcut.key);
        if !is_open(&window) {
            continue;
        }
        dialogs.push(action.name);
        let inputs = text_inputs(&window);
        assert!(
            inputs.is_empty() || inputs.contains(&true),
            "{}: no box has the focus",
            action.name
        );
        // Typed text goes nowhere else.
        let searching = window.state().session().page().unwrap().search().open;
        press(&mut window, Modifiers::NONE, Key::Slash);
        let page = window.state().session().page().unwrap();
        assert_eq!(page.search().open, searching, "{}: / opens Find behind it", action.name);
    }
    let known =
        ["open-report", "compare", "bookmarks", "save", "commands", "keys-and-help", "help"];
    for name in known {
        assert!(dialogs.contains(&name), "{name} opens a dialog: {dialogs:?}");
    }
}

/// Returns true if the window sent this command in its last frame.
fn asked(window: &Window, command: &ViewportCommand) -> bool {
    let output = window.output().viewport_output.get(&ViewportId::ROOT);
    output.is_some_and(|output| output.commands.contains(command))
}

/// The user presses the close button of the window.
fn press_the_cross(window: &mut Window) {
    let viewport = window.input_mut().viewports.entry(ViewportId::ROOT).or_default();
    viewport.events.push(ViewportEvent::Close);
    window.step();
    let viewport = window.input_mut().viewports.entry(ViewportId::ROOT).or_default();
    viewport.events.clear();
}

#[test]
fn quitting_asks_only_when_edits_would_be_lost() {
    simulator();
    let directory = tempfile::tempdir().unwrap();
    let spec = crate::common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    crate::common::report_file(&spec, directory.path());
    let mut window = opened_window(OpenReport::read(directory.path()).unwrap(), "summary", SIZE);
    press(&mut window, Modifiers::COMMAND, Key::T);
    press_the_cross(&mut window);
    assert!(!asked(&window, &ViewportCommand::CancelClose), "nothing would be lost");
    let panel = window.state_mut().session_mut().what_if_mut().unwrap();
    panel.set_text(panel.text().replace("m = 64", "m = 128"));
    settle(&mut window);
    press_the_cross(&mut window);
    assert!(asked(&window, &ViewportCommand::CancelClose));
    settle(&mut window);
    assert!(says(&window, "has unsimulated changes"));
    click(&mut window, Role::Button, "Keep working");
    assert!(!says(&window, "has unsimulated changes"));
    // Closing the tab loses nothing: what was typed waits for the report.
    let opened = window.state().session().page().unwrap().opened().clone();
    press(&mut window, Modifiers::COMMAND, Key::W);
    window.state_mut().session_mut().show(opened);
    settle(&mut window);
    assert!(window.state().session().what_if().unwrap().text().contains("m = 128"));
    press(&mut window, Modifiers::COMMAND, Key::Q);
    window.get_by_role_and_label(Role::Button, "Quit without saving").click();
    let mut closes = false;
    for _ in 0..4 {
        window.step();
        closes |= asked(&window, &ViewportCommand::Close);
    }
    assert!(closes);
    press_the_cross(&mut window);
    assert!(!asked(&window, &ViewportCommand::CancelClose));
}

#[test]
fn tabs_are_restored() {
    let directory = reports();
    let report = |name: &str| OpenReport::read(&directory.path().join(name)).unwrap();
    let mut window = opened_window(report("first"), "liveness", SIZE);
    window.state_mut().session_mut().show(report("second"));
    show_view(&mut window, "memory");
    press(&mut window, Modifiers::COMMAND | Modifiers::SHIFT, Key::Tab);
    let session = window.state_mut().session_mut();
    session.remember_tabs();
    let prefs = session.prefs().clone();
    // One of them is gone by the next start.
    for gone in [false, true] {
        if gone {
            std::fs::remove_dir_all(directory.path().join("second")).unwrap();
        }
        let mut next = home(SIZE);
        *next.state_mut().session_mut().prefs_mut() = prefs.clone();
        next.state_mut().session_mut().reopen_tabs();
        let count = if gone { 1 } else { 2 };
        until(&mut next, "tabs are back", |next| {
            let said = next.state().session().messages().len();
            tabs(next).len() + said == 2
        });
        assert_eq!(tabs(&next).len(), count);
        let page = next.state().session().page().unwrap();
        assert_eq!((page.opened().name().as_str(), page.view().name()), ("first", "liveness"));
    }
}

/// The checkboxes, choices and tabs of a view, with true for checked boxes and selected tabs.
fn controls_seen(window: &Window) -> Vec<(Role, String, bool)> {
    let nodes = window.root().children_recursive();
    let roles = [Role::CheckBox, Role::ComboBox, Role::Tab];
    let controls = nodes.filter(|node| roles.contains(&node.accesskit_node().role()));
    // Not those of the window: its tabs are above the view.
    let shown = controls.filter(|node| node.rect().top() > 60.0 && node.rect().left() > 190.0);
    let announced = shown.filter_map(|node| {
        let node = node.accesskit_node();
        let on = node.toggled() == Some(Toggled::True) || node.is_selected() == Some(true);
        let name = node.label()?;
        // The count of a tab is not part of its name.
        let name = name.split(" (").next().unwrap_or_default().to_owned();
        Some((node.role(), name, on))
    });
    announced.collect()
}

fn use_in_palette(window: &mut Window, title: &str) {
    press(window, Modifiers::COMMAND | Modifiers::SHIFT, Key::P);
    type_text(window, "What do you want to do?", title);
    let entry = window.query_by_role_and_label(Role::MenuItem, title);
    assert!(entry.is_some(), "{title} is in the palette");
    press(window, Modifiers::NONE, Key::Enter);
}

/// The buttons of toolbars that lead to another view, and that view.
const LEADS_ON: [(&str, &str); 1] = [("At the trace's cursor", "execution-trace")];

/// Every control in the toolbar of every view, and every tab of its tables, can be found and used
/// from any other view.
#[test]
fn the_palette_finds_controls_of_all_views() {
    let size = Vec2::new(1900.0, 1000.0);
    let mut window = window(Variant::named("simulated"), "summary", size);
    for view in view_names() {
        let of = VIEW_CONTROLS.iter().find(|of| of.view.name() == view);
        let (strip, tabs) = of.map_or((&[][..], &[][..]), |of| (of.strip, of.tabs));
        show_view(&mut window, view);
        let seen = controls_seen(&window);
        // None is missing from the table.
        for (role, name, _) in &seen {
            let known = if *role == Role::Tab { tabs } else { strip };
            assert!(known.contains(&name.as_str()), "{view}: {name} is not in the palette");
        }
        let every = if slow_tests() { 1 } else { 3 };
        for control in strip.iter().step_by(every) {
            let is_it = |found: &&(Role, String, bool)| found.0 != Role::Tab && found.1 == *control;
            let before = seen.iter().find(is_it);
            show_view(&mut window, "summary");
            let title = format!("{}: {control}", title_of(view));
            use_in_palette(&mut window, &title);
            let shown = window.state().session().page().unwrap().view();
            let led_on = LEADS_ON.iter().find(|(name, _)| name == control).map(|(_, to)| *to);
            let is_there = shown.name() == view || Some(shown.name()) == led_on;
            assert!(is_there, "{title} goes there first, not to {}", shown.name());
            match before {
                Some((Role::CheckBox, _, ticked)) => {
                    let after = controls_seen(&window).iter().find(is_it).map(|found| found.2);
                    assert_eq!(after, Some(!ticked), "{title} is used");
                    use_in_palette(&mut window, &title);
                }
                Some(_) => {
                    let open = window.ctx.any_popup_open();
                    assert!(open, "{title} is unfolded");
                    press(&mut window, Modifiers::NONE, Key::Escape);
                }
                None => {}
            }
        }
        for tab in tabs {
            show_view(&mut window, "summary");
            use_in_palette(&mut window, &format!("{}: tab {tab}", title_of(view)));
            let is_it = |found: &&(Role, String, bool)| found.0 == Role::Tab && found.1 == *tab;
            if let Some((_, _, shown)) = controls_seen(&window).iter().find(is_it) {
                assert!(shown, "{view}: the tab {tab} is shown");
            }
        }
    }
    for (view, menu) in [("operations", "Columns"), ("execution-trace", "Key")] {
        window.state_mut().show_view("summary");
        use_in_palette(&mut window, &format!("{}: {menu}", title_of(view)));
        assert!(window.ctx.any_popup_open(), "{menu} is unfolded");
        press(&mut window, Modifiers::NONE, Key::Escape);
    }
    for (view, name) in [
        ("program-tree", "Search for steps"),
        ("liveness", "Filter steps"),
        ("memory", "Select tiles"),
    ] {
        window.state_mut().show_view("summary");
        use_in_palette(&mut window, &format!("{}: {name}", title_of(view)));
        let shown = window.query_all_by_label_contains(name).any(|node| node.is_focused());
        assert!(shown, "{view}: {name} waits for letters");
    }
    // Actions of a view too.
    show_view(&mut window, "summary");
    use_in_palette(&mut window, "Filter steps");
    assert_eq!(window.state().session().page().unwrap().view().name(), "execution-trace");
    assert!(window.get_by_label("Filter steps").accesskit_node().is_focused());
}

fn title_of(view: &str) -> &'static str {
    let action = actions().iter().find(|action| action.name == view);
    action.expect("an action that shows it").title
}

#[test]
fn lower_panels_fold_until_there_is_something_to_show() {
    let cases = [
        ("operations", Role::Row, "layer2/conv"),
        ("operations-graph", Role::GraphicsObject, ""),
        ("program-tree", Role::TreeItem, ""),
    ];
    for (view, role, name) in cases {
        let mut window = window(Variant::named("simulated"), view, SIZE);
        let folded =
            |window: &Window| window.query_by_role_and_label(Role::Button, "Show tables").is_some();
        assert!(folded(&window), "{view}: nothing is chosen");
        let found = window.query_all_by_role(role).find(|node| {
            name.is_empty() || node.accesskit_node().label().is_some_and(|label| label == name)
        });
        let rect = found.expect("something to choose").rect();
        for pressed in [true, false] {
            window.event(egui::Event::PointerMoved(rect.center()));
            window.event(egui::Event::PointerButton {
                pos: rect.center(),
                button: egui::PointerButton::Primary,
                pressed,
                modifiers: Modifiers::NONE,
            });
            window.step();
        }
        settle(&mut window);
        assert!(!folded(&window), "{view}: the chosen one is shown");
        press(&mut window, Modifiers::NONE, Key::Escape);
        assert!(folded(&window), "{view}: nothing is chosen any more");
    }
}

/// Empty pages lead on: to the tiles that do not fit, and to the reason for missing proposals.
#[test]
fn pages_without_contents_say_where_to_look() {
    let mut window = window(Variant::named("out of memory"), "execution-trace", SIZE);
    assert!(press_role(&mut window, Role::Link, "Show these tiles in Memory"));
    settle(&mut window);
    assert!(says(&window, "Memory by tile"));
    let window = crate::gui_support::window(Variant::named("foreign"), "insights", SIZE);
    assert!(says(&window, "Proposals cannot be tested: this report has no spec to change."));
}

#[test]
fn specs_are_grouped_filtered_and_described() {
    simulator();
    let mut window = home(Vec2::new(1280.0, 2400.0));
    assert_says(&window, &["Examples", "Small programs", "Published benchmarks", "too_large"]);
    let whole = "BERT-Large pre-training phase 1, sequences of 128, on 256 Bow IPUs: 4 stages x 64 \
                 replicas";
    let words = crate::gui_support::painted(&window);
    assert!(words.iter().any(|text| text == whole), "the description is cut");
    window.get_by_label("Filter specs").focus();
    window.step();
    type_text(&mut window, "Filter specs", "streaming memory");
    assert!(window.query_by_role_and_label(Role::Button, "offload").is_some());
    assert!(window.query_by_role_and_label(Role::Button, "too_large").is_none());
}

#[test]
fn memory_summary_and_insights_agree_on_the_fullest_tile() {
    for variant in [Variant::named("simulated"), Variant::named("sample out of memory")] {
        let report = variant.opened().report;
        let memory = report.tile_memory().unwrap();
        let (tile, bytes) = tilescope_analysis::memory::fullest_tiles(&memory, 1)[0];
        let bytes = tilescope_report::units::binary_bytes(bytes.0);
        for view in ["summary", "insights"] {
            let window = window(variant, view, Vec2::new(1500.0, 900.0));
            let nodes = window.root().children_recursive();
            let mut texts = nodes.flat_map(|node| {
                let node = node.accesskit_node();
                [node.label(), node.value()].into_iter().flatten()
            });
            let found = texts.any(|text| text.contains(&bytes));
            assert!(found, "{}: {view} says {bytes}", variant.name);
        }
        let mut window = window(variant, "memory", Vec2::new(1500.0, 900.0));
        window.state_mut().session_mut().selection_mut().tiles = vec![tile];
        settle(&mut window);
        let exact = memory.iter().find(|(tiles, _)| tiles.contains(tile)).map(|(_, of)| *of);
        let exact = tilescope_analysis::memory::needed(&exact.unwrap());
        let exact = tilescope_report::units::exact_bytes(exact.0);
        let nodes = window.root().children_recursive();
        let graph = nodes.filter_map(|node| {
            let node = node.accesskit_node();
            (node.label()? == "Memory by tile").then(|| node.value().unwrap_or_default())
        });
        let values: Vec<String> = graph.collect();
        let holds = values.iter().any(|value| value.contains(&format!("at most {exact}")));
        assert!(holds, "{}: {values:?} without {exact}", variant.name);
    }
}

/// A minute in which nothing happens: no frame is requested.
#[test]
fn an_idle_minute_paints_nothing() {
    let minute = Duration::from_secs(60);
    let mut windows = vec![("home", home(SIZE))];
    for view in view_names() {
        windows.push((view, window(&VARIANTS[0], view, SIZE)));
    }
    for (view, mut window) in windows {
        let delay = |window: &Window| {
            let output = window.output().viewport_output.get(&ViewportId::ROOT);
            output.map_or(Duration::MAX, |output| output.repaint_delay)
        };
        // Animations end, and the place enters the history, within a few seconds.
        for _ in 0..600 {
            window.step();
            if delay(&window) >= minute {
                break;
            }
        }
        let start = window.ctx.input(|input| input.time);
        let mut frames = 0;
        while delay(&window) < minute && frames < 100 {
            window.step();
            frames += 1;
        }
        let after = window.ctx.input(|input| input.time) - start;
        assert_eq!(frames, 0, "{view}: {frames} frames in {after} s");
    }
}

/// A report that is watched for changes requests no frame either.
#[test]
fn watching_a_report_paints_nothing() {
    let directory = reports();
    let mut window = home(SIZE);
    window.state_mut().session_mut().watch_files();
    let report = OpenReport::read(Path::new(&directory.path().join("first"))).unwrap();
    window.state_mut().session_mut().show(report);
    settle(&mut window);
    for _ in 0..300 {
        window.step();
    }
    let output = window.output().viewport_output.get(&ViewportId::ROOT);
    let delay = output.map_or(Duration::MAX, |output| output.repaint_delay);
    assert!(delay >= Duration::from_secs(60), "{delay:?}");
}
