//! Non-linearities of popnn, in place, and their gradients (poplibs
//! lib/popnn/PerformanceEstimation.hpp, and lib/popnn/popnnCycleEstimators.cpp around them).

use crate::poplar::work::WorkPhase;
use crate::popops::elementwise::{phase, vector_width};
use crate::shape::DType;
use crate::targets::WORKERS;
use tilescope_report::units::{Cycles, Elements, TileRuns};

/// Activation functions with dedicated vertices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum NonLinearityType {
    /// max(x, 0)
    Relu,
    /// 1 / (1 + e^-x)
    Sigmoid,
    Tanh,
    /// x times the normal distribution function of x, approximated by the hyperbolic tangent.
    Gelu,
    /// As [`Self::Gelu`], computed with the error function. popops has the function, popnn its
    /// gradient.
    GeluErf,
    /// x / (1 + e^-x)
    Swish,
}

impl NonLinearityType {
    /// Name of the operator.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Sigmoid => "sigmoid",
            Self::Tanh => "tanh",
            Self::Gelu => "gelu",
            Self::GeluErf => "gelu_erf",
            Self::Swish => "swish",
        }
    }

    /// Name of the gradient operator.
    pub(crate) fn gradient_kind(self) -> &'static str {
        match self {
            Self::Relu => "relu_grad",
            Self::Sigmoid => "sigmoid_grad",
            Self::Tanh => "tanh_grad",
            Self::Gelu => "gelu_grad",
            Self::GeluErf => "gelu_erf_grad",
            Self::Swish => "swish_grad",
        }
    }

    /// Name of the function inside vertex types.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Relu => "RELU",
            Self::Sigmoid => "SIGMOID",
            Self::Tanh => "TANH",
            Self::Gelu => "GELU",
            Self::GeluErf => "GELU_ERF",
            Self::Swish => "SWISH",
        }
    }

    /// Cycles of one vector inside the loop (`getNonLinearityOpCycles`).
    fn vector_cycles(self, half: bool) -> u64 {
        match (self, half) {
            (Self::Relu, _) => 1,
            (Self::Sigmoid, false) | (Self::Tanh | Self::Gelu, false) => 10,
            (Self::Sigmoid, true) => 4,
            (Self::Tanh, true) => 2,
            (Self::Gelu, true) => 5,
            (Self::GeluErf, false) => 30,
            (Self::GeluErf, true) => 15,
            (Self::Swish, false) => 11,
            (Self::Swish, true) => 5,
        }
    }

    /// Cycles of one vector of the gradient (`getNonLinearityGradOpCycles`).
    fn gradient_cycles(self, half: bool) -> u64 {
        match (self, half) {
            (Self::Gelu, false) => 10,
            (Self::Gelu, true) => 5,
            (Self::GeluErf, false) => 30,
            (Self::GeluErf, true) => 15,
            (Self::Swish, false) => 15,
            (Self::Swish, true) => 9,
            _ => 3,
        }
    }

    /// Returns true if the gradient reads the operand of the function instead of its result.
    pub(crate) fn gradient_needs_input(self) -> bool {
        matches!(self, Self::Gelu | Self::GeluErf | Self::Swish)
    }

    /// Tile cycles on `elements` elements (`NonLinearitySupervisor`).
    pub(crate) fn cycles(self, dtype: DType, Elements(elements): Elements) -> Cycles {
        let half = dtype == DType::Half;
        let vectors = elements.div_ceil(WORKERS).div_ceil(vector_width(dtype));
        let cycles = self.vector_cycles(half);
        // The loop loads and stores in parallel with the arithmetic, at best in two cycles per
        // vector.
        let main = if vectors == 0 { 0 } else { 3 + 2 * cycles + (vectors - 1) * cycles.max(2) };
        Cycles(WORKERS * (20 + main + 3) + 9)
    }

    /// Tile cycles of the gradient on `elements` elements (`NonLinearityGradSupervisor`).
    pub(crate) fn backward_cycles(self, dtype: DType, Elements(elements): Elements) -> Cycles {
        let vectors = elements.div_ceil(WORKERS).div_ceil(vector_width(dtype));
        let cycles = self.gradient_cycles(dtype == DType::Half);
        Cycles(WORKERS * (20 + 4 + cycles * vectors.saturating_sub(1) + 1 + 2) + 9)
    }

    /// Returns the phase of the function.
    pub(crate) fn phase(self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        let ty = dtype.poplar_name();
        let name = self.name();
        let vertex = format!("popnn::NonLinearitySupervisor<{ty},popnn::NonLinearityType::{name}>");
        phase("NonLinearity", vertex, 1, elements, |count| self.cycles(dtype, *count))
    }

    /// Returns the phase of the gradient.
    pub(crate) fn backward_phase(self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        let ty = dtype.poplar_name();
        let name = self.name();
        let vertex =
            format!("popnn::NonLinearityGradSupervisor<{ty},popnn::NonLinearityType::{name}>");
        phase("NonLinearityGrad", vertex, 3, elements, |count| self.backward_cycles(dtype, *count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheaper_functions_take_fewer_cycles() {
        let order = [
            NonLinearityType::Relu,
            NonLinearityType::Tanh,
            NonLinearityType::Sigmoid,
            NonLinearityType::Gelu,
        ];
        let costs = order.map(|function| function.cycles(DType::Half, Elements(6000)));
        assert!(costs.is_sorted(), "{costs:?}");
    }
}
