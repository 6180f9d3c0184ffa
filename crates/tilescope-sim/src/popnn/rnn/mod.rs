//! Recurrent layers, which repeat one step.
//!
//! The method is that of popnn (poplibs lib/popnn/Lstm.cpp, Gru.cpp, Rnn.cpp). Each step slices its
//! inputs from the sequence, multiplies input and state by all weights, does the arithmetic of the
//! gates on the tiles of the state, and writes its results into sequences. Training keeps the
//! tensors that the backward pass needs. Weight gradients are summed in a separate loop.

mod gru;
mod lstm;
mod step_builder;

use crate::poplar::tile_runs::per_tile;
use crate::poplar::work::{OperationWork, OperationWorkItem, TemporaryVariable, WorkPhase};
use crate::poplin::PlanCache;
use crate::poplin::conv;
use crate::poplin::conv::{
    ConvPassOperands, OperandSource, ResultDestination, planned_layouts, result_memory_constraint,
};
use crate::poplin::planner::{ConvOptions, ConvPass, ConvPlan, ConvTrainingPlans};
use crate::poplin::{ConvParams, PlanError};
use crate::popops::elementwise;
use crate::popops::reduce;
use crate::popops::reduce::{ReduceDim, ReduceOperation, ReduceResultUse, ReductionRequest};
use crate::shape::DType;
use crate::shape::gcd;
use crate::targets::IpuTarget;
use std::sync::Arc;
use step_builder::RnnStepBuilder;
use tilescope_report::MemoryCategory;
use tilescope_report::units::{Bytes, Elements, TileId, TileRuns};

/// Computation of a layer in each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RnnCellType {
    /// Long short-term memory: forget, input, candidate and output units.
    Lstm,
    /// Gated recurrent unit: reset, update and candidate units.
    Gru,
}

impl RnnCellType {
    /// Name of the cell in debug names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lstm => "lstm",
            Self::Gru => "gru",
        }
    }

    /// Number of units, each with its own weights.
    pub(crate) fn units(self) -> u64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Number of tensors of the state's size that a step keeps for the backward pass.
    pub(crate) fn kept(self) -> u64 {
        match self {
            Self::Lstm => 6,
            Self::Gru => 3,
        }
    }

    /// Number of tensors of the state.
    pub(crate) fn states(self) -> u64 {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }

    /// Number of units in each product.
    fn products(self) -> &'static [u64] {
        match self {
            Self::Lstm => &[4],
            // The candidate needs the reset gate first.
            Self::Gru => &[2, 1],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct RnnParams {
    /// Computation of each step.
    pub cell: RnnCellType,
    pub batch: u64,
    pub steps: u64,
    /// Size of the input of a step.
    pub input: u64,
    /// Size of the output of a step.
    pub output: u64,
    pub dtype: DType,
}

/// Elements of a state that stay together on a tile (Rnn.cpp, getNumGrains).
pub(crate) const STATE_GRAIN: u64 = 16;

/// Plans of one product of a layer.
#[derive(Clone, Debug)]
enum RnnProductPlans {
    Inference(Arc<ConvPlan>),
    Training(Arc<ConvTrainingPlans>),
}

impl RnnProductPlans {
    fn forward(&self) -> &ConvPlan {
        match self {
            Self::Inference(plan) => plan,
            Self::Training(plans) => &plans.forward,
        }
    }
}

/// Layer on the tiles of one IPU.
#[derive(Clone, Debug)]
pub(crate) struct RnnLowering<'a> {
    machine: &'a IpuTarget,
    layer: RnnParams,
    plans: Vec<RnnProductPlans>,
}

impl<'a> RnnLowering<'a> {
    /// Plans the products of a layer.
    ///
    /// # Errors
    ///
    /// Fails if no plan exists.
    pub(crate) fn new(
        machine: &'a IpuTarget,
        layer: RnnParams,
        training: bool,
        options: ConvOptions,
        cache: &PlanCache,
    ) -> Result<Self, PlanError> {
        let inner = layer.input + layer.output;
        let plan = |units: &u64| {
            let columns = units * layer.output;
            let params = ConvParams::matmul(layer.dtype, 1, layer.batch, inner, columns);
            if training {
                let options = options.with_pass(ConvPass::FcTrainingForward);
                cache.fully_connected(machine, &params, &options).map(RnnProductPlans::Training)
            } else {
                let options = options.with_pass(ConvPass::FcInferenceForward);
                cache.plan(machine, &params, &options).map(RnnProductPlans::Inference)
            }
        };
        let plans = layer.cell.products().iter().map(plan).collect::<Result<_, _>>()?;
        Ok(Self { machine, layer, plans })
    }

    /// Elements on each tile of one tensor of a step with `size` elements per sample.
    fn spread(&self, size: u64) -> TileRuns<Elements> {
        // poplibs' `Rnn.cpp` getNumGrains: 16 elements stay together, or the greatest common
        // divisor with the size.
        let grain = gcd(STATE_GRAIN, size);
        let grains = size / grain * self.layer.batch;
        let each = grains.div_ceil(self.machine.tiles.into()).max(1);
        let used = grains.div_ceil(each);
        let elements = (0..used).map(|tile| Elements((grains - tile * each).min(each) * grain));
        per_tile(TileId(0).onwards().zip(elements))
    }

    /// Elements on each tile of a tensor of the state's size.
    fn state(&self) -> TileRuns<Elements> {
        self.spread(self.layer.output)
    }

    /// Bytes on each tile of a sequence with `count` tensors of `size` per step.
    fn sequence(&self, size: u64, count: u64) -> TileRuns<Bytes> {
        let bytes = self.layer.steps * count * self.layer.dtype.bytes();
        self.spread(size).map(|elements| *elements * bytes)
    }

    /// Bytes of the sequence of inputs, or of their gradients.
    pub(crate) fn inputs(&self) -> TileRuns<Bytes> {
        self.sequence(self.layer.input, 1)
    }

    /// Bytes of the sequence of outputs, or of their gradients.
    pub(crate) fn outputs(&self) -> TileRuns<Bytes> {
        self.sequence(self.layer.output, 1)
    }

    /// Bytes of the tensors that the forward pass keeps.
    pub(crate) fn kept(&self) -> TileRuns<Bytes> {
        self.sequence(self.layer.output, self.layer.cell.kept())
    }

    /// Bytes of the gradients of the units, which the weight update needs.
    pub(crate) fn unit_gradients(&self) -> TileRuns<Bytes> {
        self.sequence(self.layer.output, self.layer.cell.units())
    }

    /// Number of contiguous rows of the weights.
    pub(crate) fn weight_group(&self) -> u64 {
        self.plans.first().map_or(1, |plans| plans.forward().vertex.in_chans_per_group)
    }

    /// Bytes of the weights on each tile.
    pub(crate) fn weights(&self) -> TileRuns<Bytes> {
        let shares = self
            .plans
            .iter()
            .map(|plans| planned_layouts(self.machine, plans.forward()).weights.bytes);
        shares
            .reduce(|sum, more| crate::poplar::tile_runs::add_per_tile(&sum, &more))
            .unwrap_or_else(TileRuns::empty)
    }

    fn step_builder(&self) -> RnnStepBuilder<'_> {
        RnnStepBuilder::new(self.machine, self.layer, self.state())
    }

    /// Returns the forward pass. In training it keeps the tensors that the backward pass needs.
    pub(crate) fn forward(&self) -> OperationWork {
        let training = self.plans.iter().any(|plans| matches!(plans, RnnProductPlans::Training(_)));
        let mut step = self.step_builder();
        step.slice("input", &self.spread(self.layer.input));
        match self.layer.cell {
            RnnCellType::Lstm => lstm::forward(&mut step, self, training),
            RnnCellType::Gru => gru::forward(&mut step, self, training),
        }
        if training {
            let kept = self.layer.cell.kept();
            let states = self.layer.cell.states();
            step.copy_on_tile("fwdIntermediates", &self.units(kept + states));
            step.update("fwdIntermediates", &self.units(kept));
        }
        step.update("output", &self.state());
        step.count();
        self.time_loop(step, &[])
    }

    pub(crate) fn backward(&self) -> OperationWork {
        let mut step = self.step_builder();
        step.slice("gradLayerNext", &self.state());
        step.slice("fwdIntermediates", &self.units(self.layer.cell.kept()));
        match self.layer.cell {
            RnnCellType::Lstm => lstm::backward(&mut step, self),
            RnnCellType::Gru => gru::backward(&mut step, self),
        }
        let units = self.layer.cell.units();
        let states = self.layer.cell.states();
        step.copy_on_tile("bwdIntermediates", &self.units(units + states));
        step.update("inputGrad", &self.spread(self.layer.input));
        step.update("bwdIntermediates", &self.units(units));
        step.count();
        // Weights are the same in every step. Transposing them once before the loop takes memory
        // during the whole loop, but saves repeating the cycles in each of the `steps`.
        let turned: Vec<OperationWork> =
            self.plans.iter().filter_map(|plans| self.transposed_weights(plans)).collect();
        self.time_loop(step, &turned)
    }

    /// Returns the weight update: products of activations and gradients, summed over the steps on
    /// the tiles of the weight gradient.
    pub(crate) fn weight_update(&self) -> OperationWork {
        let mut step = self.step_builder();
        step.slice("prevLayerActs", &self.spread(self.layer.input));
        step.slice("prevStepOut", &self.state());
        step.slice("bwdIntermediates", &self.units(self.layer.cell.units()));
        if self.layer.cell == RnnCellType::Gru {
            step.slice("fwdIntermediates", &self.units(self.layer.cell.kept()));
            step.binary("h_prev*r", elementwise::BinaryOpType::Multiply, 1);
        }
        for plans in &self.plans {
            if let RnnProductPlans::Training(plans) = plans {
                step.append(self.accumulated(plans));
            }
        }
        step.in_place("Bias", elementwise::BinaryOpType::Add, self.layer.cell.units());
        step.count();
        let mut work = self.time_loop(step, &[]);
        self.reduce_bias(&mut work);
        work
    }

    /// Adds the reduction of the bias gradient, which still has one value for each sample.
    fn reduce_bias(&self, work: &mut OperationWork) {
        let units = self.layer.cell.units();
        let input = self.units(units);
        let reduction = ReductionRequest {
            name: "FinalBiasReduction",
            operation: ReduceOperation::Add,
            dims: &[
                ReduceDim { size: self.layer.batch, reduced: true },
                ReduceDim { size: units * self.layer.output, reduced: false },
            ],
            input: &input,
            dtype: self.layer.dtype,
            output: self.layer.dtype,
            result: ReduceResultUse::PLAIN,
            output_mapping: None,
            tiles: self.machine.tiles,
            speed: self.machine.exchange_speed(),
        };
        // Sizes were checked when the layer was planned, so the dimensions fit the layout.
        let reduced = reduce::add(work, &reduction);
        debug_assert!(reduced.is_ok());
    }

    /// Elements on each tile of `count` tensors of the state's size.
    fn units(&self, count: u64) -> TileRuns<Elements> {
        self.state().map(|elements| *elements * count)
    }

    /// One product of the forward pass.
    fn product(&self, index: usize) -> OperationWork {
        conv::forward(
            self.machine,
            self.plans[index].forward(),
            OperandSource::Planned,
            OperandSource::Planned,
        )
    }

    /// One product of the backward pass. Its weights were transposed before the loop.
    fn backward_product(&self, index: usize) -> OperationWork {
        let RnnProductPlans::Training(plans) = &self.plans[index] else {
            return OperationWork::default();
        };
        conv::lower(self.machine, &plans.backward, &PLANNED_OPERANDS).work
    }

    /// Moves the gradients of input and state from the product that computed both.
    fn gather_gradients(&self, step: &mut RnnStepBuilder) {
        let inputs = self.spread(self.layer.input);
        let bytes = inputs.map(|elements| *elements * self.layer.dtype.bytes());
        step.gather("{Prev + Input}Grad", &self.state(), &bytes);
    }

    /// Transposition of the weights for the backward pass, once before the loop.
    fn transposed_weights(&self, plans: &RnnProductPlans) -> Option<OperationWork> {
        let RnnProductPlans::Training(plans) = plans else { return None };
        Some(OperationWork {
            temporaries: Vec::new(),
            ..conv::transpose_weights_ahead(self.machine, plans)
        })
    }

    /// One product of the weight update, added to its sum.
    fn accumulated(&self, plans: &ConvTrainingPlans) -> OperationWork {
        let mut work = conv::lower(self.machine, &plans.update, &PLANNED_OPERANDS).work;
        let bytes = planned_layouts(self.machine, &plans.update).output.bytes;
        let elements = bytes.map(|bytes| Elements(*bytes / self.layer.dtype.bytes()));
        work.push(elementwise::scaled_add("AccumulateWeights", self.layer.dtype, &elements));
        // The product's result is a separate tensor, which its last phase writes.
        let end = work.phases().len();
        let place = result_memory_constraint(&plans.update);
        let name = "weightsDelta".to_string();
        let live = end - 2..end;
        work.temporaries.push(TemporaryVariable {
            name,
            category: MemoryCategory::Variable,
            bytes,
            memory_constraint: place,
            live,
        });
        work
    }

    /// Loop over all steps, after `before`.
    fn time_loop(&self, step: RnnStepBuilder, before: &[OperationWork]) -> OperationWork {
        let mut work = OperationWork::default();
        for part in before {
            work.items.extend(part.items.iter().cloned());
        }
        let start = work.phases().len();
        let body = step.finish();
        let phases = body.phases().len();
        let later = body.temporaries.into_iter().map(|each| each.shifted_by(start));
        let mut temporaries: Vec<TemporaryVariable> = later.collect();
        if !before.is_empty() {
            let weights = self.plans.iter().filter_map(|plans| match plans {
                RnnProductPlans::Training(plans) => {
                    Some(planned_layouts(self.machine, &plans.backward).weights.bytes)
                }
                RnnProductPlans::Inference(_) => None,
            });
            temporaries.extend(weights.map(|bytes| {
                TemporaryVariable::anywhere(
                    "PreArrangeWeights".to_string(),
                    MemoryCategory::Rearrangement,
                    bytes,
                    start.saturating_sub(1)..start + phases,
                )
            }));
        }
        work.items.push(OperationWorkItem::Loop { times: self.layer.steps, body: body.items });
        work.temporaries = temporaries;
        work
    }
}

/// All operands in the layout of the plan.
const PLANNED_OPERANDS: ConvPassOperands = ConvPassOperands {
    input: OperandSource::Planned,
    weights: OperandSource::Planned,
    result: ResultDestination::Planned,
};

/// Appends a phase to a work.
fn push(work: &mut OperationWork, phase: WorkPhase) {
    work.items.push(OperationWorkItem::Phase(phase));
}
