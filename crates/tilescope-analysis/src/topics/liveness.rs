//! The topic of liveness: bytes at every step.

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
    let (mut live, mut always) = (Vec::new(), Vec::new());
    for step in 0..curve.others.len() {
        live.push([step as f64, curve.total(step).as_f64()]);
        always.push([step as f64, curve.always.as_f64()]);
    }
    let lines =
        vec![FigureLine { series: 0, points: live }, FigureLine { series: 1, points: always }];
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
