//! The GC200 chip, the second generation.

use super::{BytesPerCycle, Chip, ConvUnits};
use crate::cost_constants::MK2_STACK_BYTES;
use tilescope_report::units::{Bytes, Hertz};

/// GC200: 1,472 tiles of 624 KiB at 1.33 GHz.
pub const MK2: Chip = Chip {
    name: "mk2",
    architecture: "Mk2",
    about: "GC200: 1,472 tiles of 624 KiB at 1.33 GHz",
    tiles: 1472, // Poplar's printed Target
    workers: 6,
    bytes_per_tile: Bytes(624 * 1024),
    interleaved_offset: Bytes(208 * 1024), // fullest tiles of Poplar's op benchmarks start at 212,992 B
    memory_element_bytes: Bytes(16 * 1024),
    clock: Hertz(1_330_000_000), // graphcore/examples tut6: 6,681,766 cycles = 5,023.9 us
    exchange_speed: BytesPerCycle(4),
    tiles_per_exchange_bus: 2,
    data_path_bytes: Bytes(8),
    coeff_load_speed: BytesPerCycle(8),
    conv_units: ConvUnits {
        half_in_half_out: 16,   // 250 TFLOPS = 1,472 tiles x 1.325 GHz x 2 x 64
        half_in_float_out: 8,   // poplibs lib/poplin/ConvVertexType.cpp
        float_in_float_out: 16, // 62.5 TFLOPS; the matmul tutorial's plans need 16
        quarter_in_half_out: 0,
    },
    tiles_per_column: 64, // 23 rows of 64 tiles, osmarks/ipu-stack topology notes
    stack_bytes: &MK2_STACK_BYTES,
    internal_sync_cycles: None,
};
