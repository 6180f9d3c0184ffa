//! The table `[target.machine]`: constants of the machine. Each is that of `target.name` unless the
//! spec changes it. A machine with changed constants cannot be bought.

use super::checks::SpecConflict;
use super::{CheckedSpecValues, Spec, StreamConnection, calibration, host_path};
use crate::cost_constants::{
    EXTERNAL_SYNC_CYCLES, GATEWAY_BYTES_PER_SECOND, HOST_BYTES_PER_SECOND, INTERNAL_SYNC_CYCLES,
    LADDER_BYTES_PER_SECOND, PAIR_BYTES_PER_SECOND, REMOTE_BYTES_PER_SECOND,
    STREAM_HANDSHAKE_SECONDS,
};
use crate::spec_keys::{ChosenValues, SpecKeyType, SpecTable, SpecValue, spec_table};
use crate::targets::{BytesPerCycle, Chip, DEFAULT_SYSTEM, SystemDef, SystemRates};
use tilescope_report::units::{Bytes, Cycles, Hertz, grouped};
use tilescope_report::{MAX_TILES_PER_REPLICA, MachineChange, MachineUnit, TargetKind};

/// The path of the table.
const PREFIX: &str = "target.machine";

/// The key of the rate of the user's own host.
const OWN_HOST_RATE: &str = "options.host.bytes_per_second";

/// The chip of the default system.
const CHIP: &Chip = DEFAULT_SYSTEM.chip;

/// A rate of a link: from a thousandth to a thousand times the existing rates.
const RATE: SpecKeyType = SpecKeyType::RealFrom(1.0e6, 1.0e14);

spec_table! {
    /// The constants of the machine. The defaults are those of the default system. Unset constants
    /// are those of the system that a spec names ([`inherited`]).
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct MachineSpec {
        /// Tiles of one IPU, in whole columns of the chip
        tiles: u32 = CHIP.tiles, in SpecKeyType::Integer(64, 16_384), written "" => {
            shows_in: "Summary: Target; Memory: number of tiles",
            poplar: "IPUModel tilesPerIPU",
        }
        /// Memory of one tile, in whole memory elements of 16 KiB
        bytes_per_tile: u64 = CHIP.bytes_per_tile.0, in SpecKeyType::Integer(65_536, 16_777_216), written "" => {
            shows_in: "Summary: Target; Memory: limit",
            poplar: "IPUModel bytesPerTile",
        }
        /// Offset of interleaved memory in a tile, a multiple of the memory element size; scales
        /// with `bytes_per_tile` if only that is changed
        interleaved_offset: u64 = CHIP.interleaved_offset.0, in SpecKeyType::Integer(16_384, 16_760_832), written "" => {
            shows_in: "Memory: regions",
        }
        /// Tile clock frequency; rates of links and host in bytes per second do not change
        clock_hz: f64 = CHIP.clock.0 as f64, in SpecKeyType::RealFrom(1.0e6, 1.0e11), written "" => {
            shows_in: "Summary: Target, time on the device",
            poplar: "IPUModel tileClockFrequency",
        }
        /// Bytes that a tile can send and receive per cycle of an exchange
        exchange_bytes_per_cycle: u64 = CHIP.exchange_speed.0, in SpecKeyType::Integer(1, 1024), written "" => {
            shows_in: "Execution trace: DoExchange; Program tree: plans of products and convolutions",
            poplar: "IPUModel exchangeBytesPerCycle",
        }
        /// Cycles of an internal sync, which precedes every exchange
        internal_sync_cycles: u64 = Cycles::from_f64(INTERNAL_SYNC_CYCLES.value).0, in SpecKeyType::Integer(0, 1_000_000), written "" => {
            shows_in: "Execution trace: Internal sync",
        }
        /// Cycles of an external sync, between IPUs or with the host, after the last IPU has
        /// arrived
        external_sync_cycles: u64 = Cycles::from_f64(EXTERNAL_SYNC_CYCLES.value).0, in SpecKeyType::Integer(0, 100_000_000), written "" => {
            shows_in: "Execution trace: External sync",
            poplar: "IPUModel globalSyncCycles",
        }
        /// Rate between the two IPUs of a pair, in each direction
        link_pair_bytes_per_second: f64 = PAIR_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: GlobalExchange",
            poplar: "IPUModel globalExchangeConstraints",
        }
        /// Rate between neighbouring pairs of the ladder, in each direction
        link_ladder_bytes_per_second: f64 = LADDER_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: GlobalExchange",
            poplar: "IPUModel globalExchangeConstraints",
        }
        /// Rate between racks per IPU, in each direction
        link_gateway_bytes_per_second: f64 = GATEWAY_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: collectives of replicas in several racks",
        }
        /// Rate between one IPU and streaming memory
        remote_bytes_per_second: f64 = REMOTE_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: remote buffer copies",
        }
        /// Rate between the host and one IPU, instead of the system's; for the measured rate of
        /// your host, set `options.host.bytes_per_second`
        host_bytes_per_second: f64 = HOST_BYTES_PER_SECOND.value, in RATE, written "" => {
            shows_in: "Execution trace: StreamCopyMid",
        }
        /// Time of an exchange with the host, excluding its transfers
        host_handshake_seconds: f64 = STREAM_HANDSHAKE_SECONDS.value, in SpecKeyType::RealFrom(0.0, 0.1), written "" => {
            shows_in: "Execution trace: StreamCopyBegin and StreamCopyEnd",
        }
    }
}

/// A constant: its key in the table, its title for users, and its unit.
struct MachineConstant {
    key: &'static str,
    title: &'static str,
    unit: MachineUnit,
    value: fn(&MachineSpec) -> f64,
}

const fn constant(
    key: &'static str,
    title: &'static str,
    unit: MachineUnit,
    value: fn(&MachineSpec) -> f64,
) -> MachineConstant {
    MachineConstant { key, title, unit, value }
}

/// All keys of the table, in order.
const CONSTANTS: &[MachineConstant] = &[
    constant("tiles", "tiles", MachineUnit::Count, |of| f64::from(of.tiles)),
    constant("bytes_per_tile", "memory per tile", MachineUnit::Bytes, |of| {
        of.bytes_per_tile as f64
    }),
    constant("interleaved_offset", "interleaved memory from", MachineUnit::Bytes, |of| {
        of.interleaved_offset as f64
    }),
    constant("clock_hz", "clock", MachineUnit::Hertz, |of| of.clock_hz),
    constant("exchange_bytes_per_cycle", "exchange", MachineUnit::BytesPerCycle, |of| {
        of.exchange_bytes_per_cycle as f64
    }),
    constant("internal_sync_cycles", "internal sync", MachineUnit::Cycles, |of| {
        of.internal_sync_cycles as f64
    }),
    constant("external_sync_cycles", "external sync", MachineUnit::Cycles, |of| {
        of.external_sync_cycles as f64
    }),
    constant("link_pair_bytes_per_second", "links of a pair", MachineUnit::BytesPerSecond, |of| {
        of.link_pair_bytes_per_second
    }),
    constant(
        "link_ladder_bytes_per_second",
        "links of the ladder",
        MachineUnit::BytesPerSecond,
        |of| of.link_ladder_bytes_per_second,
    ),
    constant(
        "link_gateway_bytes_per_second",
        "links of racks",
        MachineUnit::BytesPerSecond,
        |of| of.link_gateway_bytes_per_second,
    ),
    constant("remote_bytes_per_second", "streaming memory", MachineUnit::BytesPerSecond, |of| {
        of.remote_bytes_per_second
    }),
    constant("host_bytes_per_second", "host", MachineUnit::BytesPerSecond, |of| {
        of.host_bytes_per_second
    }),
    constant("host_handshake_seconds", "host handshake", MachineUnit::Seconds, |of| {
        of.host_handshake_seconds
    }),
];

impl MachineConstant {
    /// The value in the form of its key.
    #[expect(clippy::cast_possible_truncation, reason = "whole numbers below 2^53")]
    fn spec_value(&self, of: &MachineSpec) -> SpecValue {
        let value = (self.value)(of);
        match self.unit {
            MachineUnit::Count
            | MachineUnit::Bytes
            | MachineUnit::Cycles
            | MachineUnit::BytesPerCycle => SpecValue::Integer(value as i64),
            MachineUnit::Hertz
            | MachineUnit::Seconds
            | MachineUnit::BytesPerSecond
            | MachineUnit::CyclesPerByte
            | MachineUnit::CyclesPerWord => SpecValue::Float(value),
        }
    }
}

impl MachineSpec {
    /// The constants of a chip and of the system around it.
    fn of(chip: &Chip, rates: &SystemRates) -> Self {
        Self {
            tiles: chip.tiles,
            bytes_per_tile: chip.bytes_per_tile.0,
            interleaved_offset: chip.interleaved_offset.0,
            clock_hz: chip.clock.0 as f64,
            exchange_bytes_per_cycle: chip.exchange_speed.0,
            internal_sync_cycles: chip.internal_sync().0,
            external_sync_cycles: rates.external_sync_cycles.0,
            link_pair_bytes_per_second: rates.pair_bytes_per_second,
            link_ladder_bytes_per_second: rates.ladder_bytes_per_second,
            link_gateway_bytes_per_second: rates.gateway_bytes_per_second,
            remote_bytes_per_second: rates.remote_bytes_per_second,
            host_bytes_per_second: rates.host_bytes_per_second,
            host_handshake_seconds: rates.host_handshake_seconds,
        }
    }

    /// Makes a chip with these constants.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between a megahertz and 100 gigahertz"
    )]
    pub(super) fn chip(&self, of: &Chip) -> Chip {
        let sync = Cycles(self.internal_sync_cycles);
        Chip {
            tiles: self.tiles,
            bytes_per_tile: Bytes(self.bytes_per_tile),
            interleaved_offset: Bytes(self.interleaved_offset),
            clock: Hertz(self.clock_hz.round() as u64),
            exchange_speed: BytesPerCycle(self.exchange_bytes_per_cycle),
            internal_sync_cycles: (sync != INTERNAL_SYNC_CYCLES.cycles()).then_some(sync),
            ..*of
        }
    }

    /// The rates of the system around the chips.
    pub(crate) fn rates(&self) -> SystemRates {
        SystemRates {
            pair_bytes_per_second: self.link_pair_bytes_per_second,
            ladder_bytes_per_second: self.link_ladder_bytes_per_second,
            gateway_bytes_per_second: self.link_gateway_bytes_per_second,
            remote_bytes_per_second: self.remote_bytes_per_second,
            host_bytes_per_second: self.host_bytes_per_second,
            host_handshake_seconds: self.host_handshake_seconds,
            external_sync_cycles: Cycles(self.external_sync_cycles),
        }
    }
}

/// The unchanged rates of the system that a spec names.
pub(super) fn rates_of_name(values: &CheckedSpecValues) -> SystemRates {
    let system: &SystemDef = values.field("target", "name").unwrap_or(DEFAULT_SYSTEM);
    let kind = values.field("target", "type").unwrap_or(TargetKind::Ipu);
    let ipus = values.field("target", "ipus").unwrap_or(1);
    let streams = values.field("options.host", "streams");
    let path = match streams {
        Some(StreamConnection::Raw) => None,
        Some(StreamConnection::Framework) | None => Some(host_path::path_of_name(values)),
    };
    let rates = SystemRates::of(system, kind, ipus, path);
    let own_host: Option<f64> = values.field("options.host", "bytes_per_second").flatten();
    let host_bytes_per_second = own_host.unwrap_or(rates.host_bytes_per_second);
    SystemRates { host_bytes_per_second, ..rates }
}

/// The constants of the machine that a spec names, with the calibration of the spec.
fn machine_of_name(values: &CheckedSpecValues) -> MachineSpec {
    let system: &SystemDef = values.field("target", "name").unwrap_or(DEFAULT_SYSTEM);
    let rates = calibration::calibrated_rates(values, rates_of_name(values));
    MachineSpec::of(system.chip, &rates)
}

/// The value of a key of the table that the spec does not set.
pub(super) fn inherited(values: &CheckedSpecValues, path: &str) -> Option<SpecValue> {
    let key = path.strip_prefix(PREFIX)?.strip_prefix('.')?;
    let constant = CONSTANTS.iter().find(|constant| constant.key == key)?;
    let mut machine = machine_of_name(values);
    if let Some(SpecValue::Integer(bytes)) = values.set_value("target.machine.bytes_per_tile") {
        machine.interleaved_offset = interleaved_share(&machine, *bytes);
    }
    Some(constant.spec_value(&machine))
}

/// The offset of interleaved memory in tiles with `bytes` bytes: the same share as in `of`, rounded
/// to whole memory elements.
#[expect(clippy::cast_sign_loss, reason = "in the range of its key")]
fn interleaved_share(of: &MachineSpec, bytes: i64) -> u64 {
    let element = CHIP.memory_element_bytes.0;
    let offset = of.interleaved_offset * bytes as u64 / of.bytes_per_tile.max(1);
    (offset / element).max(1) * element
}

/// The differences between the machine of a spec and the one that it names.
pub(super) fn changes(values: &CheckedSpecValues) -> Vec<MachineChange> {
    let named = machine_of_name(values);
    let machine = MachineSpec::read(PREFIX, values);
    let mut changes = Vec::new();
    for constant in CONSTANTS {
        let inherited = (constant.value)(&named);
        let value = (constant.value)(&machine);
        if inherited.to_bits() != value.to_bits() {
            let key = constant.key.to_owned();
            let title = constant.title.to_owned();
            changes.push(MachineChange { key, title, unit: constant.unit, inherited, value });
        }
    }
    changes
}

/// Rejects constants that no machine has together.
pub(super) fn check(values: &CheckedSpecValues, spec: &Spec) -> SpecConflict {
    tiles(spec).or_else(|| memory(spec)).or_else(|| host_rates(values))
}

fn tiles(spec: &Spec) -> SpecConflict {
    let chip = &spec.target.chip;
    let ipus = spec.target.ipus;
    let tiles = chip.tiles;
    let column = chip.tiles_per_column;
    let problem = if !tiles.is_multiple_of(column) {
        let fewer = tiles / column * column;
        format!(
            "{} tiles do not form whole columns of {column}; the nearest numbers are {} and {}",
            grouped(tiles.into()),
            grouped(fewer.into()),
            grouped((fewer + column).into())
        )
    } else if tiles > MAX_TILES_PER_REPLICA / ipus {
        format!(
            "{ipus} IPUs of {} tiles exceed the {} tiles that a report can hold",
            grouped(tiles.into()),
            grouped(MAX_TILES_PER_REPLICA.into())
        )
    } else {
        return None;
    };
    Some(("target.machine.tiles", problem))
}

fn memory(spec: &Spec) -> SpecConflict {
    let chip = &spec.target.chip;
    let element = chip.memory_element_bytes;
    let offset_key = "target.machine.interleaved_offset";
    let sizes = [
        ("target.machine.bytes_per_tile", chip.bytes_per_tile),
        (offset_key, chip.interleaved_offset),
    ];
    for (key, bytes) in sizes {
        if bytes % element != Bytes::ZERO {
            let fewer = bytes.0 / element.0 * element.0;
            let problem = format!(
                "{} bytes are not a multiple of the memory element size {}; the nearest sizes are \
                 {} and {}",
                grouped(bytes.0),
                grouped(element.0),
                grouped(fewer),
                grouped(fewer + element.0)
            );
            return Some((key, problem));
        }
    }
    if chip.interleaved_offset < chip.bytes_per_tile {
        return None;
    }
    let problem = format!(
        "interleaved memory cannot begin at {}: a tile has {} bytes",
        grouped(chip.interleaved_offset.0),
        grouped(chip.bytes_per_tile.0)
    );
    Some((offset_key, problem))
}

fn host_rates(values: &CheckedSpecValues) -> SpecConflict {
    let key = "target.machine.host_bytes_per_second";
    let both = values.is_set(key) && values.is_set(OWN_HOST_RATE);
    if !both {
        return None;
    }
    Some((key, format!("{OWN_HOST_RATE} already sets the rate of the host; remove one of them")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::specification::keys::KEYS;

    #[test]
    fn every_key_is_a_constant_with_a_title_of_its_own() {
        let keys: Vec<&str> =
            KEYS.iter().filter_map(|key| key.path.strip_prefix("target.machine.")).collect();
        let constants: Vec<&str> = CONSTANTS.iter().map(|constant| constant.key).collect();
        assert_eq!(keys, constants);
        for (position, constant) in CONSTANTS.iter().enumerate() {
            let before = &CONSTANTS[..position];
            assert!(before.iter().all(|other| other.title != constant.title), "{}", constant.key);
        }
    }
}
