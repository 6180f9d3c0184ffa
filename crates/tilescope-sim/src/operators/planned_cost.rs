//! The costs that the planner expects of products and convolutions, before anything is lowered.

use super::planned_products::ProductPlans;
use super::{ConvOp, LoweringContext, MatMulOp, MatMulPhase, NodeOperands};
use crate::poplin::ConvParams;
use crate::poplin::planner::{ConvPlan, ConvTrainingPlans, MemoryBound, in_whole_grains};
use std::ops::{Add, Mul};
use tilescope_report::units::{Bytes, Cycles};

/// The expected costs of plans.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlannedCost {
    pub cycles: Cycles,
    /// The number of plans that need more memory than their bound.
    pub above_bound: u64,
    /// The number of plans that memory limits: they run in parts one after the other, fill more
    /// than half of their bound, or exceed it.
    pub short_of_memory: u64,
}

impl From<&ConvPlan> for PlannedCost {
    fn from(plan: &ConvPlan) -> Self {
        let needed = plan.estimate.temp_bytes;
        let (fits, fits_in_half) = match plan.bound {
            MemoryBound::Within(bytes) => (needed <= bytes, needed <= Bytes(bytes.0 / 2)),
            MemoryBound::Raised(_) | MemoryBound::None => (false, false),
        };
        Self {
            cycles: plan.estimate.total_cycles,
            above_bound: u64::from(!fits),
            short_of_memory: u64::from(plan.partition.serial() > 1 || !fits_in_half),
        }
    }
}

impl Add for PlannedCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cycles: self.cycles + other.cycles,
            above_bound: self.above_bound + other.above_bound,
            short_of_memory: self.short_of_memory + other.short_of_memory,
        }
    }
}

/// The costs of `times` runs, one after the other.
impl Mul<u64> for PlannedCost {
    type Output = Self;

    fn mul(self, times: u64) -> Self {
        Self { cycles: self.cycles * times, ..self }
    }
}

/// The sizes for which plans are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlannedSizes {
    AsTheyAre,
    /// Sizes rounded up so that they can be split. There is no plan if they already can.
    WholeGrains,
}

impl PlannedSizes {
    fn of(self, params: ConvParams) -> Option<ConvParams> {
        match self {
            Self::AsTheyAre => Some(params),
            Self::WholeGrains => in_whole_grains(&params),
        }
    }
}

impl LoweringContext<'_> {
    /// The costs that the planner expects of one product of a layer.
    pub(crate) fn matmul_planned_cost(
        &self,
        node: &NodeOperands,
        matmul: &MatMulOp,
        sizes: PlannedSizes,
    ) -> Option<PlannedCost> {
        let (params, cut) = self.matmul_params(node, matmul).ok()?;
        let planned = self.matmul_plans(node, &sizes.of(params)?).ok()?;
        let plan = match (&planned, matmul.product) {
            (ProductPlans::Inference(plan), _) => plan,
            (ProductPlans::Training(plans), MatMulPhase::Forward) => &plans.forward,
            (ProductPlans::Training(plans), MatMulPhase::InputGradient) => &plans.backward,
            (ProductPlans::Training(plans), MatMulPhase::WeightGradient) => &plans.update,
        };
        Some(PlannedCost::from(plan) * cut.parts())
    }

    /// The costs that the planner expects of a convolution, and of its gradients if it is trained.
    pub(crate) fn conv_planned_cost(
        &self,
        node: &NodeOperands,
        conv: &ConvOp,
        sizes: PlannedSizes,
    ) -> Option<PlannedCost> {
        let params = self.conv_params(node, conv);
        Some(match self.conv_forward_plans(node, &sizes.of(params)?).ok()? {
            ProductPlans::Inference(plan) => plan.as_ref().into(),
            ProductPlans::Training(plans) => {
                let ConvTrainingPlans { forward, backward, update } = plans.as_ref();
                PlannedCost::from(forward) + backward.into() + update.into()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poplin::planner::{ConvOptions, ConvPass, PoplibsOptions, plan};
    use crate::shape::DType;
    use crate::spec_keys::Proportion;
    use crate::targets::{IpuTarget, find_chip};

    fn cost(params: &ConvParams) -> PlannedCost {
        let machine = IpuTarget::all_tiles_of(*find_chip("mk2").expect("a chip"));
        let library = PoplibsOptions {
            available_memory_proportion: Proportion::new(0.05),
            ..PoplibsOptions::default()
        };
        let options = ConvOptions { pass: ConvPass::FcInferenceForward, library };
        (&plan(&machine, params, &options).expect("a plan")).into()
    }

    /// With little memory, a size next to one that splits well is at most twice as slow, or a note
    /// of the report recommends padding.
    #[test]
    fn slow_sizes_are_reported() {
        let mut reported = 0;
        for (m, k) in [(1025, 1025), (256, 1021)] {
            for n in [4095, 4096, 4097] {
                let params = ConvParams::matmul(DType::Half, 1, m, k, n);
                let given = cost(&params);
                let padded = cost(&in_whole_grains(&params).expect("sizes that are no multiples"));
                let slow = given.cycles > 2 * padded.cycles;
                assert!(!slow || given.short_of_memory > 0, "{params:?}: {given:?} {padded:?}");
                reported += u64::from(slow);
            }
        }
        assert!(reported > 0, "memory is short enough for the test to mean something");
    }
}
