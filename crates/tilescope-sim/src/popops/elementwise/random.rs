//! Vertices that draw random numbers (poplibs lib/poprand/poprandCycleEstimators.cpp).

use super::{phase, vector_width};
use crate::poplar::work::WorkPhase;
use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::{Cycles, Elements, TileRuns};

/// Distribution of random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RandomDistribution {
    /// Uniform over a range.
    Uniform,
    /// Normal distribution.
    Normal,
    /// One with a given probability, else zero.
    Bernoulli,
}

impl RandomDistribution {
    fn name(self) -> &'static str {
        match self {
            Self::Uniform => "Uniform",
            Self::Normal => "Normal",
            Self::Bernoulli => "Bernoulli",
        }
    }

    /// Tile cycles. For two of the distributions poplibs divides by widths other than that of a
    /// vector; here a store writes a vector.
    fn cycles(self, dtype: DType, Elements(count): Elements) -> Cycles {
        let half = dtype == DType::Half;
        let width = vector_width(dtype);
        let odd = u64::from(!count.is_multiple_of(width));
        // Cycles of a vector, of each worker, and of a remainder shorter than a vector.
        let (vector, worker, rest) = match (self, half) {
            (Self::Uniform, false) => (4, 22, 4),
            (Self::Normal, false) => (4, 22, 3),
            (Self::Uniform | Self::Normal, true) => (4, 24, 12),
            (Self::Bernoulli, true) => (1, 21, 9),
            (Self::Bernoulli, false) => (1, 23, 1),
        };
        Cycles(4 + vector * count.div_ceil(width) + worker * WORKERS + rest * odd)
    }
}

/// Phase that fills a tensor with random numbers.
pub(crate) fn random(
    distribution: RandomDistribution,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let name = distribution.name();
    let vertex = format!("poprand::{name}Supervisor<{}>", dtype.poplar_name());
    phase(name, vertex, 1, elements, |count| distribution.cycles(dtype, *count))
}
