//! The first page of a comparison: the size of the changes, their explanation, the different
//! settings, and the findings that appeared or disappeared.

use super::side_colours::{SideColours, side_colours};
use crate::model::open_report::OpenReport;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::background_query::{BackgroundQuery, BackgroundWorkers};
use crate::widgets::focus_ui;
use crate::widgets::query_state::QueryTexts;
use egui::accesskit::Role;
use egui::text::{LayoutJob, TextFormat};
use egui::{
    Color32, CornerRadius, FontId, Frame, Galley, Label, Margin, Rect, RichText, ScrollArea, Sense,
    Ui, WidgetInfo, pos2, vec2,
};
use std::sync::Arc;
use tilescope_analysis::compare::{
    ComparedReports, ComparisonOverview, ComparisonRow, ComparisonTable, ReportAlignment, WorkUnit,
    overview,
};
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::view_location::ViewLocation;
use tilescope_report::units::NumberFormat;

/// The width from which tables are in two columns.
const TWO_COLUMNS: f32 = 1_150.0;
/// The largest width of the page, in one and in two columns.
const WIDEST: [f32; 2] = [980.0, 2_000.0];
/// The gap between columns of a table.
const GAP: f32 = 16.0;
/// The smallest width for names.
const LEAST_NAME: f32 = 120.0;
/// The height of a line of text with its surroundings.
const LINE: f32 = 20.0;
/// The largest width of a bar.
const BAR: f32 = 64.0;

/// A formatted table.
struct WordedTable {
    title: &'static str,
    heading: String,
    rows: Vec<WordedRow>,
    /// True if its values are text that may need several lines.
    wordy: bool,
    /// The largest change; 0 if the changes have no common unit.
    most: f64,
}

struct WordedRow {
    name: String,
    source: String,
    target: String,
    change: String,
    share: String,
    /// The size of the change, if all rows have the same unit.
    size: f64,
    places: [Option<ViewLocation>; 2],
    total: bool,
}

/// The formatted page.
struct WordedOverview {
    verdict: String,
    note: Option<String>,
    tables: Vec<WordedTable>,
}

/// The state of the page.
#[derive(Default)]
pub(crate) struct OverviewPage {
    page: BackgroundQuery<(WorkUnit, NumberFormat), WordedOverview>,
}

impl OverviewPage {
    /// Shows the page. Returns the places of the clicked row in both reports.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        workers: &BackgroundWorkers,
        (source, target): (&OpenReport, &OpenReport),
        unit: WorkUnit,
    ) -> Option<[Option<ViewLocation>; 2]> {
        let source = source.report.clone();
        let target = target.report.clone();
        let texts =
            QueryTexts { waiting: "Comparing…", failed: "The reports cannot be compared" };
        let page =
            self.page.ask(ui.ctx(), workers, &(unit, numbers(ui)), move |(unit, numbers)| {
                // The page needs no single steps and must not wait for long runs.
                let alignment = ReportAlignment::without_links(&source, &target)?;
                overview(&ComparedReports {
                    source: &source,
                    target: &target,
                    alignment: &alignment,
                    numbers: *numbers,
                    unit: *unit,
                })
                .map(worded)
            });
        let show = |ui: &mut Ui| page.show(ui, texts, |ui, page| page_ui(ui, page)).flatten();
        ScrollArea::vertical().auto_shrink(false).show(ui, show).inner
    }
}

fn worded(page: ComparisonOverview) -> WordedOverview {
    let tables = page.tables.iter().map(worded_table).collect();
    WordedOverview { verdict: page.verdict, note: page.normalization.note, tables }
}

fn worded_table(table: &ComparisonTable) -> WordedTable {
    let rows = table.rows.iter().map(|row| worded_row(row, false));
    let total = table.total.iter().map(|row| worded_row(row, true));
    let rows: Vec<WordedRow> = rows.chain(total).collect();
    let one_kind = table.total.is_some();
    let sizes = rows.iter().filter(|row| one_kind && !row.total).map(|row| row.size.abs());
    WordedTable {
        title: table.title,
        heading: table.heading(),
        wordy: table.rows.iter().any(|row| row.change().is_none()),
        most: sizes.fold(0.0, f64::max),
        rows,
    }
}

fn worded_row(row: &ComparisonRow, total: bool) -> WordedRow {
    let (source, target) = row.values();
    let is_number = row.change().is_some();
    WordedRow {
        name: row.name.clone(),
        source: side_text(source),
        target: side_text(target),
        change: if is_number { row.change_cell().text() } else { String::new() },
        share: if is_number { row.share_cell().text() } else { String::new() },
        size: row.change().unwrap_or(0.0),
        places: [row.source_place.clone(), row.target_place.clone()],
        total,
    }
}

fn side_text(side: Option<TableCell>) -> String {
    side.map_or_else(|| "—".to_owned(), |cell| cell.text())
}

fn page_ui(ui: &mut Ui, page: &WordedOverview) -> Option<[Option<ViewLocation>; 2]> {
    let mut clicked = None;
    Frame::new().inner_margin(Margin::symmetric(24, 18)).show(ui, |ui| {
        let columns = if ui.available_width() > TWO_COLUMNS { 2 } else { 1 };
        ui.set_width(ui.available_width().min(WIDEST[columns - 1]));
        let verdict = strong(&page.verdict).size(text_size::HEADING);
        ui.add(Label::new(verdict).wrap().selectable(true));
        if let Some(note) = &page.note {
            ui.add_space(spacing::XS);
            let note = RichText::new(note).color(ThemePalette::for_ui(ui).warning);
            ui.add(Label::new(note).wrap().selectable(true));
        }
        ui.add_space(spacing::M);
        if columns == 1 {
            for table in &page.tables {
                clicked = table_ui(ui, table).or(clicked.take());
            }
            return;
        }
        ui.spacing_mut().item_spacing.x = spacing::XXL;
        ui.columns(2, |columns| {
            for table in &page.tables {
                // Figures and settings are on the left, explanations on the right.
                let explains = table.most > 0.0;
                clicked = table_ui(&mut columns[usize::from(explains)], table).or(clicked.take());
            }
        });
    });
    clicked
}

/// The widths of the columns after the name. A bar of the change follows the last one.
struct ColumnWidths {
    name: f32,
    others: [f32; 4],
    bar: f32,
}

impl ColumnWidths {
    fn of(ui: &Ui, table: &WordedTable) -> Self {
        let room = ui.available_width();
        if table.wordy {
            let names = table.rows.iter().map(|row| width(ui, &row.name));
            let name = names.fold(LEAST_NAME, f32::max).min(room * 0.4);
            let side = ((room - name - 2.0 * GAP) / 2.0).max(LEAST_NAME);
            return Self { name, others: [side, side, 0.0, 0.0], bar: 0.0 };
        }
        let measure_cells = |row: &WordedRow| {
            [&row.source, &row.target, &row.change, &row.share].map(|text| width(ui, text))
        };
        let heads = ["Source", "Target", "Diff", "Relative"].map(|text| width(ui, text));
        let others = table
            .rows
            .iter()
            .map(measure_cells)
            .fold(heads, |widest, row| std::array::from_fn(|at| f32::max(widest[at], row[at])));
        let numbers: f32 = others.iter().sum::<f32>() + 4.0 * GAP;
        let bar =
            if table.most > 0.0 && room - numbers > 2.0 * LEAST_NAME { BAR + GAP } else { 0.0 };
        Self { name: (room - numbers - bar).max(LEAST_NAME), others, bar }
    }
}

fn font() -> FontId {
    FontId::proportional(text_size::BODY)
}

fn width(ui: &Ui, text: &str) -> f32 {
    // Measured in the weight of totals, plus a margin, so that each value fits on one line.
    let font = FontId::new(text_size::BODY, crate::theme::fonts::strong_family());
    let colour = ui.visuals().text_color();
    ui.painter().layout_no_wrap(text.to_owned(), font, colour).size().x.ceil() + 1.0
}

fn wrapped(ui: &Ui, text: &str, colour: Color32, width: f32, bold: bool) -> Arc<Galley> {
    let family = if bold { crate::theme::fonts::strong_family() } else { font().family };
    let format = TextFormat::simple(FontId::new(text_size::BODY, family), colour);
    let mut job = LayoutJob::single_section(text.to_owned(), format);
    job.wrap.max_width = width;
    // Names of programs have no spaces.
    job.wrap.break_anywhere = !text.contains(' ');
    ui.painter().layout_job(job)
}

fn table_ui(ui: &mut Ui, table: &WordedTable) -> Option<[Option<ViewLocation>; 2]> {
    let palette = ThemePalette::for_ui(ui);
    ui.add_space(spacing::M);
    ui.label(strong(table.title).size(text_size::SUBHEADING));
    let widths = ColumnWidths::of(ui, table);
    heads_ui(ui, table, &widths);
    let mut clicked = None;
    for (index, row) in table.rows.iter().enumerate() {
        if row_ui(ui, (table, index), &widths, palette) {
            clicked = Some(row.places.clone());
        }
    }
    ui.add_space(spacing::M);
    clicked
}

/// The rectangle of a column in a row.
fn cell_rect(row: Rect, widths: &ColumnWidths, column: usize) -> Rect {
    let before: f32 = widths.others[..column].iter().map(|width| width + GAP).sum();
    let left = row.left() + widths.name + GAP + before;
    Rect::from_min_max(pos2(left, row.top()), pos2(left + widths.others[column], row.bottom()))
}

fn heads_ui(ui: &mut Ui, table: &WordedTable, widths: &ColumnWidths) {
    let palette = ThemePalette::for_ui(ui);
    let SideColours { source, target } = side_colours(ui);
    let heading = small(ui, &table.heading, palette.weak_text, widths.name);
    let size = vec2(ui.available_width(), heading.size().y.max(LINE - 4.0));
    let (row, _) = ui.allocate_exact_size(size, Sense::hover());
    ui.painter().galley(row.min, heading, palette.weak_text);
    let heads = [("Source", source), ("Target", target)];
    let changes = [("Diff", palette.weak_text), ("Relative", palette.weak_text)];
    let heads = heads.into_iter().chain(changes.into_iter().filter(|_| !table.wordy));
    for (column, (text, colour)) in heads.enumerate() {
        let cell = cell_rect(row, widths, column);
        let galley = small(ui, text, colour, cell.width());
        let left = if table.wordy { cell.left() } else { cell.right() - galley.size().x };
        ui.painter().galley(pos2(left, cell.top()), galley, colour);
    }
    ui.painter().hline(row.x_range(), row.bottom() + 1.0, (1.0, palette.rule));
}

fn small(ui: &Ui, text: &str, colour: Color32, width: f32) -> Arc<Galley> {
    ui.painter().layout(text.to_owned(), FontId::proportional(text_size::SMALL), colour, width)
}

/// Shows a row. Returns true if it was clicked.
fn row_ui(
    ui: &mut Ui,
    (table, index): (&WordedTable, usize),
    widths: &ColumnWidths,
    palette: &ThemePalette,
) -> bool {
    let row = &table.rows[index];
    let ink = palette.text;
    let name = wrapped(ui, &row.name, ink, widths.name, row.total);
    let sides = [&row.source, &row.target];
    let wrap_side = |text: &&String, width| wrapped(ui, text, ink, width, row.total);
    let sides = [wrap_side(&sides[0], widths.others[0]), wrap_side(&sides[1], widths.others[1])];
    let lines = sides.iter().chain([&name]).map(|galley| galley.size().y);
    let height = lines.fold(LINE, |most, height| most.max(height + 4.0));
    let leads = row.places.iter().any(Option::is_some);
    let sense = if leads { Sense::click() } else { Sense::hover() };
    let (rect, response) = ui.allocate_exact_size(vec2(ui.available_width(), height), sense);
    let WordedRow { name: called, source, target, change, share, .. } = row;
    let words = format!("{called}: source {source}, target {target} {change} {share}");
    let role = if leads { Role::Button } else { Role::Label };
    response.widget_info(|| WidgetInfo::labeled(role, true, words.trim_end()));
    let ground = match (leads && response.hovered(), index % 2) {
        (true, _) => Some(palette.hover),
        (false, 1) => Some(palette.stripe),
        (false, _) => None,
    };
    if let Some(ground) = ground {
        ui.painter().rect_filled(rect, CornerRadius::same(3), ground);
    }
    if row.total {
        ui.painter().hline(rect.x_range(), rect.top(), (1.0, palette.rule));
    }
    ui.painter().galley(rect.min + vec2(0.0, 2.0), name, ink);
    for (column, galley) in sides.into_iter().enumerate() {
        let cell = cell_rect(rect, widths, column);
        let left = if table.wordy { cell.left() } else { cell.right() - galley.size().x };
        ui.painter().galley(pos2(left, cell.top() + 2.0), galley, ink);
    }
    let changes = [(2, change), (3, share)];
    for (column, text) in changes.into_iter().filter(|_| !table.wordy) {
        let cell = cell_rect(rect, widths, column);
        let galley = wrapped(ui, text, ink, f32::INFINITY, row.total);
        let at = pos2(cell.right() - galley.size().x, cell.top() + 2.0);
        ui.painter().galley(at, galley, ink);
    }
    if widths.bar > 0.0 && !row.total {
        bar_ui(ui, rect, row.size / table.most);
    }
    focus_ui(ui, &response, rect);
    let response = if leads { response.on_hover_text("Show in both reports") } else { response };
    response.clicked()
}

/// A bar for the change relative to the largest one: increases to the right, decreases to the left.
fn bar_ui(ui: &Ui, row: Rect, share: f64) {
    let palette = ThemePalette::for_ui(ui);
    let middle = row.right() - BAR / 2.0;
    let end = middle + share as f32 * BAR / 2.0;
    let colour = if share > 0.0 { palette.error } else { palette.good };
    let bar = Rect::from_x_y_ranges(middle.min(end)..=middle.max(end), row.y_range().shrink(5.0));
    ui.painter().rect_filled(bar, 0.0, colour);
    ui.painter().vline(middle, row.y_range().shrink(3.0), (1.0, palette.outline));
}
