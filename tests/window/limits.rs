//! Tests of the limits view: points of the roofline are operations, the waterfall is complete, and
//! unknown figures are reported as such.

use crate::gui_support::{
    Variant, Window, click_at, opened_window, picture, press_role, says, settle,
};
use crate::{common, gui_support};
use egui::accesskit::Role;
use egui::{Rect, Vec2};
use egui_kittest::kittest::{NodeT, Queryable};
use tilescope_analysis::limits::{WaterfallStep, limits};
use tilescope_gui::OpenReport;
use tilescope_gui::theme::DARK;
use tilescope_report::Report;
use tilescope_report::units::{fine_percent, grouped, percent};

const SIZE: Vec2 = Vec2::new(1300.0, 850.0);

fn pipeline() -> (Window, Report) {
    let directory = tempfile::tempdir().unwrap();
    let spec = common::spec("mnist_pipeline", &["options.device_iterations=1"]);
    common::report_file(&spec, directory.path());
    let opened = OpenReport::read(directory.path()).unwrap();
    let report = Report::open(directory.path()).unwrap();
    (opened_window(opened, "limits", SIZE), report)
}

/// The value and rectangle of a part of a picture.
fn part(window: &Window, role: Role, name: &str) -> (String, Rect) {
    let node = window.get_by_role_and_label(role, name);
    (node.accesskit_node().value().unwrap_or_default(), node.rect())
}

/// The number of pixels in a part of a window that have the colour of the achieved share.
fn pixels(window: &mut Window, inside: Rect, colour: egui::Color32) -> usize {
    let picture = picture(window, SIZE);
    let width = picture.width;
    let is_inside = |at: usize| {
        inside.contains(egui::pos2((at % width) as f32 + 0.5, (at / width) as f32 + 0.5))
    };
    let found = picture.pixels.iter().enumerate();
    found.filter(|(at, pixel)| is_inside(*at) && **pixel == colour.to_array()).count()
}

#[test]
fn clicking_a_point_selects_its_operation() {
    let (mut window, report) = pipeline();
    let found = limits(&report).unwrap();
    let known = report.operations().unwrap();
    for name in ["layer1/conv", "layer2/conv/bwd"] {
        let id = known.iter().position(|operation| operation.name == name).unwrap();
        let row = found.rows.iter().find(|row| row.name == name).unwrap();
        let (figures, place) = part(&window, Role::GraphicsObject, name);
        let cycles = grouped(row.limits.total().0);
        assert!(figures.starts_with(&format!("{cycles} cycles")), "{figures}");
        click_at(&mut window, place.center(), 1);
        settle(&mut window);
        let selected = window.state().session().selection().operation;
        assert_eq!(selected.map(|id| id.index()), Some(id), "{name}");
        // The details state the lower bound.
        assert!(says(&window, name) && says(&window, &cycles), "{name}");
        let ideal = row.limits.ideal.unwrap().cycles;
        assert!(says(&window, &grouped(ideal.0)), "{name}");
    }
    // A second click on the same point clears the selection.
    let (_, place) = part(&window, Role::GraphicsObject, "layer2/conv/bwd");
    click_at(&mut window, place.center(), 1);
    settle(&mut window);
    assert_eq!(window.state().session().selection().operation, None);
}

#[test]
fn points_have_the_colours_of_their_classes() {
    let (mut window, report) = pipeline();
    let found = limits(&report).unwrap();
    let (_, plot) = part(&window, Role::Canvas, "Roofline");
    let mut drawn = 0;
    for row in found.rows.iter().filter(|row| row.limits.flops > Some(0)) {
        let (_, place) = part(&window, Role::GraphicsObject, &row.name);
        assert!(plot.contains_rect(place), "{} at {place}", row.name);
        drawn += 1;
    }
    assert!(drawn > 20, "{drawn}");
    assert!(pixels(&mut window, plot, DARK.compute) > 100, "points of compute");
    assert!(pixels(&mut window, plot, DARK.balance) > 100, "points of balance");
}

#[test]
fn the_waterfall_covers_the_whole_run() {
    let (mut window, report) = pipeline();
    let run = limits(&report).unwrap().run.clone().unwrap();
    let (steps, plot) = part(&window, Role::Canvas, "Waterfall");
    for (step, cycles) in run.all.iter().filter(|(_, cycles)| !cycles.is_zero()) {
        let share = match run.all.share(step) {
            share if share < 0.0005 => "< 0.1 %".to_owned(),
            share => percent(share),
        };
        let words = format!("{} {share}", step.title());
        assert!(steps.contains(&words), "{words} of {cycles} cycles in {steps}");
    }
    let achieved = fine_percent(run.all.share(WaterfallStep::Achieved));
    assert!(says(&window, &format!("{achieved} of the peak of all IPUs")));
    let [sync, wait] = [DARK.external_sync, DARK.stream_begin].map(|colour| {
        let drawn = pixels(&mut window, plot, colour);
        assert!(drawn > 300, "{drawn} pixels of {colour:?}");
        drawn as f64
    });
    // Bars are as long as their shares.
    let [of_sync, of_wait] =
        [WaterfallStep::SyncAndStart, WaterfallStep::HostWait].map(|step| run.all.share(step));
    assert!((sync / wait / (of_sync / of_wait) - 1.0).abs() < 0.1, "{sync} {wait}");
}

#[test]
fn files_of_other_tools_explain_missing_points() {
    let mut window = gui_support::window(Variant::named("foreign"), "limits", SIZE);
    assert!(says(&window, "No points"));
    assert!(says(&window, "The report has no operations of the model"));
    assert!(says(&window, "The utilisation of all IPUs is unknown."));
    let (steps, _) = part(&window, Role::Canvas, "Waterfall");
    assert!(steps.contains("Compute, unclassified"), "{steps}");
    assert!(!steps.contains("Achieved"), "{steps}");
    assert!(press_role(&mut window, Role::Tab, "Where cycles go"));
    settle(&mut window);
    assert!(says(&window, "Rearrangement"));
}
