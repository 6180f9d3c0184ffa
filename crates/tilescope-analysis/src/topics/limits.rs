//! The topic of limits: the waterfall, the roofline, and cycles of operations by class.

use super::{Topic, TopicFigure};
use crate::figures::{
    Figure, FigureAxis, FigureBar, FigureBarPart, FigureGuide, FigureMarks, FigurePoint,
    FigureSeries, FigureUnit, Shade,
};
use crate::limits::{
    CycleClass, LimitsRow, Machine, ReportLimits, RoofKind, Roofline, UnknownUtilisation,
    WaterfallCycles, WaterfallStep, limits,
};
use tilescope_report::units::{Cycles, fine_percent, grouped, percent, with_prefix};
use tilescope_report::{MachineInterface, Report, ReportError};

/// The number of operations in the figure of classes; the table has all of them.
const MOST_OPERATIONS: usize = 12;

pub(super) const TOPIC: Topic = Topic::of_view(
    "limits",
    "Limits",
    "How close is the program to the limits of the machine?",
    &[
        TopicFigure {
            name: "waterfall",
            about: "Losses from the peak down to the achieved FLOPs",
            read: waterfall,
        },
        TopicFigure {
            name: "roofline",
            about: "Operations against the limits of engines and interfaces of an IPU",
            read: roofline,
        },
        TopicFigure {
            name: "classes",
            about: "Where the cycles of the longest operations go",
            read: classes,
        },
    ],
);

fn waterfall(report: &Report) -> Result<Figure, ReportError> {
    Ok(match &limits(report)?.run {
        Some(run) => waterfall_figure(&run.all, run.unknown),
        None => waterfall_figure(&WaterfallCycles::default(), None),
    })
}

/// Smaller shares have no number of their own beside the bars.
const LEAST_SHOWN: f64 = 0.0005;

/// The peak, the losses on the way down, and the remainder. A run with unknown utilisation has no
/// row for the achieved share.
#[must_use]
pub fn waterfall_figure(cycles: &WaterfallCycles, unknown: Option<UnknownUtilisation>) -> Figure {
    const PEAK: &str = "All tiles compute at the peak of the matrix engine for the whole run, each \
                        operation at that of its data type";
    let mut series = vec![FigureSeries::new("Peak", Shade::Whole)];
    let mut bars = Vec::new();
    let mut add = |name: &str, amount: Cycles, [from, to]: [f64; 2], about: &str| {
        let parts = vec![FigureBarPart { from, to, series: bars.len() }];
        let value = match to - from {
            small if small > 0.0 && small < LEAST_SHOWN => "< 0.1 %".to_owned(),
            share => percent(share),
        };
        let about = format!("{} IPU-cycles, {value}. {about}", grouped(amount.0));
        let name = name.to_owned();
        bars.push(FigureBar { name, parts, value, about, ..FigureBar::default() });
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
    Figure { note, ..Figure::bars("Waterfall", x, series, bars) }
}

fn roofline(report: &Report) -> Result<Figure, ReportError> {
    let found = limits(report)?;
    Ok(roofline_figure(&found, &crate::limits::roofline(&found.machine, &found.rows, None)))
}

/// Operations below the limits of engines and interfaces of an IPU; the id of a point is its row.
#[must_use]
pub fn roofline_figure(found: &ReportLimits, of: &Roofline) -> Figure {
    /// Extent of roofs to the left and to the right, as a factor: painters clip them.
    const FAR: f64 = 1e12;
    let machine = &found.machine;
    let rows = &found.rows;
    let clock = machine.clock.map_or(1.0, |clock| clock.0 as f64);
    let (flops, bytes) = match machine.clock {
        Some(_) => ("FLOP/s", "B/s"),
        None => ("FLOPs per cycle", "B per cycle"),
    };
    let mut points = Vec::new();
    let mut counts = [0; CycleClass::ALL.len()];
    for point in &of.points {
        let row = &rows[point.row];
        let Some(class) = row.limits.bound() else { continue };
        counts[class as usize] += 1;
        points.push(FigurePoint {
            x: point.flops_per_byte,
            y: point.flops_per_cycle * clock,
            series: class as usize,
            id: point.row,
            name: row.name.clone(),
            about: point_words(row, machine).join("\n"),
        });
    }
    let mut series = class_series();
    for (of, (class, count)) in series.iter_mut().zip(CycleClass::ALL.into_iter().zip(counts)) {
        of.name = format!("{} {}", class.title(), grouped(count));
        of.about = format!("Operations whose cycles mostly go into this. {}", class.about());
    }
    let mut top: f64 = 1.0;
    for roof in &of.roofs {
        if matches!(roof.kind, RoofKind::Engine(_)) {
            top = top.max(roof.per_cycle);
        }
    }
    let mut xs: Vec<f64> = points.iter().map(|point| point.x).collect();
    let mut ys: Vec<f64> = points.iter().map(|point| point.y).collect();
    ys.push(top * clock);
    let mut guides = Vec::new();
    for roof in &of.roofs {
        let (ends, unit, is_used) = match roof.kind {
            RoofKind::Engine(_) => ([FAR.recip(), FAR], flops, true),
            RoofKind::Interface(own) => {
                let ridge = top / roof.per_cycle;
                // The exchange is always shown.
                let is_used = own == MachineInterface::TileSend
                    || of.points.iter().any(|point| point.interface == Some(own));
                if is_used {
                    xs.push(ridge);
                }
                ([ridge / FAR, ridge], bytes, is_used)
            }
        };
        let [from, to] = ends.map(|x| [x, roof.flops_per_cycle(x) * clock]);
        let name = format!("{} {}", roof.title, with_prefix(roof.per_cycle * clock, unit));
        let shade = if is_used { Shade::Weak } else { Shade::Whole };
        guides.push(FigureGuide { name, from, to, shade, dashed: false });
    }
    let note = match (points.len(), of.unknown) {
        (0, 0) => "No operation of the run has floating point operations.".to_owned(),
        (0, _) => {
            "The report does not record the floating point operations of its operations.".to_owned()
        }
        _ => format!(
            "{} more have no floating point operations.",
            grouped((of.without_flops + of.unknown) as u64)
        ),
    };
    let unit = format!("{flops} of an IPU");
    let is_still = points.iter().any(|point| point.x.is_infinite());
    let x_title = if is_still { "FLOPs per byte (∞: no bytes moved)" } else { "FLOPs per byte" };
    Figure {
        title: "Roofline".to_owned(),
        note,
        x: FigureAxis::logarithmic(x_title, FigureUnit::Count).around(xs, 0.0),
        y: FigureAxis::logarithmic(unit, FigureUnit::Count).around(ys, 0.0),
        series,
        guides,
        marks: FigureMarks { points, ..FigureMarks::default() },
        ..Figure::default()
    }
}

/// Short texts with figures of an operation.
fn point_words(row: &LimitsRow, machine: &Machine) -> Vec<String> {
    let limits = &row.limits;
    let mut lines = vec![format!("{} cycles", grouped(limits.total().0))];
    if let Some(wasted) = limits.wasted() {
        lines.push(format!("{} of them wasted", grouped(wasted.0)));
    }
    if let Some(share) = limits.of_peak {
        lines.push(format!("{} of the peak of its engine", fine_percent(share)));
    }
    if let Some(rate) = limits.flops_per_cycle() {
        lines.push(match machine.clock {
            Some(clock) => with_prefix(rate * clock.0 as f64, "FLOP/s"),
            None => with_prefix(rate, "FLOPs per cycle"),
        });
    }
    if let Some(class) = limits.bound() {
        lines.push(format!("most of it {}", class.title().to_lowercase()));
    }
    let on = row.ipu.map_or_else(String::new, |ipu| format!(" on IPU {ipu}"));
    lines.push(format!("{}{on}", row.kind));
    lines
}

fn classes(report: &Report) -> Result<Figure, ReportError> {
    let found = limits(report)?;
    let mut longest: Vec<_> = found.rows.iter().collect();
    longest.sort_by_key(|row| std::cmp::Reverse(row.limits.total()));
    let title = match longest.len() {
        all if all > MOST_OPERATIONS => {
            format!(
                "Where cycles go: the {MOST_OPERATIONS} longest of {} operations",
                grouped(all as u64)
            )
        }
        _ => "Where cycles go".to_owned(),
    };
    longest.truncate(MOST_OPERATIONS);
    let mut bars = Vec::new();
    for row in longest {
        let amounts: Vec<f64> =
            row.limits.cycles.iter().map(|(_, cycles)| cycles.as_f64()).collect();
        let bar = FigureBar::stacked(row.name.as_str(), &amounts, FigureUnit::Cycles);
        bars.push(FigureBar { about: row.kind.clone(), ..bar });
    }
    let x = FigureAxis::new("Cycles in the run", FigureUnit::Cycles);
    Ok(Figure::bars(title, x, class_series(), bars))
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
    fn waterfall_bars_connect_the_peak_and_the_achieved_share() {
        let mut cycles = WaterfallCycles::default();
        cycles[WaterfallStep::SyncAndStart] = Cycles(50);
        cycles[WaterfallStep::BelowPeak] = Cycles(30);
        cycles[WaterfallStep::Achieved] = Cycles(20);
        let figure = waterfall_figure(&cycles, None);
        let ends: Vec<_> = figure
            .marks
            .bars
            .iter()
            .map(|bar| (bar.name.as_str(), bar.parts[0].from, bar.parts[0].to))
            .collect();
        let [peak, sync, below, achieved] = ends.as_slice() else { panic!("{ends:?}") };
        assert_eq!(*peak, ("Peak", 0.0, 1.0));
        assert_eq!((sync.0, sync.2), ("Sync and start", 1.0));
        assert!((below.1 - achieved.2).abs() < 1e-12, "the last loss ends at what is left");
        let unknown = waterfall_figure(&cycles, Some(UnknownUtilisation::NoRuns));
        assert!(unknown.marks.bars.iter().all(|bar| bar.name != "Achieved"));
        assert!(waterfall_figure(&WaterfallCycles::default(), None).is_empty());
    }
}
