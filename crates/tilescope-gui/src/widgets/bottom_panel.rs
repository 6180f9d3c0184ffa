//! A panel of tables below a graph. If the graph would have too little space, or the tables have
//! nothing to show yet, the panel shrinks to its tabs. A button opens and closes it.

use super::{ICON_BUTTON, icon_button_ui};
use crate::theme::{ThemePalette, spacing};
use crate::widgets::icons::Icon;
use egui::{Frame, Label, Panel, Rect, RichText, Ui, UiBuilder, vec2};
use serde::{Deserialize, Serialize};

/// The height of the tabs alone.
const TABS: f32 = 36.0;
/// The smallest height of the open panel.
const LEAST: f32 = 60.0;
/// The smallest height of the graph above the panel.
const LEAST_ABOVE: f32 = 120.0;

/// The height below which a view starts with its tables closed.
pub(crate) const LOW: f32 = 360.0;

/// A panel, and the user's choice to open or close it.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BottomPanel {
    open: Option<bool>,
}

impl BottomPanel {
    /// A panel with the user's choice to open or close it, if any.
    pub(crate) fn of(open: Option<bool>) -> Self {
        Self { open }
    }

    /// Returns the user's choice to open or close it, if any.
    pub(crate) fn choice(self) -> Option<bool> {
        self.open
    }

    /// Shows the panel at the bottom of `ui`. `room` holds its initial height, and the height of
    /// graph and panel together below which it starts closed. `contents` receives a flag that is
    /// true if more than the tabs is visible, and sets the flag to open the panel. Returns the
    /// panel with the user's choice.
    #[must_use]
    pub(crate) fn ui(
        self,
        ui: &mut Ui,
        name: &'static str,
        room: (f32, f32),
        contents: impl FnOnce(&mut Ui, &mut bool),
    ) -> Self {
        self.ui_when(true, ui, name, room, contents)
    }

    /// Shows the panel like [`Self::ui`], but closed while it has nothing to show and the user has
    /// not opened it.
    #[must_use]
    pub(crate) fn ui_when(
        self,
        has_content: bool,
        ui: &mut Ui,
        name: &'static str,
        (height, low): (f32, f32),
        contents: impl FnOnce(&mut Ui, &mut bool),
    ) -> Self {
        let room = ui.available_height();
        let open = self.open.unwrap_or(has_content && room >= low);
        let panel = if open {
            let most = (room - LEAST_ABOVE).max(LEAST + 1.0);
            Panel::bottom(name).resizable(true).default_size(height).size_range(LEAST..=most)
        } else {
            // The user's size of the open panel stays unchanged.
            Panel::bottom((name, "tabs")).resizable(false).default_size(TABS).min_size(TABS)
        };
        let mut wanted = open;
        let frame = Frame::new().fill(ThemePalette::for_ui(ui).page);
        panel.frame(frame).show(ui, |ui| {
            if open {
                ui.take_available_space();
            }
            let area = ui.max_rect();
            contents(ui, &mut wanted);
            let corner = area.right_top() + vec2(-ICON_BUTTON - 6.0, 4.0);
            let rect = Rect::from_min_size(corner, vec2(ICON_BUTTON, ICON_BUTTON));
            let mut corner = ui.new_child(UiBuilder::new().max_rect(rect));
            let (icon, words) =
                if open { (Icon::Down, "Hide tables") } else { (Icon::Up, "Show tables") };
            if icon_button_ui(&mut corner, icon, words).clicked() {
                wanted = !open;
            }
        });
        if wanted == open { self } else { Self::of(Some(wanted)) }
    }
}

/// A sentence in place of the contents of such a panel, while it is closed and has no tabs.
pub(crate) fn closed_ui(ui: &mut Ui, sentence: &str) {
    tabs_row_ui(ui, |ui| {
        ui.add_space(spacing::S);
        let text = RichText::new(sentence).weak();
        ui.set_min_height(TABS);
        ui.add(Label::new(text).truncate());
    });
}

/// The tabs at the top of such a panel, with the button beside them.
pub(crate) fn tabs_row_ui<R>(ui: &mut Ui, tabs: impl FnOnce(&mut Ui) -> R) -> R {
    ui.horizontal(|ui| {
        ui.set_max_width(ui.available_width() - ICON_BUTTON - 8.0);
        ui.add_space(spacing::S);
        tabs(ui)
    })
    .inner
}
