//! Names along guides, each placed where it covers the least.

use crate::theme::{ThemePalette, text_size};
use crate::widgets::plot_marker::RADIUS;
use egui::epaint::TextShape;
use egui::{FontId, Pos2, Rect, Ui, Vec2, pos2};

/// The distance between candidate positions along a guide.
const STEP: f32 = 24.0;
/// The distance between points of a line that text should not cover.
const LINE_STEP: f32 = 8.0;
/// The gap between text and the edge of the plot.
const MARGIN: f32 = 6.0;
/// The gap between text and its guide.
const ABOVE: f32 = 1.0;
/// The cost of covering other text, relative to a point or a guide. Text with this cost is omitted.
const ON_WORDS: u32 = 1 << 20;

/// A mark that text would hide or be hidden by.
struct Obstacle {
    at: Pos2,
    radius: f32,
    weight: u32,
}

/// The visible part of a guide.
#[derive(Clone, Copy)]
struct GuideSegment {
    start: Pos2,
    along: Vec2,
    length: f32,
}

impl GuideSegment {
    /// The line from its left to its right end.
    fn new([one, other]: [Pos2; 2]) -> Self {
        let (start, end) = if one.x <= other.x { (one, other) } else { (other, one) };
        let line = end - start;
        Self { start, along: line.normalized(), length: line.length() }
    }

    /// The unit vector that points up from the line on the screen.
    fn up(&self) -> Vec2 {
        Vec2::new(self.along.y, -self.along.x)
    }

    fn places(&self, step: f32) -> impl Iterator<Item = Pos2> {
        let count = (self.length / step) as usize;
        let start = self.start;
        let along = self.along;
        (0..=count).map(move |at| start + along * (at as f32 * step))
    }

    /// The cost of text of this size that begins at a distance along the line.
    fn cost(&self, begin: f32, size: Vec2, obstacles: &[Obstacle]) -> u32 {
        let on = obstacles.iter().filter(|obstacle| {
            let from = obstacle.at - self.start;
            let radius = obstacle.radius;
            let along = from.dot(self.along) - begin;
            let up = from.dot(self.up()) - ABOVE;
            (-radius..=size.x + radius).contains(&along)
                && (-radius..=size.y + radius).contains(&up)
        });
        on.map(|obstacle| obstacle.weight).sum()
    }

    /// The best position for text of this size: the cheapest one, as far right as possible. `None`
    /// if the line is shorter than the text, or the text would cover other text.
    fn best(&self, size: Vec2, obstacles: &[Obstacle]) -> Option<f32> {
        let last = self.length - size.x - MARGIN;
        let count = (last / STEP).max(0.0) as usize;
        let begins = (0..=count).map(|at| last - at as f32 * STEP);
        let begins = begins.filter(|begin| *begin >= 0.0);
        let costs = begins.map(|begin| (self.cost(begin, size, obstacles), begin));
        let (cost, begin) = costs.min_by_key(|(cost, _)| *cost)?;
        if cost < ON_WORDS { Some(begin) } else { None }
    }
}

/// Draws names of guides away from points. Guides are given by their ends on the screen.
pub(super) fn names_ui(ui: &Ui, frame: Rect, guides: &[(&str, [Pos2; 2])], points: &[Pos2]) {
    let palette = ThemePalette::for_ui(ui);
    let painter = ui.painter().with_clip_rect(frame);
    let font = FontId::proportional(text_size::CAPTION);
    let mut obstacles: Vec<Obstacle> = Vec::new();
    obstacles.extend(points.iter().map(|at| Obstacle { at: *at, radius: RADIUS, weight: 1 }));
    for (_, ends) in guides {
        let segment = GuideSegment::new(*ends);
        let places = segment.places(LINE_STEP);
        obstacles.extend(places.map(|at| Obstacle { at, radius: 0.0, weight: 1 }));
    }
    // Horizontal ones first: they have less space above them.
    let mut order: Vec<_> = guides.iter().filter(|(name, _)| !name.is_empty()).collect();
    order.sort_by_key(|(_, ends)| (ends[0].y - ends[1].y).abs() >= 0.5);
    let mut free = frame.left();
    for (name, ends) in order {
        let galley = painter.layout_no_wrap((*name).to_owned(), font.clone(), palette.text);
        let size = galley.size();
        if (ends[0].x - ends[1].x).abs() < 0.5 {
            // Beside its upper end, unless the previous name is there.
            let at = pos2(ends[0].x + MARGIN / 2.0, frame.top() + MARGIN / 2.0);
            if at.x >= free && at.x + size.x <= frame.right() {
                painter.galley(at, galley, palette.text);
                free = at.x + size.x + MARGIN;
            }
            continue;
        }
        let segment = GuideSegment::new(*ends);
        let Some(begin) = segment.best(size, &obstacles) else { continue };
        let foot = segment.start + segment.along * begin + segment.up() * ABOVE;
        if (foot + segment.up() * size.y).y < frame.top() {
            continue;
        }
        let middle =
            GuideSegment { start: foot + segment.up() * size.y * 0.5, length: size.x, ..segment };
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

    #[test]
    fn names_avoid_other_marks() {
        let guide = GuideSegment::new([pos2(0.0, 50.0), pos2(100.0, 50.0)]);
        let size = Vec2::new(20.0, 10.0);
        let right = guide.best(size, &[]).unwrap();
        assert_eq!(right, 100.0 - 20.0 - MARGIN);
        let point = Obstacle { at: pos2(85.0, 45.0), radius: 4.0, weight: 1 };
        assert!(guide.best(size, &[point]).unwrap() < right);
        assert_eq!(guide.best(Vec2::new(120.0, 10.0), &[]), None, "longer than the guide");
    }
}
