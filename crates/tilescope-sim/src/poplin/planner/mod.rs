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

pub(crate) mod cost_model;
mod fully_connected;
mod joint_plan;
mod layout_change;
pub mod plan;
mod poplibs_options;
pub(crate) mod search;
pub(crate) mod transforms;
pub(crate) mod vertex_candidates;
mod whole_grains;

pub use fully_connected::plan_fully_connected;
pub(crate) use fully_connected::{FullyConnectedPlans, cheapest_fully_connected_plans};
pub use plan::{
    ConvOptions, ConvPartition, ConvPass, ConvPlan, ConvPlanEstimate, LinearizeTileOrder,
    MemoryBound,
};
pub use poplibs_options::{OperationPlanning, PlanSelection, PoplibsOptions};
pub(crate) use whole_grains::in_whole_grains;

use crate::poplin::{ConvParams, FieldDim, PlanError};
use crate::shape::DType;
use crate::targets::IpuTarget;
use cost_model::ConvCostModel;
use search::{BestPartitions, ConvPlanCandidate, EstimatedPartition, PartitionSearchBudget};
use tilescope_report::units::Bytes;
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
    let cheapest = task.search_and_finish()?.into_iter().next();
    cheapest.ok_or_else(|| task.no_vertex())
}

/// The `most` cheapest plans for one pass, or as many as there are, cheapest first. All keep the
/// bound on temporary memory that the cheapest was found under.
pub(crate) fn cheapest_plans(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
    most: usize,
) -> Result<Vec<ConvPlan>, PlanError> {
    let task = ConvPlanningTask { most, ..ConvPlanningTask::new(machine, params, options)? };
    task.search_and_finish()
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

struct ConvPlanningTask<'a> {
    machine: &'a IpuTarget,
    params: ConvParams,
    options: ConvOptions,
    joint: bool,
    /// How many plans are looked for.
    most: usize,
}

/// One of the plans that a search found.
struct ConvPlanSearchResult {
    best: EstimatedPartition,
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
        let params = params.canonical()?;
        Ok(Self { machine, params, options: *options, joint: false, most: 1 })
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

    /// The cheapest plans within the bound, or else under a raised one.
    fn search_and_finish(&self) -> Result<Vec<ConvPlan>, PlanError> {
        let mut found = self.search_within_bound()?;
        if found.is_empty() {
            found = self.search_with_raised_bound()?;
        }
        Ok(found.into_iter().map(|found| self.finish(found)).collect())
    }

    /// The cheapest plans within the bound, if any fits.
    fn search_within_bound(&self) -> Result<Vec<ConvPlanSearchResult>, PlanError> {
        match self.bound_bytes() {
            Some(bytes) => self.search(MemoryBound::Within(bytes)),
            None => Ok(Vec::new()),
        }
    }

    /// The cheapest plans under a raised bound, or under none; at least one.
    fn search_with_raised_bound(&self) -> Result<Vec<ConvPlanSearchResult>, PlanError> {
        if let Some(mut bytes) = self.bound_bytes() {
            loop {
                bytes = bytes.saturating_mul(2);
                let found = self.search(MemoryBound::Raised(bytes))?;
                if !found.is_empty() {
                    return Ok(found);
                }
                // Beyond this no plan is expected to fit anyway, so the fastest of all is as good
                // as any.
                if bytes >= 2 * self.machine.chip.bytes_per_tile {
                    break;
                }
            }
        }
        let found = self.search(MemoryBound::None)?;
        if found.is_empty() { Err(self.no_vertex()) } else { Ok(found) }
    }

    /// The cheapest plans within a bound, cheapest first.
    fn search(&self, bound: MemoryBound) -> Result<Vec<ConvPlanSearchResult>, PlanError> {
        let memory = bound.bytes().unwrap_or(Bytes::MAX);
        let transforms = transforms::candidates(&self.params, &self.options, self.joint);
        let mut tried = Vec::new();
        // One list for all candidates: what the promising ones find early rules out most of the
        // later ones before their loops begin.
        let mut best = BestPartitions::at_most(self.most);
        let mut search = PartitionSearchBudget::default();
        for transformed in &transforms {
            let vertices = vertex_candidates::candidates(
                &transformed.shape,
                self.machine,
                &self.options,
                self.joint,
            );
            for vertex in vertices {
                let Some(mut candidate) = self.candidate(transformed, vertex)? else { continue };
                candidate.number = tried.len();
                search::improve(self.machine, &candidate, memory, &mut best, &mut search)?;
                tried.push((transformed, vertex, candidate.model.field_grain));
            }
        }
        let found = best.into_cheapest_first().into_iter().map(|best| {
            let (transformed, vertex, field_grain) = tried[best.candidate];
            ConvPlanSearchResult {
                best,
                transformed: transformed.clone(),
                vertex,
                field_grain,
                bound,
            }
        });
        Ok(found.collect())
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
        Ok(Some(ConvPlanCandidate { number: 0, model, others, serial_channels }))
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

    fn finish(&self, found: ConvPlanSearchResult) -> ConvPlan {
        debug_assert!(found.best.partition.tiles() > 0, "a plan runs somewhere");
        ConvPlan {
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
        }
    }
}

#[cfg(test)]
mod tests;
