//! Tests of the marks of the execution trace: none is missing at any zoom, each can be selected and
//! zoomed to, and repeated ranges have places.

use crate::gui_support::{
    Variant, Window, assert_says, click_at, opened_window, press, press_role, says, settle,
    show_view, window,
};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Rect, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_analysis::insights::insights;
use tilescope_analysis::trace::located_step;
use tilescope_fixtures::ReportBuilder;
use tilescope_gui::OpenReport;
use tilescope_report::units::{CycleRange, Cycles, IpuId, NumberFormat, StepId};
use tilescope_report::{MarkKind, ProgramKind, TraceMark, TrainingPass};

const SIZE: Vec2 = Vec2::new(1300.0, 850.0);
const ITERATIONS: u64 = 2_000;
/// The index of the longest iteration.
const SLOWEST: u64 = 1_234;

/// Iterations of a pipeline of two IPUs: forward on each, backward on each, an update.
fn training(slowest_more: u64) -> OpenReport {
    let mut report = ReportBuilder::new(2, 4);
    let forward = report.compute("layer/fwd", 900);
    let backward = report.compute("layer/bwd", 1_800);
    let update = report.compute("layer/update", 100);
    let sync = report.program(ProgramKind::Sync, "External");
    report.root(ProgramKind::Sequence, "main", &[forward, backward, update, sync]);
    let mut at = 0;
    for index in 0..ITERATIONS {
        let (start, first) = (at, report.steps.len() as u64);
        let mark = |report: &mut ReportBuilder, ipu, pass, kind, cycles| {
            let steps = report.steps.len() as u64;
            let label = format!("B{ipu} {}", TrainingPass::name(pass));
            let steps = StepId(steps - 1)..StepId(steps);
            let (ipu, pass) = (Some(IpuId(ipu)), Some(pass));
            report.marks.push(TraceMark { kind, label, ipu, pass, index, steps, cycles });
        };
        let more = if index == SLOWEST { slowest_more } else { 0 };
        for (program, ipu, cycles, pass, kind) in [
            (forward, 0, 900, TrainingPass::Forward, MarkKind::Stage),
            (forward, 1, 900, TrainingPass::Forward, MarkKind::Stage),
            (backward, 1, 1_800 + more, TrainingPass::Backward, MarkKind::Stage),
            (backward, 0, 1_800, TrainingPass::Backward, MarkKind::Stage),
            (update, 0, 100, TrainingPass::Update, MarkKind::Update),
        ] {
            report.run_on(program, IpuId(ipu), at..at + cycles);
            let own = CycleRange::new(Cycles(at), Cycles(at + cycles));
            mark(&mut report, ipu, pass, kind, own);
            report.run_on(sync, IpuId(1 - ipu), at..at + cycles);
            at += cycles;
        }
        report.marks.push(TraceMark {
            kind: MarkKind::Iteration,
            label: format!("iteration {index}"),
            ipu: None,
            pass: None,
            index,
            steps: StepId(first)..StepId(report.steps.len() as u64),
            cycles: CycleRange::new(Cycles(start), Cycles(at)),
        });
    }
    let directory = tempfile::tempdir().unwrap();
    report.write(directory.path()).unwrap();
    OpenReport::read(directory.path()).unwrap()
}

pub(crate) fn trace(report: OpenReport) -> Window {
    opened_window(report, "execution-trace", SIZE)
}

/// The names and rectangles of the visible marks whose name contains `words`.
pub(crate) fn marks(window: &Window, words: &str) -> Vec<(String, Rect)> {
    let cells = window.query_all_by_role(Role::Cell);
    let named = cells.map(|node| (node.accesskit_node().label().unwrap_or_default(), node.rect()));
    named.filter(|(name, _)| name.contains(words)).collect()
}

/// The rectangle of the lanes of an IPU on the screen.
pub(crate) fn lane(window: &Window, name: &str) -> Option<Rect> {
    let mut rows = window.query_all_by_role(Role::Row);
    rows.find(|node| node.accesskit_node().label().as_deref() == Some(name)).map(|node| node.rect())
}

/// The number at the start of a text.
fn number(text: &str) -> u64 {
    let digits: String = text.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    digits.replace(',', "").parse().unwrap()
}

#[test]
fn zoomed_out_marks_are_counted_and_none_is_missing() {
    let mut window = trace(training(0));
    assert!(press_role(&mut window, Role::Button, "Whole run"));
    settle(&mut window);
    let blocks = marks(&window, " iterations");
    let counted: u64 = blocks.iter().map(|(name, _)| number(name)).sum();
    assert_eq!(counted, ITERATIONS, "{blocks:?}");
    // Two stages of each pass and an update for every iteration.
    let stages: u64 = marks(&window, " passes").iter().map(|(name, _)| number(name)).sum();
    assert_eq!(stages, ITERATIONS * 4);
    assert!(!says(&window, "more marks"));
    let (name, rect) = &blocks[blocks.len() / 2];
    click_at(&mut window, rect.center(), 1);
    assert!(says(&window, "Duration of each"), "details of {name}");
    let closer = marks(&window, " iterations");
    let less = |(name, _): &(String, Rect)| number(name) < number(&blocks[0].0);
    assert!(closer.iter().all(less), "the click went there: {closer:?}");
}

#[test]
fn a_mark_is_selected_zoomed_to_and_left_by_keys() {
    let mut window = trace(training(5_000));
    settle(&mut window);
    let stage = marks(&window, "B0 backward")[0].clone();
    click_at(&mut window, stage.1.center(), 1);
    assert_says(
        &window,
        &["Micro-batch", "Waited before it", "Waited for", "B1 backward of micro-batch"],
    );
    assert_eq!(window.state().session().selection().step, None);
    press(&mut window, Modifiers::NONE, Key::Comma);
    assert!(says(&window, "B0 forward"), "the mark before it");
    press(&mut window, Modifiers::NONE, Key::F);
    let (_, wide) = marks(&window, "B0 forward")[0].clone();
    assert!(wide.width() > 500.0, "{wide:?}");
    press(&mut window, Modifiers::NONE, Key::F);
    assert!(!marks(&window, " iterations").is_empty(), "everything again");
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(says(&window, "Typical iteration"), "nothing is chosen");
}

/// A click on a stage highlights the work of all stages on its micro-batch; `B` does so for a step.
#[test]
fn one_micro_batch_is_followed_through_all_stages() {
    let mut window = trace(training(5_000));
    assert!(followed(&window).is_none());
    let stage = marks(&window, "B0 backward")[0].clone();
    click_at(&mut window, stage.1.center(), 1);
    assert!(followed(&window).is_some(), "two stages, forward and backward");
    let (_, number) = stage.0.split_once(", micro-batch ").unwrap();
    assert_eq!(followed(&window).unwrap(), format!("Micro-batch {number}"));
    let boxes = window.query_all_by_role_and_label(Role::SpinButton, "Micro-batch");
    assert_eq!(boxes.count(), 1, "and a box to follow another one");
    press(&mut window, Modifiers::NONE, Key::Comma);
    assert!(followed(&window).is_some(), "the mark before it is of the same one");
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(followed(&window).is_none());
    press(&mut window, Modifiers::NONE, Key::B);
    assert!(says(&window, "Select a stage mark above the lanes"));
    // A step of a stage, by keys alone: what is chosen first is the first one on the screen.
    press(&mut window, Modifiers::NONE, Key::Period);
    press(&mut window, Modifiers::NONE, Key::B);
    assert!(followed(&window).is_some());
    press(&mut window, Modifiers::NONE, Key::B);
    assert!(followed(&window).is_none());
}

/// The name of the followed micro-batch, which passes through four stages.
fn followed(window: &Window) -> Option<String> {
    let mut nodes = window.query_all_by_role(Role::GraphicsObject);
    let own = |node: &egui_kittest::Node<'_>| {
        let value = node.accesskit_node().value().unwrap_or_default();
        value.starts_with("4 passes of stages")
    };
    nodes.find(own).and_then(|node| node.accesskit_node().label())
}

/// The schedule has every pass of a micro-batch, and a cell links to its cycles.
#[test]
fn the_schedule_of_a_pipeline_links_to_its_slots() {
    let mut window = window_of("simulated");
    assert!(press_role(&mut window, Role::Tab, "Schedule"));
    settle(&mut window);
    let cells = marks(&window, "micro-batch 0");
    assert!(cells.iter().any(|(name, _)| name.contains("backward")), "{cells:?}");
    let lowest = |(_, rect): &&(String, Rect)| (rect.top() * 10.0) as i64;
    let (name, cell) = cells.iter().max_by_key(lowest).unwrap().clone();
    click_at(&mut window, cell.center(), 1);
    settle(&mut window);
    assert!(says(&window, "Iteration 0"), "the schedule is still there after a click on {name}");
    let slots = marks(&window, "slot ");
    assert!(slots.iter().any(|(_, slot)| slot.width() > 400.0), "it is shown: {slots:?}");
    let mut window = window_of("foreign");
    assert!(press_role(&mut window, Role::Tab, "Schedule"));
    settle(&mut window);
    assert!(says(&window, "The report has no marks of slots"));
}

fn window_of(variant: &str) -> Window {
    window(Variant::named(variant), "execution-trace", SIZE)
}

#[test]
fn a_double_click_zooms_to_a_mark() {
    let mut window = trace(training(5_000));
    let (_, before) = marks(&window, "B1 backward")[0].clone();
    click_at(&mut window, before.center(), 2);
    let (_, after) = marks(&window, "B1 backward")[0].clone();
    assert!(after.width() > before.width() * 1.3 && after.width() > 650.0, "{before:?} {after:?}");
}

#[test]
fn a_long_run_begins_with_a_typical_iteration_and_offers_others() {
    let mut window = trace(training(5_000));
    assert_eq!(marks(&window, "iteration 1000").len(), 1, "the median in the middle of the run");
    assert!(press_role(&mut window, Role::Tab, "Details"));
    settle(&mut window);
    assert!(says(&window, "+90.9 %"), "the slowest takes 5,000 cycles more than 5,500");
    assert!(press_role(&mut window, Role::Link, "Slowest iteration 1,234"));
    settle(&mut window);
    assert_eq!(marks(&window, "iteration 1234").len(), 1);
    assert!(says(&window, "Compared with the median"));
}

#[test]
fn equal_iterations_are_one_place() {
    let mut window = trace(training(0));
    assert!(press_role(&mut window, Role::Tab, "Details"));
    settle(&mut window);
    assert!(says(&window, "2,000 iterations, all with the same cycles"));
    assert!(says(&window, "Typical iteration") && !says(&window, "Slowest iteration"));
}

#[test]
fn lanes_are_high_enough_and_one_can_be_enlarged() {
    let mut window = window(Variant::named("64 IPUs"), "execution-trace", Vec2::new(1280.0, 720.0));
    let (first, second) = (lane(&window, "IPU 0").unwrap(), lane(&window, "IPU 1").unwrap());
    assert!(first.height() >= 16.0 && second.height() >= 16.0, "{first:?} {second:?}");
    assert!(lane(&window, "IPU 63").is_none(), "there is no room for all of them");
    assert!(press_role(&mut window, Role::Button, "Enlarge IPU 1"));
    settle(&mut window);
    let large = lane(&window, "IPU 1").unwrap();
    assert!(large.height() > second.height() * 2.0, "{large:?}");
    assert!(press_role(&mut window, Role::Button, "Shrink IPU 1"));
    settle(&mut window);
    assert_eq!(lane(&window, "IPU 1"), Some(second));
}

/// Dragging the border below an IPU changes its height, which is restored with the tab.
#[test]
fn dragging_the_border_below_an_ipu_changes_its_height() {
    let variant = Variant::named("simulated");
    let mut window = window(variant, "execution-trace", Vec2::new(1280.0, 900.0));
    let border = |window: &Window| {
        let node = window.get_by_role_and_label(Role::Splitter, "Border below IPU 1");
        node.rect().center()
    };
    let height = |window: &Window| lane(window, "IPU 1").unwrap().height();
    let before = height(&window);
    let from = border(&window);
    let drag = [0.0, 20.0, 40.0, 60.0].map(|down| from + egui::vec2(0.0, down));
    pointer(&mut window, from, Some(true));
    drag.into_iter().for_each(|at| pointer(&mut window, at, None));
    pointer(&mut window, drag[3], Some(false));
    settle(&mut window);
    let dragged = height(&window);
    assert!((dragged - before - 60.0).abs() < 24.0, "{before} {dragged}");
    // Another view and back.
    show_view(&mut window, "summary");
    show_view(&mut window, "execution-trace");
    assert_eq!(height(&window), dragged);
    let at = border(&window);
    click_at(&mut window, at, 2);
    assert_eq!(height(&window), before);
}

/// Moves the pointer to a position, and presses or releases it there.
fn pointer(window: &mut Window, pos: egui::Pos2, pressed: Option<bool>) {
    let (button, modifiers) = (egui::PointerButton::Primary, egui::Modifiers::NONE);
    window.event(egui::Event::PointerMoved(pos));
    window.step();
    if let Some(pressed) = pressed {
        window.event(egui::Event::PointerButton { pos, button, pressed, modifiers });
        window.step();
    }
}

/// Each link of a finding goes to the IPU, the step and the moment that it names.
#[test]
fn links_of_findings_go_to_their_steps() {
    let variant = Variant::named("simulated");
    let report = variant.opened().report;
    let findings = insights(&report, NumberFormat::default()).unwrap();
    let places = findings.iter().map(|finding| &finding.place);
    let places: Vec<_> = places.filter(|place| place.view == "execution-trace").collect();
    assert!(places.len() >= 3, "{places:?}");
    for (index, place) in places.into_iter().enumerate() {
        let mut window = opened_window(variant.opened(), "insights", Vec2::new(1300.0, 2600.0));
        let links = window.query_all_by_role_and_label(Role::Link, "Show in Execution trace");
        links.into_iter().nth(index).unwrap().click();
        settle(&mut window);
        let found = located_step(&report, place).unwrap().unwrap().location;
        let session = window.state().session();
        let shown = session.page().unwrap().view().name();
        assert_eq!(shown, "execution-trace", "{index}: {place:?}");
        let step = session.selection().step.unwrap();
        assert_eq!((step.at.ipu, step.step), (found.ipu, found.step.step), "{place:?}");
        assert!(place.ipu.is_none_or(|ipu| ipu == step.at.ipu), "{place:?}");
        let name = format!("IPU {}", step.at.ipu);
        let lane = lane(&window, &name);
        assert!(lane.is_some_and(|lane| lane.height() > 10.0), "{name} is on the screen");
        assert!(says(&window, "Active tiles") || says(&window, "Cycles"), "its details are shown");
    }
}
