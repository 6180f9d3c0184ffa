//! The arithmetic of one GRU step (poplibs lib/popnn/Gru.cpp, basicGruCellForwardPass,
//! basicGruCellForwardPassInPlace and backwardStepImpl).

use super::Lowered;
use super::step::Step;
use crate::popnn::NonLinearity;
use crate::popops::elementwise::Binary;
use tilescope_report::units::TileRuns;

/// The forward step. Without training, units and state are overwritten.
pub(crate) fn forward(step: &mut Step, lowered: &Lowered, training: bool) {
    step.append(lowered.product(0));
    step.gather_units("BasicGruCell", 2);
    step.gates("update/reset sigmoid", &[(NonLinearity::Sigmoid, 2)]);
    if training {
        step.keep_unit("resetGateOut");
    }
    step.in_place("resetGate * prevOutput", Binary::Multiply, 1);
    step.append(lowered.product(1));
    step.gather_units("BasicGruCell/candidate", 1);
    step.gates("Candidate Tanh", &[(NonLinearity::Tanh, 1)]);
    step.expression("CalcNextOutput", Binary::Subtract, 2);
}

/// The backward step: gradients of the gates, then of input and state.
pub(crate) fn backward(step: &mut Step, lowered: &Lowered) {
    step.keep_unit("outputGrad");
    step.binary("AddActGrads", Binary::Add, 1);
    step.keep_unit("var_one_matrix");
    step.binary("1-updateGate", Binary::Subtract, 1);
    step.binary("preOutput-candidate", Binary::Subtract, 1);
    step.binary("MulOGate", Binary::Multiply, 2);
    step.gate_gradients("OutputGate", &[(NonLinearity::Tanh, 1), (NonLinearity::Sigmoid, 1)]);
    step.append(lowered.backward_product(1));
    step.gather("d_x2_d_h_prevr", &lowered.state(), &TileRuns::empty());
    step.binary("d_hr * h_prev", Binary::Multiply, 1);
    step.gate_gradients("t * r * (1-r)", &[(NonLinearity::Sigmoid, 1)]);
    step.append(lowered.backward_product(0));
    step.gather_units("d_x1_d_h_prev1 X w_ru", 1);
    step.binary("dx", Binary::Add, 1);
    step.expression("d_h_prev", Binary::Multiply, 3);
}
