//! Tests that a report that violates its invariants shows that above every view.

use crate::common;
use crate::gui_support::{Window, opened_window, press_role, says, settle, show_view};
use egui::Vec2;
use egui::accesskit::Role;
use egui_kittest::kittest::{NodeT, Queryable};
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;
use tilescope_gui::{OpenReport, view_names};

const SIZE: Vec2 = Vec2::new(1280.0, 720.0);

fn simulated(directory: &Path) {
    let spec = common::spec("matmul_chain", &["model.m=64", "model.k=64", "model.n=64"]);
    common::report_file(&spec, directory);
}

/// A window that checks reports, after the check has ended.
fn checked_window(directory: &Path) -> Window {
    let opened = OpenReport::read(directory).unwrap();
    let mut window = opened_window(opened.clone(), "summary", SIZE);
    window.state_mut().session_mut().check_reports();
    window.state_mut().session_mut().show(opened);
    for _ in 0..500 {
        settle(&mut window);
        if says(&window, "its figures may be wrong") {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    window
}

#[test]
fn violated_invariants_are_shown_above_every_view() {
    let directory = tempfile::tempdir().unwrap();
    simulated(directory.path());
    let db = Connection::open(directory.path().join("profile.pop")).unwrap();
    db.execute("UPDATE memory_by_tile SET total = total + 4 WHERE tile = 3", []).unwrap();
    drop(db);
    let mut window = checked_window(directory.path());
    for view in view_names() {
        show_view(&mut window, view);
        assert!(says(&window, "has changed since it was written"), "{view}");
    }
    assert!(!says(&window, "regions_add_up"));
    assert!(press_role(&mut window, Role::Button, "Details"));
    settle(&mut window);
    for law in ["regions_add_up: on 1 tile the", "content_is_as_written: memory_by_tile"] {
        assert!(says(&window, law), "{law}");
    }
}

/// The description of a report with a long name and the button beside it are visible.
#[test]
fn a_long_name_does_not_hide_the_message() {
    let directory = tempfile::tempdir().unwrap();
    let long = directory.path().join("a-run-of-last-night-".repeat(10));
    simulated(&long);
    let db = Connection::open(long.join("profile.pop")).unwrap();
    db.execute("UPDATE memory_by_tile SET total = total + 4 WHERE tile = 3", []).unwrap();
    drop(db);
    let window = checked_window(&long);
    let details = window.get_by_role_and_label(Role::Button, "Details").rect();
    assert!(details.right() <= SIZE.x, "{details:?}");
    let said = window.query_all_by_label_contains("its figures may be wrong.");
    let labels = said.filter(|node| node.accesskit_node().role() == Role::Label);
    let lines: Vec<egui::Rect> = labels.map(|node| node.rect()).collect();
    assert!(!lines.is_empty());
    assert!(lines.iter().all(|line| line.right() <= details.left()), "{lines:?} {details:?}");
}

#[test]
fn a_valid_report_shows_no_message() {
    let directory = tempfile::tempdir().unwrap();
    simulated(directory.path());
    assert!(!says(&checked_window(directory.path()), "its figures may be wrong"));
}
