//! The tables below the lanes: the totals of the window and the details of a step.

use super::bar_colours::step_colour;
use super::selected_bar::SelectedBar;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::fact_row_ui;
use egui::accesskit::Role;
use egui::{
    Color32, CornerRadius, Grid, Rect, RichText, ScrollArea, Sense, Ui, WidgetInfo, pos2, vec2,
};
use std::ops::Range;
use tilescope_analysis::data_table::{DataTable, TableCell, TableColumn};
use tilescope_analysis::tables::execution_trace::at;
use tilescope_analysis::trace::{MarkDetailReport, StepDetailReport, WindowSummary};
use tilescope_report::units::{Bytes, Cycles, NumberFormat, grouped, percent, seconds};
use tilescope_report::{INTERNAL_SYNC, ProgramKind, StepActivity, StreamEndpoint, Target};

const LEFT: f32 = spacing::L;
/// The width from which the explanation of a step is beside its details.
const BESIDE: f32 = 760.0;

/// The optional columns that a report supports.
#[derive(Clone, Copy)]
pub(crate) struct RecordedTraceColumns {
    /// True if the bytes that steps move are recorded.
    pub bytes: bool,
    /// True if the number of working tiles is recorded.
    pub balance: bool,
}

/// Shows the totals of the visible window.
pub(crate) fn summary_ui(
    ui: &mut Ui,
    summary: &WindowSummary,
    table: &DataTable,
    target: &Target,
    known: RecordedTraceColumns,
    typical: Option<&str>,
) {
    let widths = widths(ui.available_width() - 10.0, table.columns.len() > at::REPLICAS.start);
    ScrollArea::both().auto_shrink(false).id_salt("window summary").show(ui, |ui| {
        ui.add_space(spacing::S);
        ui.horizontal(|ui| {
            ui.add_space(LEFT);
            let cycles = summary.window.length();
            ui.label(strong(format!("Total cycles {cycles}")));
            let time = cycles.seconds_at(target.clock);
            let place = format!("{} - {}", summary.window.start, summary.window.end);
            let text = if time > 0.0 {
                format!("visible range {place}, {} at {}", seconds(time), target.clock)
            } else {
                format!("visible range {place}")
            };
            ui.weak(text);
            if let Some(typical) = typical {
                ui.label(typical);
            }
        });
        ui.add_space(spacing::XS);
        header_ui(ui, &widths, table);
        // Rows scrolled out of sight are not laid out.
        let count = table.rows.len();
        let height = row_height(&widths);
        let top = ui.cursor().top();
        let all = vec2(widths.iter().sum::<f32>(), count as f32 * height);
        let clamp_row = |y: f32| (((y - top) / height).max(0.0) as usize).min(count);
        let rows =
            clamp_row(ui.clip_rect().top())..(clamp_row(ui.clip_rect().bottom()) + 1).min(count);
        let (rect, _) = ui.allocate_exact_size(all + vec2(LEFT, 8.0), Sense::hover());
        for (index, cells) in table.rows.iter().enumerate().take(rows.end).skip(rows.start) {
            let row = Rect::from_min_size(
                pos2(rect.left() + LEFT, top + index as f32 * height),
                vec2(all.x, height),
            );
            ipu_ui(ui, row, &widths, (table, cells), known);
        }
    });
}

/// The column groups of the table: title, width, and columns. Shares take the remaining width.
pub(crate) const GROUPS: [(&str, f32, Range<usize>); 7] = [
    ("IPU", 40.0, at::IPU),
    ("Steps", 76.0, at::STEPS),
    ("Proportions", 372.0, at::SHARES),
    ("Tile balance", 130.0, at::BALANCE),
    ("Host (Rx/Tx)", 138.0, at::HOST),
    ("Remote buffers (Rx/Tx)", 150.0, at::REMOTE_BUFFER),
    ("Global exchange (Rx/Tx)", 154.0, at::GLOBAL_EXCHANGE),
];
/// The index of the group of shares.
const SHARES: usize = 2;
/// The largest width of the shares.
const MOST_PROPORTIONS: f32 = 860.0;
/// The height of a row with shares in two lines.
const TWO_LINES: f32 = 60.0;

/// The extra width of the first column if it names a replica beside its IPU.
const REPLICA_WIDTH: f32 = 32.0;

/// The widths of the columns in `room`, with or without a replica beside each IPU.
fn widths(room: f32, with_replica: bool) -> [f32; 7] {
    let mut widths = GROUPS.map(|(_, width, _)| width);
    widths[0] += if with_replica { REPLICA_WIDTH } else { 0.0 };
    let others = widths.iter().sum::<f32>() - widths[SHARES];
    widths[SHARES] = (room - others - LEFT).clamp(widths[SHARES], MOST_PROPORTIONS);
    widths
}

/// The height of a row of the summary: shares take one line if they fit, otherwise two.
fn row_height(widths: &[f32; 7]) -> f32 {
    if widths[SHARES] < MOST_PROPORTIONS { TWO_LINES } else { 42.0 }
}

/// A cell of a row, aligned with the left edge of the column.
fn cell_ui(
    ui: &mut Ui,
    row: Rect,
    widths: &[f32; 7],
    (ipu, column): (Option<String>, usize),
    contents: impl FnOnce(&mut Ui),
) {
    let left: f32 = widths[..column].iter().sum();
    let corner = pos2(row.left() + left, row.top());
    let rect = Rect::from_min_size(corner, vec2(widths[column] - 12.0, row.height()));
    let layout = egui::Layout::left_to_right(egui::Align::Center);
    let builder = egui::UiBuilder::new().id_salt(("window totals", ipu, column)).layout(layout);
    let mut cell = ui.new_child(builder.max_rect(rect));
    cell.set_clip_rect(ui.clip_rect().intersect(rect));
    contents(&mut cell);
}

fn header_ui(ui: &mut Ui, widths: &[f32; 7], table: &DataTable) {
    let width: f32 = widths.iter().sum();
    let (row, _) = ui.allocate_exact_size(vec2(LEFT + width, 20.0), Sense::hover());
    let row = row.with_min_x(row.left() + LEFT);
    for (column, (title, _, range)) in GROUPS.into_iter().enumerate() {
        let formula = table.columns.get(range.start).map_or("", |column| column.about);
        cell_ui(ui, row, widths, (None, column), |ui| {
            let text = RichText::new(title).weak().size(text_size::SMALL);
            ui.add(egui::Label::new(text).extend()).on_hover_text(formula);
        });
    }
}

fn ipu_ui(
    ui: &mut Ui,
    row: Rect,
    widths: &[f32; 7],
    (table, cells): (&DataTable, &[TableCell]),
    known: RecordedTraceColumns,
) {
    let palette = ThemePalette::for_ui(ui);
    for (column, (_, _, range)) in GROUPS.into_iter().enumerate() {
        let titles = table.columns.get(range.clone()).unwrap_or_default();
        let group = cells.get(range.clone()).unwrap_or_default();
        let name = cells.first().map(|ipu| ipu_name(ipu, cells));
        cell_ui(ui, row, widths, (name, column), |ui| match (range, group) {
            (at::IPU, [ipu]) => {
                let label = ui.label(strong(ipu_name(ipu, cells)));
                let replicas = cells.get(at::REPLICAS.start).map(TableCell::text);
                replicas.map(|replicas| label.on_hover_text(format!("Replicas {replicas}")));
            }
            (at::SHARES, shares) => {
                ui.vertical(|ui| {
                    ui.add_space(spacing::XXS);
                    ui.spacing_mut().item_spacing.y = spacing::XXS;
                    proportions_ui(ui, &ipu_name(&cells[0], cells), (titles, shares), row.height());
                });
            }
            (at::BALANCE, _) if !known.balance => drop(ui.label(NOT_RECORDED)),
            (at::BALANCE, [TableCell::Share(share)]) => balance_ui(ui, *share),
            (at::BALANCE, _) => drop(ui.label("-")),
            (_, [one]) => drop(ui.label(one.text())),
            (_, traffic) => {
                let none = traffic.iter().all(|cell| *cell == TableCell::Bytes(Bytes::ZERO));
                let weak = none || !known.bytes;
                let colour = if weak { palette.weak_text } else { palette.text };
                let text = if known.bytes {
                    traffic_text(traffic, numbers(ui))
                } else {
                    NOT_RECORDED.to_owned()
                };
                ui.add(egui::Label::new(RichText::new(text).color(colour)).extend());
            }
        });
    }
}

/// `3`, or `R2 3` if replicas differ; the replica is the first of its class.
fn ipu_name(ipu: &TableCell, cells: &[TableCell]) -> String {
    let replicas = cells.get(at::REPLICAS.start).map(TableCell::text);
    let first: Option<String> = replicas
        .map(|all| all.chars().take_while(char::is_ascii_digit).collect())
        .filter(|first: &String| !first.is_empty());
    first.map_or_else(|| ipu.text(), |first| format!("R{first} {}", ipu.text()))
}

/// The placeholder of figures that a report does not have.
const NOT_RECORDED: &str = "not recorded";

/// Formats three amounts of bytes, separated from each other.
fn traffic_text(traffic: &[TableCell], numbers: NumberFormat) -> String {
    let mut texts = Vec::new();
    for cell in traffic {
        texts.push(match cell {
            TableCell::Bytes(bytes) => numbers.bytes(bytes.0),
            other => other.text(),
        });
    }
    texts.join(" / ")
}

/// The colours of shares, in the order of the columns.
fn share_colours(palette: &ThemePalette) -> [Color32; 8] {
    let [compute, internal, global, host, remote, sync, other] = [
        StepActivity::Compute,
        StepActivity::InternalExchange,
        StepActivity::GlobalExchange,
        StepActivity::Host,
        StepActivity::RemoteBuffer,
        StepActivity::Sync,
        StepActivity::Other,
    ]
    .map(|activity| palette.activity(activity));
    [compute, internal, global, host, remote, sync, other, palette.lane]
}

/// The nonzero shares with their colour, name and text.
fn parts<'a>(
    palette: &ThemePalette,
    columns: &'a [TableColumn],
    cells: &[TableCell],
) -> Vec<(Color32, f64, &'a str, String)> {
    let mut parts = Vec::new();
    for ((colour, column), cell) in share_colours(palette).into_iter().zip(columns).zip(cells) {
        let share = cell.number().unwrap_or(0.0);
        if share >= 0.0005 {
            parts.push((colour, share, column.title.as_str(), cell.text()));
        }
    }
    parts
}

/// The size of the text below the bar of shares.
const WORDS: f32 = text_size::CAPTION;

/// Shows shares as a bar and as text, in a row of this height.
fn proportions_ui(
    ui: &mut Ui,
    ipu: &str,
    (columns, cells): (&[TableColumn], &[TableCell]),
    height: f32,
) {
    let palette = ThemePalette::for_ui(ui);
    let parts = parts(palette, columns, cells);
    let text: Vec<String> =
        parts.iter().map(|(_, _, name, share)| format!("{name} {share}")).collect();
    let size = vec2(ui.available_width() - 16.0, 13.0);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let name = format!("Proportions of IPU {ipu}");
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(text.join(", ")));
    response.on_hover_text(text.join("\n"));
    ui.painter().rect_filled(rect, CornerRadius::same(2), palette.lane);
    let mut left = rect.left();
    for (colour, share, ..) in &parts {
        let right = (left + *share as f32 * rect.width()).min(rect.right());
        let part = Rect::from_min_max(pos2(left, rect.top()), pos2(right, rect.bottom()));
        ui.painter().rect_filled(part, 0.0, *colour);
        left = right;
    }
    let measure = |text: &String| {
        let font = egui::FontId::proportional(WORDS);
        ui.painter().layout_no_wrap(text.clone(), font, palette.text).size().x + 21.0
    };
    let widths: Vec<f32> = text.iter().map(measure).collect();
    let room = ui.available_width();
    // Lines as high as their text: two of them fit below the bar, and a tooltip shows the rest.
    ui.spacing_mut().interact_size.y = WORDS + 3.0;
    let mut shown = 0;
    let lines = if height < TWO_LINES { 1 } else { 2 };
    for _ in 0..lines {
        if shown == parts.len() {
            break;
        }
        let mut taken = 0.0;
        let fits = widths[shown..].iter().take_while(|width| {
            taken += **width;
            taken <= room
        });
        let end = shown + fits.count().max(1);
        ui.horizontal(|ui| {
            for ((colour, ..), text) in parts[shown..end].iter().zip(&text[shown..end]) {
                share_ui(ui, *colour, text);
            }
        });
        shown = end;
    }
}

/// A share: its colour and its text.
fn share_ui(ui: &mut Ui, colour: Color32, text: &str) {
    let palette = ThemePalette::for_ui(ui);
    ui.spacing_mut().item_spacing.x = spacing::XS;
    let (dot, _) = ui.allocate_exact_size(vec2(8.0, 8.0), Sense::hover());
    let line = egui::Stroke::new(1.0, palette.outline);
    let inside = egui::StrokeKind::Inside;
    let line = if colour == palette.lane { line } else { egui::Stroke::NONE };
    ui.painter().rect(dot, CornerRadius::same(2), colour, line, inside);
    ui.label(RichText::new(text).size(WORDS));
    ui.add_space(spacing::XS);
}

fn balance_ui(ui: &mut Ui, share: f64) {
    let palette = ThemePalette::for_ui(ui);
    ui.horizontal(|ui| {
        let (rect, _) = ui.allocate_exact_size(vec2(64.0, 14.0), Sense::hover());
        ui.painter().rect_filled(rect, CornerRadius::same(2), palette.lane);
        let width = rect.width() * share.clamp(0.0, 1.0) as f32;
        let filled = Rect::from_min_size(rect.min, vec2(width, rect.height()));
        ui.painter().rect_filled(filled, CornerRadius::same(2), palette.balance);
        ui.label(percent(share));
    });
}

/// Shows the details of a step, with other content beside them. Returns the result of that content.
pub(crate) fn step_ui<T: Default>(
    ui: &mut Ui,
    view: &StepDetailReport,
    place: &str,
    beside: impl FnOnce(&mut Ui) -> T,
) -> T {
    let activity = StepActivity::from_program_kind(view.kind, view.stream);
    let external = view.kind == ProgramKind::Sync && !view.title.contains(INTERNAL_SYNC);
    let palette = ThemePalette::for_ui(ui);
    let colour = step_colour(palette, view.kind, activity, external);
    let title = format!("{} on {place}", view.title);
    let mut found = T::default();
    details_with(ui, (colour, &title), |ui| step_rows_ui(ui, view), |ui| found = beside(ui));
    found
}

fn step_rows_ui(ui: &mut Ui, view: &StepDetailReport) {
    for row in &view.rows {
        fact_row_ui(ui, row.name, &row.value, row.formula);
    }
    for (index, vertex) in view.vertices.iter().enumerate() {
        let name = if index == 0 { "Vertices" } else { "" };
        fact_row_ui(ui, name, &format!("{} x {}", grouped(vertex.count), vertex.name), "");
    }
    if view.kind == ProgramKind::StreamCopyBegin && view.stream == StreamEndpoint::Host {
        let hint = "A long StreamCopyBegin means that the host was not ready.";
        fact_row_ui(ui, "Hint", hint, "");
    }
}

/// Several steps side by side: a row for each name that any of them has, a column for each step.
pub(crate) fn steps_ui(ui: &mut Ui, views: &[StepDetailReport]) {
    let palette = ThemePalette::for_ui(ui);
    let mut names: Vec<(&str, &str)> = Vec::new();
    for row in views.iter().flat_map(|view| &view.rows) {
        if !names.iter().any(|(name, _)| *name == row.name) {
            names.push((row.name, row.formula));
        }
    }
    let together: Cycles = views.iter().map(|view| view.range.length()).sum();
    let title = format!("{} steps, {} cycles in all", views.len(), together);
    details_ui(ui, palette.selection, &title, |ui| {
        ui.label("");
        for view in views {
            let title: String = view.title.chars().take(80).collect();
            ui.add(egui::Label::new(strong(title)).extend());
        }
        ui.end_row();
        for (name, formula) in names {
            ui.weak(name).on_hover_text(formula);
            for view in views {
                let row = view.rows.iter().find(|row| row.name == name);
                let value = row.map_or("—", |row| row.value.as_str());
                ui.add(egui::Label::new(value).selectable(true).extend());
            }
            ui.end_row();
        }
    });
}

/// The details of a mark or a block of marks.
pub(crate) fn mark_ui(ui: &mut Ui, mark: &MarkDetailReport) {
    let palette = ThemePalette::for_ui(ui);
    details_ui(ui, palette.selection, &mark.title, |ui| {
        for row in &mark.rows {
            fact_row_ui(ui, row.name, &row.value, row.formula);
        }
    });
}

/// The details of a bar that stands for several steps.
pub(crate) fn bar_ui<T: Default>(
    ui: &mut Ui,
    bar: &SelectedBar,
    place: &str,
    beside: impl FnOnce(&mut Ui) -> T,
) -> T {
    let palette = ThemePalette::for_ui(ui);
    let title = format!("{} on {place}", bar.title);
    let rows = |ui: &mut Ui| {
        for (name, value) in &bar.rows {
            fact_row_ui(ui, name, value, "");
        }
    };
    let mut found = T::default();
    details_with(ui, (palette.group, &title), rows, |ui| found = beside(ui));
    found
}

/// A title with a coloured edge, and rows below it.
fn details_ui(ui: &mut Ui, colour: Color32, title: &str, rows: impl FnOnce(&mut Ui)) {
    details_with(ui, (colour, title), rows, |_| {});
}

/// Shows details with other content beside the rows, or above them if the panel is narrow.
fn details_with(
    ui: &mut Ui,
    (colour, title): (Color32, &str),
    rows: impl FnOnce(&mut Ui),
    beside: impl FnOnce(&mut Ui),
) {
    ScrollArea::both().auto_shrink(false).id_salt("step details").show(ui, |ui| {
        ui.add_space(spacing::S);
        let top = ui.cursor().top();
        ui.horizontal_top(|ui| {
            ui.add_space(LEFT + spacing::M);
            ui.vertical(|ui| {
                let title: String = title.chars().take(600).collect();
                ui.add(egui::Label::new(strong(title)).selectable(true).extend());
                ui.add_space(spacing::XXS);
                let show_rows = |ui: &mut Ui| {
                    let grid = Grid::new("details").num_columns(2).min_row_height(17.0);
                    grid.spacing(vec2(24.0, 5.0)).show(ui, rows);
                };
                if ui.available_width() < BESIDE {
                    // The explanation comes first: the panel is low.
                    beside(ui);
                    ui.add_space(spacing::S);
                    show_rows(ui);
                    return;
                }
                ui.horizontal_top(|ui| {
                    ui.vertical(show_rows);
                    ui.add_space(spacing::XL);
                    ui.vertical(beside);
                });
            });
        });
        let bottom = ui.cursor().top() - 4.0;
        let left = ui.min_rect().left() + LEFT;
        let edge = Rect::from_min_max(pos2(left, top), pos2(left + 4.0, bottom));
        ui.painter().rect_filled(edge, CornerRadius::same(2), colour);
        ui.add_space(spacing::M);
    });
}
