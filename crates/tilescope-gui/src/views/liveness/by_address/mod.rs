//! The memory of one tile by address over the steps of the program: the variables, the free blocks
//! between them, and the highest address in use.

mod paint;
mod raster;

use crate::theme::fonts::strong;
use crate::theme::{ColourScheme, ThemePalette, numbers, spacing};
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::overview_strip::{OverviewDrag, overview_ui};
use crate::widgets::pan_zoom_axis::{AxisLimits, AxisRange, PanZoomAxis};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::split_texture::{SplitImage, SplitTexture, TextureOwner};
use crate::widgets::stack_graph::is_near;
use crate::widgets::{ALL_ARROWS, empty_state_ui, hint_ui, keeps_arrows};
use egui::{CursorIcon, Key, Label, Pos2, Rect, Response, RichText, Sense, Ui, pos2};
use paint::AddressLayout;
use raster::{AddressWindow, raster};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use tilescope_analysis::bank_map::PlacedVariable;
use tilescope_analysis::liveness::{
    AddressTimeline, FreeMemory, HighestVariable, PARTS, by_address,
};
use tilescope_analysis::memory::fullest_tile;
use tilescope_report::units::{
    Bytes, NumberFormat, TileId, VariableId, exact_bytes, grouped, percent,
};
use tilescope_report::{Report, ReportError, ReportPart};

/// The space for addresses beside the picture.
const AXIS_WIDTH: f32 = 74.0;
/// The height of the strip above the picture.
const STRIP: f32 = 18.0;
/// The space for steps and the legend below the picture.
const FOOT: f32 = 54.0;
/// The part of that space for the steps.
const STEPS: f32 = 24.0;
/// The width of the column of one step beside the picture.
const COLUMN: f32 = 72.0;
/// The largest side of a picture in pixels.
const MOST_PIXELS: f32 = 4096.0;

/// The query key of a tile: all of its memory, by address.
struct TileAddresses {
    timeline: AddressTimeline,
    highest: Option<HighestVariable>,
}

/// The picture of a part of the memory.
struct AddressImage {
    window: AddressWindow,
    image: SplitImage,
}

/// The query key of a picture: the version of the tile's memory, the part, the size, the colours.
type AddressImageKey = (u64, AddressWindow, [usize; 2], ColourScheme);

/// A picture on the graphics card: its version, its owner, and the texture.
type KeptTexture = (u64, TextureOwner, SplitTexture);

/// The selection of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ChosenAddress {
    pub step: Option<u32>,
    /// True if the step is added to the selected ones.
    pub add: bool,
    pub variable: Option<VariableId>,
}

/// The selection, and the names of steps.
pub(super) struct AddressInput<'a> {
    /// The tile; `None` for the fullest one.
    pub tile: Option<TileId>,
    /// The last selected step.
    pub step: Option<u32>,
    /// The description of each step.
    pub labels: &'a [String],
    /// True to show all memory of the tile, false for the part in use. `None` shows all of it if
    /// most is in use.
    pub max_memory: Option<bool>,
}

/// The state of the panel, with its zoom.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct AddressPanel {
    steps: ZoomedAxis,
    addresses: ZoomedAxis,
    #[serde(skip)]
    tile: BackgroundQuery<Option<TileId>, Option<TileAddresses>>,
    #[serde(skip)]
    image: BackgroundQuery<AddressImageKey, AddressImage>,
    #[serde(skip)]
    texture: Option<KeptTexture>,
    /// The column of a step.
    #[serde(skip)]
    column: BackgroundQuery<AddressImageKey, AddressImage>,
    #[serde(skip)]
    column_texture: Option<KeptTexture>,
    #[serde(skip)]
    grip: Option<OverviewDrag>,
}

/// An axis that shows everything until it is moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct ZoomedAxis(Option<(PanZoomAxis, AxisLimits)>);

impl ZoomedAxis {
    /// The axis within these limits. An axis moved at another width shows the same part.
    fn within(&mut self, limits: AxisLimits) -> PanZoomAxis {
        self.0 = self.0.filter(|(_, old)| old.range == limits.range).map(|(axis, old)| {
            let axis = if (old.width - limits.width).abs() < 0.5 {
                axis
            } else {
                let window = axis.window(old.width).intersection(limits.range);
                PanZoomAxis::fitting_exactly(window, limits.width)
            };
            (axis, limits)
        });
        let fit_whole = || PanZoomAxis::fitting_exactly(limits.range, limits.width);
        self.0.map_or_else(fit_whole, |(axis, _)| axis)
    }

    /// Moves the axis.
    fn move_to(&mut self, moved: PanZoomAxis, limits: AxisLimits) {
        let moved = moved.clamped_to(limits);
        let whole = moved.window(limits.width).length() >= limits.range.length();
        self.0 = if !whole { Some((moved, limits)) } else { None };
    }
}

impl AddressPanel {
    /// Shows all steps and addresses.
    pub(super) fn reset(&mut self) {
        (self.steps, self.addresses) = (ZoomedAxis::default(), ZoomedAxis::default());
    }

    /// The step with the most live bytes on the visible tile.
    pub(super) fn peak(&self) -> Option<u32> {
        self.tile.latest()?.as_ref()?.timeline.peak()
    }

    /// Returns true if all memory of the tile is shown by default.
    pub(super) fn shows_max_memory(&self) -> bool {
        let near =
            |of: &TileAddresses| is_near(of.timeline.capacity.0, last_address(&of.timeline).0);
        self.tile.latest().is_some_and(|answer| answer.as_ref().is_some_and(near))
    }

    /// Shows the memory of a tile. Returns the clicked element.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        input: &AddressInput<'_>,
    ) -> ChosenAddress {
        let report = context.opened.report.clone();
        if let Some(sentence) = missing(&report) {
            empty_state_ui(ui, "No memory by address", sentence);
            return ChosenAddress::default();
        }
        let texts = QueryTexts { waiting: "Reading…", failed: "Addresses cannot be read" };
        let asked =
            self.tile.ask(ui.ctx(), context.workers, &input.tile, move |tile| load(&report, *tile));
        let chosen = asked.show(ui, texts, |ui, answer| match answer.as_ref() {
            Some(shown) if !shown.timeline.placed.is_empty() => {
                self.tile_ui(ui, context, input, (shown, answer))
            }
            _ => {
                hint_ui(ui, "No variable is on this tile.");
                ChosenAddress::default()
            }
        });
        chosen.unwrap_or_default()
    }

    fn tile_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        input: &AddressInput<'_>,
        (shown, answer): (&TileAddresses, &Versioned<Option<TileAddresses>>),
    ) -> ChosenAddress {
        let timeline = &shown.timeline;
        let step = input.step.filter(|step| *step < timeline.steps()).or(timeline.peak());
        let step = step.unwrap_or(0);
        let free = timeline.free_in(step..step + 1);
        let mut chosen = head_ui(ui, shown, input, (step, &free));
        let area = ui.available_rect_before_wrap();
        let (area, _) = ui.allocate_exact_size(area.size(), Sense::hover());
        let left = area.left() + AXIS_WIDTH;
        let right = (area.right() - COLUMN - spacing::XL).max(left + 20.0);
        let strip =
            Rect::from_x_y_ranges(left..=right, area.top() + 4.0..=area.top() + 4.0 + STRIP);
        let bottom = (area.bottom() - FOOT).max(strip.bottom() + 24.0);
        let frame = Rect::from_min_max(pos2(left, strip.bottom() + 6.0), pos2(right, bottom));
        let column = Rect::from_x_y_ranges(
            right + spacing::M..=(area.right() - spacing::L).max(right + spacing::M + 8.0),
            frame.y_range(),
        );
        let across = AxisLimits {
            range: AxisRange::new(0, timeline.steps().max(1).into()),
            width: frame.width(),
        };
        let up = AxisLimits {
            range: AxisRange::new(0, end(timeline, input.max_memory).0),
            width: frame.height(),
        };
        let steps = self.steps.within(across);
        if let Some(moved) = overview_ui(ui, strip, None, steps, across, &mut self.grip) {
            self.steps.move_to(moved, across);
        }
        let steps = self.steps.within(across);
        let layout = AddressLayout { frame, column, steps, addresses: self.addresses.within(up) };
        let response =
            ui.interact(frame, ui.scope_id().with("by address"), Sense::click_and_drag());
        self.images_ui(ui, context, &layout, (answer, step));
        let palette = ThemePalette::for_ui(ui);
        paint::marks_ui(ui, &layout, timeline, step, (context.selection.variable, palette));
        paint::column_ui(ui, &layout, timeline, (step, &free));
        paint::nodes_ui(ui, &layout, timeline, (&response, step));
        paint::legend_ui(ui, area.with_min_y(frame.bottom() + STEPS), timeline);
        self.pointer_ui(ui, &layout, (across, up), &response);
        let pointed = response.hover_pos().filter(|_| !response.dragged());
        if let Some(at) = pointed.and_then(|at| layout.place(timeline, at)) {
            let found = layout.variable_at(timeline, at);
            paint::hovered_ui(ui, &layout, timeline, found);
            response.clone().on_hover_ui_at_pointer(|ui| {
                call_out_ui(ui, timeline, input.labels, at, found);
            });
            if response.clicked() {
                let add = ui.input(|input| input.modifiers.shift || input.modifiers.command);
                let variable = found.map(|found| found.id);
                chosen = ChosenAddress { step: Some(at.0), add, variable };
            }
        }
        let selected = (step, context.selection.variable);
        keys(ui, &response, timeline, selected).unwrap_or(chosen)
    }

    /// Paints the current pictures, or the previous ones at the current positions of their steps
    /// and addresses.
    fn images_ui(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        layout: &AddressLayout,
        (answer, step): (&Versioned<Option<TileAddresses>>, u32),
    ) {
        let pixels = ui.pixels_per_point();
        let colours = ColourScheme::of(ui);
        let to_pixels = |points: f32| ((points * pixels).min(MOST_PIXELS) as usize).max(1);
        let height = to_pixels(layout.frame.height());
        let window = layout.window();
        let one = AxisRange::new(step.into(), u64::from(step) + 1);
        let key = (answer.version(), window, [to_pixels(layout.frame.width()), height], colours);
        let shared = answer.clone();
        let asked = self.image.compute(ui.ctx(), context.workers, &key, move |key| {
            address_image(shared.as_ref(), key)
        });
        if let Some(shown) = asked.answer() {
            let texture = kept_texture(&mut self.texture, ui, shown);
            texture.paint(&ui.painter_at(layout.frame), layout.rect_of(shown.window));
        }
        let key = (answer.version(), AddressWindow { steps: one, ..window }, [1, height], colours);
        let shared = answer.clone();
        let asked = self.column.compute(ui.ctx(), context.workers, &key, move |key| {
            address_image(shared.as_ref(), key)
        });
        if let Some(shown) = asked.answer() {
            let texture = kept_texture(&mut self.column_texture, ui, shown);
            let place = layout.rect_of(shown.window);
            let place = Rect::from_x_y_ranges(layout.column.x_range(), place.y_range());
            texture.paint(&ui.painter_at(layout.column), place);
        }
    }

    fn pointer_ui(
        &mut self,
        ui: &Ui,
        layout: &AddressLayout,
        (across, up): (AxisLimits, AxisLimits),
        response: &Response,
    ) {
        if response.double_clicked() {
            return self.reset();
        }
        let mut steps = layout.steps;
        let mut addresses = layout.addresses;
        if response.dragged() {
            ui.ctx().set_cursor_icon(CursorIcon::Grabbing);
            steps = steps.panned(response.drag_delta().x);
            addresses = addresses.panned(-response.drag_delta().y);
        }
        if let Some(at) = response.hover_pos().filter(|at| layout.frame.contains(*at)) {
            let (delta, zoom, alt) =
                ui.input(|i| (i.smooth_scroll_delta(), i.zoom_delta(), i.modifiers.alt));
            let factor = f64::from(zoom) * (f64::from(delta.y) * 0.006).exp();
            if factor != 1.0 && alt {
                addresses = addresses.zoomed(factor, layout.frame.bottom() - at.y, up);
            } else if factor != 1.0 {
                steps = steps.zoomed(factor, at.x - layout.frame.left(), across);
            }
            steps = steps.panned(delta.x);
        }
        if steps != layout.steps {
            self.steps.move_to(steps, across);
        }
        if addresses != layout.addresses {
            self.addresses.move_to(addresses, up);
        }
    }
}

fn address_image(
    shown: Option<&TileAddresses>,
    (_, window, size, colours): &AddressImageKey,
) -> AddressImage {
    let palette = colours.palette();
    let image = match shown {
        Some(shown) => raster(&shown.timeline, *window, *size, palette),
        None => egui::ColorImage::filled(*size, palette.lane),
    };
    AddressImage { window: *window, image: SplitImage::cut(image) }
}

/// A sentence about the data that a report lacks for this picture. Nothing is drawn without
/// recorded data.
fn missing(report: &Report) -> Option<&'static str> {
    let describe = |part: &ReportPart| match part {
        ReportPart::Variables => "This report does not list its variables.",
        ReportPart::Addresses => {
            "This report does not record the addresses of variables, so free blocks are unknown."
        }
        _ => "This report does not record the steps in which variables are live.",
    };
    PARTS.iter().find(|part| !report.has(**part)).map(describe)
}

fn load(report: &Report, tile: Option<TileId>) -> Result<Option<TileAddresses>, ReportError> {
    let tile = tile.map_or_else(|| fullest_tile(report), Ok)?;
    let timeline = by_address(report, tile)?;
    Ok(timeline.map(|timeline| TileAddresses { highest: timeline.highest(), timeline }))
}

/// The texture of a picture, uploaded to the graphics card once.
fn kept_texture<'a>(
    kept: &'a mut Option<KeptTexture>,
    ui: &Ui,
    shown: &Versioned<AddressImage>,
) -> &'a SplitTexture {
    let version = shown.version();
    kept.take_if(|(of, owner, _)| *of != version || !owner.is(ui.ctx()));
    let (_, _, texture) = kept.get_or_insert_with(|| {
        let texture = SplitTexture::new(ui.ctx(), "memory by address", &shown.image);
        (version, TextureOwner::of(ui.ctx()), texture)
    });
    texture
}

/// The end of the address axis.
fn end(timeline: &AddressTimeline, max_memory: Option<bool>) -> Bytes {
    let used = last_address(timeline);
    let end = if max_memory.unwrap_or(is_near(timeline.capacity.0, used.0)) {
        used.max(timeline.capacity)
    } else {
        used + used / 16
    };
    end.max(Bytes(1))
}

/// The end of the highest variable.
fn last_address(timeline: &AddressTimeline) -> Bytes {
    let ends = timeline.placed.iter().map(|placed| placed.addresses.end);
    ends.max().unwrap_or(Bytes::ZERO)
}

/// The tile and step, the free memory at that step, and the variable that ends highest.
fn head_ui(
    ui: &mut Ui,
    shown: &TileAddresses,
    input: &AddressInput<'_>,
    (step, free): (u32, &FreeMemory),
) -> ChosenAddress {
    let timeline = &shown.timeline;
    let mut chosen = ChosenAddress::default();
    ui.add_space(spacing::XS);
    ui.horizontal(|ui| {
        ui.add_space(spacing::L);
        ui.label(strong(format!("Tile {}", grouped(timeline.tile.into()))));
        if input.tile.is_none() {
            ui.weak("the fullest tile");
        }
        let words = free_words(timeline, step, free, numbers(ui));
        ui.add(Label::new(words).truncate());
    });
    if let Some((highest, hole)) = highest_words(shown, numbers(ui)) {
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            ui.weak("Highest address");
            let name: String = highest.name.chars().take(80).collect();
            let hint = "Select it, and the first step in which it is live";
            if ui.link(name).on_hover_text(hint).clicked() {
                let step = Some(timeline.life(highest).start);
                chosen = ChosenAddress { step, add: false, variable: Some(highest.id) };
            }
            ui.add(Label::new(RichText::new(hole).weak()).truncate());
        });
    }
    chosen
}

/// Describes live and free memory at a step, and its fragmentation.
fn free_words(
    timeline: &AddressTimeline,
    step: u32,
    free: &FreeMemory,
    numbers: NumberFormat,
) -> String {
    let live = timeline.live.get(step as usize).copied().unwrap_or(Bytes::ZERO);
    let peak = if timeline.peak() == Some(step) { "the peak, " } else { "" };
    let at = format!("{peak}step {}: {} live", grouped(step.into()), numbers.bytes(live.0));
    let Some((largest, share)) = free.largest().zip(free.fragmentation()) else {
        return format!("{at}, no free block");
    };
    format!(
        "{at}, {} free in {} blocks, the largest {}: fragmentation {}",
        numbers.bytes(free.bytes().0),
        grouped(free.blocks.len() as u64),
        numbers.bytes(largest.bytes().0),
        percent(share),
    )
}

/// The variable that ends highest, and its description.
fn highest_words(
    shown: &TileAddresses,
    numbers: NumberFormat,
) -> Option<(&PlacedVariable, String)> {
    let timeline = &shown.timeline;
    let highest = shown.highest.as_ref()?;
    let placed = timeline.placed.get(highest.place)?;
    let size = numbers.bytes((placed.addresses.end - placed.addresses.start).0);
    let end = numbers.bytes(placed.addresses.end.0);
    let hole = match &highest.hole {
        Some(hole) => {
            let bytes = numbers.bytes(hole.bytes().0);
            format!("the largest block below it that stays free has {bytes}")
        }
        None => "no block below it stays free".to_owned(),
    };
    let over = if placed.addresses.end > timeline.capacity {
        ", beyond the memory of the tile"
    } else {
        ""
    };
    let life = life_words(&placed.lifetime);
    Some((placed, format!("{size}, ends at {end}{over}; {life}; {hole}")))
}

fn life_words(lifetime: &Option<Range<u32>>) -> String {
    match lifetime {
        None => "always live".to_owned(),
        Some(life) => {
            let last = life.end.saturating_sub(1);
            format!("live in steps {} - {}", grouped(life.start.into()), grouped(last.into()))
        }
    }
}

/// The description of a step and an address.
fn call_out_ui(
    ui: &mut Ui,
    timeline: &AddressTimeline,
    labels: &[String],
    (step, address): (u32, Bytes),
    found: Option<&PlacedVariable>,
) {
    ui.set_max_width(440.0);
    let describe_step = |step: u32| -> String {
        labels.get(step as usize).map_or("", String::as_str).chars().take(120).collect()
    };
    let Some(placed) = found else {
        let free = timeline.free_in(step..step + 1);
        let block = free.blocks.iter().find(|block| block.addresses.contains(&address));
        ui.label(strong(if block.is_some() { "Free" } else { "Beyond the tile's memory" }));
        if let Some(block) = block {
            ui.label(range_words(&block.addresses));
        }
        ui.label(weak_text(format!("Step {}: {}", grouped(step.into()), describe_step(step))));
        return;
    };
    ui.label(strong(placed.name.chars().take(240).collect::<String>()));
    ui.label(placed.category.title());
    ui.label(range_words(&placed.addresses));
    ui.label(life_words(&placed.lifetime));
    if let Some(life) = &placed.lifetime {
        let last = life.end.saturating_sub(1);
        ui.label(weak_text(format!(
            "from step {}: {}",
            grouped(life.start.into()),
            describe_step(life.start)
        )));
        ui.label(weak_text(format!(
            "held until step {}: {}",
            grouped(last.into()),
            describe_step(last)
        )));
    }
    if let Some(unused) = timeline.unused.get(&placed.id) {
        let last = unused.end - 1;
        let first = grouped(unused.start.into());
        let last = grouped(last.into());
        ui.label(weak_text(format!("no program uses it in steps {first} - {last}")));
    }
}

fn weak_text(text: String) -> RichText {
    RichText::new(text).weak()
}

fn range_words(range: &Range<Bytes>) -> String {
    let start = range.start;
    let last = range.end.saturating_sub(Bytes(1));
    let bytes = exact_bytes((range.end - range.start).0);
    format!("{bytes} at {} - {}", grouped(start.0), grouped(last.0))
}

/// The selection after an arrow key: left and right move between steps, up and down between
/// variables of the step.
fn keys(
    ui: &Ui,
    response: &Response,
    timeline: &AddressTimeline,
    (step, variable): (u32, Option<VariableId>),
) -> Option<ChosenAddress> {
    if !keeps_arrows(response, ALL_ARROWS) {
        return None;
    }
    let last = timeline.steps().saturating_sub(1);
    match [Key::ArrowLeft, Key::ArrowRight, Key::ArrowUp, Key::ArrowDown]
        .map(|key| ui.input(|input| input.key_pressed(key)))
    {
        [true, false, _, _] => Some(chosen_step(step.saturating_sub(1))),
        [false, true, _, _] => Some(chosen_step((step + 1).min(last))),
        [_, _, up, down] if up != down => {
            let live: Vec<VariableId> =
                timeline.live_in(step..step + 1).map(|(_, placed)| placed.id).collect();
            let at = live.iter().position(|id| Some(*id) == variable);
            let next = match at {
                Some(at) if up => at + 1,
                Some(at) => at.checked_sub(1)?,
                None if up => 0,
                None => live.len().checked_sub(1)?,
            };
            let variable = live.get(next).copied()?;
            Some(ChosenAddress { variable: Some(variable), ..ChosenAddress::default() })
        }
        _ => None,
    }
}

fn chosen_step(step: u32) -> ChosenAddress {
    ChosenAddress { step: Some(step), ..ChosenAddress::default() }
}

/// The position of the pointer: a step and an address.
type Place = (u32, Bytes);

impl AddressLayout {
    /// The step and address at a point of the picture.
    fn place(&self, timeline: &AddressTimeline, at: Pos2) -> Option<Place> {
        if !self.frame.contains(at) {
            return None;
        }
        let step = self.steps.position_from_x(at.x - self.frame.left());
        let address = self.addresses.position_from_x(self.frame.bottom() - at.y);
        let step = u32::try_from(step).ok().filter(|step| *step < timeline.steps())?;
        Some((step, Bytes(u64::try_from(address).ok()?)))
    }

    /// The variable at a position, or the largest of those within a pixel around it.
    fn variable_at<'a>(
        &self,
        timeline: &'a AddressTimeline,
        (step, address): Place,
    ) -> Option<&'a PlacedVariable> {
        if let Some(exact) = timeline.at(step, address) {
            return Some(exact);
        }
        let steps = positions_per_pixel(self.steps) as u32;
        let bytes = positions_per_pixel(self.addresses);
        if steps <= 1 && bytes <= 1 {
            return None;
        }
        let near = timeline.live_in(step.saturating_sub(steps)..step.saturating_add(steps));
        let low = address.saturating_sub(Bytes(bytes));
        let high = address + Bytes(bytes);
        // Only variables smaller than a pixel: a pointer beside a larger one does not hit it.
        let small = near.map(|(_, placed)| placed).filter(|placed| {
            let size = (placed.addresses.end - placed.addresses.start).0;
            let life = timeline.life(placed).len() as u64;
            let meets = placed.addresses.start < high && low < placed.addresses.end;
            meets && (size < bytes || life < u64::from(steps))
        });
        small.max_by_key(|placed| (placed.addresses.end - placed.addresses.start, placed.id.0))
    }
}

fn positions_per_pixel(axis: PanZoomAxis) -> u64 {
    axis.scale().ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::vec2;

    #[test]
    fn an_axis_keeps_its_range_at_another_width() {
        let limits = |width| AxisLimits { range: AxisRange::new(0, 1_000), width };
        let mut axis = ZoomedAxis::default();
        let whole = axis.within(limits(500.0));
        assert_eq!(whole.window(500.0).length(), 1_001);
        axis.move_to(whole.zoomed(10.0, 250.0, limits(500.0)), limits(500.0));
        let before = axis.within(limits(500.0)).window(500.0);
        let after = axis.within(limits(1_000.0)).window(1_000.0);
        assert!(before.start.abs_diff(after.start) <= 1 && before.end.abs_diff(after.end) <= 2);
        // The position would be meaningless on another tile.
        let other = AxisLimits { range: AxisRange::new(0, 7), width: 500.0 };
        assert_eq!(axis.within(other), PanZoomAxis::fitting_exactly(other.range, 500.0));
    }

    #[test]
    fn pictures_follow_the_visible_range() {
        let frame = Rect::from_min_size(pos2(10.0, 20.0), vec2(100.0, 50.0));
        let axis = |length, width| PanZoomAxis::fitting_exactly(AxisRange::new(0, length), width);
        let layout = AddressLayout {
            frame,
            column: frame,
            steps: axis(100, 100.0),
            addresses: axis(1_000, 50.0),
        };
        let window =
            AddressWindow { steps: AxisRange::new(0, 50), addresses: AxisRange::new(0, 500) };
        let rect = layout.rect_of(window);
        assert_eq!((rect.left(), rect.right()), (10.0, 60.0));
        assert_eq!((rect.top(), rect.bottom()), (45.0, 70.0));
    }
}
