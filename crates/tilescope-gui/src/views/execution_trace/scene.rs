//! The data that is read and drawn in the background for each window: the bars, their image and the
//! marks above them.

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

/// The height in pixels from which a row of the strip can show a stack of shares.
const LEAST_SHARES: usize = 6;
/// The width in pixels from which a bar may get a label after zooming in slightly.
pub(super) const LEAST_WIDE: f64 = 16.0;

/// The query key of a scene.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TraceSceneKey {
    /// The range of cycles; it extends past the screen for panning.
    pub window: CycleRange,
    /// The width in pixels.
    pub width: usize,
    /// The width in points.
    pub points: usize,
    /// The visible IPUs and their rows.
    pub ipus: Vec<IpuRowsKey>,
    pub style: TraceLaneStyle,
    /// The executions and syncs that are shown as one bar.
    pub grouping: TraceStepGrouping,
    /// True if bars are shaded by tile balance.
    pub tile_balance: bool,
    /// True if lanes are graphs of shares instead of bars.
    pub shares: bool,
    /// True if there are rows of marks.
    pub marks: bool,
    /// True if the marks in the rows are read.
    pub marks_known: bool,
    /// True if there are arrows between IPUs.
    pub arrows: bool,
    /// The height of the critical path lane in pixels; 0 without one.
    pub path: usize,
    /// The selected step, which has arrows at any width.
    pub chosen: Option<StepId>,
    /// The filter text, in lower case.
    pub filter: String,
    /// The colours of the image.
    pub colours: ColourScheme,
    /// The gap between sub-lanes in pixels.
    pub gap: usize,
    /// The height of the strip of links in pixels; 0 without one.
    pub links: usize,
    /// The height of the raster of tiles in pixels; 0 without one.
    pub tiles: usize,
}

/// An IPU of a scene, and its rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct IpuRowsKey {
    pub at: ReplicaIpu,
    /// The number of rows of each tile group.
    pub rows: Vec<u32>,
    /// The height of a row in pixels.
    pub row_height: usize,
}

/// The window of the scene for the visible cycles, with a margin on both sides. It consists of
/// whole blocks, so that panning within a block needs no query, and the visible pixels do not
/// depend on earlier positions.
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

/// The data of one IPU in a window.
pub(crate) struct IpuLaneScene {
    /// The IPU and its replicas.
    pub at: ReplicaIpu,
    /// The bars of its tile groups.
    pub lanes: Vec<LaneItemList>,
    /// The indices of bars that may be wide enough for a label, by tile group.
    pub labelled_bars: Vec<Vec<u32>>,
    /// The shares of its tile groups; empty if bars are shown.
    pub shares: Vec<LaneShares>,
    /// The image of the bars or shares.
    pub image: SplitImage,
    /// The image of the raster of tiles.
    pub tiles: Option<SplitImage>,
    /// The load of its links.
    pub links: Option<LinkStrip>,
    /// The stages and updates of the IPU.
    pub marks: Vec<ShownMark>,
}

impl IpuLaneScene {
    /// The stage that the compute tiles work on during the whole range.
    pub(crate) fn stage_in(&self, cycles: CycleRange) -> Option<&ShownMark> {
        let behind = self.marks.partition_point(|mark| mark.block.range.start <= cycles.start);
        let last = self.marks.get(behind.checked_sub(1)?)?;
        let holds = last.block.micro_batch().is_some() && cycles.end <= last.block.range.end;
        if holds { Some(last) } else { None }
    }
}

/// A window of the trace, ready to be painted.
pub(crate) struct TraceScene {
    pub key: TraceSceneKey,
    pub ipus: Vec<IpuLaneScene>,
    /// The marks of all IPUs, by kind.
    pub marks: Vec<(MarkKind, Vec<ShownMark>)>,
    /// The activity of the host.
    pub host: Vec<(CycleRange, HostActivity)>,
    /// The transfers between IPUs, by replica class.
    pub arrows: Vec<(ReplicaClassId, FlowArrow)>,
    /// The critical path in the window.
    pub path: Option<PathScene>,
}

/// Reads and lays out a window, and fills its images.
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
    let shown: Vec<(&IpuLanes, &IpuRowsKey)> =
        key.ipus.iter().filter_map(|rows| Some((prepared.lanes_at(rows.at)?, rows))).collect();
    // IPUs are independent, and filling images is most of the work.
    let ipus: Result<Vec<IpuLaneScene>, ReportError> =
        shown.par_iter().map(|lanes| ipu_scene(report, prepared, key, &filter, *lanes)).collect();
    let mut marks = Vec::new();
    for kind in COMMON_MARKS {
        if key.marks && prepared.mark_kinds.contains(&kind) {
            marks.push((kind, marks::read(report, prepared, key, MarkRowId::Common(kind))?));
        }
    }
    let host = if key.marks && prepared.host {
        host_lane(&prepared.trace, key.window, key.width as u32)?
    } else {
        Vec::new()
    };
    let ipus = ipus?;
    let arrows = if key.arrows && prepared.ipus.len() > 1 {
        arrows::read(prepared, &ipus, key)?
    } else {
        Vec::new()
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
    let image = SplitImage::cut(if key.shares {
        share_raster(&shares, &fill, palette)
    } else {
        raster(&lanes, labels, &fill, filter, palette)
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
    let marks = if key.marks {
        marks::read(report, prepared, key, MarkRowId::Ipu(shown.at))?
    } else {
        Vec::new()
    };
    let least = (key.window.length().as_f64() / key.width.max(1) as f64 * LEAST_WIDE) as u64;
    let wide = if key.shares {
        Vec::new()
    } else {
        lanes.iter().map(|lane| labelled_bars(lane, least)).collect()
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

/// The shares of the tile groups of an IPU.
fn shares(
    trace: &Trace,
    key: &TraceSceneKey,
    shown: &IpuLanes,
) -> Result<Vec<LaneShares>, ReportError> {
    let columns = key.width.div_ceil(COLUMN_PIXELS);
    let lanes = shown.sub_lanes.iter().filter_map(|group| trace.lane_at(shown.at, *group));
    lanes.map(|lane| lane_shares(lane, key.window, columns)).collect()
}

/// The indices of the bars of at least this many cycles.
pub(super) fn labelled_bars(lane: &LaneItemList, least: u64) -> Vec<u32> {
    let bars = (0..).zip(&lane.items);
    bars.filter(|(_, item)| item.range.length() >= Cycles(least.max(1))).map(|(at, _)| at).collect()
}

/// The overview strip of the whole run: one row per IPU.
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
    // Grouped executions would all have the colour of groups.
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
