//! Toolbars of views. A toolbar has one row, or more if the view below is high. Controls that do
//! not fit are hidden behind a button that unfolds the toolbar into as many rows as needed.

use super::requested_control::{ControlKind, takes_request};
use super::{MARGIN, choice_ui, open_choice};
use crate::theme::ThemePalette;
use egui::containers::menu::{MenuButton, MenuConfig};
use egui::{
    Align, Button, Context, Frame, Id, Layout, Margin, Popup, PopupCloseBehavior, Pos2, Rect,
    Response, RichText, Stroke, Ui, UiBuilder, WidgetText, pos2, vec2,
};

/// The width of the button that unfolds a toolbar.
const BUTTON: f32 = 30.0;
/// The gap between the rows of an unfolded toolbar.
const BETWEEN_ROWS: f32 = 6.0;
/// The height of a view for each row of its toolbar.
const PER_ROW: f32 = 320.0;
/// The width for a group that is being measured; no group is as wide.
const WIDE: f32 = 4000.0;

/// The measurements of a toolbar from the last frame.
#[derive(Clone, Default)]
struct ToolbarGroupSizes {
    /// The groups and their widths; hidden groups keep their last width.
    widths: Vec<(&'static str, f32)>,
    /// The height of the highest group.
    height: f32,
    /// True if the user has unfolded the toolbar.
    unfolded: bool,
}

impl ToolbarGroupSizes {
    fn width(&self, name: &str) -> f32 {
        self.widths.iter().find(|(known, _)| *known == name).map_or(0.0, |(_, width)| *width)
    }

    /// Arranges the groups in rows of a width. Up to `most` rows are acceptable.
    fn arranged(&self, width: f32, between: f32, most: usize) -> ToolbarArrangement {
        let mut rows = 1;
        let mut at = 0.0;
        for (_, group) in &self.widths {
            if at > 0.0 && at + group > width {
                (rows, at) = (rows + 1, 0.0);
            }
            at += group + between;
        }
        match rows {
            1 => ToolbarArrangement::SingleRow,
            _ if rows <= most => ToolbarArrangement::Rows { folded: false, button: false },
            _ => ToolbarArrangement::Rows { folded: !self.unfolded, button: true },
        }
    }
}

/// The arrangement of a toolbar's groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolbarArrangement {
    /// In one row, with a gap between those at its start and those at its end.
    SingleRow,
    Rows {
        /// True if groups that do not fit in the allowed rows are hidden.
        folded: bool,
        /// True if there is a button to unfold and fold them.
        button: bool,
    },
}

/// A checkbox in a menu of a toolbar.
pub(crate) struct MenuSwitch<'a> {
    pub name: &'static str,
    pub value: &'a mut bool,
    pub hint: &'static str,
}

/// A toolbar being filled, the most important controls first.
pub(crate) struct ToolbarBuilder<'a> {
    ui: &'a mut Ui,
    /// The name of the toolbar's view.
    view: &'a str,
    arrangement: ToolbarArrangement,
    before: ToolbarGroupSizes,
    now: ToolbarGroupSizes,
    /// The left edge of the rows.
    left: f32,
    /// The right edge of the rows.
    right: f32,
    /// The position of the next group.
    at: Pos2,
    /// The right end of groups aligned to the right.
    end: f32,
    at_end: bool,
    /// The row being filled.
    row: usize,
    /// The largest number of rows.
    most: usize,
    hidden: Vec<&'static str>,
}

impl ToolbarBuilder<'_> {
    /// Adds controls that stay together. `contents` is not called if they do not fit.
    pub(crate) fn add(&mut self, name: &'static str, contents: impl FnOnce(&mut Ui)) {
        let known = self.before.width(name);
        let mut hidden = false;
        if let ToolbarArrangement::Rows { folded, .. } = self.arrangement {
            let crowded = self.is_crowded(known);
            hidden = folded && (crowded && self.row >= self.most || !self.hidden.is_empty());
            if crowded && !hidden {
                self.next_row();
            }
        }
        if hidden {
            self.hidden.push(name);
            self.now.widths.push((name, known));
        } else {
            self.place(name, contents);
        }
    }

    /// True if a group of this width does not fit beside those of the row.
    fn is_crowded(&self, width: f32) -> bool {
        if self.at_end {
            let is_first = self.at.x <= self.left && self.end >= self.limit();
            return !is_first && self.end - width < self.at.x;
        }
        self.at.x > self.left && self.at.x + width > self.limit()
    }

    /// The context shared by all frames.
    pub(crate) fn context(&self) -> &Context {
        self.ui.ctx()
    }

    /// Adds a choice between a few values. Returns the selected value.
    pub(crate) fn choice<T: Copy + PartialEq>(
        &mut self,
        name: &'static str,
        choices: &[(T, &str)],
        current: T,
    ) -> Option<T> {
        let mut picked = None;
        self.add_choice(name, |ui| picked = choice_ui(ui, name, choices, current));
        picked
    }

    /// Adds a group with its own choice, whose id salt is the name.
    pub(crate) fn add_choice(&mut self, name: &'static str, contents: impl FnOnce(&mut Ui)) {
        let opens = self.takes_request(name);
        if opens {
            self.unfold();
        }
        self.add(name, |ui| {
            contents(ui);
            if opens {
                open_choice(ui, name);
            }
        });
    }

    /// Adds a button that opens a menu. Returns the result of its contents while it is open.
    pub(crate) fn menu<T>(
        &mut self,
        name: &'static str,
        contents: impl FnOnce(&mut Ui) -> T,
    ) -> Option<T> {
        let opens = self.takes_request(name);
        self.menu_with(name, opens, MenuConfig::new(), contents)
    }

    /// Adds a button that opens a menu of switches, which stays open while they are used. Requests
    /// for one of `others`, which `contents` shows below the switches, open it too.
    pub(crate) fn switches(
        &mut self,
        name: &'static str,
        mut switches: Vec<MenuSwitch<'_>>,
        others: &[&str],
        contents: impl FnOnce(&mut Ui),
    ) {
        let opens = takes_request(self.ui.ctx(), self.view, ControlKind::Strip, |wanted| {
            wanted == name || others.contains(&wanted)
        });
        for switch in &mut switches {
            *switch.value ^= self.takes_request(switch.name);
        }
        let config = MenuConfig::new().close_behavior(PopupCloseBehavior::CloseOnClickOutside);
        self.menu_with(name, opens, config, |ui| {
            for switch in switches {
                ui.checkbox(switch.value, switch.name).on_hover_text(switch.hint);
            }
            contents(ui);
        });
    }

    fn menu_with<T>(
        &mut self,
        name: &'static str,
        opens: bool,
        config: MenuConfig,
        contents: impl FnOnce(&mut Ui) -> T,
    ) -> Option<T> {
        if opens {
            self.unfold();
        }
        let mut said = None;
        self.add(name, |ui| {
            let (button, menu) = MenuButton::new(name).config(config).ui(ui, contents);
            said = menu.map(|menu| menu.inner);
            if opens {
                button.request_focus();
                Popup::open_id(ui.ctx(), Popup::default_response_id(&button));
            }
        });
        said
    }

    /// Adds a group with a text box. Returns its response.
    pub(crate) fn add_box(
        &mut self,
        name: &'static str,
        contents: impl FnOnce(&mut Ui) -> Response,
    ) {
        let wanted = self.takes_request(name);
        if wanted {
            self.unfold();
        }
        self.add(name, |ui| {
            let shown = contents(ui);
            if wanted {
                shown.request_focus();
            }
        });
    }

    /// Returns true once if this control was requested elsewhere.
    fn takes_request(&self, name: &'static str) -> bool {
        takes_request(self.ui.ctx(), self.view, ControlKind::Strip, |wanted| wanted == name)
    }

    /// Adds a checkbox with a tooltip. Returns true if it was toggled.
    pub(crate) fn checkbox(&mut self, name: &'static str, value: &mut bool, hint: &str) -> bool {
        let mut changed = self.takes_request(name);
        *value ^= changed;
        self.add(name, |ui| {
            let shown = ui.checkbox(value, name);
            changed |= if hint.is_empty() { shown } else { shown.on_hover_text(hint) }.changed();
        });
        changed
    }

    /// Adds a button with a tooltip. Returns true if it was pressed.
    pub(crate) fn button(&mut self, name: &'static str, hint: &str) -> bool {
        self.button_if(true, name, hint)
    }

    /// Adds a button that keeps its place while it is disabled. Returns true if it was pressed.
    pub(crate) fn button_if(&mut self, enabled: bool, name: &'static str, hint: &str) -> bool {
        let mut pressed = self.takes_request(name) && enabled;
        self.add(name, |ui| {
            let shown = ui.add_enabled(enabled, Button::new(name));
            pressed |= shown.on_hover_text(hint).clicked();
        });
        pressed
    }

    /// Shows all controls, because one that may be hidden was requested.
    pub(crate) fn unfold(&mut self) {
        self.now.unfolded = true;
        if let ToolbarArrangement::Rows { folded, .. } = &mut self.arrangement {
            *folded = false;
        }
    }

    /// Aligns all later groups to the right, the last one first. In several rows they stay together
    /// if there is a row for them.
    pub(crate) fn align_right(&mut self) {
        self.at_end = true;
        let ToolbarArrangement::Rows { folded, .. } = self.arrangement else { return };
        let between = self.ui.spacing().item_spacing.x;
        let later = self.before.widths.get(self.now.widths.len()..).unwrap_or_default();
        let width: f32 = later.iter().map(|(_, width)| width + between).sum();
        let has_more_rows = !folded || self.row < self.most;
        if has_more_rows && self.at.x > self.left && self.at.x + width > self.limit() {
            self.next_row();
        }
        self.end = self.limit();
    }

    fn place(&mut self, name: &'static str, contents: impl FnOnce(&mut Ui)) {
        let between = self.ui.spacing().item_spacing.x;
        let height = self.height();
        // The width of a group is known only after layout, so it gets more space than any group
        // takes.
        let (from, to, layout) = if self.at_end {
            (self.end - WIDE, self.end, Layout::right_to_left(Align::Center))
        } else {
            (self.at.x, self.at.x + WIDE, Layout::left_to_right(Align::Center))
        };
        let rect = Rect::from_min_size(pos2(from, self.at.y), vec2(to - from, height));
        let builder = UiBuilder::new().id_salt(name).max_rect(rect).layout(layout);
        let mut group = self.ui.new_child(builder);
        contents(&mut group);
        let size = group.min_rect().size();
        if self.at_end {
            self.end -= size.x + between;
        } else {
            self.at.x += size.x + between;
        }
        self.now.widths.push((name, size.x));
        self.now.height = self.now.height.max(size.y);
    }

    /// The right limit for groups of this row.
    fn limit(&self) -> f32 {
        match self.arrangement {
            ToolbarArrangement::Rows { button: true, .. } if self.row == 1 => {
                self.right - BUTTON - self.ui.spacing().item_spacing.x
            }
            _ => self.right,
        }
    }

    fn next_row(&mut self) {
        self.at = pos2(self.left, self.at.y + self.height() + BETWEEN_ROWS);
        self.row += 1;
        self.end = self.limit();
    }

    /// The height of a row.
    fn height(&self) -> f32 {
        self.before.height.max(self.now.height).max(self.ui.spacing().interact_size.y)
    }

    /// The button that unfolds or folds the toolbar.
    fn button_ui(&mut self, top: f32, unfolded: bool) {
        let (name, hint): (_, WidgetText) = if unfolded {
            ("Fewer controls", "Use less space".into())
        } else {
            ("More controls", self.hidden.join(", ").into())
        };
        let rect = Rect::from_min_max(
            pos2(self.right - BUTTON, top),
            pos2(self.right, top + self.height()),
        );
        let button = Button::new("…").selected(unfolded).min_size(vec2(BUTTON, 0.0));
        let shown = self.ui.put(rect, button).accessible_name(name).on_hover_text(hint);
        if shown.clicked() {
            self.now.unfolded = !unfolded;
        }
    }
}

/// Shows a toolbar along the top of the view of this name.
pub(crate) fn toolbar_ui(ui: &mut Ui, view: &str, contents: impl FnOnce(&mut ToolbarBuilder<'_>)) {
    let palette = ThemePalette::for_ui(ui);
    let frame = Frame::new().fill(palette.raised).inner_margin(Margin::symmetric(MARGIN as i8, 6));
    // No gap between toolbar and view: the line below is drawn right at its edge.
    let spacing = std::mem::take(&mut ui.spacing_mut().item_spacing);
    frame.show(ui, |ui| {
        ui.spacing_mut().item_spacing = spacing;
        ui.set_min_width(ui.available_width());
        let id = ui.scope_id().with(("toolbar", view));
        rows_ui(ui, id, view, contents);
    });
    let line = ui.cursor().top();
    let width = ui.max_rect().x_range();
    ui.painter().hline(width, line - 0.5, Stroke::new(1.0, palette.rule));
    ui.spacing_mut().item_spacing = spacing;
}

fn rows_ui(ui: &mut Ui, id: Id, view: &str, contents: impl FnOnce(&mut ToolbarBuilder<'_>)) {
    let before: ToolbarGroupSizes = ui.data(|data| data.get_temp(id)).unwrap_or_default();
    let area = ui.available_rect_before_wrap();
    let between = ui.spacing().item_spacing.x;
    let most = ((area.height() / PER_ROW) as usize).clamp(1, 3);
    let arrangement = before.arranged(area.width(), between, most);
    let mut bar = ToolbarBuilder {
        ui,
        view,
        arrangement,
        now: ToolbarGroupSizes { unfolded: before.unfolded, ..ToolbarGroupSizes::default() },
        before,
        left: area.left(),
        right: area.right(),
        at: area.min,
        end: area.right(),
        at_end: false,
        row: 1,
        most,
        hidden: Vec::new(),
    };
    contents(&mut bar);
    if let ToolbarArrangement::Rows { folded, button: true } = bar.arrangement {
        bar.button_ui(area.top(), !folded);
    }
    let bottom = bar.at.y + bar.height();
    let now = bar.now;
    ui.advance_cursor_after_rect(Rect::from_min_max(area.min, pos2(area.right(), bottom)));
    // A group became wider or appeared for the first time: lay out the frame again.
    if now.arranged(area.width(), between, most) != arrangement {
        ui.ctx().request_discard("controls have found their places");
    }
    ui.data_mut(|data| data.insert_temp(id, now));
}

/// Secondary text in a toolbar, which is never broken across lines.
pub(crate) fn weak_ui(ui: &mut Ui, text: String) {
    let text = RichText::new(text).weak();
    ui.add(egui::Label::new(text).extend());
}
