//! The topic of limits: the waterfall, the roofline, and where cycles of operations go.

use super::{Topic, TopicFigure};
use crate::figures::{
    Figure, FigureAxis, FigureBar, FigureBarPart, FigureGuide, FigureMarks, FigurePoint,
    FigureSeries, FigureUnit, Shade,
};
use crate::limits::{CycleClass, UnknownUtilisation, WaterfallCycles, WaterfallStep, limits};
use tilescope_report::units::{Cycles, fine_percent, grouped};
use tilescope_report::{Report, ReportError};

/// Operations of the figure of classes: the table has all.
const MOST_OPERATIONS: usize = 12;

pub(super) const TOPIC: Topic = Topic::of_view(
    "limits",
    "Limits",
    "How good is it, against what the machine could do?",
    &[
        TopicFigure {
            name: "waterfall",
            about: "From the peak down to what the run achieves",
            read: waterfall,
        },
        TopicFigure {
            name: "roofline",
            about: "Operations below what engines and interfaces of an IPU allow",
            read: roofline,
        },
        TopicFigure {
            name: "classes",
            about: "What the cycles of the longest operations go into",
            read: classes,
        },
    ],
);

fn waterfall(report: &Report) -> Result<Figure, ReportError> {
    let run = limits(report)?.run;
    Ok(match run {
        Some(run) => waterfall_figure(&run.all, run.unknown),
        None => waterfall_figure(&WaterfallCycles::default(), None),
    })
}

/// The peak, what is lost on the way down, and what is left. A run whose utilisation is not known has
/// no row of what it achieves.
#[must_use]
pub fn waterfall_figure(cycles: &WaterfallCycles, unknown: Option<UnknownUtilisation>) -> Figure {
    const PEAK: &str = "All tiles compute at the peak of the matrix engine for the whole run, each \
                        operation at that of its data type";
    let mut series = vec![FigureSeries::new("Peak", Shade::Whole)];
    let mut bars = Vec::new();
    let mut add = |name: &str, amount: Cycles, [from, to]: [f64; 2], about: &str| {
        let parts = vec![FigureBarPart { from, to, series: bars.len() }];
        let value = fine_percent(to - from);
        let about = format!("{} IPU-cycles, {value}. {about}", grouped(amount.0));
        bars.push(FigureBar { name: name.to_owned(), parts, value, about });
    };
    let total = cycles.total();
    if total > Cycles::ZERO {
        add("Peak", total, [0.0, 1.0], PEAK);
    }
    let mut left = 1.0;
    for (step, amount) in cycles.iter() {
        let share = cycles.share(step);
        let ends = match step {
            WaterfallStep::Achieved if unknown.is_some() => continue,
            WaterfallStep::Achieved => [0.0, share],
            _ if amount.is_zero() => continue,
            _ => {
                let from = f64::max(left - share, 0.0);
                [from, std::mem::replace(&mut left, from)]
            }
        };
        if total > Cycles::ZERO {
            series.push(FigureSeries::new(step.title(), Shade::Waterfall(step)));
            add(step.title(), amount, ends, step.about());
        }
    }
    let x = FigureAxis::new("Share of the cycles of the run x IPUs", FigureUnit::Share);
    let note = unknown.map_or("", UnknownUtilisation::sentence).to_owned();
    let marks = FigureMarks::Bars(bars);
    let (title, y) = ("Waterfall".to_owned(), FigureAxis::default());
    Figure { title, note, x, y, series, guides: Vec::new(), marks }
}

/// Operations below what engines and interfaces of an IPU allow.
fn roofline(report: &Report) -> Result<Figure, ReportError> {
    let found = limits(report)?;
    let of = crate::limits::roofline(&found.machine, &found.rows, None);
    let clock = found.machine.clock.map_or(1.0, |clock| clock.0 as f64);
    let mut points = Vec::new();
    let mut left_out = 0;
    for point in &of.points {
        let row = &found.rows[point.row];
        let Some(class) = row.limits.bound() else { continue };
        if point.flops_per_byte.is_infinite() {
            left_out += 1;
            continue;
        }
        points.push(FigurePoint {
            x: point.flops_per_byte,
            y: point.flops_per_cycle * clock,
            series: class as usize,
            about: format!("{}: {} cycles", row.name, row.limits.total()),
        });
    }
    let lowest = points.iter().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let highest = points.iter().map(|point| point.x).fold(0.0, f64::max);
    let mut guides = Vec::new();
    for roof in of.roofs.iter().filter(|_| !points.is_empty()) {
        let height = |x: f64| roof.flops_per_cycle(x) * clock;
        let (from, to) = ([lowest, height(lowest)], [highest, height(highest)]);
        guides.push(FigureGuide { name: roof.title.clone(), from, to });
    }
    let unit = if clock > 1.0 { "FLOP/s of an IPU" } else { "FLOPs per cycle of an IPU" };
    let note = match left_out {
        0 => String::new(),
        count => format!("{} operations that move nothing are not drawn.", grouped(count)),
    };
    Ok(Figure {
        title: "Roofline".to_owned(),
        note,
        x: FigureAxis::logarithmic("FLOPs per byte moved", FigureUnit::Count),
        y: FigureAxis::logarithmic(unit, FigureUnit::Count),
        series: class_series(),
        guides,
        marks: FigureMarks::Points(points),
    })
}

fn classes(report: &Report) -> Result<Figure, ReportError> {
    let rows = limits(report)?.rows;
    let mut longest: Vec<_> = rows.iter().collect();
    longest.sort_by_key(|row| std::cmp::Reverse(row.limits.total()));
    longest.truncate(MOST_OPERATIONS);
    let mut bars = Vec::new();
    for row in longest {
        let amounts: Vec<f64> =
            row.limits.cycles.iter().map(|(_, cycles)| cycles.as_f64()).collect();
        let bar = FigureBar::stacked(row.name.as_str(), &amounts, FigureUnit::Cycles);
        bars.push(FigureBar { about: row.kind.clone(), ..bar });
    }
    let x = FigureAxis::new("Cycles in the run", FigureUnit::Cycles);
    Ok(Figure::bars("Where cycles go", x, class_series(), bars))
}

/// A series of each class, in the order of the classes.
fn class_series() -> Vec<FigureSeries> {
    let series = CycleClass::ALL.map(|class| FigureSeries::new(class.title(), Shade::Class(class)));
    series.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_hang_from_the_peak_down_to_what_is_achieved() {
        let mut cycles = WaterfallCycles::default();
        cycles[WaterfallStep::SyncAndStart] = Cycles(50);
        cycles[WaterfallStep::BelowPeak] = Cycles(30);
        cycles[WaterfallStep::Achieved] = Cycles(20);
        let figure = waterfall_figure(&cycles, None);
        let FigureMarks::Bars(bars) = &figure.marks else { panic!("bars") };
        let ends: Vec<_> = bars
            .iter()
            .map(|bar| (bar.name.as_str(), bar.parts[0].from, bar.parts[0].to))
            .collect();
        let [peak, sync, below, achieved] = ends.as_slice() else { panic!("{ends:?}") };
        assert_eq!(*peak, ("Peak", 0.0, 1.0));
        assert_eq!((sync.0, sync.2), ("Sync and start", 1.0));
        assert!((below.1 - achieved.2).abs() < 1e-12, "the last loss ends at what is left");
        let unknown = waterfall_figure(&cycles, Some(UnknownUtilisation::NoRuns));
        let FigureMarks::Bars(bars) = &unknown.marks else { panic!("bars") };
        assert!(bars.iter().all(|bar| bar.name != "Achieved"));
        assert!(waterfall_figure(&WaterfallCycles::default(), None).is_empty());
    }
}
