//! The layer of tiles: the raster below the bars of an IPU with the activity of every tile at every
//! cycle.
//!
//! There is one row per tile if there is space, otherwise one row for several tiles with their mean
//! working time. Steps narrower than a pixel colour all rows by the share of working tiles.

use super::TracePainter;
use super::lanes::IpuBand;
use crate::model::preferences::TracePrefs;
use crate::theme::{ThemePalette, mix};
use crate::views::execution_trace::bar_colours::{blended_activity_colour, step_colour};
use crate::views::execution_trace::loaded_trace::{IpuLanes, LoadedTrace};
use crate::views::execution_trace::scene::TraceSceneKey;
use crate::views::execution_trace::{id, measured_raster};
use crate::widgets::region_ui;
use crate::widgets::split_texture::SplitImage;
use egui::accesskit::Role;
use egui::{Button, Color32, ColorImage, Pos2, Rect, Stroke, Ui, pos2};
use std::ops::Range;
use tilescope_analysis::trace::{LaneItem, LaneItemKind, ProgramLabels, TileWorkTimes};
use tilescope_report::trace::{LaneSpan, LaneStep};
use tilescope_report::units::{CycleRange, Cycles, IpuId, TileRange};
use tilescope_report::{ProgramKind, Report, ReportError, StepActivity};

/// The selectable heights of the raster, in points.
pub(crate) const HEIGHTS: [u16; 5] = [60, 120, 240, 480, 960];

/// The buttons that change the height of the raster.
pub(crate) fn height_ui(ui: &mut Ui, height: &mut u16) {
    ui.weak("Tile rows");
    // Preferences may contain a height that is no longer offered: take the next one above it.
    let at = HEIGHTS.iter().position(|known| *known >= *height).unwrap_or(0);
    let lower = ui.add_enabled(at > 0, Button::new("−"));
    if lower.on_hover_text("Shrink tile rows").clicked() {
        *height = HEIGHTS[at - 1];
    }
    let higher = ui.add_enabled(at + 1 < HEIGHTS.len(), Button::new("+"));
    if higher.on_hover_text("Enlarge tile rows").clicked() {
        *height = HEIGHTS[at + 1];
    }
    if ui.button("100 %").on_hover_text("Reset the height of tile rows").clicked() {
        *height = TracePrefs::default().tiles_height;
    }
}

/// Reads the raster of tiles of an IPU in a window.
pub(crate) fn read(
    report: &Report,
    prepared: &LoadedTrace,
    key: &TraceSceneKey,
    shown: &IpuLanes,
    (rows, palette): (usize, &ThemePalette),
) -> Result<SplitImage, ReportError> {
    let target = report.target()?;
    let raster = BspRaster {
        times: prepared.tile_times(report)?,
        labels: &prepared.labels,
        palette,
        window: key.window,
        size: [key.width, rows],
        tiles: target.tiles_of_ipu(shown.at.ipu),
        io_tiles: target.io_tiles_per_ipu,
        measured: prepared.measured,
    };
    let mut lanes = Vec::new();
    for sub_lane in &shown.sub_lanes {
        let spans = match prepared.trace.lane_at(shown.at, *sub_lane) {
            Some(lane) => lane.spans(key.window, key.width as u32)?,
            None => Vec::new(),
        };
        lanes.push((*sub_lane, spans));
    }
    let mut image = raster.fill(&lanes);
    if prepared.measured {
        measured_raster::draw(report, &raster, &lanes, &mut image)?;
    }
    Ok(SplitImage::cut(image))
}

/// The data and dimensions of a raster.
pub(crate) struct BspRaster<'a> {
    /// The work of each tile in each program.
    pub times: &'a TileWorkTimes,
    pub labels: &'a ProgramLabels,
    pub palette: &'a ThemePalette,
    /// The cycles that the image covers.
    pub window: CycleRange,
    /// The number of columns and rows of the image.
    pub size: [usize; 2],
    /// All tiles of the IPU.
    pub tiles: TileRange,
    /// The number of tiles of the IPU reserved for I/O; they are the last ones.
    pub io_tiles: u32,
    /// True if tiles were measured: their samples are then drawn over this image.
    pub measured: bool,
}

impl BspRaster<'_> {
    /// Fills the image from the spans of each tile group.
    pub(crate) fn fill(&self, lanes: &[(u8, Vec<LaneSpan>)]) -> ColorImage {
        let mut image = ColorImage::filled(self.size, self.palette.lane);
        for (sub_lane, spans) in lanes {
            let rows = self.rows(*sub_lane);
            for span in spans {
                match span {
                    LaneSpan::Step(_) if self.measured => {}
                    LaneSpan::Step(step) => self.step(&mut image, step, rows.clone()),
                    LaneSpan::Bucket(bucket) => {
                        // The steps of a bucket are too narrow for a row per tile: all rows show
                        // their mean.
                        let share = bucket.totals.tile_balance(&StepActivity::ALL).unwrap_or(1.0);
                        let length = bucket.range.length().max(Cycles(1)).as_f64();
                        let busy = (bucket.totals.cycles.total().as_f64() / length).min(1.0);
                        let colour = blended_activity_colour(self.palette, &bucket.totals);
                        let colour = mix(self.palette.lane, colour, (share * busy) as f32);
                        self.block(&mut image, bucket.range, rows.clone(), colour);
                    }
                }
            }
        }
        image
    }

    /// The rows of a tile group.
    fn rows(&self, sub_lane: u8) -> Range<usize> {
        let count = self.tiles.count().max(1) as usize;
        let rows = self.size[1];
        // I/O tiles have the highest numbers of the IPU, so they are the last rows.
        let compute = (count - (self.io_tiles as usize).min(count)) * rows / count;
        match (sub_lane, self.io_tiles) {
            (_, 0) => 0..rows,
            (0, _) => 0..compute,
            _ => compute..rows,
        }
    }

    fn step(&self, image: &mut ColorImage, step: &LaneStep, rows: Range<usize>) {
        // Without its program the kind of a sync is unknown; external syncs span the lane.
        let external = step.kind == ProgramKind::Sync
            && step
                .program
                .and_then(|program| self.labels.get(program))
                .is_none_or(|label| label.full_height);
        let colour = step_colour(self.palette, step.kind, step.activity, external);
        let known =
            step.program.and_then(|program| self.times.rows(program, self.tiles, self.size[1]));
        let Some(shares) = known else {
            // The working tiles are unknown: all rows show their share.
            let share = match step.kind {
                ProgramKind::Sync => 1.0,
                _ => step.tile_balance.share() as f32,
            };
            let colour = mix(self.palette.lane, colour, share);
            return self.block(image, step.range, rows, colour);
        };
        let length = step.range.length().as_f64();
        for (row, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            // Rounded up: a tile that works at all shows at least one cycle.
            let worked = (length * f64::from(*share)).ceil() as u64;
            let worked = CycleRange::new(step.range.start, step.range.start + Cycles(worked));
            self.line(image, row, self.columns(worked), colour);
        }
    }

    fn block(
        &self,
        image: &mut ColorImage,
        range: CycleRange,
        rows: Range<usize>,
        colour: Color32,
    ) {
        let columns = self.columns(range);
        for row in rows {
            self.line(image, row, columns.clone(), colour);
        }
    }

    fn line(&self, image: &mut ColorImage, row: usize, columns: Range<usize>, colour: Color32) {
        let width = self.size[0];
        // `columns` gives a range one column wide even at the right edge of the image.
        let from = columns.start.min(width);
        let to = columns.end.min(width);
        image.pixels[row * width + from..row * width + to.max(from)].fill(colour);
    }

    /// The columns of a range: at least one, unless all of it is outside the window.
    fn columns(&self, range: CycleRange) -> Range<usize> {
        // Empty ranges overlap nothing, but a step of zero cycles is drawn one column wide.
        if !range.overlaps(self.window) && !range.is_empty() {
            return 0..0;
        }
        let scale = self.size[0] as f64 / self.window.length().max(Cycles(1)).as_f64();
        let to_column = |cycle: u64| {
            let offset = (cycle as i64).saturating_sub(self.window.start.0 as i64) as f64;
            (offset * scale).clamp(0.0, self.size[0] as f64)
        };
        // At least one column, so that short steps do not vanish.
        let left = to_column(range.start.0).floor() as usize;
        left..(to_column(range.end.0).round() as usize).max(left + 1)
    }
}

impl TracePainter<'_> {
    /// The line above the raster of tiles, and its name for screen readers.
    pub(super) fn tiles_ui(&self, band: &IpuBand<'_>) {
        let rect = self.layout.tiles(band.block);
        if rect.height() <= 0.0 {
            return;
        }
        let line = Stroke::new(1.0, self.palette.page);
        self.painter.hline(rect.x_range(), rect.top(), line);
        let visible = rect.intersect(self.layout.regions.lanes);
        if visible.is_positive() {
            let node = id(self.ui, "tiles").with(band.key());
            let name = band.name();
            let name = format!("Tiles of {name}");
            region_ui(self.ui, node, visible, Role::Image, &name, "one row per tile");
        }
    }
}

/// Outlines a selected step around the tiles that work in it, each row as long as its tiles work.
/// Returns `None` if the working tiles are unknown. `rows` is the rectangle of the step in the
/// raster of tiles.
pub(super) fn outline(
    prepared: &LoadedTrace,
    item: &LaneItem,
    ipu: IpuId,
    rows: Rect,
) -> Option<Vec<Vec<Pos2>>> {
    let LaneItemKind::Step(step) = &item.kind else { return None };
    if prepared.measured {
        // Each tile has its own start and end, which the raster shows.
        return None;
    }
    let times = prepared.known_tile_times()?;
    let program = step.program?;
    let count = rows.height().max(1.0) as usize;
    let shares = times.rows(program, prepared.target.tiles_of_ipu(ipu), count)?;
    let to_y = |row: usize| rows.top() + row as f32 * rows.height() / count as f32;
    let mut outlines = Vec::new();
    let mut row = 0;
    // Idle tiles split the outline: one polygon per run of working tiles.
    for part in shares.chunk_by(|a, b| (*a > 0.0) == (*b > 0.0)) {
        let first = row;
        row += part.len();
        if part.first().is_none_or(|share| *share <= 0.0) {
            continue;
        }
        // Up along the straight left edge, then down along the ragged right one.
        let mut line = vec![pos2(rows.left(), to_y(row)), pos2(rows.left(), to_y(first))];
        for (at, share) in part.iter().enumerate() {
            let x = rows.left() + rows.width() * share.min(1.0);
            line.extend([pos2(x, to_y(first + at)), pos2(x, to_y(first + at + 1))]);
        }
        outlines.push(line);
    }
    Some(outlines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::LIGHT;
    use tilescope_fixtures::ReportBuilder;
    use tilescope_report::units::{TileId, TileRuns};

    #[test]
    fn a_part_of_the_raster_equals_the_whole() {
        let mut builder = ReportBuilder::new(1, 8);
        let work = builder.compute("a", 80);
        builder.parts.compute_sets[0].cycles =
            TileRuns::from_tiles(TileId(0), (1..9).map(|tile| Some(Cycles(10 * tile))));
        builder.root(ProgramKind::Sequence, "main", &[work]);
        builder.run(work, 0..80).run(work, 100..180);
        let directory = tempfile::tempdir().unwrap();
        let report = Report::open(builder.write(directory.path()).unwrap()).unwrap();
        let times = TileWorkTimes::read(&report).unwrap();
        let trace = report.trace().unwrap().unwrap();
        let labels = ProgramLabels::new(&report.programs().unwrap());
        let drawn = |first: u64, end: u64| {
            let window = CycleRange::new(Cycles(first), Cycles(end));
            let size = [(end - first) as usize, 8];
            let spans = trace.lane_of(IpuId(0), 0).unwrap().spans(window, size[0] as u32).unwrap();
            let raster = BspRaster {
                times: &times,
                labels: &labels,
                palette: &LIGHT,
                window,
                size,
                tiles: TileRange::first_tiles(8),
                io_tiles: 0,
                measured: false,
            };
            raster.fill(&[(0, spans)])
        };
        let whole = drawn(0, 200);
        let busy = whole.pixels.iter().filter(|pixel| **pixel == LIGHT.compute).count();
        assert_eq!(busy, 2 * (10 + 20 + 30 + 40 + 50 + 60 + 70 + 80));
        for (first, end) in [(0, 50), (30, 60), (50, 120), (110, 200)] {
            let part = drawn(first as u64, end as u64);
            let size = [end - first, 8];
            assert_eq!(part, whole.region_by_pixels([first, 0], size), "{first}..{end}");
        }
    }
}
