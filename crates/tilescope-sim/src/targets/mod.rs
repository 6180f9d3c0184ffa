//! Machines that a program can be compiled for, one file per chip. Each constant names its source.

mod bow;
mod c600;
mod ipu_target;
mod mk1;
mod mk2;
mod running_costs;
mod system_costs;
mod systems;

pub(crate) use bow::BOW;
pub(crate) use c600::C600;
pub use ipu_target::{BytesPerCycle, IpuTarget};
pub(crate) use mk1::MK1;
pub use mk2::MK2;
pub(crate) use running_costs::{published_power, published_price};
pub(crate) use system_costs::{
    HOST_CORES, HOST_LINK_BYTES_PER_SECOND, IpuLink, SystemCosts, SystemRates,
};
pub(crate) use systems::{
    DEFAULT_SYSTEM, IpuLinkTopology, SYSTEM_NAMES, SystemDef, find_system, smallest_system_with,
};

use crate::cost_constants::{CostConstant, EXCHANGE_START_CYCLES, INTERNAL_SYNC_CYCLES};
use tilescope_report::units::{Bytes, Cycles, Hertz};
use tilescope_report::{ArithmeticType, ComputeEngine, ComputeRate};

/// Multiply-accumulate units of one tile's matrix engine, by element type of input and partials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvUnits {
    /// Half inputs, half partials.
    pub half_in_half_out: u32,
    /// Half inputs, float partials.
    pub half_in_float_out: u32,
    /// Float inputs, float partials.
    pub float_in_float_out: u32,
    /// 8-bit float inputs, half partials; 0 if the chip has no such engine.
    pub quarter_in_half_out: u32,
}

/// Constants of one IPU chip.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chip {
    /// Name of the chip in a spec.
    pub name: &'static str,
    /// Name of the generation in reports.
    pub architecture: &'static str,
    /// One-line description for lists.
    pub about: &'static str,
    pub tiles: u32,
    /// Worker threads of a tile. The tile issues one instruction per cycle, round robin.
    pub workers: u32,
    /// Memory of a tile in bytes.
    pub bytes_per_tile: Bytes,
    /// Offset of interleaved memory, which equals the size of the non-interleaved, executable
    /// region.
    pub interleaved_offset: Bytes,
    /// Size of one element (bank) of non-interleaved memory.
    pub memory_element_bytes: Bytes,
    /// Clock rate of the tiles.
    pub clock: Hertz,
    /// Rate at which a tile can receive, and can send, in an exchange.
    pub exchange_speed: BytesPerCycle,
    /// Tiles that share one exchange bus. They receive at twice the rate if they receive the same
    /// data.
    pub tiles_per_exchange_bus: u32,
    /// Bytes that one load or store transfers.
    pub data_path_bytes: Bytes,
    /// Rate at which weights are loaded into the matrix engine.
    pub coeff_load_speed: BytesPerCycle,
    pub conv_units: ConvUnits,
    /// Tiles in one column of the floor plan.
    pub tiles_per_column: u32,
    /// Stack of one tile in bytes.
    pub stack_bytes: &'static CostConstant,
    /// Cycles of an internal sync if a spec changes it. `None` uses the value of the cost model.
    pub internal_sync_cycles: Option<Cycles>,
}

impl Chip {
    /// Cycles of the internal sync that precedes every exchange.
    pub fn internal_sync(&self) -> Cycles {
        self.internal_sync_cycles.unwrap_or_else(|| INTERNAL_SYNC_CYCLES.cycles())
    }

    /// Cycles from the start of an exchange to its first byte, including the sync.
    pub fn exchange_start(&self) -> Cycles {
        EXCHANGE_START_CYCLES.cycles() - INTERNAL_SYNC_CYCLES.cycles() + self.internal_sync()
    }
}

/// Multiply-accumulates per cycle of one unit of a matrix engine. A unit takes 64 bits of input per
/// cycle, and floats take two cycles (data sheets: 250 TFLOPS of halves, 62.5 of floats on the same
/// number of units).
const fn macs_per_unit(input: ArithmeticType) -> u64 {
    match input {
        ArithmeticType::Quarter => 8,
        ArithmeticType::Half => 4,
        ArithmeticType::Float => 1,
    }
}

impl Chip {
    /// Peak rates of the engines of a tile. Engines that the chip lacks are omitted.
    pub(crate) fn compute_rates(&self) -> Vec<ComputeRate> {
        use ArithmeticType::{Float, Half, Quarter};
        let units = &self.conv_units;
        let amp = [
            (Half, Half, units.half_in_half_out),
            (Half, Float, units.half_in_float_out),
            (Float, Float, units.float_in_float_out),
            (Quarter, Half, units.quarter_in_half_out),
        ];
        let amp =
            amp.into_iter().filter(|(.., units)| *units > 0).map(|(input, partials, units)| {
                let flops_per_cycle = 2 * u64::from(units) * macs_per_unit(input);
                ComputeRate { engine: ComputeEngine::Amp, input, partials, flops_per_cycle }
            });
        // One multiply-accumulate for each element of a vector (poplibs lib/poplin/ConvModel.cpp,
        // getMaxMACsPerCyclePerTile of the methods without a matrix engine).
        let vector = [(Half, Bytes(2)), (Float, Bytes(4))].map(|(input, bytes)| ComputeRate {
            engine: ComputeEngine::Vector,
            input,
            partials: input,
            flops_per_cycle: 2 * (self.data_path_bytes / bytes),
        });
        amp.chain(vector).collect()
    }
}

/// Worker threads of a tile. The number is the same on every chip, and the cycle estimators of
/// popops assume it.
pub(crate) const WORKERS: u64 = MK2.workers as u64;
/// [`WORKERS`] as the length of an array.
pub(crate) const WORKER_COUNT: usize = MK2.workers as usize;

/// All chips in the order of their generations. [`SYSTEMS`] combines them into machines.
pub const CHIPS: &[&Chip] = &[&MK1, &MK2, &BOW, &C600];

/// Returns the chip with the given name.
pub fn find_chip(name: &str) -> Option<&'static Chip> {
    CHIPS.iter().copied().find(|chip| chip.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Peak of the matrix engine in TFLOPS, computed from tiles, clock and rate.
    fn peak_tflops(chip: &Chip, input: ArithmeticType) -> f64 {
        let rates = chip.compute_rates().into_iter();
        let amp = rates.filter(|rate| (rate.engine, rate.input) == (ComputeEngine::Amp, input));
        let most = amp.map(|rate| rate.flops_per_cycle).max().unwrap_or(0);
        f64::from(chip.tiles) * most as f64 * chip.clock.0 as f64 / 1e12
    }

    #[test]
    fn peaks_match_the_data_sheets() {
        use ArithmeticType::{Float, Half, Quarter};
        let check = |chip: &Chip, input: ArithmeticType, tflops: f64| {
            let peak = peak_tflops(chip, input);
            assert!((peak / tflops - 1.0).abs() < 0.006, "{} {input:?}: {peak}", chip.name);
        };
        // Peaks from the data sheets of C2, IPU-M2000, Bow-2000 and C600.
        check(&MK1, Half, 124.5);
        check(&MK1, Float, 31.1);
        check(&MK2, Half, 250.0);
        check(&MK2, Float, 62.5);
        check(&BOW, Half, 349.0);
        check(&C600, Half, 280.0);
        check(&C600, Quarter, 560.0);
        assert_eq!(peak_tflops(&MK2, Quarter), 0.0);
    }

    #[test]
    fn every_chip_is_consistent() {
        for chip in CHIPS {
            assert!(chip.interleaved_offset < chip.bytes_per_tile, "{}", chip.name);
            assert_eq!(
                chip.interleaved_offset % chip.memory_element_bytes,
                Bytes::ZERO,
                "{}",
                chip.name
            );
            assert_eq!(
                chip.bytes_per_tile % chip.memory_element_bytes,
                Bytes::ZERO,
                "{}",
                chip.name
            );
            assert_eq!(u64::from(chip.workers), WORKERS, "{}", chip.name);
            assert_eq!(chip.tiles % chip.tiles_per_column, 0, "{}", chip.name);
            assert_eq!(super::find_chip(chip.name), Some(*chip));
        }
    }
}
