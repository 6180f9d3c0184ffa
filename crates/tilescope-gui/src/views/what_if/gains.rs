//! Gains and losses of changes as bars below each other: a tornado graph. Gains extend to the right
//! of a common line, and losses to the left.

use crate::widgets::figure::{FigureLook, figure_ui, height_of};
use egui::{Ui, vec2};
use tilescope_analysis::figures::{
    Figure, FigureAxis, FigureBar, FigureBarPart, FigureSeries, FigureUnit, Shade,
};

/// A bar for the relative change of the run's length; a negative change is a gain. Without a change
/// there is nothing to compare.
pub(super) fn gain_bar(name: impl Into<String>, change: Option<f64>, about: String) -> FigureBar {
    let value = match change {
        None => "—".to_owned(),
        // No minus sign in front of a value that rounds to 0.
        Some(change) if change.abs() < 0.0005 => "0.0 %".to_owned(),
        Some(change) => format!("{:+.1} %", 100.0 * change),
    };
    let gain = -change.unwrap_or(0.0);
    let part = FigureBarPart { from: 0.0, to: gain, series: usize::from(gain < 0.0) };
    FigureBar { name: name.into(), parts: vec![part], value, about, ..FigureBar::default() }
}

/// The largest loss and the largest gain of any bar. Graphs on one page share them, so that equal
/// lengths are equal gains.
pub(super) fn gain_ends(changes: impl Iterator<Item = Option<f64>>) -> [f64; 2] {
    let mut ends = [0.0f64, 0.0f64];
    for change in changes.flatten() {
        ends = [ends[0].min(-change), ends[1].max(-change)];
    }
    if ends[0] < ends[1] { ends } else { [0.0, 1.0] }
}

/// Shows the bars at their full height. Returns the subject of the clicked one.
pub(super) fn gains_ui(
    ui: &mut Ui,
    title: &str,
    bars: Vec<FigureBar>,
    ends: [f64; 2],
) -> Option<usize> {
    let x = FigureAxis::new("", FigureUnit::None).between(ends);
    let series = vec![FigureSeries::new("", Shade::Good), FigureSeries::new("", Shade::Warning)];
    let figure = Figure::bars(title, x, series, bars);
    let size = vec2(ui.available_width(), height_of(&figure));
    ui.allocate_ui(size, |ui| {
        ui.set_max_height(size.y);
        figure_ui(ui, &figure, FigureLook::default())
    })
    .inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_share_a_line() {
        assert_eq!(gain_ends([Some(-0.3), None, Some(0.1)].into_iter()), [-0.1, 0.3]);
        assert_eq!(gain_ends([Some(0.0)].into_iter()), [0.0, 1.0]);
        let part = |change| gain_bar("", Some(change), String::new()).parts[0];
        assert_eq!((part(-0.3).to, part(-0.3).series), (0.3, 0));
        assert_eq!((part(0.1).to, part(0.1).series), (-0.1, 1));
    }

    #[test]
    fn nonzero_changes_have_a_sign() {
        let number = |change| gain_bar("", change, String::new()).value;
        let numbers = [-0.176, 0.0, 0.0004, 0.021].map(|change| number(Some(change)));
        assert_eq!(numbers, ["-17.6 %", "0.0 %", "0.0 %", "+2.1 %"]);
        assert_eq!(number(None), "—");
    }
}
