//! Tests of testing proposals in the Insights view, with the real program as the child.

use crate::common;
use crate::gui_support::{Window, opened_window, says, settle, simulator, until};
use egui::{Key, Vec2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use std::path::Path;
use tilescope_analysis::insights::{TRIED_FILE, TriedFindings, TriedProposal};
use tilescope_gui::OpenReport;
use tilescope_report::Report;
use tilescope_test_tiers::skipped_in_the_fast_tier;

const SIZE: Vec2 = vec2(1400.0, 900.0);

fn open(path: &Path) -> Window {
    opened_window(OpenReport::read(path).expect("opens"), "insights", SIZE)
}

/// A report with something to propose; the directory must outlive it.
fn directory() -> tempfile::TempDir {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    common::report_file(&common::spec("prefetch", &[]), directory.path());
    directory
}

fn button(window: &Window) -> String {
    let buttons = window.query_all_by_label_contains("Try ");
    let labels = buttons.filter_map(|node| node.accesskit_node().label());
    let mut found = labels.filter(|label| label.contains(" proposal"));
    found.next().expect("a button for proposals")
}

#[test]
fn proposals_are_tried_kept_and_applied() {
    let directory = directory();
    let mut window = open(directory.path());
    settle(&mut window);
    assert!(!says(&window, "Tested: "));
    let label = button(&window);
    window.get_by_label(&label).click();
    until(&mut window, "tried", |window| says(window, "Tested: "));
    let report = Report::open(directory.path()).expect("opens");
    let kept = TriedFindings::read(&report).expect("reads").expect("kept");
    let best = kept.tried.iter().find(|tried| tried.measured.gain(tried.subject).is_some());
    let best = best.expect("something gains");
    assert!(matches!(best.measured, TriedProposal::Ran { .. }));
    assert!(says(&window, &best.measured.text(best.subject)["tested: ".len()..]));
    drop(window);

    // The next user of the report need not try again.
    let mut window = open(directory.path());
    settle(&mut window);
    assert!(says(&window, &best.measured.text(best.subject)["tested: ".len()..]));
    let link = window.query_all_by_label("Try in What if").next().expect("a link");
    link.click_accesskit();
    settle(&mut window);
    let text = window.state().session().what_if().expect("open").text().to_owned();
    let first = kept.tried.first().expect("one");
    for (key, value) in &first.changes {
        let name = key.rsplit('.').next().expect("a name");
        assert!(text.contains(&format!("{name} = {value}")), "{key} = {value}: {text}");
    }
}

#[test]
fn a_key_starts_a_trial_and_it_can_be_cancelled() {
    let directory = directory();
    let mut window = open(directory.path());
    settle(&mut window);
    window.key_press(Key::T);
    window.step();
    window.step();
    window.get_by_label("Stop").click_accesskit();
    window.step();
    settle(&mut window);
    assert!(!says(&window, "Tested: ") && !button(&window).is_empty());
    assert!(!directory.path().join(TRIED_FILE).exists());
}

#[test]
fn unreadable_results_are_reported_and_those_of_other_specs_hidden() {
    let directory = directory();
    let file = directory.path().join(TRIED_FILE);
    std::fs::write(&file, "{").expect("writes");
    let mut window = open(directory.path());
    settle(&mut window);
    assert!(says(&window, "Earlier test results cannot be read"));
    let other = serde_json::to_string(&TriedFindings::of("another spec", &[])).expect("JSON");
    std::fs::write(&file, other).expect("writes");
    let mut window = open(directory.path());
    settle(&mut window);
    assert!(!says(&window, "Earlier test results") && !says(&window, "Tested: "));
}

/// Cards are read in rows: a card is never to the left of one with a smaller number beside it.
#[test]
fn cards_are_in_reading_order() {
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    common::report_file(&common::spec("mnist_pipeline", &[]), directory.path());
    let opened = OpenReport::read(directory.path()).expect("opens");
    let mut window = opened_window(opened, "insights", vec2(1700.0, 1000.0));
    settle(&mut window);
    let mut corners = Vec::new();
    for number in 1..=4 {
        let label = format!("{number}.");
        corners.push(window.query_by_label(&label).expect("a card").rect().min);
    }
    for (one, next) in corners.iter().zip(&corners[1..]) {
        let is_beside = (one.y - next.y).abs() < 2.0 && next.x > one.x;
        assert!(is_beside || next.y > one.y + 2.0, "{corners:?}");
    }
    assert!((corners[0].y - corners[1].y).abs() < 2.0, "two columns: {corners:?}");
}

/// Cards fill while other trials run, and each shows the measured gain beside its upper bound.
#[test]
fn cards_fill_while_trials_run() {
    if skipped_in_the_fast_tier() {
        return;
    }
    simulator();
    let directory = tempfile::tempdir().expect("temporary directory");
    common::report_file(&common::spec("mnist_pipeline", &[]), directory.path());
    let mut window = open(directory.path());
    settle(&mut window);
    let label = button(&window);
    window.get_by_label(&label).click();
    // How many trials the window sees before the last one depends on the machine.
    until(&mut window, "some are tried", |window| {
        says(window, "Tested: ") && says(window, "Measured ") && says(window, ", upper bound ")
    });
}
