//! Applying commands.

use super::{AppSession, ReportPage};
use crate::model::command::AppCommand;
use crate::model::message::StatusMessage;
use crate::model::navigation::ReportLink;
use crate::model::selection_query::selection_query;
use crate::shell::overlay::OverlayState;
use crate::views::compare::ComparisonTarget;
use egui::Context;
use std::path::PathBuf;

impl AppSession {
    /// Applies a command.
    pub(crate) fn apply(&mut self, context: &Context, command: AppCommand) {
        match command {
            AppCommand::Open(path) => self.open(context, path),
            AppCommand::OpenDialog => self.open_dialog(context),
            AppCommand::Undo => self.undo_or_redo(context, false),
            AppCommand::Redo => self.undo_or_redo(context, true),
            AppCommand::NewWindow => self.open_window(),
            AppCommand::CopyLink => {
                if let Some(link) = self.link() {
                    context.copy_text(link.to_string());
                }
            }
            AppCommand::OpenLink(link) => match link.parse::<ReportLink>() {
                Ok(link) => self.follow_link(context, link),
                Err(problem) => self.messages.push(StatusMessage::error(problem.to_string())),
            },
            AppCommand::OpenSearch => {
                if let Some(page) = &mut self.page {
                    page.search.start();
                }
            }
            AppCommand::ShowSelectionStatistics => {
                if let Some(page) = &mut self.page
                    && let Some(query) = selection_query(&self.selection, &page.opened)
                {
                    page.search.measure(&query);
                }
            }
            AppCommand::NextSearchResult(by) => {
                if let Some(page) = &mut self.page {
                    page.search.step(by);
                }
            }
            AppCommand::Export(saving) => self.start_export(context, saving),
            AppCommand::AddBookmark => self.bookmark(),
            AppCommand::SetBookmarks(bookmarks) => self.set_bookmarks(bookmarks),
            AppCommand::Compare(source, target) => self.compare(context, source, target),
            AppCommand::CompareWith(target) => {
                self.compare_dialog_text = None;
                if let Some(source) = self.page.as_ref().map(|page| page.opened.path.clone()) {
                    self.compare(context, source, target);
                }
            }
            AppCommand::ToggleCompareDialog => {
                let asking = self.compare_dialog_text.take().is_some();
                self.compare_dialog_text = (!asking && self.page.is_some()).then(String::new);
            }
            AppCommand::ToggleComparisonCandidate(path) => {
                toggle_candidate(&mut self.comparison_candidates, path)
            }
            AppCommand::RemoveRecentComparison(source, target) => {
                self.prefs.forget_comparison(&source, &target);
            }
            AppCommand::SwapSides => self.swap_sides(),
            AppCommand::EndComparison => {
                if let Some(opened) = self.page.as_ref().map(|page| page.opened.clone()) {
                    let view = self.page.as_ref().map(|page| page.view);
                    self.tabs.current().into_iter().for_each(|at| self.close_tab(at));
                    self.show_page(opened, None);
                    view.into_iter()
                        .for_each(|view| self.apply(context, AppCommand::ShowView(view)));
                }
            }
            AppCommand::ApplyToTarget(command) => self.choose_in_target(*command),
            AppCommand::ToggleWhatIf => self.toggle_what_if(),
            AppCommand::OpenWhatIfWith(key, value) => self.what_if_with(key, &value),
            AppCommand::CancelOpening => {
                // The thread goes on until it is done; nobody listens any more.
                self.opening = None;
                self.opening_comparison = None;
            }
            AppCommand::SimulateVariant => self.simulate_variant(context),
            AppCommand::ShowTab(at) => self.show_tab(at),
            AppCommand::NextTab(forwards) => self.next_tab(forwards),
            AppCommand::CloseTab(at) => self.close_tab(at),
            AppCommand::Reload => self.reload(context),
            AppCommand::CloseReport => {
                self.tabs.current().into_iter().for_each(|at| self.close_tab(at));
            }
            AppCommand::ShowView(name) => {
                if let Some(page) = &mut self.page {
                    page.view = name;
                }
            }
            AppCommand::SetTheme(theme) => {
                self.prefs.theme = theme;
                context.set_theme(theme.preference());
            }
            AppCommand::SetAppearance(look) => {
                self.prefs.look = look;
                look.apply(context);
            }
            AppCommand::SetShortcuts(name, Some(keys)) => {
                self.prefs.keys.insert(name.to_owned(), keys);
            }
            AppCommand::SetShortcuts(name, None) => drop(self.prefs.keys.remove(name)),
            AppCommand::ResetPrefs => {
                self.prefs.reset();
                context.set_theme(self.prefs.theme.preference());
                self.prefs.look.apply(context);
                self.reload(context);
            }
            AppCommand::ToggleMenu => self.prefs.narrow_menu ^= true,
            AppCommand::Overlay(kind) => {
                // What asks for it again sends it away.
                let open = self.overlay.take().map(|overlay| overlay.kind);
                self.overlay = kind.filter(|kind| open != Some(*kind)).map(OverlayState::new);
            }
            AppCommand::SendToView(wish) => self.view_actions.push(wish),
            AppCommand::Simulate(spec) => self.simulate(context, &spec),
            AppCommand::CancelSimulation => {
                if let Some(simulation) = &self.simulation {
                    simulation.cancel();
                }
            }
            AppCommand::RemoveRecentReport(path) => self.prefs.forget(&path),
            AppCommand::SelectTiles(_)
            | AppCommand::SelectStep(_)
            | AppCommand::ZoomToCycles(_)
            | AppCommand::SelectProgram(_)
            | AppCommand::SelectOperation(_)
            | AppCommand::SelectVariable(_)
            | AppCommand::SelectIpu(_) => self.selection.apply(command),
            AppCommand::SetTracePrefs(prefs) => self.prefs.trace = prefs,
            AppCommand::SetMemoryPrefs(prefs) => self.prefs.memory = prefs,
            AppCommand::SetLivenessPrefs(prefs) => self.prefs.liveness = prefs,
            AppCommand::SetGraphPrefs(prefs) => self.prefs.operations_graph = prefs,
            AppCommand::SetOperationPrefs(prefs) => self.prefs.operations = prefs,
            AppCommand::ToggleBlock(title) => toggle(&mut self.prefs.folded_blocks, title),
            AppCommand::SetOptionFilter(filter) => self.prefs.option_filter = filter,
            AppCommand::ShowMessage(message) => self.messages.push(message),
            AppCommand::DismissMessage(index) => {
                if index < self.messages.len() {
                    self.messages.remove(index);
                }
            }
            AppCommand::DismissMessages => self.messages.clear(),
        }
    }

    fn swap_sides(&mut self) {
        let Some(page) = &mut self.page else { return };
        let Some(compared) = page.compared.take() else { return };
        let (source, target) = (page.opened.clone(), compared.target.clone());
        self.prefs.remember_comparison(&target.absolute_path(), &source.absolute_path());
        let mut fresh = ReportPage::new(target, page.view);
        let mut with = Box::new(ComparisonTarget::new(source));
        with.selection = std::mem::replace(&mut self.selection, compared.selection.clone());
        fresh.compared = Some(with);
        self.page = Some(fresh);
    }

    /// Chooses something in the report on the right.
    fn choose_in_target(&mut self, command: AppCommand) {
        let compared = self.page.as_mut().and_then(|page| page.compared.as_mut());
        if let Some(compared) = compared {
            compared.selection.apply(command);
        }
    }
}

/// Ticks a path, or takes its tick away; at most two are ticked, the oldest goes first.
fn toggle_candidate(ticked: &mut Vec<PathBuf>, path: PathBuf) {
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
