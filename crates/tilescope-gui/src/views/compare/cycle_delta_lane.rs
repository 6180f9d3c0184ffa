//! The losses and gains of the target against the source, along the cycles of the source.

use super::SharedAlignment;
use crate::model::open_report::OpenReport;
use crate::theme::{ThemePalette, text_size};
use crate::views::VisibleTimeline;
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use crate::widgets::query_state::QueryTexts;
use crate::widgets::region_ui;
use egui::accesskit::Role;
use egui::{Align2, FontId, Rect, Sense, Ui, UiBuilder, pos2, vec2};
use std::sync::Arc;
use tilescope_analysis::compare::{StepDrift, drift};
use tilescope_report::Report;
use tilescope_report::units::{CycleRange, Cycles, IpuId, grouped};

/// The height of the lane, in points.
pub(crate) const HEIGHT: f32 = 58.0;
/// The width for the name, equal to that of the lanes above.
const GUTTER: f32 = 98.0;
/// The number of intervals that a window is divided into.
const MAX_DELTA_BINS: u32 = 240;

type CycleDeltaKey = (CycleRange, IpuId);

/// The state of the lane.
#[derive(Default)]
pub(crate) struct CycleDeltaLane {
    drifts: BackgroundQuery<CycleDeltaKey, Vec<StepDrift>>,
}

impl CycleDeltaLane {
    /// Shows the lane of the selected IPU, or of the first one, over the visible range of the
    /// source.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        rect: Rect,
        workers: &BackgroundWorkers,
        (source, target): (&OpenReport, &OpenReport),
        aligned: &SharedAlignment,
        (timeline, ipu): (VisibleTimeline, Option<IpuId>),
    ) {
        let ipu = ipu.unwrap_or_default();
        let window = timeline.cycles().intersection(timeline.run);
        let a = source.report.clone();
        let b = target.report.clone();
        let alignment = aligned.clone();
        let question =
            move |(window, ipu): &CycleDeltaKey| drifts(&a, &b, &alignment, *ipu, *window);
        let found = self.drifts.ask(ui.ctx(), workers, &(window, ipu), question);
        let texts = QueryTexts { waiting: "Comparing…", failed: "The lane cannot be read" };
        let lane = &mut ui.new_child(UiBuilder::new().max_rect(rect));
        found.show(lane, texts, |ui, drifts| paint(ui, rect, drifts, window, ipu));
    }
}

fn drifts(
    source: &Arc<Report>,
    target: &Arc<Report>,
    aligned: &SharedAlignment,
    ipu: IpuId,
    window: CycleRange,
) -> Result<Vec<StepDrift>, tilescope_report::ReportError> {
    let (Some(a), Some(b)) = (source.trace()?, target.trace()?) else { return Ok(Vec::new()) };
    let pair = aligned.steps.as_ref().and_then(|steps| steps.lane(ipu, 0));
    match (pair, a.lane_of(ipu, 0)) {
        (Some(pair), Some(lane)) => {
            drift(pair, &lane, b.lane_of(ipu, 0).as_ref(), window, MAX_DELTA_BINS)
        }
        _ => Ok(Vec::new()),
    }
}

fn paint(ui: &mut Ui, rect: Rect, drifts: &[StepDrift], window: CycleRange, ipu: IpuId) {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter().with_clip_rect(rect);
    painter.hline(rect.x_range(), rect.top(), (1.0, palette.rule));
    let frame = Rect::from_min_max(rect.min + vec2(GUTTER, 6.0), rect.max - vec2(14.0, 6.0));
    let middle = frame.center().y;
    let most = drifts.iter().map(|drift| drift.change.unsigned_abs()).max().unwrap_or(0);
    let sum: i64 = drifts.iter().map(|drift| drift.change).sum();
    let text = format!("IPU {ipu}: target");
    let font = FontId::proportional(text_size::CAPTION);
    let at = pos2(rect.left() + 8.0, middle - 8.0);
    painter.text(at, Align2::LEFT_CENTER, text, font.clone(), palette.weak_text);
    let words = change_words(sum);
    let at = pos2(rect.left() + 8.0, middle + 8.0);
    painter.text(at, Align2::LEFT_CENTER, &words, font.clone(), palette.text);
    painter.hline(frame.x_range(), middle, (1.0, palette.rule));
    let length = window.length().max(Cycles(1)).as_f64();
    let to_x = |cycle: u64| {
        let share = cycle.saturating_sub(window.start.0) as f64 / length;
        frame.left() + (share.min(1.0) as f32) * frame.width()
    };
    for drift in drifts.iter().filter(|drift| drift.change != 0) {
        let share = drift.change as f32 / most.max(1) as f32;
        let left = to_x(drift.range.start.0);
        let right = to_x(drift.range.end.0);
        let top = middle - share * frame.height() / 2.0;
        let bar = Rect::from_two_pos(pos2(left, middle), pos2(right.max(left + 1.0), top));
        let colour = if drift.change > 0 { palette.error } else { palette.good };
        painter.rect_filled(bar, 0.0, colour);
    }
    let id = ui.scope_id().with("delta lane");
    region_ui(ui, id, frame, Role::Image, "Target minus source", &words);
    let response = ui.interact(frame, id.with("hover"), Sense::hover());
    let at = response.hover_pos().and_then(|at| {
        drifts.iter().find(|drift| {
            (to_x(drift.range.start.0)..=to_x(drift.range.end.0) + 1.0).contains(&at.x)
        })
    });
    if let Some(drift) = at {
        response.on_hover_text(format!(
            "{} steps, {} of them in both\n{}",
            grouped(drift.steps),
            grouped(drift.matched),
            change_words(drift.change),
        ));
    }
}

fn change_words(change: i64) -> String {
    let cycles = grouped(change.unsigned_abs());
    match change {
        0 => "the same".to_owned(),
        1.. => format!("+{cycles} cycles"),
        _ => format!("-{cycles} cycles"),
    }
}
