//! The floor plan with a time cursor: the activity of every tile at the cycle under the pointer, or
//! in the last selected step.

use super::events::TraceEvent;
use super::loaded_trace::LoadedTrace;
use super::settings::TraceSettings;
use crate::model::command::SelectedStep;
use crate::theme::spacing;
use crate::views::ViewContext;
use crate::views::cycle_axis::cycles_on_screen;
use crate::views::tile_selection::floor_plan_ui;
use crate::widgets::background_query::{BackgroundQuery, QueryState, Versioned};
use crate::widgets::floor_plan::{FloorPlanValues, FloorPlanWidget};
use crate::widgets::heat_scale::{HeatScale, scale_ui};
use crate::widgets::query_state::QueryTexts;
use egui::{Label, RichText, Ui};
use tilescope_analysis::trace::{StepAtCycle, TileFigure, TileSources, TilesAtCycle};
use tilescope_report::ReportError;
use tilescope_report::units::{Cycles, grouped};

/// The position of the cursor.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TileCursor {
    /// The last position of the pointer.
    Cycle(Cycles),
    /// The start of the last selected step.
    Step(SelectedStep),
}

/// The cursor, and the activity found there.
#[derive(Default)]
pub(super) struct TilesPanel {
    cursor: Option<TileCursor>,
    /// The step that the cursor already followed.
    followed: Option<SelectedStep>,
    sources: BackgroundQuery<(), TileSources>,
    found: BackgroundQuery<(TileCursor, TileFigure), TilesAtCycle>,
    map: FloorPlanWidget,
}

impl TilesPanel {
    /// The cycle of the cursor. The cycle of a step is `None` until it is known.
    pub(super) fn cursor(&self) -> Option<Cycles> {
        match self.cursor? {
            TileCursor::Cycle(cycle) => Some(cycle),
            TileCursor::Step(_) => Some(self.found.latest()?.cycle),
        }
    }

    /// Moves the cursor to the position of the pointer.
    pub(super) fn point_at(&mut self, cycle: Cycles) {
        self.cursor = Some(TileCursor::Cycle(cycle));
    }

    /// Moves the cursor to a newly selected step.
    pub(super) fn follow(&mut self, step: Option<SelectedStep>) {
        if step != self.followed {
            self.cursor = step.map(TileCursor::Step).or(self.cursor);
            self.followed = step;
        }
    }

    /// Shows the activity of tiles at the cursor, or in the middle of the screen without one.
    /// Returns the figure that the user selected.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        settings: &TraceSettings,
    ) -> Option<TraceEvent> {
        let (axis, limits) = settings.shown()?;
        let window = cycles_on_screen(axis, limits.width).intersection(prepared.range);
        let middle = window.start + Cycles(window.length().0 / 2);
        let cursor = *self.cursor.get_or_insert(TileCursor::Cycle(middle));
        let mut figure = settings.tile_figure;
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            for known in TileFigure::ALL {
                if ui.selectable_label(figure == known, known.title()).clicked() {
                    figure = known;
                }
            }
        });
        let texts = QueryTexts { waiting: "Reading tiles…", failed: "Tiles cannot be read" };
        let sources = context.read(ui, &mut self.sources, TileSources::read);
        let sources = sources.show(ui, texts, |_, sources| sources.clone());
        if let Some(sources) = sources {
            let shared = prepared.clone();
            let key = (cursor, figure);
            let found = context.ask(ui, &mut self.found, &key, move |report, (cursor, figure)| {
                let cycle = cycle_of(&shared, *cursor)?;
                sources.at(report, (&shared.trace, &shared.labels), cycle, *figure)
            });
            // With another figure the colours would have another meaning.
            let found = match found {
                QueryState::Stale { answer, overdue } if answer.figure != figure => {
                    drop(answer);
                    QueryState::Waiting { overdue }
                }
                found => found,
            };
            found.show(ui, texts, |ui, found| self.map_ui(ui, context, prepared, found));
        }
        if figure != settings.tile_figure { Some(TraceEvent::ShowTileFigure(figure)) } else { None }
    }

    fn map_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        found: &Versioned<TilesAtCycle>,
    ) {
        let most = found.values.iter().copied().max().unwrap_or(0);
        let scale = HeatScale::from_zero(
            match found.figure {
                TileFigure::Memory => context.opened.target.bytes_per_tile.0.max(most),
                _ => most,
            },
            false,
        );
        let unit = found.figure.unit();
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            scale_ui(ui, &unit.exact(0), &unit.exact(scale.most()));
            let replica = if prepared.classes.differ() { ", replica 0" } else { "" };
            let words = format!("Cycle {}{replica}: {}", found.cycle, steps_words(&found.steps));
            ui.add(Label::new(words).truncate());
        });
        let unknown: Vec<String> =
            found.steps.iter().filter(|step| !step.known).map(step_words).collect();
        if !unknown.is_empty() {
            ui.horizontal(|ui| {
                ui.add_space(spacing::L);
                let words = format!("Not recorded for {}", unknown.join(", "));
                ui.add(Label::new(RichText::new(words).weak()).truncate());
            });
        }
        let name = format!("{} of tiles at the cursor", found.figure.title());
        let shown = FloorPlanValues {
            name: &name,
            values: &found.values,
            generation: (found.version(), 0),
            scale,
            unit,
        };
        floor_plan_ui(ui, context, &mut self.map, shown);
    }
}

/// The cycle of a cursor; the first one for a step that no longer exists.
fn cycle_of(prepared: &LoadedTrace, cursor: TileCursor) -> Result<Cycles, ReportError> {
    match cursor {
        TileCursor::Cycle(cycle) => Ok(cycle),
        TileCursor::Step(step) => {
            let lane = prepared.trace.lane_at(step.at, step.sub_lane);
            let step = lane.map(|lane| lane.step(step.position)).transpose()?.flatten();
            Ok(step.map_or(prepared.range, |step| step.range).start)
        }
    }
}

/// Describes the steps at the cursor, IPU by IPU.
fn steps_words(steps: &[StepAtCycle]) -> String {
    match steps {
        [] => "no IPU is active".to_owned(),
        steps => steps.iter().map(step_words).collect::<Vec<String>>().join("; "),
    }
}

fn step_words(step: &StepAtCycle) -> String {
    let name: String = step.name.chars().take(80).collect();
    let tiles = if step.sub_lane > 0 { " I/O tiles" } else { "" };
    format!("IPU {}{tiles} {name} ({} cycles)", step.ipu, grouped(step.range.length().0))
}
