//! The topic of memory: bytes by category.

use super::{Topic, TopicFigure};
use crate::figures::{
    Figure, FigureAxis, FigureBar, FigureGuide, FigureLayer, FigureMarks, FigureSeries, FigureUnit,
    Shade,
};
use crate::memory::{MemoryBreakdown, MemoryCurveKey, curves};
use crate::summary::bytes_by_category;
use crate::tile_curves::TileAxisOrder;
use tilescope_report::units::{Bytes, binary_bytes, exact_bytes};
use tilescope_report::{Report, ReportError, ReportPart};

pub(super) const TOPIC: Topic = Topic::of_view(
    "memory",
    "Memory",
    "What fills tile memory?",
    &[TopicFigure {
        name: "categories",
        about: "Bytes by kind of data and code, over all tiles",
        read: categories,
    }],
);

fn categories(report: &Report) -> Result<Figure, ReportError> {
    let mut sums: Vec<_> = bytes_by_category(report)?.into_iter().collect();
    sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    let mut bars = Vec::new();
    for (category, bytes) in sums {
        if bytes > Bytes::ZERO {
            bars.push(FigureBar {
                value: binary_bytes(bytes.0),
                about: exact_bytes(bytes.0),
                ..FigureBar::of(category.title(), bytes.as_f64(), FigureUnit::Bytes, 0)
            });
        }
    }
    let x = FigureAxis::new("Bytes over all tiles", FigureUnit::Bytes);
    let series = vec![FigureSeries::new("Bytes", Shade::Plain)];
    Ok(Figure::bars("Memory by category", x, series, bars))
}

/// Bytes of every tile by category, or by region if categories were not recorded, with the capacity
/// of a tile.
///
/// # Errors
/// Parts of the file that cannot be read.
pub fn tile_memory_figure(report: &Report) -> Result<Figure, ReportError> {
    /// The largest number of IPUs with separate boundary lines.
    const MOST_IPUS: u32 = 256;
    /// Layers with less than this share of all bytes are not in the legend.
    const LEAST_SHARE: f64 = 0.001;
    let breakdown = if report.has(ReportPart::Categories) {
        MemoryBreakdown::Category
    } else {
        MemoryBreakdown::Region
    };
    let order = TileAxisOrder::Software;
    let key = MemoryCurveKey { breakdown, include_gaps: false, order, per_ipu: false };
    let stack = curves(report, &key)?;
    let target = report.target()?;
    let mut series = Vec::new();
    let mut layers = Vec::new();
    let mut guides = Vec::new();
    for (at, curve) in stack.layers.iter().enumerate() {
        series.push(FigureSeries::new(curve.layer.title(), Shade::Layer(curve.layer)));
        let values = curve.values.iter().map(|bytes| *bytes as f64).collect();
        layers.push(FigureLayer { series: at, values });
    }
    let sums: Vec<f64> = layers.iter().map(|layer| layer.values.iter().sum()).collect();
    let all: f64 = sums.iter().sum();
    for (of, sum) in series.iter_mut().zip(sums) {
        if sum < all * LEAST_SHARE {
            of.name.clear();
        }
    }
    let top = stack.max.max(stack.capacity).max(1) as f64 * 1.12;
    for ipu in 1..target.ipus_per_replica.min(MOST_IPUS) {
        let at = f64::from(ipu * target.tiles_per_ipu);
        let name = String::new();
        let from = [at, 0.0];
        let to = [at, top];
        let shade = Shade::Whole;
        guides.push(FigureGuide { name, from, to, shade, dashed: false });
    }
    if stack.capacity > 0 {
        let name = format!("memory of a tile: {}", binary_bytes(stack.capacity));
        guides.push(FigureGuide::level(name, stack.capacity as f64, Shade::Capacity));
    }
    Ok(Figure {
        title: "Memory of every tile".to_owned(),
        x: FigureAxis::new("Tile", FigureUnit::Count),
        y: FigureAxis::new("Bytes of a tile", FigureUnit::Bytes).between([0.0, top]),
        series,
        guides,
        marks: FigureMarks { layers, ..FigureMarks::default() },
        ..Figure::default()
    })
}
