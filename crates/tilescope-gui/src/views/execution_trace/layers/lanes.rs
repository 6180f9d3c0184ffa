//! The layer of the lanes: the names of the IPUs, images of their bars or shares, and labels on
//! bars.

use super::{TracePainter, VEIL, followed, marks, path};
use crate::theme::{ThemePalette, mix, spacing, text_size};
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::execution_trace::bar_colours::colour;
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{
    BarPosition, IpuLaneLayout, LOW_FLAME_ROW, LaneName, SUB_LANE_GAP, TraceLayout,
};
use crate::views::execution_trace::loaded_trace::LoadedTrace;
use crate::views::execution_trace::scene::{IpuLaneScene, TraceScene};
use crate::views::execution_trace::share_graph::{self, TimeShare, time_shares};
use crate::widgets::{elided_text::elided, node_ui, region_ui};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, CornerRadius, FontId, Painter, Pos2, Rangef, Rect, Shape, Stroke, Vec2, pos2,
    vec2,
};
use tilescope_analysis::trace::{
    LaneItem, LaneItemKind, LaneShares, MarkRowId, ReplicaWaitRank, ShareColumn,
};
use tilescope_report::units::{CycleRange, Cycles, ReplicaIpu, grouped, percent};

/// The smallest width of a bar with a label.
pub(super) const LEAST_LABEL: f32 = 26.0;
/// The height of an IPU's name.
pub(super) const NAME_HEIGHT: f32 = text_size::SMALL + spacing::XS;
/// The height of a line of shares.
const SHARE_LINE: f32 = text_size::CAPTION + spacing::XXS;
/// The smallest share with a line.
const LEAST_LINE: f64 = 0.005;
/// The smallest width for a bar's label.
const LEAST_WORDS: f32 = 16.0;
/// The side of the square in the colour of a share.
pub(super) const SHARE_SQUARE: f32 = 6.0;
/// The distance at which the pointer hits a narrow bar.
const HIT_TOLERANCE: f32 = 3.0;

/// A visible IPU.
pub(super) struct IpuBand<'a> {
    pub block: &'a IpuLaneLayout<'a>,
    /// The upper right corner of its name; `None` without space below the name above.
    pub name_at: Option<Pos2>,
    /// Its index in the scene, and its scene data if it was read.
    pub scene: Option<(usize, &'a IpuLaneScene)>,
}

impl IpuBand<'_> {
    /// `IPU 3`, or `R2 IPU 3` among several replicas.
    pub(super) fn name(&self) -> String {
        let replica = self.block.replica.map_or(String::new(), |replica| format!("R{replica} "));
        format!("{replica}IPU {}", self.block.lanes.at.ipu)
    }

    /// The key that identifies it among the visible IPUs.
    pub(super) fn key(&self) -> (Option<u32>, ReplicaIpu) {
        (self.block.replica, self.block.lanes.at)
    }
}

/// The highlighted parts of an IPU: those of a micro-batch or of the critical path.
struct LitParts {
    /// True if all bars except the selected ones are veiled.
    veiled: bool,
    /// The ranges of work on the followed micro-batch; `None` if none is followed.
    micro_batch: Option<Vec<Rangef>>,
    /// The rectangles of its tile groups with the ranges of the critical path; `None` if the path
    /// is not highlighted.
    path: Option<Vec<(Rect, Vec<Rangef>)>>,
}

impl LitParts {
    /// Returns true if a bar is outside the highlighted parts.
    fn misses(&self, bar: Rect) -> bool {
        if self.veiled {
            return true;
        }
        let middle = bar.center();
        let misses = |lit: &Vec<Rangef>| lit.iter().all(|part| !part.contains(middle.x));
        let mut groups = self.path.iter().flatten();
        let group = groups.find(|(area, _)| area.y_range().contains(middle.y));
        self.micro_batch.as_ref().is_some_and(misses) || group.is_some_and(|(_, lit)| misses(lit))
    }
}

/// A bar wide enough for its label.
pub(crate) struct BarLabelItem<'a> {
    /// The index of the tile group.
    pub sub_lane: u8,
    pub rect: Rect,
    pub item: &'a LaneItem,
    pub text: String,
}

/// The visible IPUs. IPUs out of sight cost nothing, in any number.
pub(super) fn ipu_bands<'a>(
    layout: &'a TraceLayout<'_>,
    scene: Option<&'a TraceScene>,
) -> Vec<IpuBand<'a>> {
    let lanes = layout.regions.lanes;
    let is_in_sight = |block: &&IpuLaneLayout<'_>| {
        let top = layout.top(block);
        top <= lanes.bottom() && top + block.height() >= lanes.top()
    };
    // If lanes are lower than their names, only some names are shown. A low lane gives way to a
    // higher one.
    let is_low = |block: &&IpuLaneLayout<'_>| block.height() < NAME_HEIGHT;
    let high = layout.blocks.iter().filter(is_in_sight).filter(|block| !is_low(block));
    let mut names: Vec<f32> = high.map(|block| name_at(layout, block).y).collect();
    let mut bands = Vec::new();
    for block in layout.blocks.iter().filter(is_in_sight) {
        let name = match block.name {
            LaneName::Ipu => Some(name_at(layout, block)),
            LaneName::Replica { height } => Some(replica_name_at(layout, block, height)),
            LaneName::Hidden => None,
        };
        let is_free = |name: Pos2| names.iter().all(|y| (name.y - y).abs() >= NAME_HEIGHT);
        let name_at =
            name.filter(|name| !is_low(&block) || (name.y >= lanes.top() && is_free(*name)));
        names.extend(name_at.filter(|_| is_low(&block)).map(|name| name.y));
        // A newly visible IPU may be missing from the scene: its name and background appear first,
        // and its bars with the next answer.
        let mut known = scene.into_iter().flat_map(|scene| &scene.ipus).enumerate();
        let scene = known.find(|(_, ipu)| ipu.at == block.lanes.at);
        bands.push(IpuBand { block, name_at, scene });
    }
    bands
}

fn group_names(layout: &TraceLayout<'_>, block: &IpuLaneLayout<'_>) -> Vec<(Pos2, String)> {
    let right = layout.regions.gutter().right();
    let top = layout.top(block);
    let foot = top + block.tiles_top();
    let least = name_at(layout, block).y + NAME_HEIGHT;
    // The first group holds the compute tiles, labelled with the name of the IPU.
    let mut names = Vec::new();
    for (index, sub_lane) in block.lanes.sub_lanes.iter().enumerate().skip(1) {
        if block.name != LaneName::Ipu {
            break;
        }
        let top = top + block.marks + block.sub_lane_top(index);
        // Entirely below the name of the IPU, or not at all.
        if top + 3.0 < least || top + 3.0 + SHARE_LINE > foot {
            continue;
        }
        let text =
            if *sub_lane == 1 { "I/O tiles".to_owned() } else { format!("tiles {sub_lane}") };
        names.push((pos2(right - 10.0, top + 3.0), text));
    }
    names
}

/// The shares of the visible cycles that compute tiles spend on each activity, as in the table
/// below the lanes.
pub(super) fn shares_on_screen(
    layout: &TraceLayout<'_>,
    prepared: &LoadedTrace,
    ipu: &IpuLaneScene,
) -> Vec<TimeShare> {
    let Some(lane) = ipu.shares.first() else { return Vec::new() };
    let window = cycles_on_screen(layout.axis, layout.regions.lanes.width());
    // While a wider scene is read, the known part stands for the rest.
    let known = window.intersection(lane.window());
    // The run may end inside a column: the whole column counts, but only for cycles of the run.
    time_shares(&lane.cycles_in(known), known.intersection(prepared.range).length())
}

/// The shares listed beside the lane of an IPU, between its name and the end of its compute tiles,
/// and the upper right corners of their text.
pub(super) fn share_lines(
    layout: &TraceLayout<'_>,
    block: &IpuLaneLayout<'_>,
    shares: &[TimeShare],
) -> Vec<(Pos2, TimeShare)> {
    if block.name != LaneName::Ipu {
        return Vec::new();
    }
    let name = name_at(layout, block);
    let rows = block.rows.first().copied().unwrap_or(1);
    let foot = layout.bars(block).top() + rows as f32 * block.row_height;
    let seen = shares.iter().filter(|share| share.share >= LEAST_LINE);
    let mut lines = Vec::new();
    for (index, share) in seen.enumerate() {
        let y = name.y + NAME_HEIGHT + index as f32 * SHARE_LINE;
        if y + SHARE_LINE > foot {
            break;
        }
        lines.push((pos2(name.x, y), *share));
    }
    lines
}

fn rank_text(rank: ReplicaWaitRank) -> &'static str {
    match rank {
        ReplicaWaitRank::Median => ", the median",
        ReplicaWaitRank::Usual => "",
        ReplicaWaitRank::Outlier => ", unlike most replicas",
    }
}

/// The upper right corner of the name of a replica with thin lanes.
fn replica_name_at(layout: &TraceLayout<'_>, block: &IpuLaneLayout<'_>, height: f32) -> Pos2 {
    let right = layout.regions.gutter().right() - 10.0;
    pos2(right, layout.top(block) + (height - NAME_HEIGHT) / 2.0)
}

/// The upper right corner of an IPU's name.
fn name_at(layout: &TraceLayout<'_>, block: &IpuLaneLayout<'_>) -> Pos2 {
    let gutter = layout.regions.gutter();
    let top = layout.top(block);
    // The name stays visible as long as a part of its lanes is.
    let y = if block.height() < NAME_HEIGHT + 4.0 {
        top + (block.height() - NAME_HEIGHT) / 2.0
    } else {
        (top + 2.0).max(gutter.top() + 2.0).min(top + block.height() - 18.0)
    };
    pos2(gutter.right() - 10.0, y)
}

/// The visible bars that are wide enough for a label.
pub(super) fn bar_labels<'a>(
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
    // Only bars that the scene found wide enough: there may be as many others as pixels, and this
    // runs in every frame.
    for (sub_lane, (lane, wide)) in ipu.lanes.iter().zip(&ipu.labelled_bars).enumerate() {
        let wide = wide.iter().filter_map(|at| lane.items.get(*at as usize));
        for item in wide.filter(|item| is_inside(item.range, window)) {
            let LaneItem { row, range, full_height, .. } = *item;
            // In the last row, deeper parts are painted over the bar.
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

/// Returns true if a part of a bar, which may have zero cycles, is inside a window.
fn is_inside(range: CycleRange, window: CycleRange) -> bool {
    range.start < window.end && range.end > window.start
}

impl TracePainter<'_> {
    /// Paints an IPU.
    pub(super) fn band_ui(&self, band: &IpuBand<'_>, veiled: bool) {
        let layout = self.layout;
        let block = band.block;
        let shares =
            band.scene.map_or(Vec::new(), |(_, ipu)| shares_on_screen(layout, self.prepared, ipu));
        self.gutter_ui(band);
        for (at, share) in share_lines(layout, block, &shares) {
            self.share_line(at, share);
        }
        let bars = layout.bars(block);
        self.painter.rect_filled(bars.union(layout.links(block)), 0.0, self.palette.lane);
        // An unread IPU is an empty lane; the page background would look like the end of the IPUs.
        let (Some(scene), Some((index, ipu))) = (self.scene, band.scene) else { return };
        self.images(block, scene.key.window, index);
        self.tiles_ui(band);
        self.links_ui(band, scene, ipu);
        self.separators(block);
        if let Some(row) = layout.stage_row(block) {
            let id = (MarkRowId::Ipu(block.lanes.at), block.replica);
            self.marks_ui(layout.regions.lanes, row, &marks::bars(layout, row, &ipu.marks), id);
        }
        let lit = self.lit_parts(block, veiled);
        if let Some(lit) = &lit.micro_batch {
            self.veil_others(block, lit);
        }
        if let Some(lit) = &lit.path {
            self.veil_beside_path(lit);
        }
        // The veil covers all bars; the selected ones are painted again above it.
        if veiled {
            self.painter.rect_filled(bars, 0.0, self.palette.lane.gamma_multiply(VEIL));
        }
        for label in bar_labels(layout, block, self.prepared, ipu) {
            self.bar_label_ui(band, &label, &lit);
        }
        if !shares.is_empty() {
            self.shares_ui(band, &shares);
        }
    }

    fn lit_parts(&self, block: &IpuLaneLayout<'_>, veiled: bool) -> LitParts {
        let layout = self.layout;
        let at = block.lanes.at;
        let critical = self.lit_path().zip(layout.block_of(at));
        LitParts {
            veiled,
            micro_batch: self.followed.map(|path| followed::lit(layout, path, at)),
            path: critical.map(|(path, block)| path::lit(layout, path, block)),
        }
    }

    /// A share and its colour, left of the lane.
    fn share_line(&self, at: Pos2, share: TimeShare) {
        let gutter = self.layout.regions.gutter();
        let painter = self.ui.painter_at(gutter);
        let palette = self.palette;
        let font = FontId::proportional(text_size::CAPTION);
        let text = share_graph::short_words(share);
        let room = at.x - gutter.left();
        let galley = elided(&painter, &text, font, palette.weak_text, room);
        let words = Rect::from_min_size(at - vec2(galley.size().x, 0.0), galley.size());
        painter.galley(words.min, galley, palette.weak_text);
        let square = Rect::from_center_size(
            pos2((at.x + gutter.right()) / 2.0, words.center().y),
            Vec2::splat(SHARE_SQUARE),
        );
        let colour = share_graph::colour(palette, share);
        painter.rect_filled(square, CornerRadius::same(1), colour);
    }

    /// The text of a graph of shares, for screen readers.
    fn shares_ui(&self, band: &IpuBand<'_>, shares: &[TimeShare]) {
        let visible = self.layout.bars(band.block).intersect(self.layout.regions.lanes);
        if visible.is_positive() {
            let node = id(self.ui, "shares").with(band.key());
            node_ui(self.ui, node, visible, Role::Image, || {
                (format!("Shares of {}", band.name()), share_graph::all_words(shares))
            });
        }
    }

    fn gutter_ui(&self, band: &IpuBand<'_>) {
        let layout = self.layout;
        let block = band.block;
        let gutter = layout.regions.gutter();
        // Names of partly scrolled lanes would overlap the ruler.
        let painter = self.ui.painter_at(gutter);
        let name = band.name();
        let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
        if let (Some(at), LaneName::Replica { height }) = (band.name_at, block.name) {
            self.replica_name(&painter, block, at, height);
        } else if let Some(at) = band.name_at {
            painter.text(at, Align2::RIGHT_TOP, &name, font, self.palette.text);
        }
        for (at, text) in group_names(layout, block) {
            let small = FontId::proportional(text_size::CAPTION);
            painter.text(at, Align2::RIGHT_TOP, text, small, self.palette.weak_text);
        }
        let top = layout.top(block);
        let own = Rect::from_x_y_ranges(gutter.x_range(), top..=top + block.height());
        let lane = id(self.ui, "lane").with(band.key());
        let visible = own.intersect(gutter);
        let waits = self.replica_waits(block).map_or_else(String::new, |(wait, rank)| {
            format!(", waits {} of the run in syncs{}", percent(wait), rank_text(rank))
        });
        let value = format!("{} steps{waits}", grouped(block.lanes.steps));
        region_ui(self.ui, lane, visible, Role::Row, &name, &value);
    }

    /// The share of the run that a replica with thin lanes waits, and its place among the others.
    fn replica_waits(&self, block: &IpuLaneLayout<'_>) -> Option<(f64, ReplicaWaitRank)> {
        let replica = block.replica.filter(|_| block.name != LaneName::Ipu)?;
        let waits = self.prepared.waits.as_ref()?;
        Some((waits.share(block.lanes.at.class), waits.rank(replica, &self.prepared.classes)))
    }

    /// Writes the name of a replica with thin lanes, and how long it waits. The median and outliers
    /// are marked.
    fn replica_name(&self, painter: &Painter, block: &IpuLaneLayout<'_>, at: Pos2, height: f32) {
        let palette = self.palette;
        let Some(replica) = block.replica else { return };
        let font = FontId::new(text_size::SMALL, crate::theme::fonts::strong_family());
        let name = painter.text(at, Align2::RIGHT_TOP, format!("R{replica}"), font, palette.text);
        let Some((wait, rank)) = self.replica_waits(block) else { return };
        let (word, colour) = match rank {
            ReplicaWaitRank::Median => ("median", palette.accent),
            ReplicaWaitRank::Usual => ("waits", palette.weak_text),
            ReplicaWaitRank::Outlier => ("waits", palette.warning),
        };
        let small = FontId::proportional(text_size::CAPTION);
        let words = format!("{word} {:.0} %", wait * 100.0);
        let left = pos2(name.left() - spacing::XS, name.center().y);
        painter.text(left, Align2::RIGHT_CENTER, words, small, colour);
        if rank != ReplicaWaitRank::Usual {
            let top = self.layout.top(block);
            let corner = pos2(self.layout.regions.gutter().right() - 6.0, top);
            let mark = Rect::from_min_size(corner, vec2(3.0, height));
            painter.rect_filled(mark, CornerRadius::same(1), colour);
        }
    }

    fn images(&self, block: &IpuLaneLayout<'_>, window: CycleRange, index: usize) {
        // The image belongs to the window of its scene. Drawn at that window's position it may be
        // stale, but it is never in the wrong place while a new one is being made.
        let layout = self.layout;
        let left = layout.x(window.start);
        let right = layout.x(window.end);
        let places = [layout.bars(block), layout.tiles(block), layout.links(block)];
        for (texture, on) in self.textures.of_lanes(index).iter().zip(places) {
            // The scene's window is wider than the screen: the clip of the lanes cuts it.
            let rect = Rect::from_min_max(pos2(left, on.top()), pos2(right, on.bottom()));
            texture.iter().for_each(|texture| texture.paint(&self.painter, rect));
        }
    }

    /// The lines between tile groups.
    fn separators(&self, block: &IpuLaneLayout<'_>) {
        let bars = self.layout.bars(block);
        for index in 1..block.rows.len() {
            let y = bars.top() + block.sub_lane_top(index) - SUB_LANE_GAP / 2.0;
            let line = [pos2(bars.left(), y), pos2(bars.right(), y)];
            let stroke = Stroke::new(1.0, self.palette.weak_text);
            self.painter.extend(Shape::dashed_line(&line, stroke, 5.0, 4.0));
        }
    }

    /// The label on a bar, also exposed to screen readers.
    fn bar_label_ui(&self, band: &IpuBand<'_>, label: &BarLabelItem<'_>, lit: &LitParts) {
        let BarLabelItem { sub_lane, rect, item, text } = label;
        let full = colour(self.palette, &self.prepared.labels, item);
        // The letters are in the upper or the lower part of the bar.
        let bright = !self.shade_balance || item.tile_balance().is_none_or(|share| share > 0.5);
        let filtered = self.scene.is_some_and(|scene| !scene.key.filter.is_empty());
        let ground = if bright && !filtered { full } else { self.palette.dimmed(full) };
        // The text colour is chosen for the visible background, including the veil.
        let veil = if lit.misses(*rect) { VEIL } else { 0.0 };
        let ground = mix(ground, self.palette.lane, veil);
        self.bar_text(*rect, band.block.row_height, text, ground);
        let visible = rect.intersect(self.layout.regions.lanes);
        if visible.is_positive() {
            let block = band.block;
            let part =
                ((block.replica, block.lanes.at, *sub_lane), item.row, item.first_position());
            let bar = id(self.ui, "bar").with(part);
            node_ui(self.ui, bar, visible, Role::Cell, || {
                (text.clone(), format!("{} cycles", item.range.length()))
            });
        }
    }

    /// Writes text on a bar, in its first row, if there is space.
    pub(super) fn bar_text(&self, rect: Rect, row_height: f32, text: &str, ground: Color32) {
        text_on_bar(&self.painter, (self.palette, rect, row_height), text, ground);
    }
}

/// Writes text on a bar, in its first row, if there is space within the painter's clip.
pub(super) fn text_on_bar(
    painter: &Painter,
    (palette, rect, row_height): (&ThemePalette, Rect, f32),
    text: &str,
    ground: Color32,
) {
    // Starts at the visible part, so that the label of a bar cut off at the left is readable.
    let room = rect.intersect(painter.clip_rect()).shrink2(vec2(4.0, 0.0));
    if room.width() < LEAST_WORDS {
        return;
    }
    let ink = palette.label_text_on(ground);
    let font = FontId::proportional(text_size::CAPTION);
    let galley = elided(painter, text, font, ink, room.width());
    let row = Rect::from_min_size(rect.min, vec2(rect.width(), row_height - 1.0));
    let at = pos2(room.left(), row.center().y - galley.size().y / 2.0);
    painter.galley(at, galley, ink);
}

/// The bar or column under the pointer.
pub(crate) struct LaneHit<'a> {
    /// The IPU and its replicas.
    pub at: ReplicaIpu,
    /// The index of the tile group.
    pub sub_lane: u8,
    pub target: LaneHitTarget<'a>,
    pub range: CycleRange,
    pub rect: Rect,
}

/// The kinds of objects in a lane.
pub(crate) enum LaneHitTarget<'a> {
    Bar(&'a LaneItem),
    Column(&'a ShareColumn),
}

/// The bar or column at a screen position, or very near to it.
pub(crate) fn hit<'a>(
    layout: &TraceLayout<'_>,
    scene: &'a TraceScene,
    at: Pos2,
) -> Option<LaneHit<'a>> {
    if !layout.regions.lanes.contains(at) {
        return None;
    }
    let y = f64::from(at.y - layout.regions.lanes.top()) + layout.scroll;
    let inside =
        |block: &&IpuLaneLayout<'_>| block.top <= y && y < block.top + f64::from(block.height());
    let block = layout.blocks.iter().find(inside)?;
    let (index, row) = block.row_at((y - block.top) as f32 - block.marks)?;
    let ipu = scene.ipus.iter().find(|ipu| ipu.at == block.lanes.at)?;
    let lane = ipu.lanes.get(index)?;
    // Negative positions are left of the run, where there are no bars.
    let cycle = Cycles(u64::try_from(layout.cycle_at(at.x)).ok()?);
    let (target, position) = match ipu.shares.get(index) {
        Some(shares) => column(shares, index, cycle)?,
        None => {
            // Points converted to cycles: a narrow bar is equally easy to hit at any zoom.
            let slack = Cycles((layout.axis.scale() * f64::from(HIT_TOLERANCE)) as u64);
            // In the last row, deeper bars are painted over the others.
            let is_last = block.rows.get(index).is_some_and(|rows| row + 1 >= *rows);
            let rows = row..=if is_last { u32::MAX } else { row };
            let item = lane.hit(rows, cycle, slack)?;
            let LaneItem { row, range, full_height, .. } = *item;
            let position = BarPosition { sub_lane: index, row, range, full_height };
            (LaneHitTarget::Bar(item), position)
        }
    };
    // Positioned by this frame's axis, even if the scene is older: its image is drawn there too.
    let range = position.range;
    let rect = layout.bar(block, position);
    Some(LaneHit { at: ipu.at, sub_lane: lane.sub_lane, target, range, rect })
}

/// The column that contains a cycle, if anything runs in it.
fn column(
    shares: &LaneShares,
    sub_lane: usize,
    cycle: Cycles,
) -> Option<(LaneHitTarget<'_>, BarPosition)> {
    let at = shares.column_at(cycle)?;
    let column = shares.columns().get(at).filter(|column| !column.cycles.total().is_zero())?;
    let range = shares.range(at);
    let position = BarPosition { sub_lane, row: 0, range, full_height: true };
    Some((LaneHitTarget::Column(column), position))
}
