//! The properties that a view shares with the same view of the other report.

use super::ComparisonSide;
use super::side_colours::{self, SideColours};
use crate::views::{ReportView, ViewScales};
use crate::widgets::heat_scale::HeatScale;
use egui::{Color32, Ui};
use tilescope_report::units::Cycles;

/// One of two views side by side, and the properties shared by both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ComparedPane {
    pub side: ComparisonSide,
    /// The highest value in either graph; both axes reach as high.
    pub graph_top: u64,
    /// The common colour scale; `None` if the colours mean different things or nothing.
    pub heat_scale: Option<HeatScale>,
    /// The cycles per pixel from which the lanes of both show shares.
    pub narrow_steps: Option<Cycles>,
    /// True if there is so little height that lanes take precedence over marks.
    pub low: bool,
}

impl ComparedPane {
    /// The shared properties of two views, according to their last frame.
    pub(crate) fn of(side: ComparisonSide, views: [&mut dyn ReportView; 2]) -> Self {
        let [source, target] = [views[0].scales(), views[1].scales()];
        let narrow = views.map(|view| view.as_timeline().and_then(|view| view.narrow_steps()));
        Self {
            side,
            graph_top: source.graph_top.max(target.graph_top).unwrap_or(0),
            heat_scale: joined_scale(source, target),
            narrow_steps: narrow.into_iter().flatten().min(),
            low: false,
        }
    }

    /// The colour of this side.
    pub(crate) fn colour(self, ui: &Ui) -> Color32 {
        self.of_side(side_colours::side_colours(ui))
    }

    /// The colours of this side for always-live memory, and for the rest.
    pub(crate) fn liveness_colours(self, ui: &Ui) -> [Color32; 2] {
        let always = side_colours::always_live_colours(ui);
        [always, side_colours::not_always_live_colours(ui)].map(|colours| self.of_side(colours))
    }

    fn of_side(self, SideColours { source, target }: SideColours) -> Color32 {
        if self.side == ComparisonSide::Source { source } else { target }
    }
}

/// The common colour scale, if both views colour the same quantity.
fn joined_scale(source: ViewScales, target: ViewScales) -> Option<HeatScale> {
    let (coloured, source) = source.heat?;
    let (other, target) = target.heat?;
    if coloured == other { Some(source.joined(target)) } else { None }
}
