//! The memory of the window after its reports are closed.

use crate::common;
use crate::gui_support::{Window, opened_window, press_role, settle};
use egui::Vec2;
use egui::accesskit::Role;
use std::process::Command;
use std::time::Duration;
use tilescope_gui::{OpenReport, view_names};
use tilescope_test_tiers::skipped_in_the_fast_tier;

const SIZE: Vec2 = Vec2::new(1300.0, 850.0);
/// Set in the process that is measured: other tests would allocate in this one meanwhile.
const MEASURED: &str = "TILESCOPE_TEST_MEMORY";
/// The least share of its memory that a closed report gives back, in percent. What the window
/// allocates for good with its first large report counts as left.
const LEAST_GIVEN_BACK: u64 = 80;
/// The least that the report has to take.
const LEAST_TAKEN: u64 = 120 << 20;

/// Bytes of memory of the process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// Shows every view of a report in a window of its own, and closes the report. Returns the memory
/// before that, and the window.
fn look_at(spec: &str, set: &[&str]) -> (u64, Window) {
    let directory = tempfile::tempdir().unwrap();
    common::report_file(&common::spec(spec, set), directory.path());
    let opened = OpenReport::read(directory.path()).unwrap();
    let mut window = opened_window(opened, "summary", SIZE);
    for view in view_names() {
        window.state_mut().show_view(view);
        settle(&mut window);
    }
    let open = resident();
    assert!(press_role(&mut window, Role::Button, "Close report"));
    settle(&mut window);
    (open, window)
}

/// The least memory of the process in some time: pages are given back on a thread.
fn comes_to(least: u64) -> u64 {
    for _ in 0..100 {
        if resident() <= least {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    resident()
}

#[test]
fn closed_reports_give_their_memory_back() {
    // A small report takes less than what the window itself allocates meanwhile.
    if skipped_in_the_fast_tier() {
        return;
    }
    if std::env::var_os(MEASURED).is_none() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["memory::closed_reports_give_their_memory_back", "--exact", "--nocapture"]);
        let ran = child.env(MEASURED, "1").output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
        return;
    }
    // Fonts and textures stay: they are there after the first report.
    let (_, _first) = look_at("matmul_chain", &[]);
    std::thread::sleep(Duration::from_millis(300));
    let before = resident();
    let (open, _second) = look_at("bert_large_pod16", &[]);
    assert!(open >= before + LEAST_TAKEN, "the report takes {} bytes", open - before);
    let most = open - (open - before) * LEAST_GIVEN_BACK / 100;
    let left = comes_to(most);
    assert!(left <= most, "{} of {} bytes are left", left - before, open - before);
}
