//! The division of the view's area: overview strip, ruler, rows of marks, lanes.

use crate::widgets::overview_strip;
use egui::{Rect, pos2, vec2};

/// The width of the names and shares left of the lanes.
pub(crate) const GUTTER: f32 = 98.0;
/// The width of the scroll bar.
pub(crate) const SCROLL_BAR: f32 = 10.0;
/// The height of the ruler.
const RULER_HEIGHT: f32 = 24.0;
/// The height of a row of marks.
pub(crate) const MARK_HEIGHT: f32 = 18.0;
/// The height of the critical path lane.
const PATH_HEIGHT: f32 = 26.0;
/// The gap above the critical path lane.
const PATH_GAP: f32 = 2.0;
/// The height of the area below which the layout is compact.
const LOW: f32 = 300.0;

/// The parts of the view. They begin and end at the same cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TraceRegions {
    pub overview: Rect,
    pub ruler: Rect,
    /// The rows of marks of all IPUs.
    pub marks: Rect,
    /// The lane of the critical path; without height if it is hidden.
    pub path: Rect,
    pub lanes: Rect,
}

impl TraceRegions {
    /// Divides an area, with this number of rows of marks, and with or without the critical path.
    pub(crate) fn new(area: Rect, mark_rows: usize, path: bool) -> Self {
        let left = area.left() + GUTTER;
        let right = area.right() - SCROLL_BAR - 4.0;
        let cut_strip = |top: f32, height: f32| {
            // A window can be dragged narrower than the gutter: no part may have a negative width.
            Rect::from_min_max(pos2(left, top), pos2(right.max(left + 20.0), top + height))
        };
        // In a low view the lanes need the space more.
        let (space, height) = if area.height() < LOW {
            (4.0, overview_strip::HEIGHT / 2.0)
        } else {
            (10.0, overview_strip::HEIGHT)
        };
        let overview = cut_strip(area.top() + space, height);
        let ruler = cut_strip(overview.bottom() + 2.0, RULER_HEIGHT);
        let marks = cut_strip(ruler.bottom() + 3.0, mark_rows as f32 * MARK_HEIGHT);
        let path = if path && area.height() >= LOW {
            cut_strip(marks.bottom() + PATH_GAP, PATH_HEIGHT)
        } else {
            cut_strip(marks.bottom(), 0.0)
        };
        let lanes = cut_strip(path.bottom() + 3.0, (area.bottom() - path.bottom() - 5.0).max(10.0));
        Self { overview, ruler, marks, path, lanes }
    }

    /// The same regions without the overview strip; everything else moves up.
    pub(crate) fn without_overview(self) -> Self {
        let up = self.ruler.top() - self.overview.top();
        let move_up = |rect: Rect| rect.translate(vec2(0.0, -up));
        let lanes = move_up(self.lanes);
        Self {
            overview: Rect::from_min_size(self.overview.min, vec2(self.overview.width(), 0.0)),
            ruler: move_up(self.ruler),
            marks: move_up(self.marks),
            path: move_up(self.path),
            lanes: Rect::from_min_max(lanes.min, self.lanes.max),
        }
    }

    /// The lanes and the ruler above them.
    pub(crate) fn timeline(&self) -> Rect {
        self.lanes.union(self.ruler)
    }

    /// The area of the names of the lanes.
    pub(crate) fn gutter(&self) -> Rect {
        let corner = pos2(self.lanes.left() - GUTTER, self.lanes.top());
        Rect::from_min_max(corner, self.lanes.left_bottom())
    }
}
