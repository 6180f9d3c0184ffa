//! The chip of the C600: the second generation on a PCIe card.

use super::Chip;
use super::bow::BOW;
use tilescope_report::units::Hertz;

/// The chip of a C600 card: Bow's tiles at the clock that follows from the card's 280 TFLOPS.
pub(crate) const C600: Chip = Chip {
    name: "c600",
    about: "C600 card: 1,472 tiles of 624 KiB at 1.49 GHz",
    clock: Hertz(1_490_000_000), // 280 TFLOPS of FP16 / (1,472 tiles x 2 x 64), C600 data sheet
    ..BOW
};
