//! The box for tile numbers, in step with the selection that all tabs share.

use super::search_ui;
use crate::command::AppCommand;
use crate::theme::ThemePalette;
use crate::views::ViewContext;
use egui::{Button, RichText, Ui};
use tilescope_analysis::tile_curves::{parse_tiles, tiles_text};

#[derive(Default)]
pub(crate) struct TilePicker {
    text: String,
    /// The selection that `text` was last made of, or made.
    tiles: Vec<u32>,
    problem: Option<String>,
}

impl TilePicker {
    /// Shows the box and a button that empties it.
    pub(crate) fn ui(&mut self, ui: &mut Ui, context: &mut ViewContext<'_>) {
        if context.selection.tiles != self.tiles {
            self.tiles = context.selection.tiles.clone();
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
        if edited.changed() || clear {
            match parse_tiles(&self.text, context.opened.target.tiles_per_replica()) {
                Ok(tiles) => {
                    self.problem = None;
                    self.tiles = tiles.clone();
                    context.commands.push(AppCommand::SelectTiles(tiles));
                }
                Err(error) => self.problem = Some(error.to_string()),
            }
        }
        // Below the box: in the row it would push other controls away.
        if let Some(problem) = &self.problem {
            edited.show_tooltip_text(
                RichText::new(problem).color(ThemePalette::for_visuals(ui.visuals()).error),
            );
        }
    }
}

/// Chooses a tile alone, or adds it to those chosen; a chosen one is taken out.
pub(crate) fn select_tile(context: &mut ViewContext<'_>, tile: u32, add: bool) {
    let tiles = toggled_tiles(&context.selection.tiles, tile, add);
    context.commands.push(AppCommand::SelectTiles(tiles));
}

/// The tiles that are chosen after a click on one, where `chosen` are chosen.
pub(crate) fn toggled_tiles(chosen: &[u32], tile: u32, add: bool) -> Vec<u32> {
    let mut tiles = if add { chosen.to_vec() } else { Vec::new() };
    match tiles.iter().position(|known| *known == tile) {
        Some(at) => drop(tiles.remove(at)),
        None => tiles.push(tile),
    }
    tiles
}
