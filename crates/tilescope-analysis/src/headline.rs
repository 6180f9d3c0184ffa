//! The most important figures of a report.

use crate::confidence::{Banded, Confidence};
use crate::limits::LimitsSummary;
use crate::summary::{ExecutionSummary, MemorySummary, ReportSummary};
use serde::Serialize;
use tilescope_report::units::{
    NumberFormat, exact_bytes, exact_real, fine_percent, grouped, percent, seconds, short_count,
    short_cycles, with_prefix,
};
use tilescope_report::{ProgramOutcome, Target};

/// A headline figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeadlineFigure {
    pub title: &'static str,
    pub value: String,
    pub about: String,
    /// The value with all its digits if it is shown with fewer; empty otherwise.
    pub exact: String,
    /// The calculation of the value; empty if the title says it.
    pub formula: &'static str,
    /// True if it is the reason that the program cannot run.
    pub bad: bool,
}

impl HeadlineFigure {
    /// The text of its tooltip: all digits, and the calculation.
    pub fn hint(&self) -> String {
        let parts = [self.exact.as_str(), self.formula];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// The run, what it achieves of the peak, and how full the tiles are.
pub fn headline_figures(
    summary: &ReportSummary,
    outcome: ProgramOutcome,
    target: &Target,
    numbers: NumberFormat,
) -> Vec<HeadlineFigure> {
    let mut figures = match (&summary.execution, outcome) {
        (Some(run), _) => of_run(run, summary.confidence.as_ref()),
        (None, ProgramOutcome::OutOfMemory { tiles }) => vec![HeadlineFigure {
            title: "Out of memory",
            value: format!("{} tiles", grouped(tiles)),
            about: "exceed their memory; the program did not run".to_owned(),
            exact: String::new(),
            formula: "tiles with more bytes in use, or overflowed, than a tile has",
            bad: true,
        }],
        (None, _) => vec![HeadlineFigure {
            title: "Run",
            value: "none".to_owned(),
            about: "compiled only".to_owned(),
            exact: String::new(),
            formula: "",
            bad: false,
        }],
    };
    figures.extend(summary.limits.as_ref().map(of_limits));
    match &summary.memory {
        Some(memory) => figures.extend(of_memory(memory, target, numbers)),
        None => figures.push(HeadlineFigure {
            title: "Fullest tile",
            value: "not recorded".to_owned(),
            about: "the report does not record memory".to_owned(),
            exact: String::new(),
            formula: "",
            bad: false,
        }),
    }
    figures
}

fn of_run(run: &ExecutionSummary, confidence: Option<&Confidence>) -> Vec<HeadlineFigure> {
    // Users look for the time first; without a known clock, cycles take its place.
    let cycles = short_cycles(run.total_cycles.0);
    let (value, rest) = if run.seconds > 0.0 {
        (seconds(run.seconds), cycles)
    } else {
        (cycles, "clock unknown".to_owned())
    };
    let rate_width = width_words(confidence.and_then(|of| of.samples_per_second));
    let mut cards = vec![HeadlineFigure {
        title: "Run",
        value,
        about: format!("{rest}{}", width_words(confidence.and_then(|of| of.cycles))),
        exact: format!("{} cycles", run.total_cycles),
        formula: "end of the last step - start of the first; time = cycles / tile clock",
        bad: false,
    }];
    cards.extend(run.samples_per_second.map(|rate| HeadlineFigure {
        title: "Throughput",
        value: short_count(rate.round() as u64),
        exact: format!("{} samples per second", exact_real(rate)),
        about: if rate_width.is_empty() {
            format!("samples per second, {} samples", short_count(run.samples.unwrap_or(0)))
        } else {
            format!("samples per second{rate_width}")
        },
        formula: "samples of all host calls in the run / time on the device",
        bad: false,
    }));
    cards
}

/// Time and rate of a run, then its cycles: `12.6 s, 5,206 samples per second (65,536 samples), 23.29 G
/// cycles`.
pub fn run_words(run: &ExecutionSummary) -> String {
    let cycles = short_cycles(run.total_cycles.0);
    let rate = match (run.samples, run.samples_per_second) {
        (Some(samples), Some(rate)) => format!(
            "{} samples per second ({} samples), ",
            short_count(rate as u64),
            short_count(samples)
        ),
        _ => String::new(),
    };
    if run.seconds > 0.0 {
        format!("{}, {rate}{cycles}", seconds(run.seconds))
    } else {
        format!("{rate}{cycles}, clock unknown")
    }
}

/// `, -12 to +14 %`; empty without a known band.
fn width_words(band: Option<Banded>) -> String {
    band.map_or_else(String::new, |band| format!(", {}", band.width_words()))
}

/// The achieved share of the peak, and the peak itself.
fn of_limits(limits: &LimitsSummary) -> HeadlineFigure {
    let peak = limits.peaks.first().map_or_else(String::new, |peak| {
        let rate = match peak.flops_per_second {
            Some(rate) => with_prefix(rate, "FLOP/s"),
            None => with_prefix(peak.flops_per_cycle, "FLOPs per cycle"),
        };
        format!("of {rate} per IPU, AMP {}", peak.name)
    });
    let (value, about) = match (limits.utilisation, limits.unknown) {
        (Some(share), _) => (fine_percent(share), peak),
        (None, Some(why)) => ("unknown".to_owned(), why.sentence().to_owned()),
        (None, None) => ("unknown".to_owned(), String::new()),
    };
    HeadlineFigure {
        title: "Utilisation of peak",
        value,
        about,
        exact: String::new(),
        formula: "sum over operations of FLOPs their results need / (FLOPs per cycle of a tile's \
                  matrix engine for their data type x tiles of an IPU) / (cycles of the run x IPUs \
                  of a replica); recomputation does not count. Limits explains the rest",
        bad: false,
    }
}

fn of_memory(
    memory: &MemorySummary,
    target: &Target,
    numbers: NumberFormat,
) -> [HeadlineFigure; 2] {
    let share = memory.max_tile_including_gaps.as_f64() / target.bytes_per_tile.0.max(1) as f64;
    let about = match target.bytes_per_tile.0 {
        0 => "tile memory unknown".to_owned(),
        _ => {
            let unsure =
                if memory.fit.is_uncertain() { memory.fit.words() } else { "including gaps" };
            format!("{} of {}, {unsure}", percent(share), numbers.bytes(target.bytes_per_tile.0))
        }
    };
    let with_gaps = numbers.bytes(memory.total_including_gaps.0);
    [
        HeadlineFigure {
            title: "Fullest tile",
            value: numbers.bytes(memory.max_tile_including_gaps.0),
            exact: exact_bytes(memory.max_tile_including_gaps.0),
            about,
            formula: "most bytes below the highest used address of any tile / bytes of a tile",
            bad: target.bytes_per_tile.0 > 0 && share > 1.0,
        },
        HeadlineFigure {
            title: "Memory in use",
            value: numbers.bytes(memory.total_excluding_gaps.0),
            exact: exact_bytes(memory.total_excluding_gaps.0),
            about: format!("{with_gaps} including gaps"),
            formula: "bytes in use on all tiles of a replica; including gaps: bytes below the highest \
                      used address of each tile",
            bad: false,
        },
    ]
}
