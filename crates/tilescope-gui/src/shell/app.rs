//! The window: it processes events, then paints.

use super::{
    action, home, messages_ui, model_dialog, overlay, quit_dialog, report_check, report_choice,
    report_chooser, report_tabs, search_dialog, series_dialog, unmodelled_line, what_if_panel_ui,
    window_frame,
};
use crate::model::command::{AppCommand, CommandQueue, ViewAction};
use crate::model::message::StatusMessage;
use crate::model::navigation::ReportLink;
use crate::model::open_report::OpenReport;
use crate::shell::session::{AppSession, ShownPage};
use crate::shell::spec_queries::SPEC_QUERIES;
use crate::theme::{self, fonts};
use crate::views::ViewContext;
use egui::{Context, Ui};
use std::path::{Path, PathBuf};

/// The app, in a window or without one.
pub struct TilescopeApp {
    session: AppSession,
    commands: CommandQueue,
    /// The title of the window.
    title: String,
    /// The egui context that all frames share.
    context: Context,
}

impl TilescopeApp {
    /// The user's app. It shows a report, the place in a report that a link leads to, a comparison
    /// of two reports, or the tabs of the last closed window.
    pub(crate) fn for_user(
        context: &Context,
        report: Option<&Path>,
        compare: Option<&Path>,
        at: Option<&str>,
    ) -> Self {
        let mut app = Self::new(context, AppSession::for_user());
        context.add_font_provider(std::sync::Arc::new(fonts::SystemFontFallback));
        // A covered window is painted too: some servers report every window as covered.
        context.send_viewport_cmd(egui::ViewportCommand::RequestPaintWhileHidden);
        match (report.zip(compare), at) {
            (Some((source, target)), None) => app.compare_at(source, target),
            (None, None) if report.is_none() => app.session.reopen_tabs(),
            _ => app.open_at(context, report, compare, at),
        }
        app
    }

    /// Opens a report, compared with another one if given, at the place that a link leads to.
    pub fn open_at(
        &mut self,
        context: &Context,
        report: Option<&Path>,
        compare: Option<&Path>,
        at: Option<&str>,
    ) {
        match (report, at.map(str::parse::<ReportLink>)) {
            (Some(report), Some(Ok(mut link))) => {
                if let Some(target) = compare {
                    let beside = link.place.target.get_or_insert_default();
                    target.clone_into(&mut beside.report);
                }
                self.session.open_at(context, report.to_owned(), link);
            }
            (report, link) => {
                self.commands.extend(report.map(|path| AppCommand::Open(path.to_owned())));
                if let Some(Err(problem)) = link {
                    self.commands
                        .push(AppCommand::ShowMessage(StatusMessage::error(problem.to_string())));
                }
            }
        }
    }

    /// An app without stored preferences, on a report or on the home screen.
    pub fn detached(context: &Context, opened: Option<OpenReport>) -> Self {
        let mut session = AppSession::detached();
        if let Some(opened) = opened {
            session.show(opened);
        }
        Self::new(context, session)
    }

    fn new(context: &Context, session: AppSession) -> Self {
        theme::install(context);
        let prefs = session.prefs();
        prefs.look.apply(context);
        context.set_theme(prefs.theme.preference());
        // Pointing at a bar and turning the wheel zooms the trace, not the window.
        context.options_mut(|options| {
            options.zoom_with_keyboard = true;
            // Quitting is our own action, which asks before something is lost.
            options.quit_shortcuts.clear();
        });
        Self {
            session,
            commands: CommandQueue::default(),
            title: String::new(),
            context: context.clone(),
        }
    }

    /// Opens two reports as a comparison.
    pub fn compare_at(&mut self, source: &Path, target: &Path) {
        self.commands.push(AppCommand::Compare(source.to_owned(), target.to_owned()));
    }

    /// Compares the open report with another one, in the tab that shows it.
    pub fn compare(&mut self, target: OpenReport) {
        self.session.compare_in_place(target);
    }

    /// Shows a view of the open report, by its name.
    pub fn show_view(&mut self, name: &str) {
        self.commands.extend(name.parse().map(AppCommand::ShowView));
    }

    /// The session, for reading.
    pub fn session(&self) -> &AppSession {
        &self.session
    }

    /// The session, for changes.
    pub fn session_mut(&mut self) -> &mut AppSession {
        &mut self.session
    }

    /// Receives the results of background work and applies commands.
    pub fn logic(&mut self, context: &Context) {
        self.session.poll_background_work(context);
        self.session.hold_back_closing(context);
        self.commands.extend(dropped(context));
        for command in self.commands.take() {
            self.session.apply(context, command);
        }
        self.session.record_navigation(context);
        self.session.save(context);
        let report = self.session.page().map(|page| page.title());
        let title = report.map_or_else(|| "tilescope".to_owned(), |r| format!("{r} - tilescope"));
        if title != self.title {
            context.send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }

    /// Runs one frame: handles input and paints the window.
    pub fn ui(&mut self, ui: &mut Ui) {
        let Self { session, commands, .. } = self;
        session.prefs().look.hand_down(ui.ctx());
        commands.extend(action::commands_for_pressed_keys(ui.ctx(), session));
        report_tabs::tabs_ui(ui, session, commands);
        window_frame::side_menu_ui(ui, session, commands);
        what_if_panel_ui::what_if_panel_ui(ui, session, commands);
        messages_ui::messages_ui(ui, session.messages(), commands);
        match session.page_to_paint() {
            Some(shown) => page_ui(ui, shown, commands),
            None => home::home_ui(ui, session, commands),
        }
        overlay::overlay_ui(ui.ctx(), &mut self.session, &self.commands);
        model_dialog::model_dialog_ui(ui.ctx(), &mut self.session, &self.commands);
        search_dialog::search_dialog_ui(ui.ctx(), &mut self.session, &self.commands);
        series_dialog::series_dialog_ui(ui.ctx(), &mut self.session, &self.commands);
        report_chooser::report_chooser_ui(ui.ctx(), &mut self.session, &self.commands);
        report_choice::report_choice_ui(ui.ctx(), &self.session, &self.commands);
        quit_dialog::quit_dialog_ui(ui.ctx(), &self.session, &self.commands);
        window_frame::progress_ui(ui.ctx(), &self.session, &self.commands);
        window_frame::drop_hint_ui(ui.ctx());
        if !self.commands.is_empty() {
            ui.ctx().request_repaint();
        }
    }
}

/// Paints a report or a comparison: the visible view, and the find panel if it is open.
fn page_ui(ui: &mut Ui, shown: ShownPage<'_>, commands: &CommandQueue) {
    let ShownPage { page, prefs, workers, actions } = shown;
    let context = ViewContext {
        opened: &page.tab.opened,
        selection: &page.tab.selection,
        prefs,
        workers,
        actions: &actions,
        commands,
        spec_queries: SPEC_QUERIES,
        pane: None,
    };
    report_check::broken_reports_ui(ui, &mut page.checks, workers);
    let compared = page.compared.as_ref().map(|compared| &compared.target);
    let reports = std::iter::once(&page.tab.opened).chain(compared);
    unmodelled_line::unmodelled_lines_ui(ui, reports);
    page.search.update(ui, &context);
    if page.search.open {
        window_frame::find_panel_ui(ui, &mut page.search, &context);
    }
    let name = page.tab.view;
    let Some((_, view)) = page.views.iter_mut().find(|(view, _)| *view == name) else { return };
    if actions.contains(&ViewAction::ClearSelection) {
        commands.extend(view.clear_selection_commands());
    }
    let frame = egui::Frame::new().fill(ui.visuals().panel_fill);
    egui::CentralPanel::default().frame(frame).show(ui, |ui| match &mut page.compared {
        Some(compared) => compared.ui(ui, name, view.as_mut(), &context),
        None => view.ui(ui, &context),
    });
}

/// The command for files and directories that were dropped on the window.
fn dropped(context: &Context) -> Option<AppCommand> {
    let mut paths: Vec<PathBuf> =
        context.input(|i| i.raw.dropped_files.iter().map(|file| file.path().to_owned()).collect());
    match paths.len() {
        0 => None,
        1 => paths.pop().map(AppCommand::Open),
        _ => Some(AppCommand::OpenAll(paths)),
    }
}

impl eframe::App for TilescopeApp {
    fn logic(&mut self, context: &Context, _: &mut eframe::Frame) {
        self.logic(context);
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        self.ui(ui);
    }

    fn on_exit(&mut self, _: Option<&eframe::glow::Context>) {
        self.session.finish(&self.context);
    }
}
