//! The table `[target.calibration]`: constants of the cost model that were fitted to a measurement.
//!
//! None of these constants is published, and each has bounds beyond which it would lose its
//! meaning. `tilescope calibrate` fits them and writes the table. Every report that is simulated
//! from a spec with the table says so. Constants of tiles belong to the process
//! ([`cost_constants`](crate::cost_constants)), so a process simulates with a single calibration.
//! Rates and times of the system around the tiles replace those of the system.

use super::CheckedSpecValues;
use crate::cost_constants::{
    COMPUTE_START_CYCLES, CostConstant, EXCHANGE_START_CYCLES, EXTERNAL_SYNC_CYCLES,
    HOST_BYTES_PER_SECOND, KERNEL_GATHER_CYCLES_PER_BYTE, LADDER_BYTES_PER_SECOND, MESSAGE_CYCLES,
    ON_TILE_COPY_CYCLES, PAIR_BYTES_PER_SECOND, POOL_WORKER_CYCLES, RAGGED_PIECE_COPY_CYCLES,
    REMOTE_BYTES_PER_SECOND, STREAM_HANDSHAKE_SECONDS, SUBWORD_REARRANGE_CYCLES_PER_BYTE,
    WEIGHT_REARRANGE_CYCLES_PER_WORD,
};
use crate::spec_keys::{SpecKeyType, SpecTable, spec_table};
use crate::targets::SystemRates;
use tilescope_report::units::Cycles;
use tilescope_report::{CALIBRATION_PREFIX, MachineChange, MachineUnit};

/// The path of the table.
pub const CALIBRATION_TABLE: &str = "target.calibration";

/// A rate of a link: from a hundred kilobytes to a terabyte per second.
const RATE: SpecKeyType = SpecKeyType::RealFrom(1.0e5, 1.0e12);

/// Work for each byte or word that is copied: from none to a few instructions.
const PER_PIECE: SpecKeyType = SpecKeyType::RealFrom(0.0, 5.0);

spec_table! {
    /// Constants of the cost model. The defaults are those of the simulator.
    #[derive(Clone, Debug, PartialEq)]
    pub struct CalibrationSpec {
        /// The measurement to which the constants of this table were fitted, and the remaining
        /// error
        source: String = String::new() => {
            shows_in: "Summary: notes",
        }
        /// Cycles to start an exchange, including its internal sync
        exchange_start_cycles: u64 = Cycles::from_f64(EXCHANGE_START_CYCLES.value).0, in SpecKeyType::Integer(100, 3_000) => {
            shows_in: "Execution trace: DoExchange",
        }
        /// Cycles to start a compute set, including its sync
        compute_start_cycles: u64 = Cycles::from_f64(COMPUTE_START_CYCLES.value).0, in SpecKeyType::Integer(0, 1_000) => {
            shows_in: "Execution trace: OnTileExecute",
        }
        /// Cycles before on-tile copies move the first byte
        on_tile_copy_cycles: u64 = Cycles::from_f64(ON_TILE_COPY_CYCLES.value).0, in SpecKeyType::Integer(0, 2_000) => {
            shows_in: "Execution trace: copies that change a layout",
        }
        /// Cycles per message of exchanges with many short messages, excluding its words
        message_cycles: u64 = Cycles::from_f64(MESSAGE_CYCLES.value).0, in SpecKeyType::Integer(0, 50) => {
            shows_in: "Execution trace: exchanges of many short messages",
        }
        /// Cycles of a pooling worker beyond those of the published formula
        pool_worker_cycles: u64 = Cycles::from_f64(POOL_WORKER_CYCLES.value).0, in SpecKeyType::Integer(0, 200) => {
            shows_in: "Execution trace: pooling",
        }
        /// Cycles to gather one piece if channel groups do not divide the channels
        ragged_piece_copy_cycles: f64 = RAGGED_PIECE_COPY_CYCLES.value, in SpecKeyType::RealFrom(0.0, 200.0) => {
            shows_in: "Execution trace: planned operations with odd sizes",
        }
        /// Cycles per word to rearrange broadcast weights on the tile
        weight_rearrange_cycles_per_word: f64 = WEIGHT_REARRANGE_CYCLES_PER_WORD.value, in PER_PIECE => {
            shows_in: "Execution trace: products and convolutions",
        }
        /// Cycles per byte to rearrange data with elements smaller than a word
        subword_rearrange_cycles_per_byte: f64 = SUBWORD_REARRANGE_CYCLES_PER_BYTE.value, in PER_PIECE => {
            shows_in: "Execution trace: planned operations, layout changes",
        }
        /// Cycles per byte to gather the input of kernels larger than one
        kernel_gather_cycles_per_byte: f64 = KERNEL_GATHER_CYCLES_PER_BYTE.value, in PER_PIECE => {
            shows_in: "Execution trace: convolutions",
        }
        /// Cycles of an external sync, between IPUs or with the host, after the last IPU has
        /// arrived
        external_sync_cycles: u64 = Cycles::from_f64(EXTERNAL_SYNC_CYCLES.value).0, in SpecKeyType::Integer(0, 100_000), written "" => {
            shows_in: "Execution trace: External sync",
        }
        /// Time of an exchange with the host, excluding its transfers
        host_handshake_seconds: f64 = STREAM_HANDSHAKE_SECONDS.value, in SpecKeyType::RealFrom(0.0, 0.01), written "" => {
            shows_in: "Execution trace: StreamCopyBegin and StreamCopyEnd",
        }
        /// Rate between the host and one IPU
        host_bytes_per_second: f64 = HOST_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: StreamCopyMid",
        }
        /// Rate between one IPU and streaming memory
        remote_bytes_per_second: f64 = REMOTE_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: remote buffer copies",
        }
        /// Rate between the two IPUs of a pair, in each direction
        link_pair_bytes_per_second: f64 = PAIR_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: GlobalExchange",
        }
        /// Rate between neighbouring pairs of the ladder, in each direction
        link_ladder_bytes_per_second: f64 = LADDER_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: GlobalExchange",
        }
    }
}

/// The scope of a constant.
#[derive(Clone, Copy)]
enum UsedIn {
    /// The tiles, in the whole process.
    Process(&'static CostConstant),
    /// The system of a spec.
    Rates(fn(&SystemRates) -> f64, fn(&mut SystemRates, f64)),
}

/// A constant: its key in the table, its title for users, its unit and its scope.
struct Calibrated {
    key: &'static str,
    title: &'static str,
    unit: MachineUnit,
    value: fn(&CalibrationSpec) -> f64,
    used: UsedIn,
}

macro_rules! of_process {
    ($key:ident, $title:literal, $unit:ident, $constant:ident) => {
        Calibrated {
            key: stringify!($key),
            title: $title,
            unit: MachineUnit::$unit,
            value: |of| of.$key as f64,
            used: UsedIn::Process(&$constant),
        }
    };
}

macro_rules! of_rates {
    ($key:ident, $rate:ident, $title:literal, $unit:ident) => {
        Calibrated {
            key: stringify!($key),
            title: $title,
            unit: MachineUnit::$unit,
            value: |of| of.$key,
            used: UsedIn::Rates(|rates| rates.$rate, |rates, value| rates.$rate = value),
        }
    };
}

/// All numbers of the table, in order.
const CONSTANTS: &[Calibrated] = &[
    of_process!(exchange_start_cycles, "exchange start", Cycles, EXCHANGE_START_CYCLES),
    of_process!(compute_start_cycles, "compute set start", Cycles, COMPUTE_START_CYCLES),
    of_process!(on_tile_copy_cycles, "on-tile copy start", Cycles, ON_TILE_COPY_CYCLES),
    of_process!(message_cycles, "short message", Cycles, MESSAGE_CYCLES),
    of_process!(pool_worker_cycles, "pooling worker", Cycles, POOL_WORKER_CYCLES),
    of_process!(ragged_piece_copy_cycles, "ragged piece copy", Cycles, RAGGED_PIECE_COPY_CYCLES),
    of_process!(
        weight_rearrange_cycles_per_word,
        "weight rearrangement",
        CyclesPerWord,
        WEIGHT_REARRANGE_CYCLES_PER_WORD
    ),
    of_process!(
        subword_rearrange_cycles_per_byte,
        "subword rearrangement",
        CyclesPerByte,
        SUBWORD_REARRANGE_CYCLES_PER_BYTE
    ),
    of_process!(
        kernel_gather_cycles_per_byte,
        "kernel gathering",
        CyclesPerByte,
        KERNEL_GATHER_CYCLES_PER_BYTE
    ),
    Calibrated {
        key: "external_sync_cycles",
        title: "external sync",
        unit: MachineUnit::Cycles,
        value: |of| of.external_sync_cycles as f64,
        used: UsedIn::Rates(
            |rates| rates.external_sync_cycles.as_f64(),
            |rates, value| rates.external_sync_cycles = Cycles::from_f64(value),
        ),
    },
    of_rates!(host_handshake_seconds, host_handshake_seconds, "host handshake", Seconds),
    of_rates!(host_bytes_per_second, host_bytes_per_second, "host", BytesPerSecond),
    of_rates!(remote_bytes_per_second, remote_bytes_per_second, "streaming memory", BytesPerSecond),
    of_rates!(link_pair_bytes_per_second, pair_bytes_per_second, "links of a pair", BytesPerSecond),
    of_rates!(
        link_ladder_bytes_per_second,
        ladder_bytes_per_second,
        "links of the ladder",
        BytesPerSecond
    ),
];

/// A constant that can be fitted to a measurement, with its value in a spec.
#[derive(Clone, Debug, PartialEq)]
pub struct CalibratedConstant {
    /// Its key in a spec.
    pub key: String,
    /// Its title for users.
    pub title: &'static str,
    /// The value in a simulation of the spec.
    pub value: f64,
    /// The bounds of the value.
    pub least: f64,
    pub most: f64,
    /// True for a constant with integer values.
    pub whole: bool,
}

/// The path of a key of the table.
fn path(key: &str) -> String {
    format!("{CALIBRATION_TABLE}.{key}")
}

/// The constants that the table sets, with their values.
fn set<'a>(values: &'a CheckedSpecValues) -> impl Iterator<Item = (&'static Calibrated, f64)> + 'a {
    let calibration = CalibrationSpec::read(CALIBRATION_TABLE, values);
    CONSTANTS
        .iter()
        .filter(|of| values.is_set(&path(of.key)))
        .map(move |of| (of, (of.value)(&calibration)))
}

/// Replaces the rates of a system that the table sets.
pub(super) fn calibrated_rates(values: &CheckedSpecValues, mut rates: SystemRates) -> SystemRates {
    for (constant, value) in set(values) {
        if let UsedIn::Rates(_, change) = constant.used {
            change(&mut rates, value);
        }
    }
    rates
}

/// The constants of the process that the table sets.
pub(super) fn process_constants(values: &CheckedSpecValues) -> Vec<(&'static CostConstant, f64)> {
    set(values)
        .filter_map(|(constant, value)| match constant.used {
            UsedIn::Process(of) => Some((of, value)),
            UsedIn::Rates(..) => None,
        })
        .collect()
}

/// The differences between the constants of a spec and those of the simulator. `rates` are those of
/// its system.
pub(super) fn changes(values: &CheckedSpecValues, rates: &SystemRates) -> Vec<MachineChange> {
    let mut changes = Vec::new();
    for (constant, value) in set(values) {
        let inherited = match constant.used {
            UsedIn::Process(of) => of.value,
            UsedIn::Rates(value, _) => value(rates),
        };
        if inherited.to_bits() == value.to_bits() {
            continue;
        }
        changes.push(MachineChange {
            key: format!("{CALIBRATION_PREFIX}{}", constant.key),
            title: constant.title.to_owned(),
            unit: constant.unit,
            inherited,
            value,
        });
    }
    changes
}

/// All constants that can be fitted, with their values in a spec. Unset constants of tiles are
/// those of the simulator, and unset constants of the system are those of its machine.
pub(super) fn constants(
    calibration: &CalibrationSpec,
    rates: &SystemRates,
) -> Vec<CalibratedConstant> {
    let mut constants = Vec::new();
    for of in CONSTANTS {
        let key = path(of.key);
        let declared = super::keys::KEYS.iter().find(|declared| declared.path == key);
        #[expect(clippy::cast_precision_loss, reason = "bounds are far below 2^53")]
        let (least, most, whole) = match declared.map(|declared| &declared.value_type) {
            Some(SpecKeyType::Integer(least, most)) => (*least as f64, *most as f64, true),
            Some(SpecKeyType::RealFrom(least, most)) => (*least, *most, false),
            _ => continue,
        };
        let value = match of.used {
            UsedIn::Process(_) => (of.value)(calibration),
            UsedIn::Rates(value, _) => value(rates),
        };
        let value = value.clamp(least, most);
        constants.push(CalibratedConstant { key, title: of.title, value, least, most, whole });
    }
    constants
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::keys::KEYS;

    #[test]
    fn every_number_of_the_table_is_a_constant_within_its_bounds() {
        let table = path("");
        let keys = KEYS.iter().filter_map(|key| key.path.strip_prefix(&table));
        let keys: Vec<&str> = keys.filter(|key| *key != "source").collect();
        let constants: Vec<&str> = CONSTANTS.iter().map(|constant| constant.key).collect();
        assert_eq!(keys, constants);
        let defaults = CalibrationSpec::default();
        for constant in CONSTANTS {
            let value = (constant.value)(&defaults);
            let key = KEYS.iter().find(|key| key.path == path(constant.key)).unwrap();
            assert!(
                key.value_type.accept(&crate::spec_keys::SpecValue::Float(value)).is_ok()
                    || value.fract() == 0.0,
                "{}",
                constant.key
            );
            if let UsedIn::Process(of) = constant.used {
                assert_eq!(of.value, value, "{}", constant.key);
            }
        }
    }
}
