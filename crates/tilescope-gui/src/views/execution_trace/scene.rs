//! What is read and drawn in the background for each window: the bars, their image and the marks
//! above them.

use super::bar_raster::{BarFilter, BarRasterLayout, raster};
use super::layers::links::LinkStrip;
use super::layers::marks::ShownMark;
use super::layers::path::PathScene;
use super::layers::{arrows, marks, path, tiles};
use super::loaded_trace::{IpuLanes, LoadedTrace};
use super::share_graph::{COLUMN_PIXELS, is_far_out, share_raster};
use crate::theme::ColourScheme;
use crate::views::cycle_axis::cycles_on_screen;
use crate::widgets::pan_zoom_axis::PanZoomAxis;
use crate::widgets::split_texture::SplitImage;
use rayon::prelude::*;
use tilescope_analysis::trace::{
    COMMON_MARKS, FlowArrow, HostActivity, LaneItemList, LaneShares, MarkRowId, TraceLaneStyle,
    TraceStepGrouping, host_lane, lane_items, lane_shares,
};
use tilescope_report::trace::Trace;
use tilescope_report::units::{CycleRange, Cycles, ReplicaClassId, ReplicaIpu, StepId};
use tilescope_report::{MarkKind, Report, ReportError};

/// Pixels of a row of the strip that are enough for a stack of shares.
const LEAST_SHARES: usize = 6;
/// Pixels from which on a bar may get a name, were the window shown a little closer.
pub(super) const LEAST_WIDE: f64 = 16.0;

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
            marks.push((kind, marks::read(report, prepared, key, MarkRowId::Common(kind))?));
        }
    }
    let host = match key.marks && prepared.host {
        true => host_lane(&prepared.trace, key.window, key.width as u32)?,
        false => Vec::new(),
    };
    let ipus = ipus?;
    let arrows = match key.arrows && prepared.ipus.len() > 1 {
        true => arrows::read(prepared, &ipus, key)?,
        false => Vec::new(),
    };
    let path = match prepared.known_path() {
        Some(path) if key.path > 0 => Some(path::read(prepared, path, key, &filter)?),
        _ => None,
    };
    Ok(TraceScene { key: key.clone(), ipus, marks, host, arrows, path })
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
        rows => Some(tiles::read(report, prepared, key, shown, (rows, palette))?),
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
        true => marks::read(report, prepared, key, MarkRowId::Ipu(shown.at))?,
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
pub(super) fn labelled_bars(lane: &LaneItemList, least: u64) -> Vec<u32> {
    let bars = (0..).zip(&lane.items);
    bars.filter(|(_, item)| item.range.length() >= Cycles(least.max(1))).map(|(at, _)| at).collect()
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
