//! Tabs that persist between sessions, and the conditions that delay the end of the program.

use super::AppSession;
use crate::model::navigation::ReportLink;
use egui::{Context, ViewportCommand};
use std::collections::VecDeque;

/// The tabs of the last session that are reopened one after another.
#[derive(Default)]
pub(super) struct TabsToReopen {
    waiting: VecDeque<ReportLink>,
    /// The tab that becomes visible at the end.
    shown: Option<ReportLink>,
    /// True if the home screen was visible.
    home: bool,
}

impl AppSession {
    /// Stores the open tabs for the next start.
    pub fn remember_tabs(&mut self) {
        // Until all tabs are open again, the stored ones count.
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

    /// Opens the stored tabs again, each at its place.
    pub fn reopen_tabs(&mut self) {
        let prefs = self.preferences.current();
        // A link from another version that this one does not understand is skipped.
        let parse_link = |text: &String| text.parse::<ReportLink>().ok();
        let shown = prefs.shown_tab.and_then(|at| prefs.open_tabs.get(at)).and_then(parse_link);
        self.reopening = TabsToReopen {
            waiting: prefs.open_tabs.iter().filter_map(parse_link).collect(),
            home: prefs.shown_tab.is_none(),
            shown,
        };
    }

    /// Opens a place in a tab after the pending ones.
    pub(super) fn open_later(&mut self, link: ReportLink) {
        self.reopening.waiting.push_back(link);
    }

    /// Opens the next stored tab once the previous one is open.
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

    /// The losses if the program ended now, in sentences.
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

    /// Ends the program, after asking if something would be lost.
    pub(super) fn quit(&mut self, context: &Context) {
        if self.what_would_be_lost().is_empty() {
            context.send_viewport_cmd(ViewportCommand::Close);
        } else {
            self.dialogs.ask_to_quit(true);
        }
    }

    /// Keeps the window open if something would be lost, and asks about it.
    pub(crate) fn hold_back_closing(&mut self, context: &Context) {
        let closing = context.input(|input| input.viewport().close_requested());
        if closing && !self.may_quit && !self.what_would_be_lost().is_empty() {
            context.send_viewport_cmd(ViewportCommand::CancelClose);
            self.dialogs.ask_to_quit(true);
        }
    }
}
