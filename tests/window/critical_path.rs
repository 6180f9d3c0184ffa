//! Tests of the critical path in the window: its lane, the veil, the walk along it, and the reasons
//! of waiting steps.

use crate::common;
use crate::gui_support::{Window, assert_says, opened_window, press, press_role, says, settle};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_analysis::critical_path::step_on_path;
use tilescope_gui::OpenReport;

/// A size with space for all columns of the program tree.
const SIZE: Vec2 = Vec2::new(1500.0, 900.0);

/// A window on a pipeline of two IPUs, and the directory of its report.
fn window(view: &str) -> (Window, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).unwrap();
    (opened_window(opened, view, SIZE), directory)
}

/// The description of the path's lane.
fn lane(window: &Window) -> Option<String> {
    let row = window.query_by_role_and_label(Role::Row, "Critical path")?;
    row.accesskit_node().value()
}

fn hops(window: &Window) -> usize {
    let named = |node: &egui_kittest::Node<'_>| {
        let label = node.accesskit_node().label().unwrap_or_default();
        label.starts_with("Critical path goes from IPU")
    };
    window.query_all_by_role(Role::GraphicsObject).filter(named).count()
}

fn zoom_in(window: &mut Window) {
    for _ in 0..12 {
        press(window, Modifiers::NONE, Key::W);
    }
    settle(window);
}

#[test]
fn keys_walk_along_and_highlight_the_path() {
    let (mut window, _directory) = window("execution-trace");
    assert!(lane(&window).expect("a lane").contains(" hops between lanes"));
    zoom_in(&mut window);
    assert_eq!(hops(&window), 0, "nothing is lit");
    press(&mut window, Modifiers::NONE, Key::P);
    settle(&mut window);
    assert!(hops(&window) > 0, "the path goes from one IPU to the other");
    press(&mut window, Modifiers::NONE, Key::P);
    settle(&mut window);
    assert_eq!(hops(&window), 0);

    let mut walked = Vec::new();
    for key in [Key::CloseBracket, Key::CloseBracket, Key::CloseBracket, Key::OpenBracket] {
        press(&mut window, Modifiers::NONE, key);
        settle(&mut window);
        walked.push(window.state().session().selection().step.expect("a step of the path"));
    }
    assert_eq!(walked[3], walked[1], "back again");
    assert!(walked[0] != walked[1] && walked[1] != walked[2]);
    let report = window.state().session().page().unwrap().opened().report.clone();
    for step in walked {
        let known = step_on_path(&report, step.step, step.at, step.sub_lane).unwrap().unwrap();
        assert!(known.is_on_path, "{step:?}");
    }
    assert!(says(&window, "on it"), "details say that it is on the path");
}

#[test]
fn reasons_lead_to_an_option_of_the_spec() {
    let (mut window, _directory) = window("execution-trace");
    press(&mut window, Modifiers::NONE, Key::CloseBracket);
    settle(&mut window);
    assert!(says(&window, "Why") && says(&window, "set by"));
    let link = window.query_all_by_role(Role::Link).find_map(|node| {
        let name = node.accesskit_node().label()?;
        (name.starts_with("options.") || name.starts_with("model.")).then_some(name)
    });
    let key = link.expect("an option");
    assert!(press_role(&mut window, Role::Link, &key));
    settle(&mut window);
    assert!(says(&window, "What if"), "its key is shown in the spec");
}

#[test]
fn the_table_of_the_visible_path_links_to_steps() {
    let (mut window, _directory) = window("execution-trace");
    assert!(press_role(&mut window, Role::Tab, "Critical path"));
    settle(&mut window);
    assert_says(&window, &["Operation", "Waits", "Slack", "Lead"]);
    // Without its lane the path is still known, but nothing of it is visible.
    assert!(press_role(&mut window, Role::CheckBox, "Critical path"));
    settle(&mut window);
    assert_eq!(lane(&window), None);
}

#[test]
fn other_views_count_cycles_on_the_path() {
    for (view, words) in [
        ("summary", ["On the path", "Hidden", "Lead"]),
        ("program-tree", ["On the path", "Exposed per IPU", "Hidden per IPU"]),
    ] {
        let (window, _directory) = window(view);
        words.iter().for_each(|words| assert!(says(&window, words), "{view}: {words}"));
    }
}
