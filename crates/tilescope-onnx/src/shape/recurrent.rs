//! Recurrent layers: `RNN`, `GRU` and `LSTM`.

use super::{NodeView, ShapeRule, TensorType};
use crate::error::OnnxError;

/// The rule of an operator of this family.
pub(super) fn rule(op: &str) -> Option<ShapeRule> {
    Some(match op {
        "GRU" | "LSTM" | "RNN" => recurrent,
        _ => return None,
    })
}

/// All outputs of all time steps, the last hidden state, and for `LSTM` the last cell state.
fn recurrent(view: &NodeView) -> Result<Vec<TensorType>, OnnxError> {
    let data = view.input(0)?;
    let weights = view.input(2)?;
    let [first, second, inputs] = *data.dims.as_slice() else {
        return Err(view.error(format!("{:?} is not the shape of sequences", data.dims)));
    };
    let [directions, _, hidden] = *weights.dims.as_slice() else {
        return Err(view.error(format!("its recurrent weights are {:?}", weights.dims)));
    };
    let columns = view.input(1)?.dims.last().copied();
    if columns != Some(inputs) {
        return Err(view.error(format!("{inputs} features for weights of {columns:?}")));
    }
    let make_type = |dims: [u64; 4]| TensorType { element: data.element, dims: dims.to_vec() };
    let make_state = |dims: [u64; 3]| TensorType { element: data.element, dims: dims.to_vec() };
    // The batch comes first with layout 1 (version 14).
    let (output, state) = if view.int_or("layout", 0)? == 0 {
        (make_type([first, directions, second, hidden]), make_state([directions, second, hidden]))
    } else {
        (make_type([first, second, directions, hidden]), make_state([first, directions, hidden]))
    };
    Ok(vec![output, state.clone(), state])
}
