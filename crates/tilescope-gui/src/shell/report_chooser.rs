//! The dialog that chooses a report or a model from known ones or a directory, with a preview of
//! the one that Enter opens.

use crate::model::command::{AppCommand, ChooserPurpose, CommandQueue};
use crate::model::open_report::OpenReport;
use crate::shell::dialog::{MARGIN, dialog_ui, heading_ui};
use crate::shell::session::AppSession;
use crate::shell::spec_queries::SPEC_QUERIES;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, spacing, text_size};
use crate::views::what_if::model_file::{ModelFile, ModelQuestion, nodes_in_words};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use crate::widgets::background_task::BackgroundTask;
use crate::widgets::error_ui;
use crate::widgets::path_input::{
    KnownReports, ListedFiles, PathInput, PathInputTexts, PathOffers, is_model, is_simulated,
    is_spec,
};
use egui::{Button, Context, Label, RichText, Ui, vec2};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tilescope_report::units::{Bytes, Cycles, exact_bytes, seconds};
use tilescope_report::{REPORT_FILE, ReportError, ReportOrigin, holds_report};

/// The largest width of the dialog.
const WIDTH: f32 = 780.0;
/// The width of the preview. In a dialog less than twice as wide it is below the list.
const PREVIEW: f32 = 250.0;

/// The state of the open dialog.
pub(crate) struct ReportChooser {
    pub purpose: ChooserPurpose,
    input: PathInput,
    preview: BackgroundQuery<PathBuf, ReportPreview>,
    model_preview: BackgroundQuery<ModelQuestion, ModelFile>,
    /// The system's dialog, once it was opened, or the reason it cannot be shown.
    system_dialog: Option<Result<BackgroundTask<Option<PathBuf>>, String>>,
    /// True if the dialog has been painted before.
    was_painted: bool,
}

/// The key facts of a report, in a few lines.
struct ReportPreview {
    name: String,
    machine: String,
    /// The length of the run, and in seconds if the clock is known. `None` without a run, and for
    /// reports of other tools, whose steps would have to be read first.
    run: Option<(Cycles, f64)>,
    origin: ReportOrigin,
    file_size: Bytes,
}

impl ReportPreview {
    fn read(path: &Path) -> Result<Self, ReportError> {
        let opened = OpenReport::read(path)?;
        let origin = opened.report.origin();
        let trace = match origin {
            ReportOrigin::Foreign => None,
            _ => opened.report.trace()?,
        };
        let run = trace.map(|trace| {
            let cycles = trace.range().length();
            (cycles, cycles.seconds_at(opened.target.clock))
        });
        Ok(Self {
            name: opened.name(),
            machine: opened.machine(),
            run,
            origin,
            file_size: opened.report.file_size(),
        })
    }

    /// The title and the lines of the preview.
    fn lines(&self) -> (String, Vec<String>) {
        let run = match self.run {
            Some((cycles, time)) if time > 0.0 => format!("{cycles} cycles, {}", seconds(time)),
            Some((cycles, _)) => format!("{cycles} cycles"),
            None => String::new(),
        };
        let origin = match self.origin {
            ReportOrigin::Foreign => "made by another tool".to_owned(),
            _ => String::new(),
        };
        let size = format!("file of {}", exact_bytes(self.file_size.0));
        (self.name.clone(), vec![self.machine.clone(), run, origin, size])
    }
}

impl ReportChooser {
    /// A dialog that lists the given directory, or the working directory.
    pub(crate) fn new(purpose: ChooserPurpose, directory: Option<PathBuf>) -> Self {
        Self {
            purpose,
            input: PathInput::new("report chooser", directory, purpose.listed()),
            preview: BackgroundQuery::default(),
            model_preview: BackgroundQuery::default(),
            system_dialog: None,
            was_painted: false,
        }
    }
}

impl ChooserPurpose {
    fn title(self) -> &'static str {
        match self {
            Self::Open => "Open a report or model",
            Self::Compare => "Compare with",
            Self::Model => "Simulate a model",
            Self::SpecModel => "Model of the spec",
            Self::Series => "Series of a folder",
        }
    }

    fn texts(self) -> PathInputTexts {
        let (label, button) = match self {
            Self::Open => ("Path of the report or model to open", "Open"),
            Self::Compare => ("Path of the report to compare with", "Compare"),
            Self::Model => ("Path of the model to simulate", "Open"),
            Self::SpecModel => ("Path of the model of the spec", "Take"),
            Self::Series => ("Path of the folder of reports", "Go"),
        };
        PathInputTexts { label, button, hint: self.listed().hint() }
    }

    /// The kinds of files that can be chosen.
    fn listed(self) -> ListedFiles {
        match self {
            Self::Open => ListedFiles::ReportsAndModels,
            Self::Compare | Self::Series => ListedFiles::Reports,
            Self::Model | Self::SpecModel => ListedFiles::Models,
        }
    }

    fn command(self, path: PathBuf) -> AppCommand {
        match self {
            Self::Open | Self::Model => AppCommand::Open(path),
            Self::Compare => AppCommand::CompareWith(path),
            Self::SpecModel => AppCommand::SetSpecModel(path),
            Self::Series => AppCommand::ShowSeries(vec![path]),
        }
    }
}

/// Shows the dialog over everything else, while it is open.
pub(crate) fn report_chooser_ui(
    context: &Context,
    session: &mut AppSession,
    commands: &CommandQueue,
) {
    let Some(mut chooser) = session.dialogs_mut().take_chooser() else { return };
    let known = match chooser.purpose {
        // No directory is among the known reports.
        ChooserPurpose::Series => Vec::new(),
        purpose => known(session, purpose.listed()),
    };
    let workers = session.workers().clone();
    let response = dialog_ui(context, "choose a report", (WIDTH, MARGIN), |ui| {
        chooser.ui(ui, known, &workers)
    });
    let closed = response.should_close();
    if closed || response.inner.is_some() {
        commands.push(AppCommand::ChooseReport(chooser.purpose));
    }
    commands.extend(response.inner.map(|path| chooser.purpose.command(path)));
    session.dialogs_mut().put_chooser_back(chooser);
}

impl ReportChooser {
    /// Shows the dialog. Returns the chosen report.
    fn ui(
        &mut self,
        ui: &mut Ui,
        known: Vec<KnownReports>,
        workers: &BackgroundWorkers,
    ) -> Option<PathBuf> {
        heading_ui(ui, self.purpose.title(), "Close the list of reports");
        if !std::mem::replace(&mut self.was_painted, true) {
            self.input.focus();
        }
        let offers = self.input.offers(ui, workers, known);
        let mut taken = self.input.box_ui(ui, self.purpose.texts(), &offers);
        ui.horizontal(|ui| {
            if ui.button("Parent folder").on_hover_text("List the parent folder").clicked() {
                self.input.look_in_parent(ui);
            }
            if self.purpose == ChooserPurpose::Series {
                let hint = "Show the reports in this folder, and up to two levels below it";
                let clicked = ui.button("Show this folder").on_hover_text(hint).clicked();
                if clicked && taken.is_none() {
                    taken = Some(self.input.directory());
                }
            } else {
                taken = taken.take().or(self.system_dialog_ui(ui));
            }
            let hint = "Type letters of a name, or a path. ↑ ↓ and Enter choose.";
            let text = RichText::new(hint).size(text_size::CAPTION);
            ui.add(Label::new(text.weak()).truncate());
        });
        ui.add_space(spacing::S);
        let wide = ui.available_width() >= 2.0 * PREVIEW;
        let room = (ui.ctx().content_rect().height() - 200.0).clamp(80.0, 440.0);
        if wide {
            ui.horizontal_top(|ui| {
                let list = ui.available_width() - PREVIEW - spacing::L;
                ui.vertical(|ui| {
                    ui.set_width(list);
                    ui.set_min_height(room);
                    taken = taken.take().or(self.list_ui(ui, &offers, room));
                });
                ui.add_space(spacing::L);
                ui.vertical(|ui| self.preview_ui(ui, &offers, workers));
            });
        } else {
            taken = taken.or(self.list_ui(ui, &offers, (room - 120.0).max(60.0)));
            ui.allocate_ui(vec2(ui.available_width(), 110.0), |ui| {
                self.preview_ui(ui, &offers, workers);
            });
        }
        taken.map(|path| self.meant(path))
    }

    /// The path that a choice stands for: the report's parent directory, if a directory is chosen.
    fn meant(&self, taken: PathBuf) -> PathBuf {
        let is_report = taken.is_file() || holds_report(&taken);
        if self.purpose == ChooserPurpose::Series && is_report {
            self.input.directory()
        } else {
            taken
        }
    }

    /// The button of the system's dialog. Returns the directory chosen there, once.
    fn system_dialog_ui(&mut self, ui: &mut Ui) -> Option<PathBuf> {
        let hint = "Choose a file with the file dialog of your system";
        let is_open = matches!(self.system_dialog, Some(Ok(_)));
        let button = ui.add_enabled(!is_open, Button::new("System dialog…"));
        if button.on_hover_text(hint).clicked() {
            let title = self.purpose.title();
            let ends = self.purpose.listed().extensions();
            // The dialog may block if no portal runs, so it gets a thread and the list stays
            // usable.
            let started = BackgroundTask::start("dialog", ui.ctx(), move || {
                let dialog = rfd::FileDialog::new().set_title(title);
                dialog.add_filter("Files", ends).pick_file().map(report_of_file)
            });
            self.system_dialog = Some(started.map_err(|error| error.to_string()));
        }
        match self.system_dialog.as_ref()? {
            Err(problem) => {
                ui.colored_label(ThemePalette::for_ui(ui).error, problem);
                None
            }
            Ok(dialog) => {
                let chosen = dialog.poll()?;
                self.system_dialog = None;
                chosen.ok().flatten()
            }
        }
    }

    fn list_ui(&mut self, ui: &mut Ui, offers: &PathOffers, height: f32) -> Option<PathBuf> {
        if offers.is_empty() {
            let words = if offers.is_listed { self.purpose.listed().nothing() } else { "" };
            ui.weak(words);
        }
        self.input.list_ui(ui, offers, height)
    }

    /// The preview of the report or model that Enter opens.
    fn preview_ui(&mut self, ui: &mut Ui, offers: &PathOffers, workers: &BackgroundWorkers) {
        let Some(path) = self.input.highlighted_file(offers).map(Path::to_owned) else { return };
        let found = if is_spec(&path) {
            None
        } else if is_model(&path) {
            let question = ModelQuestion { file: path.clone(), sizes: BTreeMap::new() };
            let query = &mut self.model_preview;
            let state = query.ask_newest(ui.ctx(), workers, &question, SPEC_QUERIES.model);
            let found = state.fresh_only().finished();
            found.map(|found| found.map(|model| model_lines(&path, &model)))
        } else {
            let read_preview = |path: &PathBuf| ReportPreview::read(path);
            let state = self.preview.ask(ui.ctx(), workers, &path, read_preview).fresh_only();
            state.finished().map(|found| found.map(|preview| preview.lines()))
        };
        let has_place = is_simulated(&path) || matches!(found, Some(Ok(_)));
        match found {
            None => {}
            Some(Err(error)) => error_ui(ui, error.to_string()),
            Some(Ok((name, lines))) => {
                ui.add(Label::new(strong(name)).wrap());
                for line in lines.iter().filter(|line| !line.is_empty()) {
                    ui.add(Label::new(line).wrap());
                }
            }
        }
        if has_place {
            let place = RichText::new(path.display().to_string()).weak();
            ui.add(Label::new(place.size(text_size::CAPTION)).wrap());
        }
    }
}

/// The name of an ONNX file, and a summary of its contents.
fn model_lines(path: &Path, model: &ModelFile) -> (String, Vec<String>) {
    let inputs = match model.inputs.len() {
        1 => "1 input".to_owned(),
        count => format!("{count} inputs"),
    };
    let opset = format!("ONNX, opset {}", model.opset);
    let nodes = format!("{}, {inputs}", nodes_in_words(model.nodes));
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    (name, vec![opset, model.producer.clone(), nodes])
}

/// The report directory that contains a file.
fn report_of_file(file: PathBuf) -> PathBuf {
    let is_report = file.file_name().is_some_and(|name| name == REPORT_FILE);
    file.parent().filter(|_| is_report).map_or(file.clone(), Path::to_owned)
}

/// The known reports by source, without the visible one.
fn known(session: &AppSession, listed: ListedFiles) -> Vec<KnownReports> {
    let own = session.page().map(|page| page.opened().absolute_path());
    let mut seen: Vec<PathBuf> = own.into_iter().collect();
    let open = session.workspace().pages().map(|page| page.opened().absolute_path()).collect();
    let recent = session.prefs().recent.iter().map(|recent| recent.path.clone()).collect();
    let demos = session.home().sample_reports().iter().map(|demo| demo.path.clone()).collect();
    let mut groups: Vec<KnownReports> = Vec::new();
    let all: [(&str, Vec<PathBuf>); 3] =
        [("Open", open), ("Recent", recent), ("Demo reports", demos)];
    for (heading, paths) in all {
        let mut fresh = Vec::new();
        for path in paths {
            if !seen.contains(&path) && listed.contains(&path) {
                seen.push(path.clone());
                fresh.push(path);
            }
        }
        groups.push(KnownReports { heading, paths: fresh });
    }
    groups
}
