//! Tests of ONNX files in the window: the dialog that simulates them, and What if on the result,
//! with the real program as the child.

use crate::common;
use crate::gui_support::{
    DIES, Variant, Window, assert_says, click, click_label, is_compared, opened_window, painted,
    press, says, settle, show_view, simulator, type_text, until, window, window_of,
};
use egui::accesskit::Role;
use egui::{DroppedFile, Key, Modifiers, Vec2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilescope_gui::OpenReport;
use tilescope_gui::app::TilescopeApp;
use tilescope_report::Report;
use tilescope_test_tiers::up_to;

const SIZE: Vec2 = vec2(1280.0, 860.0);

/// One of the small files of the repository.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx").join(name)
}

/// Moves a file, as a user does in a file manager.
fn move_file(from: &Path, to: &Path) {
    std::fs::copy(from, to).unwrap();
    std::fs::remove_file(from).unwrap();
}

/// A window on the home screen that stores simulated reports in a directory.
fn home(size: Vec2) -> (Window, tempfile::TempDir) {
    simulator();
    let directory = tempfile::tempdir().unwrap();
    let mut window = window_of(TilescopeApp::detached(&egui::Context::default(), None), size, 1.0);
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
    (window, directory)
}

/// The dialog of a file, once everything about it is known.
fn dialog(path: &Path) -> (Window, tempfile::TempDir) {
    let (mut window, directory) = home(SIZE);
    open(&mut window, path);
    (window, directory)
}

fn open(window: &mut Window, path: &Path) {
    let context = window.ctx.clone();
    window.state_mut().open_at(&context, Some(path), None, None);
    settle(window);
}

fn spec(window: &Window) -> String {
    window.state().session().model_spec().expect("a dialog")
}

fn set_spec(window: &mut Window, change: impl Fn(&str) -> String) {
    let text = change(&spec(window));
    window.state_mut().session_mut().set_model_spec(text);
    settle(window);
}

/// Simulates, and waits for the report.
fn simulate(window: &mut Window) {
    window.get_by_role_and_label(Role::Button, "Simulate").click();
    arrive(window);
}

fn arrive(window: &mut Window) {
    until(window, "the report is open", |window| window.state().session().page().is_some());
}

/// The spec of the visible report.
fn spec_of_report(window: &Window) -> String {
    let page = window.state().session().page().expect("a report");
    page.opened().report.spec().expect("a spec").to_owned()
}

/// Selects an entry of a choice.
fn choose(window: &mut Window, choice: &str, entry: &str) {
    click(window, Role::ComboBox, choice);
    window.query_all_by_label(entry).last().expect("an entry").click();
    settle(window);
}

/// Types another number into a box.
fn set_number(window: &mut Window, name: &str, number: &str) {
    window.get_by_role_and_label(Role::SpinButton, name).focus();
    window.run_steps(2);
    window.key_press_modifiers(Modifiers::COMMAND, Key::A);
    window.step();
    window.event(egui::Event::Text(number.to_owned()));
    window.step();
    press(window, Modifiers::NONE, Key::Enter);
}

/// A copy of a file with a word replaced by another one of the same length.
fn with_word(name: &str, from: &[u8], to: &[u8]) -> (tempfile::TempDir, PathBuf) {
    assert_eq!(from.len(), to.len());
    let mut bytes = std::fs::read(file(name)).unwrap();
    let mut found = 0;
    for at in 0..=bytes.len() - from.len() {
        if &bytes[at..at + from.len()] == from {
            bytes[at..at + from.len()].copy_from_slice(to);
            found += 1;
        }
    }
    assert!(found > 0, "{name} has no such word");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (directory, path)
}

#[test]
fn a_file_is_described_checked_simulated_and_opened() {
    let (mut window, _directory) = dialog(&file("guide_mnist.onnx"));
    assert_says(
        &window,
        &[
            "Simulate guide_mnist",
            "Opset 11, written by pytorch",
            "90,026 parameters",
            "21,939,200 multiply-accumulates",
            "fixed by the file",
            "Fits: the fullest tile needs",
        ],
    );
    window.check_accessibility();
    simulate(&mut window);
    let session = window.state().session();
    assert!(session.model_spec().is_none(), "the dialog is gone");
    assert_eq!(session.messages(), []);
    assert_eq!(session.tab_titles(), ["guide_mnist"]);
    // The spec finds its model from any directory.
    let text = spec_of_report(&window);
    assert!(text.contains(&*file("guide_mnist.onnx").to_string_lossy()), "{text}");
    let recent = &window.state().session().prefs().recent;
    assert!(recent.iter().any(|recent| recent.path == file("guide_mnist.onnx")));
    // A second simulation makes another report, and What if knows the file.
    open(&mut window, &file("guide_mnist.onnx"));
    window.get_by_role_and_label(Role::Button, "Simulate").click_accesskit();
    until(&mut window, "a second report", |window| {
        window.state().session().tab_titles().len() == 2
    });
    press(&mut window, Modifiers::COMMAND, Key::T);
    assert!(says(&window, "guide_mnist.onnx") && says(&window, "Other file…"));
}

#[test]
fn the_keyboard_is_enough() {
    let (mut window, directory) = home(SIZE);
    let path = file("mnist_dynamic_batch.onnx");
    press(&mut window, Modifiers::COMMAND | Modifiers::SHIFT, Key::O);
    type_text(&mut window, "Path of the model to simulate", &path.to_string_lossy());
    for words in ["ONNX, opset 11", "10 nodes, 1 input"] {
        assert!(says(&window, words), "the preview says {words}");
    }
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert!(says(&window, "the batch: first dimension of all inputs"));
    let has_focus = |window: &Window, role, name: &str| {
        let node = window.query_by_role_and_label(role, name);
        node.is_some_and(|node| node.accesskit_node().is_focused())
    };
    assert!(has_focus(&window, Role::Button, "Simulate"), "Enter simulates");
    // Tab reaches every control.
    let controls = ["Task", "Precision", "System"];
    let mut reached = Vec::new();
    for _ in 0..40 {
        if controls.iter().all(|name| reached.iter().any(|label: &String| label == name)) {
            break;
        }
        press(&mut window, Modifiers::NONE, Key::Tab);
        let of_roles = [Role::ComboBox, Role::SpinButton];
        let nodes = window.root().children_recursive();
        let focused = nodes.filter(|node| {
            let node = node.accesskit_node();
            node.is_focused() && of_roles.contains(&node.role())
        });
        reached.extend(focused.filter_map(|node| node.accesskit_node().label()));
    }
    for name in controls {
        assert!(reached.iter().any(|label| label == name), "{name}: {reached:?}");
    }
    set_number(&mut window, "Size of batch", "8");
    assert!(spec(&window).contains("batch_size = 8"), "{}", spec(&window));
    // A number out of range is clamped.
    set_number(&mut window, "Size of batch", "99999999999");
    assert!(spec(&window).contains("batch_size = 16777216"), "{}", spec(&window));
    set_number(&mut window, "Size of batch", "8");
    press(&mut window, Modifiers::COMMAND, Key::Enter);
    arrive(&mut window);
    assert!(spec_of_report(&window).contains("batch_size = 8"));
    // The choices are kept when the file is opened again; Escape closes the dialog.
    open(&mut window, &path);
    assert!(spec(&window).contains("batch_size = 8"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(window.state().session().model_spec().is_none());
    let kept = directory.path().join("models/mnist_dynamic_batch");
    assert!(kept.join("profile.pop").is_file() && kept.with_extension("toml").is_file());
}

#[test]
fn unreadable_files_show_an_error_and_offer_another() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let whole = std::fs::read(file("guide_mnist.onnx")).unwrap();
    std::fs::write(path("empty.onnx"), "").unwrap();
    std::fs::write(path("half.onnx"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(path("text.onnx"), "[model]\nname = \"mlp\"\n").unwrap();
    // Nested groups, deeper than any model.
    std::fs::write(path("nested.onnx"), [0x3a, 0x7f].repeat(5_000)).unwrap();
    let (_old, old) =
        with_word("guide_mnist.onnx", &[0x42, 0x02, 0x10, 0x0b], &[0x42, 0x02, 0x10, 99]);
    let mut files = vec![path("missing.onnx"), old];
    files.extend(["empty", "half", "text", "nested"].map(|name| path(&format!("{name}.onnx"))));
    let (mut window, _kept) = home(SIZE);
    for broken in files {
        open(&mut window, &broken);
        assert!(
            says(&window, "This file cannot be simulated"),
            "{}: {:?}",
            broken.display(),
            painted(&window)
        );
        assert!(window.query_by_role_and_label(Role::Button, "Simulate").is_none());
        click(&mut window, Role::Button, "Other file…");
        assert!(says(&window, "Path of the model to simulate"), "{}", broken.display());
        press(&mut window, Modifiers::NONE, Key::Escape);
        assert!(window.state().session().model_spec().is_none());
    }
    assert!(window.state().session().prefs().recent.is_empty(), "what is no model is not recent");
    // Both sides of a comparison are reports.
    let (model, report) = (file("guide_mnist.onnx"), Path::new("sample_reports/too_large"));
    window.state_mut().compare_at(report, &model);
    settle(&mut window);
    let said = &window.state().session().messages()[0].text;
    assert!(said.contains("simulate it first"), "{said}");
}

#[test]
fn operators_that_are_not_modelled_are_listed_and_allowed() {
    let (_directory, path) = with_word("mnist_dynamo.onnx", b"Gemm", b"Ghem");
    let (mut window, _kept) = dialog(&path);
    assert_says(
        &window,
        &["1 operator is not modelled", "Ghem", "model.allow_unknown = true estimates each"],
    );
    let simulate_button = window.get_by_role_and_label(Role::Button, "Simulate");
    assert!(simulate_button.accesskit_node().is_disabled());
    click_label(&mut window, "Estimate each as one pass over its operands");
    assert!(spec(&window).contains("allow_unknown = true"));
    assert!(says(&window, "Fits: the fullest tile needs"));
    simulate(&mut window);
}

#[test]
fn training_needs_a_loss() {
    let (mut window, _directory) = dialog(&file("mnist_dynamic_batch.onnx"));
    assert!(window.query_by_role_and_label(Role::ComboBox, "Loss").is_none());
    choose(&mut window, "Task", "Training");
    assert!(says(&window, "model.loss: the file has no loss"));
    choose(&mut window, "Loss", "cross_entropy");
    choose(&mut window, "Optimiser", "adam");
    assert!(says(&window, "Fits: the fullest tile needs"));
    // A file that contains its loss is trained without further input.
    press(&mut window, Modifiers::NONE, Key::Escape);
    open(&mut window, &file("guide_mnist_loss.onnx"));
    assert!(says(&window, "Fits") && says(&window, "Accumulation"));
    simulate(&mut window);
    let report = window.state().session().page().unwrap().opened().report.clone();
    let operations = report.operations().unwrap();
    assert!(operations.iter().any(|operation| operation.name.contains("bwd")), "it is trained");
}

#[test]
fn stages_are_annotated_balanced_or_listed() {
    let (mut window, _directory) = dialog(&file("guide_mnist_4stages.onnx"));
    assert!(spec(&window).contains("ipus = 4") && says(&window, "0: stage0"));
    choose(&mut window, "Stages", "Listed below");
    assert!(spec(&window).contains("[[\"stage0\"], [\"stage1\"], [\"stage2\"], [\"stage3\"]]"));
    click(&mut window, Role::Button, "Merge stage 3 with the previous one");
    assert!(spec(&window).contains("[\"stage2\", \"stage3\"]]"), "{}", spec(&window));
    assert!(spec(&window).contains("ipus = 3") && says(&window, "Fits"));
    click(&mut window, Role::Button, "Another stage");
    assert!(spec(&window).contains("ipus = 4"));
    // Without annotations, on fewer IPUs than they use.
    choose(&mut window, "Stages", "Balanced: the fastest split tested");
    set_number(&mut window, "IPUs of a replica", "2");
    let text = spec(&window);
    assert!(text.contains("blocks = \"nodes\"") && text.contains("stages = []"), "{text}");
    assert!(says(&window, "Fits"), "{text}");
    choose(&mut window, "Stages", "As annotated in the file");
    assert!(spec(&window).contains("ipus = 4") && says(&window, "Fits"));
    simulate(&mut window);
    let report = &window.state().session().page().unwrap().opened().report;
    assert_eq!(report.target().unwrap().num_ipus, 4);
}

/// Stages are known only once all dimensions have a valid size.
#[test]
fn annotations_apply_with_open_dimensions() {
    // The number of image channels is open, and the guess does not fit the network.
    let (known, open) = (b"\x0a\x02\x08\x01\x0a\x02\x08\x1c", b"\x0a\x02\x12\x00\x0a\x02\x08\x1c");
    let (_directory, path) = with_word("guide_mnist_4stages.onnx", known, open);
    let (mut window, _kept) = dialog(&path);
    let simulate_button = window.get_by_role_and_label(Role::Button, "Simulate");
    assert!(simulate_button.accesskit_node().is_disabled());
    assert!(spec(&window).contains("dim.\"input.1.1\" = 3"), "{}", spec(&window));
    set_number(&mut window, "Size of input.1.1", "1");
    assert!(spec(&window).contains("ipus = 4"), "{}", spec(&window));
    assert!(says(&window, "0: stage0") && says(&window, "Fits: the fullest tile needs"));
    // Training fills the same pipeline with more micro-batches.
    choose(&mut window, "Task", "Training");
    choose(&mut window, "Loss", "cross_entropy");
    assert!(spec(&window).contains("gradient_accumulation = 7"), "{}", spec(&window));
    assert!(says(&window, "Fits: the fullest tile needs"));
    // Inference accumulates nothing.
    choose(&mut window, "Task", "Inference");
    assert!(!spec(&window).contains("gradient_accumulation"), "{}", spec(&window));
    assert!(says(&window, "Fits: the fullest tile needs"));
}

/// Fields do not change the text that the user typed.
#[test]
fn the_check_judges_the_typed_text() {
    let (mut window, _kept) = dialog(&file("mnist_dynamic_batch.onnx"));
    set_spec(&mut window, |text| text.replace("ipus = 1", "ipus = 4096"));
    assert!(spec(&window).contains("ipus = 4096") && says(&window, "target.ipus: "));
    let simulate_button = window.get_by_role_and_label(Role::Button, "Simulate");
    assert!(simulate_button.accesskit_node().is_disabled());
    set_number(&mut window, "IPUs of a replica", "2");
    assert!(spec(&window).contains("ipus = 2") && says(&window, "Fits"), "{}", spec(&window));
}

#[test]
fn failures_and_cancellation_leave_the_dialog_unchanged() {
    let (mut window, _directory) = dialog(&file("transformer.onnx"));
    set_spec(&mut window, |text| format!("{text}# {DIES}\n"));
    window.get_by_role_and_label(Role::Button, "Simulate").click();
    until(&mut window, "it died", |window| says(window, "The simulation failed."));
    assert!(says(&window, "halfway there") && spec(&window).contains(DIES));
    assert_eq!(window.state().session().messages(), [], "the dialog says it");
    set_spec(&mut window, |text| text.replace(DIES, ""));
    window.get_by_role_and_label(Role::Button, "Simulate").click();
    window.step();
    window.step();
    if window.query_by_role_and_label(Role::Button, "Cancel").is_some() {
        window.get_by_role_and_label(Role::Button, "Cancel").click();
    }
    // It may have ended before it was stopped; then its report is being opened.
    until(&mut window, "stopped", |window| {
        let session = window.state().session();
        let has_ended = session.page().is_some() || session.model_spec().is_some();
        session.simulation().is_none() && has_ended
    });
    assert_eq!(window.state().session().messages(), []);
}

#[derive(Debug)]
struct Dropped(PathBuf);

impl DroppedFile for Dropped {
    fn path(&self) -> &Path {
        &self.0
    }

    fn bytes(&self) -> Result<Vec<u8>, String> {
        Err("nobody reads it here".to_owned())
    }
}

#[test]
fn reports_and_models_are_dropped_together() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        (Variant::named("small").write)(&directory.path().join(name));
    }
    let (mut window, _kept) = home(SIZE);
    let paths = [
        directory.path().join("one"),
        file("guide_mnist.onnx"),
        directory.path().join("two"),
        file("mnist_dynamo.onnx"),
    ];
    window.input_mut().dropped_files =
        paths.iter().map(|path| Arc::new(Dropped(path.clone())) as _).collect();
    window.step();
    window.input_mut().dropped_files.clear();
    until(&mut window, "both reports are open", |window| {
        window.state().session().tab_titles() == ["one", "two"]
    });
    assert!(says(&window, "Simulate guide_mnist") && says(&window, "1 more model waits"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(says(&window, "Simulate mnist_dynamo") && !says(&window, "more model waits"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(window.state().session().model_spec().is_none());
    // A single model.
    window.input_mut().dropped_files = vec![Arc::new(Dropped(file("guide_mnist.onnx")))];
    window.step();
    window.input_mut().dropped_files.clear();
    settle(&mut window);
    assert!(says(&window, "Simulate guide_mnist"));
}

/// A spec is opened by its path or dropped, changed in the dialog, and simulated.
#[test]
fn a_spec_file_is_opened_changed_and_simulated() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("my run.toml");
    let specs = common::tilescope(&["specs", "matmul_chain"]);
    std::fs::write(&path, &specs.stdout).unwrap();
    let (mut window, _kept) = dialog(&path);
    until(&mut window, "checked", |window| says(window, "Fits: the fullest tile needs"));
    assert_says(&window, &["Simulate my run", "Predicted: ", "Micro-batch"]);
    set_spec(&mut window, |text| text.replace("p = 200", "p = 264"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(window.state().session().model_spec().is_none());
    // Dropped again, it has the changes.
    window.input_mut().dropped_files = vec![Arc::new(Dropped(path.clone()))];
    window.step();
    window.input_mut().dropped_files.clear();
    settle(&mut window);
    assert!(spec(&window).contains("p = 264"));
    simulate(&mut window);
    assert!(spec_of_report(&window).contains("p = 264"));
    assert_eq!(window.state().session().messages(), []);
}

#[test]
fn a_spec_file_that_cannot_be_read_is_reported() {
    let (window, directory) = dialog(Path::new("/no/such/spec.toml"));
    assert!(says(&window, "This file cannot be simulated"));
    drop((window, directory));
}

#[test]
fn the_spec_is_saved_beside_the_model_and_found_from_there() {
    let directory = tempfile::tempdir().unwrap();
    let model = directory.path().join("my net.onnx");
    std::fs::copy(file("guide_mnist.onnx"), &model).unwrap();
    let (mut window, _kept) = dialog(&model);
    click(&mut window, Role::Button, "Save spec…");
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert!(says(&window, "Saved "));
    let saved = directory.path().join("my net.toml");
    let text = std::fs::read_to_string(&saved).unwrap();
    assert!(text.contains("onnx = \"my net.onnx\""), "{text}");
    // Both are moved, and still belong together.
    let elsewhere = directory.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    for name in ["my net.onnx", "my net.toml"] {
        move_file(&directory.path().join(name), &elsewhere.join(name));
    }
    let moved = elsewhere.join("my net.toml");
    let check = common::tilescope(&["simulate", &moved.to_string_lossy(), "--check"]);
    assert!(check.status.success(), "{}", common::stderr(&check));
    // Enter does not replace an existing file.
    std::fs::write(&saved, "mine").unwrap();
    click(&mut window, Role::Button, "Save spec…");
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert_eq!(std::fs::read_to_string(&saved).unwrap(), "mine");
    click(&mut window, Role::Button, "Replace");
    assert_eq!(std::fs::read_to_string(&saved).unwrap(), text);
}

/// A report of a model in its own directory, in a window with What if beside it.
fn what_if(name: &str, overrides: &[&str]) -> (Window, tempfile::TempDir, PathBuf) {
    simulator();
    let directory = tempfile::tempdir().unwrap();
    let model = directory.path().join(name);
    std::fs::copy(file(name), &model).unwrap();
    let report = directory.path().join("report");
    common::report_file(&common::spec(&model.to_string_lossy(), overrides), &report);
    let mut window = opened_window(OpenReport::read(&report).unwrap(), "summary", SIZE);
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
    press(&mut window, Modifiers::COMMAND, Key::T);
    (window, directory, model)
}

fn simulate_variant(window: &mut Window) {
    window.get_by_label("Simulate and compare").click();
    until(window, "compared", is_compared);
}

#[test]
fn dimensions_are_changed_under_what_if_and_compared() {
    let (mut window, _directory, _model) = what_if("mnist_dynamic_batch.onnx", &[]);
    set_number(&mut window, "Size of batch", "16");
    simulate_variant(&mut window);
    assert!(says(&window, "model.batch_size = 16"), "it is in the list of variants");
    let page = window.state().session().page().unwrap();
    let target = &page.compared().unwrap().target;
    assert_eq!(target.report.spec().unwrap().matches("batch_size = 16").count(), 1);
    assert_eq!(window.state().session().messages(), []);
}

#[test]
fn stages_of_a_model_are_balanced_under_what_if() {
    let (mut window, _directory, _model) =
        what_if("guide_mnist_4stages.onnx", &["options.device_iterations=4"]);
    // The slider overrides the annotations, which use four IPUs.
    window.get_by_role_and_label(Role::Slider, "Stages").focus();
    window.run_steps(2);
    press(&mut window, Modifiers::NONE, Key::ArrowLeft);
    let text = window.state().session().what_if().unwrap().text().to_owned();
    assert!(text.contains("ipus = 2") && text.contains("balanced"), "{text}");
    assert!(says(&window, "Fits: the fullest tile needs"), "{text}");
    simulate_variant(&mut window);
    let page = window.state().session().page().unwrap();
    assert_eq!(page.compared().unwrap().target.target.num_ipus, 2);
}

#[test]
fn a_moved_model_is_reported_and_found_again() {
    let (window, directory, model) = what_if("mnist_dynamic_batch.onnx", &[]);
    assert!(says(&window, "Fits: the fullest tile needs"));
    let moved = directory.path().join("elsewhere.onnx");
    move_file(&model, &moved);
    // The panel is opened anew, as in another session.
    let opened = window.state().session().page().unwrap().opened().clone();
    let mut window = opened_window(opened, "summary", SIZE);
    window.state_mut().session_mut().keep_simulated_in(directory.path().to_owned());
    press(&mut window, Modifiers::COMMAND, Key::T);
    assert!(says(&window, "No such file"), "it is gone");
    click(&mut window, Role::Button, "Other file…");
    let label = "Path of the model of the spec";
    type_text(&mut window, label, &moved.to_string_lossy());
    press(&mut window, Modifiers::NONE, Key::Enter);
    assert!(says(&window, "Fits: the fullest tile needs"));
    // Another file is not a change of the file that the report was made from.
    let text = window.state().session().what_if().unwrap().text().to_owned();
    assert!(text.contains("elsewhere.onnx") && !text.contains("onnx_digest"), "{text}");
    simulate_variant(&mut window);
    // Back at its old path it is read again.
    move_file(&moved, &model);
    click_label(&mut window, "Reset");
    if let Some(again) = window.query_by_role_and_label(Role::Button, "Reload") {
        again.click();
    }
    settle(&mut window);
    assert!(says(&window, "Fits: the fullest tile needs"));
}

#[test]
fn a_changed_model_is_reported() {
    let (window, directory, model) = what_if("guide_mnist.onnx", &[]);
    let words = "The file has changed since the report was made.";
    assert!(!says(&window, words));
    drop(window);
    let listing = common::tilescope(&["onnx", &model.to_string_lossy(), "--json"]);
    let listing: serde_json::Value = serde_json::from_slice(&listing.stdout).unwrap();
    let report = directory.path().join("report");
    let record = |digest: &str| {
        let database = rusqlite::Connection::open(report.join("profile.pop")).unwrap();
        let json = serde_json::json!({ "path": "x.onnx", "digest": digest }).to_string();
        let sql = "insert or replace into meta values ('onnx', ?1)";
        database.execute(sql, [json]).unwrap();
        let mut window = opened_window(OpenReport::read(&report).unwrap(), "summary", SIZE);
        press(&mut window, Modifiers::COMMAND, Key::T);
        says(&window, words)
    };
    assert!(!record(listing["content_hash"].as_str().unwrap()), "it is the same");
    assert!(record("of another file"));
}

#[test]
fn a_relative_path_is_relative_to_the_model() {
    let (mut window, directory, model) = what_if("mnist_dynamic_batch.onnx", &[]);
    std::fs::copy(&model, directory.path().join("other.onnx")).unwrap();
    let panel = window.state_mut().session_mut().what_if_mut().unwrap();
    let text = panel.text().replace(&*model.to_string_lossy(), "other.onnx");
    panel.set_text(text);
    settle(&mut window);
    assert!(says(&window, "Fits: the fullest tile needs"));
    simulate_variant(&mut window);
    let page = window.state().session().page().unwrap();
    let text = page.compared().unwrap().target.report.spec().unwrap().to_owned();
    assert!(text.contains(&*directory.path().join("other.onnx").to_string_lossy()), "{text}");
}

#[test]
fn a_model_is_compared_with_a_built_in_one_in_every_view() {
    simulator();
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let model = file("guide_mnist.onnx");
    common::report_file(&common::spec(&model.to_string_lossy(), &[]), &place("imported"));
    let built_in = [
        "options.stages=[]",
        "target.ipus=1",
        "model.training=false",
        "options.gradient_accumulation=1",
    ];
    common::report_file(&common::spec("mnist_pipeline", &built_in), &place("built-in"));
    let mut window = opened_window(OpenReport::read(&place("built-in")).unwrap(), "summary", SIZE);
    window.state_mut().compare(OpenReport::read(&place("imported")).unwrap());
    for view in tilescope_gui::view_names() {
        show_view(&mut window, view);
        assert_eq!(window.state().session().messages(), [], "{view}");
    }
    assert!(Report::open(place("imported")).unwrap().spec().unwrap().contains("onnx = "));
}

/// The dialog is inside any window, and its buttons can be reached.
#[test]
fn the_dialog_fits_into_small_and_large_windows() {
    let sizes = [vec2(240.0, 180.0), vec2(480.0, 360.0), vec2(2560.0, 1440.0), vec2(900.0, 600.0)];
    for size in sizes.into_iter().take(up_to(2)) {
        for name in ["transformer.onnx", "guide_mnist_4stages.onnx"] {
            let (mut window, _directory) = home(size);
            open(&mut window, &file(name));
            let close = window.get_by_role_and_label(Role::Button, "Close the model").rect();
            let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, size);
            assert!(screen.contains_rect(close), "{size:?}: {close:?}");
            if size.y > 200.0 {
                let simulate = window.get_by_role_and_label(Role::Button, "Simulate").rect();
                assert!(screen.contains_rect(simulate), "{size:?}: {simulate:?}");
            }
        }
    }
}

/// The buttons stay visible, however long the error is.
#[test]
fn a_long_error_leaves_the_buttons_in_sight() {
    let (_unknown, unknown) = with_word("mnist_dynamo.onnx", b"Gemm", b"Ghem");
    for size in [vec2(1100.0, 760.0), vec2(480.0, 360.0)] {
        let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, size);
        let (mut window, _directory) = home(size);
        open(&mut window, &unknown);
        for problem in [None, Some("no regular expression ".repeat(200))] {
            if let Some(words) = problem {
                set_spec(&mut window, |text| {
                    text.replace("[model]", &format!("[model]\nfrozen = [\"({words}\"]"))
                });
            }
            for label in ["Simulate", "Save spec…", "Close"] {
                let button = window.get_by_role_and_label(Role::Button, label).rect();
                assert!(screen.contains_rect(button), "{size:?}: {label} {button:?}");
            }
        }
        // The dialog asks for the path of the spec there too.
        click(&mut window, Role::Button, "Save spec…");
        for label in ["Simulate", "Save", "Close"] {
            let button = window.get_by_role_and_label(Role::Button, label).rect();
            assert!(screen.contains_rect(button), "{size:?}: {label} {button:?}");
        }
    }
}

/// The home screen and the list offer models, and recent models cannot be compared.
#[test]
fn models_are_found_from_the_home_screen() {
    let (mut window, _directory) = home(vec2(1280.0, 1400.0));
    click(&mut window, Role::Button, "An ONNX file…");
    assert!(says(&window, "Path of the model to simulate"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    open(&mut window, &file("guide_mnist.onnx"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    let tick = window.get_by_role_and_label(Role::CheckBox, "Tick guide_mnist.onnx");
    assert!(tick.accesskit_node().is_disabled(), "there is nothing to compare yet");
    click(&mut window, Role::Button, "Open guide_mnist.onnx");
    assert!(says(&window, "Simulate guide_mnist"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    // A report is compared only with a report.
    let mut window = self::window(Variant::named("small"), "summary", SIZE);
    window.state_mut().session_mut().prefs_mut().remember(&file("guide_mnist.onnx"));
    for (key, offered) in [(Key::O, true), (Key::D, false)] {
        press(&mut window, Modifiers::COMMAND, key);
        let entry = window.query_by_role_and_label(Role::Button, "guide_mnist.onnx");
        assert_eq!(entry.is_some(), offered, "{key:?}");
        press(&mut window, Modifiers::NONE, Key::Escape);
    }
}

/// A directory belongs to a report or to none, whatever its name.
#[test]
fn a_directory_named_like_a_model_is_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let (report, empty) =
        (directory.path().join("report.onnx"), directory.path().join("empty.onnx"));
    (Variant::named("small").write)(&report);
    std::fs::create_dir(&empty).unwrap();
    let (mut window, _kept) = home(SIZE);
    open(&mut window, &empty);
    until(&mut window, "the directory is none", |window| says(window, "in this directory"));
    assert!(window.state().session().model_spec().is_none());
    open(&mut window, &report);
    until(&mut window, "the report is open", |window| {
        window.state().session().tab_titles().len() == 1
    });
}
