//! A chip, and the tiles of it that a program computes on.

use super::Chip;
use crate::shape::DType;

/// The tiles a plan may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpuTarget {
    /// Chip.
    pub chip: Chip,
    /// Tiles of one IPU that compute; less than the chip's where tiles are set aside for I/O.
    pub tiles: u64,
}

impl IpuTarget {
    /// All tiles of a chip.
    pub fn all_tiles_of(chip: Chip) -> Self {
        Self { chip, tiles: u64::from(chip.tiles) }
    }

    /// Worker threads of a tile.
    pub(crate) fn workers(&self) -> u64 {
        u64::from(self.chip.workers)
    }

    /// Elements of one load or store.
    pub(crate) fn vector_width(&self, data_type: DType) -> u64 {
        // 8-bit arithmetic is done four elements at a time, like half.
        u64::from(self.chip.data_path_bytes) / data_type.bytes().max(2)
    }

    /// Bytes a tile sends or receives per cycle.
    pub(crate) fn exchange_speed(&self) -> u64 {
        u64::from(self.chip.exchange_bytes_per_cycle)
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
    pub(crate) fn exchange_cycles(&self, bytes: u64, paired: bool) -> u64 {
        let width = self.exchange_speed();
        bytes.div_ceil(if paired {
            width * u64::from(self.chip.tiles_per_exchange_bus)
        } else {
            width
        })
    }
}
