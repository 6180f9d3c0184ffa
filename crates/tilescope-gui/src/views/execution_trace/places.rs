//! The notable places of a repeating run: a typical iteration or slot, the fastest and the slowest.

use super::events::TraceEvent;
use super::layers::marks::SelectedMark;
use super::loaded_trace::LoadedTrace;
use crate::theme::spacing;
use egui::{Grid, ScrollArea, Ui, vec2};
use tilescope_analysis::trace::{MarkPeriod, MarkPlace, RepeatedMarks, signed_percent, singular};
use tilescope_report::units::{CycleRange, Hertz, grouped, seconds};

/// One of several repeated marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RepeatedPlace {
    Typical,
    Fastest,
    Slowest,
}

impl RepeatedPlace {
    const ALL: [Self; 3] = [Self::Typical, Self::Fastest, Self::Slowest];

    fn title(self) -> &'static str {
        match self {
            Self::Typical => "Typical",
            Self::Fastest => "Fastest",
            Self::Slowest => "Slowest",
        }
    }

    fn of(self, marks: &RepeatedMarks) -> &MarkPlace {
        match self {
            Self::Typical => &marks.typical,
            Self::Fastest => &marks.fastest,
            Self::Slowest => &marks.slowest,
        }
    }
}

/// The repeated marks, the widest first; empty before the marks are read.
pub(crate) fn repeated(prepared: &LoadedTrace) -> &[RepeatedMarks] {
    prepared.known_marks().map_or(&[], |marks| &marks.repeated)
}

/// Returns the event that goes to a place.
pub(crate) fn go(prepared: &LoadedTrace, place: RepeatedPlace) -> Option<TraceEvent> {
    repeated(prepared).first().map(|marks| event(marks, place))
}

fn event(marks: &RepeatedMarks, place: RepeatedPlace) -> TraceEvent {
    TraceEvent::GoToMark(SelectedMark::from_place(marks.row(), place.of(marks)))
}

/// The places as a menu.
pub(crate) fn menu_ui(ui: &mut Ui, prepared: &LoadedTrace) -> Option<TraceEvent> {
    let mut chosen = None;
    for marks in repeated(prepared) {
        for place in shown(marks) {
            let text = format!("{}, {}", title(marks, *place), length(marks, *place, None));
            if ui.button(text).clicked() {
                chosen = Some(event(marks, *place));
                ui.close();
            }
        }
    }
    chosen
}

/// The places as a table, shown without a selection.
pub(crate) fn places_ui(ui: &mut Ui, prepared: &LoadedTrace, clock: Hertz) -> Option<TraceEvent> {
    let mut chosen = None;
    ScrollArea::both().auto_shrink(false).id_salt("places").show(ui, |ui| {
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            let hint = "Click on a step or a mark to see its details; Shift + click adds a step.";
            ui.weak(hint);
        });
        for marks in repeated(prepared) {
            ui.add_space(spacing::XS);
            ui.horizontal_top(|ui| {
                ui.add_space(spacing::L);
                ui.vertical(|ui| {
                    ui.weak(about(marks));
                    let grid = Grid::new(("places", marks.kind.name())).num_columns(2);
                    grid.spacing(vec2(24.0, 3.0)).show(ui, |ui| {
                        for place in shown(marks) {
                            if ui.link(title(marks, *place)).clicked() {
                                chosen = Some(event(marks, *place));
                            }
                            ui.label(length(marks, *place, Some(clock)));
                            ui.end_row();
                        }
                    });
                });
            });
        }
    });
    chosen
}

/// The places that differ from each other.
fn shown(marks: &RepeatedMarks) -> &'static [RepeatedPlace] {
    let some = if marks.all_equal() { 1 } else { RepeatedPlace::ALL.len() };
    &RepeatedPlace::ALL[..some]
}

/// `a typical iteration: number 24 of 48`, if the cycles on the screen are those of a typical period
/// and its surroundings.
pub(crate) fn typical_words(prepared: &LoadedTrace, window: CycleRange) -> Option<String> {
    let marks = repeated(prepared).iter().find(|marks| {
        let range = marks.period.range;
        let is_inside = window.start <= range.start && range.end <= window.end;
        is_inside && window.length() <= range.length() * 2
    })?;
    let (kind, MarkPeriod { first, last, count, .. }) = (singular(marks.kind), marks.period);
    let first = grouped(first);
    let last = grouped(last);
    Some(if first == last {
        format!("a typical {kind}: number {first}, median of {}", grouped(count))
    } else {
        format!("a typical period: {kind}s {first} to {last}, median of {}", grouped(count))
    })
}

/// `2,048 slots of a full pipeline, all with the same cycles`
fn about(marks: &RepeatedMarks) -> String {
    let of = if marks.others { " of a full pipeline" } else { "" };
    let equal = if marks.all_equal() { ", all with the same cycles" } else { "" };
    format!("{} {}s{of}{equal}", grouped(marks.count), singular(marks.kind))
}

/// `Typical slot 1,024`
fn title(marks: &RepeatedMarks, place: RepeatedPlace) -> String {
    let number = grouped(place.of(marks).number);
    format!("{} {} {number}", place.title(), singular(marks.kind))
}

/// Its cycles, and their difference from the typical ones.
fn length(marks: &RepeatedMarks, place: RepeatedPlace, clock: Option<Hertz>) -> String {
    let own = place.of(marks);
    let cycles = own.range.length();
    let time = clock.map_or(0.0, |clock| cycles.seconds_at(clock));
    let time = if time > 0.0 { format!(" = {}", seconds(time)) } else { String::new() };
    let deviation = match place {
        RepeatedPlace::Typical => String::new(),
        _ => format!(", {}", signed_percent(own.deviation(&marks.typical))),
    };
    format!("{cycles} cycles{time}{deviation}")
}
