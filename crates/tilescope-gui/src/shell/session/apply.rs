//! Dispatch of commands to the parts of the session.

use super::AppSession;
use crate::model::command::{AppCommand, ChooserPurpose};
use crate::model::export_request::ExportRequest;
use crate::model::message::StatusMessage;
use crate::model::navigation::ReportLink;
use crate::shell::simulation_process::new_window;
use crate::views::what_if::WhatIfPanel;
use crate::widgets::requested_control::{ControlKind, forget_request, request_control};
use egui::{Context, ViewportCommand};
use std::path::{Path, PathBuf};
use tilescope_report::REPORT_FILE;

impl AppSession {
    /// Applies a command.
    pub(crate) fn apply(&mut self, context: &Context, command: AppCommand) {
        match command {
            AppCommand::Open(path) => self.open(context, path),
            AppCommand::OpenRemote(remote) => self.open_remote(context, remote),
            AppCommand::OpenAll(paths) => self.open_all(paths),
            AppCommand::OpenAlone(path) => self.open_alone(context, path),
            AppCommand::PinBaseline(path) => self.pin_baseline(path),
            AppCommand::ShowSeries(paths) => self.show_series(context, paths),
            AppCommand::ShowLastSeries => self.dialogs.set_series_shown(true),
            AppCommand::CloseSeries => self.dialogs.set_series_shown(false),
            AppCommand::ChooseReport(purpose) => self.choose_report(purpose),
            AppCommand::AnswerReportChoice(path) => {
                self.dialogs.ask_for_report(None);
                if let Some(path) = path {
                    self.open(context, path);
                }
            }
            AppCommand::OpenLink(link) => self.open_link(context, &link),
            AppCommand::CancelOpening => self.jobs.opening.cancel(),
            AppCommand::Reload => self.reload(context),
            AppCommand::Export(request) => self.export(context, request),
            AppCommand::Simulate(spec) => self.simulate(context, &spec),
            AppCommand::CancelSimulation => self.jobs.cancel_simulation(),
            AppCommand::NewWindow => self.open_window(),
            AppCommand::Quit => self.quit(context),
            AppCommand::AnswerQuit(quits) => {
                self.may_quit = quits;
                self.dialogs.ask_to_quit(false);
                if quits {
                    context.send_viewport_cmd(ViewportCommand::Close);
                }
            }
            AppCommand::CopyLink => {
                if let Some(link) = self.link() {
                    context.copy_text(link.to_string());
                }
            }

            AppCommand::ShowTab(at) => self.workspace.show_tab(at),
            AppCommand::NextTab(forwards) => self.workspace.show_neighbour(forwards),
            AppCommand::CloseTab(at) => {
                self.workspace.close_tab(at);
                self.remember_tabs();
            }
            AppCommand::CloseReport => {
                self.workspace.close_shown_tab();
                self.remember_tabs();
            }
            AppCommand::ShowView(name) => {
                forget_request(context);
                self.workspace.show_view(name);
            }
            AppCommand::UseControl(view, control) => {
                self.workspace.show_view(view);
                request_control(context, view.name(), (ControlKind::Strip, control));
            }
            AppCommand::ShowTables(view, tab) => {
                self.workspace.show_view(view);
                request_control(context, view.name(), (ControlKind::Tab, tab));
            }
            AppCommand::SendToView(action) => self.workspace.send_to_view(action),
            AppCommand::OpenSearch => self.workspace.open_search(),
            AppCommand::NextSearchResult(by) => self.workspace.step_search(by),
            AppCommand::ShowSelectionStatistics => self.workspace.measure_selection(),
            AppCommand::ApplyToTarget(command) => self.workspace.select_in_target(*command),
            AppCommand::EndComparison => self.messages.extend(self.workspace.end_comparison()),
            AppCommand::SelectTiles(_)
            | AppCommand::SelectStep(_)
            | AppCommand::ZoomToCycles(_)
            | AppCommand::SelectProgram(_)
            | AppCommand::SelectOperation(_)
            | AppCommand::SelectVariable(_)
            | AppCommand::SelectIpu(_) => self.selection_mut().apply(command),
            AppCommand::Undo => self.undo_or_redo(context, false),
            AppCommand::Redo => self.undo_or_redo(context, true),
            AppCommand::AddBookmark => {
                if let Some(page) = self.workspace.shown_mut() {
                    self.messages.extend(page.bookmark(self.preferences.current()));
                }
            }
            AppCommand::SetBookmarks(bookmarks) => {
                if let Some(page) = self.workspace.shown_mut() {
                    self.messages.extend(page.set_bookmarks(bookmarks));
                }
            }

            AppCommand::Compare(source, target) => self.compare(context, source, target),
            AppCommand::CompareWith(target) => self.compare_with(context, target),
            AppCommand::SwapSides => self.swap_sides(),
            AppCommand::ToggleComparisonCandidate(path) => self.home.toggle_candidate(path),

            AppCommand::ToggleWhatIf => self.toggle_what_if(),
            AppCommand::TryOtherMachines => self.with_what_if(WhatIfPanel::try_other_machines),
            AppCommand::OpenWhatIfWith(key, value) => {
                self.with_what_if(|panel| panel.set_value(key, &value));
            }
            AppCommand::OpenWhatIfWithAll(changes) => self.with_what_if(|panel| {
                changes.iter().for_each(|(key, value)| panel.set_value(key, &value.to_string()));
            }),
            AppCommand::OpenWhatIfWithText(text) => {
                self.with_what_if(|panel| panel.set_text(text));
            }
            AppCommand::ShowSpecSearch => self.show_search(),
            AppCommand::ShowLastSearch => self.dialogs.set_search_shown(true),
            AppCommand::CloseSpecSearch => self.dialogs.set_search_shown(false),
            AppCommand::StopSpecSearch => self.dialogs.stop_searches(),
            AppCommand::SimulateText(text) => self.simulate_text(context, &text),
            AppCommand::OpenWhatIfAt(key) => self.with_what_if(|panel| panel.go_to(key)),
            AppCommand::SimulateVariant => self.simulate_variant(context),
            AppCommand::SetSpecModel(path) => {
                if let Some(panel) = self.what_ifs.current_mut() {
                    panel.set_model(&path);
                }
            }

            AppCommand::SimulateModel => self.simulate_model(context),
            AppCommand::SaveModelSpec(path) => self.save_model_spec(&path),
            AppCommand::CloseModel => self.close_model(),

            AppCommand::Overlay(kind) => self.dialogs.toggle_overlay(kind),
            AppCommand::ShowMechanism(page) => self.dialogs.show_mechanism(page),

            AppCommand::SetTheme(theme) => self.preferences.set_theme(context, theme),
            AppCommand::SetAppearance(look) => self.preferences.set_look(context, look),
            AppCommand::ResetPrefs => self.preferences.reset(context),
            AppCommand::SetShortcuts(..)
            | AppCommand::ToggleMenu
            | AppCommand::RemoveRecentReport(_)
            | AppCommand::RemoveRecentComparison(..)
            | AppCommand::SetTracePrefs(_)
            | AppCommand::SetMemoryPrefs(_)
            | AppCommand::SetLivenessPrefs(_)
            | AppCommand::SetGraphPrefs(_)
            | AppCommand::SetOperationPrefs(_)
            | AppCommand::ToggleBlock(_)
            | AppCommand::SetOptionFilter(_) => self.prefs_mut().apply(command),

            AppCommand::ShowMessage(message) => self.messages.push(message),
            AppCommand::DismissMessage(index) => self.messages.dismiss(index),
            AppCommand::DismissMessages => self.messages.clear(),
        }
    }

    /// Shows the error of a failed command to the user.
    pub(super) fn tell_failure<E: ToString>(&mut self, result: Result<(), E>) {
        if let Err(error) = result {
            self.messages.push(StatusMessage::error(error.to_string()));
        }
    }

    fn open_link(&mut self, context: &Context, text: &str) {
        match text.parse::<ReportLink>() {
            Ok(link) => self.follow_link(context, link),
            Err(problem) => self.messages.push(StatusMessage::error(problem.to_string())),
        }
    }

    /// Opens another window at the current place.
    fn open_window(&mut self) {
        let link = self.link();
        let text = link.as_ref().map(ReportLink::to_string).unwrap_or_default();
        let place = link.as_ref().map(|link| (link.report.as_path(), text.as_str()));
        self.tell_failure(new_window(place));
    }

    fn undo_or_redo(&mut self, context: &Context, forwards: bool) {
        let time = context.input(|input| input.time);
        let Some(page) = self.workspace.shown_mut() else { return };
        let history = &mut page.tab.history;
        let place = if forwards { history.redo(time) } else { history.undo(time) };
        if let Some(place) = place {
            self.go_to(&place);
        }
    }

    fn export(&mut self, context: &Context, request: ExportRequest) {
        let shown = self.page().and_then(|page| page.export_source(self.prefs()));
        if let Some(shown) = shown {
            let started = self.jobs.export(context, request, shown);
            self.tell_failure(started);
        }
    }

    /// Opens the report chooser. It lists the directory of the visible report first.
    fn choose_report(&mut self, purpose: ChooserPurpose) {
        let shown = self.page().map(|page| page.opened().absolute_path());
        let mut beside = shown.as_ref().and_then(|path| path.parent());
        let is_file = shown.as_ref().is_some_and(|path| path.ends_with(REPORT_FILE));
        if purpose == ChooserPurpose::Series && is_file {
            // Other runs are beside the directory of this one.
            beside = beside.and_then(Path::parent);
        }
        let beside = beside.map(Path::to_owned);
        self.dialogs.toggle_chooser(purpose, shown.is_some(), beside);
    }

    fn compare_with(&mut self, context: &Context, target: PathBuf) {
        if let Some(source) = self.page().map(|page| page.opened().path.clone()) {
            self.compare(context, source, target);
        }
    }

    fn swap_sides(&mut self) {
        let Some(page) = self.workspace.shown() else { return };
        let Some(compared) = page.compared() else { return };
        let source = page.opened().absolute_path();
        let target = compared.target.absolute_path();
        self.preferences.current_mut().remember_comparison(&target, &source);
        self.messages.extend(self.workspace.swap_sides());
    }

    fn toggle_what_if(&mut self) {
        if let Some(page) = self.workspace.shown() {
            let toggled = self.what_ifs.toggle(page.opened(), &mut self.places);
            self.tell_failure(toggled);
        }
    }

    /// Opens the spec editor for the report and calls a function on it.
    fn with_what_if(&mut self, then: impl FnOnce(&mut WhatIfPanel)) {
        if let Some(page) = self.workspace.shown() {
            let opened = self.what_ifs.open_with(page.opened(), &mut self.places, then);
            self.tell_failure(opened);
        }
    }
}
