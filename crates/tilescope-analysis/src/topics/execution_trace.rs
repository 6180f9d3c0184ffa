//! What ran when.

use super::{Topic, TopicFigure};
use crate::figures::{Figure, FigureAxis, FigureBar, FigureSeries, FigureUnit, Shade};
use crate::summary::ActivityProportions;
use crate::trace::window_summary;
use tilescope_report::units::ReplicaIpu;
use tilescope_report::{Report, ReportError, StepActivity};

pub(super) const TOPIC: Topic = Topic::of_view(
    "execution-trace",
    "Execution trace",
    "What ran when, and who waited for whom?",
    &[TopicFigure {
        name: "activities",
        about: "Shares of the run on every IPU",
        read: activities,
    }],
);

fn activities(report: &Report) -> Result<Figure, ReportError> {
    let series = StepActivity::ALL.map(|of| FigureSeries::new(title(of), Shade::Activity(of)));
    let mut bars = Vec::new();
    if let Some(trace) = report.trace()? {
        let mut ipus: Vec<ReplicaIpu> = Vec::new();
        for lane in trace.classes().flat_map(|trace| trace.lanes().to_vec()) {
            let ipu = ReplicaIpu { class: lane.class, ipu: lane.ipu };
            if ipus.last() != Some(&ipu) {
                ipus.push(ipu);
            }
        }
        for totals in window_summary(&trace, trace.range(), &ipus)?.ipus {
            let shares = StepActivity::ALL.map(|activity| share(&totals.proportions, activity));
            let name = format!("IPU {}", totals.at.ipu);
            bars.push(FigureBar::stacked(name, &shares, FigureUnit::Share));
        }
    }
    let x = FigureAxis::new("Share of the run", FigureUnit::Share);
    Ok(Figure::bars("Activities", x, series.to_vec(), bars))
}

fn title(activity: StepActivity) -> &'static str {
    match activity {
        StepActivity::Compute => "Compute",
        StepActivity::InternalExchange => "Exchange between tiles",
        StepActivity::GlobalExchange => "Exchange between IPUs",
        StepActivity::Host => "Host",
        StepActivity::RemoteBuffer => "Remote buffers",
        StepActivity::Sync => "Sync",
        StepActivity::Other => "Other",
    }
}

fn share(of: &ActivityProportions, activity: StepActivity) -> f64 {
    match activity {
        StepActivity::Compute => of.compute,
        StepActivity::InternalExchange => of.internal_exchange,
        StepActivity::GlobalExchange => of.global_exchange,
        StepActivity::Host => of.host,
        StepActivity::RemoteBuffer => of.remote_buffer,
        StepActivity::Sync => of.sync,
        StepActivity::Other => of.other,
    }
}
