//! The box for tile numbers, in step with the tiles that are chosen elsewhere.

use super::search_ui;
use crate::theme::ThemePalette;
use egui::{Button, Response, RichText, Ui};
use tilescope_analysis::tile_curves::{parse_tiles, tiles_text};
use tilescope_report::units::TileId;

#[derive(Default)]
pub(crate) struct TilePicker {
    text: String,
    /// The selection that `text` was last made of, or made.
    tiles: Vec<TileId>,
    problem: Option<String>,
}

impl TilePicker {
    /// Shows the box and a button that empties it, where `chosen` of so many tiles are chosen; the
    /// tiles that are typed, once they change.
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

/// A tile that was clicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileClick {
    /// The tile.
    pub tile: TileId,
    /// Whether it is chosen beside those that are.
    pub add: bool,
}

/// The tiles that are chosen after a click on one, where `chosen` are chosen: that one alone, or
/// added to them; a chosen one is taken out.
pub(crate) fn toggled_tiles(chosen: &[TileId], tile: TileId, add: bool) -> Vec<TileId> {
    let mut tiles = if add { chosen.to_vec() } else { Vec::new() };
    match tiles.iter().position(|known| *known == tile) {
        Some(at) => drop(tiles.remove(at)),
        None => tiles.push(tile),
    }
    tiles
}
