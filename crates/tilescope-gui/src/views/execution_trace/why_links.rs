//! The reasons for the length of the selected step: a chain of answers with links to the steps that
//! they name.

use super::events::TraceEvent;
use crate::model::command::{AppCommand, SelectedStep};
use crate::model::view_id::ViewId;
use crate::theme::fonts::strong;
use crate::theme::spacing;
use crate::views::ViewContext;
use egui::{Label, RichText, Ui};
use tilescope_analysis::critical_path::{WhyChain, WhyLink, WhyPlace};

/// The indentation of each answer relative to the one that it explains.
const INDENT: f32 = 14.0;

/// Shows a chain. Returns the events of a clicked link.
pub(super) fn why_ui(ui: &mut Ui, context: &ViewContext<'_>, chain: &WhyChain) -> Vec<TraceEvent> {
    let mut events = Vec::new();
    ui.add_space(spacing::S);
    ui.label(strong("Why")).on_hover_text(
        "The chain of waits that ends at this step, down to the resource of the machine or the \
         host that limits it",
    );
    for (depth, link) in chain.links.iter().enumerate() {
        ui.horizontal(|ui| {
            ui.add_space(depth as f32 * INDENT);
            events.extend(link_ui(ui, link));
            let detail = RichText::new(&link.detail).weak();
            ui.add(Label::new(detail).selectable(true).extend());
        });
    }
    if let Some(operation) = chain.rearranged {
        ui.horizontal(|ui| {
            ui.add_space(chain.links.len() as f32 * INDENT);
            let link = ui.link("Show both layouts in Tile mapping");
            if link.on_hover_text("Tiles before and after the rearrangement").clicked() {
                context.commands.push(AppCommand::SelectVariable(None));
                context.commands.push(AppCommand::SelectOperation(Some(operation)));
                context
                    .commands
                    .push(AppCommand::ShowTables(ViewId::TileMapping, "Rearrangements"));
            }
        });
    }
    if !chain.options.is_empty() {
        ui.horizontal(|ui| {
            ui.add_space(chain.links.len() as f32 * INDENT);
            ui.weak("set by");
            chain.options.iter().for_each(|option| option_ui(ui, context, option));
        });
    }
    events
}

/// A key of a spec, with a link to What if if the report has its spec.
fn option_ui(ui: &mut Ui, context: &ViewContext<'_>, option: &'static str) {
    if context.opened.report.spec().is_none() {
        ui.add(Label::new(option).selectable(true).extend());
    } else if ui.link(option).on_hover_text("Go to this key in What if").clicked() {
        context.commands.push(AppCommand::OpenWhatIfAt(option));
    }
}

fn link_ui(ui: &mut Ui, link: &WhyLink) -> Vec<TraceEvent> {
    let Some(WhyPlace { at, sub_lane, step, position, range, .. }) = link.place else {
        ui.label(&link.text);
        return Vec::new();
    };
    let shown = ui.link(&link.text).on_hover_text(format!("Go to step {step} on IPU {}", at.ipu));
    if !shown.clicked() {
        return Vec::new();
    }
    let step = SelectedStep { at, sub_lane, position, step };
    vec![TraceEvent::ChooseStep { step, add: false }, TraceEvent::BringIntoView(range)]
}
