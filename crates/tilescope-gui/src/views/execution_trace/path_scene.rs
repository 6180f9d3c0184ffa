//! The critical path in a window: its bars or shares, whose lanes it is on, and where it goes from one
//! to another.

use super::bar_raster::{BarFilter, BarRasterLayout, raster};
use super::loaded_trace::LoadedTrace;
use super::scene::TraceSceneKey;
use super::share_graph::{COLUMN_PIXELS, share_raster};
use crate::widgets::split_texture::SplitImage;
use tilescope_analysis::trace::{
    LaneItemList, LaneShares, TraceLaneStyle, TraceStepGrouping, arrange,
};
use tilescope_report::ReportError;
use tilescope_report::trace::{CriticalPath, LaneSpan, PathHop, PathSpan, StepBucket};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu, StepId};

/// Most hops of a window that are told apart: more would be a net over the lanes.
const MAX_HOPS: usize = 200;
/// Pixels from which on a bar may get a name, were the window shown a little closer.
const LEAST_WIDE: f64 = 16.0;

/// The lane of an IPU: its group of tiles.
pub(crate) type PathLane = (ReplicaIpu, u8);

/// The critical path in a window.
pub(crate) struct PathScene {
    /// Its bars, all in one row; each is a span of the path.
    pub bars: LaneItemList,
    /// The lane that each of the bars is of; none for bars of several.
    pub lanes: Vec<Option<PathLane>>,
    /// Places of the bars that may be wide enough for a name.
    pub labelled_bars: Vec<u32>,
    /// Its shares; none where bars are shown.
    pub shares: Option<LaneShares>,
    /// The bars or shares as an image.
    pub image: SplitImage,
    /// Where it goes from one lane to another; none where these are too many to be told apart.
    pub hops: Vec<PathHopMark>,
    /// How many there are.
    pub hop_count: u64,
}

/// A place at which the path goes from one lane to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PathHopMark {
    pub at: Cycles,
    pub from: PathLane,
    pub to: PathLane,
    pub hop: PathHop,
}

/// Reads the path in the window of a scene.
pub(crate) fn path_scene(
    prepared: &LoadedTrace,
    path: &CriticalPath,
    key: &TraceSceneKey,
    filter: &BarFilter,
) -> Result<PathScene, ReportError> {
    let window = key.window;
    let spans = path.spans(window, key.width as u32)?;
    let lane = |at: usize| {
        let info = path.lane_infos().get(at)?;
        Some((ReplicaIpu { class: info.class, ipu: info.ipu }, info.sub_lane))
    };
    let lanes = spans.iter().map(|span| of_lane(span).and_then(lane)).collect();
    let spans: Vec<LaneSpan> = spans.iter().map(as_of_a_lane).collect();
    let pixel = window.length().div_ceil(key.width.max(1) as u64).max(Cycles(1));
    // Bars stay single: a group would have steps of several lanes.
    let single = TraceStepGrouping { executions: false, syncs: false };
    let items = arrange(&spans, &prepared.labels, TraceLaneStyle::Flat, single, pixel);
    let bars = LaneItemList { at: ReplicaIpu::default(), sub_lane: 0, items };
    let fill = BarRasterLayout {
        window,
        width: key.width,
        row_height: key.path,
        rows: vec![1],
        gap: 0,
        tile_balance: key.tile_balance,
    };
    let palette = key.colours.palette();
    let columns = key.width.div_ceil(COLUMN_PIXELS);
    let shares = key.shares.then(|| LaneShares::from_spans(&spans, window, columns));
    let image = SplitImage::cut(match &shares {
        Some(shares) => share_raster(std::slice::from_ref(shares), &fill, palette),
        None => raster(std::slice::from_ref(&bars), &prepared.labels, &fill, filter, palette),
    });
    let least = Cycles((pixel.as_f64() * LEAST_WIDE) as u64);
    let wide = (0..).zip(&bars.items).filter(|(_, item)| item.range.length() >= least);
    let labelled_bars = match key.shares {
        true => Vec::new(),
        false => wide.map(|(at, _)| at).collect(),
    };
    let hop_count = path.stretch_count_in(window)?.saturating_sub(1);
    let hops = if hop_count <= MAX_HOPS as u64 { hops(path, window, lane)? } else { Vec::new() };
    Ok(PathScene { bars, lanes, labelled_bars, shares, image, hops, hop_count })
}

/// The position of the lane that a span is of.
fn of_lane(span: &PathSpan) -> Option<usize> {
    match span {
        PathSpan::OfLane { lane, .. } => Some(*lane),
        PathSpan::Stretches { lane, .. } => *lane,
    }
}

/// A span as lanes have them, so that it is drawn as those are.
fn as_of_a_lane(span: &PathSpan) -> LaneSpan {
    match *span {
        PathSpan::OfLane { range, span: LaneSpan::Step(mut step), .. } => {
            step.range = range;
            LaneSpan::Step(step)
        }
        PathSpan::OfLane { range, span: LaneSpan::Bucket(mut bucket), .. } => {
            bucket.range = range;
            LaneSpan::Bucket(bucket)
        }
        PathSpan::Stretches { range, totals, .. } => {
            let (first_position, first_step) = (0, StepId(0));
            LaneSpan::Bucket(StepBucket { range, first_position, first_step, totals })
        }
    }
}

fn hops(
    path: &CriticalPath,
    window: CycleRange,
    lane: impl Fn(usize) -> Option<PathLane>,
) -> Result<Vec<PathHopMark>, ReportError> {
    let stretches = path.stretches_in(window, MAX_HOPS + 1)?;
    let hop = |pair: &[tilescope_report::trace::PathStretch]| {
        let (from, to) = (lane(pair[0].lane)?, lane(pair[1].lane)?);
        Some(PathHopMark { at: pair[1].range.start, from, to, hop: pair[1].hop? })
    };
    Ok(stretches.windows(2).filter_map(hop).collect())
}
