//! A chip and the number of its tiles on which a program computes.

use super::Chip;
use crate::shape::DType;
use tilescope_report::units::{Bytes, Cycles};

/// Transfer or processing rate in bytes per cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BytesPerCycle(pub u64);

impl BytesPerCycle {
    /// Whole cycles needed to transfer `bytes` at this rate.
    pub(crate) const fn cycles_for(self, bytes: Bytes) -> Cycles {
        Cycles(bytes.0.div_ceil(self.0))
    }
}

/// Chip and tiles available to a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpuTarget {
    /// Chip that the tiles belong to.
    pub chip: Chip,
    /// Number of compute tiles on one IPU. Smaller than the number of tiles of the chip if some are
    /// reserved for I/O.
    pub tiles: u32,
}

impl IpuTarget {
    /// Creates a target that computes on all tiles of `chip`.
    pub fn all_tiles_of(chip: Chip) -> Self {
        Self { chip, tiles: chip.tiles }
    }

    /// Number of worker threads of a tile.
    pub(crate) fn workers(&self) -> u64 {
        u64::from(self.chip.workers)
    }

    /// Number of elements in one load or store.
    pub(crate) fn vector_width(&self, data_type: DType) -> u64 {
        // 8-bit arithmetic processes four elements at a time, like half.
        self.chip.data_path_bytes / data_type.bytes().max(Bytes(2))
    }

    /// Rate at which a tile sends or receives in an exchange.
    pub(crate) fn exchange_speed(&self) -> BytesPerCycle {
        self.chip.exchange_speed
    }

    /// Number of matrix-engine units for these element types, or 0 if the chip has no such engine.
    pub(crate) fn conv_units(&self, input: DType, partials: DType) -> u64 {
        let units = &self.chip.conv_units;
        u64::from(match (input, partials) {
            (DType::Float, DType::Float) => units.float_in_float_out,
            (DType::Half, DType::Float) => units.half_in_float_out,
            (DType::Half, DType::Half) => units.half_in_half_out,
            (DType::Quarter, DType::Half) => units.quarter_in_half_out,
            _ => 0,
        })
    }

    /// Cycles that an exchange needs to bring `bytes` to a tile. `paired` is true if two tiles on
    /// one bus receive the same data.
    pub(crate) fn exchange_cycles(&self, bytes: Bytes, paired: bool) -> Cycles {
        let BytesPerCycle(one) = self.exchange_speed();
        let buses = if paired { u64::from(self.chip.tiles_per_exchange_bus) } else { 1 };
        BytesPerCycle(one * buses).cycles_for(bytes)
    }
}
