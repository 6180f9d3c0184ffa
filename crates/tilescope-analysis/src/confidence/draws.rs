//! Draws of factors from bands: numbered, and the same in every report.

use tilescope_report::{FactorBand, ProgramErrorBand, ProgramErrorSource};

/// Number of costed draws: enough to keep the ends of a band stable within a twentieth of its
/// width.
pub(super) const DRAWS: usize = 1000;
/// Number of draws below a band, and also above it.
const OUTSIDE: usize = DRAWS / 20;
/// Standard deviations from the middle of a normal distribution to the ends of a band.
pub(super) const BAND_DEVIATIONS: f64 = 1.6449;

/// The bounds that hold nine tenths of [`DRAWS`] values.
pub(super) fn middle_of(mut draws: Vec<f64>) -> FactorBand {
    draws.sort_by(f64::total_cmp);
    let low = draws.get(OUTSIDE).copied().unwrap_or(1.0);
    let high = draws.get(DRAWS - 1 - OUTSIDE).copied().unwrap_or(1.0);
    FactorBand { low, high }
}

/// The factors of all draws of an error; `own` separates the draws of different programs.
pub(super) fn common_factors(error: Option<&ProgramErrorBand>, own: u64) -> Vec<f64> {
    let Some(error) = error else { return vec![1.0; DRAWS] };
    // A host that is slow at copies is slow at calls.
    let drawn_as = match error.source {
        ProgramErrorSource::HostCalls => ProgramErrorSource::Host,
        source => source,
    };
    let number =
        text_number("errors of whole programs").rotate_left(7) ^ text_number(drawn_as.name()) ^ own;
    (0..DRAWS as u64).map(|draw| factor(error.factors, normal(number, draw))).collect()
}

/// A factor from a band, `deviations` standard deviations from its middle.
pub(super) fn factor(FactorBand { low, high }: FactorBand, deviations: f64) -> f64 {
    let low = low.ln();
    let high = high.ln();
    ((low + high) / 2.0 + deviations * (high - low) / 2.0 / BAND_DEVIATIONS).exp()
}

/// Hash of a string (FNV-1a).
pub(super) fn text_number(text: &str) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in text.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

/// A normally distributed number for a source of errors and a draw, reproducible (Box-Muller).
pub(super) fn normal(source: u64, draw: u64) -> f64 {
    let radius = 1.0 - uniform(source, 2 * draw);
    let angle = uniform(source, 2 * draw + 1);
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// A uniformly distributed number from 0 to 1, reproducible (splitmix64).
fn uniform(source: u64, index: u64) -> f64 {
    let mut z = source ^ index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}
