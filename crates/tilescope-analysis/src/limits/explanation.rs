//! Explanation of the limits of an operation as text.

use super::{CycleClass, LimitsRow, Machine, OperationLimits, engine_title};
use tilescope_report::units::{Cycles, NumberFormat, fine_percent, grouped, percent, with_prefix};

/// A line of an explanation.
#[derive(Clone, Debug, PartialEq)]
pub struct ExplanationLine {
    pub title: &'static str,
    /// The class in question; `None` for the line about the ideal.
    pub class: Option<CycleClass>,
    /// Cycles, and their share of all cycles of the operation, if known.
    pub cycles: Option<Cycles>,
    pub share: Option<f64>,
    pub sentence: String,
}

/// Explains the lower bound of an operation, and its cycles by class, the largest first.
pub fn explain(row: &LimitsRow, machine: &Machine, numbers: NumberFormat) -> Vec<ExplanationLine> {
    let limits = &row.limits;
    let total = limits.total().max(Cycles(1)).as_f64();
    let share = |cycles: Cycles| cycles.as_f64() / total;
    let ideal = limits.ideal.map(|ideal| ideal.cycles);
    let best = ExplanationLine {
        title: "Ideal",
        class: None,
        cycles: ideal,
        share: ideal.map(share),
        sentence: best(limits, machine, numbers),
    };
    let mut classes: Vec<(CycleClass, Cycles)> =
        limits.cycles.iter().filter(|(_, cycles)| !cycles.is_zero()).collect();
    classes.sort_by_key(|(class, cycles)| (std::cmp::Reverse(*cycles), *class));
    let lines = classes.into_iter().map(|(class, cycles)| ExplanationLine {
        title: class.title(),
        class: Some(class),
        cycles: Some(cycles),
        share: Some(share(cycles)),
        sentence: of_class(class, limits, machine, numbers),
    });
    std::iter::once(best).chain(lines).collect()
}

/// Explains the bound that determines the ideal of an operation.
fn best(limits: &OperationLimits, machine: &Machine, numbers: NumberFormat) -> String {
    let tiles = grouped(machine.tiles.into());
    let Some(ideal) = limits.ideal else { return why_unknown(limits).to_owned() };
    let moved = |bytes: Option<u64>| bytes.map_or_else(String::new, |bytes| numbers.bytes(bytes));
    match (ideal.cycles, ideal.bound, limits.engine) {
        (Cycles::ZERO, ..) => {
            "It has no FLOPs and only changes layouts, or needs less than a cycle for both."
                .to_owned()
        }
        (_, CycleClass::Compute, Some(engine)) => format!(
            "Its {} at the peak of {}: {} FLOPs per cycle on each of {tiles} tiles.",
            with_prefix(limits.flops.unwrap_or(0) as f64, "FLOPs"),
            engine_title(engine.rate),
            engine.rate.flops_per_cycle,
        ),
        (_, CycleClass::Exchange, _) => {
            format!("Its exchanges if all {tiles} tiles send and receive all the time.")
        }
        (_, CycleClass::Links, _) => {
            let bytes = moved(limits.links.map(|of| of.bytes.0));
            format!("Its {bytes} between IPUs over all links of an IPU.")
        }
        (_, CycleClass::Host, _) => {
            let bytes = moved(limits.host.map(|of| of.bytes.0));
            format!("Its {bytes} from and to the host over the interface of an IPU.")
        }
        (_, CycleClass::RemoteBuffers, _) => {
            let bytes = moved(limits.remote_buffers.map(|of| of.bytes.0));
            format!("Its {bytes} from and to remote buffers at full speed.")
        }
        _ => String::new(),
    }
}

/// The reason that the ideal of an operation is not known.
fn why_unknown(limits: &OperationLimits) -> &'static str {
    let computes = limits.compute.is_none() && !limits.cycles[CycleClass::Compute].is_zero();
    let uses = [limits.links, limits.host, limits.remote_buffers];
    let says_bytes = limits.exchange.is_some() || uses.iter().any(Option::is_some);
    match limits.flops {
        None if computes => "Unknown: the FLOPs of its executions were not recorded.",
        Some(_) if computes => "Unknown: the chip, or the engine of its vertices, is not recorded.",
        _ if says_bytes => "Unknown: the bandwidth of the machine was not recorded.",
        _ => "Unknown: the bytes of its copies and exchanges were not recorded.",
    }
}

/// Explains the cycles of a class.
fn of_class(
    class: CycleClass,
    limits: &OperationLimits,
    machine: &Machine,
    numbers: NumberFormat,
) -> String {
    let of_interface = |used: Option<super::InterfaceUse>, what: &str| {
        let Some(used) = used else { return String::new() };
        let share = used.of_limit.map_or_else(String::new, |share| {
            format!(", {} of what {what} could move in this time", percent(share))
        });
        format!("{}{share}.", numbers.bytes(used.bytes.0))
    };
    match class {
        CycleClass::Compute => of_compute(limits),
        CycleClass::Balance => {
            let tiles = grouped(machine.tiles.into());
            let used = limits.tiles_in_use.map(|used| grouped(Cycles::from_f64(used.round()).0));
            let balance = limits.tile_balance.map(percent);
            match used.zip(balance) {
                Some((used, balance)) => format!(
                    "{used} of {tiles} tiles take part in its compute sets, which use {balance} \
                     of the time of all tiles."
                ),
                None => String::new(),
            }
        }
        CycleClass::Exchange => match limits.exchange {
            Some(used) => match (used.of_fabric, used.of_tile) {
                (Some(fabric), Some(tile)) => format!(
                    "{} of what all tiles could move, {} of what the busiest ones could.",
                    percent(fabric),
                    percent(tile),
                ),
                (Some(fabric), None) => {
                    format!("{} of what all tiles could move.", percent(fabric))
                }
                _ => String::new(),
            },
            None => String::new(),
        },
        CycleClass::Rearrangement => {
            "Its operands do not have the layout that its plan needs, or its results do not have \
             the layout that the next operation needs."
                .to_owned()
        }
        CycleClass::SyncAndStart => {
            "The time before the tiles of each compute set and exchange begin. Many short steps \
             cost more."
                .to_owned()
        }
        CycleClass::Host => of_interface(limits.host, "the host interface"),
        CycleClass::HostWait => "Waiting until the host is ready.".to_owned(),
        CycleClass::RemoteBuffers => of_interface(limits.remote_buffers, "streaming memory"),
        CycleClass::Links => of_interface(limits.links, "the links of an IPU"),
        CycleClass::Other => "This version does not know this kind of step.".to_owned(),
    }
}

fn of_compute(limits: &OperationLimits) -> String {
    let Some(split) = limits.compute else {
        return "Their work was not recorded.".to_owned();
    };
    let mut parts = Vec::new();
    if limits.flops > Some(0) {
        parts.push(format!("{} at the peak of its engine", grouped(split.at_peak.0)));
    }
    if let Some(padded) = limits.padded().filter(|padded| *padded > 0.0) {
        let cycles = grouped(split.padding.0);
        let share = percent(padded);
        parts.push(format!("{cycles} on padding ({share} of what vertices multiply)"));
    }
    parts.push(format!("{} below the peak", grouped(split.below_peak.0)));
    let of_peak = limits.of_peak.filter(|_| limits.flops > Some(0)).map_or_else(
        || "It has no FLOPs".to_owned(),
        |share| format!("{} of the peak over all its cycles", fine_percent(share)),
    );
    format!("{of_peak}: {}.", parts.join(", "))
}
