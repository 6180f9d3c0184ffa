//! A rasterizer for the lanes of one IPU. Any number of bars costs no more than the image itself.
//!
//! A bar at least a pixel wide is a rectangle; its upper part, as high as its tile balance, is
//! bright. Narrower bars share their pixel column by the part of it that they cover, but never less
//! than a quarter, so that nothing disappears. Columns that stand for several steps get a dotted
//! line at the bottom.

use super::bar_colours::{colour, matches};
use crate::theme::{ThemePalette, mix};
use egui::{Color32, ColorImage};
use std::ops::Range;
use tilescope_analysis::trace::{
    LaneItem, LaneItemKind, LaneItemList, ProgramLabels, StepGroupTotals,
};
use tilescope_report::units::{CycleRange, Cycles, ProgramId};

/// The smallest height in pixels of a bar with a strip of its shares.
const LEAST_STRIPED: usize = 10;
/// The smallest share of a second activity that is worth a strip.
const LEAST_SECOND: f64 = 0.005;
/// The smallest visible share of a column for a narrow bar.
const LEAST_COVER: f32 = 0.25;
/// The share of the lane's colour in bars that do not match the filter.
const FILTERED_OUT: f32 = 0.78;

/// The layout and scale of a lane image.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BarRasterLayout {
    /// The cycles that the image covers.
    pub window: CycleRange,
    /// The number of columns of the image.
    pub width: usize,
    /// The height of a row, in pixels.
    pub row_height: usize,
    /// The number of rows of each sub-lane, from the top.
    pub rows: Vec<u32>,
    /// The rows of pixels between sub-lanes.
    pub gap: usize,
    /// True if bars are shaded by tile balance.
    pub tile_balance: bool,
}

impl BarRasterLayout {
    /// The height of the image in pixels.
    pub(crate) fn height(&self) -> usize {
        let rows: usize = self.rows.iter().map(|rows| *rows as usize).sum();
        rows * self.row_height + self.gap * self.rows.len().saturating_sub(1)
    }

    /// The first pixel row of a sub-lane.
    pub(crate) fn top(&self, sub_lane: usize) -> usize {
        let above: usize = self.rows[..sub_lane].iter().map(|rows| *rows as usize).sum();
        above * self.row_height + self.gap * sub_lane
    }
}

/// The filter for names of steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct BarFilter {
    /// The text in lower case; empty matches everything.
    pub text: String,
    pub programs: Vec<ProgramId>,
}

/// Rasterizes the lanes of one IPU.
pub(crate) fn raster(
    lanes: &[LaneItemList],
    labels: &ProgramLabels,
    fill: &BarRasterLayout,
    filter: &BarFilter,
    palette: &ThemePalette,
) -> ColorImage {
    let size = [fill.width, fill.height().max(1)];
    let mut image = ColorImage::filled(size, palette.lane);
    for (index, lane) in lanes.iter().enumerate().take(fill.rows.len()) {
        let mut narrow = NarrowBarColumns::new(fill.rows[index], fill.width);
        for item in &lane.items {
            let look = bar_style(item, labels, filter, palette);
            let wide = BarRasterizer { image: &mut image, fill, sub_lane: index, palette };
            wide.put(item, look, &mut narrow);
        }
        // Drawn after the wide bars: a short step at the edge of a long one must not vanish below
        // it.
        narrow.put(&mut image, fill, index, palette);
    }
    image
}

/// The colour and bright share of a bar.
fn bar_style(
    item: &LaneItem,
    labels: &ProgramLabels,
    filter: &BarFilter,
    palette: &ThemePalette,
) -> (Color32, f32) {
    let full = colour(palette, labels, item);
    let balance = item.tile_balance().map_or(1.0, |share| share as f32);
    let all = filter.text.is_empty();
    if all || matches(item, labels, &filter.programs, &filter.text) {
        (full, balance)
    } else {
        (mix(full, palette.lane, FILTERED_OUT), balance)
    }
}

struct BarRasterizer<'a> {
    image: &'a mut ColorImage,
    fill: &'a BarRasterLayout,
    sub_lane: usize,
    palette: &'a ThemePalette,
}

impl BarRasterizer<'_> {
    fn put(
        self,
        item: &LaneItem,
        (colour, balance): (Color32, f32),
        narrow: &mut NarrowBarColumns,
    ) {
        let fill = self.fill;
        let scale = fill.width as f64 / fill.window.length().max(Cycles(1)).as_f64();
        // Subtract as integers first: as floats, cycles up to 2^63 lose their low digits. The clamp
        // keeps bars far outside the window within the range of a `usize` column.
        let to_column = |cycle: u64| {
            let offset = cycle as i64 - fill.window.start.0 as i64;
            (offset as f64 * scale).clamp(-4.0, fill.width as f64 + 4.0)
        };
        let left = to_column(item.range.start.0);
        let right = to_column(item.range.end.0);
        if right <= 0.0 || left >= fill.width as f64 {
            return;
        }
        // Rows deeper than the lane share its last row.
        let row = item.row.min(fill.rows[self.sub_lane].saturating_sub(1));
        let bucket = matches!(item.kind, LaneItemKind::Bucket(..));
        // A bucket stands for steps that are each narrower than a pixel, even if the bucket is
        // wider.
        if bucket || right - left < 1.0 {
            let busy = busy_share(item);
            narrow.add(row, (left, right), busy, colour, balance, item.steps() > 1);
            return;
        }
        // Edges are rounded, not floored, so that a bar ends in the column where its neighbour
        // begins.
        let from = left.round().max(0.0) as usize;
        let to = (right.round() as usize).clamp(from + 1, fill.width.max(from + 1));
        // A gap separates neighbours if there is space for it.
        let to = if to - from >= 4 { to - 1 } else { to };
        let rows = if item.full_height { fill.rows[self.sub_lane] - row } else { 1 };
        let top = fill.top(self.sub_lane) + row as usize * fill.row_height;
        // The last row of pixels keeps the colour of the lane and separates the rows.
        let height = rows as usize * fill.row_height - 1;
        let bright =
            if fill.tile_balance { (balance * height as f32).round() as usize } else { height };
        let dim = self.palette.dimmed(colour);
        for y in 0..height {
            let pixel = if y < bright { colour } else { dim };
            let start = (top + y) * fill.width;
            // Rounding may put a bar at the right edge past the last column.
            let end = to.min(fill.width);
            if from < end {
                self.image.pixels[start + from..start + end].fill(pixel);
            }
        }
        if let LaneItemKind::Operation(_, sums) = &item.kind
            && height >= LEAST_STRIPED
            // A bar outside the filter is pale.
            && colour == self.palette.activity(sums.activity())
        {
            let strip = (height / 4).max(3);
            self.shares(sums, item.range, (left, right, to), top + height - strip..top + height);
        }
    }

    /// Fills the strip at the foot of a grouped bar with the shares of its activities, which have the
    /// colour of the longest otherwise. Syncs between its steps are the rest.
    fn shares(
        self,
        sums: &StepGroupTotals,
        range: CycleRange,
        (left, right, to): (f64, f64, usize),
        rows: Range<usize>,
    ) {
        let all = range.length().max(Cycles(1)).as_f64();
        let main = sums.cycles()[sums.activity()].as_f64() / all;
        if main > 1.0 - LEAST_SECOND {
            return;
        }
        let ends = to.min(self.fill.width);
        let to_column = |share: f64| {
            let x = left + (right - left) * share.min(1.0);
            (x.round().max(0.0) as usize).min(ends)
        };
        let parts = sums.cycles().iter().map(|(of, cycles)| (self.palette.activity(of), cycles));
        let rest = range.length().saturating_sub(sums.cycles().total());
        let mut before = 0.0;
        for (colour, cycles) in parts.chain([(self.palette.internal_sync, rest)]) {
            let after = before + cycles.as_f64() / all;
            for y in rows.clone() {
                let start = y * self.fill.width;
                self.image.pixels[start + to_column(before)..start + to_column(after)].fill(colour);
            }
            before = after;
        }
    }
}

/// The share of a bar in which something runs.
fn busy_share(item: &LaneItem) -> f32 {
    match &item.kind {
        LaneItemKind::Bucket(totals, _) => {
            let length = item.range.length().max(Cycles(1)).0 as f32;
            (totals.cycles.total().0 as f32 / length).min(1.0)
        }
        _ => 1.0,
    }
}

/// The narrow bars accumulated in the columns of a sub-lane, row by row.
struct NarrowBarColumns {
    width: usize,
    columns: Vec<NarrowBarPixel>,
}

#[derive(Clone, Copy, Default)]
struct NarrowBarPixel {
    colour: [f32; 3],
    balance: f32,
    cover: f32,
    several: bool,
}

impl NarrowBarColumns {
    fn new(rows: u32, width: usize) -> Self {
        Self { width, columns: vec![NarrowBarPixel::default(); rows as usize * width] }
    }

    fn add(
        &mut self,
        row: u32,
        (left, right): (f64, f64),
        busy: f32,
        colour: Color32,
        balance: f32,
        several: bool,
    ) {
        // A bar of zero cycles still covers the column it starts in.
        let first = left.max(0.0).floor() as usize;
        let end = (right.ceil() as usize).clamp(first + 1, self.width.max(first + 1));
        for x in first..end.min(self.width) {
            let inside = (right.min(x as f64 + 1.0) - left.max(x as f64)).max(0.0) as f32;
            let cover = inside * busy;
            // In range: the caller limited `row` to the rows of the sub-lane, and the loop limits
            // `x`.
            let column = &mut self.columns[row as usize * self.width + x];
            let [r, g, b, _] = colour.to_array().map(f32::from);
            // A positive minimum weight, so that steps of zero cycles are visible too.
            let weight = cover.max(1e-3);
            for (sum, value) in column.colour.iter_mut().zip([r, g, b]) {
                *sum += value * weight;
            }
            column.balance += balance * weight;
            column.cover += weight;
            // The first column of a bar marks it as several.
            column.several |= several;
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a pixel that was painted in a colour of the theme"
    )]
    fn put(
        &self,
        image: &mut ColorImage,
        fill: &BarRasterLayout,
        sub_lane: usize,
        palette: &ThemePalette,
    ) {
        let foot = (fill.row_height / 18).max(1);
        for (index, column) in self.columns.iter().enumerate().filter(|(_, c)| c.cover > 0.0) {
            let row = index / self.width;
            let x = index % self.width;
            let [r, g, b] = column.colour.map(|sum| (sum / column.cover) as u8);
            let own = Color32::from_rgb(r, g, b);
            // Rounding and minimum weights may add up to more than one column.
            let strength = column.cover.clamp(LEAST_COVER, 1.0);
            let balance = if fill.tile_balance { column.balance / column.cover } else { 1.0 };
            let top = fill.top(sub_lane) + row * fill.row_height;
            let height = fill.row_height - 1;
            let bright = (balance * height as f32).round() as usize;
            let upper = mix(palette.lane, own, strength);
            let lower = mix(palette.lane, palette.dimmed(own), strength);
            for y in 0..height {
                let dotted = column.several && y + foot >= height && (x / 2).is_multiple_of(2);
                let pixel = if y < bright { upper } else { lower };
                let pixel = if dotted { mix(pixel, palette.text, 0.4) } else { pixel };
                image.pixels[(top + y) * self.width + x] = pixel;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::LIGHT;
    use tilescope_analysis::trace::{TraceLaneStyle, TraceStepGrouping, lane_items};
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::ReplicaIpu;
    use tilescope_report::{ProgramKind, Report};

    /// An operation of 60 cycles of exchange and 40 of compute, whose longest step is the exchange.
    fn grouped(row_height: usize) -> ColorImage {
        let mut builder = ReportBuilder::new(1, 4);
        let exchange = builder.exchange("cs0_conv/Convolve/ExchangePre", 8);
        let convolve = builder.compute("conv/Convolve", 40);
        builder.root(ProgramKind::Sequence, "main", &[exchange, convolve]);
        builder.run(exchange, 0..60).run(convolve, 60..100);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let trace = report.trace().unwrap().unwrap();
        let labels = ProgramLabels::new(&report.programs().unwrap());
        let grouping = TraceStepGrouping { executions: true, syncs: true };
        let window = CycleRange::new(Cycles(0), Cycles(100));
        let looks = (TraceLaneStyle::Flat, grouping);
        let lane = (ReplicaIpu::default(), 0);
        let lane = lane_items(&trace, &labels, lane, window, 100, looks).unwrap();
        assert!(matches!(lane.items[..], [LaneItem { kind: LaneItemKind::Operation(..), .. }]));
        let fill = BarRasterLayout {
            window,
            width: 100,
            row_height,
            rows: vec![1],
            gap: 0,
            tile_balance: false,
        };
        raster(&[lane], &labels, &fill, &BarFilter::default(), &LIGHT)
    }

    #[test]
    fn a_grouped_bar_shows_its_shares_at_its_foot() {
        let image = grouped(21);
        assert_eq!(
            [image[(10, 5)], image[(90, 5)]],
            [LIGHT.internal_exchange; 2],
            "the longest step"
        );
        assert_eq!(image[(10, 18)], LIGHT.compute, "compute comes first");
        assert_eq!(image[(38, 18)], LIGHT.compute);
        assert_eq!([image[(42, 18)], image[(90, 18)]], [LIGHT.internal_exchange; 2]);
        let low = grouped(8);
        assert!(low.pixels[..700].iter().all(|pixel| *pixel != LIGHT.compute), "no room");
    }
}
