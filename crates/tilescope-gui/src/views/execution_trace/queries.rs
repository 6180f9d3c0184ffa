//! What is read for the view, in the background: the trace itself, the scene on the screen, the
//! strip above it, and the tables below.

use super::layers::marks::SelectedMark;
use super::layout::{IpuLaneLayout, SUB_LANE_GAP, TraceLayout};
use super::loaded_trace::{LoadedTrace, prepare};
use super::path_tables::PathTablesPanel;
use super::samples_panel::SamplesPanel;
use super::scene::{IpuRowsKey, TraceScene, TraceSceneKey, build_scene, overview, scene_window};
use super::schedule_panel::SchedulePanel;
use super::settings::TraceSettings;
use super::share_graph::is_far_out;
use super::step_statistics::TraceStatisticsKey;
use super::tiles_panel::TilesPanel;
use crate::model::command::SelectedStep;
use crate::model::preferences::TracePrefs;
use crate::theme::ColourScheme;
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, QueryState, Versioned};
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use crate::widgets::split_texture::SplitImage;
use egui::{Rect, Ui};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tilescope_analysis::critical_path::{StepOnPath, WhyChain};
use tilescope_analysis::distribution::ValueStatistics;
use tilescope_analysis::trace::{
    MarkDetailReport, StepDetailReport, TraceStepGrouping, WindowSummary,
};
use tilescope_report::units::{CycleRange, Cycles, NumberFormat, ReplicaIpu};

/// Points above and below the lanes on the screen whose IPUs are read too, so that scrolling does
/// not uncover empty lanes.
const READ_AHEAD: f32 = 200.0;
/// Bounds the memory of an image, whatever the zoom and the width of the window.
const MAX_COLUMNS: usize = 32_768;

/// Pixels across, pixels of a row, and the colours.
pub(super) type TraceOverviewKey = (usize, usize, ColourScheme);

/// Steps, and how numbers in their details are written.
pub(super) type StepDetailsKey = (Vec<SelectedStep>, NumberFormat);

/// Questions about the trace and their answers.
#[derive(Default)]
pub(super) struct TraceQueries {
    pub prepared: BackgroundQuery<(), Option<Versioned<LoadedTrace>>>,
    /// Per mille of the trace that is indexed.
    progress: Arc<AtomicU64>,
    pub scene: BackgroundQuery<TraceSceneKey, TraceScene>,
    /// Whether the marks of a long run are read.
    marks: BackgroundQuery<(), ()>,
    /// Whether the critical path is found.
    path: BackgroundQuery<(), ()>,
    /// What the path says of the step under the pointer.
    pub pointed: BackgroundQuery<SelectedStep, Option<StepOnPath>>,
    /// Why the chosen step takes as long as it does.
    pub why: BackgroundQuery<(SelectedStep, NumberFormat), Option<WhyChain>>,
    overview: BackgroundQuery<TraceOverviewKey, SplitImage>,
    pub summary: BackgroundQuery<(CycleRange, Vec<ReplicaIpu>), WindowSummary>,
    pub details: BackgroundQuery<StepDetailsKey, Vec<StepDetailReport>>,
    pub mark_details: BackgroundQuery<SelectedMark, Option<MarkDetailReport>>,
    pub statistics: BackgroundQuery<TraceStatisticsKey, ValueStatistics>,
    pub schedule: SchedulePanel,
    pub path_tables: PathTablesPanel,
    pub tiles: TilesPanel,
    pub samples: SamplesPanel,
}

impl TraceQueries {
    /// Asks for what never changes.
    pub(super) fn ask_prepared(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
    ) -> QueryState<Option<Versioned<LoadedTrace>>> {
        // Coming back to this view begins anew.
        if self.prepared.is_cancelled() {
            self.prepared.retry();
        }
        let report = context.opened.report.clone();
        let progress = self.progress.clone();
        let question = move |(): &(), cancelled: &Arc<AtomicBool>| {
            prepare(&report, &progress, cancelled).map(|found| found.map(Versioned::new))
        };
        self.prepared.ask_cancellable(ui.ctx(), context.workers, &(), question)
    }

    /// Asks for the marks of a run that has too many to wait for; whether they are known.
    pub(super) fn ask_marks(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) -> bool {
        if prepared.known_marks().is_none() {
            let shared = prepared.clone();
            context.read(ui, &mut self.marks, move |report| shared.read_marks(report));
        }
        prepared.known_marks().is_some()
    }

    /// Asks for the critical path; whether it is found.
    pub(super) fn ask_path(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) -> bool {
        if prepared.known_path().is_none() && context.prefs.trace.path {
            let shared = prepared.clone();
            context.read(ui, &mut self.path, move |report| shared.find_path(report));
        }
        prepared.known_path().is_some()
    }

    /// What to say where the critical path is not there.
    pub(super) fn path_text(&self) -> String {
        match self.path.latest_error() {
            Some(error) => format!("The critical path cannot be read: {error}"),
            None => "Finding the critical path…".to_owned(),
        }
    }

    /// What to say while the trace is read.
    pub(super) fn progress_text(&self) -> String {
        match self.progress.load(Ordering::Relaxed) as f64 / 1000.0 {
            0.0 => "Reading the trace…".to_owned(),
            share => format!("Indexing this trace once: {:.0} %", share * 100.0),
        }
    }

    /// Asks for the image of the whole run.
    pub(super) fn ask_overview(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        key: TraceOverviewKey,
    ) -> QueryState<SplitImage> {
        let shared = prepared.clone();
        let question = move |(width, row, colours): &TraceOverviewKey| {
            overview(&shared, (*width, *row), *colours)
        };
        self.overview.ask(ui.ctx(), context.workers, &key, question)
    }

    /// Asks for the scene that is on the screen, unless it is on its way.
    pub(super) fn ask_scene(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        key: &TraceSceneKey,
    ) -> QueryState<TraceScene> {
        let prepared = prepared.clone();
        context
            .ask(ui, &mut self.scene, key, move |report, key| build_scene(report, &prepared, key))
    }

    /// What went wrong with what is on the screen.
    pub(super) fn latest_error(&self) -> Option<String> {
        let scene = self.scene.latest_error().map(ToString::to_string);
        scene.or_else(|| self.marks.latest_error().map(ToString::to_string))
    }

    /// The cycles of what is chosen, once they are known.
    pub(super) fn chosen_range(
        &self,
        settings: &TraceSettings,
        selected: Option<SelectedStep>,
    ) -> Option<CycleRange> {
        let mark = settings.mark.map(|mark| mark.range);
        mark.or(settings.bar.as_ref().map(|bar| bar.range)).or_else(|| {
            // Answers lag behind the selection: the cycles of another step would be zoomed to.
            let details: &StepDetailReport = self.details.latest()?.last()?;
            selected.filter(|step| step.step == details.step)?;
            Some(details.range)
        })
    }
}

/// How the scene is to look: all that is not a matter of where it is.
#[derive(Clone, Copy)]
pub(super) struct TraceSceneLook<'a> {
    pub prefs: &'a TracePrefs,
    pub selected: Option<SelectedStep>,
    pub filter: &'a str,
    pub colours: ColourScheme,
    /// Where a pixel is as many cycles, lanes are shown as shares.
    pub narrow_steps: Option<Cycles>,
    /// Whether the marks are read.
    pub marks_known: bool,
    /// Whether the critical path is found.
    pub path_known: bool,
    /// Physical pixels per point.
    pub pixels_per_point: f32,
}

impl TraceSceneLook<'_> {
    /// Whether lanes are graphs of shares. By the zoom alone, so that panning changes nothing and
    /// all lanes look alike. What matches a filter has no place in a sum over all steps.
    pub(super) fn shows_shares(&self, axis: PanZoomAxis) -> bool {
        let far_out = is_far_out(self.narrow_steps, axis.scale(), self.pixels_per_point);
        self.prefs.shares && far_out && self.filter.trim().is_empty()
    }
}

/// The key of the scene that is on the screen.
pub(super) fn scene_key(
    layout: &TraceLayout<'_>,
    limits: AxisLimits,
    look: TraceSceneLook<'_>,
) -> TraceSceneKey {
    let TraceSceneLook { prefs, selected, filter, colours, pixels_per_point, .. } = look;
    let cycles_per_pixel = layout.axis.scale() / f64::from(pixels_per_point);
    // More cycles than are on the screen, so that panning does not wait for every frame.
    let window = scene_window(layout.axis, limits.width);
    let width = (window.length().as_f64() / cycles_per_pixel).ceil() as usize;
    // One spelling for what matches the same: a blank typed must not have all read again.
    let filter = filter.trim().to_lowercase();
    let mut known = BTreeSet::new();
    let rows_key = |block: &IpuLaneLayout<'_>| IpuRowsKey {
        at: block.lanes.at,
        rows: block.rows.clone(),
        // Images are made in physical pixels: in points, dense screens would scale them up.
        row_height: ((block.row_height * pixels_per_point).round() as usize).max(1),
    };
    TraceSceneKey {
        window,
        width: width.clamp(1, MAX_COLUMNS),
        points: (window.length().as_f64() / layout.axis.scale()).ceil() as usize,
        ipus: layout
            .blocks_within(READ_AHEAD)
            // Replicas that are alike show the same.
            .filter(|block| known.insert(block.lanes.at))
            .map(rows_key)
            .collect(),
        style: prefs.style,
        grouping: TraceStepGrouping {
            executions: prefs.group_executions,
            syncs: prefs.group_syncs,
        },
        tile_balance: prefs.tile_balance,
        marks: prefs.marks,
        marks_known: look.marks_known,
        arrows: prefs.arrows,
        path: match look.path_known {
            true => (layout.regions.path.height() * pixels_per_point).round() as usize,
            false => 0,
        },
        chosen: selected.map(|step| step.step),
        shares: look.shows_shares(layout.axis),
        filter,
        colours,
        gap: (SUB_LANE_GAP * pixels_per_point).round() as usize,
        links: layout
            .blocks
            .first()
            .map_or(0, |block| (block.links * pixels_per_point).round() as usize),
        tiles: match prefs.tiles {
            true => (f32::from(prefs.tiles_height) * pixels_per_point) as usize,
            false => 0,
        },
    }
}

/// The key of the image of the whole run in a strip.
pub(super) fn overview_key(ui: &Ui, rect: Rect, ipus: usize) -> TraceOverviewKey {
    let ppp = ui.pixels_per_point();
    // A row needs one row of pixels of its own beside the separator.
    let row_height = ((rect.height() * ppp) as usize / ipus.max(1)).max(2);
    ((rect.width() * ppp).max(1.0) as usize, row_height, ColourScheme::of(ui))
}
