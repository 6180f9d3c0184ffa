//! Painting of a graph of stacked values.

use super::values::{StackedValues, mark_step};
use super::{GraphAnnotation, MatchedPlaces, StackGraphInput, StackGraphLayout};
use crate::theme::{ThemePalette, mix, numbers, text_size};
use crate::widgets::elided_text::elided;
use crate::widgets::pan_zoom_axis::tick_step;
use egui::{Align2, Color32, ColorImage, FontId, Mesh, Painter, Rect, Shape, Stroke, Ui, pos2};
use tilescope_report::units::grouped;

/// The width of the line along the top of a layer.
const LINE: f32 = 1.3;
/// The largest number of columns at which many layers have a line along their top.
const MOST_OUTLINED: usize = 400;

/// Paints the graph and its marks.
pub(super) fn paint(ui: &Ui, places: &StackGraphLayout<'_>, look: &StackGraphInput<'_>) {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter();
    // The grid is below the layers; the axis line that they rest on is painted last.
    grid(ui, painter, places, look, palette);
    let inside = ui.painter_at(places.frame);
    let ground = columns(places, None);
    let mut below = ground.clone();
    let count = places.stack.titles().len();
    // A few layers are pale with a line along their top; many are distinguished by their colours.
    let paleness = [0.85, 0.75].get(count.saturating_sub(1)).copied().unwrap_or(0.25);
    for (index, colour) in look.colours.iter().enumerate().take(count) {
        let above = columns(places, Some(index));
        if places.stack.is_overlaid() {
            // Layers behind it stay visible.
            fill(&inside, places, &ground, &above, colour.gamma_multiply(0.16));
            // If two are equal, the one behind shows on both sides.
            let width = if index < count / 2 { 3.0 } else { LINE };
            outline(&inside, places, &above, Stroke::new(width, *colour));
            continue;
        }
        fill(&inside, places, &below, &above, mix(*colour, palette.page, paleness));
        if count <= 2 || above.len() <= MOST_OUTLINED {
            outline(&inside, places, &above, Stroke::new(LINE, *colour));
        }
        below = above;
    }
    if let Some(matching) = look.matching {
        veil(&inside, places, matching, palette.page.gamma_multiply(0.72));
    }
    spans(&inside, places, look, palette);
    for place in look.chosen {
        let from = places.x(*place);
        let to = places.x(place + 1);
        let middle = (from + to) / 2.0;
        if to - from > 3.0 {
            let band = Rect::from_x_y_ranges(from..=to, places.frame.y_range());
            inside.rect_filled(band, 0.0, palette.selection.gamma_multiply(0.16));
        }
        inside.vline(middle, places.frame.y_range(), Stroke::new(1.5, palette.selection));
    }
    for level in look.levels {
        let line = Stroke::new(1.5, level.colour);
        inside.hline(places.frame.x_range(), places.y(level.value), line);
    }
    for (index, flag) in look.annotations.iter().enumerate() {
        // Two of them may be at one place: their texts are on opposite sides.
        paint_flag(&inside, places, flag, index % 2 == 1, palette);
    }
    painter.hline(places.frame.x_range(), places.frame.bottom(), Stroke::new(1.0, palette.outline));
}

/// The left edge, right edge and height of each column of pixels, or of each place if places are
/// wider.
fn columns(places: &StackGraphLayout<'_>, layer: Option<usize>) -> Vec<(f32, f32, f32)> {
    let window = places.window();
    // At most one column per point, for any number of tiles. Each shows its highest place, so that
    // a single full tile among thousands stays visible.
    let per_column = window.len().div_ceil((places.frame.width() as usize).max(1)).max(1);
    let mut found: Vec<(f32, f32, f32)> = Vec::with_capacity(window.len() / per_column + 1);
    let mut first = window.start;
    while first < window.end {
        let end = (first + per_column).min(window.end);
        let highest = layer.map_or(0, |layer| places.stack.highest_upto(layer, first..end));
        found.push((places.x(first), places.x(end), places.y(highest)));
        first = end;
    }
    found
}

fn fill(
    painter: &Painter,
    places: &StackGraphLayout<'_>,
    below: &[(f32, f32, f32)],
    above: &[(f32, f32, f32)],
    colour: Color32,
) {
    // One mesh: egui feathers the edges of single shapes, which would leave seams.
    let mut mesh = Mesh::default();
    let mut run: Option<(f32, f32, f32, f32)> = None;
    for ((left, right, bottom), (_, _, top)) in below.iter().zip(above) {
        if *left >= places.frame.right() {
            break;
        }
        match &mut run {
            // Neighbours of the same height are one rectangle. Equal values give equal bits, so
            // comparing floats is safe.
            Some((_, end, low, high)) if *low == *bottom && *high == *top => *end = *right,
            _ => {
                quad(&mut mesh, run.replace((*left, *right, *bottom, *top)), colour);
            }
        }
    }
    quad(&mut mesh, run, colour);
    painter.add(Shape::mesh(mesh));
}

/// Adds a rectangle from its left, right, lower and upper edge, if it has a height.
fn quad(mesh: &mut Mesh, run: Option<(f32, f32, f32, f32)>, colour: Color32) {
    let Some((left, right, bottom, top)) = run.filter(|run| run.2 > run.3) else { return };
    mesh.add_colored_rect(Rect::from_min_max(pos2(left, top), pos2(right, bottom)), colour);
}

/// Veils the columns of pixels without a match.
fn veil(
    painter: &Painter,
    places: &StackGraphLayout<'_>,
    matching: &MatchedPlaces,
    colour: Color32,
) {
    let window = places.window();
    let frame = places.frame;
    let per_column = window.len().div_ceil((frame.width() as usize).max(1)).max(1);
    let mut mesh = Mesh::default();
    let mut run: Option<(f32, f32, f32, f32)> = None;
    for first in window.clone().step_by(per_column) {
        let end = (first + per_column).min(window.end);
        if matching.any(first..end) {
            quad(&mut mesh, run.take(), colour);
            continue;
        }
        let right = places.x(end).min(frame.right());
        match &mut run {
            Some((_, last, _, _)) => *last = right,
            None => {
                let left = places.x(first).max(frame.left());
                run = Some((left, right, frame.bottom(), frame.top()));
            }
        }
    }
    quad(&mut mesh, run, colour);
    painter.add(Shape::mesh(mesh));
}

fn outline(
    painter: &Painter,
    places: &StackGraphLayout<'_>,
    above: &[(f32, f32, f32)],
    line: Stroke,
) {
    let mut points = Vec::with_capacity(above.len() * 2);
    for (left, right, y) in above {
        // Cut just outside the frame, where the clip hides it: large floats are coarse.
        points.push(pos2(left.max(places.frame.left() - 2.0), *y));
        points.push(pos2(right.min(places.frame.right() + 2.0), *y));
    }
    // Points on a straight line are redundant.
    points.dedup();
    let mut kept: Vec<egui::Pos2> = Vec::with_capacity(points.len());
    for point in points {
        // Fewer points matter: egui tessellates each of them into several triangles.
        if let [.., a, b] = kept[..]
            && a.y == b.y
            && b.y == point.y
        {
            kept.pop();
        }
        kept.push(point);
    }
    painter.add(Shape::line(kept, line));
}

fn grid(
    ui: &Ui,
    painter: &Painter,
    places: &StackGraphLayout<'_>,
    look: &StackGraphInput<'_>,
    palette: &ThemePalette,
) {
    let frame = places.frame;
    let font = FontId::proportional(text_size::CAPTION);
    let step = mark_step(look.unit, places.top, f64::from(frame.height() / 38.0).clamp(2.0, 10.0));
    let line = Stroke::new(1.0, palette.rule);
    // Bounded, so that a tiny or zero step cannot stall a frame.
    for index in 0..32 {
        let value = (f64::from(index) * step) as u64;
        if value as f64 > places.top {
            break;
        }
        let y = places.y(value);
        painter.hline(frame.x_range(), y, line);
        let text = look.unit.short(value, numbers(ui));
        let at = pos2(frame.left() - 8.0, y);
        painter.text(at, Align2::RIGHT_CENTER, text, font.clone(), palette.weak_text);
    }
    // At least 1, as `tick_step` guarantees, or the loop below would not end.
    let step = tick_step(places.axis.scale(), 80.0) as usize;
    let window = places.window();
    let mut place = window.start.div_ceil(step) * step;
    // The end of the number before.
    let mut reached = f32::NEG_INFINITY;
    while place < window.end {
        let x = (places.x(place) + places.x(place + 1)) / 2.0;
        if x <= frame.right() && x >= frame.left() {
            painter.vline(
                x,
                frame.bottom()..=frame.bottom() + 4.0,
                Stroke::new(1.0, palette.outline),
            );
            let text = grouped(place as u64);
            let text = painter.layout_no_wrap(text, font.clone(), palette.weak_text);
            // The last number may be wider than the margin right of the graph.
            let half = text.size().x / 2.0;
            let middle = x.min(painter.clip_rect().right() - half - 1.0);
            if middle - half >= reached {
                reached = middle + half + 4.0;
                painter.galley(pos2(middle - half, frame.bottom() + 6.0), text, palette.weak_text);
            }
        }
        place += step;
    }
    let at = pos2(frame.center().x, frame.bottom() + 21.0);
    painter.text(
        at,
        Align2::CENTER_TOP,
        look.axis,
        FontId::proportional(text_size::CAPTION),
        palette.weak_text,
    );
}

/// The named ranges of the axis: bars along the top, each with its name.
fn spans(
    painter: &Painter,
    places: &StackGraphLayout<'_>,
    look: &StackGraphInput<'_>,
    palette: &ThemePalette,
) {
    for (index, (covered, name)) in look.spans.iter().enumerate() {
        let left = places.x(covered.start);
        let right = places.x(covered.end);
        let right = right.max(left + 2.0);
        let area = Rect::from_x_y_ranges(left..=right, places.frame.y_range());
        painter.rect_filled(area, 0.0, palette.accent.gamma_multiply(0.10));
        let top = places.frame.top() + 4.0 + index as f32 * 18.0;
        let bar = Rect::from_min_max(pos2(left, top), pos2(right, top + 4.0));
        painter.rect_filled(bar, 2.0, palette.accent);
        // The name stays in the frame if its range begins left of it; the inner `max` keeps the
        // bounds of `clamp` in order in a narrow graph.
        let from = left.clamp(
            places.frame.left() + 2.0,
            (places.frame.right() - 120.0).max(places.frame.left() + 2.0),
        );
        let room = places.frame.right() - from - 4.0;
        let text =
            elided(painter, name, FontId::proportional(text_size::CAPTION), palette.text, room);
        let at = pos2(from, top + 5.0);
        painter.rect_filled(Rect::from_min_size(at, text.size()).expand(1.0), 2.0, palette.page);
        painter.galley(at, text, palette.text);
    }
}

fn paint_flag(
    painter: &Painter,
    places: &StackGraphLayout<'_>,
    flag: &GraphAnnotation,
    words_left: bool,
    palette: &ThemePalette,
) {
    let x = (places.x(flag.place) + places.x(flag.place + 1)) / 2.0;
    if !places.frame.x_range().contains(x) {
        return;
    }
    let y = places.y(flag.value);
    let dashes = Shape::dashed_line(
        &[pos2(x, places.frame.bottom()), pos2(x, y)],
        Stroke::new(1.0, palette.text),
        4.0,
        3.0,
    );
    painter.extend(dashes);
    painter.circle_filled(pos2(x, y), 3.0, palette.text);
    let text = painter.layout_no_wrap(
        flag.words.clone(),
        FontId::proportional(text_size::CAPTION),
        palette.text,
    );
    let before = x - 8.0 - text.size().x;
    let behind = x + 8.0;
    let fits_before = before >= places.frame.left();
    let fits_behind = behind + text.size().x <= places.frame.right();
    let left = match (fits_before, fits_behind) {
        (true, true) if words_left => before,
        (_, true) => behind,
        (true, false) => before,
        // In a narrow graph they are placed where there is most space.
        (false, false) => (x - text.size().x / 2.0)
            .min(places.frame.right() - text.size().x)
            .max(places.frame.left()),
    };
    let top = (y - text.size().y / 2.0).max(places.frame.top() + 1.0);
    let ground = Rect::from_min_size(pos2(left, top), text.size()).expand(2.0);
    painter.rect_filled(ground, 3.0, palette.page.gamma_multiply(0.85));
    painter.galley(pos2(left, top), text, palette.text);
}

/// All places as a grey shape.
pub(super) fn silhouette(
    stack: &StackedValues,
    [width, height]: [usize; 2],
    palette: &ThemePalette,
) -> ColorImage {
    let mut image = ColorImage::filled([width, height], palette.raised);
    let places = stack.places().max(1);
    let highest = stack.highest(0..places).max(1) as f64;
    let lowest = (0..places).map(|place| stack.total(place)).min().unwrap_or(0) as f64;
    // A large common part would hide the differences.
    let base = if lowest * 2.0 > highest { lowest - (highest - lowest) * 0.2 } else { 0.0 };
    // A small margin above the highest place.
    let top = (highest - base).max(1.0) * 1.06;
    for x in 0..width {
        // Rounded down and up: every place is in a column, for any number of places.
        let first = x * places / width;
        let end = ((x + 1) * places).div_ceil(width).max(first + 1);
        let value = stack.highest(first..end) as f64 - base;
        let filled = (value / top * height as f64).round() as usize;
        for y in height - filled.min(height)..height {
            image.pixels[y * width + x] = palette.outline;
        }
    }
    image
}
