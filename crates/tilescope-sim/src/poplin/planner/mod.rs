//! Planner of matrix products and convolutions.
//!
//! A plan determines the vertex, the transform that adapts the shape to it, and the number of parts
//! into which every axis is split over the tiles of one IPU. It is the cheapest of all by the
//! estimate of poplibs of March 2021, under the bound on temporary memory that
//! `available_memory_proportion` sets. Ties go to fewer temporary bytes, then to the candidate that
//! poplibs tries first. The search is exact, and fast because lower bounds exclude most plans.
//!
//! If no plan fits the bound, it is doubled, up to twice the memory of a tile, and then dropped.
//! [`MemoryBound`] in the plan records this.
//!
//! The estimate chooses plans. It does not predict cycles, which is the task of [`super::conv`].
//!
//! Sizes are limited ([`super::params::MAX_MACS`] and its neighbours), so that no arithmetic here
//! can overflow. Beyond the limits, and for empty shapes, planning returns a [`PlanError`].

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

/// Maximum number of tiles of one IPU. No chip has more than a few thousand.
pub(crate) const MAX_TILES: u64 = 1 << 16;

/// Plans of the three passes over the weights of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTrainingPlans {
    pub forward: ConvPlan,
    pub backward: ConvPlan,
    pub update: ConvPlan,
}

/// Returns the cheapest plan for one pass. Passes of fully connected layers are planned separately
/// here. [`plan_fully_connected`] plans all three.
pub fn plan(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvPlan, PlanError> {
    let task = ConvPlanningTask::new(machine, params, options)?;
    let cheapest = task.search_and_finish()?.into_iter().next();
    cheapest.ok_or_else(|| task.no_vertex())
}

/// Returns up to `most` of the cheapest plans for one pass, cheapest first. All are within the
/// bound on temporary memory under which the cheapest was found.
pub(crate) fn cheapest_plans(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
    most: usize,
) -> Result<Vec<ConvPlan>, PlanError> {
    let task = ConvPlanningTask { most, ..ConvPlanningTask::new(machine, params, options)? };
    task.search_and_finish()
}

/// Returns the plans of a convolution and its gradients. A backward pass with the canonical shape
/// of the forward pass uses the forward plan.
pub fn plan_convolution(
    machine: &IpuTarget,
    params: &ConvParams,
    options: &ConvOptions,
) -> Result<ConvTrainingPlans, PlanError> {
    let forward = plan(machine, params, &options.with_pass(ConvPass::TrainingForward))?;
    let gradient = params.gradient()?;
    // As in poplibs' `single_conv_layer`: a gradient of the same canonical shape runs on the
    // forward plan, even if planning it as a backward pass would choose another.
    let backward = if gradient == forward.params {
        forward.clone()
    } else {
        plan(machine, &gradient, &options.with_pass(ConvPass::TrainingBackward))?
    };
    let update_options = options.with_pass(ConvPass::TrainingWeightUpdate);
    let update = plan(machine, &params.weight_update()?, &update_options)?;
    Ok(ConvTrainingPlans { forward, backward, update })
}

struct ConvPlanningTask<'a> {
    machine: &'a IpuTarget,
    params: ConvParams,
    options: ConvOptions,
    joint: bool,
    /// Maximum number of plans to find.
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

    /// Bytes of a tile that temporaries may occupy. `None` for no bound, which a proportion of zero
    /// means in Poplar.
    fn bound_bytes(&self) -> Option<Bytes> {
        let proportion = self.options.library.available_memory_proportion.get();
        let bytes = Bytes::from_f64(self.machine.chip.bytes_per_tile.as_f64() * proportion);
        if bytes.is_zero() { None } else { Some(bytes) }
    }

    /// The cheapest plans within the bound, or otherwise under a raised one.
    fn search_and_finish(&self) -> Result<Vec<ConvPlan>, PlanError> {
        let mut found = self.search_within_bound()?;
        if found.is_empty() {
            found = self.search_with_raised_bound()?;
        }
        Ok(found.into_iter().map(|found| self.finish(found)).collect())
    }

    /// The cheapest plans within the bound. Empty if none fits.
    fn search_within_bound(&self) -> Result<Vec<ConvPlanSearchResult>, PlanError> {
        match self.bound_bytes() {
            Some(bytes) => self.search(MemoryBound::Within(bytes)),
            None => Ok(Vec::new()),
        }
    }

    /// The cheapest plans under a raised bound, or under none. There is at least one.
    fn search_with_raised_bound(&self) -> Result<Vec<ConvPlanSearchResult>, PlanError> {
        if let Some(mut bytes) = self.bound_bytes() {
            loop {
                bytes = bytes.saturating_mul(2);
                let found = self.search(MemoryBound::Raised(bytes))?;
                if !found.is_empty() {
                    return Ok(found);
                }
                // Beyond this no plan is expected to fit, so the fastest of all is chosen.
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
        // One list for all candidates: the early results of the promising ones exclude most of the
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

    /// Number of outputs of the innermost dimension that stay together: input channel groups of the
    /// backward pass in a joint plan, or pairs if one output would be half a word.
    fn field_grain(&self, shape: &ConvParams, vertex: &ConvVertexType) -> u64 {
        if self.joint {
            // These outputs become the input channels of the backward pass, and poplibs gives both
            // passes the same groups.
            return vertex.in_chans_per_group;
        }
        let innermost = shape.dims.last().map_or(1, FieldDim::output);
        let odd_channels = !vertex.out_chans_per_group.is_multiple_of(2);
        // An odd number of halves on a tile ends inside a 4-byte word, which makes the next layer
        // rearrange them at high cost (poplibs `ConvPlan.cpp` createPlan).
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
