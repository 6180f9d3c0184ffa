//! Render items of the IPUs on the screen: ground, image, names on bars, names in the gutter.

use super::ipu_lanes::LOW_FLAME_ROW;
use super::marks::{MarkBarItem, mark_bars};
use super::{BarPosition, IpuLaneLayout, SUB_LANE_GAP, TraceLayout};
use crate::theme::{spacing, text_size};
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::execution_trace::link_strip::LinkStrip;
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::views::execution_trace::scene::{IpuLaneScene, TraceScene};
use crate::views::execution_trace::share_graph::{TimeShare, time_shares};
use egui::{Pos2, Rangef, Rect, pos2, vec2};
use tilescope_analysis::trace::{LaneItem, LaneItemKind, LinkColumn};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu};

/// Narrowest bar with a name on it.
pub(super) const LEAST_LABEL: f32 = 26.0;
/// Height of the name of an IPU.
const NAME_HEIGHT: f32 = text_size::SMALL + spacing::XS;
/// Height of a line of shares.
const SHARE_LINE: f32 = text_size::CAPTION + spacing::XXS;
/// Smallest share that has a line.
const LEAST_LINE: f64 = 0.005;

/// One IPU on the screen.
pub(crate) struct IpuBand<'a> {
    pub at: ReplicaIpu,
    /// The replica it is of, where several are shown.
    pub replica: Option<u32>,
    /// Executed steps on all of its tiles.
    pub steps: u64,
    /// Its part of the gutter; it may reach out of it.
    pub gutter: Rect,
    /// Where its name ends and begins: the upper right corner. None where there is no room below
    /// the name above.
    pub name_at: Option<Pos2>,
    /// Names of its further groups of tiles, and their upper right corners.
    pub groups: Vec<(Pos2, String)>,
    /// All of its bars.
    pub bars: Rect,
    /// The raster of tiles below them; without a height if there is none.
    pub tiles: Rect,
    /// The strip of links below those; without a height if there is none.
    pub links: Rect,
    /// Height of a row of bars.
    pub row_height: f32,
    /// Heights of the lines between groups of tiles.
    pub separators: Vec<f32>,
    /// Where it works for the micro-batch that is followed; none where none is.
    pub lit: Option<Vec<Rangef>>,
    /// The places of its groups of tiles, and where the critical path is on each; none where that is
    /// not lit.
    pub on_path: Option<Vec<(Rect, Vec<Rangef>)>>,
    /// What was read for it, if anything was.
    pub scene: Option<SceneBand<'a>>,
}

impl IpuBand<'_> {
    /// `IPU 3`, or `R2 IPU 3` among several replicas.
    pub(crate) fn name(&self) -> String {
        let replica = self.replica.map_or(String::new(), |replica| format!("R{replica} "));
        format!("{replica}IPU {}", self.at.ipu)
    }

    /// Whether a bar lies outside of what is lit: for a micro-batch, or on the critical path.
    pub(crate) fn is_unlit(&self, bar: Rect) -> bool {
        let middle = bar.center();
        let misses = |lit: &Vec<Rangef>| lit.iter().all(|part| !part.contains(middle.x));
        let group = self
            .on_path
            .as_ref()
            .and_then(|groups| groups.iter().find(|(area, _)| area.y_range().contains(middle.y)));
        self.lit.as_ref().is_some_and(misses) || group.is_some_and(|(_, lit)| misses(lit))
    }
}

/// What a scene has for an IPU on the screen.
pub(crate) struct SceneBand<'a> {
    /// Its place in the scene.
    pub index: usize,
    /// Left and right edge of its images: where the window of the scene is.
    pub image: (f32, f32),
    /// The row of its stages and updates, with their bars.
    pub stages: Option<(Rect, Vec<MarkBarItem<'a>>)>,
    pub labels: Vec<BarLabelItem<'a>>,
    /// Mean shares of the cycles on the screen, where lanes are shares; the largest first.
    pub shares: Vec<TimeShare>,
    /// What its links carry in the cycles on the screen, and those cycles.
    pub links: Option<(LinkColumn, Cycles)>,
    /// Those of them for which there is room below the name of the IPU.
    pub share_lines: Vec<ShareLineItem>,
}

/// A share that stands beside its lane.
pub(crate) struct ShareLineItem {
    /// Upper right corner of its words.
    pub at: Pos2,
    pub share: TimeShare,
}

/// A bar that is wide enough for its name.
pub(crate) struct BarLabelItem<'a> {
    /// Group of tiles.
    pub sub_lane: u8,
    pub rect: Rect,
    pub item: &'a LaneItem,
    pub text: String,
}

/// The IPUs on the screen; those out of sight cost nothing, however many there are.
pub(crate) fn ipu_bands<'a>(
    layout: &TraceLayout<'_>,
    prepared: &LoadedTrace,
    scene: Option<&'a TraceScene>,
) -> Vec<IpuBand<'a>> {
    let lanes = layout.regions.lanes;
    let in_sight = |block: &&IpuLaneLayout<'_>| {
        let top = layout.top(block);
        top <= lanes.bottom() && top + block.height() >= lanes.top()
    };
    // Where lanes are lower than their names, only some have one, and never beside a higher one's.
    let low = |block: &&IpuLaneLayout<'_>| block.height() < NAME_HEIGHT;
    let high = layout.blocks.iter().filter(in_sight).filter(|block| !low(block));
    let mut names: Vec<f32> = high.map(|block| name_at(layout, block).y).collect();
    let band = |block: &IpuLaneLayout<'_>| {
        let name = name_at(layout, block);
        let free = || names.iter().all(|y| (name.y - y).abs() >= NAME_HEIGHT);
        let shown = !low(&block) || (name.y >= lanes.top() && free());
        if shown && low(&block) {
            names.push(name.y);
        }
        let name = shown.then_some(name);
        IpuBand { name_at: name, ..ipu_band(layout, block, prepared, scene) }
    };
    layout.blocks.iter().filter(in_sight).map(band).collect()
}

fn ipu_band<'a>(
    layout: &TraceLayout<'_>,
    block: &IpuLaneLayout<'_>,
    prepared: &LoadedTrace,
    scene: Option<&'a TraceScene>,
) -> IpuBand<'a> {
    let (gutter, top) = (layout.regions.gutter(), layout.top(block));
    let size = vec2(gutter.width(), block.height());
    let own = Rect::from_min_size(pos2(gutter.left(), top), size);
    let bars = layout.bars(block);
    let separator = |index| bars.top() + block.sub_lane_top(index) - SUB_LANE_GAP / 2.0;
    // An IPU that was just scrolled to may not be in the scene yet: it has a name and a ground, and
    // its bars come with the next answer.
    let place = |scene: &TraceScene| scene.ipus.iter().position(|i| i.at == block.lanes.at);
    IpuBand {
        at: block.lanes.at,
        replica: block.replica,
        steps: block.lanes.steps,
        gutter: own,
        name_at: None,
        groups: group_names(layout, block),
        bars,
        tiles: layout.tiles(block),
        links: layout.links(block),
        row_height: block.row_height,
        lit: None,
        on_path: None,
        separators: (1..block.rows.len()).map(separator).collect(),
        scene: scene
            .and_then(|scene| Some(scene_band(layout, block, prepared, (scene, place(scene)?)))),
    }
}

fn group_names(layout: &TraceLayout<'_>, block: &IpuLaneLayout<'_>) -> Vec<(Pos2, String)> {
    let (right, top) = (layout.regions.gutter().right(), layout.top(block));
    let foot = top + block.tiles_top();
    let least = name_at(layout, block).y + NAME_HEIGHT;
    let name = |(index, sub_lane): (usize, &u8)| {
        let top = top + block.marks + block.sub_lane_top(index);
        // Whole and below the name of the IPU, or not at all.
        if top + 3.0 < least || top + 3.0 + SHARE_LINE > foot {
            return None;
        }
        let text =
            if *sub_lane == 1 { "I/O tiles".to_owned() } else { format!("tiles {sub_lane}") };
        Some((pos2(right - 10.0, top + 3.0), text))
    };
    // The first group are the compute tiles: the name of the IPU stands beside them.
    block.lanes.sub_lanes.iter().enumerate().skip(1).filter_map(name).collect()
}

fn scene_band<'a>(
    layout: &TraceLayout<'_>,
    block: &IpuLaneLayout<'_>,
    prepared: &LoadedTrace,
    (scene, index): (&'a TraceScene, usize),
) -> SceneBand<'a> {
    let ipu = &scene.ipus[index];
    let stages = layout.stage_row(block).map(|row| (row, mark_bars(layout, row, &ipu.marks)));
    // The image belongs to the window of its scene; drawn at that window's place it may be stale,
    // but it is never in the wrong place while a new one is on its way.
    let window = scene.key.window;
    let shares = shares_on_screen(layout, prepared, ipu);
    let on_screen = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    let known = on_screen.intersection(window).intersection(prepared.range);
    let sum = |strip: &LinkStrip| (strip.traffic.sum(known), known.length());
    SceneBand {
        links: ipu.links.as_ref().map(sum),
        share_lines: share_lines(layout, block, &shares),
        shares,
        index,
        image: (layout.x(window.start), layout.x(window.end)),
        stages,
        labels: bar_labels(layout, block, prepared, ipu),
    }
}

/// What the compute tiles spend the cycles on the screen on, as the table below the lanes has it.
fn shares_on_screen(
    layout: &TraceLayout<'_>,
    prepared: &LoadedTrace,
    ipu: &IpuLaneScene,
) -> Vec<TimeShare> {
    let Some(lane) = ipu.shares.first() else { return Vec::new() };
    let window = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    // While a wider scene is read, what is known stands for the rest.
    let known = window.intersection(lane.window());
    // The run may end inside of a column: all of that column is counted, but only cycles of the run.
    time_shares(&lane.cycles_in(known), known.intersection(prepared.range).length())
}

/// Lines below the name of an IPU, down to the foot of its compute tiles.
fn share_lines(
    layout: &TraceLayout<'_>,
    block: &IpuLaneLayout<'_>,
    shares: &[TimeShare],
) -> Vec<ShareLineItem> {
    let name = name_at(layout, block);
    let rows = block.rows.first().copied().unwrap_or(1);
    let foot = layout.bars(block).top() + rows as f32 * block.row_height;
    let line = |(index, share): (usize, &TimeShare)| {
        let y = name.y + NAME_HEIGHT + index as f32 * SHARE_LINE;
        let at = pos2(name.x, y);
        (y + SHARE_LINE <= foot).then_some(ShareLineItem { at, share: *share })
    };
    let seen = shares.iter().filter(|share| share.share >= LEAST_LINE);
    seen.enumerate().map_while(line).collect()
}

/// Upper right corner of the name of an IPU.
fn name_at(layout: &TraceLayout<'_>, block: &IpuLaneLayout<'_>) -> Pos2 {
    let (gutter, top) = (layout.regions.gutter(), layout.top(block));
    // The name stays on the screen as long as a part of its lanes does.
    let y = match block.height() < NAME_HEIGHT + 4.0 {
        true => top + (block.height() - NAME_HEIGHT) / 2.0,
        false => (top + 2.0).max(gutter.top() + 2.0).min(top + block.height() - 18.0),
    };
    pos2(gutter.right() - 10.0, y)
}

/// The bars on the screen that are wide enough for a name.
fn bar_labels<'a>(
    layout: &TraceLayout<'_>,
    block: &IpuLaneLayout<'_>,
    prepared: &LoadedTrace,
    ipu: &'a IpuLaneScene,
) -> Vec<BarLabelItem<'a>> {
    let window = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    let mut labels = Vec::new();
    if block.row_height < LOW_FLAME_ROW {
        return labels;
    }
    // Only bars that the scene found wide enough: there are as many others as pixels, and this is
    // done for every frame.
    for (sub_lane, (lane, wide)) in ipu.lanes.iter().zip(&ipu.labelled_bars).enumerate() {
        let wide = wide.iter().filter_map(|at| lane.items.get(*at as usize));
        for item in wide.filter(|item| is_inside(item.range, window)) {
            let LaneItem { row, range, full_height, .. } = *item;
            // In the last row its parts, which are deeper, are painted over it.
            let last = block.rows.get(sub_lane).is_some_and(|rows| row + 1 >= *rows);
            if last && matches!(item.kind, LaneItemKind::Parent(..)) {
                continue;
            }
            let rect = layout.bar(block, BarPosition { sub_lane, row, range, full_height });
            if rect.width() >= LEAST_LABEL {
                let text = item.text(&prepared.labels);
                labels.push(BarLabelItem { sub_lane: lane.sub_lane, rect, item, text });
            }
        }
    }
    labels
}

/// Whether a part of a bar, which may have no cycles, is inside of a window.
fn is_inside(range: CycleRange, window: CycleRange) -> bool {
    range.start < window.end && range.end > window.start
}
