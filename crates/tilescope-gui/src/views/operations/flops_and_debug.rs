//! Two tabs below the table: the operation's floating point work compared to others, and all
//! recorded data about it.

use crate::theme::{ThemePalette, spacing};
use crate::widgets::hint_ui;
use egui::accesskit::Role;
use egui::{
    CornerRadius, Label, Rect, RichText, ScrollArea, Sense, TextStyle, Ui, WidgetInfo, pos2, vec2,
};
use tilescope_analysis::json::JsonLine;
use tilescope_analysis::operations::OpRow;
use tilescope_report::units::{Cycles, grouped, percent};

const ROW: f32 = 21.0;
/// The width of the name of an operation.
const NAME: f32 = 300.0;
/// The length of the longest bar.
const BAR: f32 = 260.0;

/// The FLOPs of all executions; 0 if they are unknown.
fn work(row: &OpRow) -> u64 {
    row.flops.saturating_mul(row.executions.max(1))
}

/// Shows the operations with the most floating point work, with the selected one highlighted.
/// Returns the index of the clicked one.
pub(crate) fn flops_ui(ui: &mut Ui, rows: &[OpRow], chosen: &OpRow) -> Option<usize> {
    let total = rows.iter().map(work).fold(0, u64::saturating_add);
    if total == 0 {
        let sentence = "FLOPs are recorded for operations of the model only; none of these rows \
                        has any.";
        hint_ui(ui, sentence);
        return None;
    }
    let mut order: Vec<usize> = (0..rows.len()).filter(|place| work(&rows[*place]) > 0).collect();
    order.sort_by_key(|place| (std::cmp::Reverse(work(&rows[*place])), *place));
    let most = order.first().map_or(1, |place| work(&rows[*place])).max(1);
    let mut clicked = None;
    ui.horizontal(|ui| {
        ui.add_space(spacing::L);
        let own = work(chosen);
        let share = percent(own as f64 / total as f64);
        let rate = match chosen.elapsed {
            Cycles::ZERO => String::new(),
            cycles => format!(", {:.1} per cycle of its steps", own as f64 / cycles.as_f64()),
        };
        let text = format!("{} FLOPs, {share} of all{rate}", grouped(own));
        ui.label(text).on_hover_text("FLOPs of one execution x executions in the run");
    });
    let area = ScrollArea::vertical().auto_shrink(false).id_salt("flops");
    area.show_rows(ui, ROW, order.len(), |ui, shown| {
        ui.spacing_mut().item_spacing.y = 0.0;
        for place in &order[shown] {
            let row = &rows[*place];
            if bar_ui(ui, row, (work(row), most, total), std::ptr::eq(row, chosen)) {
                clicked = Some(*place);
            }
        }
    });
    clicked
}

fn bar_ui(ui: &mut Ui, row: &OpRow, (work, most, total): (u64, u64, u64), chosen: bool) -> bool {
    let palette = ThemePalette::for_ui(ui);
    let width = ui.available_width();
    let (rect, response) = ui.allocate_exact_size(vec2(width, ROW), Sense::click());
    if chosen || response.hovered() {
        let ground = if chosen { palette.chosen } else { palette.hover };
        ui.painter().rect_filled(rect, 0.0, ground);
    }
    let font = TextStyle::Body.resolve(ui.style());
    let names = NAME.min(width * 0.4);
    let elided = crate::widgets::elided_text::elided;
    let name = elided(ui.painter(), &row.name, font.clone(), palette.text, names - 20.0);
    let at = pos2(rect.left() + 14.0, rect.center().y - name.size().y / 2.0);
    ui.painter().galley(at, name, palette.text);
    let length = (BAR.min(width * 0.3) * work as f32 / most as f32).max(1.0);
    let corner = pos2(rect.left() + names, rect.top() + 5.0);
    let bar = Rect::from_min_size(corner, vec2(length, ROW - 10.0));
    ui.painter().rect_filled(bar, CornerRadius::same(2), palette.compute);
    let text = format!("{} ({})", grouped(work), percent(work as f64 / total.max(1) as f64));
    let room = rect.right() - bar.right() - 10.0;
    let value = elided(ui.painter(), &text, font, palette.weak_text, room.max(1.0));
    let at = pos2(bar.right() + 8.0, rect.center().y - value.size().y / 2.0);
    ui.painter().galley(at, value, palette.weak_text);
    response.widget_info(|| WidgetInfo::selected(Role::Row, true, chosen, &row.name));
    ui.ctx().accesskit_node_builder(response.id, |node| node.set_value(text));
    response.on_hover_text("FLOPs of one execution x executions in the run").clicked()
}

/// Shows the recorded data, line by line.
pub(crate) fn debug_ui(ui: &mut Ui, lines: &[JsonLine]) {
    let area = ScrollArea::both().auto_shrink(false).id_salt("debug");
    area.show_rows(ui, ROW - 3.0, lines.len(), |ui, shown| {
        ui.spacing_mut().item_spacing.y = 0.0;
        for line in &lines[shown] {
            ui.horizontal(|ui| {
                ui.set_height(ROW - 3.0);
                ui.add_space(spacing::L + line.depth as f32 * spacing::INDENT);
                let name = RichText::new(&line.name).monospace().weak();
                ui.add(Label::new(name).extend());
                let value: String = line.value.chars().take(600).collect();
                let value = RichText::new(value).monospace();
                ui.add(Label::new(value).selectable(true).extend());
            });
        }
    });
}
