//! The row of the host: the times when IPUs wait for it, and when it moves data.

use super::TracePainter;
use crate::theme::{ThemePalette, mix};
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::TraceLayout;
use crate::views::execution_trace::scene::TraceScene;
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::{Color32, Rect, pos2};
use tilescope_analysis::trace::HostActivity;
use tilescope_report::units::CycleRange;

/// The smallest width of a part of the row that gets an accessibility node.
const LEAST_NODE: f32 = 12.0;

impl TracePainter<'_> {
    /// Paints the row and its bars, if host activity is known.
    pub(super) fn host_ui(&self, scene: &TraceScene) {
        if scene.host.is_empty() {
            return;
        }
        let row = self.layout.mark_row(scene.marks.len());
        let painter = self.ui.painter_at(row);
        for (range, activity) in &scene.host {
            let rect = bar(self.layout, row, *range, *activity);
            if rect.right() < row.left() || rect.left() > row.right() {
                continue;
            }
            painter.rect_filled(rect, 0.0, colour(self.palette, *activity));
            if rect.width() >= LEAST_NODE {
                let node = id(self.ui, "host").with(range.start);
                node_ui(self.ui, node, rect.intersect(row), Role::Cell, || {
                    (words(*activity).to_owned(), format!("{} cycles", range.length()))
                });
            }
        }
        self.row_title(row, "Host");
    }
}

/// The rectangle of a part of the row, at least one point wide.
fn bar(layout: &TraceLayout<'_>, row: Rect, range: CycleRange, activity: HostActivity) -> Rect {
    let left = layout.x(range.start);
    let right = layout.x(range.end).max(left + 1.0);
    // Waiting is low and moving is high, so colour is not needed to distinguish them.
    let height = row.height() - 2.0;
    let top = match activity {
        HostActivity::WaitingForHost => row.top() + height * 0.6,
        HostActivity::Mixed => row.top() + height * 0.3,
        HostActivity::Transferring => row.top(),
    };
    Rect::from_min_max(pos2(left, top), pos2(right, row.top() + height))
}

/// The colours of the host row.
pub(crate) fn colour(palette: &ThemePalette, work: HostActivity) -> Color32 {
    match work {
        HostActivity::WaitingForHost => mix(palette.stream_begin, palette.text, 0.2),
        HostActivity::Mixed => mix(palette.stream_begin, palette.stream_mid, 0.5),
        HostActivity::Transferring => palette.stream_mid,
    }
}

/// The description of a part of the host row.
pub(crate) fn words(work: HostActivity) -> &'static str {
    match work {
        HostActivity::WaitingForHost => "Host row, low: an IPU waits for the host",
        HostActivity::Mixed => "Host row, half: copies narrower than a pixel",
        HostActivity::Transferring => "Host row, high: data from or to the host moves",
    }
}
