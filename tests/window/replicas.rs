//! Tests of lanes of replicas: folded to one with a sentence about the others, and all of them on
//! demand.

use crate::gui_support::{Window, click_at, opened_window, press, press_role, says, settle};
use crate::marks::{lane, marks, trace};
use egui::accesskit::Role;
use egui::{Key, Modifiers, Rect, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_fixtures::ReportBuilder;
use tilescope_gui::OpenReport;
use tilescope_report::units::{
    CycleRange, Cycles, IpuId, ProgramId, ReplicaClassId, ReplicaIpu, StepId,
};
use tilescope_report::{MarkKind, ProgramKind, ReplicaClass, TraceMark, TrainingPass};

/// Four replicas of two IPUs that work for `cycles`.
fn alike(cycles: u64) -> ReportBuilder {
    let mut report = ReportBuilder::new(2, 4);
    report.parts.target.replicas = 4;
    report.parts.target.num_ipus = 8;
    let work = report.compute("layer/fwd", cycles);
    let meeting = report.program(ProgramKind::Sync, "External");
    report.root(ProgramKind::Sequence, "main", &[work, meeting]);
    report.run(work, 0..cycles);
    report
}

/// Four replicas, of which 2 and 3 begin 600 cycles later; the others wait for them.
fn differing() -> OpenReport {
    differing_of(4)
}

/// The same of more replicas, which work like 0 and 1.
fn differing_of(replicas: u32) -> OpenReport {
    let mut report = alike(900);
    report.parts.target.replicas = replicas;
    report.parts.target.num_ipus = 2 * replicas;
    let meeting = report.parts.programs.iter().position(|of| of.name == "External").unwrap();
    let meeting = ProgramId::from_index(meeting);
    report.run(meeting, 900..1_600);
    let class = |replicas: Vec<u32>, why: &str| ReplicaClass { replicas, why: why.to_owned() };
    let fast = (0..replicas).filter(|replica| ![2, 3].contains(replica)).collect();
    let classes = [class(fast, "fast host"), class(vec![2, 3], "host 2 times slower")];
    report.parts.replica_classes.classes = classes.to_vec();
    report.parts.replica_classes.joins.insert(meeting);
    let slow = ReplicaClassId(1);
    let at = |ipu, cycles| report.bar(IpuId(ipu), cycles);
    let others = [600..1_500, 1_500..1_600].map(|cycles| [at(0, cycles.clone()), at(1, cycles)]);
    for (step, bars) in report.steps.iter_mut().zip(others) {
        step.other_replicas = bars.into_iter().map(|bar| (slow, bar)).collect();
    }
    let stage = |start| TraceMark {
        kind: MarkKind::Stage,
        label: "A0 forward".to_owned(),
        ipu: Some(IpuId(0)),
        pass: Some(TrainingPass::Forward),
        index: 0,
        steps: StepId(0)..StepId(1),
        cycles: CycleRange::new(Cycles(start), Cycles(start + 900)),
    };
    report.marks.push(stage(0));
    report.marks_of_others.push((slow, stage(600)));
    opened(&report)
}

fn opened(report: &ReportBuilder) -> OpenReport {
    let directory = tempfile::tempdir().unwrap();
    report.write(directory.path()).unwrap();
    OpenReport::read(directory.path()).unwrap()
}

/// The names of the lanes of all replicas, from the top.
fn lane_names() -> impl Iterator<Item = String> {
    (0..4).flat_map(|replica| (0..2).map(move |ipu| format!("R{replica} IPU {ipu}")))
}

fn unfold(window: &mut Window) -> Vec<Rect> {
    assert!(press_role(window, Role::Button, "Unfold replicas"));
    settle(window);
    let lanes: Vec<Rect> = lane_names().map(|name| lane(window, &name).expect("a lane")).collect();
    assert!(lanes.windows(2).all(|pair| pair[0].bottom() <= pair[1].top()), "{lanes:?}");
    lanes
}

/// The bars of the work on all lanes. On the critical path their names include the IPU.
fn works(window: &Window) -> Vec<(String, Rect)> {
    marks(window, "fwd").into_iter().filter(|(name, _)| name == "fwd").collect()
}

/// The bars of a lane with this name, from the left.
fn bars(window: &Window, lane: Rect, words: &str) -> Vec<Rect> {
    let all = marks(window, words).into_iter().map(|(_, rect)| rect);
    all.filter(|rect| lane.y_range().contains(rect.center().y)).collect()
}

/// One of several alike replicas is shown, with a sentence about the others; all of them have lanes
/// on demand.
#[test]
fn lanes_of_replicas_are_folded_and_unfold() {
    let mut window = trace(opened(&alike(900)));
    assert!(says(&window, "4 identical replicas; one is shown"));
    assert!(lane(&window, "IPU 1").is_some() && lane(&window, "R3 IPU 1").is_none());
    unfold(&mut window);
    assert!(says(&window, "4 identical replicas; all are shown"));
    let drawn = works(&window);
    assert_eq!(drawn.len(), 8, "each has its bar: {drawn:?}");
    assert!(press_role(&mut window, Role::Button, "Fold replicas"));
    settle(&mut window);
    assert!(lane(&window, "R3 IPU 1").is_none());
}

/// Replicas that differ have their own lanes with their own activity.
#[test]
fn replicas_that_differ_have_their_own_lanes() {
    let mut window = trace(differing());
    let sentence = "4 replicas differ: 0, 1 (fast host); 2, 3 (host 2 times slower)";
    assert!(says(&window, sentence) && says(&window, "replica 0 is shown"));
    assert_eq!(works(&window).len(), 2, "of replica 0 alone");
    let lanes = unfold(&mut window);
    assert!(says(&window, sentence) && says(&window, "all are shown"));
    let works: Vec<Rect> = lanes.iter().map(|lane| bars(&window, *lane, "fwd")[0]).collect();
    let (fast, slow) = works.split_at(4);
    assert!(fast.iter().all(|bar| bar.x_range() == fast[0].x_range()), "{fast:?}");
    assert!(slow.iter().all(|bar| bar.x_range() == slow[0].x_range()), "{slow:?}");
    assert!(slow[0].left() > fast[0].left() + 100.0, "they begin later: {fast:?} {slow:?}");
    assert!((slow[0].width() - fast[0].width()).abs() < 1.0, "and work as long");
    for (lane, begins) in [(lanes[0], fast[0].right()), (lanes[4], slow[0].right())] {
        let sync = bars(&window, lane, "External")[0];
        assert!((sync.left() - begins).abs() < 1.0, "{sync:?}");
    }
}

/// The value of the lanes of an IPU for screen readers.
fn value(window: &Window, name: &str) -> String {
    let mut rows = window.query_all_by_role(Role::Row);
    let own = rows.find(|node| node.accesskit_node().label().as_deref() == Some(name));
    own.and_then(|node| node.accesskit_node().value()).expect("a value")
}

/// Many replicas are small multiples: all have thin lanes, and those are marked that wait unlike the
/// others.
#[test]
fn many_replicas_are_small_multiples() {
    let mut window = opened_window(differing_of(16), "execution-trace", Vec2::new(1300.0, 1000.0));
    assert!(press_role(&mut window, Role::Button, "Unfold replicas"));
    settle(&mut window);
    assert!(says(&window, "all are shown"));
    let mut below = 0.0;
    for replica in 0..16 {
        for ipu in 0..2 {
            let name = format!("R{replica} IPU {ipu}");
            let lane = lane(&window, &name).expect("a lane");
            assert!(lane.top() >= below && lane.height() < 32.0, "{name}: {lane:?}");
            below = lane.bottom();
        }
    }
    let slow = value(&window, "R2 IPU 1");
    assert!(slow.contains("waits 6.2 % of the run in syncs, unlike most replicas"), "{slow}");
    assert!(value(&window, "R0 IPU 0").contains("waits 43.8 % of the run in syncs, the median"));
    assert!(value(&window, "R1 IPU 0").ends_with("in syncs"));
    let slow = lane(&window, "R2 IPU 1").expect("a lane");
    click_at(&mut window, slow.center() + Vec2::new(500.0, 0.0), 1);
    let chosen = window.state().session().selection().step.expect("a step");
    assert_eq!(chosen.at, ReplicaIpu { class: ReplicaClassId(1), ipu: IpuId(1) });
}

/// Details describe the step that was clicked in a lane.
#[test]
fn a_click_on_another_replica_shows_its_activity() {
    // High enough for both rows of each lane, so that the click hits a step.
    let mut window = opened_window(differing(), "execution-trace", Vec2::new(1300.0, 1000.0));
    let lanes = unfold(&mut window);
    let bar = bars(&window, lanes[5], "fwd")[0].center();
    click_at(&mut window, bar, 1);
    assert!(says(&window, "2, 3 (host 2 times slower)"));
    assert!(says(&window, "600 - 1,500"), "its own cycles");
    let chosen = window.state().session().selection().step.expect("a step");
    assert_eq!(chosen.at, ReplicaIpu { class: ReplicaClassId(1), ipu: IpuId(1) });
    press(&mut window, Modifiers::NONE, Key::Escape);
    assert!(press_role(&mut window, Role::Button, "Fold replicas"));
    settle(&mut window);
    let own = lane(&window, "IPU 1").expect("a lane");
    let bar = bars(&window, own, "fwd")[0].center();
    click_at(&mut window, bar, 1);
    assert!(says(&window, "0, 1 (fast host)") && says(&window, "0 - 900"));
}

/// Summary shows which process of which host serves each replica.
#[test]
fn hosts_and_their_processes_are_drawn() {
    let sets = ["options.device_iterations=1", "options.replication_factor=4"];
    let instances = "options.num_instances=2";
    let directory = crate::tour::simulated("mnist_pipeline", &[sets[0], sets[1], instances]);
    let opened = OpenReport::read(directory.path()).unwrap();
    let window = opened_window(opened, "summary", Vec2::new(1300.0, 2400.0));
    for words in ["Host 0", "Instance 0", "replicas 0 - 1", "Instance 1", "replicas 2 - 3"] {
        assert!(says(&window, words), "{words}");
    }
    assert!(!says(&window, "Host 1") && !says(&window, "Instance 2"));
}

/// The figures are those of each class, named by its first replica.
#[test]
fn totals_are_per_replica_class() {
    let mut window = trace(differing());
    assert!(press_role(&mut window, Role::Tab, "Summary"));
    settle(&mut window);
    assert!(!says(&window, "R2 0"));
    unfold(&mut window);
    // Scroll to the rows below.
    for name in ["R0 0", "R0 1", "R2 0"] {
        assert!(says(&window, name), "{name}");
    }
    assert!(!says(&window, "R1 0"), "it is like R0");
}
