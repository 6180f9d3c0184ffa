//! The tables below the lanes: what the window adds up to, and what one step did.

use super::chosen::{ChosenBar, activity_title};
use super::colours::step_colour;
use crate::analysis::summary::Proportions;
use crate::analysis::trace::{IpuTotals, StepView, StreamTraffic, WindowSummary};
use crate::gui::fonts::strong;
use crate::gui::theme::Palette;
use crate::report::{Activity, ProgramKind, StreamEnd, Target};
use crate::units::{Cycles, grouped, percent, seconds};
use egui::accesskit::Role;
use egui::{
    Color32, CornerRadius, Grid, Rect, RichText, ScrollArea, Sense, Ui, WidgetInfo, pos2, vec2,
};

const LEFT: f32 = 14.0;

/// What the visible window adds up to.
pub fn summary_ui(ui: &mut Ui, summary: &WindowSummary, target: &Target, bytes: bool) {
    ScrollArea::both().auto_shrink(false).id_salt("window summary").show(ui, |ui| {
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            ui.add_space(LEFT);
            let cycles = Cycles(summary.window.length());
            ui.label(strong(format!("Total cycles {cycles}")));
            let time = cycles.seconds_at(target.clock);
            let palette = Palette::of(ui.visuals());
            let place =
                format!("{} - {}", Cycles(summary.window.start), Cycles(summary.window.end));
            let text = if time > 0.0 {
                format!("visible range {place}, {} at {}", seconds(time), target.clock)
            } else {
                format!("visible range {place}")
            };
            ui.label(RichText::new(text).color(palette.weak_text));
        });
        ui.add_space(4.0);
        ui.horizontal(|ui| {
            ui.add_space(LEFT);
            Grid::new("window totals").num_columns(6).spacing(vec2(20.0, 7.0)).show(ui, |ui| {
                header_ui(ui);
                for totals in &summary.ipus {
                    ipu_ui(ui, totals, bytes);
                }
            });
        });
        ui.add_space(8.0);
    });
}

fn header_ui(ui: &mut Ui) {
    let palette = Palette::of(ui.visuals());
    let titles = [
        "IPU",
        "Proportions",
        "Tile balance",
        "StreamCopy host (Rx/Tx)",
        "StreamCopy remote buffer (Rx/Tx)",
        "GlobalExchange (Rx/Tx)",
    ];
    for title in titles {
        ui.label(RichText::new(title).color(palette.weak_text).size(12.0));
    }
    ui.end_row();
}

fn ipu_ui(ui: &mut Ui, totals: &IpuTotals, bytes: bool) {
    ui.label(strong(totals.ipu.to_string()));
    ui.vertical(|ui| {
        ui.spacing_mut().item_spacing.y = 3.0;
        proportions_ui(ui, totals);
    });
    match totals.tile_balance {
        Some(share) => balance_ui(ui, share),
        None => {
            ui.label("-");
        }
    }
    for traffic in [totals.host, totals.remote_buffer, totals.global_exchange] {
        let text = if bytes { traffic_text(traffic) } else { "not recorded".to_owned() };
        let none = traffic == StreamTraffic::default();
        let palette = Palette::of(ui.visuals());
        let colour = if none { palette.weak_text } else { palette.text };
        ui.label(RichText::new(text).color(colour));
    }
    ui.end_row();
}

fn traffic_text(traffic: StreamTraffic) -> String {
    format!("{} / {}", traffic.received, traffic.sent)
}

/// Shares with their colour and name, without those of nothing.
fn parts(palette: &Palette, shares: &Proportions) -> Vec<(Color32, &'static str, f64)> {
    let of = |activity: Activity, share: f64| {
        (palette.activity(activity), activity_title(activity), share)
    };
    let all = [
        of(Activity::Compute, shares.compute),
        of(Activity::InternalExchange, shares.internal_exchange),
        of(Activity::GlobalExchange, shares.global_exchange),
        of(Activity::Host, shares.host),
        of(Activity::RemoteBuffer, shares.remote_buffer),
        of(Activity::Sync, shares.sync),
        of(Activity::Other, shares.other),
        (palette.lane, "Idle", shares.idle),
    ];
    all.into_iter().filter(|(_, _, share)| *share >= 0.0005).collect()
}

/// Shares as a bar and as text.
fn proportions_ui(ui: &mut Ui, totals: &IpuTotals) {
    let palette = Palette::of(ui.visuals());
    let parts = parts(palette, &totals.proportions);
    let text: Vec<String> =
        parts.iter().map(|(_, name, share)| format!("{name} {}", percent(*share))).collect();
    let (rect, response) = ui.allocate_exact_size(vec2(360.0, 14.0), Sense::hover());
    let name = format!("Proportions of IPU {}", totals.ipu);
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(text.join(", ")));
    ui.painter().rect_filled(rect, CornerRadius::same(2), palette.lane);
    let mut left = rect.left();
    for (colour, _, share) in &parts {
        let right = (left + *share as f32 * rect.width()).min(rect.right());
        let part = Rect::from_min_max(pos2(left, rect.top()), pos2(right, rect.bottom()));
        ui.painter().rect_filled(part, 0.0, *colour);
        left = right;
    }
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        for ((colour, _, _), text) in parts.iter().zip(&text) {
            let (dot, _) = ui.allocate_exact_size(vec2(8.0, 8.0), Sense::hover());
            let line = egui::Stroke::new(1.0, palette.outline);
            let inside = egui::StrokeKind::Inside;
            let line = if *colour == palette.lane { line } else { egui::Stroke::NONE };
            ui.painter().rect(dot, CornerRadius::same(2), *colour, line, inside);
            ui.label(RichText::new(text).size(11.5));
            ui.add_space(5.0);
        }
    });
}

fn balance_ui(ui: &mut Ui, share: f64) {
    let palette = Palette::of(ui.visuals());
    ui.horizontal(|ui| {
        let (rect, _) = ui.allocate_exact_size(vec2(64.0, 14.0), Sense::hover());
        ui.painter().rect_filled(rect, CornerRadius::same(2), palette.lane);
        let width = rect.width() * share.clamp(0.0, 1.0) as f32;
        let filled = Rect::from_min_size(rect.min, vec2(width, rect.height()));
        ui.painter().rect_filled(filled, CornerRadius::same(2), palette.balance);
        ui.label(percent(share));
    });
}

/// One step.
pub fn step_ui(ui: &mut Ui, view: &StepView, ipu: u32) {
    let activity = Activity::of(view.kind, view.stream);
    let external = view.kind == ProgramKind::Sync && !view.title.contains("Internal");
    let palette = Palette::of(ui.visuals());
    let colour = step_colour(palette, view.kind, activity, external);
    let title = format!("{} on IPU {ipu}", view.title);
    details_ui(ui, colour, &title, |ui| {
        for row in &view.rows {
            row_ui(ui, row.name, &row.value);
        }
        for (index, vertex) in view.vertices.iter().enumerate() {
            let name = if index == 0 { "Vertices" } else { "" };
            row_ui(ui, name, &format!("{} x {}", grouped(vertex.count), vertex.name));
        }
        if view.kind == ProgramKind::StreamCopyBegin && view.stream == StreamEnd::Host {
            row_ui(ui, "Hint", "A long begin means that the host was not ready.");
        }
    });
}

/// A bar that stands for several steps.
pub fn bar_ui(ui: &mut Ui, bar: &ChosenBar) {
    let palette = Palette::of(ui.visuals());
    let title = format!("{} on IPU {}", bar.title, bar.ipu);
    details_ui(ui, palette.group, &title, |ui| {
        for (name, value) in &bar.rows {
            row_ui(ui, name, value);
        }
    });
}

/// A title with an edge in a colour, and rows below it.
fn details_ui(ui: &mut Ui, colour: Color32, title: &str, rows: impl FnOnce(&mut Ui)) {
    ScrollArea::both().auto_shrink(false).id_salt("step details").show(ui, |ui| {
        ui.add_space(6.0);
        let top = ui.cursor().top();
        ui.horizontal_top(|ui| {
            ui.add_space(LEFT + 10.0);
            ui.vertical(|ui| {
                let title: String = title.chars().take(600).collect();
                ui.add(egui::Label::new(strong(title)).selectable(true).extend());
                ui.add_space(2.0);
                Grid::new("details")
                    .num_columns(2)
                    .min_row_height(17.0)
                    .spacing(vec2(24.0, 5.0))
                    .show(ui, rows);
            });
        });
        let bottom = ui.cursor().top() - 4.0;
        let left = ui.min_rect().left() + LEFT;
        let edge = Rect::from_min_max(pos2(left, top), pos2(left + 4.0, bottom));
        ui.painter().rect_filled(edge, CornerRadius::same(2), colour);
        ui.add_space(8.0);
    });
}

fn row_ui(ui: &mut Ui, name: &str, value: &str) {
    let palette = Palette::of(ui.visuals());
    ui.label(RichText::new(name).color(palette.weak_text));
    ui.add(egui::Label::new(value).selectable(true).extend());
    ui.end_row();
}
