//! The topic of memory: bytes by category.

use super::{Topic, TopicFigure};
use crate::figures::{Figure, FigureAxis, FigureBar, FigureSeries, FigureUnit, Shade};
use crate::summary::bytes_by_category;
use tilescope_report::units::Bytes;
use tilescope_report::{Report, ReportError};

pub(super) const TOPIC: Topic = Topic::of_view(
    "memory",
    "Memory",
    "What fills the memory of the tiles?",
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
            bars.push(FigureBar::of(category.name(), bytes.as_f64(), FigureUnit::Bytes, 0));
        }
    }
    let x = FigureAxis::new("Bytes over all tiles", FigureUnit::Bytes);
    let series = vec![FigureSeries::new("Bytes", Shade::Plain)];
    Ok(Figure::bars("Memory by category", x, series, bars))
}
