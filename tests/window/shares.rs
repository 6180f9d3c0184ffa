//! Tests of the execution trace when zoomed out: shares instead of bars.

use crate::gui_support::{
    Window, assert_says, click_at, opened_window, picture, press, press_role, settle,
};
use crate::{common, gui_support};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Rect, Vec2, vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_gui::OpenReport;
use tilescope_gui::theme::DARK;

const SIZE: Vec2 = Vec2::new(1300.0, 850.0);
const SHARES: &str = "Shares of IPU 0";

/// A run with many times more steps than the window has pixels.
fn long_run() -> Window {
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=100"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).unwrap();
    let mut window = opened_window(opened, "execution-trace", SIZE);
    // The initial range is a typical iteration.
    assert!(press_role(&mut window, Role::Button, "Whole run"));
    settle(&mut window);
    window
}

/// The number of pixels of the window that have the colour of compute.
fn compute_pixels(window: &mut Window) -> usize {
    let pixels = picture(window, SIZE).pixels;
    pixels.iter().filter(|pixel| **pixel == DARK.compute.to_array()).count()
}

/// The value and rectangle of the node with this name.
fn node(window: &Window, name: &str) -> Option<(String, Rect)> {
    let node = window.query_all_by_label(name).next()?;
    Some((node.accesskit_node().value().unwrap_or_default(), node.rect()))
}

#[test]
fn lanes_are_shares_when_zoomed_out_and_bars_when_zoomed_in() {
    let mut window = long_run();
    let (shares, _) = node(&window, SHARES).expect("the whole run is far out");
    let (proportions, _) = node(&window, "Proportions of IPU 0").unwrap();
    // The same figures as in the table, which come from sums over the window.
    let first = shares.split(", ").next().unwrap();
    assert!(proportions.contains(first), "{first} in {proportions}");
    assert!(shares.contains("Sync ") && !shares.contains("Idle"), "{shares}");
    let far = compute_pixels(&mut window);
    assert!(press_role(&mut window, Role::Button, "View"));
    settle(&mut window);
    assert!(press_role(&mut window, Role::CheckBox, "Shares"));
    settle(&mut window);
    assert_eq!(node(&window, SHARES), None, "bars by choice");
    assert!(compute_pixels(&mut window) < far, "bars are shaded and mixed");
    assert!(press_role(&mut window, Role::CheckBox, "Shares"));
    settle(&mut window);
    let (again, _) = node(&window, SHARES).expect("shares again");
    assert!(again.starts_with(first), "{again}");
    for _ in 0..24 {
        press(&mut window, Modifiers::NONE, Key::W);
    }
    assert_eq!(node(&window, SHARES), None, "steps are wider than a pixel");
    for _ in 0..24 {
        press(&mut window, Modifiers::NONE, Key::S);
    }
    assert!(node(&window, SHARES).is_some());
}

#[test]
fn a_column_describes_its_shares_and_is_zoomed_to() {
    let mut window = long_run();
    let (_, lane) = node(&window, SHARES).unwrap();
    let at = lane.center() - vec2(60.0, 0.0);
    window.hover_at(at);
    settle(&mut window);
    assert_says(&window, &[" steps", " cycles: ", "Compute ", "Sync "]);
    let before = gui_support::link(&window);
    click_at(&mut window, at, 1);
    assert_eq!(gui_support::link(&window), before, "a column cannot be chosen");
    click_at(&mut window, at, 2);
    assert_eq!(node(&window, SHARES), None, "a column is a few steps");
    assert_ne!(gui_support::link(&window), before);
}

#[test]
fn the_selected_step_and_the_colours_stay_at_every_zoom() {
    let mut window = long_run();
    let without = compute_pixels(&mut window);
    press(&mut window, Modifiers::NONE, Key::Period);
    let chosen = window.state().session().selection().step;
    assert!(chosen.is_some());
    // Its outline and its details take some pixels, but no veil covers the shares.
    let with = compute_pixels(&mut window);
    assert!(with * 10 > without * 9, "{with} {without}");
    press(&mut window, Modifiers::NONE, Key::F);
    assert_eq!(node(&window, SHARES), None);
    press(&mut window, Modifiers::NONE, Key::F);
    assert!(node(&window, SHARES).is_some());
    assert_eq!(window.state().session().selection().step, chosen);
}
