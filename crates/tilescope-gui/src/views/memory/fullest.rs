//! The fullest tile: how much of its memory is in use, and whether the program fits.

use crate::model::command::AppCommand;
use crate::theme::{ThemePalette, numbers, spacing};
use crate::views::ViewContext;
use crate::widgets::background_query::BackgroundQuery;
use egui::{Color32, Label, RichText, Ui};
use tilescope_analysis::memory::fullest_tiles;
use tilescope_report::units::{Bytes, TileId, exact_bytes, grouped, percent};

/// Share of the memory of a tile below which the free memory of the fullest tile gets a warning:
/// the error of the prediction can be as large.
const LITTLE_FREE: f64 = 0.05;

/// The state of the fullest tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TileFullness {
    Fits,
    NearlyFull,
    /// It needs more than there is.
    Exceeds,
}

impl TileFullness {
    /// The state of a tile with these bytes in use; every tile fits where the capacity is unknown.
    pub(crate) fn of(bytes: Bytes, capacity: Bytes) -> Self {
        if capacity.is_zero() {
            return Self::Fits;
        }
        if bytes > capacity {
            return Self::Exceeds;
        }
        let free = capacity.saturating_sub(bytes).as_f64();
        if free < LITTLE_FREE * capacity.as_f64() { Self::NearlyFull } else { Self::Fits }
    }

    /// The colour of words about it.
    pub(crate) fn colour(self, palette: &ThemePalette) -> Color32 {
        match self {
            Self::Fits => palette.good,
            Self::NearlyFull => palette.warning,
            Self::Exceeds => palette.error,
        }
    }

    /// The colour of a bar of a tile: that of memory where it fits.
    pub(crate) fn bar_colour(self, palette: &ThemePalette) -> Color32 {
        match self {
            Self::Fits => palette.memory_line,
            Self::NearlyFull | Self::Exceeds => self.colour(palette),
        }
    }
}

/// The fullest tile of a report with its bytes; `None` if memory was not recorded.
pub(super) type FullestTileQuery = BackgroundQuery<(), Option<(TileId, Bytes)>>;

/// Shows the fullest tile in a line. A click selects it.
pub(super) fn fullest_ui(ui: &mut Ui, context: &ViewContext<'_>, query: &mut FullestTileQuery) {
    let found = context
        .read(ui, query, |report| Ok(fullest_tiles(&*report.tile_memory()?, 1).first().copied()));
    // The graph below reads the same numbers and reports errors.
    if let Some((tile, bytes)) = found.answer().and_then(|fullest| **fullest) {
        line_ui(ui, context, tile, bytes);
    }
}

fn line_ui(ui: &mut Ui, context: &ViewContext<'_>, tile: TileId, bytes: Bytes) {
    let palette = ThemePalette::for_ui(ui);
    let numbers = numbers(ui);
    let capacity = context.opened.target.bytes_per_tile;
    let fullness = TileFullness::of(bytes, capacity);
    let mut text = numbers.bytes(bytes.0);
    if !capacity.is_zero() {
        let share = percent(bytes.as_f64() / capacity.as_f64());
        let free = numbers.bytes(capacity.saturating_sub(bytes).0);
        let rest = match fullness {
            TileFullness::Fits => format!("{free} free"),
            TileFullness::NearlyFull => format!("nearly full: {free} free"),
            TileFullness::Exceeds => {
                format!("{} over capacity", numbers.bytes(bytes.saturating_sub(capacity).0))
            }
        };
        text = format!("{text} of {} ({share}), {rest}", numbers.bytes(capacity.0));
    }
    ui.add_space(spacing::S);
    ui.horizontal(|ui| {
        ui.add_space(spacing::L);
        ui.weak("Fullest tile");
        let name = format!("Tile {}", grouped(tile.into()));
        if ui.link(name).on_hover_text("Select it: the tables show its contents").clicked() {
            context.commands.push(AppCommand::SelectTiles(vec![tile]));
        }
        let hint = format!("{}, including gaps", exact_bytes(bytes.0));
        let text = RichText::new(text).color(fullness.colour(palette));
        ui.add(Label::new(text).truncate()).on_hover_text(hint);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tile_with_little_free_memory_is_not_good() {
        let capacity = Bytes(1_000);
        let of = |bytes| TileFullness::of(Bytes(bytes), capacity);
        assert_eq!(of(950), TileFullness::Fits);
        assert_eq!([of(951), of(970), of(1_000)], [TileFullness::NearlyFull; 3]);
        assert_eq!(of(1_001), TileFullness::Exceeds);
        assert_eq!(TileFullness::of(Bytes(7), Bytes::ZERO), TileFullness::Fits);
    }
}
