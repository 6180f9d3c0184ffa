//! The layer of the critical path: its lane, its hops from lane to lane, and the parts of the other
//! lanes that it highlights.

use super::lanes::{BarLabelItem, LEAST_LABEL, text_on_bar};
use super::{TracePainter, VEIL, veiled_parts};
use crate::theme::text_size;
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::execution_trace::bar_colours::colour;
use crate::views::execution_trace::bar_raster::{BarFilter, BarRasterLayout, raster};
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{IpuLaneLayout, TraceLayout};
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::views::execution_trace::scene::{LEAST_WIDE, TraceScene, TraceSceneKey, labelled_bars};
use crate::views::execution_trace::share_graph::{
    COLUMN_PIXELS, TimeShare, all_words, share_raster, time_shares,
};
use crate::widgets::split_texture::SplitImage;
use crate::widgets::{node_ui, region_ui};
use egui::accesskit::Role;
use egui::{Align2, FontId, Pos2, Rangef, Rect, Shape, Stroke, Vec2, pos2, vec2};
use tilescope_analysis::trace::{
    LaneItem, LaneItemList, LaneShares, ShareColumn, TraceLaneStyle, TraceStepGrouping, arrange,
};
use tilescope_report::ReportError;
use tilescope_report::trace::{CriticalPath, LaneSpan, PathHop, PathSpan, StepBucket};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu, StepId, grouped};

/// The largest number of hops drawn in a window; more would cover the lanes.
const MAX_HOPS: usize = 200;
/// The length of the arrowhead of a hop.
const HEAD: f32 = 6.0;
/// The distance at which the pointer hits a narrow bar.
const HIT_TOLERANCE: f32 = 3.0;

/// An IPU and one of its tile groups.
pub(crate) type PathLane = (ReplicaIpu, u8);

/// The critical path in a window.
pub(crate) struct PathScene {
    /// The bars, all in one row; each is a span of the path.
    pub bars: LaneItemList,
    /// The lane of each bar; `None` for bars of several lanes.
    pub lanes: Vec<Option<PathLane>>,
    /// The indices of bars that may be wide enough for a label.
    pub labelled_bars: Vec<u32>,
    /// The shares; `None` if bars are shown.
    pub shares: Option<LaneShares>,
    /// The image of the bars or shares.
    pub image: SplitImage,
    /// The hops from one lane to another; empty if there are too many to be drawn separately.
    pub hops: Vec<PathHopMark>,
    /// The number of hops in the window.
    pub hop_count: u64,
}

/// A place where the path moves from one lane to another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PathHopMark {
    pub at: Cycles,
    pub from: PathLane,
    pub to: PathLane,
    pub hop: PathHop,
}

/// Reads the path in the window of a scene.
pub(crate) fn read(
    prepared: &LoadedTrace,
    path: &CriticalPath,
    key: &TraceSceneKey,
    filter: &BarFilter,
) -> Result<PathScene, ReportError> {
    let window = key.window;
    let spans = path.spans(window, key.width as u32)?;
    let find_lane = |at: usize| {
        let info = path.lane_infos().get(at)?;
        Some((ReplicaIpu { class: info.class, ipu: info.ipu }, info.sub_lane))
    };
    let lanes = spans.iter().map(|span| of_lane(span).and_then(find_lane)).collect();
    let spans: Vec<LaneSpan> = spans.iter().map(as_of_a_lane).collect();
    let pixel = window.length().div_ceil(key.width.max(1) as u64).max(Cycles(1));
    // Bars stay single: a group would contain steps of several lanes.
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
    let shares =
        if key.shares { Some(LaneShares::from_spans(&spans, window, columns)) } else { None };
    let image = SplitImage::cut(match &shares {
        Some(shares) => share_raster(std::slice::from_ref(shares), &fill, palette),
        None => raster(std::slice::from_ref(&bars), &prepared.labels, &fill, filter, palette),
    });
    let least = (pixel.as_f64() * LEAST_WIDE) as u64;
    let labelled_bars = if key.shares { Vec::new() } else { labelled_bars(&bars, least) };
    let hop_count = path.stretch_count_in(window)?.saturating_sub(1);
    let hops =
        if hop_count <= MAX_HOPS as u64 { hops(path, window, find_lane)? } else { Vec::new() };
    Ok(PathScene { bars, lanes, labelled_bars, shares, image, hops, hop_count })
}

/// The index of the lane of a span.
fn of_lane(span: &PathSpan) -> Option<usize> {
    match span {
        PathSpan::OfLane { lane, .. } => Some(*lane),
        PathSpan::Stretches { lane, .. } => *lane,
    }
}

/// Converts a span to the form of lane spans, so that it is drawn the same way.
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
            let first_position = 0;
            let first_step = StepId(0);
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
    let mut hops = Vec::new();
    for pair in stretches.windows(2) {
        if let Some(from) = lane(pair[0].lane)
            && let Some(to) = lane(pair[1].lane)
            && let Some(hop) = pair[1].hop
        {
            hops.push(PathHopMark { at: pair[1].range.start, from, to, hop });
        }
    }
    Ok(hops)
}

fn labels<'a>(
    layout: &TraceLayout<'_>,
    prepared: &LoadedTrace,
    path: &'a PathScene,
) -> Vec<BarLabelItem<'a>> {
    let window = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    let places = path.labelled_bars.iter().map(|at| *at as usize);
    let bars = places.filter_map(|at| Some((path.bars.items.get(at)?, path.lanes.get(at)?)));
    bars.filter_map(|(item, lane)| {
        let rect = bar(layout, item.range);
        let text = item.text(&prepared.labels);
        let text = match lane {
            Some((at, _)) if prepared.ipus.len() > 1 => format!("IPU {} {text}", at.ipu),
            _ => text,
        };
        let seen = item.range.overlaps(window) && rect.width() >= LEAST_LABEL;
        if seen { Some(BarLabelItem { sub_lane: 0, rect, item, text }) } else { None }
    })
    .collect()
}

fn shares(layout: &TraceLayout<'_>, prepared: &LoadedTrace, path: &PathScene) -> Vec<TimeShare> {
    let Some(shares) = &path.shares else { return Vec::new() };
    let window = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    let known = window.intersection(shares.window());
    time_shares(&shares.cycles_in(known), known.intersection(prepared.range).length())
}

/// The rectangle of a bar of the path, at least one point wide.
fn bar(layout: &TraceLayout<'_>, range: CycleRange) -> Rect {
    let row = layout.regions.path;
    // Ends far outside the screen would lose precision in 32 bits.
    let left = layout.x(range.start).max(row.left() - 20.0);
    let right = layout.x(range.end).min(row.right() + 20.0);
    Rect::from_min_max(pos2(left, row.top()), pos2(right.max(left + 1.0), row.bottom() - 1.0))
}

/// The vertical middle of a lane's bars on the screen.
fn middle_of(layout: &TraceLayout<'_>, (at, sub_lane): PathLane) -> Option<f32> {
    let block = layout.block_of(at)?;
    let index = block.lanes.sub_lanes.iter().position(|own| *own == sub_lane)?;
    Some(lane_rect(layout, block, index).center().y)
}

/// The rectangle of the bars of one tile group of an IPU.
fn lane_rect(layout: &TraceLayout<'_>, block: &IpuLaneLayout<'_>, index: usize) -> Rect {
    let bars = layout.bars(block);
    let top = bars.top() + block.sub_lane_top(index);
    let rows = block.rows.get(index).copied().unwrap_or(1);
    Rect::from_x_y_ranges(bars.x_range(), top..=top + rows as f32 * block.row_height)
}

/// The ranges of the path on the lanes of an IPU, by tile group: the rectangle of the group, and
/// the parts from left to right, at least one point wide. Bars of several lanes are on all of them.
pub(super) fn lit(
    layout: &TraceLayout<'_>,
    path: &PathScene,
    block: &IpuLaneLayout<'_>,
) -> Vec<(Rect, Vec<Rangef>)> {
    let lanes = layout.regions.lanes;
    let mut groups = Vec::new();
    for (index, sub_lane) in block.lanes.sub_lanes.iter().enumerate() {
        let mut lit: Vec<Rangef> = Vec::new();
        for (item, lane) in path.bars.items.iter().zip(&path.lanes) {
            if lane.is_some_and(|lane| lane != (block.lanes.at, *sub_lane)) {
                continue;
            }
            let left = layout.x(item.range.start);
            let right = layout.x(item.range.end).max(left + 1.0);
            if right <= lanes.left() || left >= lanes.right() {
                continue;
            }
            // Bars follow each other: adjacent bars are merged to keep the parts few.
            match lit.last_mut().filter(|last| left <= last.max + 0.5) {
                Some(last) => last.max = last.max.max(right),
                None => lit.push(Rangef::new(left, right)),
            }
        }
        groups.push((lane_rect(layout, block, index), lit));
    }
    groups
}

impl TracePainter<'_> {
    /// Paints the lane of the path if it is visible, or `waiting` while the path is not known.
    pub(super) fn path_ui(&self, waiting: &str) {
        let row = self.layout.regions.path;
        if row.height() <= 0.0 {
            return;
        }
        let painter = self.ui.painter_at(row);
        painter.rect_filled(row, 0.0, self.palette.lane);
        let gutter = Rect::from_x_y_ranges(self.layout.regions.gutter().x_range(), row.y_range());
        let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
        let at = pos2(gutter.right() - 10.0, row.center().y);
        self.ui.painter().text(at, Align2::RIGHT_CENTER, "Critical path", font, self.palette.text);
        let found = self.scene.and_then(|scene| Some((scene, scene.path.as_ref()?)));
        let about = match found {
            Some((_, path)) => format!("{} hops between lanes", grouped(path.hop_count)),
            None => waiting.to_owned(),
        };
        region_ui(
            self.ui,
            id(self.ui, "critical path"),
            gutter,
            Role::Row,
            "Critical path",
            &about,
        );
        if let Some((scene, path)) = found {
            return self.path_band(row, scene.key.window, path);
        }
        let font = FontId::proportional(text_size::CAPTION);
        let at = pos2(row.left() + 6.0, row.center().y);
        painter.text(at, Align2::LEFT_CENTER, waiting, font, self.palette.weak_text);
    }

    fn path_band(&self, row: Rect, window: CycleRange, path: &PathScene) {
        let painter = self.ui.painter_at(row);
        let layout = self.layout;
        if let Some(texture) = self.textures.of_path() {
            let left = layout.x(window.start);
            let right = layout.x(window.end);
            texture.paint(&painter, Rect::from_x_y_ranges(left..=right, row.y_range()));
        }
        // A line marks a hop; the arrow below shows the other lane.
        let line = Stroke::new(1.0, self.palette.page);
        let hops = path.hops.iter().map(|hop| layout.x(hop.at));
        for x in hops.filter(|x| row.x_range().contains(*x)) {
            painter.vline(x, row.y_range(), line);
        }
        for label in labels(layout, self.prepared, path) {
            self.path_label_ui(row, &label);
        }
        let shares = shares(layout, self.prepared, path);
        if !shares.is_empty() {
            node_ui(self.ui, id(self.ui, "path shares"), row, Role::Image, || {
                ("Shares of the critical path".to_owned(), all_words(&shares))
            });
        }
    }

    fn path_label_ui(&self, row: Rect, label: &BarLabelItem<'_>) {
        let BarLabelItem { rect, item, text, .. } = label;
        let full = colour(self.palette, &self.prepared.labels, item);
        let bright = !self.shade_balance || item.tile_balance().is_none_or(|share| share > 0.5);
        let ground = if bright { full } else { self.palette.dimmed(full) };
        let painter = self.ui.painter_at(row);
        text_on_bar(&painter, (self.palette, *rect, row.height()), text, ground);
        let node = id(self.ui, "path bar").with(item.range.start);
        node_ui(self.ui, node, rect.intersect(row), Role::Cell, || {
            (text.clone(), format!("{} cycles", item.range.length()))
        });
    }

    /// Veils the work of an IPU that is not on the path.
    pub(super) fn veil_beside_path(&self, lit: &[(Rect, Vec<Rangef>)]) {
        let veil = self.palette.lane.gamma_multiply(VEIL);
        for (area, parts) in lit {
            for part in veiled_parts(*area, parts) {
                self.painter.rect_filled(part, 0.0, veil);
            }
        }
    }

    /// Paints the visible arrows of hops from lane to lane, and exposes them to screen readers.
    pub(super) fn hops_ui(&self, path: &PathScene) {
        let layout = self.layout;
        let lanes = self.layout.regions.lanes;
        let stroke = Stroke::new(1.5, self.palette.selection);
        for mark in &path.hops {
            let x = layout.x(mark.at);
            let ends = (middle_of(layout, mark.from), middle_of(layout, mark.to));
            let (Some(from), Some(to)) = ends else { continue };
            let both = Rangef::new(from.min(to), from.max(to));
            if !lanes.x_range().contains(x) || !both.intersects(lanes.y_range()) {
                continue;
            }
            let from = pos2(x, from);
            let to = pos2(x, to);
            let down = if to.y >= from.y { 1.0 } else { -1.0 };
            let neck = to - vec2(0.0, HEAD * down);
            self.painter.line_segment([from, neck], stroke);
            self.painter.circle_filled(from, 2.0, self.palette.selection);
            let side = Vec2::new(HEAD * 0.5, 0.0);
            let head = vec![to, neck - side, neck + side];
            self.painter.add(Shape::convex_polygon(head, self.palette.selection, Stroke::NONE));
            let node = id(self.ui, "hop").with((mark.at, mark.from));
            let rect = Rect::from_two_pos(from, to).expand(2.0).intersect(lanes);
            node_ui(self.ui, node, rect, Role::GraphicsObject, || {
                let [from, to] = [mark.from, mark.to].map(|(at, _)| self.prepared.ipu_words(at));
                let name = format!("Critical path goes from {from} to {to}");
                (name, format!("at cycle {}", mark.at))
            });
        }
    }
}

/// The bar or column of the path at a position.
pub(crate) struct PathHit<'a> {
    pub target: PathHitTarget<'a>,
    pub range: CycleRange,
    pub rect: Rect,
}

pub(crate) enum PathHitTarget<'a> {
    /// A bar, and its lane if it has only one.
    Bar(&'a LaneItem, Option<PathLane>),
    Column(&'a ShareColumn),
}

/// The bar or column of the path at a screen position, or very near to it.
pub(crate) fn hit<'a>(
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
        if !seen {
            return None;
        }
        return Some(PathHit { target, range, rect: bar(layout, range) });
    }
    let slack = Cycles((layout.axis.scale() * f64::from(HIT_TOLERANCE)) as u64);
    let item = path.bars.hit(0..=0, cycle, slack)?;
    let place = path.bars.items.iter().position(|own| std::ptr::eq(own, item))?;
    let lane = path.lanes.get(place).copied().flatten();
    let range = item.range;
    let rect = bar(layout, item.range);
    Some(PathHit { target: PathHitTarget::Bar(item, lane), range, rect })
}
