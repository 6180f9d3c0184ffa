//! All state that outlives a frame and that several views share, and the one function that
//! changes it.

use super::action::Wish;
use super::child::{BundledSpec, Ended, Simulation, bundled_specs};
use super::command::{ChosenStep, Command};
use super::finding::Finder;
use super::keep::{
    History, Link, Notes, Place, Watch, carried, existing, set_view_prefs, view_prefs,
};
use super::opening::{Demo, Opened, Pending, demos, simulated};
use super::overlay::Overlay;
use super::prefs::{Prefs, Store};
use super::saving::Saving;
use super::views::{self, View};
use super::worker::{Asked, Slot, Workers};
use crate::units::{CycleRange, OperationId, ProgramId, VariableId};
use egui::Context;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the user has chosen; shared by all tabs and kept when a report is read again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Selection {
    /// Tiles of the replica, in the order in which they were chosen.
    pub tiles: Vec<u32>,
    /// A step of the trace.
    pub step: Option<ChosenStep>,
    /// Cycles that the trace is to show next; it takes them off once it does.
    pub cycles: Option<CycleRange>,
    /// A node of the compiled program.
    pub program: Option<ProgramId>,
    /// An operation of the model.
    pub operation: Option<OperationId>,
    /// A variable.
    pub variable: Option<VariableId>,
    /// An IPU of the replica.
    pub ipu: Option<u32>,
}

/// The open report and the state of its views.
pub struct ReportPage {
    /// The report.
    pub opened: Opened,
    /// Name of the view that is shown.
    pub view: &'static str,
    /// The views, in the order of the menu.
    pub views: Vec<(&'static str, Box<dyn View>)>,
    /// Places that were looked at.
    pub history: History,
    /// Places that are kept.
    pub notes: Notes,
    /// What is looked for.
    pub finder: Finder,
    /// Notices that the file has changed.
    watch: Option<Watch>,
}

impl ReportPage {
    fn new(opened: Opened, view: &'static str) -> Self {
        let views = views::VIEWS.iter().map(|info| (info.name, (info.create)())).collect();
        let (history, notes) = (History::default(), Notes::default());
        let finder = Finder::default();
        Self { opened, view, views, history, notes, finder, watch: None }
    }

    /// The view that is shown.
    pub fn shown(&mut self) -> Option<&mut Box<dyn View>> {
        let name = self.view;
        self.views.iter_mut().find(|(view, _)| *view == name).map(|(_, view)| view)
    }
}

/// Everything a window knows.
pub struct Session {
    /// What is remembered between starts.
    pub prefs: Prefs,
    store: Store,
    /// The open report; without one, the home screen is shown.
    pub page: Option<ReportPage>,
    /// What the user has chosen.
    pub selection: Selection,
    /// A report being opened.
    pub opening: Option<(PathBuf, Pending<Result<Opened, String>>)>,
    /// Pictures and tables being written.
    pub savings: Vec<Pending<Result<PathBuf, String>>>,
    /// The system's dialog.
    pub dialog: Option<Pending<Option<PathBuf>>>,
    /// A simulation under way.
    pub simulation: Option<Simulation>,
    /// Things to tell the user, oldest first.
    pub messages: Vec<String>,
    /// What lies over the view.
    pub overlay: Option<Overlay>,
    /// What the view that is shown is asked for in the next frame.
    pub wishes: Vec<Wish>,
    /// Path typed on the home screen.
    pub typed_path: String,
    /// Reports that come with the program.
    pub demos: Vec<Demo>,
    /// Specs that come with the program.
    pub specs: Slot<(), Vec<BundledSpec>>,
    /// Which recent reports still exist; asking may take long on disks far away.
    existing: Slot<Vec<PathBuf>, Vec<bool>>,
    /// Counts background work.
    pub workers: Workers,
    /// Whether reports are read again when their files change.
    watches: bool,
    /// Where to go once the report is open.
    asked: Option<Link>,
}

impl Session {
    /// A session that remembers nothing, for pictures and tests.
    pub fn detached() -> Self {
        let (store, prefs) = Store::nowhere();
        Self::new(store, prefs)
    }

    /// The user's session.
    pub fn of_user() -> Self {
        let (store, prefs, message) = Store::open();
        let mut session = Self::new(store, prefs);
        session.messages.extend(message);
        session.demos = demos();
        session.watches = true;
        session
    }

    fn new(store: Store, prefs: Prefs) -> Self {
        Self {
            prefs,
            store,
            page: None,
            selection: Selection::default(),
            opening: None,
            savings: Vec::new(),
            dialog: None,
            simulation: None,
            messages: Vec::new(),
            overlay: None,
            wishes: Vec::new(),
            typed_path: String::new(),
            demos: Vec::new(),
            specs: Slot::default(),
            existing: Slot::default(),
            workers: Workers::default(),
            watches: false,
            asked: None,
        }
    }

    /// Shows a report that is open already.
    pub fn show(&mut self, opened: Opened) {
        let old = self.page.take();
        self.selection = match &old {
            Some(page) => carried(&self.selection, &page.opened.report, &opened),
            None => existing(&self.selection, &opened).0,
        };
        let file = opened.report.path().to_owned();
        let same = old.filter(|page| page.opened.path == opened.path);
        let mut page = ReportPage::new(opened, views::VIEWS[0].name);
        let (notes, message) = Notes::read(&file);
        page.notes = notes;
        self.messages.extend(message);
        if let Some(old) = same {
            page.view = old.view;
            page.history = old.history;
            page.finder.open = old.finder.open;
            page.finder.text = old.finder.text;
            for ((_, fresh), (_, before)) in page.views.iter_mut().zip(&old.views) {
                fresh.restore(&before.state(), &self.selection);
            }
        }
        page.watch = self.watches.then(|| Watch::new(&file));
        self.page = Some(page);
    }

    /// What is looked at.
    pub fn place(&self) -> Option<Place> {
        let page = self.page.as_ref()?;
        let (_, view) = page.views.iter().find(|(name, _)| *name == page.view)?;
        Some(Place {
            view: page.view.to_owned(),
            selection: Selection { cycles: None, ..self.selection.clone() },
            state: view.state(),
            prefs: view_prefs(page.view, &self.prefs),
        })
    }

    /// A link to what is looked at.
    pub fn link(&self) -> Option<Link> {
        Some(Link::new(&self.page.as_ref()?.opened.path, self.place()?))
    }

    /// Shows a place of the open report; what does not exist there is said.
    pub fn go(&mut self, place: &Place) {
        let Some(page) = &mut self.page else { return };
        let Some(info) = views::VIEWS.iter().find(|info| info.name == place.view) else { return };
        page.view = info.name;
        let (selection, gone) = existing(&place.selection, &page.opened);
        self.selection = selection;
        self.messages.extend(gone);
        let mut strange = set_view_prefs(info.name, &place.prefs, &mut self.prefs);
        if let Some(view) = page.shown() {
            strange.extend(view.restore(&place.state, &self.selection));
        }
        if !strange.is_empty() {
            let words = strange.join(", ");
            self.messages.push(format!("{} has no settings like these: {words}", info.title));
        }
    }

    /// Remembers what is looked at, for undo.
    pub fn notice(&mut self, context: &Context) {
        let (time, held) = context.input(|input| (input.time, input.pointer.any_down()));
        let Some(place) = self.place().filter(|_| !held) else { return };
        if let Some(page) = &mut self.page
            && page.history.notice(place, time)
        {
            context.request_repaint_after_secs(0.2);
        }
    }

    fn back(&mut self, context: &Context, forwards: bool) {
        let time = context.input(|input| input.time);
        let Some(page) = &mut self.page else { return };
        let place = if forwards { page.history.redo(time) } else { page.history.undo(time) };
        if let Some(place) = place {
            self.go(&place);
        }
    }

    fn bookmark(&mut self) {
        let Some(link) = self.link() else { return };
        let Some(page) = &mut self.page else { return };
        let name = format!("{} {}", link.place.title(), page.notes.bookmarks.len() + 1);
        page.notes.add(name, &link);
        self.keep_notes();
    }

    fn write(&mut self, context: &Context, saving: Saving) {
        let Some((link, page)) = self.link().zip(self.page.as_ref()) else { return };
        match saving.start(context, page.opened.clone(), page.view, link.to_string()) {
            Ok(pending) => self.savings.push(pending),
            Err(problem) => self.messages.push(problem),
        }
    }

    /// Writes bookmarks.
    fn keep_notes(&mut self) {
        let Some(page) = &mut self.page else { return };
        match page.notes.save() {
            Ok(message) => self.messages.extend(message),
            Err(problem) => self.messages.push(problem),
        }
    }

    /// Takes in what threads and children have done since the last frame.
    pub fn receive(&mut self, context: &Context) {
        let opened = self.opening.as_ref().and_then(|(_, pending)| pending.take());
        if let Some(result) = opened {
            self.opening = None;
            match result {
                Ok(Ok(opened)) => {
                    self.prefs.remember(&opened.path);
                    self.show(opened);
                    if let Some(link) = self.asked.take() {
                        self.go(&link.place);
                    }
                }
                Ok(Err(problem)) => self.messages.push(problem),
                Err(()) => self.messages.push("Opening the report broke down.".to_owned()),
            }
        }
        let messages = &mut self.messages;
        self.savings.retain(|pending| match pending.take() {
            Some(Ok(Ok(path))) => {
                messages.push(format!("Saved {}", path.display()));
                false
            }
            Some(Ok(Err(problem))) => {
                messages.push(problem);
                false
            }
            Some(Err(())) => {
                messages.push("Saving broke down.".to_owned());
                false
            }
            None => true,
        });
        let watch = self.page.as_mut().and_then(|page| page.watch.as_mut());
        if watch.is_some_and(|watch| watch.has_changed(context)) && self.opening.is_none() {
            self.reload(context);
        }
        if let Some(result) = self.dialog.as_ref().and_then(Pending::take) {
            self.dialog = None;
            if let Ok(Some(path)) = result {
                self.open(context, path);
            }
        }
        match self.simulation.as_ref().and_then(Simulation::ended) {
            Some(Ended::Done(path)) => {
                self.simulation = None;
                self.open(context, path);
            }
            Some(Ended::Failed(words)) => {
                self.simulation = None;
                self.messages.push(format!("The simulation failed.\n{words}"));
            }
            Some(Ended::Cancelled) => self.simulation = None,
            None => {}
        }
    }

    /// Does what the user asked for.
    pub fn apply(&mut self, context: &Context, command: Command) {
        match command {
            Command::Open(path) => self.open(context, path),
            Command::OpenDialog => self.open_dialog(context),
            Command::Reload => self.reload(context),
            Command::Undo => self.back(context, false),
            Command::Redo => self.back(context, true),
            Command::CopyLink => {
                if let Some(link) = self.link() {
                    context.copy_text(link.to_string());
                }
            }
            Command::GoTo(link) => match link.parse::<Link>() {
                Ok(link) => self.follow(context, link),
                Err(problem) => self.messages.push(problem.to_string()),
            },
            Command::Find => {
                if let Some(page) = &mut self.page {
                    page.finder.start();
                }
            }
            Command::NextFound(by) => {
                if let Some(page) = &mut self.page {
                    page.finder.step(by);
                }
            }
            Command::Save(saving) => self.write(context, saving),
            Command::AddBookmark => self.bookmark(),
            Command::SetBookmarks(bookmarks) => {
                if let Some(page) = &mut self.page {
                    page.notes.bookmarks = bookmarks;
                    self.keep_notes();
                }
            }
            Command::CloseReport => self.page = None,
            Command::ShowView(name) => {
                if let Some(page) = &mut self.page {
                    page.view = name;
                }
            }
            Command::SetTheme(theme) => {
                self.prefs.theme = theme;
                context.set_theme(theme.preference());
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
            Command::SelectTiles(tiles) => self.selection.tiles = tiles,
            Command::SelectStep(step) => self.selection.step = step,
            Command::ShowCycles(cycles) => self.selection.cycles = cycles,
            Command::SelectProgram(program) => self.selection.program = program,
            Command::SelectOperation(operation) => self.selection.operation = operation,
            Command::SelectVariable(variable) => self.selection.variable = variable,
            Command::SelectIpu(ipu) => self.selection.ipu = ipu,
            Command::SetTracePrefs(prefs) => self.prefs.trace = prefs,
            Command::SetMemoryPrefs(prefs) => self.prefs.memory = prefs,
            Command::SetLivenessPrefs(prefs) => self.prefs.liveness = prefs,
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

    /// Keeps preferences that have changed.
    pub fn save(&mut self) {
        let message = self.store.save(&self.prefs);
        self.messages.extend(message);
    }

    fn reload(&mut self, context: &Context) {
        if let Some(path) = self.page.as_ref().map(|page| page.opened.path.clone()) {
            self.open(context, path);
        }
    }

    /// Goes to a place, in another report if it is there.
    fn follow(&mut self, context: &Context, link: Link) {
        let here = self.page.as_ref().map(|page| &page.opened.path);
        let here = here.and_then(|path| std::path::absolute(path).ok());
        if link.report.as_os_str().is_empty() || here.as_ref() == Some(&link.report) {
            self.go(&link.place);
        } else {
            let path = link.report.clone();
            self.asked = Some(link);
            self.start_opening(context, path);
        }
    }

    /// Opens a report, and goes to a place in it whatever report the link was made in.
    pub fn open_at(&mut self, context: &Context, path: PathBuf, link: Link) {
        self.asked = Some(link);
        self.start_opening(context, path);
    }

    fn open(&mut self, context: &Context, path: PathBuf) {
        if path.to_string_lossy().starts_with("tilescope:") {
            return self.apply(context, Command::GoTo(path.to_string_lossy().into_owned()));
        }
        self.asked = None;
        self.start_opening(context, path);
    }

    fn start_opening(&mut self, context: &Context, path: PathBuf) {
        let asked = path.clone();
        match Pending::start("open", context, move || Opened::read(&asked)) {
            Ok(pending) => self.opening = Some((path, pending)),
            Err(problem) => self.messages.push(problem),
        }
    }

    fn open_dialog(&mut self, context: &Context) {
        if self.dialog.is_some() {
            return;
        }
        // The dialog may hang where there is no portal: it gets a thread, and a path can be typed.
        let pending = Pending::start("dialog", context, || {
            rfd::FileDialog::new().set_title("Open a report directory").pick_folder()
        });
        match pending {
            Ok(pending) => self.dialog = Some(pending),
            Err(problem) => self.messages.push(problem),
        }
    }

    fn simulate(&mut self, context: &Context, spec: &str) {
        if self.simulation.is_some() {
            self.messages.push("A simulation is running already.".to_owned());
            return;
        }
        match Simulation::start(spec, simulated(spec), context) {
            Ok(simulation) => self.simulation = Some(simulation),
            Err(problem) => self.messages.push(problem),
        }
    }

    /// Asks for the list of bundled specs.
    pub fn bundled(&mut self, context: &Context) -> &[BundledSpec] {
        let workers = self.workers.clone();
        let asked = self.specs.ask(context, &workers, &(), |()| bundled_specs());
        asked.answer().map_or(&[], Vec::as_slice)
    }

    /// For each recent report, whether it still exists; yes until the opposite is known.
    pub fn recent_exist(&mut self, context: &Context) -> Vec<bool> {
        let paths: Vec<PathBuf> =
            self.prefs.recent.iter().map(|recent| recent.path.clone()).collect();
        let workers = self.workers.clone();
        let question = |paths: &Vec<PathBuf>| paths.iter().map(|path| path.exists()).collect();
        match self.existing.ask(context, &workers, &paths, question) {
            Asked::Fresh(known) => known.clone(),
            Asked::Stale(_) | Asked::Waiting | Asked::Failed => vec![true; paths.len()],
        }
    }

    /// The path a report is being opened from.
    pub fn opening_path(&self) -> Option<&Path> {
        self.opening.as_ref().map(|(path, _)| path.as_path())
    }
}

fn toggle(list: &mut Vec<String>, title: &str) {
    match list.iter().position(|known| known == title) {
        Some(at) => drop(list.remove(at)),
        None => list.push(title.to_owned()),
    }
}
