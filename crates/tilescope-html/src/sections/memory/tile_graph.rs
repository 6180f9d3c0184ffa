//! What lies on each tile, as categories that stand on each other.

use super::of_capacity;
use crate::block::{Block, LegendEntry};
use crate::colours;
use crate::sections::PageFacts;
use crate::svg::axis::{self, AxisUnit, Scale};
use crate::svg::{Anchor, Px, Svg};
use std::fmt::Write;
use tilescope_analysis::memory::{MemoryBreakdown, MemoryCurveKey, curves};
use tilescope_analysis::tile_curves::{TileAxisOrder, TileCurveStack};
use tilescope_report::units::{binary_bytes, grouped};
use tilescope_report::{ReportError, ReportPart};

const WIDTH: f64 = 1080.0;
const LEFT: f64 = 72.0;
const TOP: f64 = 26.0;
const PLOT_HEIGHT: f64 = 250.0;
const BOTTOM: f64 = TOP + PLOT_HEIGHT;
/// Columns of the graph, at most.
const COLUMNS: usize = 504;
/// Bytes of the legend's smallest entry, as a share of all.
const LEAST_SHARE: f64 = 0.001;

pub(super) fn blocks(facts: &PageFacts<'_>) -> Result<Vec<Block>, ReportError> {
    let breakdown = match facts.report.has(ReportPart::Categories) {
        true => MemoryBreakdown::Category,
        false => MemoryBreakdown::Region,
    };
    let order = TileAxisOrder::Software;
    let key = MemoryCurveKey { breakdown, include_gaps: false, order, per_ipu: false };
    let stack = curves(facts.report, &key)?;
    if stack.places == 0 {
        return Ok(vec![Block::note(super::NOT_RECORDED)]);
    }
    let each = stack.places.div_ceil(COLUMNS);
    let fullest: Vec<usize> = (0..stack.places.div_ceil(each))
        .map(|column| {
            let tiles = column * each..((column + 1) * each).min(stack.places);
            // The first of equal ones.
            tiles.rev().max_by_key(|tile| stack.total(*tile)).unwrap_or(0)
        })
        .collect();
    let columns = match each {
        1 => "Each column is a tile".to_owned(),
        each => format!("Each column is the fullest of {each} tiles that follow each other"),
    };
    let memory = facts.summary.memory.as_ref();
    let needs = memory.map_or(0, |memory| memory.max_tile_including_gaps.0);
    let caption = format!(
        "{columns}, as its bytes in use, gaps left out. The fullest tile needs {}, with gaps: {}.",
        binary_bytes(needs),
        of_capacity(needs, stack.capacity),
    );
    let sum = |at: usize| stack.layers[at].values.iter().map(|bytes| *bytes as f64).sum::<f64>();
    let all: f64 = (0..stack.layers.len()).map(sum).sum();
    let told = (0..stack.layers.len()).filter(|at| sum(*at) >= all * LEAST_SHARE);
    let entry = |at: usize| {
        let layer = stack.layers[at].layer;
        LegendEntry::new(colours::layer(layer), layer.title())
    };
    let legend = told.rev().map(entry).collect();
    Ok(vec![Block::figure(draw(facts, &stack, &fullest, each), caption, legend)])
}

fn draw(facts: &PageFacts<'_>, stack: &TileCurveStack, fullest: &[usize], each: usize) -> String {
    let mut svg = Svg::new(WIDTH, BOTTOM + 28.0);
    let top = stack.max.max(stack.capacity).max(1) as f64 * 1.04;
    let y = Scale::linear((0.0, top), (BOTTOM, TOP));
    let x = Scale::linear((0.0, (fullest.len() * each) as f64), (LEFT, WIDTH));
    let column = (x.to - x.from) / fullest.len().max(1) as f64;
    axis::left(&mut svg, &y, (LEFT, WIDTH), (AxisUnit::Bytes, "bytes of a tile"));
    let mut feet: Vec<u64> = vec![0; fullest.len()];
    for layer in &stack.layers {
        let mut path = String::new();
        let mut before: Option<(f64, f64)> = None;
        for (at, (tile, foot)) in fullest.iter().zip(&mut feet).enumerate() {
            let bytes = layer.values.get(*tile).copied().unwrap_or(0);
            let (low, high) = (y.at(*foot as f64), y.at((*foot + bytes) as f64));
            *foot += bytes;
            let place = (low, high);
            if low - high < 0.05 {
                before = None;
                continue;
            }
            // Equal neighbours are one rectangle.
            let same = before == Some(place);
            let (from, width) = (x.from + at as f64 * column, Px(column));
            let _ = match same {
                true => write!(path, "m{width} 0h{width}v{}h-{width}z", Px(low - high)),
                false => {
                    write!(path, "M{} {}h{width}v{}h-{width}z", Px(from), Px(high), Px(low - high))
                }
            };
            before = Some(place);
        }
        svg.path(&path, &format!("f-{}", colours::layer(layer.layer)));
    }
    for ipu in 1..facts.target.ipus_per_replica.min(256) {
        let at = x.at(f64::from(ipu * facts.target.tiles_per_ipu));
        svg.line((at, TOP), (at, BOTTOM), "edge");
    }
    if stack.capacity > 0 {
        let height = y.at(stack.capacity as f64);
        svg.line((LEFT, height), (WIDTH, height), "capacity");
        let words = format!("memory of a tile: {}", binary_bytes(stack.capacity));
        svg.text((WIDTH - 4.0, height - 5.0), Anchor::End, "label", &words);
    }
    axis::bottom(&mut svg, &x, (BOTTOM, BOTTOM + 4.0), (AxisUnit::Count, "tile"));
    let label = format!(
        "Memory of {} tiles by category, the fullest with {} in use",
        grouped(stack.places as u64),
        binary_bytes(stack.max)
    );
    svg.finish(&label)
}
