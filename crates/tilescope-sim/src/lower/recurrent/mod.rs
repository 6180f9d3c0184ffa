//! Recurrent layers: one step over and over.
//!
//! As popnn does it (poplibs lib/popnn/Lstm.cpp, Gru.cpp, Rnn.cpp): each step slices its inputs off
//! the sequence, multiplies input and state with all weights, does the arithmetic of the gates where
//! the state lies, and writes its results into sequences. Training keeps what the backward pass
//! needs; weight gradients are summed up in a loop of their own.

mod gru;
mod lstm;
mod step;

use super::conv::{self, Destination, Operands, Source, planned_layouts, result_place};
use super::elementwise;
use super::reduce::{self, Dim, Operation, Reduction, ResultUse};
use super::runs::per_tile;
use super::work::{Phase, Place, Temporary, Work, WorkItem};
use crate::graph::DType;
use crate::planner::ranges::gcd;
use crate::planner::{
    ConvParams, Machine, Pass, Plan, PlanCache, PlanError, PlanOptions, TrainingPlans,
};
use std::sync::Arc;
use step::Step;
use tilescope_report::Category;
use tilescope_report::units::TileRuns;

/// What a layer computes in each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cell {
    /// Long short-term memory: forget, input, candidate and output units.
    Lstm,
    /// Gated recurrent unit: reset, update and candidate units.
    Gru,
}

impl Cell {
    /// The name it has in debug names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lstm => "lstm",
            Self::Gru => "gru",
        }
    }

    /// Units, each with weights of its own.
    pub(crate) fn units(self) -> u64 {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }

    /// Tensors of the state's size that a step keeps for the backward pass.
    pub(crate) fn kept(self) -> u64 {
        match self {
            Self::Lstm => 6,
            Self::Gru => 3,
        }
    }

    /// Tensors that the state is made of.
    pub(crate) fn states(self) -> u64 {
        match self {
            Self::Lstm => 2,
            Self::Gru => 1,
        }
    }

    /// Units that are multiplied together.
    fn products(self) -> &'static [u64] {
        match self {
            Self::Lstm => &[4],
            // The candidate needs the reset gate first.
            Self::Gru => &[2, 1],
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Layer {
    /// What each step computes.
    pub cell: Cell,
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
enum Plans {
    Inference(Arc<Plan>),
    Training(Arc<TrainingPlans>),
}

impl Plans {
    fn forward(&self) -> &Plan {
        match self {
            Self::Inference(plan) => plan,
            Self::Training(plans) => &plans.forward,
        }
    }
}

/// A layer on the tiles of one IPU.
#[derive(Clone, Debug)]
pub(crate) struct Lowered<'a> {
    machine: &'a Machine,
    layer: Layer,
    plans: Vec<Plans>,
}

impl<'a> Lowered<'a> {
    /// Plans the products of a layer.
    ///
    /// # Errors
    /// Where no plan exists.
    pub(crate) fn new(
        machine: &'a Machine,
        layer: Layer,
        training: bool,
        options: PlanOptions,
        cache: &PlanCache,
    ) -> Result<Self, PlanError> {
        let inner = layer.input + layer.output;
        let plan = |units: &u64| {
            let columns = units * layer.output;
            let params = ConvParams::matmul(layer.dtype, 1, layer.batch, inner, columns);
            if training {
                let options = options.with_pass(Pass::FcTrainingForward);
                cache.fully_connected(machine, &params, &options).map(Plans::Training)
            } else {
                let options = options.with_pass(Pass::FcInferenceForward);
                cache.plan(machine, &params, &options).map(Plans::Inference)
            }
        };
        let plans = layer.cell.products().iter().map(plan).collect::<Result<_, _>>()?;
        Ok(Self { machine, layer, plans })
    }

    /// Elements on each tile of one tensor of a step, `size` for each sample.
    fn spread(&self, size: u64) -> TileRuns<u64> {
        let grain = gcd(STATE_GRAIN, size);
        let grains = size / grain * self.layer.batch;
        let each = grains.div_ceil(self.machine.tiles).max(1);
        let used = grains.div_ceil(each);
        per_tile((0..used).map(|tile| (tile as u32, (grains - tile * each).min(each) * grain)))
    }

    /// Elements on each tile of a tensor of the state's size.
    fn state(&self) -> TileRuns<u64> {
        self.spread(self.layer.output)
    }

    /// Bytes of a sequence of `count` tensors of `size` a step.
    fn sequence(&self, size: u64, count: u64) -> TileRuns<u64> {
        let bytes = self.layer.steps * count * self.layer.dtype.bytes();
        self.spread(size).map(|elements| elements * bytes)
    }

    /// Bytes of the sequence of inputs, or of their gradients.
    pub(crate) fn inputs(&self) -> TileRuns<u64> {
        self.sequence(self.layer.input, 1)
    }

    /// Bytes of the sequence of outputs, or of their gradients.
    pub(crate) fn outputs(&self) -> TileRuns<u64> {
        self.sequence(self.layer.output, 1)
    }

    /// Bytes of what the forward pass keeps.
    pub(crate) fn kept(&self) -> TileRuns<u64> {
        self.sequence(self.layer.output, self.layer.cell.kept())
    }

    /// Bytes of the gradients of the units, which the weight update needs.
    pub(crate) fn unit_gradients(&self) -> TileRuns<u64> {
        self.sequence(self.layer.output, self.layer.cell.units())
    }

    /// Rows of the weights that lie together.
    pub(crate) fn weight_group(&self) -> u64 {
        self.plans.first().map_or(1, |plans| plans.forward().vertex.in_chans_per_group)
    }

    /// Bytes of the weights.
    pub(crate) fn weights(&self) -> TileRuns<u64> {
        let shares = self
            .plans
            .iter()
            .map(|plans| planned_layouts(self.machine, plans.forward()).weights.bytes);
        shares.reduce(|sum, more| super::runs::add(&sum, &more)).unwrap_or_else(TileRuns::empty)
    }

    fn options(&self) -> Step<'_> {
        Step::new(self.machine, self.layer, self.state())
    }

    /// The forward pass; in training it keeps what the backward pass needs.
    pub(crate) fn forward(&self) -> Work {
        let training = self.plans.iter().any(|plans| matches!(plans, Plans::Training(_)));
        let mut step = self.options();
        step.slice("input", &self.spread(self.layer.input));
        match self.layer.cell {
            Cell::Lstm => lstm::forward(&mut step, self, training),
            Cell::Gru => gru::forward(&mut step, self, training),
        }
        if training {
            let (kept, states) = (self.layer.cell.kept(), self.layer.cell.states());
            step.keep("fwdIntermediates", &self.units(kept + states));
            step.update("fwdIntermediates", &self.units(kept));
        }
        step.update("output", &self.state());
        step.count();
        self.repeat(step, &[])
    }

    pub(crate) fn backward(&self) -> Work {
        let mut step = self.options();
        step.slice("gradLayerNext", &self.state());
        step.slice("fwdIntermediates", &self.units(self.layer.cell.kept()));
        match self.layer.cell {
            Cell::Lstm => lstm::backward(&mut step, self),
            Cell::Gru => gru::backward(&mut step, self),
        }
        let (units, states) = (self.layer.cell.units(), self.layer.cell.states());
        step.keep("bwdIntermediates", &self.units(units + states));
        step.update("inputGrad", &self.spread(self.layer.input));
        step.update("bwdIntermediates", &self.units(units));
        step.count();
        let turned: Vec<Work> = self.plans.iter().filter_map(|plans| self.turned(plans)).collect();
        self.repeat(step, &turned)
    }

    /// The weight update: products of activations and gradients, summed up over the steps where
    /// the gradient of the weights lies.
    pub(crate) fn weight_update(&self) -> Work {
        let mut step = self.options();
        step.slice("prevLayerActs", &self.spread(self.layer.input));
        step.slice("prevStepOut", &self.state());
        step.slice("bwdIntermediates", &self.units(self.layer.cell.units()));
        if self.layer.cell == Cell::Gru {
            step.slice("fwdIntermediates", &self.units(self.layer.cell.kept()));
            step.binary("h_prev*r", elementwise::Binary::Multiply, 1);
        }
        for plans in &self.plans {
            if let Plans::Training(plans) = plans {
                step.append(self.accumulated(plans));
            }
        }
        step.in_place("Bias", elementwise::Binary::Add, self.layer.cell.units());
        step.count();
        let mut work = self.repeat(step, &[]);
        self.reduce_bias(&mut work);
        work
    }

    /// The gradient of the bias still has one value for each sample.
    fn reduce_bias(&self, work: &mut Work) {
        let units = self.layer.cell.units();
        let input = self.units(units);
        let reduction = Reduction {
            name: "FinalBiasReduction",
            operation: Operation::Add,
            dims: &[
                Dim { size: self.layer.batch, reduced: true },
                Dim { size: units * self.layer.output, reduced: false },
            ],
            input: &input,
            dtype: self.layer.dtype,
            output: self.layer.dtype,
            result: ResultUse::PLAIN,
            onto: None,
            tiles: self.machine.tiles as u32,
            bytes_per_cycle: u64::from(self.machine.chip.exchange_bytes_per_cycle),
        };
        // Sizes were checked when the layer was planned: the dimensions fit the layout.
        let reduced = reduce::add(work, &reduction);
        debug_assert!(reduced.is_ok());
    }

    /// `count` tensors of the state's size where the state lies.
    fn units(&self, count: u64) -> TileRuns<u64> {
        self.state().map(|elements| elements * count)
    }

    /// One product of the forward pass.
    fn product(&self, index: usize) -> Work {
        conv::forward(self.machine, self.plans[index].forward(), Source::Planned, Source::Planned)
    }

    /// One product of the backward pass; its weights were turned around before the loop.
    fn backward_product(&self, index: usize) -> Work {
        let Plans::Training(plans) = &self.plans[index] else { return Work::default() };
        conv::lower(self.machine, &plans.backward, &PLANNED).work
    }

    /// Brings the gradients of input and state from the product that made both.
    fn gather_gradients(&self, step: &mut Step) {
        let inputs = self.spread(self.layer.input);
        let bytes = inputs.map(|elements| elements * self.layer.dtype.bytes());
        step.gather("{Prev + Input}Grad", &self.state(), &bytes);
    }

    /// The weights as the backward pass wants them: made once, before the loop.
    fn turned(&self, plans: &Plans) -> Option<Work> {
        let Plans::Training(plans) = plans else { return None };
        Some(Work { temporaries: Vec::new(), ..conv::turn_weights(self.machine, plans) })
    }

    /// One product of the weight update, added to its sum.
    fn accumulated(&self, plans: &TrainingPlans) -> Work {
        let mut work = conv::lower(self.machine, &plans.update, &PLANNED).work;
        let bytes = planned_layouts(self.machine, &plans.update).output.bytes;
        let elements = bytes.map(|bytes| bytes / self.layer.dtype.bytes());
        work.push(elementwise::scaled_add("AccumulateWeights", self.layer.dtype, &elements));
        // The product's result is a tensor of its own, made by its last phase.
        let end = work.phases().len();
        let place = result_place(&plans.update);
        let name = "weightsDelta".to_string();
        let live = end - 2..end;
        work.temporaries.push(Temporary { name, category: Category::Variable, bytes, place, live });
        work
    }

    /// The loop over all steps, after `before`.
    fn repeat(&self, step: Step, before: &[Work]) -> Work {
        let mut work = Work::default();
        for part in before {
            work.items.extend(part.items.iter().cloned());
        }
        let start = work.phases().len();
        let body = step.finish();
        let phases = body.phases().len();
        let later = body.temporaries.into_iter().map(|each| each.later(start));
        let mut temporaries: Vec<Temporary> = later.collect();
        if !before.is_empty() {
            let weights = self.plans.iter().filter_map(|plans| match plans {
                Plans::Training(plans) => {
                    Some(planned_layouts(self.machine, &plans.backward).weights.bytes)
                }
                Plans::Inference(_) => None,
            });
            temporaries.extend(weights.map(|bytes| Temporary {
                name: "PreArrangeWeights".to_string(),
                category: Category::Rearrangement,
                bytes,
                place: Place::Any,
                live: start.saturating_sub(1)..start + phases,
            }));
        }
        work.items.push(WorkItem::Loop { times: self.layer.steps, body: body.items });
        work.temporaries = temporaries;
        work
    }
}

/// All operands as a plan wants them.
const PLANNED: Operands =
    Operands { input: Source::Planned, weights: Source::Planned, result: Destination::Planned };

/// Puts a phase at the end of a work.
fn push(work: &mut Work, phase: Phase) {
    work.items.push(WorkItem::Phase(phase));
}
