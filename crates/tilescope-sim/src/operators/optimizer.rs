//! Optimisers: the weight update of one parameter.
//!
//! Each is a chain of element-wise passes over the parameter's tiles. Adam, AdamW and LAMB follow
//! PopART's lowering: two moment updates, the bias-corrected step, weight decay, the norms of
//! parameter and step where LAMB compares them, the variable update (popart
//! willow/src/popx/op/adamupdaterx.cpp, lambsquarex.cpp, adamvarupdatex.cpp).

use super::{
    LoweredOperation, LoweringContext, LoweringError, LoweringResult, NodeOperands, Operator,
    ReplicaSum, ShapeError,
};
use crate::poplar::work::{OperationWork, WorkPhase};
use crate::popops::elementwise::{self, BinaryOpType, ElementwiseOp, UnaryOpType};
use crate::popops::reduce::ReduceOperation;
use crate::popops::rows::TensorRows;
use crate::poputil::tensor_layout::{ElementOrder, TensorLayout};
use crate::shape::{DType, TensorInfo};
use tilescope_report::units::{Elements, TileRuns};

/// An optimiser of a training model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd,
    /// Gradient descent with momentum.
    SgdMomentum,
    /// The same with one tensor for the accumulated gradient and the momentum (PopART
    /// SGDAccumulatorAndMomentum::Combined).
    SgdMomentumCombined,
    /// Adaptive moments.
    Adam,
    /// Adam with decoupled weight decay.
    AdamW,
    /// AdamW whose step is scaled by the norms of parameter and step, layer by layer.
    Lamb,
}

impl Optimizer {
    /// All of them, as specs list them.
    pub const ALL: [Self; 6] = [
        Self::Sgd,
        Self::SgdMomentum,
        Self::SgdMomentumCombined,
        Self::Adam,
        Self::AdamW,
        Self::Lamb,
    ];

    /// The names of all of them, as a spec may use them.
    pub(crate) const NAMES: [&'static str; Self::ALL.len()] = {
        let mut names = [""; Self::ALL.len()];
        let mut at = 0;
        while at < names.len() {
            names[at] = Self::ALL[at].name();
            at += 1;
        }
        names
    };

    /// Name in a spec.
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

    /// The optimiser of that name.
    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|optimizer| optimizer.name() == name)
    }

    /// Its state tensors: prefix as PopART names them, and element type where that is not the
    /// parameter's. Second moments of halves would underflow (graphcore/examples nlp/bert/pytorch
    /// optimization.py: second_order_momentum_accum_type float). Where gradients are accumulated,
    /// a combined momentum is the accumulator.
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

    /// The update of one parameter; afterwards the accumulator is made ready for the next one if
    /// there is one.
    pub(crate) fn update(self, accumulates: bool) -> impl Operator + 'static {
        VarUpdateOp { optimizer: self, accumulates }
    }

    /// Passes up to the step.
    fn step(self, accumulates: bool) -> Vec<OptimizerPass> {
        match self {
            Self::Sgd => Vec::new(),
            Self::SgdMomentumCombined if accumulates => Vec::new(),
            Self::SgdMomentum | Self::SgdMomentumCombined => vec![axpby("acclUpdate/axpby")],
            Self::Adam => moments(),
            Self::AdamW | Self::Lamb => {
                let mut passes = moments();
                passes.push(scaled("adamUpdater/weightDecay"));
                passes
            }
        }
    }

    /// Passes that apply the step.
    fn apply(self) -> &'static [OptimizerPass] {
        match self {
            Self::Sgd | Self::SgdMomentum | Self::SgdMomentumCombined => {
                const { &[scaled("varUpdate/scaledAdd")] }
            }
            Self::Adam | Self::AdamW | Self::Lamb => {
                const {
                    &[
                        in_place("adamVarUpdate/learningRate", BinaryOpType::Multiply),
                        scaled("adamVarUpdate/scaledSubtract"),
                    ]
                }
            }
        }
    }
}

/// The update of one parameter. Operands: parameter, gradient or accumulator, states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct VarUpdateOp {
    optimizer: Optimizer,
    accumulates: bool,
}

/// One element-wise pass of an update.
#[derive(Clone, Copy)]
struct OptimizerPass {
    name: &'static str,
    kind: OptimizerPassKind,
}

#[derive(Clone, Copy)]
enum OptimizerPassKind {
    /// a += s b
    ScaledAdd,
    /// a = s a + t b
    Axpby,
    /// a = f(b)
    Unary(UnaryOpType),
    /// a = a op b
    InPlace(BinaryOpType),
}

const fn scaled(name: &'static str) -> OptimizerPass {
    OptimizerPass { name, kind: OptimizerPassKind::ScaledAdd }
}

const fn axpby(name: &'static str) -> OptimizerPass {
    OptimizerPass { name, kind: OptimizerPassKind::Axpby }
}

const fn unary(name: &'static str, function: UnaryOpType) -> OptimizerPass {
    OptimizerPass { name, kind: OptimizerPassKind::Unary(function) }
}

const fn in_place(name: &'static str, operation: BinaryOpType) -> OptimizerPass {
    OptimizerPass { name, kind: OptimizerPassKind::InPlace(operation) }
}

/// Both moments, corrected for their start at zero, and their ratio.
fn moments() -> Vec<OptimizerPass> {
    vec![
        scaled("gradientUnscale"),
        axpby("accl1Update/axpby"),
        unary("accl2Update/Square", UnaryOpType::Square),
        axpby("accl2Update/axpby"),
        in_place("adamUpdater/mcorrected", BinaryOpType::Multiply),
        in_place("adamUpdater/vcorrected", BinaryOpType::Multiply),
        unary("adamUpdater/Sqrt", UnaryOpType::Sqrt),
        in_place("adamUpdater/AddEpsilon", BinaryOpType::Add),
        in_place("adamUpdater/Divide", BinaryOpType::Divide),
    ]
}

impl OptimizerPass {
    fn phase(self, dtype: DType, elements: &TileRuns<Elements>) -> WorkPhase {
        match self.kind {
            OptimizerPassKind::ScaledAdd => elementwise::scaled_add(self.name, dtype, elements),
            OptimizerPassKind::Axpby => elementwise::axpby(self.name, dtype, elements),
            OptimizerPassKind::Unary(function) => {
                elementwise::apart(self.name, ElementwiseOp::Unary(function), dtype, elements)
            }
            OptimizerPassKind::InPlace(operation) => {
                elementwise::in_place(self.name, ElementwiseOp::Binary(operation), dtype, elements)
            }
        }
    }
}

/// Scales the step by the ratio of the norms of parameter and step. Gives their squares, which
/// replicas add up where each has a share of both (popart willow/src/op/reducesumsquare.cpp,
/// configureForReplicatedTensorSharding).
fn trust_ratio(
    lowering: &LoweringContext,
    node: &NodeOperands,
    work: &mut OperationWork,
    dtype: DType,
    layout: &TensorLayout,
) -> Result<ReplicaSum, LoweringError> {
    let flat = TensorInfo::new([layout.elements.total().0], dtype);
    let seen = TensorLayout { elements: layout.elements.clone(), order: ElementOrder::Linear };
    let rows = TensorRows::new(&flat, seen, &[0]);
    let mut norm = |name: &str| {
        rows.reduce(&lowering.machine, work, name, ReduceOperation::SquareAdd, DType::Float)
            .map_err(|error| node.error(error))
    };
    let [weights, _] = [norm("lambSquare/weights")?, norm("lambSquare/step")?];
    let (float, scalar) = (DType::Float, &weights.elements);
    let squares = ReplicaSum {
        after: work.items.len(),
        dtype: float,
        elements: scalar.map(|count| 2 * *count),
    };
    for (name, function) in [("lamb/r1Sqrt", UnaryOpType::Sqrt), ("lamb/r2Sqrt", UnaryOpType::Sqrt)]
    {
        work.push(elementwise::in_place(name, ElementwiseOp::Unary(function), float, scalar));
    }
    work.push(elementwise::in_place(
        "lamb/ratio",
        ElementwiseOp::Binary(BinaryOpType::Divide),
        float,
        scalar,
    ));
    rows.apply_broadcast(&lowering.machine, work, "lamb/scale", BinaryOpType::Multiply, &weights);
    Ok(squares)
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
        // State lies as the gradient does where that is accumulated, else as the parameter.
        let mut work = lowering.regroup_tensor(node.inputs[1], &layout, "gradientCopy");
        for state in &node.inputs[2..] {
            lowering.set_layout(*state, layout.clone());
        }
        for pass in self.optimizer.step(self.accumulates) {
            work.push(pass.phase(dtype, &layout.elements));
        }
        let replica_sum = match self.optimizer {
            Optimizer::Lamb => Some(trust_ratio(lowering, node, &mut work, dtype, &layout)?),
            _ => None,
        };
        for pass in self.optimizer.apply() {
            work.push(pass.phase(dtype, &layout.elements));
        }
        if self.accumulates {
            let elements = lowering.layout_or_linear(node.inputs[1]).elements;
            work.push(match self.optimizer {
                // What was accumulated decays into the momentum of the next update.
                Optimizer::SgdMomentumCombined => axpby("acclUpdate/axpby").phase(dtype, &elements),
                _ => elementwise::fill("accumulatorUpdate/zero", dtype, &elements),
            });
        }
        Ok(LoweredOperation { replica_sum, ..work.into() })
    }
}
