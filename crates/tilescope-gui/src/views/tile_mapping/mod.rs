//! The tile mapping view: the tiles that hold each part of a tensor, an operation or a compute set.

mod replicas;
mod tables;

use super::{ReportView, ViewContext, ViewDescriptor, ViewScales};
use crate::model::command::AppCommand;
use crate::model::selection::Selection;
use crate::model::view_id::ViewId;
use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::views::tile_selection::{
    floor_plan_ui, measured_tiles_ui, tile_picker_ui, trace_cursor_button_ui,
};
use crate::widgets::background_query::{BackgroundQuery, Versioned};
use crate::widgets::bottom_panel::{BottomPanel, LOW, tabs_row_ui};
use crate::widgets::floor_plan::{FloorPlanValues, FloorPlanWidget};
use crate::widgets::heat_scale::{HeatScale, scale_ui};
use crate::widgets::icons::Icon;
use crate::widgets::query_state::{LIST_TEXTS, QueryTexts};
use crate::widgets::table::TableState;
use crate::widgets::tile_picker::TilePicker;
use crate::widgets::toolbar::{ToolbarBuilder, toolbar_ui};
use crate::widgets::{central_ui, cut_list_ui, empty_state_ui, hint_ui, tables_height, tabs_ui};
use egui::accesskit::Role;
use egui::{Frame, Panel, RichText, Ui, WidgetInfo};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tables::{TileMappingTab, TileMappingTables};
use tilescope_analysis::data_table::DataTable;
use tilescope_analysis::tables::tile_mapping as columns;
use tilescope_analysis::tile_mapping::{
    MAX_VARIABLES, MappingListEntry, MappingMeasure, MappingSubject, MappingSubjectKind,
    ReplicaShare, SubjectTileMapping, TileMappingBalance, mapping, replica_share, subjects,
};
use tilescope_report::units::{Bytes, grouped, percent};
use tilescope_report::{Report, ReportError, ReportPart};

/// The entry of this view in the list of views.
pub(crate) const VIEW: ViewDescriptor = ViewDescriptor {
    id: ViewId::TileMapping,
    help: include_str!("../../../../../assets/help/tile-mapping.md"),
    icon: Icon::Tiles,
    settings: &["kind", "measure", "powers", "tab"],
    create: || Box::<TileMappingView>::default(),
};

/// All subjects of a kind, as a table.
struct MappingSubjectList {
    entries: Vec<MappingListEntry>,
    table: Arc<DataTable>,
    whole: bool,
}

/// The subject, its placement, and its balance by each measure.
struct TileMappingData {
    subject: MappingSubject,
    mapping: SubjectTileMapping,
    /// The tables of its regions, vertices and rearrangements.
    tables: [Arc<DataTable>; 3],
    balances: [TileMappingBalance; 3],
    /// The part of it that each replica holds, if known.
    share: Option<ReplicaShare>,
    replicas: u32,
}

/// The width below which there is no space for the list beside the map.
const NARROW: f32 = 640.0;

const MEASURES: [(MappingMeasure, &str); 3] = [
    (MappingMeasure::Bytes, "Bytes"),
    (MappingMeasure::Vertices, "Vertices"),
    (MappingMeasure::Cycles, "Cycles"),
];

/// The state of the view.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct TileMappingView {
    /// The kind of the list; `None` until the user or a selection chooses one.
    kind: Option<MappingSubjectKind>,
    #[serde(skip)]
    listed: BackgroundQuery<MappingSubjectKind, MappingSubjectList>,
    list: TableState,
    /// The subject of the map; the largest of the list if nothing is selected.
    subject: Option<MappingSubject>,
    /// The selection of other tabs in the last frame.
    #[serde(skip)]
    seen: Option<MappingSubject>,
    #[serde(skip)]
    mapped: BackgroundQuery<MappingSubject, Option<Versioned<TileMappingData>>>,
    measure: MappingMeasure,
    powers: bool,
    #[serde(skip)]
    maps: [FloorPlanWidget; 2],
    /// The quantity of the maps and its scale in the last frame.
    #[serde(skip)]
    heat_scale: Option<(&'static str, HeatScale)>,
    tables: TileMappingTables,
    panel: BottomPanel,
    tab: TileMappingTab,
    #[serde(skip)]
    picker: TilePicker,
}

/// The subject for a selection made in any tab.
fn chosen(selection: &Selection) -> Option<MappingSubject> {
    let operation = selection.operation.map(MappingSubject::Operation);
    selection.variable.map(MappingSubject::Tensor).or(operation)
}

impl ReportView for TileMappingView {
    fn ui(&mut self, ui: &mut Ui, context: &ViewContext<'_>) {
        self.notice_selection(context);
        toolbar_ui(ui, VIEW.id.name(), |bar| self.controls_ui(bar, context));
        let kind = self.kind();
        if !recorded(&context.opened.report, kind) {
            let (heading, sentence) = why_empty(kind);
            empty_state_ui(ui, heading, sentence);
            return measured_tiles_ui(ui, context);
        }
        let listed = context.ask(ui, &mut self.listed, &kind, |report, kind| listed(report, *kind));
        listed.fresh_only().show(ui, LIST_TEXTS, |ui, listed| self.panels_ui(ui, context, listed));
    }

    fn clear_selection_commands(&self) -> Vec<AppCommand> {
        vec![AppCommand::SelectTiles(Vec::new())]
    }

    fn scales(&self) -> ViewScales {
        ViewScales { graph_top: None, heat: self.heat_scale }
    }

    fn notice_restored(&mut self, selection: &Selection) {
        // A place without a kind follows its selection.
        self.seen = self.kind.and_then(|_| chosen(selection));
    }
}

impl TileMappingView {
    fn panels_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        listed: &Versioned<MappingSubjectList>,
    ) {
        let width = ui.available_width();
        let palette = ThemePalette::for_ui(ui);
        let frame = Frame::new().fill(palette.page);
        if width < NARROW {
            central_ui(ui, |ui| {
                self.mapping_ui(ui, context, listed, true);
            });
            return;
        }
        self.tab =
            if self.tab == TileMappingTab::List { TileMappingTab::Regions } else { self.tab };
        Panel::left("subjects")
            .resizable(true)
            .default_size((width * 0.5).clamp(190.0, 560.0))
            .size_range(150.0..=(width - 160.0).max(151.0))
            .frame(frame.inner_margin(egui::Margin { right: 10, ..egui::Margin::ZERO }))
            .show(ui, |ui| {
                ui.take_available_space();
                ui.add_space(spacing::S);
                self.list_ui(ui, context, listed);
            });
        central_ui(ui, |ui| {
            self.mapping_ui(ui, context, listed, false);
        });
    }
}

fn recorded(report: &Report, kind: MappingSubjectKind) -> bool {
    report.has(match kind {
        MappingSubjectKind::Tensors => ReportPart::Variables,
        MappingSubjectKind::Operations => ReportPart::Operations,
        MappingSubjectKind::ComputeSets => ReportPart::ComputeSetCycles,
    })
}

fn why_empty(kind: MappingSubjectKind) -> (&'static str, &'static str) {
    match kind {
        MappingSubjectKind::Tensors => {
            ("No variables recorded", "This report does not record the tile mapping of variables.")
        }
        MappingSubjectKind::Operations => (
            "No operations recorded",
            "This report does not record the operations of the model. With Poplar, switch on \
             autoReport.outputDebugInfo.",
        ),
        MappingSubjectKind::ComputeSets => (
            "No compute sets recorded",
            "This report does not record the cycles of each tile in a compute set.",
        ),
    }
}

/// The list of this name, as the view shows it.
#[cfg(test)]
pub(super) fn seen(report: &Report, name: &str) -> DataTable {
    let kind = match name {
        "tensors" => MappingSubjectKind::Tensors,
        "operations" => MappingSubjectKind::Operations,
        _ => MappingSubjectKind::ComputeSets,
    };
    listed(report, kind).unwrap().table.as_ref().clone()
}

fn listed(report: &Report, kind: MappingSubjectKind) -> Result<MappingSubjectList, ReportError> {
    let (entries, whole) = subjects(report, kind)?;
    let table = Arc::new(columns::subjects(&entries, kind).with_keys(report)?);
    Ok(MappingSubjectList { entries, table, whole })
}

impl TileMappingView {
    fn kind(&self) -> MappingSubjectKind {
        self.kind.unwrap_or_default()
    }

    /// Follows the selection of other tabs.
    fn notice_selection(&mut self, context: &ViewContext<'_>) {
        let chosen = chosen(context.selection);
        if self.seen != chosen {
            self.seen = chosen;
            if let Some(subject) = chosen {
                self.kind = Some(match subject {
                    MappingSubject::Tensor(_) => MappingSubjectKind::Tensors,
                    MappingSubject::Operation(_) => MappingSubjectKind::Operations,
                    MappingSubject::ComputeSet(_) => MappingSubjectKind::ComputeSets,
                });
                self.subject = chosen;
            }
        }
    }

    fn choose(&mut self, context: &ViewContext<'_>, subject: MappingSubject) {
        self.subject = Some(subject);
        let (variable, operation) = match subject {
            MappingSubject::Tensor(variable) => (Some(variable), None),
            MappingSubject::Operation(operation) => (None, Some(operation)),
            MappingSubject::ComputeSet(_) => return,
        };
        context.commands.push(AppCommand::SelectVariable(variable));
        if operation.is_some() {
            context.commands.push(AppCommand::SelectOperation(operation));
        }
    }

    fn controls_ui(&mut self, bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
        let kinds = [
            (MappingSubjectKind::Tensors, "Tensors"),
            (MappingSubjectKind::Operations, "Operations"),
            (MappingSubjectKind::ComputeSets, "Compute sets"),
        ];
        if let Some(kind) = bar.choice("Map", &kinds, self.kind()) {
            self.kind = Some(kind);
            self.subject = None;
        }
        let measures = self.measures();
        if let Some(measure) = bar.choice("Show", &measures, self.measure) {
            self.measure = measure;
        }
        let hint = "Logarithmic colour scale, to tell small values apart.";
        bar.checkbox("Logarithmic colours", &mut self.powers, hint);
        trace_cursor_button_ui(bar, context);
        bar.align_right();
        bar.add_box("Select tiles", |ui| tile_picker_ui(ui, context, &mut self.picker));
    }

    /// The measures that the subject has.
    fn measures(&self) -> Vec<(MappingMeasure, &'static str)> {
        let latest = self.mapped.latest().and_then(|answer| answer.as_ref());
        let has = |measure| latest.is_none_or(|mapped| mapped.mapping.has(measure));
        let found: Vec<_> = MEASURES.into_iter().filter(|(measure, _)| has(*measure)).collect();
        if found.is_empty() { MEASURES[..1].to_vec() } else { found }
    }

    fn list_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        listed: &Versioned<MappingSubjectList>,
    ) {
        if !listed.whole {
            let most = grouped(MAX_VARIABLES as u64);
            cut_list_ui(ui, format!("Sums cover the first {most} variables only; there are more."));
        }
        let wanted = self.subject_in(listed);
        let chosen = listed.entries.iter().position(|entry| Some(entry.subject) == wanted);
        let generation = listed.version();
        let clicked = self.list.choose_ui(
            ui,
            context.workers,
            &listed.table,
            generation,
            "Filter by name",
            chosen.as_slice(),
        );
        if let Some(row) = clicked {
            self.choose(context, listed.entries[row].subject);
        }
    }

    /// The selected entry, or the largest of the list.
    fn subject_in(&self, listed: &MappingSubjectList) -> Option<MappingSubject> {
        // The first of equal entries, in table order.
        if self.subject.is_some() {
            return self.subject;
        }
        let largest = listed.entries.iter().min_by_key(|entry| std::cmp::Reverse(entry.size))?;
        Some(largest.subject)
    }

    fn mapping_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        listed: &Versioned<MappingSubjectList>,
        narrow: bool,
    ) {
        let Some(subject) = self.subject_in(listed) else {
            return hint_ui(ui, "The report has none.");
        };
        let texts = QueryTexts { waiting: "Reading…", failed: "The mapping cannot be read" };
        let mapped =
            context.ask(ui, &mut self.mapped, &subject, |report, subject| mapped(report, *subject));
        mapped.show(ui, texts, |ui, mapped| match mapped.as_ref() {
            Some(mapped) => self.mapped_ui(ui, context, mapped, narrow.then_some(listed)),
            None => empty_state_ui(ui, "Not in this report", "Select another entry on the left."),
        });
    }

    /// The map, with the tables below it. If a list is given, it is one of the tables.
    fn mapped_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        mapped: &Versioned<TileMappingData>,
        listed: Option<&Versioned<MappingSubjectList>>,
    ) {
        if !mapped.mapping.has(self.measure) {
            let other = MEASURES.into_iter().find(|(measure, _)| mapped.mapping.has(*measure));
            self.measure = other.map_or(MappingMeasure::Bytes, |(measure, _)| measure);
        }
        let room = (tables_height(ui, 0.4), LOW);
        self.panel = self.panel.ui(ui, "mapping tables", room, |ui, open| {
            self.tables_ui(ui, context, (mapped, listed), open);
        });
        central_ui(ui, |ui| {
            self.head_ui(ui, mapped);
            self.maps_ui(ui, context, mapped);
        });
    }

    /// The subject of the map and its balance.
    fn head_ui(&self, ui: &mut Ui, mapped: &TileMappingData) {
        Frame::new().inner_margin(egui::Margin { left: 12, right: 12, top: 8, bottom: 2 }).show(
            ui,
            |ui| {
                let name: String = mapped.mapping.name.chars().take(400).collect();
                ui.add(egui::Label::new(crate::theme::fonts::strong(name)).truncate());
                if !mapped.mapping.about.is_empty() {
                    let about: String = mapped.mapping.about.chars().take(400).collect();
                    ui.add(egui::Label::new(weak_text(about)).truncate());
                }
                let balance = mapped.balances[self.measure as usize];
                let unit = self.measure.unit();
                ui.horizontal_wrapped(|ui| {
                    ui.spacing_mut().item_spacing.x = spacing::L;
                    let numbers = numbers(ui);
                    let shown = facts(&balance, &|value| unit.short(value, numbers));
                    // All digits are written only for a pointer or a screen reader.
                    let write_exact = |at: usize| {
                        let all = facts(&balance, &|value| unit.exact(value));
                        all.into_iter().nth(at).map_or_else(String::new, |(_, value, _)| value)
                    };
                    for (at, (name, value, hint)) in shown.into_iter().enumerate() {
                        let label = ui.label(weak_text(format!("{name} {value}")));
                        label.widget_info(|| {
                            WidgetInfo::labeled(
                                Role::Label,
                                true,
                                format!("{name} {}", write_exact(at)),
                            )
                        });
                        label.on_hover_ui(|ui| {
                            ui.label(format!("{}. {hint}", write_exact(at)));
                        });
                    }
                });
            },
        );
    }

    fn maps_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        mapped: &Versioned<TileMappingData>,
    ) {
        let rearranged = match self.tab {
            TileMappingTab::Rearrangements => self.tables.rearrangement(&mapped.mapping),
            _ => None,
        };
        let generation = |part: u64| (mapped.version(), part);
        let powers = self.powers;
        let Some((at, one)) = rearranged else {
            let values = mapped.mapping.values(self.measure);
            let unit = self.measure.unit();
            let own = HeatScale::of(values, powers);
            let measure = MEASURES.into_iter().find(|(measure, _)| *measure == self.measure);
            self.heat_scale = measure.map(|(_, name)| (name, own));
            let scale = context.shared_scale(own);
            let numbers = numbers(ui);
            let print = |value| unit.short(value, numbers);
            scale_row_ui(ui, print(scale.least()), print(scale.most()));
            let name = "Floor plan";
            let part = self.measure as u64;
            let shown = FloorPlanValues { name, values, generation: generation(part), scale, unit };
            return floor_plan_ui(ui, context, &mut self.maps[0], shown);
        };
        let tiles = mapped.mapping.bytes.len();
        let spread =
            |runs| tilescope_analysis::tile_curves::spread(runs, tiles, |bytes: &Bytes| *bytes);
        let sides = [("Before", spread(&one.before)), ("After", spread(&one.after))];
        let own = HeatScale::of(sides.iter().flat_map(|(_, values)| values), powers);
        self.heat_scale = Some(("Rearrangements", own));
        let scale = context.shared_scale(own);
        let numbers = numbers(ui);
        scale_row_ui(ui, numbers.bytes(scale.least()), numbers.bytes(scale.most()));
        let area = ui.available_rect_before_wrap();
        let wide = area.width() > area.height();
        let half = if wide { area.width() } else { area.height() } / 2.0;
        for (side, (name, values)) in sides.iter().enumerate() {
            let (left, top) = area.split_left_right_at_x(area.left() + half);
            let (upper, lower) = area.split_top_bottom_at_y(area.top() + half);
            let rect = if wide { [left, top][side] } else { [upper, lower][side] };
            let mut ui = ui.new_child(egui::UiBuilder::new().max_rect(rect));
            let title = format!("{name}: what tiles {}", ["send", "receive"][side]);
            ui.horizontal(|ui| {
                ui.add_space(spacing::L);
                ui.label(RichText::new(&title).size(text_size::SMALL));
            });
            let generation = generation(8 + 2 * at as u64 + side as u64);
            let unit = MappingMeasure::Bytes.unit();
            let shown = FloorPlanValues { name: &title, values, generation, scale, unit };
            floor_plan_ui(&mut ui, context, &mut self.maps[side], shown);
        }
        ui.allocate_rect(area, egui::Sense::hover());
    }

    /// The tables. The list is one of them if there is no space beside the map.
    fn tables_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        (mapped, listed): (&Versioned<TileMappingData>, Option<&Versioned<MappingSubjectList>>),
        open: &mut bool,
    ) {
        let rearranged = format!("Rearrangements ({})", mapped.mapping.rearrangements.len());
        let tabs = [
            (TileMappingTab::List, "Choose"),
            (TileMappingTab::Regions, "Regions"),
            (TileMappingTab::Vertices, "Vertices"),
            (TileMappingTab::Rearrangements, rearranged.as_str()),
            (TileMappingTab::Replicas, "Replicas"),
        ];
        let shown = &tabs[usize::from(listed.is_none())..];
        *open |= tabs_row_ui(ui, |ui| tabs_ui(ui, VIEW.id.name(), shown, &mut self.tab));
        if !*open {
            return;
        }
        ui.add_space(spacing::XS);
        if let (TileMappingTab::List, Some(listed)) = (self.tab, listed) {
            return self.list_ui(ui, context, listed);
        }
        if self.tab == TileMappingTab::Replicas {
            return replicas::replicas_ui(ui, mapped.share.as_ref(), mapped.replicas);
        }
        let which = (mapped.subject, mapped.version());
        let of = (&mapped.mapping, &mapped.tables);
        self.tables.ui(ui, context, self.tab, of, which);
    }
}

fn weak_text(text: String) -> RichText {
    RichText::new(text).weak().size(text_size::SMALL)
}

fn mapped(
    report: &Report,
    subject: MappingSubject,
) -> Result<Option<Versioned<TileMappingData>>, ReportError> {
    let target = report.target()?;
    let found = mapping(report, subject)?;
    let share = match subject {
        MappingSubject::Tensor(id) => replica_share(report, id)?,
        MappingSubject::Operation(_) | MappingSubject::ComputeSet(_) => None,
    };
    let replicas = target.replicas;
    let Some(mapping) = found else { return Ok(None) };
    let tables = tables::of_subject(report, &mapping)?;
    let balances = MEASURES
        .map(|(measure, _)| TileMappingBalance::from_values(mapping.values(measure), &target));
    let data = TileMappingData { subject, mapping, tables, balances, share, replicas };
    Ok(Some(Versioned::new(data)))
}

fn scale_row_ui(ui: &mut Ui, least: String, most: String) {
    ui.horizontal(|ui| {
        ui.add_space(spacing::L);
        scale_ui(ui, &least, &most);
    });
}

/// The name, value and formula of the figures of a map, with amounts as `print` writes them.
fn facts(
    balance: &TileMappingBalance,
    print: &dyn Fn(u64) -> String,
) -> Vec<(&'static str, String, &'static str)> {
    let mut facts = vec![
        ("Total", print(balance.total), "Sum over all tiles"),
        (
            "Tiles",
            format!("{} ({})", grouped(balance.tiles), percent(balance.used_share())),
            "Tiles that hold a part, and their share of all tiles of their IPUs",
        ),
        (
            "Per tile",
            format!("{} - {}", print(balance.least), print(balance.most)),
            "The smallest and the largest part",
        ),
        (
            "Max/mean",
            format!("{:.2}", balance.imbalance()),
            "Largest part / mean part, over the tiles that hold a part; 1 is perfectly balanced",
        ),
    ];
    if balance.granularity > 0 {
        let hint = "Largest size that divides every part";
        facts.push(("Grain", print(balance.granularity), hint));
    }
    facts
}
