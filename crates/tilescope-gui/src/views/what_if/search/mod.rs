//! The search for a better spec: `tilescope tune` and `tilescope sweep` are started, monitored and
//! continued in the window, and files of their results are shown.

pub(crate) mod form;
pub(crate) mod found;
mod parallel_plot;
pub(crate) mod sweep_plots;
mod tune_path;

use super::spec_keys::{Cancelled, SpecQueries};
use super::spec_text::with_changes;
use crate::model::command::{AppCommand, CommandQueue};
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::{BackgroundWorkers, Versioned};
use crate::widgets::background_task::BackgroundTask;
use crate::widgets::table::TableState;
use egui::accesskit::Live;
use egui::{Button, Context, Label, ProgressBar, RichText, Ui, vec2};
use form::SearchForm;
use found::{FoundPoints, SearchAnswer, point_words};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tilescope_analysis::insights::SpecChanges;

/// The height of the table of points.
const TABLE: f32 = 280.0;

/// The origin of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SearchOrigin {
    /// The spec of a report.
    Report(PathBuf),
    /// A file of results.
    Results(PathBuf),
}

/// A request to the program.
pub(crate) enum SearchQuestion {
    /// Read a file of results.
    Read(PathBuf),
    Search {
        form: SearchForm,
        spec: SearchStart,
    },
}

/// The outcome of a search.
#[derive(Default)]
pub(crate) struct SearchOutcome {
    /// The results; `None` if nothing was simulated.
    pub found: Option<FoundPoints>,
    /// The error message of the program, if any.
    pub problem: Option<String>,
}

/// The progress of a running search.
pub(crate) struct SearchProgress {
    percent: AtomicU64,
    found: Mutex<Option<FoundPoints>>,
    context: Context,
}

impl SearchProgress {
    fn new(context: &Context) -> Self {
        let percent = AtomicU64::new(0);
        let found = Mutex::new(None);
        Self { percent, found, context: context.clone() }
    }

    /// Sets the completed share of the search.
    pub(crate) fn at(&self, percent: u64) {
        self.percent.store(percent, Ordering::Relaxed);
        self.context.request_repaint();
    }

    /// Sets the points found so far.
    pub(crate) fn found(&self, answer: SearchAnswer) {
        let found = FoundPoints::new(answer);
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        self.context.request_repaint();
    }

    fn take_found(&self) -> Option<FoundPoints> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A running search. Dropping it ends the search.
struct RunningSearch {
    task: BackgroundTask<SearchOutcome>,
    progress: Arc<SearchProgress>,
    cancelled: Cancelled,
}

impl RunningSearch {
    fn start(
        context: &Context,
        queries: SpecQueries,
        question: SearchQuestion,
    ) -> Result<Self, String> {
        let progress = Arc::new(SearchProgress::new(context));
        let cancelled = Cancelled::default();
        let shared_progress = progress.clone();
        let flag = cancelled.clone();
        let task = BackgroundTask::start("search", context, move || {
            (queries.search)(&question, &shared_progress, &flag)
        });
        match task {
            Ok(task) => Ok(Self { task, progress, cancelled }),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for RunningSearch {
    fn drop(&mut self) {
        self.cancelled.store(true, Ordering::SeqCst);
    }
}

/// A spec, and the path for its results: files of this name with their extensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SearchStart {
    /// The text with absolute paths, so that it can be written anywhere.
    pub text: String,
    pub place: PathBuf,
}

/// A search from a spec, or the contents of a file of results.
pub(crate) struct SpecSearch {
    origin: SearchOrigin,
    /// The name of the report or the file.
    name: String,
    /// The start of the next search.
    begin: SearchStart,
    /// The start of the search that yielded the results.
    searched: SearchStart,
    form: SearchForm,
    running: Option<RunningSearch>,
    /// True if a file of results has still to be read.
    reads: bool,
    found: Option<Versioned<FoundPoints>>,
    problem: Option<String>,
    /// True if the user has stopped it.
    stopped: bool,
    /// The selected point, by its changes: indices change as points arrive.
    chosen: Option<SpecChanges>,
    table: TableState,
}

impl SpecSearch {
    /// A search from the spec of a report or from a file of results; `name` is the name of either.
    pub(crate) fn new(origin: SearchOrigin, name: String) -> Self {
        Self {
            origin,
            name,
            begin: SearchStart::default(),
            searched: SearchStart::default(),
            form: SearchForm::default(),
            running: None,
            reads: false,
            found: None,
            problem: None,
            stopped: false,
            chosen: None,
            table: TableState::as_given(),
        }
    }

    /// The origin of the search.
    pub(crate) fn origin(&self) -> &SearchOrigin {
        &self.origin
    }

    /// `Better specs than …`
    pub(crate) fn title(&self) -> String {
        match self.origin {
            SearchOrigin::Report(_) => format!("Search from the spec of {}", self.name),
            SearchOrigin::Results(_) => format!("Results in {}", self.name),
        }
    }

    /// Sets the start of the next search.
    pub(crate) fn begin_with(&mut self, spec: SearchStart) {
        self.begin = spec;
    }

    /// Reads a file of results again when it is opened again.
    pub(crate) fn read_again(&mut self) {
        self.reads = matches!(self.origin, SearchOrigin::Results(_));
    }

    /// The completed share while the search is running.
    pub(crate) fn progress(&self) -> Option<f32> {
        let running = self.running.as_ref()?;
        Some(running.progress.percent.load(Ordering::Relaxed) as f32 / 100.0)
    }

    /// Stops the search; its results stay.
    pub(crate) fn stop(&mut self) {
        self.stopped = self.running.take().is_some();
    }

    /// Receives the output of the program since the last frame.
    pub(crate) fn poll(&mut self) {
        let Some(running) = &self.running else { return };
        let mut found = running.progress.take_found();
        if let Some(ended) = running.task.poll() {
            let ended = ended.unwrap_or_else(|()| SearchOutcome {
                problem: Some("Internal error. Please report this bug.".to_owned()),
                ..SearchOutcome::default()
            });
            self.problem = ended.problem;
            found = ended.found.or(found);
            self.running = None;
        }
        let Some(found) = found else { return };
        if matches!(self.origin, SearchOrigin::Results(_)) {
            found.answer.text().clone_into(&mut self.searched.text);
        }
        self.found = Some(Versioned::new(found));
    }

    fn start(&mut self, context: &Context, queries: SpecQueries) {
        let question = match &self.origin {
            SearchOrigin::Results(file) => SearchQuestion::Read(file.clone()),
            SearchOrigin::Report(_) => {
                SearchQuestion::Search { form: self.form.clone(), spec: self.begin.clone() }
            }
        };
        self.searched.clone_from(&self.begin);
        (self.found, self.problem, self.stopped, self.chosen) = (None, None, false, None);
        match RunningSearch::start(context, queries, question) {
            Ok(running) => self.running = Some(running),
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// Shows the search. `busy` is true while a simulation is running.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        (workers, queries): (&BackgroundWorkers, SpecQueries),
        busy: bool,
        commands: &CommandQueue,
    ) {
        if std::mem::take(&mut self.reads) {
            self.start(ui.ctx(), queries);
        }
        let of_spec = matches!(self.origin, SearchOrigin::Report(_));
        if of_spec {
            ui.add_enabled_ui(self.running.is_none(), |ui| self.form.ui(ui));
            ui.add_space(spacing::S);
        }
        match self.progress() {
            Some(share) => self.running_ui(ui, share, of_spec),
            None if of_spec => self.start_ui(ui, queries),
            None => {}
        }
        self.said_ui(ui);
        let Some(found) = self.found.clone() else { return };
        ui.separator();
        self.chosen_ui(ui, &found, busy, commands);
        ui.add_space(spacing::XS);
        let chosen = self.chosen.as_ref().and_then(|changes| found.place_of(changes));
        let mut clicked = found_ui(ui, &found, chosen);
        ui.add_space(spacing::S);
        ui.label(RichText::new("Points").strong());
        let table = |ui: &mut Ui| {
            let chosen = chosen.as_slice();
            let version = found.version();
            self.table.choose_ui(ui, workers, &found.table, version, "Filter points", chosen)
        };
        let size = vec2(ui.available_width(), TABLE);
        let layout = egui::Layout::top_down(egui::Align::Min);
        clicked = ui.allocate_ui_with_layout(size, layout, table).inner.or(clicked);
        if let Some(point) = clicked.and_then(|at| found.point(at)) {
            self.chosen = Some(point.changes.clone());
        }
    }

    fn start_ui(&mut self, ui: &mut Ui, queries: SpecQueries) {
        ui.horizontal_wrapped(|ui| {
            let hint = "A separate process simulates each point and saves its result";
            let start = ui.add_enabled(self.form.is_complete(), Button::new("Start search"));
            let start = start.on_hover_text(hint);
            let start = start.on_disabled_hover_text("Enter a key and its values first");
            if start.clicked() {
                self.start(ui.ctx(), queries);
            }
            let words = if self.stopped {
                "Stopped. Start again to continue from the finished results."
            } else {
                ""
            };
            ui.weak(words);
        });
    }

    fn running_ui(&mut self, ui: &mut Ui, share: f32, of_spec: bool) {
        ui.horizontal_wrapped(|ui| {
            if !of_spec {
                ui.spinner();
                ui.label("Reading results…");
                return;
            }
            ui.add(ProgressBar::new(share).desired_width(240.0).show_percentage());
            if ui.button("Stop search").clicked() {
                self.stop();
            }
            let words = "You can close this panel: the search continues.";
            ui.weak(words);
        });
    }

    /// The error message of the program, with the position in the typed text.
    fn said_ui(&self, ui: &mut Ui) {
        let palette = ThemePalette::for_ui(ui);
        if let Some(problem) = &self.problem {
            let words = RichText::new(problem).color(palette.error).monospace();
            let id = ui.add(Label::new(words).wrap().selectable(true)).id;
            ui.ctx().accesskit_node_builder(id, |node| node.set_live(Live::Polite));
        }
        if let (SearchOrigin::Report(_), true) = (&self.origin, self.found.is_some()) {
            let file = self.searched.place.with_extension("db");
            let words = format!("Finished results are saved in {}", file.display());
            let words = RichText::new(words).weak().size(text_size::CAPTION);
            ui.add(Label::new(words).truncate().selectable(true))
                .on_hover_text(file.display().to_string());
            if self.searched != self.begin {
                let words = "The spec in What if has changed since. These results belong to the previous \
                     spec.";
                ui.label(RichText::new(words).color(palette.warning));
            }
        }
    }

    /// The selected point, and its buttons.
    fn chosen_ui(&self, ui: &mut Ui, found: &FoundPoints, busy: bool, commands: &CommandQueue) {
        let palette = ThemePalette::for_ui(ui);
        let place = self.chosen.as_ref().and_then(|changes| found.place_of(changes));
        let point = place.and_then(|at| found.point(at));
        let words = match point {
            Some(point) => point_words(point),
            None => "Select a point in a plot or in the table.".to_owned(),
        };
        let colour = if point.is_some() { palette.text } else { palette.weak_text };
        ui.add(Label::new(RichText::new(&words).color(colour)).truncate()).on_hover_text(&words);
        let text = point.map(|point| with_changes(&self.searched.text, &point.changes));
        let text = text.filter(|_| !self.searched.text.is_empty());
        ui.horizontal_wrapped(|ui| {
            let button = |ui: &mut Ui, words: &str, ready: bool| {
                ui.add_enabled(ready && text.is_some(), Button::new(words)).clicked()
            };
            let of_report = matches!(self.origin, SearchOrigin::Report(_));
            if of_report && button(ui, "Try in What if", true) {
                commands.extend(text.clone().map(AppCommand::OpenWhatIfWithText));
                commands.push(AppCommand::CloseSpecSearch);
            }
            if of_report && button(ui, "Simulate and compare", !busy) {
                commands.extend(text.clone().map(AppCommand::OpenWhatIfWithText));
                commands.extend([AppCommand::SimulateVariant, AppCommand::CloseSpecSearch]);
            }
            if button(ui, "Simulate and open", !busy) {
                commands.extend(text.clone().map(AppCommand::SimulateText));
                commands.push(AppCommand::CloseSpecSearch);
            }
        });
    }
}

/// Shows the plots of the results. Returns the clicked point.
fn found_ui(ui: &mut Ui, found: &FoundPoints, chosen: Option<usize>) -> Option<usize> {
    match &found.answer {
        SearchAnswer::Sweep(answer) => {
            sweep_plots::sweep_page_ui(ui, answer, found.scene.as_ref(), chosen)
        }
        SearchAnswer::Tune { answer, others, .. } => {
            tune_path::tune_page_ui(ui, answer, *others, chosen)
        }
    }
}

/// The results as a separate page, for a picture.
pub(crate) fn search_page_ui(ui: &mut Ui, found: &FoundPoints) {
    let title = match &found.answer {
        SearchAnswer::Sweep(answer) => format!("Sweep of {}", answer.spec),
        SearchAnswer::Tune { answer, .. } => format!("Path from {}", answer.spec),
    };
    ui.label(strong(title).size(text_size::TITLE));
    ui.add_space(spacing::S);
    found_ui(ui, found, None);
}
