//! The most important figures of a report.

use crate::confidence::{Banded, Confidence};
use crate::limits::LimitsSummary;
use crate::summary::{ExecutionSummary, MemorySummary, ReportSummary};
use serde::Serialize;
use tilescope_report::units::{NumberFormat, fine_percent, grouped, percent, seconds, with_prefix};
use tilescope_report::{ProgramOutcome, Target};

/// A headline figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeadlineFigure {
    pub title: &'static str,
    pub value: String,
    pub about: String,
    /// Its derivation; empty if the title says enough.
    pub formula: &'static str,
    /// True if it is the reason that the program cannot run.
    pub bad: bool,
}

/// The figures of the run, its share of the peak, and the memory use of tiles.
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
            formula: "tiles with more bytes in use, or overflowed, than a tile has",
            bad: true,
        }],
        (None, _) => vec![HeadlineFigure {
            title: "Run",
            value: "none".to_owned(),
            about: "compiled only".to_owned(),
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
            about: "the report records no memory".to_owned(),
            formula: "",
            bad: false,
        }),
    }
    figures
}

fn of_run(run: &ExecutionSummary, confidence: Option<&Confidence>) -> Vec<HeadlineFigure> {
    let time = if run.seconds > 0.0 { seconds(run.seconds) } else { "clock unknown".to_owned() };
    let time = format!("{time}{}", width_words(confidence.and_then(|of| of.cycles)));
    let rate_width = width_words(confidence.and_then(|of| of.samples_per_second));
    let mut cards = vec![HeadlineFigure {
        title: "Run",
        value: format!("{} cycles", run.total_cycles),
        about: time,
        formula: "end of the last step - start of the first; time = cycles / tile clock",
        bad: false,
    }];
    cards.extend(run.samples_per_second.map(|rate| HeadlineFigure {
        title: "Throughput",
        value: grouped(rate.round() as u64),
        about: if rate_width.is_empty() {
            format!("samples per second, {} samples", grouped(run.samples.unwrap_or(0)))
        } else {
            format!("samples per second{rate_width}")
        },
        formula: "samples of all host calls in the run / time on the device",
        bad: false,
    }));
    cards
}

/// `, -12 to +14 %`; empty without a band.
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
        format!("of {rate} an IPU, AMP {}", peak.name)
    });
    let (value, about) = match (limits.utilisation, limits.unknown) {
        (Some(share), _) => (fine_percent(share), peak),
        (None, Some(why)) => ("not known".to_owned(), why.sentence().to_owned()),
        (None, None) => ("not known".to_owned(), String::new()),
    };
    HeadlineFigure {
        title: "Utilisation of peak",
        value,
        about,
        formula: "sum over operations of FLOPs their results need / (FLOPs per cycle of a tile's \
                  matrix engine for their data type x tiles of an IPU) / (cycles of the run x IPUs \
                  of a replica); recomputation does not count. Limits shows where the rest goes",
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
            let unsure = if memory.fit.is_uncertain() { memory.fit.words() } else { "with gaps" };
            format!("{} of {}, {unsure}", percent(share), numbers.bytes(target.bytes_per_tile.0))
        }
    };
    let with_gaps = numbers.bytes(memory.total_including_gaps.0);
    [
        HeadlineFigure {
            title: "Fullest tile",
            value: numbers.bytes(memory.max_tile_including_gaps.0),
            about,
            formula: "most bytes below the highest used address of any tile / bytes of a tile",
            bad: target.bytes_per_tile.0 > 0 && share > 1.0,
        },
        HeadlineFigure {
            title: "Memory in use",
            value: numbers.bytes(memory.total_excluding_gaps.0),
            about: format!("{with_gaps} with gaps"),
            formula: "bytes in use on all tiles of a replica; with gaps: bytes below the highest \
                      used address of each tile",
            bad: false,
        },
    ]
}
