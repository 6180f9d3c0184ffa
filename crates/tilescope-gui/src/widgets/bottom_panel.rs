//! A panel of tables below a graph. Where the graph would have too little room, or the tables have
//! nothing to show yet, the panel is no more than its tabs; a button opens and closes it.

use super::{ICON_BUTTON, icon_button_ui};
use crate::theme::{ThemePalette, spacing};
use crate::widgets::icons::Icon;
use egui::{Frame, Label, Panel, Rect, RichText, Ui, UiBuilder, vec2};
use serde::{Deserialize, Serialize};

/// Height of tabs alone.
const TABS: f32 = 36.0;
/// Least height of the panel when it is open, and of the graph above it.
const LEAST: f32 = 60.0;
const LEAST_ABOVE: f32 = 120.0;

/// A view lower than this begins with its tables closed.
pub(crate) const LOW: f32 = 360.0;

/// A panel, and whether the user has opened or closed it.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct BottomPanel {
    open: Option<bool>,
}

impl BottomPanel {
    /// A panel that the user has opened or closed, or neither.
    pub(crate) fn of(open: Option<bool>) -> Self {
        Self { open }
    }

    /// Whether the user has opened or closed it.
    pub(crate) fn choice(self) -> Option<bool> {
        self.open
    }

    /// Shows the panel at the bottom of `ui`, at first as high as `height`; closed where graph and
    /// panel together are lower than `low`. `contents` is told whether there is more than tabs, and
    /// says so to open it. The panel as the user has left it.
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

    /// The same, closed as long as it has nothing to show and the user does not open it.
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
            // The size that the user has given to the open one is not touched.
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

/// A sentence in place of what is in such a panel, while it is closed and has no tabs.
pub(crate) fn closed_ui(ui: &mut Ui, sentence: &str) {
    tabs_row_ui(ui, |ui| {
        ui.add_space(spacing::S);
        let text = RichText::new(sentence).weak();
        ui.set_min_height(TABS);
        ui.add(Label::new(text).truncate());
    });
}

/// Tabs at the top of such a panel; the button is beside them.
pub(crate) fn tabs_row_ui<R>(ui: &mut Ui, tabs: impl FnOnce(&mut Ui) -> R) -> R {
    ui.horizontal(|ui| {
        ui.set_max_width(ui.available_width() - ICON_BUTTON - 8.0);
        ui.add_space(spacing::S);
        tabs(ui)
    })
    .inner
}
