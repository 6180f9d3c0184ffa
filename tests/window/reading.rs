//! What makes the window easy to read: lanes that are high enough, pages that use their width, menus
//! under the pointer, words for what is shown.

use crate::gui_support::{
    Variant, Window, assert_says, click, opened_window, painted, press, press_role, says, settle,
    show_view, type_text, window,
};
use crate::marks::{lane, marks, trace};
use crate::report_support::foreign::Foreign;
use egui::accesskit::Role;
use egui::{Event, Key, Modifiers, PointerButton, Pos2, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_fixtures::ReportBuilder;
use tilescope_gui::OpenReport;
use tilescope_report::units::{CycleRange, Cycles, StepId};
use tilescope_report::{MarkKind, MemoryCategory, ProgramKind, TraceMark, TrainingPass};

const SIZE: Vec2 = Vec2::new(1300.0, 850.0);
const WIDE: Vec2 = Vec2::new(1600.0, 900.0);

fn opened(report: &ReportBuilder) -> OpenReport {
    let directory = tempfile::tempdir().unwrap();
    report.write(directory.path()).unwrap();
    OpenReport::read(directory.path()).unwrap()
}

/// Clicks with the right button.
fn right_click(window: &mut Window, pos: Pos2) {
    window.event(Event::PointerMoved(pos));
    window.step();
    for pressed in [true, false] {
        let (button, modifiers) = (PointerButton::Secondary, Modifiers::NONE);
        window.event(Event::PointerButton { pos, button, pressed, modifiers });
        window.step();
    }
    settle(window);
}

/// The middle of the first node of a role whose name contains these words.
fn middle(window: &Window, role: Role, words: &str) -> Pos2 {
    let mut nodes = window.query_all_by_role(role);
    let is_it = |name: Option<String>| name.is_some_and(|name| name.contains(words));
    let node = nodes.find(|node| is_it(node.accesskit_node().label())).expect("a node");
    node.rect().center()
}

#[test]
fn lanes_have_a_least_height_and_the_list_scrolls() {
    let window = window(Variant::named("64 IPUs"), "execution-trace", SIZE);
    let heights: Vec<f32> =
        (0..3).map(|ipu| lane(&window, &format!("IPU {ipu}")).expect("a lane").height()).collect();
    assert!(heights.iter().all(|height| *height >= 16.0), "{heights:?}");
    let scrolls = window.query_by_role_and_label(Role::ScrollBar, "Scroll lanes").is_some();
    assert!(scrolls, "not all of 64 lanes have room");
}

#[test]
fn switches_for_a_close_look_are_off_for_the_next_report() {
    let replicas = || {
        let mut report = ReportBuilder::new(2, 4);
        report.parts.target.replicas = 4;
        report.parts.target.num_ipus = 8;
        let work = report.compute("layer/fwd", 900);
        report.root(ProgramKind::Sequence, "main", &[work]);
        report.run(work, 0..900);
        report
    };
    let mut window = trace(opened(&replicas()));
    assert!(press_role(&mut window, Role::Button, "Unfold replicas"));
    settle(&mut window);
    window.state_mut().session_mut().prefs_mut().trace.links = true;
    assert!(says(&window, "all are shown"));
    let next = opened(&replicas());
    window.state_mut().session_mut().show(next);
    show_view(&mut window, "execution-trace");
    assert!(says(&window, "one is shown") && !says(&window, "all are shown"));
    assert!(!window.state().session().prefs().trace.links);
}

/// Forward and backward passes that alternate, each with a mark, as in data-parallel training. The
/// first one waits for the host.
fn alternating() -> OpenReport {
    let mut report = ReportBuilder::new(1, 4);
    let forward = report.compute("layer/fwd", 300);
    let backward = report.compute("layer/bwd", 900);
    report.root(ProgramKind::Sequence, "main", &[forward, backward]);
    let mut at = 0;
    for number in 0..400 {
        let is_forward = number % 2 == 0;
        let cycles = match number {
            0 => 600,
            _ if is_forward => 300,
            _ => 900,
        };
        let program = if is_forward { forward } else { backward };
        let step = report.steps.len() as u64;
        report.run(program, at..at + cycles);
        report.marks.push(TraceMark {
            kind: MarkKind::Iteration,
            label: format!("iteration {number}"),
            ipu: None,
            pass: is_forward.then_some(TrainingPass::Forward),
            index: number,
            steps: StepId(step)..StepId(step + 1),
            cycles: CycleRange::new(Cycles(at), Cycles(at + cycles)),
        });
        at += cycles;
    }
    opened(&report)
}

#[test]
fn the_trace_opens_on_a_typical_period_and_says_so() {
    let mut window = trace(alternating());
    assert_says(&window, &["a typical period: iterations ", "median of 200"]);
    assert!(press_role(&mut window, Role::Button, "Go to"));
    settle(&mut window);
    // The longest mark of the period is typical, never the one that waits for the host.
    let typical: Vec<String> =
        painted(&window).into_iter().filter(|text| text.starts_with("Typical ")).collect();
    assert!(typical.iter().any(|text| text.contains("900 cycles")), "{typical:?}");
}

#[test]
fn the_key_explains_marks_and_shading() {
    let mut window = window(Variant::named("sample of a pipeline"), "execution-trace", SIZE);
    click(&mut window, Role::Button, "Key");
    let words = [
        "F7 is that of micro-batch 7",
        "B7 is that of micro-batch 7",
        "Weight update",
        "Iteration, phase or slot",
        "Idle share of the tiles",
        "is a step of IPU 3",
    ];
    assert_says(&window, &words);
}

/// Left edges of the nodes of a role, each once.
fn left_edges(window: &Window, role: Role) -> Vec<i32> {
    let nodes = window.query_all_by_role(role);
    let mut edges: Vec<i32> = nodes.map(|node| node.rect().left().round() as i32).collect();
    edges.sort_unstable();
    edges.dedup();
    edges
}

#[test]
fn pages_stand_in_columns_where_there_is_room() {
    let variant = Variant::named("sample of a pipeline");
    let insights = window(variant, "insights", WIDE);
    let [first, second] = ["1.", "2."].map(|number| insights.get_by_label(number).rect());
    assert!(first.right() < second.left(), "{first:?} and {second:?} stand beside each other");
    for (width, columns) in [(700.0, 1), (1600.0, 2), (2600.0, 4)] {
        let summary = window(variant, "summary", Vec2::new(width, 1200.0));
        let edges = left_edges(&summary, Role::DisclosureTriangle);
        assert_eq!(edges.len(), columns, "{width}: {edges:?}");
    }
}

#[test]
fn a_full_tile_is_not_simply_fine() {
    let report = |bytes| {
        let mut report = ReportBuilder::new(1, 8);
        let work = report.compute("layer", 100);
        report.root(ProgramKind::Sequence, "main", &[work]);
        report.variable("weights", MemoryCategory::Variable, 0..8, bytes, None);
        report.run(work, 0..100);
        opened(&report)
    };
    let capacity = 624 * 1024;
    let full = opened_window(report(capacity - 1_000), "insights", WIDE);
    assert!(says(&full, "free on the fullest tile") && !says(&full, "Fits in memory"));
    let roomy = opened_window(report(capacity / 2), "insights", WIDE);
    assert!(says(&roomy, "Fits in memory"));
    let cases = [
        (capacity / 2, "312 KiB of 624 KiB (50.0 %), 312 KiB free"),
        (capacity, "624 KiB of 624 KiB (100.0 %), nearly full: 0 B free"),
    ];
    for (bytes, words) in cases {
        let mut memory = opened_window(report(bytes), "memory", WIDE);
        assert_says(&memory, &["Fullest tile", words]);
        click(&mut memory, Role::Link, "Tile 0");
        assert!(says(&memory, "Physical tile id"), "the tables are of this tile");
    }
}

/// The tree of what memory holds is as wide as the page.
#[test]
fn details_of_memory_take_columns_of_a_wide_page() {
    let variant = Variant::named("simulated");
    for (width, columns) in [(800.0, 1), (1300.0, 2), (1900.0, 3)] {
        let memory = window(variant, "memory", Vec2::new(width, 1000.0));
        let heads = memory.query_all_by_role_and_label(Role::ColumnHeader, "All tiles").count();
        assert_eq!(heads, columns, "{width}");
    }
}

#[test]
fn the_toolbar_of_the_trace_is_one_row() {
    for width in [1280.0, 1600.0] {
        let variant = Variant::named("simulated");
        let mut window = window(variant, "execution-trace", Vec2::new(width, 900.0));
        let row = window.get_by_role_and_label(Role::Button, "View").rect();
        let last = [
            (Role::CheckBox, "Critical path"),
            (Role::CheckBox, "BSP"),
            (Role::Button, "Key"),
            (Role::Button, "Whole run"),
            (Role::SpinButton, "Cycles on the screen"),
        ];
        for (role, name) in last {
            let control = window.get_by_role_and_label(role, name).rect();
            assert!(row.y_range().contains(control.center().y), "{width}: {name}");
            assert!(control.right() <= width, "{width}: {name}");
        }
        // The menu stays open while several switches are set.
        click(&mut window, Role::Button, "View");
        for name in ["Group executions", "Tile balance"] {
            click(&mut window, Role::CheckBox, name);
        }
        assert_says(&window, &["Group syncs", "Flame", "Time"]);
    }
}

#[test]
fn names_of_mechanisms_lead_to_their_pages() {
    let variant = Variant::named("simulated");
    let mut window = window(variant, "summary", Vec2::new(1600.0, 1800.0));
    click(&mut window, Role::Link, "Help: Syncs");
    assert!(says(&window, "Tiles run independently between syncs"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    show_view(&mut window, "insights");
    let mut links = window.query_all_by_role(Role::Link);
    let link = links.find(|node| {
        node.accesskit_node().label().is_some_and(|label| label.starts_with("Help: "))
    });
    link.expect("a finding about a mechanism").click();
    drop(links);
    settle(&mut window);
    assert!(says(&window, "Search help"));
    press(&mut window, Modifiers::NONE, Key::Escape);
    show_view(&mut window, "memory");
    press(&mut window, Modifiers::COMMAND, Key::T);
    click(&mut window, Role::Link, "Help: Pipelining");
    assert!(says(&window, "A pipeline gives each IPU a stage of consecutive layers"));
    // Names in files of Poplar are found too.
    for (name, page) in [
        ("StreamCopyMidRemoteBuffer", "A stream copy moves samples and results"),
        ("DstStridedCopy", "An operation that needs its operands in another layout"),
    ] {
        press(&mut window, Modifiers::NONE, Key::Escape);
        press(&mut window, Modifiers::SHIFT, Key::F1);
        type_text(&mut window, "Search help", name);
        assert!(says(&window, page), "{name}");
    }
}

#[test]
fn rows_of_tables_have_a_menu() {
    let variant = Variant::named("sample of a pipeline");
    let mut window = window(variant, "operations", SIZE);
    let mut rows =
        window.query_all_by_role(Role::Row).filter_map(|row| row.accesskit_node().label());
    let name = rows.next().expect("a row");
    drop(rows);
    let place = middle(&window, Role::Row, &name);
    right_click(&mut window, place);
    assert_says(&window, &["Show in Program tree", "Copy name", "Copy row"]);
    click(&mut window, Role::Button, "Filter to this name");
    assert!(painted(&window).iter().any(|text| text.contains(" of ") && text.ends_with(" rows")));
    let place = middle(&window, Role::Row, &name);
    right_click(&mut window, place);
    click(&mut window, Role::Button, "Show in Program tree");
    assert!(says(&window, "Unfold all"), "the tree is shown");
    assert!(window.state().session().selection().program.is_some());
}

/// The text that was copied in the last frame.
fn copied(window: &Window) -> Option<String> {
    window.output().platform_output.commands.iter().find_map(|command| match command {
        egui::OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    })
}

#[test]
fn single_values_of_a_row_are_copied_with_all_digits() {
    let mut report = ReportBuilder::new(1, 4);
    let work = report.compute("layer/fwd", 12_345_678);
    report.root(ProgramKind::Sequence, "main", &[work]);
    report.run(work, 0..12_345_678);
    let mut window = opened_window(opened(&report), "operations", SIZE);
    let place = middle(&window, Role::Row, "layer");
    right_click(&mut window, place);
    window.get_by_label_contains("Copy value").hover();
    settle(&mut window);
    let values = window.query_all_by_label_contains(": 12,345,678");
    let mut names = values.filter_map(|node| node.accesskit_node().label());
    let name = names.next().expect("a column of cycles");
    drop(names);
    window.get_by_role_and_label(Role::Button, &name).click();
    window.step();
    let mut text = copied(&window);
    for _ in 0..3 {
        window.step();
        text = text.or(copied(&window));
    }
    assert_eq!(text.as_deref(), Some("12345678"));
}

#[test]
fn rows_of_limits_lead_to_other_views() {
    let variant = Variant::named("sample of a pipeline");
    let operations = variant.opened().report.operations().expect("reads");
    let mut window = window(variant, "limits", SIZE);
    let mut rows =
        window.query_all_by_role(Role::Row).filter_map(|row| row.accesskit_node().label());
    // Some rows belong to no operation.
    let is_operation = |name: &String| operations.iter().any(|operation| operation.name == *name);
    let name = rows.find(is_operation).expect("a row");
    drop(rows);
    let place = middle(&window, Role::Row, &name);
    right_click(&mut window, place);
    click(&mut window, Role::Button, "Show in Operations");
    assert!(window.state().session().selection().operation.is_some());
    assert_eq!(window.state().session().page().expect("shown").view().name(), "operations");
}

#[test]
fn lines_of_the_program_tree_have_a_menu() {
    let mut window = window(Variant::named("small"), "program-tree", SIZE);
    let place = middle(&window, Role::TreeItem, "OnTileExecute");
    right_click(&mut window, place);
    assert_says(&window, &["Show in Execution trace", "Show in Liveness", "Copy name"]);
    click(&mut window, Role::Button, "Search for this name");
    assert!(painted(&window).iter().any(|text| text.ends_with(" found")));
}

#[test]
fn bars_and_marks_of_the_trace_have_a_menu() {
    let mut report = ReportBuilder::new(2, 4);
    let work = report.compute("layer/fwd", 900);
    report.root(ProgramKind::Sequence, "main", &[work]);
    report.run(work, 0..900);
    let mut window = trace(opened(&report));
    let (_, bar) = marks(&window, "fwd").pop().expect("a bar");
    right_click(&mut window, bar.center());
    assert_says(&window, &["Zoom to it", "Copy name", "Copy cycles", "Show in Program tree"]);
    click(&mut window, Role::Button, "Show in Program tree");
    assert!(window.state().session().selection().program.is_some());
}

#[test]
fn cells_of_the_schedule_have_room_for_their_numbers() {
    let mut window = window(Variant::named("sample of a pipeline"), "execution-trace", SIZE);
    click(&mut window, Role::Tab, "Schedule");
    settle(&mut window);
    let is_cut = |text: &String| {
        let number = text.strip_prefix(['F', 'B']).unwrap_or_default();
        number.starts_with(|letter: char| letter.is_ascii_digit()) && text.ends_with('…')
    };
    let cut: Vec<String> = painted(&window).into_iter().filter(is_cut).collect();
    assert_eq!(cut, Vec::<String>::new());
}

#[test]
fn steps_of_a_stream_copy_are_separate_lines() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("profile.pop");
    Foreign { stream_copies: true, steps: 900, ..Foreign::default() }.write(&file);
    let mut window = trace(OpenReport::read(directory.path()).unwrap());
    show_view(&mut window, "program-tree");
    for kind in ["StreamCopyBegin", "StreamCopyMid", "StreamCopyEnd"] {
        assert!(says(&window, &format!("{kind} (copyFromHost)")), "{kind}");
    }
}
