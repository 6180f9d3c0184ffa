//! The desktop app without a display: every view on every kind of report, told by what readers of
//! the accessibility tree find, and by what happens when everything is pressed once.

#![cfg(feature = "gui")]

mod common;
mod report_support;

use egui::accesskit::Role;
use egui::{Key, Modifiers, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use report_support::{foreign::Foreign, random_report};
use std::path::Path;
use std::time::Duration;
use tilescope::gui::app::App;
use tilescope::gui::{Opened, theme, view_names};
use tilescope::report::ReportBuilder;
use tilescope::report::{Category, MarkKind, ProgramKind, Step, StepOnIpu};

/// Kinds of reports, and what each view says about them.
struct Variant {
    name: &'static str,
    write: fn(&Path),
    /// Words that must be found in the execution trace.
    trace: &'static [&'static str],
    /// Words that must be found in the memory view.
    memory: &'static [&'static str],
    /// Words that must be found in the liveness view.
    liveness: &'static [&'static str],
}

const VARIANTS: &[Variant] = &[
    Variant {
        name: "simulated",
        write: |path| {
            let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
            common::report_file(&spec, path);
        },
        trace: &["IPU 0", "IPU 3", "Overview of the run", "Group executions", "Marks"],
        memory: &["Memory by tile", "By memory region", "Not overlapped", "All tiles"],
        liveness: &["Liveness by program step", "Always live variables", "Total"],
    },
    Variant {
        name: "small",
        write: |path| drop(small().write(path).expect("writes")),
        trace: &["Convolve", "IPU 0", "Engine::run #0"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step", "a/conv/weights"],
    },
    Variant {
        name: "compiled only",
        write: |path| {
            let mut report = small();
            report.steps.clear();
            report.marks.clear();
            report.write(path).expect("writes");
        },
        trace: &["Nothing was executed"],
        memory: &["Memory by tile"],
        liveness: &["Liveness by program step"],
    },
    Variant {
        name: "out of memory",
        write: |path| {
            let mut report = small();
            report.variable("giant", Category::Variable, 0..8, 700 * 1024, None);
            report.steps.clear();
            report.marks.clear();
            report.write(path).expect("writes");
        },
        trace: &["Nothing was executed"],
        memory: &["Memory by tile", "Overflowed"],
        liveness: &["Liveness by program step", "giant"],
    },
    Variant {
        name: "foreign",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            Foreign::default().write(&path.join("profile.pop"));
        },
        trace: &["IPU 0", "IPU 1"],
        memory: &["Memory by tile"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "foreign, bare",
        write: |path| {
            std::fs::create_dir_all(path).expect("makes a directory");
            let without = ["memory_by_tile", "vars_info", "compute_sets"];
            let bare =
                Foreign { without_tables: without.to_vec(), nulls: true, ..Foreign::default() };
            bare.write(&path.join("profile.pop"));
        },
        trace: &["IPU 0"],
        memory: &["Memory"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "64 IPUs",
        write: |path| {
            let mut report = ReportBuilder::new(64, 16);
            let work = report.compute("layer/matmul", 100);
            report.root(ProgramKind::Sequence, "main", &[work]);
            report.run(work, 0..100).run(work, 100..250);
            report.write(path).expect("writes");
        },
        trace: &["IPU 0", "IPU 1"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "names",
        write: |path| {
            let mut report = ReportBuilder::new(1, 8);
            let long = "x".repeat(500);
            let (long, wide) = (report.compute(&long, 50), report.compute("卷积层/前向/卷积", 50));
            let (bare, slashes) = (report.compute("", 50), report.compute("///", 50));
            report.root(ProgramKind::Sequence, "main", &[long, wide, bare, slashes]);
            report.run(long, 0..50).run(wide, 50..100).run(bare, 100..150).run(slashes, 150..200);
            report.variable(&"长".repeat(500), Category::Variable, 0..8, 1000, None);
            report.write(path).expect("writes");
        },
        trace: &["卷积层"],
        memory: &["Memory by tile"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "I/O tiles",
        write: |path| {
            let mut report = ReportBuilder::new(2, 8);
            report.parts.target.io_tiles_per_ipu = 2;
            let copy = report.program(ProgramKind::StreamCopyMid, "copyFromHost");
            let work = report.compute("a/b", 50);
            report.root(ProgramKind::Sequence, "main", &[copy, work]);
            for ipu in 0..2 {
                report.run_on(work, ipu, 0..600);
                let beside = report.bar(ipu, 100..500);
                let ipus = vec![StepOnIpu { sub_lane: 1, active_tiles: 2, ..beside }];
                report.steps.push(Step { program: copy, ipus });
            }
            report.write(path).expect("writes");
        },
        trace: &["IPU 0", "IPU 1", "StreamCopyMid"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "far out",
        write: |path| {
            let mut report = ReportBuilder::new(1, 8);
            let copy = report.program(ProgramKind::StreamCopyBegin, "copyFromHost");
            let work = report.compute("a/b", 50);
            report.root(ProgramKind::Sequence, "main", &[copy, work]);
            report.run(copy, 1 << 46..(1 << 46) + 1_000_000);
            report.run(work, (1 << 46) + 1_000_000..(1 << 46) + 1_000_050);
            report.write(path).expect("writes");
        },
        trace: &["StreamCopyBegin"],
        memory: &["No memory recorded"],
        liveness: &["No liveness recorded"],
    },
    Variant {
        name: "anything",
        write: |path| drop(random_report(7, 300).write(path).expect("writes")),
        trace: &["IPU 0"],
        memory: &["Memory"],
        liveness: &["Liveness"],
    },
];

fn small() -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 8);
    let exchange = report.exchange("cs0_a/conv/Convolve/ExchangePre", 8);
    let work = report.compute("a/conv/Convolve", 500);
    let sync = report.program(ProgramKind::Sync, "External");
    report.root(ProgramKind::Sequence, "main", &[exchange, work, sync]);
    report.variable("a/conv/weights", Category::Variable, 0..8, 4000, None);
    report.variable("a/conv/out", Category::Variable, 2..6, 900, Some(0..2));
    report.live(exchange, 0).live(work, 3600);
    report.run(exchange, 0..100).run(work, 100..600).run(sync, 600..700).run(work, 700..1200);
    report.mark(MarkKind::Run, "Engine::run #0", 0..4);
    report
}

struct State {
    app: App,
    _directory: tempfile::TempDir,
}

type Window = Harness<'static, State>;

/// A window on a report, come to rest.
fn window(variant: &Variant, view: &str, size: Vec2) -> Window {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("report");
    (variant.write)(&path);
    let opened = Opened::read(&path).expect("opens");
    let mut app = App::detached(&egui::Context::default(), Some(opened));
    app.show_view(view);
    let mut window = Harness::builder()
        .with_size(size)
        .allow_missing_glyphs()
        .with_context_setup(theme::install)
        .build_ui_state(
            |ui, state: &mut State| {
                state.app.logic(ui.ctx());
                state.app.ui(ui);
            },
            State { app, _directory: directory },
        );
    settle(&mut window);
    window
}

fn settle(window: &mut Window) {
    let mut calm = 0;
    for _ in 0..400 {
        window.step();
        let workers = window.state().app.session().workers.clone();
        calm = if workers.busy() { 0 } else { calm + 1 };
        if calm == 4 {
            return;
        }
        workers.wait(Duration::from_secs(20));
    }
    panic!("the window never comes to rest");
}

fn says(window: &Window, words: &str) -> bool {
    window.query_all_by_label(words).next().is_some()
        || window.query_all_by_label_contains(words).next().is_some()
}

#[test]
fn every_view_opens_on_every_report() {
    for variant in VARIANTS {
        for view in view_names() {
            let window = window(variant, view, Vec2::new(1200.0, 800.0));
            for entry in LEAVING {
                assert!(says(&window, entry), "{} {view}: {entry}", variant.name);
            }
            let expected = match view {
                "execution-trace" => variant.trace,
                "memory" => variant.memory,
                "liveness" => variant.liveness,
                "summary" => &["Target", "Report files"],
                _ => &[],
            };
            for words in expected {
                assert!(says(&window, words), "{} {view}: {words}", variant.name);
            }
            window.check_accessibility();
        }
    }
}

#[test]
fn views_fit_into_small_and_large_windows() {
    for variant in &VARIANTS[..2] {
        for view in view_names() {
            for size in
                [Vec2::new(480.0, 360.0), Vec2::new(640.0, 480.0), Vec2::new(3840.0, 2160.0)]
            {
                let mut window = window(variant, view, size);
                window.set_size(Vec2::new(700.0, 300.0));
                settle(&mut window);
            }
        }
    }
}

/// Entries of the menu that leave a view.
const LEAVING: [&str; 7] = [
    "Close report",
    "Summary",
    "Memory",
    "Liveness",
    "Execution trace",
    "Exchange code",
    "Tile mapping",
];

/// What can be pressed: role and name of each control.
fn controls(window: &Window) -> Vec<(Role, String)> {
    let pressable = [
        Role::Button,
        Role::CheckBox,
        Role::ComboBox,
        Role::Tab,
        Role::DisclosureTriangle,
        Role::ColumnHeader,
    ];
    let mut found: Vec<(Role, String)> = window
        .root()
        .children_recursive()
        .filter_map(|node| {
            let node = node.accesskit_node();
            let role = node.role();
            let name = node.label().filter(|name| !name.is_empty())?;
            (pressable.contains(&role) && !node.is_disabled()).then_some((role, name))
        })
        .collect();
    found.dedup();
    found
}

#[test]
fn every_control_can_be_pressed() {
    for variant in VARIANTS {
        for view in view_names() {
            let mut window = window(variant, view, Vec2::new(1300.0, 850.0));
            for (role, name) in controls(&window) {
                // These leave the view, or open a dialog of the system.
                if LEAVING.contains(&name.as_str()) {
                    continue;
                }
                let node = window
                    .query_all_by_role(role)
                    .find(|node| node.accesskit_node().label().is_some_and(|label| label == name));
                if let Some(node) = node {
                    node.click();
                }
                settle(&mut window);
                window.key_press(Key::Escape);
                settle(&mut window);
            }
        }
    }
}

#[test]
fn a_bar_is_chosen_by_its_name_and_keys_go_on_from_there() {
    let mut window = window(&VARIANTS[1], "execution-trace", Vec2::new(1300.0, 850.0));
    let bars = window.query_all_by_role(Role::Cell);
    let bar = bars
        .filter(|node| node.accesskit_node().label().is_some_and(|label| label == "Convolve"))
        .min_by(|a, b| a.rect().left().total_cmp(&b.rect().left()))
        .unwrap();
    bar.click();
    settle(&mut window);
    assert!(says(&window, "Cycles"), "details are shown");
    window.key_press(Key::Escape);
    settle(&mut window);
    // Step by step from the first one on the screen.
    for title in ["DoExchange", "OnTileExecute", "Sync (External)"] {
        window.key_press(Key::Period);
        settle(&mut window);
        if title == "DoExchange" {
            continue;
        }
        assert!(window.state().app.session().selection.step.is_some(), "{title}");
    }
    let chosen = window.state().app.session().selection.step.unwrap();
    window.key_press(Key::Comma);
    settle(&mut window);
    let before = window.state().app.session().selection.step.unwrap();
    assert_eq!(before.position + 1, chosen.position);
    window.key_press(Key::Escape);
    settle(&mut window);
    assert_eq!(window.state().app.session().selection.step, None);
}

#[test]
fn keys_zoom_and_pan_without_end() {
    for variant in VARIANTS {
        let mut window = window(variant, "execution-trace", Vec2::new(900.0, 600.0));
        for key in [Key::W, Key::D, Key::A, Key::S, Key::F, Key::Period, Key::F, Key::Comma] {
            for _ in 0..60 {
                window.key_press(key);
                window.step();
            }
            settle(&mut window);
        }
    }
}

#[test]
fn tiles_are_chosen_by_number_and_become_columns() {
    let mut window = window(&VARIANTS[1], "memory", Vec2::new(1300.0, 850.0));
    window.get_by_label("Select tiles, e.g. 1 or 0,3-5").focus();
    window.step();
    window.get_by_label("Select tiles, e.g. 1 or 0,3-5").type_text("2, 4-5");
    settle(&mut window);
    assert_eq!(window.state().app.session().selection.tiles, [2, 4, 5]);
    window.get_by_role_and_label(Role::Tab, "Variables").click();
    settle(&mut window);
    for title in ["Tile 2", "Tile 4", "Tile 5"] {
        assert!(says(&window, title), "{title}");
    }
    assert!(says(&window, "a/conv/weights"));
}

#[test]
fn closing_while_questions_are_open_is_safe() {
    for variant in VARIANTS {
        for view in view_names() {
            let directory = tempfile::tempdir().unwrap();
            (variant.write)(&directory.path().join("report"));
            let opened = Opened::read(&directory.path().join("report")).unwrap();
            let mut app = App::detached(&egui::Context::default(), Some(opened));
            app.show_view(view);
            let context = egui::Context::default();
            theme::install(&context);
            for _ in 0..2 {
                let output = context.run_ui(egui::RawInput::default(), |ui| {
                    app.logic(ui.ctx());
                    app.ui(ui);
                });
                output.drop_without_applying_deltas();
            }
            drop(app);
        }
    }
}

#[test]
fn the_list_of_keys_opens_and_closes() {
    let mut window = window(&VARIANTS[1], "summary", Vec2::new(900.0, 600.0));
    window.key_press_modifiers(Modifiers::NONE, Key::F1);
    settle(&mut window);
    assert!(says(&window, "Zoom around the pointer"));
    window.key_press(Key::Escape);
    settle(&mut window);
    assert!(!says(&window, "Zoom around the pointer"));
}

#[test]
fn the_home_screen_says_what_can_be_done() {
    let mut window = Harness::builder()
        .with_size(Vec2::new(1200.0, 800.0))
        .with_context_setup(theme::install)
        .build_ui_state(
            |ui, app: &mut App| {
                app.logic(ui.ctx());
                app.ui(ui);
            },
            App::detached(&egui::Context::default(), None),
        );
    window.run_steps(4);
    for words in ["Open a report…", "Path of a report", "Recent", "Simulate"] {
        let found = window.query_all_by_label_contains(words).next().is_some();
        assert!(found, "{words}");
    }
    window.check_accessibility();
}

#[test]
fn a_step_of_liveness_is_chosen_by_keys_and_becomes_a_column() {
    let mut window = window(&VARIANTS[1], "liveness", Vec2::new(1300.0, 850.0));
    window.get_by_role_and_label(Role::Tab, "Not always live variables").click();
    settle(&mut window);
    assert!(says(&window, "Shift + click adds another step"));
    window.get_by_label("Choose the peak").click();
    settle(&mut window);
    assert!(says(&window, "Step 1") && says(&window, "3,600 B"));
    window.get_by_label("Liveness by program step").focus();
    window.key_press_modifiers(Modifiers::SHIFT, Key::ArrowLeft);
    settle(&mut window);
    assert!(says(&window, "Step 0") && says(&window, "Step 1"));
    window.get_by_role_and_label(Role::Row, "a/conv/out").click();
    settle(&mut window);
    assert_eq!(window.state().app.session().selection.variable.map(|id| id.0), Some(1));
}
