//! The series view: the figures of many runs, a plot for each figure, and the runs where it
//! changes.

use crate::model::command::{AppCommand, CommandQueue};
use crate::theme::{ThemePalette, spacing, text_size};
use crate::widgets::background_query::{BackgroundWorkers, Versioned};
use crate::widgets::background_task::BackgroundTask;
use crate::widgets::figure::{FigureLook, figure_ui};
use crate::widgets::table::TableState;
use crate::widgets::{choice_ui, error_ui};
use egui::accesskit::Live;
use egui::{Button, Color32, Context, Label, ProgressBar, RichText, TextEdit, Ui, Vec2, vec2};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tilescope_analysis::compare::WorkUnit;
use tilescope_analysis::data_table::{DataTable, TableCell};
use tilescope_analysis::figures::Figure;
use tilescope_analysis::series::{
    FigureChoice, ReportSeries, SeriesFigure, SeriesOptions, SeriesOrder, arrange, find_reports,
    read_reports,
};

/// The height of the table of runs.
const TABLE: f32 = 300.0;

/// The largest width of a plot, and its height.
const PLOT: Vec2 = vec2(520.0, 230.0);
/// The smallest width of a plot.
const LEAST_WIDTH: f32 = 360.0;

/// The largest number of figures with a plot.
const MOST_PLOTS: usize = 12;

/// The largest number of lines about changes and about runs.
const MOST_LINES: usize = 12;

/// The figures shown by default.
const FIRST_FIGURES: &str = "cycles, throughput, max_tile, memory";

/// The progress of reading: the number of finished reports, and of all reports.
#[derive(Default)]
struct ReadingProgress {
    done: AtomicUsize,
    all: AtomicUsize,
    cancelled: AtomicBool,
}

/// The reports being read. Dropping this stops the reading.
struct ReadingSeries {
    task: BackgroundTask<Result<ReportSeries, String>>,
    progress: Arc<ReadingProgress>,
}

impl ReadingSeries {
    fn start(context: &Context, paths: Vec<PathBuf>) -> Result<Self, String> {
        let progress = Arc::new(ReadingProgress::default());
        let shared_progress = progress.clone();
        let repaint = context.clone();
        let read = move || read(&paths, &shared_progress, &repaint);
        let task = BackgroundTask::start("series", context, read).map_err(|e| e.to_string())?;
        Ok(Self { task, progress })
    }

    fn words(&self) -> String {
        let [done, all] =
            [&self.progress.done, &self.progress.all].map(|count| count.load(Ordering::Relaxed));
        match all {
            0 => "Searching for reports…".to_owned(),
            all => format!("Reading {done} of {all} reports…"),
        }
    }

    fn share(&self) -> f32 {
        let all = self.progress.all.load(Ordering::Relaxed).max(1);
        self.progress.done.load(Ordering::Relaxed) as f32 / all as f32
    }
}

impl Drop for ReadingSeries {
    fn drop(&mut self) {
        self.progress.cancelled.store(true, Ordering::Relaxed);
    }
}

fn read(
    paths: &[PathBuf],
    progress: &ReadingProgress,
    context: &Context,
) -> Result<ReportSeries, String> {
    let mut sources = Vec::new();
    for path in paths {
        sources.extend(find_reports(path, paths.len() == 1).map_err(|error| error.to_string())?);
    }
    let order = if paths.len() == 1 { SeriesOrder::Name } else { SeriesOrder::Given };
    arrange(&mut sources, order).map_err(|error| error.to_string())?;
    progress.all.store(sources.len(), Ordering::Relaxed);
    Ok(read_reports(&sources, &FigureChoice::All, |done| {
        progress.done.store(done, Ordering::Relaxed);
        context.request_repaint();
        !progress.cancelled.load(Ordering::Relaxed)
    }))
}

/// The formatted contents of a series, cached for each choice of figures.
struct ShownSeries {
    of: (u64, SeriesOptions, String),
    table: Versioned<Arc<DataTable>>,
    plots: Vec<Figure>,
    /// The number of plots above the limit.
    hidden_plots: usize,
    notes: Vec<String>,
    changes: Vec<String>,
}

impl ShownSeries {
    fn new(series: &ReportSeries, of: (u64, SeriesOptions, String), choice: &FigureChoice) -> Self {
        let options = of.1;
        let chosen = series.with_figures(choice);
        let plots = chosen.figures.iter().take(MOST_PLOTS);
        let plot = |figure: &SeriesFigure| {
            chosen.line_figure(figure, &chosen.trend(figure, options), options, None)
        };
        let plots = plots.map(plot).collect();
        Self {
            of,
            table: Versioned::new(Arc::new(chosen.runs_table(options))),
            plots,
            hidden_plots: chosen.figures.len().saturating_sub(MOST_PLOTS),
            notes: series.notes(options.unit),
            changes: sentences(&chosen.changes_table(options)),
        }
    }
}

/// `execution.total_cycles (per sample) from v3 on: 12,345 to 13,000, +5.31 %`
fn sentences(changes: &DataTable) -> Vec<String> {
    let sentence = |row: &Vec<TableCell>| {
        let words: Vec<String> = row.iter().map(TableCell::text).collect();
        let [figure, run, before, after, share, confirmed] = words.as_slice() else {
            return String::new();
        };
        let doubt = if confirmed == "yes" { "" } else { " (confirmed by one run only)" };
        format!("{figure} from {run} on: {before} to {after}, {share}{doubt}")
    };
    changes.rows.iter().map(sentence).collect()
}

/// A series of reports, and the state of its display.
pub(crate) struct SeriesPanel {
    paths: Vec<PathBuf>,
    reading: Option<ReadingSeries>,
    series: Option<Versioned<ReportSeries>>,
    problem: Option<String>,
    options: SeriesOptions,
    /// The figures as typed.
    figures: String,
    /// The last valid choice of figures.
    choice: FigureChoice,
    figures_problem: Option<String>,
    /// The selected run, if any.
    chosen: Option<usize>,
    table: TableState,
    shown: Option<ShownSeries>,
}

impl SeriesPanel {
    /// Creates a series of the reports in a directory, or of several given ones.
    pub(crate) fn new(paths: Vec<PathBuf>) -> Self {
        Self {
            paths,
            reading: None,
            series: None,
            problem: None,
            options: SeriesOptions::default(),
            figures: FIRST_FIGURES.to_owned(),
            choice: FigureChoice::All,
            figures_problem: None,
            chosen: None,
            table: TableState::as_given(),
            shown: None,
        }
    }

    /// The paths of the series.
    pub(crate) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Reads the reports again.
    pub(crate) fn read_again(&mut self, context: &Context) {
        match ReadingSeries::start(context, self.paths.clone()) {
            Ok(reading) => (self.reading, self.problem) = (Some(reading), None),
            Err(problem) => self.problem = Some(problem),
        }
    }

    /// `Series of nightly`
    pub(crate) fn title(&self) -> String {
        match self.paths.as_slice() {
            [path] => {
                let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
                format!("Series of {name}")
            }
            paths => format!("Series of {} reports", paths.len()),
        }
    }

    /// Receives the reports read since the last frame.
    fn poll(&mut self, pinned: Option<&Path>) {
        let Some(ended) = self.reading.as_ref().and_then(|reading| reading.task.poll()) else {
            return;
        };
        self.reading = None;
        let broken = "Internal error. Please report this bug.".to_owned();
        match ended.unwrap_or(Err(broken)) {
            Ok(series) => {
                let is_pinned = |path: &Path| std::path::absolute(path).ok().as_deref() == pinned;
                let baseline = series.runs.iter().position(|run| is_pinned(&run.path));
                self.options.baseline = baseline.unwrap_or(0);
                (self.chosen, self.shown) = (None, None);
                self.series = Some(Versioned::new(series));
            }
            Err(problem) => (self.problem, self.series) = (Some(problem), None),
        }
    }

    /// Shows the series. `pinned` is the baseline for comparisons.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        pinned: Option<&Path>,
        commands: &CommandQueue,
    ) {
        self.poll(pinned);
        let palette = ThemePalette::for_ui(ui);
        if let Some(reading) = &self.reading {
            let progress = ProgressBar::new(reading.share()).desired_width(240.0);
            ui.add(progress).accessible_name("Reports that are read");
            ui.label(reading.words());
        }
        if let Some(problem) = &self.problem {
            let words = RichText::new(problem).color(palette.error);
            let id = ui.add(Label::new(words).wrap().selectable(true)).id;
            ui.ctx().accesskit_node_builder(id, |node| node.set_live(Live::Polite));
        }
        let Some(series) = self.series.clone() else { return };
        self.options_ui(ui);
        let key = (series.version(), self.options, self.figures.clone());
        if self.shown.as_ref().is_none_or(|shown| shown.of != key) {
            self.choose_figures();
            self.shown = Some(ShownSeries::new(&series, key, &self.choice));
        }
        self.chosen_ui(ui, &series, pinned, commands);
        let Some(shown) = &self.shown else { return };
        let lines = |ui: &mut Ui, lines: &[String], colour: Color32| {
            for line in lines.iter().take(MOST_LINES) {
                let words = RichText::new(line).color(colour).size(text_size::SMALL);
                ui.add(Label::new(words).wrap().selectable(true));
            }
            if lines.len() > MOST_LINES {
                let words = format!("and {} more", lines.len() - MOST_LINES);
                ui.label(RichText::new(words).weak().size(text_size::SMALL));
            }
        };
        lines(ui, &shown.notes, palette.weak_text);
        ui.add_space(spacing::S);
        let clicked = plots_ui(ui, &shown.plots, self.chosen);
        if shown.hidden_plots > 0 {
            let words = format!("{} more figures are in the table.", shown.hidden_plots);
            ui.label(RichText::new(words).weak().size(text_size::SMALL));
        }
        ui.add_space(spacing::S);
        ui.label(RichText::new("Change points").strong());
        if shown.changes.is_empty() {
            drop(ui.label("No figure changes by one percent or more."))
        } else {
            lines(ui, &shown.changes, palette.text)
        }
        ui.add_space(spacing::S);
        ui.label(RichText::new("Runs").strong());
        let (table, version) = (shown.table.clone(), shown.table.version());
        let size = vec2(ui.available_width(), TABLE);
        let layout = egui::Layout::top_down(egui::Align::Min);
        let chosen = self.chosen;
        let state = &mut self.table;
        let picked = ui.allocate_ui_with_layout(size, layout, |ui| {
            let hint = "Filter runs";
            let chosen = chosen.as_slice();
            state.choose_ui(ui, workers, &table, version, hint, chosen)
        });
        self.chosen = picked.inner.or(clicked).or(self.chosen);
        let unread = series.unread.iter().map(|of| format!("{}: {}", of.name, of.problem));
        let unread: Vec<String> = unread.collect();
        if !unread.is_empty() {
            ui.label(RichText::new("Not read").strong());
            lines(ui, &unread, palette.warning);
        }
    }

    /// The choice of figures and of their unit of work.
    fn options_ui(&mut self, ui: &mut Ui) {
        ui.horizontal_wrapped(|ui| {
            ui.weak("Figures");
            let width = (ui.available_width() - 220.0).clamp(160.0, 520.0);
            let edit = TextEdit::singleline(&mut self.figures).desired_width(width);
            ui.add(edit).accessible_name("Figures of runs").on_hover_text(
                "Names or paths of tilescope summary --json, separated by commas; * matches one \
                 part",
            );
            let units = WorkUnit::ALL.map(|unit| (unit, unit.title()));
            if let Some(unit) = choice_ui(ui, "Show per", &units, self.options.unit) {
                self.options.unit = unit;
            }
        });
        if let Some(problem) = &self.figures_problem {
            error_ui(ui, problem);
        }
    }

    /// Parses the typed figures. Invalid input keeps the previous choice.
    fn choose_figures(&mut self) {
        let names = self.figures.split(',').map(str::trim).filter(|name| !name.is_empty());
        match FigureChoice::parse(names) {
            Ok(choice) => (self.choice, self.figures_problem) = (choice, None),
            Err(error) => self.figures_problem = Some(error.to_string()),
        }
    }

    /// The selected run, and its buttons.
    fn chosen_ui(
        &mut self,
        ui: &mut Ui,
        series: &ReportSeries,
        pinned: Option<&Path>,
        commands: &CommandQueue,
    ) {
        let palette = ThemePalette::for_ui(ui);
        let run = self.chosen.and_then(|run| series.runs.get(run));
        let words = match run {
            Some(run) => format!("{}: {}", run.name, run.path.display()),
            None => "Select a run in a plot or in the table.".to_owned(),
        };
        let colour = if run.is_some() { palette.text } else { palette.weak_text };
        ui.add(Label::new(RichText::new(&words).color(colour)).truncate()).on_hover_text(&words);
        let path = run.map(|run| std::path::absolute(&run.path).unwrap_or(run.path.clone()));
        let baseline = series.runs.get(self.options.baseline);
        let baseline =
            baseline.map(|run| std::path::absolute(&run.path).unwrap_or(run.path.clone()));
        ui.horizontal_wrapped(|ui| {
            let button = |ui: &mut Ui, words: &str, ready: bool| {
                ui.add_enabled(ready && path.is_some(), Button::new(words)).clicked()
            };
            if button(ui, "Open run", true) {
                // Without the pinned baseline: the button beside this one compares.
                commands.extend(path.clone().map(AppCommand::OpenAlone));
                commands.push(AppCommand::CloseSeries);
            }
            if button(ui, "Compare with baseline", path != baseline) {
                let both = baseline.clone().zip(path.clone());
                commands.extend(both.map(|(source, target)| AppCommand::Compare(source, target)));
                commands.push(AppCommand::CloseSeries);
            }
            let is_pinned = path.is_some() && path.as_deref() == pinned;
            if !is_pinned && button(ui, "Pin as baseline", true) {
                self.options.baseline = self.chosen.unwrap_or(0);
                commands.push(AppCommand::PinBaseline(path.clone()));
            }
            if is_pinned && button(ui, "Unpin baseline", true) {
                commands.push(AppCommand::PinBaseline(None));
            }
            if ui.button("Reload").clicked() {
                self.read_again(ui.ctx());
            }
        });
    }
}

/// Shows the plots, two side by side if they fit. Returns the clicked run.
fn plots_ui(ui: &mut Ui, plots: &[Figure], chosen: Option<usize>) -> Option<usize> {
    let width = ui.available_width();
    let gap = ui.spacing().item_spacing.x;
    let half = (width - gap) / 2.0;
    let (columns, width) =
        if half >= LEAST_WIDTH { (2, half.min(PLOT.x)) } else { (1, width.min(PLOT.x)) };
    let look = FigureLook { chosen, chooses: true, ..FigureLook::default() };
    let mut clicked = None;
    for row in plots.chunks(columns) {
        ui.horizontal_top(|ui| {
            for plot in row {
                let layout = egui::Layout::top_down(egui::Align::Min);
                ui.allocate_ui_with_layout(vec2(width, PLOT.y), layout, |ui| {
                    ui.set_width(width);
                    ui.set_max_height(PLOT.y);
                    ui.add(
                        Label::new(RichText::new(&plot.title).size(text_size::SMALL)).truncate(),
                    );
                    if plot.is_empty() {
                        let colour = ThemePalette::for_ui(ui).weak_text;
                        ui.label(RichText::new("No run has this figure.").color(colour));
                        return;
                    }
                    clicked = figure_ui(ui, plot, look).or(clicked);
                });
            }
        });
        ui.add_space(spacing::XS);
    }
    clicked
}
