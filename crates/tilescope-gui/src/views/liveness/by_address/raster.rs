//! The picture of a tile's memory over steps: one pixel covers some steps and some addresses.

use crate::theme::{ThemePalette, mix};
use crate::widgets::pan_zoom_axis::AxisRange;
use egui::{Color32, ColorImage};
use tilescope_analysis::bank_map::PlacedVariable;
use tilescope_analysis::liveness::AddressTimeline;

/// The share of the background in the colours of variables, so that neighbours are distinguishable.
const SHADES: [f32; 3] = [0.0, 0.16, 0.3];
/// The share of the background at the border between two variables.
const EDGE: f32 = 0.45;
/// The share of a pixel from which it shows one variable.
const WHOLE: f32 = 0.99;

/// The part of the memory on a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AddressWindow {
    pub steps: AxisRange,
    pub addresses: AxisRange,
}

/// The contents of a pixel: its live share, and the largest variable.
#[derive(Clone, Copy, Default)]
struct AddressPixel {
    live: f32,
    most: f32,
    place: usize,
}

/// Draws the contents of the window, with low addresses at the bottom. A pixel has the colour of
/// its largest variable, as strong as the live share of its addresses and steps.
///
/// O(pixels) for variables larger than a pixel. A smaller variable costs the pixels that it
/// touches.
pub(super) fn raster(
    timeline: &AddressTimeline,
    window: AddressWindow,
    [width, height]: [usize; 2],
    palette: &ThemePalette,
) -> ColorImage {
    let mut pixels = vec![AddressPixel::default(); width * height];
    let to_column = |step: u32| position(step.into(), window.steps, width);
    let to_row = |address: u64| position(address, window.addresses, height);
    for (place, placed) in timeline.placed.iter().enumerate() {
        let life = timeline.life(placed);
        let left = to_column(life.start);
        let right = to_column(life.end);
        let low = to_row(placed.addresses.start.0);
        let high = to_row(placed.addresses.end.0);
        for (row, share) in covered(low, high) {
            let line = (height - 1 - row) * width;
            for (column, wide) in covered(left, right) {
                let pixel = &mut pixels[line + column];
                let part = share * wide;
                pixel.live += part;
                if part > pixel.most {
                    (pixel.most, pixel.place) = (part, place);
                }
            }
        }
    }
    let colours = pixels.iter().enumerate().map(|(at, pixel)| {
        let Some(placed) = timeline.placed.get(pixel.place).filter(|_| pixel.live > 0.0) else {
            return palette.lane;
        };
        let whole = pixel.most >= WHOLE;
        let differs = |other: usize| {
            pixels.get(other).is_some_and(|of| of.most >= WHOLE && of.place != pixel.place)
        };
        let edge = whole && ((at + 1) % width != 0 && differs(at + 1) || differs(at + width));
        let colour = colour(placed, palette);
        let colour = if edge { mix(colour, palette.page, EDGE) } else { colour };
        mix(palette.lane, colour, pixel.live.min(1.0))
    });
    ColorImage::new([width, height], colours.collect())
}

/// The colour of a variable: a shade of its category's colour.
pub(super) fn colour(placed: &PlacedVariable, palette: &ThemePalette) -> Color32 {
    let shade = SHADES[placed.id.index() % SHADES.len()];
    mix(palette.category(placed.category), palette.page, shade)
}

/// The position on this many pixels. Positions outside the window are moved to its edges.
fn position(at: u64, window: AxisRange, pixels: usize) -> f64 {
    let within = at.clamp(window.start, window.end) - window.start;
    within as f64 / window.length().max(1) as f64 * pixels as f64
}

/// The pixels between two points of a row, and the covered share of each.
fn covered(from: f64, to: f64) -> impl Iterator<Item = (usize, f32)> {
    let first = from as usize;
    let end = to.ceil() as usize;
    (first..end).map(move |pixel| {
        let share = to.min(pixel as f64 + 1.0) - from.max(pixel as f64);
        (pixel, share as f32)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::LIGHT;
    use std::ops::Range;
    use tilescope_report::MemoryCategory;
    use tilescope_report::units::{Bytes, ProgramId, VariableId};

    fn timeline(placed: &[(Range<u64>, Option<Range<u32>>)]) -> AddressTimeline {
        let variable = |(at, (addresses, lifetime)): (usize, &(Range<u64>, Option<Range<u32>>))| {
            PlacedVariable {
                id: VariableId(3 * at as u32),
                name: String::new(),
                category: MemoryCategory::ALL[at],
                addresses: Bytes(addresses.start)..Bytes(addresses.end),
                lifetime: lifetime.clone(),
                row: 0,
            }
        };
        AddressTimeline {
            programs: vec![ProgramId(0); 8],
            placed: placed.iter().enumerate().map(variable).collect(),
            ..AddressTimeline::default()
        }
    }

    fn window(steps: u64, addresses: u64) -> AddressWindow {
        AddressWindow { steps: AxisRange::new(0, steps), addresses: AxisRange::new(0, addresses) }
    }

    #[test]
    fn variables_are_drawn_at_their_addresses_and_steps() {
        let timeline = timeline(&[(0..4, None), (4..8, Some(2..6))]);
        let image = raster(&timeline, window(8, 8), [8, 8], &LIGHT);
        let lane = |x: usize, y: usize| image.pixels[y * 8 + x] == LIGHT.lane;
        for (x, y) in (0..8).flat_map(|x| (0..8).map(move |y| (x, y))) {
            let live = y >= 4 || (2..6).contains(&x);
            assert_eq!(!lane(x, y), live, "{x} {y}");
        }
    }

    #[test]
    fn parts_of_a_pixel_colour_their_share() {
        let full = timeline(&[(0..8, None)]);
        let strong = raster(&full, window(8, 8), [1, 1], &LIGHT).pixels[0];
        let tiny = timeline(&[(0..1, Some(0..2))]);
        let weak = raster(&tiny, window(8, 8), [1, 1], &LIGHT).pixels[0];
        assert_eq!(weak, mix(LIGHT.lane, strong, 1.0 / 32.0));
        // Parts that fill a pixel together cover the background, even if it has the largest share.
        let both = timeline(&[(0..5, None), (5..8, None)]);
        let joined = raster(&both, window(8, 8), [1, 1], &LIGHT).pixels[0];
        assert_eq!(joined, colour(&both.placed[0], &LIGHT));
    }

    #[test]
    fn variables_outside_the_window_are_not_drawn() {
        let timeline = timeline(&[(20..30, None), (0..2, Some(6..8))]);
        let image = raster(&timeline, window(4, 8), [4, 4], &LIGHT);
        assert!(image.pixels.iter().all(|pixel| *pixel == LIGHT.lane));
    }
}
