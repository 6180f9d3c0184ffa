//! What a better machine would make of the spec: `tilescope sensitivity`, asked and drawn.

use super::asked_question::AskedQuestion;
use super::spec_draft::SpecDraft;
use super::spec_keys::SpecQueries;
use super::spec_text::with_value;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::BackgroundWorkers;
use crate::widgets::gain_bars::{GainBar, GainRange, gain_bars_ui};
use egui::{Button, Label, RichText, Ui};
use serde::Deserialize;
use std::collections::BTreeMap;
use tilescope_analysis::sensitivity::{path_words, run_words};
use tilescope_report::units::grouped;

/// What the program says about a spec on other machines.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SensitivityAnswer {
    /// `mk2`
    machine: String,
    factor: f64,
    /// What was left out of the run.
    shortened: Option<String>,
    /// The run on the machine of the spec; `None` where it does not fit in memory.
    run: Option<SensitivityRun>,
    resources: Vec<ResourceAnswer>,
    operations: Vec<OperationAnswer>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct SensitivityRun {
    seconds: f64,
    samples_per_second: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct ResourceAnswer {
    title: String,
    /// Keys of the spec, and what they are set to.
    changes: BTreeMap<String, serde_json::Value>,
    detail: String,
    /// Why there is no such machine.
    refused: Option<String>,
    run: Option<SensitivityRun>,
    /// By which share the run gets longer.
    change: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct OperationAnswer {
    name: String,
    cycles: u64,
    run: SensitivityRun,
    change: Option<f64>,
    /// How many times as fast it must be not to hold the run up.
    off_path_beyond: Option<f64>,
}

impl SensitivityRun {
    fn words(&self) -> String {
        run_words(self.seconds, self.samples_per_second)
    }
}

impl ResourceAnswer {
    fn bar(&self) -> GainBar {
        let outcome = match (&self.run, &self.refused) {
            (Some(run), _) => run.words(),
            (None, Some(problem)) => problem.clone(),
            (None, None) => "does not fit in memory".to_owned(),
        };
        let note = match self.run {
            Some(_) => self.detail.clone(),
            None => outcome.clone(),
        };
        let words = format!("{outcome} ({})", self.detail);
        let on_click = (!self.changes.is_empty()).then_some("take this into the spec");
        GainBar { title: self.title.clone(), change: self.change, note, words, on_click }
    }
}

impl OperationAnswer {
    fn bar(&self) -> GainBar {
        let path = path_words(self.off_path_beyond);
        let words = format!("{path}, {}; {} cycles", self.run.words(), grouped(self.cycles));
        let title = self.name.clone();
        GainBar { title, change: self.change, note: path, words, on_click: None }
    }
}

/// The part of the panel that tries other machines.
#[derive(Default)]
pub(super) struct SensitivitySection(AskedQuestion<String, SensitivityAnswer>);

impl SensitivitySection {
    /// Asks about a spec, in place of another one that is worked on.
    pub(super) fn ask(&mut self, spec: String) {
        self.0.ask(spec);
    }

    /// The button and what was found. A click on a machine takes its changes into the spec.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        (workers, queries): (&BackgroundWorkers, SpecQueries),
        draft: &mut SpecDraft,
        sane: bool,
    ) {
        ui.label(RichText::new("Other machines").strong());
        ui.horizontal(|ui| {
            let hint = "Simulate the spec with twice the exchange, clock, memory, links, host, …, \
                        and with single operations twice as fast";
            let button = ui.add_enabled(sane, Button::new("Try other machines"));
            if button.on_hover_text(hint).clicked() {
                self.ask(draft.whole_text());
            }
        });
        let directory = draft.check_directory().to_owned();
        let answer = self.0.ui(
            ui,
            workers,
            "Simulating other machines…",
            |asked| *asked == draft.whole_text(),
            move |text, cancelled| (queries.sensitivity)(&directory, text, cancelled),
        );
        if let Some(changes) = answer.as_ref().and_then(|answer| answer_ui(ui, answer)) {
            draft.text = changes.iter().fold(draft.text.clone(), |text, (key, value)| {
                with_value(&text, key, &value.to_string())
            });
        }
    }
}

/// Keys of a spec and the values they are to have.
type SpecChanges = BTreeMap<String, serde_json::Value>;

/// What was found; the changes of the machine that was clicked.
fn answer_ui<'a>(ui: &mut Ui, answer: &'a SensitivityAnswer) -> Option<&'a SpecChanges> {
    let palette = ThemePalette::for_ui(ui);
    let weak = |ui: &mut Ui, words: String| {
        let words = RichText::new(words).color(palette.weak_text).size(text_size::SMALL);
        ui.add(Label::new(words).wrap());
    };
    let run = answer.run.as_ref().map(SensitivityRun::words);
    let run = run.unwrap_or_else(|| "does not fit in memory".to_owned());
    weak(ui, format!("{}: {run}", answer.machine));
    if let Some(shortened) = &answer.shortened {
        weak(ui, format!("The run is shortened: {shortened}"));
    }
    let changes = answer.resources.iter().map(|of| of.change);
    let range = GainRange::of(changes.chain(answer.operations.iter().map(|of| of.change)));
    let bars: Vec<GainBar> = answer.resources.iter().map(ResourceAnswer::bar).collect();
    let clicked = gain_bars_ui(ui, &bars, range).and_then(|place| answer.resources.get(place));
    if !answer.operations.is_empty() {
        ui.add_space(spacing::S);
        weak(ui, format!("Operations {} times as fast", answer.factor));
        let bars: Vec<GainBar> = answer.operations.iter().map(OperationAnswer::bar).collect();
        gain_bars_ui(ui, &bars, range);
    }
    clicked.map(|resource| &resource.changes)
}

/// The graph as a page of its own, for a picture.
pub(crate) fn sensitivity_page_ui(ui: &mut Ui, name: &str, answer: &SensitivityAnswer) {
    ui.label(strong(format!("{name} on other machines")).size(text_size::TITLE));
    ui.add_space(spacing::S);
    answer_ui(ui, answer);
}
