//! The limits of the selection as text: its lower bound, and the use of its cycles.

use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::ViewContext;
use crate::widgets::{hint_ui, legend_ui};
use egui::{Grid, Label, RichText, ScrollArea, Ui};
use tilescope_analysis::limits::{LimitsRow, ReportLimits, explain};
use tilescope_report::units::{fine_percent, grouped, percent};

/// Shows the limits of the selection.
pub(super) fn details_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    row: Option<&LimitsRow>,
    limits: &ReportLimits,
) {
    let Some(row) = row else {
        return hint_ui(ui, "Select a point or a row to see its ideal cost.");
    };
    let palette = ThemePalette::for_ui(ui);
    let area = ScrollArea::vertical().auto_shrink(false).id_salt("limits details");
    area.show(ui, |ui| {
        ui.horizontal_wrapped(|ui| {
            ui.add_space(spacing::L);
            ui.label(strong(row.name.as_str()));
            let on = row.ipu.map_or_else(String::new, |ipu| format!(" on IPU {ipu}"));
            ui.weak(format!("{}{on}", row.kind));
            let cycles = grouped(row.limits.total().0);
            let wasted = row.limits.wasted().map_or_else(String::new, |wasted| {
                let share = wasted.as_f64() / row.limits.total().as_f64().max(1.0);
                format!(", {} of them wasted", percent(share))
            });
            ui.label(format!("{cycles} cycles in the run{wasted}"));
            if row.operation.is_some() && ui.link("Show in Operations").clicked() {
                context.commands.push(AppCommand::ShowView(ViewId::Operations));
            }
        });
        ui.add_space(spacing::S);
        let lines = explain(row, &limits.machine, numbers(ui));
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            let grid = Grid::new("limits in words").num_columns(4);
            grid.spacing([spacing::L, spacing::S]).show(ui, |ui| {
                for line in lines {
                    let colour =
                        line.class.map_or(palette.good, |class| palette.cycle_class(class));
                    ui.horizontal(|ui| legend_ui(ui, colour, line.title));
                    let cycles = line.cycles.map_or_else(|| "—".to_owned(), |of| grouped(of.0));
                    ui.label(cycles);
                    ui.label(line.share.map_or_else(String::new, fine_percent));
                    let about = line.class.map_or("", |class| class.about());
                    let sentence = RichText::new(line.sentence).size(text_size::SMALL);
                    let words = ui.add(Label::new(sentence).wrap());
                    if !about.is_empty() {
                        words.on_hover_text(about);
                    }
                    ui.end_row();
                }
            });
        });
    });
}
