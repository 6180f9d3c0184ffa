//! Opening reports, by themselves or two to be compared, and making them by simulation.

use super::Session;
use crate::model::command::Command;
use crate::model::message::Message;
use crate::model::opening::Opened;
use crate::shell::child::{Ended, Simulation};
use crate::shell::report_locations::simulated;
use crate::views::what_if::WhatIf;
use crate::widgets::background_task::Pending;
use egui::Context;
use std::path::{Path, PathBuf};

impl Session {
    /// Takes in what threads and children have done since the last frame.
    pub(crate) fn receive(&mut self, context: &Context) {
        self.receive_opened();
        self.receive_saved();
        self.reload_if_changed(context);
        self.receive_both();
        if let Some(result) = self.dialog.as_ref().and_then(Pending::take) {
            self.dialog = None;
            if let Ok(Some(path)) = result {
                self.open(context, path);
            }
        }
        self.receive_simulated(context);
    }

    fn receive_opened(&mut self) {
        let opened = self.opening.as_ref().and_then(|(_, pending)| pending.take());
        let Some(result) = opened else { return };
        self.opening = None;
        match result {
            Ok(Ok(opened)) => {
                self.prefs.remember(&opened.place());
                self.show(opened);
                self.go_where_asked();
            }
            Ok(Err(problem)) => self.messages.push(Message::error(problem)),
            Err(()) => self.messages.push(Message::error("Opening the report broke down.")),
        }
    }

    fn receive_both(&mut self) {
        let both = self.opening_both.as_ref().and_then(|(_, _, pending)| pending.take());
        let Some(result) = both else { return };
        self.opening_both = None;
        match result {
            Ok(Ok((source, target))) => {
                self.prefs.remember_comparison(&source.place(), &target.place());
                self.show_page(source, Some(target));
                self.go_where_asked();
            }
            Ok(Err(problem)) => self.messages.push(Message::error(problem)),
            Err(()) => self.messages.push(Message::error("Opening the reports broke down.")),
        }
    }

    /// Goes to the place that a link named before its report was open.
    fn go_where_asked(&mut self) {
        if let Some(link) = self.asked.take() {
            self.go(&link.place);
        }
    }

    fn receive_simulated(&mut self, context: &Context) {
        let Some(ended) = self.simulation.as_ref().and_then(Simulation::ended) else { return };
        self.simulation = None;
        if let Ended::Done(path) = ended {
            let base = self.what_ifs().find_map(|what_if| what_if.finished(&path));
            return match base {
                Some(base) => self.compare(context, base, path),
                None => self.open(context, path),
            };
        }
        self.what_ifs().for_each(WhatIf::stopped);
        if let Ended::Failed(words) = ended {
            let words = format!("The simulation failed.\n{words}");
            self.messages.push(Message::error(words));
        }
    }

    pub(crate) fn open(&mut self, context: &Context, path: PathBuf) {
        if path.to_string_lossy().starts_with("tilescope:") {
            return self.apply(context, Command::GoTo(path.to_string_lossy().into_owned()));
        }
        self.asked = None;
        self.start_opening(context, path);
    }

    pub(crate) fn start_opening(&mut self, context: &Context, path: PathBuf) {
        let asked = path.clone();
        match Pending::start("open", context, move || Opened::read(&asked)) {
            Ok(pending) => self.opening = Some((path, pending)),
            Err(problem) => self.messages.push(Message::error(problem)),
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
        self.asked = None;
        self.start_comparing(context, source, target);
    }

    pub(crate) fn start_comparing(&mut self, context: &Context, source: PathBuf, target: PathBuf) {
        let (a, b) = (source.clone(), target.clone());
        let pending =
            Pending::start("open two", context, move || Ok((Opened::read(&a)?, Opened::read(&b)?)));
        match pending {
            Ok(pending) => self.opening_both = Some((source, target, pending)),
            Err(problem) => self.messages.push(Message::error(problem)),
        }
        self.ticked.clear();
    }

    pub(super) fn open_dialog(&mut self, context: &Context) {
        if self.dialog.is_some() {
            return;
        }
        // The dialog may hang where there is no portal: it gets a thread, and a path can be typed.
        let pending = Pending::start("dialog", context, || {
            rfd::FileDialog::new().set_title("Open a report directory").pick_folder()
        });
        match pending {
            Ok(pending) => self.dialog = Some(pending),
            Err(problem) => self.messages.push(Message::error(problem)),
        }
    }

    pub(super) fn simulate(&mut self, context: &Context, spec: &str) {
        if self.simulation.is_some() {
            self.messages.push(Message::warning("A simulation is running already."));
            return;
        }
        match Simulation::start(spec, simulated(spec), context) {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(problem) => self.messages.push(Message::error(problem)),
        }
    }

    /// For how long a report is being opened.
    pub(crate) fn opening_for(&self) -> Option<std::time::Duration> {
        let both = self.opening_both.as_ref().map(|(_, _, pending)| pending.elapsed());
        self.opening.as_ref().map(|(_, pending)| pending.elapsed()).or(both)
    }

    /// The path a report is being opened from.
    pub fn opening_path(&self) -> Option<&Path> {
        let both = self.opening_both.as_ref().map(|(source, _, _)| source.as_path());
        self.opening.as_ref().map(|(path, _)| path.as_path()).or(both)
    }
}
