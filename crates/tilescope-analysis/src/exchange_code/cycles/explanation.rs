//! Explanation of an exchange as text.

use super::{ExchangeCycles, ExchangeRun};
use crate::limits::{BusiestTile, Machine};
use tilescope_report::units::{Cycles, NumberFormat, grouped, percent};
use tilescope_report::{MachineInterface, ProgramKind};

/// A line of an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeLine {
    pub title: &'static str,
    /// A figure with its unit; `None` if it is not known.
    pub value: Option<String>,
    /// The derivation of the figure, or the reason that it is not known.
    pub sentence: String,
}

/// The reason for figures that need an execution.
const NOT_RUN: &str = "Its executions were not recorded.";

/// Explains the cycles of an exchange and their lower bound, with figures in the format `numbers`.
pub fn explain_exchange(
    of: &ExchangeCycles,
    machine: &Machine,
    numbers: NumberFormat,
) -> Vec<ExchangeLine> {
    let run = of.run.filter(|run| run.executions > 0);
    let least = of.mean_least();
    let bound = match least {
        Some(_) => lower_bound(of, machine, numbers),
        None => why_unknown(of, machine).to_owned(),
    };
    vec![
        arrival_spread(run),
        start(run),
        transfer(of, run),
        ExchangeLine { title: "Lower bound", value: least.map(cycles), sentence: bound },
        avoidable(of, run),
        ExchangeLine {
            title: "Tile balance",
            value: of.balance(machine).map(percent),
            sentence: balance(of).to_owned(),
        },
    ]
}

fn lower_bound(of: &ExchangeCycles, machine: &Machine, numbers: NumberFormat) -> String {
    let internal = of.kind == ProgramKind::DoExchange;
    if internal && of.traffic.is_none() {
        return "Mean cycles in which its busiest tile sends or receives, as planned by the \
                compiler."
            .to_owned();
    }
    let Some(traffic) = of.traffic.filter(|_| internal) else {
        return "Its bytes at full speed: bytes of its steps / bytes per cycle of the interface of \
                an IPU."
            .to_owned();
    };
    let sends = busiest_words(traffic.sender, "sends", numbers);
    let receives = busiest_words(traffic.receiver, "receives", numbers);
    let alone = machine.limits.bytes_per_cycle(MachineInterface::TileSend).unwrap_or_default();
    let shared = if traffic.received > traffic.sent {
        let shared = machine.limits.bytes_per_cycle(MachineInterface::Tile).unwrap_or_default();
        format!(", {shared} for data that another tile on its bus also receives")
    } else {
        String::new()
    };
    format!("Of its tiles, {sends} and {receives}, at {alone} B per cycle{shared}.")
}

/// The busiest tile and its bytes: `tile 7 sends 2 KiB`.
fn busiest_words(tile: Option<BusiestTile>, verb: &str, numbers: NumberFormat) -> String {
    let Some(of) = tile else { return format!("no tile {verb} data") };
    format!("tile {} {verb} {}", grouped(of.tile.into()), numbers.bytes(of.bytes.0))
}

fn why_unknown(of: &ExchangeCycles, machine: &Machine) -> &'static str {
    let knows_speed = machine.limits.bytes_per_cycle(MachineInterface::TileSend).is_some();
    match (of.kind, of.traffic) {
        (ProgramKind::DoExchange, None) => "The traffic of each tile is not recorded.",
        (ProgramKind::DoExchange, Some(_)) if !knows_speed => {
            "The exchange rate of this machine's tiles is unknown."
        }
        _ if of.run.is_none_or(|run| run.executions == 0) => NOT_RUN,
        _ => "The report does not record the bytes of its steps, or the rate of the interface.",
    }
}

fn cycles(cycles: Cycles) -> String {
    grouped(cycles.0)
}

fn arrival_spread(run: Option<ExchangeRun>) -> ExchangeLine {
    let (value, sentence) = match run.map(|run| (run, run.arrivals)) {
        None => (None, NOT_RUN.to_owned()),
        Some((run, Err(unknown))) => (None, unknown.sentence(run.executions)),
        Some((_, Ok(of))) => {
            let mut sentence = "Mean cycles between the first and the last tile to finish the \
            previous step"
                .to_owned();
            match of.last {
                Some(tile) => {
                    let come = match of.last_tiles {
                        0 | 1 => "comes".to_owned(),
                        tiles => format!("and {} more come", grouped(u64::from(tiles) - 1)),
                    };
                    let most = cycles(of.widest);
                    let tile = grouped(tile.into());
                    sentence += &format!("; {most} at most, when tile {tile} {come} last.");
                }
                None => sentence += ": all tiles arrive together.",
            }
            (Some(cycles(of.mean_spread())), sentence)
        }
    };
    ExchangeLine { title: "Arrival spread", value, sentence }
}

fn start(run: Option<ExchangeRun>) -> ExchangeLine {
    let value = run.and_then(|run| run.mean_start());
    let sentence = match (value, run) {
        (Some(_), _) => "Cycles of a step before its tiles move data, without syncs.",
        (None, Some(_)) => "The cycles of its tiles are not recorded, so their start is unknown.",
        (None, None) => NOT_RUN,
    };
    ExchangeLine { title: "Start", value: value.map(cycles), sentence: sentence.to_owned() }
}

fn transfer(of: &ExchangeCycles, run: Option<ExchangeRun>) -> ExchangeLine {
    let sentence = match run {
        None => NOT_RUN.to_owned(),
        Some(run) => {
            let all =
                if run.knows_start { "Cycles of its slowest tile" } else { "Cycles of a step" };
            let steps = match run.executions {
                1 => "one execution".to_owned(),
                steps => format!("{} executions", grouped(steps)),
            };
            let ipu = of.ipu;
            format!("{all}, after the last tile has arrived; mean over {steps} on IPU {ipu}.")
        }
    };
    let value = run.map(|run| cycles(run.mean_transfer()));
    ExchangeLine { title: "Transfer", value, sentence }
}

fn avoidable(of: &ExchangeCycles, run: Option<ExchangeRun>) -> ExchangeLine {
    let value = run.and_then(|run| run.avoidable());
    let internal = of.kind == ProgramKind::DoExchange;
    let sentence = match (value, run) {
        (Some(Cycles::ZERO), _) if internal => {
            "None: its busiest tile transfers data all the time. To make it faster, spread the \
             data over more tiles."
        }
        (Some(Cycles::ZERO), _) => "None: it transfers data at full rate.",
        (Some(_), _) => "(Transfer - lower bound) x executions, in the whole run.",
        (None, Some(_)) => "No lower bound known.",
        (None, None) => NOT_RUN,
    };
    ExchangeLine { title: "Avoidable", value: value.map(cycles), sentence: sentence.to_owned() }
}

fn balance(of: &ExchangeCycles) -> &'static str {
    match (of.kind, of.traffic) {
        (ProgramKind::DoExchange, Some(_)) => {
            "Mean cycles of the tiles of the IPU / cycles of the busiest tile, which the others \
             wait for."
        }
        (ProgramKind::DoExchange, None) => "The traffic of each tile is not recorded.",
        _ => "All tiles of the IPU share the interface for its bytes.",
    }
}
