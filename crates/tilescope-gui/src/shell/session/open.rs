//! Opening reports, by themselves or two to be compared, and making them by simulation.

use super::AppSession;
use crate::model::command::AppCommand;
use crate::model::message::StatusMessage;
use crate::model::open_report::OpenReport;
use crate::shell::report_locations::simulated_report_directory;
use crate::shell::simulation_process::{SimulationOutcome, SimulationProcess};
use crate::views::what_if::WhatIfPanel;
use crate::widgets::background_task::BackgroundTask;
use egui::Context;
use std::path::{Path, PathBuf};

impl AppSession {
    /// Takes in what threads and children have done since the last frame.
    pub(crate) fn poll_background_work(&mut self, context: &Context) {
        self.receive_opened();
        self.poll_exports();
        self.reload_if_changed(context);
        self.poll_opening_comparison();
        if let Some(result) = self.dialog.as_ref().and_then(BackgroundTask::poll) {
            self.dialog = None;
            if let Ok(Some(path)) = result {
                self.open(context, path);
            }
        }
        self.receive_simulated(context);
    }

    fn receive_opened(&mut self) {
        let opened = self.opening.as_ref().and_then(|(_, pending)| pending.poll());
        let Some(result) = opened else { return };
        self.opening = None;
        match result {
            Ok(Ok(opened)) => {
                self.prefs.remember(&opened.absolute_path());
                self.show(opened);
                self.follow_pending_link();
            }
            Ok(Err(error)) => self.messages.push(StatusMessage::error(error.to_string())),
            Err(()) => self.messages.push(StatusMessage::error("Opening the report failed.")),
        }
    }

    fn poll_opening_comparison(&mut self) {
        let both = self.opening_comparison.as_ref().and_then(|(_, _, pending)| pending.poll());
        let Some(result) = both else { return };
        self.opening_comparison = None;
        match result {
            Ok(Ok((source, target))) => {
                self.prefs.remember_comparison(&source.absolute_path(), &target.absolute_path());
                self.show_page(source, Some(target));
                self.follow_pending_link();
            }
            Ok(Err(error)) => self.messages.push(StatusMessage::error(error.to_string())),
            Err(()) => self.messages.push(StatusMessage::error("Opening the reports failed.")),
        }
    }

    /// Goes to the place that a link named before its report was open.
    fn follow_pending_link(&mut self) {
        if let Some(link) = self.pending_link.take() {
            self.go_to(&link.place);
        }
    }

    fn receive_simulated(&mut self, context: &Context) {
        let Some(ended) = self.simulation.as_ref().and_then(SimulationProcess::ended) else {
            return;
        };
        self.simulation = None;
        if let SimulationOutcome::Done(path) = ended {
            let base = self.what_ifs().find_map(|what_if| what_if.finished(&path));
            return match base {
                Some(base) => self.compare(context, base, path),
                None => self.open(context, path),
            };
        }
        self.what_ifs().for_each(WhatIfPanel::stopped);
        if let SimulationOutcome::Failed(words) = ended {
            let words = format!("The simulation failed.\n{words}");
            self.messages.push(StatusMessage::error(words));
        }
    }

    pub(crate) fn open(&mut self, context: &Context, path: PathBuf) {
        if path.to_string_lossy().starts_with("tilescope:") {
            return self.apply(context, AppCommand::OpenLink(path.to_string_lossy().into_owned()));
        }
        self.pending_link = None;
        self.start_opening(context, path);
    }

    pub(crate) fn start_opening(&mut self, context: &Context, path: PathBuf) {
        let asked = path.clone();
        match BackgroundTask::start("open", context, move || OpenReport::read(&asked)) {
            Ok(pending) => self.opening = Some((path, pending)),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }

    /// Reads what is shown again: a report, or both of a comparison.
    pub(crate) fn reload(&mut self, context: &Context) {
        let page = self.page.as_ref();
        let paths = page.map(|page| {
            let with = page.compared.as_ref().map(|with| with.target.path.clone());
            (page.opened.path.clone(), with)
        });
        match paths {
            Some((source, Some(target))) => self.start_comparing(context, source, target),
            Some((path, None)) => self.start_opening(context, path),
            None => {}
        }
    }

    pub(crate) fn compare(&mut self, context: &Context, source: PathBuf, target: PathBuf) {
        self.pending_link = None;
        self.start_comparing(context, source, target);
    }

    pub(crate) fn start_comparing(&mut self, context: &Context, source: PathBuf, target: PathBuf) {
        let (a, b) = (source.clone(), target.clone());
        let pending = BackgroundTask::start("open two", context, move || {
            Ok((OpenReport::read(&a)?, OpenReport::read(&b)?))
        });
        match pending {
            Ok(pending) => self.opening_comparison = Some((source, target, pending)),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
        self.comparison_candidates.clear();
    }

    pub(super) fn open_dialog(&mut self, context: &Context) {
        if self.dialog.is_some() {
            return;
        }
        // The dialog may hang where there is no portal: it gets a thread, and a path can be typed.
        let pending = BackgroundTask::start("dialog", context, || {
            rfd::FileDialog::new().set_title("Open a report directory").pick_folder()
        });
        match pending {
            Ok(pending) => self.dialog = Some(pending),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }

    pub(super) fn simulate(&mut self, context: &Context, spec: &str) {
        if self.simulation.is_some() {
            self.messages.push(StatusMessage::warning("A simulation is running already."));
            return;
        }
        match SimulationProcess::start(spec, simulated_report_directory(spec), context) {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(error) => self.messages.push(StatusMessage::error(error.to_string())),
        }
    }

    /// For how long a report is being opened.
    pub(crate) fn opening_for(&self) -> Option<std::time::Duration> {
        let both = self.opening_comparison.as_ref().map(|(_, _, pending)| pending.elapsed());
        self.opening.as_ref().map(|(_, pending)| pending.elapsed()).or(both)
    }

    /// The path a report is being opened from.
    pub fn opening_path(&self) -> Option<&Path> {
        let both = self.opening_comparison.as_ref().map(|(source, _, _)| source.as_path());
        self.opening.as_ref().map(|(path, _)| path.as_path()).or(both)
    }
}
