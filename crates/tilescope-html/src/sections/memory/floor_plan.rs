//! The memory use of each tile at its place on the chip: an image for each theme, a pixel for each
//! tile.

use super::needed_by_tile;
use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::sections::PageFacts;
use crate::svg::{Anchor, Px, Svg};
use base64::Engine;
use std::fmt::Write;
use tilescope_analysis::tile_curves::ChipFloorPlan;
use tilescope_report::ReportError;
use tilescope_report::units::{TileId, binary_bytes};

const WIDTH: f64 = 1080.0;
/// Height of the name of a chip.
const TITLE: f64 = 18.0;
const GAP: f64 = 12.0;
/// Widest chip, and most chips side by side.
const WIDEST: f64 = 340.0;
const MOST_BESIDE: usize = 8;
/// The maximum number of chips drawn: those of the largest pod.
const MAX_CHIPS: u32 = 256;
/// Colours of an image: a scale of 254, one for no tile, one for overfull tiles.
const SCALE: u8 = 253;
const TOO_FULL: u8 = 254;
const NO_TILE: u8 = 255;

pub(super) fn blocks(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let plan = ChipFloorPlan::from_target(&facts.target);
    let values = needed_by_tile(facts)?;
    let capacity = facts.target.bytes_per_tile.0;
    let most = values.iter().copied().max().unwrap_or(0);
    let full = if capacity > 0 { capacity } else { most }.max(1);
    let chips = plan.ipus.min(MAX_CHIPS);
    let picture = FloorPlanPicture { plan, values: &values, full, chips };
    let place = if plan.known {
        "by position on the chip"
    } else {
        "in the order of their numbers: their positions were not recorded"
    };
    let caption = format!(
        "Bytes that each tile needs, including gaps, {place}. The strongest colour is {}.",
        binary_bytes(full)
    );
    let share = |part: u64| binary_bytes(full / 4 * part);
    let mut legend: Vec<LegendEntry> = ["heat-0", "heat-1", "heat-2", "heat-3", "heat-4"]
        .into_iter()
        .zip([0, 1, 2, 3, 4])
        .map(|(colour, part)| LegendEntry::new(colour, share(part)))
        .collect();
    if capacity > 0 && most > capacity {
        legend.push(LegendEntry::new("error", "more than the memory of a tile"));
    }
    let mut blocks = vec![];
    match picture.draw() {
        Some(svg) => blocks.push(Block::figure(svg, caption, legend)),
        None => blocks.push(Block::note("The chips of this report are too large to be drawn.")),
    }
    if plan.ipus > MAX_CHIPS {
        let text = format!("The first {MAX_CHIPS} of {} IPUs are drawn.", plan.ipus);
        blocks.push(Block::note(text));
    }
    Ok(blocks)
}

struct FloorPlanPicture<'a> {
    plan: ChipFloorPlan,
    values: &'a [u64],
    /// The value of the strongest colour.
    full: u64,
    chips: u32,
}

impl FloorPlanPicture<'_> {
    /// The picture; `None` if no image can be made.
    fn draw(&self) -> Option<String> {
        let columns = self.plan.columns_per_ipu();
        let rows = self.plan.rows as usize;
        let beside = (self.chips as usize).min(MOST_BESIDE);
        let room = (WIDTH - GAP * (beside as f64 - 1.0)) / beside as f64;
        let width = room.min(WIDEST);
        // Tiles are drawn as squares, but no chip is higher than wide.
        let height = (width / columns.max(1) as f64 * rows as f64).clamp(width * 0.4, width * 1.25);
        let lines = (self.chips as usize).div_ceil(beside);
        let mut svg = Svg::new(WIDTH, (height + TITLE + GAP) * lines as f64);
        for chip in 0..self.chips {
            let column = chip as usize % beside;
            let line = chip as usize / beside;
            let x = (width + GAP) * column as f64;
            let y = (height + TITLE + GAP) * line as f64;
            let name = format!("IPU {chip}");
            svg.text((x, y + 12.0), Anchor::Start, "weak", &name);
            let pixels = self.pixels(chip);
            for (theme, class) in ["on-light", "on-dark"].into_iter().enumerate() {
                let png = png(&pixels, (columns, rows), theme)?;
                let data = base64::engine::general_purpose::STANDARD.encode(png);
                let mut image = String::new();
                let _ = write!(
                    image,
                    "<image class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" \
                     preserveAspectRatio=\"none\" href=\"data:image/png;base64,{data}\"/>",
                    Px(x),
                    Px(y + TITLE),
                    Px(width),
                    Px(height)
                );
                svg.push(&image);
            }
        }
        let label = format!("Floor plan: how full each tile of {} IPUs is", self.chips);
        Some(svg.finish(&label))
    }

    /// The palette indices of a chip, row by row.
    fn pixels(&self, chip: u32) -> Vec<u8> {
        let columns = self.plan.columns_per_ipu();
        let first = chip as usize * (columns + 1);
        let cells = (0..self.plan.rows as usize)
            .flat_map(|row| (0..columns).map(move |column| (first + column, row)));
        cells
            .map(|(column, row)| {
                self.plan.tile_at(column, row).map_or(NO_TILE, |tile| self.colour(tile))
            })
            .collect()
    }

    fn colour(&self, tile: TileId) -> u8 {
        match self.values.get(tile.index()).copied() {
            None => NO_TILE,
            Some(bytes) if bytes > self.full => TOO_FULL,
            Some(bytes) => {
                let share = bytes as f64 / self.full as f64;
                (share * f64::from(SCALE)).round() as u8
            }
        }
    }
}

/// An image of palette indices.
fn png(pixels: &[u8], (width, height): (usize, usize), theme: usize) -> Option<Vec<u8>> {
    let mut palette = Vec::with_capacity(3 * 256);
    for place in 0..=SCALE {
        palette.extend(colours::heat(f64::from(place) / f64::from(SCALE))[theme]);
    }
    for name in ["error", "page"] {
        palette.extend(colours::rgb_of(name)[theme]);
    }
    let mut bytes = Vec::new();
    let width = u32::try_from(width).ok()?;
    let height = u32::try_from(height).ok()?;
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(bytes)
}
