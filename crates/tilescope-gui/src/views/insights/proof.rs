//! Trials of proposals in the background: `tilescope insights --prove`.

use crate::model::command::ViewAction;
use crate::theme::ThemePalette;
use crate::views::ViewContext;
use crate::widgets::background_query::{BackgroundQuery, BackgroundQueryError, QueryState};
use egui::{Context, Label, RichText, Ui};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tilescope_analysis::insights::{InsightFinding, InsightGain, TrialsSoFar, TriedFinding};

/// The trials that have ended while others run.
pub(crate) struct ProofProgress {
    trials: Mutex<Option<TrialsSoFar>>,
    context: Context,
}

impl ProofProgress {
    fn new(context: &Context) -> Self {
        Self { trials: Mutex::new(None), context: context.clone() }
    }

    /// Sets the trials that have ended.
    pub(crate) fn set(&self, trials: TrialsSoFar) {
        *self.trials.lock().unwrap_or_else(PoisonError::into_inner) = Some(trials);
        self.context.request_repaint();
    }

    fn take(&self) -> Option<TrialsSoFar> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Trials that run.
struct RunningProof {
    started: Instant,
    progress: Arc<ProofProgress>,
    /// The trials that have ended.
    tried: Option<Arc<Vec<TriedFinding>>>,
    /// The number of proposals to try; `None` until the first trial has ended.
    all: Option<usize>,
}

impl RunningProof {
    fn new(context: &Context) -> Self {
        let progress = Arc::new(ProofProgress::new(context));
        Self { started: Instant::now(), progress, tried: None, all: None }
    }

    /// Receives the trials that have ended.
    fn poll(&mut self) {
        if let Some(trials) = self.progress.take() {
            (self.tried, self.all) = (Some(Arc::new(trials.tried)), Some(trials.all));
        }
    }

    /// The number of ended trials, and the time for the others: `5 of 8, 12 s left`.
    fn words(&self) -> String {
        let ended = self.tried.as_ref().map_or(0, |tried| tried.len());
        match self.all {
            _ if ended == 0 => "Simulating the spec without changes…".to_owned(),
            Some(all) if ended < all => {
                let each = self.started.elapsed().as_secs_f64() / ended as f64;
                let left = (each * (all - ended) as f64).ceil();
                format!("Testing: {ended} of {all}, {left} s left")
            }
            _ => "Testing the best proposals combined…".to_owned(),
        }
    }
}

/// The part of the page that tries proposals.
#[derive(Default)]
pub(super) struct ProofSection {
    running: Option<RunningProof>,
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
            self.ask(ui.ctx());
        }
        if let Some(running) = &mut self.running {
            running.poll();
            let prove = context.spec_queries.prove;
            let path = context.opened.absolute_path();
            let progress = running.progress.clone();
            let state = self.answer.ask_cancellable(
                ui.ctx(),
                context.workers,
                &path,
                move |path, cancelled| prove(path, &progress, cancelled).map(Arc::new),
            );
            self.failed = None;
            match state {
                QueryState::Failed(BackgroundQueryError::Cancelled) => self.running = None,
                QueryState::Failed(error) => {
                    self.failed = Some(error.to_string());
                    self.running = None;
                }
                QueryState::Fresh(_) => self.running = None,
                QueryState::Stale { .. } | QueryState::Waiting { .. } => {}
            }
        }
        if let Some(tried) = self.running.as_ref().and_then(|running| running.tried.clone()) {
            return Some(tried);
        }
        self.answer.latest().map(|tried| Arc::clone(tried))
    }

    /// True while trials run.
    pub(super) fn is_running(&self) -> bool {
        self.running.is_some()
    }

    fn ask(&mut self, context: &Context) {
        self.answer.retry();
        self.running = Some(RunningProof::new(context));
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
        if let Some(running) = &self.running {
            ui.horizontal(|ui| {
                ui.spinner();
                ui.label(running.words());
                if ui.button("Stop").clicked() {
                    self.answer.cancel();
                }
            });
            return;
        }
        if findings.is_empty() {
            return;
        }
        ui.horizontal_wrapped(|ui| {
            let runs = findings.iter().all(|finding| finding.gain != InsightGain::Everything);
            let words = match proposals {
                _ if !runs => "Find the smallest change that fits".to_owned(),
                1 => "Try 1 proposal".to_owned(),
                count => format!("Try {count} proposals"),
            };
            if !has_spec {
                ui.weak("Proposals cannot be tested: this report has no spec to change.");
                return;
            }
            if proposals == 0 && runs {
                ui.weak("No finding has a proposal to test.");
                return;
            }
            let button = ui.button(words).on_hover_text(
                "Simulate the spec without changes, with each proposal, and with the best \
                 proposals combined",
            );
            if button.clicked() {
                self.ask(ui.ctx());
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
