//! Two reports in one window: every view twice, side by side, or both in one graph, with tables of
//! differences below. What is chosen on one side is chosen on the other.

mod ask;
mod colours;
mod delta;
mod grip;
mod lower;
mod mapping;
mod overlay;
mod time;

pub(crate) use ask::ask_ui;

use super::action::Wish;
use super::command::{ChosenStep, Command};
use super::keep::Beside;
use super::opening::Opened;
use super::session::Selection;
use super::views::{self, State, View, ViewContext, kept, restored};
use super::widgets::below::Below;
use super::widgets::query_state::QueryTexts;
use super::widgets::tables_height;
use super::widgets::toolbar::{Bar, toolbar_ui};
use super::worker::{BackgroundQuery, QueryState, Versioned};
use egui::{CentralPanel, Event, Frame, Margin, Rect, Ui, UiBuilder, pos2};
use mapping::{Other, is_choice};
use serde::{Deserialize, Serialize};
use tilescope_analysis::compare::Alignment;
use tilescope_analysis::insights::Place;
use tilescope_report::units::CycleRange;
use tilescope_report::{Report, ReportError};

/// What belongs together in both reports.
pub(crate) type Aligned = Versioned<Alignment>;

/// One of two reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Side {
    /// The report that is compared, on the left.
    #[default]
    Source,
    /// The report it is compared with, on the right.
    Target,
}

/// What is above the tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Layout {
    /// The view of both reports beside each other.
    #[default]
    SideBySide,
    /// Both in one graph, for views that have one.
    Overlay,
    /// Nothing: the tables take all the room.
    Tables,
}

/// How both sides are shown, as links have it.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Arrangement {
    layout: Layout,
    /// Cycles that the target is ahead.
    offset: i64,
    /// The table of differences that is shown, where the user has chosen one.
    table: Option<usize>,
    /// What the graph of both shows.
    graph: overlay::Shown,
}

/// The report that another one is compared with, and how that is shown.
pub struct Compared {
    /// The report on the right.
    pub target: Opened,
    /// What is chosen in it.
    pub selection: Selection,
    views: Vec<(&'static str, Box<dyn View>)>,
    alignment: BackgroundQuery<(), Alignment>,
    /// First cycles of the steps that are chosen on both sides.
    starts: BackgroundQuery<(ChosenStep, ChosenStep), Option<(u64, u64)>>,
    layout: Layout,
    lower: lower::Lower,
    below: Below,
    overlay: overlay::Overlay,
    delta: delta::Delta,
    time: time::TimeLink,
    /// The side that keys go to.
    active: Side,
}

impl Compared {
    /// A comparison with a report.
    pub(crate) fn new(target: Opened) -> Self {
        let views = views::VIEWS.iter().map(|info| (info.name, (info.create)())).collect();
        Self {
            target,
            selection: Selection::default(),
            views,
            alignment: BackgroundQuery::default(),
            starts: BackgroundQuery::default(),
            layout: Layout::default(),
            lower: lower::Lower::default(),
            below: Below::default(),
            overlay: overlay::Overlay::default(),
            delta: delta::Delta::default(),
            time: time::TimeLink::default(),
            active: Side::default(),
        }
    }

    /// What a place says about this side of the comparison, in a view.
    pub(crate) fn beside(&self, view: &'static str) -> Beside {
        let report = &self.target.path;
        let shown = self.views.iter().find(|(name, _)| *name == view);
        let arrangement = Arrangement {
            layout: self.layout,
            offset: self.time.offset(),
            table: self.lower.chosen(view),
            graph: self.overlay.shown(),
        };
        Beside {
            report: std::path::absolute(report).unwrap_or_else(|_| report.clone()),
            selection: Selection { cycles: None, ..self.selection.clone() },
            state: shown.map(|(_, view)| view.state()).unwrap_or_default(),
            layout: kept(&arrangement),
        }
    }

    /// Shows what a place says, where `selection` exists; names of what means nothing here.
    pub(crate) fn restore(
        &mut self,
        view: &'static str,
        selection: Selection,
        place: &Beside,
    ) -> Vec<String> {
        let mut strange = self.arrange(view, &place.layout);
        if let Some((_, shown)) = self.views.iter_mut().find(|(name, _)| *name == view) {
            strange.extend(shown.restore(&place.state, &selection));
        }
        self.selection = selection;
        strange
    }

    fn arrange(&mut self, view: &'static str, layout: &State) -> Vec<String> {
        let (arrangement, strange) = restored::<Arrangement>(layout);
        self.layout = arrangement.layout;
        self.time = time::TimeLink::placed(arrangement.offset);
        self.lower.choose(view, arrangement.table);
        self.overlay.show(arrangement.graph);
        strange
    }

    /// Goes on where a comparison of the same reports, read before, was; `selection` is what is left
    /// of what was chosen there.
    pub(crate) fn take_over(&mut self, before: &Self, selection: &Selection) {
        self.layout = before.layout;
        self.time = time::TimeLink::placed(before.time.offset());
        self.overlay.show(before.overlay.shown());
        self.selection = selection.clone();
        for ((name, fresh), (_, old)) in self.views.iter_mut().zip(&before.views) {
            self.lower.choose(name, before.lower.chosen(name));
            fresh.restore(&old.state(), selection);
        }
    }

    /// Titles of the tables of differences that are shown.
    pub fn tables(&self) -> Vec<&'static str> {
        self.lower.titles()
    }

    /// The cycles that both traces show.
    pub fn cycles(&self) -> Option<(CycleRange, CycleRange)> {
        self.time.windows()
    }

    /// Shows a view of both reports; `view` is that of the source, whose words `context` has.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        name: &'static str,
        view: &mut dyn View,
        context: &mut ViewContext<'_>,
    ) {
        let aligned = self.align(ui, context);
        toolbar_ui(ui, "comparison", |bar| self.controls_ui(bar, name, context, &aligned));
        let page = super::theme::Palette::of(ui.visuals()).page;
        let frame = Frame::new().fill(page).inner_margin(Margin::same(0));
        if self.layout == Layout::Tables {
            CentralPanel::default().frame(frame).show(ui, |ui| {
                self.lower_ui(ui, name, context, &aligned, &mut true);
            });
            return;
        }
        let mut below = std::mem::take(&mut self.below);
        below.ui(ui, "differences", (tables_height(ui, 0.28), 560.0), |ui, open| {
            self.lower_ui(ui, name, context, &aligned, open);
        });
        self.below = below;
        CentralPanel::default().frame(frame).show(ui, |ui| {
            let overlaid = self.layout == Layout::Overlay && overlay::has(name);
            match (aligned.answer(), overlaid) {
                (Some(aligned), true) => {
                    let target = (&self.target, &self.selection);
                    if let Some((side, command)) = self.overlay.ui(ui, name, context, target) {
                        self.ask_both(context, side, vec![command], Some(aligned));
                    }
                }
                (aligned, _) => self.panes_ui(ui, name, view, context, aligned),
            }
        });
    }

    /// What belongs together, once that is known.
    fn align(&mut self, ui: &Ui, context: &ViewContext<'_>) -> QueryState<Alignment> {
        let (source, target) = (context.opened.report.clone(), self.target.report.clone());
        let question = move |(): &()| Alignment::read(&source, &target);
        self.alignment.ask(ui.ctx(), context.workers, &(), question)
    }

    fn controls_ui(
        &mut self,
        bar: &mut Bar<'_>,
        name: &'static str,
        context: &mut ViewContext<'_>,
        aligned: &QueryState<Alignment>,
    ) {
        let (source, target) = (context.opened.name(), self.target.name());
        bar.add("Source", |ui| colours::side_ui(ui, Side::Source, &source));
        bar.add("Target", |ui| colours::side_ui(ui, Side::Target, &target));
        let mut layouts = vec![(Layout::SideBySide, "Side by side")];
        if overlay::has(name) {
            layouts.push((Layout::Overlay, "One graph"));
        }
        layouts.push((Layout::Tables, "Tables only"));
        let shown = if layouts.iter().any(|one| one.0 == self.layout) {
            self.layout
        } else {
            Layout::SideBySide
        };
        if let Some(layout) = bar.choice("Layout", &layouts, shown) {
            self.layout = layout;
        }
        if overlay::has(name) && self.layout == Layout::Overlay {
            self.overlay.controls_ui(bar, name, context);
        }
        if name == "execution-trace" && self.layout == Layout::SideBySide {
            let selected = match aligned.answer() {
                Some(_) => self.selected_starts(bar.context(), context),
                None => None,
            };
            self.time.controls_ui(bar, selected);
        }
        if bar.button("Swap", "Exchange source and target") {
            context.commands.push(Command::SwapSides);
        }
        if bar.button("End comparison", "Show the source alone") {
            context.commands.push(Command::EndComparison);
        }
        if aligned.is_overdue() {
            bar.add("Aligning", |ui| {
                ui.spinner();
                ui.label("Aligning…");
            });
        }
    }

    /// First cycles of the steps that are chosen on both sides.
    fn selected_starts(
        &mut self,
        ui: &egui::Context,
        context: &ViewContext<'_>,
    ) -> Option<(u64, u64)> {
        let chosen = (context.selection.step?, self.selection.step?);
        let (source, target) = (context.opened.report.clone(), self.target.report.clone());
        let question = move |(in_source, in_target): &(ChosenStep, ChosenStep)| {
            let starts = (start_of(&source, *in_source)?, start_of(&target, *in_target)?);
            Ok::<_, ReportError>(starts.0.zip(starts.1))
        };
        match self.starts.ask(ui, context.workers, &chosen, question) {
            QueryState::Fresh(starts) => *starts,
            // Without them nothing can be lined up.
            _ => None,
        }
    }

    fn lower_ui(
        &mut self,
        ui: &mut Ui,
        name: &'static str,
        context: &mut ViewContext<'_>,
        aligned: &QueryState<Alignment>,
        open: &mut bool,
    ) {
        let texts = QueryTexts { waiting: "Aligning…", failed: "The reports cannot be compared" };
        let reports = (context.opened, &self.target);
        let clicked = aligned.show(ui, texts, |ui, aligned| {
            self.lower.ui(ui, context.workers, name, reports, (aligned, open))
        });
        if let Some(places) = clicked.flatten() {
            self.show(&places, context);
        }
    }

    /// Shows places on both sides; their first cycles above each other.
    fn show(&mut self, places: &[Option<Place>; 2], context: &mut ViewContext<'_>) {
        let start = |place: &Option<Place>| place.as_ref()?.cycles.map(|cycles| cycles.start);
        if let (Some(source), Some(target)) = (start(&places[0]), start(&places[1])) {
            self.time.line_up(source, target);
        }
        for (side, place) in lower::sides(places) {
            let commands = Command::choose(place).into_iter();
            context.commands.extend(commands.map(|command| match side {
                Side::Source => command,
                Side::Target => Command::ToTarget(Box::new(command)),
            }));
        }
    }

    fn panes_ui(
        &mut self,
        ui: &mut Ui,
        name: &'static str,
        view: &mut dyn View,
        context: &mut ViewContext<'_>,
        aligned: Option<&Aligned>,
    ) {
        let mut area = ui.available_rect_before_wrap();
        if let (true, Some(aligned), Some(timeline)) =
            (name == "execution-trace", aligned, view.timeline())
        {
            let reports = (context.opened, &self.target);
            let ipu = context.selection.step.map(|step| step.ipu).or(context.selection.ipu);
            let lane =
                Rect::from_min_max(pos2(area.left(), area.bottom() - delta::HEIGHT), area.max);
            area.max.y = lane.top();
            self.delta.ui(ui, lane, context.workers, reports, aligned, (timeline, ipu));
        }
        let middle = area.center().x.round();
        let left = Rect::from_min_max(area.min, pos2(middle - 1.0, area.bottom()));
        let right = Rect::from_min_max(pos2(middle + 1.0, area.top()), area.max);
        ui.painter().vline(middle, area.y_range(), ui.visuals().widgets.noninteractive.bg_stroke);
        if let Some(at) = ui.input(|i| i.pointer.hover_pos()).filter(|at| area.contains(*at)) {
            self.active = if at.x < middle { Side::Source } else { Side::Target };
        }
        let (mut from_source, mut from_target) = (Vec::new(), Vec::new());
        // What keys and menus ask for goes where the pointer is, but arrows move the grip that has
        // the focus.
        let held = self.time.has_focus();
        let arrows = [Wish::Next, Wish::Previous, Wish::AddNext, Wish::AddPrevious];
        let arrow = |wish: &Wish| arrows.contains(wish);
        let wishes = context.wishes.iter().filter(|wish| !(held && arrow(wish)));
        let wishes = &*wishes.copied().collect::<Vec<Wish>>();
        let asked = |side: Side| if side == self.active { wishes } else { &[] };
        let (of_source, of_target) = (asked(Side::Source), asked(Side::Target));
        let mut source =
            ViewContext { commands: &mut from_source, wishes: of_source, ..context.again() };
        pane(ui, left, Side::Source, self.active, |ui| view.ui(ui, &mut source));
        let other = self.views.iter_mut().find(|(known, _)| *known == name);
        let Some((_, other)) = other else { return };
        let mut target = ViewContext {
            opened: &self.target,
            selection: &self.selection,
            commands: &mut from_target,
            wishes: of_target,
            ..context.again()
        };
        pane(ui, right, Side::Target, self.active, |ui| other.ui(ui, &mut target));
        self.time.follow(view, other.as_mut());
        if let Some(timeline) = other.timeline() {
            self.time.grip_ui(ui, right, timeline);
        }
        self.ask_both(context, Side::Source, from_source, aligned);
        self.ask_both(context, Side::Target, from_target, aligned);
    }

    /// Asks for what was asked for on one side, and for the same on the other, where there is the
    /// same.
    fn ask_both(
        &self,
        context: &mut ViewContext<'_>,
        from: Side,
        commands: Vec<Command>,
        aligned: Option<&Aligned>,
    ) {
        let opened = if from == Side::Source { &self.target } else { context.opened };
        let other = aligned.map(|alignment| Other { alignment, from, opened });
        let to_target = |command: Command| Command::ToTarget(Box::new(command));
        for command in commands {
            let there = other.as_ref().and_then(|other| other.command(&command));
            match from {
                Side::Source => {
                    context.commands.push(command);
                    context.commands.extend(there.map(to_target));
                }
                Side::Target => {
                    let own = is_choice(&command);
                    context.commands.push(if own { to_target(command) } else { command });
                    context.commands.extend(there);
                }
            }
        }
    }
}

/// The first cycle of a step, if it is in the report.
fn start_of(report: &Report, chosen: ChosenStep) -> Result<Option<u64>, ReportError> {
    let trace = report.trace()?;
    let lane = trace.as_ref().and_then(|trace| trace.lane_of(chosen.ipu, chosen.sub_lane));
    let step = lane.map(|lane| lane.step(chosen.position)).transpose()?.flatten();
    Ok(step.map(|step| step.range.start))
}

/// One side; keys reach only the active one.
fn pane(ui: &mut Ui, rect: Rect, side: Side, active: Side, contents: impl FnOnce(&mut Ui)) {
    let is_key = |event: &Event| matches!(event, Event::Key { .. } | Event::Text(_));
    let taken = (side != active).then(|| {
        ui.input_mut(|input| {
            let all = std::mem::take(&mut input.events);
            input.events = all.iter().filter(|event| !is_key(event)).cloned().collect();
            all
        })
    });
    let salt = if side == Side::Source { "source" } else { "target" };
    ui.scope_builder(UiBuilder::new().id_salt(salt).max_rect(rect), |ui| {
        ui.set_clip_rect(rect.intersect(ui.clip_rect()));
        contents(ui);
    });
    if let Some(events) = taken {
        ui.input_mut(|input| input.events = events);
    }
}
