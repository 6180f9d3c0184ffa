//! What is live at which step.

use super::{Topic, TopicFigure};
use crate::figures::{
    Figure, FigureAxis, FigureLine, FigureMarks, FigureSeries, FigureUnit, Shade,
};
use crate::liveness::{LivenessScope, curve};
use tilescope_report::{Report, ReportError};

pub(super) const TOPIC: Topic = Topic::of_view(
    "liveness",
    "Liveness",
    "At which step is the most memory live, and what is?",
    &[TopicFigure { name: "bytes", about: "Bytes live at every step", read: bytes }],
);

fn bytes(report: &Report) -> Result<Figure, ReportError> {
    let curve = curve(report, LivenessScope::Whole)?.unwrap_or_default();
    let steps = curve.others.len();
    let points = |bytes: &dyn Fn(usize) -> f64| -> Vec<[f64; 2]> {
        (0..steps).map(|step| [step as f64, bytes(step)]).collect()
    };
    let lines = vec![
        FigureLine { series: 0, points: points(&|step| curve.total(step).as_f64()) },
        FigureLine { series: 1, points: points(&|_| curve.always.as_f64()) },
    ];
    Ok(Figure {
        title: "Live memory".to_owned(),
        note: String::new(),
        x: FigureAxis::new("Step of the program", FigureUnit::Count),
        y: FigureAxis::new("Bytes over all tiles", FigureUnit::Bytes),
        series: vec![
            FigureSeries::new("Live", Shade::Nth(0)),
            FigureSeries::new("Always live", Shade::Nth(1)),
        ],
        guides: Vec::new(),
        marks: FigureMarks::Lines(lines),
    })
}
