//! Optimisers: the weight update of one parameter.
//!
//! Each is a chain of element-wise passes over the parameter's tiles. Adam, AdamW and LAMB follow
//! PopART's lowering: two moment updates, the bias-corrected step, weight decay, the norms of
//! parameter and step where LAMB compares them, the variable update (popart
//! willow/src/popx/op/adamupdaterx.cpp, lambsquarex.cpp, adamvarupdatex.cpp).

use super::Operator;
use super::parts::Rows;
use crate::graph::{DType, Node, TensorType};
use crate::lower::elementwise::{self, Binary, Unary};
use crate::lower::layout::{Layout, Order};
use crate::lower::reduce::Operation;
use crate::lower::{
    LowerError, Lowering,
    work::{Phase, Work},
};
use tilescope_report::units::TileRuns;

/// An optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// All of them.
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
        WeightUpdate { optimizer: self, accumulates }
    }

    /// Passes up to the step.
    fn step(self, accumulates: bool) -> Vec<Pass> {
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
    fn apply(self) -> &'static [Pass] {
        match self {
            Self::Sgd | Self::SgdMomentum | Self::SgdMomentumCombined => {
                const { &[scaled("varUpdate/scaledAdd")] }
            }
            Self::Adam | Self::AdamW | Self::Lamb => {
                const {
                    &[
                        in_place("adamVarUpdate/learningRate", Binary::Multiply),
                        scaled("adamVarUpdate/scaledSubtract"),
                    ]
                }
            }
        }
    }
}

/// The update of one parameter. Operands: parameter, gradient or accumulator, states.
#[derive(Clone, Copy, Debug)]
struct WeightUpdate {
    optimizer: Optimizer,
    accumulates: bool,
}

/// One element-wise pass of an update.
#[derive(Clone, Copy)]
struct Pass {
    name: &'static str,
    kind: PassKind,
}

#[derive(Clone, Copy)]
enum PassKind {
    /// a += s b
    Scaled,
    /// a = s a + t b
    Axpby,
    /// a = f(b)
    Unary(Unary),
    /// a = a op b
    InPlace(Binary),
}

const fn scaled(name: &'static str) -> Pass {
    Pass { name, kind: PassKind::Scaled }
}

const fn axpby(name: &'static str) -> Pass {
    Pass { name, kind: PassKind::Axpby }
}

const fn unary(name: &'static str, function: Unary) -> Pass {
    Pass { name, kind: PassKind::Unary(function) }
}

const fn in_place(name: &'static str, operation: Binary) -> Pass {
    Pass { name, kind: PassKind::InPlace(operation) }
}

/// Both moments, corrected for their start at zero, and their ratio.
fn moments() -> Vec<Pass> {
    vec![
        scaled("gradientUnscale"),
        axpby("accl1Update/axpby"),
        unary("accl2Update/Square", Unary::Square),
        axpby("accl2Update/axpby"),
        in_place("adamUpdater/mcorrected", Binary::Multiply),
        in_place("adamUpdater/vcorrected", Binary::Multiply),
        unary("adamUpdater/Sqrt", Unary::Sqrt),
        in_place("adamUpdater/AddEpsilon", Binary::Add),
        in_place("adamUpdater/Divide", Binary::Divide),
    ]
}

impl Pass {
    fn phase(self, dtype: DType, elements: &TileRuns<u64>) -> Phase {
        match self.kind {
            PassKind::Scaled => elementwise::scaled_add(self.name, dtype, elements),
            PassKind::Axpby => elementwise::axpby(self.name, dtype, elements),
            PassKind::Unary(function) => elementwise::unary(self.name, function, dtype, elements),
            PassKind::InPlace(operation) => {
                elementwise::binary_in_place(self.name, operation, dtype, elements)
            }
        }
    }
}

/// Scales the step by the ratio of the norms of parameter and step.
fn trust_ratio(
    lowering: &Lowering,
    node: &Node,
    work: &mut Work,
    dtype: DType,
    layout: &Layout,
) -> Result<(), LowerError> {
    let flat = TensorType::new([layout.elements.total()], dtype);
    let seen = Layout { elements: layout.elements.clone(), order: Order::Linear };
    let rows = Rows::new(&flat, seen, &[0]);
    let mut norm =
        |name: &str| rows.reduce(lowering, node, work, name, Operation::SquareAdd, DType::Float);
    let [weights, _] = [norm("lambSquare/weights")?, norm("lambSquare/step")?];
    let (float, scalar) = (DType::Float, &weights.elements);
    for (name, function) in [("lamb/r1Sqrt", Unary::Sqrt), ("lamb/r2Sqrt", Unary::Sqrt)] {
        work.push(elementwise::unary_in_place(name, function, float, scalar));
    }
    work.push(elementwise::binary_in_place("lamb/ratio", Binary::Divide, float, scalar));
    rows.apply(lowering, work, "lamb/scale", Binary::Multiply, &weights);
    Ok(())
}

impl Operator for WeightUpdate {
    fn kind(&self) -> &'static str {
        self.optimizer.name()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        if let Some(other) = inputs.iter().find(|operand| operand.shape != inputs[0].shape) {
            return Err(format!("{other} does not fit parameter {}", inputs[0]));
        }
        Ok(Vec::new())
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        let per_element = match self.optimizer {
            Optimizer::Sgd => 2,
            Optimizer::SgdMomentum | Optimizer::SgdMomentumCombined => 4,
            Optimizer::Adam => 14,
            Optimizer::AdamW => 16,
            Optimizer::Lamb => 21,
        };
        per_element * inputs[0].elements()
    }

    fn lower(&self, lowering: &mut Lowering, node: &Node) -> Result<Work, LowerError> {
        let dtype = lowering.ty(node.inputs[0]).dtype;
        let layout = lowering.layout_or_linear(node.inputs[0]);
        // State lies as the gradient does where that is accumulated, else as the parameter.
        let mut work = lowering.bring(node.inputs[1], &layout, "gradientCopy");
        for state in &node.inputs[2..] {
            lowering.lay_out(*state, layout.clone());
        }
        for pass in self.optimizer.step(self.accumulates) {
            work.push(pass.phase(dtype, &layout.elements));
        }
        if self.optimizer == Optimizer::Lamb {
            trust_ratio(lowering, node, &mut work, dtype, &layout)?;
        }
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
        Ok(work)
    }
}
