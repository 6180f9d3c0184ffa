//! The toolbar above the lanes.

use super::events::TraceEvent;
use super::layers::{host, tiles};
use super::loaded_trace::LoadedTrace;
use super::places;
use super::settings::TraceSettings;
use crate::model::command::AppCommand;
use crate::model::preferences::TracePrefs;
use crate::theme::{ThemePalette, text_size};
use crate::views::ViewContext;
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis, count_drag};
use crate::widgets::toolbar::{MenuSwitch, ToolbarBuilder, weak_ui};
use crate::widgets::{legend_ui, search_ui};
use egui::{DragValue, Label, Response, RichText, Ui};
use std::collections::BTreeSet;
use tilescope_analysis::trace::{HostActivity, MarkRows, TraceLaneStyle};
use tilescope_report::units::{Cycles, Hertz, IpuId, seconds};

/// Shows the controls. Returns the events that change the settings. `focus_filter` requests the
/// focus for the filter, and is cleared once it has it.
pub(super) fn controls_ui(
    bar: &mut ToolbarBuilder<'_>,
    context: &ViewContext<'_>,
    prepared: &LoadedTrace,
    settings: &TraceSettings,
    focus_filter: &mut bool,
) -> Vec<TraceEvent> {
    let mut events = Vec::new();
    let mut prefs = context.prefs.trace;
    view_menu(bar, context, prepared, &mut prefs);
    if prepared.ipus.len() > 1 {
        bar.add_choice("IPU", |ui| events.extend(ipus_ui(ui, prepared, settings)));
    }
    if !places::repeated(prepared).is_empty() {
        events.extend(bar.menu("Go to", |ui| places::menu_ui(ui, prepared)).flatten());
    }
    if *focus_filter {
        bar.unfold();
    }
    bar.add_box("Filter steps", |ui| {
        let (shown, event) = filter_ui(ui, settings, focus_filter);
        events.extend(event);
        shown
    });
    if let Some(number) = settings.micro_batch {
        events.extend(micro_batch_ui(bar, prepared, number));
    }
    let hint = "A lane for the longest chain of steps that wait for one another. It determines the \
                length of the run. P dims everything else.";
    bar.checkbox("Critical path", &mut prefs.path, hint);
    let hint = "One row per tile below the bars shows the activity of the tile at each cycle.";
    bar.checkbox("BSP", &mut prefs.tiles, hint);
    bar.menu("Key", colour_legend_ui);
    if prefs != context.prefs.trace {
        context.commands.push(AppCommand::SetTracePrefs(prefs));
    }
    bar.align_right();
    if bar.button("Whole run", "Show everything (F without a selection)") {
        events.push(TraceEvent::ShowWholeRun);
    } else if let Some(shown) = settings.shown() {
        events.extend(magnification_ui(bar, shown, context.opened.target.clock));
    }
    events
}

fn filter_ui(
    ui: &mut Ui,
    settings: &TraceSettings,
    focus_filter: &mut bool,
) -> (Response, Option<TraceEvent>) {
    let mut filter = settings.filter.clone();
    let shown = search_ui(ui, &mut filter, "Filter steps", 150.0);
    if std::mem::take(focus_filter) {
        shown.request_focus();
    }
    (shown, (filter != settings.filter).then_some(TraceEvent::SetFilter(filter)))
}

/// The followed micro-batch as a number to read, drag or type.
fn micro_batch_ui(
    bar: &mut ToolbarBuilder<'_>,
    prepared: &LoadedTrace,
    mut number: u64,
) -> Option<TraceEvent> {
    let last = prepared.known_marks().and_then(MarkRows::last_micro_batch).unwrap_or(number);
    let mut changed = false;
    bar.add_box("Micro-batch", |ui| {
        weak_ui(ui, "Micro-batch".to_owned());
        let drag = DragValue::new(&mut number).range(0..=last).speed(0.1);
        let shown = ui.add(drag).accessible_name("Micro-batch");
        let shown = shown
            .on_hover_text("Its path is highlighted: drag or type another number; Escape stops");
        changed = shown.changed();
        shown
    });
    changed.then_some(TraceEvent::FollowMicroBatch(Some(number)))
}

/// The choice of visible IPUs: a click shows one alone, Shift + click adds or removes it.
fn ipus_ui(ui: &mut Ui, prepared: &LoadedTrace, settings: &TraceSettings) -> Option<TraceEvent> {
    weak_ui(ui, "IPU".to_owned());
    let mut ipus = settings.ipus.clone();
    let menu = egui::ComboBox::from_id_salt("IPU").selected_text(ipus_title(&ipus));
    let shown = menu.show_ui(ui, |ui| {
        if ui.selectable_label(ipus.is_empty(), "All").clicked() {
            ipus.clear();
        }
        for ipu in prepared.ipus.iter().map(|lanes| lanes.at.ipu) {
            let chosen = ipus.contains(&ipu);
            let entry = ui.selectable_label(chosen, format!("IPU {ipu}"));
            let entry = entry.on_hover_text("Shift + click shows several");
            if !entry.clicked() {
                continue;
            }
            if !ui.input(|input| input.modifiers.shift || input.modifiers.command) {
                ipus = BTreeSet::from([ipu]);
            } else if chosen {
                ipus.remove(&ipu);
            } else {
                ipus.insert(ipu);
            }
        }
    });
    shown.response.accessible_name("IPU");
    (ipus != settings.ipus).then_some(TraceEvent::ShowIpus(ipus))
}

fn ipus_title(ipus: &BTreeSet<IpuId>) -> String {
    match ipus.len() {
        0 => "All".to_owned(),
        1..=3 => {
            let ipus: Vec<String> = ipus.iter().map(IpuId::to_string).collect();
            format!("IPU {}", ipus.join(", "))
        }
        count => format!("{count} IPUs"),
    }
}

/// The number of visible cycles, to read, drag or type.
fn magnification_ui(
    bar: &mut ToolbarBuilder<'_>,
    (axis, limits): (PanZoomAxis, AxisLimits),
    clock: Hertz,
) -> Option<TraceEvent> {
    let mut cycles = axis.count(limits);
    let time = Cycles(cycles).seconds_at(clock);
    let mut changed = false;
    bar.add_box("Cycles on the screen", |ui| {
        if time > 0.0 {
            weak_ui(ui, format!("= {}", seconds(time)));
        }
        let drag = count_drag(&mut cycles, limits).suffix(" cycles");
        let shown = ui.add(drag).accessible_name("Cycles on the screen");
        let shown = shown.on_hover_text("Cycles on the screen: drag or type a number");
        changed = shown.changed();
        shown
    });
    changed.then(|| TraceEvent::ShowAxis(axis.with_visible_count(cycles, limits)))
}

/// The menu of settings that rarely change: styles of lanes, the ruler, and elements besides bars.
fn view_menu(
    bar: &mut ToolbarBuilder<'_>,
    context: &ViewContext<'_>,
    prepared: &LoadedTrace,
    prefs: &mut TracePrefs,
) {
    let several = prepared.ipus.len() > 1;
    let mut switches = vec![
        MenuSwitch {
            name: "Group executions",
            value: &mut prefs.group_executions,
            hint: "Show the exchange, rearrangement and vertices of an operation as one bar. Switch \
                   it off to see the cost of PreArrange.",
        },
        MenuSwitch {
            name: "Group syncs",
            value: &mut prefs.group_syncs,
            hint: "Show consecutive syncs as one bar.",
        },
        MenuSwitch {
            name: "Tile balance",
            value: &mut prefs.tile_balance,
            hint: "The bright part of a bar is its tile balance; the rest is dimmed.",
        },
        MenuSwitch {
            name: "Shares",
            value: &mut prefs.shares,
            hint: "If steps are narrower than a pixel, stack the time shares of compute, exchange, \
                   copies and sync. Switch it off to see bars.",
        },
    ];
    if !prepared.mark_kinds.is_empty() || prepared.host {
        let hint = "Rows for host calls, iterations, pipeline phases and stages, and the host.";
        switches.push(MenuSwitch { name: "Marks", value: &mut prefs.marks, hint });
    }
    if several {
        let hint = "Arrows from exchanges between IPUs to the steps that use the data.";
        switches.push(MenuSwitch { name: "Arrows", value: &mut prefs.arrows, hint });
    }
    if context.pane.is_none() && prepared.alike.is_some_and(|alike| alike.count() > 1) {
        let hint = if prepared.classes.differ() {
            "One lane per IPU of each replica; classes of replicas differ."
        } else {
            "One lane per IPU of each replica; all replicas are identical."
        };
        switches.push(MenuSwitch { name: "All replicas", value: &mut prefs.replicas, hint });
    }
    let mut others = vec!["Lanes", "Ruler", "Tile rows"];
    let mut no_links = None;
    match &prepared.link_limit {
        Some(Ok(_)) => {
            let hint = "Link traffic of each IPU, as a share of its maximum.";
            switches.push(MenuSwitch { name: "Links", value: &mut prefs.links, hint });
        }
        Some(Err(reason)) => {
            others.push("Links");
            no_links = Some(reason);
        }
        None => {}
    }
    bar.switches("View", switches, &others, |ui| {
        if let Some(reason) = no_links {
            ui.set_max_width(280.0);
            ui.add(Label::new(format!("Links: {reason}")).wrap());
        }
        ui.separator();
        ui.horizontal(|ui| {
            ui.weak("Lanes");
            let flame = ui.radio_value(&mut prefs.style, TraceLaneStyle::Flame, "Flame");
            flame.on_hover_text("Stack the parts of names on top of each other");
            let flat = ui.radio_value(&mut prefs.style, TraceLaneStyle::Flat, "Flat");
            flat.on_hover_text("Show steps only");
        });
        if context.opened.target.clock.0 > 0 {
            ui.horizontal(|ui| {
                ui.weak("Ruler");
                ui.radio_value(&mut prefs.ruler_in_time, false, "Cycles");
                ui.radio_value(&mut prefs.ruler_in_time, true, "Time");
            });
        }
        if prefs.tiles {
            ui.horizontal(|ui| tiles::height_ui(ui, &mut prefs.tiles_height));
        }
    });
}

fn colour_legend_ui(ui: &mut Ui) {
    let palette = ThemePalette::for_ui(ui);
    let entries = [
        (palette.compute, "Compute set (OnTileExecute)"),
        (palette.group, "Group of steps with a common name"),
        (palette.internal_exchange, "Exchange inside an IPU (DoExchange)"),
        (palette.global_exchange, "Exchange between IPUs (GlobalExchange)"),
        (palette.internal_sync, "Sync inside an IPU"),
        (palette.external_sync, "Sync with other IPUs"),
        (palette.stream_copy, "Stream copy"),
        (palette.stream_begin, "Host wait: StreamCopyBegin, sync for a host call"),
        (palette.stream_mid, "StreamCopyMid: host"),
        (palette.remote_mid, "StreamCopyMid: remote buffer"),
        (palette.stream_end, "StreamCopyEnd"),
        (palette.other, "Step of unknown type"),
    ];
    for (colour, text) in entries {
        ui.horizontal(|ui| legend_ui(ui, colour, text));
    }
    ui.separator();
    let marks = [
        (palette.run, "Host call"),
        (palette.mark, "Iteration, phase or slot"),
        (palette.forward, "Forward pass of a stage: F7 is that of micro-batch 7"),
        (palette.backward, "Backward pass of a stage: B7 is that of micro-batch 7"),
        (palette.update, "Weight update"),
    ];
    for (colour, text) in marks {
        ui.horizontal(|ui| legend_ui(ui, colour, text));
    }
    for work in [HostActivity::WaitingForHost, HostActivity::Mixed, HostActivity::Transferring] {
        let colour = host::colour(palette, work);
        let text = host::words(work);
        ui.horizontal(|ui| legend_ui(ui, colour, text));
    }
    ui.separator();
    let dimmed = palette.dimmed(palette.compute);
    ui.horizontal(|ui| legend_ui(ui, dimmed, "Idle share of the tiles in a bar (Tile balance)"));
    ui.horizontal(|ui| legend_ui(ui, palette.lane, "Idle"));
    for text in [
        "Critical path: the colours are those of steps; “IPU 3 Convolve” is a step of IPU 3.",
        "Pale: not on the critical path, not of the followed micro-batch, or not in the filter.",
        "Strip at the foot of a bar: the shares of the activities of its grouped steps.",
        "Dotted base: several steps in one pixel; their colours are mixed.",
        "Zoomed out: the height of each colour is its share of the time. Waits in StreamCopyBegin count \
         as host copies, and all syncs have the colour of the sync with other IPUs.",
    ] {
        ui.label(RichText::new(text).weak().size(text_size::SMALL));
    }
}
