//! Tasks of users, each done in the fewest clicks that the window asks for. Those about BERT-Large
//! are walked in `tour`, those about groups of operations in `groups`; `actions` saves the page to
//! send.

use crate::common;
use crate::gui_support::{click_at, is_compared, painted, press, says, settle, simulator};
use crate::marks::{lane, marks};
use crate::tour::{Walk, pipeline, simulated};
use egui::accesskit::Role;
use egui::{Key, Modifiers};
use egui_kittest::kittest::Queryable;
use tilescope_analysis::liveness::{LivenessScope, always_live};
use tilescope_report::units::{binary_bytes, exact_bytes};
use tilescope_sim::{MOST_RECORDS, Simulation};

/// The trace, then the grey bar: two clicks.
#[test]
fn why_an_ipu_waits() {
    let directory = pipeline(&[]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Execution trace");
    let row = lane(&walk.window, "IPU 2").expect("a lane");
    let waits = marks(&walk.window, "External").into_iter().map(|(_, rect)| rect);
    let waits = waits.filter(|rect| row.y_range().contains(rect.center().y));
    let widest = waits.max_by(|a, b| a.width().total_cmp(&b.width())).expect("a wait");
    click_at(&mut walk.window, widest.center(), 1);
    walk.clicks += 1;
    settle(&mut walk.window);
    walk.finds("Why");
    walk.finds("waits for");
    assert_eq!(walk.clicks, 2);
}

/// One click.
#[test]
fn what_is_always_live_and_biggest() {
    let directory = pipeline(&[]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Liveness");
    let live = always_live(&walk.report, LivenessScope::Whole).expect("reads");
    let largest = live.iter().max_by_key(|variable| variable.total_bytes()).expect("variables");
    walk.finds(&largest.name);
    walk.finds(&exact_bytes(largest.total_bytes().0));
    assert_eq!(walk.clicks, 1);
}

/// One click, with the bound of the gain.
#[test]
fn what_share_of_an_iteration_the_host_takes() {
    let directory = pipeline(&[]);
    let mut walk = Walk::new(directory.path());
    walk.click(Role::Button, "Insights");
    walk.finds(&walk.sentence("overlap_io"));
    walk.finds("options.num_io_tiles = 32");
    assert_eq!(walk.clicks, 1);
}

/// A key, the path, and a button.
#[test]
fn how_two_batch_sizes_differ() {
    let (one, two) = (pipeline(&[]), pipeline(&["model.batch_size=20"]));
    let mut walk = Walk::new(one.path());
    press(&mut walk.window, Modifiers::COMMAND, Key::D);
    walk.type_into("Path of the report to compare with", &two.path().to_string_lossy());
    walk.click(Role::Button, "Compare");
    walk.until("compared", is_compared);
    walk.finds("more cycles per sample");
    walk.finds("model.batch_size");
    assert!(walk.clicks <= 3);
}

/// A key, a word, the first row: the cause is named, and both layouts are one more click away.
#[test]
fn all_rearrangements_and_their_causes() {
    let directory = simulated("matmul_chain", &[]);
    let mut walk = Walk::new(directory.path());
    press(&mut walk.window, Modifiers::NONE, Key::Slash);
    walk.type_into("Find in the whole report", "in:steps PreArrange");
    walk.finds("executions");
    press(&mut walk.window, Modifiers::NONE, Key::Enter);
    walk.clicks += 1;
    settle(&mut walk.window);
    let session = walk.window.state().session();
    assert!(session.selection().step.is_some(), "the first one is chosen in the trace");
    walk.finds("Why");
    walk.finds("rearranges data from the layout of");
    assert!(walk.clicks <= 3);
    walk.click(Role::Link, "Show both layouts in Tile mapping");
    let words = painted(&walk.window);
    for layout in ["Before: what tiles send", "After: what tiles receive"] {
        assert!(says(&walk.window, layout), "{layout}: {words:?}");
    }
}

/// A key and the slider: the verdict is in sight.
#[test]
fn whether_it_fits_when_the_batch_grows() {
    simulator();
    let directory = pipeline(&[]);
    let mut walk = Walk::new(directory.path());
    press(&mut walk.window, Modifiers::COMMAND, Key::T);
    walk.until("checked", |window| says(window, "Fits: the fullest tile needs"));
    walk.window.get_by_role_and_label(Role::Slider, "Micro-batch").focus();
    walk.window.run_steps(2);
    press(&mut walk.window, Modifiers::NONE, Key::ArrowRight);
    walk.clicks += 1;
    let text = walk.window.state().session().what_if().expect("open").text().to_owned();
    let set = text.lines().find(|line| line.starts_with("batch_size")).expect("a batch");
    assert_ne!(set, "batch_size = 40");
    let changes = ["options.device_iterations=1", &format!("model.{}", set.replace(' ', ""))];
    let spec = common::spec("mnist_pipeline", &changes);
    let needs = Simulation::compile(&spec, MOST_RECORDS).expect("compiles").fullest_tile();
    let verdict = format!("Fits: the fullest tile needs {}", binary_bytes(needs.0));
    walk.until("checked again", |window| says(window, &verdict));
    let button = walk.window.get_by_label("Simulate and compare").rect();
    assert!(button.bottom() <= 800.0, "{button:?}");
    assert_eq!(walk.clicks, 1);
}
