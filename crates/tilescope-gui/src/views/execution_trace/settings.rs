//! The settings of the trace. Bookmarks and links store them; only events change them.

use super::events::TraceEvent;
use super::layers::marks::SelectedMark;
use super::loaded_trace::LoadedTrace;
use super::selected_bar::SelectedBar;
use crate::model::command::{AppCommand, SelectedStep};
use crate::model::selection::Selection;
use crate::views::cycle_axis::fitting_cycles;
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use tilescope_analysis::trace::TileFigure;
use tilescope_report::units::{CycleRange, Cycles, IpuId, ReplicaIpu};

/// The largest number of steps compared in columns.
const MAX_COLUMNS: usize = 8;

/// The tables below the lanes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum TraceDetailsTab {
    #[default]
    Summary,
    Details,
    Path,
    Statistics,
    Schedule,
    /// The activity of tiles at the cursor.
    Tiles,
    /// The samples of measured tiles.
    Samples,
}

/// The settings of the user. The field names appear in saved places and must stay readable.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TraceSettings {
    /// The visible cycles; all of them before the first frame.
    pub axis: Option<PanZoomAxis>,
    /// The limits that the axis was made for.
    pub limits: Option<AxisLimits>,
    pub bar: Option<SelectedBar>,
    pub mark: Option<SelectedMark>,
    /// The micro-batch whose path is highlighted.
    pub micro_batch: Option<u64>,
    /// True if the critical path is highlighted.
    pub path_lit: bool,
    /// The steps selected in addition to the one shared by all tabs, in the order of selection.
    pub also: Vec<SelectedStep>,
    /// The ranges marked by the user, in order.
    pub marks: Vec<CycleRange>,
    /// The range that zooming out covers, if it is more than the run.
    pub reach: Option<CycleRange>,
    /// The visible IPUs; empty for all of them.
    pub ipus: BTreeSet<IpuId>,
    /// The IPUs that have all of their rows, for any number of others.
    pub enlarged: BTreeSet<IpuId>,
    /// The heights in points that the user has set for IPUs.
    pub heights: BTreeMap<IpuId, f32>,
    pub filter: String,
    pub tab: TraceDetailsTab,
    /// The figure that the floor plan shows.
    pub tile_figure: TileFigure,
    /// The points that the lanes are scrolled down.
    pub scroll: f64,
    /// The step of the session that these settings already follow; the session stores it.
    #[serde(skip)]
    pub followed_step: Option<SelectedStep>,
    /// An IPU to scroll to once the lanes are laid out.
    #[serde(skip)]
    pub reveal: Option<ReplicaIpu>,
}

impl TraceSettings {
    /// Applies an event. Returns the command that informs the session, if others are affected.
    /// `selected` is the step shared by all tabs.
    pub(super) fn apply(
        &mut self,
        event: TraceEvent,
        selected: Option<SelectedStep>,
    ) -> Option<AppCommand> {
        match event {
            TraceEvent::ShowAxis(axis) => self.axis = Some(axis),
            TraceEvent::ShowWholeRun => self.axis = None,
            TraceEvent::ZoomTo(cycles) => self.zoom_to(cycles),
            TraceEvent::ZoomToOrOut(cycles) => self.zoom_to_or_out(cycles),
            TraceEvent::BringIntoView(cycles) => self.bring_into_view(cycles),
            // Only the layout knows the scroll range, and limits it.
            TraceEvent::ScrollBy(points) => self.scroll += points,
            TraceEvent::ShowIpus(ipus) => {
                self.ipus = ipus;
                // The lanes change their positions: the old offset would show arbitrary lanes.
                self.scroll = 0.0;
            }
            TraceEvent::SetFilter(filter) => self.filter = filter,
            TraceEvent::ShowTab(tab) => self.tab = tab,
            TraceEvent::ShowTileFigure(figure) => self.tile_figure = figure,
            TraceEvent::ChooseStep { step, add } => {
                return Some(self.choose_step(step, add, selected));
            }
            // The step has to be looked up first: the view does that.
            TraceEvent::GoToPosition { .. } => {}
            TraceEvent::ChooseBar(bar) => return Some(self.choose_bar(bar)),
            TraceEvent::ChooseMark(mark) => return Some(self.choose_mark(mark)),
            TraceEvent::GoToMark(mark) => {
                self.zoom_to(mark.range);
                return Some(self.choose_mark(mark));
            }
            TraceEvent::MarkAndZoom { mark, zoom } => {
                self.marks = vec![mark];
                self.zoom_to(zoom);
            }
            // One veil at a time: two of them would hide the bars below.
            TraceEvent::FollowMicroBatch(number) => {
                self.micro_batch = number;
                self.path_lit &= number.is_none();
            }
            TraceEvent::LightPath(lit) => {
                self.path_lit = lit;
                self.micro_batch = self.micro_batch.filter(|_| !lit);
            }
            TraceEvent::EnlargeIpu(ipu) => {
                self.heights.remove(&ipu);
                if !self.enlarged.remove(&ipu) {
                    self.enlarged.insert(ipu);
                    self.reveal = Some(ipu.into());
                }
            }
            TraceEvent::SetIpuHeight(ipu, height) => {
                self.enlarged.remove(&ipu);
                self.heights.remove(&ipu);
                self.heights.extend(height.map(|height| (ipu, height)));
            }
            TraceEvent::ChooseNothing => {
                self.bar = None;
                self.mark = None;
                self.micro_batch = None;
                self.also.clear();
                return Some(AppCommand::SelectStep(None));
            }
            TraceEvent::Mark { range, keep } => {
                if !keep {
                    self.marks.clear();
                }
                self.marks.extend(range);
            }
            TraceEvent::Clear => {
                self.clear();
                return selected.map(|_| AppCommand::SelectStep(None));
            }
        }
        None
    }

    /// Shows a selection made elsewhere or by a key. Returns true if it zoomed to the cycles of
    /// `selection`.
    pub(super) fn follow(&mut self, selection: &Selection) -> bool {
        let zooms = selection.cycles.filter(|_| self.limits.is_some());
        if let Some(cycles) = zooms {
            self.zoom_to(cycles);
        }
        // Only once per step: the tab that the user opens afterwards stays.
        if self.followed_step != selection.step {
            self.followed_step = selection.step;
            self.also.clear();
            if let Some(step) = selection.step {
                self.bar = None;
                self.mark = None;
                self.show_ipu(step.at);
                self.show_step();
            }
        }
        zooms.is_some()
    }

    /// Shows some cycles as the initial range.
    pub(super) fn open_at(&mut self, cycles: CycleRange, limits: AxisLimits) {
        if self.axis.is_none() && self.limits.is_none() {
            self.axis = Some(zoomed_to(cycles, limits));
        }
    }

    /// Initializes the axis, or fits it to a window of another size.
    pub(super) fn keep_axis(&mut self, limits: AxisLimits) {
        // Layout varies by fractions of a point; refitting for that would let the axis drift.
        let resized = self.limits.is_some_and(|old| (old.width - limits.width).abs() > 0.5);
        self.axis = match (self.axis, self.limits) {
            (Some(axis), Some(old)) if resized => {
                let window = axis.window(old.width);
                Some(PanZoomAxis::fitting_exactly(window, limits.width).clamped_to(limits))
            }
            (axis, _) => axis.or_else(|| Some(PanZoomAxis::fitting(limits.range, limits.width))),
        };
        self.limits = Some(limits);
    }

    /// The axis and its limits, once they are set.
    pub(super) fn shown(&self) -> Option<(PanZoomAxis, AxisLimits)> {
        self.axis.zip(self.limits)
    }

    /// The visible IPUs: all of them, or the selected ones.
    pub(super) fn shown_ipus(&self, prepared: &LoadedTrace) -> Vec<IpuId> {
        let all = prepared.ipus.iter().map(|lanes| lanes.at.ipu);
        all.filter(|ipu| self.ipus.is_empty() || self.ipus.contains(ipu)).collect()
    }

    /// All selected steps; the one shared by all tabs is last.
    pub(super) fn chosen_steps(&self, selected: Option<SelectedStep>) -> Vec<SelectedStep> {
        self.also.iter().copied().chain(selected).collect()
    }

    /// The range from the start of the first mark to the end of the last one.
    pub(super) fn marked_range(&self) -> Option<CycleRange> {
        let range = self.marks.iter().copied().reduce(CycleRange::union);
        range.filter(|range| !range.is_empty())
    }

    fn choose_step(
        &mut self,
        step: SelectedStep,
        add: bool,
        selected: Option<SelectedStep>,
    ) -> AppCommand {
        let mut chosen = if add { self.chosen_steps(selected) } else { Vec::new() };
        match chosen.iter().position(|known| *known == step) {
            Some(at) if add => drop(chosen.remove(at)),
            _ => {
                // The details table has this many columns: the new step replaces the last one.
                chosen.truncate(MAX_COLUMNS - 1);
                chosen.push(step);
            }
        }
        self.bar = None;
        self.mark = None;
        self.show_step();
        let last = chosen.pop();
        // A later change of the selection must not clear the other steps.
        self.followed_step = last;
        self.also = chosen;
        AppCommand::SelectStep(last)
    }

    /// Shows the details of a selected step. The floor plan follows the step and stays open.
    fn show_step(&mut self) {
        if self.tab != TraceDetailsTab::Tiles {
            self.tab = TraceDetailsTab::Details;
        }
    }

    fn choose_bar(&mut self, bar: SelectedBar) -> AppCommand {
        self.tab = TraceDetailsTab::Details;
        self.bar = Some(bar);
        self.mark = None;
        self.also.clear();
        self.followed_step = None;
        AppCommand::SelectStep(None)
    }

    fn choose_mark(&mut self, mark: SelectedMark) -> AppCommand {
        self.tab = TraceDetailsTab::Details;
        self.bar = None;
        self.mark = Some(mark);
        self.also.clear();
        self.followed_step = None;
        AppCommand::SelectStep(None)
    }

    /// Adds an IPU to the visible ones and scrolls to it.
    fn show_ipu(&mut self, at: ReplicaIpu) {
        if !self.ipus.is_empty() {
            self.ipus.insert(at.ipu);
        }
        self.reveal = Some(at);
    }

    fn clear(&mut self) {
        self.bar = None;
        self.mark = None;
        self.micro_batch = None;
        self.path_lit = false;
        self.also.clear();
        self.marks.clear();
        self.filter.clear();
    }

    fn zoom_to(&mut self, cycles: CycleRange) {
        if let Some(limits) = self.limits {
            self.axis = Some(zoomed_to(cycles, limits));
        }
    }

    fn zoom_to_or_out(&mut self, cycles: CycleRange) {
        let Some(limits) = self.limits else { return };
        let target = zoomed_to(cycles, limits);
        // Exact comparison is right: the same range gives the same axis, bit by bit.
        self.axis = if self.axis != Some(target) { Some(target) } else { None };
    }

    fn bring_into_view(&mut self, cycles: CycleRange) {
        let Some((axis, limits)) = self.shown() else { return };
        let left = axis.x_from_position(cycles.start.0);
        let right = axis.x_from_position(cycles.end.0);
        if left < 0.0 || right > limits.width {
            // A step wider than the lanes is shown from its start.
            let middle = (left + right.min(left + limits.width)) / 2.0 - limits.width / 2.0;
            self.axis = Some(axis.panned(-middle).clamped_to(limits));
        }
    }
}

/// The axis that shows a bar with its surroundings.
fn zoomed_to(range: CycleRange, limits: AxisLimits) -> PanZoomAxis {
    // A sixth on both sides; at least one cycle, because a step of zero cycles has no length.
    let around = range.length() / 6 + Cycles(1);
    let wider = CycleRange::new(range.start.saturating_sub(around), range.end + around);
    fitting_cycles(wider, limits.width).clamped_to(limits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::view_state::{from_view_state, to_view_state};
    use crate::views::cycle_axis::limits_of_cycles;
    use tilescope_analysis::trace::MarkRowId;
    use tilescope_report::MarkKind;
    use tilescope_report::units::StepId;

    fn cycles(start: u64, end: u64) -> CycleRange {
        CycleRange::new(Cycles(start), Cycles(end))
    }

    fn step(number: u64) -> SelectedStep {
        SelectedStep { at: IpuId(0).into(), sub_lane: 0, position: number, step: StepId(number) }
    }

    fn shown() -> TraceSettings {
        let mut settings = TraceSettings::default();
        settings.keep_axis(limits_of_cycles(cycles(0, 100_000), 1_000.0));
        settings
    }

    #[test]
    fn steps_are_added_to_and_removed_from_the_selection() {
        let mut settings = shown();
        let first = settings.apply(TraceEvent::ChooseStep { step: step(1), add: false }, None);
        assert_eq!(first, Some(AppCommand::SelectStep(Some(step(1)))));
        assert_eq!(settings.tab, TraceDetailsTab::Details);
        settings.apply(TraceEvent::ChooseStep { step: step(2), add: true }, Some(step(1)));
        assert_eq!(settings.chosen_steps(Some(step(2))), [step(1), step(2)]);
        let out =
            settings.apply(TraceEvent::ChooseStep { step: step(2), add: true }, Some(step(2)));
        assert_eq!(out, Some(AppCommand::SelectStep(Some(step(1)))));
        assert_eq!(settings.also, []);
        for number in 2..20 {
            let event = TraceEvent::ChooseStep { step: step(number), add: true };
            settings.apply(event, settings.followed_step);
        }
        assert_eq!(settings.chosen_steps(settings.followed_step).len(), MAX_COLUMNS);
    }

    #[test]
    fn a_step_selected_elsewhere_is_followed_once() {
        let mut settings = shown();
        settings.also = vec![step(1)];
        let selection = Selection { step: Some(step(3)), ..Selection::default() };
        assert!(!settings.follow(&selection));
        assert_eq!((settings.tab, settings.also.len()), (TraceDetailsTab::Details, 0));
        settings.apply(TraceEvent::ShowTab(TraceDetailsTab::Summary), selection.step);
        settings.follow(&selection);
        assert_eq!(settings.tab, TraceDetailsTab::Summary, "the tab stays as the user left it");
        let near = cycles(500, 600);
        assert!(settings.follow(&Selection { cycles: Some(near), ..selection.clone() }));
        let nowhere =
            TraceSettings::default().follow(&Selection { cycles: Some(near), ..selection });
        assert!(!nowhere, "without an axis there is nothing to zoom");
    }

    #[test]
    fn zooming_to_the_visible_range_zooms_out() {
        let mut settings = shown();
        let step = cycles(500, 600);
        settings.apply(TraceEvent::ZoomToOrOut(step), None);
        let near = settings.axis.unwrap();
        assert!(near.x_from_position(500) > 0.0 && near.x_from_position(600) < 1_000.0);
        settings.apply(TraceEvent::ZoomToOrOut(step), None);
        assert_eq!(settings.axis, None);
    }

    #[test]
    fn a_step_outside_the_screen_is_panned_into_view() {
        let mut settings = shown();
        settings.apply(TraceEvent::ZoomTo(cycles(500, 600)), None);
        let there = settings.axis;
        settings.apply(TraceEvent::BringIntoView(cycles(510, 520)), None);
        assert_eq!(settings.axis, there, "it is on the screen");
        settings.apply(TraceEvent::BringIntoView(cycles(5_000, 5_010)), None);
        let axis = settings.axis.unwrap();
        let middle = axis.x_from_position(5_005);
        assert!((middle - 500.0).abs() < 5.0, "{middle}");
    }

    #[test]
    fn marks_are_kept_or_replaced_and_cleared_together() {
        let mut settings = shown();
        let mark = |from, to, keep| TraceEvent::Mark { range: Some(cycles(from, to)), keep };
        settings.apply(mark(10, 20, false), None);
        settings.apply(mark(50, 50, true), None);
        assert_eq!(settings.marked_range(), Some(cycles(10, 50)));
        settings.apply(mark(30, 30, false), None);
        assert_eq!(settings.marked_range(), None, "a single cycle measures nothing");
        settings.apply(TraceEvent::SetFilter("copy".to_owned()), None);
        let command = settings.apply(TraceEvent::Clear, Some(step(1)));
        assert_eq!(command, Some(AppCommand::SelectStep(None)));
        assert_eq!(settings, shown());
    }

    #[test]
    fn names_in_saved_places_are_stable() {
        let mut settings = shown();
        settings.bar = Some(SelectedBar {
            at: IpuId(1).into(),
            sub_lane: 0,
            row: 2,
            range: cycles(3, 4),
            title: "a".to_owned(),
            rows: Vec::new(),
            longest: None,
        });
        settings.apply(TraceEvent::ShowIpus(BTreeSet::from([IpuId(1)])), None);
        settings.apply(TraceEvent::SetFilter("copy".to_owned()), None);
        settings.apply(TraceEvent::ShowTab(TraceDetailsTab::Statistics), None);
        settings.apply(TraceEvent::ScrollBy(12.0), None);
        settings.marks = vec![cycles(5, 6)];
        settings.mark = Some(SelectedMark {
            row: MarkRowId::Common(MarkKind::Slot),
            first: 2,
            count: 4,
            range: cycles(3, 4),
        });
        settings.micro_batch = Some(3);
        settings.path_lit = true;
        settings.apply(TraceEvent::ShowTileFigure(TileFigure::Sent), None);
        settings.enlarged = BTreeSet::from([IpuId(1)]);
        settings.apply(TraceEvent::SetIpuHeight(IpuId(0), Some(90.0)), None);
        settings.also = vec![step(7)];
        settings.reach = Some(cycles(0, 9));
        let state = to_view_state(&settings);
        let names: Vec<&str> = state.keys().map(String::as_str).collect();
        let known = "also axis bar enlarged filter heights ipus limits mark marks micro_batch \
                    path_lit reach scroll tab tile_figure";
        assert_eq!(BTreeSet::from_iter(names), BTreeSet::from_iter(known.split(' ')));
        let saved = serde_json::json!({"start": 0, "end": 100_000});
        assert_eq!(state["limits"]["range"], saved);
        assert_eq!(state["axis"]["origin"], serde_json::json!(-2_000));
        let mark = serde_json::json!({
            "row": {"common": "slot"}, "first": 2, "count": 4, "range": {"start": 3, "end": 4},
        });
        assert_eq!(state["mark"], mark);
        assert_eq!(state["marks"][0], serde_json::json!({"start": 5, "end": 6}));
        assert_eq!(from_view_state::<TraceSettings>(&state), (settings, Vec::new()));
    }
}
