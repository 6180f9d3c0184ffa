//! Tests of series in the window: a table of runs, plots with their change points, opening and
//! comparing, and the pinned baseline.

use crate::common;
use crate::gui_support::{
    Window, is_compared, painted, press, press_role, says, settle, until, window_of,
};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Vec2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use std::path::Path;
use tempfile::TempDir;
use tilescope_gui::app::TilescopeApp;

const SIZE: Vec2 = vec2(1280.0, 1500.0);
const SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);

/// A directory of runs, of which the last two take longer and one cannot be read.
fn nightly() -> TempDir {
    let directory = tempfile::tempdir().expect("temporary directory");
    for (number, size) in [(8, 64), (9, 64), (10, 640), (11, 640)] {
        let m = format!("model.m={size}");
        let spec = common::spec("matmul_chain", &[&m, "model.k=64", "model.n=64"]);
        common::report_file(&spec, &directory.path().join(format!("v{number}")));
    }
    std::fs::write(directory.path().join("broken.pop"), "no report").expect("writes");
    directory
}

/// The home screen with the series of a directory, selected by keys.
fn window(directory: &Path) -> Window {
    let mut window = window_of(TilescopeApp::detached(&egui::Context::default(), None), SIZE, 1.0);
    press(&mut window, SHIFT, Key::E);
    window.get_by_label("Path of the folder of reports").focus();
    settle(&mut window);
    window.event(egui::Event::Text(format!("{}/", directory.display())));
    settle(&mut window);
    window.get_by_label("Show this folder").focus();
    settle(&mut window);
    window.key_press(Key::Enter);
    until(&mut window, "read", |window| says(window, "4 rows"));
    window
}

/// Selects a run by its row in the table.
fn choose(window: &mut Window, words: &str) {
    let rows = window.query_all_by_role(Role::Row);
    let is_it = |node: &egui_kittest::Node<'_>| {
        node.accesskit_node().label().is_some_and(|label| label.starts_with(words))
    };
    rows.into_iter().find(is_it).expect("a row").click_accesskit();
    settle(window);
}

fn titles(window: &Window) -> Vec<String> {
    window.state().session().tab_titles()
}

#[test]
fn a_folder_is_a_table_of_runs_with_its_changes() {
    let directory = nightly();
    let mut window = window(directory.path());
    for words in [
        "Series of ",
        "execution.total_cycles (per run)",
        "Total cycles per run over 4 runs",
        "over 4 runs",
        "Change points",
        "from v10 on",
        "Not read",
        "broken: ",
        "Select a run in a plot or in the table.",
    ] {
        assert!(says(&window, words), "{words}: {:?}", painted(&window));
    }
    assert!(window.get_by_label("Open run").accesskit_node().is_disabled());
    choose(&mut window, "v10");
    assert!(says(&window, "v10: "));
    window.get_by_label("Compare with baseline").click_accesskit();
    until(&mut window, "compared", is_compared);
    assert!(titles(&window)[0].contains("v8"), "{:?}", titles(&window));
    // The series is in the state in which it was left.
    press(&mut window, SHIFT, Key::P);
    window.event(egui::Event::Text("Back to the series".to_owned()));
    settle(&mut window);
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert!(says(&window, "v10: "));
    window.get_by_label("Open run").click_accesskit();
    until(&mut window, "opened", |window| titles(window).len() == 2);
}

#[test]
fn figures_are_typed_and_invalid_ones_reported() {
    let directory = nightly();
    let mut window = window(directory.path());
    let type_figures = |window: &mut Window, text: &str| {
        window.get_by_label("Figures of runs").focus();
        settle(window);
        press(window, Modifiers::COMMAND, Key::A);
        window.event(egui::Event::Text(text.to_owned()));
        settle(window);
    };
    type_figures(&mut window, "memory.by_category.*");
    let shown = |window: &Window| says(window, "Memory, by category, constant over");
    assert!(shown(&window), "{:?}", painted(&window));
    type_figures(&mut window, "cylces");
    assert!(says(&window, "did you mean \"cycles\"?"));
    assert!(shown(&window), "what was shown stays");
}

#[test]
fn opened_reports_are_compared_with_the_pinned_baseline() {
    let directory = nightly();
    let mut window = window(directory.path());
    choose(&mut window, "v9");
    window.get_by_label("Pin as baseline").click_accesskit();
    settle(&mut window);
    assert!(says(&window, "v9 (baseline)"));
    assert!(says(&window, "is the baseline"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    let open = |window: &mut Window, name: &str| {
        press(window, Modifiers::COMMAND, Key::O);
        window.get_by_label("Path of the report or model to open").focus();
        settle(window);
        window.event(egui::Event::Text(directory.path().join(name).display().to_string()));
        settle(window);
        window.key_press(Key::Enter);
    };
    open(&mut window, "v11/profile.pop");
    until(&mut window, "compared", is_compared);
    assert!(titles(&window)[0].contains("v9") && titles(&window)[0].contains("v11"));
    // The baseline itself is opened without a comparison.
    open(&mut window, "v9/profile.pop");
    until(&mut window, "opened", |window| titles(window).len() == 2);
    assert!(window.state().session().page().is_some_and(|page| page.compared().is_none()));
    press(&mut window, SHIFT, Key::P);
    window.event(egui::Event::Text("Unpin the baseline".to_owned()));
    settle(&mut window);
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert_eq!(window.state().session().pinned_baseline(), None);
}

#[test]
fn series_fit_into_small_windows() {
    let directory = nightly();
    for size in [vec2(1600.0, 900.0), vec2(1100.0, 760.0), vec2(480.0, 360.0)] {
        let mut window = window(directory.path());
        window.set_size(size);
        settle(&mut window);
        assert!(says(&window, "Change points"), "{size}");
        assert!(press_role(&mut window, Role::Button, "Close the series"), "{size}");
        settle(&mut window);
        assert!(!says(&window, "Change points"));
    }
}

#[test]
fn a_folder_of_reports_is_opened_as_a_series() {
    let directory = nightly();
    let mut window = window_of(TilescopeApp::detached(&egui::Context::default(), None), SIZE, 1.0);
    press(&mut window, Modifiers::COMMAND, Key::O);
    window.get_by_label("Path of the report or model to open").focus();
    settle(&mut window);
    // A typed path that is not listed is accepted as it is.
    let path = directory.path().join("v8").join("..");
    window.event(egui::Event::Text(path.display().to_string()));
    settle(&mut window);
    window.key_press(Key::Enter);
    until(&mut window, "asked", |window| says(window, "Which report?"));
    window.get_by_label("All as a series").click_accesskit();
    until(&mut window, "read", |window| says(window, "4 rows"));
    assert_eq!(titles(&window), Vec::<String>::new());
}

#[test]
fn a_folder_without_reports_is_reported() {
    let directory = tempfile::tempdir().expect("temporary directory");
    std::fs::write(directory.path().join("notes.txt"), "no report").expect("writes");
    let mut window = window_of(TilescopeApp::detached(&egui::Context::default(), None), SIZE, 1.0);
    press(&mut window, SHIFT, Key::E);
    window.get_by_label("Path of the folder of reports").focus();
    settle(&mut window);
    window.event(egui::Event::Text(format!("{}/", directory.path().display())));
    settle(&mut window);
    window.get_by_label("Show this folder").click_accesskit();
    until(&mut window, "a message", |window| says(window, "no report in"));
}
