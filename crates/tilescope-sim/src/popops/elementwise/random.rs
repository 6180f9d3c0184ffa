//! Vertices that draw random numbers (poplibs lib/poprand/poprandCycleEstimators.cpp).

use super::{phase, vector_width};
use crate::poplar::work::WorkPhase;
use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::{Cycles, Elements, TileRuns};

/// What random numbers are drawn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RandomDistribution {
    /// Any number of a range, alike.
    Uniform,
    /// The normal distribution.
    Normal,
    /// One with some probability, else zero.
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

    /// Cycles of a tile. Poplibs divides by other widths than a vector's for two of them; a store
    /// takes a vector.
    fn cycles(self, dtype: DType, Elements(count): Elements) -> Cycles {
        let half = dtype == DType::Half;
        let width = vector_width(dtype);
        let odd = u64::from(!count.is_multiple_of(width));
        // Cycles of a vector, of each worker, and of what is no whole vector.
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

/// A phase that fills a tensor with random numbers.
pub(crate) fn random(
    distribution: RandomDistribution,
    dtype: DType,
    elements: &TileRuns<Elements>,
) -> WorkPhase {
    let name = distribution.name();
    let vertex = format!("poprand::{name}Supervisor<{}>", dtype.poplar_name());
    phase(name, vertex, 1, elements, |count| distribution.cycles(dtype, *count))
}
