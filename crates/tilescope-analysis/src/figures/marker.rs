//! Shapes of points, to make them distinguishable without colours.

use super::Shade;
use crate::limits::CycleClass;
use serde::Serialize;

/// The shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Marker {
    Circle,
    Diamond,
    Square,
    Up,
    Down,
    Left,
    Right,
    Plus,
    Cross,
}

impl Marker {
    /// Every marker.
    pub const ALL: [Self; 9] = [
        Self::Circle,
        Self::Diamond,
        Self::Square,
        Self::Up,
        Self::Down,
        Self::Left,
        Self::Right,
        Self::Plus,
        Self::Cross,
    ];

    /// The marker of points of a class of cycles.
    #[must_use]
    pub fn of_class(class: CycleClass) -> Self {
        match class {
            CycleClass::Compute => Self::Circle,
            CycleClass::Balance => Self::Diamond,
            CycleClass::Exchange => Self::Square,
            CycleClass::Rearrangement => Self::Up,
            CycleClass::SyncAndStart => Self::Down,
            // Neither has floating point operations, so that points of both are rare.
            CycleClass::Host | CycleClass::HostWait => Self::Left,
            CycleClass::RemoteBuffers => Self::Right,
            CycleClass::Links => Self::Plus,
            CycleClass::Other => Self::Cross,
        }
    }

    /// The marker for points of a shade.
    #[must_use]
    pub fn of(shade: Shade) -> Self {
        match shade {
            Shade::Class(class) => Self::of_class(class),
            Shade::Nth(place) => Self::ALL[usize::from(place) % Self::ALL.len()],
            Shade::Layer(_) => Self::Square,
            _ => Self::Circle,
        }
    }

    /// A character of similar shape.
    #[must_use]
    pub fn sign(self) -> &'static str {
        match self {
            Self::Circle => "●",
            Self::Diamond => "◆",
            Self::Square => "■",
            Self::Up => "▲",
            Self::Down => "▼",
            Self::Left => "◀",
            Self::Right => "▶",
            Self::Plus => "✚",
            Self::Cross => "✖",
        }
    }

    /// Corners on a circle of radius 1, clockwise from the top; empty for a circle.
    #[must_use]
    pub fn corners(self) -> &'static [(f64, f64)] {
        /// Half the width of a stroke of a plus.
        const S: f64 = 0.3;
        /// Corners of a cross: a plus rotated by an eighth of a turn.
        const A: f64 = 0.92;
        const B: f64 = 0.50;
        const C: f64 = 0.42;
        match self {
            Self::Circle => &[],
            Self::Diamond => &[(0.0, -1.0), (1.0, 0.0), (0.0, 1.0), (-1.0, 0.0)],
            Self::Square => &[(-0.75, -0.75), (0.75, -0.75), (0.75, 0.75), (-0.75, 0.75)],
            Self::Up => &[(0.0, -1.0), (0.87, 0.5), (-0.87, 0.5)],
            Self::Down => &[(0.0, 1.0), (-0.87, -0.5), (0.87, -0.5)],
            Self::Left => &[(-1.0, 0.0), (0.5, -0.87), (0.5, 0.87)],
            Self::Right => &[(1.0, 0.0), (-0.5, 0.87), (-0.5, -0.87)],
            Self::Plus => &[
                (-S, -1.0),
                (S, -1.0),
                (S, -S),
                (1.0, -S),
                (1.0, S),
                (S, S),
                (S, 1.0),
                (-S, 1.0),
                (-S, S),
                (-1.0, S),
                (-1.0, -S),
                (-S, -S),
            ],
            Self::Cross => &[
                (-B, -A),
                (0.0, -C),
                (B, -A),
                (A, -B),
                (C, 0.0),
                (A, B),
                (B, A),
                (0.0, C),
                (-B, A),
                (-A, B),
                (-C, 0.0),
                (-A, -B),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_distinct_markers() {
        let mut markers = Vec::new();
        // Host copies and waits for the host share one: neither has floating point operations.
        for class in CycleClass::ALL.into_iter().filter(|of| *of != CycleClass::HostWait) {
            let marker = Marker::of_class(class);
            assert!(!markers.contains(&marker), "{marker:?}");
            markers.push(marker);
        }
        let signs = Marker::ALL.map(Marker::sign);
        for (at, sign) in signs.iter().enumerate() {
            assert!(!signs[..at].contains(sign), "{sign}");
        }
    }

    #[test]
    fn corners_lie_within_a_circle() {
        for marker in Marker::ALL {
            for (x, y) in marker.corners() {
                assert!(x.hypot(*y) <= 1.07, "{marker:?}");
            }
        }
    }
}
