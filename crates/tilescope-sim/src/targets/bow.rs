//! The Bow chip: the second generation on a faster wafer.

use super::mk2::MK2;
use super::{Chip, ConvUnits};
use tilescope_report::units::Hertz;

/// Bow: a GC200 at 1.85 GHz, with 8-bit float arithmetic.
pub(crate) const BOW: Chip = Chip {
    name: "bow",
    architecture: "Bow",
    about: "Bow: 1,472 tiles of 624 KiB at 1.85 GHz",
    clock: Hertz(1_850_000_000), // Bow-2000 data sheet; printed Target
    conv_units: ConvUnits {
        quarter_in_half_out: 16, // 16 units x 8 elements, poplibs PerformanceEstimation.hpp
        ..MK2.conv_units
    },
    ..MK2
};
