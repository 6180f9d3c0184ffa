//! The arithmetic of one LSTM step (poplibs lib/popnn/Lstm.cpp, basicLstmCellForwardPass,
//! basicLstmCellForwardPassInPlace and backwardStepImpl).

use super::Lowered;
use super::step::Step;
use crate::popnn::NonLinearity;
use crate::popops::elementwise::{Binary, Unary};

/// The forward step. Without training, units and state are overwritten.
pub(crate) fn forward(step: &mut Step, lowered: &Lowered, training: bool) {
    step.append(lowered.product(0));
    step.gather_units("BasicLstmCell", 4);
    step.gates("OutputGate", &[(NonLinearity::Sigmoid, 3), (NonLinearity::Tanh, 1)]);
    if training {
        step.binary("{Forget + Input}Gate", Binary::Multiply, 2);
        step.in_place("AddCellCand", Binary::Add, 1);
        step.unary("Tanh", Unary::Tanh);
        step.binary("OutputGate", Binary::Multiply, 1);
    } else {
        step.in_place("{Forget + Input}Gate", Binary::Multiply, 2);
        step.in_place("AddCellCand", Binary::Add, 1);
        step.expression("CalcNextOutput", Binary::Multiply, 1);
    }
}

/// The backward step: gradients of the gates, then of input and state.
pub(crate) fn backward(step: &mut Step, lowered: &Lowered) {
    step.binary("AddActGrads", Binary::Add, 1);
    step.binary("MulOGate", Binary::Multiply, 2);
    step.gate_gradients("OutputGate", &[(NonLinearity::Tanh, 1), (NonLinearity::Sigmoid, 1)]);
    step.in_place("AddCellState", Binary::Add, 1);
    step.binary("MulGates", Binary::Multiply, 4);
    step.gate_gradients(
        "{Input+Candidate}Gate",
        &[(NonLinearity::Sigmoid, 1), (NonLinearity::Tanh, 1), (NonLinearity::Sigmoid, 1)],
    );
    step.append(lowered.backward_product(0));
    lowered.gather_gradients(step);
}
