//! Invariants of the layers on a small trace: objects are drawn at the position of their cycles and
//! can be hit there.

use super::lanes::{
    IpuBand, LaneHitTarget, bar_labels, hit, ipu_bands, share_lines, shares_on_screen,
};
use super::user_marks::{cycles_between, drawn_range, measure};
use super::*;
use crate::model::preferences::TracePrefs;
use crate::theme::ColourScheme;
use crate::views::cycle_axis::{fitting_cycles, limits_of_cycles};
use crate::views::execution_trace::layout::{
    ShownIpus, TraceRegions, ipu_lane_layouts, total_height,
};
use crate::views::execution_trace::loaded_trace::prepare;
use crate::views::execution_trace::queries::{TraceSceneLook, scene_key};
use crate::views::execution_trace::scene::build_scene;
use egui::vec2;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use tilescope_fixtures::ReportBuilder;
use tilescope_report::units::{CycleRange, Cycles, Hertz, IpuId};
use tilescope_report::{MarkKind, ProgramKind, Report};

/// The view at 800 x 400 points.
const AREA: Rect = Rect { min: pos2(10.0, 20.0), max: pos2(810.0, 420.0) };

fn cycles(start: u64, end: u64) -> CycleRange {
    CycleRange::new(Cycles(start), Cycles(end))
}

struct SampleTrace {
    report: Report,
    trace: LoadedTrace,
    prefs: TracePrefs,
    /// `None`, so that bars are shown at any zoom.
    narrow_steps: Option<Cycles>,
}

/// Two IPUs that compute for 80 cycles, wait for 20 and compute for another 100.
fn sample() -> SampleTrace {
    let mut builder = ReportBuilder::new(2, 4);
    let first = builder.compute("first", 80);
    let second = builder.compute("second", 100);
    builder.root(ProgramKind::Sequence, "main", &[first, second]);
    builder.run(first, 0..80).run(second, 100..200);
    builder.mark(MarkKind::Run, "run 0", 0..2);
    let directory = tempfile::tempdir().unwrap();
    let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
    let progress = Arc::new(AtomicU64::new(0));
    let cancel = Arc::new(AtomicBool::new(false));
    let trace = prepare(&report, &progress, &cancel).unwrap().expect("a trace");
    SampleTrace { report, trace, prefs: TracePrefs::default(), narrow_steps: None }
}

impl SampleTrace {
    fn layout(&self, scroll: f64) -> TraceLayout<'_> {
        let regions = TraceRegions::new(AREA, 1, true);
        let shown: Vec<IpuId> = self.trace.ipus.iter().map(|lanes| lanes.at.ipu).collect();
        let room = regions.lanes.height();
        let enlarged = &BTreeSet::new();
        let heights = &BTreeMap::new();
        let shares = self.narrow_steps.is_some();
        let shown = ShownIpus {
            ipus: &shown,
            enlarged,
            heights,
            prefs: &self.prefs,
            shares,
            replicas: &[0],
        };
        let blocks = ipu_lane_layouts(&self.trace, shown, room);
        let axis = fitting_cycles(self.trace.range, regions.lanes.width());
        TraceLayout { regions, axis, blocks, scroll }
    }

    fn scene(&self, layout: &TraceLayout<'_>) -> TraceScene {
        let limits = limits_of_cycles(self.trace.range, layout.regions.lanes.width());
        let look = TraceSceneLook {
            prefs: &self.prefs,
            selected: None,
            filter: "",
            colours: ColourScheme::default(),
            narrow_steps: self.narrow_steps,
            marks_known: true,
            path_known: true,
            pixels_per_point: 1.0,
        };
        let key = scene_key(layout, limits, look);
        build_scene(&self.report, &self.trace, &key).unwrap()
    }
}

/// The first single step of the first IPU.
fn first_step(scene: &TraceScene) -> SelectedStep {
    let lane = &scene.ipus[0].lanes[0];
    let (item, step) = lane.items.iter().find_map(|item| Some((item, item.step()?))).unwrap();
    let position = item.first_position();
    SelectedStep { at: lane.at, sub_lane: lane.sub_lane, position, step }
}

#[test]
fn regions_are_adjacent_and_share_their_edges() {
    for (height, rows) in [(400.0, 0), (400.0, 3), (120.0, 1)] {
        let area = Rect::from_min_size(AREA.min, vec2(800.0, height));
        let TraceRegions { overview, ruler, marks, path, lanes } =
            TraceRegions::new(area, rows, true);
        // A low view has no space for the path.
        let shown = [overview, ruler, marks, path, lanes];
        let shown: Vec<Rect> =
            shown.into_iter().filter(|of| *of != path || path.height() > 0.0).collect();
        assert_eq!(shown.len(), if height > 200.0 { 5 } else { 4 });
        for (above, below) in shown.iter().zip(&shown[1..]) {
            assert!(above.bottom() < below.top(), "{above:?} {below:?}");
            assert_eq!(above.x_range(), below.x_range());
        }
        assert!(lanes.height() >= 10.0 && lanes.right() < area.right());
    }
}

#[test]
fn steps_are_drawn_and_hit_at_their_cycles() {
    let sample = sample();
    let layout = sample.layout(0.0);
    let scene = sample.scene(&layout);
    let bands = ipu_bands(&layout, Some(&scene));
    assert_eq!(bands.len(), 2);
    let mut labels = 0;
    for band in &bands {
        let (_, ipu) = band.scene.expect("it was read");
        let bars = layout.bars(band.block);
        for label in bar_labels(&layout, band.block, &sample.trace, ipu) {
            labels += 1;
            let range = label.item.range;
            assert!((label.rect.left() - layout.x(range.start)).abs() < 0.01, "{range:?}");
            assert!((label.rect.right() - layout.x(range.end)).abs() < 0.01, "{range:?}");
            assert!(bars.contains_rect(label.rect), "{bars:?} {:?}", label.rect);
            let found = hit(&layout, &scene, label.rect.center()).expect("a bar");
            assert_eq!((found.at, found.rect), (ipu.at, label.rect));
        }
        let wait = pos2(layout.x(Cycles(90)), bars.top() + 1.0);
        assert!(hit(&layout, &scene, wait).is_none(), "nothing runs in between");
    }
    assert!(labels >= 4, "two steps on each IPU: {labels}");
}

#[test]
fn hidden_ipus_are_neither_laid_out_nor_read() {
    let mut sample = sample();
    (sample.prefs.tiles, sample.prefs.tiles_height) = (true, 960);
    let layout = sample.layout(0.0);
    let scene = sample.scene(&layout);
    let bands = ipu_bands(&layout, Some(&scene));
    let ipu = |band: &IpuBand<'_>| band.block.lanes.at.ipu;
    assert_eq!(bands.iter().map(ipu).collect::<Vec<IpuId>>(), [IpuId(0)]);
    let near: Vec<IpuId> = layout.blocks_within(200.0).map(|block| block.lanes.at.ipu).collect();
    assert_eq!(near, [IpuId(0)]);
    let down = sample.layout(900.0);
    let bands = ipu_bands(&down, Some(&scene));
    let known: Vec<(IpuId, bool)> = bands.iter().map(|b| (ipu(b), b.scene.is_some())).collect();
    assert_eq!(known, [(IpuId(0), true), (IpuId(1), false)]);
    assert!(total_height(&layout.blocks) > 1_920.0);
    let name = bands[0].name_at.expect("a name");
    assert!(down.regions.lanes.y_range().contains(name.y), "the name of a part stays: {name:?}");
}

#[test]
fn the_selected_step_is_drawn_last_and_veils_the_others() {
    let sample = sample();
    let layout = sample.layout(0.0);
    let scene = sample.scene(&layout);
    let chosen = first_step(&scene);
    let mut settings = TraceSettings::default();
    let (none, veiled) = chosen_bars(&layout, Some(&scene), &settings, None);
    assert!(none.is_empty() && !veiled);
    settings.also = vec![SelectedStep { at: IpuId(1).into(), ..chosen }];
    let (bars, veiled) = chosen_bars(&layout, Some(&scene), &settings, Some(chosen));
    assert!(veiled);
    assert_eq!(bars.iter().map(|bar| bar.at.ipu).collect::<Vec<IpuId>>(), [1, 0].map(IpuId));
    let [beside, last] = &bars[..] else { panic!("two bars") };
    assert_eq!(beside.rect.x_range(), last.rect.x_range(), "both run at the same time");
    let (unread, _) = chosen_bars(&layout, None, &settings, Some(chosen));
    assert!(unread.is_empty());
}

#[test]
fn share_columns_are_hit_in_all_rows_and_never_veiled() {
    let sample = SampleTrace { narrow_steps: Some(Cycles::ZERO), ..sample() };
    let layout = sample.layout(0.0);
    let chosen = first_step(&sample.scene(&layout));
    // When zoomed out, a pixel is more than a cycle, and the sample is short.
    let axis = layout.axis.zoomed(0.1, 0.0, limits_of_cycles(cycles(0, 10_000), 800.0));
    let layout = TraceLayout { axis, ..layout };
    let scene = sample.scene(&layout);
    assert!(scene.key.shares);
    let settings = TraceSettings::default();
    let (outlined, veiled) = chosen_bars(&layout, Some(&scene), &settings, Some(chosen));
    assert!(!veiled && !outlined[0].filled);
    let bands = ipu_bands(&layout, Some(&scene));
    let block = bands[0].block;
    let (_, ipu) = bands[0].scene.expect("it was read");
    let bars = layout.bars(block);
    for y in [bars.top() + 2.0, bars.center().y, bars.bottom() - 2.0] {
        let found = hit(&layout, &scene, pos2(layout.x(Cycles(40)), y)).expect("a column");
        let LaneHitTarget::Column(column) = found.target else { panic!("no bar") };
        assert_eq!(column.cycles.total(), found.range.length(), "it computes all the time");
        assert_eq!((found.rect.top(), found.rect.bottom()), (bars.top(), bars.bottom() - 1.0));
    }
    assert!(hit(&layout, &scene, pos2(layout.x(Cycles(90)), bars.center().y)).is_none());
    assert!(bar_labels(&layout, block, &sample.trace, ipu).is_empty());
    let shares = shares_on_screen(&layout, &sample.trace, ipu);
    let lines: Vec<f32> =
        share_lines(&layout, block, &shares).into_iter().map(|(at, _)| at.y).collect();
    assert!(
        lines.windows(2).all(|pair| pair[0] < pair[1])
            && lines[0] > bands[0].name_at.expect("a name").y
    );
}

#[test]
fn user_marks_measure_the_visible_range() {
    let sample = sample();
    let layout = sample.layout(0.0);
    let settings = TraceSettings {
        marks: vec![cycles(50, 50), cycles(100, 1_000_000)],
        ..TraceSettings::default()
    };
    let lines = user_marks::lines(&layout, &settings.marks);
    let at = |cycle| layout.x(Cycles(cycle));
    assert_eq!(lines[..3], [at(50), at(50), at(100)]);
    let measure = measure(&layout, settings.marked_range()).expect("a measure");
    assert_eq!(measure.range, cycles(50, 1_000_000));
    assert_eq!(measure.x.max, layout.regions.lanes.right(), "cut at the edge of the lanes");
    let drawn = drawn_range(&layout, 120, layout.x(Cycles(20)) + 0.5);
    assert_eq!(drawn.1, cycles(20, 120), "drawn from right to left");
    assert_eq!(cycles_between(-4, 7), cycles(0, 7));
}

#[test]
fn ruler_ticks_are_ordered_and_some_are_numbered() {
    let sample = sample();
    let layout = sample.layout(0.0);
    let ticks = ruler::ruler(&layout, None).ticks;
    assert!(ticks.windows(2).all(|pair| pair[0].x < pair[1].x && pair[0].cycle < pair[1].cycle));
    let numbered: Vec<u64> =
        ticks.iter().filter(|t| t.label.is_some()).map(|t| t.cycle.0).collect();
    assert!(numbered.len() >= 2 && numbered[0] == 0, "{numbered:?}");
    let of_time = ruler::ruler(&layout, Some(Hertz(1_000_000_000)));
    assert_eq!(of_time.title, "Time");
    let labels: Vec<String> = of_time.ticks.into_iter().filter_map(|tick| tick.label).collect();
    assert!(labels.len() >= 2 && labels[1].ends_with('s'), "{labels:?}");
    let scene = sample.scene(&layout);
    assert_eq!(scene.marks.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [MarkKind::Run]);
    assert_eq!(layout.mark_row(0), layout.regions.marks);
    assert_eq!(marks::bars(&layout, layout.mark_row(0), &scene.marks[0].1).len(), 1);
}

#[test]
fn unlit_parts_are_veiled() {
    let area = Rect::from_min_max(pos2(10.0, 0.0), pos2(110.0, 5.0));
    let veiled = |lit: &[(f32, f32)]| {
        let lit: Vec<Rangef> = lit.iter().map(|(from, to)| Rangef::new(*from, *to)).collect();
        let parts = veiled_parts(area, &lit);
        parts.iter().map(|part| (part.left(), part.right())).collect::<Vec<_>>()
    };
    assert_eq!(veiled(&[]), [(10.0, 110.0)]);
    assert_eq!(veiled(&[(20.0, 30.0), (25.0, 40.0)]), [(10.0, 20.0), (40.0, 110.0)]);
    assert_eq!(veiled(&[(0.0, 15.0), (100.0, 200.0)]), [(15.0, 100.0)]);
    assert_eq!(veiled(&[(0.0, 200.0)]), []);
}
