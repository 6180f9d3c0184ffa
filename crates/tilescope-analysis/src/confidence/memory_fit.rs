//! The fullest tile with its errors, and the answer to whether a program fits in memory.

use super::Banded;
use crate::memory::needed;
use serde::{Deserialize, Serialize};
use tilescope_report::units::{Bytes, TileRuns};
use tilescope_report::{
    CategoryBytes, CompilationReport, FactorBand, ProgramErrorBand, ProgramErrorSource, TileMemory,
};

/// The answer to whether a program fits in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryFit {
    Fits,
    /// It fits, but by less than the error of the model.
    FitsUncertain,
    /// It does not fit, but by less than the error of the model.
    DoesNotFitUncertain,
    DoesNotFit,
}

/// Distance from the limit, as a share of a tile's memory, below which the answer is uncertain.
const NEAR_LIMIT: f64 = 0.03;

impl MemoryFit {
    /// The answer for a program in which `over` tiles need more than their memory of `limit` bytes.
    fn new(over: u64, fullest: Option<Banded>, limit: Bytes) -> Self {
        let limit = limit.as_f64();
        let is_near = fullest.is_some_and(|band| {
            limit > 0.0 && (band.holds(limit) || (band.value() / limit - 1.0).abs() < NEAR_LIMIT)
        });
        match (over, is_near) {
            (0, false) => Self::Fits,
            (0, true) => Self::FitsUncertain,
            (_, true) => Self::DoesNotFitUncertain,
            (_, false) => Self::DoesNotFit,
        }
    }

    /// `fits, uncertain`
    pub fn words(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::FitsUncertain => "fits, uncertain",
            Self::DoesNotFitUncertain => "does not fit, uncertain",
            Self::DoesNotFit => "does not fit",
        }
    }

    /// True if the answer is within the error of the model.
    pub fn is_uncertain(self) -> bool {
        matches!(self, Self::FitsUncertain | Self::DoesNotFitUncertain)
    }
}

/// Judges a compiled program that has no report.
#[must_use]
pub fn memory_fit(program: &CompilationReport) -> MemoryFit {
    MemoryUse::of(program).fit(program.target.bytes_per_tile)
}

/// The fullest tile of a compiled program that has no report, with the error of the model; `None`
/// if that is not known.
#[must_use]
pub fn expected_fullest_tile(program: &CompilationReport) -> Option<Banded> {
    MemoryUse::of(program).expected
}

/// The bytes of tiles that decide whether a program fits.
pub(crate) struct MemoryUse {
    /// Bytes that the fullest tile needs, including gaps.
    pub(crate) fullest: Bytes,
    /// Number of tiles that need more than they have.
    pub(crate) over: u64,
    /// The fullest tile with the error of the model; `None` if that is not known.
    pub(crate) expected: Option<Banded>,
}

impl MemoryUse {
    fn of(program: &CompilationReport) -> Self {
        Self::new(&program.program_errors, &program.tile_memory, &program.tile_categories)
    }

    pub(crate) fn new(
        errors: &[ProgramErrorBand],
        tiles: &TileRuns<TileMemory>,
        categories: &TileRuns<Vec<CategoryBytes>>,
    ) -> Self {
        let fullest = tiles.map(needed).max();
        let place = tiles.iter().find(|(_, tile)| needed(tile) == fullest);
        let held = place.and_then(|(range, _)| categories.get(range.first));
        Self {
            fullest,
            over: tiles.map(|tile| u64::from(tile.overflowed > Bytes::ZERO)).total(),
            expected: fullest_tile(errors, fullest, held.map_or(&[], Vec::as_slice)),
        }
    }

    /// Judges it against the memory of a tile.
    pub(crate) fn fit(&self, room: Bytes) -> MemoryFit {
        MemoryFit::new(self.over, self.expected, room)
    }
}

/// The band of the bytes of the fullest tile, which holds `categories`; `None` if the report does
/// not state the errors of memory.
fn fullest_tile(
    errors: &[ProgramErrorBand],
    bytes: Bytes,
    categories: &[CategoryBytes],
) -> Option<Banded> {
    let of_tile = factors_of(errors, ProgramErrorSource::FullestTile)?;
    let code: Bytes =
        categories.iter().filter(|part| part.category.is_executable()).map(|part| part.bytes).sum();
    let share = code.as_f64() / bytes.max(Bytes(1)).as_f64();
    let share = share.min(1.0);
    let [mut below, mut above] = [of_tile.low - 1.0, of_tile.high - 1.0];
    for source in [ProgramErrorSource::Code, ProgramErrorSource::ReplicaCode] {
        if let Some(of_code) = factors_of(errors, source) {
            // Ends of independent errors add as squares.
            below = below.hypot(share * (of_code.low - 1.0));
            above = above.hypot(share * (of_code.high - 1.0));
        }
    }
    Some(Banded::new(bytes.as_f64(), FactorBand { low: 1.0 - below.abs(), high: 1.0 + above }))
}

fn factors_of(errors: &[ProgramErrorBand], source: ProgramErrorSource) -> Option<FactorBand> {
    let error = errors.iter().find(|error| error.source == source)?;
    Some(error.factors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilescope_report::{MemoryCategory, MemoryRegion};

    #[test]
    fn programs_near_the_limit_are_uncertain() {
        let (limit, band) = (Bytes(1000), FactorBand { low: 0.95, high: 1.05 });
        let fit =
            |over: u64, bytes: f64| MemoryFit::new(over, Some(Banded::new(bytes, band)), limit);
        assert_eq!(fit(0, 900.0), MemoryFit::Fits);
        assert_eq!(fit(0, 960.0), MemoryFit::FitsUncertain);
        assert_eq!(fit(3, 1040.0), MemoryFit::DoesNotFitUncertain);
        assert_eq!(fit(3, 1100.0), MemoryFit::DoesNotFit);
        let sure = FactorBand { low: 0.999, high: 1.001 };
        let near = MemoryFit::new(0, Some(Banded::new(975.0, sure)), limit);
        assert_eq!(near, MemoryFit::FitsUncertain, "within 3 %, however sure the model is");
        // A report of a real machine states measured bytes.
        assert_eq!(MemoryFit::new(0, None, limit), MemoryFit::Fits);
        assert_eq!(MemoryFit::new(2, None, limit), MemoryFit::DoesNotFit);
    }

    #[test]
    fn code_widens_the_band_of_the_fullest_tile() {
        let error = |source, factors| ProgramErrorBand { source, rows: 3, factors };
        let errors = [
            error(ProgramErrorSource::FullestTile, FactorBand { low: 0.98, high: 1.02 }),
            error(ProgramErrorSource::Code, FactorBand { low: 0.8, high: 1.25 }),
        ];
        let code = |bytes: u64| CategoryBytes {
            category: MemoryCategory::ControlCode,
            region: MemoryRegion::NonInterleaved,
            overlapped: false,
            bytes: Bytes(bytes),
        };
        let width = |bytes: u64| {
            let band = fullest_tile(&errors, Bytes(1000), &[code(bytes)]).expect("a band");
            band.high() - band.low()
        };
        assert!(
            (width(0) - 40.0).abs() < 1e-9 && width(400) > 180.0,
            "{} {}",
            width(0),
            width(400)
        );
        assert_eq!(fullest_tile(&[], Bytes(1000), &[]), None);
        let replicated = [
            &errors[..],
            &[error(ProgramErrorSource::ReplicaCode, FactorBand { low: 0.8, high: 1.25 })],
        ]
        .concat();
        let band = fullest_tile(&replicated, Bytes(1000), &[code(400)]).expect("a band");
        let wide = band.high() - band.low();
        // Two independent errors of code, each more than half of the band.
        assert!(wide > 1.3 * width(400) && wide < 1.42 * width(400), "{wide} {}", width(400));
    }
}
