//! A chip, and the tiles of it that a program computes on.

use super::Chip;
use crate::shape::DType;
use tilescope_report::units::{Bytes, Cycles};

/// How fast bytes move or are computed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BytesPerCycle(pub u64);

impl BytesPerCycle {
    /// Whole cycles in which so many bytes pass.
    pub(crate) const fn cycles_for(self, bytes: Bytes) -> Cycles {
        Cycles(bytes.0.div_ceil(self.0))
    }
}

/// The tiles a plan may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpuTarget {
    /// Chip.
    pub chip: Chip,
    /// Tiles of one IPU that compute; less than the chip's where tiles are set aside for I/O.
    pub tiles: u32,
}

impl IpuTarget {
    /// All tiles of a chip.
    pub fn all_tiles_of(chip: Chip) -> Self {
        Self { chip, tiles: chip.tiles }
    }

    /// Worker threads of a tile.
    pub(crate) fn workers(&self) -> u64 {
        u64::from(self.chip.workers)
    }

    /// Elements of one load or store.
    pub(crate) fn vector_width(&self, data_type: DType) -> u64 {
        // 8-bit arithmetic is done four elements at a time, like half.
        self.chip.data_path_bytes / data_type.bytes().max(Bytes(2))
    }

    /// What a tile sends or receives in an exchange.
    pub(crate) fn exchange_speed(&self) -> BytesPerCycle {
        self.chip.exchange_speed
    }

    /// Units of the matrix engine for these element types, 0 if there is no such engine.
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

    /// Cycles an exchange needs to bring `bytes` to a tile; `paired` if two tiles on one bus
    /// receive the same.
    pub(crate) fn exchange_cycles(&self, bytes: Bytes, paired: bool) -> Cycles {
        let BytesPerCycle(one) = self.exchange_speed();
        let buses = if paired { u64::from(self.chip.tiles_per_exchange_bus) } else { 1 };
        BytesPerCycle(one * buses).cycles_for(bytes)
    }
}
