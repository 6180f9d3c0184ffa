//! Arithmetic of one LSTM step (poplibs lib/popnn/Lstm.cpp, basicLstmCellForwardPass,
//! basicLstmCellForwardPassInPlace and backwardStepImpl).

use super::RnnLowering;
use super::step_builder::RnnStepBuilder;
use crate::popnn::NonLinearityType;
use crate::popops::elementwise::{BinaryOpType, FusedExpression, UnaryOpType};

/// Adds the forward step. Without training, units and state are overwritten.
pub(crate) fn forward(step: &mut RnnStepBuilder, lowered: &RnnLowering, training: bool) {
    // All four units at once, on input and state concatenated: one large product uses the engine
    // better than eight small ones.
    step.append(lowered.product(0));
    step.gather_units("BasicLstmCell", 4);
    step.gates("OutputGate", &[(NonLinearityType::Sigmoid, 3), (NonLinearityType::Tanh, 1)]);
    if training {
        // The backward pass needs the original gates and candidate, so they are not overwritten.
        step.binary("{Forget + Input}Gate", BinaryOpType::Multiply, 2);
        step.in_place("AddCellCand", BinaryOpType::Add, 1);
        step.unary("Tanh", UnaryOpType::Tanh);
        step.binary("OutputGate", BinaryOpType::Multiply, 1);
    } else {
        step.in_place("{Forget + Input}Gate", BinaryOpType::Multiply, 2);
        step.in_place("AddCellCand", BinaryOpType::Add, 1);
        // outputGate * tanh(cellState)
        let next = FusedExpression { operands: 2, functions: 2 };
        step.expression("CalcNextOutput", next, true);
    }
}

/// Adds the backward step: gradients of the gates, then of input and state.
pub(crate) fn backward(step: &mut RnnStepBuilder, lowered: &RnnLowering) {
    step.binary("AddActGrads", BinaryOpType::Add, 1);
    step.binary("MulOGate", BinaryOpType::Multiply, 2);
    step.gate_gradients(
        "OutputGate",
        &[(NonLinearityType::Tanh, 1), (NonLinearityType::Sigmoid, 1)],
    );
    step.in_place("AddCellState", BinaryOpType::Add, 1);
    step.binary("MulGates", BinaryOpType::Multiply, 4);
    step.gate_gradients(
        "{Input+Candidate}Gate",
        &[
            (NonLinearityType::Sigmoid, 1),
            (NonLinearityType::Tanh, 1),
            (NonLinearityType::Sigmoid, 1),
        ],
    );
    step.append(lowered.backward_product(0));
    lowered.gather_gradients(step);
}
