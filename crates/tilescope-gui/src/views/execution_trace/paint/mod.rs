//! Painting: from render items to shapes and textures, and to nodes for readers of the screen.

mod arrows;
mod bands;
mod chosen_bars;
mod followed;
mod marks;
mod path;
mod textures;
mod user_marks;

pub(super) use marks::{host_colour, host_words};
pub(super) use textures::TraceTextures;

use super::layout::{TraceRegions, TraceRenderItems};
use super::loaded_trace::LoadedTrace;
use crate::theme::{ThemePalette, text_size};
use egui::{Align2, FontId, Painter, Ui};
use tilescope_report::units::Hertz;

/// Opacity of the veil over bars while another one is chosen.
const VEIL: f32 = 0.55;

/// What everything is painted with.
pub(super) struct TracePainter<'a> {
    pub ui: &'a Ui,
    /// Clipped to the lanes.
    pub painter: Painter,
    pub palette: &'static ThemePalette,
    pub regions: TraceRegions,
    pub prepared: &'a LoadedTrace,
    pub textures: &'a TraceTextures,
    /// Whether bars are shaded by tile balance.
    pub shade_balance: bool,
    /// Cycles of an IPU in a second.
    pub clock: Hertz,
}

impl TracePainter<'_> {
    /// Paints the ruler, and what was read of the lanes.
    /// `waiting` stands in the lane of the critical path until that is found.
    pub(super) fn paint_lanes(
        &self,
        items: &TraceRenderItems<'_>,
        error: Option<String>,
        waiting: &str,
    ) {
        self.ruler(&items.ticks);
        if let Some(error) = error {
            let (font, at) = (FontId::proportional(text_size::BODY), self.regions.lanes.center());
            self.painter.text(at, Align2::CENTER_CENTER, error, font, self.palette.error);
        }
        for band in &items.bands {
            self.band_ui(band, items);
        }
        self.common_marks_ui(&items.mark_rows, items.host.as_ref());
        if let Some(path) = &items.path {
            self.path_ui(path, waiting);
        }
        self.hops_ui(&items.hops);
        // After all lanes, since arrows cross from one to another; chosen bars after the veils.
        self.arrows_ui(&items.arrows);
        if let Some(followed) = &items.followed {
            self.followed_ui(followed);
        }
        for chosen in &items.chosen {
            self.chosen_bar(chosen);
        }
        if let Some(rect) = items.chosen_mark {
            self.chosen_mark(rect);
        }
    }
}
