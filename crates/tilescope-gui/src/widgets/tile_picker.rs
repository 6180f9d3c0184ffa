//! The text box for tile numbers. It follows the tiles selected elsewhere.

use super::search_ui;
use crate::theme::ThemePalette;
use egui::{Button, Response, RichText, Ui};
use tilescope_analysis::tile_curves::{parse_tiles, tiles_text};
use tilescope_report::units::TileId;

#[derive(Default)]
pub(crate) struct TilePicker {
    text: String,
    /// The selection that corresponds to `text`.
    tiles: Vec<TileId>,
    problem: Option<String>,
}

impl TilePicker {
    /// Shows the box and a button that clears it. `chosen` holds the selected tiles out of this
    /// many. Returns the typed tiles when they change.
    pub(crate) fn ui(
        &mut self,
        ui: &mut Ui,
        chosen: &[TileId],
        count: u32,
    ) -> (Response, Option<Vec<TileId>>) {
        if chosen != self.tiles {
            self.tiles = chosen.to_vec();
            self.text = tiles_text(&self.tiles);
            self.problem = None;
        }
        let some = !self.tiles.is_empty();
        let clear = ui
            .add_enabled(some, Button::new("Clear"))
            .on_hover_text("Clear the selection of tiles");
        let clear = clear.clicked();
        let edited = search_ui(ui, &mut self.text, "Select tiles, e.g. 1 or 0,3-5", 180.0);
        if clear {
            self.text.clear();
        }
        let mut typed = None;
        if edited.changed() || clear {
            match parse_tiles(&self.text, count) {
                Ok(tiles) => {
                    self.problem = None;
                    self.tiles.clone_from(&tiles);
                    typed = Some(tiles);
                }
                Err(error) => self.problem = Some(error.to_string()),
            }
        }
        // Below the box: in the row it would push other controls away.
        if let Some(problem) = &self.problem {
            edited.show_tooltip_text(RichText::new(problem).color(ThemePalette::for_ui(ui).error));
        }
        (edited, typed)
    }
}

/// A click on a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileClick {
    /// The clicked tile.
    pub tile: TileId,
    /// True if it is added to the selection.
    pub add: bool,
}

/// The selected tiles after a click on one: that one alone, or added to `chosen`. A selected tile
/// is deselected.
pub(crate) fn toggled_tiles(chosen: &[TileId], tile: TileId, add: bool) -> Vec<TileId> {
    let mut tiles = if add { chosen.to_vec() } else { Vec::new() };
    match tiles.iter().position(|known| *known == tile) {
        Some(at) => drop(tiles.remove(at)),
        None => tiles.push(tile),
    }
    tiles
}
