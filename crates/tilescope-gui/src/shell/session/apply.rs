//! Doing what the user asked for.

use super::{ReportPage, Session};
use crate::model::command::Command;
use crate::model::keep::Link;
use crate::model::measuring::selection_query;
use crate::model::message::Message;
use crate::shell::overlay::Overlay;
use crate::views::compare::Compared;
use egui::Context;
use std::path::PathBuf;

impl Session {
    /// Does what the user asked for.
    pub(crate) fn apply(&mut self, context: &Context, command: Command) {
        match command {
            Command::Open(path) => self.open(context, path),
            Command::OpenDialog => self.open_dialog(context),
            Command::Undo => self.back(context, false),
            Command::Redo => self.back(context, true),
            Command::NewWindow => self.open_window(),
            Command::CopyLink => {
                if let Some(link) = self.link() {
                    context.copy_text(link.to_string());
                }
            }
            Command::GoTo(link) => match link.parse::<Link>() {
                Ok(link) => self.follow(context, link),
                Err(problem) => self.messages.push(Message::error(problem.to_string())),
            },
            Command::Find => {
                if let Some(page) = &mut self.page {
                    page.finder.start();
                }
            }
            Command::MeasureSelection => {
                if let Some(page) = &mut self.page
                    && let Some(query) = selection_query(&self.selection, &page.opened)
                {
                    page.finder.measure(&query);
                }
            }
            Command::NextFound(by) => {
                if let Some(page) = &mut self.page {
                    page.finder.step(by);
                }
            }
            Command::Save(saving) => self.write(context, saving),
            Command::AddBookmark => self.bookmark(),
            Command::SetBookmarks(bookmarks) => self.set_bookmarks(bookmarks),
            Command::Compare(source, target) => self.compare(context, source, target),
            Command::CompareWith(target) => {
                self.asking_compare = None;
                if let Some(source) = self.page.as_ref().map(|page| page.opened.path.clone()) {
                    self.compare(context, source, target);
                }
            }
            Command::AskCompare => {
                let asking = self.asking_compare.take().is_some();
                self.asking_compare = (!asking && self.page.is_some()).then(String::new);
            }
            Command::Tick(path) => tick(&mut self.ticked, path),
            Command::ForgetComparison(source, target) => {
                self.prefs.forget_comparison(&source, &target);
            }
            Command::SwapSides => self.swap_sides(),
            Command::EndComparison => {
                if let Some(opened) = self.page.as_ref().map(|page| page.opened.clone()) {
                    let view = self.page.as_ref().map(|page| page.view);
                    self.tabs.current().into_iter().for_each(|at| self.close_tab(at));
                    self.show_page(opened, None);
                    view.into_iter().for_each(|view| self.apply(context, Command::ShowView(view)));
                }
            }
            Command::ToTarget(command) => self.choose_in_target(*command),
            Command::ToggleWhatIf => self.toggle_what_if(),
            Command::WhatIfWith(key, value) => self.what_if_with(key, &value),
            Command::CancelOpening => {
                // The thread goes on until it is done; nobody listens any more.
                self.opening = None;
                self.opening_both = None;
            }
            Command::SimulateVariant => self.simulate_variant(context),
            Command::ShowTab(at) => self.show_tab(at),
            Command::NextTab(forwards) => self.next_tab(forwards),
            Command::CloseTab(at) => self.close_tab(at),
            Command::Reload => self.reload(context),
            Command::CloseReport => {
                self.tabs.current().into_iter().for_each(|at| self.close_tab(at));
            }
            Command::ShowView(name) => {
                if let Some(page) = &mut self.page {
                    page.view = name;
                }
            }
            Command::SetTheme(theme) => {
                self.prefs.theme = theme;
                context.set_theme(theme.preference());
            }
            Command::SetLook(look) => {
                self.prefs.look = look;
                look.apply(context);
                // What is painted and written already is made again.
                self.reload(context);
            }
            Command::SetKeys(name, Some(keys)) => {
                self.prefs.keys.insert(name.to_owned(), keys);
            }
            Command::SetKeys(name, None) => drop(self.prefs.keys.remove(name)),
            Command::ResetPrefs => {
                self.prefs.reset();
                context.set_theme(self.prefs.theme.preference());
                self.prefs.look.apply(context);
                self.reload(context);
            }
            Command::ToggleMenu => self.prefs.narrow_menu ^= true,
            Command::Overlay(kind) => {
                // What asks for it again sends it away.
                let open = self.overlay.take().map(|overlay| overlay.kind);
                self.overlay = kind.filter(|kind| open != Some(*kind)).map(Overlay::new);
            }
            Command::Ask(wish) => self.wishes.push(wish),
            Command::Simulate(spec) => self.simulate(context, &spec),
            Command::CancelSimulation => {
                if let Some(simulation) = &self.simulation {
                    simulation.cancel();
                }
            }
            Command::ForgetRecent(path) => self.prefs.forget(&path),
            Command::SelectTiles(_)
            | Command::SelectStep(_)
            | Command::ShowCycles(_)
            | Command::SelectProgram(_)
            | Command::SelectOperation(_)
            | Command::SelectVariable(_)
            | Command::SelectIpu(_) => self.selection.choose(command),
            Command::SetTracePrefs(prefs) => self.prefs.trace = prefs,
            Command::SetMemoryPrefs(prefs) => self.prefs.memory = prefs,
            Command::SetLivenessPrefs(prefs) => self.prefs.liveness = prefs,
            Command::SetGraphPrefs(prefs) => self.prefs.operations_graph = prefs,
            Command::SetOperationPrefs(prefs) => self.prefs.operations = prefs,
            Command::ToggleBlock(title) => toggle(&mut self.prefs.folded_blocks, title),
            Command::SetOptionFilter(filter) => self.prefs.option_filter = filter,
            Command::Say(message) => self.messages.push(message),
            Command::DismissMessage(index) => {
                if index < self.messages.len() {
                    self.messages.remove(index);
                }
            }
            Command::DismissMessages => self.messages.clear(),
        }
    }

    fn swap_sides(&mut self) {
        let Some(page) = &mut self.page else { return };
        let Some(compared) = page.compared.take() else { return };
        let (source, target) = (page.opened.clone(), compared.target.clone());
        self.prefs.remember_comparison(&target.place(), &source.place());
        let mut fresh = ReportPage::new(target, page.view);
        let mut with = Box::new(Compared::new(source));
        with.selection = std::mem::replace(&mut self.selection, compared.selection.clone());
        fresh.compared = Some(with);
        self.page = Some(fresh);
    }

    /// Chooses something in the report on the right.
    fn choose_in_target(&mut self, command: Command) {
        let compared = self.page.as_mut().and_then(|page| page.compared.as_mut());
        if let Some(compared) = compared {
            compared.selection.choose(command);
        }
    }
}

/// Ticks a path, or takes its tick away; at most two are ticked, the oldest goes first.
fn tick(ticked: &mut Vec<PathBuf>, path: PathBuf) {
    match ticked.iter().position(|known| *known == path) {
        Some(at) => drop(ticked.remove(at)),
        None => {
            ticked.push(path);
            let surplus = ticked.len().saturating_sub(2);
            ticked.drain(..surplus);
        }
    }
}

fn toggle(list: &mut Vec<String>, title: &str) {
    match list.iter().position(|known| known == title) {
        Some(at) => drop(list.remove(at)),
        None => list.push(title.to_owned()),
    }
}
