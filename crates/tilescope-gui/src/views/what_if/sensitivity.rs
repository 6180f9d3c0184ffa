//! The effect of better machines on the spec: `tilescope sensitivity`, queried and drawn.

use super::asked_question::AskedQuestion;
use super::gains::{gain_bar, gain_ends, gains_ui};
use super::spec_draft::SpecDraft;
use super::spec_keys::SpecQueries;
use super::spec_text::with_value;
use crate::theme::fonts::strong;
use crate::theme::{spacing, text_size};
use crate::widgets::background_query::BackgroundWorkers;
use crate::widgets::remark_ui;
use egui::{Button, RichText, Ui};
use tilescope_analysis::figures::FigureBar;
use tilescope_analysis::insights::SpecChanges;
use tilescope_analysis::sensitivity::path_words;
use tilescope_experiments::answers::{
    OperationAnswer, ResourceAnswer, RunAnswer, SensitivityAnswer,
};
use tilescope_report::units::grouped;

fn resource_bar((place, of): (usize, &ResourceAnswer)) -> FigureBar {
    let outcome = match (&of.run, &of.refused) {
        (Some(run), _) => run.words(),
        (None, Some(problem)) => problem.clone(),
        (None, None) => "does not fit in memory".to_owned(),
    };
    let note = match of.run {
        Some(_) => of.detail.clone(),
        None => outcome.clone(),
    };
    let id = (!of.changes.is_empty()).then_some(place);
    let hint = if id.is_some() { ". Click to apply it to the spec" } else { "" };
    let about = format!("{outcome} ({}){hint}", of.detail);
    FigureBar { note, id, ..gain_bar(&of.title, of.change, about) }
}

fn operation_bar(of: &OperationAnswer) -> FigureBar {
    let path = path_words(of.off_path_beyond);
    let about = format!("{path}, {}; {} cycles", of.run.words(), grouped(of.cycles.0));
    FigureBar { note: path, ..gain_bar(&of.name, of.change, about) }
}

/// The part of the panel that tries other machines.
#[derive(Default)]
pub(super) struct SensitivitySection(AskedQuestion<String, SensitivityAnswer>);

impl SensitivitySection {
    /// Queries a spec, in place of a running query.
    pub(super) fn ask(&mut self, spec: String) {
        self.0.ask(spec);
    }

    /// Shows the button and the results. A click on a machine applies its changes to the spec.
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

/// Shows the results. Returns the changes of the clicked machine.
fn answer_ui<'a>(ui: &mut Ui, answer: &'a SensitivityAnswer) -> Option<&'a SpecChanges> {
    let run = answer.run.as_ref().map(RunAnswer::words);
    let run = run.unwrap_or_else(|| "does not fit in memory".to_owned());
    remark_ui(ui, format!("{}: {run}", answer.machine));
    if let Some(shortened) = &answer.shortened {
        remark_ui(ui, format!("The run is shortened: {shortened}"));
    }
    let changes = answer.resources.iter().map(|of| of.change);
    let ends = gain_ends(changes.chain(answer.operations.iter().map(|of| of.change)));
    let bars = answer.resources.iter().enumerate().map(resource_bar).collect();
    let clicked = gains_ui(ui, "Gains of other machines", bars, ends);
    if !answer.operations.is_empty() {
        ui.add_space(spacing::S);
        remark_ui(ui, format!("Operations {} times as fast", answer.factor));
        let bars = answer.operations.iter().map(operation_bar).collect();
        gains_ui(ui, "Gains of faster operations", bars, ends);
    }
    let clicked = clicked.and_then(|place| answer.resources.get(place));
    clicked.map(|resource| &resource.changes)
}

/// The graph as a separate page, for a picture.
pub(crate) fn sensitivity_page_ui(ui: &mut Ui, name: &str, answer: &SensitivityAnswer) {
    ui.label(strong(format!("{name} on other machines")).size(text_size::TITLE));
    ui.add_space(spacing::S);
    answer_ui(ui, answer);
}
