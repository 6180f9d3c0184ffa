//! Small line drawings, painted so that they need no font and follow the theme.

use egui::{Color32, Painter, Pos2, Rect, Shape, Stroke, Vec2, pos2};

/// The icons of the app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Icon {
    /// Lines of text after dots.
    List,
    /// A chip with pins.
    Chip,
    /// Bars of a timeline.
    Trace,
    /// Two arrows in opposite directions.
    Exchange,
    /// Squares of a floor plan, some of them filled.
    Tiles,
    /// An arrow bent into a circle.
    Reload,
    Close,
    /// A plus sign.
    Add,
    /// A question mark in a circle.
    Help,
    /// An arrow to the left.
    Collapse,
    /// An arrow to the right.
    Expand,
    Up,
    Down,
    Folder,
    /// A triangle for starting something.
    Play,
    Theme,
    /// A rhombus of tiles: the program's own icon.
    Mark,
    Find,
    /// A flask for examples.
    Flask,
    /// A stepped curve.
    Steps,
    Bulb,
    /// Lines with increasing indentation.
    Tree,
    /// A table with a header.
    Table,
    /// Boxes with lines between them.
    Graph,
    /// Points below a roofline.
    Roofline,
    /// Two links of a chain.
    Link,
    Camera,
    /// A tick in a circle.
    Done,
    /// An exclamation mark in a triangle.
    Warning,
    /// A cross in a circle.
    Error,
}

/// Paints `icon` centred in `rect`.
pub(crate) fn paint(painter: &Painter, rect: Rect, icon: Icon, colour: Color32) {
    let side = rect.width().min(rect.height());
    let square = Rect::from_center_size(rect.center(), Vec2::splat(side));
    let pen = IconPainter { painter, square, stroke: Stroke::new(1.5, colour) };
    match icon {
        Icon::List => pen.list(),
        Icon::Chip => pen.chip(),
        Icon::Trace => pen.trace(),
        Icon::Exchange => pen.exchange(),
        Icon::Tiles => pen.tiles(),
        Icon::Reload => pen.reload(),
        Icon::Close => {
            pen.line(&[(0.25, 0.25), (0.75, 0.75)]);
            pen.line(&[(0.75, 0.25), (0.25, 0.75)]);
        }
        Icon::Add => {
            pen.line(&[(0.5, 0.2), (0.5, 0.8)]);
            pen.line(&[(0.2, 0.5), (0.8, 0.5)]);
        }
        Icon::Help => pen.help(),
        Icon::Collapse => pen.line(&[(0.6, 0.25), (0.35, 0.5), (0.6, 0.75)]),
        Icon::Expand => pen.line(&[(0.4, 0.25), (0.65, 0.5), (0.4, 0.75)]),
        Icon::Up => pen.line(&[(0.25, 0.6), (0.5, 0.35), (0.75, 0.6)]),
        Icon::Down => pen.line(&[(0.25, 0.4), (0.5, 0.65), (0.75, 0.4)]),
        Icon::Folder => pen.folder(),
        Icon::Play => pen.fill(&[(0.3, 0.2), (0.8, 0.5), (0.3, 0.8)]),
        Icon::Theme => pen.theme(),
        Icon::Mark => pen.mark(),
        Icon::Find => {
            pen.circle((0.43, 0.43), 0.26);
            pen.line(&[(0.62, 0.62), (0.84, 0.84)]);
        }
        Icon::Flask => pen.flask(),
        Icon::Steps => pen.steps(),
        Icon::Bulb => pen.bulb(),
        Icon::Tree => pen.tree(),
        Icon::Table => pen.table(),
        Icon::Graph => pen.graph(),
        Icon::Roofline => {
            pen.line(&[(0.12, 0.66), (0.46, 0.24), (0.88, 0.24)]);
            pen.circle((0.38, 0.62), 0.05);
            pen.circle((0.58, 0.46), 0.05);
            pen.circle((0.74, 0.72), 0.05);
            pen.line(&[(0.12, 0.12), (0.12, 0.88), (0.88, 0.88)]);
        }
        Icon::Link => {
            pen.circle((0.36, 0.64), 0.2);
            pen.circle((0.64, 0.36), 0.2);
            pen.line(&[(0.42, 0.58), (0.58, 0.42)]);
        }
        Icon::Camera => {
            pen.closed(&[(0.12, 0.3), (0.88, 0.3), (0.88, 0.8), (0.12, 0.8)]);
            pen.line(&[(0.34, 0.3), (0.4, 0.18), (0.6, 0.18), (0.66, 0.3)]);
            pen.circle((0.5, 0.55), 0.15);
        }
        Icon::Done => {
            pen.circle((0.5, 0.5), 0.38);
            pen.line(&[(0.32, 0.52), (0.45, 0.65), (0.69, 0.37)]);
        }
        Icon::Warning => {
            pen.closed(&[(0.5, 0.12), (0.92, 0.84), (0.08, 0.84)]);
            pen.line(&[(0.5, 0.38), (0.5, 0.6)]);
            pen.bar((0.46, 0.68), (0.54, 0.76));
        }
        Icon::Error => {
            pen.circle((0.5, 0.5), 0.38);
            pen.line(&[(0.36, 0.36), (0.64, 0.64)]);
            pen.line(&[(0.64, 0.36), (0.36, 0.64)]);
        }
    }
}

/// Draws in fractions of a square.
struct IconPainter<'a> {
    painter: &'a Painter,
    square: Rect,
    stroke: Stroke,
}

impl IconPainter<'_> {
    fn at(&self, (x, y): (f32, f32)) -> Pos2 {
        pos2(
            self.square.left() + x * self.square.width(),
            self.square.top() + y * self.square.height(),
        )
    }

    fn line(&self, points: &[(f32, f32)]) {
        let points = points.iter().map(|point| self.at(*point)).collect();
        self.painter.add(Shape::line(points, self.stroke));
    }

    fn closed(&self, points: &[(f32, f32)]) {
        let points = points.iter().map(|point| self.at(*point)).collect();
        self.painter.add(Shape::closed_line(points, self.stroke));
    }

    fn fill(&self, points: &[(f32, f32)]) {
        let points = points.iter().map(|point| self.at(*point)).collect();
        self.painter.add(Shape::convex_polygon(points, self.stroke.color, Stroke::NONE));
    }

    fn circle(&self, centre: (f32, f32), radius: f32) {
        let radius = radius * self.square.width();
        self.painter.circle_stroke(self.at(centre), radius, self.stroke);
    }

    fn bar(&self, from: (f32, f32), to: (f32, f32)) {
        let rect = Rect::from_two_pos(self.at(from), self.at(to));
        self.painter.rect_filled(rect, 1.0, self.stroke.color);
    }

    fn arc(&self, centre: (f32, f32), radius: f32, from: f32, to: f32) {
        let steps = 20;
        let points: Vec<(f32, f32)> = (0..=steps)
            .map(|i| {
                let angle = from + (to - from) * i as f32 / steps as f32;
                (centre.0 + radius * angle.cos(), centre.1 + radius * angle.sin())
            })
            .collect();
        self.line(&points);
    }

    fn list(&self) {
        for y in [0.27, 0.5, 0.73] {
            self.bar((0.16, y - 0.05), (0.26, y + 0.05));
            self.line(&[(0.38, y), (0.86, y)]);
        }
    }

    fn exchange(&self) {
        self.line(&[(0.14, 0.36), (0.84, 0.36)]);
        self.line(&[(0.66, 0.18), (0.84, 0.36)]);
        self.line(&[(0.86, 0.64), (0.16, 0.64)]);
        self.line(&[(0.34, 0.82), (0.16, 0.64)]);
    }

    fn tiles(&self) {
        for (column, x) in [0.14, 0.4, 0.66].into_iter().enumerate() {
            for (row, y) in [0.14, 0.4, 0.66].into_iter().enumerate() {
                if (column + row) % 2 == 0 {
                    self.bar((x, y), (x + 0.2, y + 0.2));
                } else {
                    self.closed(&[(x, y), (x + 0.2, y), (x + 0.2, y + 0.2), (x, y + 0.2)]);
                }
            }
        }
    }

    fn chip(&self) {
        self.closed(&[(0.28, 0.28), (0.72, 0.28), (0.72, 0.72), (0.28, 0.72)]);
        for at in [0.4, 0.6] {
            self.line(&[(at, 0.12), (at, 0.28)]);
            self.line(&[(at, 0.72), (at, 0.88)]);
            self.line(&[(0.12, at), (0.28, at)]);
            self.line(&[(0.72, at), (0.88, at)]);
        }
        self.bar((0.42, 0.42), (0.58, 0.58));
    }

    fn trace(&self) {
        self.bar((0.12, 0.22), (0.52, 0.36));
        self.bar((0.58, 0.22), (0.88, 0.36));
        self.bar((0.24, 0.44), (0.68, 0.58));
        self.bar((0.12, 0.66), (0.36, 0.80));
        self.bar((0.46, 0.66), (0.88, 0.80));
    }

    fn reload(&self) {
        self.arc((0.5, 0.52), 0.32, -0.6, 4.6);
        self.line(&[(0.58, 0.12), (0.78, 0.34), (0.52, 0.42)]);
    }

    fn help(&self) {
        self.circle((0.5, 0.5), 0.38);
        self.line(&[
            (0.38, 0.4),
            (0.42, 0.3),
            (0.55, 0.28),
            (0.62, 0.38),
            (0.58, 0.47),
            (0.5, 0.53),
            (0.5, 0.6),
        ]);
        self.bar((0.46, 0.67), (0.54, 0.75));
    }

    fn folder(&self) {
        self.closed(&[
            (0.14, 0.26),
            (0.4, 0.26),
            (0.48, 0.36),
            (0.86, 0.36),
            (0.86, 0.78),
            (0.14, 0.78),
        ]);
    }

    fn theme(&self) {
        self.circle((0.5, 0.5), 0.34);
        let quarter = std::f32::consts::FRAC_PI_2;
        let points: Vec<(f32, f32)> = (0..=20)
            .map(|i| {
                let angle = quarter + i as f32 / 20.0 * 2.0 * quarter;
                (0.5 + 0.34 * angle.cos(), 0.5 + 0.34 * angle.sin())
            })
            .collect();
        self.fill(&points);
    }

    fn mark(&self) {
        for (x, y) in [(0.14, 0.14), (0.54, 0.14), (0.14, 0.54), (0.54, 0.54)] {
            let corner = (x + 0.32, y + 0.32);
            if (x, y) == (0.54, 0.54) {
                let rect = Rect::from_two_pos(self.at((x, y)), self.at(corner));
                self.painter.rect_stroke(rect, 2.0, self.stroke, egui::StrokeKind::Inside);
            } else {
                self.bar((x, y), corner);
            }
        }
    }

    fn flask(&self) {
        self.line(&[(0.4, 0.15), (0.4, 0.42), (0.2, 0.82), (0.8, 0.82), (0.6, 0.42), (0.6, 0.15)]);
        self.line(&[(0.34, 0.15), (0.66, 0.15)]);
        self.line(&[(0.31, 0.62), (0.69, 0.62)]);
    }

    fn steps(&self) {
        self.line(&[
            (0.12, 0.70),
            (0.32, 0.70),
            (0.32, 0.42),
            (0.50, 0.42),
            (0.50, 0.18),
            (0.68, 0.18),
            (0.68, 0.56),
            (0.88, 0.56),
        ]);
        self.bar((0.12, 0.78), (0.88, 0.88));
    }

    fn bulb(&self) {
        self.arc((0.5, 0.42), 0.28, 2.2, 7.2);
        self.line(&[(0.34, 0.65), (0.4, 0.76), (0.6, 0.76), (0.66, 0.65)]);
        self.line(&[(0.42, 0.86), (0.58, 0.86)]);
    }

    fn tree(&self) {
        for (x, y) in [(0.14, 0.22), (0.32, 0.41), (0.50, 0.60), (0.32, 0.79)] {
            self.bar((x, y - 0.05), (x + 0.09, y + 0.05));
            self.line(&[(x + 0.18, y), (0.88, y)]);
        }
    }

    fn table(&self) {
        self.closed(&[(0.14, 0.2), (0.86, 0.2), (0.86, 0.8), (0.14, 0.8)]);
        self.bar((0.14, 0.2), (0.86, 0.34));
        self.line(&[(0.14, 0.57), (0.86, 0.57)]);
        self.line(&[(0.42, 0.34), (0.42, 0.8)]);
    }

    fn graph(&self) {
        for (x, y) in [(0.36, 0.14), (0.12, 0.62), (0.60, 0.62)] {
            self.closed(&[(x, y), (x + 0.28, y), (x + 0.28, y + 0.22), (x, y + 0.22)]);
        }
        self.line(&[(0.44, 0.36), (0.26, 0.62)]);
        self.line(&[(0.56, 0.36), (0.74, 0.62)]);
    }
}
