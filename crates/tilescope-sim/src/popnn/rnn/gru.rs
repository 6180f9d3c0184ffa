//! Arithmetic of one GRU step (poplibs lib/popnn/Gru.cpp, basicGruCellForwardPass,
//! basicGruCellForwardPassInPlace and backwardStepImpl).

use super::RnnLowering;
use super::step_builder::RnnStepBuilder;
use crate::popnn::NonLinearityType;
use crate::popops::elementwise::{BinaryOpType, FusedExpression};
use tilescope_report::units::TileRuns;

/// Adds the forward step. Without training, units and state are overwritten.
pub(crate) fn forward(step: &mut RnnStepBuilder, lowered: &RnnLowering, training: bool) {
    step.append(lowered.product(0));
    step.gather_units("BasicGruCell", 2);
    step.gates("update/reset sigmoid", &[(NonLinearityType::Sigmoid, 2)]);
    // The multiplication in place below overwrites the gate that the backward pass needs.
    if training {
        step.keep_unit("resetGateOut");
    }
    step.in_place("resetGate * prevOutput", BinaryOpType::Multiply, 1);
    step.append(lowered.product(1));
    step.gather_units("BasicGruCell/candidate", 1);
    step.gates("Candidate Tanh", &[(NonLinearityType::Tanh, 1)]);
    // candidate + updateGate * (prevOutput - candidate)
    let next = FusedExpression { operands: 3, functions: 3 };
    step.expression("CalcNextOutput", next, !training);
}

/// Adds the backward step: gradients of the gates, then of input and state.
pub(crate) fn backward(step: &mut RnnStepBuilder, lowered: &RnnLowering) {
    step.keep_unit("outputGrad");
    step.binary("AddActGrads", BinaryOpType::Add, 1);
    step.keep_unit("var_one_matrix");
    step.binary("1-updateGate", BinaryOpType::Subtract, 1);
    step.binary("preOutput-candidate", BinaryOpType::Subtract, 1);
    step.binary("MulOGate", BinaryOpType::Multiply, 2);
    step.gate_gradients(
        "OutputGate",
        &[(NonLinearityType::Tanh, 1), (NonLinearityType::Sigmoid, 1)],
    );
    step.append(lowered.backward_product(1));
    step.gather("d_x2_d_h_prevr", &lowered.state(), &TileRuns::empty());
    step.binary("d_hr * h_prev", BinaryOpType::Multiply, 1);
    step.gate_gradients("t * r * (1-r)", &[(NonLinearityType::Sigmoid, 1)]);
    step.append(lowered.backward_product(0));
    step.gather_units("d_x1_d_h_prev1 X w_ru", 1);
    step.binary("dx", BinaryOpType::Add, 1);
    // d_hr * r + d_h * u + d_hprev1
    let gradient = FusedExpression { operands: 5, functions: 4 };
    step.expression("d_h_prev", gradient, false);
}
