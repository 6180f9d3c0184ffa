//! Plans of fully connected layers: one joint plan, or three separate ones.

use super::cost_model::ConvPartSize;
use super::plan::{ConvOptions, ConvPartition, ConvPass, ConvPlan, MemoryBound};
use super::search::EstimatedPartition;
use super::{ConvPlanSearchResult, ConvPlanningTask, ConvTrainingPlans, joint_plan};
use crate::poplin::params::{ConvParams, PlanError};
use crate::targets::IpuTarget;
use tilescope_report::units::{Bytes, Cycles};

/// Returns the cheaper of one joint plan and three separate plans for a fully connected layer.
/// `params` is the forward pass, as [`ConvParams::matmul`] creates it.
pub fn plan_fully_connected(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvTrainingPlans, PlanError> {
    let mut search = FullyConnectedSearch::new(machine, params, options, 1)?;
    search.leave_cheaper_way();
    let FullyConnectedPlans { joint, separate } = search.finish()?;
    if let Some(joint) = joint.into_iter().next() {
        return Ok(joint);
    }
    match separate.map(|plans| plans.into_iter().next()) {
        [Some(forward), Some(backward), Some(update)] => {
            Ok(ConvTrainingPlans { forward, backward, update })
        }
        _ => Err(search.joint.no_vertex()),
    }
}

/// Returns the `most` cheapest joint plans of a fully connected layer, and the cheapest separate
/// plans of its passes. Both are returned only if both are within the bound on temporary memory.
/// Otherwise only the kind that poplibs chooses is returned.
pub(crate) fn cheapest_fully_connected_plans(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
    most: usize,
) -> Result<FullyConnectedPlans, PlanError> {
    let mut search = FullyConnectedSearch::new(machine, params, options, most)?;
    if !search.both_keep_bound() {
        search.leave_cheaper_way();
    }
    search.finish()
}

/// The cheapest plans of a fully connected layer, cheapest first.
pub(crate) struct FullyConnectedPlans {
    pub joint: Vec<ConvTrainingPlans>,
    /// Separate plans of the forward pass, the backward pass and the weight update.
    pub separate: [Vec<ConvPlan>; 3],
}

/// Search results of both kinds of plans for a fully connected layer.
struct FullyConnectedSearch<'a> {
    joint: ConvPlanningTask<'a>,
    separate: [ConvPlanningTask<'a>; 3],
    joint_found: Vec<ConvPlanSearchResult>,
    separate_found: [Vec<ConvPlanSearchResult>; 3],
}

impl<'a> FullyConnectedSearch<'a> {
    fn new(
        machine: &'a IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
        most: usize,
    ) -> Result<Self, PlanError> {
        let create_task = |params: &ConvParams, pass: ConvPass| {
            let task = ConvPlanningTask::new(machine, params, &options.with_pass(pass))?;
            Ok(ConvPlanningTask { most, ..task })
        };
        let joint =
            ConvPlanningTask { joint: true, ..create_task(params, ConvPass::FcTrainingForward)? };
        let forward = &joint.params;
        debug_assert_eq!(forward.macs(), params.macs(), "planning changes no work");
        let separate = [
            create_task(params, ConvPass::FcTrainingForward)?,
            create_task(&joint_plan::backward_params(forward), ConvPass::FcTrainingBackward)?,
            create_task(&joint_plan::update_params(forward), ConvPass::FcTrainingWeightUpdate)?,
        ];
        // Neither kind is always cheaper: a joint plan moves no weights between passes, but
        // supports only swapped operands and no parallel split of output channels.
        let mut joint_found = joint.search_within_bound()?;
        let mut separate_found = [
            separate[0].search_within_bound()?,
            separate[1].search_within_bound()?,
            separate[2].search_within_bound()?,
        ];
        // The bound is raised only if neither kind fits, because a plan above it loses to any plan
        // within it. Passes that did fit keep their plans (poplibs `ConvPlan.cpp` runPlanner).
        if joint_found.is_empty() && separate_found.iter().any(Vec::is_empty) {
            joint_found = joint.search_with_raised_bound().unwrap_or_default();
            for (task, found) in separate.iter().zip(&mut separate_found) {
                if found.is_empty() {
                    *found = task.search_with_raised_bound()?;
                }
            }
        }
        Ok(Self { joint, separate, joint_found, separate_found })
    }

    fn both_keep_bound(&self) -> bool {
        self.separate_found.iter().chain([&self.joint_found]).all(|found| {
            found.first().is_some_and(|found| matches!(found.bound, MemoryBound::Within(_)))
        })
    }

    /// Discards the results of the more expensive kind.
    fn leave_cheaper_way(&mut self) {
        let [forward, backward, update] = &self.separate_found;
        let separate = match [forward.first(), backward.first(), update.first()] {
            [Some(first), Some(second), Some(third)] => {
                let separate = [first, second, third].map(|found| &found.best);
                let joint = self.joint_found.first();
                joint.is_none_or(|joint| self.separate_is_cheaper(separate, &joint.best))
            }
            _ => false,
        };
        if separate {
            self.joint_found.clear();
        } else {
            self.separate_found = [const { Vec::new() }; 3];
        }
    }

    /// Returns true if three separate plans are better than a joint one: within the bound by
    /// cycles, beyond it by bytes.
    fn separate_is_cheaper(
        &self,
        separate: [&EstimatedPartition; 3],
        joint: &EstimatedPartition,
    ) -> bool {
        let bound = self.joint.bound_bytes().unwrap_or(Bytes::MAX);
        let cycles: Cycles = separate.iter().map(|best| best.total_cycles).sum();
        // Temporaries of one pass are freed before the next one starts.
        let bytes = separate.iter().map(|best| best.temp_bytes).max().unwrap_or_default();
        // Plans within the bound win regardless of their cost. If neither fits, cycles no longer
        // count, and the separate plans need fewer bytes to win.
        if bytes <= bound {
            joint.temp_bytes > bound || cycles < joint.total_cycles
        } else {
            joint.temp_bytes > bound && bytes < joint.temp_bytes
        }
    }

    /// Returns the plans of the remaining results.
    fn finish(&mut self) -> Result<FullyConnectedPlans, PlanError> {
        let mut joint = Vec::new();
        for found in std::mem::take(&mut self.joint_found) {
            joint.push(self.finish_joint(found)?);
        }
        let mut separate = [const { Vec::new() }; 3];
        for (pass, plans) in separate.iter_mut().enumerate() {
            for found in std::mem::take(&mut self.separate_found[pass]) {
                plans.push(self.separate[pass].finish(found));
            }
        }
        Ok(FullyConnectedPlans { joint, separate })
    }

    /// Returns the three plans of a joint plan.
    fn finish_joint(&self, found: ConvPlanSearchResult) -> Result<ConvTrainingPlans, PlanError> {
        let task = &self.joint;
        // The search kept only the split, so the models of the other passes are built again.
        let candidate =
            task.candidate(&found.transformed, found.vertex)?.ok_or_else(|| task.no_vertex())?;
        let split = found.best.partition;
        let size = candidate.model.part_size(&split);
        let forward = task.finish(found);
        let derive = |index: usize, pass: ConvPass, params: ConvParams| {
            let other = &candidate.others[index];
            let dims = candidate.model.dims;
            let (split, size): (ConvPartition, ConvPartSize) =
                ((other.partition)(&split, dims), (other.size)(&size, dims));
            // Never the default: the search evaluated this split for every pass.
            let calculate = other.model.compute_cycles(&split, &size).unwrap_or_default();
            let estimate = other.model.estimate(&split, &size, calculate);
            joint_plan::derive(&forward, pass, params, *other.model.vertex(), estimate)
        };
        Ok(ConvTrainingPlans {
            backward: derive(
                0,
                ConvPass::FcTrainingBackward,
                joint_plan::backward_params(&task.params),
            )?,
            update: derive(
                1,
                ConvPass::FcTrainingWeightUpdate,
                joint_plan::update_params(&task.params),
            )?,
            forward,
        })
    }
}
