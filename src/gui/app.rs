//! The window: takes in what has happened, then paints.

use super::command::Command;
use super::opening::Opened;
use super::session::Session;
use super::views::{VIEWS, ViewContext};
use super::{compare, fonts, home, shell, tabs, theme, what_if};
use egui::{Context, Key, KeyboardShortcut, Modifiers, Ui};
use std::path::{Path, PathBuf};

/// The app, in a window or without one.
pub struct App {
    session: Session,
    commands: Vec<Command>,
    /// What the window is called.
    title: String,
}

impl App {
    /// The user's app, on a report, on two of them compared or on the home screen.
    pub fn of_user(context: &Context, report: Option<&Path>, compare: Option<&Path>) -> Self {
        let mut app = Self::new(context, Session::of_user());
        context.add_font_provider(std::sync::Arc::new(fonts::SystemFallback));
        // A covered window is painted all the same: some servers report every window as covered.
        context.send_viewport_cmd(egui::ViewportCommand::RequestPaintWhileHidden);
        app.commands.extend(report.map(|path| match compare {
            Some(target) => Command::Compare(path.to_owned(), target.to_owned()),
            None => Command::Open(path.to_owned()),
        }));
        app
    }

    /// An app that remembers nothing, on a report or on the home screen.
    pub fn detached(context: &Context, opened: Option<Opened>) -> Self {
        let mut session = Session::detached();
        if let Some(opened) = opened {
            session.show(opened);
        }
        Self::new(context, session)
    }

    fn new(context: &Context, session: Session) -> Self {
        theme::install(context);
        context.set_theme(session.prefs.theme.preference());
        // Pointing at a bar and turning the wheel zooms the trace, not the window.
        context.options_mut(|options| options.zoom_with_keyboard = true);
        Self { session, commands: Vec::new(), title: String::new() }
    }

    /// Compares the open report with another one.
    pub fn compare(&mut self, target: Opened) {
        let source = self.session.page.as_ref().map(|page| page.opened.clone());
        if let Some(source) = source {
            self.session.show_page(source, Some(target));
        }
    }

    /// Opens or closes the spec of the open report.
    pub fn toggle_what_if(&mut self) {
        self.commands.push(Command::ToggleWhatIf);
    }

    /// Shows a view of the open report.
    pub fn show_view(&mut self, name: &str) {
        let known = VIEWS.iter().find(|view| view.name == name);
        self.commands.extend(known.map(|view| Command::ShowView(view.name)));
    }

    /// What the window knows.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the window knows, to change it.
    pub fn session_mut(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Takes in what has happened and does what was asked for.
    pub fn logic(&mut self, context: &Context) {
        self.session.receive(context);
        self.commands.extend(dropped(context).map(Command::Open));
        for command in std::mem::take(&mut self.commands) {
            self.session.apply(context, command);
        }
        self.session.save();
        let report = self.session.page.as_ref().map(|page| page.title());
        let title = report.map_or_else(|| "tilescope".to_owned(), |r| format!("{r} - tilescope"));
        if title != self.title {
            context.send_viewport_cmd(egui::ViewportCommand::Title(title.clone()));
            self.title = title;
        }
    }

    /// Paints a frame.
    pub fn ui(&mut self, ui: &mut Ui) {
        self.shortcuts(ui.ctx());
        let Self { session, commands, .. } = self;
        tabs::tabs_ui(ui, session, commands);
        if let Some(page) = &mut session.page {
            shell::side_menu_ui(ui, page, &session.prefs, commands);
        }
        what_if::panel_ui(ui, session, commands);
        if let Some(page) = &mut session.page {
            shell::messages_ui(ui, &session.messages, commands);
            let mut context = ViewContext {
                opened: &page.opened,
                selection: &session.selection,
                prefs: &session.prefs,
                workers: &session.workers,
                commands,
            };
            let shown = page.views.iter_mut().find(|(name, _)| *name == page.view);
            if let Some((_, view)) = shown {
                let frame = egui::Frame::new().fill(ui.visuals().panel_fill);
                egui::CentralPanel::default().frame(frame).show(ui, |ui| {
                    match &mut page.compared {
                        Some(compared) => compared.ui(ui, page.view, view.as_mut(), &mut context),
                        None => view.ui(ui, &mut context),
                    }
                });
            }
        } else {
            shell::messages_ui(ui, &session.messages, commands);
            home::home_ui(ui, session, commands);
        }
        shell::help_ui(ui.ctx(), self.session.help, &mut self.commands);
        compare::ask_ui(ui.ctx(), &mut self.session, &mut self.commands);
        shell::progress_ui(ui.ctx(), &self.session, &mut self.commands);
        shell::drop_hint_ui(ui.ctx());
        if !self.commands.is_empty() {
            ui.ctx().request_repaint();
        }
    }

    fn shortcuts(&mut self, context: &Context) {
        let typing = context.text_edit_focused();
        let pressed = |modifiers, key| {
            context.input_mut(|i| i.consume_shortcut(&KeyboardShortcut::new(modifiers, key)))
        };
        if pressed(Modifiers::COMMAND, Key::O) {
            self.commands.push(Command::OpenDialog);
        }
        if pressed(Modifiers::COMMAND, Key::R) || pressed(Modifiers::NONE, Key::F5) {
            self.commands.push(Command::Reload);
        }
        if pressed(Modifiers::COMMAND, Key::W) {
            self.commands.push(Command::CloseReport);
        }
        if pressed(Modifiers::COMMAND, Key::Tab) {
            self.commands.push(Command::NextTab(true));
        }
        if pressed(Modifiers::COMMAND | Modifiers::SHIFT, Key::Tab) {
            self.commands.push(Command::NextTab(false));
        }
        if pressed(Modifiers::COMMAND, Key::D) {
            self.commands.push(Command::AskCompare);
        }
        if pressed(Modifiers::COMMAND, Key::T) {
            self.commands.push(Command::ToggleWhatIf);
        }
        if pressed(Modifiers::COMMAND, Key::B) {
            self.commands.push(Command::ToggleMenu);
        }
        let numbers = [
            Key::Num1,
            Key::Num2,
            Key::Num3,
            Key::Num4,
            Key::Num5,
            Key::Num6,
            Key::Num7,
            Key::Num8,
            Key::Num9,
            Key::Num0,
        ];
        for (view, key) in VIEWS.iter().zip(numbers) {
            if pressed(Modifiers::COMMAND, key) {
                self.commands.push(Command::ShowView(view.name));
            }
        }
        let question = !typing && context.input(|i| i.key_pressed(Key::Questionmark));
        let escape = self.session.help && pressed(Modifiers::NONE, Key::Escape);
        if question || escape || pressed(Modifiers::NONE, Key::F1) {
            self.commands.push(Command::ToggleHelp);
        }
    }
}

/// The file or directory that was dropped on the window.
fn dropped(context: &Context) -> Option<PathBuf> {
    context.input(|i| i.raw.dropped_files.first().map(|file| file.path().to_owned()))
}

impl eframe::App for App {
    fn logic(&mut self, context: &Context, _: &mut eframe::Frame) {
        self.logic(context);
    }

    fn ui(&mut self, ui: &mut Ui, _: &mut eframe::Frame) {
        self.ui(ui);
    }
}
