//! The layer of selected bars, in full colour with an outline, also around their tiles.

use super::lanes::LEAST_LABEL;
use super::{TracePainter, tiles};
use crate::model::command::SelectedStep;
use crate::views::execution_trace::bar_colours::colour;
use crate::views::execution_trace::layout::{BarPosition, TraceLayout};
use crate::views::execution_trace::scene::TraceScene;
use crate::views::execution_trace::selected_bar::{self, SelectedBar};
use crate::views::execution_trace::settings::TraceSettings;
use egui::{CornerRadius, Rect, Shape, Stroke, StrokeKind};
use tilescope_analysis::trace::LaneItem;
use tilescope_report::units::{CycleRange, ReplicaIpu};

/// A selected bar. It is painted again above the veil.
pub(super) struct ChosenBarItem<'a> {
    pub at: ReplicaIpu,
    pub rect: Rect,
    /// The bar itself, if it was read for the visible scene.
    pub item: Option<&'a LaneItem>,
    /// True if it is filled with its colour; on shares it is only outlined.
    pub filled: bool,
    /// True if it is wide enough for its name.
    pub labelled: bool,
    /// The height of a row of bars.
    pub row_height: f32,
    /// The raster of tiles below it, if visible.
    pub tiles: Option<Rect>,
}

/// A selected bar and its position among the lanes.
struct SelectedBarPosition<'a> {
    at: ReplicaIpu,
    sub_lane: u8,
    row: u32,
    range: CycleRange,
    full_height: bool,
    item: Option<&'a LaneItem>,
}

/// The visible selected bars, and true if all other bars are veiled. The step shared by all tabs is
/// last, so that its outline is above the others; its presence causes the veil.
pub(super) fn chosen_bars<'a>(
    layout: &TraceLayout<'_>,
    scene: Option<&'a TraceScene>,
    settings: &TraceSettings,
    selected: Option<SelectedStep>,
) -> (Vec<ChosenBarItem<'a>>, bool) {
    // A bar of several steps belongs to this view alone and takes precedence over the shared step.
    let chosen = match &settings.bar {
        Some(bar) => Some(bar_position(scene, bar)),
        None => scene.zip(selected).and_then(|(scene, step)| step_bar_position(scene, &step)),
    };
    // A veil would change the colours that represent shares.
    let shares = scene.is_some_and(|scene| scene.key.shares);
    let veiled = chosen.is_some() && !shares;
    let beside =
        |scene| settings.also.iter().filter_map(move |step| step_bar_position(scene, step));
    let also = scene.into_iter().flat_map(beside);
    // Before the first scene, an outline would frame a part of an empty lane.
    let all = also.chain(chosen.filter(|_| scene.is_some()));
    (all.filter_map(|chosen| chosen_bar(layout, &chosen, shares)).collect(), veiled)
}

/// The position of a bar that stands for several steps.
fn bar_position<'a>(scene: Option<&'a TraceScene>, bar: &SelectedBar) -> SelectedBarPosition<'a> {
    let SelectedBar { at, sub_lane, row, range, .. } = *bar;
    let shown = scene.and_then(|scene| scene.ipus.iter().find(|shown| shown.at == at));
    let lane = shown.and_then(|ipu| ipu.lanes.iter().find(|lane| lane.sub_lane == sub_lane));
    // Items have no ids: within a lane, row and start identify an item.
    let is_same = |item: &&LaneItem| item.row == row && item.range.start == range.start;
    let item = lane.and_then(|lane| lane.items.iter().find(is_same));
    let full_height = item.is_some_and(|item| item.full_height);
    SelectedBarPosition { at, sub_lane, row, range, full_height, item }
}

/// The bar of a step and its position among the lanes.
fn step_bar_position<'a>(
    scene: &'a TraceScene,
    step: &SelectedStep,
) -> Option<SelectedBarPosition<'a>> {
    let item = selected_bar::find(scene, step)?;
    let row = item.row;
    let range = item.range;
    let full_height = item.full_height;
    let SelectedStep { at, sub_lane, .. } = *step;
    Some(SelectedBarPosition { at, sub_lane, row, range, full_height, item: Some(item) })
}

fn chosen_bar<'a>(
    layout: &TraceLayout<'_>,
    chosen: &SelectedBarPosition<'a>,
    shares: bool,
) -> Option<ChosenBarItem<'a>> {
    let SelectedBarPosition { at, row, range, full_height, item, .. } = *chosen;
    // Shares have no rows: the selection is a part of their whole height.
    let (row, full_height) = if shares { (0, true) } else { (row, full_height) };
    let block = layout.block_of(at)?;
    let sub_lane = block.lanes.sub_lanes.iter().position(|s| *s == chosen.sub_lane)?;
    // Thin lanes show compute tiles only.
    block.rows.get(sub_lane)?;
    let rect = layout.bar(block, BarPosition { sub_lane, row, range, full_height });
    let tiles = if block.tiles > 0.0 {
        Some(Rect::from_x_y_ranges(rect.x_range(), layout.tiles(block).y_range()))
    } else {
        None
    };
    let filled = !shares;
    let labelled = rect.width() >= LEAST_LABEL;
    Some(ChosenBarItem { at, rect, item, filled, labelled, row_height: block.row_height, tiles })
}

impl TracePainter<'_> {
    /// Paints a selected bar again, above the veil.
    pub(super) fn chosen_bar(&self, chosen: &ChosenBarItem<'_>) {
        let rect = chosen.rect;
        if let Some(item) = chosen.item.filter(|_| chosen.filled) {
            let fill = colour(self.palette, &self.prepared.labels, item);
            self.painter.rect_filled(rect, 0.0, fill);
            // The fill hides the label, so it is painted again.
            if chosen.labelled {
                let text = item.text(&self.prepared.labels);
                self.bar_text(rect, chosen.row_height, &text, fill);
            }
        }
        let stroke = Stroke::new(2.0, self.palette.selection);
        if let Some(tiles) = chosen.tiles {
            self.tiles_outline(chosen, tiles, stroke);
        }
        // Around the bar: on a bar one point wide, the outline would hide its colour.
        let rect = rect.expand(1.0);
        self.painter.rect_stroke(rect, CornerRadius::same(1), stroke, StrokeKind::Outside);
    }

    /// Outlines the tiles that work in the bar, or all tiles if that is unknown.
    fn tiles_outline(&self, chosen: &ChosenBarItem<'_>, tiles: Rect, stroke: Stroke) {
        match chosen.item.and_then(|item| tiles::outline(self.prepared, item, chosen.at.ipu, tiles))
        {
            Some(lines) => {
                let shapes = lines.into_iter().map(|line| Shape::closed_line(line, stroke));
                self.painter.extend(shapes);
            }
            None => drop(self.painter.rect_stroke(tiles, 0.0, stroke, StrokeKind::Inside)),
        }
    }
}
