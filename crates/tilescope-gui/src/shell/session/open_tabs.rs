//! Tabs that outlive the program, and what keeps it from ending.

use super::AppSession;
use crate::model::navigation::ReportLink;
use egui::{Context, ViewportCommand};
use std::collections::VecDeque;

/// Tabs of the last session that are opened again, one after another.
#[derive(Default)]
pub(super) struct TabsToReopen {
    waiting: VecDeque<ReportLink>,
    /// The one that is shown in the end.
    shown: Option<ReportLink>,
    /// Whether the home screen was shown.
    home: bool,
}

impl AppSession {
    /// Remembers which tabs are open, for the next start.
    pub fn remember_tabs(&mut self) {
        // Until all are open again, those that are remembered count.
        if !self.reopening.waiting.is_empty() {
            return;
        }
        let links = self.workspace.tabs().filter_map(|page| page.link(self.prefs()));
        let links: Vec<String> = links.map(|link| link.to_string()).collect();
        let shown = self.workspace.shown_tab();
        let prefs = self.prefs_mut();
        prefs.open_tabs = links;
        prefs.shown_tab = shown;
    }

    /// Opens the remembered tabs again, each at the place that it showed.
    pub fn reopen_tabs(&mut self) {
        let prefs = self.preferences.current();
        // What another version wrote and this one does not understand is no tab.
        let link = |text: &String| text.parse::<ReportLink>().ok();
        let shown = prefs.shown_tab.and_then(|at| prefs.open_tabs.get(at)).and_then(link);
        self.reopening = TabsToReopen {
            waiting: prefs.open_tabs.iter().filter_map(link).collect(),
            home: prefs.shown_tab.is_none(),
            shown,
        };
    }

    /// Opens a place in a tab, after what is being opened.
    pub(super) fn open_later(&mut self, link: ReportLink) {
        self.reopening.waiting.push_back(link);
    }

    /// Opens the next remembered tab, once the one before is open.
    pub(super) fn reopen_next_tab(&mut self, context: &Context) {
        if self.opening_path().is_some() {
            return;
        }
        if let Some(link) = self.reopening.waiting.pop_front() {
            return self.open_at(context, link.report.clone(), link);
        }
        let TabsToReopen { shown, home, .. } = std::mem::take(&mut self.reopening);
        if let Some(at) = shown.and_then(|link| self.workspace.tab_of(&link)) {
            self.workspace.show_tab(Some(at));
        } else if home {
            self.workspace.show_tab(None);
        }
    }

    /// What would be lost if the program ended now, in sentences.
    pub(crate) fn what_would_be_lost(&self) -> Vec<String> {
        let mut lost: Vec<String> = self
            .what_ifs
            .unsimulated()
            .map(|report| format!("The spec of {report} has unsimulated changes."))
            .collect();
        let simulation = self.simulation();
        lost.extend(simulation.map(|running| format!("{} is being simulated.", running.spec)));
        if self.is_exporting() {
            lost.push("A picture or a table is being saved.".to_owned());
        }
        lost
    }

    /// Ends the program, unless something would be lost: that is asked about first.
    pub(super) fn quit(&mut self, context: &Context) {
        if self.what_would_be_lost().is_empty() {
            context.send_viewport_cmd(ViewportCommand::Close);
        } else {
            self.dialogs.ask_to_quit(true);
        }
    }

    /// Keeps the window open where something would be lost, and asks about it.
    pub(crate) fn hold_back_closing(&mut self, context: &Context) {
        let closing = context.input(|input| input.viewport().close_requested());
        if closing && !self.may_quit && !self.what_would_be_lost().is_empty() {
            context.send_viewport_cmd(ViewportCommand::CancelClose);
            self.dialogs.ask_to_quit(true);
        }
    }
}
