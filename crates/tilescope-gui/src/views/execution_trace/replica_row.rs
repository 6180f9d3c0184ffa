//! The row above the lanes that shows the number of replicas and folds or unfolds their lanes.

use super::id;
use super::layout::MARK_HEIGHT;
use super::loaded_trace::{LoadedTrace, ReplicasAlike};
use crate::model::command::AppCommand;
use crate::theme::{ThemePalette, text_size};
use crate::views::ViewContext;
use crate::widgets::{focus_ui, node_ui};
use egui::accesskit::Role;
use egui::{Align2, FontId, Rect, Sense, Ui, WidgetInfo, pos2};

/// The width of the link that unfolds the lanes, with the gap before it.
const LINK: f32 = 60.0;

/// The replicas that a row describes; `None` beside another trace, for lack of space.
pub(super) fn replicas(context: &ViewContext<'_>, prepared: &LoadedTrace) -> Option<ReplicasAlike> {
    prepared.alike.filter(|_| context.pane.is_none())
}

/// The replicas whose lanes are shown.
pub(super) fn unfolded(context: &ViewContext<'_>, prepared: &LoadedTrace) -> Vec<u32> {
    let all = replicas(context, prepared).filter(|_| context.prefs.trace.replicas);
    all.map_or_else(|| vec![0], |alike| alike.unfolded())
}

/// The row below the marks that shows the number of replicas and folds or unfolds their lanes.
pub(super) fn replicas_ui(ui: &Ui, context: &ViewContext<'_>, prepared: &LoadedTrace, marks: Rect) {
    let Some(alike) = replicas(context, prepared) else { return };
    let palette = ThemePalette::for_ui(ui);
    let row = marks.with_min_y(marks.bottom() - MARK_HEIGHT);
    let title = pos2(row.left() - 10.0, row.center().y - 1.0);
    let font = FontId::proportional(text_size::CAPTION);
    let painter = ui.painter();
    painter.text(title, Align2::RIGHT_CENTER, "Replicas", font.clone(), palette.weak_text);
    let at = pos2(row.left() + 2.0, row.center().y - 1.0);
    let describe =
        |in_short| alike.words(&prepared.classes, context.prefs.trace.replicas, in_short);
    let all = describe(false);
    let short = describe(true);
    let lay_out = |text: &str| painter.layout_no_wrap(text.to_owned(), font.clone(), palette.text);
    // A long sentence would leave no space for the link that unfolds the lanes.
    let (shown, is_cut) = match lay_out(&all) {
        long if at.x + long.size().x + LINK > row.right() => (lay_out(&short), true),
        long => (long, false),
    };
    let said = Align2::LEFT_CENTER.anchor_size(at, shown.size());
    painter.galley(said.min, shown, palette.text);
    let node = id(ui, "replicas");
    if is_cut {
        let response = ui.interact(said, node.with("hover"), Sense::hover());
        response.on_hover_text(&all);
    }
    node_ui(ui, node, said, Role::Note, || (all, String::new()));
    if alike.count() < 2 {
        return;
    }
    let (text, name) = if context.prefs.trace.replicas {
        ("Fold", "Fold replicas")
    } else {
        ("Unfold", "Unfold replicas")
    };
    let at = pos2(said.right() + 12.0, at.y);
    let link = painter.text(at, Align2::LEFT_CENTER, text, font, palette.accent);
    let response = ui.interact(link.expand(3.0), node.with("unfold"), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name));
    focus_ui(ui, &response, link.expand(3.0));
    if response.clicked() {
        let mut prefs = context.prefs.trace;
        prefs.replicas = !prefs.replicas;
        context.commands.push(AppCommand::SetTracePrefs(prefs));
    }
}
