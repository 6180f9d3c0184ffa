//! A graph over tiles or IPUs: stacked curves, a call-out at the pointer, and the clicked place.

use super::stack_graph::{
    GraphLevelLine, StackGraph, StackGraphInput, StackGraphResponse, StackLayer, StackedValues,
};
use super::tile_picker::TileClick;
use crate::theme::{ThemePalette, numbers};
use crate::widgets::background_query::Versioned;
use egui::{Color32, Response, RichText, Sense, Ui, vec2};
use serde::{Deserialize, Serialize};
use tilescope_analysis::tile_curves::{TileAxisOrder, TileCurve, TileCurveLayer, TileCurveStack};
use tilescope_report::Target;
use tilescope_report::units::{IpuId, TileId, grouped, percent};

/// The options of the graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TileGraphOptions {
    /// The name for screen readers.
    pub name: &'static str,
    /// The order of tiles.
    pub order: TileAxisOrder,
    /// True for one place per IPU.
    pub per_ipu: bool,
    /// True if the line of a tile's capacity is shown.
    pub max_memory: bool,
    /// A value that the axis always includes.
    pub least_top: u64,
    /// The colour of a single curve, if it has its own.
    pub only_colour: Option<Color32>,
}

/// The machine whose tiles are shown, and the selection.
#[derive(Clone, Copy)]
pub(crate) struct ChosenTiles<'a> {
    /// The machine that the tiles belong to.
    pub target: &'a Target,
    /// The selected tiles, in order.
    pub tiles: &'a [TileId],
    /// The selected IPU, if any.
    pub ipu: Option<IpuId>,
}

/// The clicked place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileGraphClick {
    /// A click on a tile.
    Tile(TileClick),
    /// A click on an IPU, if there is one place for each.
    Ipu(IpuId),
}

/// The curves, ready to be drawn. Make them in the background.
pub(crate) struct StackedTileCurves {
    pub curves: TileCurveStack,
    stack: Versioned<StackedValues>,
}

impl StackedTileCurves {
    /// Stacks the curves; `title` names each of them.
    pub(crate) fn new(curves: TileCurveStack, title: impl Fn(TileCurveLayer) -> String) -> Self {
        let mut layers = Vec::new();
        for curve in &curves.layers {
            layers.push(StackLayer { title: title(curve.layer), values: curve.values.clone() });
        }
        let stack = Versioned::new(StackedValues::new(layers));
        Self { curves, stack }
    }
}

/// The zoom state of the graph.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct TileGraph(StackGraph);

impl TileGraph {
    /// Shows all tiles again.
    pub(crate) fn reset(&mut self) {
        self.0.reset();
    }

    /// The highest value of the last frame.
    pub(crate) fn highest(&self) -> Option<u64> {
        self.0.highest()
    }

    /// Shows the graph. Returns the clicked place.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        on: ChosenTiles<'_>,
        shown: &StackedTileCurves,
        look: TileGraphOptions,
    ) -> Option<TileGraphClick> {
        let palette = ThemePalette::for_ui(ui);
        let curves = &shown.curves;
        let only = look.only_colour.filter(|_| curves.layers.len() == 1);
        let colour = |curve: &TileCurve| only.unwrap_or_else(|| palette.layer(curve.layer));
        let colours: Vec<Color32> = curves.layers.iter().map(colour).collect();
        let chosen: Vec<usize> = if look.per_ipu {
            on.ipu.map(IpuId::index).into_iter().collect()
        } else {
            on.tiles.iter().filter_map(|tile| curves.place_of(*tile)).collect()
        };
        let axis = match (look.per_ipu, look.order) {
            (true, _) => "IPUs",
            (false, TileAxisOrder::Software) => "Tiles (software order)",
            (false, TileAxisOrder::Hardware) => "Tiles (hardware order)",
        };
        let target = on.target;
        let label = |place: usize| {
            if look.per_ipu {
                return format!("IPU {place}");
            }
            let tile = curves.tile_at(place);
            let name = format!("Tile {}", grouped(tile.into()));
            match target.ipus_per_replica {
                0 | 1 => name,
                _ => format!("{name} (IPU {})", target.ipu_of_tile(tile)),
            }
        };
        let value = curves.capacity;
        let colour = palette.max_memory;
        let level = GraphLevelLine { value, name: "Max memory", colour };
        let level = if look.max_memory && curves.capacity > 0 { Some(level) } else { None };
        let levels: Vec<GraphLevelLine> = level.into_iter().collect();
        let stack_look = StackGraphInput {
            name: look.name,
            axis,
            label: &label,
            unit: curves.unit,
            colours: &colours,
            chosen: &chosen,
            spans: &[],
            annotations: &[],
            levels: &levels,
            least_top: look.least_top,
            matching: None,
        };
        let StackGraphResponse { response, hovered, clicked } =
            self.0.ui(ui, &shown.stack, &stack_look);
        if let Some(place) = hovered {
            call_out_ui(&response, shown, &colours, &label(place), place);
        }
        let (place, add) = clicked?;
        if look.per_ipu {
            return u32::try_from(place).ok().map(|ipu| TileGraphClick::Ipu(IpuId(ipu)));
        }
        Some(TileGraphClick::Tile(TileClick { tile: curves.tile_at(place), add }))
    }
}

/// The values of a place, from the top layer down.
fn call_out_ui(
    response: &Response,
    shown: &StackedTileCurves,
    colours: &[Color32],
    title: &str,
    place: usize,
) {
    let curves = &shown.curves;
    let stack = &shown.stack;
    response.clone().on_hover_ui_at_pointer(|ui| {
        let palette = ThemePalette::for_ui(ui);
        ui.label(crate::theme::fonts::strong(title));
        let grid = egui::Grid::new("call-out").num_columns(3).min_col_width(0.0);
        grid.spacing(vec2(8.0, 3.0)).show(ui, |ui| {
            for (layer, title) in stack.titles().iter().enumerate().rev() {
                let value = stack.value(layer, place);
                if value == 0 && stack.titles().len() > 3 {
                    continue;
                }
                let (dot, _) = ui.allocate_exact_size(vec2(10.0, 10.0), Sense::hover());
                // In range: titles and colours are both made from the layers of these curves.
                ui.painter().rect_filled(dot, 2.0, colours[layer]);
                ui.label(title);
                ui.label(curves.unit.exact(value));
                ui.end_row();
            }
            if stack.titles().len() > 1 {
                ui.label("");
                ui.label("Total");
                ui.label(curves.unit.exact(stack.total(place)));
                ui.end_row();
            }
        });
        let total = stack.total(place);
        if curves.capacity > 0 {
            let share = total as f64 / curves.capacity as f64;
            let over = total > curves.capacity;
            let text = format!("{} of {}", percent(share), numbers(ui).bytes(curves.capacity));
            let colour = if over { palette.error } else { palette.weak_text };
            ui.label(RichText::new(text).color(colour));
        }
    });
}
