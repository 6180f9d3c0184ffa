//! The background queries of the view: the trace itself, the visible scene, the overview strip, and
//! the tables below.

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
use std::sync::atomic::{AtomicU64, Ordering};
use tilescope_analysis::critical_path::{StepOnPath, WhyChain};
use tilescope_analysis::distribution::ValueStatistics;
use tilescope_analysis::trace::{
    MarkDetailReport, StepDetailReport, TraceStepGrouping, WindowSummary,
};
use tilescope_report::units::{CycleRange, Cycles, NumberFormat, ReplicaIpu};

/// The distance above and below the screen, in points, within which IPUs are read too, so that
/// scrolling uncovers no empty lanes.
const READ_AHEAD: f32 = 200.0;
/// The limit for the width of an image, which bounds its memory at any zoom and window width.
const MAX_COLUMNS: usize = 32_768;

/// The width in pixels, the pixels of a row, and the colours.
pub(super) type TraceOverviewKey = (usize, usize, ColourScheme);

/// The steps, and the format of numbers in their details.
pub(super) type StepDetailsKey = (Vec<SelectedStep>, NumberFormat);

/// The queries about the trace, with their answers.
#[derive(Default)]
pub(super) struct TraceQueries {
    pub prepared: BackgroundQuery<(), Option<Versioned<LoadedTrace>>>,
    /// The indexed share of the trace, per mille.
    progress: Arc<AtomicU64>,
    pub scene: BackgroundQuery<TraceSceneKey, TraceScene>,
    /// Reads the marks of a long run.
    marks: BackgroundQuery<(), ()>,
    /// Finds the critical path.
    path: BackgroundQuery<(), ()>,
    /// The critical path data of the step under the pointer.
    pub pointed: BackgroundQuery<SelectedStep, Option<StepOnPath>>,
    /// The reasons for the length of the selected step.
    pub why: BackgroundQuery<(SelectedStep, NumberFormat, bool), Option<WhyChain>>,
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
    /// Queries the constant data of the trace.
    pub(super) fn ask_prepared(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
    ) -> QueryState<Option<Versioned<LoadedTrace>>> {
        // Returning to this view restarts a cancelled query.
        if self.prepared.is_cancelled() {
            self.prepared.retry();
        }
        let report = context.opened.report.clone();
        let progress = self.progress.clone();
        self.prepared.ask_cancellable(ui.ctx(), context.workers, &(), move |(), cancelled| {
            prepare(&report, &progress, cancelled).map(|found| found.map(Versioned::new))
        })
    }

    /// Queries the marks of a run that has too many to read up front. Returns true once they are
    /// known.
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

    /// Queries the critical path. Returns true once it is found.
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

    /// The text shown while the critical path is missing.
    pub(super) fn path_text(&self) -> String {
        match self.path.latest_error() {
            Some(error) => format!("The critical path cannot be read: {error}"),
            None => "Finding the critical path…".to_owned(),
        }
    }

    /// The text shown while the trace is read.
    pub(super) fn progress_text(&self) -> String {
        match self.progress.load(Ordering::Relaxed) as f64 / 1000.0 {
            0.0 => "Reading the trace…".to_owned(),
            share => format!("Indexing this trace once: {:.0} %", share * 100.0),
        }
    }

    /// Queries the image of the whole run.
    pub(super) fn ask_overview(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        key: TraceOverviewKey,
    ) -> QueryState<SplitImage> {
        let shared = prepared.clone();
        self.overview.ask(ui.ctx(), context.workers, &key, move |(width, row, colours)| {
            overview(&shared, (*width, *row), *colours)
        })
    }

    /// Queries the visible scene, unless it is already being read.
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

    /// The error of the visible scene or strip, if any.
    pub(super) fn latest_error(&self) -> Option<String> {
        let scene = self.scene.latest_error().map(ToString::to_string);
        scene.or_else(|| self.marks.latest_error().map(ToString::to_string))
    }

    /// The cycles of the selection, once they are known.
    pub(super) fn chosen_range(
        &self,
        settings: &TraceSettings,
        selected: Option<SelectedStep>,
    ) -> Option<CycleRange> {
        let mark = settings.mark.map(|mark| mark.range);
        mark.or(settings.bar.as_ref().map(|bar| bar.range)).or_else(|| {
            // Answers lag behind the selection: they may hold the cycles of another step.
            let details: &StepDetailReport = self.details.latest()?.last()?;
            selected.filter(|step| step.step == details.step)?;
            Some(details.range)
        })
    }
}

/// The appearance of the scene, independent of its position.
#[derive(Clone, Copy)]
pub(super) struct TraceSceneLook<'a> {
    pub prefs: &'a TracePrefs,
    pub selected: Option<SelectedStep>,
    pub filter: &'a str,
    pub colours: ColourScheme,
    /// The cycles per pixel from which lanes are shown as shares.
    pub narrow_steps: Option<Cycles>,
    /// True if the marks are read.
    pub marks_known: bool,
    /// True if the critical path is found.
    pub path_known: bool,
    /// The physical pixels per point.
    pub pixels_per_point: f32,
}

impl TraceSceneLook<'_> {
    /// Returns true if lanes are graphs of shares. Only the zoom decides, so that panning changes
    /// nothing and all lanes look alike. A filter switches shares off, because a sum over all steps
    /// cannot show its matches.
    pub(super) fn shows_shares(&self, axis: PanZoomAxis) -> bool {
        let far_out = is_far_out(self.narrow_steps, axis.scale(), self.pixels_per_point);
        self.prefs.shares && far_out && self.filter.trim().is_empty()
    }
}

/// The key of the visible scene.
pub(super) fn scene_key(
    layout: &TraceLayout<'_>,
    limits: AxisLimits,
    look: TraceSceneLook<'_>,
) -> TraceSceneKey {
    let TraceSceneLook { prefs, selected, filter, colours, pixels_per_point, .. } = look;
    let cycles_per_pixel = layout.axis.scale() / f64::from(pixels_per_point);
    // More cycles than are visible, so that panning does not wait for every frame.
    let window = scene_window(layout.axis, limits.width);
    let width = (window.length().as_f64() / cycles_per_pixel).ceil() as usize;
    // Equivalent filters share one spelling: a typed space must not cause a new query.
    let filter = filter.trim().to_lowercase();
    let mut known = BTreeSet::new();
    let make_key = |block: &IpuLaneLayout<'_>| IpuRowsKey {
        at: block.lanes.at,
        rows: block.rows.clone(),
        // Images are made in physical pixels: in points, high-density screens would scale them up.
        row_height: ((block.row_height * pixels_per_point).round() as usize).max(1),
    };
    TraceSceneKey {
        window,
        width: width.clamp(1, MAX_COLUMNS),
        points: (window.length().as_f64() / layout.axis.scale()).ceil() as usize,
        ipus: layout
            .blocks_within(READ_AHEAD)
            // Replicas that are alike share one image.
            .filter(|block| known.insert(block.lanes.at))
            .map(make_key)
            .collect(),
        style: prefs.style,
        grouping: TraceStepGrouping {
            executions: prefs.group_executions,
            syncs: prefs.group_syncs,
        },
        tile_balance: prefs.tile_balance,
        marks: prefs.marks,
        marks_known: look.marks_known,
        // Thin lanes are too close for arrows.
        arrows: prefs.arrows && !layout.is_thin(),
        path: if look.path_known {
            (layout.regions.path.height() * pixels_per_point).round() as usize
        } else {
            0
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
        tiles: if prefs.tiles && !layout.is_thin() {
            (f32::from(prefs.tiles_height) * pixels_per_point) as usize
        } else {
            0
        },
    }
}

/// The key of the image of the whole run in the overview strip.
pub(super) fn overview_key(ui: &Ui, rect: Rect, ipus: usize) -> TraceOverviewKey {
    let ppp = ui.pixels_per_point();
    // A row needs at least one row of pixels beside the separator.
    let row_height = ((rect.height() * ppp) as usize / ipus.max(1)).max(2);
    ((rect.width() * ppp).max(1.0) as usize, row_height, ColourScheme::of(ui))
}
