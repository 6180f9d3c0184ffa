//! The strip of controls above the lanes.

use super::scene::Prepared;
use super::{ExecutionTrace, arrows, bsp};
use crate::analysis::trace::{HostWork, Style};
use crate::gui::command::Command;
use crate::gui::prefs::TracePrefs;
use crate::gui::theme::Palette;
use crate::gui::views::ViewContext;
use crate::gui::widgets::axis::count_drag;
use crate::gui::widgets::{choice_ui, legend_ui, search_ui, toolbar_end_ui, weak_ui};
use crate::units::{Cycles, seconds};
use egui::{RichText, Ui};
use std::collections::BTreeSet;

impl ExecutionTrace {
    pub(super) fn controls_ui(
        &mut self,
        ui: &mut Ui,
        context: &mut ViewContext<'_>,
        prepared: &Prepared,
    ) {
        let old = context.prefs.trace;
        let mut prefs = old;
        let styles = [(Style::Flame, "Flame"), (Style::Flat, "Flat")];
        if let Some(style) = choice_ui(ui, "View", &styles, prefs.style) {
            prefs.style = style;
        }
        if prepared.ipus.len() > 1 {
            self.ipus_ui(ui, prepared);
        }
        let filter = search_ui(ui, &mut self.filter, "Filter steps", 150.0);
        if std::mem::take(&mut self.focus_filter) {
            filter.request_focus();
        }
        ui.separator();
        let marked = !prepared.mark_kinds.is_empty() || prepared.host;
        toggles_ui(ui, &mut prefs, marked, prepared.ipus.len() > 1);
        bsp::controls_ui(ui, &mut prefs);
        ui.menu_button("Key", key_ui);
        if prefs != old {
            context.commands.push(Command::SetTracePrefs(prefs));
        }
        toolbar_end_ui(ui, 320.0, |ui| {
            let all =
                ui.button("Whole run").on_hover_text("Show everything (F without a selection)");
            if all.clicked() {
                self.axis = None;
            }
            self.magnification_ui(ui, context);
        });
    }

    /// Which IPUs are shown: a click shows one alone, Shift + click adds it or takes it away.
    fn ipus_ui(&mut self, ui: &mut Ui, prepared: &Prepared) {
        let title = match self.ipus.len() {
            0 => "All".to_owned(),
            1..=3 => {
                let ipus: Vec<String> = self.ipus.iter().map(u32::to_string).collect();
                format!("IPU {}", ipus.join(", "))
            }
            count => format!("{count} IPUs"),
        };
        weak_ui(ui, "IPU".to_owned());
        let before = self.ipus.clone();
        let shown = egui::ComboBox::from_id_salt("IPU").selected_text(title).show_ui(ui, |ui| {
            if ui.selectable_label(self.ipus.is_empty(), "All").clicked() {
                self.ipus.clear();
            }
            for ipu in prepared.ipus.iter().map(|lanes| lanes.ipu) {
                let chosen = self.ipus.contains(&ipu);
                let entry = ui.selectable_label(chosen, format!("IPU {ipu}"));
                let entry = entry.on_hover_text("Shift + click shows several");
                if !entry.clicked() {
                    continue;
                }
                if !ui.input(|input| input.modifiers.shift || input.modifiers.command) {
                    self.ipus = BTreeSet::from([ipu]);
                } else if chosen {
                    self.ipus.remove(&ipu);
                } else {
                    self.ipus.insert(ipu);
                }
            }
        });
        shown.response.accessible_name("IPU");
        if self.ipus != before {
            self.scroll = 0.0;
        }
    }

    /// How many cycles are on the screen: to read, to drag, or to type.
    fn magnification_ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        let (Some(axis), Some(limits)) = (self.axis, self.limits) else { return };
        let mut cycles = axis.count(limits);
        let time = Cycles(cycles).seconds_at(context.opened.target.clock);
        if time > 0.0 {
            let text = format!("= {}", seconds(time));
            weak_ui(ui, text);
        }
        let drag = count_drag(&mut cycles, limits).suffix(" cycles");
        let shown = ui.add(drag).accessible_name("Cycles on the screen");
        if shown.on_hover_text("Cycles on the screen: drag, or type how many").changed() {
            self.axis = Some(axis.showing(cycles, limits));
        }
    }
}

fn toggles_ui(ui: &mut Ui, prefs: &mut TracePrefs, marks: bool, several: bool) {
    ui.checkbox(&mut prefs.group_executions, "Group executions").on_hover_text(
        "Show the exchange, arrangement and vertices of an operation as one bar. \
         Switch it off to see what PreArrange costs.",
    );
    ui.checkbox(&mut prefs.group_syncs, "Group syncs")
        .on_hover_text("Show syncs that follow one another as one bar.");
    ui.checkbox(&mut prefs.tile_balance, "Tile balance").on_hover_text(
        "Bright is the share of the tiles' time that is used; the rest of a bar is dim.",
    );
    if marks {
        ui.checkbox(&mut prefs.marks, "Marks")
            .on_hover_text("Rows for runs, iterations, pipeline phases and stages, and the host.");
    }
    if several {
        ui.checkbox(&mut prefs.arrows, "Arrows")
            .on_hover_text("From exchanges between IPUs to the steps that use what arrives.");
    }
}

/// What colours mean.
fn key_ui(ui: &mut Ui) {
    let palette = Palette::of(ui.visuals());
    let entries = [
        (palette.compute, "Compute set (OnTileExecute)"),
        (palette.group, "Everything below a name"),
        (palette.internal_exchange, "Exchange inside an IPU (DoExchange)"),
        (palette.global_exchange, "Exchange between IPUs (GlobalExchange)"),
        (palette.internal_sync, "Sync inside an IPU"),
        (palette.external_sync, "Sync with other IPUs or the host"),
        (palette.stream_copy, "Stream copy"),
        (palette.stream_begin, "Its begin: waiting for the host"),
        (palette.stream_mid, "Its middle: moving data, host"),
        (palette.remote_mid, "Its middle: moving data, remote buffer"),
        (palette.stream_end, "Its end"),
    ];
    for (colour, text) in entries {
        ui.horizontal(|ui| legend_ui(ui, colour, text));
    }
    for work in [HostWork::Awaited, HostWork::Mixed, HostWork::Moving] {
        let (colour, text) = (arrows::host_colour(palette, work), arrows::host_words(work));
        ui.horizontal(|ui| legend_ui(ui, colour, text));
    }
    ui.separator();
    let text = "Dotted foot: several steps in one pixel; the colour is their mixture.";
    ui.label(RichText::new(text).color(palette.weak_text).size(12.0));
}
