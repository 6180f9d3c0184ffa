//! The raster of tiles for measured tiles: each row shows the measured start and end of its tiles.
//!
//! The brightness of a pixel is the share of its time in which its tiles were measured working, in
//! the colours of their activities. Rows count only measured tiles; rows of others stay unchanged.

use super::bar_colours::step_colour;
use super::layers::tiles::BspRaster;
use crate::theme::{ThemePalette, mix};
use egui::{Color32, ColorImage};
use std::collections::BTreeSet;
use tilescope_analysis::trace::rows_of_tile;
use tilescope_report::trace::LaneSpan;
use tilescope_report::units::{CycleRange, Cycles, StepId, TileId};
use tilescope_report::{ProgramKind, Report, ReportError, SampleKind, StepActivity};

/// The largest distance between two steps whose samples are read in one pass.
const NEAR: u64 = 32;

/// Draws the samples of all steps that are wide enough to be drawn separately.
pub(super) fn draw(
    report: &Report,
    raster: &BspRaster<'_>,
    lanes: &[(u8, Vec<LaneSpan>)],
    image: &mut ColorImage,
) -> Result<(), ReportError> {
    let spans = lanes.iter().flat_map(|(_, spans)| spans);
    let steps: BTreeSet<StepId> = spans
        .filter_map(|span| match span {
            LaneSpan::Step(step) => Some(step.step),
            LaneSpan::Bucket(_) => None,
        })
        .collect();
    let steps: Vec<StepId> = steps.into_iter().collect();
    let labels = report.sample_labels()?;
    let mut shares = MeasuredShares::new(raster);
    for near in steps.chunk_by(|one, next| *next - *one <= NEAR) {
        let (Some(first), Some(last)) = (near.first(), near.last()) else { continue };
        report.visit_tile_samples(*first..*last + 1, |_, sample| {
            if let Some(label) = labels.get(sample.label as usize) {
                shares.add(sample.tile, label.kind, sample.cycles);
            }
        })?;
    }
    shares.paint(image);
    Ok(())
}

/// The shares of each pixel's time, by activity of the tiles.
struct MeasuredShares<'a> {
    raster: &'a BspRaster<'a>,
    /// By row, column and kind of activity.
    shares: Vec<[f32; SampleKind::ALL.len()]>,
    /// For each tile of the IPU, true if it was measured.
    measured: Vec<bool>,
}

impl<'a> MeasuredShares<'a> {
    fn new(raster: &'a BspRaster<'a>) -> Self {
        let [width, height] = raster.size;
        let shares = vec![[0.0; SampleKind::ALL.len()]; width * height];
        let measured = vec![false; raster.tiles.count() as usize];
        Self { raster, shares, measured }
    }

    fn add(&mut self, tile: TileId, kind: SampleKind, cycles: CycleRange) {
        let [width, height] = self.raster.size;
        if !self.raster.tiles.contains(tile) {
            return;
        }
        let place = (tile - self.raster.tiles.first) as usize;
        self.measured[place] = true;
        let shown = cycles.intersection(self.raster.window);
        if shown.is_empty() {
            return;
        }
        let scale = width as f64 / self.raster.window.length().max(Cycles(1)).as_f64();
        let to_column = |cycle: Cycles| (cycle - self.raster.window.start).as_f64() * scale;
        let left = to_column(shown.start);
        let right = to_column(shown.end);
        let kind = SampleKind::ALL.into_iter().position(|known| known == kind).unwrap_or(0);
        let (top, bottom) = rows_of_tile(place, self.measured.len(), height);
        let columns = left.floor() as usize..(right.ceil() as usize).min(width);
        for column in columns {
            let share = (right.min(column as f64 + 1.0) - left.max(column as f64)) as f32;
            for row in top..bottom {
                self.shares[row * width + column][kind] += share.max(0.0);
            }
        }
    }

    fn paint(&self, image: &mut ColorImage) {
        let [width, height] = self.raster.size;
        let mut tiles = vec![0u32; height];
        for (place, _) in self.measured.iter().enumerate().filter(|(_, measured)| **measured) {
            let (top, bottom) = rows_of_tile(place, self.measured.len(), height);
            tiles[top..bottom].iter_mut().for_each(|tiles| *tiles += 1);
        }
        let colours = SampleKind::ALL.map(|kind| colour(self.raster.palette, kind));
        for (at, shares) in self.shares.iter().enumerate() {
            let mut blended: Option<(Color32, f32)> = None;
            for (share, colour) in shares.iter().zip(colours).filter(|(share, _)| **share > 0.0) {
                blended = Some(match blended {
                    Some((known, sum)) => (mix(known, colour, share / (sum + share)), sum + share),
                    None => (colour, *share),
                });
            }
            if let Some((colour, sum)) = blended {
                let share = (sum / tiles[at / width].max(1) as f32).min(1.0);
                image.pixels[at] = mix(image.pixels[at], colour, share);
            }
        }
    }
}

fn colour(palette: &ThemePalette, kind: SampleKind) -> Color32 {
    match kind {
        SampleKind::Compute => {
            step_colour(palette, ProgramKind::OnTileExecute, StepActivity::Compute, false)
        }
        SampleKind::Exchange => {
            step_colour(palette, ProgramKind::DoExchange, StepActivity::InternalExchange, false)
        }
        SampleKind::Synchronization => {
            step_colour(palette, ProgramKind::Sync, StepActivity::Sync, false)
        }
        SampleKind::Idle => palette.lane,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::LIGHT;
    use tilescope_analysis::trace::{ProgramLabels, TileWorkTimes};
    use tilescope_fixtures::ipu_stack_profile::IpuStackProfile;
    use tilescope_report::units::{IpuId, TileRange};

    #[test]
    fn every_pixel_shows_the_measured_activity_of_its_tile() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("profile.capnp");
        std::fs::write(&path, IpuStackProfile::layers(8, 3).bytes()).unwrap();
        let report = Report::open_with_cache(&path, None).unwrap();
        let trace = report.trace().unwrap().unwrap();
        let times = TileWorkTimes::read(&report).unwrap();
        let labels = ProgramLabels::new(&report.programs().unwrap());
        let window = CycleRange::new(Cycles(0), trace.range().end);
        let width = window.length().0 as usize;
        // A row for each tile and a column for each cycle.
        let raster = BspRaster {
            times: &times,
            labels: &labels,
            palette: &LIGHT,
            window,
            size: [width, 1472],
            tiles: TileRange::first_tiles(1472),
            io_tiles: 0,
            measured: true,
        };
        let spans = trace.lane_of(IpuId(0), 0).unwrap().spans(window, width as u32).unwrap();
        let lanes = [(0, spans)];
        let mut image = raster.fill(&lanes);
        draw(&report, &raster, &lanes, &mut image).unwrap();
        let mut samples = 0;
        let names = report.sample_labels().unwrap();
        let every = StepId(0)..StepId(u64::MAX);
        report
            .visit_tile_samples(every, |_, sample| {
                samples += 1;
                let kind = names[sample.label as usize].kind;
                for cycle in [sample.cycles.start, sample.cycles.end - Cycles(1)] {
                    let column = (cycle - window.start).0 as usize;
                    let pixel = image.pixels[sample.tile.index() * width + column];
                    assert_eq!(pixel, colour(&LIGHT, kind), "{sample:?}");
                }
            })
            .unwrap();
        assert_eq!(samples, 8 * 3 * 3);
        // A tile that was not measured stays unchanged.
        assert!(image.pixels[width..2 * width].iter().all(|pixel| *pixel == LIGHT.lane));
    }
}
