//! The topic of the execution trace: shares of the run on every IPU.

use super::{Topic, TopicFigure};
use crate::figures::{Figure, FigureAxis, FigureBar, FigureSeries, FigureUnit, Shade};
use crate::trace::run_summary;
use tilescope_report::{Report, ReportError, StepActivity};

pub(super) const TOPIC: Topic = Topic::of_view(
    "execution-trace",
    "Execution trace",
    "What ran when, and which IPU waited for which?",
    &[TopicFigure {
        name: "activities",
        about: "Shares of the run on every IPU",
        read: activities,
    }],
);

fn activities(report: &Report) -> Result<Figure, ReportError> {
    let series = StepActivity::ALL.map(|of| FigureSeries::new(of.title(), Shade::Activity(of)));
    let mut bars = Vec::new();
    if let Some(trace) = report.trace()? {
        for totals in run_summary(&trace)?.ipus {
            let shares = StepActivity::ALL.map(|activity| totals.proportions.of(activity));
            let name = format!("IPU {}", totals.at.ipu);
            bars.push(FigureBar::stacked(name, &shares, FigureUnit::Share));
        }
    }
    let x = FigureAxis::new("Share of the run", FigureUnit::Share);
    Ok(Figure::bars("Activities", x, series.to_vec(), bars))
}
