//! The micro-batch that is followed: all else is veiled, and lines lead from stage to stage.

use super::{TracePainter, VEIL};
use crate::views::execution_trace::id;
use crate::views::execution_trace::layout::{FollowedItem, IpuBand, veiled_parts};
use crate::widgets::node_ui;
use egui::accesskit::Role;
use egui::{Rangef, Rect, Stroke};

impl TracePainter<'_> {
    /// Veils what an IPU does for others than the micro-batch that is followed.
    pub(super) fn veil_others(&self, band: &IpuBand<'_>, stages: Option<Rect>, lit: &[Rangef]) {
        let veil = self.palette.lane.gamma_multiply(VEIL);
        let area = stages.map_or(band.bars, |row| band.bars.union(row)).union(band.links);
        for part in veiled_parts(area, lit) {
            self.painter.rect_filled(part, 0.0, veil);
        }
    }

    /// The way of the micro-batch, also for readers of the tree.
    pub(super) fn followed_ui(&self, followed: &FollowedItem) {
        let stroke = Stroke::new(1.5, self.palette.selection);
        for [from, to] in &followed.lines {
            self.painter.line_segment([*from, *to], stroke);
            self.painter.circle_filled(*to, 2.5, self.palette.selection);
        }
        let words = || (followed.title.clone(), followed.about.clone());
        let node = id(self.ui, "followed micro-batch");
        node_ui(self.ui, node, self.regions.lanes, Role::GraphicsObject, words);
    }
}
