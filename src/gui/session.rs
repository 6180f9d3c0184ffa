//! All state that outlives a frame and that several views share, and the one function that
//! changes it.

use super::action::Wish;
use super::child::{BundledSpec, Ended, Simulation, bundled_specs};
use super::command::{ChosenStep, Command};
use super::compare::Compared;
use super::finding::Finder;
use super::keep::{History, Link, Notes, Watch};
use super::measuring::selection_query;
use super::opening::{Demo, Opened, Pending, demos, simulated};
use super::overlay::Overlay;
use super::path_box::PathBox;
use super::prefs::{Prefs, Store};
use super::saving::Saved;
use super::tabs::Tabs;
use super::views::{self, View};
use super::what_if::{self, WhatIf};
use super::worker::{Asked, Slot, Workers};
use crate::report::Target;
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

impl Selection {
    /// What is left of it in a report that was just opened. Ids of another report mean other
    /// things; tiles and IPUs mean the same where they exist.
    pub(super) fn kept(self, target: &Target) -> Self {
        let mut tiles = self.tiles;
        tiles.retain(|tile| *tile < target.tiles_per_replica());
        let ipu = self.ipu.filter(|ipu| *ipu < target.ipus_per_replica);
        Self { tiles, ipu, ..Self::default() }
    }

    /// Chooses what a command says; others say nothing about what is chosen.
    pub(super) fn choose(&mut self, command: Command) {
        match command {
            Command::SelectTiles(tiles) => self.tiles = tiles,
            Command::SelectStep(step) => self.step = step,
            Command::ShowCycles(cycles) => self.cycles = cycles,
            Command::SelectProgram(program) => self.program = program,
            Command::SelectOperation(operation) => self.operation = operation,
            Command::SelectVariable(variable) => self.variable = variable,
            Command::SelectIpu(ipu) => self.ipu = ipu,
            _ => {}
        }
    }
}

/// The open report and the state of its views.
pub struct ReportPage {
    /// The report.
    pub opened: Opened,
    /// Name of the view that is shown.
    pub view: &'static str,
    /// The views, in the order of the menu.
    pub views: Vec<(&'static str, Box<dyn View>)>,
    /// The report it is compared with.
    pub compared: Option<Box<Compared>>,
    /// Places that were looked at.
    pub history: History,
    /// Places that are kept.
    pub notes: Notes,
    /// What is looked for.
    pub finder: Finder,
    /// Notice that a file has changed.
    pub(super) watches: Vec<Watch>,
}

impl ReportPage {
    pub(super) fn new(opened: Opened, view: &'static str) -> Self {
        let views = views::VIEWS.iter().map(|info| (info.name, (info.create)())).collect();
        let (history, notes) = (History::default(), Notes::default());
        let (finder, compared, watches) = (Finder::default(), None, Vec::new());
        Self { opened, view, views, compared, history, notes, finder, watches }
    }

    /// The view that is shown.
    pub fn shown(&mut self) -> Option<&mut Box<dyn View>> {
        let name = self.view;
        self.views.iter_mut().find(|(view, _)| *view == name).map(|(_, view)| view)
    }
}

/// Two reports that are read to be compared.
type PendingPair = Pending<Result<(Opened, Opened), String>>;

/// Everything a window knows.
pub struct Session {
    /// What is remembered between starts.
    pub prefs: Prefs,
    store: Store,
    /// The open report that is shown; without one, that is the home screen.
    pub page: Option<ReportPage>,
    /// What the user has chosen.
    pub selection: Selection,
    /// The other reports that are open.
    pub tabs: Tabs,
    /// Reports of the home screen that are ticked for a comparison.
    pub ticked: Vec<PathBuf>,
    /// The path that is typed where the window asks what to compare with.
    pub asking_compare: Option<String>,
    /// The spec of a report that is being changed.
    pub what_if: Option<Box<WhatIf>>,
    /// Those of other reports.
    pub(super) other_what_ifs: Vec<WhatIf>,
    /// Whether it is shown.
    pub what_if_open: bool,
    /// Where reports of changed specs are written.
    pub(super) variants_in: PathBuf,
    /// Two reports being opened to be compared.
    opening_both: Option<(PathBuf, PathBuf, PendingPair)>,
    /// A report being opened.
    pub opening: Option<(PathBuf, Pending<Result<Opened, String>>)>,
    /// Pictures and tables being written.
    pub savings: Vec<Pending<Saved>>,
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
    pub typed_path: PathBox,
    /// Reports that come with the program.
    pub demos: Vec<Demo>,
    /// Specs that come with the program.
    pub specs: Slot<(), Vec<BundledSpec>>,
    /// Which recent reports still exist; asking may take long on disks far away.
    existing: Slot<Vec<PathBuf>, Vec<bool>>,
    /// Counts background work.
    pub workers: Workers,
    /// Whether reports are read again when their files change.
    pub watches: bool,
    /// Where to go once the report is open.
    pub(super) asked: Option<Link>,
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
        session.variants_in = what_if::user_directory();
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
            tabs: Tabs::default(),
            ticked: Vec::new(),
            asking_compare: None,
            what_if: None,
            other_what_ifs: Vec::new(),
            what_if_open: false,
            variants_in: what_if::passing_directory(),
            opening_both: None,
            opening: None,
            savings: Vec::new(),
            dialog: None,
            simulation: None,
            messages: Vec::new(),
            overlay: None,
            wishes: Vec::new(),
            typed_path: PathBox::default(),
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
        self.show_page(opened, None);
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
        self.receive_saved();
        self.reload_if_changed(context);
        let both = self.opening_both.as_ref().and_then(|(_, _, pending)| pending.take());
        if let Some(result) = both {
            self.opening_both = None;
            match result {
                Ok(Ok((source, target))) => {
                    self.prefs.remember_comparison(&source.path, &target.path);
                    self.show_page(source, Some(target));
                    if let Some(link) = self.asked.take() {
                        self.go(&link.place);
                    }
                }
                Ok(Err(problem)) => self.messages.push(problem),
                Err(()) => self.messages.push("Opening the reports broke down.".to_owned()),
            }
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
                let base = self.what_ifs().find_map(|what_if| what_if.finished(&path));
                match base {
                    Some(base) => self.compare(context, base, path),
                    None => self.open(context, path),
                }
            }
            Some(Ended::Failed(words)) => {
                self.simulation = None;
                self.what_ifs().for_each(WhatIf::stopped);
                self.messages.push(format!("The simulation failed.\n{words}"));
            }
            Some(Ended::Cancelled) => {
                self.simulation = None;
                self.what_ifs().for_each(WhatIf::stopped);
            }
            None => {}
        }
    }

    /// Does what the user asked for.
    pub fn apply(&mut self, context: &Context, command: Command) {
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
                Err(problem) => self.messages.push(problem.to_string()),
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

    /// Keeps preferences that have changed.
    pub fn save(&mut self) {
        let message = self.store.save(&self.prefs);
        self.messages.extend(message);
    }

    pub(super) fn open(&mut self, context: &Context, path: PathBuf) {
        if path.to_string_lossy().starts_with("tilescope:") {
            return self.apply(context, Command::GoTo(path.to_string_lossy().into_owned()));
        }
        self.asked = None;
        self.start_opening(context, path);
    }

    pub(super) fn start_opening(&mut self, context: &Context, path: PathBuf) {
        let asked = path.clone();
        match Pending::start("open", context, move || Opened::read(&asked)) {
            Ok(pending) => self.opening = Some((path, pending)),
            Err(problem) => self.messages.push(problem),
        }
    }

    /// Reads what is shown again: a report, or both of a comparison.
    pub(super) fn reload(&mut self, context: &Context) {
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

    pub(super) fn compare(&mut self, context: &Context, source: PathBuf, target: PathBuf) {
        self.asked = None;
        self.start_comparing(context, source, target);
    }

    pub(super) fn start_comparing(&mut self, context: &Context, source: PathBuf, target: PathBuf) {
        let (a, b) = (source.clone(), target.clone());
        let pending =
            Pending::start("open two", context, move || Ok((Opened::read(&a)?, Opened::read(&b)?)));
        match pending {
            Ok(pending) => self.opening_both = Some((source, target, pending)),
            Err(problem) => self.messages.push(problem),
        }
        self.ticked.clear();
    }

    fn swap_sides(&mut self) {
        let Some(page) = &mut self.page else { return };
        let Some(compared) = page.compared.take() else { return };
        let (source, target) = (page.opened.clone(), compared.target.clone());
        self.prefs.remember_comparison(&target.path, &source.path);
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

    /// For how long a report is being opened.
    pub fn opening_for(&self) -> Option<std::time::Duration> {
        let both = self.opening_both.as_ref().map(|(_, _, pending)| pending.elapsed());
        self.opening.as_ref().map(|(_, pending)| pending.elapsed()).or(both)
    }

    /// The path a report is being opened from.
    pub fn opening_path(&self) -> Option<&Path> {
        let both = self.opening_both.as_ref().map(|(source, _, _)| source.as_path());
        self.opening.as_ref().map(|(path, _)| path.as_path()).or(both)
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
