//! Norms whose input several IPUs share. Each computes the sums of its part, the sums of all parts
//! are added, and each continues with its part.
//!
//! The distributed norms of poplibs do the same (lib/poplin/Norms.cpp, distributedNormStatistics
//! and distributedNormStatisticsGradients): their callback adds mean and power, and the two sums of
//! the gradient. Here the gradient is computed in the same two steps: first the contribution of the
//! part alone, then, through the sums, the contribution of all parts.

use super::{NormRows, NormStatistics};
use crate::poplar::tile_runs;
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp};
use crate::popops::reduce::ReduceError;
use crate::popops::rows::TensorRows;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::DType;

/// Gradients that follow from one part of the input.
pub(crate) struct PartGradients {
    /// Gradients of scale and shift.
    pub affine: [TensorLayout; 2],
    /// Gradients of the sums.
    pub sums: TensorLayout,
}

impl NormRows {
    /// Layout of the sums of values and of squares. Both sums of a row are on the same tile.
    fn both_sums(&self) -> TensorLayout {
        let one = &self.row_values.elements;
        let elements = tile_runs::add_per_tile(one, one);
        TensorLayout { elements, order: ElementOrder::Linear }
    }

    /// Adds the sums of a part. Returns their layout.
    pub(crate) fn part_sums(
        &self,
        work: &mut OperationWork,
        regrouped: Option<&TensorRows>,
    ) -> Result<TensorLayout, ReduceError> {
        self.sums(work, regrouped)?;
        Ok(self.both_sums())
    }

    /// Adds the computation of statistics from the sums over all parts.
    pub(crate) fn statistics_of_parts(&self, work: &mut OperationWork) -> NormStatistics {
        Self::statistics_of_sums(work, self.row_values.clone(), self.row_values.clone())
    }

    /// Adds the gradient of a part of the input as if the statistics were constants, and the
    /// gradients of scale, shift and sums.
    ///
    /// With sums `v` of `g x'` and `m` of `g`, where `x'` is the whitened input and `g` the
    /// gradient times the scale, the gradient of the input is `g d - x d^2 v + d (mean d v - m)`
    /// for the inverse deviation `d`. The factor of `x` and the summand after it are the gradients
    /// of the sums.
    pub(crate) fn part_gradient(
        &self,
        work: &mut OperationWork,
        scale: &TensorLayout,
        statistics: &NormStatistics,
    ) -> Result<PartGradients, ReduceError> {
        let sums = self.gradient_sums(work, scale, statistics)?;
        let [var_delta, mean_delta] = &sums.deltas;
        use BinaryOpType::{Multiply, Subtract};
        for (name, operation, values) in [
            ("NormGrad/sums/var", Multiply, var_delta),
            ("NormGrad/sums/factor", Multiply, var_delta),
            ("NormGrad/sums/mean", Multiply, var_delta),
            ("NormGrad/sums/Sub", Subtract, mean_delta),
            ("NormGrad/sums/summand", Multiply, mean_delta),
        ] {
            work.push(elementwise::in_place(
                name,
                ElementwiseOp::Binary(operation),
                DType::Float,
                &values.elements,
            ));
        }
        self.scale_by_deviation(work, statistics);
        let bytes = self.layout.bytes(self.statistics.dtype.bytes());
        work.push_temporary("NormGrad/whitened", bytes, sums.start);
        Ok(PartGradients { affine: sums.affine, sums: self.both_sums() })
    }

    /// Adds the contribution of the gradients of the sums to the gradient of the input: the product
    /// of the input with one of them, and the sum with the other.
    pub(crate) fn gradient_of_sums(&self, work: &mut OperationWork) {
        let machine = &self.machine;
        let rows = &self.statistics;
        let values = &self.row_values;
        let multiply = BinaryOpType::Multiply;
        rows.apply_broadcast_apart(machine, work, "NormGrad/var/Mul", multiply, values);
        rows.apply_broadcast(machine, work, "NormGrad/mean/Add", BinaryOpType::Add, values);
    }
}
