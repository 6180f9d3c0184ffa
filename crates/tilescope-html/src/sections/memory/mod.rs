//! Memory: the contents of tiles, tile by tile and as a map of the chips.

mod floor_plan;

use super::{PageFacts, SectionEntry};
use crate::block::Block;
use crate::colours;
use crate::svg::figure::{block, columns_words};
use crate::table::{HtmlTable, stacked};
use tilescope_analysis::data_table::TableCell;
use tilescope_analysis::memory::{self, fullest_tiles, needed};
use tilescope_analysis::table;
use tilescope_analysis::topics::tile_memory_figure;
use tilescope_report::units::{Bytes, TileId, binary_bytes, percent};
use tilescope_report::{MemoryCategory, MemoryRegion, ReportError, ReportPart};

pub(super) const SECTION: SectionEntry = SectionEntry { id: "memory", title: "Memory", build };

/// Number of tiles in the list of the fullest.
const FULLEST: usize = 10;
/// Number of variables in the list of the largest.
const LARGEST: usize = 200;

const NOT_RECORDED: &str = "Memory per tile was not recorded.";

fn build(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    if !facts.report.has(ReportPart::TileMemory) {
        return Ok(vec![Block::note(NOT_RECORDED)]);
    }
    let mut blocks = vec![parts_table(facts)];
    blocks.push(Block::heading("Tile by tile"));
    let figure = tile_memory_figure(facts.report)?;
    let needs = facts.summary.memory.as_ref().map_or(0, |memory| memory.max_tile_including_gaps.0);
    let caption = format!(
        "Bytes in use on each tile, excluding gaps. The fullest tile needs {}, including gaps: {}.{}",
        binary_bytes(needs),
        of_capacity(needs, facts.target.bytes_per_tile.0),
        columns_words(&figure, "tiles"),
    );
    blocks.push(block(&figure, &caption));
    blocks.push(Block::heading("Floor plan"));
    blocks.extend(floor_plan::blocks(facts)?);
    blocks.push(fullest(facts)?);
    blocks.push(details(facts)?);
    blocks.extend(largest_variables(facts)?);
    Ok(blocks)
}

/// Bytes by category, or by region if categories were not recorded.
fn parts_table(facts: &PageFacts<'_>) -> Block {
    let memory = facts.summary.memory.as_ref();
    let categories = MemoryCategory::ALL.into_iter().filter_map(|category| {
        let bytes = *memory?.by_category.get(category.name())?;
        Some((category.title().to_owned(), colours::category(category), bytes))
    });
    let mut parts: Vec<(String, &'static str, Bytes)> = categories.collect();
    let by_category = !parts.is_empty();
    if !by_category {
        parts = MemoryRegion::ALL
            .into_iter()
            .filter_map(|region| {
                let bytes = *memory?.by_region.get(region.name())?;
                Some((region.name().to_owned(), colours::region(region), bytes))
            })
            .collect();
    }
    parts.retain(|(_, _, bytes)| *bytes > Bytes::ZERO);
    parts.sort_by_key(|(_, _, bytes)| std::cmp::Reverse(*bytes));
    let total: Bytes = parts.iter().map(|(_, _, bytes)| *bytes).sum();
    let get_share = |bytes: Bytes| bytes.as_f64() / total.as_f64().max(1.0);
    let most = parts.first().map_or(1.0, |(_, _, bytes)| get_share(*bytes)).max(f64::MIN_POSITIVE);
    let (name, caption) = if by_category {
        ("Category", "Memory over all tiles of a replica, by category")
    } else {
        ("Region", "Memory over all tiles of a replica, by region: categories were not recorded")
    };
    let data = table! { &parts, |(part, _, bytes)|
        text name => part;
        bytes "Size" => *bytes;
        share "Share" => get_share(*bytes);
    };
    let data = data.with_totals();
    Block::Table {
        table: HtmlTable::with_bars(
            "memory/categories",
            caption,
            &data,
            |at| {
                let (_, colour, bytes) = &parts[at];
                stacked([(*colour, get_share(*bytes) / most)])
            },
            "Of the largest",
        ),
    }
}

/// The tiles with the highest need.
fn fullest(facts: &PageFacts<'_>) -> Result<Block, ReportError> {
    let memory = facts.report.tile_memory()?;
    let capacity = facts.target.bytes_per_tile;
    let get_share =
        |bytes: Bytes| (!capacity.is_zero()).then(|| bytes.as_f64() / capacity.as_f64());
    let rows = fullest_tiles(&memory, FULLEST).into_iter();
    let data = table! { rows.map(|(tile, bytes)| (tile, bytes, memory.get(tile))), |(tile, bytes, own)|
        text "Tile" => tile;
        id "IPU" => facts.target.ipu_of_tile(tile);
        bytes "Including gaps" => bytes;
        share "Of its memory" => get_share(bytes);
        bytes "Always live" => own.map(|memory| memory.always_live);
        bytes "Not always live (peak)" => own.map(|memory| memory.peak_not_always_live);
        bytes "Overflowed" => own.map(|memory| memory.overflowed);
    };
    Ok(Block::Table { table: HtmlTable::new("memory/fullest", "The fullest tiles", &data) })
}

/// Memory by region and kind of data as a tree.
fn details(facts: &PageFacts<'_>) -> Result<Block, ReportError> {
    let data = table! { memory::details(facts.report, &[])?, |row|
        text "Part" => format!("{}{}", "\u{2003}".repeat(row.depth as usize), row.name);
        bytes "All tiles" => row.bytes.first().copied().map(Bytes);
    };
    let caption = "Memory by region and kind of data, over all tiles";
    Ok(Block::Table { table: HtmlTable::new("memory/tree", caption, &data).folded() })
}

/// The variables with the most bytes over all tiles.
fn largest_variables(facts: &PageFacts<'_>) -> Result<Option<Block>, ReportError> {
    if !facts.report.has(ReportPart::Variables) {
        return Ok(Some(Block::note("Variables were not recorded.")));
    }
    let list = memory::variables(facts.report, &[])?;
    let mut data = tilescope_analysis::tables::memory::variables(&list, &[]);
    let all = facts.report.variable_count()?.max(data.rows.len() as u64);
    if list.truncated {
        let text =
            format!("The report has {}, too many for a page.", super::counted(all, "variable"));
        return Ok(Some(Block::note(text)));
    }
    let get_size = |row: &Vec<TableCell>| row.get(2).and_then(TableCell::number).unwrap_or(0.0);
    data.rows.sort_by(|a, b| get_size(b).total_cmp(&get_size(a)));
    data.rows.truncate(LARGEST);
    data.totals = false;
    let caption = if data.rows.len() as u64 == all {
        "Variables over all tiles, the largest first".to_owned()
    } else {
        format!(
            "The {} largest of {}, over all tiles",
            data.rows.len(),
            super::counted(all, "variable")
        )
    };
    let table = HtmlTable::new("memory/largest-variables", caption, &data).folded();
    Ok(if table.count > 0 { Some(Block::Table { table }) } else { None })
}

/// A tile's bytes as a share of its memory, as text.
fn of_capacity(bytes: u64, capacity: u64) -> String {
    match capacity {
        0 => "the memory of a tile is unknown".to_owned(),
        _ => format!("{} of its memory", percent(bytes as f64 / capacity as f64)),
    }
}

/// Bytes that each tile needs.
fn needed_by_tile(facts: &PageFacts<'_>) -> Result<Vec<u64>, ReportError> {
    let memory = facts.report.tile_memory()?;
    let tiles = memory.end().map_or(0, TileId::index);
    let tiles = tiles.max(facts.target.tiles_per_replica() as usize);
    Ok(tilescope_analysis::tile_curves::spread(&memory, tiles, needed))
}
