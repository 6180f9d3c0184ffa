//! All state that outlives a frame and that several views share, and the one function that
//! changes it.

use super::action::Wish;
use super::child::{BundledSpec, Ended, Simulation, bundled_specs};
use super::command::{ChosenStep, Command};
use super::opening::{Demo, Opened, Pending, demos, simulated};
use super::overlay::Overlay;
use super::prefs::{Prefs, Store};
use super::views::{self, View};
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
    fn kept(self, target: &Target) -> Self {
        let mut tiles = self.tiles;
        tiles.retain(|tile| *tile < target.tiles_per_replica());
        let ipu = self.ipu.filter(|ipu| *ipu < target.ipus_per_replica);
        Self { tiles, ipu, ..Self::default() }
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
}

impl ReportPage {
    fn new(opened: Opened, view: &'static str) -> Self {
        let views = views::VIEWS.iter().map(|info| (info.name, (info.create)())).collect();
        Self { opened, view, views }
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
        session
    }

    fn new(store: Store, prefs: Prefs) -> Self {
        Self {
            prefs,
            store,
            page: None,
            selection: Selection::default(),
            opening: None,
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
        }
    }

    /// Shows a report that is open already.
    pub fn show(&mut self, opened: Opened) {
        let same = self.page.take().filter(|page| page.opened.path == opened.path);
        let view = same.map_or(views::VIEWS[0].name, |page| page.view);
        self.selection = std::mem::take(&mut self.selection).kept(&opened.target);
        self.page = Some(ReportPage::new(opened, view));
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
                }
                Ok(Err(problem)) => self.messages.push(problem),
                Err(()) => self.messages.push("Opening the report broke down.".to_owned()),
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
            Command::Reload => {
                if let Some(path) = self.page.as_ref().map(|page| page.opened.path.clone()) {
                    self.open(context, path);
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

    fn open(&mut self, context: &Context, path: PathBuf) {
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
