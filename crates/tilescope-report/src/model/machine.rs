//! The differences of a machine from one that can be bought, and its power and price.

use crate::units::{Hertz, binary_bytes, grouped, grouped_real, seconds};

/// The unit of a constant of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineUnit {
    /// A number of things: tiles.
    Count,
    Bytes,
    Hertz,
    Cycles,
    Seconds,
    BytesPerCycle,
    BytesPerSecond,
    CyclesPerByte,
    CyclesPerWord,
}

impl MachineUnit {
    /// All units.
    pub const ALL: [Self; 9] = [
        Self::Count,
        Self::Bytes,
        Self::Hertz,
        Self::Cycles,
        Self::Seconds,
        Self::BytesPerCycle,
        Self::BytesPerSecond,
        Self::CyclesPerByte,
        Self::CyclesPerWord,
    ];

    /// The name in the file, and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Bytes => "bytes",
            Self::Hertz => "hertz",
            Self::Cycles => "cycles",
            Self::Seconds => "seconds",
            Self::BytesPerCycle => "bytes_per_cycle",
            Self::BytesPerSecond => "bytes_per_second",
            Self::CyclesPerByte => "cycles_per_byte",
            Self::CyclesPerWord => "cycles_per_word",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// A value in this unit, as users read it: `16 B/cycle`.
    pub fn text(self, value: f64) -> String {
        let whole = whole(value);
        match self {
            Self::Count => grouped(whole),
            Self::Bytes => binary_bytes(whole),
            Self::Hertz => Hertz(whole).to_string(),
            Self::Cycles if value.fract() != 0.0 => format!("{} cycles", grouped_real(value)),
            Self::Cycles => format!("{} cycles", grouped(whole)),
            Self::Seconds => seconds(value),
            Self::BytesPerCycle => format!("{} B/cycle", grouped(whole)),
            Self::BytesPerSecond => format!("{} GB/s", grouped_real(value / 1e9)),
            Self::CyclesPerByte => format!("{value} cycles/B"),
            Self::CyclesPerWord => format!("{value} cycles/word"),
        }
    }
}

/// The nearest integer, if the value is one or nearly one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "casts of floats stop at the ends of the range"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The prefix of keys of constants that were fitted to a measurement. They change how a machine is
/// simulated, not the machine.
pub const CALIBRATION_PREFIX: &str = "calibration.";

/// A constant that differs from the machine that this one is based on, or from its usual
/// simulation.
#[derive(Clone, Debug, PartialEq)]
pub struct MachineChange {
    /// Name in a spec: `exchange_bytes_per_cycle`, `calibration.exchange_start_cycles`.
    pub key: String,
    /// Name for users: `exchange`.
    pub title: String,
    pub unit: MachineUnit,
    /// The value of the machine that can be bought.
    pub inherited: f64,
    pub value: f64,
}

impl MachineChange {
    /// True if the constant was fitted to a measurement and does not change the machine.
    pub fn is_calibration(&self) -> bool {
        self.key.starts_with(CALIBRATION_PREFIX)
    }

    /// Name and value: `exchange 16 B/cycle`.
    pub fn text(&self) -> String {
        format!("{} {}", self.title, self.unit.text(self.value))
    }

    /// Name, value and inherited value: `exchange 16 B/cycle in place of 4 B/cycle`.
    pub fn text_with_inherited(&self) -> String {
        format!("{} in place of {}", self.text(), self.unit.text(self.inherited))
    }
}

/// A running cost of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunningCostKind {
    /// Power in watts.
    Power,
    /// Price in money per hour.
    Price,
}

impl RunningCostKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Power, Self::Price];

    /// The name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Price => "price",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The origin of a figure of power or price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunningCostBasis {
    /// The spec gives it.
    Given,
    /// A publication states it.
    Published,
    /// No source gives it; it is plausible.
    Assumed,
}

impl RunningCostBasis {
    /// All bases, the most certain first.
    pub const ALL: [Self; 3] = [Self::Given, Self::Published, Self::Assumed];

    /// The name in the file, and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Given => "given",
            Self::Published => "published",
            Self::Assumed => "assumed",
        }
    }

    /// Parses a name in a file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|basis| basis.name() == name)
    }
}

/// The running cost of equal parts of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct RunningCost {
    pub kind: RunningCostKind,
    /// The part: `IPU-M2000`.
    pub part: String,
    pub count: u64,
    /// Watts or money per hour of one part.
    pub each: f64,
    /// Three letters of the currency; empty for power.
    pub currency: String,
    pub basis: RunningCostBasis,
    /// The source of the figure.
    pub source: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_print_with_their_units() {
        let cases = [
            (MachineUnit::Count, 2944.0, "2,944"),
            (MachineUnit::Bytes, 1_277_952.0, "1.22 MiB"),
            (MachineUnit::Hertz, 2.66e9, "2,660 MHz"),
            (MachineUnit::Cycles, 0.0, "0 cycles"),
            (MachineUnit::Seconds, 5.9e-6, "5.90 µs"),
            (MachineUnit::BytesPerCycle, 16.0, "16 B/cycle"),
            (MachineUnit::BytesPerSecond, 1.06e10, "10.60 GB/s"),
            (MachineUnit::CyclesPerByte, 0.262, "0.262 cycles/B"),
            (MachineUnit::CyclesPerWord, 0.25, "0.25 cycles/word"),
        ];
        for (unit, value, expected) in cases {
            assert_eq!(unit.text(value), expected);
            assert_eq!(MachineUnit::from_name(unit.name()), Some(unit));
        }
        assert_eq!(MachineUnit::Count.text(f64::NAN), "0");
    }
}
