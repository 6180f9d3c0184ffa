//! Tests of changing the spec of a report and simulating it again, with the real program as the
//! child.

use crate::common;
use crate::gui_support::{
    Variant, Window, assert_says, click_label, is_compared, opened_window, press, says, settle,
    simulator, type_text, until,
};
use crate::report_support::stripped::write_stripped;
use egui::accesskit::Role;
use egui::{Key, Modifiers, Vec2, vec2};
use egui_kittest::kittest::Queryable;
use tilescope_gui::OpenReport;

const SIZE: Vec2 = vec2(1400.0, 900.0);

/// A window on a small simulated report with its spec beside it; the directory must outlive it.
fn window() -> (Window, tempfile::TempDir) {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let spec = common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let mut window = opened_window(opened, "summary", SIZE);
    keep_variants(&mut window, &directory);
    press(&mut window, Modifiers::COMMAND, Key::T);
    (window, directory)
}

/// Stores variants beside the report; a user's session stores them in the user's directory.
fn keep_variants(window: &mut Window, directory: &tempfile::TempDir) {
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
}

fn set_text(window: &mut Window, change: impl Fn(&str) -> String) {
    let what_if = window.state_mut().session_mut().what_if_mut().expect("open");
    let text = change(what_if.text());
    what_if.set_text(text);
    settle(window);
}

#[test]
fn a_changed_spec_is_simulated_and_compared() {
    let (mut window, _directory) = window();
    assert!(says(&window, "What if") && says(&window, "original"));
    set_text(&mut window, |text| text.replace("m = 64", "m = 128"));
    window.get_by_label("Simulate and compare").click();
    until(&mut window, "compared", is_compared);
    assert!(window.state().session().messages().is_empty());
    assert_says(&window, &["variant 1", "model.m = 128", "Tick variant 1", "Tick original"]);
    // Any two variants can be compared.
    click_label(&mut window, "Tick variant 1");
    click_label(&mut window, "Tick original");
    window.get_by_label("Compare ticked").click();
    until(&mut window, "the other way round", |window| {
        let page = window.state().session().page().expect("shown");
        page.opened().path.ends_with("variant 1")
    });
}

/// Simulates the first variant of the report in a directory.
fn try_one(window: &mut Window) {
    set_text(window, |text| text.replace("m = 64", "m = 128"));
    window.get_by_label("Simulate and compare").click();
    until(window, "compared", is_compared);
}

#[test]
fn variants_persist_when_the_report_is_reopened() {
    let (mut first, directory) = window();
    try_one(&mut first);
    let report = {
        let page = first.state().session().page().expect("shown");
        page.compared().expect("compared").target.path.clone()
    };
    drop(first);
    let open = || {
        let opened = OpenReport::read(directory.path()).expect("opens");
        let mut window = opened_window(opened, "summary", SIZE);
        keep_variants(&mut window, &directory);
        press(&mut window, Modifiers::COMMAND, Key::T);
        window
    };
    let mut again = open();
    assert_says(&again, &["variant 1", "model.m = 128"]);
    // Its spec is edited and its report compared, as if it had never been closed.
    click_label(&mut again, "variant 1");
    let text = again.state().session().what_if().expect("open").text().to_owned();
    assert!(text.contains("m = 128"), "{text}");
    for words in ["Tick original", "Tick variant 1", "Compare ticked"] {
        click_label(&mut again, words);
    }
    until(&mut again, "compared", is_compared);
    assert_eq!(again.state().session().messages(), []);
    drop(again);
    // A missing report is reported; its spec is still there.
    std::fs::remove_dir_all(&report).expect("removed");
    let mut third = open();
    assert!(says(&third, "variant 1") && says(&third, "gone"));
    click_label(&mut third, "Delete variant 1");
    assert!(!says(&third, "variant 1"));
    drop(third);
    assert!(!says(&open(), "variant 1"), "what was forgotten stays so");
}

#[test]
fn what_if_starts_from_a_measurement() {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let changes = ["model.m=64", "model.k=64", "model.n=64"];
    let spec = common::spec("matmul_chain", &changes);
    let simulated = directory.path().join("simulated");
    common::report_file(&spec, &simulated);
    let measured = directory.path().join("measured.pop");
    write_stripped(&simulated.join("profile.pop"), &measured, 0.0);
    let ran = directory.path().join("ran.toml");
    std::fs::write(&ran, OpenReport::read(&simulated).unwrap().report.spec().unwrap()).unwrap();
    let open = || {
        let opened = OpenReport::read(&measured).expect("opens");
        let mut window = opened_window(opened, "summary", SIZE);
        keep_variants(&mut window, &directory);
        press(&mut window, Modifiers::COMMAND, Key::T);
        window
    };
    let mut window = open();
    assert!(says(&window, "Name the spec of the program"));
    let name = |window: &mut Window, name: &str| {
        click_label(window, "Spec");
        window.key_press_modifiers(Modifiers::COMMAND, Key::A);
        type_text(window, "Spec", name);
        click_label(window, "Take");
    };
    name(&mut window, "matmul_chian");
    until(&mut window, "refused", |window| says(window, "did you mean matmul_chain?"));
    name(&mut window, &ran.to_string_lossy());
    until(&mut window, "taken", |window| says(window, "Predict the measured run"));

    // Twice the rows take more cycles, and the panel shows the basis of the figure.
    set_text(&mut window, |text| text.replace("m = 64", "m = 128"));
    window.get_by_label("Predict the measured run").click();
    until(&mut window, "predicted", |window| says(window, "cycles of all steps on all IPUs (+"));
    assert!(says(&window, "are measured and scaled by the simulation"));

    // The spec is known when the report is opened again, until the user names another one.
    drop(window);
    let mut again = open();
    assert!(says(&again, "Predict the measured run"));
    click_label(&mut again, "Another spec…");
    assert!(says(&again, "Name the spec of the program"));
}

#[test]
fn other_replicas_are_tried_from_the_exchange_code() {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let mut window = opened_window(opened, "exchange-code", SIZE);
    click_label(&mut window, "Try 4 replicas…");
    let session = window.state().session();
    let text = session.what_if().expect("open").text();
    assert!(text.contains("replication_factor = 4"), "{text}");
    assert!(says(&window, "Simulate and compare"));
}

#[test]
fn invalid_specs_are_rejected_with_their_line() {
    let (mut window, _directory) = window();
    for nonsense in ["m = \"seven\"", "m = 7\nmm = 8", "m = = ="] {
        set_text(&mut window, |text| {
            let lines = text.lines().filter(|line| !line.starts_with('m'));
            let kept: Vec<&str> = lines.collect();
            kept.join("\n").replace("[model]", &format!("[model]\n{nonsense}"))
        });
        assert!(says(&window, "Line "), "{nonsense}");
        click_label(&mut window, "Simulate and compare");
        assert!(window.state().session().simulation().is_none(), "{nonsense}");
        click_label(&mut window, "Reset");
        assert!(!says(&window, "Line "), "{nonsense}");
    }
    let page = window.state().session().page().expect("shown");
    assert!(page.compared().is_none());
}

#[test]
fn a_child_that_is_stopped_loses_nothing() {
    let (mut window, _directory) = window();
    set_text(&mut window, |text| text.replace("m = 64", "m = 1500"));
    window.get_by_label("Simulate and compare").click();
    window.step();
    window.step();
    if let Some(simulation) = window.state().session().simulation() {
        simulation.cancel();
    }
    until(&mut window, "stopped", |window| window.state().session().simulation().is_none());
    let session = window.state().session();
    assert!(session.page().is_some_and(|page| page.compared().is_none()));
    assert!(session.what_if().is_some_and(|what_if| what_if.text().contains("m = 1500")));
    assert!(!says(&window, "Tick variant 1"));
}

#[test]
fn a_report_without_a_spec_is_explained() {
    let mut window = opened_window(Variant::named("foreign").opened(), "summary", SIZE);
    press(&mut window, Modifiers::COMMAND, Key::T);
    assert!(says(&window, "records no spec. Name the spec of the program"));
    assert!(!says(&window, "Simulate and compare"));
}

/// The bars of other machines are rows for the keyboard and for screen readers. A click on one
/// applies its change to the spec.
#[test]
fn other_machines_are_tried_and_taken() {
    let (mut window, _directory) = window();
    window.get_by_label("Try other machines").click();
    until(&mut window, "tried", |window| says(window, "exchange x2: "));
    assert_says(
        &window,
        &["clock x2: ", "host handshake /2: ", "no sync: ", "4 B/cycle to 8 B/cycle"],
    );
    // Operations follow, with the factor from which they do not matter.
    assert!(says(&window, "Operations 2 times as fast") && says(&window, "on the path"));
    let row = || window.query_all_by_label_contains("exchange x2: ").next().expect("a row");
    row().focus();
    settle(&mut window);
    press(&mut window, Modifiers::NONE, Key::ArrowDown);
    press(&mut window, Modifiers::NONE, Key::ArrowUp);
    press(&mut window, Modifiers::NONE, Key::Enter);
    let text = window.state().session().what_if().expect("open").text().to_owned();
    assert!(text.contains("machine.exchange_bytes_per_cycle = 8"), "{text}");
    assert!(says(&window, "The spec has changed since."));
    until(&mut window, "checked", |window| {
        window.state().session().what_if().is_some_and(|what_if| what_if.is_spec_valid())
    });
}

#[test]
fn trying_other_machines_is_cancelled_and_restarted() {
    let (mut window, _directory) = window();
    // A query about another spec replaces the running one: one stop ends both.
    for size in [1499, 1500] {
        set_text(&mut window, |text| {
            // Large enough to take a while.
            let large = text.replace("k = 64", "k = 3001").replace("n = 64", "n = 3001");
            large.replace("m = 64", "m = 1499").replace("m = 1499", &format!("m = {size}"))
        });
        window.get_by_label("Try other machines").click();
        window.step();
        window.step();
    }
    // It may be scrolled out of the reach of the mouse.
    window.get_by_label("Stop").click_accesskit();
    window.step();
    settle(&mut window);
    assert!(!says(&window, "Simulating other machines…") && !says(&window, "exchange x2: "));
    set_text(&mut window, |text| text.replace("m = 1500", "m = 64").replace(" = 3001", " = 64"));
    window.get_by_label("Try other machines").click();
    until(&mut window, "tried", |window| says(window, "exchange x2: "));
}

/// The verdict and the main button stay in sight of a small window, whatever is scrolled.
#[test]
fn the_verdict_stays_in_sight() {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let size = vec2(1280.0, 800.0);
    let mut window = opened_window(opened, "summary", size);
    keep_variants(&mut window, &directory);
    press(&mut window, Modifiers::COMMAND, Key::T);
    set_text(&mut window, |text| format!("{text}{}", "# a long spec\n".repeat(60)));
    for words in ["Fits: the fullest tile needs", "Predicted: ", "Simulate and compare"] {
        let rect = window.query_all_by_label_contains(words).next().expect(words).rect();
        assert!(rect.bottom() <= size.y && rect.left() >= size.x / 2.0, "{words}: {rect:?}");
    }
    // Controls come first, and the text is folded below them.
    assert!(window.query_by_role(Role::MultilineTextInput).is_none());
    let text = window.get_by_label("Text of the spec").rect();
    for (role, name) in [
        (Role::Slider, "Micro-batch"),
        (Role::ComboBox, "Precision"),
        (Role::ComboBox, "Recomputation"),
        (Role::ComboBox, "Chip or system"),
    ] {
        let rect = window.get_by_role_and_label(role, name).rect();
        assert!(rect.bottom() < text.top(), "{name}: {rect:?} {text:?}");
    }
    // An error unfolds the text at its line.
    set_text(&mut window, |text| text.replace("batch_size = 40", "batch_size = \"many\""));
    until(&mut window, "refused", |window| says(window, "Line "));
    assert!(window.query_by_role(Role::MultilineTextInput).is_some());
}

/// The line of the spec that lists the stages.
fn stages(window: &Window) -> String {
    let what_if = window.state().session().what_if().expect("open");
    let mut lines = what_if.text().lines();
    lines.find(|line| line.starts_with("stages")).unwrap_or_default().to_owned()
}

#[test]
fn a_block_moves_to_a_neighbouring_stage_by_its_menu_and_by_dragging() {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let two = "options.stages=[[\"B1\", \"B2\", \"B3\"], [\"B4\"]]";
    let changes = ["options.device_iterations=1", "target.ipus=2", two];
    common::report_file(&common::spec("mnist_pipeline", &changes), directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let mut window = opened_window(opened, "summary", SIZE);
    keep_variants(&mut window, &directory);
    press(&mut window, Modifiers::COMMAND, Key::T);
    let block = |name: &str| format!("Block {name} of stage ");
    until(&mut window, "checked", |window| says(window, &block("B3")));
    // The only block of a stage stays.
    window.get_by_label_contains(&block("B4")).click();
    settle(&mut window);
    assert!(says(&window, "The only block of its stage"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    window.get_by_label_contains(&block("B3")).click();
    settle(&mut window);
    click_label(&mut window, "Move to stage 1");
    assert_eq!(stages(&window), r#"stages = [["B1", "B2"], ["B3", "B4"]]"#);
    let moved = "Block B3 of stage 1";
    until(&mut window, "checked again", |window| says(window, moved));
    // Dragged to the blocks of the stage before.
    let from = window.get_by_label(moved).rect().center();
    let to = window.get_by_label_contains(&block("B1")).rect().center();
    window.drag_at(from);
    window.step();
    window.hover_at(to);
    window.step();
    window.drop_at(to);
    settle(&mut window);
    assert_eq!(stages(&window), r#"stages = [["B1", "B2", "B3"], ["B4"]]"#);
}

/// Half of the IPUs have no stage: the verdict says so.
#[test]
fn idle_ipus_are_a_warning() {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let changes = ["options.device_iterations=1", "target.ipus=8"];
    common::report_file(&common::spec("mnist_pipeline", &changes), directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let mut window = opened_window(opened, "summary", SIZE);
    press(&mut window, Modifiers::COMMAND, Key::T);
    until(&mut window, "checked", |window| says(window, "4 of 8 IPUs have no stage"));
}

/// The model has four blocks: there are at most four stages.
#[test]
fn stages_are_no_more_than_blocks() {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let mut window = opened_window(opened, "summary", SIZE);
    press(&mut window, Modifiers::COMMAND, Key::T);
    until(&mut window, "checked", |window| says(window, "4 of 4"));
    let mut press_arrow = |key| {
        window.get_by_role_and_label(Role::Slider, "Stages").focus();
        window.run_steps(2);
        press(&mut window, Modifiers::NONE, key);
        window.state().session().what_if().expect("open").text().to_owned()
    };
    assert!(press_arrow(Key::ArrowRight).contains("ipus = 4"));
    assert!(press_arrow(Key::ArrowLeft).contains("ipus = 2"));
    assert!(press_arrow(Key::ArrowRight).contains("ipus = 4"));
    assert!(press_arrow(Key::ArrowRight).contains("ipus = 4"));
}
