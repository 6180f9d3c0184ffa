//! Tests of the desktop app without a display: every view on every kind of report, checked through
//! the accessibility tree, and with every control pressed once.

use crate::gui_support::{
    VARIANTS, Variant, Window, assert_says, click, click_label, each_pair, says, scaled_window,
    settle, show_view, type_text, window,
};
use egui::accesskit::{Action, Role};
use egui::{Event, Key, Modifiers, Vec2};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT, Queryable};
use std::sync::Mutex;
use std::time::Duration;
use tilescope_gui::app::TilescopeApp;
use tilescope_gui::{theme, view_names};
use tilescope_report::units::TileId;

#[test]
fn every_view_opens_on_every_report() {
    each_pair(VARIANTS, |variant, view| {
        let window = window(variant, view, Vec2::new(1200.0, 800.0));
        for entry in LEAVING {
            assert!(says(&window, entry), "{} {view}: {entry}", variant.name);
        }
        let expected = match view {
            "execution-trace" => variant.trace,
            "memory" => variant.memory,
            "liveness" => variant.liveness,
            "program-tree" if variant.name == "foreign, bare" => &["Program tree"],
            "program-tree" => &["Select a step in the program tree", "Show ids"],
            "operations" if variant.name == "foreign, bare" => &["Operations"],
            "operations" => &["Layer", "Columns", "Cycles (run)", "Show tables"],
            "operations-graph" if variant.name == "simulated" => {
                &["Graph of operations", "B1", "Show backward pass"]
            }
            "operations-graph" => &["Operations graph"],
            "limits" if variant.trace.contains(&"Nothing was executed") => &["No run recorded"],
            "limits" => &["Waterfall", "Where cycles go", "Filter limits"],
            "insights" => &["Findings", "Memory in use", "Tiles by memory"],
            "summary" => &["Target", "Report files"],
            "exchange-code" => &["Exchange code"],
            "topics" => &["Topic", "Table"],
            _ => &["Tile mapping"],
        };
        for words in expected {
            assert!(says(&window, words), "{} {view}: {words}", variant.name);
        }
        window.check_accessibility();
    });
}

/// Screens: width and height in pixels, and the text scale.
const SCREENS: [(Vec2, f32); 5] = [
    (Vec2::new(480.0, 360.0), 1.0),
    (Vec2::new(640.0, 480.0), 1.0),
    (Vec2::new(3840.0, 2160.0), 1.0),
    (Vec2::new(1280.0, 800.0), 2.0),
    (Vec2::new(3840.0, 2160.0), 2.0),
];

/// The controls of top bars that are outside the screen.
fn outside(window: &Window, size: Vec2) -> Vec<String> {
    let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, size).expand(1.0);
    let held = [Role::ComboBox, Role::CheckBox, Role::Tab];
    let nodes = window.root().children_recursive();
    let controls = nodes.filter(|node| held.contains(&node.accesskit_node().role()));
    let gone = controls.filter(|node| !screen.contains_rect(node.rect()));
    gone.map(|node| format!("{:?} {:?}", node.accesskit_node().label(), node.rect())).collect()
}

#[test]
fn views_fit_into_small_and_large_windows() {
    let problems = Mutex::new(Vec::new());
    for name in ["simulated", "64 IPUs", "names"] {
        each_pair(std::slice::from_ref(Variant::named(name)), |variant, view| {
            for (size, scale) in SCREENS {
                let mut window = scaled_window(variant, view, size, scale);
                for control in outside(&window, size / scale) {
                    let problem = format!("{name} {view} {size:?} x {scale}: {control}");
                    problems.lock().unwrap().push(problem);
                }
                window.set_size(Vec2::new(700.0, 300.0));
                settle(&mut window);
            }
        });
    }
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "outside the window:\n{}", problems.join("\n"));
}

/// The entries of the menu that leave a view.
const LEAVING: [&str; 12] = [
    "Close report",
    "Summary",
    "Insights",
    "Memory",
    "Liveness",
    "Program tree",
    "Operations",
    "Limits",
    "Operations graph",
    "Execution trace",
    "Exchange code",
    "Tile mapping",
];

/// The controls that can be pressed: role and name of each.
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
            let held = node.data().supports_action(Action::Click);
            (pressable.contains(&role) && held && !node.is_disabled()).then_some((role, name))
        })
        .collect();
    found.dedup();
    found
}

/// The entries of the menu that do the same in every view; they are pressed in one of them.
const SHELL: [&str; 5] = ["Theme", "Keys and help", "Commands", "Reload report", "Hide menu"];

#[test]
fn every_control_can_be_pressed() {
    each_pair(VARIANTS, |variant, view| {
        let mut window = window(variant, view, Vec2::new(1300.0, 850.0));
        for (role, name) in controls(&window) {
            // These leave the view or open a dialog of the system.
            let leaves = LEAVING.contains(&name.as_str());
            let shell = SHELL.iter().any(|entry| name.starts_with(entry));
            if leaves || (shell && view != "summary") {
                continue;
            }
            let node = window
                .query_all_by_role(role)
                .find(|node| node.accesskit_node().label().is_some_and(|label| label == name));
            if let Some(node) = node {
                node.click();
            }
            settle(&mut window);
            window.event(press(Key::Escape));
            window.step();
        }
        settle(&mut window);
    });
}

/// A key press in one frame.
fn press(key: Key) -> Event {
    let modifiers = Modifiers::NONE;
    Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers }
}

#[test]
fn every_control_is_reached_by_the_tab_key() {
    let problems = Mutex::new(Vec::new());
    each_pair(std::slice::from_ref(Variant::named("small")), |_, view| {
        let mut window = window(Variant::named("small"), view, Vec2::new(1300.0, 850.0));
        let all = controls(&window);
        let mut reached = Vec::new();
        for _ in 0..2 * all.len() + 80 {
            window.event(press(Key::Tab));
            window.run_steps(2);
            let nodes = window.root().children_recursive();
            let focused = nodes.map(|node| node.accesskit_node()).find(|node| node.is_focused());
            reached.extend(focused.and_then(|node| Some((node.role(), node.label()?))));
        }
        let missed = all.into_iter().filter(|control| !reached.contains(control));
        problems.lock().unwrap().extend(missed.map(|missed| format!("{view}: {missed:?}")));
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "never in focus:\n{}", problems.join("\n"));
}

#[test]
fn painted_parts_have_accessibility_nodes() {
    let problems = Mutex::new(Vec::new());
    each_pair(std::slice::from_ref(Variant::named("simulated")), |variant, view| {
        let mut window = window(variant, view, Vec2::new(1300.0, 850.0));
        let shows = match view {
            "exchange-code" => {
                vec![("Show", "Bytes by tile"), ("Show", "Traffic matrix"), ("Show", "Floor plan")]
            }
            "memory" => vec![("Graph", "Tile map")],
            _ => Vec::new(),
        };
        for show in std::iter::once(None).chain(shows.into_iter().map(Some)) {
            if let Some((choice, entry)) = show {
                click(&mut window, Role::ComboBox, choice);
                click(&mut window, Role::Button, entry);
            }
            for canvas in window.query_all_by_role(Role::Canvas) {
                let parts = window.root().children_recursive().filter(|node| {
                    let part = [Role::GraphicsObject, Role::Cell];
                    part.contains(&node.accesskit_node().role())
                        && canvas.rect().intersects(node.rect())
                });
                let announced = parts.filter(|node| {
                    let node = node.accesskit_node();
                    let words = |text: Option<String>| text.is_some_and(|text| !text.is_empty());
                    words(node.label()) && words(node.value())
                });
                let (announced, name) = (announced.count(), canvas.accesskit_node().label());
                if announced < 2 {
                    problems.lock().unwrap().push(format!("{view} {show:?} {name:?}: {announced}"));
                }
            }
        }
    });
    let problems = problems.into_inner().unwrap();
    assert!(problems.is_empty(), "canvases without parts:\n{}", problems.join("\n"));
}

#[test]
fn hovering_a_derived_figure_shows_its_formula() {
    let cases = [
        ("summary", "Memory in use: ", "bytes in use on all tiles of a replica"),
        (
            "memory",
            "Not overlapped",
            "bytes at addresses used by one variable or kind of code only",
        ),
        ("exchange-code", "Share of memory", "Bytes of code / bytes that tiles use"),
        ("execution-trace", "Tile balance", "each weighted by its cycles"),
        ("operations", "On the path", "the longest chain of steps that wait for one another"),
        ("tile-mapping", "Max/mean", "Largest part / mean part"),
        ("insights", "Fullest tiles", "Bytes below the last used address"),
    ];
    for (view, name, formula) in cases {
        let mut window = window(Variant::named("simulated"), view, Vec2::new(1600.0, 2400.0));
        let nodes: Vec<_> = window.query_all_by_label_contains(name).collect();
        let node = nodes.last().expect(name);
        node.hover();
        window.run_steps(90);
        assert!(says(&window, formula), "{view}: {name}");
    }
}

#[test]
fn a_bar_is_selected_by_name_and_keys_move_on_from_it() {
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
        assert!(window.state().session().selection().step.is_some(), "{title}");
    }
    let chosen = window.state().session().selection().step.unwrap();
    window.key_press(Key::Comma);
    settle(&mut window);
    let before = window.state().session().selection().step.unwrap();
    assert_eq!(before.position + 1, chosen.position);
    window.key_press(Key::Escape);
    settle(&mut window);
    assert_eq!(window.state().session().selection().step, None);
}

#[test]
fn selected_ipus_are_shown_alone() {
    let mut window =
        window(Variant::named("simulated"), "execution-trace", Vec2::new(1300.0, 1200.0));
    for (entry, modifiers, shown) in [
        ("IPU 2", Modifiers::NONE, &[2][..]),
        ("IPU 0", Modifiers::SHIFT, &[0, 2]),
        ("IPU 2", Modifiers::SHIFT, &[0]),
        ("All", Modifiers::NONE, &[0, 1, 2, 3]),
    ] {
        click(&mut window, Role::ComboBox, "IPU");
        let choice = window.query_all_by_role_and_label(Role::Button, entry).last();
        choice.expect(entry).click_modifiers(modifiers);
        settle(&mut window);
        for ipu in 0..4 {
            let there = says(&window, &format!("Proportions of IPU {ipu}"));
            assert_eq!(there, shown.contains(&ipu), "{entry}: IPU {ipu}");
        }
    }
}

#[test]
fn keys_zoom_and_pan_to_the_limits() {
    for variant in VARIANTS {
        let mut window = window(variant, "execution-trace", Vec2::new(900.0, 600.0));
        for (key, times) in [
            (Key::W, 60),
            (Key::D, 20),
            (Key::A, 20),
            (Key::S, 60),
            (Key::F, 2),
            (Key::Period, 20),
            (Key::F, 2),
            (Key::Comma, 20),
        ] {
            for _ in 0..times {
                window.event(press(key));
                window.step();
            }
            settle(&mut window);
        }
    }
}

#[test]
fn tiles_are_selected_by_number_and_become_columns() {
    let mut window = window(&VARIANTS[1], "memory", Vec2::new(1300.0, 850.0));
    window.get_by_label("Select tiles, e.g. 1 or 0,3-5").focus();
    window.step();
    type_text(&mut window, "Select tiles, e.g. 1 or 0,3-5", "2, 4-5");
    assert_eq!(window.state().session().selection().tiles, [2, 4, 5].map(TileId));
    click(&mut window, Role::Tab, "Variables");
    for title in ["Tile 2", "Tile 4", "Tile 5"] {
        assert!(says(&window, title), "{title}");
    }
    assert!(says(&window, "a/conv/weights"));
}

#[test]
fn closing_during_queries_is_safe() {
    for variant in VARIANTS {
        let context = egui::Context::default();
        theme::install(&context);
        for view in view_names() {
            let mut app = TilescopeApp::detached(&context, Some(variant.opened()));
            app.show_view(view);
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
    assert!(says(&window, "Ctrl+Shift+P"));
    window.key_press(Key::Escape);
    settle(&mut window);
    assert!(!says(&window, "Zoom around the pointer"));
}

#[test]
fn the_home_screen_offers_its_actions() {
    let mut window = Harness::builder()
        .with_size(Vec2::new(1200.0, 800.0))
        .with_context_setup(theme::install)
        .build_ui_state(
            |ui, app: &mut TilescopeApp| {
                app.logic(ui.ctx());
                app.ui(ui);
            },
            TilescopeApp::detached(&egui::Context::default(), None),
        );
    window.run_steps(4);
    for words in ["Open a report or model…", "Path of a report or model", "Recent", "Simulate"] {
        let found = window.query_all_by_label_contains(words).next().is_some();
        assert!(found, "{words}");
    }
    window.check_accessibility();
    // The rows of a list are one below the other.
    for name in ["one", "another", "a third"] {
        window.state_mut().session_mut().prefs_mut().remember(std::path::Path::new(name));
    }
    window.run_steps(4);
    let buttons = window.query_all_by_label("Remove from recent reports");
    let ends: Vec<f32> = buttons.map(|button| button.rect().right()).collect();
    assert!(ends.len() == 3 && ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    // A report is found again from any directory.
    let (context, report) = (window.ctx.clone(), std::path::Path::new("sample_reports/too_large"));
    window.state_mut().open_at(&context, Some(report), None, None);
    for _ in 0..2_000 {
        window.step();
        if window.state().session().page().is_some() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let recent = window.state().session().prefs().recent.first().expect("remembered");
    assert!(recent.path.is_absolute() && recent.path.ends_with(report), "{:?}", recent.path);
}

#[test]
fn a_liveness_step_is_selected_by_keys_and_becomes_a_column() {
    let mut window = window(&VARIANTS[1], "liveness", Vec2::new(1300.0, 850.0));
    click(&mut window, Role::Tab, "Not always live variables");
    assert!(says(&window, "Shift + click adds another step"));
    click_label(&mut window, "Select the peak");
    assert!(says(&window, "Step 1") && says(&window, "3,600 B"));
    window.get_by_label("Liveness by program step").focus();
    window.key_press_modifiers(Modifiers::SHIFT, Key::ArrowLeft);
    settle(&mut window);
    assert!(says(&window, "Step 0") && says(&window, "Step 1"));
    click(&mut window, Role::Row, "a/conv/out");
    assert_eq!(window.state().session().selection().variable.map(|id| id.0), Some(1));
}

#[test]
fn an_insight_links_to_its_place() {
    let mut window = window(&VARIANTS[0], "insights", Vec2::new(1300.0, 3000.0));
    // Panels about memory are folded, since the program fits.
    assert!(window.query_by_label("Show in Liveness").is_none());
    window.get_by_label_contains("Memory: fits, ").click();
    settle(&mut window);
    let link = window.query_all_by_label("Show in Liveness").next().expect("a finding on memory");
    link.click();
    settle(&mut window);
    assert!(says(&window, "Liveness by program step"));
    assert!(window.state().session().selection().variable.is_some());
}

#[test]
fn a_vertex_shows_the_compute_sets_that_use_it() {
    use tilescope_analysis::memory;
    for width in [1600.0, 700.0] {
        let size = Vec2::new(width, 1000.0);
        let mut window = window(Variant::named("simulated"), "insights", size);
        let report = Variant::named("simulated").opened().report;
        let vertices = memory::vertices(&report, &[]).expect("reads").rows;
        let largest = vertices.iter().max_by_key(|row| row.bytes[0]).expect("some");
        let row = window.query_all_by_role_and_label(Role::Row, &largest.name).next();
        row.expect("its row").click();
        settle(&mut window);
        assert!(says(&window, &format!("Compute sets that use {}", largest.name)));
        let users = memory::users_of(&report, &largest.name, &[]).expect("reads").rows;
        assert_eq!(users.iter().map(|row| row.count).sum::<u64>(), largest.count);
        let most = users.iter().max_by_key(|row| row.bytes[0]).expect("one at least");
        assert!(says(&window, &most.name), "{}", most.name);
    }
}

#[test]
fn a_report_opened_beside_another_keeps_the_view_settings() {
    let mut window = window(Variant::named("simulated"), "memory", Vec2::new(1300.0, 850.0));
    for (choice, entry) in [("Breakdown", "Category"), ("Tiles", "Hardware order")] {
        click(&mut window, Role::ComboBox, choice);
        click(&mut window, Role::Button, entry);
    }
    click(&mut window, Role::Tab, "Variables");
    window.state_mut().session_mut().show(Variant::named("small").opened());
    show_view(&mut window, "memory");
    assert_says(&window, &["Filter variables", "Tiles (hardware order) on the screen"]);
    let breakdown = window.get_by_role_and_label(Role::ComboBox, "Breakdown");
    assert_eq!(breakdown.accesskit_node().value().as_deref(), Some("Category"));
    assert!(window.state().session().messages().is_empty());
}

#[test]
fn a_program_links_to_its_step_in_the_trace_and_back() {
    let mut window = window(&VARIANTS[1], "program-tree", Vec2::new(1300.0, 850.0));
    click(&mut window, Role::TreeItem, "OnTileExecute (a/conv/Convolve)");
    let program = window.state().session().selection().program.expect("a program");
    click_label(&mut window, "Show in Execution trace");
    let session = window.state().session();
    assert_eq!(session.selection().step.map(|step| step.step.0), Some(1));
    assert!(says(&window, "OnTileExecute (a/conv/Convolve) on IPU 0"));
    window.key_press(Key::Period);
    settle(&mut window);
    click(&mut window, Role::Button, "Program tree");
    let followed = window.state().session().selection().program.expect("a program");
    assert_ne!(followed, program, "the tree follows the trace");
}

#[test]
fn an_operation_is_selected_in_all_tabs() {
    let mut window = window(&VARIANTS[0], "operations", Vec2::new(1300.0, 850.0));
    click(&mut window, Role::Row, "layer2/conv");
    assert!(window.state().session().selection().operation.is_some());
    click(&mut window, Role::Tab, "Cycles");
    assert!(says(&window, "Cycles by tile"));
    click(&mut window, Role::Tab, "Plan");
    assert!(says(&window, "estimate"));
    click(&mut window, Role::Button, "Operations graph");
    assert!(says(&window, "Read by") && says(&window, "layer2/conv/bias"));
}

/// An idle window costs nothing. If the system cannot watch files, reports are polled every two
/// seconds; a shorter interval means that a view never becomes idle.
#[test]
fn an_idle_window_requests_no_frame() {
    each_pair(&VARIANTS[..5], |variant, view| {
        let mut window = window(variant, view, Vec2::new(1200.0, 800.0));
        let delay = |window: &Window| {
            let output = window.output().viewport_output.get(&egui::ViewportId::ROOT);
            output.map_or(Duration::MAX, |output| output.repaint_delay)
        };
        // Animations end, and the place enters the history, within a few seconds.
        let frames = (0..600).take_while(|_| {
            window.step();
            delay(&window) < Duration::from_secs(1)
        });
        let frames = frames.count();
        assert!(frames < 600, "{} {view} asks for frame after frame", variant.name);
    });
}
