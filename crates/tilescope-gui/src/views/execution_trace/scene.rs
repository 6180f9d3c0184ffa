//! What is read and drawn in the background for each window: the bars, their image and the marks
//! above them.

use super::bar_raster::{BarFilter, BarRasterLayout, raster};
use super::bsp_raster::BspRaster;
use super::link_strip::LinkStrip;
use super::loaded_trace::{IpuLanes, LoadedTrace};
use super::measured_raster;
use super::path_scene::{PathScene, path_scene};
use super::share_graph::{COLUMN_PIXELS, is_far_out, share_raster};
use crate::theme::{ColourScheme, ThemePalette};
use crate::views::cycle_axis::cycles_on_screen;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use crate::widgets::split_texture::SplitImage;
use rayon::prelude::*;
use std::collections::BTreeSet;
use tilescope_analysis::trace::{
    COMMON_MARKS, FlowArrow, HostActivity, LaneItemKind, LaneItemList, LaneShares, MarkBlock,
    MarkRowId, TraceLaneStyle, TraceStepGrouping, arrows, host_lane, lane_items, lane_shares,
};
use tilescope_report::trace::Trace;
use tilescope_report::units::{CycleRange, Cycles, ReplicaClassId, ReplicaIpu, StepId};
use tilescope_report::{MarkKind, ProgramKind, Report, ReportError};

/// Pixels of a row of the strip that are enough for a stack of shares.
const LEAST_SHARES: usize = 6;
/// Pixels from which on an exchange has arrows without being chosen.
const LEAST_SENDER: f64 = 10.0;
/// Most exchanges of a window that have arrows.
const MAX_SENDERS: usize = 64;
/// Pixels from which on a bar may get a name, were the window shown a little closer.
const LEAST_WIDE: f64 = 16.0;

/// The query key of a scene.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceSceneKey {
    /// Cycles; more than are on the screen, so that panning finds them there.
    pub window: CycleRange,
    /// Pixels across.
    pub width: usize,
    /// The same in points.
    pub points: usize,
    /// IPUs that are on the screen.
    pub ipus: Vec<IpuRowsKey>,
    pub style: TraceLaneStyle,
    /// Executions and syncs that are shown as one bar.
    pub grouping: TraceStepGrouping,
    /// Whether bars are shaded by tile balance.
    pub tile_balance: bool,
    /// Whether lanes are graphs of shares instead of bars.
    pub shares: bool,
    /// Whether there are rows of marks.
    pub marks: bool,
    /// Whether the marks in them are read.
    pub marks_known: bool,
    /// Whether there are arrows between IPUs.
    pub arrows: bool,
    /// Height of the lane of the critical path in pixels; 0 without one.
    pub path: usize,
    /// The chosen step, which has arrows however narrow it is.
    pub chosen: Option<StepId>,
    /// The filter text, in lower case.
    pub filter: String,
    /// Which colours it is painted in.
    pub colours: ColourScheme,
    /// Pixels between sub-lanes.
    pub gap: usize,
    /// Height of the strip of links in pixels; 0 without one.
    pub links: usize,
    /// Height of the raster of tiles in pixels; 0 without one.
    pub tiles: usize,
}

/// An IPU of a scene, and its rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IpuRowsKey {
    pub at: ReplicaIpu,
    /// Rows of each group of tiles.
    pub rows: Vec<u32>,
    /// Height of a row in pixels.
    pub row_height: usize,
}

/// The cycles of the scene for what is on the screen, with more on both sides: whole blocks, so that
/// panning inside of one asks for nothing new, and so that what is on the screen has the same pixels
/// whatever way led there.
pub(super) fn scene_window(axis: PanZoomAxis, width: f32) -> CycleRange {
    let length = ((axis.scale() * f64::from(width)).ceil() as u64).max(1);
    let block = length.div_ceil(4);
    let window = cycles_on_screen(axis, width);
    let start = (window.start / block * block).saturating_sub(Cycles(block / 2));
    let end = start
        .saturating_add(Cycles(block.saturating_mul(6)))
        .max(window.end.saturating_add(Cycles(1)));
    CycleRange::new(start, end)
}

/// A mark on the screen, or several that are too narrow to be told apart.
#[derive(Clone, Debug)]
pub(crate) struct ShownMark {
    pub block: MarkBlock,
    /// `B1 forward`, `16 iterations`
    pub words: String,
}

/// One IPU in a window.
pub(crate) struct IpuLaneScene {
    /// The IPU, and the replicas it is of.
    pub at: ReplicaIpu,
    /// Bars of its groups of tiles.
    pub lanes: Vec<LaneItemList>,
    /// Places of the bars among them that may be wide enough for a name, group by group.
    pub labelled_bars: Vec<Vec<u32>>,
    /// Shares of its groups of tiles; none where bars are shown.
    pub shares: Vec<LaneShares>,
    /// The bars or shares as an image.
    pub image: SplitImage,
    /// The raster of tiles as an image.
    pub tiles: Option<SplitImage>,
    /// What its links carry.
    pub links: Option<LinkStrip>,
    /// Its stages and updates.
    pub marks: Vec<ShownMark>,
}

impl IpuLaneScene {
    /// The stage that the compute tiles work on in all of some cycles.
    pub(crate) fn stage_in(&self, cycles: CycleRange) -> Option<&ShownMark> {
        let behind = self.marks.partition_point(|mark| mark.block.range.start <= cycles.start);
        let last = self.marks.get(behind.checked_sub(1)?)?;
        let holds = last.block.micro_batch().is_some() && cycles.end <= last.block.range.end;
        holds.then_some(last)
    }
}

/// A window of the trace, ready to paint.
pub(crate) struct TraceScene {
    pub key: TraceSceneKey,
    pub ipus: Vec<IpuLaneScene>,
    /// Marks that concern all IPUs, by kind.
    pub marks: Vec<(MarkKind, Vec<ShownMark>)>,
    /// Activity of the host.
    pub host: Vec<(CycleRange, HostActivity)>,
    /// Data on its way between IPUs of some replicas.
    pub arrows: Vec<(ReplicaClassId, FlowArrow)>,
    /// The critical path.
    pub path: Option<PathScene>,
}

/// Reads, arranges and fills a window.
pub(crate) fn build_scene(
    report: &Report,
    prepared: &LoadedTrace,
    key: &TraceSceneKey,
) -> Result<TraceScene, ReportError> {
    let filter = BarFilter {
        text: key.filter.clone(),
        programs: match key.filter.as_str() {
            "" => Vec::new(),
            text => prepared.labels.matching(text),
        },
    };
    let lanes_of = |rows: &IpuRowsKey| prepared.lanes_at(rows.at);
    let shown: Vec<(&IpuLanes, &IpuRowsKey)> =
        key.ipus.iter().filter_map(|rows| Some((lanes_of(rows)?, rows))).collect();
    // IPUs do not depend on each other, and filling images is most of the work.
    let ipus: Result<Vec<IpuLaneScene>, ReportError> =
        shown.par_iter().map(|lanes| ipu_scene(report, prepared, key, &filter, *lanes)).collect();
    let mut marks = Vec::new();
    for kind in COMMON_MARKS {
        if key.marks && prepared.mark_kinds.contains(&kind) {
            marks.push((kind, mark_row(report, prepared, key, MarkRowId::Common(kind))?));
        }
    }
    let host = match key.marks && prepared.host {
        true => host_lane(&prepared.trace, key.window, key.width as u32)?,
        false => Vec::new(),
    };
    let ipus = ipus?;
    let arrows = match key.arrows && prepared.ipus.len() > 1 {
        true => arrows_between(prepared, &ipus, key)?,
        false => Vec::new(),
    };
    let path = match prepared.known_path() {
        Some(path) if key.path > 0 => Some(path_scene(prepared, path, key, &filter)?),
        _ => None,
    };
    Ok(TraceScene { key: key.clone(), ipus, marks, host, arrows, path })
}

/// The arrows between the IPUs of each class of replicas that is on the screen.
fn arrows_between(
    prepared: &LoadedTrace,
    ipus: &[IpuLaneScene],
    key: &TraceSceneKey,
) -> Result<Vec<(ReplicaClassId, FlowArrow)>, ReportError> {
    let classes: BTreeSet<ReplicaClassId> = ipus.iter().map(|ipu| ipu.at.class).collect();
    let mut found = Vec::new();
    for class in classes {
        let Some(trace) = prepared.trace.of_class(class) else { continue };
        let steps = exchanges(ipus, class, key);
        let arrows = arrows(&trace, &prepared.links, &steps)?;
        found.extend(arrows.into_iter().map(|arrow| (class, arrow)));
    }
    Ok(found)
}

/// The widest exchanges between IPUs of some replicas, wide enough to begin an arrow in.
fn exchanges(ipus: &[IpuLaneScene], class: ReplicaClassId, key: &TraceSceneKey) -> Vec<StepId> {
    // From pixels to cycles, so that the filter below compares integers.
    let least = (key.window.length().as_f64() / key.width.max(1) as f64 * LEAST_SENDER) as u64;
    let own = ipus.iter().filter(|ipu| ipu.at.class == class);
    let items = own.flat_map(|ipu| &ipu.lanes).flat_map(|lane| &lane.items);
    let mut found: Vec<(Cycles, StepId)> = items
        .filter(|item| item.range.length() >= Cycles(least.max(1)))
        .filter_map(|item| match item.kind {
            LaneItemKind::Step(step) if step.kind == ProgramKind::GlobalExchange => {
                Some((item.range.length(), step.step))
            }
            _ => None,
        })
        .collect();
    found.sort_unstable_by_key(|(length, step)| (std::cmp::Reverse(*length), *step));
    // One exchange has a bar on every IPU that takes part, mostly all of the same length.
    found.dedup_by_key(|(_, step)| *step);
    found.truncate(MAX_SENDERS);
    let mut steps: Vec<StepId> = found.into_iter().map(|(_, step)| step).collect();
    // The chosen step has its arrows even if it is not among the widest.
    steps.extend(key.chosen);
    steps.sort_unstable();
    steps.dedup();
    steps
}

fn ipu_scene(
    report: &Report,
    prepared: &LoadedTrace,
    key: &TraceSceneKey,
    filter: &BarFilter,
    (shown, rows): (&IpuLanes, &IpuRowsKey),
) -> Result<IpuLaneScene, ReportError> {
    let LoadedTrace { trace, labels, .. } = prepared;
    let lanes: Result<Vec<LaneItemList>, ReportError> = shown
        .sub_lanes
        .iter()
        .map(|sub_lane| {
            let looks = (key.style, key.grouping);
            lane_items(trace, labels, (shown.at, *sub_lane), key.window, key.width as u32, looks)
        })
        .collect();
    let lanes = lanes?;
    let fill = BarRasterLayout {
        window: key.window,
        width: key.width,
        row_height: rows.row_height,
        rows: rows.rows.clone(),
        gap: key.gap,
        tile_balance: key.tile_balance,
    };
    let palette = key.colours.palette();
    let shares = if key.shares { shares(trace, key, shown)? } else { Vec::new() };
    let image = SplitImage::cut(match key.shares {
        true => share_raster(&shares, &fill, palette),
        false => raster(&lanes, labels, &fill, filter, palette),
    });
    let tiles = match key.tiles {
        0 => None,
        rows => Some(tiles_image(report, prepared, key, shown, (rows, palette))?),
    };
    let links = match prepared.known_link_limit() {
        Some(limit) if key.links > 0 => {
            let lanes = shown.sub_lanes.iter().filter_map(|group| trace.lane_at(shown.at, *group));
            let size = [key.width, key.links];
            Some(LinkStrip::read(lanes, key.window, size, (limit, palette))?)
        }
        _ => None,
    };
    let marks = match key.marks {
        true => mark_row(report, prepared, key, MarkRowId::Ipu(shown.at))?,
        false => Vec::new(),
    };
    let least = (key.window.length().as_f64() / key.width.max(1) as f64 * LEAST_WIDE) as u64;
    let wide = match key.shares {
        true => Vec::new(),
        false => lanes.iter().map(|lane| labelled_bars(lane, least)).collect(),
    };
    Ok(IpuLaneScene {
        at: shown.at,
        lanes,
        labelled_bars: wide,
        shares,
        image,
        tiles,
        links,
        marks,
    })
}

/// Shares of the groups of tiles of an IPU.
fn shares(
    trace: &Trace,
    key: &TraceSceneKey,
    shown: &IpuLanes,
) -> Result<Vec<LaneShares>, ReportError> {
    let columns = key.width.div_ceil(COLUMN_PIXELS);
    let lanes = shown.sub_lanes.iter().filter_map(|group| trace.lane_at(shown.at, *group));
    lanes.map(|lane| lane_shares(lane, key.window, columns)).collect()
}

/// Places of the bars of at least so many cycles.
fn labelled_bars(lane: &LaneItemList, least: u64) -> Vec<u32> {
    let bars = (0..).zip(&lane.items);
    bars.filter(|(_, item)| item.range.length() >= Cycles(least.max(1))).map(|(at, _)| at).collect()
}

/// The raster of tiles of an IPU in a window.
fn tiles_image(
    report: &Report,
    prepared: &LoadedTrace,
    key: &TraceSceneKey,
    shown: &IpuLanes,
    (rows, palette): (usize, &ThemePalette),
) -> Result<SplitImage, ReportError> {
    let target = report.target()?;
    let raster = BspRaster {
        times: prepared.tile_times(report)?,
        labels: &prepared.labels,
        palette,
        window: key.window,
        size: [key.width, rows],
        tiles: target.tiles_of_ipu(shown.at.ipu),
        io_tiles: target.io_tiles_per_ipu,
        measured: prepared.measured,
    };
    let mut lanes = Vec::new();
    for sub_lane in &shown.sub_lanes {
        let spans = match prepared.trace.lane_at(shown.at, *sub_lane) {
            Some(lane) => lane.spans(key.window, key.width as u32)?,
            None => Vec::new(),
        };
        lanes.push((*sub_lane, spans));
    }
    let mut image = raster.fill(&lanes);
    if prepared.measured {
        measured_raster::draw(report, &raster, &lanes, &mut image)?;
    }
    Ok(SplitImage::cut(image))
}

/// The marks of a row, as many as fit; none before they are read.
fn mark_row(
    report: &Report,
    prepared: &LoadedTrace,
    key: &TraceSceneKey,
    id: MarkRowId,
) -> Result<Vec<ShownMark>, ReportError> {
    let Some(rows) = prepared.known_marks().filter(|_| key.marks_known) else {
        return Ok(Vec::new());
    };
    let cycles_per_point = key.window.length().as_f64() / key.points.max(1) as f64;
    let blocks = rows.shown(report, id, key.window, cycles_per_point)?;
    let words = |block: MarkBlock| ShownMark { words: rows.words(id, &block), block };
    Ok(blocks.into_iter().map(words).collect())
}

/// The whole run as a strip: one row per IPU.
pub(crate) fn overview(
    prepared: &LoadedTrace,
    (width, row_height): (usize, usize),
    colours: ColourScheme,
) -> Result<SplitImage, ReportError> {
    let LoadedTrace { trace, labels, range, ipus, .. } = prepared;
    let fill = BarRasterLayout {
        window: *range,
        width,
        row_height,
        rows: vec![1; ipus.len()],
        gap: 0,
        tile_balance: false,
    };
    let palette = colours.palette();
    let cycles_per_pixel = range.length().as_f64() / width.max(1) as f64;
    if row_height >= LEAST_SHARES && is_far_out(prepared.narrow_steps, cycles_per_pixel, 1.0) {
        let lanes = ipus.iter().filter_map(|ipu| trace.lane_at(ipu.at, 0));
        let columns = width.div_ceil(COLUMN_PIXELS);
        let shares: Result<Vec<LaneShares>, ReportError> =
            lanes.map(|lane| lane_shares(lane, *range, columns)).collect();
        return Ok(SplitImage::cut(share_raster(&shares?, &fill, palette)));
    }
    // Put together, executions would all have the one colour of groups.
    let grouping = TraceStepGrouping { executions: false, syncs: false };
    let lanes: Result<Vec<LaneItemList>, ReportError> = ipus
        .par_iter()
        .map(|ipu| {
            lane_items(
                trace,
                labels,
                (ipu.at, 0),
                *range,
                width as u32,
                (TraceLaneStyle::Flat, grouping),
            )
        })
        .collect();
    Ok(SplitImage::cut(raster(&lanes?, labels, &fill, &BarFilter::default(), palette)))
}
