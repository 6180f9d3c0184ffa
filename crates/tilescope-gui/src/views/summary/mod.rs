//! The summary view: machine, graph, memory, throughput, options, spec and files, block by block.

mod confidence;
mod critical_path;
mod files;
mod headline;

pub(crate) use headline::facts_ui;
mod host;
mod instances;
mod replicas;
mod running_costs;

use super::{ReportView, ViewContext, ViewDescriptor};
use crate::model::command::AppCommand;
use crate::model::mechanism_page::MechanismPage;
use crate::model::open_report::OpenReport;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::mechanism_links::mechanism_links_ui;
use crate::views::what_if::spec_text::values;
use crate::widgets::background_query::BackgroundQuery;
use crate::widgets::icons::Icon;
use crate::widgets::query_state::QueryTexts;
use crate::widgets::{focus_ui, in_shortest_column, search_ui};
use egui::accesskit::Role;
use egui::{
    Align2, CornerRadius, FontId, Frame, Grid, Label, Margin, RichText, ScrollArea, Sense, Stroke,
    Ui, WidgetInfo, vec2,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::SystemTime;
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::json::{self, JsonLine};
use tilescope_analysis::replicas::{ReplicaOverview, replicas};
use tilescope_analysis::summary::{ReportSummary, summary};
use tilescope_report::units::{Hertz, grouped, seconds};
use tilescope_report::{BatchingConfig, Report, ReportError, ReportPart, SidecarFile, Target};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::Summary,
    help: include_str!("../../../../../assets/help/summary.md"),
    icon: Icon::List,
    settings: &[],
    create: || Box::<SummaryView>::default(),
};

/// The data of the page.
struct SummaryPageData {
    summary: ReportSummary,
    replicas: ReplicaOverview,
    batching: Option<BatchingConfig>,
    options: Vec<(String, String)>,
    notes: Vec<String>,
    warnings: Vec<String>,
    spec: Option<String>,
    /// The help pages on the mechanisms that the spec sets.
    mechanisms: Vec<MechanismPage>,
    files: Vec<SidecarFile>,
    /// The time at which the report was written.
    written: Option<SystemTime>,
    /// The metadata of applications and frameworks, or the error from reading it.
    trees: Vec<(&'static str, Result<Vec<JsonLine>, SidecarJsonError>)>,
    meta: Vec<(String, String)>,
}

const TEXTS: QueryTexts<'static> =
    QueryTexts { waiting: "Reading the report…", failed: "The summary cannot be computed" };

/// The files whose contents are shown if they exist.
const JSON_FILES: [&str; 2] = ["app.json", "framework.json"];

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct SummaryView {
    #[serde(skip)]
    facts: BackgroundQuery<(), SummaryPageData>,
    filter: Option<String>,
}

fn facts(report: &Report) -> Result<SummaryPageData, ReportError> {
    Ok(SummaryPageData {
        summary: summary(report)?,
        replicas: replicas(report)?,
        batching: report.batching()?,
        options: report.options()?,
        notes: report.notes()?,
        warnings: report.warnings(),
        spec: report.spec().map(str::to_owned),
        mechanisms: MechanismPage::of_spec(&values(report.spec().unwrap_or_default())),
        files: report.sidecar_files(),
        written: report.modified(),
        trees: JSON_FILES
            .into_iter()
            .filter_map(|name| Some((name, tree(report, name)?)))
            .collect(),
        meta: report.meta().iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
    })
}

/// A JSON file beside the report, line by line; `None` if it does not exist.
fn tree(report: &Report, name: &str) -> Option<Result<Vec<JsonLine>, SidecarJsonError>> {
    match report.sidecar_text(name) {
        Ok(text) => Some(json::lines(&text?).map_err(SidecarJsonError::from)),
        Err(error) => Some(Err(error.into())),
    }
}

/// An error from showing a JSON file beside the report.
#[derive(Debug, thiserror::Error)]
enum SidecarJsonError {
    #[error(transparent)]
    Read(#[from] ReportError),
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

impl ReportView for SummaryView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let report = context.opened.report.clone();
        let facts = self.facts.ask(ui.ctx(), context.workers, &(), move |()| facts(&report));
        let filter = self.filter.get_or_insert_with(|| context.prefs.option_filter.clone());
        facts.show(ui, TEXTS, |ui, facts| {
            ScrollArea::vertical().auto_shrink(false).show(ui, |ui| {
                Frame::new().inner_margin(Margin::symmetric(24, 18)).show(ui, |ui| {
                    ui.set_width(ui.available_width().min(MOST_COLUMNS as f32 * WIDEST_COLUMN));
                    page_ui(ui, context, facts, filter);
                });
            });
        });
    }
}

fn page_ui(ui: &mut Ui, context: &ViewContext<'_>, facts: &SummaryPageData, filter: &mut String) {
    ui.label(strong("Program information").size(text_size::TITLE));
    ui.add_space(spacing::M);
    headline::headline_ui(ui, context.opened, facts);
    ui.add_space(spacing::M);
    let columns = ((ui.available_width() / COLUMN) as usize).clamp(1, MOST_COLUMNS);
    ui.spacing_mut().item_spacing.x = spacing::XXL;
    ui.columns(columns, |columns| {
        columns.iter_mut().for_each(|column| column.spacing_mut().item_spacing.x = spacing::M);
        let mut blocks = SummaryBlocks { context };
        let parts: [BlockPainter<'_, '_>; 8] = [
            SummaryBlocks::target_ui,
            SummaryBlocks::batching_ui,
            SummaryBlocks::model_ui,
            SummaryBlocks::graph_ui,
            SummaryBlocks::critical_path_ui,
            SummaryBlocks::host_ui,
            SummaryBlocks::replicas_ui,
            SummaryBlocks::notes_ui,
        ];
        for part in parts {
            in_shortest_column(columns, |ui| part(&mut blocks, ui, facts));
        }
        in_shortest_column(columns, |ui| {
            blocks.ui(ui, "Options", |ui, context| options_ui(ui, context, facts, filter));
        });
        in_shortest_column(columns, |ui| blocks.inputs_ui(ui, facts));
    });
    // Paths need the width of the page.
    SummaryBlocks { context }.files_ui(ui, facts);
}

/// Paints one or more blocks below each other.
type BlockPainter<'a, 'b> = fn(&mut SummaryBlocks<'a, 'b>, &mut Ui, &SummaryPageData);

/// Least and greatest width of a column of blocks, and how many there are at most.
const COLUMN: f32 = 500.0;
const WIDEST_COLUMN: f32 = 760.0;
const MOST_COLUMNS: usize = 4;

/// The blocks, which can be folded; the folding is stored.
struct SummaryBlocks<'a, 'b> {
    context: &'a ViewContext<'b>,
}

impl<'b> SummaryBlocks<'_, 'b> {
    fn target_ui(&mut self, ui: &mut Ui, _: &SummaryPageData) {
        let opened = self.context.opened;
        self.ui(ui, "Target", |ui, _| target_ui(ui, opened));
    }

    fn graph_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        self.ui(ui, "Graph", |ui, _| graph_ui(ui, facts));
    }

    fn batching_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        self.ui(ui, "Batching and throughput", |ui, _| batching_ui(ui, facts));
    }

    fn critical_path_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        self.ui(ui, "Critical path", |ui, _| critical_path::critical_path_ui(ui, facts));
    }

    fn host_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        self.ui(ui, "Host", |ui, _| host::host_ui(ui, facts));
        if facts.summary.execution.is_some() {
            self.ui(ui, "Energy and cost", |ui, _| running_costs::running_costs_ui(ui, facts));
        }
    }

    fn replicas_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        let target = &facts.replicas.target;
        if target.replicas > 1 || target.ipus_per_replica > 1 {
            self.ui(ui, "Replicas and sync groups", |ui, _| {
                replicas::replicas_ui(ui, &facts.replicas);
            });
        }
    }

    fn notes_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        if !facts.notes.is_empty() || !facts.warnings.is_empty() {
            self.ui(ui, "Notes", |ui, _| notes_ui(ui, facts));
        }
    }

    /// The origin of the report, and the files beside it.
    fn inputs_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        if let Some(spec) = &facts.spec {
            self.ui(ui, "Spec", |ui, context| {
                spec_ui(ui, spec);
                mechanism_links_ui(ui, context.commands, &facts.mechanisms);
            });
        }
        for (name, lines) in &facts.trees {
            self.ui(ui, name, |ui, _| tree_ui(ui, lines));
        }
    }

    /// The file of an imported model.
    fn model_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        if let Some(model) = &facts.summary.model {
            self.ui(ui, "Imported model", |ui, _| {
                let rows = model.rows();
                let rows: Vec<SummaryFactRow> =
                    rows.iter().map(|(name, text)| row(name, text)).collect();
                rows_ui(ui, "model", &rows);
            });
        }
    }

    fn files_ui(&mut self, ui: &mut Ui, facts: &SummaryPageData) {
        let opened = self.context.opened;
        self.ui(ui, "Report files", |ui, _| files::files_ui(ui, opened, facts));
    }

    fn ui(
        &mut self,
        ui: &mut Ui,
        title: &'static str,
        contents: impl FnOnce(&mut Ui, &ViewContext<'b>),
    ) {
        let palette = ThemePalette::for_ui(ui);
        let folded = self.context.prefs.folded_blocks.iter().any(|block| block == title);
        ui.add_space(spacing::M);
        let (rect, response) =
            ui.allocate_exact_size(vec2(ui.available_width(), 28.0), Sense::click());
        response
            .widget_info(|| WidgetInfo::selected(Role::DisclosureTriangle, true, !folded, title));
        let colour = if response.hovered() { palette.accent } else { palette.text };
        let font = FontId::new(text_size::SUBHEADING, crate::theme::fonts::strong_family());
        let at = rect.left_center() + vec2(20.0, 0.0);
        ui.painter().text(at, Align2::LEFT_CENTER, title, font, colour);
        triangle(ui, rect.left_center() + vec2(7.0, 0.0), folded, colour);
        let line = Stroke::new(1.0, palette.rule);
        ui.painter().hline(rect.x_range(), rect.bottom() - 0.5, line);
        focus_ui(ui, &response, rect);
        if response.clicked() {
            self.context.commands.push(AppCommand::ToggleBlock(title));
        }
        if !folded {
            ui.add_space(spacing::XS);
            ui.push_id(title, |ui| contents(ui, self.context));
            mechanism_links_ui(ui, self.context.commands, MechanismPage::of_block(title));
            ui.add_space(spacing::S);
        }
    }
}

fn triangle(ui: &Ui, centre: egui::Pos2, folded: bool, colour: egui::Color32) {
    let points = if folded {
        [vec2(-3.0, -5.0), vec2(4.0, 0.0), vec2(-3.0, 5.0)]
    } else {
        [vec2(-5.0, -3.0), vec2(5.0, -3.0), vec2(0.0, 4.0)]
    };
    let points = points.into_iter().map(|offset| centre + offset).collect();
    ui.painter().add(egui::Shape::convex_polygon(points, colour, Stroke::NONE));
}

/// The length up to which a name is never truncated, in characters.
const LONGEST_NAME: usize = 48;

/// A grid with names on the left and values on the right.
fn rows_ui(ui: &mut Ui, id: &str, rows: &[SummaryFactRow]) {
    Grid::new(id)
        .num_columns(2)
        .min_col_width(190.0)
        .min_row_height(18.0)
        .spacing(vec2(18.0, 6.0))
        .show(ui, |ui| {
            for SummaryFactRow { name, value, formula } in rows {
                let label = Label::new(RichText::new(name).weak());
                let short = name.chars().count() <= LONGEST_NAME;
                ui.add(if short { label.extend() } else { label.truncate() });
                let value = ui.add(Label::new(value).wrap().selectable(true));
                if !formula.is_empty() {
                    value.on_hover_text(&**formula);
                }
                ui.end_row();
            }
        });
}

struct SummaryFactRow {
    name: String,
    value: String,
    /// The formula of the value; empty for values read from the report.
    formula: Cow<'static, str>,
}

fn row(name: &str, value: impl ToString) -> SummaryFactRow {
    derived(name, value, "")
}

fn derived(name: &str, value: impl ToString, formula: &'static str) -> SummaryFactRow {
    SummaryFactRow { name: name.to_owned(), value: value.to_string(), formula: formula.into() }
}

/// A number that reports of other tools may lack.
fn known(value: u64, text: impl ToString) -> String {
    if value == 0 { "not recorded".to_owned() } else { text.to_string() }
}

fn target_ui(ui: &mut Ui, opened: &OpenReport) {
    let target = &opened.target;
    let numbers = numbers(ui);
    let kind = match target.kind {
        tilescope_report::TargetKind::Ipu => "IPU",
        tilescope_report::TargetKind::IpuModel => "IPU Model",
    };
    let tiles = u64::from(target.tiles_per_ipu);
    let ipus = u64::from(target.num_ipus);
    let bytes = target.bytes_per_tile.0;
    let architecture = match target.architecture.as_str() {
        "" => "not recorded",
        architecture => architecture,
    };
    let mut rows = vec![
        row("Type", kind),
        machine_row(target),
        row("Architecture", architecture),
        row("Tiles per IPU", known(tiles, grouped(tiles))),
        derived("Total tiles", known(tiles * ipus, grouped(tiles * ipus)), "tiles per IPU x IPUs"),
        row("Total IPUs", known(ipus, grouped(ipus))),
    ];
    if target.replicas > 1 {
        rows.push(row("IPUs per replica", target.ipus_per_replica));
        rows.push(row("Number of replicas", target.replicas));
    }
    if target.identical_ipus() > 1 {
        rows.push(row("Identical IPUs", target.identical_ipus()));
    }
    if target.io_tiles_per_ipu > 0 {
        rows.push(row("I/O tiles per IPU", target.io_tiles_per_ipu));
    }
    rows.push(row("Memory per tile", known(bytes, numbers.bytes(bytes))));
    let memory = |name, ipus: u64, formula| {
        derived(name, known(bytes, numbers.bytes(bytes * tiles * ipus)), formula)
    };
    rows.push(memory("Memory per IPU", 1, "memory per tile x tiles per IPU"));
    if target.replicas > 1 {
        let ipus = u64::from(target.ipus_per_replica);
        rows.push(memory("Memory per replica", ipus, "memory per IPU x IPUs per replica"));
    }
    rows.push(memory("Total memory", ipus, "memory per IPU x IPUs"));
    rows.push(row("Tile clock", known(target.clock.0, Hertz(target.clock.0))));
    let (level, formula) = instrumentation(&opened.report);
    rows.push(derived("Compute set instrumentation", level, formula));
    rows_ui(ui, "target", &rows);
}

/// The name of the machine, and the changes that a spec made to it.
fn machine_row(target: &Target) -> SummaryFactRow {
    let name = match target.name.as_str() {
        "" => "not recorded".to_owned(),
        _ => target.machine_name(),
    };
    if target.is_changed() {
        derived("Machine", name, "not a real machine: the spec changed some of its constants")
    } else {
        row("Machine", name)
    }
}

/// The granularity at which compute sets were measured, inferred from the recorded data.
fn instrumentation(report: &Report) -> (&'static str, &'static str) {
    if report.has(ReportPart::ComputeSetCycles) {
        ("Tile", "inferred: cycles of each tile in each compute set are recorded")
    } else if report.has(ReportPart::Execution) {
        ("IPU", "inferred: cycles of each IPU in each step are recorded, not of each tile")
    } else {
        ("Off", "inferred: no cycles of compute sets are recorded")
    }
}

fn graph_ui(ui: &mut Ui, facts: &SummaryPageData) {
    let graph = &facts.summary.graph;
    let rows = [
        row("Number of compute sets", known_count(graph.compute_sets)),
        row("Number of edges", known_count(graph.edges)),
        row("Number of variables", known_count(graph.variables)),
        row("Number of vertices", known_count(graph.vertices)),
    ];
    rows_ui(ui, "graph", &rows);
}

fn known_count(count: Option<u64>) -> String {
    let count = count.unwrap_or(0);
    known(count, grouped(count))
}

/// A product with its factors: `10 x 40 = 400`.
fn product(factors: &[u64]) -> String {
    let words: Vec<String> = factors.iter().map(|factor| grouped(*factor)).collect();
    let value = factors.iter().copied().fold(1, u64::saturating_mul);
    format!("{} = {}", words.join(" x "), grouped(value))
}

fn batching_ui(ui: &mut Ui, facts: &SummaryPageData) {
    let mut rows = Vec::new();
    if let Some(batching) = &facts.batching {
        let BatchingConfig { micro_batch, gradient_accumulation, replicas, device_iterations } =
            *batching;
        let factors = [micro_batch, gradient_accumulation, replicas, device_iterations];
        rows.push(row("Micro-batch", grouped(micro_batch)));
        rows.push(row("Gradient accumulation", grouped(gradient_accumulation)));
        rows.push(derived("Replica batch", product(&factors[..2]), "micro-batch x accumulation"));
        rows.push(row("Replicas", grouped(replicas)));
        rows.push(derived("Global batch", product(&factors[..3]), "replica batch x replicas"));
        rows.push(row("Device iterations", grouped(device_iterations)));
        let formula = "global batch x device iterations";
        rows.push(derived("Samples per host call", product(&factors), formula));
    }
    if let Some(run) = &facts.summary.execution {
        let formula = "end of the last step - start of the first";
        if run.seconds > 0.0 {
            let formula = "total cycles / tile clock";
            rows.push(derived("Time on the device", seconds(run.seconds), formula));
        }
        if let Some(rate) = run.samples_per_second {
            let formula = "samples of all host calls in the run / time on the device";
            rows.push(derived("Samples per second", grouped(rate.round() as u64), formula));
        }
        rows.push(derived("Total cycles", run.total_cycles, formula));
        let steps: u64 = run.ipus.iter().map(|ipu| ipu.steps).sum();
        rows.push(row("Executed steps, all IPUs", grouped(steps)));
    }
    if let Some(confidence) = &facts.summary.confidence {
        rows.extend(confidence::rows(confidence));
    }
    if rows.is_empty() {
        let text = "Neither batch sizes nor an execution were recorded.";
        ui.weak(text);
    }
    rows_ui(ui, "batching", &rows);
}

fn notes_ui(ui: &mut Ui, facts: &SummaryPageData) {
    let palette = ThemePalette::for_ui(ui);
    let warnings = facts.warnings.iter().map(|text| ("Warning", text, palette.warning));
    let notes = facts.notes.iter().map(|text| ("Note", text, palette.weak_text));
    Grid::new("notes").num_columns(2).min_col_width(56.0).spacing(vec2(12.0, 6.0)).show(ui, |ui| {
        for (kind, text, colour) in warnings.chain(notes) {
            ui.label(RichText::new(kind).color(colour));
            ui.add(Label::new(text).wrap().selectable(true));
            ui.end_row();
        }
    });
}

/// A value of an option: numbers with grouped thousands and few digits after the point.
fn option_words(value: &str) -> String {
    match TableCell::of_value(value) {
        TableCell::Count(count) => grouped(count),
        cell => cell.text(),
    }
}

fn options_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    facts: &SummaryPageData,
    filter: &mut String,
) {
    if facts.options.is_empty() {
        let text = "No options were recorded.";
        ui.weak(text);
        return;
    }
    if search_ui(ui, filter, "Filter options", 240.0).changed() {
        context.commands.push(AppCommand::SetOptionFilter(filter.clone()));
    }
    ui.add_space(spacing::XS);
    let wanted = filter.trim().to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let options = facts.options.iter().filter(|(key, value)| holds(key) || holds(value));
    let rows: Vec<SummaryFactRow> =
        options.map(|(key, value)| row(key, option_words(value))).collect();
    if rows.is_empty() {
        ui.weak("No option matches.");
    }
    rows_ui(ui, "options", &rows);
}

fn spec_ui(ui: &mut Ui, spec: &str) {
    let palette = ThemePalette::for_ui(ui);
    Frame::new()
        .fill(palette.raised)
        .corner_radius(CornerRadius::same(6))
        .inner_margin(Margin::same(12))
        .show(ui, |ui| {
            ui.set_width(ui.available_width());
            ScrollArea::horizontal().show(ui, |ui| {
                let text = RichText::new(spec.trim_end()).monospace();
                ui.add(Label::new(text).extend().selectable(true));
            });
        });
}

/// Keys and values, indented by their depth.
fn tree_ui(ui: &mut Ui, lines: &Result<Vec<JsonLine>, SidecarJsonError>) {
    let palette = ThemePalette::for_ui(ui);
    let lines = match lines {
        Ok(lines) => lines,
        Err(problem) => {
            let text = format!("This file cannot be read: {problem}");
            ui.add(Label::new(RichText::new(text).color(palette.warning)).wrap());
            return;
        }
    };
    if lines.is_empty() {
        ui.weak("This file is empty.");
    }
    let height = (lines.len() as f32 * 20.0).min(420.0);
    ScrollArea::both().max_height(height).auto_shrink([false, true]).id_salt("tree").show_rows(
        ui,
        18.0,
        lines.len(),
        |ui, shown| {
            for line in &lines[shown] {
                ui.horizontal(|ui| {
                    ui.set_height(16.0);
                    ui.add_space(line.depth as f32 * spacing::INDENT);
                    let name: String = line.name.chars().take(200).collect();
                    ui.weak(name);
                    let value: String = line.value.chars().take(400).collect();
                    ui.add(Label::new(value).selectable(true).extend());
                });
            }
        },
    );
}
