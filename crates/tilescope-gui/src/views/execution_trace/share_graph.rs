//! Lanes zoomed out: each column is a stack of activities by their share of its cycles, from the
//! bottom up in the order of the activities. The remainder at the top is idle time.

use super::bar_raster::BarRasterLayout;
use crate::theme::ThemePalette;
use crate::theme::fonts::strong;
use crate::widgets::legend_ui;
use egui::{Color32, ColorImage, Ui};
use tilescope_analysis::trace::{LaneShares, ShareColumn};
use tilescope_report::StepActivity;
use tilescope_report::trace::PerActivity;
use tilescope_report::units::{CycleRange, Cycles, grouped, percent};

/// The width of a column in pixels: in a single pixel, alternating steps would only be noise.
pub(crate) const COLUMN_PIXELS: usize = 2;

/// The smallest share that is not written as 0.0 %.
const LEAST_SHARE: f64 = 0.0005;

/// Returns true if nearly all steps are narrower than a pixel at this many cycles per point.
pub(crate) fn is_far_out(
    narrow_steps: Option<Cycles>,
    cycles_per_point: f64,
    pixels_per_point: f32,
) -> bool {
    let cycles_per_pixel = cycles_per_point / f64::from(pixels_per_point);
    narrow_steps.is_some_and(|narrow| cycles_per_pixel >= narrow.max(Cycles(1)).as_f64())
}

/// An activity's share of some cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeShare {
    /// The activity; `None` while the IPU is idle.
    pub activity: Option<StepActivity>,
    /// The share, 0 to 1.
    pub share: f64,
}

/// The shares of `length` cycles, the largest first, without negligible ones.
pub(crate) fn time_shares(cycles: &PerActivity<Cycles>, length: Cycles) -> Vec<TimeShare> {
    let idle = (None, length.saturating_sub(cycles.total()));
    let all = cycles.iter().map(|(activity, cycles)| (Some(activity), cycles)).chain([idle]);
    let mut parts: Vec<_> = all.collect();
    // A stable sort: equal shares keep the order of the activities.
    parts.sort_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
    // Columns hold whole cycles: after rounding, the parts may add up to slightly more.
    let whole = length.max(cycles.total()).max(Cycles(1)).as_f64();
    let share =
        |(activity, cycles): (_, Cycles)| TimeShare { activity, share: cycles.as_f64() / whole };
    parts.into_iter().map(share).filter(|share| share.share >= LEAST_SHARE).collect()
}

/// The colour of a share.
pub(crate) fn colour(palette: &ThemePalette, share: TimeShare) -> Color32 {
    share.activity.map_or(palette.lane, |activity| palette.activity(activity))
}

/// The text of all shares.
pub(crate) fn all_words(shares: &[TimeShare]) -> String {
    let words: Vec<String> = shares.iter().map(|share| words(*share)).collect();
    words.join(", ")
}

fn words(TimeShare { activity, share }: TimeShare) -> String {
    format!("{} {}", activity.map_or("Idle", StepActivity::title), percent(share))
}

/// A short text for a share beside a lane.
pub(crate) fn short_words(TimeShare { activity, share }: TimeShare) -> String {
    let name = match activity {
        Some(StepActivity::Compute) => "compute",
        Some(StepActivity::InternalExchange) => "exchange",
        Some(StepActivity::GlobalExchange) => "global",
        Some(StepActivity::Host) => "host",
        Some(StepActivity::RemoteBuffer) => "remote",
        Some(StepActivity::Sync) => "sync",
        Some(StepActivity::Other) => "other",
        None => "idle",
    };
    format!("{name} {:.0} %", share * 100.0)
}

/// Shows the description of a column.
pub(crate) fn column_tooltip_ui(ui: &mut Ui, column: &ShareColumn, range: CycleRange) {
    let palette = ThemePalette::for_ui(ui);
    let title = match column.steps {
        1 => "1 step".to_owned(),
        steps => format!("{} steps", grouped(steps)),
    };
    ui.label(strong(title));
    let text = format!("{} cycles: {} - {}", range.length(), range.start, range.end);
    ui.weak(text);
    for share in time_shares(&column.cycles, range.length()) {
        ui.horizontal(|ui| legend_ui(ui, colour(palette, share), &words(share)));
    }
}

/// Fills the lanes of one IPU with their shares.
pub(crate) fn share_raster(
    lanes: &[LaneShares],
    fill: &BarRasterLayout,
    palette: &ThemePalette,
) -> ColorImage {
    let mut image = ColorImage::filled([fill.width, fill.height().max(1)], palette.lane);
    for (index, lane) in lanes.iter().enumerate().take(fill.rows.len()) {
        // The last row of pixels keeps the colour of the lane, as below bars.
        let height = fill.rows[index] as usize * fill.row_height - 1;
        let count = lane.columns().len();
        for (at, column) in lane.columns().iter().enumerate() {
            let pixels = at * fill.width / count..(at + 1) * fill.width / count;
            let length = lane.range(at).length().max(Cycles(1)).as_f64();
            let mut below = Cycles::ZERO;
            let mut foot = 0;
            for (activity, cycles) in column.cycles.iter() {
                // From the sum, so that rounding never moves the parts above.
                below = below.saturating_add(cycles);
                let top = ((below.as_f64() / length) * height as f64).round() as usize;
                let colour = palette.activity(activity);
                for y in foot..top.min(height) {
                    let row = (fill.top(index) + height - 1 - y) * fill.width;
                    image.pixels[row + pixels.start..row + pixels.end].fill(colour);
                }
                foot = top;
            }
        }
    }
    image
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::LIGHT;
    use tilescope_report::trace::{LaneSpan, StepBucket, StepTotals};
    use tilescope_report::units::StepId;

    #[test]
    fn share_columns_stack_activities_in_order() {
        let range = CycleRange::new(Cycles(0), Cycles(1_000));
        let mut totals = StepTotals::default();
        totals.cycles[StepActivity::Sync] = Cycles(300);
        totals.cycles[StepActivity::Compute] = Cycles(500);
        let bucket = StepBucket { range, first_position: 0, first_step: StepId(0), totals };
        let lane = LaneShares::from_spans(&[LaneSpan::Bucket(bucket)], range, 1);
        let fill = BarRasterLayout {
            window: range,
            width: 2,
            row_height: 11,
            rows: vec![1],
            gap: 0,
            tile_balance: true,
        };
        let image = share_raster(&[lane], &fill, &LIGHT);
        let left: Vec<Color32> = image.pixels.iter().step_by(2).copied().collect();
        assert_eq!(left[..2], [LIGHT.lane; 2], "idle at the top");
        assert_eq!(left[2..5], [LIGHT.external_sync; 3]);
        assert_eq!(left[5..10], [LIGHT.compute; 5]);
        assert_eq!(left[10..], [LIGHT.lane], "the line below a lane");
        let shares = time_shares(&totals.cycles, range.length());
        assert_eq!(all_words(&shares), "Compute 50.0 %, Sync 30.0 %, Idle 20.0 %");
        assert_eq!(short_words(shares[1]), "sync 30 %");
    }
}
