//! Tests of searches for better specs in the window, with the real program as the child: started,
//! monitored, continued and opened again.

use crate::common::{self, tilescope};
use crate::gui_support::{
    Window, assert_says, click, is_compared, opened_window, painted, press, says, settle,
    simulator, until, window_of,
};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Vec2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use std::path::Path;
use tilescope_gui::OpenReport;
use tilescope_gui::app::TilescopeApp;

const SIZE: Vec2 = vec2(1280.0, 1900.0);
const SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);

/// A window on a report of a small product, with its search; the directory must outlive it.
fn window() -> (Window, tempfile::TempDir) {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let spec = common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let mut window = opened_window(opened, "summary", SIZE);
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
    press(&mut window, SHIFT, Key::T);
    assert!(says(&window, "Search from the spec of"));
    (window, directory)
}

/// Replaces the text of a box.
fn write(window: &mut Window, name: &str, text: &str) {
    window.get_by_label(name).focus();
    settle(window);
    press(window, Modifiers::COMMAND, Key::A);
    window.event(egui::Event::Text(text.to_owned()));
    settle(window);
}

/// Starts a sweep over every combination of values.
fn sweep(window: &mut Window, keys: &str) {
    click(window, Role::Tab, "Every combination");
    write(window, "Keys and values", keys);
    window.get_by_label("Start search").click_accesskit();
}

fn ended(window: &mut Window) {
    // The press takes effect in the next frame.
    window.run_steps(3);
    until(window, "the search ended", |window| says(window, "Start search"));
}

/// Selects a point by its row in the table.
fn choose(window: &mut Window, words: &str) {
    let rows = window.query_all_by_role(Role::Row);
    let is_it = |node: &egui_kittest::Node<'_>| {
        node.accesskit_node().label().is_some_and(|label| label.contains(words))
    };
    rows.into_iter().find(is_it).expect("a row").click_accesskit();
    settle(window);
}

fn spec(window: &Window) -> String {
    window.state().session().what_if().expect("open").text().to_owned()
}

#[test]
fn combinations_are_drawn_listed_and_applied() {
    let (mut window, directory) = window();
    let words = "model.m=64,128\nmodel.k=64,128\nmodel.n=64,4194304";
    sweep(&mut window, words);
    ended(&mut window);
    assert_says(
        &window,
        &[
            "Time per sample over model.m",
            "Time per sample over memory",
            "Keys beside time per sample, memory and IPUs",
            "No point is better than these in time, memory and IPUs at the same time:",
            "do not fit in memory (dashed): 4",
            "Finished results are saved in",
            "8 rows",
            "Select a point in a plot or in the table.",
        ],
    );
    choose(&mut window, "k 64, m 64, n 64");
    assert!(says(&window, "k 64, m 64, n 64: "), "the point is said");
    choose(&mut window, "n 4194304");
    window.get_by_label("Try in What if").click_accesskit();
    settle(&mut window);
    assert!(spec(&window).contains("n = 4194304") && !says(&window, "Start search"));
    // The results are there again, with the spec that they belong to.
    press(&mut window, SHIFT, Key::T);
    assert!(says(&window, "8 rows") && says(&window, "The spec in What if has changed since"));
    choose(&mut window, "k 64, m 128, n 64");
    // The panel has a button of that name too.
    window
        .query_all_by_label("Simulate and compare")
        .last()
        .expect("in the dialog")
        .click_accesskit();
    until(&mut window, "compared", is_compared);
    assert!(spec(&window).contains("n = 64") && says(&window, "variant 1"));
    // The command line reads the same file.
    let kept = std::fs::read_dir(directory.path().join("searches")).expect("a directory");
    let mut files = kept.map(|entry| entry.expect("an entry").path());
    let file = files.find(|path| path.extension().is_some_and(|end| end == "db"));
    let file = file.expect("results").display().to_string();
    let merged = tilescope(&["sweep", "--merge", &file, "--format", "csv"]);
    assert_eq!(common::stdout(&merged).lines().count(), 9);
}

#[test]
fn a_guided_search_shows_its_path() {
    let (mut window, _directory) = window();
    write(&mut window, "Budget", "12");
    window.get_by_label("Start search").focus();
    settle(&mut window);
    // The keyboard alone is enough.
    window.key_press(Key::Enter);
    ended(&mut window);
    assert_says(&window, &["Time per sample", "x: tested, no improvement"]);
    choose(&mut window, "No gain after");
    window.get_by_label("Simulate and open").click_accesskit();
    until(&mut window, "opened", |window| window.state().session().tab_titles().len() == 2);
    assert_eq!(window.state().session().messages(), []);
}

#[test]
fn invalid_input_is_reported_with_its_position() {
    let (mut window, _directory) = window();
    click(&mut window, Role::Tab, "Every combination");
    let start = window.get_by_label("Start search");
    assert!(start.accesskit_node().is_disabled(), "nothing varies yet");
    for (keys, said) in [
        ("model.mm=4", "  model.mm=4\n  ^^^^^^^^"),
        ("model.m=8..4", "a range must ascend"),
        ("--results", "expected KEY=VALUES"),
        ("model.m=4\nmodel.m=8", "model.m varies twice"),
    ] {
        sweep(&mut window, keys);
        ended(&mut window);
        assert!(says(&window, said), "{keys}: {:?}", painted(&window));
    }
    write(&mut window, "Conditions", "memery < 1");
    sweep(&mut window, "model.m=64");
    ended(&mut window);
    assert!(says(&window, "did you mean memory?"));
    write(&mut window, "Conditions", "memory < 1");
    sweep(&mut window, "model.m=64");
    ended(&mut window);
    assert!(says(&window, "No point meets the conditions."));
    click(&mut window, Role::Tab, "Guided search");
    write(&mut window, "Budget", "soon");
    window.get_by_label("Start search").click_accesskit();
    ended(&mut window);
    assert!(says(&window, "invalid value 'soon'"));
}

#[test]
fn a_search_continues_hidden_is_stopped_and_restarted() {
    let (mut window, _directory) = window();
    sweep(&mut window, "model.m=64..127");
    until(&mut window, "points come", |window| says(window, " rows"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(!says(&window, "Keys and values"));
    if says(&window, "Show search") {
        window.get_by_label("Show search").click_accesskit();
        settle(&mut window);
        if says(&window, "Stop search") {
            window.get_by_label("Stop search").click_accesskit();
            settle(&mut window);
            assert!(says(&window, "Start again to continue from the finished results."));
        }
    } else {
        press(&mut window, SHIFT, Key::T);
    }
    window.get_by_label("Start search").click_accesskit();
    ended(&mut window);
    assert!(says(&window, "64 rows"), "{:?}", painted(&window));
}

#[test]
fn files_of_guided_searches_show_their_path() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("tune.db");
    let file_name = file.to_str().expect("UTF-8");
    let output =
        tilescope(&["tune", "prefetch", "--budget", "12", "--json", "--results", file_name]);
    assert!(output.status.success(), "{}", common::stderr(&output));
    let found: serde_json::Value = serde_json::from_str(&common::stdout(&output)).expect("JSON");
    let steps = found["path"].as_array().expect("steps");
    let ends = found["dead_ends"].as_array().expect("dead ends");
    assert!(!steps.is_empty() && !ends.is_empty(), "{found}");
    simulator();
    let app = TilescopeApp::detached(&egui::Context::default(), None);
    let mut window = window_of(app, SIZE, 1.0);
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
    let context = window.ctx.clone();
    window.state_mut().open_at(&context, Some(file.as_path()), None, None);
    settle(&mut window);
    until(&mut window, "read", |window| !says(window, "Reading results…"));
    assert!(says(&window, "Results in tune.db") && says(&window, "x: tested, no improvement"));
    assert!(says(&window, &format!("{} rows", 1 + steps.len() + ends.len())));
    let reason = steps[0]["reasons"][0]["sentence"].as_str().expect("a reason");
    let compare = steps[0]["compare"].as_str().expect("a command");
    let begin = found["simulate"].as_str().expect("a command");
    for words in [reason, compare, begin] {
        assert!(says(&window, words), "{words}: {:?}", painted(&window));
    }
    choose(&mut window, "No gain after");
    window.get_by_label("Simulate and open").click_accesskit();
    until(&mut window, "opened", |window| window.state().session().page().is_some());
    assert_eq!(window.state().session().messages(), []);
}

#[test]
fn files_of_results_open_without_a_report() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("points.db");
    let vary = ["--vary", "model.batch_size=4,8", "--vary", "options.device_iterations=1,2"];
    let results = ["--results", file.to_str().expect("UTF-8")];
    let output = tilescope(&[&["sweep", "dense_layer"], &vary[..], &results[..]].concat());
    assert!(output.status.success());
    simulator();
    let app = TilescopeApp::detached(&egui::Context::default(), None);
    let mut window = window_of(app, SIZE, 1.0);
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
    let open = |window: &mut Window, path: &Path| {
        let context = window.ctx.clone();
        window.state_mut().open_at(&context, Some(path), None, None);
        settle(window);
        until(window, "read", |window| !says(window, "Reading results…"));
    };
    open(&mut window, &file);
    assert!(says(&window, "Results in points.db") && says(&window, "4 rows"));
    assert!(!says(&window, "Start search") && !says(&window, "Try in What if"));
    choose(&mut window, "batch_size 8, device_iterations 1");
    window.get_by_label("Simulate and open").click_accesskit();
    until(&mut window, "opened", |window| window.state().session().page().is_some());
    // An invalid file shows an error.
    let other = directory.path().join("other.db");
    std::fs::write(&other, "no results").expect("writes");
    open(&mut window, &other);
    assert!(says(&window, "is not a results file"), "{:?}", painted(&window));
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(!says(&window, "Results in"));
}
