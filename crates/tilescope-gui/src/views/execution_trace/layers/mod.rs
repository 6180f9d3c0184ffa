//! The layers of the trace, one file each: background queries, layout, painting and hit testing of
//! a layer. Positions come from [`TraceLayout`].

pub(super) mod arrows;
mod chosen;
pub(super) mod followed;
pub(super) mod host;
pub(super) mod lanes;
pub(super) mod links;
pub(super) mod marks;
pub(super) mod path;
mod ruler;
#[cfg(test)]
mod tests;
mod textures;
pub(super) mod tiles;
pub(super) mod user_marks;

pub(super) use textures::TraceTextures;

use super::layout::TraceLayout;
use super::loaded_trace::LoadedTrace;
use super::scene::TraceScene;
use super::settings::TraceSettings;
use crate::model::command::SelectedStep;
use crate::theme::{ThemePalette, text_size};
use chosen::chosen_bars;
use egui::{Align2, FontId, Painter, Rangef, Rect, Ui, pos2};
use lanes::ipu_bands;
use path::PathScene;
use tilescope_analysis::trace::MicroBatchPath;
use tilescope_report::units::Hertz;

/// The opacity of the veil over bars while another one is selected.
const VEIL: f32 = 0.55;

/// The inputs and tools for painting the layers in a frame.
pub(super) struct TracePainter<'a> {
    pub ui: &'a Ui,
    /// The painter, clipped to the lanes.
    pub painter: Painter,
    pub palette: &'static ThemePalette,
    pub layout: &'a TraceLayout<'a>,
    pub prepared: &'a LoadedTrace,
    /// The scene, as far as it was read.
    pub scene: Option<&'a TraceScene>,
    pub textures: &'a TraceTextures,
    pub settings: &'a TraceSettings,
    /// The selected step, if any.
    pub selected: Option<SelectedStep>,
    /// The path of the followed micro-batch.
    pub followed: Option<&'a MicroBatchPath>,
    /// True if bars are shaded by tile balance.
    pub shade_balance: bool,
    /// The clock frequency of an IPU.
    pub clock: Hertz,
    /// True if the ruler counts time.
    pub ruler_in_time: bool,
}

impl TracePainter<'_> {
    /// Paints the ruler and the lanes read so far. The lane of the critical path shows `waiting`
    /// until the path is found.
    pub(super) fn paint_lanes(&self, error: Option<String>, waiting: &str) {
        let (chosen, veiled) = chosen_bars(self.layout, self.scene, self.settings, self.selected);
        // One veil is enough: two of them would hide the bars below.
        let veiled = veiled && self.followed.is_none() && self.lit_path().is_none();
        self.ruler();
        let lanes = self.layout.regions.lanes;
        if let Some(error) = error {
            let font = FontId::proportional(text_size::BODY);
            let at = lanes.center();
            self.painter.text(at, Align2::CENTER_CENTER, error, font, self.palette.error);
        }
        for band in &ipu_bands(self.layout, self.scene) {
            self.band_ui(band, veiled);
        }
        if let Some(scene) = self.scene {
            self.common_marks_ui(scene);
            self.host_ui(scene);
        }
        self.path_ui(waiting);
        // After all lanes, since arrows cross lanes, and selected bars after the veils. Two kinds
        // of arrows at once would be unreadable.
        match (self.lit_path(), self.scene) {
            (Some(path), _) => self.hops_ui(path),
            (None, Some(scene)) => self.arrows_ui(scene),
            (None, None) => {}
        }
        if let Some(path) = self.followed {
            self.followed_ui(path);
        }
        for chosen in &chosen {
            self.chosen_bar(chosen);
        }
        if let Some(scene) = self.scene {
            self.chosen_mark(scene);
        }
    }

    /// The critical path, if it is highlighted.
    fn lit_path(&self) -> Option<&PathScene> {
        self.scene.filter(|_| self.settings.path_lit)?.path.as_ref()
    }

    /// Writes the name of a row left of it.
    fn row_title(&self, row: Rect, text: &str) {
        let at = pos2(row.left() - 10.0, row.center().y - 1.0);
        let font = FontId::proportional(text_size::CAPTION);
        self.ui.painter().text(at, Align2::RIGHT_CENTER, text, font, self.palette.weak_text);
    }
}

/// The parts of `area` that are not highlighted.
fn veiled_parts(area: Rect, lit: &[Rangef]) -> Vec<Rect> {
    let mut left = area.left();
    let mut parts = Vec::new();
    for part in lit {
        if part.min > left {
            parts.push(Rect::from_x_y_ranges(left..=part.min.min(area.right()), area.y_range()));
        }
        left = left.max(part.max);
    }
    if left < area.right() {
        parts.push(Rect::from_x_y_ranges(left..=area.right(), area.y_range()));
    }
    parts
}
