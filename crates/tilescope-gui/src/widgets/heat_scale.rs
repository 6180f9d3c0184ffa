//! Colour scales for amounts: over the present range, with a legend.

use crate::theme::{ThemePalette, text_size};
use egui::accesskit::Role;
use egui::{
    Color32, Mesh, Pos2, Rect, RichText, Sense, Shape, Stroke, StrokeKind, Ui, WidgetInfo, pos2,
    vec2,
};

/// The range of amounts that colours represent: from the smallest nonzero amount to the largest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeatScale {
    least: u64,
    most: u64,
    /// True for a logarithmic scale.
    log: bool,
}

impl HeatScale {
    /// The scale of these amounts. Zero amounts have no colour on it.
    pub(crate) fn of<'a>(values: impl IntoIterator<Item = &'a u64>, log: bool) -> Self {
        let there = values.into_iter().copied().filter(|value| *value > 0);
        let range = there.fold(None, |range: Option<(u64, u64)>, value| match range {
            Some((least, most)) => Some((least.min(value), most.max(value))),
            None => Some((value, value)),
        });
        let (least, most) = range.unwrap_or_default();
        Self { least, most, log }
    }

    /// The scale from zero to the largest amount.
    pub(crate) fn from_zero(most: u64, log: bool) -> Self {
        Self { least: 0, most, log }
    }

    /// The scale that covers the amounts of both. A scale without amounts adds nothing.
    pub(crate) fn joined(self, other: Self) -> Self {
        match (self.most, other.most) {
            (_, 0) => self,
            (0, _) => Self { log: self.log, ..other },
            (here, there) => {
                Self { least: self.least.min(other.least), most: here.max(there), ..self }
            }
        }
    }

    /// The scale with another amount for the strongest colour.
    pub(crate) fn with_most(self, most: u64) -> Self {
        Self { least: self.least.min(most), most, ..self }
    }

    pub(crate) fn least(self) -> u64 {
        self.least
    }

    pub(crate) fn most(self) -> u64 {
        self.most
    }

    /// The position of an amount, 0 to 1. If all amounts are equal, they have the strongest colour.
    pub(crate) fn share(self, value: u64) -> f32 {
        let range = self.most.saturating_sub(self.least);
        let above = value.saturating_sub(self.least).min(range);
        match (range, self.log) {
            (0, _) => 1.0,
            (_, true) => log_share(above as f64, range as f64),
            (_, false) => (above as f64 / range as f64) as f32,
        }
    }
}

/// The position of an amount between zero and the largest, on a logarithmic scale.
fn log_share(value: f64, max: f64) -> f32 {
    if max <= 0.0 { 0.0 } else { ((1.0 + value.max(0.0)).ln() / (1.0 + max).ln()) as f32 }
}

/// Shows the colour scale between its ends.
pub(crate) fn scale_ui(ui: &mut Ui, least: &str, most: &str) {
    let palette = ThemePalette::for_ui(ui);
    ui.label(RichText::new(least).size(text_size::SMALL));
    let (rect, response) = ui.allocate_exact_size(vec2(120.0, 11.0), Sense::hover());
    let words = format!("Colours from {least} to {most}");
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &words));
    ui.painter().add(Shape::mesh(ramp(rect, |share| palette.heat(share))));
    let line = Stroke::new(1.0, palette.outline);
    ui.painter().rect_stroke(rect, 0.0, line, StrokeKind::Inside);
    ui.label(RichText::new(most).size(text_size::SMALL));
}

fn ramp(rect: Rect, colour: impl Fn(f32) -> Color32) -> Mesh {
    const STEPS: u32 = 24;
    let mut mesh = Mesh::default();
    for step in 0..=STEPS {
        let share = step as f32 / STEPS as f32;
        let x = rect.left() + share * rect.width();
        for y in [rect.top(), rect.bottom()] {
            let at: Pos2 = pos2(x, y);
            mesh.colored_vertex(at, colour(share));
        }
        if step > 0 {
            let at = 2 * step;
            mesh.add_triangle(at - 2, at - 1, at);
            mesh.add_triangle(at - 1, at, at + 1);
        }
    }
    mesh
}

#[cfg(test)]
mod tests {
    use super::{HeatScale, log_share};

    #[test]
    fn the_scale_spans_the_present_amounts() {
        for log in [false, true] {
            let values = [0, 400_000, 609_791, 500_000];
            let scale = HeatScale::of(&values, log);
            assert_eq!((scale.least(), scale.most()), (400_000, 609_791));
            assert_eq!((scale.share(400_000), scale.share(609_791)), (0.0, 1.0));
            assert!((0.1..0.99).contains(&scale.share(500_000)));
            assert_eq!(scale.with_most(500_000).share(609_791), 1.0);
            assert_eq!(HeatScale::of(&[7, 7], log).share(7), 1.0);
            assert_eq!(HeatScale::of(&[], log).least(), 0);
        }
    }

    #[test]
    fn a_joined_scale_spans_both() {
        let few = HeatScale::of(&[3, 9], false);
        let many = HeatScale::of(&[5, 70], false);
        let none = HeatScale::of(&[0], false);
        assert_eq!(few.joined(many), HeatScale::of(&[3, 70], false));
        assert_eq!(few.joined(many), many.joined(few));
        assert_eq!((few.joined(none), none.joined(few)), (few, few));
        assert_eq!(HeatScale::from_zero(9, true).joined(HeatScale::from_zero(4, true)).least(), 0);
    }

    #[test]
    fn shares_stay_between_zero_and_one() {
        assert_eq!((log_share(0.0, 100.0), log_share(100.0, 100.0)), (0.0, 1.0));
        assert_eq!(log_share(5.0, 0.0), 0.0);
        let shares: Vec<f32> = (0..100).map(|value| log_share(f64::from(value), 99.0)).collect();
        assert!(shares.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
