//! The picture of a tensor over the replicas, before and after sharding.

use crate::theme::{ThemePalette, numbers, spacing, text_size};
use crate::widgets::{hint_ui, node_ui};
use egui::accesskit::Role;
use egui::{
    Align2, CornerRadius, FontId, Label, Rect, RichText, ScrollArea, Sense, Stroke, StrokeKind, Ui,
    pos2, vec2,
};
use tilescope_analysis::tile_mapping::ReplicaShare;
use tilescope_report::units::grouped;

/// The largest number of replicas that are drawn.
const MOST: u32 = 16;
/// The size of a replica's box.
const REPLICA: (f32, f32) = (76.0, 46.0);
/// The gap between two boxes.
const GAP: f32 = 6.0;
/// The width of the text before a row.
const TITLE: f32 = 110.0;

/// Draws the part that each replica holds, or the reason that it is unknown.
pub(super) fn replicas_ui(ui: &mut Ui, share: Option<&ReplicaShare>, replicas: u32) {
    let Some(share) = share else {
        return hint_ui(
            ui,
            match replicas {
                0 | 1 => "The program has one replica, which holds all tensors.",
                _ => {
                    "This tensor is not recorded as sharded over replicas. Select a sharded \
                     optimiser state, accumulator or weight."
                }
            },
        );
    };
    ScrollArea::both().auto_shrink(false).id_salt("replicas").show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.add_space(spacing::L);
            let text = RichText::new(about(ui, share)).weak();
            ui.add(Label::new(text).extend());
        });
        ui.add_space(spacing::XS);
        if share.shards > 1 {
            row_ui(ui, share, "Before sharding", None);
            row_ui(ui, share, "After sharding", Some(share.shards));
        } else {
            row_ui(ui, share, "Not sharded", None);
        }
    });
}

/// `4 replicas hold 512 KiB each of 2 MiB: a part of 4`
fn about(ui: &Ui, share: &ReplicaShare) -> String {
    let numbers = numbers(ui);
    let replicas = grouped(share.replicas.into());
    let held = numbers.bytes(share.held.0);
    let whole = numbers.bytes(share.whole.0);
    match share.shards {
        1 => format!(
            "Each of the {replicas} replicas holds the whole tensor: {whole}, {held} on their \
                      tiles."
        ),
        shards => format!(
            "Replicated tensor sharding: each of the {replicas} replicas holds one part of {}, \
             {held} on their tiles; the whole tensor is {whole}.",
            grouped(shards.into())
        ),
    }
}

/// The replicas side by side. With `shards`, each has one of that many parts filled; otherwise all
/// of it.
fn row_ui(ui: &mut Ui, share: &ReplicaShare, title: &str, shards: Option<u32>) {
    let palette = ThemePalette::for_ui(ui);
    let shown = share.replicas.min(MOST);
    let width = TITLE + shown as f32 * (REPLICA.0 + GAP) + 60.0;
    let (area, _) = ui.allocate_exact_size(vec2(width, REPLICA.1 + GAP), Sense::hover());
    let painter = ui.painter();
    let at = pos2(area.left() + spacing::L, area.center().y);
    let font = FontId::proportional(text_size::SMALL);
    painter.text(at, Align2::LEFT_CENTER, title, font.clone(), palette.text);
    for replica in 0..shown {
        let left = area.left() + TITLE + replica as f32 * (REPLICA.0 + GAP);
        let rect = Rect::from_min_size(pos2(left, area.top()), vec2(REPLICA.0, REPLICA.1));
        painter.text(
            rect.center_top(),
            Align2::CENTER_TOP,
            format!("Replica {replica}"),
            FontId::proportional(text_size::CAPTION),
            palette.weak_text,
        );
        let bar = rect.with_min_y(rect.top() + 18.0);
        painter.rect_filled(bar, CornerRadius::same(2), palette.lane);
        let (part, words) = match shards {
            Some(shards) => {
                let own = share.shard_of(replica);
                let each = bar.width() / shards as f32;
                let left = bar.left() + own as f32 * each;
                let part = Rect::from_x_y_ranges(left..=left + each.max(2.0), bar.y_range());
                (part, format!("part {} of {shards}", own + 1))
            }
            None => (bar, "the whole tensor".to_owned()),
        };
        painter.rect_filled(part.intersect(bar), CornerRadius::same(2), palette.accent);
        let line = Stroke::new(1.0, palette.outline);
        painter.rect_stroke(bar, CornerRadius::same(2), line, StrokeKind::Inside);
        let node = ui.scope_id().with((title, replica));
        node_ui(ui, node, rect, Role::Cell, || (format!("{title}: replica {replica}"), words));
    }
    if share.replicas > shown {
        let text = format!("{} more", grouped((share.replicas - shown).into()));
        let at = pos2(area.right() - 54.0, area.center().y);
        painter.text(at, Align2::LEFT_CENTER, text, font, palette.weak_text);
    }
}
