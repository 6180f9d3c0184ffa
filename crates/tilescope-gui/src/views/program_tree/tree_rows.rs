//! The lines of the tree: only the visible ones are laid out.

use crate::model::view_id::ViewId;
use crate::theme::{ThemePalette, numbers, text_size};
use crate::views::execution_trace::bar_colours::step_colour;
use crate::widgets::elided_text::without_middle;
use crate::widgets::{focus_ui, neighbour};
use egui::accesskit::Role;
use egui::{
    Align2, Color32, FontId, Key, Rect, Response, ScrollArea, Sense, TextStyle, Ui, WidgetInfo,
    pos2, vec2,
};
use std::collections::BTreeSet;
use tilescope_analysis::critical_path::{EXPOSED, HIDDEN, ON_PATH};
use tilescope_analysis::operations::share_of_run;
use tilescope_analysis::program_tree::{
    ProgramTreeCosts, ProgramTreeRow, ProgramTreeTotals, label,
};
use tilescope_report::units::{Cycles, OperationId, ProgramId, grouped};
use tilescope_report::{HostCallPart, ProgramKind, ProgramNode, ProgramNodeTable, StepActivity};

/// The height of a line.
const HEIGHT: f32 = 22.0;
/// A column of figures at the right of the lines.
struct CostColumn {
    title: &'static str,
    width: f32,
    about: fn(&ProgramTreeTotals) -> String,
    /// The figure of a node, if it has one.
    text: fn(&Ui, &ProgramTreeTotals, &ProgramTreeCosts) -> Option<String>,
}

/// The columns, from left to right. A narrow tree has the first few of them.
const COST_COLUMNS: [CostColumn; 5] = [
    CostColumn { title: "Cycles per IPU", width: 150.0, about: about_cycles, text: cycles_text },
    CostColumn { title: "Bytes moved", width: 90.0, about: about_bytes, text: bytes_text },
    CostColumn {
        title: "On the path",
        width: 100.0,
        about: |_| ON_PATH.to_owned(),
        text: |_, _, costs| path_text(costs.exposure?.on_path),
    },
    CostColumn {
        title: "Exposed per IPU",
        width: 110.0,
        about: |all| format!("{EXPOSED}. {}", mean_over(all)),
        text: |_, all, costs| path_text(all.mean(costs.exposure?.exposed()?)),
    },
    CostColumn {
        title: "Hidden per IPU",
        width: 100.0,
        about: |all| format!("{HIDDEN}. {}", mean_over(all)),
        text: |_, all, costs| path_text(all.mean(costs.exposure?.hidden?)),
    },
];

/// The number of columns that are always visible.
const FEW_COLUMNS: usize = 2;
/// The width from which all columns are visible.
const WIDE_TREE: f32 = 900.0;
/// The margin after the last column.
const MARGIN: f32 = 10.0;
/// The smallest width of a name beside the columns.
const LEAST_NAME: f32 = 120.0;
/// The indentation of a child.
const INDENT: f32 = 18.0;

/// The inputs for the lines.
pub(crate) struct ProgramTreeRowsInput<'a> {
    pub programs: &'a ProgramNodeTable,
    pub chosen: Option<ProgramId>,
    /// The operation of the selected program, whose other programs are highlighted.
    pub operation: Option<OperationId>,
    pub folded: &'a BTreeSet<ProgramId>,
    /// The text to search for, in lower case.
    pub filter: String,
    /// True if ids are shown.
    pub ids: bool,
    /// The line that takes the focus.
    pub focus: Option<ProgramId>,
    /// The costs of nodes in the run.
    pub costs: &'a ProgramTreeTotals,
    /// True if there is no space for columns of figures.
    pub is_narrow: bool,
}

/// The width below which figures follow names.
pub(crate) const NARROW_TREE: f32 = 560.0;

pub(crate) enum ProgramTreeRowEvent {
    ToggleFold(ProgramId),
    Select(ProgramId),
    /// Moves the focus to the name above or below the focused one.
    MoveFocus(ProgramId),
    /// Choose a program and go to a view that shows it.
    Show(ProgramId, ViewId),
    /// Look for a name.
    Search(String),
}

/// Shows the lines, and scrolls to one of them. Returns the event of the user, if any.
pub(crate) fn lines_ui(
    ui: &mut Ui,
    rows: &[ProgramTreeRow],
    look: &ProgramTreeRowsInput<'_>,
    scroll_to: Option<usize>,
) -> Option<ProgramTreeRowEvent> {
    let mut clicked = None;
    ui.spacing_mut().item_spacing.y = 0.0;
    let columns = shown_columns(ui, look.costs);
    if !look.costs.nodes.is_empty() && !look.is_narrow {
        heads_ui(ui, look.costs, columns);
    }
    let deepest = rows.iter().map(|row| row.depth).max().unwrap_or(0);
    let mut area = ScrollArea::both().auto_shrink(false).id_salt("program lines");
    if let Some(place) = scroll_to {
        let middle = (ui.available_height() / 2.0 - HEIGHT).max(0.0);
        area = area.vertical_scroll_offset((place as f32 * HEIGHT - middle).max(0.0));
    }
    area.show_rows(ui, HEIGHT, rows.len(), |ui, shown| {
        let width = (deepest as f32 * INDENT + 640.0).max(ui.available_width());
        for place in shown {
            let Some(program) = look.programs.get(rows[place].id) else { continue };
            let at = (place, width);
            let (response, line) = line_ui(ui, &rows[place], program, (look, columns), at);
            if look.focus == Some(rows[place].id) && rows[place].copies == 0 {
                response.request_focus();
            }
            let next = neighbour(&response, place, rows.len());
            let line =
                line.or_else(|| next.map(|next| ProgramTreeRowEvent::MoveFocus(rows[next].id)));
            clicked = line.or(clicked.take());
        }
    });
    clicked
}

fn line_ui(
    ui: &mut Ui,
    row: &ProgramTreeRow,
    program: &ProgramNode,
    (look, shown): (&ProgramTreeRowsInput<'_>, &[CostColumn]),
    (place, width): (usize, f32),
) -> (Response, Option<ProgramTreeRowEvent>) {
    let palette = ThemePalette::for_ui(ui);
    let chosen = look.chosen == Some(row.id) && row.copies == 0;
    let mut text = match row.copies {
        0 => label(program),
        copies => format!("StreamCopy x {}", grouped(u64::from(copies))),
    };
    if look.ids && row.copies == 0 {
        text = format!("{text} (Id: {})", row.id.0);
    }
    let (rect, _) = ui.allocate_exact_size(vec2(width, HEIGHT), Sense::hover());
    let response = ui.interact(rect, ui.scope_id().with(("line", place)), Sense::click());
    response.widget_info(|| WidgetInfo::selected(Role::TreeItem, true, chosen, &text));
    // For repeated copies, which are folded by default, the set holds the open ones.
    let open = look.folded.contains(&row.id) == (row.copies > 0);
    ui.ctx().accesskit_node_builder(response.id, |node| {
        node.set_level(row.depth as usize + 1);
        if row.parent {
            node.set_expanded(open);
        }
    });
    let related = look.operation.is_some() && program.operation == look.operation;
    let ground = if chosen {
        Some(palette.chosen)
    } else if response.hovered() {
        Some(palette.hover)
    } else if related {
        Some(palette.related)
    } else {
        None
    };
    if let Some(ground) = ground {
        ui.painter().rect_filled(rect, 0.0, ground);
    }
    focus_ui(ui, &response, rect);
    let left = rect.left() + 10.0 + row.depth as f32 * INDENT;
    let mut folds = false;
    if row.parent {
        let square = Rect::from_min_size(pos2(left - 4.0, rect.top()), vec2(18.0, HEIGHT));
        let triangle = ui.interact(square, response.id.with("fold"), Sense::click());
        let name = if open { "Fold" } else { "Unfold" };
        triangle.widget_info(|| WidgetInfo::selected(Role::DisclosureTriangle, true, open, name));
        let mark = if open { "▼" } else { "▶" };
        let colour = if triangle.hovered() { palette.text } else { palette.weak_text };
        ui.painter().text(
            square.center(),
            Align2::CENTER_CENTER,
            mark,
            FontId::proportional(text_size::SIGN),
            colour,
        );
        folds = triangle.clicked();
    }
    let bar = Rect::from_min_size(pos2(left + 16.0, rect.top() + 3.0), vec2(4.0, HEIGHT - 6.0));
    ui.painter().rect_filled(bar, 1.5, kind_colour(palette, program));
    let weak = !look.filter.is_empty() && !text.to_lowercase().contains(&look.filter);
    let colour = if weak { palette.weak_text } else { palette.text };
    let font = TextStyle::Body.resolve(ui.style());
    let at = pos2(left + 26.0, rect.center().y);
    let costs = look.costs.nodes.get(&row.id).filter(|_| row.copies == 0);
    let right = ui.clip_rect().right().min(rect.right()) - MARGIN;
    let columns = right - shown.iter().map(|column| column.width).sum::<f32>();
    let end = if look.costs.nodes.is_empty() { rect.right() } else { columns };
    // If a name would not fit beside the columns, the figures follow it.
    let cramped = look.is_narrow || end - at.x < LEAST_NAME;
    let room = if cramped { rect.right() - at.x } else { end - at.x } - 6.0;
    let short = without_middle(ui.painter(), &text, font.clone(), colour, room);
    let is_short = short.is_some();
    let galley = ui.painter().layout_no_wrap(short.unwrap_or_else(|| text.clone()), font, colour);
    let behind = at.x + galley.size().x + 12.0;
    ui.painter().galley(at - vec2(0.0, galley.size().y / 2.0), galley, colour);
    if let Some(costs) = costs {
        let place = if cramped { CostsPlace::Behind(behind) } else { CostsPlace::Columns(columns) };
        costs_ui(ui, (look.costs, costs), shown, rect, place);
    }
    let has_focus = response.has_focus();
    let fold = has_focus && ui.input(|input| input.key_pressed(Key::ArrowLeft));
    let unfold = has_focus && ui.input(|input| input.key_pressed(Key::ArrowRight));
    if folds || (row.parent && ((fold && open) || (unfold && !open))) {
        return (response, Some(ProgramTreeRowEvent::ToggleFold(row.id)));
    }
    if row.parent && response.double_clicked() {
        return (response, Some(ProgramTreeRowEvent::ToggleFold(row.id)));
    }
    let clicked = match (response.clicked(), row.copies) {
        (true, 0) => Some(ProgramTreeRowEvent::Select(row.id)),
        (true, _) => Some(ProgramTreeRowEvent::ToggleFold(row.id)),
        (false, _) => None,
    };
    let mut picked = None;
    response.context_menu(|ui| picked = menu_ui(ui, row, &text, program.name.as_str()));
    let clicked = picked.or(clicked);
    let short = is_short.then_some(text);
    let shares = costs.filter(|costs| costs.lane_cycles > Cycles::ZERO);
    let all = look.costs;
    let share = shares.map(|costs| share_of_run(all.mean_elapsed(costs), all.run, all.lanes));
    let several = costs.filter(|costs| costs.places > 1).map(|costs| {
        let places = grouped(u64::from(costs.places));
        format!(
            "This program occurs {places} times in the tree. Its cycles and bytes are totals \
                 over all occurrences."
        )
    });
    let hints: Vec<String> = [short, share, several].into_iter().flatten().collect();
    let response =
        if hints.is_empty() { response } else { response.on_hover_text(hints.join("\n")) };
    (response, clicked)
}

/// Shows the menu of a line.
fn menu_ui(
    ui: &mut Ui,
    row: &ProgramTreeRow,
    text: &str,
    name: &str,
) -> Option<ProgramTreeRowEvent> {
    let mut chosen = None;
    if row.copies == 0 {
        for view in [ViewId::ExecutionTrace, ViewId::Liveness, ViewId::ExchangeCode] {
            if ui.button(format!("Show in {}", view.title())).clicked() {
                chosen = Some(ProgramTreeRowEvent::Show(row.id, view));
            }
        }
        ui.separator();
    }
    let name = if name.is_empty() { text } else { name };
    if ui.button("Copy name").clicked() {
        ui.ctx().copy_text(name.to_owned());
    }
    if ui.button("Search for this name").clicked() {
        chosen = Some(ProgramTreeRowEvent::Search(name.to_owned()));
    }
    if row.parent && ui.button("Fold or unfold").clicked() {
        chosen = Some(ProgramTreeRowEvent::ToggleFold(row.id));
    }
    chosen
}

/// The columns that have room and figures.
fn shown_columns(ui: &Ui, all: &ProgramTreeTotals) -> &'static [CostColumn] {
    let is_known = all.nodes.values().any(|node| node.exposure.is_some());
    if is_known && ui.available_width() >= WIDE_TREE {
        &COST_COLUMNS
    } else {
        &COST_COLUMNS[..FEW_COLUMNS]
    }
}

fn mean_over(all: &ProgramTreeTotals) -> String {
    format!("Mean over {} lanes, which run at the same time", grouped(all.lanes))
}

fn about_cycles(all: &ProgramTreeTotals) -> String {
    let mean = mean_over(all);
    format!("Cycles of all steps of a node. {mean}, so at most the {} cycles of the run", all.run)
}

fn about_bytes(_: &ProgramTreeTotals) -> String {
    "Bytes that all steps of a node moved, summed over IPUs".to_owned()
}

fn cycles_text(_: &Ui, all: &ProgramTreeTotals, costs: &ProgramTreeCosts) -> Option<String> {
    let of = match costs.places {
        0 | 1 => String::new(),
        places => format!("{} calls: ", grouped(u64::from(places))),
    };
    let cycles = match all.mean_elapsed(costs) {
        Cycles::ZERO => "< 1".to_owned(),
        cycles => grouped(cycles.0),
    };
    if costs.lane_cycles > Cycles::ZERO { Some(format!("{of}{cycles}")) } else { None }
}

fn bytes_text(ui: &Ui, _: &ProgramTreeTotals, costs: &ProgramTreeCosts) -> Option<String> {
    if costs.bytes.0 > 0 { Some(numbers(ui).bytes(costs.bytes.0)) } else { None }
}

fn path_text(cycles: Cycles) -> Option<String> {
    if !cycles.is_zero() { Some(grouped(cycles.0)) } else { None }
}

/// The titles of the columns at the right.
fn heads_ui(ui: &mut Ui, all: &ProgramTreeTotals, columns: &[CostColumn]) {
    let palette = ThemePalette::for_ui(ui);
    let (rect, _) = ui.allocate_exact_size(vec2(ui.available_width(), HEIGHT), Sense::hover());
    let font = FontId::proportional(text_size::CAPTION);
    let mut right = rect.right() - MARGIN;
    for CostColumn { title, width, about, .. } in columns.iter().rev() {
        let at = pos2(right, rect.center().y);
        right -= width;
        let colour = palette.weak_text;
        let seen = ui.painter().text(at, Align2::RIGHT_CENTER, *title, font.clone(), colour);
        let head = ui.interact(seen, ui.scope_id().with(title), Sense::hover());
        head.widget_info(|| WidgetInfo::labeled(Role::Label, true, *title));
        head.on_hover_text(about(all));
    }
}

/// The position of a node's figures.
#[derive(Clone, Copy)]
enum CostsPlace {
    /// After the name, from this position on.
    Behind(f32),
    /// In columns, which begin at this position.
    Columns(f32),
}

/// The costs of a node in the run: after its name, or in columns at the right of the visible area.
fn costs_ui(
    ui: &Ui,
    (all, costs): (&ProgramTreeTotals, &ProgramTreeCosts),
    columns: &[CostColumn],
    rect: Rect,
    place: CostsPlace,
) {
    let colour = ThemePalette::for_ui(ui).weak_text;
    let font = FontId::proportional(text_size::SMALL);
    let text = |column: &CostColumn| (column.text)(ui, all, costs);
    match place {
        CostsPlace::Behind(behind) => {
            let words: Vec<String> = columns.iter().take(FEW_COLUMNS).filter_map(text).collect();
            let at = pos2(behind, rect.center().y);
            ui.painter().text(at, Align2::LEFT_CENTER, words.join(", "), font, colour);
        }
        CostsPlace::Columns(left) => {
            let mut right = left;
            for column in columns {
                right += column.width;
                let at = pos2(right, rect.center().y);
                if let Some(text) = text(column) {
                    ui.painter().text(at, Align2::RIGHT_CENTER, text, font.clone(), colour);
                }
            }
        }
    }
}

/// The colour of a node, as in the trace. Containers are green.
pub(crate) fn kind_colour(palette: &ThemePalette, program: &ProgramNode) -> Color32 {
    let external = !program.is_internal_sync();
    match program.kind {
        ProgramKind::Sequence | ProgramKind::Repeat | ProgramKind::Call | ProgramKind::Switch => {
            palette.good
        }
        ProgramKind::Sync if HostCallPart::of_sync(&program.name).is_some() => palette.stream_begin,
        kind => {
            let activity = StepActivity::from_program_kind(kind, program.stream);
            step_colour(palette, kind, activity, external)
        }
    }
}
