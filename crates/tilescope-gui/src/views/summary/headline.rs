//! The figures people look for first, as large as they are important.

use super::SummaryPageData;
use crate::model::open_report::OpenReport;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::elided_text::elided;
use egui::accesskit::Role;
use egui::{Color32, CornerRadius, FontId, Galley, Sense, Stroke, Ui, WidgetInfo, vec2};
use std::sync::Arc;
use tilescope_analysis::limits::LimitsSummary;
use tilescope_analysis::summary::{ExecutionSummary, MemorySummary};
use tilescope_report::units::{NumberFormat, fine_percent, grouped, percent, seconds, with_prefix};
use tilescope_report::{ProgramOutcome, Target};

/// Narrower than this, figures stand in rows of two.
const ONE_ROW: f32 = 640.0;
/// Height of a figure.
const HEIGHT: f32 = 78.0;
const GAP: f32 = spacing::L;

struct HeadlineFigure {
    title: &'static str,
    value: String,
    about: String,
    formula: &'static str,
    /// Whether it is what keeps the program from running.
    bad: bool,
}

/// Shows them side by side.
pub(crate) fn headline_ui(ui: &mut Ui, opened: &OpenReport, facts: &SummaryPageData) {
    let mut cards = match (&facts.summary.execution, opened.outcome) {
        (Some(run), _) => of_run(run),
        (None, ProgramOutcome::OutOfMemory { tiles }) => vec![HeadlineFigure {
            title: "Out of memory",
            value: format!("{} tiles", grouped(tiles)),
            about: "need more memory than they have; nothing was executed".to_owned(),
            formula: "tiles with more bytes in use, or overflowed, than a tile has",
            bad: true,
        }],
        (None, _) => vec![HeadlineFigure {
            title: "Run",
            value: "none".to_owned(),
            about: "compiled only".to_owned(),
            formula: "",
            bad: false,
        }],
    };
    cards.extend(facts.summary.limits.as_ref().map(of_limits));
    cards.extend(of_memory(&facts.summary.memory, &opened.target, numbers(ui)));
    let columns = if ui.available_width() > ONE_ROW { cards.len() } else { 2 };
    let width = (ui.available_width() - GAP * (columns as f32 - 1.0)) / columns as f32;
    for row in cards.chunks(columns) {
        ui.horizontal(|ui| {
            ui.spacing_mut().item_spacing.x = GAP;
            row.iter().for_each(|card| card_ui(ui, width, card));
        });
        ui.add_space(spacing::S);
    }
}

fn of_run(run: &ExecutionSummary) -> Vec<HeadlineFigure> {
    let time = match run.seconds > 0.0 {
        true => seconds(run.seconds),
        false => "clock unknown".to_owned(),
    };
    let mut cards = vec![HeadlineFigure {
        title: "Run",
        value: format!("{} cycles", run.total_cycles),
        about: time,
        formula: "end of the last step - start of the first; time = cycles / tile clock",
        bad: false,
    }];
    cards.extend(run.samples_per_second.map(|rate| HeadlineFigure {
        title: "Throughput",
        value: grouped(rate.round() as u64),
        about: format!("samples per second, {} samples", grouped(run.samples.unwrap_or(0))),
        formula: "samples of all host calls in the run / time on the device",
        bad: false,
    }));
    cards
}

/// What the run achieves of the peak, and of which.
fn of_limits(limits: &LimitsSummary) -> HeadlineFigure {
    let peak = limits.peaks.first().map_or_else(String::new, |peak| {
        let rate = match peak.flops_per_second {
            Some(rate) => with_prefix(rate, "FLOP/s"),
            None => with_prefix(peak.flops_per_cycle, "FLOPs per cycle"),
        };
        format!("of {rate} an IPU, AMP {}", peak.name)
    });
    let (value, about) = match (limits.utilisation, limits.unknown) {
        (Some(share), _) => (fine_percent(share), peak),
        (None, Some(why)) => ("not known".to_owned(), why.sentence().to_owned()),
        (None, None) => ("not known".to_owned(), String::new()),
    };
    HeadlineFigure {
        title: "Utilisation of peak",
        value,
        about,
        formula: "sum over operations of FLOPs their results need / (FLOPs per cycle of a tile's \
                  matrix engine for their data type x tiles of an IPU) / (cycles of the run x IPUs \
                  of a replica); what the backward pass computes again does not count. Where the \
                  rest goes: Limits",
        bad: false,
    }
}

fn of_memory(
    memory: &MemorySummary,
    target: &Target,
    numbers: NumberFormat,
) -> [HeadlineFigure; 2] {
    let share = memory.max_tile_including_gaps.as_f64() / target.bytes_per_tile.0.max(1) as f64;
    let about = match target.bytes_per_tile.0 {
        0 => "tile memory unknown".to_owned(),
        _ => format!("{} of {}, with gaps", percent(share), numbers.bytes(target.bytes_per_tile.0)),
    };
    let with_gaps = numbers.bytes(memory.total_including_gaps.0);
    [
        HeadlineFigure {
            title: "Fullest tile",
            value: numbers.bytes(memory.max_tile_including_gaps.0),
            about,
            formula: "most bytes below the highest used address of any tile / bytes of a tile",
            bad: target.bytes_per_tile.0 > 0 && share > 1.0,
        },
        HeadlineFigure {
            title: "Memory in use",
            value: numbers.bytes(memory.total_excluding_gaps.0),
            about: format!("{with_gaps} with gaps"),
            formula: "bytes in use on all tiles of a replica; with gaps: bytes below the highest \
                      used address of each tile",
            bad: false,
        },
    ]
}

/// A figure in one line, as large as all of it fits.
fn whole(ui: &Ui, value: &str, colour: Color32, room: f32) -> Arc<Galley> {
    let sizes = [text_size::HEADING, text_size::SUBHEADING, text_size::BODY, text_size::SMALL];
    let font = |size| FontId::new(size, crate::theme::fonts::strong_family());
    let line = |size| ui.painter().layout_no_wrap(value.to_owned(), font(size), colour);
    let fitting = sizes.into_iter().map(line).find(|line| line.size().x <= room);
    fitting.unwrap_or_else(|| elided(ui.painter(), value, font(text_size::CAPTION), colour, room))
}

fn card_ui(ui: &mut Ui, width: f32, card: &HeadlineFigure) {
    let HeadlineFigure { title, value, about, formula, bad } = card;
    let palette = ThemePalette::for_ui(ui);
    let (rect, response) = ui.allocate_exact_size(vec2(width, HEIGHT), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("{title}: {value}")));
    let stroke = Stroke::new(1.0, if *bad { palette.error } else { palette.rule });
    let corner = CornerRadius::same(8);
    ui.painter().rect(rect, corner, palette.raised, stroke, egui::StrokeKind::Inside);
    let inner = rect.shrink2(vec2(14.0, 10.0));
    let room = inner.width();
    let line = |text: &str, font: FontId, colour| elided(ui.painter(), text, font, colour, room);
    let name = line(title, FontId::proportional(text_size::SMALL), palette.weak_text);
    ui.painter().galley(inner.min, name, palette.weak_text);
    let colour = if *bad { palette.error } else { palette.text };
    let figure = whole(ui, value, colour, room);
    ui.painter().galley(inner.min + vec2(0.0, 16.0), figure, colour);
    let words = line(about, FontId::proportional(text_size::CAPTION), palette.weak_text);
    ui.painter().galley(inner.min + vec2(0.0, 42.0), words, palette.weak_text);
    if !formula.is_empty() {
        response.on_hover_text(*formula);
    }
}
