//! Optimisers: the weight update of one parameter.
//!
//! Each is a chain of element-wise passes over the parameter's tiles. AdamW follows PopART's
//! lowering: two moment updates, the bias-corrected step, weight decay, the variable update
//! (popart willow/src/popx/op/adamupdaterx.cpp, adamvarupdatex.cpp).

use super::{Operator, expect_same};
use crate::sim::graph::{DType, Node, TensorType};
use crate::sim::lower::elementwise::{self, Binary, Unary};
use crate::sim::lower::{
    LowerError, Lowering,
    work::{Phase, Work},
};
use crate::units::TileRuns;

/// An optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Optimizer {
    /// Stochastic gradient descent.
    Sgd,
    /// Gradient descent with momentum.
    SgdMomentum,
    /// Adam with decoupled weight decay.
    AdamW,
}

impl Optimizer {
    /// Name in a spec.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sgd => "sgd",
            Self::SgdMomentum => "sgd_momentum",
            Self::AdamW => "adamw",
        }
    }

    /// The optimiser of that name.
    pub fn find(name: &str) -> Option<Self> {
        [Self::Sgd, Self::SgdMomentum, Self::AdamW]
            .into_iter()
            .find(|optimizer| optimizer.name() == name)
    }

    /// Prefixes of its state tensors, as PopART names them.
    pub fn states(self) -> &'static [&'static str] {
        match self {
            Self::Sgd => &[],
            Self::SgdMomentum => &["Accl"],
            Self::AdamW => &["Accl1", "Accl2"],
        }
    }

    /// The update of one parameter; afterwards the accumulator is cleared if there is one.
    pub fn update(self, clears_accumulator: bool) -> impl Operator + 'static {
        WeightUpdate { optimizer: self, clears_accumulator }
    }
}

/// The update of one parameter. Operands: parameter, gradient or accumulator, states.
#[derive(Clone, Copy, Debug)]
struct WeightUpdate {
    optimizer: Optimizer,
    clears_accumulator: bool,
}

/// One element-wise pass of an update.
type Pass = (&'static str, fn(&str, DType, &TileRuns<u64>) -> Phase);

const fn scaled(name: &'static str) -> Pass {
    (name, elementwise::scaled_add)
}

const SGD: &[Pass] = &[scaled("varUpdate/axpby")];

const SGD_MOMENTUM: &[Pass] = &[scaled("acclUpdate/axpby"), scaled("varUpdate/scaledAdd")];

const ADAMW: &[Pass] = &[
    scaled("gradientUnscale"),
    ("accl1Update/Square", |name, dtype, elements| {
        elementwise::unary(name, Unary::Square, dtype, elements)
    }),
    scaled("accl1Update/axpby"),
    scaled("accl2Update/axpby"),
    ("adamUpdater/mcorrected", |name, dtype, elements| {
        elementwise::binary_in_place(name, Binary::Multiply, dtype, elements)
    }),
    ("adamUpdater/vcorrected", |name, dtype, elements| {
        elementwise::binary_in_place(name, Binary::Multiply, dtype, elements)
    }),
    ("adamUpdater/Sqrt", |name, dtype, elements| {
        elementwise::unary(name, Unary::Sqrt, dtype, elements)
    }),
    ("adamUpdater/AddEpsilon", |name, dtype, elements| {
        elementwise::binary_in_place(name, Binary::Add, dtype, elements)
    }),
    ("adamUpdater/Divide", |name, dtype, elements| {
        elementwise::binary_in_place(name, Binary::Divide, dtype, elements)
    }),
    scaled("adamUpdater/weightDecay"),
    ("adamVarUpdate/learningRate", |name, dtype, elements| {
        elementwise::binary_in_place(name, Binary::Multiply, dtype, elements)
    }),
    scaled("adamVarUpdate/scaledSubtract"),
];

impl Operator for WeightUpdate {
    fn kind(&self) -> &'static str {
        self.optimizer.name()
    }

    fn infer(&self, inputs: &[TensorType]) -> Result<Vec<TensorType>, String> {
        for operand in inputs {
            expect_same(operand, &inputs[0])?;
        }
        Ok(Vec::new())
    }

    fn flops(&self, inputs: &[TensorType], _: &[TensorType]) -> u64 {
        let per_element = match self.optimizer {
            Optimizer::Sgd => 2,
            Optimizer::SgdMomentum => 4,
            Optimizer::AdamW => 16,
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
        let passes = match self.optimizer {
            Optimizer::Sgd => SGD,
            Optimizer::SgdMomentum => SGD_MOMENTUM,
            Optimizer::AdamW => ADAMW,
        };
        for (name, pass) in passes {
            work.push(pass(name, dtype, &layout.elements));
        }
        if self.clears_accumulator {
            let accumulator = lowering.layout_or_linear(node.inputs[1]);
            work.push(elementwise::fill("accumulatorUpdate/zero", dtype, &accumulator.elements));
        }
        Ok(work)
    }
}
