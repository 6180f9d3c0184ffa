//! Opening one report or two for a comparison, and simulating reports.

use super::report_opening::{OpenedReports, OpeningOutcome};
use super::{AppSession, what_if_panels};
use crate::model::command::AppCommand;
use crate::model::message::StatusMessage;
use crate::model::navigation::{NavigationState, ReportLink};
use crate::model::preferences::RemotePrefs;
use crate::shell::report_locations::simulated_reports;
use crate::shell::simulation_process::{SimulationOutcome, SimulationProcess};
use crate::widgets::path_input::{is_results_file, is_simulated_file};
use egui::Context;
use std::path::{Path, PathBuf};
use tilescope_report::remote::is_remote;

impl AppSession {
    /// Receives the results of threads and child processes since the last frame.
    pub(crate) fn poll_background_work(&mut self, context: &Context) {
        let asked = self.opening_path().map(Path::to_owned);
        while let Some(outcome) = self.jobs.opening.poll() {
            match outcome {
                OpeningOutcome::Opened(opened) => self.show_opened(*opened),
                OpeningOutcome::Several(choice) => self.dialogs.ask_for_report(Some(choice)),
                OpeningOutcome::Folder(path) => self.show_series(context, vec![path]),
                OpeningOutcome::Failed(message) => {
                    if let Some(path) = asked.clone().filter(|path| is_remote(path)) {
                        self.home.tell_remote_failure(path, message.text.clone());
                    }
                    self.messages.push(message);
                }
            }
        }
        self.messages.extend(self.jobs.poll_exports());
        if let Some(model) = self.dialogs.take_newly_read_model() {
            self.preferences.current_mut().remember(&model);
        }
        let (have_changed, messages) = self.workspace.poll_files(context);
        self.messages.extend(messages);
        if have_changed && self.opening_path().is_none() {
            self.reload(context);
        }
        self.reopen_next_tab(context);
        if let Some(ended) = self.jobs.poll_simulation() {
            self.receive_simulated(context, ended);
        }
    }

    /// Shows the opened reports, at the place of the link that led to them.
    fn show_opened(&mut self, opened: OpenedReports) {
        let OpenedReports { report, target, link } = opened;
        let path = report.absolute_path();
        self.prepare_trace_for(&path);
        let prefs = self.preferences.current_mut();
        match &target {
            Some(target) => prefs.remember_comparison(&path, &target.absolute_path()),
            None => prefs.remember(&path),
        }
        self.messages.extend(self.workspace.open(report, target));
        if let Some(link) = link {
            self.go_to(&link.place);
        }
        self.remember_tabs();
    }

    fn receive_simulated(&mut self, context: &Context, ended: SimulationOutcome) {
        let of_dialog = self.dialogs.model_simulation_ended(&ended);
        if let SimulationOutcome::Done(path) = ended {
            if of_dialog {
                self.close_model();
            }
            return match self.what_ifs.finished(&path) {
                Some(base) => self.compare(context, base, path),
                None => self.open(context, path),
            };
        }
        self.what_ifs.stopped();
        // The dialog of a model shows its own failure.
        if let (SimulationOutcome::Failed(words), false) = (ended, of_dialog) {
            let words = format!("The simulation failed.\n{words}");
            self.messages.push(StatusMessage::error(words));
        }
    }

    pub(super) fn open(&mut self, context: &Context, path: PathBuf) {
        if path.to_string_lossy().starts_with("tilescope:") {
            return self.apply(context, AppCommand::OpenLink(path.to_string_lossy().into_owned()));
        }
        if is_simulated_file(&path) {
            return self.open_model(path);
        }
        if is_results_file(&path) {
            return self.show_results(path);
        }
        match self.baseline_for(&path) {
            Some(baseline) => self.compare(context, baseline, path),
            None => self.open_alone(context, path),
        }
    }

    /// Opens a report without comparing it with the baseline.
    pub(super) fn open_alone(&mut self, context: &Context, path: PathBuf) {
        self.jobs.opening.follow_later(None);
        self.start_opening(context, path, None);
    }

    /// Opens a report on another machine and remembers its address.
    pub(super) fn open_remote(&mut self, context: &Context, remote: RemotePrefs) {
        match remote.address() {
            Ok(address) => {
                self.preferences.current_mut().remote = remote;
                self.open(context, address.to_path());
            }
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }

    /// Opens several paths: models and specs one after another, and each report in its own tab.
    pub(super) fn open_all(&mut self, paths: Vec<PathBuf>) {
        for path in paths {
            if is_simulated_file(&path) {
                self.open_model(path);
            } else if is_results_file(&path) {
                self.show_results(path);
            } else {
                self.open_later(ReportLink::new(&path, NavigationState::default()));
            }
        }
    }

    pub(super) fn compare(&mut self, context: &Context, source: PathBuf, target: PathBuf) {
        if let Some(model) = [&source, &target].into_iter().find(|path| is_simulated_file(path)) {
            let words = format!(
                "{} is not a report: simulate it first, then compare its report",
                model.display()
            );
            return self.messages.push(StatusMessage::error(words));
        }
        self.jobs.opening.follow_later(None);
        self.start_opening(context, source, Some(target));
    }

    /// Reads the visible report again, or both reports of a comparison.
    pub(super) fn reload(&mut self, context: &Context) {
        if let Some((source, target)) = self.page().map(|page| page.paths()) {
            self.start_opening(context, source, target);
        }
    }

    fn start_opening(&mut self, context: &Context, source: PathBuf, target: Option<PathBuf>) {
        self.home.forget_remote_failure();
        let opening = &mut self.jobs.opening;
        let started = match target {
            Some(target) => {
                self.home.clear_candidates();
                opening.start_two(context, source, target)
            }
            None => opening.start(context, source),
        };
        self.tell_failure(started);
    }

    /// Goes to a place, in another report if the link names one.
    pub(super) fn follow_link(&mut self, context: &Context, link: ReportLink) {
        let Some(page) = self.page() else {
            return self.open_at(context, link.report.clone(), link);
        };
        if page.is_target_of(&link) {
            return self.go_to(&link.place);
        }
        let unnamed = link.report.as_os_str().is_empty();
        let path = if unnamed { page.opened().path.clone() } else { link.report.clone() };
        self.open_at(context, path, link);
    }

    /// Opens a report and goes to a place in it, even if the link was made in another report.
    pub(crate) fn open_at(&mut self, context: &Context, path: PathBuf, link: ReportLink) {
        let target = link.place.target.as_ref().map(|beside| beside.report.clone());
        self.start_opening(context, path, target);
        self.jobs.opening.follow_later(Some(link));
    }

    /// Simulates a bundled spec.
    pub(super) fn simulate(&mut self, context: &Context, spec: &str) {
        let directory = simulated_reports().join(spec);
        self.messages
            .extend(self.jobs.simulate(|| SimulationProcess::start(spec, directory, context)));
    }

    /// Simulates the current spec of the what-if panel.
    pub(super) fn simulate_variant(&mut self, context: &Context) {
        let Some(panel) = self.what_ifs.current_mut() else { return };
        self.messages.extend(self.jobs.simulate(|| what_if_panels::simulate(panel, context)));
    }
}
