//! A frame of the lanes: layout, queries and painting, then the effects of pointer and keys.

use super::interaction::{
    LaneMenuChoice, LaneMenuTarget, LanePointerInput, action_events, hover_ui, is_for_strip,
    menu_ui,
};
use super::layers::lanes::{LaneHit, LaneHitTarget};
use super::layers::marks::SelectedMark;
use super::layers::path::{PathHit, PathHitTarget};
use super::layers::{TracePainter, lanes, links, marks, path};
use super::layout::{
    GUTTER, SCROLL_BAR, ShownIpus, TraceLayout, TraceRegions, ipu_lane_layouts, total_height,
};
use super::loaded_trace::LoadedTrace;
use super::places::{self, RepeatedPlace};
use super::queries::{TraceSceneLook, overview_key, scene_key};
use super::replica_row::{replicas, replicas_ui, unfolded};
use super::scene::TraceScene;
use super::settings::{TraceDetailsTab, TraceSettings};
use super::share_graph::is_far_out;
use super::step_walk::{StepMove, first_step_of_trace, first_step_on_screen};
use super::{ExecutionTraceView, PaintedLanes, TraceEvent, id};
use crate::model::command::{AppCommand, SelectedStep, ViewAction};
use crate::model::message::StatusMessage;
use crate::model::preferences::TracePrefs;
use crate::theme::{ColourScheme, ThemePalette};
use crate::views::ViewContext;
use crate::views::compare::ComparisonSide;
use crate::views::cycle_axis::{axis_range_of_cycles, cycles_on_screen, limits_of_cycles};
use crate::widgets::background_query::Versioned;
use crate::widgets::focus_ui;
use crate::widgets::overview_strip::{self, overview_ui};
use crate::widgets::pan_zoom_axis::{AxisLimits, PanZoomAxis};
use egui::accesskit::Role;
use egui::{CornerRadius, CursorIcon, Rect, Response, Sense, Stroke, Ui, WidgetInfo, pos2, vec2};
use tilescope_analysis::critical_path::{StepOnPath, step_on_path};
use tilescope_analysis::trace::{COMMON_MARKS, MicroBatchPath};
use tilescope_report::MarkKind;
use tilescope_report::units::{CycleRange, Cycles, IpuId};

/// The smallest height of the scroll bar's handle. One for thousands of lanes would be too small to
/// grab.
const LEAST_HANDLE: f32 = 24.0;
/// The smallest height of an IPU whose border is dragged. An IPU that is lower by default has no
/// border.
const LEAST_HEIGHT: f32 = 14.0;
/// The largest height of an IPU whose border is dragged.
const MOST_HEIGHT: f32 = 1200.0;

impl ExecutionTraceView {
    /// Shows the overview strip, the ruler and the lanes.
    pub(super) fn lanes_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        let area = ui.available_rect_before_wrap();
        ui.allocate_rect(area, Sense::hover());
        let below = context.pane.is_some_and(|pane| pane.side == ComparisonSide::Target);
        let path = context.prefs.trace.path;
        let regions = TraceRegions::new(area, mark_rows(context, prepared), path);
        let regions = if below { regions.without_overview() } else { regions };
        // In a small view the lanes extend past its edge.
        let rect = regions.timeline().intersect(area);
        self.painted = Some(PaintedLanes { rect, run: prepared.range });
        let limits = self.keep_axis(ui, &regions, prepared);
        if !below {
            self.strip_ui(ui, context, prepared, regions.overview, limits);
        }
        let layout = self.layout(ui, context, prepared, (regions, limits));
        let scene = self.ask_scene(ui, context, prepared, &layout, limits);
        let scene = scene.as_deref();
        let above = regions.marks.union(regions.path);
        let response = lanes_response(ui, regions.lanes) | marks_response(ui, above);
        let changed = gutter_ui(ui, &layout, &self.settings);
        replicas_ui(ui, context, prepared, regions.marks);
        let number = self.settings.micro_batch;
        let path = number.and_then(|number| self.followed.ask_path(ui, context, prepared, number));
        let shown = (&response, path.as_deref());
        self.paint(ui, context, prepared, (&layout, scene), shown);
        self.pointer_ui(ui, context, prepared, (&layout, scene), limits, &response);
        self.tile_cursor_ui(ui, context, &layout, &response);
        let total = total_height(&layout.blocks);
        let event = scroll_bar_ui(ui, regions.lanes, self.settings.scroll, total);
        self.apply(context, event);
        self.apply(context, changed);
    }

    fn keep_axis(&mut self, ui: &Ui, regions: &TraceRegions, prepared: &LoadedTrace) -> AxisLimits {
        let range = self.settings.reach.map_or(prepared.range, |r| r.union(prepared.range));
        let limits = limits_of_cycles(range, regions.lanes.width());
        if let Some(typical) = first_window(prepared, limits, ui.pixels_per_point()) {
            self.settings.open_at(typical, limits);
        }
        self.settings.keep_axis(limits);
        limits
    }

    fn axis(&self, limits: AxisLimits) -> PanZoomAxis {
        self.settings.axis.unwrap_or_else(|| PanZoomAxis::fitting(limits.range, limits.width))
    }

    /// The whole run, with the visible part marked.
    fn strip_ui(
        &mut self,
        ui: &mut Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        rect: Rect,
        limits: AxisLimits,
    ) {
        let key = overview_key(ui, rect, prepared.ipus.len());
        let image = self.queries.ask_overview(ui, context, prepared, key);
        self.textures.keep_overview(ui.ctx(), key, &image);
        let run = axis_range_of_cycles(prepared.range);
        let image = self.textures.overview().map(|texture| (texture, run));
        let drag = &mut self.input.strip_drag;
        let axis = self.settings.axis;
        let axis = axis.unwrap_or_else(|| PanZoomAxis::fitting(limits.range, limits.width));
        let moved = overview_ui(ui, rect, image, axis, limits, drag);
        self.apply(context, moved.map(TraceEvent::ShowAxis));
        let strip = overview_strip::id(ui);
        self.input.strip_has_focus = ui.memory(|memory| memory.has_focus(strip));
    }

    /// Computes the layout, with the scroll position limited to the lanes.
    fn layout<'a>(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &'a Versioned<LoadedTrace>,
        (regions, limits): (TraceRegions, AxisLimits),
    ) -> TraceLayout<'a> {
        let axis = self.axis(limits);
        let shares = self.look(ui, context, prepared, (false, false)).shows_shares(axis);
        let room = regions.lanes.height();
        let shown = self.settings.shown_ipus(prepared);
        let TraceSettings { enlarged, heights, .. } = &self.settings;
        let prefs = &context.prefs.trace;
        let replicas = unfolded(context, prepared);
        let shown =
            ShownIpus { ipus: &shown, enlarged, heights, prefs, shares, replicas: &replicas };
        let blocks = ipu_lane_layouts(prepared, shown, room);
        let most = (total_height(&blocks) - f64::from(room)).max(0.0);
        if let Some(at) = self.settings.reveal.take()
            && let Some(block) = blocks.iter().find(|block| block.lanes.at == at)
        {
            let top = block.top;
            let end = block.top + f64::from(block.height());
            // The upper part of an IPU that does not fit at all.
            let least = (end - f64::from(room)).min(top);
            self.settings.scroll = self.settings.scroll.clamp(least, top.max(least));
        }
        self.settings.scroll = self.settings.scroll.clamp(0.0, most);
        TraceLayout { regions, axis, blocks, scroll: self.settings.scroll }
    }

    fn look<'a>(
        &'a self,
        ui: &Ui,
        context: &'a ViewContext<'_>,
        prepared: &LoadedTrace,
        (marks_known, path_known): (bool, bool),
    ) -> TraceSceneLook<'a> {
        TraceSceneLook {
            prefs: &context.prefs.trace,
            selected: context.selection.step,
            filter: &self.settings.filter,
            colours: ColourScheme::of(ui),
            narrow_steps: context.pane.and_then(|pane| pane.narrow_steps).or(prepared.narrow_steps),
            marks_known,
            path_known,
            pixels_per_point: ui.pixels_per_point(),
        }
    }

    /// The scene to paint: the current one, or the previous one while the current one is read.
    fn ask_scene(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
        layout: &TraceLayout<'_>,
        limits: AxisLimits,
    ) -> Option<Versioned<TraceScene>> {
        let marks_known = self.queries.ask_marks(ui, context, prepared);
        let known = (marks_known, self.queries.ask_path(ui, context, prepared));
        let key = scene_key(layout, limits, self.look(ui, context, prepared, known));
        let asked = self.queries.ask_scene(ui, context, prepared, &key);
        if let Some(scene) = asked.answer() {
            self.textures.keep_lanes(ui.ctx(), scene);
        }
        self.queries.scene.latest().cloned()
    }

    fn paint(
        &self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        (layout, scene): (&TraceLayout<'_>, Option<&TraceScene>),
        (response, path): (&Response, Option<&MicroBatchPath>),
    ) {
        let lanes = layout.regions.lanes;
        let painter = TracePainter {
            ui,
            painter: ui.painter_at(lanes),
            palette: ThemePalette::for_ui(ui),
            layout,
            prepared,
            scene,
            textures: &self.textures,
            settings: &self.settings,
            selected: context.selection.step,
            followed: path,
            shade_balance: context.prefs.trace.tile_balance,
            clock: context.opened.target.clock,
            ruler_in_time: context.prefs.trace.ruler_in_time,
        };
        painter.paint_lanes(self.queries.latest_error(), &self.queries.path_text());
        if let Some(drawn) = self.input.pointer.drawn_range(ui, layout) {
            painter.drawn_range(drawn);
        }
        focus_ui(ui, response, lanes);
        painter.user_marks();
    }

    /// Moves the cursor of the floor plan below with the pointer, or to the selected step, and
    /// shows its position.
    fn tile_cursor_ui(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        layout: &TraceLayout<'_>,
        response: &Response,
    ) {
        if self.settings.tab != TraceDetailsTab::Tiles || context.pane.is_some() {
            return;
        }
        let lanes = layout.regions.lanes;
        let step = context.selection.step;
        let before = self.queries.tiles.cursor();
        self.queries.tiles.follow(step);
        let pointed = response.hover_pos().filter(|at| lanes.contains(*at));
        // A pointer at rest must not take the cursor away from the keys.
        let moves = ui.input(|input| input.pointer.delta() != egui::Vec2::ZERO);
        let cycle = pointed.filter(|_| moves).map(|at| layout.cycle_at(at.x));
        if let Some(cycle) = cycle.and_then(|cycle| u64::try_from(cycle).ok()) {
            self.queries.tiles.point_at(Cycles(cycle));
        }
        let cursor = self.queries.tiles.cursor();
        if cursor != before {
            // The panel below was laid out before the lanes.
            ui.ctx().request_repaint();
        }
        if let Some(x) =
            cursor.map(|cycle| layout.x(cycle)).filter(|x| lanes.x_range().contains(*x))
        {
            let line = Stroke::new(1.0, ThemePalette::for_ui(ui).accent);
            ui.painter_at(lanes).vline(x, lanes.y_range(), line);
        }
    }

    /// Queries the critical path data of the step under the pointer.
    fn ask_pointed(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        lane: Option<&LaneHit<'_>>,
        path: Option<&PathHit<'_>>,
    ) -> Option<StepOnPath> {
        let on_lane = lane.and_then(|hit| match hit.target {
            LaneHitTarget::Bar(item) => Some((item, (hit.at, hit.sub_lane))),
            LaneHitTarget::Column(_) => None,
        });
        let on_path = path.and_then(|hit| match hit.target {
            PathHitTarget::Bar(item, lane) => Some((item, lane?)),
            PathHitTarget::Column(_) => None,
        });
        let (item, (at, sub_lane)) = on_path.or(on_lane)?;
        prepared.known_path()?;
        let position = item.first_position();
        let step = item.step()?;
        let key = SelectedStep { at, sub_lane, position, step };
        let asked = context.ask(ui, &mut self.queries.pointed, &key, |report, step| {
            step_on_path(report, step.step, step.at, step.sub_lane)
        });
        asked.answer().and_then(|found| **found)
    }

    fn pointer_ui(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        (layout, scene): (&TraceLayout<'_>, Option<&TraceScene>),
        limits: AxisLimits,
        response: &Response,
    ) {
        let pointed = response.hover_pos().zip(scene);
        let selected = context.selection.step;
        let hit = pointed.and_then(|(at, scene)| lanes::hit(layout, scene, at));
        let stage = hit.as_ref().filter(|hit| hit.sub_lane == 0).and_then(|hit| {
            let lanes = scene?.ipus.iter().find(|lanes| lanes.at == hit.at)?;
            lanes.stage_in(hit.range)
        });
        let path = pointed.and_then(|(at, scene)| path::hit(layout, scene, at));
        let about = self.ask_pointed(ui, context, prepared, hit.as_ref(), path.as_ref());
        let input = LanePointerInput {
            path,
            about,
            links: pointed
                .and_then(|(at, scene)| links::hit(layout, scene, at))
                .zip(prepared.known_link_limit()),
            layout,
            limits,
            response,
            mark: pointed.and_then(|(at, scene)| marks::hit(layout, scene, at)),
            chosen_mark: self.settings.mark,
            chosen: self.queries.chosen_range(&self.settings, selected),
            hit,
            stage,
            prepared,
            drag_mode: context.prefs.look.drag,
        };
        hover_ui(ui, &input);
        let events = self.input.pointer.events(ui, &input);
        if response.secondary_clicked() {
            self.input.menu = LaneMenuTarget::of(&input);
        }
        let menu = self.input.menu.as_ref().map(|target| menu_ui(response, target));
        self.apply(context, events);
        if let Some(LaneMenuChoice { events, commands }) = menu {
            self.apply(context, events);
            context.commands.extend(commands);
        }
    }

    /// Performs actions from keys and menus.
    pub(super) fn actions_ui(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &Versioned<LoadedTrace>,
    ) {
        // Arrow keys for the strip or the schedule were handled there.
        let schedule = self.settings.tab == TraceDetailsTab::Schedule;
        let elsewhere = self.input.strip_has_focus || schedule && self.queries.schedule.has_focus;
        if !is_for_strip(ui, elsewhere) {
            for action in context.actions {
                self.perform_action(ui, context, prepared, *action);
            }
        }
        match self.walk.arrived(ui, context, prepared) {
            Some(Ok(target)) => {
                let choose = TraceEvent::ChooseStep { step: target.step, add: target.add };
                self.apply(context, [choose, TraceEvent::BringIntoView(target.range)]);
            }
            Some(Err(error)) => context.tell(StatusMessage::error(error.to_string())),
            None => {}
        }
        match self.mark_walk.arrived(ui, context, prepared) {
            Some(Ok(mark)) => {
                let choose = TraceEvent::ChooseMark(mark);
                self.apply(context, [choose, TraceEvent::BringIntoView(mark.range)]);
                if self.settings.micro_batch.is_some() {
                    self.follow_mark(mark);
                }
            }
            Some(Err(error)) => context.tell(StatusMessage::error(error.to_string())),
            None => {}
        }
        match self.followed.arrived(ui, context) {
            Some(Ok(Some(number))) => {
                self.apply(context, [TraceEvent::FollowMicroBatch(Some(number))]);
            }
            Some(Ok(None)) => self.nothing_to_follow(context),
            Some(Err(error)) => context.tell(StatusMessage::error(error.to_string())),
            None => {}
        }
    }

    fn perform_action(
        &mut self,
        ui: &Ui,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        action: ViewAction,
    ) {
        let Some(shown) = self.settings.shown() else { return };
        let on_path =
            matches!(action, ViewAction::SelectNextOnPath | ViewAction::SelectPreviousOnPath);
        let add =
            matches!(action, ViewAction::AddNextToSelection | ViewAction::AddPreviousToSelection);
        let step_move = match action {
            ViewAction::SelectNext
            | ViewAction::SelectNextOnPath
            | ViewAction::AddNextToSelection => Some(StepMove { forwards: true, add, on_path }),
            ViewAction::SelectPrevious
            | ViewAction::SelectPreviousOnPath
            | ViewAction::AddPreviousToSelection => {
                Some(StepMove { forwards: false, add, on_path })
            }
            _ => None,
        };
        let place = match action {
            ViewAction::GoToTypical => Some(RepeatedPlace::Typical),
            ViewAction::GoToFastest => Some(RepeatedPlace::Fastest),
            ViewAction::GoToSlowest => Some(RepeatedPlace::Slowest),
            _ => None,
        };
        if let Some(place) = place {
            return self.go_to(context, prepared, place);
        }
        if action == ViewAction::FollowMicroBatch {
            return self.follow_chosen(context);
        }
        if action == ViewAction::LightPath {
            return self.light_path(context);
        }
        let of_lane = step_move.filter(|step_move| !step_move.on_path);
        if let (Some(mark), Some(StepMove { forwards, .. })) = (self.settings.mark, of_lane) {
            return self.mark_walk.start(mark, forwards);
        }
        if let Some(step_move) = step_move {
            return self.walk(context, prepared, shown, step_move);
        }
        self.input.focus_filter |= action == ViewAction::FocusFilter;
        let left = ui.max_rect().left() + GUTTER;
        let pointer = ui.input(|i| i.pointer.hover_pos()).map(|at| at.x - left);
        let chosen = self.queries.chosen_range(&self.settings, context.selection.step);
        self.apply(context, action_events(action, shown, pointer, chosen));
    }

    /// Toggles the highlighting of the critical path. Its lane is shown with it.
    fn light_path(&mut self, context: &ViewContext<'_>) {
        let lit = !self.settings.path_lit;
        self.apply(context, [TraceEvent::LightPath(lit)]);
        if lit && !context.prefs.trace.path {
            let prefs = TracePrefs { path: true, ..context.prefs.trace };
            context.commands.push(AppCommand::SetTracePrefs(prefs));
        }
    }

    /// Follows the micro-batch of the selection, or stops following one.
    fn follow_chosen(&mut self, context: &ViewContext<'_>) {
        if self.settings.micro_batch.is_some() {
            return self.apply(context, [TraceEvent::FollowMicroBatch(None)]);
        }
        if let Some(mark) = self.settings.mark {
            return self.follow_mark(mark);
        }
        let bar = self.settings.bar.as_ref().map(|bar| (bar.at, bar.range));
        let chosen = self.queries.chosen_range(&self.settings, context.selection.step);
        let step = context.selection.step.map(|step| step.at).zip(chosen);
        match bar.or(step) {
            Some((at, cycles)) => self.followed.start(at, cycles),
            None => self.nothing_to_follow(context),
        }
    }

    fn follow_mark(&mut self, mark: SelectedMark) {
        if let Some(at) = mark.row.ipu() {
            self.followed.start(at, mark.range);
        }
    }

    fn nothing_to_follow(&self, context: &ViewContext<'_>) {
        let words =
            "Select a stage mark above the lanes, or a step of a stage, to follow its micro-batch.";
        context.tell(StatusMessage::warning(words));
    }

    fn go_to(&mut self, context: &ViewContext<'_>, prepared: &LoadedTrace, place: RepeatedPlace) {
        let event = places::go(prepared, place);
        if event.is_none() {
            let words = "This run has no typical iteration: nothing in it repeats.";
            context.tell(StatusMessage::warning(words));
        }
        self.apply(context, event);
    }

    /// Moves on from the selected step. Without one, starts with the visible steps.
    fn walk(
        &mut self,
        context: &ViewContext<'_>,
        prepared: &LoadedTrace,
        (axis, limits): (PanZoomAxis, AxisLimits),
        step_move: StepMove,
    ) {
        if let Some(from) = context.selection.step {
            return self.walk.start(from, step_move);
        }
        let window = cycles_on_screen(axis, limits.width);
        if step_move.on_path {
            return self.walk.start_on_path(window.start);
        }
        let scene = self.queries.scene.latest();
        if let Some(step) = scene.and_then(|scene| first_step_on_screen(scene, window)) {
            context.commands.push(AppCommand::SelectStep(Some(step)));
        } else if let Some(from) = first_step_of_trace(prepared) {
            // Without a scene, or with a scene without single steps, the walk starts in the first
            // lane.
            self.walk.start(from, step_move);
        }
    }
}

/// The part of a long run that is shown at first, below the strip with the whole run: its typical
/// iteration, or a typical period of slots if it has only one. `None` if its steps can be seen.
fn first_window(
    prepared: &LoadedTrace,
    limits: AxisLimits,
    pixels_per_point: f32,
) -> Option<CycleRange> {
    let whole = PanZoomAxis::fitting(limits.range, limits.width);
    let far_out = is_far_out(prepared.narrow_steps, whole.scale(), pixels_per_point);
    let repeated = places::repeated(prepared).first();
    let shown = repeated.filter(|marks| far_out || marks.kind == MarkKind::Iteration);
    shown.map(|marks| marks.period.range)
}

/// The number of rows for marks of all IPUs and for the host.
fn mark_rows(context: &ViewContext<'_>, prepared: &LoadedTrace) -> usize {
    let common = COMMON_MARKS.iter().filter(|kind| prepared.mark_kinds.contains(kind)).count();
    let marks = if context.prefs.trace.marks { common + usize::from(prepared.host) } else { 0 };
    marks + usize::from(replicas(context, prepared).is_some())
}

fn lanes_response(ui: &Ui, rect: Rect) -> Response {
    let response = ui.interact(rect, id(ui, "lanes"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Canvas, true, "Lanes"));
    response
}

/// The rows of marks above the lanes, which handle the pointer like the lanes. The keyboard focus
/// moves on from them.
fn marks_response(ui: &Ui, rect: Rect) -> Response {
    ui.interact(rect, id(ui, "mark rows"), Sense::CLICK | Sense::DRAG)
}

/// The names of the IPUs as buttons: they enlarge an IPU or restore its height. Dragging the line
/// below a name changes the height of the IPU.
fn gutter_ui(ui: &Ui, layout: &TraceLayout<'_>, settings: &TraceSettings) -> Option<TraceEvent> {
    let gutter = layout.regions.gutter();
    if layout.blocks.len() < 2 || layout.blocks.iter().any(|block| block.replica.is_some()) {
        return None;
    }
    let mut changed = None;
    for block in layout.blocks_within(0.0) {
        let ipu = block.lanes.at.ipu;
        let top = layout.top(block);
        let own = Rect::from_x_y_ranges(gutter.x_range(), top..=top + block.height());
        let rect = own.intersect(gutter);
        if !rect.is_positive() {
            continue;
        }
        let large = settings.enlarged.contains(&ipu);
        let (name, what) = if large {
            (format!("Shrink IPU {ipu}"), "as high as the others")
        } else {
            (format!("Enlarge IPU {ipu}"), "all rows, high enough for names")
        };
        let response = ui.interact(rect, id(ui, "enlarge").with(ipu), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, &name));
        focus_ui(ui, &response, rect);
        if response.hovered() {
            ui.painter().rect_filled(rect, CornerRadius::same(3), ThemePalette::for_ui(ui).hover);
        }
        if response.on_hover_text(format!("{name}: {what}")).clicked() {
            changed = Some(TraceEvent::EnlargeIpu(ipu));
        }
        let is_low = own.height() < LEAST_HEIGHT && !settings.heights.contains_key(&ipu);
        if !is_low && gutter.y_range().contains(own.bottom()) {
            let height = settings.heights.get(&ipu).copied().unwrap_or(own.height());
            changed = border_ui(ui, own, (ipu, height)).or(changed);
        }
    }
    changed
}

/// The border below an IPU, which occupies `own` in the gutter, and its new height.
fn border_ui(ui: &Ui, own: Rect, (ipu, height): (IpuId, f32)) -> Option<TraceEvent> {
    let line = Rect::from_x_y_ranges(own.x_range(), own.bottom() - 2.0..=own.bottom() + 4.0);
    // The keyboard changes the height through the name, so the focus does not stop at every border.
    let response = ui.interact(line, id(ui, "border").with(ipu), Sense::CLICK | Sense::DRAG);
    let name = format!("Border below IPU {ipu}");
    response.widget_info(|| WidgetInfo::labeled(Role::Splitter, true, &name));
    if response.hovered() || response.dragged() {
        ui.set_cursor_icon(CursorIcon::ResizeVertical);
        let stroke = Stroke::new(2.0, ThemePalette::for_ui(ui).accent);
        ui.painter().hline(own.x_range(), own.bottom() + 1.0, stroke);
    }
    if response.double_clicked() {
        return Some(TraceEvent::SetIpuHeight(ipu, None));
    }
    // The border does not follow the pointer exactly: the other IPUs change their heights too, also
    // those above.
    let changed = (height + response.drag_delta().y).clamp(LEAST_HEIGHT, MOST_HEIGHT);
    let dragged = response.dragged();
    response.on_hover_text("Drag to change the height; double-click to reset it");
    if dragged { Some(TraceEvent::SetIpuHeight(ipu, Some(changed))) } else { None }
}

/// The scroll bar beside the lanes, if not all of them are visible.
fn scroll_bar_ui(ui: &Ui, lanes: Rect, scroll: f64, total: f64) -> Option<TraceEvent> {
    let shown = f64::from(lanes.height());
    if total <= shown {
        return None;
    }
    let palette = ThemePalette::for_ui(ui);
    let track = Rect::from_min_max(
        pos2(lanes.right() + 2.0, lanes.top()),
        pos2(lanes.right() + SCROLL_BAR, lanes.bottom()),
    );
    let height = ((shown / total) as f32 * track.height()).max(LEAST_HANDLE);
    let free = f64::from(track.height() - height);
    let share = scroll / (total - shown);
    let top = track.top() + (share * free) as f32;
    let handle = Rect::from_min_size(pos2(track.left(), top), vec2(track.width(), height));
    let response = ui.interact(track, id(ui, "scroll"), Sense::drag());
    response.widget_info(|| WidgetInfo::labeled(Role::ScrollBar, true, "Scroll lanes"));
    let colour = if response.hovered() { palette.weak_text } else { palette.outline };
    ui.painter().rect_filled(handle, CornerRadius::same(4), colour);
    let moved = f64::from(response.drag_delta().y) / free.max(1.0) * (total - shown);
    if response.dragged() { Some(TraceEvent::ScrollBy(moved)) } else { None }
}
