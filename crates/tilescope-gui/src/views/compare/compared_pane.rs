//! What a view is to match of the same view of the other report.

use super::ComparisonSide;
use super::side_colours::{self, SideColours};
use crate::views::{ReportView, ViewScales};
use crate::widgets::heat_scale::HeatScale;
use egui::{Color32, Ui};
use tilescope_report::units::Cycles;

/// One of two views beside each other, and what both have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ComparedPane {
    pub side: ComparisonSide,
    /// The highest value that the graph of either shows: both axes reach as high.
    pub graph_top: u64,
    /// What colours of both stand for; none where they stand for different things, or for nothing.
    pub heat_scale: Option<HeatScale>,
    /// Cycles of a pixel from which on the lanes of both are shares.
    pub narrow_steps: Option<Cycles>,
    /// Whether there is little height, which lanes need more than marks above them.
    pub low: bool,
}

impl ComparedPane {
    /// What two views have in common, as far as their last frame tells.
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

    /// The colour of its side.
    pub(crate) fn colour(self, ui: &Ui) -> Color32 {
        self.of_side(side_colours::side_colours(ui))
    }

    /// The colours of its side for memory that is always live, and for the rest.
    pub(crate) fn liveness_colours(self, ui: &Ui) -> [Color32; 2] {
        let always = side_colours::always_live_colours(ui);
        [always, side_colours::not_always_live_colours(ui)].map(|colours| self.of_side(colours))
    }

    fn of_side(self, SideColours { source, target }: SideColours) -> Color32 {
        if self.side == ComparisonSide::Source { source } else { target }
    }
}

/// The scale of what both views colour, if that is the same.
fn joined_scale(source: ViewScales, target: ViewScales) -> Option<HeatScale> {
    let ((coloured, source), (other, target)) = (source.heat?, target.heat?);
    (coloured == other).then(|| source.joined(target))
}
