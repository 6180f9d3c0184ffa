//! Optimisers: the weight update of one parameter.
//!
//! Each is a sequence of element-wise passes over the parameter's tiles. Adam, AdamW and LAMB
//! follow PopART's lowering. Each moment is one fused expression, and so is the bias-corrected step
//! with weight decay. LAMB compares the norms of parameter and step. The variable update adds the
//! step, times a rate that one tile computes (popart willow/src/popx/op/accumulatex.cpp,
//! adamupdaterx.cpp, lambx.cpp, adamvarupdatex.cpp).
//!
//! Adam of TensorFlow has one rate for all parameters, with the corrections of the bias
//! (graphcore/tensorflow tensorflow/compiler/tf2xla/kernels/training_ops.cc, `ResourceApplyAdam`).
//! Sums that overwrite a variable with a scaled tensor are one pass, and other functions with a
//! single user join one expression (compiler/plugin/poplar/driver/passes/
//! fuse_ops_into_poplar_ops.cc, `scaled_inplace_xby`, and expression_outliner.cc).

use super::{
    LoweredOperation, LoweringContext, LoweringError, LoweringResult, NodeOperands, Operator,
    ReplicaSum, ShapeError,
};
use crate::poplar::exchange::{self, TileMessages};
use crate::poplar::work::OperationWork;
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp, FusedExpression};
use crate::popops::reduce::ReduceOperation;
use crate::popops::rows::TensorRows;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{DType, TensorInfo};
use crate::targets::IpuTarget;
use tilescope_report::units::{Elements, TileRange, TileRuns};

/// An optimiser of a training model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd,
    /// Gradient descent with momentum.
    SgdMomentum,
    /// Gradient descent with momentum, and one tensor for the accumulated gradient and the momentum
    /// (PopART SGDAccumulatorAndMomentum::Combined).
    SgdMomentumCombined,
    /// Adaptive moments (Adam).
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
    /// AdamW whose step is scaled by the norms of parameter and step, layer by layer.
    Lamb,
}

impl Optimizer {
    /// All optimisers, in the order in which specs list them.
    pub const ALL: [Self; 6] = [
        Self::Sgd,
        Self::SgdMomentum,
        Self::SgdMomentumCombined,
        Self::Adam,
        Self::AdamW,
        Self::Lamb,
    ];

    /// The names of all optimisers in a spec.
    pub(crate) const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// The name in a spec.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::SgdMomentum => "sgd_momentum",
            Self::SgdMomentumCombined => "sgd_momentum_combined",
            Self::Adam => "adam",
            Self::AdamW => "adamw",
            Self::Lamb => "lamb",
        }
    }

    /// Returns the optimiser with this name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|optimizer| optimizer.name() == name)
    }

    /// The state tensors: the prefix of PopART's names, and the element type if it differs from the
    /// parameter's. Second moments of halves would underflow (graphcore/examples nlp/bert/pytorch
    /// optimization.py: second_order_momentum_accum_type float). If gradients are accumulated, a
    /// combined momentum is the accumulator.
    pub(crate) fn states(self, accumulates: bool) -> &'static [(&'static str, Option<DType>)] {
        match self {
            Self::SgdMomentumCombined if accumulates => &[],
            Self::Sgd => &[],
            Self::SgdMomentum | Self::SgdMomentumCombined => &[("Accl", None)],
            Self::Adam | Self::AdamW | Self::Lamb => {
                &[("Accl1", None), ("Accl2", Some(DType::Float))]
            }
        }
    }

    /// Makes the update of one parameter. If there is an accumulator, the update prepares it for
    /// the next sum. Adaptive optimisers scale gradients of a scaled loss back.
    pub(crate) fn update(
        self,
        form: UpdateForm,
        accumulates: bool,
        unscales: bool,
    ) -> impl Operator + 'static {
        VarUpdateOp { optimizer: self, form, accumulates, unscales }
    }

    /// True if it has moments of gradients.
    fn is_adaptive(self) -> bool {
        matches!(self, Self::Adam | Self::AdamW | Self::Lamb)
    }
}

/// The operations that an update consists of, which depend on the framework.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UpdateForm {
    /// That of PopART: every parameter has its own count of updates and its own rate.
    Own,
    /// That of TensorFlow, for Adam: the rate is shared. The first parameter computes it.
    Shared { computes_rate: bool },
}

/// The update of one parameter. Operands: parameter, gradient or accumulator, states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct VarUpdateOp {
    optimizer: Optimizer,
    form: UpdateForm,
    accumulates: bool,
    unscales: bool,
}

/// A function of values on a single tile.
const SCALAR_FUNCTION: FusedExpression = FusedExpression { operands: 1, functions: 1 };

/// The rate with the norms of LAMB: its product with the ratio of their roots, the smaller of one
/// root and the largest norm, and two comparisons with zero (adamvarupdatex.cpp).
const LAMB_RATE: FusedExpression = FusedExpression { operands: 3, functions: 10 };

/// The first moment, `b1 accl1 + (1 - b1) gradient` (accumulatex.cpp, MovingAverage).
const FIRST_MOMENT: FusedExpression = FusedExpression { operands: 2, functions: 3 };

/// The second moment, `b2 accl2 + (1 - b2) gradient gradient` (accumulatex.cpp,
/// MovingAverageSquare).
const SECOND_MOMENT: FusedExpression = FusedExpression { operands: 2, functions: 4 };

/// The step, `accl1 / (1 - b1^t) / (sqrt(accl2 / (1 - b2^t)) + e)` (adamupdaterx.cpp).
const STEP: FusedExpression = FusedExpression { operands: 2, functions: 9 };

/// The step with the decay of the weights added.
const DECAYING_STEP: FusedExpression = FusedExpression { operands: 3, functions: 11 };

/// The powers of both decays for the next update, in TensorFlow.
const DECAY_POWERS: FusedExpression = FusedExpression { operands: 2, functions: 2 };

/// The shared rate, `rate sqrt(1 - b2^t) / (1 - b1^t)` (training_ops.cc).
const SHARED_RATE: FusedExpression = FusedExpression { operands: 3, functions: 5 };

/// The change of the second moment, `gradient gradient - accl2` (training_ops.cc).
const SECOND_MOMENT_CHANGE: FusedExpression = FusedExpression { operands: 2, functions: 2 };

/// The step with the shared rate, `rate accl1 / (sqrt(accl2) + e)` (training_ops.cc).
const SHARED_RATE_STEP: FusedExpression = FusedExpression { operands: 2, functions: 4 };

/// The work of one update under construction.
struct UpdateWork<'a> {
    machine: &'a IpuTarget,
    work: OperationWork,
    dtype: DType,
    /// Elements of the parameter on each tile.
    elements: &'a TileRuns<Elements>,
}

impl UpdateWork<'_> {
    fn fused(&mut self, name: &str, expression: FusedExpression, dtype: DType, in_place: bool) {
        self.work.push(elementwise::fused(name, expression, (dtype, self.elements), in_place));
    }

    /// Adds a function of values on a single tile, and the exchange that sends the result to the
    /// parameter's tiles for the pass `to`.
    fn scalar(&mut self, name: &str, expression: FusedExpression, to: &str) {
        let one = TileRuns::uniform(TileRange::first_tiles(1), Elements(1));
        self.work.push(elementwise::fused(name, expression, (DType::Float, &one), true));
        self.send_scalar(to);
    }

    /// Adds the exchange that sends a value on a single tile to the parameter's tiles for the pass
    /// `to`.
    fn send_scalar(&mut self, to: &str) {
        let sent = TileRuns::uniform(TileRange::first_tiles(1), DType::Float.bytes());
        let received = self.elements.map(|_| DType::Float.bytes());
        let messages = TileMessages::each_way(1);
        let speed = self.machine.exchange_speed();
        let tiles = self.machine.tiles;
        self.work.push_some(exchange::phase(to, &received, &sent, messages, tiles, speed));
    }

    /// Adds the update of Adam with a rate that all parameters share.
    fn shared_rate_update(&mut self, states: [DType; 2], computes_rate: bool) {
        let (dtype, elements) = (self.dtype, self.elements);
        let [first, second] = states;
        let subtract = ElementwiseOp::Binary(BinaryOpType::Subtract);
        self.work.push(elementwise::apart("accl1Change", subtract, first, elements));
        self.work.push(elementwise::scaled_add("accl1Update", first, elements));
        self.fused("accl2Change", SECOND_MOMENT_CHANGE, second, false);
        self.work.push(elementwise::scaled_add("accl2Update", second, elements));
        if computes_rate {
            let one = TileRuns::uniform(TileRange::first_tiles(1), Elements(1));
            let on_one_tile = (DType::Float, &one);
            self.work.push(elementwise::fused("decayPowers", DECAY_POWERS, on_one_tile, true));
            self.work.push(elementwise::fused("learningRate", SHARED_RATE, on_one_tile, false));
        }
        self.send_scalar("adamStep");
        self.fused("adamStep", SHARED_RATE_STEP, first, false);
        self.work.push(elementwise::in_place("varUpdate", subtract, dtype, elements));
    }

    /// Adds the moments, and the step that they make, in the types of `states`.
    fn adaptive_step(&mut self, states: [DType; 2], step: FusedExpression) {
        let [first, second] = states;
        self.fused("accl1Update", FIRST_MOMENT, first, true);
        self.fused("accl2Update", SECOND_MOMENT, second, true);
        self.scalar("adamUpdater/updateStep", SCALAR_FUNCTION, "adamUpdater");
        self.fused("adamUpdater", step, first, false);
    }
}

/// Adds up the squares of parameter and step. Replicas that have a share of both add up their sums
/// (popart willow/src/op/reducesumsquare.cpp, configureForReplicatedTensorSharding).
fn squared_norms(
    node: &NodeOperands,
    update: &mut UpdateWork,
    layout: &TensorLayout,
) -> Result<ReplicaSum, LoweringError> {
    let flat = TensorInfo::new([layout.elements.total().0], update.dtype);
    let seen = TensorLayout { elements: layout.elements.clone(), order: ElementOrder::Linear };
    let rows = TensorRows::new(&flat, seen, &[0]);
    let machine = update.machine;
    let float = DType::Float;
    let mut add_squares = |name: &str| {
        rows.reduce(machine, &mut update.work, name, ReduceOperation::SquareAdd, float)
            .map_err(|error| node.error(error))
    };
    let weights = add_squares("lambSquare/weights")?;
    add_squares("lambSquare/step")?;
    Ok(ReplicaSum {
        after: update.work.items.len(),
        dtype: float,
        elements: weights.elements.map(|count| 2 * *count),
    })
}

impl VarUpdateOp {
    /// Returns whether the update computes the rate that it shares with other updates, or `None` if
    /// it has its own.
    fn shares_rate(&self) -> Option<bool> {
        match (self.form, self.optimizer) {
            (UpdateForm::Shared { computes_rate }, Optimizer::Adam) => Some(computes_rate),
            _ => None,
        }
    }

    /// Adds the preparation of the accumulator, if there is one, for the next sum.
    fn with_next_accumulator(
        &self,
        mut work: OperationWork,
        lowering: &mut LoweringContext,
        node: &NodeOperands,
    ) -> OperationWork {
        if !self.accumulates {
            return work;
        }
        let dtype = lowering.tensor_type(node.inputs[0]).dtype;
        let elements = lowering.layout_or_linear(node.inputs[1]).elements;
        work.push(match self.optimizer {
            // The accumulated sum decays into the momentum of the next update.
            Optimizer::SgdMomentumCombined => {
                elementwise::axpby("acclUpdate/axpby", dtype, &elements)
            }
            _ => elementwise::fill("accumulatorUpdate/zero", dtype, &elements),
        });
        work
    }
}

impl Operator for VarUpdateOp {
    fn kind(&self) -> &'static str {
        self.optimizer.name()
    }

    fn infer(&self, inputs: &[TensorInfo]) -> Result<Vec<TensorInfo>, ShapeError> {
        if let Some(other) = inputs.iter().find(|operand| operand.shape != inputs[0].shape) {
            return Err(ShapeError::Parameter {
                operand: other.clone(),
                parameter: inputs[0].clone(),
            });
        }
        Ok(Vec::new())
    }

    fn flops(&self, inputs: &[TensorInfo], _: &[TensorInfo]) -> u64 {
        let per_element = match self.optimizer {
            Optimizer::Sgd => 2,
            Optimizer::SgdMomentum | Optimizer::SgdMomentumCombined => 4,
            Optimizer::Adam => 14,
            Optimizer::AdamW => 16,
            Optimizer::Lamb => 21,
        };
        per_element * inputs[0].elements().0
    }

    fn lower(&self, lowering: &mut LoweringContext, node: &NodeOperands) -> LoweringResult {
        let dtype = lowering.tensor_type(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        // State has the layout of the gradient if gradients are accumulated, and that of the
        // parameter otherwise.
        let work = lowering.regroup_tensor(node.inputs[1], &layout, "gradientCopy");
        for state in &node.inputs[2..] {
            lowering.set_layout(*state, layout.clone());
        }
        let machine = &lowering.machine;
        let elements = &layout.elements;
        let mut update = UpdateWork { machine, work, dtype, elements };
        let mut replica_sum = None;
        match self.optimizer {
            Optimizer::Sgd => {}
            Optimizer::SgdMomentumCombined if self.accumulates => {}
            Optimizer::SgdMomentum | Optimizer::SgdMomentumCombined => {
                update.work.push(elementwise::axpby("acclUpdate/axpby", dtype, elements));
            }
            Optimizer::Adam | Optimizer::AdamW | Optimizer::Lamb => {
                if self.unscales {
                    let product = ElementwiseOp::Scalar(BinaryOpType::Multiply);
                    let phase = elementwise::apart("gradientUnscale", product, dtype, elements);
                    update.work.push(phase);
                }
                let states = [2, 3].map(|at| lowering.tensor_type(node.inputs[at]).dtype);
                if let Some(computes_rate) = self.shares_rate() {
                    update.shared_rate_update(states, computes_rate);
                    return Ok(self.with_next_accumulator(update.work, lowering, node).into());
                }
                let decays = self.optimizer != Optimizer::Adam;
                let step = if decays { DECAYING_STEP } else { STEP };
                update.adaptive_step(states, step);
            }
        }
        let mut rate = SCALAR_FUNCTION;
        if self.optimizer == Optimizer::Lamb {
            replica_sum = Some(squared_norms(node, &mut update, &layout)?);
            rate = LAMB_RATE;
        }
        let mut name = "varUpdate/scaledAdd";
        if self.optimizer.is_adaptive() {
            name = "adamVarUpdate";
            update.scalar("adamVarUpdate/learningRate", rate, name);
        }
        update.work.push(elementwise::scaled_add(name, dtype, elements));
        let work = self.with_next_accumulator(update.work, lowering, node);
        Ok(LoweredOperation { replica_sum, ..work.into() })
    }
}
