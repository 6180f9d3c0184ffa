//! Words along the roofs of the roofline, each where it lies on least.

use super::roofline_plot::RooflineScene;
use crate::theme::{ThemePalette, text_size};
use crate::widgets::plot_marker::RADIUS;
use egui::epaint::TextShape;
use egui::{FontId, Pos2, Rect, Ui, Vec2};
use egui_plot::PlotTransform;
use tilescope_analysis::limits::RoofKind;

/// Gap between places along a roof that are tried.
const STEP: f32 = 24.0;
/// Gap between places of a line that words should not cross.
const LINE_STEP: f32 = 8.0;
/// Gap between words and the edge of the plot, and between words and their roof.
const MARGIN: f32 = 6.0;
const ABOVE: f32 = 1.0;
/// How much worse it is to lie on other words than on a point or a roof: words are left out then.
const ON_WORDS: u32 = 1 << 20;

/// Something that words would hide, or be hidden by.
struct Obstacle {
    at: Pos2,
    radius: f32,
    weight: u32,
}

/// The part of a roof on the screen.
#[derive(Clone, Copy)]
struct RoofSegment {
    start: Pos2,
    along: Vec2,
    length: f32,
}

impl RoofSegment {
    /// What a frame shows of a line that climbs from `low` to `high`; `None` if that is nothing.
    fn visible(low: Pos2, high: Pos2, frame: Rect) -> Option<Self> {
        let line = high - low;
        let (mut from, mut to) = (0.0f32, 1.0f32);
        let edges = [
            (low.x, line.x, frame.left(), frame.right()),
            (low.y, line.y, frame.top(), frame.bottom()),
        ];
        for (start, step, least, most) in edges {
            if step.abs() < f32::EPSILON {
                if start < least || start > most {
                    return None;
                }
                continue;
            }
            let (one, other) = ((least - start) / step, (most - start) / step);
            from = from.max(one.min(other));
            to = to.min(one.max(other));
        }
        let length = line.length() * (to - from);
        (to > from && length > 1.0).then(|| Self {
            start: low + line * from,
            along: line.normalized(),
            length,
        })
    }

    /// Points up from the line on the screen.
    fn up(&self) -> Vec2 {
        Vec2::new(self.along.y, -self.along.x)
    }

    fn places(&self, step: f32) -> impl Iterator<Item = Pos2> {
        let count = (self.length / step) as usize;
        let (start, along) = (self.start, self.along);
        (0..=count).map(move |at| start + along * (at as f32 * step))
    }

    /// How much words of a size lie on that begin so far along the line.
    fn cost(&self, begin: f32, size: Vec2, obstacles: &[Obstacle]) -> u32 {
        let on = obstacles.iter().filter(|obstacle| {
            let (from, radius) = (obstacle.at - self.start, obstacle.radius);
            let (along, up) = (from.dot(self.along) - begin, from.dot(self.up()) - ABOVE);
            (-radius..=size.x + radius).contains(&along)
                && (-radius..=size.y + radius).contains(&up)
        });
        on.map(|obstacle| obstacle.weight).sum()
    }

    /// Where words of a size begin that lie on least, as far right as they can; `None` if the line
    /// is shorter than the words, or they would lie on others.
    fn best(&self, size: Vec2, obstacles: &[Obstacle]) -> Option<f32> {
        let last = self.length - size.x - MARGIN;
        let count = (last / STEP).max(0.0) as usize;
        let begins = (0..=count).map(|at| last - at as f32 * STEP);
        let begins = begins.filter(|begin| *begin >= 0.0);
        let costs = begins.map(|begin| (self.cost(begin, size, obstacles), begin));
        let (cost, begin) = costs.min_by_key(|(cost, _)| *cost)?;
        (cost < ON_WORDS).then_some(begin)
    }
}

/// Draws what every roof is, and how high.
pub(super) fn label_roofs(
    ui: &Ui,
    scene: &RooflineScene<'_>,
    transform: &PlotTransform,
    points: &[Pos2],
) {
    let palette = ThemePalette::for_ui(ui);
    let frame = *transform.frame();
    let painter = ui.painter().with_clip_rect(frame);
    let font = FontId::proportional(text_size::CAPTION);
    let segments: Vec<_> = scene
        .roofs()
        .iter()
        .map(|roof| {
            let [low, high] = scene.roof_on_screen(roof, transform);
            (roof, RoofSegment::visible(low, high, frame))
        })
        .collect();
    let point = |at: &Pos2| Obstacle { at: *at, radius: RADIUS, weight: 1 };
    let lines = segments.iter().filter_map(|(_, segment)| *segment);
    let lines = lines.flat_map(|segment| segment.places(LINE_STEP).collect::<Vec<_>>());
    let mut obstacles: Vec<Obstacle> = points.iter().map(point).collect();
    obstacles.extend(lines.map(|at| Obstacle { at, radius: 0.0, weight: 1 }));
    // Engines first: there is less room above them.
    let (engines, interfaces): (Vec<_>, Vec<_>) =
        segments.into_iter().partition(|(roof, _)| matches!(roof.kind, RoofKind::Engine(_)));
    for (roof, segment) in engines.into_iter().chain(interfaces) {
        let Some(segment) = segment else { continue };
        let galley = painter.layout_no_wrap(scene.roof_words(roof), font.clone(), palette.text);
        let size = galley.size();
        let Some(begin) = segment.best(size, &obstacles) else { continue };
        let foot = segment.start + segment.along * begin + segment.up() * ABOVE;
        if (foot + segment.up() * size.y).y < frame.top() {
            continue;
        }
        let middle =
            RoofSegment { start: foot + segment.up() * size.y * 0.5, length: size.x, ..segment };
        obstacles.extend(middle.places(LINE_STEP).map(|at| Obstacle {
            at,
            radius: size.y * 0.5,
            weight: ON_WORDS,
        }));
        let at = foot + segment.up() * size.y;
        painter.add(TextShape::new(at, galley, palette.text).with_angle(segment.along.angle()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use egui::pos2;

    fn frame() -> Rect {
        Rect::from_min_max(pos2(0.0, 0.0), pos2(100.0, 100.0))
    }

    #[test]
    fn roofs_are_cut_at_the_edge_of_the_plot() {
        let seen = RoofSegment::visible(pos2(0.0, 100.0), pos2(200.0, -100.0), frame()).unwrap();
        assert_eq!(seen.start, pos2(0.0, 100.0));
        assert!((seen.length - 100.0 * 2f32.sqrt()).abs() < 1e-3);
        assert!(RoofSegment::visible(pos2(0.0, 150.0), pos2(90.0, 150.0), frame()).is_none());
    }

    #[test]
    fn words_move_away_from_what_they_would_hide() {
        let roof = RoofSegment::visible(pos2(0.0, 50.0), pos2(100.0, 50.0), frame()).unwrap();
        let size = Vec2::new(20.0, 10.0);
        let right = roof.best(size, &[]).unwrap();
        assert_eq!(right, 100.0 - 20.0 - MARGIN);
        let point = Obstacle { at: pos2(85.0, 45.0), radius: 4.0, weight: 1 };
        assert!(roof.best(size, &[point]).unwrap() < right);
        assert_eq!(roof.best(Vec2::new(120.0, 10.0), &[]), None, "longer than the roof");
    }
}
