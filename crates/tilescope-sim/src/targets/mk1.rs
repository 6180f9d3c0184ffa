//! The GC2 chip, the first generation.

use super::{BytesPerCycle, Chip, ConvUnits};
use crate::cost_constants::MK1_STACK_BYTES;
use tilescope_report::units::{Bytes, Hertz};

/// GC2: 1,216 tiles of 256 KiB at 1.6 GHz.
pub(crate) const MK1: Chip = Chip {
    name: "mk1",
    architecture: "Mk1",
    about: "GC2: 1,216 tiles of 256 KiB at 1.6 GHz",
    tiles: 1216, // Poplar's printed Target, graphcore/tensorflow docs/logging.rst
    workers: 6,  // Target::getNumWorkerContexts
    bytes_per_tile: Bytes(256 * 1024),
    interleaved_offset: Bytes(128 * 1024), // vars.json interleavedMemoryStart 131072
    memory_element_bytes: Bytes(16 * 1024), // vars.json memoryElementOffsets
    clock: Hertz(1_600_000_000),           // printed Target: 1,600.0 MHz
    exchange_speed: BytesPerCycle(4),      // poplibs lib/poplin/ExchangeEstimator.hpp
    tiles_per_exchange_bus: 2,             // Target::getTilesPerSharedExchangeBus
    data_path_bytes: Bytes(8),             // 64-bit data path
    coeff_load_speed: BytesPerCycle(8),    // convUnitCoeffLoadBytesPerCycle, 64-bit weight loads
    conv_units: ConvUnits {
        half_in_half_out: 8,   // 124.5 TFLOPS = 1,216 tiles x 1.6 GHz x 2 x 32
        half_in_float_out: 8,  // poplibs lib/poplin/ConvVertexType.cpp
        float_in_float_out: 8, // 31.1 TFLOPS
        quarter_in_half_out: 0,
    },
    tiles_per_column: 64, // hardware-order plots dip every 64 tiles: 19 columns
    stack_bytes: &MK1_STACK_BYTES,
    internal_sync_cycles: None,
};
