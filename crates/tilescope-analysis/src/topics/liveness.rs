//! The topic of liveness: bytes at every step.

use super::{Topic, TopicFigure};
use crate::figures::{
    Figure, FigureAxis, FigureGuide, FigureLabel, FigureLayer, FigureMarks, FigurePoint,
    FigureSeries, FigureUnit, Shade,
};
use crate::liveness::{LivenessCurve, LivenessScope, curve};
use crate::tile_curves::TileCurveLayer;
use tilescope_report::units::{binary_bytes, grouped};
use tilescope_report::{Report, ReportError};

pub(super) const TOPIC: Topic = Topic::of_view(
    "liveness",
    "Liveness",
    "When is the most memory live, and which variables?",
    &[TopicFigure { name: "bytes", about: "Bytes live at every step", read: bytes }],
);

fn bytes(report: &Report) -> Result<Figure, ReportError> {
    Ok(liveness_figure(&curve(report, LivenessScope::Whole)?.unwrap_or_default()))
}

/// Bytes live at every step, with the step with the most live bytes.
#[must_use]
pub fn liveness_figure(curve: &LivenessCurve) -> Figure {
    let peak = curve.peak().unwrap_or(0);
    let most = curve.total(peak).as_f64();
    let capacity = curve.capacity.as_f64();
    // The capacity of a replica is often far above the live bytes: its line is drawn only if it is
    // close.
    let with_capacity = capacity > 0.0 && capacity <= 1.6 * most;
    let mut guides = Vec::new();
    let mut labels = Vec::new();
    let mut points = Vec::new();
    if with_capacity {
        let name = format!("memory of a replica: {}", binary_bytes(curve.capacity.0));
        guides.push(FigureGuide::level(name, capacity, Shade::Capacity));
    }
    let steps = curve.others.len();
    if steps > 0 {
        let name = format!("Step {}", grouped(peak as u64));
        let about = binary_bytes(most as u64);
        let x = peak as f64 + 0.5;
        let y = most;
        labels.push(FigureLabel { at: [x, y], text: format!("{name}: {about}") });
        points.push(FigurePoint { x, y, series: 2, id: peak, name, about });
    }
    let always = FigureLayer { series: 0, values: vec![curve.always.as_f64(); steps] };
    let others = curve.others.iter().map(|bytes| bytes.as_f64()).collect();
    let layers = vec![always, FigureLayer { series: 1, values: others }];
    let top = if with_capacity { most.max(capacity) } else { most };
    let of = |name: &str, layer| FigureSeries::new(name, Shade::Layer(layer));
    Figure {
        title: "Live memory".to_owned(),
        x: FigureAxis::new("Step of the program", FigureUnit::Count),
        y: FigureAxis::new("Bytes over all tiles", FigureUnit::Bytes)
            .between([0.0, 1.12 * top.max(1.0)]),
        series: vec![
            of("Always live", TileCurveLayer::AlwaysLive),
            of("Not always live", TileCurveLayer::NotAlwaysLive),
            FigureSeries::new("", Shade::Selection),
        ],
        guides,
        labels,
        marks: FigureMarks { layers, points, ..FigureMarks::default() },
        ..Figure::default()
    }
}
