//! The what-if of a measurement: the spec of the measured program, and the predicted effect of a
//! spec change on the measured cycles (`tilescope calibrate --changed`).

use super::asked_question::AskedQuestion;
use super::gains::{gain_bar, gain_ends, gains_ui};
use super::spec_draft::SpecDraft;
use super::spec_keys::SpecQueries;
use crate::theme::spacing;
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers, QueryState};
use crate::widgets::{error_ui, hint_ui, remark_ui};
use egui::{Button, Key, Label, RichText, TextEdit, Ui};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilescope_analysis::figures::FigureBar;
use tilescope_report::units::grouped;

/// The number of operations with a separate bar; the others share one.
const MAX_BARS: usize = 40;

/// A measured report, the spec of its program, and the changed spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MeasuredQuestion {
    pub report: PathBuf,
    /// The spec of the measured program, as text.
    pub ran: String,
    /// The changed spec, as text.
    pub changed: String,
}

/// The program's prediction of a changed measured run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct MeasuredPrediction {
    /// The cycles of all steps on all IPUs.
    measured: f64,
    predicted: f64,
    /// The predicted cycles by their basis.
    predicted_by_basis: BTreeMap<String, f64>,
    operations: Vec<PredictedOperation>,
}

/// An operation of a changed measured run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct PredictedOperation {
    name: String,
    measured: f64,
    predicted: f64,
    /// The factor by which the measured cycles were multiplied.
    factor: Option<f64>,
    /// `scaled`, `as measured`, `simulated` or `gone`
    basis: String,
}

impl PredictedOperation {
    fn bar(&self, whole: f64) -> FigureBar {
        let cycles = format!("{} -> {} cycles", cycles(self.measured), cycles(self.predicted));
        let words = match self.factor {
            Some(factor) => format!("{cycles}, {}: x {factor:.3}", self.basis),
            None => format!("{cycles}, {}", self.basis),
        };
        let change = share(self.predicted - self.measured, whole);
        FigureBar { note: cycles, ..gain_bar(&self.name, change, words) }
    }
}

impl MeasuredPrediction {
    /// The bars: one for each operation, the largest change first, and one for all others.
    fn bars(&self) -> Vec<FigureBar> {
        let (own, others) = self.operations.split_at(self.operations.len().min(MAX_BARS));
        let mut bars: Vec<FigureBar> = own.iter().map(|of| of.bar(self.measured)).collect();
        if !others.is_empty() {
            let measured: f64 = others.iter().map(|of| of.measured).sum();
            let predicted: f64 = others.iter().map(|of| of.predicted).sum();
            let note = format!("{} -> {} cycles", cycles(measured), cycles(predicted));
            let name = format!("{} other operations in total", grouped(others.len() as u64));
            let change = share(predicted - measured, self.measured);
            bars.push(FigureBar { note: note.clone(), ..gain_bar(name, change, note) });
        }
        bars
    }

    /// The totals over all operations, and the basis of their prediction.
    fn sentences(&self) -> [String; 2] {
        let change = share(self.predicted - self.measured, self.measured);
        let change = change.map_or_else(String::new, |of| format!(" ({:+.1} %)", 100.0 * of));
        let measured = cycles(self.measured);
        let predicted = cycles(self.predicted);
        let of = |basis: &str| cycles(self.predicted_by_basis.get(basis).copied().unwrap_or(0.0));
        let basis = format!(
            "Of these cycles, {} are measured and scaled by the simulation, {} are measured and \
             not in the simulation, and {} are simulated because only the change adds them. The \
             overlap of operations after the change is not predicted.",
            of("scaled"),
            of("as measured"),
            of("simulated")
        );
        [format!("{measured} -> {predicted} cycles of all steps on all IPUs{change}"), basis]
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    if whole > 0.0 { Some(part / whole) } else { None }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cycles in words")]
fn cycles(value: f64) -> String {
    grouped(value.round().max(0.0) as u64)
}

/// The part of the panel for measured reports.
#[derive(Default)]
pub(super) struct MeasuredSection {
    /// The typed path or name.
    typed: String,
    /// The accepted path or name.
    taken: Option<String>,
    spec: BackgroundQuery<String, String>,
    prediction: AskedQuestion<MeasuredQuestion, MeasuredPrediction>,
}

impl MeasuredSection {
    /// Asks the user for the spec of the measured program. Returns its text once it is loaded.
    pub(super) fn spec_ui(
        &mut self,
        ui: &mut Ui,
        (workers, queries): (&BackgroundWorkers, SpecQueries),
    ) -> Option<String> {
        let text = "This report was measured and records no spec. Name the spec of the program to \
                    predict changes from the measured cycles.";
        hint_ui(ui, text);
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            let label = ui.label("Spec");
            let edit = TextEdit::singleline(&mut self.typed)
                .hint_text("my_model.toml, or a bundled name")
                .desired_width(ui.available_width() - 60.0);
            let typed = ui.add(edit).labelled_by(label.id);
            let enter = typed.lost_focus() && ui.input(|input| input.key_pressed(Key::Enter));
            let named = !self.typed.trim().is_empty();
            let take = ui.add_enabled(named, Button::new("Take"));
            if take.clicked() || enter && named {
                self.spec.retry();
                self.taken = Some(self.typed.trim().to_owned());
            }
        });
        let taken = self.taken.clone()?;
        let state = self.spec.ask_newest(ui.ctx(), workers, &taken, move |name, cancelled| {
            (queries.spec)(name, cancelled)
        });
        match state.fresh_only() {
            QueryState::Fresh(text) => {
                self.taken = None;
                return Some((*text).clone());
            }
            QueryState::Failed(error) => {
                error_ui(ui, error.to_string());
            }
            QueryState::Stale { .. } | QueryState::Waiting { .. } => {
                ui.spinner();
            }
        }
        None
    }

    /// Shows the button and the prediction. Returns true if another spec should be named.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        (workers, queries): (&BackgroundWorkers, SpecQueries),
        (report, ran): (&Path, &str),
        draft: &SpecDraft,
        sane: bool,
    ) -> bool {
        let mut another = false;
        ui.label(RichText::new("From the measurement").strong());
        ui.horizontal_wrapped(|ui| {
            let hint = "Simulate the original spec and this one. Each measured operation is scaled \
                        by the simulated change; operations that the simulation lacks stay as \
                        measured";
            let button = ui.add_enabled(sane, Button::new("Predict the measured run"));
            if button.on_hover_text(hint).clicked() {
                self.prediction.ask(MeasuredQuestion {
                    report: report.to_owned(),
                    ran: ran.to_owned(),
                    changed: draft.whole_text(),
                });
            }
            let hint = "Name another spec for the measured program";
            another = ui.button("Another spec…").on_hover_text(hint).clicked();
        });
        let directory = draft.check_directory().to_owned();
        let answer = self.prediction.ui(
            ui,
            workers,
            "Simulating without and with the change…",
            |asked| asked.changed == draft.whole_text(),
            move |question, cancelled| (queries.predict)(&directory, question, cancelled),
        );
        if let Some(answer) = answer {
            prediction_ui(ui, &answer);
        }
        another
    }
}

fn prediction_ui(ui: &mut Ui, answer: &MeasuredPrediction) {
    let [total, basis] = answer.sentences();
    ui.add(Label::new(total).wrap());
    let bars = answer.bars();
    let gains = bars.iter().flat_map(|bar| &bar.parts).map(|part| Some(-part.to));
    let ends = gain_ends(gains);
    gains_ui(ui, "Changes of operations", bars, ends);
    remark_ui(ui, basis);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_without_a_bar_share_one_line() {
        let operation = |number: usize| PredictedOperation {
            name: format!("operation {number}"),
            measured: 10.0,
            predicted: 5.0,
            factor: Some(0.5),
            basis: "scaled".to_owned(),
        };
        let answer = MeasuredPrediction {
            measured: 1000.0,
            predicted: 500.0,
            predicted_by_basis: BTreeMap::from([("scaled".to_owned(), 500.0)]),
            operations: (0..100).map(operation).collect(),
        };
        let bars = answer.bars();
        let whole: f64 = bars.iter().map(|bar| bar.parts[0].to).sum();
        assert!((whole - 0.5).abs() < 1e-9, "bars are the whole change: {whole}");
        assert_eq!(bars.last().unwrap().name, "60 other operations in total");
        assert!(answer.sentences()[0].contains("(-50.0 %)"));
    }
}
