//! The planner of matrix products and convolutions.
//!
//! A plan says which vertex does the work, how the shape is changed to suit it, and into how many
//! parts every axis is split over the tiles of one IPU. It is the cheapest of all by the estimate
//! of poplibs of March 2021, under the bound on temporary memory that
//! `available_memory_proportion` sets; ties go to fewer temporary bytes, then to the candidate
//! poplibs tries first. Nothing that could win is left out: the search is exact, and fast because
//! lower bounds rule most of it out.
//!
//! Where nothing fits the bound it is doubled, up to twice the memory of a tile, and then
//! dropped; [`MemoryBound`] in the plan says so.
//!
//! The estimate chooses plans, it does not predict cycles: that is the business of
//! [`super::conv`].
//!
//! Sizes are bounded ([`super::params::MAX_MACS`] and its neighbours), so that no arithmetic in
//! here can overflow; beyond them, and for empty shapes, planning is a [`PlanError`].

mod cache;
pub(crate) mod cost_model;
mod joint_plan;
mod layout_change;
pub mod plan;
mod poplibs_options;
pub(crate) mod search;
pub(crate) mod transforms;
pub(crate) mod vertex_candidates;
mod whole_grains;

pub use cache::PlanCache;
pub use plan::{
    ConvOptions, ConvPartition, ConvPass, ConvPlan, ConvPlanEstimate, LinearizeTileOrder,
    MemoryBound,
};
pub use poplibs_options::PoplibsOptions;
pub(crate) use whole_grains::in_whole_grains;

use crate::poplin::{ConvParams, FieldDim, PlanError};
use crate::shape::DType;
use crate::targets::IpuTarget;
use cost_model::{ConvCostModel, ConvPartSize};
use search::{BestPartition, ConvPlanCandidate, PartitionSearchBudget};
use tilescope_report::units::{Bytes, Cycles};
use transforms::TransformedConvParams;
use vertex_candidates::{ConvChannels, ConvVertexType};

/// Most tiles of one IPU: no chip has more than a few thousand.
pub(crate) const MAX_TILES: u64 = 1 << 16;

/// Plans of the three passes over the weights of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTrainingPlans {
    pub forward: ConvPlan,
    pub backward: ConvPlan,
    pub update: ConvPlan,
}

/// The cheapest plan for one pass. Passes of fully connected layers are planned on their own
/// here; [`plan_fully_connected`] plans all three.
pub fn plan(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvPlan, PlanError> {
    let task = ConvPlanningTask::new(machine, params, options)?;
    match task.search_within_bound()? {
        Some(found) => task.finish(found),
        None => task.search_with_raised_bound().and_then(|found| task.finish(found)),
    }
}

/// Plans of a convolution and its gradients. A backward pass with the canonical shape of the
/// forward pass uses the forward plan.
pub fn plan_convolution(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvTrainingPlans, PlanError> {
    let of = |pass: ConvPass| options.with_pass(pass);
    let forward = plan(machine, params, &of(ConvPass::TrainingForward))?;
    let gradient = params.gradient()?;
    // As poplibs' `single_conv_layer` does it: a gradient of the same canonical shape runs on the
    // forward plan, whatever planning it as a backward pass would have chosen.
    let backward = if gradient == forward.params {
        forward.clone()
    } else {
        plan(machine, &gradient, &of(ConvPass::TrainingBackward))?
    };
    let update = plan(machine, &params.weight_update()?, &of(ConvPass::TrainingWeightUpdate))?;
    Ok(ConvTrainingPlans { forward, backward, update })
}

/// Plans of a fully connected layer: one joint plan or three of their own, whichever is cheaper.
/// `params` is the forward pass, as [`ConvParams::matmul`] makes it.
pub fn plan_fully_connected(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvTrainingPlans, PlanError> {
    let forward_options = options.with_pass(ConvPass::FcTrainingForward);
    let joint = ConvPlanningTask {
        joint: true,
        ..ConvPlanningTask::new(machine, params, &forward_options)?
    };
    let forward = joint.params.clone();
    let separate = [
        ConvPlanningTask::new(machine, params, &forward_options)?,
        ConvPlanningTask::new(
            machine,
            &joint_plan::backward_params(&forward),
            &options.with_pass(ConvPass::FcTrainingBackward),
        )?,
        ConvPlanningTask::new(
            machine,
            &joint_plan::update_params(&forward),
            &options.with_pass(ConvPass::FcTrainingWeightUpdate),
        )?,
    ];
    debug_assert_eq!(forward.macs(), params.macs(), "planning changes no work");
    // Neither way is always cheaper: a joint plan moves no weights between passes, but only knows
    // swapped operands and no parallel split of output channels.
    let mut joint_found = joint.search_within_bound()?;
    let mut found = [
        separate[0].search_within_bound()?,
        separate[1].search_within_bound()?,
        separate[2].search_within_bound()?,
    ];
    // The bound is raised only where neither way fits, since a plan above it loses to any plan
    // within it. Passes that did fit keep their plans (poplibs `ConvPlan.cpp` runPlanner).
    if joint_found.is_none() && found.iter().any(Option::is_none) {
        joint_found = joint.search_with_raised_bound().ok();
        for (task, found) in separate.iter().zip(&mut found) {
            if found.is_none() {
                *found = Some(task.search_with_raised_bound()?);
            }
        }
    }
    let [Some(first), Some(second), Some(third)] = found else {
        return joint.finish_joint(joint_found.ok_or_else(|| joint.no_vertex())?);
    };
    if let Some(joint_found) = joint_found {
        let separate_best = [&first, &second, &third].map(|found| &found.best);
        if !joint.separate_is_cheaper(separate_best, &joint_found.best) {
            return joint.finish_joint(joint_found);
        }
    }
    Ok(ConvTrainingPlans {
        forward: separate[0].finish(first)?,
        backward: separate[1].finish(second)?,
        update: separate[2].finish(third)?,
    })
}

struct ConvPlanningTask<'a> {
    machine: &'a IpuTarget,
    params: ConvParams,
    options: ConvOptions,
    joint: bool,
}

/// The winner of a search.
struct ConvPlanSearchResult {
    best: BestPartition,
    transformed: TransformedConvParams,
    vertex: ConvVertexType,
    field_grain: u64,
    bound: MemoryBound,
}

impl<'a> ConvPlanningTask<'a> {
    fn new(
        machine: &'a IpuTarget,
        params: &ConvParams,
        options: &ConvOptions,
    ) -> Result<Self, PlanError> {
        if machine.tiles == 0 {
            return Err(PlanError::Empty { what: "number of tiles" });
        }
        if u64::from(machine.tiles) > MAX_TILES {
            return Err(PlanError::TooLarge { what: "number of tiles", limit: MAX_TILES });
        }
        Ok(Self { machine, params: params.canonical()?, options: *options, joint: false })
    }

    fn no_vertex(&self) -> PlanError {
        PlanError::NoVertex {
            chip: self.machine.chip.name,
            input: self.params.input_type.name(),
            partials: self.options.partials_for(self.params.input_type).name(),
        }
    }

    /// Bytes of a tile that temporaries may take; `None` for no bound, which is what a proportion
    /// of zero means to Poplar.
    fn bound_bytes(&self) -> Option<Bytes> {
        let proportion = self.options.library.available_memory_proportion.get();
        let bytes = Bytes::from_f64(self.machine.chip.bytes_per_tile.as_f64() * proportion);
        (!bytes.is_zero()).then_some(bytes)
    }

    /// The cheapest plan within the bound, if any fits.
    fn search_within_bound(&self) -> Result<Option<ConvPlanSearchResult>, PlanError> {
        match self.bound_bytes() {
            Some(bytes) => self.search(MemoryBound::Within(bytes)),
            None => Ok(None),
        }
    }

    /// The cheapest plan under a raised bound, or under none.
    fn search_with_raised_bound(&self) -> Result<ConvPlanSearchResult, PlanError> {
        if let Some(mut bytes) = self.bound_bytes() {
            loop {
                bytes = bytes.saturating_mul(2);
                if let Some(found) = self.search(MemoryBound::Raised(bytes))? {
                    return Ok(found);
                }
                // Beyond this no plan is expected to fit anyway, so the fastest of all is as good
                // as any.
                if bytes >= 2 * self.machine.chip.bytes_per_tile {
                    break;
                }
            }
        }
        self.search(MemoryBound::None)?.ok_or_else(|| self.no_vertex())
    }

    /// The cheapest plan within a bound.
    fn search(&self, bound: MemoryBound) -> Result<Option<ConvPlanSearchResult>, PlanError> {
        let memory = bound.bytes().unwrap_or(Bytes::MAX);
        let mut found: Option<ConvPlanSearchResult> = None;
        let mut best: Option<BestPartition> = None;
        // One best for all candidates: what the promising ones find early rules out most of the
        // later ones before their loops begin.
        let mut search = PartitionSearchBudget::default();
        for transformed in transforms::candidates(&self.params, &self.options, self.joint) {
            let vertices = vertex_candidates::candidates(
                &transformed.shape,
                self.machine,
                &self.options,
                self.joint,
            );
            for vertex in vertices {
                let Some(candidate) = self.candidate(&transformed, vertex)? else { continue };
                let before = best;
                search::improve(self.machine, &candidate, memory, &mut best, &mut search)?;
                // Only a strictly cheaper split replaces `best`, so of equal ones the candidate
                // that poplibs tries first wins.
                if let Some(best) = best.filter(|best| before != Some(*best)) {
                    found = Some(ConvPlanSearchResult {
                        best,
                        transformed: transformed.clone(),
                        vertex,
                        field_grain: candidate.model.field_grain,
                        bound,
                    });
                }
            }
        }
        Ok(found)
    }

    fn candidate(
        &self,
        transformed: &TransformedConvParams,
        vertex: ConvVertexType,
    ) -> Result<Option<ConvPlanCandidate>, PlanError> {
        let field_grain = self.field_grain(&transformed.shape, &vertex);
        let model = ConvCostModel::new(
            self.machine,
            &self.options,
            self.joint,
            &self.params,
            transformed,
            vertex,
            field_grain,
        );
        let mut others = Vec::new();
        if self.joint {
            let vertices =
                joint_plan::vertices(self.machine, &self.params, &self.options, &vertex)?;
            let Some(vertices) = vertices else { return Ok(None) };
            others = joint_plan::passes(self.machine, &self.params, transformed, &model, &vertices);
        }
        let ConvParams { in_channels, out_channels, .. } = transformed.view;
        let serial_channels = ConvChannels { in_channels, out_channels };
        Ok(Some(ConvPlanCandidate { model, others, serial_channels }))
    }

    /// Outputs of the innermost dimension that stay together: input channel groups of the
    /// backward pass in a joint plan; pairs where one output would be half a word.
    fn field_grain(&self, shape: &ConvParams, vertex: &ConvVertexType) -> u64 {
        if self.joint {
            // These outputs become the input channels of the backward pass, and poplibs gives both
            // passes the same groups.
            return vertex.in_chans_per_group;
        }
        let innermost = shape.dims.last().map_or(1, FieldDim::output);
        let odd_channels = !vertex.out_chans_per_group.is_multiple_of(2);
        // An odd number of halves on a tile ends inside a 4-byte word, which makes the next layer
        // rearrange them at great cost (poplibs `ConvPlan.cpp` createPlan).
        let pairs = shape.output_type == DType::Half && odd_channels;
        if pairs && innermost.is_multiple_of(2) { 2 } else { 1 }
    }

    /// Whether three plans of their own beat a joint one: within the bound by cycles, beyond it by
    /// bytes.
    fn separate_is_cheaper(&self, separate: [&BestPartition; 3], joint: &BestPartition) -> bool {
        let bound = self.bound_bytes().unwrap_or(Bytes::MAX);
        let cycles: Cycles = separate.iter().map(|best| best.total_cycles).sum();
        // Temporaries of one pass are gone before the next one starts.
        let bytes = separate.iter().map(|best| best.temp_bytes).max().unwrap_or_default();
        // What fits the bound wins whatever it costs; where neither fits, the separate plans also
        // need fewer bytes to win, cycles no longer count.
        if bytes <= bound {
            joint.temp_bytes > bound || cycles < joint.total_cycles
        } else {
            joint.temp_bytes > bound && bytes < joint.temp_bytes
        }
    }

    fn finish(&self, found: ConvPlanSearchResult) -> Result<ConvPlan, PlanError> {
        debug_assert!(found.best.partition.tiles() > 0, "a plan runs somewhere");
        Ok(ConvPlan {
            params: self.params.clone(),
            options: self.options,
            transformed: found.transformed,
            vertex: found.vertex,
            partition: found.best.partition,
            field_grain: found.field_grain,
            tile_order: LinearizeTileOrder::Standard,
            joint: self.joint,
            estimate: found.best.estimate,
            bound: found.bound,
        })
    }

    /// The three plans of a joint plan.
    fn finish_joint(&self, found: ConvPlanSearchResult) -> Result<ConvTrainingPlans, PlanError> {
        // The search kept only the winning split, so the models of the other passes are built
        // again.
        let candidate =
            self.candidate(&found.transformed, found.vertex)?.ok_or_else(|| self.no_vertex())?;
        let split = found.best.partition;
        let size = candidate.model.part_size(&split);
        let forward = self.finish(found)?;
        let derived = |index: usize, pass: ConvPass, params: ConvParams| {
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
            backward: derived(
                0,
                ConvPass::FcTrainingBackward,
                joint_plan::backward_params(&self.params),
            )?,
            update: derived(
                1,
                ConvPass::FcTrainingWeightUpdate,
                joint_plan::update_params(&self.params),
            )?,
            forward,
        })
    }
}

#[cfg(test)]
mod tests;
