//! Widgets over tiles that follow the selection shared by all views.

use super::ViewContext;
use crate::model::command::AppCommand;
use crate::model::view_id::ViewId;
use crate::theme::spacing;
use crate::widgets::background_query::Versioned;
use crate::widgets::floor_plan::{FloorPlanValues, FloorPlanWidget};
use crate::widgets::tile_graph::{
    ChosenTiles, StackedTileCurves, TileGraph, TileGraphClick, TileGraphOptions,
};
use crate::widgets::tile_picker::{TileClick, TilePicker, toggled_tiles};
use crate::widgets::toolbar::ToolbarBuilder;
use egui::{Response, Ui};
use tilescope_report::ReportPart;
use tilescope_report::units::TileId;

/// Selects a tile alone, or adds it to the selection. A selected tile is deselected.
pub(crate) fn select_tile(context: &ViewContext<'_>, tile: TileId, add: bool) {
    let tiles = toggled_tiles(&context.selection.tiles, tile, add);
    context.commands.push(AppCommand::SelectTiles(tiles));
}

/// The text box for tile numbers.
pub(crate) fn tile_picker_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    picker: &mut TilePicker,
) -> Response {
    let count = context.opened.target.tiles_per_replica();
    let (shown, typed) = picker.ui(ui, &context.selection.tiles, count);
    context.commands.extend(typed.map(AppCommand::SelectTiles));
    shown
}

/// A button that leads to the floor plan of the execution trace, which follows the time cursor.
/// Only there does the pointer select a cycle; this view shows the whole program.
pub(crate) fn trace_cursor_button_ui(bar: &mut ToolbarBuilder<'_>, context: &ViewContext<'_>) {
    let hint = "The activity of tiles at the cycle under the pointer is on the floor plan below \
                the execution trace";
    if context.opened.report.has(ReportPart::Execution) && bar.button("At the trace's cursor", hint)
    {
        show_tiles_of_trace(context);
    }
}

fn show_tiles_of_trace(context: &ViewContext<'_>) {
    context.commands.push(AppCommand::ShowTables(ViewId::ExecutionTrace, "Tiles"));
}

/// A button below the text about the data that a profile of measured tiles lacks. It leads to the
/// data that the profile has.
pub(crate) fn measured_tiles_ui(ui: &mut Ui, context: &ViewContext<'_>) {
    if !context.opened.report.has_tile_samples() {
        return;
    }
    ui.vertical_centered(|ui| {
        ui.add_space(spacing::M);
        ui.label("The trace has the measured cycles of every tile.");
        ui.add_space(spacing::XS);
        if ui.button("Show tiles in the trace").clicked() {
            show_tiles_of_trace(context);
        }
    });
}

/// A graph over tiles or IPUs. A click selects a tile.
pub(crate) fn tile_graph_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    graph: &mut TileGraph,
    (curves, look): (&Versioned<StackedTileCurves>, TileGraphOptions),
) {
    let look = TileGraphOptions {
        least_top: context.least_graph_top(),
        only_colour: context.pane.map(|pane| pane.colour(ui)),
        ..look
    };
    let selection = context.selection;
    let target = &context.opened.target;
    let on = ChosenTiles { target, tiles: &selection.tiles, ipu: selection.ipu };
    match graph.ui(ui, on, curves, look) {
        Some(TileGraphClick::Tile(TileClick { tile, add })) => select_tile(context, tile, add),
        Some(TileGraphClick::Ipu(ipu)) => {
            let chosen = Some(ipu).filter(|ipu| Some(*ipu) != selection.ipu);
            context.commands.push(AppCommand::SelectIpu(chosen));
        }
        None => {}
    }
}

/// A value per tile on the floor plan of the chips. A click selects a tile.
pub(crate) fn floor_plan_ui(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    map: &mut FloorPlanWidget,
    shown: FloorPlanValues<'_>,
) {
    let on = (context.opened.target.as_ref(), context.selection.tiles.as_slice());
    if let Some(TileClick { tile, add }) = map.ui(ui, on, shown) {
        select_tile(context, tile, add);
    }
}
