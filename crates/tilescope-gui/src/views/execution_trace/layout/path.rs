//! Render items of the critical path: its lane, its hops, and what of the other lanes is lit.

use super::bands::{BarLabelItem, LEAST_LABEL};
use super::{IpuLaneLayout, TraceLayout};
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::views::execution_trace::path_scene::{PathHopMark, PathLane, PathScene};
use crate::views::execution_trace::scene::TraceScene;
use crate::views::execution_trace::share_graph::{TimeShare, time_shares};
use egui::{Pos2, Rangef, Rect, pos2};
use tilescope_analysis::trace::{LaneItem, ShareColumn};
use tilescope_report::units::{CycleRange, Cycles, grouped};

/// Distance at which the pointer hits a narrow bar.
const HIT_TOLERANCE: f32 = 3.0;

/// The lane of the critical path.
pub(crate) struct PathItem<'a> {
    pub row: Rect,
    /// What was found of it, if it was.
    pub scene: Option<PathBand<'a>>,
}

/// What a scene has of the path.
pub(crate) struct PathBand<'a> {
    /// Left and right edge of its image.
    pub image: (f32, f32),
    pub labels: Vec<BarLabelItem<'a>>,
    /// Mean shares of the cycles on the screen, where lanes are shares.
    pub shares: Vec<TimeShare>,
    /// Where it goes from one lane to another.
    pub hops: Vec<f32>,
    /// `12 hops between IPUs`
    pub about: String,
}

/// From one lane to another.
pub(crate) struct HopItem {
    pub from: Pos2,
    pub to: Pos2,
    pub mark: PathHopMark,
}

/// Lays the lane of the path out; none where it is not shown.
pub(crate) fn path_item<'a>(
    layout: &TraceLayout<'_>,
    prepared: &LoadedTrace,
    scene: Option<&'a TraceScene>,
) -> Option<PathItem<'a>> {
    let row = layout.regions.path;
    let band = |scene: &'a TraceScene| {
        let path = scene.path.as_ref()?;
        let window = scene.key.window;
        let inside = |x: &f32| row.x_range().contains(*x);
        Some(PathBand {
            image: (layout.x(window.start), layout.x(window.end)),
            labels: labels(layout, prepared, path),
            shares: shares(layout, prepared, path),
            hops: path.hops.iter().map(|hop| layout.x(hop.at)).filter(inside).collect(),
            about: format!("{} hops between lanes", grouped(path.hop_count)),
        })
    };
    (row.height() > 0.0).then(|| PathItem { row, scene: scene.and_then(band) })
}

fn labels<'a>(
    layout: &TraceLayout<'_>,
    prepared: &LoadedTrace,
    path: &'a PathScene,
) -> Vec<BarLabelItem<'a>> {
    let window = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    let places = path.labelled_bars.iter().map(|at| *at as usize);
    let bars = places.filter_map(|at| Some((path.bars.items.get(at)?, path.lanes.get(at)?)));
    let label = |(item, lane): (&'a LaneItem, &Option<PathLane>)| {
        let rect = bar(layout, item.range);
        let text = item.text(&prepared.labels);
        let text = match lane {
            Some((at, _)) if prepared.ipus.len() > 1 => format!("{}: {text}", at.ipu),
            _ => text,
        };
        let seen = item.range.overlaps(window) && rect.width() >= LEAST_LABEL;
        seen.then_some(BarLabelItem { sub_lane: 0, rect, item, text })
    };
    bars.filter_map(label).collect()
}

fn shares(layout: &TraceLayout<'_>, prepared: &LoadedTrace, path: &PathScene) -> Vec<TimeShare> {
    let Some(shares) = &path.shares else { return Vec::new() };
    let window = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    let known = window.intersection(shares.window());
    time_shares(&shares.cycles_in(known), known.intersection(prepared.range).length())
}

/// Where a bar of the path is, at least one point wide.
fn bar(layout: &TraceLayout<'_>, range: CycleRange) -> Rect {
    let row = layout.regions.path;
    // Ends far outside would lose their digits in 32 bits.
    let left = layout.x(range.start).max(row.left() - 20.0);
    let right = layout.x(range.end).min(row.right() + 20.0);
    Rect::from_min_max(pos2(left, row.top()), pos2(right.max(left + 1.0), row.bottom() - 1.0))
}

/// The middle of the bars of a lane on the screen.
fn middle_of(layout: &TraceLayout<'_>, (at, sub_lane): PathLane) -> Option<f32> {
    let block = layout.block_of(at)?;
    let index = block.lanes.sub_lanes.iter().position(|own| *own == sub_lane)?;
    Some(lane_rect(layout, block, index).center().y)
}

/// The bars of one group of tiles of an IPU.
fn lane_rect(layout: &TraceLayout<'_>, block: &IpuLaneLayout<'_>, index: usize) -> Rect {
    let bars = layout.bars(block);
    let top = bars.top() + block.sub_lane_top(index);
    let rows = block.rows.get(index).copied().unwrap_or(1);
    Rect::from_x_y_ranges(bars.x_range(), top..=top + rows as f32 * block.row_height)
}

/// The hops of a scene between lanes that are shown, as far as they are on the screen.
pub(crate) fn hop_items(layout: &TraceLayout<'_>, scene: &TraceScene) -> Vec<HopItem> {
    let lanes = layout.regions.lanes;
    let hop = |mark: &PathHopMark| {
        let x = layout.x(mark.at);
        let (from, to) = (middle_of(layout, mark.from)?, middle_of(layout, mark.to)?);
        let both = Rangef::new(from.min(to), from.max(to));
        let seen = lanes.x_range().contains(x) && both.intersects(lanes.y_range());
        seen.then_some(HopItem { from: pos2(x, from), to: pos2(x, to), mark: *mark })
    };
    let hops = scene.path.iter().flat_map(|path| &path.hops);
    hops.filter_map(hop).collect()
}

/// Where the path is on the lanes of an IPU, group of tiles by group: the group's place, and from
/// left to right the parts of it, at least one point wide. Bars of several lanes are on all of them.
pub(crate) fn lit_by_path(
    layout: &TraceLayout<'_>,
    path: &PathScene,
    block: &IpuLaneLayout<'_>,
) -> Vec<(Rect, Vec<Rangef>)> {
    let lanes = layout.regions.lanes;
    let parts = |sub_lane: u8| {
        let own = |lane: &Option<PathLane>| lane.is_none_or(|of| of == (block.lanes.at, sub_lane));
        let bars = path.bars.items.iter().zip(&path.lanes).filter(|(_, lane)| own(lane));
        let mut lit: Vec<Rangef> = Vec::new();
        for (item, _) in bars {
            let (left, right) = (layout.x(item.range.start), layout.x(item.range.end));
            let right = right.max(left + 1.0);
            if right <= lanes.left() || left >= lanes.right() {
                continue;
            }
            // Bars follow each other: what touches is one part, so that there are few of them.
            match lit.last_mut().filter(|last| left <= last.max + 0.5) {
                Some(last) => last.max = last.max.max(right),
                None => lit.push(Rangef::new(left, right)),
            }
        }
        lit
    };
    let groups = block.lanes.sub_lanes.iter().enumerate();
    groups.map(|(index, group)| (lane_rect(layout, block, index), parts(*group))).collect()
}

/// What the lane of the path shows at a place.
pub(crate) struct PathHit<'a> {
    pub target: PathHitTarget<'a>,
    pub range: CycleRange,
    pub rect: Rect,
}

pub(crate) enum PathHitTarget<'a> {
    /// A bar, and the lane it is of if it is of one.
    Bar(&'a LaneItem, Option<PathLane>),
    Column(&'a ShareColumn),
}

/// The bar or column of the path at a place on the screen, or very near to it.
pub(crate) fn path_hit<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
    at: Pos2,
) -> Option<PathHit<'a>> {
    let path = scene.path.as_ref().filter(|_| layout.regions.path.contains(at))?;
    let cycle = Cycles(u64::try_from(layout.cycle_at(at.x)).ok()?);
    if let Some(shares) = &path.shares {
        let place = shares.column_at(cycle)?;
        let column = shares.columns().get(place)?;
        let range = shares.range(place);
        let seen = !column.cycles.total().is_zero();
        let target = PathHitTarget::Column(column);
        return seen.then(|| PathHit { target, range, rect: bar(layout, range) });
    }
    let slack = Cycles((layout.axis.scale() * f64::from(HIT_TOLERANCE)) as u64);
    let item = path.bars.hit(0, cycle, slack)?;
    let place = path.bars.items.iter().position(|own| std::ptr::eq(own, item))?;
    let lane = path.lanes.get(place).copied().flatten();
    let (range, rect) = (item.range, bar(layout, item.range));
    Some(PathHit { target: PathHitTarget::Bar(item, lane), range, rect })
}
