//! Trials of proposals in the background: `tilescope insights --prove`.

use crate::model::command::ViewAction;
use crate::theme::ThemePalette;
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundQueryError, QueryState};
use egui::{Button, Label, RichText, Ui};
use std::path::PathBuf;
use std::sync::Arc;
use tilescope_analysis::insights::{InsightFinding, InsightGain, TriedFinding};

/// The part of the page that tries proposals.
#[derive(Default)]
pub(super) struct ProofSection {
    asked: bool,
    answer: BackgroundQuery<PathBuf, Arc<Vec<TriedFinding>>>,
    /// The error of the last trial.
    failed: Option<String>,
}

impl ProofSection {
    /// Polls the running trial. Returns its results once.
    pub(super) fn update(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
    ) -> Option<Arc<Vec<TriedFinding>>> {
        if context.actions.contains(&ViewAction::TryProposals) {
            self.ask();
        }
        if self.asked {
            let prove = context.spec_queries.prove;
            let path = context.opened.absolute_path();
            let state = self.answer.ask_cancellable(
                ui.ctx(),
                context.workers,
                &path,
                move |path, cancelled| prove(path, cancelled).map(Arc::new),
            );
            self.failed = None;
            match state {
                QueryState::Failed(BackgroundQueryError::Cancelled) => self.asked = false,
                QueryState::Failed(error) => {
                    self.failed = Some(error.to_string());
                    self.asked = false;
                }
                QueryState::Fresh(_) => self.asked = false,
                QueryState::Stale { .. } | QueryState::Waiting { .. } => {}
            }
        }
        self.answer.latest().map(|tried| Arc::clone(tried))
    }

    fn ask(&mut self) {
        self.answer.retry();
        self.asked = true;
    }

    /// The button, or the progress of a trial.
    pub(super) fn ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        findings: &[InsightFinding],
    ) {
        let proposals = findings.iter().filter(|finding| finding.proposal.is_some()).count();
        let has_spec = context.opened.report.spec().is_some();
        if self.asked {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label("Simulating each proposal, and the best ones combined…");
                if ui.button("Stop").clicked() {
                    self.answer.cancel();
                }
            });
            return;
        }
        ui.horizontal_wrapped(|ui| {
            let runs = findings.iter().all(|finding| finding.gain != InsightGain::Everything);
            let words = match proposals {
                _ if !runs => "Find the smallest change that fits".to_owned(),
                1 => "Try 1 proposal".to_owned(),
                count => format!("Try {count} proposals"),
            };
            let can_try = has_spec && (proposals > 0 || !runs);
            let button = ui.add_enabled(can_try, Button::new(words));
            let button = button
                .on_hover_text(
                    "Simulate the spec without changes, with each proposal, and with the best \
                     ones combined",
                )
                .on_disabled_hover_text(if has_spec {
                    "No finding proposes a change of the spec"
                } else {
                    "This report has no spec to change"
                });
            if button.clicked() {
                self.ask();
            }
            if findings.iter().any(|finding| finding.measured.is_some()) {
                let words = "Sorted by measured gain";
                ui.weak(words);
            }
        });
        if let Some(problem) = &self.failed {
            let problem = RichText::new(problem).color(ThemePalette::for_ui(ui).error);
            ui.add(Label::new(problem).wrap());
        }
    }
}
