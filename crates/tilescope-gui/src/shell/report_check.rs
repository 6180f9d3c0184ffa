//! The check of a report's invariants in the background, and the line above every view of a report
//! that violates them.

use crate::model::open_report::OpenReport;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing};
use crate::widgets::background_query::BackgroundWorkers;
use crate::widgets::background_task::BackgroundTask;
use crate::widgets::elided_text::without_middle;
use crate::widgets::icons::{self, Icon};
use egui::accesskit::{Live, Role};
use egui::{
    Align, Button, Context, Frame, Label, Layout, Margin, Panel, ScrollArea, Sense, TextStyle, Ui,
    Vec2, WidgetInfo,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tilescope_report::{InvariantViolation, ReportError};

/// The height of the list of violations, in points.
const DETAILS_HEIGHT: f32 = 160.0;
/// The side of the icon at the start of the line, in points.
const ICON: f32 = 18.0;
/// The width of a name in the line, in points.
const NAME_WIDTH: f32 = 320.0;

/// The check of one report.
pub(crate) struct ReportCheck {
    opened: OpenReport,
    state: CheckState,
    cancelled: Arc<AtomicBool>,
    shows_details: bool,
}

enum CheckState {
    Waiting,
    Running(BackgroundTask<Result<Vec<InvariantViolation>, ReportError>>),
    Done(Vec<InvariantViolation>),
}

impl ReportCheck {
    /// A check that starts after the first view is painted.
    pub(crate) fn new(opened: OpenReport) -> Self {
        let state = CheckState::Waiting;
        let cancelled = Arc::default();
        Self { opened, state, cancelled, shows_details: false }
    }

    /// Starts the check once no query of a view is open, and receives its result.
    fn update(&mut self, context: &Context, workers: &BackgroundWorkers) {
        match &self.state {
            CheckState::Waiting if !workers.busy() => {
                let report = self.opened.report.clone();
                let cancelled = self.cancelled.clone();
                // A separate thread: the check must not delay queries of views.
                let task = BackgroundTask::start("check", context, move || {
                    report.verify_apart(&cancelled)
                });
                self.state = task.map_or(CheckState::Done(Vec::new()), CheckState::Running);
            }
            CheckState::Running(task) => {
                // The views report unreadable parts when they read them.
                let found = task.poll().map(|ended| ended.ok().and_then(Result::ok));
                if let Some(found) = found {
                    self.state = CheckState::Done(found.unwrap_or_default());
                }
            }
            CheckState::Waiting | CheckState::Done(_) => {}
        }
    }

    fn broken(&self) -> &[InvariantViolation] {
        match &self.state {
            CheckState::Done(broken) => broken,
            CheckState::Waiting | CheckState::Running(_) => &[],
        }
    }
}

/// Cancels the check when the report is closed.
impl Drop for ReportCheck {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}

/// A line for each report that violates its invariants.
pub(crate) fn broken_reports_ui(
    ui: &mut Ui,
    checks: &mut [ReportCheck],
    workers: &BackgroundWorkers,
) {
    for (at, check) in checks.iter_mut().enumerate() {
        check.update(ui.ctx(), workers);
        if !check.broken().is_empty() {
            broken_report_ui(ui, at, check);
        }
    }
}

fn broken_report_ui(ui: &mut Ui, at: usize, check: &mut ReportCheck) {
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(12, 5));
    let findings = match check.broken().len() {
        1 => "1 inconsistency".to_owned(),
        several => format!("{several} inconsistencies"),
    };
    let is_changed = check.broken().iter().any(|found| found.law == "content_is_as_written");
    let problem = if is_changed { "has changed since it was written" } else { "is inconsistent" };
    let rest = format!("{problem} ({findings}): its figures may be wrong.");
    let words = format!("{} {rest}", check.opened.name());
    Panel::top(format!("broken report {at}")).resizable(false).frame(frame).show(ui, |ui| {
        let row = ui.horizontal(|ui| {
            let (rect, _) = ui.allocate_exact_size(Vec2::splat(ICON), Sense::hover());
            icons::paint(ui.painter(), rect, Icon::Warning, palette.error);
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let button = Button::new("Details").selected(check.shows_details);
                if ui.add(button).on_hover_text("Result of `tilescope verify`").clicked() {
                    check.shows_details = !check.shows_details;
                }
                // A long name is shortened; the text after it is not.
                let name = check.opened.name();
                let font = TextStyle::Body.resolve(ui.style());
                let short = without_middle(ui.painter(), &name, font, palette.error, NAME_WIDTH);
                let line = format!("{} {rest}", short.unwrap_or(name));
                let line = Label::new(strong(line).color(palette.error)).truncate();
                ui.with_layout(Layout::left_to_right(Align::Center), |ui| ui.add(line));
            });
        });
        let id = ui.scope_id().with("announced");
        let response = ui.interact(row.response.rect, id, Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Alert, true, &words));
        ui.ctx().accesskit_node_builder(id, |node| node.set_live(Live::Polite));
        if check.shows_details {
            ui.add_space(spacing::XS);
            // Aligned with the start of the sentence.
            let left = (ICON + ui.spacing().item_spacing.x) as i8;
            let indent = Margin { left, ..Margin::ZERO };
            ScrollArea::vertical().max_height(DETAILS_HEIGHT).auto_shrink([false, true]).show(
                ui,
                |ui| {
                    Frame::new().inner_margin(indent).show(ui, |ui| {
                        for found in check.broken() {
                            let text = format!("{}: {}", found.law, found.text);
                            ui.add(Label::new(text).wrap().selectable(true));
                        }
                    });
                },
            );
        }
    });
}
